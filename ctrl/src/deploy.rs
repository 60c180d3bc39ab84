//! From a rack description to a switch that runs it.

use crate::client;
use crate::error::CtrlError;
use crate::session::{Session, Target};
use p4rack_codegen::{Arch, Artefacts, Rack, Scheme};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    Action, Entity, FieldMatch, ForwardingPipelineConfig, PacketReplicationEngineEntry, Replica, TableEntry,
    Update, WriteRequest, entity, replica, table_action,
};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::{bytes, text};

/// What has been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Program and entries were generated.
    Generated {
        /// Size of the program's text.
        program_bytes: usize,
        /// Entries and other updates.
        updates: usize,
    },
    /// The switch answers and this controller is primary.
    Connected,
    /// The switch runs the program.
    Installed,
    /// The entries are written.
    Written {
        /// How many.
        updates: usize,
    },
    /// They were read back and are the same.
    Verified {
        /// How many.
        updates: usize,
    },
}

/// Generates the rack's program for a scheme, installs it, writes its entries and reads them back.
/// `done` is told every step.
pub async fn deploy(
    rack: &Rack,
    scheme: Scheme,
    target: Target,
    done: impl FnMut(Step),
) -> Result<(), CtrlError> {
    let artefacts = p4rack_codegen::generate(rack, scheme, Arch::V1model)?;
    install(&artefacts, target, done).await
}

/// As [`deploy`], with artefacts that are there already.
pub async fn install(
    artefacts: &Artefacts,
    target: Target,
    mut done: impl FnMut(Step),
) -> Result<(), CtrlError> {
    let fault = |what: &str, error: String| CtrlError::Program(format!("generated {what}:\n{error}"));
    let info: P4Info = text::parse(&artefacts.p4info).map_err(|error| fault("P4Info", error.to_string()))?;
    let entries: WriteRequest =
        text::parse(&artefacts.entries).map_err(|error| fault("entries", error.to_string()))?;
    let schema = Schema::new(info.clone()).map_err(|error| fault("P4Info", error.to_string()))?;
    let updates = entries.updates;
    done(Step::Generated { program_bytes: artefacts.p4.len(), updates: updates.len() });

    let mut session = Session::connect(target).await?;
    done(Step::Connected);
    let config = ForwardingPipelineConfig {
        p4info: Some(info),
        p4_device_config: artefacts.p4.clone().into_bytes(),
        cookie: None,
    };
    session.set_pipeline(config).await?;
    done(Step::Installed);
    session.write(&schema, &updates).await?;
    done(Step::Written { updates: updates.len() });
    verify(&mut session, &schema, &updates).await?;
    done(Step::Verified { updates: updates.len() });
    Ok(())
}

/// Reads back what was written.
async fn verify(session: &mut Session, schema: &Schema, updates: &[Update]) -> Result<(), CtrlError> {
    let written: Vec<&Entity> = updates.iter().filter_map(|update| update.entity.as_ref()).collect();
    let found = session.read(written.iter().map(|entity| key_of(entity)).collect()).await?;
    let found: Vec<Entity> = found.into_iter().map(normal).collect();
    let differences: Vec<String> = written
        .into_iter()
        .filter(|entity| !found.contains(&normal((*entity).clone())))
        .map(|entity| {
            let what = client::name(schema, entity);
            let there = found.iter().any(|found| client::name(schema, found) == what);
            format!("{what}: {}", if there { "has another value" } else { "is not there" })
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(CtrlError::Differs { differences, total: updates.len() })
}

/// A read request for one entity.
fn key_of(entity: &Entity) -> Entity {
    let mut key = entity.clone();
    match &mut key.entity {
        Some(entity::Entity::TableEntry(entry)) => {
            *entry = TableEntry {
                table_id: entry.table_id,
                r#match: std::mem::take(&mut entry.r#match),
                priority: entry.priority,
                is_default_action: entry.is_default_action,
                ..Default::default()
            };
        }
        Some(entity::Entity::MeterEntry(entry)) => entry.config = None,
        Some(entity::Entity::CounterEntry(entry)) => entry.data = None,
        Some(entity::Entity::RegisterEntry(entry)) => entry.data = None,
        _ => {}
    }
    key
}

/// The same entity in the one form that can be compared.
fn normal(mut entity: Entity) -> Entity {
    match &mut entity.entity {
        Some(entity::Entity::TableEntry(entry)) => {
            entry.r#match.sort_by_key(|key: &FieldMatch| key.field_id);
            entry.is_const = false;
            if let Some(table_action::Type::Action(action)) =
                entry.action.as_mut().and_then(|action| action.r#type.as_mut())
            {
                normal_action(action);
            }
        }
        Some(entity::Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Type::MulticastGroupEntry(group)),
        })) => normal_replicas(&mut group.replicas),
        Some(entity::Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(session)),
        })) => normal_replicas(&mut session.replicas),
        _ => {}
    }
    entity
}

fn normal_action(action: &mut Action) {
    action.params.sort_by_key(|param| param.param_id);
    for param in &mut action.params {
        param.value = bytes::canonical(&param.value);
    }
}

fn normal_replicas(replicas: &mut [Replica]) {
    for replica in replicas.iter_mut() {
        #[allow(deprecated)]
        if let Some(replica::PortKind::EgressPort(port)) = replica.port_kind {
            replica.port_kind = Some(replica::PortKind::Port(bytes::from_u128(port.into())));
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
    use p4rack_p4rt::p4::v1::MulticastGroupEntry;

    fn group(replicas: Vec<Replica>) -> Entity {
        let group = MulticastGroupEntry { multicast_group_id: 1, replicas, ..Default::default() };
        let entry = PacketReplicationEngineEntry { r#type: Some(Type::MulticastGroupEntry(group)) };
        Entity { entity: Some(entity::Entity::PacketReplicationEngineEntry(entry)) }
    }

    #[test]
    fn replicas_compare_whatever_way_ports_are_written() {
        #[allow(deprecated)]
        let old = |port| Replica { port_kind: Some(replica::PortKind::EgressPort(port)), instance: 1 };
        let canonical =
            |port: u8| Replica { port_kind: Some(replica::PortKind::Port(vec![port])), instance: 1 };
        assert_eq!(normal(group(vec![old(2), old(1)])), normal(group(vec![canonical(1), canonical(2)])));
        assert_ne!(normal(group(vec![old(2)])), normal(group(vec![canonical(3)])));
    }
}
