//! Notifications of ports that go up or down.

use crate::rig::*;
use p4rack_bfrt::{Entry, Schema};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::table_attribute::Attribute;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use std::time::Duration;
use stream_message_response::Update as Said;

fn row(port: u128, enabled: bool) -> Entry {
    let row = Entry::of("$PORT").exact("$DEV_PORT", port);
    row.data("$SPEED", "BF_SPEED_25G").data("$FEC", "BF_FEC_TYP_NONE").data("$PORT_ENABLE", enabled)
}

fn notify(schema: &Schema, enable: bool) -> Update {
    let table_id = schema.table("$PORT").unwrap().id;
    attribute(table_id, Attribute::PortStatusNotify(PortStatusChg { enable }))
}

async fn write(client: &mut Client, updates: Vec<Update>) -> Result<(), tonic::Status> {
    client.write(Atomicity::RollbackOnError, updates).await
}

async fn set_link(rig: &Rig, port: u16, up: bool) {
    rig.handle.call(move |switch, _| switch.set_port_up(port, up)).await.unwrap();
}

/// The next port notification that a client gets.
async fn told(client: &mut Client, schema: &Schema) -> (u32, bool) {
    loop {
        let message = tokio::time::timeout(Duration::from_secs(10), client.stream.message()).await;
        let Some(Said::PortStatusChangeNotification(told)) =
            message.expect("a notification").unwrap().unwrap().update
        else {
            continue;
        };
        let entry = told.table_entry.unwrap();
        assert_eq!(entry.data, None, "only the key");
        let entry = Entry::read(schema, &entry).unwrap();
        assert_eq!(entry.table(), "$PORT");
        return (entry.exact_number("$DEV_PORT").unwrap() as u32, told.port_up);
    }
}

async fn is_told(client: &mut Client, schema: &Schema) -> bool {
    tokio::time::timeout(Duration::from_millis(300), told(client, schema)).await.is_ok()
}

#[tokio::test]
async fn who_wants_to_hears_of_ports_that_go_up_or_down() {
    let rig = Rig::start().await;
    let mut client = rig.hearing(0).await;
    client.set(Action::VerifyAndWarmInitBeginAndEnd, config(PROGRAM)).await.unwrap();
    client.set(Action::Bind, named(NAME)).await.unwrap();
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    client.one(Type::Insert, build(row(1, true))).await.unwrap();
    set_link(&rig, 1, false).await;
    set_link(&rig, 1, true).await;
    assert!(!is_told(&mut client, &schema).await, "it did not ask for that");

    // From now on, every client that asked for it is notified, bound or not; a client that didn't ask is not.
    let (mut other, mut deaf) = (rig.hearing(1).await, Client::subscribe(&rig, 2).await.unwrap());
    write(&mut client, vec![notify(&schema, true)]).await.unwrap();
    set_link(&rig, 1, false).await;
    assert_eq!(told(&mut client, &schema).await, (1, false));
    assert_eq!(told(&mut other, &schema).await, (1, false));
    set_link(&rig, 1, true).await;
    assert_eq!(told(&mut client, &schema).await, (1, true));
    // A port that is not there, or not enabled, is down already.
    set_link(&rig, 2, false).await;
    client.one(Type::Insert, build(row(3, false))).await.unwrap();
    set_link(&rig, 3, false).await;
    set_link(&rig, 3, true).await;
    assert!(!is_told(&mut client, &schema).await);
    for (enabled, port) in [(true, 3), (false, 3), (true, 3)] {
        client.one(Type::Modify, build(row(port, enabled))).await.unwrap();
        assert_eq!(told(&mut client, &schema).await, (port as u32, enabled));
    }
    client.one(Type::Delete, build(row(3, true))).await.unwrap();
    assert_eq!(told(&mut client, &schema).await, (3, false));
    assert!(!is_told(&mut deaf, &schema).await);

    // A transaction does not cover ports: what one that fails did before is done.
    let half = vec![update(Type::Modify, build(row(1, false))), update(Type::Insert, build(row(77, true)))];
    assert!(write(&mut client, half).await.is_err());
    assert_eq!(told(&mut client, &schema).await, (1, false));
    write(&mut client, vec![notify(&schema, false)]).await.unwrap();
    set_link(&rig, 1, false).await;
    assert!(!is_told(&mut client, &schema).await, "nobody is told any more");
}

#[tokio::test]
async fn notifications_of_ports_are_asked_for_twice_and_end_with_an_installation() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let refused = write(&mut client, vec![notify(&schema, true)]).await.unwrap_err();
    assert_eq!(errors(&refused)[0].0, rpc::Code::InvalidArgument as i32);
    assert!(errors(&refused)[0].1.contains("enable_port_status_change_notifications"), "{refused}");
    drop(client);

    let mut client = rig.hearing(5).await;
    let bound = async |client: &mut Client| client.set(Action::Bind, named(NAME)).await.is_err();
    while bound(&mut client).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = attribute(
        schema.table("exact_dst").unwrap().id,
        Attribute::PortStatusNotify(PortStatusChg { enable: true }),
    );
    assert!(write(&mut client, vec![other]).await.is_err(), "no table of ports");
    let asked = async |client: &mut Client| {
        let table_id = schema.table("$PORT").unwrap().id;
        let attribute = Some(Attribute::PortStatusNotify(PortStatusChg { enable: false }));
        let asked = entity::Entity::TableAttribute(TableAttribute { table_id, attribute });
        match client.read(vec![asked]).await.unwrap().remove(0).entity {
            Some(entity::Entity::TableAttribute(TableAttribute {
                attribute: Some(Attribute::PortStatusNotify(told)),
                ..
            })) => told.enable,
            other => panic!("{other:?}"),
        }
    };
    assert!(!asked(&mut client).await);
    write(&mut client, vec![notify(&schema, true)]).await.unwrap();
    assert!(asked(&mut client).await);
    client.set(Action::VerifyAndWarmInitBeginAndEnd, config(PROGRAM)).await.unwrap();
    assert!(!asked(&mut client).await);
}
