//! A host's agenda: when its threads have messages to send.

use super::Group;
use crate::agenda::HostEvent;
use crate::message::FlowId;
use p4rack_wire::Nanos;

impl Group {
    /// Runs the next event of a host's agenda.
    pub(super) fn happen_at(&mut self, at: usize) {
        while let Some(event) = self.nodes[at].host.agenda.pop(self.now) {
            match event {
                HostEvent::Ready(flow, id, message) => {
                    self.ready(at, flow, id, message);
                    self.go(at, flow);
                }
                HostEvent::Answer(flow, created, writes) => {
                    self.submit_sized(at, flow, created, false, writes, None);
                    self.go(at, flow);
                }
                HostEvent::Ask(flow) => {
                    self.submit(at, flow, self.now, false);
                    self.go(at, flow);
                }
                HostEvent::Begin(flow) if self.begins(at, flow) > self.now => {
                    let begins = self.begins(at, flow);
                    self.nodes[at].host.agenda.push(begins, HostEvent::Begin(flow));
                }
                HostEvent::Begin(flow) => {
                    self.submit(at, flow, self.now, true);
                    self.go(at, flow);
                }
                HostEvent::BeginAsking(flow) => self.begin_asking(at, flow),
                HostEvent::Submit(flow, size) => {
                    self.submit_sized(at, flow, self.now, false, false, size);
                    self.go(at, flow);
                }
                HostEvent::Arrive(first, size) => {
                    if let Some(flow) = self.idle(at, first) {
                        self.submit_sized(at, flow, self.now, false, false, Some(size));
                        self.go(at, flow);
                    }
                }
                HostEvent::Timer(flow) => self.timer(at, flow),
                HostEvent::Receiver => self.receiver_timer(at),
                HostEvent::Pause(paused) => {
                    self.nodes[at].host.paused = paused;
                    self.drain_host(at);
                }
                HostEvent::Die => self.nodes[at].host.machine_due = Nanos::MAX,
            }
        }
    }

    /// A host checks whether a flow can send.
    fn go(&mut self, at: usize, flow: u32) {
        let destination = usize::from(self.nodes[at].outflows[flow as usize].dst);
        self.feed(at, destination);
        self.drain_host(at);
    }

    /// When a saturated flow begins.
    fn begins(&self, at: usize, flow: u32) -> Nanos {
        let flow = &self.nodes[at].outflows[flow as usize];
        let one = &self.plan.traffic[usize::from(flow.traffic)];
        let (nth, of) = (u64::from(flow.id - one.flows.start), one.flows.len() as u64);
        one.start + Nanos::from_micros(one.spec.stagger_us * nth / of.max(1))
    }

    /// A client's thread begins. Under YCSB it asks one server at a time, so it begins at one of its flows.
    fn begin_asking(&mut self, at: usize, flow: FlowId) {
        let traffic = usize::from(self.plan.flows[flow as usize].traffic);
        let threads = self.plan.traffic[traffic].spec.flows as u64;
        let spread = self.nodes[at].host.random.below(1_000 * threads.max(1));
        if !self.plan.traffic[traffic].begins_at(flow) {
            return;
        }
        let flow = self.next_ask(at, flow);
        self.nodes[at].host.agenda.push(self.now + Nanos(spread), HostEvent::Ask(flow));
    }

    /// The first idle thread of a pair whose first flow this is, or the one with the fewest messages waiting.
    fn idle(&self, at: usize, first: FlowId) -> Option<u32> {
        let traffic = usize::from(self.plan.flows[first as usize].traffic);
        let threads = self.plan.traffic[traffic].spec.flows as FlowId;
        let out = |flow: FlowId| self.plan.flows[flow as usize].out;
        let node = &self.nodes[at];
        let waiting = |flow: &u32| node.host.waiting(&node.outflows[*flow as usize]);
        (first..first + threads).map(out).min_by_key(waiting)
    }
}
