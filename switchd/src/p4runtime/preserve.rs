//! RECONCILE_AND_COMMIT: a new program takes over the running program's entities.
//!
//! They are read and written to a second switch that runs the new program. If all are accepted, it replaces
//! the first one between two packets; otherwise nothing changes. Entries that the old program's text gives are not taken
//! over, unless they were changed or the new text gives the same ones.

use super::{Checked, refuse};
use crate::core::{Gone, Handle, Isolation};
use p4rack_entities::{Candidate, Program, ReadResults, Reading, change};
use p4rack_netdev::clock;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, DigestEntry, Entity,
    MeterConfig, MeterCounterData, MeterEntry, MulticastGroupEntry, PacketReplicationEngineEntry,
    ReadRequest, TableEntry, Update, ValueSetEntry, update,
};
use p4rack_p4rt::schema::Schema;
use p4rack_switch::{Config, Keep, Switch};
use std::sync::Arc;

/// Entities to read, in an order in which they can be written: referenced ones come first. Counters and
/// registers belong to the data plane.
fn wildcards(program: &Program) -> Vec<EntityKind> {
    let replication =
        |what| EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(what) });
    let mut all = vec![
        EntityKind::ActionProfileMember(ActionProfileMember::default()),
        EntityKind::ActionProfileGroup(ActionProfileGroup::default()),
        replication(Type::MulticastGroupEntry(MulticastGroupEntry::default())),
        replication(Type::CloneSessionEntry(CloneSessionEntry::default())),
        EntityKind::ValueSetEntry(ValueSetEntry::default()),
        EntityKind::MeterEntry(MeterEntry::default()),
        EntityKind::DigestEntry(DigestEntry::default()),
    ];
    for table in &program.info.tables {
        let table_id = table.preamble.as_ref().map_or(0, |preamble| preamble.id);
        for is_default_action in [false, true] {
            all.push(EntityKind::TableEntry(TableEntry {
                table_id,
                is_default_action,
                counter_data: Some(CounterData::default()),
                meter_config: Some(MeterConfig::default()),
                meter_counter_data: Some(MeterCounterData::default()),
                ..Default::default()
            }));
        }
    }
    all
}

/// The update that restores an entity of the program `old` under `new`, if a controller has written it. `own_default` lists the
/// tables whose default entry is the program's.
fn update(entity: EntityKind, own_default: &[u32], (old, new): (&Program, &Program)) -> Option<Update> {
    let kind = match &entity {
        EntityKind::TableEntry(entry) if entry.is_const => return None,
        EntityKind::TableEntry(entry) if entry.is_default_action => {
            if own_default.contains(&entry.table_id) {
                return None;
            }
            update::Type::Modify
        }
        // Where both texts give it, its counter goes on.
        EntityKind::TableEntry(entry) if old.initial.gives(entry) && !new.initial.gives(entry) => {
            return None;
        }
        // The new program's text has put one there already.
        EntityKind::TableEntry(entry) if new.initial.has_changeable(entry) => update::Type::Modify,
        // The same one, which can't be changed.
        EntityKind::TableEntry(entry) if new.initial.gives(entry) => return None,
        EntityKind::MeterEntry(entry) if entry.config.is_none() => return None,
        EntityKind::ValueSetEntry(entry) if entry.members.is_empty() => return None,
        EntityKind::ValueSetEntry(_) | EntityKind::MeterEntry(_) => update::Type::Modify,
        _ => update::Type::Insert,
    };
    Some(Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) })
}

/// The running program's entities, as updates for the new one.
async fn entities_of(handle: &Handle, program: &Arc<Program>, new: &Program) -> Result<Vec<Update>, Gone> {
    let wanted: Vec<Entity> =
        wildcards(program).into_iter().map(|entity| Entity { entity: Some(entity) }).collect();
    let wanted = ReadRequest { entities: wanted, ..Default::default() };
    let reading = Reading::new(program.clone(), wanted, Box::new(|_| Ok(())));
    // A kind that the program has none of is rejected; then there is nothing to take over.
    let (_, found) = handle.in_turns(Isolation::Whole, reading.part(usize::MAX)).await?;
    let found: Vec<Entity> = found.into_iter().flat_map(ReadResults::messages).collect();
    let asked = program.clone();
    let own_default = handle.call(move |switch, _| {
        let tables = asked.info.tables.iter().filter_map(|info| asked.table(info.preamble.as_ref()?.id).ok());
        let own = tables.filter(|table| switch.default_entry(table.id).is_ok_and(|entry| entry.is_initial));
        own.filter_map(|table| asked.table_id(table.id)).collect::<Vec<u32>>()
    });
    let own_default = own_default.await?;
    let updates = found.into_iter().filter_map(|found| update(found.entity?, &own_default, (program, new)));
    Ok(updates.collect())
}

/// A switch that runs the new program with all entities of the old one.
fn rebuilt(candidate: Candidate, updates: &[Update], config: Config) -> Checked<(Switch, Arc<Program>)> {
    let Candidate { program, pipeline } = candidate;
    let now = clock::now();
    let mut switch = Switch::new(config);
    // Sets its time.
    switch.poll_transmit(now, &mut Vec::new());
    switch.load(pipeline);
    let program = Arc::new(program);
    // References to entries that don't exist yet are tried again after the others.
    let mut waiting: Vec<&Update> = updates.iter().collect();
    loop {
        let (mut refused, mut first) = (Vec::new(), None);
        for update in &waiting {
            if let Err(error) = change(&program, update).and_then(|change| change(&mut switch, now)) {
                first.get_or_insert((*update, error));
                refused.push(*update);
            }
        }
        match first {
            None => return Ok((switch, program)),
            Some((update, error)) if refused.len() == waiting.len() => {
                let message = format!(
                    "{} can't be kept by the new program: {}; delete it, or use VERIFY_AND_COMMIT, which clears all",
                    describe(&program, update),
                    error.message
                );
                return refuse(Code::InvalidArgument, message);
            }
            Some(_) => waiting = refused,
        }
    }
}

/// An update in words, with the new program's names.
fn describe(program: &Program, update: &Update) -> String {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(EntityKind::TableEntry(entry)) => match Schema::new(program.info.clone()) {
            Ok(schema) => entity::describe(&schema, entry),
            Err(_) => format!("an entry of table 0x{:08x}", entry.table_id),
        },
        Some(EntityKind::ActionProfileMember(member)) => {
            format!("action profile member {}", member.member_id)
        }
        Some(EntityKind::ActionProfileGroup(group)) => format!("action profile group {}", group.group_id),
        Some(EntityKind::MeterEntry(meter)) => format!("the configuration of meter 0x{:08x}", meter.meter_id),
        Some(EntityKind::ValueSetEntry(set)) => {
            format!("the members of value set 0x{:08x}", set.value_set_id)
        }
        Some(EntityKind::DigestEntry(digest)) => format!("the request for digest 0x{:08x}", digest.digest_id),
        _ => "a replication entry".into(),
    }
}

/// Why the running program was not replaced.
#[derive(Debug)]
pub enum ReplaceError {
    /// The new program can't keep an entity.
    Refused(UpdateError),
    /// The data plane has stopped.
    Gone(Gone),
}

impl From<UpdateError> for ReplaceError {
    fn from(error: UpdateError) -> ReplaceError {
        ReplaceError::Refused(error)
    }
}

impl From<Gone> for ReplaceError {
    fn from(gone: Gone) -> ReplaceError {
        ReplaceError::Gone(gone)
    }
}

/// Replaces the running program and returns the new one.
pub async fn replace(
    handle: &Handle,
    running: &Arc<Program>,
    candidate: Candidate,
) -> Result<Arc<Program>, ReplaceError> {
    let updates = entities_of(handle, running, &candidate.program).await?;
    let config = handle.call(|switch, _| switch.config().clone()).await?;
    let built = tokio::task::spawn_blocking(move || rebuilt(candidate, &updates, config)).await;
    let failed =
        |_| UpdateError::new(Code::Internal, "the new program could not be prepared; please report it");
    let (switch, program) = built.map_err(failed)??;
    handle.call(move |running, _| running.adopt(switch, Keep::All)).await?;
    Ok(program)
}
