//! Pipes of a chip: each has registers of its own.

use super::Rack;

/// Bits of a port's number below the pipe's.
const LOCAL_BITS: u16 = 7;
/// Ports that a pipe has numbers for.
pub(crate) const PIPE_PORTS: u16 = 1 << LOCAL_BITS;

/// The pipe that a port belongs to.
pub(crate) fn pipe_of(port: u16) -> u16 {
    port >> LOCAL_BITS
}

/// The number of a port of this pipe.
pub(crate) fn port_of(pipe: u16, local: u16) -> u16 {
    pipe << LOCAL_BITS | local
}

/// The pipes that have hosts, in order; where these are several, with that of the controller's port.
pub(crate) fn used(rack: &Rack) -> Vec<u16> {
    let cpu = are_several(rack).then_some(rack.switch.cpu_port);
    let mut pipes: Vec<u16> = rack.hosts.iter().map(|host| host.port).chain(cpu).map(pipe_of).collect();
    pipes.sort_unstable();
    pipes.dedup();
    pipes
}

/// Whether protocols that keep registers have hosts in several pipes of a chip.
pub(crate) fn are_several(rack: &Rack) -> bool {
    let pipe = pipe_of(rack.hosts[0].port);
    rack.switch.arch.is_tofino()
        && !rack.protocols.is_empty()
        && rack.hosts.iter().any(|host| pipe_of(host.port) != pipe)
}
