//! Ports by which frames come back, for passes that a chip does not resubmit them for.

use super::Rack;

/// Bits of a port's number below the pipe's.
const LOCAL_BITS: u16 = 7;
/// Bits before a frame that comes back, beside what passes leave: those of how it came in `came_t` of the P4 text.
const CAME_BITS: u32 = 48;

/// The port by which frames of the rack come back, `None` if none do. Fails if there is none for them; continues a sentence
/// that starts with the scheme's name.
pub(crate) fn loop_port(rack: &Rack) -> Result<Option<u16>, String> {
    let arch = rack.switch.arch;
    if !rack.protocols.iter().any(|protocol| protocol.later_pass_bits(arch).is_some()) {
        return Ok(None);
    }
    let mut pipes: Vec<u16> = rack.ports().map(|host| host.port >> LOCAL_BITS).collect();
    pipes.dedup();
    let &[pipe] = pipes.as_slice() else {
        return Err("has frames that come back there, to registers of their pipe alone: give all hosts ports of one pipe"
            .to_owned());
    };
    let taken = |port: &u16| rack.ports().any(|host| host.port == *port) || rack.switch.cpu_port == *port;
    let all: Vec<u16> = arch.loop_ports().iter().map(|port| pipe << LOCAL_BITS | port).collect();
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
