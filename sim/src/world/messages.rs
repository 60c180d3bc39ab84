//! Messages: from the sending thread to frames, and from frames to the receiving thread.

use super::Group;
use super::group::RoundPart;
use super::mail::{Notice, ToSwitch};
use crate::agenda::HostEvent;
use crate::experiment::Arrivals;
use crate::flow::{Machine, Outflow};
use crate::message::{FlowId, Head, MEASURED, Message, MessageId, Outgoing, WRITES};
use crate::traffic::Operation;
use p4rack_wire::Nanos;

impl Group {
    /// A thread has a message to send. `ahead`: it was prepared in advance and is at the machine already.
    pub(super) fn submit(&mut self, at: usize, flow: u32, created: Nanos, ahead: bool) {
        let writes = self.nodes[at].outflows[flow as usize].operation == Operation::Update;
        self.submit_sized(at, flow, created, ahead, writes, None);
    }

    /// The same for a message of known size; `writes`: it belongs to a request to write a record.
    pub(super) fn submit_sized(
        &mut self,
        at: usize,
        flow: u32,
        created: Nanos,
        ahead: bool,
        writes: bool,
        size: Option<u32>,
    ) {
        let node = &mut self.nodes[at];
        if node.host.hostile.is_some() {
            return;
        }
        let outflow = &mut node.outflows[flow as usize];
        let traffic = usize::from(outflow.traffic);
        let (one, stats) = (&self.plan.traffic[traffic], &mut self.counts.traffic[traffic]);
        if outflow.queue.len() >= one.spec.queue_limit {
            stats.refused += u64::from(self.measuring);
            return;
        }
        let random = &mut node.host.random;
        let size = size.unwrap_or_else(|| one.size(outflow.id, writes, random)).max(1);
        stats.made += u64::from(self.measuring);
        let tag = (u32::from(self.measuring) * MEASURED) | (u32::from(writes) * WRITES);
        let dma = self.plan.dma.as_ref().filter(|_| !ahead).map(|dma| Nanos(dma.sample(random)));
        let id = outflow.made;
        outflow.made = id.wrapping_add(1);
        if let Some(recorder) = &mut self.recorder {
            let ends = (node.host.index, usize::from(outflow.dst));
            recorder.begins(self.counts.messages_made, (outflow.id, id), ends);
        }
        self.counts.messages_made += 1;
        let message = Message { size, received: 0, tag, created };
        match dma {
            Some(dma) => node.host.agenda.push(self.now + dma, HostEvent::Ready(flow, id, message)),
            None => self.ready(at, flow, id, message),
        }
    }

    pub(super) fn ready(&mut self, at: usize, flow: u32, id: MessageId, message: Message) {
        let node = &mut self.nodes[at];
        let outflow = &mut node.outflows[flow as usize];
        let size = message.size;
        outflow.queue.push_back(Outgoing { message: id, size, unsent: size });
        self.outbox.push(Nanos::MAX, ToSwitch::Notice(outflow.id, Notice::Message(id, message)));
        match &mut outflow.transport {
            Machine::Raw => {}
            Machine::Tcp(sender) => sender.write(id, size),
            Machine::Rds(sender) => sender.write(id, size),
        }
        node.host.list(flow, outflow);
    }

    /// A part of a message reaches its thread.
    pub(super) fn take_part(&mut self, at: usize, head: &Head) {
        self.counts.frames_delivered += 1;
        let in_time = self.measures();
        let node = &mut self.nodes[at];
        let Some(ends) = self.plan.flows.get(head.flow as usize) else { return };
        if usize::from(ends.dst) != node.host.index {
            return;
        }
        let flow = &mut node.inflows[ends.into as usize];
        let ahead = head.sequence.wrapping_sub(flow.next_in);
        if ahead > u32::MAX / 2 {
            self.counts.out_of_order += 1;
            return;
        }
        flow.next_in = head.sequence.wrapping_add(1);
        let stats = &mut self.counts.traffic[usize::from(ends.traffic)];
        if in_time {
            stats.bytes += u64::from(head.bytes);
            flow.arrived += u64::from(head.bytes);
            node.received += u64::from(head.bytes);
        }
        // Frames of a flow arrive in order, so older messages that are still open are lost.
        let known = |(id, _): &(MessageId, Message)| *id == head.message;
        if !flow.open.front().is_some_and(known) {
            let Some(before) = flow.open.iter().position(known) else { return };
            flow.open.drain(..before);
            stats.lost += u64::from(self.measuring) * before as u64;
            self.counts.messages_ended += before as u64;
        }
        let Some((_, message)) = flow.open.front_mut() else { return };
        message.received += u32::from(head.bytes);
        if message.received < message.size {
            return;
        }
        if let Some((id, message)) = flow.open.pop_front() {
            self.whole(at, head.flow, id, &message);
        }
    }

    /// A message is complete at its receiver.
    pub(super) fn whole(&mut self, at: usize, flow: FlowId, id: MessageId, message: &Message) {
        if let Some(recorder) = &mut self.recorder {
            recorder.ends((flow, id));
        }
        self.counts.messages_ended += 1;
        let random = &mut self.nodes[at].host.random;
        let bus = self.plan.dma.as_ref().map_or(0, |dma| dma.sample(random));
        self.arrived(at, flow, message, self.now + Nanos(bus));
    }

    /// A complete message is with its thread.
    fn arrived(&mut self, at: usize, flow: FlowId, message: &Message, done: Nanos) {
        let ends = self.plan.flows[flow as usize];
        let traffic = usize::from(ends.traffic);
        let (one, stats) = (&self.plan.traffic[traffic], &mut self.counts.traffic[traffic]);
        let Message { size, created, tag, .. } = *message;
        let measured = tag & MEASURED != 0;
        if let (true, Some(watched), Some(others)) = (measured, &self.plan.watched, &mut self.counts.others)
            && !watched.concerns(&ends, one.spec.arrivals)
        {
            others.record((done - created).0.max(1));
        }
        match one.spec.arrivals {
            Arrivals::Saturate | Arrivals::Poisson | Arrivals::Trace => {
                if measured {
                    stats.record(one, size, done - created);
                }
            }
            Arrivals::Rpc if one.is_back(flow) => {
                if measured {
                    stats.record(one, size, done - created);
                }
                let forward = self.next_ask(at, one.forward(flow));
                let one = &self.plan.traffic[traffic];
                let next = done + Nanos(one.spec.think_ns);
                if next < one.stop {
                    self.nodes[at].host.agenda.push(next, HostEvent::Ask(forward));
                }
            }
            Arrivals::Rpc => {
                let back = self.plan.flows[one.back(flow) as usize].out;
                let answer = HostEvent::Answer(back, created, tag & WRITES != 0);
                self.nodes[at].host.agenda.push(done + Nanos(one.spec.service_ns), answer);
            }
            Arrivals::Rounds => self.rounds.push(RoundPart { traffic, done, size, measured }),
        }
    }

    /// The flow (its place at the host) on which the thread of this request flow asks next.
    pub(super) fn next_ask(&mut self, at: usize, flow: FlowId) -> u32 {
        let node = &mut self.nodes[at];
        let ends = &self.plan.flows[flow as usize];
        let one = &self.plan.traffic[usize::from(ends.traffic)];
        let operation = node.outflows[ends.out as usize].operation;
        let (next, operation) = one.next_ask(flow, operation, &mut node.host.random);
        let next = self.plan.flows[next as usize].out;
        let outflow: &mut Outflow = &mut node.outflows[next as usize];
        outflow.operation = operation;
        next
    }
}
