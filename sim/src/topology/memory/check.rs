//! Checks the fields of traffic that uses remote memory.

use super::cells::ALIGNED;
use super::reach::{Offer, SIMULATED, offer, way};
use crate::experiment::Check;
use crate::topology::spec::SenderSpec;
use p4rack_codegen::rack::units::parse_size;
use p4rack_codegen::topology::Topology;
use p4rack_fabric::remote::names_of;

/// Bytes of a flow's part of the memory: the default, and at most.
const REGION: u64 = 64 << 10;
const REGION_MAX: u64 = 16 << 20;

/// Bytes of a flow's part of the memory.
pub(in crate::topology) fn region_bytes(traffic: &SenderSpec) -> Result<u64, String> {
    let Some(region) = &traffic.region else { return Ok(REGION) };
    match parse_size(region) {
        Ok(bytes) if (1..=REGION_MAX).contains(&bytes) => Ok(bytes),
        Ok(bytes) => Err(format!("{bytes} bytes are out of range; write 1 byte to \"16 MiB\"")),
        Err(error) => Err(format!("{error}; write \"64 KiB\"")),
    }
}

/// Checks the fields by themselves.
pub(in crate::topology) fn check(found: &mut Check<'_>, nth: usize, traffic: &SenderSpec) {
    let mut problem = |key: &str, message: String| found.problem("traffic", nth, key, message);
    match &traffic.way {
        None => {
            let ways = names_of(SIMULATED);
            problem("way", format!("is missing; write the way to the memory, one of {ways}"));
        }
        Some(name) => _ = way(name).map_err(|error| problem("way", error)),
    }
    if let Some(percent) = traffic.read_percent.filter(|percent| !(0.0..=100.0).contains(percent)) {
        problem("read_percent", format!("{percent} is out of range; write 0 to 100"));
    }
    match (region_bytes(traffic), traffic.size.quantiles()) {
        (Err(error), _) => problem("region", error),
        (Ok(region), Ok(sizes)) => {
            let longest = sizes.at(1.0) as u64;
            let needed = longest.next_multiple_of(ALIGNED).saturating_mul(traffic.under_way as u64);
            if needed > region {
                let under_way = traffic.under_way;
                problem(
                    "region",
                    format!(
                        "has no room for {under_way} operations of {longest} bytes under way; write at least \"{needed} B\", or \
                         lower size"
                    ),
                );
            }
        }
        (Ok(_), Err(_)) => {}
    }
    for (key, names) in [("senders", &traffic.senders), ("receivers", &traffic.receivers)] {
        if names.is_none() {
            let which = if key == "senders" { "that ask" } else { "with the memory" };
            problem(key, format!("is missing; name the hosts {which}"));
        }
    }
    let receivers = traffic.receivers.iter().flatten();
    let both = receivers.filter(|name| traffic.senders.iter().flatten().any(|sender| sender == *name));
    for name in both {
        let message =
            format!("`{name}` is a sender, too, and its own memory is not remote; name another host");
        problem("receivers", message);
    }
}

/// Checks the fields against the topology, whose hosts have these names.
pub(in crate::topology) fn check_hosts(
    found: &mut Check<'_>,
    nth: usize,
    traffic: &SenderSpec,
    topology: &Topology,
) {
    let Some(way) = traffic.way.as_deref().and_then(|name| way(name).ok()) else { return };
    let mut problem = |key: &str, message: String| found.problem("traffic", nth, key, message);
    let named = |names: &Option<Vec<String>>| -> Vec<usize> {
        names.iter().flatten().filter_map(|name| topology.host(name)).collect()
    };
    let switch = |host: usize| topology.attachment(host).map(|(_, switch, _)| switch);
    for to in named(&traffic.receivers) {
        let (rack, offer) = match offer(topology, to, way) {
            Ok((rack, _, offer)) => (rack, offer),
            Err(error) => {
                problem("receivers", error);
                continue;
            }
        };
        let Offer::Node(node) = offer else { continue };
        let longest = traffic.size.quantiles().map_or(0.0, |sizes| sizes.at(1.0));
        if longest > f64::from(node.message_bytes_max) {
            let (most, name) = (node.message_bytes_max, &rack.name);
            problem(
                "size",
                format!(
                    "goes up to {longest:.0} bytes; messages of rack {name} have {most} at most (edm.message_bytes_max)"
                ),
            );
        }
        for from in named(&traffic.senders).into_iter().filter(|from| switch(*from) != switch(to)) {
            let (from, to) = (&topology.hosts[from].name, &topology.hosts[to].name);
            problem(
                "senders",
                format!(
                    "{from} is not in {to}'s rack {}, within which {way} works; name hosts of one rack, or write way = \"clio\"",
                    rack.name
                ),
            );
        }
    }
}
