//! An update or a read means what its key says, no more and no less.

use crate::rig::*;
use p4rack_bfrt::{Entry, Match, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;

fn route(length: u32) -> Entry {
    let key = Match::Lpm(vec![0xff; 6], length);
    Entry::of("routes").key("hdr.ethernet.dst", key).action("send").data("port", 1u16).data("queue", 3u16)
}

#[tokio::test]
async fn a_key_that_matches_anything_is_one_key() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    client.one(Type::Insert, build(route(8))).await.unwrap();
    client.one(Type::Insert, build(route(16))).await.unwrap();
    let keyed = |entry: Entry| entity::Entity::TableEntry(TableEntry { data: None, ..build(entry) });
    let absent = client.read(vec![keyed(route(0))]).await.unwrap_err();
    assert_eq!(errors(&absent)[0].0, rpc::Code::NotFound as i32);
    let mut part = build(route(0).data("port", 4u16));
    part.data.as_mut().unwrap().fields.retain(|field| field.field_id == 1);
    assert_eq!(client.one(Type::Modify, part.clone()).await.unwrap_err().0, rpc::Code::NotFound as i32);
    client.one(Type::Insert, build(route(0))).await.unwrap();
    assert_eq!(client.read(vec![keyed(route(0))]).await.unwrap().len(), 1);
    client.one(Type::Modify, part).await.unwrap();
    let ports: Vec<_> = client
        .entries(&schema, "routes")
        .await
        .iter()
        .map(|e| e.get("port").unwrap().number().unwrap())
        .collect();
    assert_eq!(ports.iter().filter(|port| **port == 4).count(), 1, "{ports:?}");
    // The same with masks and a priority.
    let any = Entry::of("acl").exact("$MATCH_PRIORITY", 7).action("deny");
    let some = any.clone().key("hdr.ethernet.src", Match::Ternary(vec![1], vec![1]));
    client.one(Type::Insert, build(some)).await.unwrap();
    let absent = client.read(vec![keyed(any)]).await.unwrap_err();
    assert_eq!(errors(&absent)[0].0, rpc::Code::NotFound as i32);
}

#[tokio::test]
async fn cells_are_written_by_number() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let cell = Entry::of("last").exact("$REGISTER_INDEX", 3).data("I.last.f1", 7u32).build(&schema).unwrap();
    let empty = TableEntry { value: Some(table_entry::Value::Key(TableKey::default())), ..cell.clone() };
    let default = TableEntry { value: None, is_default_entry: true, ..cell };
    for wrong in [empty, default] {
        for kind in [Type::Modify, Type::Insert, Type::InsertOrModify] {
            let refused = client.one(kind, wrong.clone()).await.unwrap_err();
            assert_eq!(refused.0, rpc::Code::InvalidArgument as i32, "{refused:?}");
        }
    }
    let cells = client.entries(&schema, "last").await;
    assert!(cells.iter().all(|cell| cell.get("I.last.f1").unwrap().number() == Some(0)), "{cells:?}");
}

#[tokio::test]
async fn an_update_that_fails_leaves_nothing_done() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let member = |id: u128| {
        let member = Entry::of("profile").exact("$ACTION_MEMBER_ID", id).action("send");
        build(member.data("port", 1u16).data("queue", 3u16))
    };
    for id in 1..=3 {
        client.one(Type::Insert, member(id)).await.unwrap();
    }
    let user = Entry::of("balanced").exact("hdr.ethernet.dst", 1).data("$ACTION_MEMBER_ID", 3u32);
    client.one(Type::Insert, build(user)).await.unwrap();
    let all = TableEntry { table_id: schema.table("profile").unwrap().id, ..Default::default() };
    for atomicity in [Atomicity::RollbackOnError, Atomicity::ContinueOnError] {
        client.write(atomicity, vec![update(Type::Delete, all.clone())]).await.unwrap_err();
        assert_eq!(client.entries(&schema, "profile").await.len(), 3);
    }
}

#[tokio::test]
async fn an_entry_is_read_with_its_own_action() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let sends = route(8).build(&schema).unwrap();
    client.one(Type::Insert, sends.clone()).await.unwrap();
    let key = Match::Lpm(vec![0xff; 6], 8);
    let denies = Entry::of("routes").key("hdr.ethernet.dst", key).action("deny").build(&schema).unwrap();
    let asked = |entry: TableEntry| vec![entity::Entity::TableEntry(entry)];
    assert_eq!(client.read(asked(sends.clone())).await.unwrap().len(), 1);
    let other = client.read(asked(denies.clone())).await.unwrap_err();
    assert_eq!(errors(&other)[0].0, rpc::Code::InvalidArgument as i32, "{other:?}");
    // Of all entries, those with the action.
    let all =
        |like: &TableEntry| vec![entity::Entity::TableEntry(TableEntry { value: None, ..like.clone() })];
    assert_eq!(client.read(all(&sends)).await.unwrap().len(), 1);
    assert_eq!(client.read(all(&denies)).await.unwrap().len(), 0);
}

#[tokio::test]
async fn members_and_groups_are_numbered_from_0() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let member = |id: u128| {
        let member = Entry::of("profile").exact("$ACTION_MEMBER_ID", id).action("send");
        build(member.data("port", 2u16).data("queue", 3u16))
    };
    for id in [0, 1] {
        client.one(Type::Insert, member(id)).await.unwrap();
    }
    let group = Entry::of("selector").exact("$SELECTOR_GROUP_ID", 0).data("$MAX_GROUP_SIZE", 4u32);
    let group = group.data("$ACTION_MEMBER_ID", Value::Numbers(vec![0, 1]));
    client
        .one(Type::Insert, build(group.data("$ACTION_MEMBER_STATUS", Value::Bools(vec![true, true]))))
        .await
        .unwrap();
    let to = |mac: u128, field: &str| {
        build(Entry::of("balanced").exact("hdr.ethernet.dst", mac).data(field, 0u32))
    };
    client.one(Type::Insert, to(1, "$ACTION_MEMBER_ID")).await.unwrap();
    client.one(Type::Insert, to(2, "$SELECTOR_GROUP_ID")).await.unwrap();
    // As they were written, and one of them is not all.
    let found = client.entries(&schema, "balanced").await;
    let chosen = |at: usize, field: &str| found[at].get(field).and_then(Value::number);
    assert_eq!((chosen(0, "$ACTION_MEMBER_ID"), chosen(1, "$SELECTOR_GROUP_ID")), (Some(0), Some(0)));
    let keyed = entity::Entity::TableEntry(TableEntry { data: None, ..member(0) });
    assert_eq!(client.read(vec![keyed]).await.unwrap().len(), 1);
    let groups = client.entries(&schema, "selector").await;
    assert_eq!(groups[0].get("$ACTION_MEMBER_ID"), Some(&Value::Numbers(vec![0, 1])));
    let far = client.one(Type::Insert, member(u32::MAX.into())).await.unwrap_err();
    assert_eq!(far.0, rpc::Code::InvalidArgument as i32, "{far:?}");
}

#[tokio::test]
async fn settings_that_nothing_follows_are_refused() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let port = Entry::of("$PORT").exact("$DEV_PORT", 1).data("$SPEED", "BF_SPEED_25G");
    for kind in [Type::Reset, Type::ModifyInc] {
        let refused = client.one(kind, build(port.clone())).await.unwrap_err();
        assert_eq!(refused.0, rpc::Code::Unimplemented as i32, "{refused:?}");
    }
    assert!(client.entries(&schema, "$PORT").await.is_empty());
    // As with the driver, a change of a mirror session replaces all of it.
    let session = Entry::of("$mirror.cfg").exact("$sid", 7).action("$normal");
    let on = session.clone().data("$session_enable", true).data("$ucast_egress_port", 2u32);
    client.one(Type::Insert, build(on.data("$ucast_egress_port_valid", true))).await.unwrap();
    client.one(Type::Modify, build(session.data("$max_pkt_len", 100u32))).await.unwrap();
    let kept = &client.entries(&schema, "$mirror.cfg").await[0];
    assert_ne!(kept.get("$ucast_egress_port_valid"), Some(&Value::Bool(true)), "{kept:?}");
    let mut odd = build(
        Entry::of("profile")
            .exact("$ACTION_MEMBER_ID", 9)
            .action("send")
            .data("port", 1u16)
            .data("queue", 3u16),
    );
    odd.data.as_mut().unwrap().fields.push(DataField { field_id: 77, value: None });
    let refused = client.one(Type::Insert, odd).await.unwrap_err();
    assert!(refused.1.contains("no field with id 77"), "{refused:?}");
}
