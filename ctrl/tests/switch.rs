//! The control plane against the embedded switch, over gRPC on localhost.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{deploy, rack, start};
use p4rack_codegen::scheme::l2::{FORWARD, L2_FORWARD};
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::deploy::Step;
use p4rack_ctrl::mgmt::{Manager, Operation, Register};
use p4rack_ctrl::telemetry::Telemetry;
use p4rack_ctrl::{ConnectOptions, CtrlError, Session};
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::{EtherType, pl2};

fn registers(rack: &Rack) -> Vec<Register> {
    let both = [pl2::Side::In, pl2::Side::Out];
    let of = |port| both.map(|target| Register { target, port });
    rack.hosts.iter().flat_map(|host| of(host.port)).collect()
}

#[tokio::test]
async fn every_scheme_is_deployed_and_verified() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    for scheme in [Scheme::L2, Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
        let steps = deploy(&rack, scheme, target.clone()).await.unwrap();
        assert_eq!(steps.len(), 5, "{steps:?}");
        let Step::Verified { entities } = steps[4] else { panic!("{steps:?}") };
        assert!(entities > 2 * rack.hosts.len(), "an entry in two tables a host, and the group: {entities}");
    }
}

#[tokio::test]
async fn reservations_are_read_written_and_reset() {
    for scheme in [Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
        let rack = rack();
        let (_running, target) = start(&rack, 0).await;
        deploy(&rack, scheme, target.clone()).await.unwrap();
        let mut session = Session::connect(target).await.unwrap();
        let ether_type = rack.protocol::<Pl2>().unwrap().ether_type;
        let mut manager = Manager::new(&mut session, ether_type).await.unwrap();
        assert!(rack.hosts.iter().all(|host| host.port < manager.ports()));
        let registers = registers(&rack);
        let zeros = vec![0; registers.len()];
        assert_eq!(manager.exchange(Operation::Read, &registers).await.unwrap(), zeros);
        const VALUE: u32 = 900_000_000;
        let before = manager.exchange(Operation::Write(VALUE), &registers[..1]).await.unwrap();
        assert_eq!(before, [0]);
        let read = manager.exchange(Operation::Read, &registers).await.unwrap();
        assert_eq!(read[1..], zeros[1..], "the others are as they were");
        match scheme {
            Scheme::PL2_COUNTER => assert_eq!(read[0], VALUE),
            // Time has passed since.
            _ => assert!(read[0] <= VALUE && read[0] > VALUE / 2, "{}", read[0]),
        }
        let before = manager.exchange(Operation::Reset, &registers).await.unwrap();
        assert!(before[0] > 0);
        assert_eq!(manager.exchange(Operation::Read, &registers).await.unwrap(), zeros);
    }
}

#[tokio::test]
async fn lost_management_frames_are_sent_again() {
    let rack = rack();
    let (_running, target) = start(&rack, 3).await;
    deploy(&rack, Scheme::PL2_COUNTER, target.clone()).await.unwrap();
    let mut session = Session::connect(target).await.unwrap();
    let mut manager = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap();
    manager.exchange(Operation::Write(5), &registers(&rack)).await.unwrap();
    let read = manager.exchange(Operation::Read, &registers(&rack)).await.unwrap();
    assert_eq!(read, vec![5; registers(&rack).len()]);
}

#[tokio::test]
async fn a_switch_without_pl2_says_so() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let mut session = Session::connect(target.clone()).await.unwrap();
    let none = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap_err().to_string();
    assert!(none.contains("runs no program"), "{none}");
    drop(session);
    // The switch notices the end of the session a moment later.
    let target = ConnectOptions { election_id: 2, ..target };
    deploy(&rack, Scheme::L2, target.clone()).await.unwrap();
    let mut session = Session::connect(ConnectOptions { election_id: 3, ..target }).await.unwrap();
    let other = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap_err().to_string();
    assert!(other.contains("not one of PL2"), "{other}");
}

#[tokio::test]
async fn refused_entries_are_named() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    deploy(&rack, Scheme::L2, target.clone()).await.unwrap();
    let mut session = Session::connect(ConnectOptions { election_id: 2, ..target }).await.unwrap();
    let info = session.pipeline().await.unwrap().unwrap().p4info.unwrap();
    let schema = Schema::new(info).unwrap();
    let forward = |mac: [u8; 6]| {
        let entry = Entry::of(L2_FORWARD).exact("hdr.ethernet.dstAddr", mac);
        entry.action(FORWARD).param("port", 1).update(&schema).unwrap()
    };
    let updates = [forward([2, 9, 9, 9, 9, 9]), forward(rack.hosts[0].mac.0)];
    let error = session.write(&schema, &updates).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("entry 2 of 2: table {L2_FORWARD} key hdr.ethernet.dstAddr=02:"))
            && text.contains("ALREADY_EXISTS"),
        "{text}"
    );
}

#[tokio::test]
async fn another_primary_and_a_missing_switch_are_told_apart() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let _first = Session::connect(ConnectOptions { election_id: 5, ..target.clone() }).await.unwrap();
    let second = Session::connect(target.clone()).await.unwrap_err();
    assert!(matches!(&second, CtrlError::NotPrimary { highest, .. } if highest == "0,5"), "{second}");
    let nobody = ConnectOptions { addr: "127.0.0.1:1".into(), ..target };
    let error = Session::connect(nobody).await.unwrap_err().to_string();
    assert!(error.starts_with("no P4Runtime server answers at 127.0.0.1:1: Connection refused"), "{error}");
}

#[tokio::test]
async fn statistics_name_the_ports() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let mut telemetry = Telemetry::connect(&target).await.unwrap();
    let stats = telemetry.stats().await.unwrap();
    let ports: Vec<u32> = stats.ports.iter().map(|port| port.port).collect();
    assert!(rack.hosts.iter().all(|host| ports.contains(&u32::from(host.port))), "{ports:?}");
    assert_eq!(stats.ports[0].rate_bps, rack.hosts[0].rate_bps);
}
