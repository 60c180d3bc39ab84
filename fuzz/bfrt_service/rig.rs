//! A switch with a program, the server in the same process, and a client that is bound.

use p4rack_bfrt::{Entry, Schema};
use p4rack_entities::Candidate;
use p4rack_p4::Compiled;
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::forwarding_pipeline_config::Profile;
use p4rack_p4rt::bfrt_proto::stream_message_request::Update as Said;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_switchd::core::{self, EventSender, Handle, Jobs};
use p4rack_switchd::server::{Inside, InsideConnection};
use p4rack_wire::Nanos;
use prost::Message;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

pub const PROGRAM: &str = include_str!("../seeds/bfrt_service.p4");
pub const NAME: &str = "guarded";
/// The client that is bound, and to where its entries send frames.
pub const BOUND: u32 = 0;
pub const OUT: u16 = 3;
pub const ALL: TargetDevice = TargetDevice { device_id: 0, pipe_id: 0xffff, direction: 0xff, prsr_id: 0xff };
/// Streams of others.
pub const STREAMS: usize = 2;
/// Far longer than an answer takes.
const PATIENCE: Duration = Duration::from_secs(8);

pub type Client = BfRuntimeClient<InsideConnection>;
/// Both ends of a stream.
type Stream = (mpsc::Sender<StreamMessageRequest>, Streaming<StreamMessageResponse>);

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let compiled = p4rack_p4::compile(PROGRAM, NAME, &p4rack_p4::Options::default());
    compiled.unwrap_or_else(|error| panic!("{}", error.render(false)))
});
/// The program's schema.
static BF_RT: LazyLock<Vec<u8>> =
    LazyLock::new(|| COMPILED.bf_rt().expect("for TNA").to_string().into_bytes());
/// Tables of the program and of the device, as the server described them first.
static SCHEMA: OnceLock<Schema> = OnceLock::new();

/// Runs the switch between requests, in a time of its own.
pub async fn plane(mut switch: Switch, mut jobs: Jobs, events: EventSender) {
    let (mut now, mut frame) = (Nanos::from_millis(1), Vec::new());
    loop {
        now = now.saturating_add(Nanos::from_micros(1));
        jobs.run_pending(&mut switch, now);
        for _ in 0..64 {
            if switch.poll_transmit(now, &mut frame).is_none() {
                break;
            }
        }
        events.send_pending(&mut switch, &mut frame);
        tokio::task::yield_now().await;
    }
}

pub async fn answered<T>(call: impl Future<Output = T>) -> T {
    timeout(PATIENCE, call).await.expect("each request is answered")
}

/// Where frames of a kind go.
pub async fn passes(handle: &Handle, port: u16, dst: u64, kind: u16) -> Option<(u16, Vec<u8>)> {
    let mut frame = dst.to_be_bytes()[2..].to_vec();
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(kind.to_be_bytes());
    frame.resize(64, 0);
    let forward = move |switch: &mut Switch, now| {
        let mut out = Vec::new();
        switch.forward_frame(port, &frame, now, &mut out).map(|to| (to, out))
    };
    handle.call(forward).await.expect("the switch is there")
}

pub struct Rig {
    /// The server, which ends with it.
    _inside: Inside,
    pub handle: Handle,
    pub client: Client,
    pub others: Client,
    pub schema: &'static Schema,
    pub streams: [Option<Stream>; STREAMS],
    _stream: Stream,
}

pub async fn open(client: &mut Client) -> Stream {
    let (sender, requests) = mpsc::channel(8);
    let stream = answered(client.stream_channel(ReceiverStream::new(requests))).await;
    (sender, stream.expect("there is room for streams").into_inner())
}

pub fn config() -> ForwardingPipelineConfig {
    let profile = Profile { profile_name: "pipe".into(), binary: PROGRAM.into(), ..Default::default() };
    ForwardingPipelineConfig { p4_name: NAME.into(), bfruntime_info: BF_RT.clone(), profiles: vec![profile] }
}

impl Rig {
    pub async fn start() -> (Rig, tokio::task::AbortHandle) {
        let (handle, jobs, events, from_plane) = core::channel().expect("descriptors");
        let ports = (1..5).map(|port| PortConfig::new(port, 0)).collect();
        let switch = Switch::new(Config { ports, ..Config::default() });
        let plane = tokio::spawn(plane(switch, jobs, events)).abort_handle();
        let mut program = Candidate::new(PROGRAM, COMPILED.clone()).expect("the switch runs it");
        program.program.name = NAME.into();
        let inside = Inside::start(handle.clone(), from_plane, Some(program)).await;
        let inside = inside.expect("the switch is there");
        let connect = || {
            let client = Client::new(inside.connect().expect("there is room"));
            client.max_decoding_message_size(usize::MAX)
        };
        let (mut client, others) = (connect(), connect());
        let stream = open(&mut client).await;
        let subscribe = Some(Said::Subscribe(Subscribe::default()));
        let first = StreamMessageRequest { client_id: BOUND, update: subscribe };
        stream.0.send(first).await.expect("it is open");
        let mut stream = stream;
        stream.1.message().await.expect("it subscribes").expect("it subscribes");
        let named = ForwardingPipelineConfig { p4_name: NAME.into(), ..Default::default() };
        let bind = SetForwardingPipelineConfigRequest {
            client_id: BOUND,
            config: vec![named],
            ..Default::default()
        };
        client.set_forwarding_pipeline_config(bind).await.expect("it is the first");
        if SCHEMA.get().is_none() {
            let asked = GetForwardingPipelineConfigRequest { device_id: 0, client_id: BOUND };
            let told = client.get_forwarding_pipeline_config(asked).await.expect("it is told").into_inner();
            let mut schema = Schema::parse(&BF_RT).expect("its own");
            schema.add(&told.non_p4_config.expect("of the device").bfruntime_info).expect("other tables");
            let _ = SCHEMA.set(schema);
        }
        let schema = SCHEMA.get().expect("set before");
        let (streams, _stream) = (Default::default(), stream);
        let rig = Rig { _inside: inside, handle, client, others, schema, streams, _stream };
        (rig, plane)
    }

    pub async fn write_guarded(&mut self, kind: update::Type, dst: u64) {
        let entry = Entry::of("kept").exact("hdr.h.dst", dst.into()).action("send").data("port", OUT);
        let entry = entry.build(self.schema).expect("as in the schema");
        let entry = if kind == update::Type::Delete { TableEntry { data: None, ..entry } } else { entry };
        self.write_bound(kind, entry).await.expect("it is bound");
    }

    pub async fn write_bound(&mut self, kind: update::Type, entry: TableEntry) -> Result<(), tonic::Status> {
        let entity = Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) });
        let updates = vec![Update { r#type: kind as i32, entity }];
        let request = WriteRequest { target: Some(ALL), client_id: BOUND, updates, ..Default::default() };
        answered(self.client.write(request)).await.map(|_| ())
    }

    /// Entries of the bound client's table.
    pub async fn guarded(&mut self) -> Vec<Vec<u8>> {
        let table_id = self.schema.table("kept").expect("it is there").id;
        let entry = TableEntry { table_id, ..Default::default() };
        let entities = vec![Entity { entity: Some(entity::Entity::TableEntry(entry)) }];
        let request = ReadRequest { target: Some(ALL), client_id: BOUND, entities, ..Default::default() };
        let mut answers = answered(self.client.read(request)).await.expect("it is bound").into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answered(answers.message()).await.expect("it is bound") {
            found.extend(answer.entities.iter().map(Entity::encode_to_vec));
        }
        found.sort();
        found
    }
}
