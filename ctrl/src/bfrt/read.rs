//! Reads the objects that P4Runtime's entities name.

use super::groups::Group;
use super::sessions::Session;
use super::{EVERYWHERE, Link, unpack, update_error};
use crate::error::{CtrlError, refused};
use p4rack_bfrt::p4runtime::ValueSet;
use p4rack_p4rt::bfrt_proto::{Entity, ReadRequest, TableEntry, entity};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::{self, entity::Entity as Kind};
use tonic::Status;

fn digests_unconfigured() -> CtrlError {
    refused("reading entries")(Status::unimplemented("digests have no configuration over BFRuntime"))
}

impl Link {
    /// The entities as the switch can hold them: rates and bursts of bytes are in kilobits.
    pub fn held(&self, desired: &[v1::Entity]) -> Result<Vec<v1::Entity>, CtrlError> {
        let translation = &self.bound()?.translation;
        let held = |entity: &v1::Entity| match &entity.entity {
            Some(Kind::MeterEntry(_) | Kind::DirectMeterEntry(_)) => {
                let entry = translation.entry(entity).map_err(update_error)?;
                translation.entity(&entry).map_err(update_error)
            }
            _ => Ok(entity.clone()),
        };
        desired.iter().map(held).collect()
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

    async fn read_entries(&mut self, wanted: &v1::Entity) -> Result<Vec<v1::Entity>, CtrlError> {
        let bound = self.bound()?;
        let asked = bound.translation.keys(wanted).map_err(update_error)?;
        let default = matches!(&wanted.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action);
        let answers = self.ask(asked).await?;
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

    pub(super) async fn ask(&mut self, entries: Vec<TableEntry>) -> Result<Vec<TableEntry>, CtrlError> {
        const CALL: &str = "reading entries";
        let wrap = |entry| Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        let request = ReadRequest {
            target: Some(EVERYWHERE),
            client_id: self.client_id,
            entities: entries.into_iter().map(wrap).collect(),
            p4_name: self.bound()?.p4_name.clone(),
        };
        let mut answers = match self.grpc.read(request).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return Err(refused(CALL)(status)),
        };
        let mut found = Vec::new();
        loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    found.extend(answer.entities.into_iter().filter_map(|entity| match entity.entity {
                        Some(entity::Entity::TableEntry(entry)) => Some(entry),
                        _ => None,
                    }))
                }
                Ok(None) => return Ok(found),
                Err(status) => match unpack(&status) {
                    Some(outcomes) => {
                        match outcomes.into_iter().flatten().find(|error| error.code != Code::NotFound) {
                            Some(error) => return Err(update_error(error)),
                            None => return Ok(found),
                        }
                    }
                    None => return Err(refused(CALL)(status)),
                },
            }
        }
    }
}
