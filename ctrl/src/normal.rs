//! The normal form of entities, in which they can be compared, and their keys.

use p4rack_p4rt::EntityKind;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileGroup, Entity, FieldMatch, PacketReplicationEngineEntry, Replica, TableEntry,
    action_profile_action, action_profile_group, replica, table_action,
};
use prost::Message;

/// Identity of an entity on a switch: an encoding of its kind and key in normal form.
pub type Key = Vec<u8>;

/// The key of an entity in normal form.
pub fn key(entity: &Entity) -> Key {
    let Some(EntityKind::TableEntry(entry)) = &entity.entity else {
        return key_entity(entity).encode_to_vec();
    };
    // There may be a million of them, so no copy is made. No encoded entity begins with 0.
    let mut key = Vec::with_capacity(32);
    key.extend([0, entry.is_default_action.into()]);
    key.extend(entry.table_id.to_be_bytes());
    key.extend(entry.priority.to_be_bytes());
    for field in &entry.r#match {
        field.encode_length_delimited(&mut key).expect("a vector has room");
    }
    key
}

/// The entity reduced to kind and key, as reads and deletes need it.
pub fn key_entity(entity: &Entity) -> Entity {
    let mut key = entity.clone();
    match &mut key.entity {
        Some(EntityKind::TableEntry(entry)) => {
            *entry = TableEntry {
                table_id: entry.table_id,
                r#match: std::mem::take(&mut entry.r#match),
                priority: entry.priority,
                is_default_action: entry.is_default_action,
                ..Default::default()
            };
        }
        Some(EntityKind::ActionProfileMember(member)) => member.action = None,
        Some(EntityKind::ActionProfileGroup(group)) => {
            group.members.clear();
            group.max_size = 0;
        }
        Some(EntityKind::MeterEntry(entry)) => (entry.config, entry.counter_data) = (None, None),
        Some(EntityKind::CounterEntry(entry)) => entry.data = None,
        Some(EntityKind::RegisterEntry(entry)) => entry.data = None,
        Some(EntityKind::DirectCounterEntry(entry)) => entry.data = None,
        Some(EntityKind::DirectMeterEntry(entry)) => (entry.config, entry.counter_data) = (None, None),
        Some(EntityKind::ValueSetEntry(set)) => set.members.clear(),
        Some(EntityKind::DigestEntry(digest)) => digest.config = None,
        Some(EntityKind::PacketReplicationEngineEntry(entry)) => match &mut entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => {
                group.replicas.clear();
                group.metadata.clear();
            }
            Some(Type::CloneSessionEntry(session)) => {
                session.replicas.clear();
                (session.class_of_service, session.packet_length_bytes) = (0, 0);
            }
            None => {}
        },
        Some(EntityKind::ExternEntry(_)) | None => {}
    }
    key
}

/// The normal form of an entity: byte strings shortest, lists sorted, don't-care keys omitted, and without
/// fields that the data plane changes itself.
pub fn normal(mut entity: Entity) -> Entity {
    match &mut entity.entity {
        Some(EntityKind::TableEntry(entry)) => normal_entry(entry),
        Some(EntityKind::ActionProfileMember(member)) => {
            if let Some(action) = &mut member.action {
                normal_action(action);
            }
        }
        Some(EntityKind::ActionProfileGroup(group)) => normal_group(group),
        Some(EntityKind::MeterEntry(entry)) => entry.counter_data = None,
        Some(EntityKind::ValueSetEntry(set)) => {
            for member in &mut set.members {
                normal_match(&mut member.r#match);
            }
            set.members.sort_by_cached_key(Message::encode_to_vec);
        }
        Some(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Type::MulticastGroupEntry(group)),
        })) => normal_replicas(&mut group.replicas),
        Some(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(session)),
        })) => normal_replicas(&mut session.replicas),
        _ => {}
    }
    entity
}

fn normal_entry(entry: &mut TableEntry) {
    normal_match(&mut entry.r#match);
    entry.is_const = false;
    (entry.counter_data, entry.meter_counter_data, entry.time_since_last_hit) = (None, None, None);
    match entry.action.as_mut().and_then(|action| action.r#type.as_mut()) {
        Some(table_action::Type::Action(action)) => normal_action(action),
        Some(table_action::Type::ActionProfileActionSet(set)) => {
            use action_profile_action::WatchKind;
            for item in &mut set.action_profile_actions {
                if let Some(action) = &mut item.action {
                    normal_action(action);
                }
                if let Some(WatchKind::WatchPort(port)) = &mut item.watch_kind {
                    shorten(port);
                }
            }
            set.action_profile_actions.sort_by_cached_key(Message::encode_to_vec);
        }
        _ => {}
    }
}

/// Makes a number as short as it can be. Most have no leading zeros; those stay in place, and so do empty values, which
/// are strings.
fn shorten(value: &mut Vec<u8>) {
    if value.len() > 1 && value.first() == Some(&0) {
        *value = bytes::canonical(value);
    }
}

fn normal_match(keys: &mut Vec<FieldMatch>) {
    for key in keys.iter_mut() {
        let values: [Option<&mut Vec<u8>>; 2] = match &mut key.field_match_type {
            Some(FieldMatchType::Exact(exact)) => [Some(&mut exact.value), None],
            Some(FieldMatchType::Lpm(lpm)) => [Some(&mut lpm.value), None],
            Some(FieldMatchType::Ternary(ternary)) => [Some(&mut ternary.value), Some(&mut ternary.mask)],
            Some(FieldMatchType::Range(range)) => [Some(&mut range.low), Some(&mut range.high)],
            Some(FieldMatchType::Optional(optional)) => [Some(&mut optional.value), None],
            Some(FieldMatchType::Other(_)) | None => [None, None],
        };
        for value in values.into_iter().flatten() {
            shorten(value);
        }
    }
    keys.retain(|key| match &key.field_match_type {
        Some(FieldMatchType::Lpm(lpm)) => lpm.prefix_len > 0,
        Some(FieldMatchType::Ternary(ternary)) => !ternary.mask.is_empty() && ternary.mask != [0],
        Some(_) => true,
        None => false,
    });
    keys.sort_by_key(|key| key.field_id);
}

fn normal_action(action: &mut Action) {
    action.params.sort_by_key(|param| param.param_id);
    for param in &mut action.params {
        shorten(&mut param.value);
    }
}

fn normal_group(group: &mut ActionProfileGroup) {
    use action_profile_group::member::WatchKind;
    for member in &mut group.members {
        if let Some(WatchKind::WatchPort(port)) = &mut member.watch_kind {
            shorten(port);
        }
    }
    group.members.sort_by_key(|member| member.member_id);
}

fn normal_replicas(replicas: &mut [Replica]) {
    for replica in replicas.iter_mut() {
        #[allow(deprecated)]
        match &mut replica.port_kind {
            Some(replica::PortKind::EgressPort(port)) => {
                replica.port_kind = Some(replica::PortKind::Port(bytes::from_u128((*port).into())));
            }
            Some(replica::PortKind::Port(port)) => shorten(port),
            None => {}
        }
        // Their order is their precedence.
        for backup in &mut replica.backup_replicas {
            shorten(&mut backup.port);
        }
    }
    let port = |replica: &Replica| match &replica.port_kind {
        Some(replica::PortKind::Port(port)) => bytes::to_u128(port),
        _ => None,
    };
    replicas.sort_by_key(|replica| (port(replica), replica.instance));
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::v1::{BackupReplica, MulticastGroupEntry, field_match};

    fn group(replicas: Vec<Replica>) -> Entity {
        let group = MulticastGroupEntry { multicast_group_id: 1, replicas, ..Default::default() };
        let entry = PacketReplicationEngineEntry { r#type: Some(Type::MulticastGroupEntry(group)) };
        Entity { entity: Some(EntityKind::PacketReplicationEngineEntry(entry)) }
    }

    #[test]
    fn replicas_compare_whatever_way_ports_are_written() {
        #[allow(deprecated)]
        let old = |port| Replica {
            port_kind: Some(replica::PortKind::EgressPort(port)),
            instance: 1,
            ..Default::default()
        };
        let port = |port: &[u8]| Replica {
            port_kind: Some(replica::PortKind::Port(port.into())),
            instance: 1,
            ..Default::default()
        };
        assert_eq!(normal(group(vec![old(2), old(1)])), normal(group(vec![port(&[0, 1]), port(&[2])])));
        assert_ne!(normal(group(vec![old(2)])), normal(group(vec![port(&[3])])));
        let backed = |ports: &[&[u8]]| {
            let backup = |port: &&[u8]| BackupReplica { port: port.to_vec(), instance: 1 };
            group(vec![Replica { backup_replicas: ports.iter().map(backup).collect(), ..port(&[1]) }])
        };
        assert_eq!(normal(backed(&[&[0, 2], &[3]])), normal(backed(&[&[2], &[3]])));
        assert_ne!(normal(backed(&[&[2], &[3]])), normal(backed(&[&[3], &[2]])), "their order counts");
        assert_ne!(normal(backed(&[])), normal(backed(&[&[2]])));
    }

    #[test]
    fn padding_order_and_dont_care_make_no_difference() {
        let exact = |id, value: &[u8]| FieldMatch {
            field_id: id,
            field_match_type: Some(FieldMatchType::Exact(field_match::Exact { value: value.into() })),
        };
        let lpm = |prefix_len| FieldMatch {
            field_id: 3,
            field_match_type: Some(FieldMatchType::Lpm(field_match::Lpm { value: vec![0], prefix_len })),
        };
        let entry = |r#match| {
            let entry = TableEntry { table_id: 1, r#match, ..Default::default() };
            normal(Entity { entity: Some(EntityKind::TableEntry(entry)) })
        };
        assert_ne!(entry(vec![exact(1, &[])]), entry(vec![exact(1, &[0])]), "an empty string is no number");
        let left = entry(vec![exact(2, &[0, 5]), exact(1, &[0, 0]), lpm(0)]);
        assert_eq!(left, entry(vec![exact(1, &[0]), exact(2, &[5])]));
        assert_eq!(key(&left), key(&entry(vec![exact(1, &[0]), exact(2, &[5])])));
        assert_ne!(left, entry(vec![exact(1, &[0]), exact(2, &[5]), lpm(1)]));
    }
}
