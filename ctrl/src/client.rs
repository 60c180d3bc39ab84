//! Calls of a session: program, entries.

use crate::error::{CtrlError, UpdateFailure, refused};
use crate::session::Session;
use p4rack_p4rt::entity::describe;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::p4::v1::{
    Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, Update, WriteRequest, entity, packet_replication_engine_entry,
    set_forwarding_pipeline_config_request::Action,
};
use p4rack_p4rt::schema::{Schema, name_of};

/// Updates in one Write.
const BATCH: usize = 512;

impl Session {
    /// Installs a program; all state of the switch is cleared.
    pub async fn set_pipeline(&mut self, config: ForwardingPipelineConfig) -> Result<(), CtrlError> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.target().device_id,
            role: self.target().role.clone(),
            election_id: Some(self.target().election()),
            action: Action::VerifyAndCommit as i32,
            config: Some(config),
            ..Default::default()
        };
        let set = self.client.set_forwarding_pipeline_config(request).await;
        set.map(|_| ()).map_err(refused("installing the program"))
    }

    /// The program that is installed, if any.
    pub async fn pipeline(&mut self) -> Result<Option<ForwardingPipelineConfig>, CtrlError> {
        let request =
            GetForwardingPipelineConfigRequest { device_id: self.target().device_id, ..Default::default() };
        let answer = self.client.get_forwarding_pipeline_config(request).await;
        Ok(answer.map_err(refused("asking for the program"))?.into_inner().config)
    }

    /// Writes in batches; every update is tried, and all that were refused are in the error.
    pub async fn write(&mut self, schema: &Schema, updates: &[Update]) -> Result<(), CtrlError> {
        let mut failures = Vec::new();
        for (batch_number, batch) in updates.chunks(BATCH).enumerate() {
            let request = WriteRequest {
                device_id: self.target().device_id,
                role: self.target().role.clone(),
                election_id: Some(self.target().election()),
                updates: batch.to_vec(),
                ..Default::default()
            };
            let Err(status) = self.client.write(request).await else { continue };
            let Some(outcomes) = unpack(status.details()) else {
                return Err(refused("writing entries")(status));
            };
            let first = batch_number * BATCH + 1;
            for (position, (update, outcome)) in batch.iter().zip(outcomes).enumerate() {
                if let Err(error) = outcome {
                    let what = update.entity.as_ref().map_or_else(String::new, |entity| name(schema, entity));
                    failures.push(UpdateFailure {
                        number: first + position,
                        total: updates.len(),
                        what,
                        error,
                    });
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(CtrlError::Updates { failures }) }
    }

    /// Reads whatever the requests name.
    pub async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        const CALL: &str = "reading entries";
        let request =
            ReadRequest { device_id: self.target().device_id, role: self.target().role.clone(), entities };
        let mut answers = self.client.read(request).await.map_err(refused(CALL))?.into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await.map_err(refused(CALL))? {
            found.extend(answer.entities);
        }
        Ok(found)
    }
}

/// What an entity is, for people.
pub fn name(schema: &Schema, entity: &Entity) -> String {
    use packet_replication_engine_entry::Type;
    let at = |index: Option<i64>| index.map_or_else(String::new, |index| format!(" index {index}"));
    match &entity.entity {
        Some(entity::Entity::TableEntry(entry)) => describe(schema, entry),
        Some(entity::Entity::MeterEntry(entry)) => {
            let meter = schema.meter_by_id(entry.meter_id);
            let name = meter.map_or("?", |meter| name_of(meter.preamble.as_ref()));
            format!("meter {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(entity::Entity::CounterEntry(entry)) => {
            let counter = schema.counter_by_id(entry.counter_id);
            let name = counter.map_or("?", |counter| name_of(counter.preamble.as_ref()));
            format!("counter {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(entity::Entity::RegisterEntry(entry)) => {
            let register = schema.register_by_id(entry.register_id);
            let name = register.map_or("?", |register| name_of(register.preamble.as_ref()));
            format!("register {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(entity::Entity::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => format!("multicast group {}", group.multicast_group_id),
            Some(Type::CloneSessionEntry(session)) => format!("clone session {}", session.session_id),
            None => "replication entry".into(),
        },
        _ => "entity".into(),
    }
}
