//! The entries that a program's text gives its tables, in the form in which controllers read them.

use super::Ids;
use crate::Compiled;
use crate::ir::{ActionCall, Entry, Key, MatchKind, Matcher, Table};
use num_bigint::BigUint;
use p4rack_p4rt::p4::config::v1 as pb;
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, FieldMatch, TableAction, TableEntry, action,
    table_action,
};
use p4rack_p4rt::schema::id_of;

impl Compiled {
    /// The entries that the text gives its tables, constant or not, table by table. Of entries with equal keys, the first one
    /// counts.
    pub fn initial_entries(&self) -> Vec<TableEntry> {
        let mut all = Vec::new();
        for (table, id) in self.program.tables.iter().zip(&self.ids.tables) {
            let info = self.p4info.tables.iter().find(|info| id_of(info.preamble.as_ref()) == *id);
            let Some(info) = info else { continue };
            let mut of_table: Vec<TableEntry> = Vec::with_capacity(table.entries.len());
            for entry in &table.entries {
                let message = self.entry(table, info, entry);
                let same = |known: &TableEntry| {
                    known.r#match == message.r#match && known.priority == message.priority
                };
                if !of_table.iter().any(same) {
                    of_table.push(message);
                }
            }
            all.extend(of_table);
        }
        all
    }

    fn entry(&self, table: &Table, info: &pb::Table, entry: &Entry) -> TableEntry {
        // The selector picks a member of a group, not an entry.
        let keys: Vec<&Key> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        let matches = keys.iter().zip(&info.match_fields).zip(&entry.keys);
        let matches = matches.filter_map(|((key, field), matcher)| {
            let kind = field_match(key.kind, key.ty.width(), matcher, BigUint::to_bytes_be)?;
            Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) })
        });
        let call = self.call(table, &entry.call);
        let kind = match table.implementation {
            None => call.map(table_action::Type::Action),
            Some(_) => {
                let one = ActionProfileAction { action: call, weight: 1, watch_kind: None };
                let set = ActionProfileActionSet { action_profile_actions: vec![one], ..Default::default() };
                Some(table_action::Type::ActionProfileActionSet(set))
            }
        };
        let is_lpm = |key: &&&Key| key.kind == MatchKind::Lpm;
        let ranks =
            |key: &&Key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        let has_priority = keys.iter().any(ranks) || keys.iter().filter(is_lpm).count() > 1;
        TableEntry {
            table_id: id_of(info.preamble.as_ref()),
            r#match: matches.collect(),
            priority: if has_priority { entry.priority } else { 0 },
            action: Some(TableAction { r#type: kind }),
            is_const: entry.is_const || table.entries_const,
            ..Default::default()
        }
    }

    fn call(&self, table: &Table, call: &ActionCall) -> Option<Action> {
        let Ids { actions, .. } = &self.ids;
        let action_id = *actions.get(table.actions.get(call.action as usize)?.action.0 as usize)?;
        let info = self.p4info.actions.iter().find(|info| id_of(info.preamble.as_ref()) == action_id)?;
        let params = info.params.iter().zip(&call.args);
        let params =
            params.map(|(param, value)| action::Param { param_id: param.id, value: value.to_bytes_be() });
        Some(Action { action_id, params: params.collect() })
    }
}

/// The message for a field's matcher; `None` if it matches anything. `whole` makes the bytes of a value that is matched as a
/// whole: controllers may have other names for it.
pub fn field_match(
    kind: MatchKind,
    width: u32,
    matcher: &Matcher,
    whole: impl Fn(&BigUint) -> Vec<u8>,
) -> Option<FieldMatchType> {
    let ones = || (BigUint::from(1u8) << width) - 1u8;
    let (value, mask) = match matcher {
        Matcher::Exact(value) => (value.clone(), ones()),
        Matcher::Mask { value, mask } => (value & mask, mask.clone()),
        Matcher::Range { lo, hi } => {
            let all = *lo == BigUint::ZERO && *hi == ones();
            let range = field_match::Range { low: lo.to_bytes_be(), high: hi.to_bytes_be() };
            return (!all).then_some(FieldMatchType::Range(range));
        }
        Matcher::Any | Matcher::ValueSet(_) => return None,
    };
    Some(match kind {
        MatchKind::Exact | MatchKind::Selector => {
            FieldMatchType::Exact(field_match::Exact { value: whole(&value) })
        }
        MatchKind::Optional => FieldMatchType::Optional(field_match::Optional { value: whole(&value) }),
        MatchKind::Range => {
            FieldMatchType::Range(field_match::Range { low: value.to_bytes_be(), high: value.to_bytes_be() })
        }
        _ if mask == BigUint::ZERO => return None,
        MatchKind::Lpm => FieldMatchType::Lpm(field_match::Lpm {
            value: value.to_bytes_be(),
            prefix_len: mask.count_ones() as i32,
        }),
        MatchKind::Ternary => FieldMatchType::Ternary(field_match::Ternary {
            value: value.to_bytes_be(),
            mask: mask.to_bytes_be(),
        }),
    })
}
