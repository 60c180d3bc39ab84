//! PL2's arithmetic: slots and cells of a rack, and ceilings that follow from them.

use super::{Clocks, Mode, Pl2};
use crate::rack::{Host, Rack, pipes};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::pl2::Shim;

/// A clock further ahead than this many time units is taken to be in the past: `clock` mode's wrap-safe comparison.
pub const HORIZON_UNITS: u64 = 1 << 30;
/// The same for times of 32 bits, if the rack is not known.
pub const SHORT_HORIZON_UNITS: u64 = 1 << 24;
/// The shortest horizon on Tofino: the test for a time beyond it looks at a few bits.
const HORIZON_MIN_UNITS: u64 = 1 << 16;
/// How early a burst may arrive, in slots of the slower of both links: the error with which hosts meet its start.
pub const EARLY_SLOTS: u64 = 4;
/// How late a burst may arrive after its K slots, in the same slots: hosts in software pause at times.
const LATE_SLOTS: u64 = 1000;

/// Bytes of a data frame's VLAN tag.
const VLAN: u64 = 4;

/// Bits of the number of a source, the controller among them, of a destination, and of a cell of the pair.
pub(super) struct IndexBits {
    pub source: u32,
    pub destination: u32,
    pub cell: u32,
}

impl IndexBits {
    pub fn all(&self) -> u32 {
        self.source + self.destination + self.cell
    }
}

impl Pl2 {
    /// Whether the switch reserves at a frame's source, beside its destination.
    pub(super) fn reserves_at_source(&self) -> bool {
        self.mode == Mode::Counter || self.clocks != Clocks::Dst
    }

    /// Whether a program for Tofino takes an RSV's time at its source before it knows whether the RSV's lane is free: the
    /// destination's clock continues from the source's, so it would come a stage later.
    pub(super) fn takes_source_first(&self, rack: &Rack) -> bool {
        let chain = self.mode == Mode::Clock && self.clocks == Clocks::Chain;
        chain && rack.switch.arch.is_tofino() && !pipes::are_several(rack)
    }

    /// Whether a cell has a start for each of its links in a program for Tofino. With counters, finding the later one takes a
    /// stage, and a start for each takes tables; beside other protocols these are scarcer.
    pub(super) fn starts_at_both(&self, rack: &Rack) -> bool {
        match self.mode {
            Mode::Clock => self.clocks == Clocks::Pair,
            Mode::Counter => rack.protocols.len() == 1,
        }
    }

    /// The tables with the time of counters' waits in a program for Tofino: whose start each is for, how its name ends, and the
    /// field with the wait.
    pub(super) fn waits(&self, rack: &Rack) -> Vec<(&'static str, &'static str, &'static str)> {
        match self.starts_at_both(rack) {
            true => vec![("in", "_in", "send_wait"), ("out", "_out", "recv_wait")],
            false => vec![("out", "", "wait")],
        }
    }

    /// Bytes that PL2 adds to a data frame.
    pub(super) fn tags(&self) -> u64 {
        VLAN + if self.shim { Shim::BYTES as u64 } else { 0 }
    }

    /// Bytes that a full frame takes on the wire, with preamble, gap and FCS.
    pub fn frame_wire_bytes(&self) -> u64 {
        frame_wire_bytes(self.tags())
    }

    /// Transmission time of a full frame on `host`'s link, with headroom. Each of its parts is a multiple of the switch's
    /// time unit.
    pub fn slot(&self, rack: &Rack, host: &Host) -> Nanos {
        self.slot_at(rack, host.rate_bps)
    }

    /// The same for a link of this rate.
    pub(super) fn slot_at(&self, rack: &Rack, rate_bps: u64) -> Nanos {
        slot_of(rack, self.frame_wire_bytes(), rate_bps, self.slot_headroom_percent, self.slot_parts())
    }

    /// `host`'s slot in the switch's time units.
    pub fn slot_units(&self, rack: &Rack, host: &Host) -> u64 {
        self.slot(rack, host).0 / rack.switch.time_unit_ns
    }

    /// A part of `host`'s slot in the switch's time units.
    pub fn part_units(&self, rack: &Rack, host: &Host) -> u64 {
        self.slot_units(rack, host) / self.slot_parts()
    }

    /// Parts of a slot, in which reservations count.
    pub fn slot_parts(&self) -> u64 {
        u64::from(self.slot_parts.max(1))
    }

    /// Bytes on the wire that a part of a slot entitles to, in clock mode.
    pub fn part_wire_bytes(&self) -> u64 {
        self.frame_wire_bytes().div_ceil(self.slot_parts())
    }

    /// How long after its start a burst may arrive, in slots of the slower of both links, its own K slots included.
    pub fn late_slots(&self) -> u64 {
        u64::from(self.k) + LATE_SLOTS
    }

    /// Cells per (source, destination) pair: two per lane.
    pub fn cells_a_pair(&self) -> u8 {
        2 * self.lanes
    }

    /// Cells of all pairs: those of the controller's frames first, then those of each host, in the hosts' order. On Tofino
    /// they are found by numbers side by side, so there are gaps, and the controller's are those behind the last host's.
    pub fn cell_count(&self, rack: &Rack) -> u64 {
        let hosts = rack.hosts.len() as u64;
        match rack.switch.arch.is_tofino() {
            true => 1 << self.index_bits(rack).all(),
            false => (hosts + 1) * hosts * 2 * u64::from(self.lanes),
        }
    }

    /// Bits of the numbers by which Tofino finds a cell.
    pub(super) fn index_bits(&self, rack: &Rack) -> IndexBits {
        let bits = |values: usize| values.next_power_of_two().ilog2().max(1);
        let hosts = rack.hosts.len();
        IndexBits {
            source: bits(hosts + 1),
            destination: bits(hosts),
            cell: bits(self.cells_a_pair().into()),
        }
    }

    /// Where the cell of this number is in the program's registers. Numbers on Tofino are those of both hosts and of the
    /// pair's cell, a byte each.
    pub fn cell_index(&self, rack: &Rack, number: u32) -> u64 {
        if !rack.switch.arch.is_tofino() {
            return number.into();
        }
        let bits = self.index_bits(rack);
        let [_, source, destination, cell] = number.to_be_bytes().map(u64::from);
        (source << bits.destination | destination) << bits.cell | cell
    }

    /// Number of the first cell of the host at this position, as a source.
    pub fn source_cells(&self, rack: &Rack, source: usize) -> u32 {
        match rack.switch.arch.is_tofino() {
            true => (source as u32) << 16,
            false => (source as u32 + 1) * rack.hosts.len() as u32 * u32::from(self.cells_a_pair()),
        }
    }

    /// Offset of the cells towards the destination at this position.
    pub fn destination_cells(&self, rack: &Rack, destination: usize) -> u32 {
        match rack.switch.arch.is_tofino() {
            true => (destination as u32) << 8,
            false => destination as u32 * u32::from(self.cells_a_pair()),
        }
    }

    /// Number of a pair's `cell` among all cells; hosts are identified by their positions in the rack.
    pub fn cell_number(&self, rack: &Rack, source: usize, destination: usize, cell: u8) -> u32 {
        self.source_cells(rack, source) + self.destination_cells(rack, destination) + u32::from(cell)
    }

    /// The slots of all links' rates, in time units, each where a host first has it: the number of a rate is its place here,
    /// from 1. So another host at the end changes no other host's number.
    pub(super) fn rates(&self, rack: &Rack) -> Vec<u64> {
        let mut slots = Vec::new();
        for slot in rack.hosts.iter().map(|host| self.slot_units(rack, host)) {
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        slots
    }

    /// Whether everything that may be reserved at one link, and the threshold, begins within the horizon if a slot takes
    /// this many time units. Times of 32 bits also have to tell frames that come late from early ones.
    pub(super) fn fits_horizon(&self, rack: &Rack, slot_units: u64) -> bool {
        let late = self.late_slots().saturating_mul(slot_units);
        self.reach_slots(rack).saturating_mul(slot_units) < HORIZON_UNITS
            && (!rack.switch.arch.is_tofino() || late < HORIZON_UNITS)
    }

    /// A time further ahead than this is taken to be in the past, in time units; a power of two. With times of 32 bits
    /// it is as short as the longest reservations permit.
    pub fn horizon_units(&self, rack: &Rack) -> u64 {
        if !rack.switch.arch.is_tofino() {
            return HORIZON_UNITS;
        }
        let reach = self.reach_slots(rack).saturating_mul(self.longest_slot_units(rack)) + 1;
        reach.next_power_of_two().clamp(HORIZON_MIN_UNITS, HORIZON_UNITS)
    }

    /// The horizon of a source's time where RSVs take it before they have a lane, in time units; a power of two. Such RSVs, of which a host
    /// may send any number while the first ones pass again, move the source's time alone: a destination's continues from at most this far
    /// ahead, as many slots as the source's lanes permit, so both together stay within [`horizon_units`](Pl2::horizon_units).
    pub(super) fn source_horizon_units(&self, rack: &Rack) -> u64 {
        let own_slots = self.reach_slots(rack) / 2;
        let own = own_slots.saturating_mul(self.longest_slot_units(rack)) + 1;
        own.next_power_of_two().min(self.horizon_units(rack) / 2)
    }

    fn longest_slot_units(&self, rack: &Rack) -> u64 {
        rack.hosts.iter().map(|host| self.slot_units(rack, host)).max().unwrap_or(1)
    }

    /// Maximum slots that may be reserved at one link at a time, or the threshold if that is more.
    ///
    /// Each lane of each pair holds one reservation that has not begun. Hosts that share a link add up there. Counters also
    /// include what the lane's other half has left. If the destination's clock continues from the source's, both add up.
    pub(super) fn reach_slots(&self, rack: &Rack) -> u64 {
        let at_port = |port: u16| rack.hosts.iter().filter(|other| other.port == port).count();
        let sharing = rack.hosts.iter().map(|host| at_port(host.port)).max().unwrap_or(1);
        let pairs = rack.hosts.len() as u64 * sharing as u64;
        let k = u64::from(self.k);
        let lanes = pairs * u64::from(self.lanes) * k;
        let reserved = match (self.mode, self.clocks) {
            (Mode::Counter, _) => 2 * lanes,
            (Mode::Clock, Clocks::Chain) => 2 * (lanes + k + EARLY_SLOTS),
            (Mode::Clock, _) => lanes + k + EARLY_SLOTS,
        };
        let threshold = if self.mode == Mode::Clock { u64::from(self.drop_threshold_slots) } else { 0 };
        reserved.max(threshold)
    }

    /// Entries of the table with the time that an RSV's slots take at one end, by the rate of its link or, for a source's, by
    /// its address.
    pub(super) fn slot_entries(&self, rack: &Rack, by_host: bool) -> u64 {
        let keys = if by_host { rack.hosts.len() } else { self.rates(rack).len() };
        keys as u64 * u64::from(self.k)
    }

    /// Entries of the table with the time of slots, where the switch does not multiply: of each demand at each rate,
    /// or of each wait.
    pub(super) fn time_entries(&self, rack: &Rack) -> u64 {
        match self.mode {
            Mode::Clock => self.rates(rack).len() as u64 * u64::from(self.k),
            Mode::Counter => self.reach_slots(rack) + 1,
        }
    }

    /// For calendars of 64 cells: the binary logarithm of a cell's length in time units, and the number of cells that K
    /// slots take at the slowest port.
    pub fn calendar_cells(&self, rack: &Rack) -> (u32, u64) {
        let k = u64::from(self.k);
        let units = || rack.hosts.iter().map(|host| self.slot_units(rack, host));
        let (shortest, longest) = (units().min().unwrap_or(1), units().max().unwrap_or(1));
        let cells = |time: u64, shift: u32| time.div_ceil(1 << shift);
        // Of cells of which the fastest port's K slots take at most an eighth of a calendar: those that
        // waste least in K slots, then in one, then those that see furthest.
        let waste = |shift: u32| {
            let of =
                |slots: u64| (cells(slots * shortest, shift) << shift) as f64 / (slots * shortest) as f64;
            (of(k), of(1), std::cmp::Reverse(shift))
        };
        let fits = (0..40).filter(|shift| cells(k * shortest, *shift) <= 8);
        let best = fits.min_by(|a, b| waste(*a).partial_cmp(&waste(*b)).unwrap_or(std::cmp::Ordering::Equal));
        let shift = best.unwrap_or(40);
        (shift, cells(k * longest, shift))
    }

    /// Ceiling of a host that receives a full payload in every slot.
    pub(super) fn receives_bps(&self, rack: &Rack, host: &Host) -> u64 {
        (payload_bits() / self.slot(rack, host).as_secs_f64()) as u64
    }

    /// Ceiling of a host whose link also carries one RSV per K frames.
    pub(super) fn sends_bps(&self, rack: &Rack, host: &Host) -> u64 {
        let k = f64::from(self.k);
        let burst_bytes = k * rack.wire_bytes() as f64 + overhead::wire_bytes(overhead::MIN_FRAME) as f64;
        let slots_s = k * self.slot(rack, host).as_secs_f64();
        let burst_s = (burst_bytes * 8.0 / host.rate_bps as f64).max(slots_s);
        (k * payload_bits() / burst_s) as u64
    }
}

fn payload_bits() -> f64 {
    (overhead::MTU * 8) as f64
}

fn frame_wire_bytes(tags: u64) -> u64 {
    overhead::wire_bytes(Ethernet::BYTES as u64 + tags + overhead::MTU)
}

/// Transmission time of `wire_bytes` at `rate_bps`, extended by `headroom_percent`. Each of its `parts` is rounded up to
/// time units.
fn slot_of(rack: &Rack, wire_bytes: u64, rate_bps: u64, headroom_percent: f64, parts: u64) -> Nanos {
    // Slots are lengthened so that a fully reserved port leaves other racks their share.
    let foreign: u32 = rack.hosts.iter().filter_map(|host| host.foreign_percent).sum();
    let headroom_percent = (100.0 + headroom_percent) * 100.0 / f64::from(100 - foreign.min(90)) - 100.0;
    // Parts per million, so that the slot is the same on every machine.
    let ppm = 1_000_000 + (headroom_percent * 10_000.0).round() as u128;
    let time_unit_ns = rack.switch.time_unit_ns;
    let numerator = u128::from(wire_bytes) * 8 * ppm * 1_000;
    let units = numerator.div_ceil(u128::from(rate_bps) * u128::from(time_unit_ns) * u128::from(parts));
    Nanos((units as u64).saturating_mul(time_unit_ns).saturating_mul(parts))
}
