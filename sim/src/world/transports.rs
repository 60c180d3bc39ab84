//! What transports' machines are told, and what they say.

use super::World;
use crate::agenda::HostEvent;
use crate::experiment::{Experiment, SchemeKind};
use crate::flow::Machine;
use crate::frames::FrameId;
use crate::host::rds_config;
use crate::message::{FlowId, host_of};
use crate::switch::Model;
use crate::transport::Transport;
use crate::transport::rds::{self, Reply};
use crate::transport::tcp::{self, Config, Control};
use crate::transport::wire::{self, Pdu, PduKind};
use p4rack_wire::Nanos;

/// The machine of a flow of traffic `nth` that starts at `src`.
pub(super) fn machine(experiment: &Experiment, nth: usize, src: usize) -> Machine {
    let (spec, transport) = (&experiment.spec.transport, experiment.spec.traffic[nth].transport);
    match transport {
        Transport::Raw => Machine::Raw,
        Transport::Rds => Machine::Rds(Box::new(rds::Sender::new(rds_config(experiment, src)))),
        Transport::Tcp | Transport::Cubic | Transport::Dctcp => {
            let config = Config {
                window_bytes: spec.window_bytes.into(),
                rto_min: Nanos::from_micros(spec.rto_min_us),
                probe_min: Nanos::from_micros(spec.probe_min_us),
            };
            let sender = tcp::Sender::new(config, Control::new(transport, spec.window_bytes));
            Machine::Tcp(Box::new((sender, tcp::Receiver::default())))
        }
    }
}

impl World {
    /// Marks a frame that will find much in its port's queues.
    #[inline]
    pub(super) fn mark(&mut self, id: FrameId) {
        if !self.marks {
            return;
        }
        let Some(host) = host_of(self.frames.get(id)) else { return };
        let depth = self.switch.queued_bytes(self.port_of(host));
        if depth > self.experiment.spec.transport.ecn_threshold_bytes {
            wire::mark(self.frames.get_mut(id));
        }
    }

    /// Whether any traffic's frames may be marked.
    pub(super) fn marks(experiment: &Experiment) -> bool {
        experiment.spec.scheme.kind == SchemeKind::Ethernet
            && experiment.spec.traffic.iter().any(|traffic| traffic.transport == Transport::Dctcp)
    }

    /// A frame of a transport has come to `host`.
    pub(super) fn take_transport(&mut self, host: usize, frame: &Pdu) {
        let flow = &self.flows[frame.flow as usize];
        let at_receiver = host == usize::from(flow.dst);
        match (&flow.transport, frame.kind, at_receiver) {
            (Machine::Tcp(_), PduKind::Data, true) => self.take_segment(frame),
            (Machine::Rds(_), PduKind::Data, true) => self.take_rds(host, frame),
            (_, _, false) => self.take_answer(frame),
            _ => {}
        }
    }

    fn take_segment(&mut self, frame: &Pdu) {
        let flow = &mut self.flows[frame.flow as usize];
        let (src, dst) = (usize::from(flow.src), usize::from(flow.dst));
        let Machine::Tcp(ends) = &mut flow.transport else { return };
        let (first, new, second) = ends.1.handle(frame.a, frame.bytes.into(), frame.b == 1, frame.marked);
        for ack in first.into_iter().chain(second) {
            let answer = Pdu {
                ranges: ack.ranges,
                count: ack.count,
                ..Pdu::new(PduKind::Ack, frame.flow, ack.next, u64::from(ack.marked))
            };
            self.tell(dst, src, &answer, tcp::HEADER_BYTES);
        }
        self.arrive_in_order(frame.flow, new);
    }

    /// So many bytes more of a flow's messages are here, in order.
    fn arrive_in_order(&mut self, id: FlowId, mut bytes: u64) {
        self.count_bytes(id, bytes);
        while bytes > 0 {
            let flow = &mut self.flows[id as usize];
            let Some(&first) = flow.open.front() else { return };
            let Some(message) = flow.messages.get_mut(first) else { return };
            let taken = bytes.min(u64::from(message.size - message.received));
            message.received += taken as u32;
            bytes -= taken;
            if message.received < message.size {
                return;
            }
            flow.open.pop_front();
            self.whole(id, first);
        }
    }

    fn count_bytes(&mut self, flow: FlowId, bytes: u64) {
        if self.measuring && self.now < self.sources_end {
            let flow = &mut self.flows[flow as usize];
            flow.arrived += bytes;
            self.traffic[usize::from(flow.traffic)].stats.bytes += bytes;
            self.nodes[usize::from(flow.dst)].received += bytes;
        }
    }

    fn take_rds(&mut self, host: usize, frame: &Pdu) {
        let part = rds::Part {
            message: frame.message,
            key: (frame.b >> 32) as u32,
            size: frame.b as u32,
            offset: frame.a,
            bytes: frame.bytes,
            again: frame.count > 0,
        };
        let (new, whole) = self.nodes[host].host.rds.handle(frame.flow, &part, self.now);
        self.count_bytes(frame.flow, new);
        if whole {
            let flow = &mut self.flows[frame.flow as usize];
            if let Some(at) = flow.open.iter().position(|open| *open == frame.message) {
                flow.open.remove(at);
                self.whole(frame.flow, frame.message);
            }
        }
        self.receive_on(host);
    }

    /// Sends what a host's receiving end has to say, and sets its timer.
    fn receive_on(&mut self, host: usize) {
        while let Some(reply) = self.nodes[host].host.rds.poll() {
            let frame = match reply {
                Reply::Grant { flow, key, to } => Pdu::new(PduKind::Grant, flow, to, key.into()),
                Reply::Done { flow, key } => Pdu::new(PduKind::Done, flow, 0, key.into()),
                Reply::Resend { flow, key, ranges, count } => {
                    Pdu { ranges, count, ..Pdu::new(PduKind::Resend, flow, 0, key.into()) }
                }
            };
            let src = usize::from(self.flows[frame.flow as usize].src);
            self.tell(host, src, &frame, 0);
        }
        if let Some(due) = self.nodes[host].host.rds.next_timeout() {
            let due = due.max(self.now);
            if due < self.nodes[host].host.rds_at {
                self.nodes[host].host.rds_at = due;
                self.at_host(host, due, HostEvent::Receiver);
            }
        }
    }

    pub(super) fn receiver_timer(&mut self, host: usize) {
        if self.now < self.nodes[host].host.rds_at || self.now >= self.nodes[host].host.dies {
            return;
        }
        self.nodes[host].host.rds_at = Nanos::MAX;
        self.nodes[host].host.rds.handle_timeout(self.now);
        self.receive_on(host);
        self.drain_host(host);
    }

    fn take_answer(&mut self, frame: &Pdu) {
        let flow = &mut self.flows[frame.flow as usize];
        let key = frame.b as u32;
        let ranges = &frame.ranges[..frame.count];
        match (&mut flow.transport, frame.kind) {
            (Machine::Tcp(ends), PduKind::Ack) => ends.0.handle_ack(frame.a, frame.b == 1, ranges, self.now),
            (Machine::Rds(sender), PduKind::Grant) => sender.handle_grant(key, frame.a, self.now),
            (Machine::Rds(sender), PduKind::Resend) => sender.handle_resend(key, ranges, self.now),
            (Machine::Rds(sender), PduKind::Done) => sender.handle_done(key),
            _ => return,
        }
        self.resume(frame.flow);
    }

    /// A flow that may have more to send stands in its host's queue again.
    fn resume(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        let (src, dst) = (usize::from(flow.src), usize::from(flow.dst));
        if flow.transport.can_send() {
            self.nodes[src].host.list(id, flow);
            self.feed(src, dst);
            self.told += 1;
        }
        self.plan_timer(id);
    }

    fn tell(&mut self, from: usize, to: usize, frame: &Pdu, header_bytes: usize) {
        self.frames_given += 1;
        self.told += 1;
        self.nodes[from].host.tell(to, frame, header_bytes, self.now);
    }

    /// Puts a flow's timer on the agenda, unless an earlier one is there.
    #[inline]
    pub(super) fn plan_timer(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        if matches!(flow.transport, Machine::Raw) {
            return;
        }
        if let Some(due) = flow.transport.next_timeout()
            && due < flow.timer_at
        {
            flow.timer_at = due;
            let host = usize::from(flow.src);
            self.at_host(host, due.max(self.now), HostEvent::Timer(id));
        }
    }

    pub(super) fn timer(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        let (src, dst) = (usize::from(flow.src), usize::from(flow.dst));
        if self.now < flow.timer_at || self.now >= self.nodes[src].host.dies {
            return;
        }
        flow.timer_at = Nanos::MAX;
        match &mut flow.transport {
            Machine::Raw => {}
            Machine::Rds(sender) => sender.handle_timeout(self.now),
            Machine::Tcp(ends) => {
                let markable = ends.0.control.markable();
                if let Some(segment) = ends.0.handle_timeout(self.now) {
                    self.frames_given += 1;
                    self.nodes[src].host.probe(id, dst, &segment, markable, self.now);
                }
            }
        }
        self.resume(id);
        self.drain_host(src);
    }

    /// Adds up what the flows' machines counted.
    pub fn sum_transports(&mut self) {
        for flow in &self.flows {
            let stats = &mut self.traffic[usize::from(flow.traffic)].stats;
            match &flow.transport {
                Machine::Raw => {}
                Machine::Tcp(ends) => {
                    stats.retransmissions += ends.0.retransmissions;
                    stats.timeouts += ends.0.timeouts;
                }
                Machine::Rds(sender) => stats.retransmissions += sender.retransmissions,
            }
        }
    }
}
