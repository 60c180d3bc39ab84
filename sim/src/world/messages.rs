//! Messages: from the sending thread to frames, and from frames to the receiving thread.

use super::World;
use crate::agenda::{HostEvent, RackEvent};
use crate::experiment::{Arrivals, TimedFrom};
use crate::flow::{Flow, Machine};
use crate::message::{FROM_TURN, FlowId, Head, MEASURED, Message, MessageId, Outgoing};
use p4rack_wire::Nanos;

impl World {
    /// A thread has a message. `ahead`: it was prepared before, so it is at the machine already.
    pub(super) fn submit(&mut self, flow: FlowId, created: Nanos, ahead: bool) {
        self.submit_sized(flow, created, ahead, None);
    }

    /// The same for a message of known size.
    pub(super) fn submit_sized(&mut self, flow: FlowId, created: Nanos, ahead: bool, size: Option<u32>) {
        let Flow { src, traffic, .. } = self.flows[flow as usize];
        if self.nodes[usize::from(src)].host.hostile.is_some() {
            return;
        }
        let one = &mut self.traffic[usize::from(traffic)];
        if self.flows[flow as usize].queue.len() >= one.spec.queue_limit {
            one.stats.refused += u64::from(self.measuring);
            return;
        }
        let host = usize::from(self.flows[flow as usize].src);
        let random = &mut self.nodes[host].host.random;
        let size = size.unwrap_or_else(|| one.size(flow, random)).max(1);
        one.stats.made += u64::from(self.measuring);
        let from_turn = one.spec.timed_from == TimedFrom::Turn;
        let tag = (u32::from(self.measuring) * MEASURED) | (u32::from(from_turn) * FROM_TURN);
        let dma = self.dma.as_ref().filter(|_| !ahead).map(|dma| Nanos(dma.sample(random)));
        let Flow { dst, messages, .. } = &mut self.flows[flow as usize];
        let message = messages.add(size, created, tag);
        if let Some(recorder) = &mut self.recorder {
            recorder.begins(self.messages_made, (flow, message), (host, (*dst).into()));
        }
        self.messages_made += 1;
        match dma {
            Some(dma) => self.at_host(host, self.now + dma, HostEvent::Ready(flow, message, size)),
            None => self.ready(flow, message, size),
        }
    }

    pub(super) fn ready(&mut self, id: FlowId, message: MessageId, size: u32) {
        let flow = &mut self.flows[id as usize];
        let host = usize::from(flow.src);
        flow.queue.push_back(Outgoing { message, size, unsent: size });
        flow.open.push_back(message);
        match &mut flow.transport {
            Machine::Raw => {}
            Machine::Tcp(ends) => ends.0.write(message, size),
            Machine::Rds(sender) => sender.write(message, size),
        }
        self.nodes[host].host.list(id, flow);
    }

    /// A thread has a part of a message.
    pub(super) fn take_part(&mut self, host: usize, head: &Head) {
        self.frames_delivered += 1;
        let Some(flow) = self.flows.get_mut(head.flow as usize) else { return };
        let ahead = head.sequence.wrapping_sub(flow.next_in);
        if ahead > u32::MAX / 2 {
            self.out_of_order += 1;
            return;
        }
        flow.next_in = head.sequence.wrapping_add(1);
        let traffic = usize::from(flow.traffic);
        let one = &mut self.traffic[traffic];
        let in_time = self.measuring && self.now < self.sources_end;
        if in_time {
            one.stats.bytes += u64::from(head.bytes);
            flow.arrived += u64::from(head.bytes);
            self.nodes[host].received += u64::from(head.bytes);
        }
        // Frames of a flow come in order, so whatever lies before this one's message is not coming.
        if flow.open.front() != Some(&head.message) && !flow.open.contains(&head.message) {
            return;
        }
        while let Some(&first) = flow.open.front().filter(|first| **first != head.message) {
            flow.open.pop_front();
            one.stats.lost += u64::from(self.measuring);
            flow.messages.remove(first);
        }
        let Some(message) = flow.messages.get_mut(head.message) else { return };
        message.received += u32::from(head.bytes);
        if message.received < message.size {
            return;
        }
        flow.open.pop_front();
        self.whole(head.flow, head.message);
    }

    /// All of a message is here.
    pub(super) fn whole(&mut self, id: FlowId, message: MessageId) {
        let flow = &mut self.flows[id as usize];
        let (host, traffic) = (usize::from(flow.dst), usize::from(flow.traffic));
        if let Some(recorder) = &mut self.recorder {
            recorder.ends((id, message));
        }
        let Some(message) = flow.messages.remove(message) else { return };
        let random = &mut self.nodes[host].host.random;
        let bus = self.dma.as_ref().map_or(0, |dma| dma.sample(random));
        let done = self.now + Nanos(bus);
        self.arrived(host, id, traffic, &message, done);
    }

    /// A message is whole and with its thread.
    fn arrived(&mut self, host: usize, flow: FlowId, traffic: usize, message: &Message, done: Nanos) {
        let one = &mut self.traffic[traffic];
        let Message { size, created, tag, .. } = *message;
        let measured = tag & MEASURED != 0;
        if let (true, Some(others)) = (measured, &mut self.others) {
            others.note(&self.flows[flow as usize], one.spec.arrivals, done - created);
        }
        match one.spec.arrivals {
            Arrivals::Saturate | Arrivals::Poisson | Arrivals::Trace => {
                if measured {
                    one.record(size, done - created);
                }
            }
            Arrivals::Rpc if one.is_back(flow) => {
                if measured {
                    one.record(size, done - created);
                }
                let forward = one.next_ask(one.forward(flow), &mut self.nodes[host].host.random);
                let next = done + Nanos(one.spec.think_ns);
                if next < one.stop {
                    self.at_host(host, next, HostEvent::Ask(forward));
                }
            }
            Arrivals::Rpc => {
                let (back, at) = (one.back(flow), done + Nanos(one.spec.service_ns));
                self.at_host(host, at, HostEvent::Answer(back, created));
            }
            Arrivals::Rounds => {
                one.round_open -= 1;
                if one.round_open == 0 {
                    let took = done - one.round_began;
                    if measured {
                        one.record(size, took);
                    }
                    self.agenda.push(done, RackEvent::Round(traffic));
                }
            }
        }
    }
}
