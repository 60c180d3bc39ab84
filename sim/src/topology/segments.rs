//! TCP segments of a scripted host's connections, sent and received.

use super::counts::Counts;
use super::frame::{Segment, offset, ranges};
use super::host::{HostNode, Receiver, Sender};
use super::plan::{Flow, Plan};
use super::wires::Wires;
use crate::transport::wire::RANGES;
use p4rack_wire::Nanos;

/// While more than this waits in front of the link, senders give it no further segments, as with TCP's small queues.
const LINK_QUEUE: Nanos = Nanos::from_micros(100);

impl HostNode {
    /// Writes, sends, and handles timers of a flow that begins here.
    pub(super) fn drive(&mut self, out: usize, plan: &Plan, wires: &mut Wires, counts: &mut Counts) {
        let now = self.now;
        let id = self.out[out].id;
        let flow = &plan.flows[usize::from(id)];
        let Sender::Stream(stream) = &mut self.out[out].sender else { return };
        stream.write(now);
        let mut probe = stream.sender.handle_timeout(now);
        loop {
            let Sender::Stream(stream) = &mut self.out[out].sender else { return };
            let backlog = self.outlet.link.backlog(now);
            let waits = match &self.agent {
                Some(agent) => agent.busy_for(flow.headers.destination()),
                None => backlog.saturating_sub(LINK_QUEUE),
            };
            if waits > Nanos::ZERO && probe.is_none() && stream.sender.can_send() {
                stream.blocked = now + waits;
                break;
            }
            let Some(next) = probe.take().or_else(|| stream.sender.poll(now)) else { break };
            let markable = stream.sender.control.markable();
            let segment = Segment {
                flow: id,
                start: next.start as u32,
                next: 0,
                bytes: next.bytes,
                push: next.last,
                marked: false,
                echo: false,
                ranges: [(0, 0); RANGES],
                count: 0,
            };
            self.out[out].sent += 1;
            self.segment(flow, (&segment, markable), false, wires, counts);
        }
        if let Sender::Stream(stream) = &mut self.out[out].sender {
            stream.plan(now);
        }
    }

    fn segment(
        &mut self,
        flow: &Flow,
        (segment, markable): (&Segment, bool),
        back: bool,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        let headers = if back { &flow.back } else { &flow.headers };
        let mut frame = wires.frames.take(segment.bytes < 150);
        headers.segment(segment, markable, &mut frame);
        counts.traffic[usize::from(flow.traffic)].sent += 1;
        self.send(frame, wires, counts);
    }

    /// A segment of a flow that ends here.
    pub(super) fn take_segment(
        &mut self,
        flow: &Flow,
        segment: &Segment,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        let into = &mut self.into[flow.into as usize];
        let Receiver::Stream(end) = &mut into.receiver else { return };
        let traffic = &mut counts.traffic[usize::from(flow.traffic)];
        let expected = end.receiver.expected();
        let in_window = |start: &u64| *start <= expected + plan.tcp.window_bytes;
        let Some(start) = offset(segment.start, expected).filter(in_window) else {
            traffic.damaged += 1;
            return;
        };
        let before = end.receiver.received();
        let bytes = u64::from(segment.bytes);
        let (first, _, second) = end.receiver.handle(start, bytes, segment.push, segment.marked);
        let new = end.receiver.received() - before;
        match new {
            0 => traffic.twice += 1,
            _ => {
                into.received += 1;
                traffic.received += 1;
            }
        }
        if plan.measures(self.now) {
            into.bytes += new;
            traffic.bytes += new;
        }
        for ack in first.into_iter().chain(second) {
            let answer = Segment {
                start: 0,
                next: ack.next as u32,
                bytes: 0,
                push: false,
                echo: ack.marked,
                ranges: ack.ranges.map(|(from, to)| (from as u32, to as u32)),
                count: ack.count,
                ..*segment
            };
            self.segment(flow, (&answer, false), true, wires, counts);
        }
    }

    /// An acknowledgement for a flow that begins here.
    pub(super) fn take_acknowledgement(
        &mut self,
        out: usize,
        segment: &Segment,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        let now = self.now;
        let id = usize::from(self.out[out].id);
        let traffic = &mut counts.traffic[usize::from(plan.flows[id].traffic)];
        let own = &mut self.out[out];
        let Sender::Stream(stream) = &mut own.sender else { return };
        let near = stream.sender.acknowledged();
        let is_sent = |next: &u64| *next <= stream.sender.written() - stream.sender.unsent();
        let Some(next) = offset(segment.next, near).filter(is_sent) else {
            traffic.damaged += 1;
            return;
        };
        traffic.received += 1;
        let mut sacked = [(0, 0); RANGES];
        let mut count = 0;
        for (place, range) in sacked.iter_mut().zip(ranges(segment, near)) {
            *place = range;
            count += 1;
        }
        stream.sender.handle_ack(next, segment.echo, &sacked[..count], now);
        let acknowledged = stream.sender.acknowledged();
        while let Some((_, written)) = stream.open.pop_front_if(|(end, _)| *end <= acknowledged) {
            if plan.measures(written) {
                let latency = now.saturating_sub(written).0.max(1);
                traffic.latency.record(latency);
                if let Some(own) = &mut own.latency {
                    own.record(latency);
                }
            }
        }
        self.drive(out, plan, wires, counts);
    }
}
