//! Knowledge of the rack that hosts breaking EDM's rules have.

use super::Edm;
use crate::rack::{Host, Rack};
use p4rack_fabric::hostile::edm::{Attack, Config};
use p4rack_wire::Nanos;

impl Edm {
    /// A host that attacks the memory of another host and has a key of one of its regions. It writes with an invalid key, so the
    /// memory does not change.
    pub fn hostile(&self, rack: &Rack, (host, attack, victim): (&Host, Attack, &Host), key: u32) -> Config {
        Config {
            attack,
            mac: host.mac,
            victim: victim.mac,
            others: rack.hosts.iter().map(|other| other.mac).filter(|mac| *mac != host.mac).collect(),
            ether_type: self.ether_type,
            lanes: self.lanes() as u16,
            demands: self.demands as u16,
            chunk_bytes: self.chunk_bytes,
            window: self.window,
            key,
            write_key: !key,
            address: 0,
            wait_unit: Nanos(rack.switch.time_unit_ns),
            patience: self.expiry(rack) + Nanos::from_millis(1),
            rate_bps: host.rate_bps,
            catch_up: Nanos::ZERO,
            session: None,
        }
    }
}
