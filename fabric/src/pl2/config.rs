//! Configuration of a PL2 endpoint.

use crate::common::{ConfigError, Station};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::pl2::{self, LANES_MAX};
use p4rack_wire::{EtherType, MacAddr, Nanos};

/// How reservations are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As in the paper: grants carry slots, and data frames decrement counters.
    Counter,
    /// With clocks: each port has a register with the time at which it is next free, and grants carry times.
    Clock,
}

/// A host that uses PL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address of the host.
    pub mac: MacAddr,
    /// Slot of its port: wire time of a full frame at the port's rate.
    pub slot: Nanos,
    /// Whether its port is in another pipe of the switch: grants then take longer, and bursts wait for their slots.
    pub far: bool,
}

/// Parameters of an [`Endpoint`](super::Endpoint). [`Config::new`] fills in defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Configuration of the host. The limit of best effort applies to frames for unknown hosts.
    pub station: Station,
    /// The mode, which is the same on the whole rack.
    pub mode: Mode,
    /// EtherType of control frames and shim.
    pub ether_type: EtherType,
    /// First VLAN of scheduled data, one VLAN per cell of a (source, destination) pair; also the VLAN of
    /// control frames.
    pub vid: u16,
    /// Lanes of a pair at the switch, with two cells each: maximum reservations that have not begun. 1 to 64.
    pub lanes: u8,
    /// K: maximum full frames of a burst, and so maximum slots of a reservation.
    pub k: u8,
    /// Slots of a reservation for a flow with more frames than `k` slots hold. `None`: K, as in the paper. Fewer let short
    /// messages pass long ones, while messages that fit in K slots are sent whole. Longer bursts never go unsolicited.
    pub piece: Option<u8>,
    /// Whether frames wait by flow, and flows may have a reservation in flight each, as the paper's threads have: with
    /// `piece`, flows that have more frames. Then a flow's queue takes at most as many frames as it leaves free of
    /// the destination's. If false, all frames to a destination wait in one queue.
    pub by_flow: bool,
    /// With clocks: parts of a slot, the unit of reservations; `k` times this is at most 255.
    pub slot_parts: u8,
    /// t: below it a burst goes unsolicited, above it an unsolicited burst is sent again. 0 disables
    /// unsolicited bursts.
    pub t_slots: u32,
    /// Whether data carries a sequence number, with which receivers remove duplicates and count losses.
    pub shim: bool,
    /// Whether the application's frames come with such a number, and go with it: it counts the copies that other machines send
    /// over other switches, too. Instead of `shim`.
    pub numbered: bool,
    /// Slot of this host's own port.
    pub slot: Nanos,
    /// Unit of the times in a grant (clock mode): the switch's clock tick.
    pub time_unit: Nanos,
    /// The other hosts that use PL2. Frames to all others are best effort.
    pub peers: Vec<Peer>,
    /// Maximum reservations in flight per destination: requested, and the burst not sent yet. At least 1, at
    /// most `lanes`.
    pub in_flight: usize,
    /// With clocks: whether short frames share slots, so that a reservation of K slots covers as many of them
    /// as fit. If false, each frame takes a slot, as in the paper, whose switch counts frames.
    pub pack: bool,
    /// How long a grant's wait counts as recent (§4.4, condition ii). `None`: twice the RSV→GRT delay.
    pub fresh: Option<Nanos>,
    /// Whether unsolicited bursts need two conditions beyond those of §4.4. First, the slots of the previous
    /// burst have passed; otherwise a few senders, each of which sees a wait below t, together send more than
    /// the port carries. Second, the NIC holds at most a slot's time of frames; otherwise the burst would
    /// wait there as well, and frames behind it would miss their slots. If false, the paper's Algorithm 2
    /// applies unchanged.
    pub pace_unsolicited: bool,
    /// Grace period before a sender announced by NOTIFY counts as silent. `None`: copies of grants are only
    /// counted.
    pub notify_patience: Option<Nanos>,
    /// Whether frames use reserved slots. If false, all are best effort, while scheduled frames of others are
    /// accepted: a port to other racks, whose traffic isn't scheduled.
    pub reserve: bool,
    /// Minimum timeout of an RSV without grant. The timeout is the mean of the measured delay plus four
    /// deviations, and doubles at each retry.
    pub grt_timeout_min: Nanos,
    /// Maximum time between two RSVs for the same burst.
    pub grt_timeout_max: Nanos,
    /// Grants with longer waits are rejected as implausible.
    pub wait_max: Nanos,
    /// Counter mode: slots that will not be used are given back by a separate RSV if no reservation has
    /// replaced them for this long; slots of frames that may have been lost, after 64 times this.
    pub release_after: Nanos,
    /// Window over which the minimum RSV→GRT delay is taken.
    pub delay_window: Nanos,
}

/// Name of the scheme in errors.
const SCHEME: &str = "PL2";

impl Config {
    /// Defaults for a host on a link of `rate_bps` (0: the slot assumes 1 Gb/s): the paper's K = 4 and t =
    /// 15, one reservation in flight, shim on, no peers.
    pub fn new(mac: MacAddr, mode: Mode, rate_bps: u64) -> Self {
        let slot = Nanos::on_wire(full_frame_wire_bytes(true), Station::timing_bps(rate_bps));
        Config {
            station: Station { catch_up: slot, ..Station::new(mac, rate_bps) },
            mode,
            ether_type: EtherType::PL2_DEFAULT,
            vid: 2,
            lanes: 1,
            k: 4,
            piece: None,
            by_flow: false,
            slot_parts: 1,
            t_slots: 15,
            shim: true,
            numbered: false,
            slot,
            time_unit: Nanos(1),
            peers: Vec::new(),
            in_flight: 1,
            pack: true,
            fresh: None,
            pace_unsolicited: true,
            notify_patience: None,
            reserve: true,
            grt_timeout_min: Nanos::from_millis(2),
            grt_timeout_max: Nanos::from_millis(100),
            wait_max: Nanos::from_secs(1),
            release_after: Nanos::from_millis(1),
            delay_window: Nanos::from_secs(1),
        }
    }

    /// Checks what types cannot express. [`Endpoint::new`](super::Endpoint::new) also accepts an invalid
    /// configuration and uses the nearest value that works.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.station.check(SCHEME)?;
        let fail = |field, problem| Err(ConfigError { scheme: SCHEME, field, problem });
        if self.k == 0 {
            return fail("k", "is 0; a burst has at least one frame");
        }
        if self.piece.is_some_and(|piece| piece == 0 || piece > self.k) {
            return fail("piece", "is 0 or over `k`");
        }
        if self.slot_parts == 0 || self.k.checked_mul(self.slot_parts).is_none() {
            return fail("slot_parts", "is 0, or so large that K slots have more than 255 parts");
        }
        if self.slot_parts > 1 && self.mode == Mode::Counter {
            return fail("slot_parts", "is over 1, but counters count frames");
        }
        if self.lanes == 0 || self.lanes > LANES_MAX {
            return fail("lanes", "is out of range; use 1 to 64");
        }
        if self.in_flight == 0 || self.in_flight > self.lanes.into() {
            return fail(
                "in_flight",
                "is 0 or over `lanes`; each reservation in flight has a lane of its own",
            );
        }
        if self.vid == 0 || self.vid.saturating_add(self.vids() - 1) > 4094 {
            return fail(
                "vid",
                "or one of the VLANs that follow, two for each lane, is not within 1 to 4094",
            );
        }
        if self.time_unit == Nanos::ZERO || self.slot == Nanos::ZERO {
            return fail("slot", "slot and time_unit must be longer than 0 ns");
        }
        if self.peers.iter().any(|peer| peer.mac.is_group() || peer.slot == Nanos::ZERO) {
            return fail("peers", "a peer has a group address or a slot of 0 ns");
        }
        if self.station.queue_limit_frames < usize::from(self.k) {
            return fail("queue_limit_frames", "is below K; a full burst must fit");
        }
        Ok(())
    }
}

impl Config {
    /// Number of VLANs for data: one per cell.
    fn vids(&self) -> u16 {
        2 * u16::from(self.lanes)
    }

    /// Frames that a flow needs for a reservation of its own; `None` if all flows share one queue.
    pub(super) fn own_frames(&self) -> Option<usize> {
        self.by_flow.then(|| self.piece.map_or(1, |piece| usize::from(piece) + 1))
    }

    /// Whether a VLAN belongs to PL2.
    #[inline]
    pub(super) fn is_ours(&self, vid: u16) -> bool {
        vid.wrapping_sub(self.vid) < self.vids()
    }

    /// Time of this many parts of a slot.
    pub(super) fn parts_time(&self, slot: Nanos, parts: u8) -> Nanos {
        Nanos(slot.0.saturating_mul(parts.into()) / u64::from(self.slot_parts.max(1)))
    }
}

/// Wire bytes of a full PL2 data frame: 1500 bytes of payload, Ethernet header, VLAN tag, shim if on, FCS,
/// preamble and gap. A slot is their time on the wire.
pub const fn full_frame_wire_bytes(shim: bool) -> u64 {
    let shim_bytes = if shim { pl2::Shim::BYTES as u64 } else { 0 };
    overhead::wire_bytes(overhead::MTU + 14 + 4 + shim_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field at its last good value, and one further.
    #[test]
    fn fields_are_accepted_up_to_their_limits() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let clock = Config::new(mac, Mode::Clock, 0);
        let station = |queue_limit_frames| Station { queue_limit_frames, ..clock.station.clone() };
        let peer = |mac, slot| Config { peers: vec![Peer { mac, slot, far: false }], ..clock.clone() };
        let (other, some) = (MacAddr([2, 0, 0, 0, 0, 2]), Nanos(1));
        for (config, field) in [
            (clock.clone(), None),
            (Config { station: Station::new(MacAddr::BROADCAST, 0), ..clock.clone() }, Some("mac")),
            (Config { station: Station { mtu: 9_000, ..clock.station.clone() }, ..clock.clone() }, None),
            (
                Config { station: Station { mtu: 9_001, ..clock.station.clone() }, ..clock.clone() },
                Some("mtu"),
            ),
            (Config { k: 1, ..clock.clone() }, None),
            (Config { k: 0, ..clock.clone() }, Some("k")),
            (Config { piece: Some(4), ..clock.clone() }, None),
            (Config { piece: Some(5), ..clock.clone() }, Some("piece")),
            (Config { piece: Some(0), ..clock.clone() }, Some("piece")),
            (Config { slot_parts: 63, ..clock.clone() }, None),
            (Config { slot_parts: 64, ..clock.clone() }, Some("slot_parts")),
            (Config { slot_parts: 0, ..clock.clone() }, Some("slot_parts")),
            (Config { slot_parts: 2, mode: Mode::Counter, ..clock.clone() }, Some("slot_parts")),
            (Config { slot_parts: 1, mode: Mode::Counter, ..clock.clone() }, None),
            (Config { lanes: 64, ..clock.clone() }, None),
            (Config { lanes: 65, ..clock.clone() }, Some("lanes")),
            (Config { lanes: 0, ..clock.clone() }, Some("lanes")),
            (Config { lanes: 2, in_flight: 2, ..clock.clone() }, None),
            (Config { lanes: 2, in_flight: 3, ..clock.clone() }, Some("in_flight")),
            (Config { in_flight: 0, ..clock.clone() }, Some("in_flight")),
            (Config { vid: 4_093, ..clock.clone() }, None),
            (Config { vid: 4_094, ..clock.clone() }, Some("vid")),
            (Config { vid: 0, ..clock.clone() }, Some("vid")),
            (Config { time_unit: Nanos::ZERO, ..clock.clone() }, Some("slot")),
            (Config { slot: Nanos::ZERO, ..clock.clone() }, Some("slot")),
            (peer(other, some), None),
            (peer(MacAddr::BROADCAST, some), Some("peers")),
            (peer(other, Nanos::ZERO), Some("peers")),
            (Config { station: station(4), ..clock.clone() }, None),
            (Config { station: station(3), ..clock.clone() }, Some("queue_limit_frames")),
        ] {
            assert_eq!(config.check().err().map(|error| error.field), field, "{config:?}");
        }
    }

    /// Two VLANs for each lane, and no others.
    #[test]
    fn each_lane_has_two_vlans() {
        let config = Config { vid: 10, lanes: 3, ..Config::new(MacAddr([2; 6]), Mode::Clock, 0) };
        let ours: Vec<u16> = (0..4_096).filter(|vid| config.is_ours(*vid)).collect();
        assert_eq!(ours, [10, 11, 12, 13, 14, 15]);
    }
}
