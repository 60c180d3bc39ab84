//! Events that concern the rack as a whole. Hosts learn of them from their agendas.

use super::group::RoundPart;
use super::plan::Plan;
use crate::agenda::{HostEvent, RackEvent, RankedAgenda};
use crate::experiment::Arrivals;
use crate::message::FlowId;
use crate::traffic::{Source, TrafficStats};
use p4rack_wire::Nanos;

/// The rack's agenda, and the sources of messages.
#[derive(Debug)]
pub(crate) struct Rack {
    pub agenda: RankedAgenda<RackEvent>,
    sources: Vec<Source>,
    /// Number of events passed on to hosts.
    passed_on: u64,
}

/// Effect of an event of the rack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// A host has to do something: the host, the number of the order, the event.
    Host(u16, u64, HostEvent),
    /// The measured time begins.
    Warm,
}

impl Rack {
    pub fn new(plan: &Plan, sources: Vec<Source>) -> Rack {
        let mut agenda = RankedAgenda::new();
        agenda.push(Nanos::from_micros(plan.experiment.spec.warmup_us), RackEvent::Warm);
        for (nth, one) in plan.traffic.iter().enumerate() {
            agenda.push(one.start, RackEvent::Start(nth));
        }
        Rack { agenda, sources, passed_on: 0 }
    }

    /// When the first event is that must not be passed on to hosts in advance.
    pub fn sudden(&self) -> Nanos {
        self.agenda.due_of(|event| !event.is_foreseen())
    }

    /// Runs the agenda's next event, at `now`, and passes its consequences to `order`.
    pub fn happen(&mut self, plan: &Plan, now: Nanos, order: &mut impl FnMut(Order)) {
        while let Some(event) = self.agenda.pop(now) {
            match event {
                RackEvent::Arrival(traffic) => {
                    let (pair, size) = plan.traffic[traffic].draw(&mut self.sources[traffic].random);
                    self.plan_arrival(plan, traffic, now);
                    self.arrive(plan, traffic, pair, size, order);
                }
                RackEvent::Start(traffic) => self.start(plan, traffic, now, order),
                RackEvent::Round(traffic) => self.round(plan, traffic, now, order),
                RackEvent::Replay(traffic) => self.replay(plan, traffic, now, order),
                RackEvent::Warm => order(Order::Warm),
            }
        }
    }

    /// Passes an event to a flow's sender.
    fn pass_on(&mut self, plan: &Plan, flow: FlowId, event: HostEvent, order: &mut impl FnMut(Order)) {
        self.passed_on += 1;
        order(Order::Host(plan.flows[flow as usize].src, self.passed_on, event));
    }

    fn start(&mut self, plan: &Plan, traffic: usize, now: Nanos, order: &mut impl FnMut(Order)) {
        let one = &plan.traffic[traffic];
        match one.spec.arrivals {
            Arrivals::Poisson => self.plan_arrival(plan, traffic, now),
            Arrivals::Saturate => {
                for flow in one.flows.clone() {
                    self.pass_on(plan, flow, HostEvent::Begin(plan.flows[flow as usize].out), order);
                }
            }
            Arrivals::Rpc => {
                let half = (one.flows.end - one.flows.start) / 2;
                for flow in one.flows.start..one.flows.start + half {
                    self.pass_on(plan, flow, HostEvent::BeginAsking(flow), order);
                }
            }
            Arrivals::Rounds => self.round(plan, traffic, now, order),
            Arrivals::Trace => self.replay(plan, traffic, now, order),
        }
    }

    fn plan_arrival(&mut self, plan: &Plan, traffic: usize, now: Nanos) {
        let one = &plan.traffic[traffic];
        let gap = self.sources[traffic].random.exponential(one.gap_ns);
        let at = now.saturating_add(Nanos(gap.round() as u64));
        if at < one.stop {
            self.agenda.push(at, RackEvent::Arrival(traffic));
        }
    }

    /// A pair of hosts has a message.
    fn arrive(&mut self, plan: &Plan, traffic: usize, pair: usize, size: u32, order: &mut impl FnMut(Order)) {
        let one = &plan.traffic[traffic];
        let first = one.flows.start + (pair * one.spec.flows) as FlowId;
        self.pass_on(plan, first, HostEvent::Arrive(first, size), order);
    }

    /// Starts the messages of a trace that are due.
    fn replay(&mut self, plan: &Plan, traffic: usize, now: Nanos, order: &mut impl FnMut(Order)) {
        let one = &plan.traffic[traffic];
        while let Some(entry) = self.sources[traffic].trace.last().copied() {
            let at = one.start + entry.time;
            if at >= one.stop {
                return;
            }
            if at > now {
                self.agenda.push(at, RackEvent::Replay(traffic));
                return;
            }
            self.sources[traffic].trace.pop();
            self.arrive(plan, traffic, entry.pair, entry.bytes, order);
        }
    }

    fn round(&mut self, plan: &Plan, traffic: usize, now: Nanos, order: &mut impl FnMut(Order)) {
        let one = &plan.traffic[traffic];
        if now >= one.stop {
            return;
        }
        let source = &mut self.sources[traffic];
        source.round_open = one.flows.len() * one.layers.len().max(1);
        source.round_began = now;
        for flow in one.flows.clone() {
            let out = plan.flows[flow as usize].out;
            if one.layers.is_empty() {
                self.pass_on(plan, flow, HostEvent::Submit(out, None), order);
            }
            for size in &one.layers {
                self.pass_on(plan, flow, HostEvent::Submit(out, Some(*size)), order);
            }
        }
    }

    /// A message of a round is complete.
    pub fn take_part(&mut self, plan: &Plan, part: RoundPart, stats: &mut [TrafficStats]) {
        let RoundPart { traffic, done, size, measured } = part;
        let source = &mut self.sources[traffic];
        source.round_open -= 1;
        if source.round_open == 0 {
            if measured {
                stats[traffic].record(&plan.traffic[traffic], size, done - source.round_began);
            }
            self.agenda.push(done, RackEvent::Round(traffic));
        }
    }
}
