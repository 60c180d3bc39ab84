//! Ports by which frames come back, for passes that a chip does not resubmit them for.

use super::Rack;
use super::pipes::{pipe_of, port_of};

/// Bits before a frame that comes back, beside what passes leave: those of how it came in `came_t` of the P4 text.
const CAME_BITS: u32 = 48;

/// The port by which frames of the rack come back, `None` if none do. Fails if there is none for them; continues a sentence
/// that starts with the scheme's name.
pub(crate) fn loop_port(rack: &Rack) -> Result<Option<u16>, String> {
    let arch = rack.switch.arch;
    if !rack.protocols.iter().any(|protocol| protocol.later_pass_bits(arch).is_some()) {
        return Ok(None);
    }
    // All hosts are in it: other racks are refused.
    let pipe = pipe_of(rack.hosts[0].port);
    let taken = |port: &u16| rack.ports().any(|host| host.port == *port) || rack.switch.cpu_port == *port;
    let all: Vec<u16> = arch.loop_ports().iter().map(|port| port_of(pipe, *port)).collect();
    let free = all.iter().find(|port| !taken(port)).copied();
    let names = || all.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    free.map(Some).ok_or_else(|| {
        format!(
            "has frames that come back by a port there ({}), and all of these are hosts': free one",
            names()
        )
    })
}

/// Bits before a frame that comes back, of which passes leave `left`.
pub(crate) fn carried_bits(left: u32) -> u32 {
    left + CAME_BITS
}
