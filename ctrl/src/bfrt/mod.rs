//! Switches that are spoken to over BFRuntime: Tofino's, and the embedded one with a program of its architecture.
//!
//! A [`Link`] does what a P4Runtime client does, on P4Runtime's entities: they are translated by name, so reconciliation
//! and commands are the same for both.
//!
//! ```text
//!  connect ─ Subscribe ─ [ install ] ─ BIND ─▶ read, write ─ [ start ]
//!  groups    a multicast group is one entry and a node for each replication id
//!  sessions  a clone session is a mirror session
//!  queues    what ports do with their queues
//!  ports     the device's ports, which are added before they work; their statistics
//!  generator packet generators of the pipes
//!  device    tables of the device, which these use
//! ```

mod device;
mod generator;
mod groups;
mod ports;
mod queues;
mod sessions;

pub use generator::{GeneratedFrames, HEADER, Timing};
pub use ports::{PortChange, PortStat};
pub use queues::{Queue, QueueChange, Rate};

use crate::client::name;
use crate::connect::{CONNECT, ConnectOptions};
use crate::desired::{BfrtProgram, Desired};
use crate::error::{CtrlError, UpdateFailure, refused};
use groups::{Group, MGID, NODE};
use p4rack_bfrt::p4runtime::Translation;
use p4rack_bfrt::{Entry, Schema};
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::forwarding_pipeline_config::Profile;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::{
    self as bfrt, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Subscribe, TableEntry,
    TableFlags, TargetDevice, WriteRequest, entity, stream_message_request, stream_message_response,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::{self, Code};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::{self, entity::Entity as Kind};
use p4rack_p4rt::schema as p4;
use prost::Message;
use sessions::{SESSIONS, Session};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Updates of a Write.
const BATCH: usize = 512;
/// Writes of one phase in flight.
const OUTSTANDING: usize = 4;
/// Largest message accepted: a compiler's output travels in one.
const RECEIVE_LIMIT: usize = 128 << 20;
/// Number of the device at the server.
const DEVICE: u32 = 0;
/// All pipes, both directions, all parsers.
const EVERYWHERE: TargetDevice =
    TargetDevice { device_id: DEVICE, pipe_id: 0xffff, direction: 0xff, prsr_id: 0xff };

/// The program that a switch runs, with its names.
#[derive(Debug)]
struct Bound {
    p4_name: String,
    /// Tables of the program and of the device.
    schema: Schema,
    translation: Translation,
    /// Whether the device is of the second generation.
    second: bool,
}

/// The stream of a client that may bind to a program.
#[derive(Debug)]
struct Stream {
    /// Keeps it open.
    _outgoing: mpsc::Sender<StreamMessageRequest>,
    incoming: Streaming<StreamMessageResponse>,
}

/// A session with a switch; it ends when dropped.
#[derive(Debug)]
pub struct Link {
    target: ConnectOptions,
    client_id: u32,
    grpc: BfRuntimeClient<Channel>,
    /// None of a client that only reads: such a one names the program, and another one may be bound to it.
    stream: Option<Stream>,
    bound: Option<Bound>,
    /// Whether the program is prepared and does not run yet.
    prepared: bool,
}

fn program_error(error: impl ToString) -> CtrlError {
    CtrlError::Program(error.to_string())
}

impl Link {
    /// Connects to read, whoever is bound to the program.
    pub async fn to_read(target: ConnectOptions) -> Result<Link, CtrlError> {
        let channel = target.channel().await?;
        let grpc = BfRuntimeClient::new(channel)
            .max_decoding_message_size(RECEIVE_LIMIT)
            .max_encoding_message_size(RECEIVE_LIMIT);
        // Clients of one machine have different ones.
        let client_id = std::process::id() ^ u32::try_from(target.election_id & 0xffff).unwrap_or(0) << 16;
        Ok(Link { target, client_id, grpc, stream: None, bound: None, prepared: false })
    }

    /// Connects and subscribes.
    pub async fn connect(target: ConnectOptions) -> Result<Link, CtrlError> {
        let link = Link::to_read(target).await?;
        let (client_id, mut grpc) = (link.client_id, link.grpc.clone());
        let (outgoing, requests) = mpsc::channel(1);
        let subscribe = Subscribe { device_id: DEVICE, ..Default::default() };
        let update = Some(stream_message_request::Update::Subscribe(subscribe));
        let first = StreamMessageRequest { client_id, update };
        outgoing.try_send(first).map_err(|error| CtrlError::Ended(error.to_string()))?;
        let opened = grpc.stream_channel(ReceiverStream::new(requests)).await;
        let mut incoming = opened.map_err(refused("opening a session"))?.into_inner();
        let answer = timeout(CONNECT, incoming.message()).await;
        let answer =
            answer.map_err(|_| CtrlError::Timeout("the answer to Subscribe".into(), CONNECT.as_millis()))?;
        let subscribed = match answer.map_err(refused("subscribing"))?.and_then(|answer| answer.update) {
            Some(stream_message_response::Update::Subscribe(subscribed)) => subscribed,
            _ => return Err(CtrlError::Ended("it answered Subscribe with something else".into())),
        };
        let status = subscribed.status.unwrap_or_default();
        if status.code != Code::Ok as i32 {
            return Err(refused("subscribing")(Status::new(tonic::Code::from(status.code), status.message)));
        }
        Ok(Link { stream: Some(Stream { _outgoing: outgoing, incoming }), ..link })
    }

    /// The program that the switch runs, if any, and the device's tables.
    async fn installed(&mut self) -> Result<(Option<ForwardingPipelineConfig>, Vec<u8>), CtrlError> {
        let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, client_id: self.client_id };
        let answer = self.grpc.get_forwarding_pipeline_config(request).await;
        let answer = answer.map_err(refused("asking for the program"))?.into_inner();
        let fixed = answer.non_p4_config.map(|config| config.bfruntime_info).unwrap_or_default();
        Ok((answer.config.into_iter().next(), fixed))
    }

    /// Binds to the program that runs; `info` is its P4Info, made from its schema if there is none. Returns the names
    /// of P4Runtime's entities.
    async fn bind(&mut self, info: Option<&p4::Schema>) -> Result<p4::Schema, CtrlError> {
        let names = self.learn(info).await?;
        if self.stream.is_some() {
            let p4_name = self.bound()?.p4_name.clone();
            let named = ForwardingPipelineConfig { p4_name, ..Default::default() };
            if let Err(error) = self.set(Action::Bind, Some(named), "binding to the program").await {
                self.bound = None;
                return Err(error);
            }
        }
        Ok(names)
    }

    /// Takes the names of the program that runs, without binding to it.
    async fn learn(&mut self, info: Option<&p4::Schema>) -> Result<p4::Schema, CtrlError> {
        let (config, fixed) = self.installed().await?;
        let none = || {
            let addr = &self.target.addr;
            CtrlError::Program(format!(
                "the switch at {addr} runs no program: run `p4rack deploy --to tofino` first"
            ))
        };
        let config = config.ok_or_else(none)?;
        let mut schema = Schema::parse(&config.bfruntime_info).map_err(program_error)?;
        let names = match info {
            Some(info) => info.clone(),
            None => p4::Schema::new(p4rack_bfrt::p4runtime::info(&schema)).map_err(program_error)?,
        };
        let mut translation = Translation::new(&schema, names.info()).map_err(program_error)?;
        schema.add(&fixed).map_err(program_error)?;
        // Only the device's own tables tell its generation.
        let second = schema.tables().iter().any(|table| table.name.starts_with("tf2."));
        translation.set_device(second);
        self.bound = Some(Bound { p4_name: config.p4_name, schema, translation, second });
        Ok(names)
    }

    async fn set(
        &mut self,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
        call: &'static str,
    ) -> Result<(), CtrlError> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            client_id: self.client_id,
            action: action as i32,
            config: config.into_iter().collect(),
            ..Default::default()
        };
        self.grpc.set_forwarding_pipeline_config(request).await.map_err(refused(call))?;
        Ok(())
    }

    /// Binds to whatever program runs. Returns the names of P4Runtime's entities.
    pub async fn schema(&mut self) -> Result<p4::Schema, CtrlError> {
        self.bind(None).await
    }

    /// Whether the switch has the program; if so, binds to it.
    pub async fn runs(&mut self, desired: &Desired) -> Result<bool, CtrlError> {
        let wanted = own_program(desired)?;
        let Some(there) = self.installed().await?.0 else { return Ok(false) };
        let own = Schema::parse(wanted.bf_rt.as_bytes()).map_err(program_error)?;
        let same_schema =
            Schema::parse(&there.bfruntime_info).is_ok_and(|given| own.differences(&given).is_empty());
        let binary = there.profiles.iter().map(|profile| &profile.binary).find(|binary| !binary.is_empty());
        // A driver does not return it: name and schema have to suffice.
        let same_binary = binary.is_none_or(|binary| *binary == desired.config.p4_device_config);
        if there.p4_name != wanted.name || !same_schema || !same_binary {
            return Ok(false);
        }
        self.bind(Some(&desired.schema)).await?;
        Ok(true)
    }

    /// Prepares the program, and binds to it. What is written from now on is its own; the one that runs goes on until
    /// [`start`](Link::start), and for good if the session ends before.
    pub async fn install(&mut self, desired: &Desired) -> Result<(), CtrlError> {
        let wanted = own_program(desired)?;
        let profile = Profile {
            profile_name: "pipe".into(),
            context: wanted.context.clone(),
            binary: desired.config.p4_device_config.clone(),
            pipe_scope: vec![0, 1, 2, 3],
        };
        let config = ForwardingPipelineConfig {
            p4_name: wanted.name.clone(),
            bfruntime_info: wanted.bf_rt.clone().into_bytes(),
            profiles: vec![profile],
        };
        self.set(Action::VerifyAndWarmInitBegin, Some(config), "preparing the program").await?;
        self.bind(Some(&desired.schema)).await?;
        self.prepared = true;
        Ok(())
    }

    /// Starts the program that was prepared, if one was, with all that was written to it.
    pub async fn start(&mut self) -> Result<(), CtrlError> {
        if !std::mem::take(&mut self.prepared) {
            return Ok(());
        }
        self.set(Action::WarmInitEnd, None, "starting the program").await?;
        self.finished().await
    }

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

    /// What the switch says next. Errors: it ended the session.
    async fn message(&mut self) -> Result<StreamMessageResponse, CtrlError> {
        let Some(stream) = &mut self.stream else { return std::future::pending().await };
        let message = stream.incoming.message().await.map_err(refused("waiting for the switch"))?;
        message.ok_or_else(|| CtrlError::Ended("it closed the stream".into()))
    }

    /// Waits until the session ends, and tells why.
    pub(crate) async fn ended(&mut self) -> CtrlError {
        loop {
            if let Err(error) = self.message().await {
                return error;
            }
        }
    }

    /// Waits until the switch says that the program runs.
    async fn finished(&mut self) -> Result<(), CtrlError> {
        use bfrt::SetForwardingPipelineConfigResponseType::WarmInitFinished;
        loop {
            let message = timeout(CONNECT, self.message()).await;
            let message = message.map_err(|_| {
                CtrlError::Timeout("the end of the installation".into(), CONNECT.as_millis())
            })??;
            if let Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(said)) =
                message.update
                && said.set_forwarding_pipeline_config_response_type() == WarmInitFinished
            {
                return Ok(());
            }
        }
    }

    fn bound(&self) -> Result<&Bound, CtrlError> {
        self.bound.as_ref().ok_or_else(|| CtrlError::Program("the client is not bound to a program".into()))
    }

    /// Whether the device is of the second generation; `false` before a program is bound.
    pub(crate) fn is_second(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.second)
    }

    // ---- Reads

    /// Reads what P4Runtime's entities name. Leaves out what is not there.
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
                Some(Kind::ValueSetEntry(_)) => return Err(unoffered("value sets")),
                Some(Kind::DigestEntry(_)) => return Err(unoffered("digests")),
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
                // As P4Runtime tells of counters and meters only who asks.
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

    async fn groups(&mut self, wanted: Option<u32>) -> Result<Vec<Group>, CtrlError> {
        let schema = &self.bound()?.schema;
        let all = |table: &str| {
            schema.table(table).map(|table| TableEntry { table_id: table.id, ..Default::default() })
        };
        let (nodes, groups) = (all(NODE).map_err(program_error)?, all(MGID).map_err(program_error)?);
        let (nodes, groups) = (self.ask(vec![nodes]).await?, self.ask(vec![groups]).await?);
        let schema = &self.bound()?.schema;
        let read = |entries: Vec<TableEntry>| {
            entries.iter().map(|entry| Entry::read(schema, entry)).collect::<Result<Vec<Entry>, _>>()
        };
        let (nodes, groups) = (read(nodes).map_err(program_error)?, read(groups).map_err(program_error)?);
        let mut found = groups::read(&nodes, &groups);
        found.retain(|group| wanted.is_none_or(|wanted| wanted == group.id));
        Ok(found)
    }

    async fn sessions(&mut self, wanted: Option<u32>) -> Result<Vec<Session>, CtrlError> {
        let schema = &self.bound()?.schema;
        let table = schema.table(SESSIONS).map_err(program_error)?;
        let entry = match wanted {
            Some(id) => Session::key(id).build(schema).map_err(program_error)?,
            None => TableEntry { table_id: table.id, ..Default::default() },
        };
        let answers = self.ask(vec![entry]).await?;
        let schema = &self.bound()?.schema;
        let read = answers.iter().map(|entry| Entry::read(schema, entry)).collect::<Result<Vec<Entry>, _>>();
        Ok(read.map_err(program_error)?.iter().filter_map(Session::read).collect())
    }

    async fn ask(&mut self, entries: Vec<TableEntry>) -> Result<Vec<TableEntry>, CtrlError> {
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

    // ---- Writes

    /// Writes updates of P4Runtime's entities, each for itself. The error lists all that were refused.
    pub async fn write(&mut self, schema: &p4::Schema, updates: &[v1::Update]) -> Result<(), CtrlError> {
        self.write_phases(schema, std::iter::once(updates), updates.len()).await
    }

    /// Writes phase after phase. Stops after one with a refused update.
    pub(crate) async fn write_phases<'a>(
        &mut self,
        schema: &p4::Schema,
        phases: impl Iterator<Item = &'a [v1::Update]>,
        total: usize,
    ) -> Result<(), CtrlError> {
        let mut before = 0;
        for updates in phases {
            let mut failures = self.write_phase(updates).await?;
            if !failures.is_empty() {
                failures.sort_by_key(|(at, _)| *at);
                failures.dedup_by_key(|(at, _)| *at);
                let failure = |(at, error): (usize, UpdateError)| {
                    let what =
                        updates[at].entity.as_ref().map_or_else(String::new, |entity| name(schema, entity));
                    UpdateFailure { number: before + at + 1, total, what, error }
                };
                return Err(CtrlError::Updates { failures: failures.into_iter().map(failure).collect() });
            }
            before += updates.len();
        }
        Ok(())
    }

    async fn write_phase(&mut self, updates: &[v1::Update]) -> Result<Vec<(usize, UpdateError)>, CtrlError> {
        let mut failures = Vec::new();
        let (mut made, mut groups) = (Vec::with_capacity(updates.len()), Vec::new());
        for (at, update) in updates.iter().enumerate() {
            let entity = update.entity.as_ref();
            if let Some(Kind::PacketReplicationEngineEntry(_)) =
                entity.and_then(|entity| entity.entity.as_ref())
            {
                groups.push((at, update));
                continue;
            }
            match self.update(update) {
                Ok(one) => made.push((at, one)),
                Err(error) => failures.push((at, error)),
            }
        }
        let mut batches = made.chunks(BATCH);
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < OUTSTANDING
                && let Some(batch) = batches.next()
            {
                let request = self.request(batch.iter().map(|(_, update)| update.clone()).collect())?;
                let places: Vec<usize> = batch.iter().map(|(at, _)| *at).collect();
                let mut grpc = self.grpc.clone();
                under_way.spawn(async move { (places, grpc.write(request).await) });
            }
            let Some(ended) = under_way.join_next().await else { break };
            let (places, answer) = ended.map_err(|error| CtrlError::Ended(error.to_string()))?;
            let Err(status) = answer else { continue };
            let Some(outcomes) = unpack(&status) else {
                return Err(refused("writing entries")(status));
            };
            let failed = places.into_iter().zip(outcomes).filter_map(|(at, outcome)| Some((at, outcome?)));
            failures.extend(failed);
        }
        for (at, update) in groups {
            if let Some(error) = self.write_group(update).await? {
                failures.push((at, error));
            }
        }
        Ok(failures)
    }

    /// What a caller needs to write by itself: the client, an empty request, and the names.
    pub(crate) fn writer(&self) -> Result<(BfRuntimeClient<Channel>, WriteRequest, &Schema), CtrlError> {
        Ok((self.grpc.clone(), self.request(Vec::new())?, &self.bound()?.schema))
    }

    fn request(&self, updates: Vec<bfrt::Update>) -> Result<WriteRequest, CtrlError> {
        Ok(WriteRequest {
            target: Some(EVERYWHERE),
            client_id: self.client_id,
            updates,
            p4_name: self.bound()?.p4_name.clone(),
            ..Default::default()
        })
    }

    /// An update that is not of a group.
    fn update(&self, update: &v1::Update) -> Result<bfrt::Update, UpdateError> {
        let internal = |error: CtrlError| UpdateError::new(Code::FailedPrecondition, error.to_string());
        let translation = &self.bound().map_err(internal)?.translation;
        let Some(entity) = &update.entity else {
            return Err(UpdateError::new(Code::InvalidArgument, "the update's entity is not set"));
        };
        let mut entry = translation.entry(entity)?;
        let resets = matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action && entry.action.is_none());
        let kind = match update.r#type() {
            _ if resets => bfrt::update::Type::Delete,
            v1::update::Type::Insert => bfrt::update::Type::Insert,
            v1::update::Type::Delete => bfrt::update::Type::Delete,
            _ => bfrt::update::Type::Modify,
        };
        if kind == bfrt::update::Type::Delete {
            entry.data = None;
        }
        if kind == bfrt::update::Type::Modify {
            // As P4Runtime means it: counters change if they are given, and a time to live begins anew.
            let reset_stats =
                matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.counter_data.is_some());
            entry.table_flags = Some(TableFlags { reset_stats, reset_ttl: true, ..Default::default() });
        }
        let entity = Some(entity::Entity::TableEntry(entry));
        Ok(bfrt::Update { r#type: kind as i32, entity: Some(Entity { entity }) })
    }

    /// Writes a multicast group or a clone session.
    async fn write_group(&mut self, update: &v1::Update) -> Result<Option<UpdateError>, CtrlError> {
        let entry = match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
            Some(Kind::PacketReplicationEngineEntry(entry)) => &entry.r#type,
            _ => return Ok(None),
        };
        let updates = match entry {
            Some(Replication::MulticastGroupEntry(given)) => match Group::of(given) {
                Ok(wanted) => self.group_updates(update.r#type(), &wanted).await?,
                Err(error) => return Ok(Some(error)),
            },
            Some(Replication::CloneSessionEntry(given)) => self.session_update(update.r#type(), given)?,
            None => return Ok(None),
        };
        let updates = match updates {
            Ok(updates) => updates,
            Err(error) => return Ok(Some(error)),
        };
        let whole = bfrt::write_request::Atomicity::RollbackOnError as i32;
        let request = WriteRequest { atomicity: whole, ..self.request(updates)? };
        match self.grpc.write(request).await {
            Ok(_) => Ok(None),
            Err(status) => match unpack(&status).and_then(|outcomes| outcomes.into_iter().flatten().next()) {
                Some(error) => Ok(Some(error)),
                None => Err(refused("writing entries")(status)),
            },
        }
    }

    /// What makes a multicast group: what it was goes, then what it shall be comes, in one Write. If it can't be what it
    /// shall be, it stays what it was.
    async fn group_updates(&mut self, kind: v1::update::Type, wanted: &Group) -> Result<Updates, CtrlError> {
        let (removes, adds) = match kind {
            v1::update::Type::Insert => (false, true),
            v1::update::Type::Delete => (true, false),
            _ => (true, true),
        };
        let there = if removes { self.groups(Some(wanted.id)).await?.pop() } else { None };
        if removes && there.is_none() {
            let message = format!("there is no multicast group {}", wanted.id);
            return Ok(Err(UpdateError::new(Code::NotFound, message)));
        }
        let mut updates = Vec::new();
        if let Some(there) = there {
            updates.push(self.fixed(bfrt::update::Type::Delete, there.key())?);
            for node in there.node_keys() {
                updates.push(self.fixed(bfrt::update::Type::Delete, node)?);
            }
        }
        if adds {
            for node in wanted.nodes() {
                updates.push(self.fixed(bfrt::update::Type::Insert, node)?);
            }
            updates.push(self.fixed(bfrt::update::Type::Insert, wanted.entry())?);
        }
        Ok(Ok(updates))
    }

    /// What makes a clone session.
    fn session_update(
        &self,
        kind: v1::update::Type,
        given: &v1::CloneSessionEntry,
    ) -> Result<Updates, CtrlError> {
        if kind == v1::update::Type::Delete {
            let key = Session::key(given.session_id);
            return Ok(Ok(vec![self.fixed(bfrt::update::Type::Delete, key)?]));
        }
        let session = match Session::of(given) {
            Ok(session) => session,
            Err(error) => return Ok(Err(error)),
        };
        let kind = match kind {
            v1::update::Type::Insert => bfrt::update::Type::Insert,
            _ => bfrt::update::Type::Modify,
        };
        Ok(Ok(vec![self.fixed(kind, session.entry())?]))
    }

    /// An update of one of the device's own tables.
    fn fixed(&self, kind: bfrt::update::Type, entry: Entry) -> Result<bfrt::Update, CtrlError> {
        let entry = entry.build(&self.bound()?.schema).map_err(program_error)?;
        let entity = Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        Ok(bfrt::Update { r#type: kind as i32, entity: Some(entity) })
    }
}

/// Updates, or why there are none.
type Updates = Result<Vec<bfrt::Update>, UpdateError>;

fn own_program(desired: &Desired) -> Result<&BfrtProgram, CtrlError> {
    let none = || {
        CtrlError::Program("the program has no BFRuntime schema: generate it for Tofino, --to tofino".into())
    };
    desired.bfrt.as_ref().ok_or_else(none)
}

/// An error of one entity as one of the call.
fn update_error(error: UpdateError) -> CtrlError {
    let status = Status::new(tonic::Code::from(error.code as i32), error.message);
    refused("translating an entry")(status)
}

fn unoffered(what: &str) -> CtrlError {
    refused("reading entries")(Status::unimplemented(format!("{what} are not read over BFRuntime")))
}

/// The errors in a status, one for each update or entity up to the last that failed; `None` if it has none.
fn unpack(status: &Status) -> Option<Vec<Option<UpdateError>>> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    if details.is_empty() {
        return None;
    }
    let one = |any: &prost_types::Any| {
        let error = bfrt::Error::decode(any.value.as_slice()).ok()?;
        Some(match Code::try_from(error.canonical_code).unwrap_or(Code::Unknown) {
            Code::Ok => None,
            code => Some(UpdateError::new(code, error.message)),
        })
    };
    details.iter().map(one).collect()
}
