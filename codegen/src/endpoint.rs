//! What a host's machine is told, on a real host and in the simulator.

use crate::rack::{Host, Rack, Scheme};
use p4rack_fabric::common::Station;
use p4rack_fabric::pl2::{self, Mode, Peer};
use p4rack_fabric::{Config, ethernet};
use p4rack_wire::Nanos;

/// The scheme needs parameters that the description doesn't give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scheme {0} needs PL2's parameters: add a [pl2] section to the description")]
pub struct NoParameters(pub Scheme);

/// Parameters of `host`'s machine under `scheme`: all that the description says, else the schemes' own defaults.
pub fn endpoint_config(rack: &Rack, host: &Host, scheme: Scheme) -> Result<Config, NoParameters> {
    let others = rack.hosts.iter().filter(|other| other.mac != host.mac);
    let mode = match scheme {
        Scheme::L2 => {
            let peers = others.map(|other| other.mac).collect();
            return Ok(Config::Ethernet(ethernet::Config { station: station(host), peers }));
        }
        Scheme::Pl2Counter => Mode::Counter,
        Scheme::Pl2Clock => Mode::Clock,
    };
    let pl2 = rack.pl2.as_ref().ok_or(NoParameters(scheme))?;
    Ok(Config::Pl2(pl2::Config {
        station: station(host),
        slot: host.slot,
        time_unit: Nanos(rack.switch.time_unit_ns),
        peers: others.map(|other| Peer { mac: other.mac, slot: other.slot }).collect(),
        // What goes to other racks nobody there schedules.
        reserve: host.foreign_percent.is_none(),
        ether_type: pl2.ether_type,
        vid: pl2.vid,
        lanes: pl2.lanes,
        k: pl2.k,
        slot_parts: pl2.slot_parts,
        t_slots: pl2.t_slots,
        shim: pl2.shim,
        in_flight: pl2.reservations_in_flight as usize,
        fresh: pl2.fresh,
        ..pl2::Config::new(host.mac, mode, host.rate_bps)
    }))
}

/// The host, whatever the scheme.
fn station(host: &Host) -> Station {
    Station { catch_up: host.slot, ..Station::new(host.mac, host.rate_bps) }
}
