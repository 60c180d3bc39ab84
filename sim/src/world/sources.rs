//! When threads have messages.

use super::World;
use crate::agenda::{HostEvent, RackEvent};
use crate::experiment::Arrivals;
use crate::message::FlowId;
use p4rack_wire::Nanos;

impl World {
    /// What the rack's agenda says.
    pub(super) fn happen(&mut self) {
        while let Some(event) = self.agenda.pop(self.now) {
            match event {
                RackEvent::Arrival(traffic) => self.poisson(traffic),
                RackEvent::Start(traffic) => self.start(traffic),
                RackEvent::Round(traffic) => self.round(traffic),
                RackEvent::Replay(traffic) => self.replay(traffic),
                RackEvent::Warm => self.warm(),
            }
        }
    }

    /// What a host's agenda says.
    pub(super) fn happen_at(&mut self, host: usize) {
        while let Some(event) = self.nodes[host].host.agenda.pop(self.now) {
            match event {
                HostEvent::Ready(flow, message, size) => {
                    self.ready(flow, message, size);
                    self.go(flow);
                }
                HostEvent::Answer(flow, created) => {
                    self.submit(flow, created, false);
                    self.go(flow);
                }
                HostEvent::Ask(flow) => {
                    self.submit(flow, self.now, false);
                    self.go(flow);
                }
                HostEvent::Timer(flow) => self.timer(flow),
                HostEvent::Receiver => self.receiver_timer(host),
                HostEvent::Pause(paused) => self.pause(host, paused),
                HostEvent::Die => self.nodes[host].host.machine_due = Nanos::MAX,
            }
        }
    }

    /// A flow's host looks whether it can send.
    pub(super) fn go(&mut self, flow: FlowId) {
        let flow = &self.flows[flow as usize];
        let (host, destination) = (usize::from(flow.src), usize::from(flow.dst));
        self.feed(host, destination);
        self.drain_host(host);
        let one = &mut self.nodes[host].host;
        one.now = one.now.max(self.now);
        self.hosts_due.hasten(host, one.machine_due);
    }

    fn start(&mut self, traffic: usize) {
        let one = &self.traffic[traffic];
        let (flows, threads) = (one.flows.clone(), one.spec.flows as FlowId);
        match one.spec.arrivals {
            Arrivals::Poisson => self.plan_arrival(traffic),
            Arrivals::Saturate => {
                for flow in flows {
                    self.submit(flow, self.now, true);
                    self.go(flow);
                }
            }
            Arrivals::Rpc => {
                let half = (flows.end - flows.start) / 2;
                for flow in flows.start..flows.start + half {
                    // Not all at the same instant.
                    let host = usize::from(self.flows[flow as usize].src);
                    let random = &mut self.nodes[host].host.random;
                    let spread = random.below(1_000 * u64::from(threads.max(1)));
                    // Under YCSB a client's thread asks one server at a time, so one flow a thread begins.
                    let one = &mut self.traffic[traffic];
                    if one.spec.ycsb.is_some() {
                        let pair = (flow - flows.start) as usize / one.spec.flows;
                        let first = one.pairs.iter().position(|(from, _)| *from == one.pairs[pair].0);
                        if first != Some(pair) {
                            continue;
                        }
                    }
                    let flow = one.next_ask(flow, random);
                    self.at_host(host, self.now + Nanos(spread), HostEvent::Ask(flow));
                }
            }
            Arrivals::Rounds => self.round(traffic),
            Arrivals::Trace => self.replay(traffic),
        }
    }

    fn plan_arrival(&mut self, traffic: usize) {
        let one = &mut self.traffic[traffic];
        let gap = one.random.exponential(one.gap_ns);
        let at = self.now.saturating_add(Nanos(gap.round() as u64));
        if at < one.stop {
            self.agenda.push(at, RackEvent::Arrival(traffic));
        }
    }

    fn poisson(&mut self, traffic: usize) {
        let (pair, size) = self.traffic[traffic].draw();
        self.plan_arrival(traffic);
        if let Some(flow) = self.idle(traffic, pair) {
            self.submit_sized(flow, self.now, false, Some(size));
            self.go(flow);
        }
    }

    /// The first idle thread of a pair, or the one with the fewest messages waiting.
    fn idle(&self, traffic: usize, pair: usize) -> Option<FlowId> {
        let one = &self.traffic[traffic];
        let threads = one.spec.flows as FlowId;
        let first = one.flows.start + pair as FlowId * threads;
        (first..first + threads).min_by_key(|flow| self.flows[*flow as usize].queue.len())
    }

    /// Messages of a trace whose time has come.
    fn replay(&mut self, traffic: usize) {
        let start = self.traffic[traffic].start;
        while let Some(entry) = self.traffic[traffic].trace.last().copied() {
            let at = start + entry.time;
            if at >= self.traffic[traffic].stop {
                return;
            }
            if at > self.now {
                self.agenda.push(at, RackEvent::Replay(traffic));
                return;
            }
            self.traffic[traffic].trace.pop();
            if let Some(flow) = self.idle(traffic, entry.pair) {
                self.submit_sized(flow, self.now, false, Some(entry.bytes));
                self.go(flow);
            }
        }
    }

    fn round(&mut self, traffic: usize) {
        let one = &mut self.traffic[traffic];
        if self.now >= one.stop {
            return;
        }
        let flows = one.flows.clone();
        let layers = one.layers.clone();
        one.round_open = flows.len() * layers.len().max(1);
        one.round_began = self.now;
        for flow in flows {
            match layers.is_empty() {
                true => self.submit(flow, self.now, false),
                false => layers.iter().for_each(|size| self.submit_sized(flow, self.now, false, Some(*size))),
            }
            self.go(flow);
        }
    }
}
