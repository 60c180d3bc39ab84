//! Reads the contents of a switch, as far as a controller is responsible for them.

use crate::error::CtrlError;
use crate::reach::Reach;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1::Table;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, DigestEntry, Entity, MeterConfig, MeterEntry,
    MulticastGroupEntry, PacketReplicationEngineEntry, TableEntry, ValueSetEntry, table_action,
};
use p4rack_p4rt::schema::{Schema, id_of};
use std::collections::HashSet;

/// Contents of a switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchContents {
    /// Everything that can be read.
    pub entities: Vec<Entity>,
    /// Kinds that this switch can't read: their desired entities are assumed present.
    pub unreadable: Vec<&'static str>,
}

/// Reads everything that reconciliation compares. Direct meters are read of tables for which `desired` has some.
pub async fn read(
    client: &mut impl Reach,
    schema: &Schema,
    desired: &[Entity],
) -> Result<SwitchContents, CtrlError> {
    let metered = desired.iter().filter_map(|entity| match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if entry.meter_config.is_some() => Some(entry.table_id),
        _ => None,
    });
    let mut found = read_metered(client, schema, &metered.collect()).await?;
    let wanted: HashSet<u32> = desired.iter().filter_map(default_of).map(|entry| entry.table_id).collect();
    found.entities.retain(|entity| match is_initial_default(schema, entity) {
        Some(is_initial) => !is_initial,
        // One that may be the program's stays as it is, unless it is asked for.
        None => default_of(entity).is_some_and(|entry| wanted.contains(&entry.table_id)),
    });
    Ok(found)
}

/// The same with all direct meters, and with default entries of which it is not known whether they are the program's own.
pub async fn read_all(client: &mut impl Reach, schema: &Schema) -> Result<SwitchContents, CtrlError> {
    let metered = schema.info().direct_meters.iter().map(|meter| meter.direct_table_id);
    let mut found = read_metered(client, schema, &metered.collect()).await?;
    found.entities.retain(|entity| is_initial_default(schema, entity) != Some(true));
    Ok(found)
}

async fn read_metered(
    client: &mut impl Reach,
    schema: &Schema,
    metered: &HashSet<u32>,
) -> Result<SwitchContents, CtrlError> {
    let mut found = SwitchContents::default();
    for (kind, requests) in requests(schema, metered) {
        if requests.is_empty() {
            continue;
        }
        match client.read(requests).await {
            Ok(entities) => found.entities.extend(entities),
            Err(error) if kind != "table entries" && error.is_unimplemented() => {
                found.unreadable.push(kind);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// EntityKind of an entity, as [`SwitchContents::unreadable`] names it.
pub fn kind_of(entity: &Entity) -> &'static str {
    match &entity.entity {
        Some(EntityKind::TableEntry(_)) => "table entries",
        Some(EntityKind::ActionProfileMember(_)) => "action profile members",
        Some(EntityKind::ActionProfileGroup(_)) => "action profile groups",
        Some(EntityKind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
            Some(Type::CloneSessionEntry(_)) => "clone sessions",
            _ => "multicast groups",
        },
        Some(EntityKind::MeterEntry(_)) => "meters",
        Some(EntityKind::ValueSetEntry(_)) => "value sets",
        Some(EntityKind::DigestEntry(_)) => "digests",
        _ => "others",
    }
}

fn requests(schema: &Schema, metered: &HashSet<u32>) -> Vec<(&'static str, Vec<Entity>)> {
    let info = schema.info();
    let mut entries = Vec::new();
    for table in info.tables.iter().filter(|table| !table.is_const_table) {
        let table_id = id_of(table.preamble.as_ref());
        let meter_config = metered.contains(&table_id).then(MeterConfig::default);
        entries.push(EntityKind::TableEntry(TableEntry { table_id, meter_config, ..Default::default() }));
    }
    for table in info.tables.iter().filter(|table| has_default(table)) {
        let table_id = id_of(table.preamble.as_ref());
        entries.push(EntityKind::TableEntry(TableEntry {
            table_id,
            is_default_action: true,
            ..Default::default()
        }));
    }
    let replication = |r#type| {
        vec![EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(r#type) })]
    };
    let profile = |has: bool, kind: EntityKind| if has { vec![kind] } else { Vec::new() };
    let has_profiles = !info.action_profiles.is_empty();
    let has_selectors = info.action_profiles.iter().any(|profile| profile.with_selector);
    let kinds = [
        ("table entries", entries),
        (
            "action profile members",
            profile(has_profiles, EntityKind::ActionProfileMember(ActionProfileMember::default())),
        ),
        (
            "action profile groups",
            profile(has_selectors, EntityKind::ActionProfileGroup(ActionProfileGroup::default())),
        ),
        ("multicast groups", replication(Type::MulticastGroupEntry(MulticastGroupEntry::default()))),
        ("clone sessions", replication(Type::CloneSessionEntry(CloneSessionEntry::default()))),
        (
            "meters",
            info.meters
                .iter()
                .map(|meter| id_of(meter.preamble.as_ref()))
                .map(|meter_id| EntityKind::MeterEntry(MeterEntry { meter_id, ..Default::default() }))
                .collect(),
        ),
        (
            "value sets",
            info.value_sets
                .iter()
                .map(|set| id_of(set.preamble.as_ref()))
                .map(|value_set_id| {
                    EntityKind::ValueSetEntry(ValueSetEntry { value_set_id, ..Default::default() })
                })
                .collect(),
        ),
        (
            "digests",
            info.digests
                .iter()
                .map(|digest| id_of(digest.preamble.as_ref()))
                .map(|digest_id| EntityKind::DigestEntry(DigestEntry { digest_id, ..Default::default() }))
                .collect(),
        ),
    ];
    let wrap = |kinds: Vec<EntityKind>| kinds.into_iter().map(|kind| Entity { entity: Some(kind) }).collect();
    kinds.into_iter().map(|(name, kinds)| (name, wrap(kinds))).collect()
}

/// Whether a controller may set the table's default entry.
fn has_default(table: &Table) -> bool {
    table.const_default_action_id == 0 && !table.is_const_table
}

fn default_of(entity: &Entity) -> Option<&TableEntry> {
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if entry.is_default_action => Some(entry),
        _ => None,
    }
}

/// Whether this is the program's own default entry; `None` if the P4Info names no initial action, so that it can't be known.
pub(crate) fn is_initial_default(schema: &Schema, entity: &Entity) -> Option<bool> {
    let Some(entry) = default_of(entity) else { return Some(false) };
    let Some(action) = entry.action.as_ref().and_then(|action| action.r#type.as_ref()) else {
        return Some(true);
    };
    let initial = schema.table_by_id(entry.table_id).ok()?.initial_default_action.as_ref()?;
    let table_action::Type::Action(action) = action else { return Some(false) };
    let value = |id: u32| {
        let given = initial.arguments.iter().find(|argument| argument.param_id == id);
        given.map(|argument| bytes::canonical(&argument.value))
    };
    let mut params = action.params.iter();
    let same = params.all(|param| value(param.param_id).is_none_or(|v| v == bytes::canonical(&param.value)));
    Some(action.action_id == initial.action_id && same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::config::v1::{P4Info, Preamble, TableActionCall};
    use p4rack_p4rt::p4::v1::{Action, TableAction};

    #[test]
    fn a_default_entry_is_the_programs_only_where_the_p4info_says_so() {
        let schema = |initial: Option<u32>| {
            let table = Table {
                preamble: Some(Preamble { id: 1, name: "t".into(), alias: "t".into(), ..Default::default() }),
                initial_default_action: initial
                    .map(|action_id| TableActionCall { action_id, ..Default::default() }),
                ..Default::default()
            };
            Schema::new(P4Info { tables: vec![table], ..Default::default() }).unwrap()
        };
        let entity = |action: Option<u32>| {
            let call = |action_id| table_action::Type::Action(Action { action_id, ..Default::default() });
            let action = action.map(|id| TableAction { r#type: Some(call(id)) });
            let entry = TableEntry { table_id: 1, is_default_action: true, action, ..Default::default() };
            Entity { entity: Some(EntityKind::TableEntry(entry)) }
        };
        for (initial, action, expected) in [
            (Some(7), Some(7), Some(true)),
            (Some(7), Some(8), Some(false)),
            (None, Some(8), None),
            (Some(7), None, Some(true)),
            (None, None, Some(true)),
        ] {
            let found = is_initial_default(&schema(initial), &entity(action));
            assert_eq!(found, expected, "initially {initial:?}, now {action:?}");
        }
    }
}
