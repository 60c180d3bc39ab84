//! The rack: its switch with the program, and the queue pairs between its hosts.

use super::costs::P4Spec;
use super::experiment::{CompetingClass, HOST_NAMES};
use super::nic::{MESSAGE_BYTES_MAX, Nic};
use super::records::POOL_KEY;
use crate::message::mac_of;
use crate::switch::{Model, P4, SwitchError};
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::{Link, Queueing, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::cowbird::{self, Cowbird, Instance, Pool, Run, Start};
use p4rack_fabric::roce::{Connection, Party};
use p4rack_wire::cowbird::{Layout, Phase};
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Hosts, by the number of their port less one.
pub(super) const COMPUTE: usize = 0;
pub(super) const POOL: usize = 1;
pub(super) const SPOT: usize = 2;
/// Host at which competing flows end, or a second compute node. More of them are behind it.
pub(super) const SINK: usize = 3;
/// Hosts of a rack with one compute node or two.
pub(super) const HOSTS: usize = 4;
/// First numbers of queue pairs: with the compute node, and with the pool. Both ends of one have the same number.
pub(super) const COMPUTE_QPN: u32 = 0x1000;
pub(super) const POOL_QPN: u32 = 0x2000;
/// Numbers from one thread's queue pairs to the next one's, for the engine in the switch.
const PAIRS: u32 = 8;
/// Port at which frames that give turns enter.
const TURN_QPN: u32 = 0xab_cdef;
/// Key of the first thread's rings, and bytes from the address of one thread's to the next one's.
const RINGS_KEY: u32 = 0x50;
const RINGS_BYTES: u64 = 1 << 34;
/// The switch's buffer: Tofino's.
const BUFFER_BYTES: u64 = 22 << 20;
/// Sequence number with which all queue pairs begin.
const PSN: u32 = 0xff_fff0;

pub(super) fn ip_of(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Key and address of a thread's rings.
pub(super) fn rings_of(thread: usize) -> (u32, u64) {
    (RINGS_KEY + thread as u32, (thread as u64 + 1) * RINGS_BYTES)
}

/// Rings for a thread with `in_flight` requests.
pub(super) fn layout(window: u32, record_bytes: u32) -> Layout {
    let data = (u64::from(window) * u64::from(record_bytes) * 2).next_power_of_two();
    let data = data.clamp(1_024, 2 * u64::from(MESSAGE_BYTES_MAX));
    Layout {
        entries: (2 * u64::from(window)).next_power_of_two().max(16),
        request_bytes: data,
        response_bytes: data,
    }
}

fn path(from: usize, (mac, ip): (MacAddr, Ipv4Addr)) -> Path {
    Path { src_mac: mac_of(from), dst_mac: mac, src_ip: ip_of(from), dst_ip: ip, src_port: 50_000, dscp: 0 }
}

/// One end of queue pairs of this number at two hosts.
pub(super) fn connection(own: usize, other: usize, qpn: u32) -> Connection {
    let path = path(own, (mac_of(other), ip_of(other)));
    Connection { path, peer_qpn: qpn, send_psn: PSN, receive_psn: PSN, domain: 0 }
}

/// Connects two hosts by queue pairs of this number. With a host that is `served` by them, they take its turns.
pub(super) fn connect(
    nics: &mut [Nic],
    (from, to): (usize, usize),
    served: Option<usize>,
    qpn: u32,
) -> Result<(), String> {
    for (own, other) in [(from, to), (to, from)] {
        let party = served.map_or(Party::Peer(ip_of(other)), |host| Party::Served(host as u64));
        let added = nics[own].adapter.add_pair_of(qpn, connection(own, other, qpn), party);
        added.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The engine in the switch, for `sets` sets of these compute nodes.
pub(super) fn engine(spec: &P4Spec, sets: u16, compute: Vec<String>) -> Cowbird {
    Cowbird {
        instances: sets.into(),
        regions: sets.into(),
        in_flight: spec.in_flight,
        message_bytes_max: MESSAGE_BYTES_MAX,
        // Its controller would configure a packet generator. Here the simulator makes the turns.
        probe: Nanos(spec.turn_ns.into()),
        rest_turns: spec.rest_turns,
        timeout: Nanos::from_micros(spec.timeout_us.into()),
        ..Cowbird::new(Ipv4Addr::new(10, 0, 0, 254), compute, vec![HOST_NAMES[POOL].to_owned()])
    }
}

/// Class of RDMA's frames if competing flows are below them.
const CLASS_ABOVE: u8 = 2;

/// Changes of the program that give competing flows this class: all frames of the fourth host are theirs.
fn classes(class: CompetingClass, is_engine: bool) -> Vec<(&'static str, String)> {
    const ALL: &str = "        standard_metadata.priority = PRIORITY_BEST_EFFORT;\n";
    const PROBES: &str = "const bit<3> COWBIRD_CLASS_PROBE  = 0;\n";
    if class == CompetingClass::Same {
        return Vec::new();
    }
    let sink = mac_of(SINK).0.iter().fold("48w0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    let above = format!(
        "{ALL}        if (hdr.ethernet.srcAddr != {sink} && hdr.ethernet.dstAddr != {sink}) {{\n            \
         standard_metadata.priority = {CLASS_ABOVE};\n        }}\n"
    );
    let mut edits = vec![(ALL, above)];
    if class == CompetingClass::Lowest && is_engine {
        edits.push((PROBES, format!("const bit<3> COWBIRD_CLASS_PROBE  = {CLASS_ABOVE};\n")));
    }
    edits
}

/// The rack's switch. Errors: the generator refuses the rack.
pub(super) fn switch(
    engine: Option<&Cowbird>,
    (names, rates_bps): (&[String], &[u64]),
    (queueing, class): (Queueing, CompetingClass),
    seed: u64,
) -> Result<P4, String> {
    let station = |host: usize| Station {
        name: names[host].clone(),
        mac: mac_of(host),
        ip: ip_of(host),
        prefix: 24,
        foreign_percent: None,
    };
    let link = |host: usize| Link { rate_bps: Some(rates_bps[host]), ..Link::to_port(host, host as u16 + 1) };
    let topology = Topology {
        name: "cowbird".to_owned(),
        switches: vec![Switch {
            queueing,
            ..Switch::new(Target::Embedded, rates_bps[COMPUTE]).with_buffer(BUFFER_BYTES, RESERVED_PERCENT)
        }],
        hosts: (0..names.len()).map(station).collect(),
        links: (0..names.len()).map(link).collect(),
        protocols: match engine {
            Some(engine) => vec![Arc::new(engine.clone())],
            None => Vec::new(),
        },
        workload: None,
    };
    let rack = Rack::build(topology).map_err(|error| {
        let problems = error.errors.iter().map(|one| format!("{}; {}", one.message, one.help));
        problems.collect::<Vec<_>>().join("; ")
    })?;
    let scheme = if engine.is_some() { Scheme::COWBIRD } else { Scheme::L2 };
    let edits = classes(class, engine.is_some());
    P4::edited(&rack, scheme, edits, |config| config.seed = seed)
        .map_err(|error: SwitchError| error.to_string())
}

/// Rings for the engine in the switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Number of the set.
    pub set: usize,
    /// Host with the rings.
    pub host: usize,
    /// Sizes of its rings.
    pub layout: Layout,
    /// Address of its memory in the pool, and bytes.
    pub pool: (u64, u64),
}

/// Adds rings to the engine in the switch: entries, queue pairs at the pool, initial progress. Returns the compute node's queue
/// pairs.
pub(super) fn serve(
    switch: &mut P4,
    nics: &mut [Nic],
    engine: &Cowbird,
    served: Served,
) -> Result<Vec<(u32, Connection)>, String> {
    let Served { set: thread, host: compute_node, layout, pool: (address, pool_bytes) } = served;
    let of = |host: usize, first: u32| cowbird::Connection {
        port: host as u16 + 1,
        mac: mac_of(host),
        ip: ip_of(host),
        own_qpn: first + thread as u32 * PAIRS,
        peer_qpn: first + thread as u32 * PAIRS,
        psn: PSN,
        udp_port: 0xc000 + thread as u16,
    };
    let (compute, pool) = (of(compute_node, COMPUTE_QPN), of(POOL, POOL_QPN));
    let ends = |host: usize, side: &cowbird::Connection, pairs: usize| {
        let (path, own_qpn, peer_qpn) = (path(host, (engine.mac, engine.ip)), side.own_qpn, side.peer_qpn);
        let end = move |nth: u32| {
            let peer = own_qpn + nth;
            (peer_qpn + nth, Connection { path, peer_qpn: peer, send_psn: PSN, receive_psn: PSN, domain: 0 })
        };
        (0..pairs as u32).map(end).collect::<Vec<_>>()
    };
    let of_compute = ends(compute_node, &compute, Phase::COMPUTE.len());
    for (qpn, connection) in ends(POOL, &pool, Phase::POOL.len()) {
        let party = Party::Served(compute_node as u64);
        nics[POOL].adapter.add_pair_of(qpn, connection, party).map_err(|error| error.to_string())?;
    }
    let regions = vec![Pool { key: POOL_KEY, address, bytes: pool_bytes }];
    let (key, address) = rings_of(thread);
    let start = Start::default();
    let instance = Instance { number: thread as u32, compute, pool, key, address, layout, regions, start };
    let schema = switch.schema().map_err(|error| error.to_string())?;
    let inserts = engine.serve(&instance, &schema).map_err(|error| error.to_string())?;
    switch.install(inserts.all()).map_err(|error| error.to_string())?;
    for frame in engine.begin_frames(thread as u32, &start) {
        // `manage` adds the header in front of the frame.
        let reply = switch.manage(frame.get(2..).unwrap_or_default(), Nanos::ZERO);
        reply.and_then(|reply| Cowbird::reply(&reply)).ok_or("the switch does not answer its controller")?;
    }
    Ok(of_compute)
}

/// Lets the switch's engine take turns at the compute node's port: hosts, and the sets of each. Returns the frame that gives a turn, and
/// the time to the next one of its kind, in the unit of `every`.
pub(super) fn turns(
    switch: &mut P4,
    engine: &Cowbird,
    hosts: &BTreeMap<u32, usize>,
    every: u64,
) -> Result<Vec<(Vec<u8>, u64)>, String> {
    let port = COMPUTE as u16 + 1;
    let schema = switch.schema().map_err(|error| error.to_string())?;
    let mut frames = Vec::new();
    for run in Run::of(hosts) {
        let qpn = run.qpn(TURN_QPN);
        let turns = engine.ticks(port, qpn, &run.instances, &schema).map_err(|error| error.to_string())?;
        switch.install(vec![turns]).map_err(|error| error.to_string())?;
        frames.push((engine.tick_frame(qpn), run.period(every)));
    }
    Ok(frames)
}
