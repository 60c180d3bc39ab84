//! Ports by which frames come back, for passes that a chip does not resubmit them for.

use super::Rack;
use super::pipes::{self, port_of};

/// Bits before a frame that comes back, beside what passes leave: those of how it came in `came_t` of the P4 text.
const CAME_BITS: u32 = 48;

/// The port by which frames of the rack come back, `None` if none do. Fails if there is none for them; continues a sentence
/// that starts with the scheme's name.
pub(crate) fn loop_port(rack: &Rack) -> Result<Option<u16>, String> {
    let arch = rack.switch.arch;
    if !pipes::are_several(rack)
        && !rack.protocols.iter().any(|protocol| protocol.later_pass_bits(arch).is_some())
    {
        return Ok(None);
    }
    let used = pipes::used(rack);
    let taken = |port: u16| rack.ports().any(|host| host.port == port) || rack.switch.cpu_port == port;
    let is_free = |local: &&u16| !used.iter().any(|pipe| taken(port_of(*pipe, **local)));
    // With several pipes, one that has this number in all of them.
    let first = if used.len() > 1 { 0 } else { used[0] };
    let free = arch.loop_ports().iter().find(is_free).map(|local| port_of(first, *local));
    let of = |pipe: &u16| {
        arch.loop_ports().iter().map(|local| port_of(*pipe, *local).to_string()).collect::<Vec<_>>()
    };
    let names = || used.iter().flat_map(of).collect::<Vec<_>>().join(", ");
    free.map(Some).ok_or_else(|| match used.len() {
        1 => format!("has frames that come back by a port there ({}), and all of these are hosts': free one", names()),
        _ => format!(
            "has frames that come back by a port of the same number in each pipe there ({}), and hosts have one of each \
             number: free one in all pipes",
            names()
        ),
    })
}

/// The port by which frames come to a pipe that has one, where hosts are in several.
pub(crate) fn way_to(rack: &Rack, pipe: u16) -> u16 {
    let local = loop_port(rack).ok().flatten().unwrap_or_default();
    port_of(pipe, local)
}

impl Rack {
    /// The ports by which frames go from pipe to pipe of a chip, and come in again; none where the hosts are in one pipe.
    pub fn crossing_ports(&self) -> Vec<u16> {
        if !pipes::are_several(self) {
            return Vec::new();
        }
        pipes::used(self).into_iter().map(|pipe| way_to(self, pipe)).collect()
    }
}

/// Bits that a pass leaves for the next one, the byte with its number among them.
pub(crate) fn left_bits(rack: &Rack) -> u32 {
    let passing = || rack.protocols.iter().filter(|protocol| protocol.pass_bits(rack).is_some());
    let joint = passing().count() > 1;
    let own = passing().filter(|protocol| joint && protocol.names_pass(rack.switch.arch)).count();
    8 + 8 * own as u32 + passing().filter_map(|protocol| protocol.pass_bits(rack)).sum::<u32>()
}

/// Bits before a frame that comes back, of which passes leave `left`.
pub(crate) fn carried_bits(left: u32) -> u32 {
    left + CAME_BITS
}
