//! What one request may take, whoever sends it.

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
    assert_eq!(long.code(), Code::OutOfRange, "{long}");
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
    assert!(twice.1.contains("port 2 twice"), "{twice:?}");
    client.one(Type::Insert, build(node(1, vec![1, 2]))).await.unwrap();
    client.one(Type::Insert, build(node(2, Vec::new()))).await.unwrap();
    let twice = client.one(Type::Insert, build(group(1, vec![2; 4096]))).await.unwrap_err();
    assert!(twice.1.contains("node 2 twice"), "{twice:?}");
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
    assert!(many.1.contains("65536 are the limit"), "{many:?}");
}
