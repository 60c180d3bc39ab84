//! What clients notice of a driver, beside what its schema says.

use crate::kinds::{KINDS, answer};
use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Code;

/// Far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number in a field of the entry that a read finds.
async fn number(client: &mut Client, schema: &Schema, asked: TableEntry, field: &str) -> Option<u64> {
    let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    Entry::read(schema, found).unwrap().get(field).and_then(Value::number)
}

/// The status with which a stream ends.
async fn end(client: &mut Client) -> tonic::Status {
    loop {
        match timeout(PATIENCE, client.stream.message()).await.expect("it ends") {
            Ok(Some(_)) => {}
            other => return other.unwrap_err(),
        }
    }
}

fn code(refused: &(i32, String)) -> rpc::Code {
    rpc::Code::try_from(refused.0).unwrap()
}

#[tokio::test]
async fn who_acknowledges_digests_loses_its_stream_and_another_may_bind() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let ack = StreamMessageRequest {
        client_id: client.id,
        update: Some(stream_message_request::Update::DigestAck(DigestListAck::default())),
    };
    client.out.send(ack).await.unwrap();
    assert_eq!(end(&mut client).await.code(), Code::Unimplemented);
    let mut other = Client::subscribe(&rig, 7).await.unwrap();
    other.set(Action::Bind, named(NAME)).await.unwrap();
}

#[tokio::test]
async fn a_client_binds_once_and_stays_bound_to_programs_of_that_name() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let twice = client.set(Action::Bind, named(NAME)).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists, "{twice}");
    client.set(Action::VerifyAndWarmInitBegin, config(PROGRAM)).await.unwrap();
    let twice = client.set(Action::Bind, named(NAME)).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists, "{twice}");
    client.one(Type::Insert, to(1, 1).build(&schema).unwrap()).await.unwrap();
    client.set(Action::WarmInitEnd, named("")).await.unwrap();
    assert_eq!(client.entries(&schema, "exact_dst").await.len(), 1);
    let mut stranger = Client::subscribe(&rig, 8).await.unwrap();
    stranger.id = 99;
    let unknown = stranger.set(Action::Bind, named(NAME)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unavailable, "{unknown}");
}

#[tokio::test]
async fn a_second_subscription_of_a_stream_is_not_answered() {
    let rig = Rig::start().await;
    let mut client = Client::subscribe(&rig, 4).await.unwrap();
    let update = Some(stream_message_request::Update::Subscribe(Subscribe::default()));
    client.out.send(StreamMessageRequest { client_id: 5, update }).await.unwrap();
    // The next message is that of an installation.
    client.set(Action::VerifyAndWarmInitBeginAndEnd, config(PROGRAM)).await.unwrap();
    let next = timeout(PATIENCE, client.stream.message()).await.unwrap().unwrap().unwrap().update;
    let is_step =
        matches!(next, Some(stream_message_response::Update::SetForwardingPipelineConfigResponse(_)));
    assert!(is_step, "{next:?}");
    client.set(Action::Bind, named(NAME)).await.unwrap();
}

#[tokio::test]
async fn notices_find_clients_by_24_bits_of_their_ids() {
    let rig = Rig::start().await;
    let mut client = rig.hearing(1 << 24 | 3).await;
    client.set(Action::VerifyAndWarmInitBeginAndEnd, config(PROGRAM)).await.unwrap();
    client.set(Action::Bind, named(NAME)).await.unwrap();
    let mut small = rig.hearing(9).await;
    let schema = schema(&mut client).await;
    let port = Entry::of("$PORT").exact("$DEV_PORT", 1).data("$SPEED", "BF_SPEED_25G");
    let port = port.data("$FEC", "BF_FEC_TYP_NONE").data("$PORT_ENABLE", true).build(&schema).unwrap();
    client.one(Type::Insert, port).await.unwrap();
    let ports = schema.table("$PORT").unwrap().id;
    let notify = table_attribute::Attribute::PortStatusNotify(PortStatusChg { enable: true });
    client.write(Atomicity::ContinueOnError, vec![attribute(ports, notify)]).await.unwrap();
    rig.handle.call(|switch, _| switch.set_port_up(1, false)).await.unwrap();
    let is_news = |message: &StreamMessageResponse| {
        matches!(message.update, Some(stream_message_response::Update::PortStatusChangeNotification(_)))
    };
    while !is_news(&timeout(PATIENCE, small.stream.message()).await.unwrap().unwrap().unwrap()) {}
    // All that was sent to it before, and this is not part of it.
    while let Ok(message) = timeout(Duration::from_millis(200), client.stream.message()).await {
        assert!(!is_news(&message.unwrap().unwrap()));
    }
}

#[tokio::test]
async fn no_table_takes_a_reset() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let cell = Entry::of("last").exact("$REGISTER_INDEX", 3).build(&schema).unwrap();
    let all = ["last", "exact_dst", "selector", "$PORT", "$pre.mgid", "tf1.tm.queue.buffer"];
    for entry in all.map(|table| all_of(&schema, table)).into_iter().chain([cell]) {
        let refused = client.one(Type::Reset, entry.clone()).await.unwrap_err();
        assert_eq!(code(&refused), rpc::Code::Unimplemented, "{entry:?}");
    }
}

#[tokio::test]
async fn rows_of_packet_generators_change_and_gates_take_part_in_no_transaction() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let gate = || Entry::of("tf1.pktgen.port_cfg").exact("dev_port", 68).data("pktgen_enable", true);
    let bytes = |byte| Value::Numbers(vec![byte; 16]);
    let buffer = |byte| {
        let buffer = Entry::of("tf1.pktgen.pkt_buffer").exact("pkt_buffer_offset", 32);
        buffer.exact("pkt_buffer_size", 16).data("buffer", bytes(byte))
    };
    let app = Entry::of("tf1.pktgen.app_cfg").exact("app_id", 3).action("trigger_timer_one_shot");
    let app = app.data("timer_nanosec", 1u32);
    let session = Entry::of("$mirror.cfg").exact("$sid", 7).action("$normal").data("$session_enable", false);
    for entry in [gate(), buffer(1), app.clone()].map(build) {
        for kind in [Type::Insert, Type::Delete, Type::InsertOrModify] {
            let refused = client.one(kind, entry.clone()).await.unwrap_err();
            assert_eq!(code(&refused), rpc::Code::Unimplemented, "{kind:?}: {refused:?}");
        }
    }
    let enabled = app.clone().data("app_enable", true);
    client.write(Atomicity::RollbackOnError, vec![update(Type::Modify, build(enabled))]).await.unwrap();
    let refused = client.one(Type::Delete, all_of(&schema, "tf1.pktgen.app_cfg")).await.unwrap_err();
    assert_eq!(code(&refused), rpc::Code::Unavailable, "{refused:?}");
    client.one(Type::Modify, build(app.data("app_enable", false))).await.unwrap();
    for (kind, entry) in [(Type::Modify, gate()), (Type::Insert, session)] {
        let both = vec![update(kind, build(entry.clone()))];
        let refused = client.write(Atomicity::RollbackOnError, both.clone()).await.unwrap_err();
        assert_eq!(errors(&refused)[0].0, rpc::Code::Unimplemented as i32, "{entry:?}");
        client.write(Atomicity::ContinueOnError, both).await.unwrap();
    }
    client.one(Type::Modify, build(buffer(7))).await.unwrap();
    for table in ["port_cfg", "pkt_buffer"] {
        let all = entity::Entity::TableEntry(all_of(&schema, &format!("tf1.pktgen.{table}")));
        let refused = client.read(vec![all]).await.unwrap_err();
        assert_eq!(errors(&refused)[0].0, rpc::Code::Unimplemented as i32, "{table}");
    }
    assert_eq!(client.entries(&schema, "tf1.pktgen.app_cfg").await.len(), 1);
    let read = async |client: &mut Client, entry: Entry, field: &str| {
        let asked = TableEntry { data: None, ..build(entry) };
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        Entry::read(&schema, found).unwrap().get(field).cloned().unwrap()
    };
    assert_eq!(read(&mut client, gate(), "pktgen_enable").await, Value::Bool(true));
    assert_eq!(read(&mut client, buffer(0), "buffer").await, bytes(7));
    for table in ["port_cfg", "pkt_buffer", "app_cfg"] {
        client.one(Type::Delete, all_of(&schema, &format!("tf1.pktgen.{table}"))).await.unwrap();
    }
    assert_eq!(read(&mut client, gate(), "pktgen_enable").await, Value::Bool(false));
    assert_eq!(read(&mut client, buffer(0), "buffer").await, bytes(0));
    assert!(client.entries(&schema, "tf1.pktgen.app_cfg").await.is_empty());
}

#[tokio::test]
async fn mirror_sessions_have_numbers_and_errors_of_the_driver() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let session = |id: u128| {
        let session = Entry::of("$mirror.cfg").exact("$sid", id).action("$normal");
        session.data("$session_enable", true).data("$ucast_egress_port", 2u32).build(&schema).unwrap()
    };
    for (kind, id, wanted) in [
        (Type::Insert, 0, "the driver's own"),
        (Type::Insert, 1016, "is not 1 to 1015"),
        (Type::Modify, 9, "there is no session 9"),
        (Type::Delete, 9, "there is no session 9"),
    ] {
        let refused = client.one(kind, session(id)).await.unwrap_err();
        let wanted_code = if id == 1016 { rpc::Code::NotFound } else { rpc::Code::InvalidArgument };
        assert_eq!(code(&refused), wanted_code, "{refused:?}");
        assert!(refused.1.contains(wanted), "{refused:?}");
    }
    client.one(Type::Insert, session(1015)).await.unwrap();
    let refused = client.one(Type::InsertOrModify, session(1015)).await.unwrap_err();
    assert_eq!(code(&refused), rpc::Code::Unimplemented, "{refused:?}");
    client.one(Type::Delete, session(1015)).await.unwrap();
}

#[tokio::test]
async fn a_table_without_rows_is_asked_for_its_default_entry() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    for table in ["tf1.dev.device_configuration", "tf1.tm.cfg"] {
        let all = all_of(&schema, table);
        let refused = client.read(vec![entity::Entity::TableEntry(all.clone())]).await.unwrap_err();
        assert_eq!(errors(&refused)[0].0, rpc::Code::Unimplemented as i32, "{table}");
        let default = TableEntry { is_default_entry: true, ..all };
        assert_eq!(client.read(vec![entity::Entity::TableEntry(default)]).await.unwrap().len(), 1);
    }
    let rows = TableEntry { is_default_entry: true, ..all_of(&schema, "tf1.tm.port.cfg") };
    assert!(client.read(vec![entity::Entity::TableEntry(rows)]).await.is_err());
}

#[tokio::test]
async fn ports_are_added_with_speed_and_fec_and_go_with_the_program() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let port = || Entry::of("$PORT").exact("$DEV_PORT", 1);
    let speed = |speed: &str| port().data("$SPEED", speed);
    let whole = |gbps: &str, fec: &str| speed(gbps).data("$FEC", fec);
    for part in [port(), speed("BF_SPEED_25G"), port().data("$FEC", "BF_FEC_TYP_NONE")] {
        let refused = client.one(Type::Insert, part.build(&schema).unwrap()).await.unwrap_err();
        assert_eq!(code(&refused), rpc::Code::InvalidArgument, "{refused:?}");
    }
    let row = async |client: &mut Client| {
        let rows = client.entries(&schema, "$PORT").await;
        ["$SPEED", "$FEC", "$PORT_ENABLE"].map(|field| rows[0].get(field).cloned())
    };
    let (rs, none) = ("BF_FEC_TYP_REED_SOLOMON", "BF_FEC_TYP_NONE");
    let write = async |client: &mut Client, kind, entry: Entry| {
        client.one(kind, entry.build(&schema).unwrap()).await.unwrap();
    };
    write(&mut client, Type::Insert, whole("BF_SPEED_25G", rs)).await;
    // Added again, it keeps both; the rest is as given.
    let again = whole("BF_SPEED_10G", none).data("$PORT_ENABLE", true);
    write(&mut client, Type::Insert, again).await;
    let text = |text: &str| Some(Value::from(text));
    assert_eq!(row(&mut client).await, [text("BF_SPEED_25G"), text(rs), Some(Value::Bool(true))]);
    write(&mut client, Type::Modify, speed("BF_SPEED_10G")).await;
    assert_eq!(row(&mut client).await, [text("BF_SPEED_10G"), text(none), Some(Value::Bool(true))]);
    // A program that is refused removes none.
    assert!(client.set(Action::VerifyAndWarmInitBegin, config("not P4")).await.is_err());
    assert_eq!(client.entries(&schema, "$PORT").await.len(), 1);
    client.set(Action::VerifyAndWarmInitBegin, config(PROGRAM)).await.unwrap();
    assert!(client.entries(&schema, "$PORT").await.is_empty());
    write(&mut client, Type::Insert, whole("BF_SPEED_25G", none)).await;
    client.set(Action::WarmInitEnd, named("")).await.unwrap();
    assert_eq!(client.entries(&schema, "$PORT").await.len(), 1);
}

#[tokio::test]
async fn a_table_that_is_cleared_has_the_programs_default_entry_again() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let default = async |client: &mut Client| {
        let asked = TableEntry { is_default_entry: true, ..all_of(&schema, "exact_dst") };
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        found.data.clone()
    };
    let before = default(&mut client).await;
    let flood = Entry::default_of("exact_dst").action("flood").build(&schema).unwrap();
    client.one(Type::Modify, flood).await.unwrap();
    client.one(Type::Insert, to(1, 1).build(&schema).unwrap()).await.unwrap();
    let changed = default(&mut client).await;
    assert_ne!(changed, before);
    let clear = update(Type::Delete, all_of(&schema, "exact_dst"));
    let fails = update(Type::Delete, to(77, 1).build(&schema).unwrap());
    client.write(Atomicity::RollbackOnError, vec![clear.clone(), fails]).await.unwrap_err();
    assert_eq!((default(&mut client).await, client.entries(&schema, "exact_dst").await.len()), (changed, 1));
    client.write(Atomicity::ContinueOnError, vec![clear]).await.unwrap();
    assert_eq!((default(&mut client).await, client.entries(&schema, "exact_dst").await.len()), (before, 0));
}

fn sync(schema: &Schema, table: &str, name: &str) -> Update {
    let table_id = schema.table(table).unwrap().id;
    let operation = TableOperation { table_id, table_operations_type: name.into() };
    Update { r#type: 0, entity: Some(Entity { entity: Some(entity::Entity::TableOperation(operation)) }) }
}

#[tokio::test]
async fn registers_read_as_software_knows_them_until_they_are_asked_for_or_synced() {
    let rig = Rig::with_ports(&[1, 129]).await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let table_id = schema.table("last").unwrap().id;
    let cell = |value: Option<u32>| {
        let cell = Entry::of("last").exact("$REGISTER_INDEX", 3);
        let built = value.map_or(cell.clone(), |value| cell.data("I.last.f1", value)).build(&schema).unwrap();
        TableEntry { data: built.data.filter(|_| value.is_some()), ..built }
    };
    // What the data plane writes, in each pipe.
    let instance = p4rack_p4::compile(PROGRAM, NAME, &p4rack_p4::Options::default()).unwrap();
    let instance =
        instance.program.instances.iter().position(|one| one.named.name.ends_with("last")).unwrap();
    let instance = p4rack_p4::ir::InstanceId(instance as u32);
    let counts = async |value: u32| {
        let write =
            move |switch: &mut p4rack_switch::Switch, _| switch.register_write(instance, 3, &value.into());
        rig.handle.call(write).await.unwrap().unwrap();
    };
    let values = async |client: &mut Client, asked: TableEntry| {
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        let fields = found.data.clone().unwrap().fields.into_iter();
        let value = |field: DataField| match field.value {
            Some(data_field::Value::Stream(bytes)) => {
                bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
            }
            other => panic!("{other:?}"),
        };
        fields.map(value).collect::<Vec<u32>>()
    };
    assert_eq!(values(&mut client, cell(None)).await, [0, 0]);
    counts(5).await;
    assert_eq!(values(&mut client, cell(None)).await, [0, 0]);
    assert_eq!(values(&mut client, from_switch(cell(None))).await, [5, 5]);
    // Software knows what it wrote, in the pipe where it did.
    client.one(Type::Modify, in_pipe(1, cell(Some(7)))).await.unwrap();
    counts(8).await;
    assert_eq!(values(&mut client, cell(None)).await, [0, 7]);
    assert_eq!(values(&mut client, in_pipe(1, cell(None))).await, [7]);
    client.write(Atomicity::ContinueOnError, vec![sync(&schema, "last", "Sync")]).await.unwrap();
    counts(9).await;
    assert_eq!(values(&mut client, cell(None)).await, [8, 8]);
    assert_eq!(values(&mut client, from_switch(cell(None))).await, [9, 9]);
    client.one(Type::Delete, TableEntry { table_id, ..Default::default() }).await.unwrap();
    assert_eq!(values(&mut client, cell(None)).await, [0, 0]);
}

#[tokio::test]
async fn counters_read_as_of_the_last_sync_unless_they_are_asked_for() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    const COUNT: &str = "$COUNTER_SPEC_PKTS";
    let entry = Entry::of("aged").exact("hdr.h.b", 4).action("put").data("value", 6u16);
    let asked = TableEntry { data: None, ..entry.build(&schema).unwrap() };
    let counted = async |client: &mut Client, from_hw: bool| {
        let asked = if from_hw { from_switch(asked.clone()) } else { asked.clone() };
        number(client, &schema, asked, COUNT).await.unwrap()
    };
    let sync = async |client: &mut Client| {
        client.write(Atomicity::ContinueOnError, vec![sync(&schema, "aged", "SyncCounters")]).await.unwrap();
    };
    client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 6);
    }
    assert_eq!((counted(&mut client, false).await, counted(&mut client, true).await), (0, 3));
    sync(&mut client).await;
    assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 6);
    assert_eq!((counted(&mut client, false).await, counted(&mut client, true).await), (3, 4));
    // Another entry with the same key counts from the start, and counts that are written are known.
    client.one(Type::Delete, asked.clone()).await.unwrap();
    client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    assert_eq!(counted(&mut client, false).await, 0);
    client.one(Type::Delete, asked.clone()).await.unwrap();
    client.one(Type::Insert, entry.clone().data(COUNT, 50u64).build(&schema).unwrap()).await.unwrap();
    assert_eq!(counted(&mut client, false).await, 50);
    assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 6);
    assert_eq!((counted(&mut client, false).await, counted(&mut client, true).await), (50, 51));
    client.one(Type::Delete, asked.clone()).await.unwrap();
}
