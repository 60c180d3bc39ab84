//! PL2's checks: grants, their delay, and leaked reservations.

mod controller;
mod grants;

use super::{HostCounts, Watch, WatchHost};
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

/// How long after the last frame registers must be free.
const SETTLE: Nanos = Nanos::from_millis(2);
/// Unanswered RSVs kept per host.
const RSVS_LEFT: usize = 256;

/// PL2's checks at the switch, and its controller.
#[derive(Debug)]
pub(crate) struct Pl2 {
    grants: Grants,
    controller: Controller,
    /// Whether all registers must be free at the end.
    settles: bool,
}

impl Pl2 {
    /// The checks for an experiment.
    pub fn new(experiment: &Experiment) -> Pl2 {
        let (spec, rack) = (&experiment.spec, &experiment.rack);
        let counting = spec.scheme.kind == SchemeKind::Pl2Counter;
        let pl2 = &experiment.pl2;
        let hosts =
            rack.hosts.iter().map(|host| (pl2.slot(rack, host).0 / pl2.slot_parts(), host.link)).collect();
        let delay = spec.scheme.notify_receiver.then(|| Nanos::from_micros(spec.scheme.controller_us));
        // Counters do not expire, so a hostile host's slots stay.
        let leaks = counting && (0..spec.rack.hosts).any(|host| experiment.hostile(host).is_some());
        Pl2 {
            grants: Grants::new(pl2.ether_type, counting, rack.switch.time_unit_ns, hosts),
            controller: Controller::new(pl2.clone(), delay),
            settles: !leaks,
        }
    }
}

/// PL2's checks at a host.
#[derive(Debug)]
pub(crate) struct AtHost {
    ether_type: EtherType,
    /// RSVs that left: id, time.
    left: VecDeque<(u32, Nanos)>,
}

impl AtHost {
    /// No RSV has left yet.
    pub fn new(experiment: &Experiment) -> AtHost {
        AtHost { ether_type: experiment.pl2.ether_type, left: VecDeque::new() }
    }

    /// Removes the RSV with this id, which is answered now, and returns when it left.
    fn answer(&mut self, id: u32) -> Option<Nanos> {
        let at = self.left.iter().position(|(known, _)| *known == id)?;
        self.left.remove(at).map(|(_, when)| when)
    }
}

impl WatchHost for AtHost {
    #[inline]
    fn leaves(&mut self, frame: &[u8], now: Nanos, measured: bool, counts: &mut HostCounts) {
        let Some(control) = grants::read(self.ether_type, frame) else { return };
        if self.left.len() == RSVS_LEFT {
            self.left.pop_front();
        }
        self.left.push_back((control.id, now));
        counts.control.0 += u64::from(measured);
    }

    #[inline]
    fn enters(
        &mut self,
        frame: &[u8],
        arrived: Nanos,
        (measuring, measured): (bool, bool),
        counts: &mut HostCounts,
    ) -> Option<usize> {
        let control = grants::read(self.ether_type, frame)?;
        counts.control.1 += u64::from(measured);
        if control.kind == pl2::Kind::Grt as u8
            && let Some(when) = self.answer(control.id)
            && measuring
        {
            counts.rsv_grt.record(arrived.saturating_sub(when).0);
        }
        Some(control.destination)
    }
}

impl Watch for Pl2 {
    #[inline]
    fn enters_switch(&mut self, frame: &[u8], now: Nanos) {
        if let Some(control) = self.grants.read(frame) {
            self.grants.ask(&control, now);
        }
    }

    #[inline]
    fn leaves_switch(&mut self, frame: &[u8]) {
        if let Some(control) = self.grants.read(frame)
            && control.kind == pl2::Kind::Grt as u8
        {
            self.grants.grant(&control);
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
        self.controller.act(switch, rack, now);
    }

    /// Sets both waits of a grant to 0.
    fn falsify(&self, frame: &mut [u8]) {
        if self.grants.read(frame).is_some() {
            frame[26..34].fill(0);
        }
    }

    /// A burst that has slots is sent again in these if it was dropped as unsolicited.
    fn sent_again(&self, counted: &Counted) -> u64 {
        counted.drops.iter().filter(|(reason, _)| *reason == HAS_SLOTS).map(|(_, count)| count).sum()
    }

    fn judge(&self, verdict: &mut Verdict) {
        verdict.overlapping_grants = self.grants.overlapping;
        verdict.grants = self.grants.granted;
    }

    fn settles_after(&self) -> Option<Nanos> {
        self.settles.then_some(SETTLE)
    }

    /// No reservation is left once every burst has had time to pass.
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

    fn forgotten(&self) -> &[(Nanos, usize, usize)] {
        &self.controller.forgotten
    }
}
