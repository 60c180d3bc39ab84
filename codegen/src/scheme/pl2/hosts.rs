//! Configuration of PL2's state machine on hosts, honest and hostile, real and simulated.

use super::{Mode, Pl2, Scheme};
use crate::rack::{Host, Rack, pipes};
use p4rack_fabric::common::Station;
use p4rack_fabric::hostile::{self, Attack};
use p4rack_fabric::pl2::{self, Config, Peer};
use p4rack_wire::Nanos;

/// Factor by which a destination's queue is longer if flows have queues of their own.
const FLOW_QUEUES: usize = 4;

/// Configuration of `host`: the description's values, and [`Config::new`]'s defaults for the rest.
pub(super) fn endpoint(pl2: &Pl2, rack: &Rack, host: &Host) -> Config {
    let mode = match pl2.mode {
        Mode::Counter => pl2::Mode::Counter,
        Mode::Clock => pl2::Mode::Clock,
    };
    let slot = pl2.slot(rack, host);
    let others = rack.hosts.iter().filter(|other| other.mac != host.mac);
    let apart =
        |other: &Host| pipes::are_several(rack) && pipes::pipe_of(other.port) != pipes::pipe_of(host.port);
    let peer = |other: &Host| Peer { mac: other.mac, slot: pl2.slot(rack, other), far: apart(other) };
    let mut station = Station { catch_up: slot, ..Station::new(host.mac, host.rate_bps) };
    if pl2.by_flow {
        station.queue_limit_frames *= FLOW_QUEUES;
    }
    Config {
        station,
        slot,
        time_unit: Nanos(rack.switch.time_unit_ns),
        peers: others.map(peer).collect(),
        // Inter-rack traffic isn't scheduled.
        reserve: host.foreign_percent.is_none(),
        ether_type: pl2.ether_type,
        vid: pl2.vid,
        lanes: pl2.lanes,
        k: pl2.k,
        piece: pl2.piece(),
        by_flow: pl2.by_flow,
        pace_unsolicited: pl2.pace_unsolicited,
        slot_parts: pl2.slot_parts,
        // Where the switch counts frames, each takes a slot.
        pack: !rack.switch.arch.is_tofino(),
        t_slots: pl2.t_slots,
        shim: pl2.shim,
        in_flight: pl2.reservations_in_flight as usize,
        fresh: pl2.fresh,
        ..Config::new(host.mac, mode, host.rate_bps)
    }
}

/// Maximum frame that the switch accepts, in bytes without FCS.
const FRAME_MAX: usize = 9_216;

impl Pl2 {
    /// Configuration of a host that attacks the senders to `victim`, under `scheme`. Its link accepts all frames that the
    /// switch does, and its driver is never late.
    pub fn hostile(
        &self,
        rack: &Rack,
        scheme: Scheme,
        (host, attack, victim): (&Host, Attack, &Host),
    ) -> hostile::Config {
        let wait_unit = match scheme == Scheme::PL2_COUNTER {
            true => self.slot(rack, host),
            false => Nanos(rack.switch.time_unit_ns),
        };
        hostile::Config {
            attack,
            mac: host.mac,
            victim: victim.mac,
            others: rack.hosts.iter().map(|other| other.mac).filter(|mac| *mac != host.mac).collect(),
            ether_type: self.ether_type,
            vid: self.vid,
            cells: self.cells_a_pair(),
            k: self.k,
            shim: self.shim,
            rate_bps: host.rate_bps,
            wait_unit,
            frame_max: FRAME_MAX,
            catch_up: Nanos::ZERO,
        }
    }
}
