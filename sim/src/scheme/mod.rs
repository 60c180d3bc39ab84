//! What a scheme watches while the rack runs, and what it shows in the end: one module a scheme.
//!
//! ```text
//!  host ─ leaves_host ─▶ link ─▶ enters_switch ─ switch ─ leaves_switch ─▶ link ─▶ enters_host ─ host
//!    └ ask_host ─▶ controller ─ control ─▶┘
//! ```
//!
//! Whatever a scheme promises beyond what holds for any switch (order, frames that are nowhere, buffers) is checked
//! here, from the frames alone. Calls go through the enum [`Watcher`] and are inlined, since some are made for each frame.

mod l2;
mod pl2;

use crate::check::Verdict;
use crate::experiment::{Experiment, SchemeKind};
use crate::latency::Latency;
use crate::switch::{Counted, SwitchModel};
use l2::L2;
use p4rack_codegen::rack::Rack;
use p4rack_fabric::Endpoint;
use p4rack_wire::Nanos;
use pl2::Pl2;

/// What a scheme does at the places that frames pass, and at the turns of a run. Hosts are numbered from 0. What is
/// not defined does nothing.
pub(crate) trait Watch {
    /// An honest host's machine puts a frame on its link.
    fn leaves_host(&mut self, _host: usize, _frame: &[u8], _now: Nanos) {}

    /// A frame begins its way through the switch.
    fn enters_switch(&mut self, _frame: &[u8], _now: Nanos) {}

    /// A frame starts to leave the switch.
    fn leaves_switch(&mut self, _frame: &[u8]) {}

    /// A frame, whose last bit arrived then, has come to a living host. If it is one of the scheme's own: the destination
    /// that it speaks of, for which the machine may have more room now.
    fn enters_host(&mut self, _host: usize, _frame: &[u8], _arrived: Nanos, _now: Nanos) -> Option<usize> {
        None
    }

    /// The warm-up ends.
    fn warm(&mut self) {}

    /// What the controller takes from a host's report to the switch; `None`: hosts report nothing.
    fn controller_delay(&self) -> Option<Nanos> {
        None
    }

    /// Asks a host's machine what it has to report.
    fn ask_host(&mut self, _host: usize, _machine: &mut Endpoint, _now: Nanos) {}

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

    /// The scheme's part of the results.
    fn shows(&self) -> Shown {
        Shown::default()
    }
}

/// A scheme's part of the results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// From a request's start on the wire to its grant's arrival, since the warm-up.
    pub rsv_grt_ns: Latency,
    /// The scheme's own frames in the measured time: that hosts sent, and that came to them.
    pub control: (u64, u64),
    /// Reservations that the controller took back: when, whose, towards whom.
    pub taken_back: Vec<(Nanos, usize, usize)>,
}

/// What watches a run.
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
    fn leaves_host(&mut self, host: usize, frame: &[u8], now: Nanos) {
        each!(self, watch => watch.leaves_host(host, frame, now))
    }

    #[inline]
    fn enters_switch(&mut self, frame: &[u8], now: Nanos) {
        each!(self, watch => watch.enters_switch(frame, now))
    }

    #[inline]
    fn leaves_switch(&mut self, frame: &[u8]) {
        each!(self, watch => watch.leaves_switch(frame))
    }

    #[inline]
    fn enters_host(&mut self, host: usize, frame: &[u8], arrived: Nanos, now: Nanos) -> Option<usize> {
        each!(self, watch => watch.enters_host(host, frame, arrived, now))
    }

    fn warm(&mut self) {
        each!(self, watch => watch.warm())
    }

    #[inline]
    fn controller_delay(&self) -> Option<Nanos> {
        each!(self, watch => watch.controller_delay())
    }

    fn ask_host(&mut self, host: usize, machine: &mut Endpoint, now: Nanos) {
        each!(self, watch => watch.ask_host(host, machine, now))
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

    fn shows(&self) -> Shown {
        each!(self, watch => watch.shows())
    }
}
