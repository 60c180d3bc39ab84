//! Messages, the flows that carry them, and the frames that they are cut into.
//!
//! An application's frame starts, after its Ethernet header, with what the receiver needs to know;
//! a message's bytes are whatever a frame carries, so these fields take no room of their own:
//!
//! ```text
//! Ethernet (EtherType 0x88B6) | flow 4 | message 4 | sequence 4 | bytes 2 | rest
//! ```

use crate::transport::{rds, tcp};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::VecDeque;

/// Largest payload of a frame.
pub const MTU: u32 = 1_500;
/// Smallest payload of a frame.
const PAYLOAD_MIN: usize = 46;
/// IEEE's second local experimental EtherType.
const ETHER_TYPE: EtherType = EtherType(0x88b6);
/// Ethernet header and the fields above.
const HEAD: usize = Ethernet::BYTES + 14;

/// Tags of messages: it counts, being of the measured time.
pub const MEASURED: u32 = 1;
/// Its time counts from its turn, when its first frame is made.
pub const FROM_TURN: u32 = 2;

/// Number of a message while it is under way; used again afterwards.
pub type MessageId = u32;
/// Number of a flow.
pub type FlowId = u32;

/// Address of a host, counted from 0.
pub fn mac_of(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, ((host + 1) >> 8) as u8, (host + 1) as u8])
}

/// The host of an address made by [`mac_of`].
#[inline]
pub fn host_of(mac: &[u8]) -> Option<usize> {
    match mac {
        [2, 0, 0, 0, high, low, ..] => (usize::from(*high) << 8 | usize::from(*low)).checked_sub(1),
        _ => None,
    }
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its flow.
    pub flow: FlowId,
    /// Bytes.
    pub size: u32,
    /// Bytes not yet cut into frames.
    pub unsent: u32,
    /// Bytes delivered.
    pub received: u32,
    /// When the sending thread had it.
    pub created: Nanos,
    /// Counts all messages of the run.
    pub number: u64,
    /// What its traffic needs to know.
    pub tag: u32,
}

/// All messages under way.
#[derive(Debug, Default)]
pub struct Messages {
    slots: Vec<Message>,
    free: Vec<MessageId>,
    /// How many there were so far.
    pub count: u64,
}

impl Messages {
    /// A new one.
    pub fn add(&mut self, flow: FlowId, size: u32, created: Nanos, tag: u32) -> MessageId {
        let size = size.max(1);
        let message = Message { flow, size, unsent: size, received: 0, created, number: self.count, tag };
        self.count += 1;
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = message;
            return id;
        }
        self.slots.push(message);
        (self.slots.len() - 1) as MessageId
    }

    /// One that is under way.
    pub fn get_mut(&mut self, id: MessageId) -> &mut Message {
        &mut self.slots[id as usize]
    }

    /// Ends one.
    pub fn remove(&mut self, id: MessageId) -> Message {
        self.free.push(id);
        self.slots[id as usize]
    }

    /// One that is or was under way, if there was ever one of this number.
    pub fn find(&self, id: MessageId) -> Option<&Message> {
        self.slots.get(id as usize)
    }

    /// Messages under way.
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// One thread of one host sending to one other host: messages go one after the other.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Sending host.
    pub src: u16,
    /// Receiving host.
    pub dst: u16,
    /// Index of its traffic.
    pub traffic: u16,
    /// Messages that wait for their turn; the first is being cut.
    pub queue: VecDeque<MessageId>,
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
            queue: VecDeque::new(),
            open: VecDeque::new(),
            next_out: 0,
            next_in: 0,
            listed: false,
            transport,
            timer_at: Nanos::MAX,
        }
    }
}

/// What an application's frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its flow.
    pub flow: FlowId,
    /// Its message.
    pub message: MessageId,
    /// Counts the flow's frames.
    pub sequence: u32,
    /// Bytes of the message in it.
    pub bytes: u16,
}

impl Head {
    /// Writes the frame over the start of `out`, a buffer of full length; the frame.
    pub fn emit<'o>(&self, src: usize, dst: usize, out: &'o mut [u8; 1_514]) -> &'o [u8] {
        Ethernet { dst: mac_of(dst), src: mac_of(src), ether_type: ETHER_TYPE }.emit(out);
        let fields = &mut out[Ethernet::BYTES..HEAD];
        fields[..4].copy_from_slice(&self.flow.to_be_bytes());
        fields[4..8].copy_from_slice(&self.message.to_be_bytes());
        fields[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        fields[12..].copy_from_slice(&self.bytes.to_be_bytes());
        &out[..Ethernet::BYTES + usize::from(self.bytes).max(PAYLOAD_MIN).min(MTU as usize)]
    }

    /// Reads one.
    pub fn parse(frame: &[u8]) -> Option<Head> {
        let fields: &[u8; 14] = frame.get(Ethernet::BYTES..HEAD)?.try_into().ok()?;
        if frame[12..14] != ETHER_TYPE.0.to_be_bytes() {
            return None;
        }
        let word =
            |at: usize| u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let bytes = u16::from_be_bytes([fields[12], fields[13]]);
        Some(Head { flow: word(0), message: word(4), sequence: word(8), bytes })
    }

    /// Reads one from a frame as it is on the wire: tags and shim are stepped over.
    pub fn on_wire(frame: &[u8], shim: bool) -> Option<Head> {
        let tagged = frame.get(12..14)? == EtherType::VLAN.0.to_be_bytes();
        let skip = match (tagged, shim) {
            (false, _) => return Head::parse(frame),
            (true, false) => 4,
            (true, true) => 4 + p4rack_wire::pl2::Shim::BYTES,
        };
        let fields = frame.get(Ethernet::BYTES + skip..HEAD + skip)?;
        let word = |at: usize| Some(u32::from_be_bytes(fields.get(at..at + 4)?.try_into().ok()?));
        let bytes = u16::from_be_bytes(fields.get(12..14)?.try_into().ok()?);
        Some(Head { flow: word(0)?, message: word(4)?, sequence: word(8)?, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_the_wire() {
        let mut buffer = [0; 1_514];
        for (bytes, len) in [(1, 60), (46, 60), (47, 61), (1_500, 1_514)] {
            let head = Head { flow: 70_000, message: 3, sequence: u32::MAX, bytes };
            let frame = head.emit(4, 299, &mut buffer);
            assert_eq!(frame.len(), len);
            assert_eq!(Head::parse(frame), Some(head));
            assert_eq!((host_of(frame), host_of(&frame[6..])), (Some(299), Some(4)));
        }
        assert_eq!(Head::parse(&[0; 60]), None);
        assert_eq!(Head::parse(&[0; 20]), None);
    }

    #[test]
    fn numbers_are_used_again() {
        let mut messages = Messages::default();
        let first = messages.add(0, 10, Nanos(0), 0);
        messages.remove(first);
        assert_eq!(messages.add(0, 20, Nanos(0), 0), first);
        assert_eq!((messages.open(), messages.count), (1, 2));
    }
}
