//! Limits of a single request, from any client.

use crate::rig::*;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use p4rack_p4rt::raw::RawCodec;
use prost::Message;
use prost::bytes::Bytes;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

/// Sends bytes as a request that has one answer.
async fn send(rig: &Rig, path: &'static str, request: Vec<u8>) -> Result<(), Status> {
    let channel = Channel::from_shared(format!("http://{}", rig.addr)).unwrap().connect().await.unwrap();
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let (path, codec) = (PathAndQuery::from_static(path), RawCodec { room: request.len() + 16 });
    let answer: Result<Response<Bytes>, Status> =
        grpc.unary(Request::new(Bytes::from(request)), path, codec).await;
    answer.map(|_| ())
}

const WRITE: &str = "/bfrt_proto.BfRuntime/Write";
const READ: &str = "/bfrt_proto.BfRuntime/Read";

/// The most memory that this process has had, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// A field of a message with these bytes, of up to 2 to the 28th.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut made);
    made.extend_from_slice(bytes);
    made
}

#[tokio::test]
async fn requests_are_weighed_before_they_are_decoded() {
    let rig = Rig::start().await;
    let client = rig.bound().await;
    let before = peak_mb();
    // Four million updates, of a stranger.
    let stranger = send(&rig, WRITE, [0x1a, 0].repeat(4 << 20)).await.unwrap_err();
    assert!(
        stranger.code() == Code::FailedPrecondition || stranger.code() == Code::ResourceExhausted,
        "{stranger}"
    );
    // As many fields in one update of a client: data, and a key.
    for field_of in [|fields: &[u8]| field(3, fields), |fields: &[u8]| field(2, fields)] {
        let inner = [if field_of(&[0])[0] == 0x1a { 0x12 } else { 0x0a }, 0].repeat(2 << 20);
        let update = field(3, &field(2, &field(1, &field_of(&inner))));
        let head = WriteRequest { client_id: client.id, p4_name: NAME.into(), ..Default::default() };
        let refused = send(&rig, WRITE, [head.encode_to_vec(), update].concat()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    }
    let long = send(&rig, READ, [0x1a, 0].repeat(1 << 20)).await.unwrap_err();
    assert_eq!(long.code(), Code::ResourceExhausted, "{long}");
    let grown = peak_mb() - before;
    assert!(grown < 256, "{grown} MB more");
}

fn node(id: u128, ports: Vec<u32>) -> Entry {
    Entry::of("$pre.node")
        .exact("$MULTICAST_NODE_ID", id)
        .data("$MULTICAST_RID", 1u16)
        .data("$MULTICAST_LAG_ID", Value::Numbers(Vec::new()))
        .data("$DEV_PORT", Value::Numbers(ports))
}

fn group(id: u128, nodes: Vec<u32>) -> Entry {
    Entry::of("$pre.mgid").exact("$MGID", id).data("$MULTICAST_NODE_ID", Value::Numbers(nodes))
}

#[tokio::test]
async fn what_is_stored_of_multicast_has_limits() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let unknown = client.one(Type::Insert, build(node(1, vec![1, 9]))).await.unwrap_err();
    assert!(unknown.1.contains("no port 9"), "{unknown:?}");
    let twice = client.one(Type::Insert, build(node(1, vec![2, 2]))).await.unwrap_err();
    assert!(twice.1.contains("port 2 is named twice"), "{twice:?}");
    client.one(Type::Insert, build(node(1, vec![1, 2]))).await.unwrap();
    client.one(Type::Insert, build(node(2, Vec::new()))).await.unwrap();
    let twice = client.one(Type::Insert, build(group(1, vec![2; 1024]))).await.unwrap_err();
    assert!(twice.1.contains("2 is named twice"), "{twice:?}");
    // A change of a node changes all groups that have it, between two frames.
    let groups = (1..=65).map(|id| update(Type::Insert, build(group(id, vec![1])))).collect();
    let most = client.write(Atomicity::ContinueOnError, groups).await.unwrap_err();
    assert_eq!(errors(&most).last().unwrap().0, rpc::Code::ResourceExhausted as i32);
    assert_eq!(client.entries(&schema, "$pre.mgid").await.len(), 64);
    // Longer than one message.
    let nodes = (10..4000).map(|id| update(Type::Insert, build(node(id, vec![1])))).collect();
    client.write(Atomicity::ContinueOnError, nodes).await.unwrap();
    let ids: Vec<_> = client
        .entries(&schema, "$pre.node")
        .await
        .iter()
        .map(|e| e.exact_number("$MULTICAST_NODE_ID"))
        .collect();
    assert!(ids.len() == 3992 && ids.is_sorted(), "{}", ids.len());
}

#[tokio::test]
async fn groups_of_members_have_a_limit() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let group = |members: Vec<u32>| {
        let status = Value::Bools(vec![true; members.len()]);
        let group = Entry::of("selector").exact("$SELECTOR_GROUP_ID", 1).data("$MAX_GROUP_SIZE", 64u32);
        let group =
            group.data("$ACTION_MEMBER_ID", Value::Numbers(members)).data("$ACTION_MEMBER_STATUS", status);
        group.build(&schema).unwrap()
    };
    let many = client.one(Type::Insert, group((1..100_000).collect())).await.unwrap_err();
    assert!(many.1.contains("more than 65536"), "{many:?}");
}

#[tokio::test]
async fn generators_take_no_more_than_the_device_has() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let buffer = |offset: u128, bytes: u128| {
        let buffer = Entry::of("tf1.pktgen.pkt_buffer").exact("pkt_buffer_offset", offset);
        let buffer = buffer.exact("pkt_buffer_size", bytes);
        buffer.data("buffer", Value::Numbers(vec![1; bytes as usize]))
    };
    let app = |number: u128| {
        let app = Entry::of("tf1.pktgen.app_cfg").exact("app_id", number).action("trigger_timer_one_shot");
        app.data("timer_nanosec", 1u32).data("app_enable", true)
    };
    let port =
        |port: u128| Entry::of("tf1.pktgen.port_cfg").exact("dev_port", port).data("pktgen_enable", true);
    for wrong in [buffer((16 << 10) - 16, 32), buffer(u32::MAX.into(), 1), app(8), port(512), port(1 << 20)] {
        let refused = client.one(Type::Modify, build(wrong.clone())).await;
        assert!(refused.is_err(), "{wrong:?}");
    }
    for right in [buffer((16 << 10) - 32, 32), app(7), port(68)] {
        let made = client.one(Type::Modify, build(right.clone())).await;
        assert!(made.is_ok(), "{right:?}: {made:?}");
    }
}

#[tokio::test]
async fn what_is_undone_together_has_a_limit() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let clear = update(Type::Delete, all_of(&schema, "selector"));
    client.write(Atomicity::RollbackOnError, vec![clear.clone(); 16]).await.unwrap();
    let many = client.write(Atomicity::RollbackOnError, vec![clear.clone(); 17]).await.unwrap_err();
    assert!(many.code() == Code::InvalidArgument && many.message().contains("split it"), "{many}");
    client.write(Atomicity::ContinueOnError, vec![clear; 17]).await.unwrap();
}

#[tokio::test]
async fn a_read_with_errors_in_its_answer_may_be_long() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    client.one(Type::Insert, to(1, 1).build(&schema).unwrap()).await.unwrap();
    let one = |mac| {
        let entry = TableEntry { data: None, ..to(mac, 1).build(&schema).unwrap() };
        Entity { entity: Some(entity::Entity::TableEntry(entry)) }
    };
    let entities: Vec<_> = (0..70_000).map(one).collect();
    let request = ReadRequest { target: Some(ALL), client_id: client.id, entities, p4_name: NAME.into() };
    let refused = client.grpc.read(request.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let mut request = Request::new(request);
    request.metadata_mut().insert("error_in_resp", "1".parse().unwrap());
    let mut answers = client.grpc.read(request).await.unwrap().into_inner();
    let (mut found, mut status) = (0, Vec::new());
    while let Some(answer) = answers.message().await.unwrap() {
        found += answer.entities.len();
        status.extend(answer.status);
    }
    assert_eq!((found, status.len()), (1, 70_000));
    let code = |at| if at == 1 { 0 } else { rpc::Code::NotFound as i32 };
    assert!(status.iter().enumerate().all(|(at, one)| one.canonical_code == code(at)));
    assert!(!status[0].message.is_empty() && status[69_999].message.is_empty());
}

#[tokio::test]
async fn an_answer_says_what_was_not_there_and_what_was() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let kinds = [(Type::Insert, 1), (Type::Delete, 9), (Type::InsertOrModify, 1), (Type::Delete, 1)];
    for atomicity in [Atomicity::ContinueOnError, Atomicity::RollbackOnError] {
        let request = WriteRequest {
            target: Some(ALL),
            client_id: client.id,
            updates: kinds.iter().map(|(kind, mac)| update(*kind, build(to(*mac, 2)))).collect(),
            atomicity: atomicity as i32,
            p4_name: NAME.into(),
        };
        let mut request = Request::new(request);
        for name in ["error_in_resp", "ignore_not_found"] {
            request.metadata_mut().insert(name, "1".parse().unwrap());
        }
        let status = client.grpc.write(request).await.unwrap().into_inner().status;
        assert_eq!(status.iter().map(|one| one.code).collect::<Vec<_>>(), [0, 5, 6, 0]);
    }
}
