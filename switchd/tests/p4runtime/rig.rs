//! A switch in a thread, a server on a port of the system's choice, and clients.

use p4rack_netdev::{clock, wait::Poller};
use p4rack_p4::{Compiled, Options};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::{Entry, table_update};
use p4rack_p4rt::errors::{UpdateError, unpack};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::{self, *};
use p4rack_p4rt::schema::Schema;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_switchd::core::{self, Handle, Shared};
use p4rack_switchd::server::{ServerConfig, ServerTls, bind, serve_on};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

pub const PROGRAM: &str = include_str!("rig.p4");
pub const DEVICE: u64 = 7;
pub const CPU: u16 = 510;

pub struct Rig {
    pub handle: Handle,
    pub addr: String,
    pub sent: Arc<Mutex<Vec<(u16, Vec<u8>)>>>,
    stop: Arc<AtomicBool>,
    shutdown: Option<oneshot::Sender<()>>,
    pub server: Option<tokio::task::JoinHandle<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::start_with(|_| {}).await
    }

    pub async fn encrypted(tls: ServerTls) -> Rig {
        Rig::start_with(|config| config.tls = Some(tls)).await
    }

    pub async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Rig {
        Rig::start_on(Config::default(), change).await
    }

    /// Of the switch's configuration, ports and CPU port are the rig's own.
    pub async fn start_on(config: Config, change: impl FnOnce(&mut ServerConfig)) -> Rig {
        let (handle, mut jobs, events, from_plane) = core::channel().unwrap();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, out) = (stop.clone(), sent.clone());
        let ports = (1..=4).map(|port| PortConfig::new(port, 0)).collect();
        let config = Config { ports, cpu_port: Some(CPU), ..config };
        let shared = Shared::new(Switch::new(config));
        let handle = handle.sharing(shared.clone());
        let thread = std::thread::spawn(move || {
            let mut poller = Poller::new();
            poller.add(&jobs).unwrap();
            let mut frame = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let soon = clock::now() + p4rack_wire::Nanos::from_millis(5);
                poller.wait(Some(soon)).unwrap();
                let mut switch = shared.lock();
                jobs.run_pending(&mut switch, clock::now());
                while let Some(port) = switch.poll_transmit(clock::now(), &mut frame) {
                    out.lock().unwrap().push((port, frame.clone()));
                }
                events.send_pending(&mut switch, &mut frame);
            }
        });
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (shutdown, stopping) = oneshot::channel();
        let mut server_config = ServerConfig { cpu_port: Some(CPU), ..ServerConfig::new(addr, DEVICE) };
        change(&mut server_config);
        let server = tokio::spawn(serve_on(listener, handle.clone(), from_plane, server_config, async {
            let _ = stopping.await;
        }));
        let server = tokio::spawn(async move { server.await.unwrap().unwrap() });
        Rig {
            handle,
            addr: addr.to_string(),
            sent,
            stop,
            shutdown: Some(shutdown),
            server: Some(server),
            thread: Some(thread),
        }
    }

    /// With the program installed and a primary.
    pub async fn ready() -> (Rig, Client) {
        let rig = Rig::start().await;
        let mut client = Client::connect(&rig).await;
        client.become_primary(1).await;
        client.install().await.unwrap();
        (rig, client)
    }

    pub fn shut_down(&mut self) {
        let _ = self.shutdown.take().unwrap().send(());
    }

    pub async fn inject(&self, port: u16, frame: &[u8]) {
        let frame = frame.to_vec();
        self.handle.call(move |switch, now| switch.handle_frame(port, &frame, now)).await.unwrap();
    }

    /// The frames sent so far, once there are `count`.
    pub async fn sent(&self, count: usize) -> Vec<(u16, Vec<u8>)> {
        for _ in 0..200 {
            let sent = self.sent.lock().unwrap().clone();
            if sent.len() >= count {
                return sent;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.sent.lock().unwrap().clone()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

pub fn compiled() -> &'static Compiled {
    static COMPILED: std::sync::OnceLock<Compiled> = std::sync::OnceLock::new();
    COMPILED.get_or_init(|| {
        p4rack_p4::compile(PROGRAM, "rig.p4", &Options::default())
            .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(false)))
    })
}

pub fn schema() -> &'static Schema {
    static SCHEMA: std::sync::OnceLock<Schema> = std::sync::OnceLock::new();
    SCHEMA.get_or_init(|| Schema::new(compiled().p4info.clone()).unwrap())
}

pub fn config() -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(compiled().p4info.clone()),
        p4_device_config: PROGRAM.into(),
        cookie: Some(forwarding_pipeline_config::Cookie { cookie: 42 }),
    }
}

pub fn election(id: u128) -> Option<Uint128> {
    Some(Uint128 { high: (id >> 64) as u64, low: id as u64 })
}

pub struct Client {
    pub rpc: P4RuntimeClient<Channel>,
    pub out: mpsc::Sender<StreamMessageRequest>,
    pub stream: Streaming<StreamMessageResponse>,
    pub election: u128,
}

impl Client {
    pub async fn connect(rig: &Rig) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", rig.addr)).unwrap();
        // One error for each update of a large Write.
        let channel = endpoint.http2_max_header_list_size(1 << 20).connect().await.unwrap();
        let mut rpc = P4RuntimeClient::new(channel)
            .max_decoding_message_size(1 << 28)
            .max_encoding_message_size(1 << 28);
        let (out, requests) = mpsc::channel(64);
        let stream = rpc.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Client { rpc, out, stream, election: 1 }
    }

    pub async fn send(&self, update: stream_message_request::Update) {
        self.out.send(StreamMessageRequest { update: Some(update) }).await.unwrap();
    }

    pub async fn arbitrate(&self, device_id: u64, role: &str, election_id: Option<Uint128>) {
        let role = Role { name: role.into(), ..Default::default() };
        let role = (!role.name.is_empty()).then_some(role);
        let update = MasterArbitrationUpdate { device_id, role, election_id, status: None };
        self.send(stream_message_request::Update::Arbitration(update)).await;
    }

    /// The next message, or how the stream ended.
    pub async fn next(&mut self) -> Result<stream_message_response::Update, Status> {
        let message = tokio::time::timeout(Duration::from_secs(5), self.stream.message()).await;
        let message = message.expect("a message within 5 s")?;
        Ok(message.ok_or_else(|| Status::ok("closed"))?.update.unwrap())
    }

    pub async fn next_arbitration(&mut self) -> (Code, Option<Uint128>) {
        match self.next().await.unwrap() {
            stream_message_response::Update::Arbitration(update) => {
                let code = Code::try_from(update.status.unwrap().code).unwrap();
                (code, update.election_id)
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn become_primary(&mut self, id: u128) {
        self.election = id;
        self.arbitrate(DEVICE, "", election(id)).await;
        assert_eq!(self.next_arbitration().await, (Code::Ok, election(id)));
    }

    pub async fn set(
        &mut self,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: election(self.election),
            action: action as i32,
            config,
            ..Default::default()
        };
        self.rpc.set_forwarding_pipeline_config(request).await.map(|_| ())
    }

    pub async fn install(&mut self) -> Result<(), Status> {
        self.set(Action::VerifyAndCommit, Some(config())).await
    }

    pub async fn get(
        &mut self,
        kind: get_forwarding_pipeline_config_request::ResponseType,
    ) -> Option<ForwardingPipelineConfig> {
        let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, response_type: kind as i32 };
        self.rpc.get_forwarding_pipeline_config(request).await.unwrap().into_inner().config
    }

    pub async fn write_all(&mut self, updates: Vec<Update>) -> Result<(), Status> {
        let request = WriteRequest {
            device_id: DEVICE,
            election_id: election(self.election),
            updates,
            ..Default::default()
        };
        self.rpc.write(request).await.map(|_| ())
    }

    /// One update; its own error.
    pub async fn write(&mut self, kind: update::Type, entity: EntityKind) -> Result<(), UpdateError> {
        let update = Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) };
        self.write_all(vec![update]).await.map_err(|status| {
            assert_eq!(status.code(), tonic::Code::Unknown, "{status:?}");
            let mut outcomes = unpack(status.details()).unwrap();
            assert_eq!(outcomes.len(), 1);
            outcomes.remove(0).unwrap_err()
        })
    }

    pub async fn entry(&mut self, kind: update::Type, entry: TableEntry) -> Result<(), UpdateError> {
        let Some(Entity { entity: Some(entity) }) = table_update(kind, entry).entity else { panic!() };
        self.write(kind, entity).await
    }

    pub async fn insert(&mut self, entry: Entry) -> Result<(), UpdateError> {
        self.entry(update::Type::Insert, entry.build(schema()).unwrap()).await
    }

    pub async fn read(&mut self, entity: EntityKind) -> Result<Vec<EntityKind>, Status> {
        self.read_all(vec![v1::Entity { entity: Some(entity) }]).await.0
    }

    /// Entities read before the end, and how the read ended.
    pub async fn read_all(&mut self, entities: Vec<Entity>) -> (Result<Vec<EntityKind>, Status>, usize) {
        let request = ReadRequest { device_id: DEVICE, role: String::new(), entities };
        let mut stream = match self.rpc.read(request).await {
            Ok(stream) => stream.into_inner(),
            Err(status) => return (Err(status), 0),
        };
        let mut found = Vec::new();
        loop {
            match stream.message().await {
                Ok(Some(answer)) => found.extend(answer.entities.into_iter().map(|e| e.entity.unwrap())),
                Ok(None) => {
                    let count = found.len();
                    return (Ok(found), count);
                }
                Err(status) => return (Err(status), found.len()),
            }
        }
    }

    pub async fn table(&mut self, request: TableEntry) -> Vec<TableEntry> {
        let found = self.read(EntityKind::TableEntry(request)).await.unwrap();
        let entry = |entity| match entity {
            EntityKind::TableEntry(entry) => entry,
            other => panic!("{other:?}"),
        };
        found.into_iter().map(entry).collect()
    }
}

/// Id of a table by its alias.
pub fn table_id(name: &str) -> u32 {
    p4rack_p4rt::schema::id_of(schema().table(name).unwrap().preamble.as_ref())
}

pub fn wildcard(table: &str) -> TableEntry {
    TableEntry { table_id: if table.is_empty() { 0 } else { table_id(table) }, ..Default::default() }
}

pub fn dmac(last: u8, port: u16) -> Entry {
    Entry::of("dmac").exact("hdr.ethernet.dst", [2, 0, 0, 0, 0, last]).action("forward").param("port", port)
}

pub fn frame(last: u8, ether_type: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 99];
    frame.extend(ether_type.to_be_bytes());
    frame.resize(64, 0xee);
    frame
}
