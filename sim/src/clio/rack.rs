//! The rack: its switch with the program, the hosts' machines below Clio, and packets as frames.

use super::experiment::ClioExperiment;
use super::spec::NetworkScheme;
use crate::kernel::Clock;
use crate::message::mac_of;
use crate::switch::{P4, SwitchError};
use p4rack_codegen::rack::{Host, Link, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::pl2::{Mode, Pl2};
use p4rack_codegen::{Scheme, endpoint_config};
use p4rack_fabric::Endpoint;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ipv4::{DONT_FRAGMENT, Ipv4, UDP, Udp, checksum};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The agenda of a run counts picoseconds.
pub(super) const CLOCK: Clock = Clock::PICOSECONDS;
/// Bytes in front of a packet of Clio.
pub(super) const HEADERS: usize = Ethernet::BYTES + Ipv4::BYTES + Udp::BYTES;
/// Frames to one host that wait in a host; boards' and clients' own limits are lower.
const QUEUE_FRAMES: usize = 4_096;

fn ip_of(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Where a packet comes from or goes to: a host, and a process of a compute node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub host: u16,
    /// UDP port. A client's is its number at the node.
    pub port: u16,
}

/// Addresses of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostAddress {
    pub mac: MacAddr,
    pub ip: Ipv4Addr,
}

impl HostAddress {
    fn of(end: End) -> HostAddress {
        HostAddress { mac: mac_of(end.host.into()), ip: ip_of(end.host.into()) }
    }
}

/// Writes the headers of a packet into the first [`HEADERS`] bytes of `frame`, in front of its payload.
pub(super) fn address(frame: &mut [u8], from: End, to: End) {
    headers(frame, (HostAddress::of(from), HostAddress::of(to)), (from.port, to.port));
}

/// The same between hosts with any addresses; `ports` are UDP's.
pub(super) fn headers(frame: &mut [u8], (from, to): (HostAddress, HostAddress), ports: (u16, u16)) {
    let bytes = frame.len() - Ethernet::BYTES;
    Ethernet { dst: to.mac, src: from.mac, ether_type: EtherType::IPV4 }.emit(frame);
    let ip = &mut frame[Ethernet::BYTES..];
    Ipv4 {
        version: 4,
        ihl: 5,
        dscp: 0,
        ecn: 0,
        total_length: bytes as u16,
        identification: 0,
        flags: DONT_FRAGMENT,
        fragment_offset: 0,
        ttl: 64,
        protocol: UDP,
        checksum: 0,
        src: from.ip,
        dst: to.ip,
    }
    .emit(ip);
    let sum = checksum(&ip[..Ipv4::BYTES]).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    let length = (bytes - Ipv4::BYTES) as u16;
    Udp { src_port: ports.0, dst_port: ports.1, length, checksum: 0 }.emit(&mut ip[Ipv4::BYTES..]);
}

/// Parses the part behind a frame's EtherType: the sender's address, the ports, and the packet. `None`: it is cut
/// short.
pub(crate) fn datagram(rest: &[u8]) -> Option<(Ipv4Addr, (u16, u16), &[u8])> {
    let ip = Ipv4::parse(rest).ok()?;
    let udp = Udp::parse(rest.get(Ipv4::BYTES..)?).ok()?;
    let end = Ipv4::BYTES + usize::from(udp.length);
    Some((ip.src, (udp.src_port, udp.dst_port), rest.get(Ipv4::BYTES + Udp::BYTES..end)?))
}

/// The same between the hosts of an experiment: the sender, the port it is for, and the packet.
pub(super) fn packet(rest: &[u8]) -> Option<(End, u16, &[u8])> {
    let (ip, ports, packet) = datagram(rest)?;
    let host = u16::from(ip.octets()[3]).checked_sub(1)?;
    Some((End { host, port: ports.0 }, ports.1, packet))
}

/// The machine of a host between packets and its link. Errors: the rack's scheme has none for it.
pub(super) fn machine(rack: &Rack, host: &Host, seed: u64) -> Result<Endpoint, String> {
    let mut config = endpoint_config(rack, host, rack.scheme()).map_err(|error| error.to_string())?;
    let station = config.station_mut();
    // Drivers are never late in virtual time.
    station.catch_up = Nanos::ZERO;
    (station.queue_limit_frames, station.total_limit_frames) = (QUEUE_FRAMES, usize::MAX);
    config.check().map_err(|error| error.to_string())?;
    Ok(Endpoint::new(config, seed, Nanos::ZERO))
}

/// The switch, and each host's machine between packets and its link. Errors: the generator refuses the rack.
pub(super) fn build(experiment: &ClioExperiment) -> Result<(P4, Vec<Endpoint>), String> {
    let network = &experiment.spec.network;
    let hosts = experiment.hosts();
    let station = |host: usize| Station {
        name: experiment.name_of(host),
        mac: mac_of(host),
        ip: ip_of(host),
        prefix: 24,
        foreign_percent: None,
    };
    let link = |host: usize| Link {
        rate_bps: Some(experiment.rate_of(host)),
        ..Link::to_port(host, host as u16 + 1)
    };
    let fastest = experiment.rate_bps.max(experiment.compute_bps);
    let switch = Switch::new(Target::Embedded, fastest);
    let (scheme, pl2) = match network.scheme {
        NetworkScheme::L2 => (Scheme::L2, None),
        NetworkScheme::Pl2Clock => (Scheme::PL2_CLOCK, Some(Pl2::new(Mode::Clock))),
        NetworkScheme::Pl2Counter => (Scheme::PL2_COUNTER, Some(Pl2::new(Mode::Counter))),
    };
    let topology = Topology {
        name: "clio".to_owned(),
        switches: vec![switch.with_buffer(experiment.buffer_bytes, RESERVED_PERCENT)],
        hosts: (0..hosts).map(station).collect(),
        links: (0..hosts).map(link).collect(),
        protocols: pl2.into_iter().map(|pl2| Arc::new(pl2) as _).collect(),
        workload: None,
    };
    let rack = Rack::build(topology).map_err(|error| {
        let problems = error.errors.iter().map(|one| format!("{}; {}", one.message, one.help));
        problems.collect::<Vec<_>>().join("; ")
    })?;
    let seed = experiment.spec.seed;
    let switch = P4::new(&rack, scheme, |config| config.seed = seed)
        .map_err(|error: SwitchError| error.to_string())?;
    let rack = rack.under(scheme).map_err(|error| error.to_string())?;
    let machines = rack.hosts.iter().enumerate();
    let machines = machines.map(|(nth, host)| machine(&rack, host, seed.wrapping_mul(1_000) + nth as u64));
    let machines = machines.collect::<Result<Vec<Endpoint>, String>>()?;
    Ok((switch, machines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_their_frames() {
        let (from, to) = (End { host: 3, port: 70 }, End { host: 9, port: 1_234 });
        let mut frame = vec![0; HEADERS];
        frame.extend_from_slice(b"request");
        address(&mut frame, from, to);
        assert_eq!(packet(&frame[Ethernet::BYTES..]), Some((from, 1_234, &b"request"[..])));
        assert_eq!(checksum(&frame[Ethernet::BYTES..Ethernet::BYTES + Ipv4::BYTES]), 0);
        // Ethernet pads short frames.
        frame.resize(60, 0);
        assert_eq!(packet(&frame[Ethernet::BYTES..]).map(|(_, _, packet)| packet), Some(&b"request"[..]));
        assert_eq!(packet(&frame[Ethernet::BYTES..40]), None);
    }
}
