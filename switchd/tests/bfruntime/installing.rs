//! Programs that replace others: the state that they keep, and the state that they don't.

use crate::kinds::KINDS;
use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::{Action, DevInitMode};
use p4rack_p4rt::bfrt_proto::table_attribute::Attribute;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;

const BEGIN: Action = Action::VerifyAndWarmInitBegin;
const BOTH: Action = Action::VerifyAndWarmInitBeginAndEnd;

fn count(at: u128, value: u16) -> Entry {
    Entry::of("counts").exact("$REGISTER_INDEX", at).data("I.counts.f1", value)
}

async fn counts(client: &mut Client, schema: &Schema) -> Vec<u64> {
    let cells = client.entries(schema, "counts").await;
    cells.iter().map(|cell| cell.get("I.counts.f1").and_then(Value::number).unwrap()).collect()
}

/// The committed rate of a meter's cell.
async fn rate(client: &mut Client, schema: &Schema, at: usize) -> u64 {
    let cells = client.entries(schema, "rate").await;
    cells[at].get("$METER_SPEC_CIR_KBPS").and_then(Value::number).unwrap()
}

/// Value of a table's attribute.
async fn read_attribute(client: &mut Client, table_id: u32, asked: Attribute) -> Attribute {
    let asked = TableAttribute { table_id, attribute: Some(asked) };
    let found = client.read(vec![entity::Entity::TableAttribute(asked)]).await.unwrap();
    match found.into_iter().next().and_then(|found| found.entity) {
        Some(entity::Entity::TableAttribute(found)) => found.attribute.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cells_that_nobody_wrote_and_attributes_stay() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let id = |table: &str| schema.table(table).unwrap().id;
    let metered = |at: u128, kbps: u64| {
        let cell = Entry::of("rate").exact("$METER_INDEX", at);
        let cell = cell.data("$METER_SPEC_CIR_KBPS", kbps).data("$METER_SPEC_PIR_KBPS", kbps);
        cell.data("$METER_SPEC_CBS_KBITS", 1000u64).data("$METER_SPEC_PBS_KBITS", 1000u64)
    };
    let mask = DynKeyMask { fields: vec![KeyFieldMask { field_id: 1, mask: vec![0xf0] }] };
    let adjust = |byte_count_adjust| Attribute::ByteCountAdj(ByteCountAdj { byte_count_adjust });
    client.one(Type::Modify, build(count(1, 50))).await.unwrap();
    client.one(Type::Modify, build(metered(2, 4000))).await.unwrap();
    let set = vec![
        attribute(id("rate"), adjust(14)),
        attribute(id("paced"), adjust(-4)),
        attribute(id("masked"), Attribute::DynKeyMask(mask)),
    ];
    client.write(Atomicity::ContinueOnError, set).await.unwrap();

    client.set_in(DevInitMode::Hitless, BOTH, whole(KINDS)).await.unwrap();
    assert_eq!(counts(&mut client, &schema).await, [7, 50, 7, 7]);
    assert_eq!(rate(&mut client, &schema, 2).await, 4000);

    // Writes during the installation survive it.
    client.set_in(DevInitMode::Hitless, BEGIN, whole(KINDS)).await.unwrap();
    assert_eq!(counts(&mut client, &schema).await, [7; 4], "a new program");
    client.one(Type::Modify, build(count(0, 9))).await.unwrap();
    client.one(Type::Modify, build(metered(3, 8000))).await.unwrap();
    client.set(Action::WarmInitEnd, named("")).await.unwrap();
    assert_eq!(counts(&mut client, &schema).await, [9, 50, 7, 7]);
    assert_eq!((rate(&mut client, &schema, 2).await, rate(&mut client, &schema, 3).await), (4000, 8000));

    client.set_in(DevInitMode::FastReconfig, BOTH, whole(KINDS)).await.unwrap();
    assert_eq!(counts(&mut client, &schema).await, [7; 4], "nothing stays");
    assert_ne!(rate(&mut client, &schema, 2).await, 4000);

    // Attributes outlive all of this, in the switch, too.
    assert_eq!(read_attribute(&mut client, id("rate"), adjust(0)).await, adjust(14));
    assert_eq!(read_attribute(&mut client, id("paced"), adjust(0)).await, adjust(-4));
    let asked = Attribute::DynKeyMask(DynKeyMask::default());
    let Attribute::DynKeyMask(found) = read_attribute(&mut client, id("masked"), asked).await else {
        panic!("another attribute")
    };
    assert_eq!(
        found.fields.iter().map(|field| &field.mask[..]).collect::<Vec<_>>(),
        [&[0xf0][..], &[0xff; 2]]
    );
    let meter = p4rack_p4::compile(KINDS, NAME, &p4rack_p4::Options::default()).unwrap();
    let meter = meter.program.instances.iter().position(|instance| instance.named.name.ends_with("rate"));
    let meter = p4rack_p4::ir::InstanceId(meter.unwrap() as u32);
    let adjusted = rig.handle.call(move |switch, _| switch.meter_adjustment(meter)).await.unwrap();
    assert_eq!(adjusted, Ok(14));
}
