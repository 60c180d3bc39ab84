//! Copies that switches make: what is counted, and what the checks see.

use super::network::{Programs, SwitchProgram};
use super::plan::Planted;
use super::tests::{ROUTE, experiment, insert, network, network_of, plain, run, run_with};
use crate::crew::Alone;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::replica::PortKind;
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, Update,
};

/// The program of the routes with a line more in its ingress.
fn with_line(line: &str) -> String {
    let place = "            routes.apply();\n";
    assert_eq!(ROUTE.matches(place).count(), 1);
    ROUTE.replace(place, &format!("{place}            {line}\n"))
}

/// A copy for each of these ports.
fn replicas(ports: &[u16]) -> Vec<Replica> {
    let one = |(nth, port): (usize, &u16)| Replica {
        port_kind: Some(PortKind::Port(port.to_be_bytes().to_vec())),
        instance: nth as u32,
        ..Default::default()
    };
    ports.iter().enumerate().map(one).collect()
}

fn replication(entry: Replication) -> Update {
    insert(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(entry) }))
}

fn group(id: u32, ports: &[u16]) -> Update {
    replication(Replication::MulticastGroupEntry(MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas(ports),
        ..Default::default()
    }))
}

fn session(id: u32, ports: &[u16]) -> Update {
    replication(Replication::CloneSessionEntry(CloneSessionEntry {
        session_id: id,
        replicas: replicas(ports),
        ..Default::default()
    }))
}

const ONE: &str = "[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h2\"]\n\
                   interval_us = 100\n";

#[test]
fn copies_and_packets_for_the_controller_are_counted() {
    let cloned = with_line("clone(CloneType.I2E, 5);");
    let outcome = run(&experiment(ONE, network(&cloned, plain(), &[session(5, &[510])])));
    let s1 = &outcome.switches[0];
    assert_eq!((s1.to_controller, s1.clones, s1.hops), (20, 20, 20));
    assert_eq!((outcome.balance.copies, outcome.balance.received), (20, 20));
    let spread = with_line("sm.mcast_grp = 7;");
    let outcome = run(&experiment(ONE, network(&spread, plain(), &[group(7, &[1, 2, 3])])));
    // One comes back to h1, one arrives, and one goes to s2, which sends it to h3, h4 and back, until its TTL ends.
    assert_eq!(outcome.traffic[0].received, Some(20));
    assert!(outcome.traffic[0].twice > 0 && outcome.balance.elsewhere > 40, "{:?}", outcome.balance);
    assert!(outcome.switches.iter().all(|switch| switch.replicas > 20));
}

/// Also where most frames are copies, and where clones have no session.
#[test]
fn a_frame_that_vanishes_among_copies_is_missed() {
    for (line, entries) in [
        ("sm.mcast_grp = 7;", vec![group(7, &[1, 2, 3])]),
        ("clone(CloneType.I2E, 5);", vec![session(5, &[2, 510])]),
        ("clone(CloneType.I2E, 6);", vec![]),
        ("sm.mcast_grp = 8;", vec![]),
    ] {
        let experiment = experiment(ONE, network(&with_line(line), plain(), &entries));
        run(&experiment);
        let outcome = run_with(&experiment, &Alone, Some(Planted::Swallow));
        assert!(outcome.problems[0].contains("frames unaccounted for"), "{line}: {:?}", outcome.problems);
    }
}

#[test]
fn switches_that_count_no_copies_are_counted() {
    let text = include_str!("../../../examples/tna-forward.p4").to_owned();
    let one = SwitchProgram { text, p4info: P4Info::default(), updates: Vec::new() };
    let network = network_of(plain(), vec![one.clone(), one], &mut Programs::default());
    let outcome = run(&experiment(ONE, network));
    assert_eq!((outcome.traffic[0].received, outcome.balance.unchecked_switches), (Some(20), 2));
}

/// All packets of a client and a server are doubled: each counts once, and an answer for each request.
#[test]
fn copies_of_requests_and_answers_are_counted_apart() {
    const RPC: &str = "[[traffic]]\nname = \"rpc\"\nsend = \"request-response\"\nsenders = [\"h1\"]\nreceivers = [\"h2\"]\n\
                       under_way = 3\nmessages = 12\nsize = 100\nanswer_size = 3000\n";
    let doubled = with_line(
        "if (sm.egress_spec == 2) { sm.mcast_grp = 2; } else if (sm.egress_spec == 1) { sm.mcast_grp = 1; }",
    );
    let doubling = [group(1, &[1, 1]), group(2, &[2, 2])];
    let [once, twice] = [network(ROUTE, plain(), &[]), network(&doubled, plain(), &doubling)]
        .map(|network| run(&experiment(RPC, network)));
    // An answer has three datagrams.
    let frames = 12 + 3 * 12;
    for (outcome, copies) in [(&once, 0), (&twice, frames)] {
        let rpc = &outcome.traffic[0];
        assert_eq!((rpc.sent, rpc.received, rpc.lost, rpc.twice), (frames, Some(frames), Some(0), copies));
        assert_eq!((outcome.flows[0].received, rpc.latency_ns.count, rpc.failed), (12, 12, 0));
        assert_eq!(rpc.goodput_gbps, once.traffic[0].goodput_gbps);
    }
    assert_eq!(twice.balance.received, 2 * frames);
}
