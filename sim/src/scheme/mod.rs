//! Checks of a scheme's promises, and its counters: one module per scheme.
//!
//! ```text
//!  host ─ leaves ─▶ link ─▶ enters_switch ─ switch ─ leaves_switch ─▶ link ─▶ enters ─ host
//!    └ silent ─▶ controller ─ control ─▶┘
//! ```
//!
//! Properties of any switch (order, conservation of frames, buffers) are checked elsewhere. A scheme's further promises
//! are checked here, from the frames alone. Some of these calls are made for every frame, so they go through the enums
//! [`HostWatcher`] and [`Watcher`] and are inlined.

mod l2;
mod pl2;

use crate::check::Verdict;
use crate::experiment::{Experiment, SchemeKind};
use crate::switch::{Counted, SwitchModel};
use l2::L2;
use p4rack_codegen::rack::Rack;
use p4rack_wire::{Histogram, Nanos};
use pl2::Pl2;

/// A scheme's checks at one host's end of its link. Methods do nothing by default.
///
/// Hosts share nothing. Their common counters are in [`HostCounts`] and added up at the end.
pub(crate) trait WatchHost {
    /// An honest host's machine puts a frame on its link. `measured`: this is during the measured time.
    fn leaves(&mut self, _frame: &[u8], _now: Nanos, _measured: bool, _counts: &mut HostCounts) {}

    /// A frame whose last bit arrived at `arrived` reaches a host that has not failed. For one of the scheme's own frames,
    /// returns the destination that it is about, because the machine may have more room for that destination now.
    /// `measuring`: the warm-up is over. `measured`: and the sources have not ended yet.
    fn enters(
        &mut self,
        _frame: &[u8],
        _arrived: Nanos,
        (_measuring, _measured): (bool, bool),
        _counts: &mut HostCounts,
    ) -> Option<usize> {
        None
    }
}

/// Counters of a scheme at hosts since the warm-up.
#[derive(Debug)]
pub(crate) struct HostCounts {
    /// Time from the start of a request on the wire to the arrival of its grant, in nanoseconds.
    pub rsv_grt: Histogram,
    /// The scheme's own frames: sent by hosts, and received by them.
    pub control: (u64, u64),
}

impl HostCounts {
    /// All counts are zero.
    pub fn new() -> HostCounts {
        HostCounts { rsv_grt: Histogram::new(), control: (0, 0) }
    }

    /// Adds the counts of other hosts.
    pub fn add(&mut self, other: &HostCounts) {
        self.rsv_grt.add(&other.rsv_grt);
        self.control.0 += other.control.0;
        self.control.1 += other.control.1;
    }
}

/// A scheme's checks at the switch and at the end of a run, and its controller. Hosts are numbered from 0. Methods do
/// nothing by default.
pub(crate) trait Watch {
    /// A frame enters the switch.
    fn enters_switch(&mut self, _frame: &[u8], _now: Nanos) {}

    /// A frame starts to leave the switch.
    fn leaves_switch(&mut self, _frame: &[u8]) {}

    /// Time between a host's report and the controller's action at the switch; `None`: hosts report nothing.
    fn controller_delay(&self) -> Option<Nanos> {
        None
    }

    /// A destination's machine reports that a sender has fallen silent.
    fn silent(&mut self, _sender: usize, _destination: usize, _now: Nanos) {}

    /// When the controller acts on the switch next; `Nanos::MAX`: never.
    fn controller_due(&self) -> Nanos {
        Nanos::MAX
    }

    /// The controller acts on the switch.
    fn control(&mut self, _switch: &mut SwitchModel, _rack: &Rack, _now: Nanos) {}

    /// Breaks one of the scheme's own frames as it leaves the switch: a fault that the checks have to find. Tests only.
    fn falsify(&self, _frame: &mut [u8]) {}

    /// Number of dropped frames that are not lost, because their senders send them again anyway.
    fn sent_again(&self, _counted: &Counted) -> u64 {
        0
    }

    /// The run is over: writes findings into the verdict.
    fn judge(&self, _verdict: &mut Verdict) {}

    /// How long after the run the switch's state must have expired; `None`: there is nothing to check.
    fn settles_after(&self) -> Option<Nanos> {
        None
    }

    /// That time has passed: writes reservations left in the switch into the verdict.
    fn judge_settled(&self, _switch: &mut SwitchModel, _rack: &Rack, _now: Nanos, _verdict: &mut Verdict) {}

    /// Reservations that the controller made the switch forget: time, source, destination.
    fn forgotten(&self) -> &[(Nanos, usize, usize)] {
        &[]
    }
}

/// The [`Watch`] of any scheme.
#[derive(Debug)]
pub(crate) enum Watcher {
    /// Plain switching.
    L2(L2),
    /// PL2, with counters or clocks.
    Pl2(Box<Pl2>),
}

impl Watcher {
    /// The checks of an experiment's scheme.
    pub fn new(experiment: &Experiment) -> Watcher {
        match experiment.spec.scheme.kind {
            SchemeKind::L2 => Watcher::L2(L2),
            SchemeKind::Pl2Counter | SchemeKind::Pl2Clock => Watcher::Pl2(Box::new(Pl2::new(experiment))),
        }
    }
}

/// The [`WatchHost`] of any scheme.
#[derive(Debug)]
pub(crate) enum HostWatcher {
    /// Plain switching.
    L2(L2),
    /// PL2.
    Pl2(pl2::AtHost),
}

impl HostWatcher {
    /// The checks of an experiment's scheme.
    pub fn new(experiment: &Experiment) -> HostWatcher {
        match experiment.spec.scheme.kind {
            SchemeKind::L2 => HostWatcher::L2(L2),
            SchemeKind::Pl2Counter | SchemeKind::Pl2Clock => HostWatcher::Pl2(pl2::AtHost::new(experiment)),
        }
    }
}

impl WatchHost for HostWatcher {
    #[inline]
    fn leaves(&mut self, frame: &[u8], now: Nanos, measured: bool, counts: &mut HostCounts) {
        match self {
            HostWatcher::L2(watch) => watch.leaves(frame, now, measured, counts),
            HostWatcher::Pl2(watch) => watch.leaves(frame, now, measured, counts),
        }
    }

    #[inline]
    fn enters(
        &mut self,
        frame: &[u8],
        arrived: Nanos,
        measures: (bool, bool),
        counts: &mut HostCounts,
    ) -> Option<usize> {
        match self {
            HostWatcher::L2(watch) => watch.enters(frame, arrived, measures, counts),
            HostWatcher::Pl2(watch) => watch.enters(frame, arrived, measures, counts),
        }
    }
}

/// Calls a method of whichever scheme runs.
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

    fn sent_again(&self, counted: &Counted) -> u64 {
        each!(self, watch => watch.sent_again(counted))
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

    fn forgotten(&self) -> &[(Nanos, usize, usize)] {
        each!(self, watch => watch.forgotten())
    }
}
