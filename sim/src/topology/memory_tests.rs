//! Remote memory in racks behind a spine, and the agents of their hosts: reads, losses, planted faults, mistakes.
// The simulator has no threads; its tests have.
#![allow(clippy::disallowed_methods)]

use super::network::{Network, Programs, SwitchProgram};
use super::outcome::{OperationsOutcome, TopologyOutcome};
use super::plan::Planted;
use super::tests::{experiment, insert, run, run_with};
use super::{TopologyExperiment, tests};
use crate::crew::Alone;
use crate::crew_tests::Threads;
use p4rack_codegen::rack::{End, Rack};
use p4rack_codegen::topology::{Host, Link, Places, Runs, Switch, Target, Topology};
use p4rack_codegen::{Arch, program};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_wire::Nanos;
use std::net::Ipv4Addr;
use std::sync::Arc;

const SPINE: &str = include_str!("../../../examples/leaf-spine/spine.p4");
const EDM: &str = "[edm]\nmode = \"timed-dst\"\nmemory = [\"h1\"]\nmessage_bytes_max = 8192\n";
const CLIO: &str = "[clio]\nboards = [\"h4\"]\nmemory = \"4 MiB\"\npage_sizes = [\"64 KiB\"]\n";

/// A rack with three hosts, the first of this number, and a port to the spine, whose address is the same in all racks.
fn rack(number: u8, first: u8, protocols: &str) -> Rack {
    let host = |port: u8| {
        let n = first + port - 1;
        format!(
            "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.{number}.{port}/24\"\n"
        )
    };
    let hosts: String = (1..=3).map(host).collect();
    let text = format!(
        "name = \"rack-{number}\"\n[switch]\nport_rate = \"1 Gb/s\"\nbuffer = \"1 MiB\"\n{hosts}[[host]]\nname = \"up{number}\"\nport = 4\n\
         mac = \"02:00:00:00:ff:01\"\nip = \"10.0.{number}.254/24\"\nforeign_percent = 20\n[pl2]\nmode = \"clock\"\n{protocols}"
    );
    Rack::parse(&text, "rack.toml").unwrap()
}

/// Racks 1, with EDM, and 2, with Clio, and a spine; `change` may alter their links.
fn network(change: impl FnOnce(&mut Topology)) -> Network {
    let racks = [rack(1, 1, EDM), rack(2, 4, CLIO)];
    let switch = |name: &str, runs: Runs| Switch {
        name: name.to_owned(),
        runs,
        entries: None,
        target: Target::Embedded,
        grpc_addr: "127.0.0.1:9559".parse().unwrap(),
        device_id: 1,
        cpu_port: 510,
        buffer_bytes: 1 << 20,
        time_unit_ns: 1,
    };
    let leaf = |at: usize| {
        switch(&format!("leaf{}", at + 1), Runs::Rack("rack.toml".into(), Box::new(racks[at].clone())))
    };
    let host = |at: usize| {
        let of_rack = &racks[at / 3].hosts[at % 3];
        Host {
            name: of_rack.name.clone(),
            mac: of_rack.mac,
            ip: of_rack.ip,
            prefix: 24,
            gateway: Some(Ipv4Addr::new(10, 0, at as u8 / 3 + 1, 254)),
            gateway_mac: None,
            commands: Vec::new(),
        }
    };
    let link = |ends| Link { ends, rate_bps: Some(1_000_000_000), delay: Nanos::from_micros(1), loss_ppm: 0 };
    let own = (0..6).map(|at| link([End::Port(at / 3, at as u16 % 3 + 1), End::Host(at)]));
    let up = (0..2).map(|at| link([End::Port(at, 4), End::Port(2, at as u16 + 1)]));
    let mut topology = Topology {
        name: "racks".to_owned(),
        switches: vec![leaf(0), leaf(1), switch("spine", Runs::Program("spine.p4".into()))],
        hosts: (0..6).map(host).collect(),
        links: own.chain(up).collect(),
        workload: None,
        places: Places::default(),
    };
    change(&mut topology);
    let of_rack = |rack: &Rack| {
        let made = program(rack, rack.scheme(), Arch::V1model).unwrap();
        let updates = made.entries.into_iter().map(|(_, update)| update).collect();
        SwitchProgram { text: made.p4, p4info: made.compiled.p4info, updates }
    };
    let mut programs: Vec<SwitchProgram> = racks.iter().map(of_rack).collect();
    let routes = (0..6).map(|at| {
        let host = &topology.hosts[at];
        tests::route_to(SPINE, (host.ip, 32), host.mac, at as u16 / 3 + 1)
    });
    let updates = routes.map(insert).collect();
    programs.push(SwitchProgram { text: SPINE.to_owned(), p4info: P4Info::default(), updates });
    Network::new(topology, programs, &mut Programs::default()).unwrap()
}

/// EDM in rack 1, Clio from both racks, and other frames to the hosts with the memory.
const MIXED: &str = r#"
[[traffic]]
name = "near"
send = "memory"
way = "edm-timed-dst"
senders = ["h2", "h3"]
receivers = ["h1"]
size = [[0, 1], [0.5, 700], [1, 5000]]
under_way = 3

[[traffic]]
name = "far"
send = "memory"
way = "clio"
senders = ["h3", "h5"]
receivers = ["h4"]
size = [[0, 1], [0.5, 700], [1, 5000]]
under_way = 3

[[traffic]]
name = "bulk"
send = "poisson"
senders = ["h2", "h6"]
receivers = ["h1", "h4"]
pattern = "pairs"
size = 1400
rate = "200 Mb/s"
"#;

fn mixed(change: impl FnOnce(&mut Topology)) -> TopologyExperiment {
    let mut made = experiment(MIXED, network(change));
    (made.spec.duration_us, made.spec.drain_us) = (20_000, 400_000);
    made
}

fn named<'o>(outcome: &'o TopologyOutcome, name: &str) -> &'o OperationsOutcome {
    outcome.operations.iter().find(|one| one.name == name).unwrap()
}

#[test]
fn reads_return_what_was_written_within_a_rack_and_across_the_spine() {
    let outcome = run(&mixed(|_| {}));
    for (name, least) in
        [("near, reads", 300), ("near, writes", 150), ("far, reads", 300), ("far, writes", 300)]
    {
        let one = named(&outcome, name);
        assert!(one.done > least && one.latency_ns.count > least, "{one:?}");
        assert_eq!(
            (one.refused, one.unknown, one.open, one.wrong_bytes, one.again),
            (0, 0, 0, 0, 0),
            "{one:?} {:?} {:?}",
            outcome.machines,
            outcome.switches
        );
    }
    assert!(named(&outcome, "near, writes").checked_bytes > 100_000, "writes are looked for");
    assert_eq!(named(&outcome, "far, writes").checked_bytes, 0, "they have answers");
    for one in &outcome.traffic[..2] {
        assert_eq!((one.received, one.lost, one.failed), (Some(one.sent), Some(0), 0), "{one:?}");
    }
    let (balance, flows) = (&outcome.balance, &outcome.flows);
    assert!(balance.memory > 3_000 && balance.agents_sent > 2_000, "{balance:?}");
    assert_eq!(balance.agents_given, balance.agents_sent, "nothing waits or was dropped");
    assert!(flows.iter().all(|flow| flow.received == flow.sent && flow.latency_ns.count > 0), "{flows:?}");
    // Across the spine it takes longer.
    let of = |name: &str| flows.iter().find(|flow| flow.name == name && flow.traffic == "far").unwrap();
    assert!(of("h3–h4").latency_ns.min > of("h5–h4").latency_ns.min + 2_000);
}

#[test]
fn losses_cost_time_and_no_byte() {
    let outcome = run(&mixed(|topology| topology.links.iter_mut().for_each(|link| link.loss_ppm = 5_000)));
    assert!(outcome.balance.lost > 20, "{:?}", outcome.balance);
    for name in ["near, reads", "near, writes", "far, reads", "far, writes"] {
        let one = named(&outcome, name);
        assert!(one.done > 20 && one.wrong_bytes == 0, "{one:?}");
    }
    let failed: u64 = outcome.operations.iter().map(|one| one.unknown).sum();
    let again = named(&outcome, "near, writes").again;
    assert!(failed + again > 0, "{:?}", outcome.operations);
    // What never has an answer is counted, and is all that fails.
    let cut = |topology: &mut Topology| topology.links[3].loss_ppm = 1_000_000;
    let outcome = run(&mixed(cut));
    let far: Vec<u64> = outcome.operations[2..].iter().map(|one| one.unknown).collect();
    assert_eq!(
        (far.iter().sum::<u64>(), outcome.traffic[1].failed, outcome.traffic[1].received),
        (6, 6, Some(0))
    );
    assert_eq!(outcome.traffic[0].failed, 0, "{:?}", outcome.operations);
}

#[test]
fn wrong_bytes_are_found_by_either_way() {
    let mut damaged = mixed(|_| {});
    damaged.spec.traffic[..2].iter_mut().for_each(|one| one.read_percent = Some(100.0));
    let outcome = run_with(&damaged, &Alone, Some(Planted::Damaged));
    for (name, number) in [("near", 0), ("far", 2)] {
        let wrong = outcome.operations[number].wrong_bytes;
        let says = format!("traffic `{name}`: remote memory gave {wrong} bytes that were not written there");
        assert!(wrong > 0 && outcome.problems.contains(&says), "{:?}", outcome.problems);
    }
    assert!(outcome.traffic[0].failed > 0);
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let lossy = mixed(|topology| topology.links.iter_mut().for_each(|link| link.loss_ppm = 2_000));
    let alone = serde_json::to_value(run(&lossy)).unwrap();
    assert_eq!(serde_json::to_value(run(&lossy)).unwrap(), alone);
    for size in [2, 3] {
        let together = run_with(&lossy, &Threads::new(size), None);
        assert_eq!(serde_json::to_value(together).unwrap(), alone, "{size} workers");
    }
}

/// Frames that an agent forgets, sends into nothing, or keeps are missed; so is what it drops for no reason.
#[test]
fn frames_that_vanish_in_agents_are_missed() {
    let mut loaded = mixed(|_| {});
    // More than the link carries, so the agent drops some, for a reason.
    loaded.spec.traffic[2].rate = Some("1200 Mb/s".to_owned());
    loaded.spec.drain_us = 20_000;
    let outcome = run(&loaded);
    let balance = &outcome.balance;
    assert_eq!(balance.agents_given, balance.agents_sent + balance.agents_dropped + balance.agents_waiting);
    assert!(balance.agents_dropped > 100 && balance.agents_control > 100, "{balance:?}");
    assert_eq!(
        outcome.agents_drops.values().sum::<u64>(),
        balance.agents_dropped,
        "{:?}",
        outcome.agents_drops
    );
    for planted in [Planted::Forgetful, Planted::Leaky, Planted::Greedy] {
        let outcome = run_with(&loaded, &Alone, Some(planted));
        assert!(outcome.problems.iter().any(|problem| problem.contains("unaccounted")), "{planted:?}");
    }
}

#[test]
fn thinking_and_numbers_of_operations_are_kept() {
    const FEW: &str = "[[traffic]]\nname = \"few\"\nsend = \"memory\"\nway = \"clio\"\nsenders = [\"h6\"]\nreceivers = [\"h4\"]\n\
                       messages = 5\nthink_us = 300\nread_percent = 0\nsize = 64\nregion = \"4 KiB\"\n";
    let mut few = experiment(FEW, network(|_| {}));
    few.spec.duration_us = 1_200;
    let outcome = run(&few);
    // The first begins within 100 µs; then each begins 300 µs after the end of the one before.
    assert_eq!((outcome.traffic[0].sent, named(&outcome, "few, writes").done), (4, 4));
    few.spec.duration_us = 9_000;
    assert_eq!(run(&few).traffic[0].sent, 5);
}

#[test]
fn mistakes_name_the_field_and_what_was_expected() {
    let head = "name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 9\n";
    let text = format!(
        "{head}[[traffic]]\nname = \"a\"\nsend = \"memory\"\nway = \"rdma\"\nread_percent = 101\nrate = \"1 Mb/s\"\n\
         senders = [\"h1\", \"h2\"]\nreceivers = [\"h1\"]\nregion = \"fast\"\n\
         [[traffic]]\nname = \"b\"\nsend = \"memory\"\nunder_way = 64\nsize = 1500\nsenders = [\"h2\"]\n\
         [[traffic]]\nname = \"c\"\nsend = \"poisson\"\nrate = \"1 Mb/s\"\nway = \"clio\"\nread_percent = 1\n\
         [[traffic]]\nname = \"d\"\nsend = \"memory\"\nway = \"edm\"\nregion = \"1 GiB\"\nsenders = [\"h2\"]\nreceivers = [\"h1\"]\n"
    );
    let error = TopologyExperiment::parse(&text, "t.toml").unwrap_err().to_string();
    for says in [
        "t.toml:8: [traffic] way: `rdma` is not simulated in topologies; write one of edm-timed-dst, edm-timed, edm-calendar, edm-matched, clio",
        "t.toml:9: [traffic] read_percent: 101 is out of range; write 0 to 100",
        "t.toml:10: [traffic] rate: follows from under_way and think_us",
        "t.toml:12: [traffic] receivers: `h1` is a sender, too",
        "t.toml:13: [traffic] region: ",
        "t.toml:14: [traffic] way: is missing; write the way to the memory, one of edm-timed-dst,",
        "t.toml:14: [traffic] receivers: is missing; name the hosts with the memory",
        "t.toml:14: [traffic] region: has no room for 64 operations of 1500 bytes under way; write at least \"98304 B\"",
        "t.toml:24: [traffic] way: is for send = \"memory\"; take it out",
        "t.toml:25: [traffic] read_percent: is for send = \"memory\"; take it out",
        "t.toml:29: [traffic] way: `edm` is no way to remote memory; there are local,",
        "t.toml:30: [traffic] region: 1073741824 bytes are out of range",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
    let one = |name: &str, way: &str, from: &str, to: &str, size: u32| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nsend = \"memory\"\nway = \"{way}\"\nsenders = [\"{from}\"]\nreceivers = [\"{to}\"]\nsize = {size}\n"
        )
    };
    let text = [
        head.to_owned(),
        one("a", "edm-timed", "h2", "h1", 64),
        one("b", "edm-timed-dst", "h5", "h4", 64),
        one("c", "edm-timed-dst", "h3", "h2", 64),
        one("d", "edm-timed-dst", "h4", "h1", 64),
        one("e", "edm-timed-dst", "h3", "h1", 8_193),
        one("f", "clio", "h1", "h3", 64),
        one("g", "clio", "h1", "h5", 64),
    ]
    .concat();
    let refused = TopologyExperiment::parse(&text, "t.toml").unwrap().on(Arc::new(network(|_| {})));
    let error = refused.map(|_| ()).unwrap_err().to_string();
    for says in [
        "t.toml:10: [traffic] receivers: h1's rack rack-1 runs edm-timed-dst, not edm-timed; write way = \"edm-timed-dst\"",
        "t.toml:17: [traffic] receivers: h4's rack rack-2 has no edm-timed-dst; add [edm] with mode = \"timed-dst\" and memory = [\"h4\"]",
        "t.toml:24: [traffic] receivers: h2 has no memory: edm.memory of rack rack-1 has h1; name one of these",
        "t.toml:30: [traffic] senders: h4 is not in h1's rack rack-1, within which edm-timed-dst works",
        "t.toml:39: [traffic] size: goes up to 8193 bytes; messages of rack rack-1 have 8192 at most (edm.message_bytes_max)",
        "t.toml:45: [traffic] receivers: h3's rack rack-1 has no clio; add [clio] with boards = [\"h3\"]",
        "t.toml:52: [traffic] receivers: h5 has no memory: clio.boards of rack rack-2 has h4",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
    let crowded = format!("{}flows = 65\n", one("full", "clio", "h5", "h4", 64));
    let started = experiment(&crowded, network(|_| {})).start(1, &[]).map(|_| ());
    let error = started.unwrap_err();
    assert!(error.starts_with("traffic `full`: region: a board refuses"), "{error}");
}
