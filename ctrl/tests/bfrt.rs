//! Tofino's program on the embedded switch, over BFRuntime on localhost.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{rack, start_both};
use p4rack_codegen::scheme::l2::{FORWARD, L2_FORWARD};
use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::bfrt::{Link, Queue, QueueChange, Rate};
use p4rack_ctrl::deploy::{Desired, Extent, Step};
use p4rack_ctrl::items::{ActionItem, Item, MulticastItem, PlaceItem, ReplicaItem, TableItem};
use p4rack_ctrl::{Client, ConnectOptions, CtrlError};
use p4rack_p4rt::p4::v1::{Entity, Update, update};
use p4rack_p4rt::schema::Schema;

fn example(name: &str) -> Rack {
    Rack::load(format!("{}/../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn desired(rack: &Rack) -> Desired {
    Desired::for_tofino(rack, Scheme::L2, None).unwrap()
}

async fn deploy(desired: &Desired, target: &ConnectOptions, extent: Extent) -> Result<Vec<Step>, CtrlError> {
    let mut steps = Vec::new();
    p4rack_ctrl::deploy::deploy(desired, target.clone(), extent, |step| steps.push(step)).await?;
    Ok(steps)
}

/// How many changes a step of these compared.
fn changes(steps: &[Step]) -> usize {
    let count = |step: &Step| match step {
        Step::Compared { changes, .. } => Some(changes.len()),
        _ => None,
    };
    steps.iter().find_map(count).unwrap()
}

fn entry(schema: &Schema, mac: &str, port: u32) -> Entity {
    let item = Item::TableEntry(TableItem {
        table: L2_FORWARD.into(),
        keys: [("dstAddr".into(), mac.into())].into(),
        action: Some(ActionItem::call(&[FORWARD.into(), format!("port={port}")]).unwrap()),
        ..Default::default()
    });
    item.entity(schema).unwrap()
}

fn update(kind: update::Type, entity: Entity) -> Update {
    Update { r#type: kind as i32, entity: Some(entity) }
}

#[tokio::test]
async fn a_rack_is_deployed_once_and_what_others_changed_is_repaired() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    let desired = desired(&rack);
    let all = desired.entities.len();
    assert_eq!(changes(&deploy(&desired, &target, Extent::DryRun).await.unwrap()), all, "nothing is there");
    let steps = deploy(&desired, &target, Extent::All).await.unwrap();
    assert!(
        steps.contains(&Step::Installed) && steps.contains(&Step::Verified { entities: all }),
        "{steps:?}"
    );
    let steps = deploy(&desired, &target, Extent::All).await.unwrap();
    assert_eq!(steps[1], Step::Kept);
    assert_eq!(changes(&steps), 0);

    // By hand, an entry goes elsewhere, another one comes, and the group loses all ports but one.
    let mut link = Link::connect(target.clone()).await.unwrap();
    let schema = link.schema().await.unwrap();
    let mac = rack.hosts[0].mac.to_string();
    let changed = [
        update(update::Type::Modify, entry(&schema, &mac, 2)),
        update(update::Type::Insert, entry(&schema, "0e:00:00:00:00:01", 1)),
    ];
    link.write(&schema, &changed).await.unwrap();
    let twice = link.write(&schema, &changed).await.unwrap_err().to_string();
    assert!(twice.contains("entry 2 of 2") && twice.contains("ALREADY_EXISTS"), "{twice}");
    let group = MulticastItem { group: 1, ..Default::default() };
    let group = update(update::Type::Modify, Item::Multicast(group).entity(&schema).unwrap());
    link.write(&schema, &[group]).await.unwrap();
    drop(link);
    let steps = retried(&desired, &target, Extent::DryRun).await;
    assert_eq!(changes(&steps), 3);
    let steps = retried(&desired, &target, Extent::All).await;
    assert!(steps.contains(&Step::Written { updates: 3 }), "{steps:?}");
    assert_eq!(changes(&retried(&desired, &target, Extent::DryRun).await), 0);
}

/// Deploys; the switch notices the end of the session before a moment later.
async fn retried(desired: &Desired, target: &ConnectOptions, extent: Extent) -> Vec<Step> {
    for _ in 0..100 {
        match deploy(desired, target, extent).await {
            Ok(steps) => return steps,
            Err(CtrlError::Refused { .. }) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            Err(error) => panic!("{error}"),
        }
    }
    deploy(desired, target, extent).await.unwrap()
}

#[tokio::test]
async fn both_protocols_see_the_same_entries() {
    let rack = rack();
    let (_running, p4runtime, target) = start_both(&rack).await;
    let desired = desired(&rack);
    deploy(&desired, &target, Extent::All).await.unwrap();
    let mut client = Client::connect(p4runtime).await.unwrap();
    let schema = client.schema().await.unwrap();
    let item = |table: &str| Item::TableEntry(TableItem { table: table.into(), ..Default::default() });
    let found = client.read(vec![item(L2_FORWARD).entity(&schema).unwrap()]).await.unwrap();
    assert_eq!(found.len(), rack.hosts.len());
    let mut own = Vec::new();
    for entity in &found {
        own.push(Item::of(&schema, entity).unwrap());
        assert!(desired.entities.contains(entity), "{entity:?}");
    }
}

#[tokio::test]
async fn a_switch_without_a_program_or_with_another_protocols_says_so() {
    let rack = rack();
    let (_running, p4runtime, target) = start_both(&rack).await;
    let mut link = Link::connect(target.clone()).await.unwrap();
    let none = link.schema().await.unwrap_err().to_string();
    assert!(none.contains("runs no program") && none.contains("deploy"), "{none}");
    drop(link);
    common::deploy(&rack, Scheme::L2, p4runtime).await.unwrap();
    let mut link = Link::connect(ConnectOptions { election_id: 2, ..target.clone() }).await.unwrap();
    let other = link.schema().await.unwrap_err().to_string();
    assert!(other.contains("BFRuntime is for tna and t2na"), "{other}");
    let nobody = ConnectOptions { addr: "127.0.0.1:1".into(), ..target };
    let error = Link::connect(nobody).await.unwrap_err().to_string();
    assert!(
        error.starts_with("no BFRuntime server answers at 127.0.0.1:1") && error.contains("--bfrt-addr"),
        "{error}"
    );
}

#[tokio::test]
async fn a_programs_client_is_the_only_one() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    deploy(&desired(&rack), &target, Extent::All).await.unwrap();
    let mut first = Link::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap();
    first.schema().await.unwrap();
    let twice =
        Link::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap_err().to_string();
    assert!(twice.contains("is connected; choose another client id"), "{twice}");
    let mut second = Link::connect(ConnectOptions { election_id: 6, ..target.clone() }).await.unwrap();
    let bound = second.schema().await.unwrap_err().to_string();
    assert!(bound.contains("a program has one client"), "{bound}");
    drop(first);
    for _ in 0..100 {
        if second.schema().await.is_ok() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    second.schema().await.unwrap();
}

#[tokio::test]
async fn a_group_that_cant_be_changed_stays() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    deploy(&desired(&rack), &target, Extent::All).await.unwrap();
    let mut link = Link::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap();
    let schema = link.schema().await.unwrap();
    let group = |port: u32| {
        let replica = ReplicaItem { at: PlaceItem { port, instance: 1 }, backups: Vec::new() };
        Item::Multicast(MulticastItem { group: 9, replicas: vec![replica] }).entity(&schema).unwrap()
    };
    let asked = Item::Multicast(MulticastItem { group: 9, ..Default::default() }).entity(&schema).unwrap();
    link.write(&schema, &[update(update::Type::Insert, group(1))]).await.unwrap();
    let refused =
        link.write(&schema, &[update(update::Type::Modify, group(400))]).await.unwrap_err().to_string();
    assert!(refused.contains("no port 400"), "{refused}");
    assert_eq!(link.read(vec![asked]).await.unwrap(), [group(1)]);
}

#[tokio::test]
async fn a_group_changes_where_it_differs() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    deploy(&desired(&rack), &target, Extent::All).await.unwrap();
    let mut link = Link::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap();
    let schema = link.schema().await.unwrap();
    let group = |copies: &[(u32, u32)]| {
        let replica = |(port, instance): &(u32, u32)| ReplicaItem {
            at: PlaceItem { port: *port, instance: *instance },
            backups: Vec::new(),
        };
        let replicas = copies.iter().map(replica).collect();
        Item::Multicast(MulticastItem { group: 9, replicas }).entity(&schema).unwrap()
    };
    let asked = || group(&[]);
    link.write(&schema, &[update(update::Type::Insert, group(&[(1, 1), (2, 2), (3, 3)]))]).await.unwrap();
    // One stays, one gets other ports, one goes, two come.
    for copies in [&[(1, 1), (3, 2), (4, 2), (5, 5), (2, 6)][..], &[(2, 6)], &[(1, 1), (2, 6)], &[]] {
        link.write(&schema, &[update(update::Type::Modify, group(copies))]).await.unwrap();
        assert_eq!(link.read(vec![asked()]).await.unwrap(), [group(copies)]);
    }
    link.write(&schema, &[update(update::Type::Delete, asked())]).await.unwrap();
    assert!(link.read(vec![asked()]).await.unwrap().is_empty());
    // Its nodes went with it, and those of a group that was refused, too.
    let refused = link.write(&schema, &[update(update::Type::Insert, group(&[(1, 1), (400, 2)]))]).await;
    assert!(refused.unwrap_err().to_string().contains("no port 400"));
    link.write(&schema, &[update(update::Type::Insert, group(&[(1, 1), (4, 2)]))]).await.unwrap();
    let twice = link.write(&schema, &[update(update::Type::Insert, group(&[(1, 1)]))]).await.unwrap_err();
    assert!(twice.to_string().contains("ALREADY_EXISTS"), "{twice}");
}

#[tokio::test]
async fn an_installation_brings_ports_back_and_ranks_queues() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pl2-incast.toml"));
    let text = text.unwrap().replace("100 Mb/s", "10 Gb/s").replace("256 KiB", "16 MiB");
    let rack = Rack::parse(&text, "fast.toml").unwrap();
    let (_running, _, target) = start_both(&rack).await;
    let mut first = desired(&rack);
    let chosen = "BF_FEC_TYP_FIRECODE";
    first.bfrt.as_mut().unwrap().ports[0].fec = chosen.into();
    deploy(&first, &target, Extent::All).await.unwrap();
    let mut link = bound(&target).await;
    let port = u32::from(rack.hosts[0].port);
    link.set_queue(port, 3, &QueueChange { priority: Some(6), ..Default::default() }).await.unwrap();
    drop(link);
    // A port with another speed is deleted and added, in the same program.
    first.bfrt.as_mut().unwrap().ports[2].speed = "BF_SPEED_25G".into();
    let steps = retried(&first, &target, Extent::All).await;
    let changed = |steps: &[Step]| {
        let lines = |step: &Step| match step {
            Step::Ports { changes, .. } => changes.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        steps.iter().flat_map(lines).collect::<Vec<String>>()
    };
    assert!(steps.contains(&Step::Kept), "{steps:?}");
    assert_eq!(changed(&steps), ["~ port 3: BF_SPEED_25G, BF_FEC_TYP_NONE, enabled"]);
    let mut link = bound(&target).await;
    let before = link.ports().await.unwrap();
    drop(link);
    // A program for which one of the ports is another's.
    let mut other = Desired::for_tofino(&rack, Scheme::PL2_COUNTER, None).unwrap();
    let ports = &mut other.bfrt.as_mut().unwrap().ports;
    ports.pop();
    ports[2].speed = "BF_SPEED_25G".into();
    let steps = retried(&other, &target, Extent::All).await;
    assert!(steps.contains(&Step::Installed), "{steps:?}");
    let mut link = bound(&target).await;
    let after = link.ports().await.unwrap();
    assert_eq!(after, before);
    assert!(after.len() == rack.hosts.len() && after[0].fec == chosen, "{after:?}");
    assert_eq!(link.queues(port).await.unwrap()[3].priority, "3");
}

/// A bound client; the switch notices the end of the one before a moment later.
async fn bound(target: &ConnectOptions) -> Link {
    for _ in 0..200 {
        if let Ok(mut link) = Link::connect(target.clone()).await
            && link.schema().await.is_ok()
        {
            return link;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("another client stays bound");
}

#[tokio::test]
async fn queues_are_read_changed_and_reset() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    deploy(&desired(&rack), &target, Extent::All).await.unwrap();
    let mut link = Link::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap();
    link.schema().await.unwrap();
    let port = u32::from(rack.hosts[0].port);
    let before = link.queues(port).await.unwrap();
    assert_eq!((before.len(), &*before[3].priority, before[3].rate), (8, "3", None));
    let change = QueueChange {
        serves: Some(false),
        priority: Some(6),
        weight: Some(7),
        rate: Some(Rate::Kilobits(5_000, 3_000)),
        limit_cells: Some(40),
    };
    link.set_queue(port, 3, &change).await.unwrap();
    link.set_port_rate(port, Rate::Frames(100, 4)).await.unwrap();
    let changed = link.queues(port).await.unwrap();
    let expected = Queue {
        serves: false,
        priority: "6".into(),
        weight: 7,
        rate: change.rate,
        limit_cells: 40,
        ..before[3].clone()
    };
    assert_eq!((&changed[3], &changed[2]), (&expected, &before[2]));
    assert_eq!(link.port_rate(port).await.unwrap(), Some(Rate::Frames(100, 4)));
    let refused = link.set_queue(port, 3, &QueueChange { limit_cells: Some(0), ..change }).await;
    assert!(refused.unwrap_err().to_string().contains("could hold nothing"));
    assert_eq!(link.queues(port).await.unwrap(), changed, "nothing of it");
    link.reset_queues(port).await.unwrap();
    assert_eq!(link.queues(port).await.unwrap(), before);
    assert_eq!(link.port_rate(port).await.unwrap(), None);
    assert!(link.queues(99).await.unwrap_err().to_string().contains("no entry"));
    assert!(link.set_queue(port, 8, &QueueChange::default()).await.is_err());
}

#[tokio::test]
async fn every_scheme_is_deployed_once_and_then_stays() {
    let schemes = [
        ("pl2-incast", Scheme::L2),
        ("pl2-incast", Scheme::PL2_COUNTER),
        ("pl2-incast", Scheme::PL2_CLOCK),
        ("edm-kv", Scheme::EDM_TIMED_DST),
        ("edm-kv", Scheme::EDM_MATCHED),
        ("cowbird-switch", Scheme::COWBIRD),
    ];
    for (name, scheme) in schemes {
        let rack = example(name);
        let (_running, _, target) = start_both(&rack).await;
        let desired = Desired::for_tofino(&rack, scheme, None).unwrap();
        let steps =
            deploy(&desired, &target, Extent::All).await.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert!(steps.contains(&Step::Installed), "{scheme}: {steps:?}");
        let steps = retried(&desired, &target, Extent::All).await;
        assert!(steps.contains(&Step::Kept), "{scheme}: {steps:?}");
        assert_eq!(changes(&steps), 0, "{scheme}");
    }
}

#[tokio::test]
async fn a_deployment_that_fails_brings_back_what_ran() {
    let rack = rack();
    let (_running, p4runtime, target) = start_both(&rack).await;
    let plain = desired(&rack);
    deploy(&plain, &target, Extent::All).await.unwrap();
    // A program of another rack, with ports that this switch lacks.
    let mut larger = Desired::for_tofino(&rack, Scheme::PL2_CLOCK, None).unwrap();
    let group = MulticastItem {
        group: 9,
        replicas: vec![ReplicaItem { at: PlaceItem { port: 99, instance: 1 }, backups: Vec::new() }],
    };
    larger.entities.push(Item::Multicast(group).entity(&larger.schema).unwrap());
    let error = loop {
        match deploy(&larger, &target, Extent::All).await {
            Err(error @ CtrlError::NotInstalled { .. }) => break error.to_string(),
            // The session before this one is still ending.
            Err(CtrlError::Refused { .. }) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            other => panic!("{other:?}"),
        }
    };
    assert!(error.contains("multicast group 9"), "{error}");
    let count = plain.entities.len();
    let back = format!("`l2`, which ran before, was installed again, with its {count} entries");
    assert!(error.contains(&back), "{error}");
    let steps = retried(&plain, &target, Extent::DryRun).await;
    assert!(steps.contains(&Step::Kept), "{steps:?}");
    assert_eq!(changes(&steps), 0, "the program before has all of its entries");
    let mut client = Client::connect(p4runtime).await.unwrap();
    assert!(client.schema().await.unwrap().info().tables.len() > 1);
}

#[tokio::test]
async fn who_only_reads_learns_names_again_once_another_program_runs() {
    let rack = rack();
    let (_running, _, target) = start_both(&rack).await;
    deploy(&desired(&rack), &target, Extent::All).await.unwrap();
    let mut reader = Link::to_read(target.clone()).await.unwrap();
    let is_pl2 = |schema: &Schema| schema.register("in_reservation").is_ok();
    let first = reader.schema_if_new().await.unwrap().unwrap();
    assert!(!is_pl2(&first));
    assert!(reader.schema_if_new().await.unwrap().is_none());
    let other = Desired::for_tofino(&rack, Scheme::PL2_COUNTER, None).unwrap();
    retried(&other, &target, Extent::All).await;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let new = loop {
        match reader.schema_if_new().await.unwrap() {
            Some(new) if is_pl2(&new) => break new,
            _ => assert!(std::time::Instant::now() < until, "it hears of it"),
        }
    };
    assert!(is_pl2(&new));
    assert!(reader.port_stats().await.is_ok());
    assert!(reader.schema_if_new().await.unwrap().is_none());
}
