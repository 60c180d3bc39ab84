//! Any requests to the BFRuntime server, beside a client that is bound: each is answered, its table and the program are
//! unchanged, and frames pass. Calls of clients without a stream by the program's name do not touch that table; no
//! other client installs a program, which clients may do too.
#![no_main]

#[path = "../bfrt_service/changes.rs"]
mod changes;
#[path = "../bfrt_service/rig.rs"]
mod rig;

use changes::Change;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::stream_message_request::Update as Said;
use p4rack_p4rt::bfrt_proto::*;
use prost::Message;
use rig::{ALL, BOUND, NAME, OUT, PROGRAM, Rig, STREAMS, answered, config, open, passes};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The first number of clients without a stream.
const NAMELESS: u32 = 100;
const STEPS: usize = 32;
const GUARDED: u64 = 0x0200_0000_0001;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A stream with a client of its own number.
    Open(u8),
    /// A message on a stream.
    Say {
        stream: u8,
        id: u8,
        notifications: u8,
        bytes: Option<Vec<u8>>,
    },
    Close(u8),
    Write {
        by: u8,
        named: bool,
        atomicity: u8,
        pipe: u8,
        changes: [Change; 2],
    },
    Read {
        by: u8,
        named: bool,
        pipe: u8,
        changes: [Change; 2],
    },
    /// A message of a kind, of any bytes.
    Bytes {
        call: u8,
        by: u8,
        bytes: Vec<u8>,
    },
    Set {
        by: u8,
        action: u8,
        mode: u8,
        program: u8,
    },
    Get(u8),
    Frame {
        port: u8,
        dst: u8,
        kind: u16,
    },
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("threads"));

fn target(pipe: u8) -> TargetDevice {
    TargetDevice { pipe_id: if pipe < 224 { 0xffff } else { u32::from(pipe % 8) }, ..ALL }
}

impl Rig {
    async fn read(&mut self, request: ReadRequest) {
        let Ok(answers) = answered(self.others.read(request)).await else { return };
        let mut answers = answers.into_inner();
        while let Ok(Some(_)) = answered(answers.message()).await {}
    }

    async fn set(&mut self, mut request: SetForwardingPipelineConfigRequest) {
        request.client_id = request.client_id.max(1);
        let is_whole = |config: &ForwardingPipelineConfig| {
            let mut binaries = config.profiles.iter().map(|profile| &profile.binary[..]);
            binaries.any(|binary| binary.windows(4).any(|word| word == b"main"))
        };
        if request.config.iter().any(is_whole) && request.action != Action::Bind as i32 {
            request.action = Action::Verify as i32;
        }
        let _ = answered(self.others.set_forwarding_pipeline_config(request)).await;
    }

    /// Writes of others: those by name are permitted, and leave the table alone.
    async fn write(&mut self, mut request: WriteRequest) {
        let kept = self.schema.table("kept").expect("it is there").id;
        if request.p4_name == NAME && request.client_id >= NAMELESS {
            request.updates.retain(|update| of_table(update) != Some(kept));
        } else {
            request.client_id = request.client_id.max(1);
            request.p4_name.clear();
        }
        let _ = answered(self.others.write(request)).await;
    }

    /// Opens a stream with a client of its own number.
    async fn open(&mut self, at: usize) {
        let mut stream = open(&mut self.others).await;
        let (client_id, update) = (1 + at as u32, Some(Said::Subscribe(Subscribe::default())));
        let _ = stream.0.try_send(StreamMessageRequest { client_id, update });
        let _ = answered(stream.1.message()).await;
        self.streams[at] = Some(stream);
    }

    async fn make(&mut self, step: Step) {
        let (streams, names) =
            (STREAMS as u8, |named: bool| if named { NAME.to_owned() } else { String::new() });
        let by_whom = |by: u8, named: bool| match named {
            true => NAMELESS + u32::from(by),
            false => 1 + u32::from(by % streams),
        };
        match step {
            Step::Open(at) => self.open(usize::from(at % streams)).await,
            Step::Close(at) => self.streams[usize::from(at % streams)] = None,
            Step::Say { stream, id, notifications, bytes } => {
                let Some((sender, incoming)) = &mut self.streams[usize::from(stream % streams)] else {
                    return;
                };
                let on = |bit: u8| notifications >> bit & 1 == 1;
                let wanted = subscribe::Notifications {
                    enable_learn_notifications: on(0),
                    enable_idletimeout_notifications: on(1),
                    enable_port_status_change_notifications: on(2),
                    enable_entry_active_notifications: on(3),
                    ..Default::default()
                };
                let subscribe = Subscribe { notifications: Some(wanted), ..Default::default() };
                let plain = StreamMessageRequest {
                    client_id: u32::from(id % (streams + 1)),
                    update: Some(Said::Subscribe(subscribe)),
                };
                let message = match bytes {
                    Some(bytes) => StreamMessageRequest::decode(&bytes[..]).unwrap_or_default(),
                    None => plain,
                };
                let _ = sender.try_send(message);
                // It is handled before the next message.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                while let Ok(Ok(Some(_))) = timeout(Duration::ZERO, incoming.message()).await {}
            }
            Step::Write { by, named, atomicity, pipe, changes } => {
                let update = |change: &Change| {
                    let entity = change.entity(self.schema.tables())?.1;
                    Some(Update { r#type: i32::from(change.kind % 8), entity: Some(entity) })
                };
                let request = WriteRequest {
                    target: Some(target(pipe)),
                    client_id: by_whom(by, named),
                    updates: changes.iter().filter_map(update).collect(),
                    atomicity: i32::from(if atomicity < 224 { atomicity % 2 } else { atomicity % 4 }),
                    p4_name: names(named),
                };
                self.write(request).await;
            }
            Step::Read { by, named, pipe, changes } => {
                let asked = changes.iter();
                let request = ReadRequest {
                    target: Some(target(pipe)),
                    client_id: by_whom(by, named),
                    entities: asked
                        .filter_map(|change| Some(change.entity(self.schema.tables())?.1))
                        .collect(),
                    p4_name: names(named),
                };
                self.read(request).await;
            }
            Step::Bytes { call, by, bytes } => match call % 3 {
                0 => {
                    let Ok(request) = WriteRequest::decode(&bytes[..]) else { return };
                    self.write(WriteRequest { client_id: by_whom(by, by > 128), ..request }).await;
                }
                1 => {
                    let Ok(request) = ReadRequest::decode(&bytes[..]) else { return };
                    self.read(request).await;
                }
                _ => {
                    let Ok(request) = SetForwardingPipelineConfigRequest::decode(&bytes[..]) else { return };
                    self.set(request).await;
                }
            },
            Step::Set { by, action, mode, program } => {
                let own = config();
                let config = match program {
                    0 => vec![own],
                    1..64 => vec![ForwardingPipelineConfig { profiles: Vec::new(), ..own }],
                    64..128 => Vec::new(),
                    128..192 => vec![ForwardingPipelineConfig {
                        p4_name: "other".into(),
                        profiles: Vec::new(),
                        ..own
                    }],
                    _ => vec![own.clone(), own],
                };
                let request = SetForwardingPipelineConfigRequest {
                    client_id: by_whom(by, by > 128),
                    action: i32::from(action % 8),
                    dev_init_mode: i32::from(mode % 3),
                    config,
                    ..Default::default()
                };
                self.set(request).await;
            }
            Step::Get(by) => {
                let request = GetForwardingPipelineConfigRequest {
                    device_id: u32::from(by > 250),
                    client_id: by.into(),
                };
                let _ = answered(self.others.get_forwarding_pipeline_config(request)).await;
            }
            Step::Frame { port, dst, kind } => {
                passes(&self.handle, 1 + u16::from(port % 4), u64::from(dst), kind).await;
            }
        }
    }
}

fn of_table(update: &Update) -> Option<u32> {
    Some(match update.entity.as_ref()?.entity.as_ref()? {
        entity::Entity::TableEntry(entry) => entry.table_id,
        entity::Entity::TableAttribute(attribute) => attribute.table_id,
        entity::Entity::TableOperation(operation) => operation.table_id,
        _ => return None,
    })
}

async fn run(steps: impl Iterator<Item = Step>) {
    let (mut rig, plane) = Rig::start().await;
    for dst in GUARDED..GUARDED + 4 {
        rig.write_guarded(update::Type::Insert, dst).await;
    }
    let before = rig.guarded().await;
    for at in 0..STREAMS {
        rig.open(at).await;
    }
    for step in steps {
        rig.make(step).await;
    }
    assert_eq!(rig.guarded().await, before, "nobody else changes the table");
    rig.write_guarded(update::Type::Insert, 1).await;
    rig.write_guarded(update::Type::Delete, 1).await;
    let asked = GetForwardingPipelineConfigRequest { device_id: 0, client_id: BOUND };
    let told =
        answered(rig.client.get_forwarding_pipeline_config(asked)).await.expect("it is told").into_inner();
    assert!(told.config[0].p4_name == NAME && told.config[0].profiles[0].binary == PROGRAM.as_bytes());
    // Queues may have been stopped; initially they are served.
    let tables: Vec<u32> = rig
        .schema
        .tables()
        .iter()
        .filter(|table| table.name.contains("tm.") || table.name.ends_with("app_cfg"))
        .map(|table| table.id)
        .collect();
    for table_id in tables {
        let _ = rig.write_bound(update::Type::Delete, TableEntry { table_id, ..Default::default() }).await;
    }
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
    let out = passes(&rig.handle, 1, GUARDED, 0x88b5).await;
    assert_eq!(out.map(|(to, _)| to), Some(OUT), "frames pass");
    drop(rig);
    plane.abort();
}

fuzz_target!(|data: &[u8]| {
    let mut rest = Unstructured::new(data);
    let next = || (!rest.is_empty()).then(|| Step::arbitrary(&mut rest).ok()).flatten();
    RUNTIME.block_on(run(std::iter::from_fn(next).take(STEPS)))
});
