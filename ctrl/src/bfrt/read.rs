//! Reads the objects that P4Runtime's entities name.

use super::groups::Group;
use super::patience::Patience;
use super::sessions::Session;
use super::{EVERYWHERE, Link, rates, unpack, update_error};
use crate::error::{CtrlError, refused};
use p4rack_bfrt::p4runtime::ValueSet;
use p4rack_p4rt::bfrt_proto::{DataField, Entity, ReadRequest, TableData, TableEntry, TableFlags, entity};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::{self, entity::Entity as Kind};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Status;

/// The most that a read may take. A chip's largest registers take seconds.
const CHIP: Duration = Duration::from_secs(300);

fn digests_unconfigured() -> CtrlError {
    refused("reading entries")(Status::unimplemented("digests have no configuration over BFRuntime"))
}

/// A clone session as the second generation holds it.
fn shortened(entry: &v1::PacketReplicationEngineEntry) -> v1::Entity {
    let mut entry = entry.clone();
    if let Some(Replication::CloneSessionEntry(session)) = &mut entry.r#type {
        session.packet_length_bytes &= !3;
    }
    v1::Entity { entity: Some(Kind::PacketReplicationEngineEntry(entry)) }
}

/// An entry whose fields have a value for each pipe, as an entry of each.
fn by_pipe(entry: TableEntry) -> Vec<TableEntry> {
    let Some(data) = &entry.data else { return vec![entry] };
    let mut pipes: Vec<Vec<DataField>> = Vec::new();
    let mut seen: HashMap<u32, usize> = HashMap::new();
    for field in &data.fields {
        let pipe = seen.entry(field.field_id).or_default();
        if pipes.len() == *pipe {
            pipes.push(Vec::new());
        }
        pipes[*pipe].push(field.clone());
        *pipe += 1;
    }
    let of = |fields| TableEntry { data: Some(TableData { fields, ..data.clone() }), ..entry.clone() };
    pipes.into_iter().map(of).collect()
}

impl Link {
    /// The entities as the switch can hold them: rates and bursts of bytes are in kilobits, and the second generation
    /// truncates copies to words of 4 bytes.
    pub fn held(&self, desired: &[v1::Entity]) -> Result<Vec<v1::Entity>, CtrlError> {
        let bound = self.bound()?;
        let translation = &bound.translation;
        let held = |entity: &v1::Entity| match &entity.entity {
            Some(Kind::PacketReplicationEngineEntry(entry)) if bound.second => Ok(shortened(entry)),
            Some(Kind::MeterEntry(_) | Kind::DirectMeterEntry(_)) => {
                let entry = translation.entry(entity).map_err(update_error)?;
                translation.entity(&entry).map_err(update_error)
            }
            _ => Ok(entity.clone()),
        };
        desired.iter().map(held).collect()
    }

    /// Gives what was read the desired values, as far as a chip can only approach them.
    pub fn approached(&self, desired: &[v1::Entity], found: &mut [v1::Entity]) -> Result<(), CtrlError> {
        if self.bound()?.is_compiled {
            rates::as_wanted(desired, found);
        }
        Ok(())
    }

    /// Reads the objects that P4Runtime's entities name. Leaves out absent ones.
    pub async fn read(&mut self, entities: Vec<v1::Entity>) -> Result<Vec<v1::Entity>, CtrlError> {
        let mut found = Vec::new();
        for entity in entities {
            match &entity.entity {
                Some(Kind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
                    Some(Replication::MulticastGroupEntry(group)) => {
                        let wanted = Some(group.multicast_group_id).filter(|id| *id != 0);
                        found.extend(self.groups(wanted).await?.iter().map(Group::entity));
                    }
                    Some(Replication::CloneSessionEntry(session)) => {
                        let wanted = Some(session.session_id).filter(|id| *id != 0);
                        found.extend(self.sessions(wanted).await?.iter().map(Session::entity));
                    }
                    None => {}
                },
                Some(Kind::ValueSetEntry(set)) => found.extend(self.value_sets(set.value_set_id).await?),
                Some(Kind::DigestEntry(_)) => return Err(digests_unconfigured()),
                _ => found.extend(self.read_entries(&entity).await?),
            }
        }
        Ok(found)
    }

    /// Whether a read has to come from the chip: a driver answers others for counters and registers from its own copy. While a
    /// program is prepared there is only that.
    fn is_from_chip(&self, wanted: &v1::Entity) -> bool {
        let counts = match &wanted.entity {
            Some(Kind::CounterEntry(_) | Kind::DirectCounterEntry(_) | Kind::RegisterEntry(_)) => true,
            Some(Kind::TableEntry(entry)) => entry.counter_data.is_some(),
            _ => false,
        };
        counts && !self.prepared
    }

    /// Cells of a register as each pipe has them, from pipe 0 on.
    pub async fn read_pipes(&mut self, wanted: &v1::Entity) -> Result<Vec<Vec<v1::Entity>>, CtrlError> {
        let answers = self.entries_of(wanted).await?;
        let bound = self.bound()?;
        let mut pipes: Vec<Vec<v1::Entity>> = Vec::new();
        for answer in answers {
            for (pipe, entry) in by_pipe(answer).into_iter().enumerate() {
                if pipes.len() == pipe {
                    pipes.push(Vec::new());
                }
                pipes[pipe].push(bound.translation.entity(&entry).map_err(update_error)?);
            }
        }
        Ok(pipes)
    }

    /// The entries that an entity names, as the switch has them.
    async fn entries_of(&mut self, wanted: &v1::Entity) -> Result<Vec<TableEntry>, CtrlError> {
        let mut asked = self.bound()?.translation.keys(wanted).map_err(update_error)?;
        if self.is_from_chip(wanted) {
            let table_flags = Some(TableFlags { from_hw: true, ..Default::default() });
            asked.iter_mut().for_each(|entry| entry.table_flags = table_flags);
        }
        self.ask(asked).await
    }

    async fn read_entries(&mut self, wanted: &v1::Entity) -> Result<Vec<v1::Entity>, CtrlError> {
        let default = matches!(&wanted.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action);
        let answers = self.entries_of(wanted).await?;
        let bound = self.bound()?;
        let mut found = Vec::with_capacity(answers.len());
        for entry in answers.iter().filter(|entry| entry.is_default_entry == default) {
            let mut entity = bound.translation.entity(entry).map_err(update_error)?;
            if let (Some(Kind::TableEntry(entry)), Some(Kind::TableEntry(asked))) =
                (&mut entity.entity, &wanted.entity)
            {
                // P4Runtime returns counters and meters only on request.
                if asked.counter_data.is_none() {
                    entry.counter_data = None;
                }
                if asked.meter_config.is_none() {
                    entry.meter_config = None;
                }
            }
            found.push(entity);
        }
        Ok(found)
    }

    /// Value sets with their members; 0: all.
    async fn value_sets(&mut self, id: u32) -> Result<Vec<v1::Entity>, CtrlError> {
        let sets = self.bound()?.translation.value_sets(id).map_err(update_error)?;
        let sets: Vec<ValueSet> = sets.into_iter().cloned().collect();
        let mut found = Vec::with_capacity(sets.len());
        for set in sets {
            let members = self.ask(vec![set.request()]).await?;
            found.push(set.entity(&members).map_err(update_error)?);
        }
        Ok(found)
    }

    /// The entries that these name. Leaves out absent ones.
    pub(super) async fn ask(&mut self, entries: Vec<TableEntry>) -> Result<Vec<TableEntry>, CtrlError> {
        let wrap = |entry| Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        let request = ReadRequest {
            target: Some(EVERYWHERE),
            client_id: self.client_id,
            entities: entries.into_iter().map(wrap).collect(),
            p4_name: self.bound()?.p4_name.clone(),
        };
        let mut patience = Patience::default();
        let (found, status) = loop {
            // A driver waits for the chip's counters without end.
            let Ok(answers) = timeout(CHIP, self.answers(request.clone())).await else {
                return Err(CtrlError::Timeout("values of the chip".into(), CHIP.as_millis()));
            };
            match answers {
                (_, Some(status)) if patience.after(&status).await => {}
                (found, Some(status)) => break (found, status),
                (found, None) => return Ok(found),
            }
        };
        let Some(outcomes) = unpack(&status) else { return Err(refused("reading entries")(status)) };
        match outcomes.into_iter().flatten().find(|error| error.code != Code::NotFound) {
            Some(error) => Err(update_error(error)),
            None => Ok(found),
        }
    }

    /// All answers to a request, and the status if it is an error.
    async fn answers(&mut self, request: ReadRequest) -> (Vec<TableEntry>, Option<Status>) {
        let mut found = Vec::new();
        let mut answers = match self.grpc.read(request).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (found, Some(status)),
        };
        loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    found.extend(answer.entities.into_iter().filter_map(|entity| match entity.entity {
                        Some(entity::Entity::TableEntry(entry)) => Some(entry),
                        _ => None,
                    }))
                }
                Ok(None) => return (found, None),
                Err(status) => return (found, Some(status)),
            }
        }
    }
}
