//! What a PL2 endpoint is told about its rack.

use crate::common::{ConfigError, Station};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::pl2::{self, LANES_MAX};
use p4rack_wire::{EtherType, MacAddr, Nanos};

/// How data gets its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// PL2 as in the paper: grants carry slots, data frames decrement.
    Counter,
    /// PL2 with ports' registers holding the time at which they are next free: grants carry time.
    Clock,
}

/// A host that speaks PL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub mac: MacAddr,
    /// Slot of the port it hangs on: wire time of a full frame at that port's rate.
    pub slot: Nanos,
}

/// Parameters of an [`Endpoint`](super::Endpoint). [`Config::new`] fills in defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The host. Its limit of best effort holds for frames to nobody known.
    pub station: Station,
    /// Mode, the same on the whole rack.
    pub mode: Mode,
    /// EtherType of control frames and shim.
    pub ether_type: EtherType,
    /// First VLAN of scheduled data, one for each cell of a (source, destination) pair; also that of control frames.
    pub vid: u16,
    /// Lanes of a pair at the switch, two cells each: most reservations that have not begun. 1 to 64.
    pub lanes: u8,
    /// K: most full frames a burst, so most slots a reservation.
    pub k: u8,
    /// With clocks: parts of a slot, in which reservations count; `k` times this is at most 255.
    pub slot_parts: u8,
    /// t: below it a burst goes unsolicited, above it an unsolicited burst is sent again. 0: never unsolicited.
    pub t_slots: u32,
    /// Data carries a sequence number, by which receivers remove duplicates and count losses.
    pub shim: bool,
    /// Slot of this host's own port.
    pub slot: Nanos,
    /// Unit of the times in a grant (clock mode): the switch's clock tick.
    pub time_unit: Nanos,
    /// The other hosts that speak PL2; frames to anybody else are best effort.
    pub peers: Vec<Peer>,
    /// Reservations in flight a destination: asked for and the burst not sent yet. At least 1, at most `lanes`.
    pub in_flight: usize,
    /// With clocks: short frames share slots, so that a reservation of K slots covers as many of them as fit. `false`:
    /// a slot for each, as in the paper, whose switch counts frames.
    pub pack: bool,
    /// How long a grant's wait counts as recent (§4.4, condition ii). `None`: twice the RSV→GRT delay.
    pub fresh: Option<Nanos>,
    /// Two conditions for unsolicited bursts beside §4.4's two. The slots of the one before have passed: else few senders,
    /// each of which sees a wait below t, together send more than the port carries. And the NIC holds no more than a slot's
    /// time of frames: else the burst would wait there as well, and those that follow it come later than their slots. `false`: the paper's
    /// Algorithm 2 as it stands.
    pub pace_unsolicited: bool,
    /// How late a sender may be of whom a copied grant told us before it counts as silent. `None`: copies are
    /// only counted.
    pub notify_patience: Option<Nanos>,
    /// Whether frames go in reserved slots. `false`: all as best effort, while what others send in slots is taken: a port
    /// to other racks, whose traffic nobody schedules.
    pub reserve: bool,
    /// An RSV without grant is sent again after the measured delay's mean and four deviations, but
    /// not sooner than this; doubled at each retry.
    pub grt_timeout_min: Nanos,
    /// Longest time between two RSVs for the same burst.
    pub grt_timeout_max: Nanos,
    /// A grant that asks to wait longer is not believed.
    pub wait_max: Nanos,
    /// Counter mode: slots that will not be used are given back by an RSV of its own when no reservation has taken
    /// their place for this long; slots of frames that may have been lost on the way, after 64 times this.
    pub release_after: Nanos,
    /// Window over which the smallest RSV→GRT delay is taken.
    pub delay_window: Nanos,
}

/// Whose parameters errors are about.
const SCHEME: &str = "PL2";

impl Config {
    /// Defaults for a host on a link of `rate_bps` (0: 1 Gb/s is assumed for the slot): the paper's
    /// K = 4 and t = 15, one reservation in flight, the shim on, no peers yet.
    pub fn new(mac: MacAddr, mode: Mode, rate_bps: u64) -> Self {
        let slot = Nanos::on_wire(full_frame_wire_bytes(true), Station::timing_bps(rate_bps));
        Config {
            station: Station { catch_up: slot, ..Station::new(mac, rate_bps) },
            mode,
            ether_type: EtherType::PL2_DEFAULT,
            vid: 2,
            lanes: 1,
            k: 4,
            slot_parts: 1,
            t_slots: 15,
            shim: true,
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

    /// Checks what types can't. [`Endpoint::new`](super::Endpoint::new) runs with a bad one too, on
    /// the nearest value that works.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.station.check(SCHEME)?;
        let fail = |field, problem| Err(ConfigError { scheme: SCHEME, field, problem });
        if self.k == 0 {
            return fail("k", "is 0; a burst has at least one frame");
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
    /// VLANs of this rack's data: one a cell.
    fn vids(&self) -> u16 {
        2 * u16::from(self.lanes)
    }

    /// Whether a VLAN is one of PL2's.
    #[inline]
    pub(super) fn is_ours(&self, vid: u16) -> bool {
        vid.wrapping_sub(self.vid) < self.vids()
    }

    /// Time of so many parts of a slot.
    pub(super) fn parts_time(&self, slot: Nanos, parts: u8) -> Nanos {
        Nanos(slot.0.saturating_mul(parts.into()) / u64::from(self.slot_parts.max(1)))
    }
}

/// Wire bytes of a full PL2 data frame: 1500 bytes of payload, Ethernet header, VLAN tag, shim if
/// on, FCS, preamble and gap. A slot is the time they take.
pub const fn full_frame_wire_bytes(shim: bool) -> u64 {
    let shim_bytes = if shim { pl2::Shim::BYTES as u64 } else { 0 };
    overhead::wire_bytes(overhead::MTU + 14 + 4 + shim_bytes)
}
