//! PL2: what is reserved and granted, how long that takes, and what stays reserved.

mod controller;
mod grants;

use super::{Shown, Watch};
use crate::check::Verdict;
use crate::experiment::{Experiment, SchemeKind};
use crate::latency::{Latency, histogram};
use crate::message::host_of;
use crate::switch::{Counted, SwitchModel};
use controller::Controller;
use grants::Grants;
use hdrhistogram::Histogram;
use p4rack_codegen::rack::Rack;
use p4rack_codegen::scheme::pl2::HAS_SLOTS;
use p4rack_fabric::{Endpoint, Event, HostMachine as _};
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{self, Side};
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
    /// RSVs that left, by host: number, when.
    rsv_left: Vec<VecDeque<(u32, Nanos)>>,
    rsv_grt: Histogram<u64>,
    /// Control frames in the measured time: that hosts sent, and that came to them.
    control: (u64, u64),
    measuring: bool,
    sources_end: Nanos,
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
            rsv_left: vec![VecDeque::new(); spec.rack.hosts],
            rsv_grt: histogram(),
            control: (0, 0),
            measuring: false,
            sources_end: Nanos::from_micros(spec.duration_us),
            settles: !liars,
        }
    }

    /// Whether it is the measured time.
    fn measures(&self, now: Nanos) -> bool {
        self.measuring && now < self.sources_end
    }

    /// When an RSV of a host left that is answered now.
    fn answered(&mut self, host: usize, id: u32) -> Option<Nanos> {
        let left = &mut self.rsv_left[host];
        let at = left.iter().position(|(known, _)| *known == id)?;
        left.remove(at).map(|(_, when)| when)
    }
}

impl Watch for Pl2 {
    #[inline]
    fn leaves_host(&mut self, host: usize, frame: &[u8], now: Nanos) {
        let Some(seen) = self.grants.read(frame) else { return };
        let left = &mut self.rsv_left[host];
        if left.len() == RSVS_LEFT {
            left.pop_front();
        }
        left.push_back((seen.id, now));
        self.control.0 += u64::from(self.measures(now));
    }

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
    fn enters_host(&mut self, host: usize, frame: &[u8], arrived: Nanos, now: Nanos) -> Option<usize> {
        let seen = self.grants.read(frame)?;
        self.control.1 += u64::from(self.measures(now));
        if seen.kind == pl2::Kind::Grt as u8
            && let Some(when) = self.answered(host, seen.id)
            && self.measuring
        {
            self.rsv_grt.saturating_record(arrived.saturating_sub(when).0);
        }
        Some(seen.destination)
    }

    fn warm(&mut self) {
        self.measuring = true;
    }

    #[inline]
    fn controller_delay(&self) -> Option<Nanos> {
        self.controller.delay
    }

    fn ask_host(&mut self, host: usize, machine: &mut Endpoint, now: Nanos) {
        while let Some(event) = machine.poll_event(now) {
            let Event::SenderSilent(sender) = event;
            if let Some(sender) = host_of(&sender.0) {
                self.controller.report(sender, host, now);
            }
        }
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

    fn shows(&self) -> Shown {
        Shown {
            rsv_grt_ns: Latency::of(&self.rsv_grt, true),
            control: self.control,
            taken_back: self.controller.taken_back.clone(),
        }
    }
}
