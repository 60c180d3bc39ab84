//! A compute node: reads, writes and atomic operations on others' memory, without I/O.
//!
//! ```text
//!   requests ── handle_request ─▶ ┌──────┐ ── poll_message ──▶ RREQ, RMWREQ, NOTIFY, WREQ
//!   completions ◀ poll_completion │ Node │ ◀─ handle_message ─ GRANT, RRES
//!                     clock ◀──── └──────┘ ◀─ handle_timeout, at next_timeout
//! ```
//!
//! At most X messages per kind and memory node are active; others wait in order. A read or atomic request without an answer ends
//! with the NULL response when its timer expires; it is then unknown whether an atomic operation was done. A write without grants
//! asks again for the rest, with a new id.

use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind, Message, Opcode, Status, VERSION};
use std::collections::{BTreeMap, VecDeque};

/// Parameters of a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// X: maximum active messages per kind and memory node.
    pub active_per_pair: usize,
    /// Maximum waiting requests per memory node.
    pub waiting_max: usize,
    /// Maximum bytes per message.
    pub message_bytes_max: u32,
    /// Maximum bytes per chunk.
    pub chunk_bytes: u32,
    /// Timeout, after which reads and atomic operations end and writes ask again.
    pub timeout: Nanos,
    /// How often a write asks again before it fails.
    pub retries: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            active_per_pair: 3,
            waiting_max: 1_024,
            message_bytes_max: 1 << 24,
            chunk_bytes: 256,
            timeout: Nanos::from_micros(50),
            retries: 3,
        }
    }
}

/// An operation on another node's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read this many bytes.
    Read(u32),
    /// Write these bytes.
    Write(Vec<u8>),
    /// An atomic operation, with its operands.
    Modify(Opcode, [u64; 2]),
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is empty, or longer than a message may be.
    BadLength,
    /// Too many requests wait for this node.
    Full,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes that were read, or the old word of an atomic operation.
    Answer(Vec<u8>),
    /// The whole write has been sent.
    Sent,
    /// The memory node refused it.
    Refused(Status),
    /// The NULL response: there was no answer in time, or the write was never granted.
    Null,
}

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were accepted.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Answers that are complete.
    pub answers: u64,
    /// Requests that ended with a NULL response for lack of an answer.
    pub timeouts: u64,
    /// Notifications that were sent again.
    pub again: u64,
    /// Messages that are malformed, or not for a compute node.
    pub malformed: u64,
    /// Grants without a waiting message.
    pub grants_unasked: u64,
    /// Answers without a waiting request: late ones, duplicates, forged ones.
    pub answers_unasked: u64,
}

/// An entry of the message state table.
#[derive(Clone, Debug)]
struct Active {
    token: u64,
    key: u32,
    address: u64,
    request: Request,
    /// Bytes of a write that were sent, or of an answer that arrived.
    done: Vec<u8>,
    sent: u32,
    retries: u8,
    deadline: Nanos,
}

#[derive(Clone, Debug)]
struct Waiting {
    token: u64,
    key: u32,
    address: u64,
    request: Request,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    /// Writes, and requests with an answer, by id.
    active: [BTreeMap<u16, Active>; 2],
    next_id: [u16; 2],
    waiting: [VecDeque<Waiting>; 2],
}

/// Something to send: the node, and the id of a message, or a chunk.
#[derive(Clone, Copy, Debug)]
enum Out {
    Ask(u16, usize, u16),
    Chunk(u16, u16, u32, u32),
}

/// A compute node.
#[derive(Clone, Debug)]
pub struct Node {
    config: Config,
    start: u16,
    peers: BTreeMap<u16, Peer>,
    out: VecDeque<Out>,
    completions: VecDeque<(u64, Outcome)>,
    tokens: u64,
    counters: Counters,
    now: Nanos,
}

const WRITE: usize = 0;
const ANSWERED: usize = 1;

impl Node {
    /// A node without requests. `start` has to differ from that of earlier nodes at this place, e.g. be random: memory nodes
    /// tell by it that ids count from 0 again.
    pub fn new(config: Config, start: u16) -> Node {
        let (peers, out, completions) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Node {
            config,
            start,
            peers,
            out,
            completions,
            tokens: 0,
            counters: Counters::default(),
            now: Nanos::ZERO,
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Accepts a request for the memory of node `to`, at `address` of the region with `key`. Returns a number that its
    /// outcome will carry.
    pub fn handle_request(
        &mut self,
        to: u16,
        key: u32,
        address: u64,
        request: Request,
        now: Nanos,
    ) -> Result<u64, Refused> {
        self.now = self.now.max(now);
        let (class, bytes) = match &request {
            Request::Read(bytes) => (ANSWERED, *bytes as usize),
            Request::Write(bytes) => (WRITE, bytes.len()),
            Request::Modify(..) => (ANSWERED, 8),
        };
        let waiting = &mut self.peers.entry(to).or_default().waiting[class];
        let refused = match () {
            () if bytes == 0 || bytes > self.config.message_bytes_max as usize => Some(Refused::BadLength),
            () if waiting.len() >= self.config.waiting_max => Some(Refused::Full),
            () => None,
        };
        if let Some(refused) = refused {
            self.counters.refused += 1;
            return Err(refused);
        }
        self.counters.requests += 1;
        let token = self.tokens;
        self.tokens += 1;
        waiting.push_back(Waiting { token, key, address, request });
        self.fill(to, class);
        Ok(token)
    }

    /// Activates waiting messages while fewer than X are active.
    fn fill(&mut self, to: u16, class: usize) {
        let peer = self.peers.entry(to).or_default();
        while peer.active[class].len() < self.config.active_per_pair
            && let Some(Waiting { token, key, address, request }) = peer.waiting[class].pop_front()
        {
            let id = peer.next_id[class];
            peer.next_id[class] = id.wrapping_add(1);
            let deadline = self.now.saturating_add(self.config.timeout);
            let active =
                Active { token, key, address, request, done: Vec::new(), sent: 0, retries: 0, deadline };
            peer.active[class].insert(id, active);
            self.out.push_back(Out::Ask(to, class, id));
        }
    }

    /// Accepts a message about the memory of node `from`; `bytes` start after the EtherType.
    pub fn handle_message(&mut self, from: u16, bytes: &[u8], now: Nanos) {
        self.now = self.now.max(now);
        let handled = match bytes.first().map(|first| Kind::of(*first)) {
            Some(Ok(Kind::Grant)) => self.handle_grant(from, bytes),
            Some(Ok(Kind::Rres)) => self.handle_answer(from, bytes),
            _ => None,
        };
        if handled.is_none() {
            self.counters.malformed += 1;
        }
    }

    fn handle_grant(&mut self, from: u16, bytes: &[u8]) -> Option<()> {
        let grant = Control::parse(bytes).ok()?;
        let (chunk, deadline) = (self.config.chunk_bytes, self.now.saturating_add(self.config.timeout));
        let active = self.peers.get_mut(&from).and_then(|peer| peer.active[WRITE].get_mut(&grant.id));
        match active {
            Some(active)
                if grant.answer == 0
                    && grant.offset == active.sent
                    && (1..=chunk).contains(&grant.bytes)
                    && grant.bytes <= size(&active.request) - active.sent =>
            {
                active.sent += grant.bytes;
                active.deadline = deadline;
                self.out.push_back(Out::Chunk(from, grant.id, grant.offset, grant.bytes));
            }
            _ => self.counters.grants_unasked += 1,
        }
        Some(())
    }

    fn handle_answer(&mut self, from: u16, bytes: &[u8]) -> Option<()> {
        let message = Message::parse(bytes).ok()?;
        let chunk = bytes.get(Message::BYTES..Message::BYTES + usize::from(message.bytes))?;
        let status = Status::of(message.code)?;
        let deadline = self.now.saturating_add(self.config.timeout);
        let asked = self.peers.get_mut(&from).and_then(|peer| peer.active[ANSWERED].get_mut(&message.id));
        let Some(active) = asked.filter(|_| message.start == self.start) else {
            self.counters.answers_unasked += 1;
            return Some(());
        };
        let whole = size(&active.request);
        let outcome = match status {
            Status::Done => {
                let fits = message.offset as usize == active.done.len()
                    && message.total == whole
                    && !chunk.is_empty()
                    && active.done.len() + chunk.len() <= whole as usize;
                if !fits {
                    self.counters.answers_unasked += 1;
                    return Some(());
                }
                active.done.extend_from_slice(chunk);
                active.deadline = deadline;
                if active.done.len() < whole as usize {
                    return Some(());
                }
                Outcome::Answer(std::mem::take(&mut active.done))
            }
            refused => Outcome::Refused(refused),
        };
        self.counters.answers += 1;
        self.finish(from, ANSWERED, message.id, outcome);
        Some(())
    }

    fn finish(&mut self, to: u16, class: usize, id: u16, outcome: Outcome) {
        let active = self.peers.get_mut(&to).and_then(|peer| peer.active[class].remove(&id));
        if let Some(active) = active {
            self.completions.push_back((active.token, outcome));
            self.fill(to, class);
        }
    }

    /// Ends what has waited too long.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        let mut late = Vec::new();
        for (to, peer) in &self.peers {
            for class in [WRITE, ANSWERED] {
                let of = peer.active[class].iter().filter(|(_, active)| active.deadline <= self.now);
                late.extend(of.map(|(id, active)| (*to, class, *id, active.retries)));
            }
        }
        for (to, class, id, retries) in late {
            if class == WRITE && retries < self.config.retries {
                self.ask_again(to, id);
            } else {
                self.counters.timeouts += 1;
                self.finish(to, class, id, Outcome::Null);
            }
        }
    }

    /// Handles a write without grants: the rest becomes a new message. What was sent is not sent again.
    fn ask_again(&mut self, to: u16, id: u16) {
        let (deadline, peer) =
            (self.now.saturating_add(self.config.timeout), self.peers.entry(to).or_default());
        let Some(mut active) = peer.active[WRITE].remove(&id) else { return };
        // Granted chunks still have to be sent from it, so they leave first.
        if self.out.iter().any(|out| matches!(out, Out::Chunk(node, of, ..) if (*node, *of) == (to, id))) {
            active.deadline = deadline;
            peer.active[WRITE].insert(id, active);
            return;
        }
        if let Request::Write(bytes) = &mut active.request {
            bytes.drain(..active.sent as usize);
        }
        active.address = active.address.wrapping_add(active.sent.into());
        (active.sent, active.retries, active.deadline) = (0, active.retries + 1, deadline);
        let again = peer.next_id[WRITE];
        peer.next_id[WRITE] = again.wrapping_add(1);
        peer.active[WRITE].insert(again, active);
        self.counters.again += 1;
        self.out.push_back(Out::Ask(to, WRITE, again));
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let active = self.peers.values().flat_map(|peer| peer.active.iter().flat_map(BTreeMap::values));
        active.map(|active| active.deadline).min()
    }

    /// The next outcome: the number of its request, and how it ended.
    pub fn poll_completion(&mut self) -> Option<(u64, Outcome)> {
        self.completions.pop_front()
    }

    /// Writes the next message over `out`. Returns the memory node to which it belongs.
    pub fn poll_message(&mut self, out: &mut Vec<u8>) -> Option<u16> {
        loop {
            match self.out.pop_front()? {
                Out::Ask(to, class, id) => {
                    let Some(active) = self.peers.get(&to).and_then(|peer| peer.active[class].get(&id))
                    else {
                        continue;
                    };
                    ask(active, (id, self.start), out);
                    return Some(to);
                }
                Out::Chunk(to, id, offset, bytes) => {
                    let active = self.peers.get(&to).and_then(|peer| peer.active[WRITE].get(&id));
                    let Some((active, Request::Write(data))) = active.map(|active| (active, &active.request))
                    else {
                        continue;
                    };
                    let (from, until) = (offset as usize, (offset + bytes) as usize);
                    let whole = until == data.len();
                    header(active, Kind::Wreq, 0, (id, self.start), data.len() as u32, offset, bytes, out);
                    out.extend_from_slice(&data[from..until]);
                    if whole {
                        self.finish(to, WRITE, id, Outcome::Sent);
                    }
                    return Some(to);
                }
            }
        }
    }
}

/// Number of bytes that a request writes, or that its answer carries.
fn size(request: &Request) -> u32 {
    match request {
        Request::Read(bytes) => *bytes,
        Request::Write(bytes) => bytes.len() as u32,
        Request::Modify(..) => 8,
    }
}

/// What announces a message: a notification, or the request itself.
fn ask(active: &Active, (id, start): (u16, u16), out: &mut Vec<u8>) {
    match &active.request {
        Request::Write(bytes) => {
            out.clear();
            out.resize(Control::BYTES, 0);
            let kind = Kind::Notify as u8;
            Control { version: VERSION, kind, answer: 0, id, offset: 0, bytes: bytes.len() as u32 }.emit(out);
        }
        Request::Read(bytes) => header(active, Kind::Rreq, 0, (id, start), *bytes, 0, 0, out),
        Request::Modify(opcode, operands) => {
            let count = opcode.operands();
            header(active, Kind::Rmwreq, *opcode as u8, (id, start), 8, 0, 8 * count as u32, out);
            operands[..count].iter().for_each(|operand| out.extend_from_slice(&operand.to_be_bytes()));
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn header(
    active: &Active,
    kind: Kind,
    code: u8,
    (id, start): (u16, u16),
    total: u32,
    offset: u32,
    bytes: u32,
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(Message::BYTES, 0);
    let (version, kind, bytes) = (VERSION, kind as u8, bytes as u16);
    let (key, address) = (active.key, active.address);
    Message { version, kind, code, id, key, address, total, offset, bytes, start }.emit(out);
}
