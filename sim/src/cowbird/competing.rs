//! TCP flows from the compute node to a fourth host, whose link is slower: the paper's `iperf3` (§8.4).

use super::experiment::CompetingSpec;
use super::rack::{COMPUTE, SINK};
use crate::transport::tcp::{self, Control, Receiver, Segment, Sender};
use crate::transport::wire::{Pdu, PduKind};
use crate::transport::{Transport, TransportSpec};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::Ethernet;
use std::fmt;

#[derive(Debug)]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    /// When its timer is on the agenda.
    timer: Nanos,
}

pub(super) struct Competing {
    flows: Vec<Flow>,
    /// Index of the flow that sends next.
    next: usize,
    buffer: Box<[u8; 1_514]>,
}

impl fmt::Debug for Competing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Competing").field("flows", &self.flows).finish_non_exhaustive()
    }
}

impl Competing {
    pub fn new(spec: &CompetingSpec) -> Competing {
        let transport = TransportSpec::default();
        let config = tcp::Config {
            window_bytes: transport.window_bytes.into(),
            rto_min: Nanos::from_micros(transport.rto_min_us),
            probe_min: Nanos::from_micros(transport.probe_min_us),
        };
        let flow = |nth: u16| {
            let control = Control::new(Transport::Cubic, transport.window_bytes);
            let mut sender = Sender::new(config, control);
            // More than a flow can send in the longest run.
            (0..4).for_each(|part| sender.write(u32::from(nth) << 2 | part, u32::MAX));
            Flow { sender, receiver: Receiver::default(), timer: Nanos::MAX }
        };
        let flows = (0..spec.flows).map(flow).collect();
        Competing { flows, next: 0, buffer: Box::new([0; 1_514]) }
    }

    /// Parses one of their frames; `None` for others.
    pub fn parse(frame: &[u8]) -> Option<Pdu> {
        let (header, rest) = frame.split_at_checked(Ethernet::BYTES)?;
        Pdu::parse(Ethernet::parse(header).ok()?.ether_type, rest)
    }

    /// Whether one of them has a segment to send.
    pub fn may_send(&self) -> bool {
        self.flows.iter().any(|flow| flow.sender.can_send())
    }

    /// The next segment's frame. Flows take turns.
    pub fn poll(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        for _ in 0..self.flows.len() {
            let nth = self.next;
            self.next = (nth + 1) % self.flows.len();
            if let Some(segment) = self.flows[nth].sender.poll(now) {
                self.emit(nth, &segment, out);
                return true;
            }
        }
        false
    }

    fn emit(&mut self, nth: usize, segment: &Segment, out: &mut Vec<u8>) {
        let pdu = Pdu {
            message: segment.message,
            bytes: segment.bytes,
            ..Pdu::new(PduKind::Data, nth as u32, segment.start, u64::from(segment.last))
        };
        out.clear();
        out.extend_from_slice(pdu.emit(COMPUTE, SINK, tcp::HEADER_BYTES, &mut self.buffer));
    }

    /// A frame has arrived. Calls `answer` for each acknowledgement to send.
    pub fn handle(&mut self, pdu: &Pdu, now: Nanos, mut answer: impl FnMut(&[u8])) {
        let Some(flow) = self.flows.get_mut(pdu.flow as usize) else { return };
        if pdu.kind != PduKind::Data {
            flow.sender.handle_ack(pdu.a, pdu.b == 1, &pdu.ranges[..pdu.count], now);
            return;
        }
        let (first, _, second) = flow.receiver.handle(pdu.a, pdu.bytes.into(), pdu.b == 1, pdu.marked);
        for ack in first.into_iter().chain(second) {
            let (ranges, count) = (ack.ranges, ack.count);
            let ack =
                Pdu { ranges, count, ..Pdu::new(PduKind::Ack, pdu.flow, ack.next, u64::from(ack.marked)) };
            answer(ack.emit(SINK, COMPUTE, tcp::HEADER_BYTES, &mut self.buffer));
        }
    }

    /// When to put a flow's timer on the agenda: only if it is earlier than the present one.
    pub fn timer(&mut self, nth: usize, now: Nanos) -> Option<Nanos> {
        let flow = self.flows.get_mut(nth)?;
        let due = flow.sender.next_timeout()?.max(now);
        (due < flow.timer).then(|| {
            flow.timer = due;
            due
        })
    }

    /// A flow's timer expires. Returns whether it sends a segment regardless of its window.
    pub fn timeout(&mut self, nth: usize, now: Nanos, out: &mut Vec<u8>) -> bool {
        let Some(flow) = self.flows.get_mut(nth).filter(|flow| flow.timer == now) else { return false };
        flow.timer = Nanos::MAX;
        let segment = flow.sender.handle_timeout(now);
        if let Some(segment) = &segment {
            self.emit(nth, segment, out);
        }
        segment.is_some()
    }

    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Bytes that have arrived.
    pub fn received(&self) -> u64 {
        self.flows.iter().map(|flow| flow.receiver.received()).sum()
    }
}
