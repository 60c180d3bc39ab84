//! Requests that the server accepts or refuses.

use crate::rig::*;
use p4rack_bfrt::{Entry, Match, Value};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

#[tokio::test]
async fn entries_come_change_and_go() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    client.one(Type::Insert, build(to(1, 1))).await.unwrap();
    assert_eq!(
        client.one(Type::Insert, build(to(1, 2))).await.unwrap_err().0,
        rpc::Code::AlreadyExists as i32
    );
    client.one(Type::InsertOrModify, build(to(1, 2))).await.unwrap();
    client.one(Type::InsertOrModify, build(to(2, 4))).await.unwrap();
    // One parameter alone: the other one stays.
    let mut part = build(to(1, 3));
    part.data.as_mut().unwrap().fields.retain(|field| field.field_id == 1);
    client.one(Type::Modify, part).await.unwrap();
    let found = client.entries(&schema, "exact_dst").await;
    let seen: Vec<_> = found
        .iter()
        .map(|entry| (entry.get("port").unwrap().number(), entry.get("queue").unwrap().number()))
        .collect();
    assert_eq!(seen, [(Some(3), Some(3)), (Some(4), Some(3))]);
    let usage = TableUsage { table_id: schema.table("exact_dst").unwrap().id, ..Default::default() };
    let told = client.read(vec![entity::Entity::TableUsage(usage)]).await.unwrap();
    assert!(
        matches!(&told[0].entity, Some(entity::Entity::TableUsage(usage)) if usage.usage == 2),
        "{told:?}"
    );
    // All entries in one request.
    let all = TableEntry { table_id: usage.table_id, ..Default::default() };
    client.one(Type::Delete, all).await.unwrap();
    assert!(client.entries(&schema, "exact_dst").await.is_empty());
    let gone = client.one(Type::Delete, build(to(1, 1))).await.unwrap_err();
    assert_eq!(gone.0, rpc::Code::NotFound as i32);
    // The action on a miss.
    let flood = Entry::default_of("exact_dst").action("flood").build(&schema).unwrap();
    client.one(Type::Modify, flood.clone()).await.unwrap();
    assert_eq!(
        client.one(Type::Insert, flood.clone()).await.unwrap_err().0,
        rpc::Code::InvalidArgument as i32
    );
    client.one(Type::Delete, TableEntry { data: None, ..flood }).await.unwrap();
}

#[tokio::test]
async fn smaller_priorities_win_and_cells_are_set_and_reset() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let acl = |priority: u128| {
        Entry::of("acl")
            .key("hdr.ethernet.src", Match::Ternary(vec![7], vec![15]))
            .exact("$MATCH_PRIORITY", priority)
            .action("deny")
    };
    for priority in [0, 5, (1 << 24) - 1] {
        client.one(Type::Insert, acl(priority).build(&schema).unwrap()).await.unwrap();
    }
    let wide = client.one(Type::Insert, acl(1 << 24).build(&schema).unwrap()).await.unwrap_err();
    assert!(wide.1.contains("$MATCH_PRIORITY 16777216 is not 0 to 16777215"), "{wide:?}");
    let mut found: Vec<_> = client
        .entries(&schema, "acl")
        .await
        .iter()
        .map(|entry| entry.exact_number("$MATCH_PRIORITY"))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [Some(0), Some(5), Some((1 << 24) - 1)]);

    let cell = |value: u32| Entry::of("last").exact("$REGISTER_INDEX", 3).data("I.last.f1", value);
    client.one(Type::Insert, cell(77).build(&schema).unwrap()).await.unwrap();
    let value = |entries: Vec<Entry>| entries[3].get("I.last.f1").unwrap().number();
    assert_eq!(value(client.entries(&schema, "last").await), Some(77));
    let all = TableEntry { table_id: schema.table("last").unwrap().id, ..Default::default() };
    client.one(Type::Delete, all).await.unwrap();
    assert_eq!(value(client.entries(&schema, "last").await), Some(0));
    let count = Entry::of("seen").exact("$COUNTER_INDEX", 511).data("$COUNTER_SPEC_PKTS", 9u32);
    client.one(Type::Modify, count.build(&schema).unwrap()).await.unwrap();
    let counts = client.entries(&schema, "seen").await;
    assert_eq!((counts.len(), counts[511].get("$COUNTER_SPEC_PKTS").unwrap().number()), (512, Some(9)));
}

#[tokio::test]
async fn the_device_has_ports_groups_and_mirror_sessions() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let device = TableEntry {
        table_id: schema.table("device_configuration").unwrap().id,
        is_default_entry: true,
        ..Default::default()
    };
    let found = client.read(vec![entity::Entity::TableEntry(device)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    let device = Entry::read(&schema, found).unwrap();
    assert_eq!(device.get("external_port_list"), Some(&Value::Numbers(vec![1, 2, 3, 4])));

    let port = |port: u128| {
        let port = Entry::of("$PORT").exact("$DEV_PORT", port).data("$SPEED", "BF_SPEED_25G");
        port.data("$FEC", "BF_FEC_TYP_NONE")
    };
    client.one(Type::Insert, build(port(1).data("$PORT_ENABLE", true))).await.unwrap();
    assert!(client.one(Type::Insert, build(port(9))).await.unwrap_err().1.contains("no port 9"));
    let ports = client.entries(&schema, "$PORT").await;
    assert_eq!((ports.len(), ports[0].get("$PORT_UP")), (1, Some(&Value::Bool(true))));
    assert_eq!(client.entries(&schema, "$PORT_STAT").await.len(), 4);

    let node = |id: u128, ports: Vec<u32>| {
        Entry::of("$pre.node")
            .exact("$MULTICAST_NODE_ID", id)
            .data("$MULTICAST_RID", 1u16)
            .data("$MULTICAST_LAG_ID", Value::Numbers(Vec::new()))
            .data("$DEV_PORT", Value::Numbers(ports))
    };
    let group = |nodes: Vec<u32>| {
        Entry::of("$pre.mgid").exact("$MGID", 1).data("$MULTICAST_NODE_ID", Value::Numbers(nodes))
    };
    let early = client.one(Type::Insert, build(group(vec![5]))).await.unwrap_err();
    assert!(early.1.contains("multicast node 5 not found"), "{early:?}");
    client.one(Type::Insert, build(node(5, vec![1, 2]))).await.unwrap();
    client.one(Type::Insert, build(group(vec![5]))).await.unwrap();
    // A port twice with one replication id: nothing changes.
    assert!(client.one(Type::Modify, build(node(5, vec![3, 3]))).await.is_err());
    assert_eq!(
        client.entries(&schema, "$pre.node").await[0].get("$DEV_PORT"),
        Some(&Value::Numbers(vec![1, 2]))
    );

    // A group loses a node that is deleted.
    client.one(Type::Delete, build(node(5, vec![]))).await.unwrap();
    let left = &client.entries(&schema, "$pre.mgid").await[0];
    assert_eq!(left.get("$MULTICAST_NODE_ID"), Some(&Value::Numbers(Vec::new())));

    let mirror = Entry::of("$mirror.cfg").exact("$sid", 7).action("$normal").data("$session_enable", true);
    let mirror = mirror.data("$ucast_egress_port", 2u32).data("$ucast_egress_port_valid", true);
    client.one(Type::Insert, build(mirror.clone())).await.unwrap();
    assert_eq!(
        client.one(Type::Insert, build(mirror)).await.unwrap_err().0,
        rpc::Code::InvalidArgument as i32
    );
    assert_eq!(client.entries(&schema, "$mirror.cfg").await.len(), 1);
}

#[tokio::test]
async fn all_or_nothing_leaves_nothing() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let insert = |mac| update(Type::Insert, to(mac, 1).build(&schema).unwrap());
    let twice = vec![insert(1), insert(2), insert(1)];
    let status = client.write(Atomicity::RollbackOnError, twice.clone()).await.unwrap_err();
    assert_eq!(errors(&status)[2].0, rpc::Code::AlreadyExists as i32);
    assert!(client.entries(&schema, "exact_dst").await.is_empty());
    let status = client.write(Atomicity::ContinueOnError, twice).await.unwrap_err();
    let codes: Vec<i32> = errors(&status).iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [0, 0, rpc::Code::AlreadyExists as i32]);
    assert_eq!(client.entries(&schema, "exact_dst").await.len(), 2);
    let status = client.write(Atomicity::DataplaneAtomic, vec![insert(9)]).await.unwrap_err();
    assert!(
        status.code() == Code::Unimplemented && status.message().contains("DATAPLANE_ATOMIC"),
        "{status}"
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused_by_name() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let good = to(1, 1).build(&schema).unwrap();
    let mut refusals = Vec::new();
    let mut refused = async |change: &dyn Fn(&mut TableEntry)| {
        let mut entry = good.clone();
        change(&mut entry);
        client.one(Type::Insert, entry).await.unwrap_err().1
    };
    let key = |entry: &mut TableEntry, bytes: Vec<u8>| {
        let exact = key_field::Exact { value: bytes };
        let field = KeyField { field_id: 1, match_type: Some(key_field::MatchType::Exact(exact)) };
        entry.value = Some(table_entry::Value::Key(TableKey { fields: vec![field] }));
    };
    let pipe = |pipe_id| Some(TargetDevice { pipe_id, ..ALL });
    refusals.push((refused(&|entry| entry.table_id = 9).await, "no table with id 9"));
    refusals.push((refused(&|entry| key(entry, vec![1])).await, "1 bytes, but a field of 48 bits takes 6"));
    refusals
        .push((refused(&|entry| entry.data.as_mut().unwrap().action_id = 3).await, "no action with id 3"));
    refusals.push((refused(&|entry| entry.entry_tgt = pipe(2)).await, "there is no pipe 2"));
    refusals.push((refused(&|entry| entry.entry_tgt = pipe(0)).await, "scope of all pipes"));
    refusals.push((
        refused(&|entry| entry.entry_tgt = Some(TargetDevice { device_id: 3, ..ALL })).await,
        "no device 3",
    ));
    refusals.push((refused(&|entry| entry.value = None).await, "key is not set"));
    refusals.push((
        refused(&|entry| entry.value = Some(table_entry::Value::HandleId(1))).await,
        "not by handles",
    ));
    for (said, wanted) in refusals {
        assert!(said.contains(wanted), "{said} | {wanted}");
    }
    assert!(client.entries(&schema, "exact_dst").await.is_empty(), "nothing was half applied");
}

#[tokio::test]
async fn programs_that_do_not_fit_are_refused_and_the_old_one_runs_on() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let both = Action::VerifyAndWarmInitBeginAndEnd;
    let mut refused = async |config| client.set(both, config).await.unwrap_err().message().to_owned();
    let text = schema_text();
    let with = |bfruntime_info: &str| ForwardingPipelineConfig {
        bfruntime_info: bfruntime_info.into(),
        ..config(PROGRAM)
    };
    assert!(refused(with("")).await.contains("bfruntime_info is empty"));
    assert!(refused(with("{")).await.contains("not a BFRuntime schema"));
    let other = refused(with(&text.replace("I.acl", "I.alc"))).await;
    assert!(other.contains("table `pipe.I.acl` is not given"), "{other}");
    let wide = refused(with(&text.replace("\"width\":48", "\"width\":47"))).await;
    assert!(wide.contains("key `hdr.ethernet.dst` is not given, or is another"), "{wide}");
    assert!(refused(config("not P4")).await.contains("can't be installed"));
    assert!(
        refused(ForwardingPipelineConfig { profiles: Vec::new(), ..config(PROGRAM) })
            .await
            .contains("no profile")
    );
    let mut far = config(PROGRAM);
    far.profiles[0].pipe_scope = vec![4];
    assert!(refused(far).await.contains("names pipe 4"));
    let reconcile = client.set(Action::ReconcileAndWarmInitEnd, named(NAME)).await.unwrap_err();
    assert_eq!(reconcile.code(), Code::Unimplemented);
    let unbound = client.set(Action::Bind, named("other")).await.unwrap_err();
    assert!(unbound.message().contains("there is no program `other`; `rig` runs"), "{unbound}");
    assert_eq!(
        client.set(Action::WarmInitEnd, config(PROGRAM)).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        client.set(Action::WarmInitEnd, named("")).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    let schema = schema(&mut client).await;
    client.one(Type::Insert, to(1, 1).build(&schema).unwrap()).await.unwrap();
    // In two steps; requests in between mean the new program, and frames the old one.
    let mut frame = vec![0; 60];
    frame[5] = 1;
    let before = rig.pass(3, &frame).await;
    client.set(Action::VerifyAndWarmInitBegin, config(PROGRAM)).await.unwrap();
    assert!(client.entries(&schema, "exact_dst").await.is_empty(), "a new program has no entries");
    client.one(Type::Insert, to(2, 1).build(&schema).unwrap()).await.unwrap();
    assert_eq!(rig.pass(3, &frame).await, before);
    client.set(Action::WarmInitEnd, named("")).await.unwrap();
    let entries = client.entries(&schema, "exact_dst").await;
    assert!(entries.len() == 1 && entries[0].exact_number("hdr.ethernet.dst") == Some(2), "{entries:?}");
}

#[tokio::test]
async fn clients_have_numbers_of_their_own_and_end_with_their_streams() {
    let rig = Rig::start().await;
    let first = rig.bound().await;
    assert!(Client::subscribe(&rig, 0).await.is_err_and(|error| error.contains("client 0 is connected")));
    let mut second = Client::subscribe(&rig, 1).await.unwrap();
    let twice = second.set(Action::Bind, named(NAME)).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists, "{twice}");
    let stranger = second.write(Atomicity::ContinueOnError, Vec::new()).await.unwrap_err();
    assert!(stranger.message().contains("not bound"), "{stranger}");
    drop(first);
    let patience = Instant::now() + Duration::from_secs(5);
    while second.set(Action::Bind, named(NAME)).await.is_err() {
        assert!(Instant::now() < patience);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Another client installs a program: the bound client is notified.
    let mut third = Client::subscribe(&rig, 0).await.unwrap();
    let other = ForwardingPipelineConfig { p4_name: "other".into(), ..config(PROGRAM) };
    third.set(Action::VerifyAndWarmInitBeginAndEnd, other).await.unwrap();
    let end = loop {
        match second.stream.message().await {
            Ok(Some(_)) => {}
            other => break other.unwrap_err(),
        }
    };
    assert_eq!(end.code(), Code::Cancelled, "{end}");
    assert!(second.write(Atomicity::ContinueOnError, Vec::new()).await.is_err());
}

#[tokio::test]
async fn hostile_messages_are_refused_and_others_are_served() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let many = vec![Update::default(); 65_537];
    let status = client.write(Atomicity::ContinueOnError, many).await.unwrap_err();
    assert!(status.code() == Code::ResourceExhausted && status.message().contains("65536"), "{status}");
    let empty = client.write(Atomicity::ContinueOnError, vec![Update::default(); 3]).await.unwrap_err();
    assert_eq!(errors(&empty).len(), 3);
    // More streams than a connection may have, all of strangers.
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..20 {
        let (out, requests) = mpsc::channel(1);
        match client.grpc.stream_channel(ReceiverStream::new(requests)).await {
            Ok(stream) => open.push((out, stream)),
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted);
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 5, "one of sixteen is the client's");
    client.one(Type::Insert, to(1, 1).build(&schema).unwrap()).await.unwrap();
}
