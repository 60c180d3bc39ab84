//! A flow's client of remote memory: its operations, and how they reach the memory.

use super::board::Library;
use super::machines::Machines;
use super::operations::{End, Ended, Operations};
use p4rack_fabric::edm::host::compute::{Outcome, Request};
use p4rack_wire::Nanos;

/// How a flow reaches its memory.
#[derive(Debug)]
pub(super) enum Reach {
    /// By its host's machines: the number of the node with the memory, its key, and the address of the flow's part.
    Node { node: u16, key: u32, address: u64 },
    /// By packets.
    Board(Box<Library>),
}

/// See the module.
#[derive(Debug)]
pub(in crate::topology) struct Client {
    operations: Operations,
    reach: Reach,
    data: Vec<u8>,
}

impl Client {
    pub(super) fn new(operations: Operations, reach: Reach) -> Client {
        Client { operations, reach, data: Vec::new() }
    }

    /// Operations that have begun.
    pub fn begun(&self) -> u64 {
        self.operations.begun
    }

    /// Reads and writes that have not ended.
    pub fn open(&self) -> [u64; 2] {
        self.operations.open()
    }

    /// Counters of its machine, if it has one of its own.
    pub fn counters(&self, add: &mut dyn FnMut(&'static str, &'static str, u64)) {
        if let Reach::Board(library) = &self.reach {
            library.counters(add);
        }
    }

    /// When it has something to do if nothing comes; `Nanos::MAX`: nothing.
    pub fn due(&self) -> Nanos {
        let own = match &self.reach {
            Reach::Node { .. } => Nanos::MAX,
            Reach::Board(library) => library.due(),
        };
        own.min(self.operations.due())
    }

    /// Takes a packet from the memory.
    pub fn take(&mut self, packet: &[u8], received_at: Nanos, now: Nanos) {
        if let Reach::Board(library) = &mut self.reach {
            library.take(packet, received_at, now);
        }
    }

    /// Handles the end of a request to its host's machines. Returns the operation if that has ended.
    pub fn take_end(&mut self, slot: u16, outcome: &Outcome, now: Nanos) -> Option<Ended> {
        let end = match outcome {
            Outcome::Answer(bytes) => End::Read(bytes),
            Outcome::Sent => End::Sent,
            Outcome::Refused(_) => End::Refused,
            Outcome::Null => End::Unknown,
        };
        self.operations.ended(slot, end, now)
    }

    /// Handles timeouts, and passes operations that have ended to `ended`. `machines` are those of its host, `out` is its place among
    /// the host's flows.
    pub fn advance(
        &mut self,
        mut machines: Option<&mut Machines>,
        out: u32,
        now: Nanos,
        ended: &mut dyn FnMut(&Ended),
    ) {
        let Client { operations, reach, data } = self;
        if let Reach::Board(library) = reach {
            library.wake(now);
            while let Some((slot, end)) = library.poll_end() {
                operations.ended(slot, end, now).iter().for_each(&mut *ended);
            }
        }
        while let Some(ask) = operations.next(now, data) {
            let is_taken = match (&mut *reach, &mut machines) {
                (Reach::Node { node, key, address }, Some(machines)) => {
                    let request = match ask.is_write {
                        true => Request::Write(data.clone()),
                        false => Request::Read(ask.bytes),
                    };
                    machines.ask((*node, *key), *address + ask.at, request, (out, ask.slot), now)
                }
                (Reach::Node { .. }, None) => false,
                (Reach::Board(library), _) => {
                    let written = ask.is_write.then_some(&data[..]);
                    library.ask(ask.at, ask.bytes, written, ask.slot, now)
                }
            };
            if !is_taken {
                operations.ended(ask.slot, End::Refused, now).iter().for_each(&mut *ended);
            }
        }
    }

    /// The next packet for the memory. Call until `None`.
    pub fn poll(&mut self, now: Nanos) -> Option<&[u8]> {
        match &mut self.reach {
            Reach::Node { .. } => None,
            Reach::Board(library) => library.poll(now),
        }
    }
}
