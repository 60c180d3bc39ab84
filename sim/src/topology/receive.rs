//! Datagrams that arrive at a host: sinks count them, servers answer, clients measure.

use super::counts::Counts;
use super::frame::{Tag, UDP_HEADERS};
use super::host::{BACK, HostNode, Receiver, Sender};
use super::plan::{Flow, Plan};
use super::sender::{Part, parts};
use super::wires::Wires;

impl HostNode {
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
