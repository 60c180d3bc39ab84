//! Algorithm 1: the registers of a rack's ports, and the rights that reservations give.

use crate::Limits;
use crate::rights::{Fate, Grace, Rights, ahead};
use p4rack_fabric::pl2::Mode;
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::Side;

/// `inReservation` and `outReservation` of every port, and the lanes of every pair.
///
/// Counter mode: registers count slots. An RSV gives back the slots that its cell still holds, gets the rest
/// in its grant, and adds `demand`. A scheduled frame that its cell covers takes one off at both ends, an
/// unsolicited one none. So a register holds the sum of its cells, unless the controller wrote it. Clock
/// mode: registers hold the time, in clock units, at which the port is next free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    mode: Mode,
    unit: Nanos,
    /// Slot of each port, in clock units.
    slots: Vec<u64>,
    ins: Vec<u64>,
    outs: Vec<u64>,
    limits: Limits,
    rights: Rights,
}

impl Allocator {
    /// All ports free. `slots` are the ports' slots, `unit` is the tick of the clock.
    pub fn new(mode: Mode, slots: &[Nanos], unit: Nanos, limits: Limits) -> Self {
        let slots: Vec<u64> = slots.iter().map(|slot| slot.0.div_ceil(unit.0)).collect();
        let free = vec![0; slots.len()];
        let rights = Rights::new(slots.len(), limits.lanes, mode == Mode::Counter);
        Allocator { mode, unit, slots, ins: free.clone(), outs: free, limits, rights }
    }

    /// Whether an RSV may use this cell.
    pub fn has_cell(&self, cell: u8) -> bool {
        self.rights.has(cell)
    }

    fn ticks(&self, now: Nanos) -> u64 {
        now.0 / self.unit.0
    }

    fn grace(&self, source: usize, destination: usize) -> Grace {
        let slot = self.slots[source].max(self.slots[destination]);
        (self.limits.early_slots * slot, self.limits.late_slots * slot)
    }

    /// The rights of a reservation with this many slots, or parts of them: frames, or bytes on the wire.
    fn rights_of(&self, demand: u8) -> u64 {
        match self.mode {
            Mode::Clock => {
                u64::from(demand) * self.limits.full_wire_bytes.div_ceil(self.limits.slot_parts.into())
            }
            Mode::Counter => demand.into(),
        }
    }

    /// Handles an admitted RSV of a (source, destination) pair for one of its cells. Returns the grant's
    /// `sendWait` and `recvWait`, or `None` if the lane's reservation has not begun yet. `unsolicited` says
    /// that its burst follows immediately.
    pub fn reserve(
        &mut self,
        (source, destination): (usize, usize),
        cell: u8,
        demand: u8,
        unsolicited: bool,
        now: Nanos,
    ) -> Option<(u32, u32)> {
        let (name, ticks) = ((source, destination, cell), self.ticks(now));
        let grace = self.grace(source, destination);
        let released = self.rights.take(name, demand, grace, ticks)?;
        let old = released + self.rights.replace(name, self.rights_of(demand));
        let parts = u64::from(self.limits.slot_parts);
        let take = |register: &mut u64, slot: u64| match self.mode {
            Mode::Clock => {
                let wait = ahead(*register, ticks);
                *register = ticks + wait + (u64::from(demand) * slot).div_ceil(parts);
                wait
            }
            Mode::Counter => {
                let left = register.saturating_sub(old);
                *register = left + u64::from(demand);
                left
            }
        };
        let send_wait = take(&mut self.ins[source], self.slots[source]);
        let recv_wait = take(&mut self.outs[destination], self.slots[destination]);
        let (t, wait) = (self.limits.t_slots, send_wait.max(recv_wait));
        let (short, wait) = match self.mode {
            Mode::Clock => {
                (send_wait <= t * self.slots[source] && recv_wait <= t * self.slots[destination], wait)
            }
            Mode::Counter => (wait <= t, wait * self.slots[source]),
        };
        self.rights.settle(name, ticks + wait, unsolicited, short);
        Some((send_wait as u32, recv_wait as u32))
    }

    /// Fate of a frame of this length, without FCS, that claims a reservation.
    pub fn claim(
        &mut self,
        (source, destination): (usize, usize),
        cell: u8,
        unsolicited: bool,
        bytes: u64,
        now: Nanos,
    ) -> Fate {
        let name = (source, destination, cell);
        let cost = match self.mode {
            Mode::Clock => wire_bytes(bytes),
            // Longer ones do not fit into a slot.
            _ if wire_bytes(bytes) > self.limits.full_wire_bytes => u64::MAX,
            _ => 1,
        };
        if unsolicited {
            return match self.rights.unsolicited(name, cost) {
                Fate::Scheduled if self.over_threshold(destination, now) => Fate::OverThreshold,
                fate => fate,
            };
        }
        let (grace, ticks) = (self.grace(source, destination), self.ticks(now));
        let (covered, verdict) = self.rights.scheduled(name, cost, grace, ticks);
        if covered {
            self.take_off(source, destination, 1);
        }
        verdict.map_or_else(Fate::Demoted, |()| Fate::Scheduled)
    }

    fn take_off(&mut self, source: usize, destination: usize, slots: u64) {
        if self.mode == Mode::Counter {
            self.ins[source] = self.ins[source].saturating_sub(slots);
            self.outs[destination] = self.outs[destination].saturating_sub(slots);
        }
    }

    /// The controller takes back a cell's slots. Returns the amount.
    pub fn forget(&mut self, (source, destination): (usize, usize), cell: u8) -> u64 {
        let held = self.rights.forget((source, destination, cell));
        self.take_off(source, destination, held);
        held
    }

    fn register(&mut self, target: Side, port: usize) -> &mut u64 {
        match target {
            Side::In => &mut self.ins[port],
            Side::Out => &mut self.outs[port],
        }
    }

    /// The controller writes the reservation at `port`: slots, or clock units from now.
    pub fn write(&mut self, target: Side, port: usize, value: u64, now: Nanos) {
        let from = if self.mode == Mode::Clock { self.ticks(now) } else { 0 };
        *self.register(target, port) = from + value;
    }

    /// The reservation at `port`: slots, or clock units from now.
    pub fn reserved(&self, target: Side, port: usize, now: Nanos) -> u64 {
        let register = match target {
            Side::In => self.ins[port],
            Side::Out => self.outs[port],
        };
        match self.mode {
            Mode::Clock => ahead(register, self.ticks(now)),
            Mode::Counter => register,
        }
    }

    /// Whether unsolicited frames to `destination` are dropped, because its reservation exceeds T.
    fn over_threshold(&self, destination: usize, now: Nanos) -> bool {
        let slot = if self.mode == Mode::Clock { self.slots[destination] } else { 1 };
        self.reserved(Side::Out, destination, now) > self.limits.drop_threshold_slots * slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Demoted;
    use p4rack_fabric::pl2::full_frame_wire_bytes;
    use proptest::prelude::*;

    fn counters(hosts: usize, lanes: u8) -> Allocator {
        let slots = vec![Nanos(100); hosts];
        let limits = Limits { early_slots: 1, ..Limits::new(lanes, 4, 8) };
        Allocator::new(Mode::Counter, &slots, Nanos(1), limits)
    }

    /// An RSV whose burst waits for its slots.
    fn reserve(
        switch: &mut Allocator,
        pair: (usize, usize),
        cell: u8,
        demand: u8,
        now: u64,
    ) -> Option<(u32, u32)> {
        switch.reserve(pair, cell, demand, false, Nanos(now))
    }

    #[test]
    fn figure_2() {
        let mut switch = counters(3, 2);
        reserve(&mut switch, (0, 2), 0, 4, 0);
        reserve(&mut switch, (2, 1), 0, 4, 0);
        reserve(&mut switch, (2, 1), 2, 1, 0);
        assert_eq!(reserve(&mut switch, (0, 1), 0, 3, 0), Some((4, 5)));
        let then = Nanos(500);
        assert_eq!(switch.reserved(Side::In, 0, then), 7);
        assert_eq!(switch.claim((0, 1), 0, false, 60, then), Fate::Scheduled);
        assert_eq!(reserve(&mut switch, (0, 1), 0, 0, 500), Some((4, 5)), "two slots go back");
        assert_eq!(switch.claim((0, 1), 0, false, 60, then), Fate::Demoted(Demoted::Uncovered));
        assert_eq!(switch.reserved(Side::In, 0, then), 4);
        assert_eq!(switch.forget((0, 2), 0), 4);
        assert_eq!((switch.reserved(Side::In, 0, then), switch.reserved(Side::Out, 2, then)), (0, 0));
    }

    #[test]
    fn a_lane_has_one_reservation_that_has_not_begun() {
        let mut switch = counters(3, 1);
        let claim = |switch: &mut Allocator, cell, now| switch.claim((0, 1), cell, false, 60, Nanos(now));
        assert_eq!(reserve(&mut switch, (2, 1), 0, 4, 0), Some((0, 0)));
        assert_eq!(reserve(&mut switch, (0, 1), 0, 4, 0), Some((0, 4)));
        assert_eq!(reserve(&mut switch, (0, 1), 1, 4, 0), None);
        assert_eq!(claim(&mut switch, 0, 299), Fate::Demoted(Demoted::Early));
        assert_eq!(reserve(&mut switch, (0, 1), 1, 4, 299), None, "coming early gains nothing");
        assert_eq!(
            reserve(&mut switch, (0, 1), 1, 4, 300),
            Some((0, 4)),
            "begun by time, three slots went back"
        );
        assert_eq!(claim(&mut switch, 0, 301), Fate::Demoted(Demoted::Uncovered));
        assert_eq!(reserve(&mut switch, (0, 1), 0, 4, 301), None, "the other half has not begun");
        assert_eq!(claim(&mut switch, 1, 1_000), Fate::Scheduled);
        assert_eq!(reserve(&mut switch, (0, 1), 0, 4, 1_001), Some((3, 7)));
    }

    #[test]
    fn a_bare_return_waits_for_its_own_half_alone() {
        let mut switch = counters(3, 1);
        reserve(&mut switch, (2, 1), 0, 4, 0);
        reserve(&mut switch, (0, 1), 0, 4, 0);
        assert_eq!(
            reserve(&mut switch, (0, 1), 0, 0, 0),
            None,
            "else it would free the lane before its time"
        );
        assert_eq!(reserve(&mut switch, (0, 1), 1, 0, 0), Some((4, 8)), "the other half holds nothing");
        assert_eq!(reserve(&mut switch, (0, 1), 1, 4, 0), None, "and doesn't free the lane");
        assert_eq!(reserve(&mut switch, (0, 1), 0, 0, 400), Some((0, 4)));
    }

    #[test]
    fn clocks_run_by_themselves() {
        let limits = Limits::new(2, 4, 4);
        let mut switch = Allocator::new(Mode::Clock, &[Nanos(1_000), Nanos(4_000)], Nanos(100), limits);
        let full = full_frame_wire_bytes(true) - 24;
        let claim = |switch: &mut Allocator, cell, unsolicited, bytes, now| {
            switch.claim((0, 1), cell, unsolicited, bytes, Nanos(now))
        };
        assert_eq!(reserve(&mut switch, (0, 1), 0, 4, 5_000), Some((0, 0)));
        assert_eq!(reserve(&mut switch, (0, 1), 2, 1, 6_000), Some((30, 150)), "units of 100 ns");
        assert_eq!(claim(&mut switch, 2, false, full + 1, 21_000), Fate::Demoted(Demoted::Uncovered));
        assert_eq!(claim(&mut switch, 2, false, full, 21_000), Fate::Scheduled);
        assert_eq!(claim(&mut switch, 0, false, full, 9_000_000), Fate::Demoted(Demoted::Late));
        assert_eq!(switch.reserved(Side::Out, 1, Nanos(6_000)), 190);
        assert_eq!(switch.reserved(Side::Out, 1, Nanos(60_000)), 0);
    }

    #[test]
    fn short_frames_take_the_time_of_the_shortest_that_a_wire_carries() {
        let limits = Limits::new(1, 4, 4);
        let mut switch = Allocator::new(Mode::Clock, &[Nanos(1_000); 2], Nanos(1), limits);
        reserve(&mut switch, (0, 1), 0, 1, 0);
        let fits = limits.full_wire_bytes / 84;
        let sent =
            (0..100).filter(|_| switch.claim((0, 1), 0, false, 14, Nanos(0)) == Fate::Scheduled).count();
        assert_eq!(sent as u64, fits);
    }

    /// In all cases, a burst is sent once.
    #[test]
    fn a_burst_goes_unsolicited_or_in_its_slots() {
        let slot = 1_000;
        for mode in [Mode::Clock, Mode::Counter] {
            // Nothing is reserved before; then so much that the wait is longer than t, which is 4 slots.
            for (before, announced) in [(0, false), (0, true), (1, false), (1, true), (2, true), (2, false)] {
                let mut switch = Allocator::new(mode, &[Nanos(slot); 4], Nanos(1), Limits::new(1, 4, 4));
                for source in 0..before {
                    reserve(&mut switch, (source + 1, 3), 0, 4, 0);
                }
                let waits = switch.reserve((0, 3), 0, 4, announced, Nanos(0)).unwrap();
                let wait = u64::from(waits.1) * if mode == Mode::Clock { 1 } else { slot };
                assert_eq!(wait, before as u64 * 4 * slot);
                let claim = |switch: &mut Allocator, unsolicited, now| {
                    (0..6)
                        .map(|_| switch.claim((0, 3), 0, unsolicited, 1_526, Nanos(now)))
                        .collect::<Vec<_>>()
                };
                let (first, second) = (claim(&mut switch, true, 0), claim(&mut switch, false, wait));
                let goes = |fates: &[Fate]| fates.iter().filter(|fate| **fate == Fate::Scheduled).count();
                let unsolicited = announced && before < 2;
                assert_eq!((goes(&first), goes(&second)), if unsolicited { (4, 0) } else { (0, 4) });
                let denied = match (announced, before < 2) {
                    (true, false) => Fate::HasSlots,
                    _ => Fate::Demoted(Demoted::UncoveredUnsolicited),
                };
                assert_eq!(first[5], denied);
                assert_eq!(second[5], Fate::Demoted(Demoted::Uncovered));
            }
        }
    }

    proptest! {
        /// With any behaviour of hosts, nothing leaks and none takes another's slots.
        #[test]
        fn registers_are_the_sums_of_their_cells(
            steps in proptest::collection::vec((0..3usize, 0..3usize, 0..4u8, 0..8u8, 0..400u64), 1..200)
        ) {
            let (mut switch, mut now) = (counters(3, 2), Nanos(0));
            for (source, destination, cell, what, pause) in steps {
                let pair = (source, destination);
                match what {
                    0..=3 => { switch.reserve(pair, cell, what % 3, what == 3, now); }
                    4 | 5 => { switch.claim(pair, cell, false, 60, now); }
                    6 => { switch.claim(pair, cell, true, 60, now); }
                    _ => { switch.forget(pair, cell); }
                }
                now += Nanos(pause);
                for host in 0..3 {
                    prop_assert_eq!(switch.ins[host], switch.rights.held(|source, _| source == host));
                    prop_assert_eq!(switch.outs[host], switch.rights.held(|_, destination| destination == host));
                    prop_assert!(switch.outs[host] <= 3 * 4 * 2, "at most two slots a cell");
                }
            }
        }
    }
}
