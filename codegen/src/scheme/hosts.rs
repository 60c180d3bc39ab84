//! Configuration of hosts' machines, on real hosts and in the simulator.

use super::Scheme;
use crate::rack::{Claim, Host, Rack};
use p4rack_fabric::common::Station;
use p4rack_fabric::{Config, ethernet};
use p4rack_wire::EtherType;

/// The scheme needs parameters that the description does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scheme {0} needs parameters that the description doesn't give: add its protocol's table")]
pub struct NoParameters(pub Scheme);

/// Configuration of `host`'s machine under `scheme`: that of its protocol; of plain Ethernet, if no protocol of the scheme has a
/// machine for all of a host's frames.
pub fn endpoint_config(rack: &Rack, host: &Host, scheme: Scheme) -> Result<Config, NoParameters> {
    let mut own = None;
    for variant in scheme.variants() {
        let protocol = rack.protocols.iter().find_map(|protocol| protocol.as_variant(variant));
        let machine = protocol.ok_or(NoParameters(scheme))?.endpoint(rack, host);
        own = own.or(machine);
    }
    Ok(own.unwrap_or_else(|| Config::Ethernet(plain(rack, host))))
}

/// EtherTypes of frames that programs of a host exchange themselves under `scheme`, beside its machine.
pub fn spoken_beside(rack: &Rack, host: &Host, scheme: Scheme) -> Vec<EtherType> {
    let running = scheme
        .variants()
        .filter_map(|variant| rack.protocols.iter().find_map(|protocol| protocol.as_variant(variant)));
    let without_machine = running.filter(|protocol| protocol.endpoint(rack, host).is_none());
    let claims = without_machine.flat_map(|protocol| protocol.claims());
    claims
        .filter_map(|(_, claim)| match claim {
            Claim::EtherType(number) => Some(EtherType(number)),
            _ => None,
        })
        .collect()
}

/// Plain Ethernet's machine. The host is the same, whatever runs on it.
fn plain(rack: &Rack, host: &Host) -> ethernet::Config {
    let described = rack.protocols.iter().find_map(|protocol| protocol.endpoint(rack, host));
    let station = match described {
        Some(config) => config.station().clone(),
        None => Station::new(host.mac, host.rate_bps),
    };
    let others = rack.hosts.iter().filter(|other| other.mac != host.mac);
    ethernet::Config { station, peers: others.map(|other| other.mac).collect() }
}
