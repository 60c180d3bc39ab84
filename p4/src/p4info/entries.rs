//! The entries that a program's text gives its tables, in the form in which controllers read them.

use super::names::Names;
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
use std::collections::{HashMap, HashSet};

impl Compiled {
    /// The entries that the text gives its tables, constant or not, table by table. Of entries with equal keys, the first one
    /// counts.
    pub fn initial_entries(&self) -> Vec<TableEntry> {
        let tables = self.p4info.tables.iter().map(|info| (id_of(info.preamble.as_ref()), info));
        let tables: HashMap<u32, &pb::Table> = tables.collect();
        let actions = self.p4info.actions.iter().map(|info| (id_of(info.preamble.as_ref()), info));
        let view = View { compiled: self, actions: actions.collect(), names: Names::new(&self.program) };
        let mut all = Vec::new();
        for (table, id) in self.program.tables.iter().zip(&self.ids.tables) {
            let Some(info) = tables.get(id) else { continue };
            let entries = table.entries.iter().map(|entry| view.entry(table, info, entry));
            let mut known = HashSet::with_capacity(table.entries.len());
            all.extend(entries.filter(|entry| known.insert((entry.r#match.clone(), entry.priority))));
        }
        all
    }
}

/// A program, with what each of its entries is looked up in.
struct View<'c> {
    compiled: &'c Compiled,
    actions: HashMap<u32, &'c pb::Action>,
    names: Names<'c>,
}

impl View<'_> {
    fn entry(&self, table: &Table, info: &pb::Table, entry: &Entry) -> TableEntry {
        // The selector picks a member of a group, not an entry.
        let keys: Vec<&Key> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        let matches = keys.iter().zip(&info.match_fields).zip(&entry.keys);
        let matches = matches.filter_map(|((key, field), matcher)| {
            let whole = |value: &BigUint| self.names.shown(key.type_name.as_deref(), value);
            let kind = field_match(key.kind, key.ty.width(), matcher, whole)?;
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
        let position = table.actions.get(call.action as usize)?.action.0 as usize;
        let action_id = *self.compiled.ids.actions.get(position)?;
        let params = &self.compiled.program.actions.get(position)?.params;
        let params = self.actions.get(&action_id)?.params.iter().zip(params).zip(&call.args);
        let params = params.map(|((info, param), value)| action::Param {
            param_id: info.id,
            value: self.names.shown(param.type_name.as_deref(), value),
        });
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
