//! EDM's arithmetic: cells of a rack, what chunks take on the wire, how far clocks can be ahead.

use super::{Edm, Mode};
use crate::arch::Arch;
use crate::rack::{Host, Protocol, Rack, crossings};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Message;
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use std::collections::BTreeSet;

/// Bytes of a frame before its chunk.
pub(super) const HEADERS: u64 = (Ethernet::BYTES + Vlan::BYTES + Message::BYTES) as u64;
/// Bytes of a chunk's head that becomes a grant: the shortest frame.
pub(super) const HEAD_BYTES: u16 = 72;
/// The same of one that crosses to another pipe: the shortest frame, and longer than headers.
pub(super) const CROSSING_BYTES: u16 = overhead::MIN_FRAME as u16;
/// Unit of granted bytes when their time on the wire is computed; they are rounded up.
pub(super) const UNIT_BYTES: u64 = 16;
/// Maximum bytes of a window, so that the number of its units takes 12 bits.
pub(super) const WINDOW_BYTES_MAX: u64 = (1 << 16) - UNIT_BYTES;
/// Maximum of the horizon in time units. Twice this is far below half of the range of 32 bits.
pub(super) const HORIZON_UNITS_MAX: u64 = 1 << 29;

/// Cells of a page, at most: a register has a bit for each.
pub(super) const PAGE_CELLS: u64 = 32;
/// Cells of a window at the slowest link, at most: no page has fewer.
const WINDOW_CELLS: u64 = 16;
/// Bits of a time by which its cell in its page is found.
const PLACE_BITS: u32 = 11;
/// Maximum further passes in which a frame looks for time: EDM_PASSES of the program.
const CALENDAR_AGAIN: u64 = 3;
/// Minimum number of pages by which a calendar may be ahead.
const PAGES_AHEAD: u64 = 4;

/// The pages of calendars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// Binary logarithm of a page's time units.
    pub bits: u32,
    /// Lowest bit of a time that selects its cell.
    pub low: u32,
    /// Time units of a cell.
    pub cell: u64,
    /// Cells of a page.
    pub cells: u64,
}

impl Edm {
    /// Maximum bytes of a message that are granted and not yet sent: the most that one demand is granted.
    pub fn window_bytes(&self) -> u32 {
        self.chunk_bytes * self.window
    }

    /// Lanes of a pair: a power of two, of which the first `demands` are used. The low bits of a message's id name its lane.
    pub fn lanes(&self) -> u32 {
        self.demands.next_power_of_two().max(2)
    }

    /// Cells of a pair: its lanes for writes, then those for answers.
    fn cells_a_pair(&self) -> u32 {
        2 * self.lanes()
    }

    /// Cells of all pairs: those of the controller's frames first, then those of each host that asks, in the hosts' order.
    pub fn cell_count(&self, rack: &Rack) -> u64 {
        (rack.hosts.len() as u64 + 1) * self.memory.len() as u64 * u64::from(self.cells_a_pair())
    }

    /// Groups of lanes: the writes, or the answers, of a pair, whose lanes are in the same pipe of a chip.
    pub(super) fn pair_lanes(&self, rack: &Rack) -> u64 {
        self.cell_count(rack) / u64::from(self.lanes())
    }

    /// Number of the first cell of the host at this position as a requester.
    pub(super) fn asks_cells(&self, position: usize) -> u32 {
        (position as u32 + 1) * self.memory.len() as u32 * self.cells_a_pair()
    }

    /// Offset of the cells for this host's memory among a requester's cells; `None` if the host has no memory.
    pub(super) fn asked_cells(&self, host: &Host) -> Option<u32> {
        let position = self.memory.iter().position(|name| *name == host.name)?;
        Some(position as u32 * self.cells_a_pair())
    }

    /// Number of the cell of message `id` that host `asks` writes to host `asked` or, with `answer`, awaits from it. `None` if
    /// `asked` has no memory.
    pub fn cell(&self, rack: &Rack, asks: usize, asked: usize, answer: bool, id: u16) -> Option<u32> {
        let first = self.asks_cells(asks) + self.asked_cells(&rack.hosts[asked])?;
        Some(first + u32::from(answer) * self.lanes() + u32::from(id) % self.lanes())
    }

    /// Bytes on the wire of `bytes` of a message, in frames of a chunk each.
    pub fn wire_bytes(&self, bytes: u64) -> u64 {
        let chunk = u64::from(self.chunk_bytes);
        let rest = match bytes % chunk {
            0 => 0,
            rest => overhead::wire_bytes(HEADERS + rest),
        };
        bytes / chunk * overhead::wire_bytes(HEADERS + chunk) + rest
    }

    /// The headroom, in percent, that leaves room for a request or a grant beside each full chunk. These are granted no time and
    /// take `control / chunk` of a link; data takes `1 / (1 + headroom)`. Both fit with a headroom of
    /// `control / (chunk - control)`.
    pub fn headroom_enough(&self) -> u32 {
        let (chunk, control) =
            (self.wire_bytes(self.chunk_bytes.into()), overhead::wire_bytes(HEAD_BYTES.into()));
        let percent = (100 * control).div_ceil(chunk.saturating_sub(control).max(1));
        percent.min(100) as u32
    }

    /// Time of `bytes` of a message on a link of this rate, in the switch's time units: with headroom, rounded, but never less
    /// than the bytes take.
    pub(super) fn time_units(&self, rack: &Rack, bytes: u64, rate_bps: u64) -> u64 {
        let bits = u128::from(self.wire_bytes(bytes)) * 8 * 1_000_000_000;
        let units_s = u128::from(rate_bps) * u128::from(rack.switch.time_unit_ns);
        let with_headroom = bits * u128::from(100 + self.headroom_percent);
        let rounded = (with_headroom + 50 * units_s) / (100 * units_s);
        rounded.max(bits.div_ceil(units_s)) as u64
    }

    /// How far a grant of `bytes` moves a clock: their time, after rounding them up to units.
    pub fn grant_units(&self, rack: &Rack, bytes: u64, rate_bps: u64) -> u64 {
        let rounded = bytes.next_multiple_of(UNIT_BYTES).min(self.window_bytes().into());
        self.time_units(rack, rounded, rate_bps)
    }

    /// The rates of the rack's links, each once; entries call them by their position.
    pub(super) fn rates(&self, rack: &Rack) -> Vec<u64> {
        let mut rates: Vec<u64> = rack.hosts.iter().map(|host| host.rate_bps).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }

    /// Maximum distance of a clock from now, in time units: the time of all data that may be granted at a link and not yet sent.
    pub(super) fn reach_units(&self, rack: &Rack) -> u64 {
        let sharing = |link: u16| rack.hosts.iter().filter(|host| host.link == link).count() as u64;
        let pairs = (rack.hosts.len() + self.memory.len()) as u64;
        let at = |host: &Host| {
            let window = self.time_units(rack, self.window_bytes().into(), host.rate_bps);
            window.saturating_mul(pairs * u64::from(self.demands) * sharing(host.link))
        };
        let most = rack.hosts.iter().map(at).max().unwrap_or(0);
        // A destination's time begins after its source's; a lane that asks by windows holds up to two.
        let more = u64::from(self.mode.looks_at_sources()) + u64::from(self.mode.asks_by_window());
        let pages = match self.mode {
            Mode::Calendar => PAGES_AHEAD << self.pages(rack).bits,
            _ => 0,
        };
        most.saturating_mul(1 << more).max(pages)
    }

    /// The pages of calendars. Page and cell are powers of two, so that a few bits of the time select a cell. A cell is as long as
    /// a chunk at the fastest link, or longer if a window at the slowest link would take too many cells.
    pub(super) fn pages(&self, rack: &Rack) -> Pages {
        let rates = self.rates(rack);
        let at = |rate: Option<&u64>, bytes| self.grant_units(rack, bytes, rate.copied().unwrap_or(1));
        let chunk = at(rates.last(), self.chunk_bytes.into());
        let window = at(rates.first(), self.window_bytes().into());
        let least = chunk.max(window.div_ceil(WINDOW_CELLS)).max(1);
        let of_bits = |bits: u32| {
            let low = bits.saturating_sub(PLACE_BITS);
            let cell = least.next_multiple_of(1 << low);
            Pages { bits, low, cell, cells: (1 << bits) / cell }
        };
        // The cells of a page double, at most, with its time.
        let mut pages = of_bits((least * WINDOW_CELLS).next_power_of_two().ilog2());
        let longer = of_bits(pages.bits + 1);
        if longer.cells <= PAGE_CELLS {
            pages = longer;
        }
        pages
    }

    /// Whether the program bounds shares of links by the time that is claimed, before it knows the rights to that time. Bits of an
    /// offset mark the end of a window.
    pub fn claims(&self, rack: &Rack) -> bool {
        self.claims_on(rack.switch.arch)
    }

    /// The same of an architecture.
    pub(super) fn claims_on(&self, arch: Arch) -> bool {
        self.shares
            && arch.is_tofino()
            && !self.mode.asks_by_window()
            && self.window_bytes().is_power_of_two()
    }

    /// Whether messages have one chunk at a time on Tofino because windows are no longer. Links then have equal shares, although
    /// no register has the time that is claimed of them.
    pub fn grants_chunks(&self, rack: &Rack) -> bool {
        self.shares && rack.switch.arch.is_tofino() && self.mode.asks_by_window() && self.window == 1
    }

    /// Cells of a calendar that a grant of `bytes` takes.
    pub(super) fn grant_cells(&self, rack: &Rack, bytes: u64, rate_bps: u64) -> u64 {
        self.grant_units(rack, bytes, rate_bps).div_ceil(self.pages(rack).cell)
    }

    /// All numbers of cells that a grant may need, at its source or its destination, whichever needs more; each once.
    pub(super) fn runs(&self, rack: &Rack) -> BTreeSet<u64> {
        let units = 1..=u64::from(self.window_bytes()).div_ceil(UNIT_BYTES);
        let rates = self.rates(rack);
        let at = |rate: &u64| {
            units.clone().map(|units| self.grant_cells(rack, units * UNIT_BYTES, *rate)).collect::<Vec<u64>>()
        };
        rates.iter().flat_map(at).collect()
    }

    /// Maximum remaining bytes of the messages in each ring. The last ring has no limit.
    pub(super) fn class_limits(&self) -> Vec<u64> {
        (0..self.classes).map(|n| u64::from(self.window_bytes()) << (2 * n)).collect()
    }

    /// Capacity of a ring in demands: all lanes that lead to a host.
    pub(super) fn ring_demands(&self, rack: &Rack) -> u64 {
        let pairs = (rack.hosts.len() + self.memory.len()) as u64;
        (pairs * u64::from(self.demands)).next_power_of_two()
    }

    /// The links of hosts, each once; Tofino's rings are numbered by their position.
    pub(super) fn host_links(&self, rack: &Rack) -> Vec<u16> {
        let links: BTreeSet<u16> = rack.hosts.iter().map(|host| host.link).collect();
        links.into_iter().collect()
    }

    /// Links for which there are rings: more than any link's number, a power of two.
    pub(super) fn ring_links(&self, rack: &Rack) -> u64 {
        if rack.switch.arch.is_tofino() {
            return (self.host_links(rack).len().max(2) as u64).next_power_of_two();
        }
        let most = rack.hosts.iter().map(|host| u64::from(host.link)).max().unwrap_or(0);
        (most + 1).next_power_of_two()
    }

    /// Places of all rings together.
    pub(super) fn ring_cells(&self, rack: &Rack) -> u64 {
        self.ring_links(rack) * u64::from(self.classes) * self.ring_demands(rack)
    }

    /// The same of a clock from a frame's time, which is older than now by its way to another pipe of a chip and back.
    pub(super) fn stale_units(&self, rack: &Rack) -> u64 {
        let crossing = self.crossing().map_or(Nanos::ZERO, |crossing| crossings::longest(rack, &crossing));
        self.reach_units(rack).saturating_add(crossing.0.div_ceil(rack.switch.time_unit_ns))
    }

    /// A clock further ahead than this is in the past, in time units; a power of two.
    pub fn horizon_units(&self, rack: &Rack) -> u64 {
        power_above(self.stale_units(rack))
    }

    /// How long a stalled message keeps its lane.
    pub fn expiry(&self, rack: &Rack) -> Nanos {
        Nanos(self.expiry_units(rack).saturating_mul(rack.switch.time_unit_ns))
    }

    /// Maximum time from one pass of a frame to its next, in modes with several passes: a message that looks for time or waits for
    /// it has to continue before its lane expires.
    pub fn pass_max(&self, rack: &Rack) -> Option<Nanos> {
        let passes = match self.mode {
            // A frame looks and then takes; it tries again if others took that time in between.
            Mode::Calendar => 2 * (CALENDAR_AGAIN + 1),
            // All demands that wait for a destination are granted one pass after the other.
            Mode::Matched => self.ring_demands(rack),
            Mode::TimedDst | Mode::Timed => return None,
        };
        let spare = self.expiry_units(rack).saturating_sub(self.reach_units(rack));
        Some(Nanos(spare.saturating_mul(rack.switch.time_unit_ns) / passes))
    }

    /// The same in time units.
    pub(super) fn expiry_units(&self, rack: &Rack) -> u64 {
        match self.expiry {
            Some(expiry) => expiry.0 / rack.switch.time_unit_ns,
            None => self.horizon_units(rack).saturating_mul(2),
        }
    }
}

/// The least power of two beyond.
fn power_above(units: u64) -> u64 {
    units.saturating_add(1).checked_next_power_of_two().unwrap_or(u64::MAX)
}
