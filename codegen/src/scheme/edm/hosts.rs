//! Configuration of a rack's nodes, and knowledge of the rack that hosts breaking EDM's rules have.

use super::Edm;
use crate::rack::{Host, Rack};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_fabric::hostile::edm::{Attack, Config};
use p4rack_wire::Nanos;

impl Edm {
    /// Timeout of a compute node that is never late: the switch must have forgotten a demand before the node repeats it.
    pub fn patience(&self, rack: &Rack) -> Nanos {
        Nanos(self.expiry(rack).0.saturating_mul(2))
    }

    /// Configuration of a compute node with this timeout, which is no shorter than [`patience`](Self::patience).
    pub fn compute_node(&self, rack: &Rack, timeout: Nanos) -> compute::Config {
        compute::Config {
            active_per_pair: self.demands.try_into().unwrap_or(compute::ACTIVE_MAX),
            chunk_bytes: self.chunk_bytes,
            window: self.window,
            wait_unit: Nanos(rack.switch.time_unit_ns),
            message_bytes_max: self.message_bytes_max,
            timeout,
            confirm: Some(timeout),
            ..compute::Config::default()
        }
    }

    /// Configuration of a memory node.
    pub fn memory_node(&self, rack: &Rack) -> memory::Config {
        memory::Config {
            chunk_bytes: self.chunk_bytes.try_into().unwrap_or(u16::MAX),
            window: self.window,
            wait_unit: Nanos(rack.switch.time_unit_ns),
            message_bytes_max: self.message_bytes_max,
            ..memory::Config::default()
        }
    }

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
