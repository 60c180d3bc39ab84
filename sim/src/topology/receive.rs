//! Frames that arrive at a host: its agent takes them, sinks count datagrams, servers answer, clients measure.

use super::counts::Counts;
use super::frame::{FrameContent, Tag, UDP_HEADERS, find};
use super::host::{BACK, HostNode, Receiver, Sender};
use super::plan::{Flow, Plan, Planted};
use super::sender::{Part, parts};
use super::wires::Wires;
use p4rack_wire::Nanos;

impl HostNode {
    /// A frame has arrived. Returns the sender that may have something else to do now.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        frame: &[u8],
        received_at: Nanos,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) -> Option<usize> {
        self.digest.frame(self.now, frame);
        if Planted::Deaf.is(plan.planted) && counts.arrived == 100 {
            counts.arrived += 1;
            return None;
        }
        counts.arrived += 1;
        if self.captured.is_some() {
            self.capture(frame);
        }
        if let Some(machines) = &mut self.machines
            && machines.take_frame(frame, received_at, self.now)
        {
            counts.memory += 1;
            return None;
        }
        let Some(agent) = &mut self.agent else { return self.sort(frame, received_at, plan, wires, counts) };
        let mut app = wires.frames.take(frame.len() < 200);
        let changed = match agent.take(frame, received_at, self.now, &mut app) {
            true => self.sort(&app, received_at, plan, wires, counts),
            false => {
                counts.agents += 1;
                None
            }
        };
        wires.frames.release(app);
        changed
    }

    /// Gives a frame to the flow that it belongs to. Returns the sender that may have something else to do now.
    #[inline]
    fn sort(
        &mut self,
        frame: &[u8],
        received_at: Nanos,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) -> Option<usize> {
        if plan.has_packets
            && let Some(changed) = self.take_packet(frame, received_at, plan, wires, counts)
        {
            return changed;
        }
        let found = find(&plan.salt, frame);
        let (id, is_intact) = match &found {
            FrameContent::Datagram(tag, is_intact) => (tag.flow, *is_intact),
            FrameContent::Segment(segment, is_intact) => (segment.flow, *is_intact),
            FrameContent::Other => {
                counts.others += 1;
                return None;
            }
        };
        let Some(flow) = plan.flows.get(usize::from(id)) else {
            counts.others += 1;
            return None;
        };
        let is_back = match &found {
            FrameContent::Datagram(tag, _) => tag.part & BACK != 0,
            FrameContent::Segment(segment, _) => segment.bytes == 0,
            FrameContent::Other => false,
        };
        let end = if is_back { flow.from } else { flow.to };
        if usize::from(end) != self.index {
            counts.elsewhere += 1;
            return None;
        }
        if !is_intact {
            counts.traffic[usize::from(flow.traffic)].damaged += 1;
            return None;
        }
        match found {
            FrameContent::Datagram(tag, _) if is_back => self.answered(flow, &tag, frame.len(), plan, counts),
            FrameContent::Datagram(tag, _) => {
                self.take(flow, &tag, frame.len(), plan, wires, counts);
                None
            }
            FrameContent::Segment(segment, _) if is_back => {
                self.take_acknowledgement(flow.out as usize, &segment, plan, wires, counts);
                Some(flow.out as usize)
            }
            FrameContent::Segment(segment, _) => {
                self.take_segment(flow, &segment, plan, wires, counts);
                None
            }
            FrameContent::Other => None,
        }
    }

    /// A datagram of a flow that ends here.
    #[inline]
    pub(super) fn take(
        &mut self,
        flow: &Flow,
        tag: &Tag,
        len: usize,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        let into = &mut self.into[flow.into as usize];
        let traffic = &mut counts.traffic[usize::from(flow.traffic)];
        let bytes = payload(len);
        let measures = plan.measures(self.now);
        if let Receiver::Server(server) = &mut into.receiver {
            let Part::First(answer) = server.take(tag.number, tag.part, tag.last) else {
                traffic.twice += 1;
                return;
            };
            traffic.received += 1;
            into.received += 1;
            into.bytes += if measures { bytes } else { 0 };
            traffic.bytes += if measures { bytes } else { 0 };
            if let Some(answer) = answer {
                let last = parts(answer).count().saturating_sub(1) as u8;
                for (part, bytes) in parts(answer).enumerate() {
                    let tag = Tag { part: part as u8 | BACK, last, ..*tag };
                    let mut frame = wires.frames.take(bytes < 200);
                    flow.back.datagram(&tag, bytes, &mut frame);
                    counts.traffic[usize::from(flow.traffic)].sent += 1;
                    self.send(frame, wires, counts);
                }
            }
            return;
        }
        let (twice, reordered) = (into.arrived.twice, into.arrived.reordered);
        if into.arrived.add(tag.number) {
            into.received += 1;
            traffic.received += 1;
            if measures {
                into.bytes += bytes;
                traffic.bytes += bytes;
            }
            if plan.measures(tag.time) {
                let latency = self.now.saturating_sub(tag.time).0.max(1);
                traffic.latency.record(latency);
                if let Some(own) = &mut into.latency {
                    own.record(latency);
                }
            }
        }
        traffic.twice += into.arrived.twice - twice;
        traffic.reordered += into.arrived.reordered - reordered;
    }

    /// A part of an answer has arrived.
    pub(super) fn answered(
        &mut self,
        flow: &Flow,
        tag: &Tag,
        len: usize,
        plan: &Plan,
        counts: &mut Counts,
    ) -> Option<usize> {
        let out = &mut self.out[flow.out as usize];
        let traffic = &mut counts.traffic[usize::from(flow.traffic)];
        let Sender::Requests(requests) = &mut out.sender else {
            traffic.received += 1;
            return None;
        };
        let Part::First(latency) = requests.answered(tag.number, tag.part & !BACK, tag.last, self.now) else {
            traffic.twice += 1;
            return None;
        };
        traffic.received += 1;
        if plan.measures(self.now) {
            out.answer_bytes += payload(len);
            traffic.bytes += payload(len);
        }
        let latency = latency?;
        out.answers += 1;
        if plan.measures(tag.time) {
            traffic.latency.record(latency.0.max(1));
            if let Some(own) = &mut out.latency {
                own.record(latency.0.max(1));
            }
        }
        Some(flow.out as usize)
    }
}

/// Payload bytes of a datagram's frame.
fn payload(len: usize) -> u64 {
    (len as u64).saturating_sub(UDP_HEADERS as u64)
}
