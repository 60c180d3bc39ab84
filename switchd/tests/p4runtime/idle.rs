//! Idle timeouts of entries.

use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::update::Type::{Delete, Insert, Modify};
use p4rack_p4rt::p4::v1::*;
use std::time::{Duration, Instant};

const MILLISECOND: i64 = 1_000_000;

/// The entry of the host that frames come from.
pub fn source(last: u8, timeout_ns: i64) -> TableEntry {
    let entry = Entry::of("sources").exact("hdr.ethernet.src", [2, 0, 0, 0, 0, last]).action("pace");
    TableEntry { idle_timeout_ns: timeout_ns, metadata: vec![last], ..entry.build(schema()).unwrap() }
}

/// The next notification, if one comes within that time.
async fn notified(client: &mut Client, within: Duration) -> Option<IdleTimeoutNotification> {
    let message = tokio::time::timeout(within, client.stream.message()).await.ok()?;
    match message.unwrap().unwrap().update.unwrap() {
        stream_message_response::Update::IdleTimeoutNotification(idle) => Some(idle),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_idle_entry_is_notified_of_and_then_its_timer_starts_anew() {
    let (_rig, mut client) = Rig::ready().await;
    let started = Instant::now();
    client.entry(Insert, source(9, 60 * MILLISECOND)).await.unwrap();
    client.entry(Insert, source(8, 0)).await.unwrap();
    let expected = TableEntry { action: None, ..source(9, 60 * MILLISECOND) };
    for times in 1..=3 {
        let idle = notified(&mut client, Duration::from_secs(5)).await.expect("a notification");
        assert_eq!(idle.table_entry, [expected.clone()]);
        assert!(idle.timestamp > 1_000_000_000_000_000_000, "since 1970: {}", idle.timestamp);
        assert!(started.elapsed() >= times * Duration::from_millis(60), "{times}: {:?}", started.elapsed());
    }
    // The entry stays: the controller decides about it.
    assert_eq!(client.table(wildcard("sources")).await.len(), 2);
    client.entry(Delete, source(9, 0)).await.unwrap();
    while notified(&mut client, Duration::from_millis(10)).await.is_some() {}
    assert_eq!(notified(&mut client, Duration::from_millis(200)).await, None);
}

#[tokio::test]
async fn an_entry_that_is_hit_is_not_idle() {
    let (rig, mut client) = Rig::ready().await;
    client.entry(Insert, source(99, 200 * MILLISECOND)).await.unwrap();
    for _ in 0..10 {
        rig.inject(1, &frame(1, 0x0800)).await;
        assert_eq!(notified(&mut client, Duration::from_millis(40)).await, None);
    }
    assert!(notified(&mut client, Duration::from_secs(5)).await.is_some(), "the frames have ended");
    // A new timeout starts a new time; none at all ends it.
    client.entry(Modify, source(99, 0)).await.unwrap();
    assert_eq!(notified(&mut client, Duration::from_millis(300)).await, None);
}

#[tokio::test]
async fn the_time_since_the_last_hit_is_told_exactly_if_asked_for() {
    let (_rig, mut client) = Rig::ready().await;
    client.entry(Insert, source(9, 0)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let asked = TableEntry { time_since_last_hit: Some(Default::default()), ..wildcard("sources") };
    let elapsed = client.table(asked).await[0].time_since_last_hit.unwrap().elapsed_ns;
    assert!((10 * MILLISECOND..5000 * MILLISECOND).contains(&elapsed), "{elapsed}");
    assert_eq!(client.table(wildcard("sources")).await[0].time_since_last_hit, None);
}

#[tokio::test]
async fn a_table_without_support_timeout_takes_no_timeout() {
    let (_rig, mut client) = Rig::ready().await;
    let elsewhere = TableEntry { idle_timeout_ns: 1, ..dmac(1, 1).build(schema()).unwrap() };
    let negative = source(1, -1);
    let written = TableEntry { time_since_last_hit: Some(Default::default()), ..source(1, 0) };
    let default = TableEntry { is_default_action: true, r#match: Vec::new(), ..source(1, 5) };
    for (kind, entry) in [(Insert, elsewhere), (Insert, negative), (Insert, written), (Modify, default)] {
        let error = client.entry(kind, entry).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
    }
    let asked = TableEntry { time_since_last_hit: Some(Default::default()), ..wildcard("dmac") };
    assert!(client.read(EntityKind::TableEntry(asked)).await.is_err());
}
