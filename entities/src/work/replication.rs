//! The packet replication engine: multicast groups and clone sessions.
//!
//! Entities are stored as the controller wrote them, so that they read back the same.

use super::{Answer, Change, Query, Snapshot};
use crate::ledger::Uses;
use crate::program::Program;
use crate::{Checked, control, refuse};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, Entity, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, replica, update,
};
use p4rack_switch::{self as switch, CloneSession, Replicas};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The copies of a group or session, each with its backups in order. Port and instance must be unique.
fn replicas(program: &Program, given: &[Replica]) -> Checked<Replicas> {
    let mut seen = HashSet::new();
    let mut at = |port: u16, instance: u32| {
        let Ok(instance) = u16::try_from(instance) else {
            let message = format!("replica instance {instance} has more than 16 bits");
            return refuse(Code::InvalidArgument, message);
        };
        let replica = switch::Replica { port, instance };
        if !seen.insert(replica) {
            let message = format!("two replicas with port {port} and instance {instance}");
            return refuse(Code::InvalidArgument, message);
        }
        Ok(replica)
    };
    let mut choices = Vec::with_capacity(given.len());
    for given in given {
        #[allow(deprecated)]
        let port = match &given.port_kind {
            Some(replica::PortKind::Port(port)) => program.names.port("replica port", port)?,
            Some(replica::PortKind::EgressPort(port)) => u16::try_from(*port).or_else(|_| {
                refuse(Code::InvalidArgument, format!("replica port {port} has more than 9 bits"))
            })?,
            None => return refuse(Code::InvalidArgument, "a replica's port is not set"),
        };
        let mut choice = vec![at(port, given.instance)?];
        for backup in &given.backup_replicas {
            let backup = at(program.names.port("replica port", &backup.port)?, backup.instance)?;
            if backup.port == port {
                let message = format!("a replica on port {port} has a backup on the same port");
                return refuse(Code::InvalidArgument, message);
            }
            choice.push(backup);
        }
        choices.push(choice);
    }
    Ok(Replicas::new(choices))
}

/// Checks the type of an update against what exists.
fn expect(kind: update::Type, exists: bool, what: &str, id: u32) -> Checked<()> {
    match (kind, exists) {
        (update::Type::Insert, true) => refuse(Code::AlreadyExists, format!("{what} {id} already exists")),
        (update::Type::Modify | update::Type::Delete, false) => {
            refuse(Code::NotFound, format!("there is no {what} {id}"))
        }
        _ => Ok(()),
    }
}

/// Refuses objects that another interface of the switch has made.
fn check_own(kind: update::Type, is_foreign: bool, what: &str, id: u32) -> Checked<()> {
    match kind == update::Type::Insert && is_foreign {
        true => refuse(
            Code::AlreadyExists,
            format!("{what} {id} was made over another interface; delete it there first"),
        ),
        false => Ok(()),
    }
}

/// Checks an update of the replication engine.
pub fn write(
    program: &Arc<Program>,
    kind: update::Type,
    entry: &PacketReplicationEngineEntry,
) -> Checked<Change> {
    match &entry.r#type {
        Some(Type::MulticastGroupEntry(entry)) => write_group(program.clone(), kind, entry.clone()),
        Some(Type::CloneSessionEntry(entry)) => write_session(program.clone(), kind, entry.clone()),
        None => refuse(Code::InvalidArgument, "neither a multicast group nor a clone session is set"),
    }
}

fn write_group(program: Arc<Program>, kind: update::Type, entry: MulticastGroupEntry) -> Checked<Change> {
    const WHAT: &str = "multicast group";
    let id = entry.multicast_group_id;
    if id == 0 {
        return refuse(Code::InvalidArgument, "multicast group 0 means all in reads; number them from 1");
    }
    let replicas =
        if kind == update::Type::Delete { Replicas::default() } else { replicas(&program, &entry.replicas)? };
    Ok(Box::new(move |switch, _| {
        let mut groups = program.groups();
        let exists = groups.multicast.contains_key(&id);
        let before = uses_of(&program, groups.multicast.get(&id));
        let is_foreign = u16::try_from(id).is_ok_and(|id| switch.replication_group(id).is_some());
        expect(kind, exists, WHAT, id)?;
        check_own(kind, !exists && is_foreign, WHAT, id)?;
        if kind == update::Type::Delete {
            program.exchange(&before, &Uses::default(), || control(switch.multicast_group_remove(id)))?;
            groups.multicast.remove(&id);
        } else {
            let after = uses_of(&program, Some(&entry));
            program.exchange(&before, &after, || control(switch.multicast_group_set(id, replicas)))?;
            groups.multicast.insert(id, entry);
        }
        Ok(())
    }))
}

/// References of a multicast group.
fn uses_of(program: &Program, entry: Option<&MulticastGroupEntry>) -> Uses {
    if program.follows_groups() { program.uses_of_group(entry) } else { Uses::default() }
}

fn write_session(program: Arc<Program>, kind: update::Type, entry: CloneSessionEntry) -> Checked<Change> {
    const WHAT: &str = "clone session";
    let id = entry.session_id;
    if id == 0 {
        return refuse(Code::InvalidArgument, "clone session 0 means all in reads; number them from 1");
    }
    if kind == update::Type::Delete {
        return Ok(Box::new(move |switch, _| {
            let mut groups = program.groups();
            expect(kind, groups.clone.contains_key(&id), WHAT, id)?;
            control(switch.clone_session_remove(id))?;
            groups.clone.remove(&id);
            Ok(())
        }));
    }
    let Some(class_of_service) = u8::try_from(entry.class_of_service).ok().filter(|class| *class < 8) else {
        let message = format!("class of service {} is not 0 to 7", entry.class_of_service);
        return refuse(Code::InvalidArgument, message);
    };
    let Ok(packet_length_bytes) = u16::try_from(entry.packet_length_bytes) else {
        let message = format!("packet length {} is not 0 to 65535", entry.packet_length_bytes);
        return refuse(Code::InvalidArgument, message);
    };
    let replicas = replicas(&program, &entry.replicas)?;
    let config = CloneSession { replicas, class_of_service, packet_length_bytes, ..CloneSession::default() };
    Ok(Box::new(move |switch, _| {
        let mut groups = program.groups();
        let exists = groups.clone.contains_key(&id);
        expect(kind, exists, WHAT, id)?;
        check_own(kind, !exists && switch.clone_session_get(id).is_some(), WHAT, id)?;
        control(switch.clone_session_set(id, config))?;
        groups.clone.insert(id, entry);
        Ok(())
    }))
}

/// Reads one group or session, or with id 0 all.
pub fn read(program: &Arc<Program>, request: &PacketReplicationEngineEntry) -> Checked<Vec<Query>> {
    let groups = program.groups();
    let found: Vec<Type> = match &request.r#type {
        Some(Type::MulticastGroupEntry(request)) => {
            let fits = |id: &u32| [0, *id].contains(&request.multicast_group_id);
            let entries = groups.multicast.iter().filter(|(id, _)| fits(id));
            entries.map(|(_, entry)| Type::MulticastGroupEntry(entry.clone())).collect()
        }
        Some(Type::CloneSessionEntry(request)) => {
            let entries = groups.clone.iter().filter(|(id, _)| [0, **id].contains(&request.session_id));
            entries.map(|(_, entry)| Type::CloneSessionEntry(entry.clone())).collect()
        }
        None => return refuse(Code::InvalidArgument, "neither a multicast group nor a clone session is set"),
    };
    let entities = found.into_iter().map(|found| {
        let entry = PacketReplicationEngineEntry { r#type: Some(found) };
        Entity { entity: Some(EntityKind::PacketReplicationEngineEntry(entry)) }
    });
    let entities: Vec<Entity> = entities.collect();
    Ok(vec![Box::new(move |_, _| Ok(Answer::whole(Box::new(move || entities))))])
}

/// Saves a group or session for an undo, as written and as the switch has it.
pub fn snapshot(program: &Arc<Program>, entry: &PacketReplicationEngineEntry) -> Checked<Snapshot> {
    let program = program.clone();
    match &entry.r#type {
        Some(Type::MulticastGroupEntry(entry)) => {
            let id = entry.multicast_group_id;
            Ok(Box::new(move |switch| {
                let before = switch.multicast_group_get(id).cloned();
                let written = program.groups().multicast.get(&id).cloned();
                Box::new(move |switch| {
                    let _ = match before {
                        Some(replicas) => switch.multicast_group_set(id, replicas),
                        None => switch.multicast_group_remove(id),
                    };
                    let mut groups = program.groups();
                    let before = uses_of(&program, groups.multicast.get(&id));
                    program.replace(&before, &uses_of(&program, written.as_ref()));
                    put_back(&mut groups.multicast, id, written);
                })
            }))
        }
        Some(Type::CloneSessionEntry(entry)) => {
            let id = entry.session_id;
            Ok(Box::new(move |switch| {
                let before = switch.clone_session_get(id).cloned();
                let written = program.groups().clone.get(&id).cloned();
                Box::new(move |switch| {
                    let _ = match before {
                        Some(config) => switch.clone_session_set(id, config),
                        None => switch.clone_session_remove(id),
                    };
                    put_back(&mut program.groups().clone, id, written);
                })
            }))
        }
        None => refuse(Code::InvalidArgument, "neither a multicast group nor a clone session is set"),
    }
}

fn put_back<T>(entries: &mut BTreeMap<u32, T>, id: u32, before: Option<T>) {
    match before {
        Some(entry) => entries.insert(id, entry),
        None => entries.remove(&id),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_interface_has_made_is_not_inserted_again() {
        let refused = |kind, is_foreign| check_own(kind, is_foreign, "multicast group", 7).err();
        let error = refused(update::Type::Insert, true).expect("is refused");
        assert_eq!(error.code, Code::AlreadyExists);
        assert_eq!(error.message, "multicast group 7 was made over another interface; delete it there first");
        assert!(refused(update::Type::Insert, false).is_none());
        assert!(
            refused(update::Type::Modify, true).is_none() && refused(update::Type::Delete, true).is_none()
        );
    }
}
