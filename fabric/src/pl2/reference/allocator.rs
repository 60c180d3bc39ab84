//! Algorithm 1: the registers of a rack's ports.

use crate::pl2::Scheme;
use p4rack_wire::Nanos;
use p4rack_wire::pl2::Target;

/// `inReservation` and `outReservation` of every port.
///
/// Counter mode: slots; an RSV gives back `release` (saturating), is told what is left and adds
/// `demand`; a scheduled frame takes one off at both ends (saturating), an unsolicited one none.
/// Clock mode: the time, in clock units, at which the port is next free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    scheme: Scheme,
    unit: Nanos,
    /// Slot of each port, in units.
    slots: Vec<u64>,
    ins: Vec<u64>,
    outs: Vec<u64>,
}

impl Allocator {
    /// All ports free. `slots`: of each port; `unit`: the clock's tick.
    pub fn new(scheme: Scheme, slots: &[Nanos], unit: Nanos) -> Self {
        let slots: Vec<u64> = slots.iter().map(|slot| slot.0.div_ceil(unit.0)).collect();
        let free = vec![0; slots.len()];
        Allocator { scheme, unit, slots, ins: free.clone(), outs: free }
    }

    /// An admitted RSV from the port `source` for the port `destination`: the grant's `sendWait`
    /// and `recvWait`.
    pub fn reserve(
        &mut self,
        source: usize,
        destination: usize,
        demand: u8,
        release: u8,
        now: Nanos,
    ) -> (u32, u32) {
        let (now, demand, release) = (now.0 / self.unit.0, u64::from(demand), u64::from(release));
        let take = |register: &mut u64, slot: u64| match self.scheme {
            Scheme::Clock => {
                let start = now.max(*register);
                *register = start + demand * slot;
                (start - now) as u32
            }
            Scheme::Counter | Scheme::Off => {
                let left = register.saturating_sub(release);
                *register = left + demand;
                left as u32
            }
        };
        let send_wait = take(&mut self.ins[source], self.slots[source]);
        (send_wait, take(&mut self.outs[destination], self.slots[destination]))
    }

    /// A frame sent in a reserved slot passes.
    pub fn use_slot(&mut self, source: usize, destination: usize) {
        if self.scheme == Scheme::Counter {
            self.ins[source] = self.ins[source].saturating_sub(1);
            self.outs[destination] = self.outs[destination].saturating_sub(1);
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

    /// The controller's reset of one register: free.
    pub fn reset(&mut self, target: Target, port: usize) {
        match target {
            Target::In => self.ins[port] = 0,
            Target::Out => self.outs[port] = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_2() {
        let mut switch = Allocator::new(Scheme::Counter, &[Nanos(123); 3], Nanos(1));
        switch.reserve(0, 2, 4, 0, Nanos(0));
        switch.reserve(2, 1, 4, 0, Nanos(0));
        switch.reserve(2, 1, 1, 0, Nanos(0));
        assert_eq!(switch.reserve(0, 1, 3, 0, Nanos(0)), (4, 5));
        assert_eq!(switch.reserved(Target::In, 0, Nanos(0)), 7);
        switch.use_slot(0, 1);
        assert_eq!(switch.reserve(0, 1, 0, 2, Nanos(0)), (4, 5));
        switch.reset(Target::In, 0);
        switch.use_slot(0, 1);
        assert_eq!(switch.reserved(Target::In, 0, Nanos(0)), 0, "saturating");
    }

    #[test]
    fn clocks_run_by_themselves() {
        let mut switch = Allocator::new(Scheme::Clock, &[Nanos(1_000), Nanos(4_000)], Nanos(100));
        assert_eq!(switch.reserve(0, 1, 4, 0, Nanos(5_000)), (0, 0));
        assert_eq!(switch.reserve(0, 1, 1, 0, Nanos(6_000)), (30, 150), "units of 100 ns");
        switch.use_slot(0, 1);
        assert_eq!(switch.reserved(Target::Out, 1, Nanos(6_000)), 190);
        assert!(switch.over_threshold(1, 4, Nanos(6_000)));
        assert!(!switch.over_threshold(1, 5, Nanos(6_000)));
        assert_eq!(switch.reserved(Target::Out, 1, Nanos(60_000)), 0);
    }
}
