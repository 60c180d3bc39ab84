//! Shapes of tables, and checks of the control plane's writes to them.

use crate::error::ControlError;
use crate::objects::{Indirect, TableEntry};
use crate::words::{limbs_of, ones};
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, InstanceId, MatchKind, Matcher};
use p4rack_p4::shown::{self, Format};

/// Maximum actions of a one-shot set.
const MAX_SET: usize = 1024;
/// How a table finds entries, and how they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// By key alone.
    Exact,
    /// By longest prefix.
    Lpm,
    /// By largest priority.
    Ternary,
}

/// A field of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    pub name: String,
    pub kind: MatchKind,
    pub width: u32,
    /// How messages and traces show its values.
    pub format: Format,
    /// Position of its first word in the key.
    pub offset: usize,
    pub limbs: usize,
}

impl KeyShape {
    /// What an entry has for the key, in words.
    pub fn shown(&self, matcher: &Matcher) -> String {
        match matcher {
            Matcher::ValueSet(set) => format!("value set {}", set.0),
            matcher => shown::matcher(self.format, (self.kind, self.width), matcher),
        }
    }

    /// Whether a range covers all values; given as the words of the low end, then of the high end.
    pub fn is_open(&self, bounds: &[u64]) -> bool {
        let (lo, hi) = bounds.split_at(self.limbs);
        let largest = |limb: usize| ones((self.width - 64 * limb as u32).min(64));
        lo.iter().all(|&word| word == 0) && hi.iter().enumerate().all(|(limb, &word)| word == largest(limb))
    }
}

/// A parameter of an action.
#[derive(Clone, Debug)]
pub(crate) struct ParamShape {
    pub name: String,
    pub width: u32,
    /// How messages and traces show its values.
    pub format: Format,
}

/// An action that a table lists.
#[derive(Clone, Debug)]
pub(crate) struct ActionShape {
    pub name: String,
    pub params: Vec<ParamShape>,
    pub table_only: bool,
    pub default_only: bool,
}

/// Everything about a table except its entries.
#[derive(Clone, Debug)]
pub(crate) struct TableShape {
    pub name: String,
    pub keys: Vec<KeyShape>,
    pub words: usize,
    pub style: Style,
    pub actions: Vec<ActionShape>,
    pub size: u64,
    pub entries_const: bool,
    pub default: Option<ActionCall>,
    pub default_is_const: bool,
    pub counter: Option<InstanceId>,
    pub meter: Option<InstanceId>,
    /// Whether the meter counts bytes rather than packets.
    pub meter_bytes: bool,
    /// Initial element of its direct register; empty if it has none.
    pub element: Vec<u64>,
    /// Whether there is a smoother for each entry, and whether that decides on drops.
    pub smoother: Option<bool>,
    /// Whether its direct counter and meter work where the program calls them, not at each look-up.
    pub on_call: bool,
    pub idle_timeout: bool,
    /// Whether its keys are exact and have a mask that is set at run time.
    pub masked: bool,
    /// Action profile or selector that implements the table.
    pub implementation: Option<InstanceId>,
}

/// A key as a table stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedKey {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    /// Low and high end of each range field, in words.
    pub ranges: Vec<u64>,
    /// Prefix length (LPM) or priority (ternary).
    pub rank: i32,
}

impl TableShape {
    /// Checks matchers and priority against the table's keys and packs them.
    pub fn pack(&self, keys: &[Matcher], priority: i32) -> Result<PackedKey, ControlError> {
        let invalid = |what: String| ControlError::Invalid(format!("{}: {what}", self.name));
        if keys.len() != self.keys.len() {
            return Err(invalid(format!(
                "has {} keys, not {}; give one matcher per key",
                self.keys.len(),
                keys.len()
            )));
        }
        if self.style == Style::Ternary && priority <= 0 {
            return Err(invalid(format!(
                "priority {priority} is not positive, but a key is matched with priorities"
            )));
        }
        if self.style != Style::Ternary && priority != 0 {
            return Err(invalid(format!(
                "priority {priority} is given, but no key is matched with priorities"
            )));
        }
        let mut packed = PackedKey {
            value: Vec::with_capacity(self.words),
            mask: Vec::with_capacity(self.words),
            ranges: Vec::new(),
            rank: priority,
        };
        let one = BigUint::from(1u8);
        for (key, matcher) in self.keys.iter().zip(keys) {
            // Most keys need no arithmetic on big numbers.
            if let (MatchKind::Exact, Matcher::Exact(value), 1) = (key.kind, matcher, key.limbs)
                && value.bits() <= u64::from(key.width)
            {
                packed.value.push(value.iter_u64_digits().next().unwrap_or(0));
                packed.mask.push(ones(key.width));
                continue;
            }
            let full = (&one << key.width) - &one;
            let fits = |value: &BigUint| {
                if *value > full {
                    let value = shown::number(key.format, value);
                    return Err(invalid(format!(
                        "key {}: {value} needs more than {} bits",
                        key.name, key.width
                    )));
                }
                Ok(())
            };
            let (value, mask) = match (key.kind, matcher) {
                (MatchKind::Exact | MatchKind::Optional, Matcher::Exact(value)) => {
                    (value.clone(), full.clone())
                }
                (MatchKind::Lpm | MatchKind::Ternary, Matcher::Exact(value)) => (value.clone(), full.clone()),
                (MatchKind::Lpm | MatchKind::Ternary, Matcher::Mask { value, mask }) => {
                    (value.clone(), mask.clone())
                }
                (MatchKind::Exact, Matcher::Any) => {
                    return Err(invalid(format!("key {} is exact and has no value", key.name)));
                }
                (MatchKind::Range, Matcher::Any) => {
                    packed.ranges.extend(vec![0; key.limbs]);
                    packed.ranges.extend(limbs_of(&full, key.limbs));
                    (BigUint::ZERO, BigUint::ZERO)
                }
                (MatchKind::Range, Matcher::Range { lo, hi }) => {
                    fits(hi)?;
                    if lo > hi {
                        let range = key.shown(matcher);
                        return Err(invalid(format!("key {}: the range {range} is empty", key.name)));
                    }
                    packed.ranges.extend(limbs_of(lo, key.limbs));
                    packed.ranges.extend(limbs_of(hi, key.limbs));
                    (BigUint::ZERO, BigUint::ZERO)
                }
                (_, Matcher::Any) => (BigUint::ZERO, BigUint::ZERO),
                (kind, _) => {
                    return Err(invalid(format!("key {} is matched as {kind:?}, not like that", key.name)));
                }
            };
            fits(&value)?;
            fits(&mask)?;
            if &value & &mask != value {
                return Err(invalid(format!("key {}: bits are set outside of the mask", key.name)));
            }
            if key.kind == MatchKind::Lpm {
                let length = mask.count_ones() as u32;
                if !(&full ^ &mask).checked_add_is_power(&one) {
                    return Err(invalid(format!("key {}: the mask is not a prefix", key.name)));
                }
                if self.style == Style::Lpm {
                    packed.rank = length as i32;
                }
            }
            packed.value.extend(limbs_of(&value, key.limbs));
            packed.mask.extend(limbs_of(&mask, key.limbs));
        }
        Ok(packed)
    }

    /// Checks an action and its arguments. Returns the words of the arguments.
    pub fn args(&self, call: &ActionCall, as_default: bool) -> Result<Vec<u64>, ControlError> {
        let invalid = |what: String| ControlError::Invalid(format!("{}: {what}", self.name));
        let Some(action) = self.actions.get(call.action as usize) else {
            return Err(invalid(format!("has {} actions, not number {}", self.actions.len(), call.action)));
        };
        if as_default && action.table_only {
            return Err(invalid(format!("action {} is for entries only", action.name)));
        }
        if !as_default && action.default_only {
            return Err(invalid(format!("action {} is for the default entry only", action.name)));
        }
        if call.args.len() != action.params.len() {
            let (needs, has) = (action.params.len(), call.args.len());
            return Err(invalid(format!("action {} takes {needs} arguments, not {has}", action.name)));
        }
        let mut words = Vec::new();
        for (ParamShape { name, width, format }, value) in action.params.iter().zip(&call.args) {
            if value.bits() > u64::from(*width) {
                let value = shown::number(*format, value);
                return Err(invalid(format!(
                    "action {}: {name} = {value} needs more than {width} bits",
                    action.name
                )));
            }
            match (*width as usize).div_ceil(64) {
                0 | 1 => words.push(value.iter_u64_digits().next().unwrap_or(0)),
                limbs => words.extend(limbs_of(value, limbs)),
            }
        }
        Ok(words)
    }

    /// Checks an entry's action. Returns the words of its action's arguments; none if a profile holds the
    /// action.
    pub fn entry_args(&self, entry: &TableEntry) -> Result<Vec<u64>, ControlError> {
        let invalid = |what: &str| Err(ControlError::Invalid(format!("{}: {what}", self.name)));
        match (self.implementation, &entry.indirect) {
            (None, None) => self.args(&entry.call, false),
            (None, Some(_)) => invalid("has no action profile; give the entry an action"),
            // Entries that the program itself lists.
            (Some(_), None) => {
                invalid("has an action profile; give the entry a member, a group or a set of actions")
            }
            (Some(_), Some(Indirect::Set(set))) => {
                let set = &set.actions;
                if set.is_empty() || set.len() > MAX_SET || set.iter().any(|(_, share)| share.weight == 0) {
                    return invalid("a set of actions has 1 to 1024 actions with positive weights");
                }
                set.iter().try_for_each(|(call, _)| self.args(call, false).map(|_| ()))?;
                Ok(Vec::new())
            }
            (Some(_), Some(Indirect::Member(_) | Indirect::Group(_))) => Ok(Vec::new()),
        }
    }

    /// Whether all range fields of a key cover all values.
    pub fn ranges_are_open(&self, key: &PackedKey) -> bool {
        let mut bounds = &key.ranges[..];
        self.keys.iter().filter(|shape| shape.kind == MatchKind::Range).all(|shape| {
            let (here, rest) = bounds.split_at(2 * shape.limbs);
            bounds = rest;
            shape.is_open(here)
        })
    }

    /// Words of the longest argument list.
    pub fn arg_words(&self) -> usize {
        let words = |action: &ActionShape| {
            action.params.iter().map(|param| (param.width as usize).div_ceil(64).max(1)).sum()
        };
        self.actions.iter().map(words).max().unwrap_or(0)
    }

    /// The key in words, for messages.
    pub fn describe(&self, keys: &[Matcher]) -> String {
        let keys = self.keys.iter().zip(keys);
        let keys: Vec<String> =
            keys.map(|(key, matcher)| format!("{}={}", key.name, key.shown(matcher))).collect();
        format!("entry {} of {}", keys.join(" "), self.name)
    }
}

trait PrefixRest {
    fn checked_add_is_power(&self, one: &BigUint) -> bool;
}

impl PrefixRest for BigUint {
    /// Whether the bits below a prefix are `0…01…1`, so that adding one gives a power of two.
    fn checked_add_is_power(&self, one: &BigUint) -> bool {
        (self & (self + one)) == BigUint::ZERO
    }
}
