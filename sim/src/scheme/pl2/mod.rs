//! PL2: what is reserved and granted, how long that takes, and what stays reserved.

mod controller;
mod grants;

use super::{Seen, Watch, WatchHost};
use crate::check::Verdict;
use crate::experiment::{Experiment, SchemeKind};
use crate::switch::{Counted, SwitchModel};
use controller::Controller;
use grants::Grants;
use p4rack_codegen::rack::Rack;
use p4rack_codegen::scheme::pl2::HAS_SLOTS;
use p4rack_wire::pl2::{self, Side};
use p4rack_wire::{EtherType, Nanos};
use std::collections::{BTreeSet, VecDeque};

/// Registers have to be free so long after the last frame.
const SETTLE: Nanos = Nanos::from_millis(2);
/// RSVs remembered of a host that nobody answered.
const RSVS_LEFT: usize = 256;

/// What is watched of PL2.
#[derive(Debug)]
pub(crate) struct Pl2 {
    grants: Grants,
    controller: Controller,
    /// Whether everything has to be free in the end.
    settles: bool,
}

impl Pl2 {
    /// What is to be watched of an experiment.
    pub fn new(experiment: &Experiment) -> Pl2 {
        let (spec, rack) = (&experiment.spec, &experiment.rack);
        let counting = spec.scheme.kind == SchemeKind::Pl2Counter;
        let pl2 = &experiment.pl2;
        let hosts =
            rack.hosts.iter().map(|host| (pl2.slot(rack, host).0 / pl2.slot_parts(), host.link)).collect();
        let delay = spec.scheme.notify_receiver.then(|| Nanos::from_micros(spec.scheme.controller_us));
        // Counters don't run by themselves: what a liar holds, stays.
        let liars = counting && (0..spec.rack.hosts).any(|host| experiment.hostile(host).is_some());
        Pl2 {
            grants: Grants::new(pl2.ether_type, counting, rack.switch.time_unit_ns, hosts),
            controller: Controller::new(pl2.clone(), delay),
            settles: !liars,
        }
    }
}

/// What is watched of PL2 at a host.
#[derive(Debug)]
pub(crate) struct AtHost {
    ether_type: EtherType,
    /// RSVs that left: number, when.
    left: VecDeque<(u32, Nanos)>,
}

impl AtHost {
    /// Nothing has left yet.
    pub fn new(experiment: &Experiment) -> AtHost {
        AtHost { ether_type: experiment.pl2.ether_type, left: VecDeque::new() }
    }

    /// When an RSV left that is answered now.
    fn answered(&mut self, id: u32) -> Option<Nanos> {
        let at = self.left.iter().position(|(known, _)| *known == id)?;
        self.left.remove(at).map(|(_, when)| when)
    }
}

impl WatchHost for AtHost {
    #[inline]
    fn leaves(&mut self, frame: &[u8], now: Nanos, measured: bool, seen: &mut Seen) {
        let Some(control) = grants::read(self.ether_type, frame) else { return };
        if self.left.len() == RSVS_LEFT {
            self.left.pop_front();
        }
        self.left.push_back((control.id, now));
        seen.control.0 += u64::from(measured);
    }

    #[inline]
    fn enters(
        &mut self,
        frame: &[u8],
        arrived: Nanos,
        (measuring, measured): (bool, bool),
        seen: &mut Seen,
    ) -> Option<usize> {
        let control = grants::read(self.ether_type, frame)?;
        seen.control.1 += u64::from(measured);
        if control.kind == pl2::Kind::Grt as u8
            && let Some(when) = self.answered(control.id)
            && measuring
        {
            seen.rsv_grt.saturating_record(arrived.saturating_sub(when).0);
        }
        Some(control.destination)
    }
}

impl Watch for Pl2 {
    #[inline]
    fn enters_switch(&mut self, frame: &[u8], now: Nanos) {
        if let Some(seen) = self.grants.read(frame) {
            self.grants.asked(&seen, now);
        }
    }

    #[inline]
    fn leaves_switch(&mut self, frame: &[u8]) {
        if let Some(seen) = self.grants.read(frame)
            && seen.kind == pl2::Kind::Grt as u8
        {
            self.grants.granted(&seen);
        }
    }

    #[inline]
    fn controller_delay(&self) -> Option<Nanos> {
        self.controller.delay
    }

    fn silent(&mut self, sender: usize, destination: usize, now: Nanos) {
        self.controller.report(sender, destination, now);
    }

    fn controller_due(&self) -> Nanos {
        self.controller.due()
    }

    fn control(&mut self, switch: &mut SwitchModel, rack: &Rack, now: Nanos) {
        self.controller.take_back(switch, rack, now);
    }

    /// A grant says 0 for both waits.
    fn falsify(&self, frame: &mut [u8]) {
        if self.grants.read(frame).is_some() {
            frame[26..34].fill(0);
        }
    }

    /// A burst that has slots is sent in them, whatever became of it before.
    fn come_again(&self, counted: &Counted) -> u64 {
        counted.drops.iter().filter(|(reason, _)| *reason == HAS_SLOTS).map(|(_, count)| count).sum()
    }

    fn judge(&self, verdict: &mut Verdict) {
        verdict.overlapping_grants = self.grants.overlapping;
        verdict.grants = self.grants.seen;
    }

    fn settles_after(&self) -> Option<Nanos> {
        self.settles.then_some(SETTLE)
    }

    /// Reservations are free once everything had time to pass.
    fn judge_settled(&self, switch: &mut SwitchModel, rack: &Rack, now: Nanos, verdict: &mut Verdict) {
        let links: BTreeSet<u16> = rack.hosts.iter().map(|host| host.link).collect();
        for link in links {
            for target in [Side::In, Side::Out] {
                let left = self.controller.reserved(switch, target, link, now).unwrap_or(u32::MAX);
                verdict.leaked_reservations += u64::from(left > 0);
                verdict.leaked_amount += u64::from(left);
            }
        }
    }

    fn taken_back(&self) -> &[(Nanos, usize, usize)] {
        &self.controller.taken_back
    }
}
