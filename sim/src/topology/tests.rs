//! Small networks: times, conservation, any number of workers, copies, TCP.
// The simulator has no threads; its tests have.
#![allow(clippy::disallowed_methods)]

use super::experiment::{Network, SwitchProgram, TopologyExperiment};
use super::outcome::TopologyOutcome;
use super::plan::Planted;
use crate::crew::{Alone, Crew};
use crate::crew_tests::Threads;
use p4rack_codegen::rack::End;
use p4rack_codegen::topology::{Host, Link, Runs, Switch, Target, Topology};
use p4rack_p4::{Options, compile};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::replica::PortKind;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    Action, CloneSessionEntry, Entity, FieldMatch, MulticastGroupEntry, PacketReplicationEngineEntry,
    Replica, TableAction, TableEntry, Update, action::Param, field_match, table_action,
};
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

const ROUTE: &str = include_str!("../../../examples/pod/route.p4");
const GIGABIT: u64 = 1_000_000_000;

fn insert(entity: EntityKind) -> Update {
    Update { r#type: Type::Insert as i32, entity: Some(Entity { entity: Some(entity) }) }
}

fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8 + 1])
}

/// A route of the program [`ROUTE`] to a host.
fn route(program: &str, host: usize, port: u16) -> Update {
    let info = compile(program, "route.p4", &Options::default()).unwrap().p4info;
    let id = |preamble: &Option<p4rack_p4rt::p4::config::v1::Preamble>| preamble.as_ref().unwrap().id;
    let named = |name: &str| {
        let found = info.actions.iter().find(|action| action.preamble.as_ref().unwrap().name.ends_with(name));
        id(&found.unwrap().preamble)
    };
    let lpm = field_match::Lpm { value: vec![10, 0, host as u8 + 1, 0], prefix_len: 24 };
    let params = [(1, mac(host).0.to_vec()), (2, port.to_be_bytes().to_vec())];
    insert(EntityKind::TableEntry(TableEntry {
        table_id: id(&info.tables[0].preamble),
        r#match: vec![FieldMatch {
            field_id: 1,
            field_match_type: Some(field_match::FieldMatchType::Lpm(lpm)),
        }],
        action: Some(TableAction {
            r#type: Some(table_action::Type::Action(Action {
                action_id: named(".to"),
                params: params.into_iter().map(|(param_id, value)| Param { param_id, value }).collect(),
            })),
        }),
        ..Default::default()
    }))
}

/// Two switches with two hosts each: h1, h2 at s1, h3, h4 at s2; port 3 of both leads to the other one.
fn network(program: &str, between: Link, more: &[Update]) -> Network {
    let switch = |name: &str| Switch {
        name: name.to_owned(),
        runs: Runs::Program("route.p4".into()),
        entries: None,
        target: Target::Embedded,
        grpc_addr: "127.0.0.1:9559".parse().unwrap(),
        device_id: 1,
        cpu_port: 510,
        buffer_bytes: 64 << 10,
        time_unit_ns: 1,
    };
    let host = |at: usize| Host {
        name: format!("h{}", at + 1),
        mac: mac(at),
        ip: Ipv4Addr::new(10, 0, at as u8 + 1, 1),
        prefix: 24,
        gateway: Some(Ipv4Addr::new(10, 0, at as u8 + 1, 254)),
        gateway_mac: Some(MacAddr([2, 0, 0, 0, 1, 0])),
        commands: Vec::new(),
    };
    let link = |host: usize| Link {
        ends: [End::Port(host / 2, host as u16 % 2 + 1), End::Host(host)],
        ..between.clone()
    };
    let links =
        (0..4).map(link).chain([Link { ends: [End::Port(0, 3), End::Port(1, 3)], ..between.clone() }]);
    let topology = Topology {
        name: "two".to_owned(),
        switches: vec![switch("s1"), switch("s2")],
        hosts: (0..4).map(host).collect(),
        links: links.collect(),
    };
    let port = |switch: usize, host: usize| if host / 2 == switch { host as u16 % 2 + 1 } else { 3 };
    let of = |switch: usize| SwitchProgram {
        text: program.to_owned(),
        updates: (0..4)
            .map(|host| route(program, host, port(switch, host)))
            .chain(more.iter().cloned())
            .collect(),
    };
    Network { topology, programs: vec![of(0), of(1)] }
}

fn plain() -> Link {
    Link {
        ends: [End::Host(0), End::Host(0)],
        rate_bps: Some(GIGABIT),
        delay: Nanos::from_micros(10),
        loss_ppm: 0,
    }
}

fn experiment(traffic: &str, network: Network) -> TopologyExperiment {
    let text =
        format!("name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 2000\n{traffic}");
    TopologyExperiment::parse(&text, "t.toml").unwrap().on(network).unwrap()
}

fn run_with(experiment: &TopologyExperiment, crew: &dyn Crew, planted: Option<Planted>) -> TopologyOutcome {
    experiment.start_with(crew.size(), &[], planted).unwrap().finish(crew).0
}

fn run(experiment: &TopologyExperiment) -> TopologyOutcome {
    let outcome = run_with(experiment, &Alone, None);
    assert_eq!(outcome.problems, Vec::<String>::new());
    outcome
}

const MIXED: &str = r#"
[[traffic]]
name = "even"
send = "constant"
senders = ["h1"]
receivers = ["h3"]
rate = "300 Mb/s"

[[traffic]]
name = "random"
send = "poisson"
pattern = "all-to-all"
rate = "200 Mb/s"
size = [[0, 20], [0.5, 400], [1, 5000]]

[[traffic]]
name = "rpc"
send = "request-response"
senders = ["h2"]
receivers = ["h4"]
under_way = 4
size = 100
answer_size = 3000
timeout_us = 500

[[traffic]]
name = "bulk"
send = "cubic"
senders = ["h4"]
receivers = ["h1"]
size = 20000
"#;

/// The times of a frame on an idle path: three links, two pipelines.
#[test]
fn a_frame_takes_the_time_of_its_links_and_pipelines() {
    let traffic = "[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h4\"]\n\
                   interval_us = 100\nsize = 1000\n";
    let outcome = run(&experiment(traffic, network(ROUTE, plain(), &[])));
    let one = &outcome.traffic[0];
    // 1042 bytes and 24 of preamble, FCS and gap are 8528 ns at 1 Gb/s.
    let expected = 3 * (8_528 + 10_000) + 2 * 400;
    // Histograms keep three digits.
    for latency in [one.latency_ns.min, one.latency_ns.max] {
        assert!(latency.abs_diff(expected) <= expected / 1_000, "{latency} instead of {expected}");
    }
    assert_eq!((one.sent, one.received, one.lost), (20, Some(20), Some(0)));
    assert_eq!(outcome.switch_hops, 40);
    let used = |name: &str| outcome.links.iter().find(|link| link.name == name).unwrap().utilisation.unwrap();
    assert!((used("s1:3–s2:3") - 0.0853).abs() < 0.005, "{}", used("s1:3–s2:3"));
    assert_eq!(used("s2:3–s1:3"), 0.0);
}

#[test]
fn everything_is_accounted_for_and_planted_faults_are_seen() {
    let lossy = Link { loss_ppm: 20_000, ..plain() };
    let mut overloaded = experiment(MIXED, network(ROUTE, lossy, &[]));
    overloaded.spec.duration_us = 6_000;
    let outcome = run(&overloaded);
    let balance = &outcome.balance;
    assert!(balance.dropped > 100 && balance.lost > 50, "{balance:?}");
    assert!(outcome.switches.iter().any(|switch| switch.drops.contains_key("buffer_full")), "{outcome:?}");
    assert!(outcome.traffic.iter().all(|one| one.latency_ns.count > 0), "{:?}", outcome.traffic);
    assert!(outcome.traffic[2].failed > 0, "requests are lost");
    for planted in [Planted::Vanish, Planted::Deaf] {
        let outcome = run_with(&overloaded, &Alone, Some(planted));
        assert!(outcome.problems.iter().any(|problem| problem.contains("unaccounted")), "{planted:?}");
    }
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let lossy = Link { loss_ppm: 5_000, ..plain() };
    let experiment = experiment(MIXED, network(ROUTE, lossy, &[]));
    let alone = serde_json::to_value(run(&experiment)).unwrap();
    assert_eq!(serde_json::to_value(run(&experiment)).unwrap(), alone);
    for size in [2, 3] {
        let together = run_with(&experiment, &Threads::new(size), None);
        assert_eq!(serde_json::to_value(together).unwrap(), alone, "{size} workers");
    }
    let raced = run_with(&experiment, &Threads::new(2), Some(Planted::Race));
    assert_ne!(serde_json::to_value(raced).unwrap(), alone);
    let mut other = experiment.clone();
    other.spec.seed = 2;
    assert_ne!(run(&other).digest, alone["digest"].as_str().unwrap());
}

/// The program of the routes with a line more in its ingress.
fn with_line(line: &str) -> String {
    let place = "            routes.apply();\n";
    assert_eq!(ROUTE.matches(place).count(), 1);
    ROUTE.replace(place, &format!("{place}            {line}\n"))
}

fn replica(port: u16) -> Replica {
    Replica { port_kind: Some(PortKind::Port(port.to_be_bytes().to_vec())), ..Default::default() }
}

#[test]
fn copies_and_packets_for_the_controller_are_counted() {
    const ONE: &str = "[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h2\"]\n\
                       interval_us = 100\n";
    let replication = |entry| {
        insert(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(entry) }))
    };
    let session = replication(Replication::CloneSessionEntry(CloneSessionEntry {
        session_id: 5,
        replicas: vec![replica(510)],
        ..Default::default()
    }));
    let cloned = with_line("clone(CloneType.I2E, 5);");
    let outcome = run(&experiment(ONE, network(&cloned, plain(), &[session])));
    let s1 = &outcome.switches[0];
    assert_eq!((s1.to_controller, s1.clones, s1.hops), (20, 20, 20));
    assert_eq!((outcome.balance.copies, outcome.balance.received), (20, 20));
    let group = replication(Replication::MulticastGroupEntry(MulticastGroupEntry {
        multicast_group_id: 7,
        replicas: vec![replica(1), replica(2), replica(3)],
        ..Default::default()
    }));
    let spread = with_line("sm.mcast_grp = 7;");
    let outcome = run(&experiment(ONE, network(&spread, plain(), &[group])));
    // One comes back to h1, one arrives, and one goes to s2, which sends it to h3, h4 and back, until its TTL ends.
    assert_eq!(outcome.traffic[0].received, Some(20));
    assert!(outcome.traffic[0].twice > 0 && outcome.balance.elsewhere > 40, "{:?}", outcome.balance);
    assert!(outcome.switches.iter().all(|switch| switch.replicas > 20));
}

/// A bottleneck of 100 Mb/s; the program marks frames that find more than 20 frames in their queue.
#[test]
fn dctcp_keeps_the_queue_short_where_the_program_marks() {
    let place = "control PodEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }";
    let marks = ROUTE.replace(
        place,
        "control PodEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {\n\
         apply { if (hdr.ipv4.isValid() && hdr.ipv4.tos & 3 != 0 && sm.enq_qdepth > 10) { hdr.ipv4.tos = hdr.ipv4.tos | 3; } }\n}",
    );
    assert_ne!(marks, ROUTE);
    let of = |send: &str, program: &str| {
        let mut made = network(program, plain(), &[]);
        made.topology.links[4].rate_bps = Some(GIGABIT / 10);
        let text = format!(
            "warmup_us = 1000\n[[traffic]]\nname = \"bulk\"\nsend = \"{send}\"\nsenders = [\"h1\"]\nreceivers = [\"h3\"]\n\
             size = 100000\n"
        );
        let mut made = experiment(&text, made);
        (made.spec.duration_us, made.spec.warmup_us) = (300_000, 100_000);
        let outcome = run(&made);
        assert!(outcome.goodput_gbps > 0.08, "{send}: {} Gb/s", outcome.goodput_gbps);
        let link = outcome.links.iter().find(|link| link.name == "s1:3–s2:3").unwrap();
        (link.queue_p999_bytes, outcome.traffic[0].retransmissions)
    };
    let (cubic, dctcp) = (of("cubic", ROUTE), of("dctcp", &marks));
    assert!(cubic.0 > dctcp.0 && cubic.1 > dctcp.1, "cubic {cubic:?}, dctcp {dctcp:?}");
}

#[test]
fn a_capture_is_replayed_with_its_times() {
    let traffic = "[[traffic]]\nname = \"old\"\nsend = \"pcap\"\nfile = \"old.pcap\"\nsenders = [\"h1\"]\n";
    let mut experiment = experiment(traffic, network(ROUTE, plain(), &[]));
    let source = "[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h3\"]\n\
                  interval_us = 100\n";
    let first = self::experiment(source, network(ROUTE, plain(), &[]));
    let run = first.start(1, &["h1".to_owned(), "h3".to_owned()]).unwrap();
    let (_, captures) = run.finish(&Alone);
    assert_eq!(captures.iter().map(|capture| capture.frames.len()).collect::<Vec<_>>(), [20, 20]);
    let begin = captures[0].frames[0].0;
    let frames = captures[0].frames.iter().map(|(time, frame)| (time.0 - begin.0, frame.clone()));
    experiment.captures[0] = Some(Arc::new(frames.collect()));
    let outcome = self::run(&experiment);
    assert_eq!((outcome.traffic[0].sent, outcome.balance.received), (20, 20));
    // They carry tags of a flow that is not this experiment's.
    assert_eq!(outcome.traffic[0].received, None);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let text = "name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 0\n[[traffic]]\nname = \"a\"\n\
                send = \"constant\"\n[[traffic]]\nname = \"a\"\nsend = \"request-response\"\nrate = \"1 Mb/s\"\nsize = 200000\n\
                under_way = 0\n[[traffic]]\nname = \"c\"\nsend = \"pcap\"\ndscp = 64\n";
    let error = TopologyExperiment::parse(text, "t.toml").unwrap_err().to_string();
    for says in [
        "t.toml:4: duration_us: 0 is out of range",
        "t.toml:5: [traffic] rate: is missing; write rate",
        "t.toml:9: [traffic] name: `a` is another traffic's already",
        "t.toml:11: [traffic] rate: follows from under_way",
        "t.toml:12: [traffic] size: goes up to 200000 bytes; request-response takes 94208 at most",
        "t.toml:13: [traffic] under_way: 0 is out of range",
        "t.toml:14: [traffic] file: names the capture",
        "t.toml:17: [traffic] dscp: 64 is out of range",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
    let text = "name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 9\n[switch_pipeline_ns]\ns3 = 7\n\
                [[traffic]]\nname = \"a\"\nsend = \"constant\"\nrate = \"1 Mb/s\"\nsenders = [\"h9\"]\n";
    let refused = TopologyExperiment::parse(text, "t.toml").unwrap().on(network(ROUTE, plain(), &[]));
    let error = refused.map(|_| ()).unwrap_err().to_string();
    for says in [
        "t.toml:6: [switch_pipeline_ns] s3: `s3` is no switch of the topology; did you mean `s",
        "t.toml:11: [traffic] senders: `h9` is no host of the topology; did you mean `h",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
}
