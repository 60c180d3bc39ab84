//! Scopes of entries, handles, and notifications of the bound client.

use crate::rig::*;
use p4rack_bfrt::{Entry, Match};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use std::time::Duration;
use stream_message_response::Update as Told;

#[tokio::test]
async fn pipes_have_entries_of_their_own_where_the_scope_says_so() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let table_id = schema.table("exact_dst").unwrap().id;
    let in_pipe = |pipe_id: u32| TableEntry {
        entry_tgt: Some(TargetDevice { pipe_id, ..ALL }),
        ..to(1, 1).build(&schema).unwrap()
    };
    let single = mode::Scope::Predef(mode::PredefinedMode::Single as i32);
    assert!(client.one(Type::Insert, in_pipe(0)).await.unwrap_err().1.contains("scope of all pipes"));
    client.write(Atomicity::ContinueOnError, vec![scope(table_id, single)]).await.unwrap();
    client.one(Type::Insert, in_pipe(0)).await.unwrap();
    let other = client.one(Type::Insert, in_pipe(1)).await.unwrap_err();
    assert!(other.1.contains("there is no pipe 1"), "{other:?}");
    // A scope stays while there are entries; sets of pipes don't overlap.
    let sets = mode::Scope::UserDefined(0xc03);
    let late = client.write(Atomicity::ContinueOnError, vec![scope(table_id, sets)]).await.unwrap_err();
    assert!(errors(&late)[0].1.contains("can't change"), "{late:?}");
    let read = TableEntry { data: None, ..in_pipe(0) };
    let found = client.read(vec![entity::Entity::TableEntry(read)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    assert_eq!(found.entry_tgt, in_pipe(0).entry_tgt, "as it was asked for");
    client.one(Type::Delete, in_pipe(0)).await.unwrap();
    client.write(Atomicity::ContinueOnError, vec![scope(table_id, sets)]).await.unwrap();
    let twice = vec![scope(table_id, mode::Scope::UserDefined(0x101))];
    assert!(client.write(Atomicity::ContinueOnError, twice).await.is_err());
}

#[tokio::test]
async fn an_entry_is_read_by_its_handle() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let entry = to(5, 2).build(&schema).unwrap();
    let Some(table_entry::Value::Key(key)) = entry.value.clone() else { panic!("{entry:?}") };
    let asked = HandleId { table_id: entry.table_id, value: Some(handle_id::Value::Key(key)) };
    let absent = client.read(vec![entity::Entity::Handle(asked.clone())]).await.unwrap_err();
    assert_eq!(errors(&absent)[0].0, rpc::Code::NotFound as i32);
    client.one(Type::Insert, entry.clone()).await.unwrap();
    let found = client.read(vec![entity::Entity::Handle(asked)]).await.unwrap();
    let Some(entity::Entity::Handle(HandleId { value: Some(handle_id::Value::HandleId(handle)), .. })) =
        found[0].entity
    else {
        panic!("{found:?}")
    };
    let by_handle = |handle| {
        let value = Some(table_entry::Value::HandleId(handle));
        entity::Entity::TableEntry(TableEntry { table_id: entry.table_id, value, ..Default::default() })
    };
    let found = client.read(vec![by_handle(handle)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    assert_eq!((&found.value, &found.entry_tgt), (&entry.value, &None));
    let default = client.read(vec![by_handle(1)]).await.unwrap();
    let Some(entity::Entity::TableEntry(default)) = &default[0].entity else { panic!("{default:?}") };
    assert!(default.value.is_none() && default.data.is_some() && !default.is_default_entry, "{default:?}");
    let unknown = client.read(vec![by_handle(handle + 1)]).await.unwrap_err();
    assert_eq!(errors(&unknown)[0].0, rpc::Code::NotFound as i32);
}

#[tokio::test]
async fn deletions_of_what_is_not_there_may_count_as_done() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let delete = |ignore: bool| {
        let updates = vec![update(Type::Delete, to(1, 1).build(&schema).unwrap())];
        let request = WriteRequest { target: Some(ALL), updates, p4_name: NAME.into(), ..Default::default() };
        let mut request = tonic::Request::new(request);
        if ignore {
            request.metadata_mut().insert("ignore_not_found", "1".parse().unwrap());
        }
        request
    };
    assert!(client.grpc.write(delete(false)).await.is_err());
    client.grpc.write(delete(true)).await.unwrap();
    // The option ignores missing entries, not unknown tables.
    let elsewhere = TableEntry { table_id: 9, ..to(1, 1).build(&schema).unwrap() };
    let strange = update(Type::Delete, elsewhere);
    let insert = update(Type::Insert, to(2, 1).build(&schema).unwrap());
    for atomicity in [Atomicity::ContinueOnError, Atomicity::RollbackOnError] {
        for updates in [vec![strange.clone()], vec![insert.clone(), strange.clone()]] {
            let count = updates.len();
            let refused = write_with(&mut client, "ignore_not_found", atomicity, updates).await.unwrap_err();
            let codes: Vec<i32> = errors(&refused).iter().map(|(code, _)| *code).collect();
            assert_eq!((codes.len(), codes[count - 1]), (count, rpc::Code::NotFound as i32));
        }
        let entries = client.entries(&schema, "exact_dst").await.len();
        assert_eq!(entries, usize::from(atomicity == Atomicity::ContinueOnError));
        client.one(Type::Delete, all_of(&schema, "exact_dst")).await.unwrap();
    }
}

/// The next message but those about installations; `None` if there is none for a while.
async fn told(client: &mut Client) -> Option<Told> {
    loop {
        match tokio::time::timeout(Duration::from_millis(400), client.stream.message())
            .await
            .ok()?
            .unwrap()?
            .update
        {
            Some(Told::SetForwardingPipelineConfigResponse(_)) => {}
            update => return update,
        }
    }
}

#[tokio::test]
async fn the_bound_client_gets_digests_with_their_pipe() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let mut frame = vec![0; 64];
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    rig.handle.call(move |switch, now| switch.handle_frame(3, &frame, now)).await.unwrap();
    let Some(Told::Digest(digest)) = told(&mut client).await else { panic!("no digest") };
    let values: Vec<_> = digest.data[0].fields.iter().map(|field| field.value.clone().unwrap()).collect();
    let stream = |bytes: &[u8]| data_field::Value::Stream(bytes.to_vec());
    assert_eq!(values, [stream(&[2, 0, 0, 0, 0, 9]), stream(&[0, 3])]);
    assert_eq!(digest.target.unwrap().pipe_id, 0);
}

/// Sends a frame whose source is this.
async fn learn(rig: &Rig, port: u16, source: u8) {
    let mut frame = vec![0; 64];
    frame[11] = source;
    rig.handle.call(move |switch, now| switch.handle_frame(port, &frame, now)).await.unwrap();
}

/// The next list of digests: its pipe and sources.
async fn learned(client: &mut Client) -> (u32, Vec<u8>) {
    let Some(Told::Digest(digest)) = told(client).await else { panic!("no digest") };
    let source = |data: &TableData| match &data.fields[0].value {
        Some(data_field::Value::Stream(bytes)) => bytes[5],
        other => panic!("{other:?}"),
    };
    (digest.target.unwrap().pipe_id, digest.data.iter().map(source).collect())
}

#[tokio::test]
async fn digests_wait_for_others_of_their_pipe_as_long_as_the_device_says() {
    let rig = Rig::with_ports(&[1, 2, 129]).await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let timeout = |us: u32| {
        let entry = Entry::default_of("tf1.dev.device_configuration").data("flow_learn_timeout_usec", us);
        entry.build(&schema).unwrap()
    };
    client.one(Type::Modify, timeout(150_000)).await.unwrap();
    for (port, source) in [(1, 1), (129, 2), (2, 3), (129, 4)] {
        learn(&rig, port, source).await;
    }
    assert_eq!(learned(&mut client).await, (0, vec![1, 3]));
    assert_eq!(learned(&mut client).await, (1, vec![2, 4]));
    // A list of 64 does not wait.
    client.one(Type::Modify, timeout(10_000_000)).await.unwrap();
    for source in 0..65 {
        learn(&rig, 1, source).await;
    }
    assert_eq!(learned(&mut client).await, (0, (0..64).collect()));
    assert!(told(&mut client).await.is_none(), "the last one waits");
    // A shorter time is for those that come now, and for nothing but them; without one they come after the others.
    client.one(Type::Modify, timeout(50_000)).await.unwrap();
    learn(&rig, 129, 70).await;
    assert_eq!(learned(&mut client).await, (1, vec![70]));
    client.one(Type::Modify, timeout(0)).await.unwrap();
    learn(&rig, 129, 71).await;
    assert_eq!(learned(&mut client).await, (0, vec![64]));
    assert_eq!(learned(&mut client).await, (1, vec![71]));
}

#[tokio::test]
async fn idle_entries_are_reported_once() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let table_id = schema.table("routes").unwrap().id;
    let idle = |enable| {
        let notify = idle_table::IdleTableMode::IdleTableNotifyMode as i32;
        let set = IdleTable { enable, ttl_query_interval: 30, idle_table_mode: notify, ..Default::default() };
        attribute(table_id, table_attribute::Attribute::IdleTable(set))
    };
    let route =
        Entry::of("routes").key("hdr.ethernet.dst", Match::Lpm(vec![2, 0, 0, 0, 0, 0], 8)).action("send");
    let route =
        route.data("port", 1u16).data("queue", 0u16).data("$ENTRY_TTL", 40u32).build(&schema).unwrap();
    client.one(Type::Insert, route.clone()).await.unwrap();
    assert!(told(&mut client).await.is_none(), "nobody asked for it");
    client.write(Atomicity::ContinueOnError, vec![idle(true)]).await.unwrap();
    let Some(Told::IdleTimeoutNotification(found)) = told(&mut client).await else { panic!("not reported") };
    assert_eq!(found.table_entry.unwrap().value, route.value);
    assert!(told(&mut client).await.is_none(), "once is enough");
    let left = &client.entries(&schema, "routes").await[0];
    assert_eq!(left.get("$ENTRY_TTL").unwrap().number(), Some(0));
    client.write(Atomicity::ContinueOnError, vec![idle(false)]).await.unwrap();
    assert_eq!(client.entries(&schema, "routes").await[0].get("$ENTRY_TTL").unwrap().number(), Some(40));
}
