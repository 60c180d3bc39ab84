//! What a scheme watches while the rack runs, and what it shows in the end: one module a scheme.
//!
//! ```text
//!  host ─ leaves ─▶ link ─▶ enters_switch ─ switch ─ leaves_switch ─▶ link ─▶ enters ─ host
//!    └ silent ─▶ controller ─ control ─▶┘
//! ```
//!
//! Whatever a scheme promises beyond what holds for any switch (order, frames that are nowhere, buffers) is checked
//! here, from the frames alone. Calls go through the enums [`HostWatcher`] and [`Watcher`] and are inlined, since some are
//! made for each frame.

mod l2;
mod pl2;

use crate::check::Verdict;
use crate::experiment::{Experiment, SchemeKind};
use crate::latency::{add_up, histogram};
use crate::switch::{Counted, SwitchModel};
use hdrhistogram::Histogram;
use l2::L2;
use p4rack_codegen::rack::Rack;
use p4rack_wire::Nanos;
use pl2::Pl2;

/// What a scheme does at one host's end of its link. What is not defined does nothing.
///
/// Hosts share nothing, so what all of them count together is kept in [`Seen`], and added up.
pub(crate) trait WatchHost {
    /// The honest host's machine puts a frame on its link. `measured`: in the measured time.
    fn leaves(&mut self, _frame: &[u8], _now: Nanos, _measured: bool, _seen: &mut Seen) {}

    /// A frame, whose last bit arrived then, has come to the living host. If it is one of the scheme's own: the destination
    /// that it speaks of, for which the machine may have more room now. `measuring`: the warm-up is over; `measured`: and
    /// sources have not ended.
    fn enters(
        &mut self,
        _frame: &[u8],
        _arrived: Nanos,
        (_measuring, _measured): (bool, bool),
        _seen: &mut Seen,
    ) -> Option<usize> {
        None
    }
}

/// What a scheme counts at hosts since the warm-up.
#[derive(Debug)]
pub(crate) struct Seen {
    /// From a request's start on the wire to its grant's arrival.
    pub rsv_grt: Histogram<u64>,
    /// The scheme's own frames: that hosts sent, and that came to them.
    pub control: (u64, u64),
}

impl Seen {
    /// Nothing.
    pub fn new() -> Seen {
        Seen { rsv_grt: histogram(), control: (0, 0) }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Seen) {
        add_up(&mut self.rsv_grt, &other.rsv_grt);
        self.control.0 += other.control.0;
        self.control.1 += other.control.1;
    }
}

/// What a scheme does at the switch, and at the turns of a run. Hosts are numbered from 0. What is not defined does
/// nothing.
pub(crate) trait Watch {
    /// A frame begins its way through the switch.
    fn enters_switch(&mut self, _frame: &[u8], _now: Nanos) {}

    /// A frame starts to leave the switch.
    fn leaves_switch(&mut self, _frame: &[u8]) {}

    /// What the controller takes from a host's report to the switch; `None`: hosts report nothing.
    fn controller_delay(&self) -> Option<Nanos> {
        None
    }

    /// A destination's machine reports that a sender has fallen silent.
    fn silent(&mut self, _sender: usize, _destination: usize, _now: Nanos) {}

    /// When the controller comes to the switch next; `Nanos::MAX`: never.
    fn controller_due(&self) -> Nanos {
        Nanos::MAX
    }

    /// The controller's time has come.
    fn control(&mut self, _switch: &mut SwitchModel, _rack: &Rack, _now: Nanos) {}

    /// Falsifies a frame of the scheme's own as it leaves the switch, so that what it promises does not hold: a fault for
    /// the checks' own tests.
    fn falsify(&self, _frame: &mut [u8]) {}

    /// Frames that the switch dropped and that are not lost, since they come again by themselves.
    fn come_again(&self, _counted: &Counted) -> u64 {
        0
    }

    /// The run is over: notes what was seen.
    fn judge(&self, _verdict: &mut Verdict) {}

    /// After the run, what the switch remembers is forgotten within this time; `None`: there is nothing to look for.
    fn settles_after(&self) -> Option<Nanos> {
        None
    }

    /// That time has passed: notes what the switch still holds.
    fn judge_settled(&self, _switch: &mut SwitchModel, _rack: &Rack, _now: Nanos, _verdict: &mut Verdict) {}

    /// Reservations that the controller took back: when, whose, towards whom.
    fn taken_back(&self) -> &[(Nanos, usize, usize)] {
        &[]
    }
}

/// What watches a run at the switch.
#[derive(Debug)]
pub(crate) enum Watcher {
    /// Plain switching.
    L2(L2),
    /// PL2, with counters or clocks.
    Pl2(Box<Pl2>),
}

impl Watcher {
    /// The one for an experiment's scheme.
    pub fn new(experiment: &Experiment) -> Watcher {
        match experiment.spec.scheme.kind {
            SchemeKind::Ethernet => Watcher::L2(L2),
            SchemeKind::Pl2Counter | SchemeKind::Pl2Clock => Watcher::Pl2(Box::new(Pl2::new(experiment))),
        }
    }
}

/// What watches a run at a host.
#[derive(Debug)]
pub(crate) enum HostWatcher {
    /// Plain switching.
    L2(L2),
    /// PL2.
    Pl2(pl2::AtHost),
}

impl HostWatcher {
    /// The one for an experiment's scheme.
    pub fn new(experiment: &Experiment) -> HostWatcher {
        match experiment.spec.scheme.kind {
            SchemeKind::Ethernet => HostWatcher::L2(L2),
            SchemeKind::Pl2Counter | SchemeKind::Pl2Clock => HostWatcher::Pl2(pl2::AtHost::new(experiment)),
        }
    }
}

impl WatchHost for HostWatcher {
    #[inline]
    fn leaves(&mut self, frame: &[u8], now: Nanos, measured: bool, seen: &mut Seen) {
        match self {
            HostWatcher::L2(watch) => watch.leaves(frame, now, measured, seen),
            HostWatcher::Pl2(watch) => watch.leaves(frame, now, measured, seen),
        }
    }

    #[inline]
    fn enters(
        &mut self,
        frame: &[u8],
        arrived: Nanos,
        measures: (bool, bool),
        seen: &mut Seen,
    ) -> Option<usize> {
        match self {
            HostWatcher::L2(watch) => watch.enters(frame, arrived, measures, seen),
            HostWatcher::Pl2(watch) => watch.enters(frame, arrived, measures, seen),
        }
    }
}

/// Calls whichever scheme's there is.
macro_rules! each {
    ($self:ident, $watch:ident => $call:expr) => {
        match $self {
            Watcher::L2($watch) => $call,
            Watcher::Pl2($watch) => $call,
        }
    };
}

impl Watch for Watcher {
    #[inline]
    fn enters_switch(&mut self, frame: &[u8], now: Nanos) {
        each!(self, watch => watch.enters_switch(frame, now))
    }

    #[inline]
    fn leaves_switch(&mut self, frame: &[u8]) {
        each!(self, watch => watch.leaves_switch(frame))
    }

    #[inline]
    fn controller_delay(&self) -> Option<Nanos> {
        each!(self, watch => watch.controller_delay())
    }

    fn silent(&mut self, sender: usize, destination: usize, now: Nanos) {
        each!(self, watch => watch.silent(sender, destination, now))
    }

    fn controller_due(&self) -> Nanos {
        each!(self, watch => watch.controller_due())
    }

    fn control(&mut self, switch: &mut SwitchModel, rack: &Rack, now: Nanos) {
        each!(self, watch => watch.control(switch, rack, now))
    }

    fn falsify(&self, frame: &mut [u8]) {
        each!(self, watch => watch.falsify(frame))
    }

    fn come_again(&self, counted: &Counted) -> u64 {
        each!(self, watch => watch.come_again(counted))
    }

    fn judge(&self, verdict: &mut Verdict) {
        each!(self, watch => watch.judge(verdict))
    }

    fn settles_after(&self) -> Option<Nanos> {
        each!(self, watch => watch.settles_after())
    }

    fn judge_settled(&self, switch: &mut SwitchModel, rack: &Rack, now: Nanos, verdict: &mut Verdict) {
        each!(self, watch => watch.judge_settled(switch, rack, now, verdict))
    }

    fn taken_back(&self) -> &[(Nanos, usize, usize)] {
        each!(self, watch => watch.taken_back())
    }
}
