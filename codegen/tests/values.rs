//! Racks made of values: the same as those of descriptions, refused for the same reasons.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::{End, Link, Rack, Station, Switch, Target, Topology, Workload, WorkloadKind};
use p4rack_codegen::scheme::Protocol;
use p4rack_codegen::scheme::pl2::{Clocks, Mode, Pl2};
use p4rack_codegen::{Arch, generate};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use proptest::prelude::*;
use serde_json::json;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

fn topology(rates_mbps: &[u64], switch: Switch, pl2: Option<Pl2>) -> Topology {
    let station = |n: usize| Station {
        name: format!("h{n}"),
        mac: MacAddr([2, 0, 0, 0, 1, n as u8]),
        ip: Ipv4Addr::new(10, 0, 0, n as u8),
        prefix: 24,
        foreign_percent: None,
    };
    let link = |(host, mbps): (usize, &u64)| Link {
        rate_bps: Some(mbps * 1_000_000),
        ..Link::to_port(host, host as u16 + 1)
    };
    Topology {
        name: "made".to_owned(),
        switches: vec![switch],
        hosts: (1..=rates_mbps.len()).map(station).collect(),
        links: rates_mbps.iter().enumerate().map(link).collect(),
        protocols: pl2.into_iter().map(|pl2| Arc::new(pl2) as Arc<dyn Protocol>).collect(),
        workload: None,
    }
}

fn switch() -> Switch {
    Switch::new(Target::Embedded, 1_000_000_000)
}

/// The same as a description.
fn printed(topology: &Topology, pl2: Option<&Pl2>) -> String {
    let switch = &topology.switches[0];
    let mut text = format!(
        "name = \"{}\"\n[switch]\nport_rate = \"{} Mb/s\"\nbuffer = \"{} B\"\ncpu_port = {}\ntime_unit_ns = {}\n",
        topology.name,
        switch.port_rate_bps / 1_000_000,
        switch.buffer_bytes,
        switch.cpu_port,
        switch.time_unit_ns
    );
    for (host, link) in topology.hosts.iter().zip(&topology.links) {
        let End::Port(_, port) = link.ends[1] else { panic!("{link:?}") };
        let (name, mac, ip, prefix) = (&host.name, host.mac, host.ip, host.prefix);
        let rate = link.rate_bps.unwrap() / 1_000_000;
        writeln!(text, "[[host]]\nname = \"{name}\"\nport = {port}\nmac = \"{mac}\"\nip = \"{ip}/{prefix}\"")
            .unwrap();
        writeln!(text, "rate = \"{rate} Mb/s\"").unwrap();
        if let Some(percent) = host.foreign_percent {
            writeln!(text, "foreign_percent = {percent}").unwrap();
        }
        if let Some(rate_bps) = link.port_rate_bps {
            writeln!(text, "port_rate = \"{} Mb/s\"", rate_bps / 1_000_000).unwrap();
        }
    }
    if let Some(pl2) = pl2 {
        let (mode, clocks) = (json!(pl2.mode), json!(pl2.clocks));
        let k = match pl2.backlog {
            true => format!("k = \"backlog\"\nk_max = {}", pl2.k),
            false => format!("k = {}", pl2.k),
        };
        write!(
            text,
            "[pl2]\nmode = {mode}\nclocks = {clocks}\n{}\nby_flow = {}\npace_unsolicited = {}\nslot_parts = {}\nt = {}\ndrop_threshold = {}\nether_type = {}\nvid = {}\n\
             shim = {}\nreservations_in_flight = {}\nlanes = {}\nslot_headroom_percent = {:?}\n\
             notify_receiver = {}\ncontrol_per_slot = {}\nbest_effort_percent = {}\n",
            k, pl2.by_flow, pl2.pace_unsolicited, pl2.slot_parts, pl2.t_slots, pl2.drop_threshold_slots,
            pl2.ether_type.0, pl2.vid, pl2.shim, pl2.reservations_in_flight, pl2.lanes, pl2.slot_headroom_percent,
            pl2.notify_receiver, pl2.control_per_slot, pl2.best_effort_percent
        )
        .unwrap();
        if let Some(fresh) = pl2.fresh {
            writeln!(text, "fresh_us = {}", fresh.0 / 1_000).unwrap();
        }
    }
    text
}

prop_compose! {
    /// Parameters of PL2, some beyond what is allowed.
    fn parameters()(
        mode in prop_oneof![Just(Mode::Counter), Just(Mode::Clock)],
        clocks in prop_oneof![Just(Clocks::Pair), Just(Clocks::Chain), Just(Clocks::Dst), Just(Clocks::Calendar)],
        (k, slot_parts, lanes) in (0u8..20, 0u8..20, 0u8..6),
        (backlog, by_flow, pace_unsolicited) in any::<(bool, bool, bool)>(),
        (t_slots, drop_threshold_slots) in (0u32..40, 0u32..200),
        (ether_type, vid) in (prop_oneof![Just(0x88b5), Just(0x0800), 0u16..], 0u16..4100),
        (shim, notify_receiver, reservations_in_flight) in (any::<bool>(), any::<bool>(), 0u32..6),
        (slot_headroom_percent, fresh_us) in (0.0..110.0, 0u64..11_000_000),
        (control_per_slot, best_effort_percent) in (0u32..1_100, 0u32..110),
    ) -> Pl2 {
        Pl2 {
            mode, clocks, k, backlog, by_flow, pace_unsolicited, slot_parts, t_slots, drop_threshold_slots, ether_type: EtherType(ether_type), vid, shim,
            reservations_in_flight, lanes, slot_headroom_percent, fresh: Some(Nanos::from_micros(fresh_us)),
            notify_receiver, control_per_slot, best_effort_percent,
        }
    }
}

prop_compose! {
    /// Racks of every kind, some of which can't be.
    fn made()(
        rates in proptest::collection::vec(prop_oneof![Just(100u64), Just(1_000), Just(25_000)], 1..6),
        pl2 in proptest::option::of(prop_oneof![parameters(), Just(Pl2::new(Mode::Clock)), Just(Pl2::new(Mode::Counter))]),
        (buffer, cpu_port, time_unit_ns) in (8_000u64..300_000, 505u16..515, 1u64..20),
        shared in any::<bool>(),
        foreign in proptest::option::of(0u32..100),
        same in 0usize..20,
    ) -> (Topology, Option<Pl2>) {
        let switch = Switch { cpu_port, time_unit_ns, ..switch().with_buffer(buffer, 25) };
        let mut topology = topology(&rates, switch, pl2.clone());
        let last = rates.len() - 1;
        if shared {
            for link in [0, last] {
                topology.links[link].port_rate_bps = Some(1_000_000_000);
                topology.links[link].ends[1] = End::Port(0, 9);
            }
        }
        topology.hosts[0].foreign_percent = foreign;
        // Now and then two are the same.
        match same {
            0 => topology.hosts[last].name = "h1".to_owned(),
            1 => topology.hosts[last].mac = topology.hosts[0].mac,
            2 => topology.hosts[last].ip = Ipv4Addr::new(10, 0, 1, 1),
            3 => topology.links[last].ends[1] = End::Port(0, 510),
            _ => {}
        }
        (topology, pl2)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rack_of_values_is_the_one_of_its_description((topology, pl2) in made()) {
        let text = printed(&topology, pl2.as_ref());
        match (Rack::build(topology), Rack::parse(&text, "made.toml")) {
            (Ok(built), Ok(parsed)) => {
                prop_assert_eq!(&built, &parsed);
                prop_assert_eq!(Rack::build(built.topology()), Ok(parsed));
            }
            (Err(built), Err(parsed)) => {
                // Reading also refuses what can't be written as a value, so it may see fewer of the later
                // mistakes.
                let fields = |error: &p4rack_codegen::RackError| {
                    error.errors.iter().map(|one| one.field.clone()).collect::<Vec<_>>()
                };
                let (built, parsed) = (fields(&built), fields(&parsed));
                prop_assert!(built.iter().any(|field| parsed.contains(field)), "{:?} {:?}", built, parsed);
            }
            (built, parsed) => prop_assert!(false, "{:?}\n{:?}\n{}", built.err(), parsed.err(), text),
        }
    }
}

#[test]
fn examples_are_made_again_of_their_topologies() {
    for name in ["pl2-incast", "two-hosts"] {
        let rack = Rack::load(format!("{}/../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let again = Rack::build(rack.topology()).unwrap();
        assert_eq!(again, rack);
        let files = |rack: &Rack| generate(rack, rack.scheme(), Arch::V1model).unwrap().files();
        assert_eq!(files(&again), files(&rack));
    }
}

#[test]
fn what_is_more_than_a_rack_of_one_switch_is_refused_by_name() {
    type Change = fn(&mut Topology);
    let cases: [(Change, &str); 9] = [
        (
            |t| t.switches.push(switch()),
            "switches: are 2, but racks of one switch are all that is supported; describe one switch and the hosts on it",
        ),
        (|t| t.switches.clear(), "switches: are 0, but racks of one switch"),
        (|t| t.links.push(Link::to_port(0, 7)), "links[2]: is a second one of h1, but hosts have one link"),
        (|t| t.links[1].ends[1] = End::Port(1, 2), "links[1]: names a switch that is not there"),
        (
            |t| t.links[1].ends = [End::Port(0, 1), End::Port(0, 2)],
            "links[1]: does not connect a host with the switch",
        ),
        (|t| t.links[1].ends[0] = End::Host(5), "links[1]: names host 5, but there are 2"),
        (|t| t.links[0].delay = Nanos(5), "links[0].delay: of 5 ns is not supported"),
        (|t| t.links.truncate(1), "host[1]: has no link; add a link"),
        (|t| t.hosts.clear(), "links[0]: names host 0, but there are 0"),
    ];
    for (change, wanted) in cases {
        let mut topology = topology(&[100, 100], switch(), None);
        change(&mut topology);
        let error = Rack::build(topology).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "wanted: {wanted}\n   got: {error}");
    }
    let turned = |mut topology: Topology| {
        topology.links[0].ends.reverse();
        Rack::build(topology)
    };
    assert_eq!(turned(topology(&[100], switch(), None)), Rack::build(topology(&[100], switch(), None)));
}

#[test]
fn each_value_is_checked() {
    type Change = fn(&mut Topology);
    let cases: [(Change, &str); 12] = [
        (|t| t.name = "no name".into(), "name: `no name` is no name; write letters"),
        (|t| t.switches[0].cpu_port = 511, "switch.cpu_port: 511 is also the drop port"),
        (|t| t.switches[0].time_unit_ns = 0, "switch.time_unit_ns: 0 is out of range 1 to 1000000"),
        (|t| t.switches[0].buffer_bytes = 1, "switch.buffer: 1 bytes don't hold 8 full frames"),
        (
            |t| t.hosts[1].mac = MacAddr([1, 0, 0, 0, 0, 0]),
            "host[1].mac: `01:00:00:00:00:00` is a group address",
        ),
        (|t| t.hosts[1].ip = Ipv4Addr::new(10, 0, 0, 0), "host[1].ip: `10.0.0.0/24` is no host's address"),
        (|t| t.hosts[0].prefix = 0, "host[0].ip: `/0` is no prefix length"),
        (|t| t.hosts[0].foreign_percent = Some(91), "host[0].foreign_percent: 91 is out of range 1 to 90"),
        (|t| t.links[1].rate_bps = Some(0), "host[1].rate: is a port that sends nothing"),
        (|t| t.links[1].ends[1] = End::Port(0, 512), "host[1].port: 512 is out of range 1 to 511"),
        (
            |t| t.protocols = vec![Arc::new(Pl2 { k: 0, ..Pl2::new(Mode::Clock) })],
            "pl2.k: 0 is out of range; write an integer from 1 to 255",
        ),
        (
            |t| {
                t.workload = Some(Workload {
                    kill_tor: None,
                    kind: WorkloadKind::Incast,
                    schemes: Vec::new(),
                    receivers: vec!["h1".into()],
                    senders: vec!["h9".into()],
                    load_percent: 400,
                    payload_bytes: 1500,
                    duration_s: 1.0,
                    seed: 1,
                    rpc: None,
                    kill: None,
                    store: None,
                })
            },
            "workload.senders[0]: there is no host `h9`",
        ),
    ];
    for (change, wanted) in cases {
        let mut topology = topology(&[100, 100], switch(), None);
        change(&mut topology);
        let error = Rack::build(topology).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "wanted: {wanted}\n   got: {error}");
    }
}
