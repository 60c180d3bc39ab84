//! What a host's PL2 machine is told, on a real host and in the simulator.

use crate::rack::{Host, Rack, Scheme};
use p4rack_fabric::pl2::{self, Config, Peer};
use p4rack_wire::Nanos;

/// The scheme needs parameters that the description doesn't give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scheme {0} needs PL2's parameters: add a [pl2] section to the description")]
pub struct NoParameters(pub Scheme);

/// Parameters of `host`'s PL2 machine under `scheme`: all that the description says, else [`Config::new`]'s.
pub fn endpoint_config(rack: &Rack, host: &Host, scheme: Scheme) -> Result<Config, NoParameters> {
    let mode = match scheme {
        Scheme::L2 => pl2::Scheme::Off,
        Scheme::Pl2Counter => pl2::Scheme::Counter,
        Scheme::Pl2Clock => pl2::Scheme::Clock,
    };
    let others = rack.hosts.iter().filter(|other| other.mac != host.mac);
    let config = Config {
        slot: host.slot,
        catch_up: host.slot,
        time_unit: Nanos(rack.switch.time_unit_ns),
        peers: others.map(|other| Peer { mac: other.mac, slot: other.slot }).collect(),
        // What goes to other racks nobody there schedules.
        reserve: host.foreign_percent.is_none(),
        ..Config::new(host.mac, mode, host.rate_bps)
    };
    match &rack.pl2 {
        Some(pl2) => Ok(Config {
            ether_type: pl2.ether_type,
            vid: pl2.vid,
            lanes: pl2.lanes,
            k: pl2.k,
            slot_parts: pl2.slot_parts,
            t_slots: pl2.t_slots,
            shim: pl2.shim,
            in_flight: pl2.reservations_in_flight as usize,
            fresh: pl2.fresh,
            ..config
        }),
        None if scheme == Scheme::L2 => Ok(config),
        None => Err(NoParameters(scheme)),
    }
}
