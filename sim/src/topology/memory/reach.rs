//! Which hosts have memory that a way reaches.

use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::scheme::clio::Clio;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_codegen::topology::Topology;
use p4rack_fabric::remote::{Service, Way, names_of};

/// Ways that are simulated in topologies.
pub(super) const SIMULATED: &[Way] =
    &[Way::EDM_TIMED_DST, Way::EDM_TIMED, Way::EDM_CALENDAR, Way::EDM_MATCHED, Way::CLIO];

/// The way with this name. Errors: there is none, or it is simulated in racks alone.
pub(super) fn way(name: &str) -> Result<Way, String> {
    let way: Way = name.parse()?;
    match SIMULATED.contains(&way) {
        true => Ok(way),
        false => {
            let ways = names_of(SIMULATED);
            Err(format!("`{way}` is not simulated in topologies; write one of {ways}, or simulate a rack"))
        }
    }
}

/// The memory of a host in its rack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offer<'t> {
    Node(&'t Edm),
    Board(&'t Clio),
}

/// The memory that a way reaches at a host, with the host's rack and its own place there. Errors: what the rack lacks, and what to do.
pub(super) fn offer<'t>(
    topology: &'t Topology,
    host: usize,
    way: Way,
) -> Result<(&'t Rack, &'t Host, Offer<'t>), String> {
    let name = &topology.hosts[host].name;
    let Some((rack, own)) = topology.in_rack(host) else {
        return Err(format!("{name} is in no rack: connect it to a switch with rack = \"…\" that has {way}"));
    };
    let (listed, field, offer) = match way.definition().service {
        Service::Node => {
            let table = format!("[edm] with mode = \"{}\"", way.name().trim_start_matches("edm-"));
            let found = rack.protocol::<Edm>().ok_or_else(|| {
                format!("{name}'s rack {} has no {way}; add {table} and memory = [\"{name}\"]", rack.name)
            })?;
            if found.mode.scheme().to_string() != way.definition().scheme {
                let runs = found.mode.scheme();
                return Err(format!(
                    "{name}'s rack {} runs {runs}, not {way}; write way = \"{runs}\"",
                    rack.name
                ));
            }
            (&found.memory, "edm.memory", Offer::Node(found))
        }
        _ => {
            let found = rack.protocol::<Clio>().ok_or_else(|| {
                let table = format!("[clio] with boards = [\"{name}\"] and memory = \"64 MiB\"");
                format!("{name}'s rack {} has no {way}; add {table}", rack.name)
            })?;
            (&found.boards, "clio.boards", Offer::Board(found))
        }
    };
    match listed.contains(&own.name) {
        true => Ok((rack, own, offer)),
        false => {
            let there = listed.join(", ");
            Err(format!("{name} has no memory: {field} of rack {} has {there}; name one of these", rack.name))
        }
    }
}

/// The UDP port of a host's memory, if a way reaches it by packets.
pub(in crate::topology) fn udp_port(topology: &Topology, host: usize, name: &str) -> Option<u16> {
    match offer(topology, host, way(name).ok()?).ok()?.2 {
        Offer::Node(_) => None,
        Offer::Board(clio) => Some(clio.udp_port),
    }
}
