//! Properties of entries that P4Runtime does not have, and attributes of their tables, as packets see them.

use crate::kinds::{KINDS, TWO_PIPES, answer};
use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc::Code;
use std::time::Duration;
use stream_message_response::Update as Told;
use table_attribute::Attribute;

fn keyed(table: &str, key: u128) -> Entry {
    Entry::of(table).exact("hdr.h.b", key)
}

fn id(schema: &Schema, table: &str) -> u32 {
    schema.table(table).unwrap().id
}

async fn set(client: &mut Client, update: Update) {
    client.write(Atomicity::ContinueOnError, vec![update]).await.unwrap();
}

#[tokio::test]
async fn an_entry_has_its_element_of_the_direct_register() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let entry = |key| keyed("owned", key).action("note");
    client.one(Type::Insert, entry(9).build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [5, 9, 0, 0]).await, 1, "the program's");
    let given = entry(8).data("I.last.low", 40u16).data("I.last.high", 50u16);
    client.one(Type::Insert, given.build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [5, 8, 0, 0]).await, 40);
    let both = |found: &Entry| {
        ["low", "high"].map(|part| found.get(&format!("I.last.{part}")).and_then(Value::number))
    };
    let found = client.entries(&schema, "owned").await;
    assert_eq!(found.iter().map(both).collect::<Vec<_>>(), [[Some(2), Some(9)], [Some(50), Some(8)]]);
    // The part that is not given stays.
    client.one(Type::Modify, entry(8).data("I.last.low", 60u16).build(&schema).unwrap()).await.unwrap();
    assert_eq!((answer(&rig, 1, [5, 8, 0, 0]).await, answer(&rig, 1, [5, 8, 0, 0]).await), (60, 8));
    // Undone with the rest of its batch.
    let batch = vec![
        update(Type::Modify, entry(9).data("I.last.low", 99u16).build(&schema).unwrap()),
        update(Type::Modify, entry(7).data("I.last.low", 99u16).build(&schema).unwrap()),
    ];
    client.write(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(answer(&rig, 1, [5, 9, 0, 0]).await, 2);
}

#[tokio::test]
async fn an_entry_configures_its_filter() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let entry = keyed("smoothed", 8).action("smooth");
    client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [9, 8, 0, 0]).await, 8);
    let quarter = entry.data("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 2u32);
    client.one(Type::Modify, quarter.build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [9, 8, 0, 0]).await, 2);
    let found = client.entries(&schema, "smoothed").await;
    assert_eq!(found[0].get("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR").and_then(Value::number), Some(2));
}

#[tokio::test]
async fn only_what_the_mask_has_counts_in_exact_keys() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let table = schema.table("masked").unwrap();
    let masks = |second: u16| {
        let field =
            |at: usize, mask: &[u8]| KeyFieldMask { field_id: table.keys[at].id, mask: mask.to_vec() };
        let fields = vec![field(0, &[0xff]), field(1, &second.to_be_bytes())];
        Attribute::DynKeyMask(DynKeyMask { fields })
    };
    let entry = |c: u128| {
        let entry = keyed("masked", 1).exact("hdr.h.c", c).action("set").data("value", 0x77u16);
        entry.build(&schema).unwrap()
    };
    client.one(Type::Insert, entry(0x1234)).await.unwrap();
    assert_eq!(answer(&rig, 1, [7, 1, 0x12, 0xff]).await, 0x12ff, "another key");
    let late = client.write(Atomicity::ContinueOnError, vec![attribute(table.id, masks(0xff00))]).await;
    assert!(errors(&late.unwrap_err())[0].1.contains("has entries"));
    client.one(Type::Delete, entry(0x1234)).await.unwrap();
    set(&mut client, attribute(table.id, masks(0xff00))).await;
    client.one(Type::Insert, entry(0x1234)).await.unwrap();
    assert_eq!(answer(&rig, 1, [7, 1, 0x12, 0xff]).await, 0x77);
    assert_eq!(answer(&rig, 1, [7, 1, 0x13, 0x34]).await, 0x1334);
    assert_eq!(client.one(Type::Insert, entry(0x12ee)).await.unwrap_err().0, Code::AlreadyExists as i32);
    let asked = |id| {
        let attribute = Some(Attribute::DynKeyMask(DynKeyMask::default()));
        entity::Entity::TableAttribute(TableAttribute { table_id: id, attribute })
    };
    let found = client.read(vec![asked(table.id)]).await.unwrap();
    let Some(entity::Entity::TableAttribute(found)) = &found[0].entity else { panic!("{found:?}") };
    assert_eq!(found.attribute, Some(masks(0xff00)));
    let fixed = client.read(vec![asked(id(&schema, "aged"))]).await.unwrap_err();
    assert_eq!(errors(&fixed)[0].0, Code::Unimplemented as i32, "{fixed:?}");
}

#[tokio::test]
async fn meters_count_more_or_fewer_bytes_in_each_pipe() {
    let rig = Rig::with_ports(&TWO_PIPES).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let burst = |entry: Entry| {
        let names =
            ["CIR_KBPS", "PIR_KBPS", "CBS_KBITS", "PBS_KBITS"].map(|name| format!("$METER_SPEC_{name}"));
        names.iter().fold(entry, |entry, name| entry.data(name, 1u64)).build(&schema).unwrap()
    };
    let pipe = |pipe_id| TargetDevice { pipe_id, ..ALL };
    let adjusted =
        |id, bytes| attribute(id, Attribute::ByteCountAdj(ByteCountAdj { byte_count_adjust: bytes }));
    let cell = Entry::of("rate").exact("$METER_INDEX", 0);
    client.one(Type::Modify, burst(cell)).await.unwrap();
    client.one(Type::Insert, burst(keyed("paced", 0).action("color"))).await.unwrap();
    // Bursts have 125 bytes, and the frame 300.
    let color = async |port, first| rig.pass(port, &[&[first, 0, 0, 0], &[0; 296][..]].concat()).await[3];
    for (table, first) in [("rate", 6), ("paced", 10)] {
        let id = id(&schema, table);
        assert_eq!((color(1, first).await, color(129, first).await), (3, 3), "{table}: red");
        let fewer = vec![adjusted(id, -250)];
        client.write_to(pipe(0), Atomicity::ContinueOnError, fewer).await.unwrap();
        assert_eq!((color(1, first).await, color(129, first).await), (0, 3), "{table}: green in pipe 0");
        let asked = TableAttribute {
            table_id: id,
            attribute: Some(Attribute::ByteCountAdj(ByteCountAdj::default())),
        };
        let found = client.read(vec![entity::Entity::TableAttribute(asked)]).await.unwrap();
        let Some(entity::Entity::TableAttribute(found)) = &found[0].entity else { panic!("{found:?}") };
        assert_eq!(found.attribute, Some(Attribute::ByteCountAdj(ByteCountAdj { byte_count_adjust: -250 })));
    }
    let none = vec![adjusted(id(&schema, "aged"), 1)];
    assert!(client.write(Atomicity::ContinueOnError, none).await.is_err());
}

#[tokio::test]
async fn any_pipe_of_a_scope_has_its_entries() {
    let rig = Rig::with_ports(&[1, 3, 129, 257, 385]).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let table_id = id(&schema, "aged");
    set(&mut client, scope(table_id, mode::Scope::UserDefined(0xc03))).await;
    let in_pipe = |pipe_id, from_hw| TableEntry {
        entry_tgt: Some(TargetDevice { pipe_id, ..ALL }),
        table_flags: Some(TableFlags { from_hw, ..Default::default() }),
        ..keyed("aged", 4).action("set").data("value", 6u16).build(&schema).unwrap()
    };
    client.one(Type::Insert, in_pipe(2, false)).await.unwrap();
    let answers = [1, 129, 257, 385].map(async |port| answer(&rig, port, [8, 4, 0, 0]).await);
    let [a, b, c, d] = answers;
    assert_eq!([a.await, b.await, c.await, d.await], [0, 0, 6, 6]);
    let mut read = async |pipe, from_hw| {
        let asked = TableEntry { data: None, ..in_pipe(pipe, from_hw) };
        client.read(vec![entity::Entity::TableEntry(asked)]).await.map(|found| found.len())
    };
    // The software's view is that of the lowest pipe; any pipe's hardware has the entry.
    assert_eq!(
        (read(2, false).await.unwrap(), read(2, true).await.unwrap(), read(3, true).await.unwrap()),
        (1, 1, 1)
    );
    for (pipe, from_hw) in [(0, false), (0, true), (1, true), (3, false)] {
        assert!(read(pipe, from_hw).await.is_err(), "pipe {pipe}, from hardware: {from_hw}");
    }
}

/// The next notice of an entry within a time: whether it is active, and its pipe.
async fn told(client: &mut Client, wait_ms: u64) -> Option<(bool, u32)> {
    loop {
        let next =
            tokio::time::timeout(Duration::from_millis(wait_ms), client.stream.message()).await.ok()?;
        if let Some(Told::IdleTimeoutNotification(found)) = next.unwrap()?.update {
            let is_active = found.r#type() == idle_timeout_notification::NotificationType::EntryActive;
            return Some((is_active, found.target.unwrap().pipe_id));
        }
    }
}

fn idle(table_id: u32, mode: idle_table::IdleTableMode) -> Update {
    let set = IdleTable {
        enable: true,
        ttl_query_interval: 30,
        idle_table_mode: mode as i32,
        ..Default::default()
    };
    attribute(table_id, Attribute::IdleTable(set))
}

#[tokio::test]
async fn each_pipe_reports_its_idle_entries_and_that_they_are_active_again() {
    let rig = Rig::with_ports(&TWO_PIPES).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let table_id = id(&schema, "aged");
    let single = mode::Scope::Predef(mode::PredefinedMode::Single as i32);
    set(&mut client, scope(table_id, single)).await;
    set(&mut client, idle(table_id, idle_table::IdleTableMode::IdleTableNotifyMode)).await;
    let entry = keyed("aged", 4).action("set").data("value", 6u16).data("$ENTRY_TTL", 40u32);
    let entry =
        TableEntry { entry_tgt: Some(TargetDevice { pipe_id: 1, ..ALL }), ..entry.build(&schema).unwrap() };
    client.one(Type::Insert, entry).await.unwrap();
    assert_eq!(told(&mut client, 10_000).await, Some((false, 1)));
    assert_eq!(told(&mut client, 600).await, None, "once");
    // The entry is usually idle again before the switch checks whether it was hit; its activity is reported all
    // the same.
    for wait_ms in [0, 50, 100, 150] {
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        assert_eq!(answer(&rig, 129, [8, 4, 0, 0]).await, 6);
        assert_eq!(told(&mut client, 10_000).await, Some((true, 1)));
        assert_eq!(told(&mut client, 10_000).await, Some((false, 1)));
    }
}

#[tokio::test]
async fn hit_states_are_as_of_their_last_update() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let table_id = id(&schema, "aged");
    set(&mut client, idle(table_id, idle_table::IdleTableMode::IdleTablePollMode)).await;
    let entry = keyed("aged", 4).action("set").data("value", 6u16);
    client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    let operation = TableOperation { table_id, table_operations_type: "UpdateHitState".into() };
    let operation = Entity { entity: Some(entity::Entity::TableOperation(operation)) };
    let operation = Update { r#type: 0, entity: Some(operation) };
    let state = async |client: &mut Client| {
        client.entries(&schema, "aged").await[0].get("$ENTRY_HIT_STATE").cloned().unwrap()
    };
    let (active, idle) = (Value::from("ENTRY_ACTIVE"), Value::from("ENTRY_IDLE"));
    // Hits before the first update count in it.
    set(&mut client, operation.clone()).await;
    set(&mut client, operation.clone()).await;
    assert_eq!(state(&mut client).await, idle);
    assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 6);
    assert_eq!(state(&mut client).await, idle, "not yet updated");
    set(&mut client, operation.clone()).await;
    assert_eq!(state(&mut client).await, active);
    set(&mut client, operation).await;
    assert_eq!(state(&mut client).await, idle);
    let given = entry.clone().data("$ENTRY_HIT_STATE", "ENTRY_ACTIVE");
    client.one(Type::Modify, given.build(&schema).unwrap()).await.unwrap();
    assert_eq!(state(&mut client).await, active, "as given");
    let given = entry.data("$ENTRY_HIT_STATE", "ENTRY_IDLE");
    let absent = keyed("aged", 5).action("set").data("value", 6u16);
    let batch = [given, absent].map(|entry| update(Type::Modify, entry.build(&schema).unwrap()));
    client.write(Atomicity::RollbackOnError, batch.to_vec()).await.unwrap_err();
    assert_eq!(state(&mut client).await, active, "undone");
}
