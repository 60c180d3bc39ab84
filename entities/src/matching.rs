//! Converts keys and actions from P4Runtime's messages to the switch's types and back.

use super::names::{Kind, Look};
use super::program::{Program, TableRef};
use super::value::number;
use super::{Checked, control, refuse};
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, ActionParam, Key, MatchKind, Matcher, TableId};
use p4rack_p4::p4info::field_match;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{MatchField, action, action_ref::Scope};
use p4rack_p4rt::p4::v1::{Action, FieldMatch, action::Param, field_match::FieldMatchType};
use p4rack_p4rt::schema::name_of;
use p4rack_p4rt::values::show_match;
use p4rack_switch::{ControlError, Switch};
use std::fmt::{Arguments, Display};
use std::sync::Arc;

/// A number with `width` bits set.
fn ones(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

impl<'a> TableRef<'a> {
    /// Control-plane name.
    pub fn name(&self) -> &'a str {
        name_of(self.info.preamble.as_ref())
    }

    /// Whether entries need a priority.
    pub fn needs_priority(&self) -> bool {
        let needs =
            |key: &Key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        self.ir.keys.iter().any(needs)
    }

    fn keys(&self) -> impl Iterator<Item = (&'a Key, &'a MatchField)> {
        let keys = self.ir.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        keys.zip(&self.info.match_fields)
    }

    /// Matchers for the keys of an entry. Checks all rules of the match format. Errors with NOT_FOUND: a value of a
    /// translated type is not in use.
    pub fn matchers(&self, matches: &[FieldMatch]) -> Checked<Vec<Matcher>> {
        self.matchers_with(matches, Look::Find)
    }

    /// Like [`TableRef::matchers`]; `look` decides about a value that is not in use.
    pub(crate) fn matchers_with(&self, matches: &[FieldMatch], mut look: Look<'_>) -> Checked<Vec<Matcher>> {
        check_fields(format_args!("table {}", self.name()), &self.info.match_fields, matches)?;
        self.keys()
            .map(|(key, field)| {
                let given = matches.iter().find(|given| given.field_id == field.id);
                let what = format_args!("table {} key `{}`", self.name(), field.name);
                let names = self.program.names.of(key.type_name.as_deref());
                let translation = names.map(|names| (names, &mut look));
                matcher(what, (key.kind, key.ty.width()), given, translation)
            })
            .collect()
    }

    /// Match fields for an entry's message, without "don't care" ones.
    pub fn field_matches(&self, matchers: &[Matcher]) -> Vec<FieldMatch> {
        self.keys()
            .zip(matchers)
            .filter_map(|((key, field), matcher)| {
                let names = self.program.names.of(key.type_name.as_deref());
                let whole =
                    |value: &BigUint| names.map_or_else(|| value.to_bytes_be(), |names| names.shown(value));
                let field_match_type = Some(field_match(key.kind, key.ty.width(), matcher, whole)?);
                Some(FieldMatch { field_id: field.id, field_match_type })
            })
            .collect()
    }

    /// The key of an entry, in controllers' names of its values.
    fn described(&self, matchers: &[Matcher]) -> String {
        let given = self.field_matches(matchers);
        let shown = |field: &MatchField| {
            let key = given.iter().find(|key| key.field_id == field.id);
            let key = key.and_then(|key| key.field_match_type.as_ref());
            format!("{}={}", field.name, show_match(key, field))
        };
        let keys: Vec<String> = self.info.match_fields.iter().map(shown).collect();
        format!("entry {} of table {}", keys.join(" "), self.name())
    }

    /// The action of an entry or default entry.
    pub(crate) fn call(&self, action: &Action, is_default: bool, mut look: Look<'_>) -> Checked<ActionCall> {
        let name = self.name();
        let program = self.program;
        let Some(position) =
            self.ir.actions.iter().position(|offered| program.action_id(offered.action) == action.action_id)
        else {
            let message = format!("table {name} does not offer action {0} (0x{0:08x})", action.action_id);
            return refuse(Code::InvalidArgument, message);
        };
        let reference = self.info.action_refs.iter().find(|reference| reference.id == action.action_id);
        let scope = reference.map_or(Scope::TableAndDefault, |reference| reference.scope());
        let ir = &program.ir.actions[self.ir.actions[position].action.0 as usize];
        let action_name = &ir.named.name;
        if is_default && scope == Scope::TableOnly {
            let message =
                format!("table {name}: action {action_name} can't be the default action (@tableonly)");
            return refuse(Code::PermissionDenied, message);
        }
        if !is_default && scope == Scope::DefaultOnly {
            let message =
                format!("table {name}: action {action_name} can only be the default (@defaultonly)");
            return refuse(Code::PermissionDenied, message);
        }
        let info = program
            .info
            .actions
            .iter()
            .find(|info| info.preamble.as_ref().is_some_and(|preamble| preamble.id == action.action_id));
        let params = info.map_or(&[][..], |info| &info.params);
        if let Some(extra) =
            action.params.iter().find(|given| !params.iter().any(|param| param.id == given.param_id))
        {
            let message = format!("action {action_name} has no parameter with id {}", extra.param_id);
            return refuse(Code::InvalidArgument, message);
        }
        let args = params.iter().zip(&ir.params).map(|(param, ir)| {
            let mut given = action.params.iter().filter(|given| given.param_id == param.id);
            let what = format_args!("action {action_name} parameter `{}`", param.name);
            match (given.next(), given.next()) {
                (Some(given), None) => match program.names.of(ir.type_name.as_deref()) {
                    Some(names) => names.number(what, &given.value, &mut look),
                    None => number(what, &given.value, ir.ty.width()),
                },
                (None, _) => refuse(Code::InvalidArgument, format!("{what} is missing")),
                _ => refuse(Code::InvalidArgument, format!("{what} is given twice")),
            }
        });
        let args = args.collect::<Checked<Vec<_>>>()?;
        self.restrict_action(self.ir.actions[position].action, &args)?;
        Ok(ActionCall { action: position as u32, args })
    }

    /// The message for an action.
    pub fn action(&self, call: &ActionCall) -> Option<Action> {
        let action = self.ir.actions.get(call.action as usize)?.action;
        let action_id = self.program.action_id(action);
        let info = self
            .program
            .info
            .actions
            .iter()
            .find(|info| info.preamble.as_ref().is_some_and(|preamble| preamble.id == action_id))?;
        let own = &self.program.ir.actions[action.0 as usize].params;
        let param = |((param, own), value): ((&action::Param, &ActionParam), &BigUint)| {
            let value = match self.program.names.of(own.type_name.as_deref()) {
                Some(names) => names.shown(value),
                None => value.to_bytes_be(),
            };
            Param { param_id: param.id, value }
        };
        let params = info.params.iter().zip(own).zip(&call.args).map(param).collect();
        Some(Action { action_id, params })
    }
}

impl Program {
    /// Converts a result that is about an entry, like [`control`]. The switch does not know controllers' names of translated
    /// values, so the error gets them here.
    pub(crate) fn of_entry<T>(
        &self,
        switch: &Switch,
        (table, keys): (TableId, &[Matcher]),
        result: Result<T, ControlError>,
    ) -> Checked<T> {
        control(result.map_err(|error| {
            let of_switch = switch.describe_entry(table, keys).ok();
            let named = || {
                let found = self.table(self.table_id(table)?).ok()?;
                let is_translated = |key: &Key| self.names.of(key.type_name.as_deref()).is_some();
                found.ir.keys.iter().any(is_translated).then(|| found.described(keys))
            };
            match error {
                ControlError::NotFound(what) if Some(&what) == of_switch.as_ref() => {
                    ControlError::NotFound(named().unwrap_or(what))
                }
                ControlError::AlreadyExists(what) => ControlError::AlreadyExists(named().unwrap_or(what)),
                ControlError::Constant(what) if Some(&what) == of_switch.as_ref() => {
                    ControlError::Constant(named().unwrap_or(what))
                }
                error => error,
            }
        }))
    }
}

/// Rejects unknown fields and fields given twice.
pub fn check_fields(object: impl Display, fields: &[MatchField], matches: &[FieldMatch]) -> Checked<()> {
    for (position, given) in matches.iter().enumerate() {
        if !fields.iter().any(|field| field.id == given.field_id) {
            let message = format!("{object} has no key with id {}", given.field_id);
            return refuse(Code::InvalidArgument, message);
        }
        if matches[..position].iter().any(|earlier| earlier.field_id == given.field_id) {
            let message = format!("{object}: key {} is given twice", given.field_id);
            return refuse(Code::InvalidArgument, message);
        }
    }
    Ok(())
}

/// Matcher of a field with this match kind and width. A missing one matches anything, unless the match kind is exact.
pub(crate) fn matcher(
    what: Arguments<'_>,
    (kind, width): (MatchKind, u32),
    given: Option<&FieldMatch>,
    translation: Option<(&Arc<Kind>, &mut Look<'_>)>,
) -> Checked<Matcher> {
    let Some(given) = given else {
        return match kind {
            MatchKind::Exact => {
                refuse(Code::InvalidArgument, format!("{what} is matched exactly and must be given"))
            }
            _ => Ok(Matcher::Any),
        };
    };
    let given = given.field_match_type.as_ref();
    let invalid = |message: &str| UpdateError::new(Code::InvalidArgument, format!("{what}: {message}"));
    if let Some((names, look)) = translation {
        match (kind, given) {
            (MatchKind::Exact, Some(FieldMatchType::Exact(given))) => {
                return Ok(Matcher::Exact(names.number(what, &given.value, look)?));
            }
            (MatchKind::Optional, Some(FieldMatchType::Optional(given))) => {
                return Ok(Matcher::Exact(names.number(what, &given.value, look)?));
            }
            (MatchKind::Lpm | MatchKind::Ternary | MatchKind::Range, Some(_)) if names.is_text() => {
                let message = format!(
                    "{what}: `{names}` is translated to strings, so entries can leave the key out, but not match a part"
                );
                return refuse(Code::Unimplemented, message);
            }
            // As in the data plane.
            _ => {}
        }
    }
    match (kind, given) {
        (MatchKind::Exact, Some(FieldMatchType::Exact(given))) => {
            Ok(Matcher::Exact(number(what, &given.value, width)?))
        }
        (MatchKind::Optional, Some(FieldMatchType::Optional(given))) => {
            Ok(Matcher::Exact(number(what, &given.value, width)?))
        }
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(given))) => {
            let value = number(what, &given.value, width)?;
            let length = u32::try_from(given.prefix_len).ok().filter(|length| *length <= width);
            let length = length.ok_or_else(|| {
                invalid(&format!("a prefix of {} bits, but the key has {width}", given.prefix_len))
            })?;
            if length == 0 {
                return Err(invalid("a prefix of 0 bits is \"don't care\"; leave the key out"));
            }
            let mask = ones(length) << (width - length);
            if &value & &mask != value {
                return Err(invalid("bits beyond the prefix must be 0"));
            }
            Ok(Matcher::Mask { value, mask })
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(given))) => {
            let value = number(what, &given.value, width)?;
            let mask = number(format_args!("{what} mask"), &given.mask, width)?;
            if mask == BigUint::ZERO {
                return Err(invalid("a mask of 0 is \"don't care\"; leave the key out"));
            }
            if &value & &mask != value {
                return Err(invalid("bits where the mask is 0 must be 0"));
            }
            Ok(Matcher::Mask { value, mask })
        }
        (MatchKind::Range, Some(FieldMatchType::Range(given))) => {
            let lo = number(format_args!("{what} low"), &given.low, width)?;
            let hi = number(format_args!("{what} high"), &given.high, width)?;
            if lo > hi {
                return Err(invalid("the range ends before it begins"));
            }
            if lo == BigUint::ZERO && hi == ones(width) {
                return Err(invalid("the whole range is \"don't care\"; leave the key out"));
            }
            Ok(Matcher::Range { lo, hi })
        }
        (_, None) => Err(invalid("the kind of match is not set")),
        (kind, Some(_)) => Err(invalid(&format!("is matched {kind:?}, another kind of match was given"))),
    }
}
