//! Requests prepared for the data-plane thread: everything that can be checked outside of it is.

mod cells;
mod digests;
mod profiles;
mod replication;
mod table_reads;
mod tables;
mod value_sets;

pub use digests::message as digest_list;
pub use table_reads::idle_message;

use super::plain::Entries;
use super::program::Program;
use super::{Checked, refuse};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{Entity, ReadResponse, Update, update};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use prost::Message;
use std::sync::Arc;

/// A checked update. It is applied as a whole or not at all.
pub type Change = Box<dyn FnOnce(&mut Switch, Nanos) -> Result<(), UpdateError> + Send>;

/// Converts results to messages, outside of the data-plane thread.
pub type Messages = Box<dyn FnOnce() -> Vec<Entity> + Send>;

/// Results of a read.
pub enum ReadResults {
    /// Entities of any kind.
    Entities(Messages),
    /// Plain entries of a table.
    Plain(Arc<Program>, Entries),
}

impl ReadResults {
    /// The results as messages.
    pub fn messages(self) -> Vec<Entity> {
        match self {
            ReadResults::Entities(messages) => messages(),
            plain => ReadResponse::decode(&plain.encoded()[..])
                .map_or_else(|_| Vec::new(), |answer| answer.entities),
        }
    }

    /// The results as fields of a `ReadResponse`.
    pub fn encoded(self) -> Vec<u8> {
        match self {
            ReadResults::Entities(messages) => ReadResponse { entities: messages() }.encode_to_vec(),
            ReadResults::Plain(program, entries) => {
                let mut bytes = Vec::new();
                program.plans.encode(&entries, &mut bytes);
                bytes
            }
        }
    }
}

/// A checked read, or a part of a long one. Packets get a turn after each.
pub type Query = Box<dyn FnOnce(&Switch, Nanos) -> Result<Answer, UpdateError> + Send>;

/// Results of a query.
pub struct Answer {
    /// The results.
    pub found: ReadResults,
    /// Query for the rest.
    pub next: Option<Query>,
}

impl Answer {
    /// An answer that is complete.
    pub fn whole(messages: Messages) -> Answer {
        Answer { found: ReadResults::Entities(messages), next: None }
    }
}

fn not_offered<T>(what: &str) -> Checked<T> {
    refuse(Code::Unimplemented, format!("{what} are not offered by this switch"))
}

/// Checks an update.
pub fn change(program: &Arc<Program>, update: &Update) -> Checked<Change> {
    let kind = match update::Type::try_from(update.r#type) {
        Ok(update::Type::Unspecified) => {
            return refuse(Code::InvalidArgument, "the update's type is not set");
        }
        Ok(kind) => kind,
        Err(_) => return refuse(Code::InvalidArgument, format!("there is no update type {}", update.r#type)),
    };
    let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else {
        return refuse(Code::InvalidArgument, "the update's entity is not set");
    };
    match entity {
        EntityKind::TableEntry(entry) => tables::write(program, kind, entry),
        EntityKind::DirectCounterEntry(entry) => tables::write_direct_counter(program, kind, entry),
        EntityKind::DirectMeterEntry(entry) => tables::write_direct_meter(program, kind, entry),
        EntityKind::CounterEntry(entry) => cells::write_counter(program, kind, entry),
        EntityKind::MeterEntry(entry) => cells::write_meter(program, kind, entry),
        EntityKind::RegisterEntry(entry) => cells::write_register(program, kind, entry),
        EntityKind::PacketReplicationEngineEntry(entry) => replication::write(program, kind, entry),
        EntityKind::ActionProfileMember(entry) => profiles::write_member(program, kind, entry),
        EntityKind::ActionProfileGroup(entry) => profiles::write_group(program, kind, entry),
        EntityKind::ValueSetEntry(entry) => value_sets::write(program, kind, entry),
        EntityKind::DigestEntry(entry) => digests::write(program, kind, entry),
        EntityKind::ExternEntry(_) => not_offered("externs beyond v1model's"),
    }
}

/// Checks an entity of a Read.
pub fn query(program: &Arc<Program>, entity: &Entity) -> Checked<Vec<Query>> {
    let Some(entity) = &entity.entity else {
        return refuse(Code::InvalidArgument, "the entity is not set");
    };
    match entity {
        EntityKind::TableEntry(entry) => table_reads::read(program, entry),
        EntityKind::DirectCounterEntry(entry) => table_reads::read_direct_counter(program, entry),
        EntityKind::DirectMeterEntry(entry) => table_reads::read_direct_meter(program, entry),
        EntityKind::CounterEntry(entry) => cells::read_counter(program, entry),
        EntityKind::MeterEntry(entry) => cells::read_meter(program, entry),
        EntityKind::RegisterEntry(entry) => cells::read_register(program, entry),
        EntityKind::PacketReplicationEngineEntry(entry) => replication::read(program, entry),
        EntityKind::ActionProfileMember(entry) => profiles::read_members(program, entry),
        EntityKind::ActionProfileGroup(entry) => profiles::read_groups(program, entry),
        EntityKind::ValueSetEntry(entry) => value_sets::read(program, entry),
        EntityKind::DigestEntry(entry) => digests::read(program, entry),
        EntityKind::ExternEntry(_) => not_offered("externs beyond v1model's"),
    }
}

/// Checks an entity of a Read whose key is one entry's, even where P4Runtime would take it for a wildcard.
pub fn query_keyed(program: &Arc<Program>, entity: &Entity) -> Checked<Vec<Query>> {
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if !entry.is_default_action => {
            Ok(vec![table_reads::read_keyed(program, entry)?])
        }
        _ => query(program, entity),
    }
}

/// Restores a snapshot's state.
pub type Undo = Box<dyn FnOnce(&mut Switch) + Send>;

/// Saves the state that an update would change.
pub type Snapshot = Box<dyn FnOnce(&Switch) -> Undo + Send>;

/// Prepares to undo an update that [`change`] has accepted.
pub fn snapshot(program: &Arc<Program>, update: &Update) -> Checked<Snapshot> {
    let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else {
        return refuse(Code::InvalidArgument, "the update's entity is not set");
    };
    match entity {
        EntityKind::TableEntry(entry) => tables::snapshot(program, Some(entry)),
        EntityKind::DirectCounterEntry(entry) => tables::snapshot(program, entry.table_entry.as_ref()),
        EntityKind::DirectMeterEntry(entry) => tables::snapshot(program, entry.table_entry.as_ref()),
        EntityKind::CounterEntry(entry) => cells::snapshot_counter(program, entry),
        EntityKind::MeterEntry(entry) => cells::snapshot_meter(program, entry),
        EntityKind::RegisterEntry(entry) => cells::snapshot_register(program, entry),
        EntityKind::PacketReplicationEngineEntry(entry) => replication::snapshot(program, entry),
        EntityKind::ActionProfileMember(entry) => profiles::snapshot_member(program, entry),
        EntityKind::ActionProfileGroup(entry) => profiles::snapshot_group(program, entry),
        EntityKind::ValueSetEntry(entry) => value_sets::snapshot(program, entry),
        EntityKind::DigestEntry(entry) => digests::snapshot(program, entry),
        EntityKind::ExternEntry(_) => not_offered("externs beyond v1model's"),
    }
}
