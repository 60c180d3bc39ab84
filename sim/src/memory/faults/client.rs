//! Requests of the clients, and their results.

use super::rack::{BYTES, CHUNK_BYTES};
use crate::random::Random;
use p4rack_fabric::edm::host::compute::{Outcome, Request};
use p4rack_history::{self as history, Effects, Entry, Word};
use p4rack_wire::edm::{Opcode, Status, WORD_BYTES};
use std::collections::BTreeMap;

/// Words shared by all clients; each is one object of the history.
const WORDS: u64 = 3;
/// Address of the words with which clients probe memory.
pub(super) const PROBES_AT: u64 = 512;
/// Address of chunks shared by all clients. Each is one object of the history, and all its words are equal.
pub(super) const CHUNKS_AT: u64 = 1_024;
const CHUNKS: u64 = 28;
/// Maximum chunks of an operation.
pub(super) const CHUNKS_MAX: u64 = 4;

/// A part of a memory node's memory that is read and written in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    pub node: u16,
    /// Address of its first byte.
    pub address: u64,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {}, {:#x}", self.node, self.address)
    }
}

/// The history of all objects. The words of a chunk are equal, so one of them represents all.
pub(super) type History = history::History<Object, Word>;

/// The object that contains this address: its first address and its bytes.
pub(super) fn object(address: u64) -> (u64, u64) {
    let size = if address < CHUNKS_AT { u64::from(WORD_BYTES) } else { u64::from(CHUNK_BYTES) };
    (address / size * size, size)
}

/// All objects.
pub(super) fn objects() -> impl Iterator<Item = u64> {
    let words = (0..CHUNKS_AT).step_by(WORD_BYTES as usize);
    words.chain((CHUNKS_AT..BYTES as u64).step_by(CHUNK_BYTES as usize))
}

/// Purpose of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Work,
    /// To check that memory is reached at the first attempt.
    Probe,
    /// The same, and that it holds this value.
    Check(u64),
}

#[derive(Debug)]
struct PendingRequest {
    node: u16,
    address: u64,
    at: u64,
    request: Request,
    why: Why,
}

/// The client of a compute node.
#[derive(Debug)]
pub(super) struct Client {
    random: Random,
    /// Operations still to start.
    pub left: u32,
    /// Maximum pause before the next operation.
    pause_ns: u64,
    /// Maximum operations in flight.
    pub open_max: usize,
    /// Whether all its operations have the maximum length.
    is_long: bool,
    open: BTreeMap<u64, PendingRequest>,
    own: u16,
    /// Number of values that it wrote; each value is unique.
    values: u64,
    /// Probe writes that have left: node, address, value.
    probed: Vec<(u16, u64, u64)>,
}

/// Outcomes of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub answered: u64,
    /// Writes that left.
    pub sent: u64,
    /// Operations with unknown outcome.
    pub unknown: u64,
    pub refused: u64,
    /// Atomic operations.
    pub modified: Effects,
}

impl Client {
    pub fn new(seed: u64, own: u16) -> Client {
        let random = Random::stream(seed, 100 + u64::from(own));
        // Without pauses and with long operations, demands have to wait for links.
        let (pause_ns, open_max, left, is_long) = match seed % 4 {
            1 => (100, 16, 160, true),
            2 => (500, 4, 20, false),
            _ => (20_000, 4, 20, false),
        };
        Client {
            random,
            left,
            pause_ns,
            open_max,
            is_long,
            open: BTreeMap::new(),
            own,
            values: 0,
            probed: Vec::new(),
        }
    }

    /// Operations in flight.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Values that memory has to hold since the probe: node, address, value.
    pub fn probed(&mut self) -> Vec<(u16, u64, u64)> {
        std::mem::take(&mut self.probed)
    }

    /// A random pause before the next operation.
    pub fn pause_ns(&mut self) -> u64 {
        self.random.below(self.pause_ns)
    }

    /// The next operation: a memory node, an address, and the action.
    pub fn next(&mut self) -> (u16, u64, Request) {
        let node = match self.own {
            2 => 3,
            _ => 2 + self.random.below(2) as u16,
        };
        let word = 8 * self.random.below(WORDS);
        let chunk_bytes = u64::from(CHUNK_BYTES);
        let first = self.random.below(CHUNKS - CHUNKS_MAX + 1);
        let count = if self.is_long { CHUNKS_MAX } else { 1 + self.random.below(CHUNKS_MAX) };
        let (bytes, chunks) = (count * chunk_bytes, CHUNKS_AT + first * chunk_bytes);
        let kind = self.random.below(10);
        // Only chunks, with two reads for each write.
        let kind = if self.is_long { 8 + u64::from(kind < 3) } else { kind };
        match kind {
            0..2 => (node, word, Request::Read(WORD_BYTES)),
            2..4 => (node, word, Request::Write(self.value().to_be_bytes().to_vec())),
            4..6 => (node, word, Request::Modify(Opcode::FetchAdd, [1, 0])),
            6 => (node, word, Request::Modify(Opcode::Swap, [self.value(), 0])),
            7 => (node, word, Request::Modify(Opcode::Cas, [0, self.value()])),
            8 => (node, chunks, Request::Read(bytes as u32)),
            _ => {
                let (first, words) = (self.value(), CHUNK_BYTES as usize / 8);
                let written = (0..bytes / chunk_bytes).map(|n| (first + n).to_be_bytes().repeat(words));
                (node, chunks, Request::Write(written.flatten().collect()))
            }
        }
    }

    /// A unique value. The next few values are reserved with it.
    pub fn value(&mut self) -> u64 {
        self.values += 1;
        u64::from(self.own + 1) << 32 | self.values << 8
    }

    /// Notes an operation that the machine has accepted.
    pub fn asked(&mut self, token: u64, (node, address, request): (u16, u64, Request), why: Why, at: u64) {
        self.open.insert(token, PendingRequest { node, address, at, request, why });
    }

    /// Takes an outcome. Errors: the outcome is impossible.
    pub fn ended(
        &mut self,
        token: u64,
        outcome: Outcome,
        now: u64,
        history: &mut History,
        ends: &mut Ends,
    ) -> Result<(), String> {
        let Some(asked) = self.open.remove(&token) else { return Err(format!("{token} ended twice")) };
        let PendingRequest { node, address, at, request, why } = asked;
        let answered = |act| Entry { asked: at, outcome: history::Outcome::Known(now), act };
        match (&request, &outcome) {
            (Request::Write(bytes), Outcome::Sent) => {
                ends.sent += 1;
                if why == Why::Probe {
                    self.probed.push((node, address, word(bytes)));
                }
            }
            (Request::Read(_), Outcome::Answer(bytes)) => {
                ends.answered += 1;
                let size = object(address).1 as usize;
                for (object, bytes) in (address..).step_by(size).zip(bytes.chunks(size)) {
                    let value = word(bytes);
                    if bytes.chunks(8).any(|one| word(one) != value) {
                        return Err(format!("node {node}, {object:#x}: parts of two writes in one chunk"));
                    }
                    history.add(Object { node, address: object }, answered(Word::Read(value)));
                }
            }
            (Request::Modify(opcode, operands), Outcome::Answer(bytes)) => {
                ends.answered += 1;
                ends.modified.known += 1;
                let act = Word::Modify(*opcode, *operands, Some(word(bytes)));
                history.add(Object { node, address }, answered(act));
            }
            (_, Outcome::Null) => self.unknown(node, address, at, &request, history, ends),
            // All operations of clients are permitted, but a node may be overloaded.
            (_, Outcome::Refused(Status::Busy)) => {
                ends.refused += 1;
                if let Request::Modify(opcode, operands) = &request {
                    let act = Word::Modify(*opcode, *operands, None);
                    let refused = Entry { asked: at, outcome: history::Outcome::Refused, act };
                    history.add(Object { node, address }, refused);
                }
            }
            _ => return Err(format!("{request:?} ended with {outcome:?}")),
        }
        match (outcome, why) {
            (outcome @ (Outcome::Null | Outcome::Refused(_)), Why::Probe | Why::Check(_)) => {
                Err(format!("{request:?} of node {} at {node} after the faults: {outcome:?}", self.own))
            }
            (Outcome::Answer(bytes), Why::Check(value)) if word(&bytes) != value => Err(format!(
                "node {node}, {address:#x}: {:#x} is there instead of {value:#x}, which node {} wrote after the faults",
                word(&bytes),
                self.own
            )),
            _ => Ok(()),
        }
    }

    /// Its machine has restarted: operations in flight end with unknown outcome.
    pub fn forget(&mut self, history: &mut History, ends: &mut Ends) {
        for (_, PendingRequest { node, address, at, request, .. }) in std::mem::take(&mut self.open) {
            self.unknown(node, address, at, &request, history, ends);
        }
    }

    fn unknown(
        &self,
        node: u16,
        address: u64,
        at: u64,
        request: &Request,
        history: &mut History,
        ends: &mut Ends,
    ) {
        ends.unknown += 1;
        if let Request::Modify(opcode, operands) = request {
            ends.modified.unknown += 1;
            let act = Word::Modify(*opcode, *operands, None);
            let unknown = Entry { asked: at, outcome: history::Outcome::Unknown, act };
            history.add(Object { node, address }, unknown);
        }
    }
}

/// The first word.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legal_request_is_refused_by_a_busy_node_alone() {
        for status in Status::ALL.into_iter().filter(|status| *status != Status::Done) {
            let (mut history, mut ends) = (History::default(), Ends::default());
            let mut client = Client::new(0, 0);
            client.asked(5, (2, 0, Request::Read(8)), Why::Work, 0);
            let ended = client.ended(5, Outcome::Refused(status), 9, &mut history, &mut ends);
            assert_eq!(ended.is_ok(), status == Status::Busy, "{status:?}");
        }
    }
}
