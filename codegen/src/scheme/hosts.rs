//! Configuration of hosts' machines, on real hosts and in the simulator.

use super::Scheme;
use crate::rack::{Host, Rack};
use p4rack_fabric::common::Station;
use p4rack_fabric::{Config, ethernet};

/// The scheme needs parameters that the description does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scheme {0} needs parameters that the description doesn't give: add its protocol's table")]
pub struct NoParameters(pub Scheme);

/// Configuration of `host`'s machine under `scheme`: that of its protocol, or of plain Ethernet.
pub fn endpoint_config(rack: &Rack, host: &Host, scheme: Scheme) -> Result<Config, NoParameters> {
    if scheme == Scheme::L2 {
        let others = rack.hosts.iter().filter(|other| other.mac != host.mac);
        // The host is the same, whatever runs on it.
        let described = rack.protocols.iter().find_map(|protocol| protocol.endpoint(rack, host));
        let station = match described {
            Some(config) => config.station().clone(),
            None => Station::new(host.mac, host.rate_bps),
        };
        return Ok(Config::Ethernet(ethernet::Config {
            station,
            peers: others.map(|other| other.mac).collect(),
        }));
    }
    let as_variant = |variant| rack.protocols.iter().find_map(|protocol| protocol.as_variant(variant));
    let machines = scheme.variants().filter_map(as_variant);
    machines.filter_map(|protocol| protocol.endpoint(rack, host)).next().ok_or(NoParameters(scheme))
}
