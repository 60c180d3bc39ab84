//! A host's board of Clio, and the library of a flow that uses it. Both send packets of UDP.

use super::operations::End;
use crate::clio::{End as Peer, SimMemory, datagram};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::Board;
use p4rack_fabric::clio::lib::{Client, Operation, Outcome};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ipv4::UDP;

/// The ports and the packet of a frame of UDP, from and to. `None`: it is another frame.
#[inline]
pub(in crate::topology) fn packet(frame: &[u8]) -> Option<((u16, u16), &[u8])> {
    let is_udp = frame.get(12..15) == Some(&[8, 0, 0x45][..]) && frame.get(23) == Some(&UDP);
    let (_, ports, packet) = datagram(frame.get(Ethernet::BYTES..).filter(|_| is_udp)?)?;
    Some((ports, packet))
}

/// A board. Its clock began with its set-up, before time 0.
#[derive(Debug)]
pub(super) struct BoardNode {
    board: Board<SimMemory, Peer>,
    began: Nanos,
}

impl BoardNode {
    /// A board whose set-up took this time.
    pub fn new(board: Board<SimMemory, Peer>, began: Nanos) -> BoardNode {
        BoardNode { board, began }
    }

    /// Takes a packet of a flow.
    pub fn take(&mut self, flow: u16, packet: &[u8], now: Nanos) {
        let at = self.began + now;
        self.board.handle_link((Peer { host: 0, port: flow }, packet), at, at);
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Nanos) {
        if self.due() <= now {
            self.board.handle_timeout(self.began + now);
        }
    }

    /// Writes the next packet over `out`, and returns the flow that it is for.
    pub fn poll(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.board.poll_link(self.began + now, out).map(|sent| sent.to.port)
    }

    /// Counters by name.
    pub fn counters(&self, add: &mut dyn FnMut(&'static str, &'static str, u64)) {
        self.board.counters().iter().for_each(|(name, count)| add("board", name, count));
    }

    /// When it has work to do; `Nanos::MAX`: not before a packet comes.
    pub fn due(&self) -> Nanos {
        self.board.next_timeout().map_or(Nanos::MAX, |at| at.saturating_sub(self.began))
    }
}

/// The library of a flow: a process of its own at the board.
#[derive(Debug)]
pub(super) struct Library {
    client: Client,
    /// Address of the flow's part.
    address: u64,
    packet: Vec<u8>,
}

impl Library {
    /// A library with one board, whose memory of the flow begins at this address.
    pub fn new(client: Client, address: u64) -> Library {
        Library { client, address, packet: Vec::new() }
    }

    /// Asks for a read of this many bytes, or a write. Returns whether the library takes it.
    pub fn ask(&mut self, at: u64, read_bytes: u32, written: Option<&[u8]>, slot: u16, now: Nanos) -> bool {
        let address = self.address + at;
        let operation = match written {
            Some(bytes) => Operation::Write { address, bytes },
            None => Operation::Read { address, bytes: read_bytes },
        };
        self.client.submit(0, 0, slot.into(), operation, now).is_ok()
    }

    /// A request that has ended: its slot, and its result.
    pub fn poll_end(&mut self) -> Option<(u16, End<'_>)> {
        let (tag, outcome) = self.client.poll_completion()?;
        let end = match outcome {
            Outcome::Read(bytes) => End::Read(bytes),
            Outcome::Done => End::Done,
            Outcome::Unknown => End::Unknown,
            _ => End::Refused,
        };
        Some((tag as u16, end))
    }

    /// Takes a packet of the board.
    pub fn take(&mut self, packet: &[u8], received_at: Nanos, now: Nanos) {
        self.client.handle_link((0, packet), received_at, now);
    }

    /// Counters by name.
    pub fn counters(&self, add: &mut dyn FnMut(&'static str, &'static str, u64)) {
        self.client.counters().iter().for_each(|(name, count)| add("client", name, count));
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Nanos) {
        self.client.handle_timeout(now);
    }

    /// The next packet for the board.
    pub fn poll(&mut self, now: Nanos) -> Option<&[u8]> {
        self.client.poll_link(now, &mut self.packet).map(|_| &self.packet[..])
    }

    /// When it has work to do. Valid once [`Library::poll`] has given nothing.
    pub fn due(&self) -> Nanos {
        self.client.next_timeout().unwrap_or(Nanos::MAX)
    }
}
