//! Messages: from the sending thread to frames, and from frames to the receiving thread.

use super::{Event, World};
use crate::experiment::{Arrivals, TimedFrom};
use crate::message::{FROM_TURN, Flow, FlowId, Head, MEASURED, Machine, MessageId};
use crate::record::Point;
use p4rack_wire::Nanos;

impl World {
    /// A thread has a message. `ahead`: it was prepared before, so it is at the machine already.
    pub(super) fn submit(&mut self, flow: FlowId, created: Nanos, ahead: bool) {
        self.submit_sized(flow, created, ahead, None);
    }

    /// The same for a message of known size.
    pub(super) fn submit_sized(&mut self, flow: FlowId, created: Nanos, ahead: bool, size: Option<u32>) {
        let traffic = usize::from(self.flows[flow as usize].traffic);
        let one = &mut self.traffic[traffic];
        if self.flows[flow as usize].queue.len() >= one.spec.queue_limit {
            one.stats.refused += u64::from(self.measuring);
            return;
        }
        let size = size.unwrap_or_else(|| one.size(flow, &mut self.random)).max(1);
        one.stats.made += u64::from(self.measuring);
        let from_turn = one.spec.timed_from == TimedFrom::Turn;
        let tag = (u32::from(self.measuring) * MEASURED) | (u32::from(from_turn) * FROM_TURN);
        let message = self.messages.add(flow, size, created, tag);
        if let Some(recorder) = &mut self.recorder {
            let Flow { src, dst, .. } = self.flows[flow as usize];
            recorder.begins(self.messages.count - 1, src.into(), dst.into());
        }
        match (&self.dma, ahead) {
            (Some(dma), false) => {
                let at = self.now + Nanos(dma.sample(&mut self.random));
                self.at(at, Event::Ready(flow, message));
            }
            _ => self.ready(flow, message),
        }
    }

    pub(super) fn ready(&mut self, id: FlowId, message: MessageId) {
        let flow = &mut self.flows[id as usize];
        let host = usize::from(flow.src);
        flow.queue.push_back(message);
        flow.open.push_back(message);
        let size = self.messages.get_mut(message).size;
        match &mut flow.transport {
            Machine::Raw => {}
            Machine::Tcp(ends) => ends.0.write(message, size),
            Machine::Rds(sender) => sender.write(message, size),
        }
        self.hosts[host].list(id, flow);
    }

    /// An application has a frame.
    pub(super) fn deliver(&mut self, host: usize, frame: &[u8]) {
        let Some(head) = Head::parse(frame) else { return };
        self.frames_delivered += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::App(host), self.now, frame, &self.messages);
        }
        let Some(flow) = self.flows.get_mut(head.flow as usize) else { return };
        if !matches!(flow.transport, Machine::Raw) {
            self.take_transport(host, frame);
            return;
        }
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
            self.received[host] += u64::from(head.bytes);
        }
        // Frames of a flow come in order, so whatever lies before this one's message is not coming.
        if flow.open.front() != Some(&head.message) && !flow.open.contains(&head.message) {
            return;
        }
        while let Some(&first) = flow.open.front().filter(|first| **first != head.message) {
            flow.open.pop_front();
            one.stats.lost += u64::from(self.measuring);
            self.messages.remove(first);
        }
        let message = self.messages.get_mut(head.message);
        message.received += u32::from(head.bytes);
        if message.received < message.size {
            return;
        }
        flow.open.pop_front();
        self.whole(head.flow, head.message);
    }

    /// All of a message is here.
    pub(super) fn whole(&mut self, flow: FlowId, message: MessageId) {
        let traffic = usize::from(self.flows[flow as usize].traffic);
        let message = self.messages.remove(message);
        if let Some(recorder) = &mut self.recorder {
            recorder.ends(message.number);
        }
        let bus = self.dma.as_ref().map_or(0, |dma| dma.sample(&mut self.random));
        let done = self.now + Nanos(bus);
        self.arrived(flow, traffic, message.size, message.created, message.tag & MEASURED != 0, done);
    }

    /// A message is whole and with its thread.
    fn arrived(
        &mut self,
        flow: FlowId,
        traffic: usize,
        size: u32,
        created: Nanos,
        measured: bool,
        done: Nanos,
    ) {
        let one = &mut self.traffic[traffic];
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
                let forward = one.next_ask(one.forward(flow), &mut self.random);
                let next = done + Nanos(one.spec.think_ns);
                if next < one.stop {
                    self.at(next, Event::Ask(forward));
                }
            }
            Arrivals::Rpc => {
                let (back, at) = (one.back(flow), done + Nanos(one.spec.service_ns));
                self.at(at, Event::Answer(back, created));
            }
            Arrivals::Rounds => {
                one.round_open -= 1;
                if one.round_open == 0 {
                    let took = done - one.round_began;
                    if measured {
                        one.record(size, took);
                    }
                    self.at(done, Event::Round(traffic));
                }
            }
        }
    }
}
