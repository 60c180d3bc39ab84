//! Frames that cross from one pipe of a chip to another, where each has registers of its own.

use super::pipes::{PIPE_PORTS, are_several, pipe_of, used};
use super::{Crossing, Host, Protocol, Rack, Spacing, loops};
use crate::arch::Arch;
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead;
use std::sync::Arc;

/// Rate of a port by which frames come back, in both generations, in bits per second.
const LOOP_BPS: u64 = 100_000_000_000;

/// Why the rack's protocols can't keep their registers on a chip; continues a sentence that starts with the scheme's name.
///
/// Protocols keep the state of a link or a lane in registers. Frames from another pipe would find another register for
/// the same link, without the first pipe's grants: they have to visit that pipe.
pub(crate) fn refuses(rack: &Rack) -> Option<String> {
    let crosses = |protocol: &Arc<dyn Protocol>| protocol.crossing().is_some();
    if are_several(rack) && rack.protocols.len() == 1 && rack.protocols.iter().all(crosses) {
        return loops::loop_port(rack).err().or_else(|| too_many(rack));
    }
    if !rack.switch.arch.is_tofino() || rack.protocols.is_empty() {
        return None;
    }
    let place = |n: usize| {
        let host = &rack.hosts[n];
        format!("{} (host[{n}].port = {}) in pipe {}", host.name, host.port, pipe_of(host.port))
    };
    let pipe = pipe_of(rack.hosts[0].port);
    if let Some(other) = rack.hosts.iter().position(|host| pipe_of(host.port) != pipe) {
        return Some(format!(
            "keeps what it grants in registers, of which each pipe has its own, and hosts are in several pipes: {}, {}; \
             give all hosts ports of one pipe, such as 1 to {}, or use arch = \"{}\"",
            place(0),
            place(other),
            PIPE_PORTS - 1,
            Arch::default()
        ));
    }
    // Where there are fewer pipes than the port's number has, the switch wraps around to the first.
    let cpu = rack.switch.cpu_port;
    (pipe_of(cpu) % (pipe + 1) != pipe).then(|| {
        format!(
            "reads and sets its registers by frames of switch.cpu_port = {cpu}, of which each pipe has its own, and {} is in \
             another pipe: give all hosts ports from 1 to {}",
            place(0),
            PIPE_PORTS - 1
        )
    })
}

/// Why the ports by which frames come back don't carry what full links ask for; continues a sentence that starts with the
/// scheme's name.
///
/// In each pipe this port brings the frames of other pipes' hosts to the destinations there, and those of the hosts there back.
/// Both are most if all traffic is between that pipe and others.
fn too_many(rack: &Rack) -> Option<String> {
    let mut crossings = rack.protocols.iter().filter_map(|protocol| protocol.crossing());
    crossings.find_map(|crossing| {
        let wire_bytes = wire_bytes(&crossing);
        let carried_s = LOOP_BPS / 8 / wire_bytes;
        let (wire_bytes_s, pipe) = asked(rack, &crossing)?;
        let asked_s = wire_bytes_s / crossing.per_wire_bytes;
        let Spacing { name, value, wire_bytes: each, most, power } = crossing.field;
        let missing = wire_bytes_s.div_ceil(carried_s).saturating_sub(crossing.per_wire_bytes);
        let enough = value + missing.div_ceil(each.max(1));
        let enough = if power { enough.next_power_of_two() } else { enough };
        let more = if enough <= most { format!("write {name} = {enough} or more, or ") } else { String::new() };
        (asked_s > carried_s).then(|| {
            format!(
                "would send up to {:.1} million {} a second through port {} of pipe {pipe}, which carries {:.1} million of \
                 {wire_bytes} bytes: {more}spread fewer and slower ports over the pipes",
                asked_s as f64 / 1e6,
                crossing.name,
                loops::way_to(rack, pipe),
                carried_s as f64 / 1e6
            )
        })
    })
}

/// Bytes a second of hosts' links whose frames cross, if all traffic is between pipes: the most of a pipe, for each frame that its
/// port brings for them; and the pipe.
fn asked(rack: &Rack, crossing: &Crossing) -> Option<(u64, u16)> {
    let rate_bps = |within: &dyn Fn(u16) -> bool| -> u64 {
        let ports = rack.ports().filter(|host| within(pipe_of(host.port)));
        ports.map(|host| host.port_rate_bps).sum()
    };
    let asked = |pipe: &u16| {
        let between_bps = rate_bps(&|other| other == *pipe).min(rate_bps(&|other| other != *pipe));
        (crossing.passes * between_bps / 8, *pipe)
    };
    used(rack).iter().map(asked).max()
}

/// The load of links, in percent, at which short messages fill the port of a pipe, each with these bytes on the wire; and that
/// port. `None` if it carries them all.
pub(crate) fn filled_at(rack: &Rack, crossing: &Crossing, message_wire_bytes: u64) -> Option<(u64, u16)> {
    if !are_several(rack) {
        return None;
    }
    let (wire_bytes_s, pipe) = asked(rack, crossing)?;
    let carried_s = LOOP_BPS / 8 / wire_bytes(crossing);
    let percent = 100 * carried_s * message_wire_bytes / wire_bytes_s.max(1);
    (percent < 100).then(|| (percent, loops::way_to(rack, pipe)))
}

/// Frames a second that the hosts of a port may send to a pipe before it has admitted them, so that all ports together send no more
/// than the pipe's port carries: as much of it as their link is of the links of other pipes.
pub(crate) fn share_s(rack: &Rack, crossing: &Crossing, host: &Host) -> u64 {
    let rates_bps = |pipe: &u16| -> u64 {
        let ports = rack.ports().filter(|host| pipe_of(host.port) != *pipe);
        ports.map(|host| host.port_rate_bps).sum()
    };
    let most_bps = used(rack).iter().map(rates_bps).max().unwrap_or_default().max(1);
    let carried_s = LOOP_BPS / 8 / wire_bytes(crossing);
    (u128::from(carried_s) * u128::from(host.port_rate_bps) / u128::from(most_bps)) as u64
}

/// Maximum time for which a frame of the rack waits on its way from pipe to pipe and back: each of two ports sends all that the
/// switch's buffer holds before it. Zero if frames don't cross.
pub(crate) fn longest(rack: &Rack, crossing: &Crossing) -> Nanos {
    if !are_several(rack) {
        return Nanos::ZERO;
    }
    // The shortest frames have most around them on the wire.
    let wire = wire_bytes(crossing);
    let stored = wire - overhead::PREAMBLE_GAP;
    let wire_bits = u128::from(rack.switch.buffer_bytes) * u128::from(wire) * 8 / u128::from(stored);
    Nanos((2 * wire_bits * 1_000_000_000).div_ceil(u128::from(LOOP_BPS)) as u64)
}

/// Bytes on the wire of a frame that crosses, with what precedes it, FCS, preamble and gap.
fn wire_bytes(crossing: &Crossing) -> u64 {
    crossing.bytes + u64::from(loops::carried_bits(8) / 8) + overhead::FCS + overhead::PREAMBLE_GAP
}
