//! A switch in a thread, both servers on ports of the system's choice, and clients of BFRuntime.

use p4rack_bfrt::{Entry, Schema};
use p4rack_netdev::{clock, wait::Poller};
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::forwarding_pipeline_config::Profile;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::{Action, DevInitMode};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_switchd::core;
use p4rack_switchd::server::{ServerConfig, bind, serve_both};
use p4rack_wire::Nanos;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

pub const PROGRAM: &str = include_str!("rig.p4");
pub const NAME: &str = "rig";
pub const ALL: TargetDevice = TargetDevice { device_id: 0, pipe_id: 0xffff, direction: 0xff, prsr_id: 0xff };

pub struct Rig {
    pub addr: String,
    pub p4runtime: String,
    pub handle: core::Handle,
    stop: Arc<AtomicBool>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::with_ports(&[1, 2, 3, 4]).await
    }

    pub async fn with_ports(ports: &[u16]) -> Rig {
        Rig::with(Config { ports: ports_of(ports), ..Config::default() }).await
    }

    pub async fn with(config: Config) -> Rig {
        let (handle, mut jobs, events, from_plane) = core::channel().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            let mut switch = Switch::new(config);
            let (mut poller, mut frame) = (Poller::new(), Vec::new());
            poller.add(&jobs).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                poller.wait(Some(clock::now() + Nanos::from_millis(1))).unwrap();
                jobs.run_pending(&mut switch, clock::now());
                while switch.poll_transmit(clock::now(), &mut frame).is_some() {}
                events.send_pending(&mut switch, &mut frame);
            }
        });
        let any = || bind("127.0.0.1:0".parse().unwrap());
        let (p4runtime, bfrt) = (any().await.unwrap(), any().await.unwrap());
        let addr = bfrt.local_addr().unwrap().to_string();
        let own = p4runtime.local_addr().unwrap();
        let config = ServerConfig::new(own, 1);
        let (gone, inside) = (handle.clone(), handle.clone());
        tokio::spawn(serve_both(p4runtime, Some(bfrt), handle, from_plane, config, async move {
            gone.gone().await
        }));
        Rig { addr, p4runtime: own.to_string(), handle: inside, stop }
    }

    /// A client with the program, bound to it.
    pub async fn bound(&self) -> Client {
        self.bound_to(PROGRAM).await
    }

    /// The same with another program, which has the same name.
    pub async fn bound_to(&self, text: &str) -> Client {
        let mut client = Client::subscribe(self, 0).await.unwrap();
        client.set(Action::VerifyAndWarmInitBeginAndEnd, whole(text)).await.unwrap();
        client.set(Action::Bind, named(NAME)).await.unwrap();
        client
    }

    /// A client that wants to hear of ports.
    pub async fn hearing(&self, id: u32) -> Client {
        Client::hearing(self, id, true).await.unwrap()
    }

    /// The frame that leaves for one that comes in by a port.
    pub async fn pass(&self, port: u16, frame: &[u8]) -> Vec<u8> {
        let frame = frame.to_vec();
        let pass = move |switch: &mut Switch, now| {
            let mut out = Vec::new();
            switch.forward_frame(port, &frame, now, &mut out).map(|_| out)
        };
        self.handle.call(pass).await.unwrap().unwrap()
    }
}

pub fn ports_of(ports: &[u16]) -> Vec<PortConfig> {
    ports.iter().map(|port| PortConfig::new(*port, 0)).collect()
}

pub struct Client {
    pub id: u32,
    pub grpc: BfRuntimeClient<Channel>,
    pub out: mpsc::Sender<StreamMessageRequest>,
    pub stream: Streaming<StreamMessageResponse>,
}

pub fn schema_text() -> String {
    schema_text_of(PROGRAM)
}

fn schema_text_of(text: &str) -> String {
    let compiled = p4rack_p4::compile(text, NAME, &p4rack_p4::Options::default());
    compiled.unwrap_or_else(|error| panic!("{}", error.render(false))).bf_rt().unwrap().to_string()
}

/// The program's tables and the device's.
pub async fn schema(client: &mut Client) -> Schema {
    let request = GetForwardingPipelineConfigRequest { device_id: 0, client_id: client.id };
    let answer = client.grpc.get_forwarding_pipeline_config(request).await.unwrap().into_inner();
    let mut schema = Schema::parse(&answer.config[0].bfruntime_info).unwrap();
    schema.add(&answer.non_p4_config.unwrap().bfruntime_info).unwrap();
    schema
}

pub fn config(text: &str) -> ForwardingPipelineConfig {
    let profile = Profile { profile_name: "pipe".into(), binary: text.into(), ..Default::default() };
    let bfruntime_info = schema_text().into_bytes();
    ForwardingPipelineConfig { p4_name: NAME.into(), bfruntime_info, profiles: vec![profile] }
}

/// A program with its own schema.
pub fn whole(text: &str) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig { bfruntime_info: schema_text_of(text).into_bytes(), ..config(text) }
}

pub fn named(name: &str) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig { p4_name: name.into(), ..Default::default() }
}

impl Client {
    pub async fn subscribe(rig: &Rig, id: u32) -> Result<Client, String> {
        Client::hearing(rig, id, false).await
    }

    /// One that may want to hear of ports, too.
    async fn hearing(rig: &Rig, id: u32, ports: bool) -> Result<Client, String> {
        let mut grpc = BfRuntimeClient::connect(format!("http://{}", rig.addr)).await.unwrap();
        let (out, requests) = mpsc::channel(4);
        let wanted = subscribe::Notifications {
            enable_learn_notifications: true,
            enable_idletimeout_notifications: true,
            enable_entry_active_notifications: true,
            enable_port_status_change_notifications: ports,
            ..Default::default()
        };
        let update = Some(stream_message_request::Update::Subscribe(Subscribe {
            notifications: Some(wanted),
            ..Default::default()
        }));
        out.send(StreamMessageRequest { client_id: id, update }).await.unwrap();
        let mut stream = grpc.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
        match stream.message().await.unwrap().unwrap().update {
            Some(stream_message_response::Update::Subscribe(told)) => match told.status.unwrap() {
                rpc::Status { code: 0, .. } => Ok(Client { id, grpc, out, stream }),
                refused => Err(refused.message),
            },
            other => panic!("{other:?}"),
        }
    }

    pub async fn set(&mut self, action: Action, config: ForwardingPipelineConfig) -> Result<(), Status> {
        self.set_in(DevInitMode::FastReconfig, action, config).await
    }

    pub async fn set_in(
        &mut self,
        mode: DevInitMode,
        action: Action,
        config: ForwardingPipelineConfig,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            client_id: self.id,
            action: action as i32,
            dev_init_mode: mode as i32,
            config: if config == Default::default() { Vec::new() } else { vec![config] },
            ..Default::default()
        };
        self.grpc.set_forwarding_pipeline_config(request).await.map(|_| ())
    }

    pub async fn write(&mut self, atomicity: Atomicity, updates: Vec<Update>) -> Result<(), Status> {
        self.write_to(ALL, atomicity, updates).await
    }

    pub async fn write_to(
        &mut self,
        target: TargetDevice,
        atomicity: Atomicity,
        updates: Vec<Update>,
    ) -> Result<(), Status> {
        let request = WriteRequest {
            target: Some(target),
            client_id: self.id,
            updates,
            atomicity: atomicity as i32,
            p4_name: NAME.into(),
        };
        self.grpc.write(request).await.map(|_| ())
    }

    /// One update, and its error.
    pub async fn one(&mut self, kind: Type, entry: TableEntry) -> Result<(), (i32, String)> {
        let written = self.write(Atomicity::ContinueOnError, vec![update(kind, entry)]).await;
        written.map_err(|status| errors(&status).pop().unwrap())
    }

    pub async fn read(&mut self, entities: Vec<entity::Entity>) -> Result<Vec<Entity>, Status> {
        let entities = entities.into_iter().map(|entity| Entity { entity: Some(entity) }).collect();
        let request = ReadRequest { target: Some(ALL), client_id: self.id, entities, p4_name: NAME.into() };
        let mut answers = self.grpc.read(request).await?.into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await? {
            found.extend(answer.entities);
        }
        Ok(found)
    }

    /// All entries of a table, with counters and registers as the switch has them.
    pub async fn entries(&mut self, schema: &Schema, table: &str) -> Vec<Entry> {
        let all = from_switch(all_of(schema, table));
        let found = self.read(vec![entity::Entity::TableEntry(all)]).await.unwrap();
        let one = |found: Entity| match found.entity {
            Some(entity::Entity::TableEntry(entry)) => Entry::read(schema, &entry).unwrap(),
            other => panic!("{other:?}"),
        };
        found.into_iter().map(one).filter(|entry| !entry.is_default()).collect()
    }
}

/// A Write with metadata.
pub async fn write_with(
    client: &mut Client,
    metadata: &'static str,
    atomicity: Atomicity,
    updates: Vec<Update>,
) -> Result<WriteResponse, Status> {
    let request = WriteRequest {
        target: Some(ALL),
        client_id: client.id,
        updates,
        atomicity: atomicity as i32,
        p4_name: NAME.into(),
    };
    let mut request = tonic::Request::new(request);
    request.metadata_mut().insert(metadata, "1".parse().unwrap());
    client.grpc.write(request).await.map(tonic::Response::into_inner)
}

/// A read that asks the switch itself.
pub fn from_switch(asked: TableEntry) -> TableEntry {
    TableEntry { table_flags: Some(TableFlags { from_hw: true, ..Default::default() }), ..asked }
}

/// An entry of a pipe.
pub fn in_pipe(pipe_id: u32, entry: TableEntry) -> TableEntry {
    TableEntry { entry_tgt: Some(TargetDevice { pipe_id, ..ALL }), ..entry }
}

/// All entries of a table.
pub fn all_of(schema: &Schema, table: &str) -> TableEntry {
    TableEntry { table_id: schema.table(table).unwrap().id, ..Default::default() }
}

/// An update of an attribute.
pub fn attribute(table_id: u32, attribute: table_attribute::Attribute) -> Update {
    let attribute = TableAttribute { table_id, attribute: Some(attribute) };
    let entity = Some(Entity { entity: Some(entity::Entity::TableAttribute(attribute)) });
    Update { r#type: 0, entity }
}

/// An update of the scope in pipes.
pub fn scope(table_id: u32, pipes: mode::Scope) -> Update {
    let pipe_scope = Some(Mode { scope: Some(pipes), args: 0 });
    let scope = EntryScope { pipe_scope, ..Default::default() };
    attribute(table_id, table_attribute::Attribute::EntryScope(scope))
}

pub fn update(kind: Type, entry: TableEntry) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) }) }
}

/// Codes and messages in a status, up to the last that failed.
pub fn errors(status: &Status) -> Vec<(i32, String)> {
    assert_eq!(status.code(), Code::Unknown, "{status}");
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let one = |any: &prost_types::Any| {
        let error = Error::decode(&any.value[..]).unwrap();
        (error.canonical_code, error.message)
    };
    details.iter().map(one).collect()
}

pub fn to(mac: u64, port: u16) -> Entry {
    Entry::of("exact_dst")
        .exact("hdr.ethernet.dst", mac.into())
        .action("send")
        .data("port", port)
        .data("queue", 3u16)
}
