//! Effect of a MODIFY's flags on an entry's counter and time to live.

use crate::kinds::{KINDS, answer};
use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use std::time::Duration;
use table_attribute::Attribute;

fn aged(action: &str) -> Entry {
    Entry::of("aged").exact("hdr.h.b", 4).action(action)
}

fn flagged(schema: &Schema, entry: Entry, reset_stats: bool, reset_ttl: bool) -> TableEntry {
    let flags = TableFlags { reset_stats, reset_ttl, ..Default::default() };
    TableEntry { table_flags: Some(flags), ..entry.build(schema).unwrap() }
}

async fn number(client: &mut Client, schema: &Schema, field: &str) -> u64 {
    client.entries(schema, "aged").await[0].get(field).and_then(Value::number).unwrap()
}

const COUNT: &str = "$COUNTER_SPEC_PKTS";

#[tokio::test]
async fn a_counter_stays_unless_the_flag_resets_it() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let put = aged("put").data("value", 6u16);
    client.one(Type::Insert, put.clone().data(COUNT, 5u64).build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 6);
    assert_eq!(number(&mut client, &schema, COUNT).await, 6, "an INSERT sets it");
    for (entry, resets, expected) in [
        (aged("mark"), false, 6),
        (put.clone().data(COUNT, 9u64), false, 6),
        (put.clone(), true, 6),
        (put.clone().data(COUNT, 9u64), true, 9),
        (aged("mark"), true, 0),
    ] {
        let entry = flagged(&schema, entry, resets, false);
        client.one(Type::Modify, entry.clone()).await.unwrap();
        assert_eq!(number(&mut client, &schema, COUNT).await, expected, "{entry:?}");
    }
    assert_eq!(answer(&rig, 1, [8, 4, 0, 0]).await, 1, "the action is the last one given");
    // Undone with its batch.
    let absent = Entry::of("aged").exact("hdr.h.b", 5).action("mark").build(&schema).unwrap();
    let reset = flagged(&schema, aged("mark"), true, false);
    let batch = vec![update(Type::Modify, reset), update(Type::Modify, absent)];
    client.write(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(number(&mut client, &schema, COUNT).await, 1);
}

#[tokio::test]
async fn a_time_to_live_goes_on_unless_the_flag_resets_it() {
    const TTL_MS: u32 = 100_000;
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let notify = idle_table::IdleTableMode::IdleTableNotifyMode as i32;
    let set =
        IdleTable { enable: true, ttl_query_interval: 1000, idle_table_mode: notify, ..Default::default() };
    let table_id = schema.table("aged").unwrap().id;
    let set = vec![attribute(table_id, Attribute::IdleTable(set))];
    client.write(Atomicity::ContinueOnError, set).await.unwrap();
    let entry = aged("mark").data("$ENTRY_TTL", TTL_MS);
    client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3000)).await;
    let passed = u64::from(TTL_MS) - number(&mut client, &schema, "$ENTRY_TTL").await;
    assert!(passed >= 3000, "{passed}");
    client.one(Type::Modify, flagged(&schema, entry.clone(), true, false)).await.unwrap();
    let after = u64::from(TTL_MS) - number(&mut client, &schema, "$ENTRY_TTL").await;
    assert!(after >= passed, "{after}");
    // Undone, too.
    let absent = Entry::of("aged").exact("hdr.h.b", 5).action("mark").build(&schema).unwrap();
    let anew = flagged(&schema, entry, true, true);
    let batch = vec![update(Type::Modify, anew.clone()), update(Type::Modify, absent)];
    client.write(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert!(u64::from(TTL_MS) - number(&mut client, &schema, "$ENTRY_TTL").await >= passed);
    client.one(Type::Modify, anew).await.unwrap();
    let after = u64::from(TTL_MS) - number(&mut client, &schema, "$ENTRY_TTL").await;
    assert!(after < 3000, "{after}");
}
