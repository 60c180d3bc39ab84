//! A host's end of its link to the switch.

use super::{Clock, Due};
use p4rack_fabric::Machine;
use p4rack_wire::Nanos;

/// A link from a host that sends only when it is free, so nothing waits in front of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uplink {
    clock: Clock,
    rate_bps: u64,
    free: u64,
    due: Due,
}

impl Uplink {
    /// A free link.
    pub fn new(rate_bps: u64, clock: Clock) -> Uplink {
        Uplink { clock, rate_bps, free: 0, due: Due::default() }
    }

    /// When to ask its host's machine, for the agenda. `None` if it is scheduled already, or the machine has nothing to
    /// do.
    #[inline]
    pub fn plan(&mut self, machine: &impl Machine, now: u64) -> Option<u64> {
        self.plan_at(machine.next_link(), machine.next_timeout(), now)
    }

    /// Runs its host's machine: its timers, and, if the link is free, its next frame.
    #[inline]
    pub fn ask<M: Machine>(&self, machine: &mut M, now: u64, out: &mut M::Buffer) -> Option<M::Sent> {
        let nanos = self.clock.nanos(now);
        machine.handle_timeout(nanos);
        if self.free <= now { machine.poll_link(nanos, out) } else { None }
    }

    /// The same as [`plan`](Self::plan) for a host that has a frame to send from one time on, for which the link has to be free, and
    /// a timer at another.
    #[inline]
    pub fn plan_at(&mut self, frame: Option<Nanos>, timer: Option<Nanos>, now: u64) -> Option<u64> {
        let frame = frame.map(|at| self.clock.ticks(at).max(self.free));
        let timer = timer.map(|at| self.clock.ticks(at));
        let at = frame.into_iter().chain(timer).min()?;
        self.due.plan(at, now)
    }

    /// When a driver that plans its host's turns itself asks the machine next.
    #[inline]
    pub fn next_call(&self, machine: &impl Machine) -> Option<Nanos> {
        machine.next_call(self.clock.nanos(self.free))
    }

    /// Whether this is the time at which its host was to be asked.
    #[inline]
    pub fn is_due(&mut self, now: u64) -> bool {
        self.due.is_now(now)
    }

    /// Transmission time of a frame on the link, in either direction.
    #[inline]
    pub fn on_wire(&self, frame: &[u8]) -> u64 {
        self.clock.on_wire(frame.len(), self.rate_bps)
    }

    /// Sends a frame now. Returns when its last bit is on the wire.
    #[inline]
    pub fn send(&mut self, frame: &[u8], now: u64) -> u64 {
        self.free = now + self.on_wire(frame);
        self.free
    }
}
