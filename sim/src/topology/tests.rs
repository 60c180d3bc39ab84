//! Small networks: times, conservation, any number of workers, TCP, captures, mistakes.
// The simulator has no threads; its tests have.
#![allow(clippy::disallowed_methods)]

use super::experiment::TopologyExperiment;
use super::network::{Network, Programs, SwitchProgram};
use super::outcome::TopologyOutcome;
use super::plan::Planted;
use crate::crew::{Alone, Crew};
use crate::crew_tests::Threads;
use p4rack_codegen::rack::End;
use p4rack_codegen::topology::{Host, Link, Places, Runs, Switch, Target, Topology};
use p4rack_p4::{Options, compile};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    Action, Entity, FieldMatch, TableAction, TableEntry, Update, action::Param, field_match, table_action,
};
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

pub(super) const ROUTE: &str = include_str!("../../../examples/pod/route.p4");
const GIGABIT: u64 = 1_000_000_000;

pub(super) fn insert(entity: EntityKind) -> Update {
    Update { r#type: Type::Insert as i32, entity: Some(Entity { entity: Some(entity) }) }
}

fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8 + 1])
}

/// A route of the program [`ROUTE`] to a host.
fn route(program: &str, host: usize, port: u16) -> Update {
    insert(route_to(program, (Ipv4Addr::new(10, 0, host as u8 + 1, 0), 24), mac(host), port))
}

/// A route of such a program to a subnet, by the next hop's address and port.
pub(super) fn route_to(
    program: &str,
    (subnet, prefix): (Ipv4Addr, i32),
    next_hop: MacAddr,
    port: u16,
) -> EntityKind {
    let info = compile(program, "route.p4", &Options::default()).unwrap().p4info;
    let id = |preamble: &Option<p4rack_p4rt::p4::config::v1::Preamble>| preamble.as_ref().unwrap().id;
    let named = |name: &str| {
        let found = info.actions.iter().find(|action| action.preamble.as_ref().unwrap().name.ends_with(name));
        id(&found.unwrap().preamble)
    };
    let lpm = field_match::Lpm { value: subnet.octets().to_vec(), prefix_len: prefix };
    let params = [(1, next_hop.0.to_vec()), (2, port.to_be_bytes().to_vec())];
    EntityKind::TableEntry(TableEntry {
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
    })
}

/// Two switches with two hosts each: h1, h2 at s1, h3, h4 at s2; port 3 of both leads to the other one.
fn topology(between: Link) -> Topology {
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
    Topology {
        name: "two".to_owned(),
        switches: vec![switch("s1"), switch("s2")],
        hosts: (0..4).map(host).collect(),
        links: links.collect(),
        workload: None,
        places: Places::default(),
    }
}

/// Such a network, whose switches run these programs.
pub(super) fn network_of(between: Link, switches: Vec<SwitchProgram>, programs: &mut Programs) -> Network {
    Network::new(topology(between), switches, programs).unwrap()
}

/// Such a network with a form of [`ROUTE`], routes, and further entries.
pub(super) fn network(program: &str, between: Link, more: &[Update]) -> Network {
    network_of(between, routed(program, more), &mut Programs::default())
}

fn routed(program: &str, more: &[Update]) -> Vec<SwitchProgram> {
    let port = |switch: usize, host: usize| if host / 2 == switch { host as u16 % 2 + 1 } else { 3 };
    let of = |switch: usize| SwitchProgram {
        text: program.to_owned(),
        p4info: P4Info::default(),
        updates: (0..4)
            .map(|host| route(program, host, port(switch, host)))
            .chain(more.iter().cloned())
            .collect(),
    };
    vec![of(0), of(1)]
}

pub(super) fn plain() -> Link {
    Link {
        ends: [End::Host(0), End::Host(0)],
        rate_bps: Some(GIGABIT),
        delay: Nanos::from_micros(10),
        loss_ppm: 0,
    }
}

pub(super) fn experiment(traffic: &str, network: Network) -> TopologyExperiment {
    let text =
        format!("name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 2000\n{traffic}");
    TopologyExperiment::parse(&text, "t.toml").unwrap().on(Arc::new(network)).unwrap()
}

pub(super) fn run_with(
    experiment: &TopologyExperiment,
    crew: &dyn Crew,
    planted: Option<Planted>,
) -> TopologyOutcome {
    experiment.start_with(crew.size(), &[], planted).unwrap().finish(crew).0
}

pub(super) fn run(experiment: &TopologyExperiment) -> TopologyOutcome {
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

/// Gaps of 5 ns at random, and of exactly 1.5 ns, are as long on average whatever part of a nanosecond each one has.
#[test]
fn parts_of_a_nanosecond_between_messages_are_not_lost() {
    for (how, sent, within) in [
        ("send = \"poisson\"\ninterval_us = 0.005\n", 20_000, 600),
        ("send = \"poisson\"\nsize = 500\nrate = \"800 Gb/s\"\n", 20_000, 600),
        ("send = \"constant\"\ninterval_us = 0.0015\n", 66_667, 1),
    ] {
        let traffic = format!(
            "drain_us = 0\n[[traffic]]\nname = \"one\"\nsenders = [\"h1\"]\nreceivers = [\"h2\"]\n{how}"
        );
        let mut experiment = experiment(&traffic, network(ROUTE, plain(), &[]));
        experiment.spec.duration_us = 100;
        let count = run(&experiment).traffic[0].sent;
        assert!(count.abs_diff(sent) <= within, "{how}: {count}");
    }
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
    for planted in [Planted::Vanish, Planted::Deaf, Planted::Swallow] {
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

/// A capture may hold frames of an earlier run, with tags of flows that this run has, too.
#[test]
fn a_capture_is_replayed_with_its_times_and_counts_for_no_flow() {
    const LIVE: &str = "[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h3\"]\n\
                        interval_us = 100\n[[traffic]]\nname = \"bulk\"\nsend = \"tcp\"\nsenders = [\"h1\"]\nreceivers = [\"h3\"]\n\
                        messages = 1\nsize = 20000\n";
    let first = experiment(LIVE, network(ROUTE, plain(), &[]));
    let run = first.start(1, &["h1".to_owned()]).unwrap();
    let (_, captures) = run.finish(&Alone);
    // In both directions.
    let begin = captures[0].frames[0].0;
    let frames: Vec<_> =
        captures[0].frames.iter().map(|(time, frame)| (time.0 - begin.0, frame.clone())).collect();
    let replayed = frames.len() as u64;
    assert!(replayed > 40, "{replayed}");
    let traffic = format!(
        "{LIVE}[[traffic]]\nname = \"old\"\nsend = \"pcap\"\nfile = \"old.pcap\"\nsenders = [\"h1\"]\n"
    );
    let alone = self::run(&first);
    let mut again = experiment(&traffic, network(ROUTE, plain(), &[]));
    again.captures[2] = Some(Arc::new(frames));
    let outcome = self::run(&again);
    assert_eq!((outcome.traffic[2].sent, outcome.traffic[2].received), (replayed, None));
    // Acknowledgements have h1's own address as destination: s1 sends them back to it.
    assert_eq!(outcome.balance.others, replayed);
    for (live, alone) in outcome.traffic.iter().zip(&alone.traffic) {
        let of = |traffic: &super::SentTraffic| {
            (traffic.received, traffic.twice, traffic.damaged, traffic.latency_ns.count)
        };
        assert_eq!(of(live), of(alone), "{}", live.name);
    }
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
    let text = "name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 9\npipeline_ns = 10000001\n\
                [switch_pipeline_ns]\ns1 = [[0, 1], [1, 2e7]]\n[transport]\nrto_min_us = 0\nprobe_min_us = 60000001\n\
                [[traffic]]\nname = \"a\"\nsend = \"request-response\"\nthink_us = 99000000\nstop_us = 18446744073709551\n\
                [[traffic]]\nname = \"b\"\nsend = \"poisson\"\nrate = \"100 Gb/s\"\nsize = 12\n\
                [[traffic]]\nname = \"c\"\nsend = \"poisson\"\ninterval_us = 0.0009\n";
    let error = TopologyExperiment::parse(text, "t.toml").unwrap_err().to_string();
    for says in [
        "t.toml:5: pipeline_ns: goes up to 10000001 ns; a pipeline takes 10000000 ns at most",
        "t.toml:7: [switch_pipeline_ns] s1: goes up to 20000000 ns",
        "t.toml:9: [transport] rto_min_us: 0 is out of range; write 1 to 60000000",
        "t.toml:10: [transport] probe_min_us: 60000001 is out of range; write 1 to 60000000",
        "t.toml:14: [traffic] think_us: 99000000 is out of range; write 0 to 60000000",
        "t.toml:15: [traffic] stop_us: 18446744073709551 is out of range; write 1 to 60000000",
        "t.toml:19: [traffic] rate: leaves less than 1 ns between two messages",
        "t.toml:24: [traffic] interval_us: 0.0009 is out of range; write 0.001",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
    let text = "name = \"t\"\nkind = \"topology\"\ntopology = \"t.toml\"\nduration_us = 9\n[switch_pipeline_ns]\ns3 = 7\n\
                [[traffic]]\nname = \"a\"\nsend = \"constant\"\nrate = \"1 Mb/s\"\nsenders = [\"h9\"]\n";
    let refused =
        TopologyExperiment::parse(text, "t.toml").unwrap().on(Arc::new(network(ROUTE, plain(), &[])));
    let error = refused.map(|_| ()).unwrap_err().to_string();
    for says in [
        "t.toml:6: [switch_pipeline_ns] s3: `s3` is no switch of the topology; did you mean `s",
        "t.toml:11: [traffic] senders: `h9` is no host of the topology; did you mean `h",
    ] {
        assert!(error.contains(says), "{says}\n---\n{error}");
    }
}

#[test]
fn a_topology_with_too_many_pairs_for_pings_is_refused_by_name() {
    let of = |hosts: usize| {
        let mut network = network(ROUTE, plain(), &[]);
        let host = network.topology.hosts[0].clone();
        network.topology.hosts.resize(hosts, host);
        let pings = TopologyExperiment::of_pings("large", "large.toml").unwrap();
        pings.on(Arc::new(network)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(of(245), Ok(()));
    let error = of(246).unwrap_err();
    assert!(
        error.starts_with("large.toml: has 246 hosts, which are 60270 pairs; at most 60000 are tried"),
        "{error}"
    );
}

#[test]
fn networks_share_programs_with_the_same_text() {
    let mut programs = Programs::default();
    let other = ROUTE.replace("size = 1024", "size = 512");
    for text in [ROUTE, ROUTE, &other] {
        network_of(plain(), routed(text, &[]), &mut programs);
    }
    assert_eq!(programs.compiled(), 2);
}

/// 25 MB are in a pipeline of 9 ms, unless it holds no more than a link does.
#[test]
fn frames_in_a_pipeline_count_as_on_the_link() {
    let traffic = "pipeline_ns = 9000000\n[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\n\
                   receivers = [\"h2\"]\nsize = 1472\nrate = \"40 Gb/s\"\n";
    let fast = Link { rate_bps: Some(100 * GIGABIT), ..plain() };
    let mut experiment = experiment(traffic, network(ROUTE, fast, &[]));
    experiment.spec.duration_us = 5_000;
    let balance = run(&experiment).balance;
    // 16 MiB of 1514 bytes each.
    assert_eq!(balance.received + balance.dropped, 11_081, "{balance:?}");
    assert_eq!(balance.sent, balance.link_full + 11_081, "{balance:?}");
}
