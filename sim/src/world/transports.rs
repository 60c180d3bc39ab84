//! Input and output of the transports' state machines.

use super::Group;
use crate::agenda::HostEvent;
use crate::flow::Machine;
use crate::message::FlowId;
use crate::transport::rds::{self, Reply};
use crate::transport::tcp;
use crate::transport::wire::{Pdu, PduKind};
use p4rack_wire::Nanos;

impl Group {
    /// A frame of a transport has arrived at a host.
    pub(super) fn take_transport(&mut self, at: usize, frame: &Pdu) {
        let Some(ends) = self.plan.flows.get(frame.flow as usize) else { return };
        let host = self.nodes[at].host.index;
        let (out, into) = (ends.out, ends.into as usize);
        let (sends, receives) = (usize::from(ends.src) == host, usize::from(ends.dst) == host);
        if receives && frame.kind == PduKind::Data {
            match self.plan.traffic[usize::from(ends.traffic)].spec.transport.is_tcp() {
                true => self.take_segment(at, into, frame),
                false => self.take_rds(at, into, frame),
            }
        } else if sends {
            self.take_answer(at, out, frame);
        }
    }

    fn take_segment(&mut self, at: usize, into: usize, frame: &Pdu) {
        let src = usize::from(self.plan.flows[frame.flow as usize].src);
        let flow = &mut self.nodes[at].inflows[into];
        let Some(receiver) = &mut flow.tcp else { return };
        let before = receiver.received();
        let (first, new, second) = receiver.handle(frame.a, frame.bytes.into(), frame.b == 1, frame.marked);
        let received = receiver.received() - before;
        for ack in first.into_iter().chain(second) {
            let answer = Pdu {
                ranges: ack.ranges,
                count: ack.count,
                ..Pdu::new(PduKind::Ack, frame.flow, ack.next, u64::from(ack.marked))
            };
            self.send_pdu(at, src, &answer, tcp::HEADER_BYTES);
        }
        self.count_bytes(at, into, frame.flow, received);
        self.arrive_in_order(at, into, frame.flow, new);
    }

    /// More bytes of a flow's messages have arrived, in order.
    fn arrive_in_order(&mut self, at: usize, into: usize, id: FlowId, mut bytes: u64) {
        while bytes > 0 {
            let flow = &mut self.nodes[at].inflows[into];
            let Some((_, message)) = flow.open.front_mut() else { return };
            let taken = bytes.min(u64::from(message.size - message.received));
            message.received += taken as u32;
            bytes -= taken;
            if message.received < message.size {
                return;
            }
            if let Some((first, message)) = flow.open.pop_front() {
                self.whole(at, id, first, &message);
            }
        }
    }

    fn count_bytes(&mut self, at: usize, into: usize, flow: FlowId, bytes: u64) {
        if self.measures() {
            let node = &mut self.nodes[at];
            node.inflows[into].arrived += bytes;
            let traffic = usize::from(self.plan.flows[flow as usize].traffic);
            self.counts.traffic[traffic].bytes += bytes;
            node.received += bytes;
        }
    }

    fn take_rds(&mut self, at: usize, into: usize, frame: &Pdu) {
        let part = rds::Part {
            message: frame.message,
            key: (frame.b >> 32) as u32,
            size: frame.b as u32,
            offset: frame.a,
            bytes: frame.bytes,
            again: frame.count > 0,
        };
        let (new, whole) = self.nodes[at].host.rds.handle(frame.flow, &part, self.now);
        self.count_bytes(at, into, frame.flow, new);
        if whole {
            let flow = &mut self.nodes[at].inflows[into];
            let place = flow.open.iter().position(|(open, _)| *open == frame.message);
            if let Some((id, message)) = place.and_then(|place| flow.open.remove(place)) {
                self.whole(at, frame.flow, id, &message);
            }
        }
        self.receive_on(at);
    }

    /// Sends the frames of a host's receiving end, and sets its timer.
    fn receive_on(&mut self, at: usize) {
        while let Some(reply) = self.nodes[at].host.rds.poll() {
            let frame = match reply {
                Reply::Grant { flow, key, to } => Pdu::new(PduKind::Grant, flow, to, key.into()),
                Reply::Done { flow, key } => Pdu::new(PduKind::Done, flow, 0, key.into()),
                Reply::Resend { flow, key, ranges, count } => {
                    Pdu { ranges, count, ..Pdu::new(PduKind::Resend, flow, 0, key.into()) }
                }
            };
            let src = usize::from(self.plan.flows[frame.flow as usize].src);
            self.send_pdu(at, src, &frame, 0);
        }
        let one = &mut self.nodes[at].host;
        if let Some(due) = one.rds.next_timeout() {
            let due = due.max(self.now);
            if due < one.rds_at {
                one.rds_at = due;
                one.agenda.push(due, HostEvent::Receiver);
            }
        }
    }

    pub(super) fn receiver_timer(&mut self, at: usize) {
        let one = &mut self.nodes[at].host;
        if self.now < one.rds_at || self.now >= one.dies {
            return;
        }
        one.rds_at = Nanos::MAX;
        one.rds.handle_timeout(self.now);
        self.receive_on(at);
        self.drain_host(at);
    }

    fn take_answer(&mut self, at: usize, out: u32, frame: &Pdu) {
        let flow = &mut self.nodes[at].outflows[out as usize];
        let key = frame.b as u32;
        let ranges = &frame.ranges[..frame.count];
        match (&mut flow.transport, frame.kind) {
            (Machine::Tcp(sender), PduKind::Ack) => {
                sender.handle_ack(frame.a, frame.b == 1, ranges, self.now)
            }
            (Machine::Rds(sender), PduKind::Grant) => sender.handle_grant(key, frame.a, self.now),
            (Machine::Rds(sender), PduKind::Resend) => sender.handle_resend(key, ranges, self.now),
            (Machine::Rds(sender), PduKind::Done) => sender.handle_done(key),
            _ => return,
        }
        self.resume(at, out);
    }

    /// Puts a flow that may have more to send back into its host's queue.
    fn resume(&mut self, at: usize, out: u32) {
        let node = &mut self.nodes[at];
        let flow = &mut node.outflows[out as usize];
        let dst = usize::from(flow.dst);
        if flow.transport.can_send() {
            node.host.list(out, flow);
            self.feed(at, dst);
            self.transport_frames += 1;
        }
        self.plan_timer(at, out);
    }

    fn send_pdu(&mut self, at: usize, to: usize, frame: &Pdu, header_bytes: usize) {
        self.counts.frames_given += 1;
        self.transport_frames += 1;
        self.nodes[at].host.send_pdu(to, frame, header_bytes, self.now);
    }

    /// Puts a flow's timer on the agenda, unless an earlier one is already there.
    #[inline]
    pub(super) fn plan_timer(&mut self, at: usize, out: u32) {
        let node = &mut self.nodes[at];
        let flow = &mut node.outflows[out as usize];
        if matches!(flow.transport, Machine::Raw) {
            return;
        }
        if let Some(due) = flow.transport.next_timeout()
            && due < flow.timer_at
        {
            flow.timer_at = due;
            node.host.agenda.push(due.max(self.now), HostEvent::Timer(out));
        }
    }

    pub(super) fn timer(&mut self, at: usize, out: u32) {
        let node = &mut self.nodes[at];
        let flow = &mut node.outflows[out as usize];
        if self.now < flow.timer_at || self.now >= node.host.dies {
            return;
        }
        flow.timer_at = Nanos::MAX;
        match &mut flow.transport {
            Machine::Raw => {}
            Machine::Rds(sender) => sender.handle_timeout(self.now),
            Machine::Tcp(sender) => {
                let markable = sender.control.markable();
                if let Some(segment) = sender.handle_timeout(self.now) {
                    self.counts.frames_given += 1;
                    node.host.probe(flow.id, usize::from(flow.dst), &segment, markable, self.now);
                }
            }
        }
        self.resume(at, out);
        self.drain_host(at);
    }
}
