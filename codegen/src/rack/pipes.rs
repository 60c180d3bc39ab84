//! Pipes of a chip: each has registers of its own.

use super::Rack;
use crate::arch::Arch;

/// Bits of a port's number below the pipe's.
const LOCAL_BITS: u16 = 7;
/// Ports that a pipe has numbers for.
const PIPE_PORTS: u16 = 1 << LOCAL_BITS;

/// The pipe that a port belongs to.
pub(crate) fn pipe_of(port: u16) -> u16 {
    port >> LOCAL_BITS
}

/// The number of a port of this pipe.
pub(crate) fn port_of(pipe: u16, local: u16) -> u16 {
    pipe << LOCAL_BITS | local
}

/// Why the rack's protocols can't keep their registers on a chip; continues a sentence that starts with the scheme's name.
///
/// Protocols keep the state of a link or a lane in registers. Frames from another pipe would find another register for
/// the same link, without the first pipe's grants.
pub(crate) fn refuses(rack: &Rack) -> Option<String> {
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
