//! A memory node: regions that others read, write and modify, without I/O.
//!
//! ```text
//!   RREQ, RMWREQ, WREQ, GRANT ── handle_link ─▶ MemoryNode ── poll_link ─▶ RRES
//! ```
//!
//! A request is the grant for the first chunks of its answer. It gives their time and their bytes, where 0 means a
//! window, unless it announces that all grants follow ([`GRANTED_LATER`]). The switch grants the others. An atomic
//! operation is carried out when its request arrives, before the next message is handled, and never twice: duplicates
//! of requests are dropped. Writes are applied chunk by chunk as they arrive; duplicates of chunks are dropped.
//! Messages of other sessions than the requester's change nothing. Writes have no answer: each answer has the session's
//! number of refused writes so far, and the reason of the last one.

use super::parts::{Parts, Taken};
use super::release::Releases;
use super::session::{self, Belongs, Sessions};
use super::window::{Seen, Window};
use crate::common::Turns;
use crate::machine::Machine;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{
    Control, GRANTED_LATER, Kind, Message, OPEN, Opcode, SESSION_BYTES, Status, WORD_BYTES,
};
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rights that a key gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Reads.
    pub read: bool,
    /// Writes; together with reads also atomic operations.
    pub write: bool,
}

/// Memory that is accessible with a key. Its bytes may be a vector, or any other container of fixed size.
#[derive(Clone, Debug)]
pub struct Region<B = Vec<u8>> {
    /// Address of its first byte.
    pub start: u64,
    /// Its contents.
    pub bytes: B,
    /// The key, which gives `rights`.
    pub key: u32,
    /// See `key`.
    pub rights: Rights,
}

/// Parameters of a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum bytes per chunk.
    pub chunk_bytes: u16,
    /// Maximum chunks per grant.
    pub window: u32,
    /// Unit of the waits in grants and requests.
    pub wait_unit: Nanos,
    /// Maximum bytes per message.
    pub message_bytes_max: u32,
    /// Maximum answers that wait for grants, and maximum incomplete writes, per requester. A new one replaces the oldest,
    /// whose requester has given up long ago.
    pub answers_max: usize,
    /// Maximum bytes of all waiting answers. A request beyond them is refused.
    pub answer_bytes_max: usize,
    /// Number of a requester's first session. A node that restarts at the same address needs a number that is later, modulo 2^16,
    /// than those of messages in flight: it forgets its sessions, and must not offer them again.
    pub first_session: u16,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            chunk_bytes: 256,
            window: 1,
            wait_unit: Nanos(1),
            message_bytes_max: 1 << 24,
            answers_max: 64,
            answer_bytes_max: 64 << 20,
            first_session: 1,
        }
    }
}

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that were answered.
    pub reads: u64,
    /// Atomic operations that were done.
    pub modifies: u64,
    /// Chunks of writes that were applied.
    pub chunks: u64,
    /// Writes that are complete.
    pub writes: u64,
    /// Requests that were refused, by [`Status`]; index 0 stays 0.
    pub refused: [u64; Status::ALL.len()],
    /// Duplicates of messages.
    pub copies: u64,
    /// Messages that are malformed, or not for a memory node.
    pub malformed: u64,
    /// Grants without a waiting answer.
    pub grants_unasked: u64,
    /// Writes that were given up, because chunks came before too many earlier ones.
    pub gaps: u64,
    /// Answers and incomplete writes that newer ones replaced, because too many waited for grants; messages of
    /// requesters beyond the maximum; grants that found the queue full.
    pub overflows: u64,
    /// Sessions that were offered.
    pub offers: u64,
    /// Sessions that ended because the requester, having started again, began another one.
    pub restarts: u64,
    /// Messages of no session that the node knows: from before one of the two started again.
    pub stale: u64,
}

impl Counters {
    /// All of them by name; refused requests apart, see [`refused`](Self::refused).
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("reads", self.reads),
            ("modifies", self.modifies),
            ("chunks", self.chunks),
            ("writes", self.writes),
            ("copies", self.copies),
            ("malformed", self.malformed),
            ("grants_unasked", self.grants_unasked),
            ("gaps", self.gaps),
            ("overflows", self.overflows),
            ("offers", self.offers),
            ("restarts", self.restarts),
            ("stale", self.stale),
        ]
    }
}

/// A message that may leave.
#[derive(Clone, Copy, Debug)]
struct Leaves {
    to: u16,
    id: u16,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A chunk of an answer that was granted.
    Chunk { offset: u32, bytes: u32 },
    /// The NULL response to a request of this session.
    Null { status: Status, session: u16 },
}

/// An answer that is being sent.
#[derive(Clone, Debug)]
struct Answer {
    /// The session of the request, and the one that it is about: an opening is of none.
    start: u16,
    session: u16,
    bytes: Vec<u8>,
    granted: u32,
    /// Time at which the last granted chunk may leave; later ones don't pass it.
    release: Nanos,
}

/// An incomplete write.
#[derive(Clone, Debug)]
struct Partial {
    address: u64,
    total: u32,
    parts: Parts,
}

impl Partial {
    fn of(message: &Message) -> Partial {
        Partial { address: message.address, total: message.total, parts: Parts::default() }
    }
}

/// State of a requester.
#[derive(Clone, Debug)]
struct Requester {
    sessions: Sessions,
    /// Arrival of its last message, or of the last grant of an answer to it.
    heard: Nanos,
    state: State,
}

/// State of a session.
#[derive(Clone, Debug, Default)]
struct State {
    requests: Window,
    writes: Window,
    answers: BTreeMap<u16, Answer>,
    /// Incomplete writes by id.
    partial: BTreeMap<u16, Partial>,
    /// Writes that were refused, and why the last one was.
    refused: u32,
    refused_why: u64,
}

/// A memory node.
#[derive(Clone, Debug)]
pub struct MemoryNode<B = Vec<u8>> {
    config: Config,
    regions: Vec<Region<B>>,
    requesters: BTreeMap<u16, Requester>,
    /// The grant queue: chunks whose time has not come.
    granted: Releases<Leaves>,
    /// Messages that may leave. Requesters take turns, so busy ones have equal shares of the link, independent of their
    /// grants.
    due: Turns<u16, (Nanos, Leaves)>,
    /// Bytes of all answers that wait.
    answer_bytes: usize,
    counters: Counters,
}

/// Maximum requesters of a node.
const REQUESTERS_MAX: usize = 1_024;
/// Maximum entries of the grant queue.
const GRANTED_MAX: usize = 65_536;
/// Quiet time after which a requester may lose its place to another one.
const QUIET: Nanos = Nanos::from_secs(10);

impl<B: AsRef<[u8]> + AsMut<[u8]>> MemoryNode<B> {
    /// A node with these regions. Errors: two overlap, or one extends beyond the last address.
    pub fn new(config: Config, mut regions: Vec<Region<B>>) -> Result<MemoryNode<B>, String> {
        regions.sort_by_key(|region| region.start);
        let end = |region: &Region<B>| region.start.checked_add(region.bytes.as_ref().len() as u64);
        for pair in regions.windows(2) {
            if end(&pair[0]).is_none_or(|end| end > pair[1].start) {
                return Err(format!("regions at {:#x} and {:#x} overlap", pair[0].start, pair[1].start));
            }
        }
        if let Some(last) = regions.last().filter(|last| end(last).is_none()) {
            return Err(format!("the region at {:#x} has no room for its bytes", last.start));
        }
        let (requesters, granted) = (BTreeMap::new(), Releases::new());
        let due = Turns::new(wire_bytes(config.chunk_bytes.into()));
        Ok(MemoryNode {
            config,
            regions,
            requesters,
            granted,
            due,
            answer_bytes: 0,
            counters: Counters::default(),
        })
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The regions with their current contents.
    pub fn regions(&self) -> &[Region<B>] {
        &self.regions
    }

    /// Begins a session with a compute node, as if messages had been exchanged: racks may start in a steady state.
    pub fn begin_session(&mut self, with: u16, session: u16) {
        self.end_session(with);
        let (sessions, heard) = (Sessions::begun(session, self.config.first_session), Nanos::ZERO);
        self.requesters.insert(with, Requester { sessions, heard, state: State::default() });
    }

    /// The number of the session with this node, if there is one.
    pub fn session(&self, with: u16) -> Option<u16> {
        self.requesters.get(&with)?.sessions.current()
    }

    fn handle_read(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let message = Message::parse(bytes).ok()?;
        if message.code == OPEN {
            return self.handle_open(from, &message, arrived);
        }
        if message.code != 0 {
            return None;
        }
        if !self.is_new(from, &message, arrived) {
            return Some(());
        }
        let found = self.find(&message, message.address, message.total);
        let found = found.and_then(|(nth, at)| match self.regions[nth].rights.read {
            false => Err(Status::NotPermitted),
            true if self.answer_bytes + message.total as usize > self.config.answer_bytes_max => {
                Err(Status::Busy)
            }
            true => Ok(self.regions[nth].bytes.as_ref()[at..at + message.total as usize].to_vec()),
        });
        self.counters.reads += u64::from(found.is_ok());
        self.answer((from, message.start), &message, found, arrived, self.granted_by(&message));
        Some(())
    }

    /// Offers a session. The state of the previous one stays until the new one begins.
    fn handle_open(&mut self, from: u16, message: &Message, arrived: Nanos) -> Option<()> {
        if message.total != SESSION_BYTES {
            return None;
        }
        if !self.has_room(from, arrived) {
            return Some(());
        }
        let sessions = Sessions::new(self.config.first_session);
        let new = Requester { sessions, heard: arrived, state: State::default() };
        let requester = self.requesters.entry(from).or_insert(new);
        requester.heard = requester.heard.max(arrived);
        let Some(session) = requester.sessions.open(message.address, message.id) else {
            self.counters.copies += 1;
            return Some(());
        };
        self.counters.offers += 1;
        let offer = Ok(session::answer(message.address, session));
        self.answer((from, session), message, offer, arrived, self.granted_by(message));
        Some(())
    }

    fn handle_modify(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let message = Message::parse(bytes).ok()?;
        let words = bytes.get(Message::BYTES..Message::BYTES + usize::from(message.bytes))?;
        if !self.is_new(from, &message, arrived) {
            return Some(());
        }
        let done = self.modify(&message, words);
        self.counters.modifies += u64::from(done.is_ok());
        let done = done.map(|old| old.to_be_bytes().to_vec());
        self.answer((from, message.start), &message, done, arrived, WORD_BYTES);
        Some(())
    }

    fn modify(&mut self, message: &Message, words: &[u8]) -> Result<u64, Status> {
        let opcode = Opcode::of(message.code).ok_or(Status::BadOperation)?;
        if words.len() != opcode.operands() * WORD_BYTES as usize
            || !message.address.is_multiple_of(u64::from(WORD_BYTES))
        {
            return Err(Status::BadOperation);
        }
        let (nth, at) = self.find(message, message.address, WORD_BYTES)?;
        let region = &mut self.regions[nth];
        if !(region.rights.read && region.rights.write) {
            return Err(Status::NotPermitted);
        }
        let mut operands = [0; 2];
        for (operand, word) in operands.iter_mut().zip(words.chunks_exact(8)) {
            *operand = word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        let word = &mut region.bytes.as_mut()[at..at + WORD_BYTES as usize];
        let old = word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        word.copy_from_slice(&opcode.apply(old, operands).to_be_bytes());
        Ok(old)
    }

    fn handle_write(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let message = Message::parse(bytes).ok()?;
        let chunk = bytes.get(Message::BYTES..Message::BYTES + usize::from(message.bytes))?;
        let end = message.offset.checked_add(u32::from(message.bytes)).filter(|end| *end <= message.total)?;
        let address = message.address.checked_add(u64::from(message.offset));
        let Some(state) = self.entered(from, message.start, arrived) else { return Some(()) };
        let is_new = state.writes.see(message.id) == Seen::New;
        let known = state.partial.remove(&message.id);
        if is_new && known.is_some() {
            // It was never completed, and its id has wrapped around.
            state.refuse_write(Status::Incomplete);
            self.counters.overflows += 1;
        }
        let Some(state) = self.requesters.get_mut(&from).map(|one| &mut one.state) else { return Some(()) };
        let known = known.filter(|_| !is_new);
        let is_known = known.is_some();
        let Some(mut write) = known.or_else(|| is_new.then(|| Partial::of(&message))) else {
            self.counters.copies += 1;
            return Some(());
        };
        let is_same = (write.address, write.total) == (message.address, message.total);
        let taken = if is_same { write.parts.take(message.offset, end) } else { Taken::Before };
        if taken == Taken::Before {
            // A copy, or the same id for another write: the first one counts.
            if is_known {
                state.partial.insert(message.id, write);
            }
            self.counters.copies += 1;
            return Some(());
        }
        if taken == Taken::TooFar {
            state.refuse_write(Status::Incomplete);
            self.counters.gaps += 1;
            return Some(());
        }
        let whole = self.find(&message, message.address, message.total);
        let placed = whole.and_then(|(nth, _)| match self.regions[nth].rights.write {
            true => Ok((nth, (address.unwrap_or(0) - self.regions[nth].start) as usize)),
            false => Err(Status::NotPermitted),
        });
        let (nth, at) = match placed {
            Ok(placed) => placed,
            Err(status) => {
                self.counters.refused[status as usize] += 1;
                self.requesters.entry(from).and_modify(|one| one.state.refuse_write(status));
                return Some(());
            }
        };
        self.regions[nth].bytes.as_mut()[at..at + chunk.len()].copy_from_slice(chunk);
        self.counters.chunks += 1;
        if write.parts.until() == message.total {
            self.counters.writes += 1;
            return Some(());
        }
        let Some(Requester { state, .. }) = self.requesters.get_mut(&from) else { return Some(()) };
        if !is_known && state.partial.len() >= self.config.answers_max {
            self.counters.overflows += 1;
            state.refuse_write(Status::Incomplete);
            forget_oldest(&mut state.partial, message.id);
        }
        state.partial.insert(message.id, write);
        Some(())
    }

    fn handle_grant(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let grant = Control::parse(bytes).ok()?;
        let (at, most) = (self.release(arrived, grant.wait), self.granted_at_once());
        let requester = self.requesters.get_mut(&from).filter(|_| grant.answer == 1);
        let found = requester.and_then(|one| Some((one.state.answers.get_mut(&grant.id)?, &mut one.heard)));
        match found {
            Some(_) if self.granted.len() + self.due.len() >= GRANTED_MAX => self.counters.overflows += 1,
            Some((answer, heard))
                if grant.offset == answer.granted
                    && (1..=most).contains(&grant.bytes)
                    && grant.bytes <= answer.bytes.len() as u32 - answer.granted =>
            {
                // A requester that waits for a long answer is not quiet.
                *heard = arrived.max(*heard);
                answer.granted += grant.bytes;
                answer.release = at.max(answer.release);
                let at = answer.release;
                self.release_chunks(at, from, grant.id, grant.offset..grant.offset + grant.bytes);
            }
            _ => self.counters.grants_unasked += 1,
        }
        Some(())
    }

    /// Time at which data granted with a wait may leave.
    fn release(&self, arrived: Nanos, units: u32) -> Nanos {
        arrived.saturating_add(Nanos(self.config.wait_unit.0.saturating_mul(units.into())))
    }

    /// Maximum bytes per grant.
    fn granted_at_once(&self) -> u32 {
        u32::from(self.config.chunk_bytes).saturating_mul(self.config.window)
    }

    /// Bytes of its answer that a request grants.
    fn granted_by(&self, request: &Message) -> u32 {
        match request.bytes {
            0 => self.granted_at_once(),
            bytes => bytes.into(),
        }
    }

    /// Queues the chunks of a range of an answer.
    fn release_chunks(&mut self, at: Nanos, to: u16, id: u16, range: Range<u32>) {
        for offset in range.clone().step_by(usize::from(self.config.chunk_bytes)) {
            let bytes = u32::from(self.config.chunk_bytes).min(range.end - offset);
            self.granted.push(at, Leaves { to, id, what: What::Chunk { offset, bytes } });
        }
    }

    /// Whether a request is to be answered: it is of the requester's session and was not seen before. One of another session gets the
    /// NULL response.
    fn is_new(&mut self, from: u16, message: &Message, arrived: Nanos) -> bool {
        let Some(state) = self.entered(from, message.start, arrived) else {
            self.answer((from, message.start), message, Err(Status::NoSession), arrived, 0);
            return false;
        };
        let new = state.requests.see(message.id) == Seen::New;
        self.counters.copies += u64::from(!new);
        new
    }

    /// The state of a requester's session, which begins with its first message. `None` if there is no such session.
    fn entered(&mut self, from: u16, session: u16, arrived: Nanos) -> Option<&mut State> {
        let entered = self.requesters.get_mut(&from).map(|one| one.sessions.enter(session));
        match entered.unwrap_or(Belongs::None) {
            Belongs::None => {
                self.counters.stale += 1;
                return None;
            }
            Belongs::Begins { again } => {
                self.counters.restarts += u64::from(again);
                self.end_session(from);
            }
            Belongs::Current => {}
        }
        let requester = self.requesters.get_mut(&from)?;
        requester.heard = requester.heard.max(arrived);
        Some(&mut requester.state)
    }

    /// Whether there is a place for this requester. The first one that was quiet for long gives up its place if there is none.
    fn has_room(&mut self, from: u16, arrived: Nanos) -> bool {
        if self.requesters.len() < REQUESTERS_MAX || self.requesters.contains_key(&from) {
            return true;
        }
        let is_quiet = |one: &Requester| arrived.saturating_sub(one.heard) > QUIET;
        let quiet = self.requesters.iter().find(|(_, one)| is_quiet(one)).map(|(from, _)| *from);
        let Some(quiet) = quiet else {
            self.counters.overflows += 1;
            return false;
        };
        self.end_session(quiet);
        self.requesters.remove(&quiet);
        true
    }

    /// Removes the state of a requester's session, and the messages that wait for it.
    fn end_session(&mut self, from: u16) {
        let Some(known) = self.requesters.get_mut(&from) else { return };
        let state = std::mem::take(&mut known.state);
        self.answer_bytes -= state.answers.values().map(|answer| answer.bytes.len()).sum::<usize>();
        self.granted.retain(|leaves| leaves.to != from);
        self.due.forget(from);
    }

    /// The region that contains these bytes, and their offset in it.
    fn find(&self, message: &Message, address: u64, bytes: u32) -> Result<(usize, usize), Status> {
        if bytes == 0 || bytes > self.config.message_bytes_max {
            return Err(Status::BadLength);
        }
        let after = self.regions.partition_point(|region| region.start <= address);
        let nth = after.checked_sub(1).ok_or(Status::NoSuchAddress)?;
        let (region, at) = (&self.regions[nth], address - self.regions[nth].start);
        if at.checked_add(bytes.into()).is_none_or(|end| end > region.bytes.as_ref().len() as u64) {
            return Err(Status::NoSuchAddress);
        }
        if region.key != message.key {
            return Err(Status::WrongKey);
        }
        Ok((nth, at as usize))
    }

    /// Queues the answer to a request about a session, whose first bytes, `most` of them, it has granted, if it has. Refused
    /// requests get the NULL response, which needs no grant.
    fn answer(
        &mut self,
        (to, session): (u16, u16),
        request: &Message,
        answer: Result<Vec<u8>, Status>,
        arrived: Nanos,
        most: u32,
    ) {
        let (id, start) = (request.id, request.start);
        let from = (request.offset != GRANTED_LATER).then(|| self.release(arrived, request.offset));
        let at = from.unwrap_or(Nanos::ZERO);
        if let Err(status) = answer {
            self.counters.refused[status as usize] += 1;
        }
        if self.granted.len() + self.due.len() >= GRANTED_MAX {
            self.counters.overflows += 1;
            return;
        }
        let bytes = match answer {
            Ok(bytes) => bytes,
            Err(status) => {
                return self.granted.push(at, Leaves { to, id, what: What::Null { status, session } });
            }
        };
        let granted = from.map_or(0, |_| (bytes.len() as u32).min(most).min(self.granted_at_once()));
        let Some(Requester { state: State { answers, .. }, .. }) = self.requesters.get_mut(&to) else {
            return;
        };
        if answers.len() >= self.config.answers_max {
            self.counters.overflows += 1;
            let forgotten = forget_oldest(answers, id);
            self.answer_bytes -= forgotten.as_ref().map_or(0, |(_, answer)| answer.bytes.len());
            let stays = |leaves: &Leaves| forgotten.as_ref().is_none_or(|one| one.0 != leaves.id);
            self.granted.retain(|leaves| leaves.to != to || stays(leaves));
            self.due.retain_of(to, |(_, leaves)| stays(leaves));
        }
        self.answer_bytes += bytes.len();
        let replaced = answers.insert(id, Answer { start, session, bytes, granted, release: at });
        self.answer_bytes -= replaced.map_or(0, |answer| answer.bytes.len());
        self.release_chunks(at, to, id, 0..granted);
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + Send> Machine for MemoryNode<B> {
    type Received<'a> = (u16, &'a [u8]);
    type Sent = u16;
    type Buffer = Vec<u8>;

    /// Accepts a message of a node. Waits in it count from `received_at`.
    fn handle_link(&mut self, (from, bytes): (u16, &[u8]), received_at: Nanos, _now: Nanos) {
        let handled = match bytes.first().map(|first| Kind::of(*first)) {
            Some(Ok(Kind::Rreq)) => self.handle_read(from, bytes, received_at),
            Some(Ok(Kind::Rmwreq)) => self.handle_modify(from, bytes, received_at),
            Some(Ok(Kind::Wreq)) => self.handle_write(from, bytes, received_at),
            Some(Ok(Kind::Grant)) => self.handle_grant(from, bytes, received_at),
            _ => None,
        };
        if handled.is_none() {
            self.counters.malformed += 1;
        }
    }

    /// Writes the next message whose time has come over `out`, and returns the node that it is for. To be called when the link is
    /// free: then requesters have equal shares of it.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        while let Some((at, leaves)) = self.granted.next_at().zip(self.granted.pop(now)) {
            let bytes = match &leaves.what {
                What::Null { .. } => 0,
                What::Chunk { bytes, .. } => u64::from(*bytes),
            };
            self.due.push(leaves.to, wire_bytes(bytes), (at, leaves));
        }
        loop {
            let (_, Leaves { to, id, what }) = self.due.pop()?;
            let requester = self.requesters.get(&to);
            let mut message = Message {
                version: p4rack_wire::edm::VERSION,
                kind: Kind::Rres as u8,
                code: Status::Done as u8,
                id,
                key: 0,
                address: 0,
                total: 0,
                offset: 0,
                bytes: 0,
                start: 0,
            };
            out.clear();
            out.resize(Message::BYTES, 0);
            let (offset, bytes) = match what {
                What::Null { status, session } => {
                    (message.code, message.start) = (status as u8, session);
                    requester.into_iter().for_each(|one| one.report(session, &mut message));
                    message.emit(out);
                    return Some(to);
                }
                What::Chunk { offset, bytes } => (offset, bytes),
            };
            // A request with the same id may have replaced its answer.
            let Some((requester, answer)) =
                requester.and_then(|one| Some((one, one.state.answers.get(&id)?)))
            else {
                continue;
            };
            let (from, until) = (offset as usize, (offset + bytes) as usize);
            let Some(chunk) = answer.bytes.get(from..until) else { continue };
            (message.total, message.start) = (answer.bytes.len() as u32, answer.start);
            (message.offset, message.bytes) = (offset, bytes as u16);
            requester.report(answer.session, &mut message);
            message.emit(out);
            out.extend_from_slice(chunk);
            if until == answer.bytes.len() {
                self.answer_bytes -= answer.bytes.len();
                self.requesters.entry(to).and_modify(|one| _ = one.state.answers.remove(&id));
            }
            return Some(to);
        }
    }

    fn next_link(&self) -> Option<Nanos> {
        self.due.first().map(|(at, _)| *at).or_else(|| self.granted.next_at())
    }
}

impl Requester {
    /// Fills in the number of refused writes, if this is the current session.
    fn report(&self, session: u16, message: &mut Message) {
        if self.sessions.current() == Some(session) {
            (message.key, message.address) = (self.state.refused, self.state.refused_why);
        }
    }
}

impl State {
    /// Counts a write that was refused: its requester learns from the next answer.
    fn refuse_write(&mut self, status: Status) {
        self.refused = self.refused.saturating_add(1);
        self.refused_why = status as u64;
    }
}

/// Bytes on the wire of a frame that carries `bytes` of an answer.
fn wire_bytes(bytes: u64) -> u64 {
    let headers = (Ethernet::BYTES + Vlan::BYTES + Message::BYTES) as u64;
    overhead::wire_bytes(headers + bytes)
}

/// Removes and returns the oldest id, the one furthest behind `newest`.
fn forget_oldest<T>(of: &mut BTreeMap<u16, T>, newest: u16) -> Option<(u16, T)> {
    let oldest = of.keys().max_by_key(|id| newest.wrapping_sub(**id)).copied()?;
    of.remove_entry(&oldest)
}
