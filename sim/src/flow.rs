//! Flows: a thread's messages to one other host, and the transport that splits them into frames. The sender's and the
//! receiver's states of a flow are separate, because hosts share nothing. The sender notifies the receiver of each
//! message.

use crate::message::{FlowId, Head, MTU, Message, MessageId, Outgoing};
use crate::traffic::Operation;
use crate::transport::wire::{Pdu, PduKind};
use crate::transport::{rds, tcp};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// The ends of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Sending host.
    pub src: u16,
    /// Receiving host.
    pub dst: u16,
    /// Index of its traffic.
    pub traffic: u16,
    /// Whether it has no transport.
    pub raw: bool,
    /// Its index among its sender's outgoing flows,
    pub out: u32,
    /// and among its receiver's incoming flows.
    pub into: u32,
}

/// A flow at its sender. It sends one message after the other.
#[derive(Debug)]
pub(crate) struct Outflow {
    pub id: FlowId,
    /// Receiving host.
    pub dst: u16,
    /// Index of its traffic.
    pub traffic: u16,
    /// Whether a message's time starts with its turn, when its first frame is made.
    pub from_turn: bool,
    /// Messages created.
    pub made: MessageId,
    /// Messages that wait for their turn; the first one is being sent.
    pub queue: VecDeque<Outgoing>,
    /// Sequence number of the next frame to send.
    pub next_out: u32,
    /// Whether it is in the queue of its outlet.
    pub listed: bool,
    /// The sending end of its transport.
    pub transport: Machine,
    /// Time of the transport's timer on the agenda.
    pub timer_at: Nanos,
    /// With `ycsb`: the current operation of its thread.
    pub operation: Operation,
}

/// A flow at its receiver.
#[derive(Debug)]
pub(crate) struct Inflow {
    /// Incomplete messages, oldest first.
    pub open: VecDeque<(MessageId, Message)>,
    /// Sequence number of the next frame expected.
    pub next_in: u32,
    /// The receiving end of TCP.
    pub tcp: Option<Box<tcp::Receiver>>,
    /// Bytes that arrived within the measured time.
    pub arrived: u64,
}

/// The sending end of a flow's transport. RDS has one receiving end per host.
#[derive(Debug)]
pub(crate) enum Machine {
    /// None.
    Raw,
    /// TCP's.
    Tcp(Box<tcp::Sender>),
    /// RDS's.
    Rds(Box<rds::Sender>),
}

impl Machine {
    /// Whether it has a frame to send.
    pub fn can_send(&self) -> bool {
        match self {
            Machine::Raw => false,
            Machine::Tcp(sender) => sender.can_send(),
            Machine::Rds(sender) => sender.can_send(),
        }
    }

    /// When its timer is due.
    pub fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Machine::Raw => None,
            Machine::Tcp(sender) => sender.next_timeout(),
            Machine::Rds(sender) => sender.next_timeout(),
        }
    }
}

impl Outflow {
    /// An idle flow.
    pub fn new(id: FlowId, ends: &Ends, from_turn: bool, transport: Machine) -> Outflow {
        Outflow {
            id,
            dst: ends.dst,
            traffic: ends.traffic,
            from_turn,
            made: 0,
            queue: VecDeque::new(),
            next_out: 0,
            listed: false,
            transport,
            timer_at: Nanos::MAX,
            operation: Operation::default(),
        }
    }
}

impl Inflow {
    /// An idle flow; `tcp`: whether its transport is TCP.
    pub fn new(tcp: bool) -> Inflow {
        Inflow { open: VecDeque::new(), next_in: 0, tcp: tcp.then(Box::default), arrived: 0 }
    }

    /// An open message.
    pub fn message(&mut self, id: MessageId) -> Option<&mut Message> {
        self.open.iter_mut().find(|(known, _)| *known == id).map(|(_, message)| message)
    }
}

/// The next segment of a flow's transport.
pub(crate) struct Part {
    pub frame: Pdu,
    /// Bytes of payload that the real protocol's headers take.
    pub header_bytes: usize,
    /// Whether a message's first byte is in it.
    pub begins: bool,
    /// Whether a message's last byte is in it.
    pub whole: bool,
}

impl Outflow {
    /// The next part of its first message, without a transport; whether it is the first part, and the last.
    #[inline]
    pub fn part(&mut self) -> Option<(Head, bool, bool)> {
        let one = self.queue.front_mut()?;
        let (message, bytes) = (one.message, one.unsent.min(MTU));
        let first = one.unsent == one.size;
        one.unsent -= bytes;
        let whole = one.unsent == 0;
        let sequence = self.next_out;
        self.next_out = sequence.wrapping_add(1);
        Some((Head { flow: self.id, message, sequence, bytes: bytes as u16 }, first, whole))
    }

    /// The next part that its transport sends.
    #[inline(never)]
    pub fn carried(&mut self, now: Nanos) -> Option<Part> {
        let id = self.id;
        match &mut self.transport {
            Machine::Raw => None,
            Machine::Tcp(sender) => {
                let segment = sender.poll(now)?;
                let markable = sender.control.markable();
                Some(Part::tcp(id, &segment, markable))
            }
            Machine::Rds(sender) => {
                let part = sender.poll(now)?;
                let (message, bytes) = (part.message, part.bytes);
                let key = u64::from(part.key) << 32 | u64::from(part.size);
                let frame = Pdu {
                    message,
                    bytes,
                    count: usize::from(part.again),
                    ..Pdu::new(PduKind::Data, id, part.offset, key)
                };
                let whole = !part.again && part.offset + u64::from(bytes) == u64::from(part.size);
                let begins = part.offset == 0 && !part.again;
                Some(Part { frame, header_bytes: 0, begins, whole })
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
        Part { frame, header_bytes: tcp::HEADER_BYTES, begins: false, whole }
    }
}
