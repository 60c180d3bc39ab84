//! Algorithm 1: the registers of a rack's ports, and what reservations entitle to.

use super::Limits;
use super::rights::{Demoted, Grace, Rights};
use crate::pl2::{Scheme, full_frame_wire_bytes};
use p4rack_wire::Nanos;
use p4rack_wire::pl2::Target;

/// `inReservation` and `outReservation` of every port, and the lanes of every pair.
///
/// Counter mode: slots; an RSV gives back what its cell still holds, is told what is left and adds
/// `demand`; a scheduled frame that its cell covers takes one off at both ends, an unsolicited one none. So a
/// register holds the sum of its cells.
/// Clock mode: the time, in clock units, at which the port is next free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    scheme: Scheme,
    unit: Nanos,
    /// Slot of each port, in units.
    slots: Vec<u64>,
    ins: Vec<u64>,
    outs: Vec<u64>,
    limits: Limits,
    rights: Rights,
}

impl Allocator {
    /// All ports free. `slots`: of each port; `unit`: the clock's tick.
    pub fn new(scheme: Scheme, slots: &[Nanos], unit: Nanos, limits: Limits) -> Self {
        let slots: Vec<u64> = slots.iter().map(|slot| slot.0.div_ceil(unit.0)).collect();
        let free = vec![0; slots.len()];
        let rights = Rights::new(slots.len(), limits.lanes);
        Allocator { scheme, unit, slots, ins: free.clone(), outs: free, limits, rights }
    }

    /// Whether an RSV may name this cell.
    pub fn has_cell(&self, cell: u8) -> bool {
        self.rights.has(cell)
    }

    fn slot_time(&self, (source, destination): (usize, usize)) -> u64 {
        self.slots[source].max(self.slots[destination]) * self.unit.0
    }

    fn grace(&self, pair: (usize, usize)) -> Grace {
        let slot = self.slot_time(pair);
        (Nanos(self.limits.early_slots * slot), Nanos(self.limits.late_slots * slot))
    }

    /// What a reservation of so many slots, or parts of them, entitles to: frames, or bytes on the wire.
    fn rights_of(&self, demand: u8) -> u64 {
        match self.scheme {
            Scheme::Clock => {
                u64::from(demand) * full_frame_wire_bytes(true).div_ceil(self.limits.slot_parts.into())
            }
            Scheme::Counter | Scheme::Off => demand.into(),
        }
    }

    /// An admitted RSV of a (source, destination) pair for one of its cells: the grant's `sendWait` and `recvWait`.
    /// `None`: not now, its lane's reservation has not begun.
    pub fn reserve(&mut self, pair: (usize, usize), cell: u8, demand: u8, now: Nanos) -> Option<(u32, u32)> {
        let grace = self.grace(pair);
        let old = self.rights.admit(pair, cell, self.rights_of(demand), grace, now)?;
        let (ticks, parts) = (now.0 / self.unit.0, u64::from(self.limits.slot_parts));
        let take = |register: &mut u64, slot: u64| match self.scheme {
            Scheme::Clock => {
                let start = ticks.max(*register);
                *register = start + (u64::from(demand) * slot).div_ceil(parts);
                (start - ticks) as u32
            }
            Scheme::Counter | Scheme::Off => {
                let left = *register - old;
                *register = left + u64::from(demand);
                left as u32
            }
        };
        let send_wait = take(&mut self.ins[pair.0], self.slots[pair.0]);
        let recv_wait = take(&mut self.outs[pair.1], self.slots[pair.1]);
        let wait = u64::from(send_wait.max(recv_wait));
        let wait = match self.scheme {
            Scheme::Clock => wait * self.unit.0,
            Scheme::Counter | Scheme::Off => wait * self.slot_time(pair),
        };
        if demand > 0 {
            self.rights.starts(pair, cell, now.saturating_add(Nanos(wait)));
        }
        Some((send_wait, recv_wait))
    }

    /// A frame of so many bytes on the wire claims a reservation.
    pub fn claim(
        &mut self,
        pair: (usize, usize),
        cell: u8,
        unsolicited: bool,
        wire_bytes: u64,
        now: Nanos,
    ) -> Result<(), Demoted> {
        let cost = if self.scheme == Scheme::Clock { wire_bytes } else { 1 };
        let grace = self.grace(pair);
        let (covered, verdict) = self.rights.claim(pair, cell, unsolicited, cost, grace, now);
        if self.scheme == Scheme::Counter && covered && !unsolicited {
            self.ins[pair.0] -= 1;
            self.outs[pair.1] -= 1;
        }
        verdict
    }

    /// The controller takes back what a dead source holds towards a destination.
    pub fn forget(&mut self, pair: (usize, usize)) {
        for cell in 0..2 * self.limits.lanes {
            let held = self.rights.forget(pair, cell);
            if self.scheme == Scheme::Counter {
                self.ins[pair.0] -= held;
                self.outs[pair.1] -= held;
            }
        }
    }

    /// What is reserved at `port`: slots, or clock units from now.
    pub fn reserved(&self, target: Target, port: usize, now: Nanos) -> u64 {
        let register = match target {
            Target::In => self.ins[port],
            Target::Out => self.outs[port],
        };
        match self.scheme {
            Scheme::Clock => register.saturating_sub(now.0 / self.unit.0),
            Scheme::Counter | Scheme::Off => register,
        }
    }

    /// Whether an unsolicited frame to `destination` is dropped: more than `threshold_slots` (T)
    /// are reserved there.
    pub fn over_threshold(&self, destination: usize, threshold_slots: u64, now: Nanos) -> bool {
        let slot = if self.scheme == Scheme::Clock { self.slots[destination] } else { 1 };
        self.reserved(Target::Out, destination, now) > threshold_slots * slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counters(hosts: usize, lanes: u8) -> Allocator {
        let slots = vec![Nanos(100); hosts];
        Allocator::new(Scheme::Counter, &slots, Nanos(1), Limits { early_slots: 1, ..Limits::new(lanes, 4) })
    }

    #[test]
    fn figure_2() {
        let mut switch = counters(3, 2);
        let now = Nanos(0);
        switch.reserve((0, 2), 0, 4, now);
        switch.reserve((2, 1), 0, 4, now);
        switch.reserve((2, 1), 2, 1, now);
        assert_eq!(switch.reserve((0, 1), 0, 3, now), Some((4, 5)));
        assert_eq!(switch.reserved(Target::In, 0, now), 7);
        let then = Nanos(500);
        assert_eq!(switch.claim((0, 1), 0, false, 0, then), Ok(()));
        assert_eq!(switch.reserve((0, 1), 0, 0, then), Some((4, 5)), "two slots go back");
        assert_eq!(switch.claim((0, 1), 0, false, 0, then), Err(Demoted::Uncovered));
        assert_eq!(switch.reserved(Target::In, 0, then), 4);
        switch.forget((0, 2));
        assert_eq!((switch.reserved(Target::In, 0, then), switch.reserved(Target::Out, 2, then)), (0, 0));
    }

    #[test]
    fn a_lane_has_one_reservation_that_has_not_begun() {
        let mut switch = counters(3, 1);
        assert_eq!(switch.reserve((2, 1), 0, 4, Nanos(0)), Some((0, 0)));
        assert_eq!(switch.reserve((0, 1), 0, 4, Nanos(0)), Some((0, 4)));
        assert_eq!(switch.reserve((0, 1), 1, 4, Nanos(0)), None);
        assert_eq!(switch.claim((0, 1), 0, false, 0, Nanos(299)), Err(Demoted::Early));
        assert_eq!(switch.reserve((0, 1), 1, 4, Nanos(299)), None, "coming early gains nothing");
        assert_eq!(switch.reserve((0, 1), 1, 4, Nanos(300)), Some((3, 7)), "begun by time");
        assert_eq!(switch.claim((0, 1), 0, false, 0, Nanos(301)), Ok(()));
        assert_eq!(switch.reserve((0, 1), 0, 4, Nanos(301)), None, "that was the other half");
        assert_eq!(switch.claim((0, 1), 1, false, 0, Nanos(1_000)), Ok(()));
        assert_eq!(switch.reserve((0, 1), 0, 4, Nanos(1_001)), Some((3, 7)), "two slots went back");
    }

    #[test]
    fn clocks_run_by_themselves() {
        let limits = Limits::new(2, 4);
        let mut switch = Allocator::new(Scheme::Clock, &[Nanos(1_000), Nanos(4_000)], Nanos(100), limits);
        assert_eq!(switch.reserve((0, 1), 0, 4, Nanos(5_000)), Some((0, 0)));
        assert_eq!(switch.reserve((0, 1), 2, 1, Nanos(6_000)), Some((30, 150)), "units of 100 ns");
        let full = full_frame_wire_bytes(true);
        assert_eq!(switch.claim((0, 1), 2, false, full + 1, Nanos(21_000)), Err(Demoted::Uncovered));
        assert_eq!(switch.claim((0, 1), 2, true, full, Nanos(6_000)), Ok(()));
        assert_eq!(switch.claim((0, 1), 2, true, 1, Nanos(6_000)), Err(Demoted::UncoveredUnsolicited));
        assert_eq!(switch.claim((0, 1), 2, false, full, Nanos(21_000)), Ok(()));
        assert_eq!(switch.claim((0, 1), 0, false, full, Nanos(9_000_000)), Err(Demoted::Late));
        assert_eq!(switch.reserved(Target::Out, 1, Nanos(6_000)), 190);
        assert!(switch.over_threshold(1, 4, Nanos(6_000)));
        assert!(!switch.over_threshold(1, 5, Nanos(6_000)));
        assert_eq!(switch.reserved(Target::Out, 1, Nanos(60_000)), 0);
    }

    proptest! {
        /// Whatever hosts do, nothing leaks and nobody takes what is another's.
        #[test]
        fn registers_are_the_sums_of_their_cells(
            steps in proptest::collection::vec((0..3usize, 0..3usize, 0..4u8, 0..7u8, 0..400u64), 1..200)
        ) {
            let (mut switch, mut now) = (counters(3, 2), Nanos(0));
            for (source, destination, cell, what, pause) in steps {
                let pair = (source, destination);
                match what {
                    0..=2 => { switch.reserve(pair, cell, what, now); }
                    3 | 4 => { let _ = switch.claim(pair, cell, false, 0, now); }
                    5 => { let _ = switch.claim(pair, cell, true, 0, now); }
                    _ => switch.forget(pair),
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
