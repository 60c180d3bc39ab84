//! Random valid table entries, and the groups and sessions that a program may refer to.

use super::{PORTS, Values, max};
use num_bigint::BigUint;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::table_update;
use p4rack_p4rt::p4::config::v1::action_ref::Scope;
use p4rack_p4rt::p4::config::v1::match_field::MatchType;
use p4rack_p4rt::p4::config::v1::{ActionRef, MatchField, P4Info, Table};
use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileMember, CloneSessionEntry, Entity, FieldMatch, MulticastGroupEntry,
    PacketReplicationEngineEntry, Replica, TableAction, TableEntry, Update, action, replica, table_action,
    update,
};
use p4rack_p4rt::schema::{id_of, match_type};
use std::collections::BTreeSet;

/// Maximum entries per table.
const ENTRIES: u64 = 6;
/// Multicast groups, numbered from 1; the same number of clone sessions.
const GROUPS: u32 = 8;

pub(super) fn updates(info: &P4Info, values: &mut Values) -> Vec<Update> {
    let mut updates = replication(values);
    let mut members = 0;
    for table in info.tables.iter().filter(|table| !table.is_const_table && is_plain(info, table)) {
        fill(info, table, values, &mut members, &mut updates);
    }
    updates
}

/// Whether all keys and parameters of a table are bit strings.
fn is_plain(info: &P4Info, table: &Table) -> bool {
    let params = |action: &ActionRef| {
        let action = info.actions.iter().find(|other| id_of(other.preamble.as_ref()) == action.id);
        action.is_some_and(|action| action.params.iter().all(|param| param.bitwidth > 0))
    };
    table.match_fields.iter().all(|field| field.bitwidth > 0) && table.action_refs.iter().all(params)
}

fn fill(info: &P4Info, table: &Table, values: &mut Values, members: &mut u32, updates: &mut Vec<Update>) {
    let table_id = id_of(table.preamble.as_ref());
    let refs = |unwanted: Scope| -> Vec<u32> {
        let wanted = table.action_refs.iter().filter(|action| action.scope() != unwanted);
        wanted.map(|action| action.id).collect()
    };
    let actions = refs(Scope::DefaultOnly);
    let needs_priority = table.match_fields.iter().any(|field| {
        matches!(match_type(field), MatchType::Ternary | MatchType::Range | MatchType::Optional)
    });
    let mut seen = BTreeSet::new();
    let most = (table.size.max(0) as u64).min(ENTRIES);
    let count =
        if table.match_fields.is_empty() || actions.is_empty() { 0 } else { values.rng.below(most + 1) };
    for number in 0..count {
        let fields: Vec<FieldMatch> =
            table.match_fields.iter().filter_map(|field| field_match(field, values)).collect();
        if !seen.insert(format!("{fields:?}")) {
            continue;
        }
        let action = call(info, actions[values.rng.below(actions.len() as u64) as usize], values);
        let action = match table.implementation_id {
            0 => table_action::Type::Action(action),
            profile => {
                *members += 1;
                let member = ActionProfileMember {
                    action_profile_id: profile,
                    member_id: *members,
                    action: Some(action),
                };
                updates.push(insert(EntityKind::ActionProfileMember(member)));
                table_action::Type::ActionProfileMemberId(*members)
            }
        };
        let entry = TableEntry {
            table_id,
            r#match: fields,
            action: Some(TableAction { r#type: Some(action) }),
            priority: if needs_priority { number as i32 + 1 } else { 0 },
            ..Default::default()
        };
        updates.push(table_update(update::Type::Insert, entry));
    }
    let actions = refs(Scope::TableOnly);
    let may_change = table.const_default_action_id == 0 && table.implementation_id == 0;
    if may_change && !actions.is_empty() && values.rng.one_in(2) {
        let action = call(info, actions[values.rng.below(actions.len() as u64) as usize], values);
        let entry = TableEntry {
            table_id,
            action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
            is_default_action: true,
            ..Default::default()
        };
        updates.push(table_update(update::Type::Modify, entry));
    }
}

fn insert(entity: EntityKind) -> Update {
    Update { r#type: update::Type::Insert as i32, entity: Some(Entity { entity: Some(entity) }) }
}

fn call(info: &P4Info, id: u32, values: &mut Values) -> Action {
    let action = info.actions.iter().find(|action| id_of(action.preamble.as_ref()) == id);
    let params = action.map_or(&[][..], |action| &action.params[..]);
    let param = |param: &p4rack_p4rt::p4::config::v1::action::Param| action::Param {
        param_id: param.id,
        value: bytes(&values.value(param.bitwidth as u32)),
    };
    Action { action_id: id, params: params.iter().map(param).collect() }
}

/// The shortest byte string, as P4Runtime requires.
fn bytes(value: &BigUint) -> Vec<u8> {
    value.to_bytes_be()
}

/// A field match; `None` matches any value.
fn field_match(field: &MatchField, values: &mut Values) -> Option<FieldMatch> {
    let width = field.bitwidth as u32;
    let value = values.value(width);
    let kind = match match_type(field) {
        MatchType::Exact => FieldMatchType::Exact(Exact { value: bytes(&value) }),
        MatchType::Lpm => {
            let prefix = values.rng.below(u64::from(width) + 1) as u32;
            if prefix == 0 {
                return None;
            }
            let mask = max(prefix) << (width - prefix);
            FieldMatchType::Lpm(Lpm { value: bytes(&(value & mask)), prefix_len: prefix as i32 })
        }
        MatchType::Ternary => {
            let mask = if values.rng.one_in(2) { max(width) } else { values.rng.bits(width) };
            if mask == BigUint::ZERO {
                return None;
            }
            FieldMatchType::Ternary(Ternary { value: bytes(&(value & &mask)), mask: bytes(&mask) })
        }
        MatchType::Range => {
            let other = values.value(width);
            let (low, high) = if value <= other { (value, other) } else { (other, value) };
            if low == BigUint::ZERO && high == max(width) {
                return None;
            }
            FieldMatchType::Range(Range { low: bytes(&low), high: bytes(&high) })
        }
        MatchType::Optional if values.rng.one_in(3) => return None,
        MatchType::Optional => FieldMatchType::Optional(Optional { value: bytes(&value) }),
        MatchType::Unspecified => return None,
    };
    Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) })
}

/// Groups and sessions with one or two copies.
#[expect(deprecated, reason = "BMv2 knows only this way to name a port")]
fn replication(values: &mut Values) -> Vec<Update> {
    let mut updates = Vec::new();
    for number in 1..=GROUPS {
        let copies = 1 + values.rng.below(2) as u32;
        let replicas = |values: &mut Values| -> Vec<Replica> {
            let first = values.rng.below(PORTS);
            let copy = |copy| Replica {
                instance: copy + 1,
                port_kind: Some(replica::PortKind::EgressPort((first as u32 + copy) % PORTS as u32)),
                ..Default::default()
            };
            (0..copies).map(copy).collect()
        };
        let group = MulticastGroupEntry {
            multicast_group_id: number,
            replicas: replicas(values),
            ..Default::default()
        };
        let session =
            CloneSessionEntry { session_id: number, replicas: replicas(values), ..Default::default() };
        for kind in [Type::MulticastGroupEntry(group), Type::CloneSessionEntry(session)] {
            let entry = PacketReplicationEngineEntry { r#type: Some(kind) };
            updates.push(insert(EntityKind::PacketReplicationEngineEntry(entry)));
        }
    }
    updates
}
