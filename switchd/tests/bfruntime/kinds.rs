//! Tables that P4Runtime does not have, as packets see them.

use crate::rig::*;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc::Code;

pub const KINDS: &str = include_str!("kinds.p4");
/// Pipe 0 has three ports, pipe 1 one.
pub const TWO_PIPES: [u16; 4] = [1, 2, 3, 129];

/// The last two bytes of the frame that leaves in response.
pub async fn answer(rig: &Rig, port: u16, frame: [u8; 4]) -> u16 {
    let out = rig.pass(port, &frame).await;
    u16::from_be_bytes([out[2], out[3]])
}

#[tokio::test]
async fn a_port_has_metadata_in_front_of_its_packets() {
    let rig = Rig::with_ports(&TWO_PIPES).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let of = |port: u128| Entry::of("P.$PORT_METADATA").exact("ig.ingress_port", port);
    assert_eq!(answer(&rig, 1, [1, 0, 0, 9]).await, 0);
    client.one(Type::Insert, build(of(1).data("kind", 3u16).data("mark", 0xabcu16))).await.unwrap();
    client.one(Type::Insert, build(of(129).data("mark", 5u16))).await.unwrap();
    assert_eq!(answer(&rig, 1, [1, 0, 0, 9]).await, 0xabc);
    assert_eq!(answer(&rig, 129, [1, 0, 0, 9]).await, 5, "of another pipe");
    assert_eq!(answer(&rig, 2, [1, 0, 0, 9]).await, 0);
    client.one(Type::Modify, build(of(1).data("mark", 7u16))).await.unwrap();
    let found = client.entries(&schema, "$PORT_METADATA").await;
    let numbers = ["kind", "mark"].map(|name| found[0].get(name).and_then(Value::number));
    assert_eq!((found.len(), numbers), (2, [Some(3), Some(7)]), "the rest stays");
    for (kind, port, code) in [
        (Type::Insert, 1, Code::AlreadyExists),
        (Type::Delete, 2, Code::NotFound),
        (Type::Insert, 300, Code::InvalidArgument),
    ] {
        let refused = client.one(kind, build(of(port).data("mark", 1u16))).await.unwrap_err();
        assert_eq!(refused.0, code as i32, "{refused:?}");
    }
    client.one(Type::Delete, build(of(1))).await.unwrap();
    assert_eq!(answer(&rig, 1, [1, 0, 0, 9]).await, 0);
    // Nothing of a batch that fails.
    let batch = vec![
        update(Type::Insert, build(of(2).data("mark", 2u16))),
        update(Type::Insert, build(of(129).data("mark", 2u16))),
    ];
    client.write(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!((answer(&rig, 2, [1, 0, 0, 9]).await, answer(&rig, 129, [1, 0, 0, 9]).await), (0, 5));
}

#[tokio::test]
async fn filters_are_configured_by_number() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    assert_eq!(answer(&rig, 1, [2, 8, 0, 0]).await, 8);
    let halved = Entry::of("low").exact("$LPF_INDEX", 0).data("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 1u32);
    client.one(Type::Modify, build(halved.clone())).await.unwrap();
    assert_eq!(answer(&rig, 1, [2, 8, 0, 0]).await, 4);
    let early = Entry::of("early").exact("$WRED_INDEX", 0).data("$WRED_SPEC_MIN_THRESH_CELLS", 1u32);
    let early =
        early.data("$WRED_SPEC_MAX_THRESH_CELLS", 2u32).data("$WRED_SPEC_MAX_PROBABILITY", Value::Float(1.0));
    assert_eq!(answer(&rig, 1, [3, 9, 0, 0]).await, 0);
    client.one(Type::Modify, build(early)).await.unwrap();
    assert_eq!(answer(&rig, 1, [3, 9, 0, 0]).await, 1, "is to be dropped");
    let cells = client.entries(&schema, "low").await;
    let factor = |cell: &Entry| cell.get("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR").and_then(Value::number);
    assert_eq!(cells.iter().map(factor).collect::<Vec<_>>(), [Some(1), Some(0), Some(0), Some(0)]);
    assert_eq!(cells[0].get("$LPF_SPEC_TYPE"), Some(&Value::from("SAMPLE")));
    let far = build(Entry::of("low").exact("$LPF_INDEX", 4).data("$LPF_SPEC_TYPE", "RATE"));
    assert!(client.one(Type::Modify, far).await.is_err());
    let steep = build(halved.data("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 32u32));
    assert!(client.one(Type::Modify, steep).await.unwrap_err().1.contains("not 0 to 31"));
    for (name, table, value) in [
        ("$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "low", f32::NAN),
        ("$LPF_SPEC_DECAY_TIME_CONSTANT_NS", "low", -1.0),
        ("$WRED_SPEC_MAX_PROBABILITY", "early", 1.5),
    ] {
        let index = if table == "low" { "$LPF_INDEX" } else { "$WRED_INDEX" };
        let wrong = Entry::of(table).exact(index, 1).data(name, Value::Float(value));
        let refused = client.one(Type::Modify, build(wrong)).await.unwrap_err();
        assert_eq!(refused.0, Code::InvalidArgument as i32, "{name}: {refused:?}");
    }
    let all = TableEntry { table_id: schema.table("low").unwrap().id, ..Default::default() };
    client.one(Type::Delete, all).await.unwrap();
    assert_eq!(answer(&rig, 1, [2, 8, 0, 0]).await, 8);
}

#[tokio::test]
async fn a_parameter_of_a_register_is_set() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let step = |value: u16| Entry::default_of("step").data("value", value).build(&schema).unwrap();
    assert_eq!(answer(&rig, 1, [4, 0, 0, 0]).await, 8, "7 at first, and one more");
    client.one(Type::Modify, step(10)).await.unwrap();
    assert_eq!(answer(&rig, 1, [4, 0, 0, 0]).await, 18);
    let read = TableEntry { data: None, ..step(0) };
    let found = client.read(vec![entity::Entity::TableEntry(read.clone())]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    assert_eq!(Entry::read(&schema, found).unwrap().get("value").and_then(Value::number), Some(10));
    client.one(Type::Delete, read).await.unwrap();
    assert_eq!(answer(&rig, 1, [4, 0, 0, 0]).await, 19, "the program's value again");
}

#[tokio::test]
async fn cells_of_a_register_are_reset_to_the_programs_value() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let cell = |at: u128| Entry::of("counts").exact("$REGISTER_INDEX", at);
    let all = TableEntry { table_id: schema.table("counts").unwrap().id, ..Default::default() };
    for at in 0..4 {
        client.one(Type::Modify, cell(at).data("I.counts.f1", 50u16).build(&schema).unwrap()).await.unwrap();
    }
    let values = async |client: &mut Client| {
        let cells = client.entries(&schema, "counts").await;
        cells.iter().map(|cell| cell.get("I.counts.f1").and_then(Value::number).unwrap()).collect::<Vec<_>>()
    };
    client.one(Type::Delete, cell(2).build(&schema).unwrap()).await.unwrap();
    assert_eq!(values(&mut client).await, [50, 50, 7, 50]);
    let far = client.one(Type::Delete, cell(4).build(&schema).unwrap()).await.unwrap_err();
    assert_eq!(far.0, Code::InvalidArgument as i32, "{far:?}");
    client.one(Type::Delete, all).await.unwrap();
    assert_eq!(values(&mut client).await, [7; 4]);
}

#[tokio::test]
async fn members_of_a_value_set_are_entries() {
    let rig = Rig::with_ports(&TWO_PIPES).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let table_id = schema.table("members").unwrap().id;
    // As given: the builder of entries would clear the bits outside of the mask.
    let member = |value: u8, mask: u8| {
        let ternary = key_field::Ternary { value: vec![value], mask: vec![mask] };
        let field = KeyField { field_id: 1, match_type: Some(key_field::MatchType::Ternary(ternary)) };
        let key = table_entry::Value::Key(TableKey { fields: vec![field] });
        TableEntry { table_id, value: Some(key), ..Default::default() }
    };
    client.one(Type::Insert, member(0x20, 0xff)).await.unwrap();
    client.one(Type::Insert, member(0x40, 0xf0)).await.unwrap();
    for (first, listed) in [(0x20, 1), (0x21, 0), (0x45, 1)] {
        assert_eq!(answer(&rig, 1, [first, 0, 0, 0]).await, listed, "{first:x}");
    }
    // Bits outside of the mask don't make it another one.
    let twice = client.one(Type::Insert, member(0x4f, 0xf0)).await.unwrap_err();
    assert_eq!(twice.0, Code::AlreadyExists as i32, "{twice:?}");
    assert_eq!(client.entries(&schema, "members").await.len(), 2);
    client.one(Type::Delete, member(0x20, 0xff)).await.unwrap();
    client.one(Type::Delete, member(0x20, 0xff)).await.unwrap();
    assert_eq!(answer(&rig, 1, [0x20, 0, 0, 0]).await, 0);
    // Pipes may have members of their own, once the set is empty.
    let single = mode::Scope::Predef(mode::PredefinedMode::Single as i32);
    let scopes = vec![scope(table_id, single)];
    assert!(client.write(Atomicity::ContinueOnError, scopes.clone()).await.is_err());
    client.one(Type::Delete, TableEntry { table_id, ..Default::default() }).await.unwrap();
    client.write(Atomicity::ContinueOnError, scopes).await.unwrap();
    let in_pipe =
        |pipe_id| TableEntry { entry_tgt: Some(TargetDevice { pipe_id, ..ALL }), ..member(0x30, 0xff) };
    let of_all = client.one(Type::Insert, member(0x30, 0xff)).await.unwrap_err();
    assert!(of_all.1.contains("name one, not all, as pipe_id"), "{of_all:?}");
    client.one(Type::Insert, in_pipe(1)).await.unwrap();
    assert_eq!((answer(&rig, 1, [0x30, 0, 0, 0]).await, answer(&rig, 129, [0x30, 0, 0, 0]).await), (0, 1));
}
