//! What the control plane passes in and gets back.

use crate::replicas::Replicas;
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, Matcher};
use p4rack_wire::Nanos;

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One matcher a key: exact as `Exact`; LPM and ternary as `Mask`; optional as `Exact`; range as `Range`; don't care as `Any`.
    pub keys: Vec<Matcher>,
    /// Larger wins. Positive where the table has a ternary, range or optional key, else 0.
    pub priority: i32,
    /// What to do; of no account where `indirect` is given.
    pub call: ActionCall,
    /// What to do in a table with an action profile.
    pub indirect: Option<Indirect>,
    /// Comes from `const entries`: can be neither modified nor deleted.
    pub is_const: bool,
    /// The controller's own, kept and returned.
    pub metadata: Vec<u8>,
    /// Idle timeout in nanoseconds; 0 is none.
    pub idle_timeout_ns: u64,
}

impl TableEntry {
    /// An entry without priority and metadata.
    pub fn new(keys: Vec<Matcher>, call: ActionCall) -> TableEntry {
        TableEntry {
            keys,
            priority: 0,
            call,
            indirect: None,
            is_const: false,
            metadata: Vec::new(),
            idle_timeout_ns: 0,
        }
    }

    /// An entry of a table with an action profile.
    pub fn indirect(keys: Vec<Matcher>, indirect: Indirect) -> TableEntry {
        let nothing = ActionCall { action: 0, args: Vec::new() };
        TableEntry { indirect: Some(indirect), ..TableEntry::new(keys, nothing) }
    }
}

/// What an entry of a table with an action profile refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indirect {
    /// A member of the profile.
    Member(u32),
    /// A group of the selector.
    Group(u32),
    /// Actions and weights of the entry's own, of which the selector picks one.
    Set(ActionSet),
}

/// A one-shot group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSet {
    /// The actions and their shares.
    pub actions: Vec<(ActionCall, Share)>,
    /// How one is picked.
    pub pick: Pick,
    /// What its size is; of no account for packets, kept and returned.
    pub size: SizeOf,
}

impl From<Vec<(ActionCall, Share)>> for ActionSet {
    fn from(actions: Vec<(ActionCall, Share)>) -> ActionSet {
        ActionSet { actions, ..ActionSet::default() }
    }
}

/// How an action of a one-shot group is picked for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// As the selector says.
    #[default]
    Selector,
    /// By the selector's hash; CRC-32 where that is random.
    Hash,
    /// At random.
    Random,
}

/// What counts as the size of a one-shot group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeOf {
    /// What the selector says.
    #[default]
    Selector,
    /// The sum of its weights.
    Weights,
    /// The number of its actions.
    Members,
}

/// What share of the packets a member of a group gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// In relation to the others'.
    pub weight: u32,
    /// None while this port is down.
    pub watch: Option<u16>,
}

impl From<u32> for Share {
    fn from(weight: u32) -> Share {
        Share { weight, watch: None }
    }
}

impl std::fmt::Display for Indirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Indirect::Member(member) => write!(f, "member {member}"),
            Indirect::Group(group) => write!(f, "group {group}"),
            Indirect::Set(set) => write!(f, "set of {} actions", set.actions.len()),
        }
    }
}

/// What happens on a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultEntry {
    /// The action; `None` is a table without any (nothing happens).
    pub call: Option<ActionCall>,
    /// Whether it is still the program's own.
    pub is_initial: bool,
}

/// Names an entry whose direct counter or meter is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRef<'a> {
    /// The default entry.
    Default,
    /// The entry with these keys and this priority.
    Keys(&'a [Matcher], i32),
}

/// A counter's cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets counted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A two-rate three-colour meter (RFC 2698), in bytes or packets as the program says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed rate a second.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate a second.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
}

/// Where clones go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneSession {
    /// Copies.
    pub replicas: Replicas,
    /// Their priority in the traffic manager, 0 to 7.
    pub class_of_service: u8,
    /// Cut to so many bytes; 0 is not at all.
    pub packet_length_bytes: u16,
}

/// A digest that the program sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// Index into [`p4rack_p4::ir::Program::digests`].
    pub digest: u32,
    /// One value a field.
    pub values: Vec<BigUint>,
    /// When.
    pub time: Nanos,
}
