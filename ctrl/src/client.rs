//! Calls that need no stream: programs, reads, and writes by a primary.

use crate::connect::ConnectOptions;
use crate::error::{CtrlError, UpdateFailure, refused};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::describe;
use p4rack_p4rt::errors::{UpdateError, unpack};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{
    CapabilitiesRequest, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, Update, WriteRequest, packet_replication_engine_entry,
};
use p4rack_p4rt::schema::{Schema, name_of};
use p4rack_p4rt::text::TextMessage;
use tokio::task::JoinSet;
use tonic::transport::Channel;

/// Updates per Write.
const BATCH: usize = 512;
/// Maximum updates of one request.
const WHOLE: usize = 65_536;
/// Writes of one phase in flight. Updates of a phase do not depend on each other.
const OUTSTANDING: usize = 4;
/// Maximum message accepted.
const RECEIVE_LIMIT: usize = 128 << 20;

/// A connection to a switch.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) target: ConnectOptions,
    pub(crate) grpc: P4RuntimeClient<Channel>,
    pub(crate) channel: Channel,
}

impl Client {
    /// Connects, without asking to be primary.
    pub async fn connect(target: ConnectOptions) -> Result<Client, CtrlError> {
        let channel = target.channel().await?;
        let grpc = P4RuntimeClient::new(channel.clone()).max_decoding_message_size(RECEIVE_LIMIT);
        Ok(Client { target, grpc, channel })
    }

    /// The switch and this controller's identity.
    pub fn target(&self) -> &ConnectOptions {
        &self.target
    }

    pub(crate) fn log<M: TextMessage>(&self, call: &str, message: &M) -> Result<(), CtrlError> {
        let log = self.target.log.as_ref();
        log.map_or(Ok(()), |log| log.write(&self.target.addr, call, message))
    }

    /// Version of P4Runtime that the switch speaks.
    pub async fn api_version(&mut self) -> Result<String, CtrlError> {
        let answer = self.grpc.capabilities(CapabilitiesRequest::default()).await;
        Ok(answer.map_err(refused("asking for capabilities"))?.into_inner().p4runtime_api_version)
    }

    /// Installs a program, which clears all state of the switch.
    pub async fn set_pipeline(&mut self, config: ForwardingPipelineConfig) -> Result<(), CtrlError> {
        let refused = match self.set_pipeline_by(Action::VerifyAndCommit, Some(config.clone())).await {
            Err(error) if error.is_unknown() => error,
            done => return done,
        };
        // A RECONCILE_AND_COMMIT that has failed half-way leaves BMv2 with two programs. It takes no third one until COMMIT
        // completes the second.
        match self.set_pipeline_by(Action::Commit, None).await {
            Ok(()) => self.set_pipeline_by(Action::VerifyAndCommit, Some(config)).await,
            Err(_) => Err(refused),
        }
    }

    /// Installs a program in this way.
    pub(crate) async fn set_pipeline_by(
        &mut self,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), CtrlError> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            role: self.target.role.clone(),
            election_id: Some(self.target.election()),
            action: action as i32,
            config,
            ..Default::default()
        };
        self.log("SetForwardingPipelineConfig", &request)?;
        let set = self.grpc.set_forwarding_pipeline_config(request).await;
        set.map(|_| ()).map_err(refused("installing the program"))
    }

    /// The installed program, if any.
    pub async fn pipeline(&mut self) -> Result<Option<ForwardingPipelineConfig>, CtrlError> {
        self.pipeline_part(ResponseType::All).await
    }

    /// Parts of the installed program.
    pub async fn pipeline_part(
        &mut self,
        part: ResponseType,
    ) -> Result<Option<ForwardingPipelineConfig>, CtrlError> {
        let request = GetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            response_type: part as i32,
        };
        self.log("GetForwardingPipelineConfig", &request)?;
        match self.grpc.get_forwarding_pipeline_config(request).await {
            Ok(answer) => Ok(answer.into_inner().config),
            // How other servers respond before the first program.
            Err(status) if status.code() == tonic::Code::FailedPrecondition => Ok(None),
            Err(status) => Err(refused("asking for the program")(status)),
        }
    }

    /// P4Info of the installed program.
    pub async fn schema(&mut self) -> Result<Schema, CtrlError> {
        let config = self.pipeline_part(ResponseType::P4infoAndCookie).await?;
        let none = || {
            let ConnectOptions { device_id, addr, .. } = &self.target;
            CtrlError::Program(format!(
                "device {device_id} at {addr} runs no program: run `p4rack deploy` first, or give the right --device-id"
            ))
        };
        let info = config.and_then(|config| config.p4info).ok_or_else(none)?;
        Schema::new(info).map_err(|error| CtrlError::Program(error.to_string()))
    }

    /// Writes in batches, sequentially. Tries every update; the error lists all that were rejected.
    pub async fn write(&mut self, schema: &Schema, updates: &[Update]) -> Result<(), CtrlError> {
        let failures = self.write_batches(schema, updates, 0, updates.len(), 1).await?;
        if failures.is_empty() { Ok(()) } else { Err(CtrlError::Updates { failures }) }
    }

    /// Writes all updates in one request, which changes nothing if one of them is rejected.
    pub async fn write_whole(&mut self, schema: &Schema, updates: &[Update]) -> Result<(), CtrlError> {
        let request = WriteRequest {
            device_id: self.target.device_id,
            role: self.target.role.clone(),
            election_id: Some(self.target.election()),
            updates: updates.to_vec(),
            atomicity: Atomicity::RollbackOnError.into(),
            ..Default::default()
        };
        self.log("Write", &request)?;
        let Err(status) = self.grpc.write(request).await else { return Ok(()) };
        let Some(outcomes) = unpack(status.details()) else { return Err(refused("writing entries")(status)) };
        let failures = self::failures(schema, updates, outcomes, (0, updates.len()));
        // Those that only went back with the others say nothing.
        let own = |failure: &UpdateFailure| failure.error.code != Code::Aborted;
        let (own, others): (Vec<_>, Vec<_>) = failures.into_iter().partition(own);
        Err(CtrlError::Updates { failures: if own.is_empty() { others } else { own } })
    }

    /// Writes all phases in one request, which changes nothing if one of the updates is rejected. Where a switch has no such
    /// requests, or there are too many updates, phase after phase.
    pub(crate) async fn write_together(
        &mut self,
        schema: &Schema,
        phases: &[&[Update]],
    ) -> Result<(), CtrlError> {
        let updates = phases.concat();
        if updates.is_empty() {
            return Ok(());
        }
        if updates.len() <= WHOLE {
            match self.write_whole(schema, &updates).await {
                Err(error) if error.is_unimplemented() => {}
                done => return done,
            }
        }
        self.write_phases(schema, phases.iter().copied(), updates.len()).await
    }

    /// Writes phase after phase. Stops after a phase with a rejected update.
    pub(crate) async fn write_phases<'a>(
        &mut self,
        schema: &Schema,
        phases: impl Iterator<Item = &'a [Update]>,
        total: usize,
    ) -> Result<(), CtrlError> {
        let mut before = 0;
        for updates in phases {
            let failures = self.write_batches(schema, updates, before, total, OUTSTANDING).await?;
            if !failures.is_empty() {
                return Err(CtrlError::Updates { failures });
            }
            before += updates.len();
        }
        Ok(())
    }

    /// Writes with `outstanding` batches in flight. Returns the rejected updates.
    async fn write_batches(
        &mut self,
        schema: &Schema,
        updates: &[Update],
        before: usize,
        total: usize,
        outstanding: usize,
    ) -> Result<Vec<UpdateFailure>, CtrlError> {
        let mut failures = Vec::new();
        let mut batches = updates.chunks(BATCH).enumerate();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < outstanding
                && let Some((number, batch)) = batches.next()
            {
                let request = WriteRequest {
                    device_id: self.target.device_id,
                    role: self.target.role.clone(),
                    election_id: Some(self.target.election()),
                    updates: batch.to_vec(),
                    ..Default::default()
                };
                self.log("Write", &request)?;
                let mut grpc = self.grpc.clone();
                under_way.spawn(async move { (number * BATCH, grpc.write(request).await) });
            }
            let Some(ended) = under_way.join_next().await else { break };
            let (first, answer) = ended.map_err(|error| CtrlError::Ended(error.to_string()))?;
            let Err(status) = answer else { continue };
            let Some(outcomes) = unpack(status.details()) else {
                return Err(refused("writing entries")(status));
            };
            failures.extend(self::failures(schema, &updates[first..], outcomes, (before + first, total)));
        }
        failures.sort_by_key(|failure| failure.number);
        Ok(failures)
    }

    /// Reads what the requests name. Omits absent objects, even if the switch reports an error for them.
    pub async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        if !entities.iter().any(names_one) {
            return self.ask(entities).await;
        }
        match self.ask(entities.clone()).await {
            // How other servers respond.
            Err(error) if error.is_not_found() => {}
            answer => return answer,
        }
        // The error does not say which of them it was.
        let mut found = Vec::new();
        for entity in entities {
            let is_one = names_one(&entity);
            match self.ask(vec![entity]).await {
                Ok(more) => found.extend(more),
                Err(error) if is_one && error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn ask(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, CtrlError> {
        const CALL: &str = "reading entries";
        let request =
            ReadRequest { device_id: self.target.device_id, role: self.target.role.clone(), entities };
        self.log("Read", &request)?;
        let mut answers = self.grpc.read(request).await.map_err(refused(CALL))?.into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await.map_err(refused(CALL))? {
            found.extend(answer.entities);
        }
        Ok(found)
    }
}

/// The rejected ones of these updates, which `before` others precede.
fn failures(
    schema: &Schema,
    updates: &[Update],
    outcomes: Vec<Result<(), UpdateError>>,
    (before, total): (usize, usize),
) -> Vec<UpdateFailure> {
    let mut failures = Vec::new();
    for (position, (update, outcome)) in updates.iter().zip(outcomes).enumerate() {
        if let Err(error) = outcome {
            let what = update.entity.as_ref().map_or_else(String::new, |entity| name(schema, entity));
            failures.push(UpdateFailure { number: before + position + 1, total, what, error });
        }
    }
    failures
}

/// Whether a read names a single object that may not exist.
fn names_one(entity: &Entity) -> bool {
    use packet_replication_engine_entry::Type;
    match &entity.entity {
        Some(EntityKind::ActionProfileMember(member)) => member.member_id != 0,
        Some(EntityKind::ActionProfileGroup(group)) => group.group_id != 0,
        Some(EntityKind::DigestEntry(digest)) => digest.digest_id != 0,
        Some(EntityKind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => group.multicast_group_id != 0,
            Some(Type::CloneSessionEntry(session)) => session.session_id != 0,
            None => false,
        },
        _ => false,
    }
}

/// An entity in words.
pub fn name(schema: &Schema, entity: &Entity) -> String {
    use packet_replication_engine_entry::Type;
    let at = |index: Option<i64>| index.map_or_else(String::new, |index| format!(" index {index}"));
    macro_rules! named {
        ($find:ident, $id:expr) => {
            schema.$find($id).map_or("?", |object| name_of(object.preamble.as_ref()))
        };
    }
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) => describe(schema, entry),
        Some(EntityKind::DirectCounterEntry(entry)) => {
            format!("counter of {}", entry.table_entry.as_ref().map_or("?".into(), |e| describe(schema, e)))
        }
        Some(EntityKind::DirectMeterEntry(entry)) => {
            format!("meter of {}", entry.table_entry.as_ref().map_or("?".into(), |e| describe(schema, e)))
        }
        Some(EntityKind::MeterEntry(entry)) => {
            let name = named!(meter_by_id, entry.meter_id);
            format!("meter {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(EntityKind::CounterEntry(entry)) => {
            let name = named!(counter_by_id, entry.counter_id);
            format!("counter {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(EntityKind::RegisterEntry(entry)) => {
            let name = named!(register_by_id, entry.register_id);
            format!("register {name}{}", at(entry.index.map(|index| index.index)))
        }
        Some(EntityKind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => format!("multicast group {}", group.multicast_group_id),
            Some(Type::CloneSessionEntry(session)) => format!("clone session {}", session.session_id),
            None => "replication entry".into(),
        },
        Some(EntityKind::ActionProfileMember(member)) => {
            let name = named!(profile_by_id, member.action_profile_id);
            format!("action profile {name} member {}", member.member_id)
        }
        Some(EntityKind::ActionProfileGroup(group)) => {
            let name = named!(profile_by_id, group.action_profile_id);
            format!("action profile {name} group {}", group.group_id)
        }
        Some(EntityKind::ValueSetEntry(set)) => {
            format!("value set {}", named!(value_set_by_id, set.value_set_id))
        }
        Some(EntityKind::DigestEntry(digest)) => {
            format!("digest {}", named!(digest_by_id, digest.digest_id))
        }
        Some(EntityKind::ExternEntry(_)) => "extern entry".into(),
        None => "entity".into(),
    }
}
