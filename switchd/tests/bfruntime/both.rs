//! Two servers, and several clients, of one switch.

use crate::rig::*;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::{self, packet_replication_engine_entry, set_forwarding_pipeline_config_request};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

/// The primary of P4Runtime's server.
struct Primary {
    grpc: P4RuntimeClient<Channel>,
    _stream: (mpsc::Sender<v1::StreamMessageRequest>, Streaming<v1::StreamMessageResponse>),
}

impl Primary {
    async fn of(rig: &Rig) -> Primary {
        let mut grpc = P4RuntimeClient::connect(format!("http://{}", rig.p4runtime)).await.unwrap();
        let (out, requests) = mpsc::channel(4);
        let asked = v1::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            ..Default::default()
        };
        let update = Some(v1::stream_message_request::Update::Arbitration(asked));
        out.send(v1::StreamMessageRequest { update }).await.unwrap();
        let mut stream = grpc.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        Primary { grpc, _stream: (out, stream) }
    }

    async fn write_group(&mut self, multicast_group_id: u32) {
        let replica = v1::Replica {
            port_kind: Some(v1::replica::PortKind::Port(vec![1])),
            instance: 1,
            ..Default::default()
        };
        let group =
            v1::MulticastGroupEntry { multicast_group_id, replicas: vec![replica], ..Default::default() };
        let group = packet_replication_engine_entry::Type::MulticastGroupEntry(group);
        let entry = v1::PacketReplicationEngineEntry { r#type: Some(group) };
        let entity = v1::Entity { entity: Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)) };
        let request = v1::WriteRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            updates: vec![v1::Update { r#type: v1::update::Type::Insert as i32, entity: Some(entity) }],
            ..Default::default()
        };
        self.grpc.write(request).await.unwrap();
    }

    async fn groups(&mut self) -> usize {
        let group = v1::MulticastGroupEntry::default();
        let group = packet_replication_engine_entry::Type::MulticastGroupEntry(group);
        let entry = v1::PacketReplicationEngineEntry { r#type: Some(group) };
        let entity = v1::Entity { entity: Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)) };
        let request = v1::ReadRequest { device_id: 1, entities: vec![entity], ..Default::default() };
        let mut answers = self.grpc.read(request).await.unwrap().into_inner();
        let mut count = 0;
        while let Some(answer) = answers.message().await.unwrap() {
            count += answer.entities.len();
        }
        count
    }

    async fn install(&mut self) {
        self.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit).await.unwrap();
    }

    async fn set(
        &mut self,
        action: set_forwarding_pipeline_config_request::Action,
    ) -> Result<(), tonic::Status> {
        let compiled = p4rack_p4::compile(PROGRAM, NAME, &p4rack_p4::Options::default()).unwrap();
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: action as i32,
            config: Some(v1::ForwardingPipelineConfig {
                p4info: Some(compiled.p4info),
                p4_device_config: PROGRAM.into(),
                cookie: None,
            }),
            ..Default::default()
        };
        self.grpc.set_forwarding_pipeline_config(request).await.map(|_| ())
    }
}

#[tokio::test]
async fn groups_of_the_other_server_are_left_alone() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let mut primary = Primary::of(&rig).await;
    primary.write_group(1).await;
    let group =
        Entry::of("$pre.mgid").exact("$MGID", 1).data("$MULTICAST_NODE_ID", Value::Numbers(Vec::new()));
    let group = group.build(&schema).unwrap();
    for atomicity in [Atomicity::ContinueOnError, Atomicity::RollbackOnError] {
        let refused = client.write(atomicity, vec![update(Type::Insert, group.clone())]).await.unwrap_err();
        assert_eq!(errors(&refused)[0].0, rpc::Code::AlreadyExists as i32, "{refused}");
        assert_eq!(primary.groups().await, 1);
        let refused = client.write(atomicity, vec![update(Type::Delete, group.clone())]).await.unwrap_err();
        assert_eq!(errors(&refused)[0].0, rpc::Code::NotFound as i32);
        assert_eq!(primary.groups().await, 1);
    }
}

/// The steps that a stream reports until it ends or is silent for 300 ms.
async fn told(client: &mut Client) -> (Vec<i32>, Option<Code>) {
    let mut steps = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(300), client.stream.message()).await {
            Err(_) | Ok(Ok(None)) => return (steps, None),
            Ok(Err(status)) => return (steps, Some(status.code())),
            Ok(Ok(Some(message))) => match message.update {
                Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(step)) => {
                    steps.push(step.set_forwarding_pipeline_config_response_type);
                }
                other => panic!("{other:?}"),
            },
        }
    }
}

#[tokio::test]
async fn all_are_told_of_installations_whoever_asks_for_them() {
    use SetForwardingPipelineConfigResponseType::{WarmInitFinished, WarmInitStarted};
    let both = vec![WarmInitStarted as i32, WarmInitFinished as i32];
    let rig = Rig::start().await;
    let mut watcher = Client::subscribe(&rig, 7).await.unwrap();
    let mut bound = rig.bound().await;
    assert_eq!(told(&mut watcher).await, (both.clone(), None));
    assert_eq!(told(&mut bound).await, (both.clone(), None));
    Primary::of(&rig).await.install().await;
    assert_eq!(told(&mut watcher).await, (both.clone(), None));
    assert_eq!(told(&mut bound).await.1, Some(Code::Cancelled));
    // An installation ends with its client.
    let mut installer = Client::subscribe(&rig, 3).await.unwrap();
    installer.set(Action::VerifyAndWarmInitBegin, config(PROGRAM)).await.unwrap();
    drop(installer);
    assert_eq!(told(&mut watcher).await, (both, None));
    watcher.set(Action::Bind, named("p4_device_config")).await.unwrap();
}

#[tokio::test]
async fn a_write_ends_before_another_client_is_bound() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let entry = |mac| to(mac, 1).build(&schema).unwrap();
    let updates =
        |from: u64| (from..from + 20_000).map(|mac| update(Type::InsertOrModify, entry(mac))).collect();
    let writes: Vec<Vec<Update>> = (0..3).map(|part| updates(part * 20_000)).collect();
    let sent = writes.into_iter().map(|updates| {
        let mut grpc = client.grpc.clone();
        let request = WriteRequest { target: Some(ALL), updates, ..Default::default() };
        tokio::spawn(async move { grpc.write(request).await.map(|_| ()) })
    });
    let sent: Vec<_> = sent.collect();
    // They are under way.
    tokio::time::sleep(Duration::from_millis(60)).await;
    drop(client);
    let mut next = Client::subscribe(&rig, 1).await.unwrap();
    while next.set(Action::Bind, named(NAME)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let table_id = schema.table("exact_dst").unwrap().id;
    let usage = TableUsage { table_id, ..Default::default() };
    let mut count = async || {
        let found = next.read(vec![entity::Entity::TableUsage(usage)]).await.unwrap();
        match found[0].entity {
            Some(entity::Entity::TableUsage(usage)) => usage.usage,
            _ => panic!("{found:?}"),
        }
    };
    let first = count().await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(count().await, first, "nothing came after the binding had changed");
    for write in sent {
        let _ = write.await.unwrap();
    }
}

#[tokio::test]
async fn a_reconciliation_does_not_lose_what_only_bfruntime_knows() {
    use set_forwarding_pipeline_config_request::Action::{ReconcileAndCommit, VerifyAndCommit};
    let session = Entry::of("$mirror.cfg").exact("$sid", 7).action("$normal").data("$session_enable", true);
    let queues = Entry::of("tf1.tm.port.sched_cfg").exact("dev_port", 1).data("max_rate_enable", false);
    for (entry, kind, is_lost) in [
        (to(1, 2), Type::Insert, false),
        // Of the device, which stays.
        (queues, Type::Modify, false),
        (session, Type::Insert, true),
    ] {
        let rig = Rig::start().await;
        let mut client = rig.bound().await;
        let schema = schema(&mut client).await;
        client.one(kind, entry.build(&schema).unwrap()).await.unwrap();
        let mut primary = Primary::of(&rig).await;
        let done = primary.set(ReconcileAndCommit).await;
        if is_lost {
            let refused = done.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
            assert!(refused.message().contains("VERIFY_AND_COMMIT"), "{refused}");
            assert_eq!(client.entries(&schema, "$mirror.cfg").await.len(), 1);
            primary.set(VerifyAndCommit).await.unwrap();
            primary.set(ReconcileAndCommit).await.unwrap();
        } else {
            done.unwrap();
        }
    }
    // A single pipe's cell.
    let rig = Rig::with_ports(&[1, 129]).await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let cell = Entry::of("last").exact("$REGISTER_INDEX", 0).data("I.last.f1", 5u32);
    let cell = vec![update(Type::Modify, cell.build(&schema).unwrap())];
    client.write_to(TargetDevice { pipe_id: 1, ..ALL }, Atomicity::ContinueOnError, cell).await.unwrap();
    let refused = Primary::of(&rig).await.set(ReconcileAndCommit).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}
