//! Flows: a thread's messages to one other host, and what cuts them into frames.

use crate::message::{FROM_TURN, FlowId, Head, MTU, MessageId, Messages, Outgoing};
use crate::transport::wire::{Pdu, PduKind};
use crate::transport::{rds, tcp};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// One thread of one host sending to one other host: messages go one after the other.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Sending host.
    pub src: u16,
    /// Receiving host.
    pub dst: u16,
    /// Index of its traffic.
    pub traffic: u16,
    /// Those under way.
    pub messages: Messages,
    /// Messages that wait for their turn; the first is being cut.
    pub queue: VecDeque<Outgoing>,
    /// Messages of which the receiver does not have everything, oldest first.
    pub open: VecDeque<MessageId>,
    /// Sequence number of the next frame to send.
    pub next_out: u32,
    /// Sequence number of the next frame to come.
    pub next_in: u32,
    /// Whether it stands in its outlet's queue.
    pub listed: bool,
    /// What its transport keeps.
    pub transport: Machine,
    /// When the transport's timer is on the agenda.
    pub timer_at: Nanos,
    /// Bytes that arrived within the measured time.
    pub arrived: u64,
}

/// A flow's transport.
#[derive(Clone, Debug)]
pub enum Machine {
    /// None.
    Raw,
    /// Both ends of a connection.
    Tcp(Box<(tcp::Sender, tcp::Receiver)>),
    /// The sending end; the receiving one is the host's.
    Rds(Box<rds::Sender>),
}

impl Machine {
    /// Whether it has a frame to send.
    pub fn can_send(&self) -> bool {
        match self {
            Machine::Raw => false,
            Machine::Tcp(ends) => ends.0.can_send(),
            Machine::Rds(sender) => sender.can_send(),
        }
    }

    /// When its timer is due.
    pub fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Machine::Raw => None,
            Machine::Tcp(ends) => ends.0.next_timeout(),
            Machine::Rds(sender) => sender.next_timeout(),
        }
    }
}

impl Flow {
    /// An idle flow.
    pub fn new(src: usize, dst: usize, traffic: usize, transport: Machine) -> Flow {
        Flow {
            src: src as u16,
            dst: dst as u16,
            traffic: traffic as u16,
            messages: Messages::default(),
            queue: VecDeque::new(),
            open: VecDeque::new(),
            next_out: 0,
            next_in: 0,
            listed: false,
            transport,
            timer_at: Nanos::MAX,
            arrived: 0,
        }
    }
}

/// What a flow's transport sends next.
pub(crate) struct Part {
    pub frame: Pdu,
    /// What the real protocol's headers take of the payload.
    pub header_bytes: usize,
    /// A message was sent to its end.
    pub whole: bool,
}

impl Flow {
    /// The next part of its first message, without a transport, and whether it is the last.
    #[inline]
    pub fn part(&mut self, flow: FlowId, now: Nanos) -> Option<(Head, bool)> {
        let one = self.queue.front_mut()?;
        let (message, bytes) = (one.message, one.unsent.min(MTU));
        let first = one.unsent == one.size;
        one.unsent -= bytes;
        let whole = one.unsent == 0;
        let sequence = self.next_out;
        self.next_out = sequence.wrapping_add(1);
        if first {
            self.begin(message, now);
        }
        Some((Head { flow, message, sequence, bytes: bytes as u16 }, whole))
    }

    /// The first frame of a message is made.
    fn begin(&mut self, message: MessageId, now: Nanos) {
        if let Some(one) = self.messages.get_mut(message).filter(|one| one.tag & FROM_TURN != 0) {
            one.created = now;
        }
    }

    /// What its transport sends next.
    #[inline(never)]
    pub fn carried(&mut self, id: FlowId, now: Nanos) -> Option<Part> {
        match &mut self.transport {
            Machine::Raw => None,
            Machine::Tcp(ends) => {
                let segment = ends.0.poll(now)?;
                let markable = ends.0.control.markable();
                Some(Part::tcp(id, &segment, markable))
            }
            Machine::Rds(sender) => {
                let part = sender.poll(now)?;
                let (message, bytes) = (part.message, part.bytes);
                if part.offset == 0 && !part.again {
                    self.begin(message, now);
                }
                let key = u64::from(part.key) << 32 | u64::from(part.size);
                let frame = Pdu {
                    message,
                    bytes,
                    count: usize::from(part.again),
                    ..Pdu::new(PduKind::Data, id, part.offset, key)
                };
                let whole = !part.again && part.offset + u64::from(bytes) == u64::from(part.size);
                Some(Part { frame, header_bytes: 0, whole })
            }
        }
    }
}

impl Part {
    /// A segment of TCP's.
    pub fn tcp(id: FlowId, segment: &tcp::Segment, markable: bool) -> Part {
        let (message, bytes) = (segment.message, segment.bytes);
        let frame = Pdu {
            message,
            bytes,
            markable,
            ..Pdu::new(PduKind::Data, id, segment.start, u64::from(segment.last))
        };
        let whole = segment.last && !segment.again;
        Part { frame, header_bytes: tcp::HEADER_BYTES, whole }
    }
}
