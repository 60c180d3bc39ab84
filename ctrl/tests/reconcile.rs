//! Deploying and watching, against the embedded switch.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{deploy, desired, rack, start, start_at};
use p4rack_codegen::scheme::l2::{FORWARD, L2_FORWARD};
use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::deploy::{Desired, Extent, Step};
use p4rack_ctrl::items::{ActionItem, Item, TableItem};
use p4rack_ctrl::watch::{Change, watch};
use p4rack_ctrl::{Client, ConnectOptions, CtrlError, Session};
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update, forwarding_pipeline_config, update};
use p4rack_p4rt::schema::Schema;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch as desired_channel};
use tokio::task::JoinHandle;

/// An entry that no rack of these tests has.
fn foreign(schema: &Schema, number: u32) -> Entity {
    let [_, b, c, d] = number.to_be_bytes();
    let item = Item::TableEntry(TableItem {
        table: L2_FORWARD.into(),
        keys: [("dstAddr".into(), format!("0e:00:00:{b:02x}:{c:02x}:{d:02x}"))].into(),
        action: Some(ActionItem::call(&[FORWARD.into(), "port=1".into()]).unwrap()),
        ..Default::default()
    });
    item.entity(schema).unwrap()
}

fn update(kind: update::Type, entity: Entity) -> Update {
    Update { r#type: kind as i32, entity: Some(entity) }
}

/// Number of changes in a dry run.
async fn differences(desired: &Desired, target: &ConnectOptions) -> usize {
    let mut count = usize::MAX;
    let note = |step| {
        if let Step::Compared { changes, .. } = step {
            count = changes.len();
        }
    };
    p4rack_ctrl::deploy::deploy(desired, target.clone(), Extent::DryRun, note).await.unwrap();
    count
}

#[tokio::test]
async fn a_second_deployment_changes_nothing_and_a_third_only_what_was_changed() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let desired = desired(&rack, Scheme::PL2_CLOCK);
    assert_eq!(differences(&desired, &target).await, desired.entities.len(), "nothing is there");
    deploy(&rack, Scheme::PL2_CLOCK, target.clone()).await.unwrap();
    assert_eq!(differences(&desired, &target).await, 0);
    let steps = deploy(&rack, Scheme::PL2_CLOCK, target.clone()).await.unwrap();
    assert!(matches!(steps[..], [Step::Connected, Step::Kept, Step::Compared { .. }, Step::Verified { .. }]));

    // Another controller takes one away and adds one.
    let mut session = Session::connect(ConnectOptions { election_id: 2, ..target.clone() }).await.unwrap();
    let schema = session.schema().await.unwrap();
    let other = {
        let item = TableItem { table: L2_FORWARD.into(), ..Default::default() };
        let all = session.read(vec![Item::TableEntry(item).entity(&schema).unwrap()]).await.unwrap();
        all[0].clone()
    };
    let mut wrong = Item::of(&schema, &foreign(&desired_l2(&rack).schema, 1)).unwrap();
    if let Item::TableEntry(entry) = &mut wrong {
        let words = [FORWARD, "port=1", "slot=1", "drop_threshold=1", "cells=0"].map(String::from);
        entry.action = Some(ActionItem::call(&words).unwrap());
    }
    let wrong = wrong.entity(&schema).unwrap();
    let writes = [update(update::Type::Delete, other), update(update::Type::Insert, wrong)];
    session.write(&schema, &writes).await.unwrap();
    drop(session);
    assert_eq!(differences(&desired, &target).await, 2);
    let steps =
        deploy(&rack, Scheme::PL2_CLOCK, ConnectOptions { election_id: 3, ..target.clone() }).await.unwrap();
    assert!(steps.contains(&Step::Written { updates: 2 }), "{steps:?}");
    assert_eq!(differences(&desired, &target).await, 0);
}

fn desired_l2(rack: &Rack) -> Desired {
    desired(rack, Scheme::L2)
}

/// A watching controller of this process.
struct Controller {
    task: JoinHandle<()>,
    changes: mpsc::UnboundedReceiver<Change>,
}

impl Controller {
    fn start(target: ConnectOptions, desired: desired_channel::Receiver<Arc<Desired>>) -> Controller {
        let (sender, changes) = mpsc::unbounded_channel();
        let tell = move |change| drop(sender.send(change));
        let task = tokio::spawn(watch(target, desired, Duration::from_millis(100), tell));
        Controller { task, changes }
    }

    async fn until(&mut self, wanted: impl Fn(&Change) -> bool) {
        let found = async { while !wanted(&self.changes.recv().await.expect("it still watches")) {} };
        tokio::time::timeout(Duration::from_secs(10), found).await.expect("in time");
    }
}

fn verified(change: &Change) -> bool {
    matches!(change, Change::Step(Step::Verified { .. }))
}

#[tokio::test]
async fn a_watched_switch_is_put_right_after_foreign_writes_restarts_and_new_descriptions() {
    let rack = rack();
    let (running, target) = start(&rack, 0).await;
    let (sender, receiver) = desired_channel::channel(Arc::new(desired_l2(&rack)));
    let mut controller = Controller::start(target.clone(), receiver);
    controller.until(verified).await;

    // A foreign primary writes; the watcher has lost its right, and gets it back when the other leaves.
    let mut session = Session::connect(ConnectOptions { election_id: 9, ..target.clone() }).await.unwrap();
    let schema = session.schema().await.unwrap();
    let insert = update(update::Type::Insert, foreign(&schema, 1));
    session.write(&schema, &[insert]).await.unwrap();
    controller.until(|change| matches!(change, Change::Standby)).await;
    // Another program as well, under the cookie of the watcher's.
    session.set_pipeline(under_the_cookie_of(&desired_l2(&rack), &rack)).await.unwrap();
    drop(session);
    controller.until(|change| matches!(change, Change::Primary)).await;
    controller.until(|change| matches!(change, Change::Step(Step::Installed))).await;
    controller.until(verified).await;
    assert_eq!(differences(&desired_l2(&rack), &target).await, 0);

    // The switch restarts empty.
    drop(running);
    controller.until(|change| matches!(change, Change::Failed(_))).await;
    let (_running, _) = start_at(&rack, 0, &target.addr).await;
    controller.until(|change| matches!(change, Change::Step(Step::Installed))).await;
    controller.until(verified).await;
    assert_eq!(differences(&desired_l2(&rack), &target).await, 0);

    // The desired state changes.
    sender.send(Arc::new(desired(&rack, Scheme::PL2_CLOCK))).unwrap();
    controller.until(|change| matches!(change, Change::Step(Step::Installed))).await;
    controller.until(verified).await;
    assert_eq!(differences(&desired(&rack, Scheme::PL2_CLOCK), &target).await, 0);
    drop(sender);
    tokio::time::timeout(Duration::from_secs(5), controller.task).await.expect("ends").unwrap();
}

/// Another program, with a cookie that is stale.
fn under_the_cookie_of(other: &Desired, rack: &Rack) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig { cookie: other.config.cookie, ..desired(rack, Scheme::PL2_CLOCK).config }
}

#[tokio::test]
async fn a_cookie_is_not_trusted_without_the_program() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let installed = |steps: &[Step]| steps.iter().any(|step| matches!(step, Step::Installed));
    assert!(installed(&deploy(&rack, Scheme::L2, target.clone()).await.unwrap()));
    assert!(!installed(&deploy(&rack, Scheme::L2, target.clone()).await.unwrap()), "it is there");
    let install = async |config: ForwardingPipelineConfig| {
        let mut session = Session::connect(target.clone()).await.unwrap();
        session.set_pipeline(config).await.unwrap();
    };
    // The cookie equals, P4Info and text do not; then only the text.
    let ours = desired(&rack, Scheme::L2);
    install(under_the_cookie_of(&ours, &rack)).await;
    assert!(installed(&deploy(&rack, Scheme::L2, target.clone()).await.unwrap()), "a stale cookie");
    let mut longer = ours.config.clone();
    longer.p4_device_config.extend(b"\n// not the same\n");
    install(longer).await;
    assert!(installed(&deploy(&rack, Scheme::L2, target.clone()).await.unwrap()), "another text");
    // The cookie is another one or none, the program is the same.
    for cookie in [None, Some(forwarding_pipeline_config::Cookie { cookie: 7 })] {
        install(ForwardingPipelineConfig { cookie, ..ours.config.clone() }).await;
        assert!(!installed(&deploy(&rack, Scheme::L2, target.clone()).await.unwrap()), "{cookie:?}");
    }
}

/// The rack with many more entries: writing them takes a while.
fn many(rack: &Rack, count: u32) -> Desired {
    let mut desired = desired_l2(rack);
    let text = String::from_utf8(desired.config.p4_device_config.clone()).unwrap();
    let table_size = |text: &str| {
        let start = text.find("table l2_forward").unwrap();
        let at = start + text[start..].find("size = ").unwrap() + 7;
        (at, at + text[at..].find(';').unwrap())
    };
    let (from, to) = table_size(&text);
    let text = format!("{}{}{}", &text[..from], 2 * count, &text[to..]);
    let mut info = desired.config.p4info.take().unwrap();
    let table = info
        .tables
        .iter_mut()
        .find(|table| table.preamble.as_ref().is_some_and(|preamble| preamble.name == L2_FORWARD));
    table.unwrap().size = i64::from(2 * count);
    let mut entities = desired.entities;
    entities.extend((0..count).map(|number| foreign(&desired.schema, number)));
    Desired::new(info, text.into_bytes(), entities).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over_within_a_second_and_finishes_what_the_primary_had_begun() {
    const ENTRIES: u32 = 20_000;
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let wanted = many(&rack, ENTRIES);
    let (_sender, receiver) = desired_channel::channel(Arc::new(wanted.clone()));
    let first = ConnectOptions { election_id: 2, ..target.clone() };
    let mut primary = Controller::start(first, receiver.clone());
    primary.until(|change| matches!(change, Change::Primary)).await;
    let mut standby = Controller::start(target.clone(), receiver);
    standby.until(|change| matches!(change, Change::Standby)).await;

    // In the middle of its writes.
    primary.until(|change| matches!(change, Change::Step(Step::Compared { .. }))).await;
    let mut reader = Client::connect(target.clone()).await.unwrap();
    let all = Item::TableEntry(TableItem { table: L2_FORWARD.into(), ..Default::default() });
    let all = all.entity(&wanted.schema).unwrap();
    let before = loop {
        let before = reader.read(vec![all.clone()]).await.unwrap().len();
        if before > 100 {
            break before;
        }
    };
    primary.task.abort();
    let died = Instant::now();
    standby.until(|change| matches!(change, Change::Primary)).await;
    assert!(died.elapsed() < Duration::from_secs(1), "{:?}", died.elapsed());
    assert!(before < ENTRIES as usize, "the primary had finished: {before}");
    standby.until(verified).await;
    assert_eq!(differences(&wanted, &target).await, 0);
    assert_eq!(reader.read(vec![all]).await.unwrap().len(), ENTRIES as usize + rack.hosts.len());
}

#[tokio::test]
async fn refusals_say_which_entry_and_what_to_do() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    deploy(&rack, Scheme::L2, target.clone()).await.unwrap();
    let mut session = Session::connect(ConnectOptions { election_id: 2, ..target }).await.unwrap();
    let schema = session.schema().await.unwrap();
    let delete = update(update::Type::Delete, foreign(&schema, 7));
    let error = session.write(&schema, &[delete]).await.unwrap_err();
    assert!(matches!(error, CtrlError::Updates { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("entry 1 of 1: table {L2_FORWARD} key"))
            && text.contains("insert it first"),
        "{text}"
    );
}
