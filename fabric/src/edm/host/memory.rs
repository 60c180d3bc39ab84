//! A memory node: regions that others read, write and modify, without I/O.
//!
//! ```text
//!   RREQ, RMWREQ, WREQ, GRANT ── handle_message ─▶ Node ── poll_message ─▶ RRES
//! ```
//!
//! A request is the grant for the first chunks of its answer, and says when they may leave, unless it says that all grants follow
//! ([`GRANTED_LATER`]), and how many bytes these are: 0 stands for a window. The switch grants the others. An atomic operation is carried out when its request arrives, before the next
//! message is handled, and never twice: duplicates of requests are dropped. Writes are applied chunk by chunk as they arrive;
//! duplicates of chunks are dropped.

use super::parts::{Parts, Taken};
use super::release::Releases;
use super::turns::Turns;
use super::window::{Seen, Window};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, GRANTED_LATER, Kind, Message, Opcode, Status, WORD_BYTES};
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

/// Memory that is accessible with a key. Its bytes may be a vector, or whatever else holds bytes of a fixed number.
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
    /// Answers and incomplete writes that newer ones replaced, because too many waited for grants; messages of requesters
    /// beyond the maximum; what found the grant queue full.
    pub overflows: u64,
    /// Requesters that started again.
    pub restarts: u64,
    /// Messages of a requester from before it started again.
    pub stale: u64,
}

impl Counters {
    /// All of them by name; refused requests apart, see [`refused`](Self::refused).
    pub fn named(&self) -> [(&'static str, u64); 11] {
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
            ("restarts", self.restarts),
            ("stale", self.stale),
        ]
    }
}

/// A chunk of an answer that was granted.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    to: u16,
    id: u16,
    offset: u32,
    bytes: u32,
}

/// An answer that is being sent.
#[derive(Clone, Debug)]
struct Answer {
    status: Status,
    bytes: Vec<u8>,
    granted: u32,
    /// When the last granted chunk may leave: later ones don't pass it.
    release: Nanos,
}

/// A write of which bytes are missing.
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
#[derive(Clone, Debug, Default)]
struct Requester {
    /// Its start.
    start: u16,
    /// When its last message arrived, or the last grant of an answer to it.
    heard: Nanos,
    requests: Window,
    writes: Window,
    answers: BTreeMap<u16, Answer>,
    /// Incomplete writes by id.
    partial: BTreeMap<u16, Partial>,
}

/// A memory node.
#[derive(Clone, Debug)]
pub struct Node<B = Vec<u8>> {
    config: Config,
    regions: Vec<Region<B>>,
    requesters: BTreeMap<u16, Requester>,
    /// The grant queue: chunks whose time has not come.
    granted: Releases<Chunk>,
    /// Those that may leave. Requesters take turns, so that none has more of the link than others who want it, whatever it has
    /// been granted.
    due: Turns<(Nanos, Chunk)>,
    /// Bytes of all answers that wait.
    answer_bytes: usize,
    counters: Counters,
}

/// Maximum requesters of a node.
const REQUESTERS_MAX: usize = 1_024;
/// Maximum entries of the grant queue.
const GRANTED_MAX: usize = 65_536;
/// After so long without a message of it, a requester may be another one: none of its messages is under way any more. Much less
/// than half of what starts take to come round again.
const QUIET: Nanos = Nanos::from_secs(10);

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// A node with these regions. Errors: two overlap, or one extends beyond the last address.
    pub fn new(config: Config, mut regions: Vec<Region<B>>) -> Result<Node<B>, String> {
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
        Ok(Node { config, regions, requesters, granted, due, answer_bytes: 0, counters: Counters::default() })
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The regions with their current contents.
    pub fn regions(&self) -> &[Region<B>] {
        &self.regions
    }

    /// Accepts a message of node `from`; `bytes` start after the EtherType. Waits in it count from `arrived`.
    pub fn handle_message(&mut self, from: u16, bytes: &[u8], arrived: Nanos) {
        let handled = match bytes.first().map(|first| Kind::of(*first)) {
            Some(Ok(Kind::Rreq)) => self.handle_read(from, bytes, arrived),
            Some(Ok(Kind::Rmwreq)) => self.handle_modify(from, bytes, arrived),
            Some(Ok(Kind::Wreq)) => self.handle_write(from, bytes, arrived),
            Some(Ok(Kind::Grant)) => self.handle_grant(from, bytes, arrived),
            _ => None,
        };
        if handled.is_none() {
            self.counters.malformed += 1;
        }
    }

    fn handle_read(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let message = Message::parse(bytes).ok()?;
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
        let granted = match message.bytes {
            0 => self.granted_at_once(),
            bytes => bytes.into(),
        };
        self.answer(from, message.id, found, self.granted_from(arrived, message.offset), granted);
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
        self.answer(from, message.id, done, self.granted_from(arrived, message.offset), WORD_BYTES);
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
        if !self.is_known(from, message.start, arrived) {
            return Some(());
        }
        let requester = self.requesters.entry(from).or_default();
        // One that was never completed goes when its id comes round again.
        let is_new = requester.writes.see(message.id) == Seen::New;
        let known = requester.partial.remove(&message.id).filter(|_| !is_new);
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
                requester.partial.insert(message.id, write);
            }
            self.counters.copies += 1;
            return Some(());
        }
        if taken == Taken::TooFar {
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
                return Some(());
            }
        };
        self.regions[nth].bytes.as_mut()[at..at + chunk.len()].copy_from_slice(chunk);
        self.counters.chunks += 1;
        if write.parts.until() == message.total {
            self.counters.writes += 1;
            return Some(());
        }
        let requester = self.requesters.entry(from).or_default();
        if !is_known && requester.partial.len() >= self.config.answers_max {
            self.counters.overflows += 1;
            forget_oldest(&mut requester.partial, message.id);
        }
        requester.partial.insert(message.id, write);
        Some(())
    }

    fn handle_grant(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let grant = Control::parse(bytes).ok()?;
        let (at, most) = (self.release(arrived, grant.wait), self.granted_at_once());
        let requester = self.requesters.get_mut(&from).filter(|_| grant.answer == 1);
        let found = requester.and_then(|one| Some((one.answers.get_mut(&grant.id)?, &mut one.heard)));
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

    /// When what is granted with a wait may leave.
    fn release(&self, arrived: Nanos, units: u32) -> Nanos {
        arrived.saturating_add(Nanos(self.config.wait_unit.0.saturating_mul(units.into())))
    }

    /// When the first bytes of an answer may leave; `None` if its request grants none.
    fn granted_from(&self, arrived: Nanos, units: u32) -> Option<Nanos> {
        (units != GRANTED_LATER).then(|| self.release(arrived, units))
    }

    /// Maximum bytes per grant.
    fn granted_at_once(&self) -> u32 {
        u32::from(self.config.chunk_bytes).saturating_mul(self.config.window)
    }

    /// Queues the chunks of a range of an answer; a single empty one if the range is empty.
    fn release_chunks(&mut self, at: Nanos, to: u16, id: u16, range: Range<u32>) {
        let mut offset = range.start;
        loop {
            let bytes = u32::from(self.config.chunk_bytes).min(range.end - offset);
            self.granted.push(at, Chunk { to, id, offset, bytes });
            offset += bytes;
            if offset >= range.end {
                return;
            }
        }
    }

    /// Whether a request was not seen before.
    fn is_new(&mut self, from: u16, message: &Message, arrived: Nanos) -> bool {
        if !self.is_known(from, message.start, arrived) {
            return false;
        }
        let requester = self.requesters.entry(from).or_default();
        let new = requester.requests.see(message.id) == Seen::New;
        self.counters.copies += u64::from(!new);
        new
    }

    /// Finds or makes the state of requester `from`, anew if it has started again since. False if there is no room, or the
    /// message is from before that.
    fn is_known(&mut self, from: u16, start: u16, arrived: Nanos) -> bool {
        let is_quiet = |one: &Requester| arrived.saturating_sub(one.heard) > QUIET;
        if let Some(known) = self.requesters.get_mut(&from) {
            let ahead = start.wrapping_sub(known.start);
            if !is_quiet(known) && ahead > u16::MAX / 2 {
                self.counters.stale += 1;
                return false;
            }
            if !is_quiet(known) && ahead == 0 {
                known.heard = known.heard.max(arrived);
                return true;
            }
            self.counters.restarts += u64::from(ahead != 0);
            self.forget(from);
        } else if self.requesters.len() >= REQUESTERS_MAX {
            let quiet = self.requesters.iter().find(|(_, one)| is_quiet(one)).map(|(from, _)| *from);
            let Some(quiet) = quiet else {
                self.counters.overflows += 1;
                return false;
            };
            self.forget(quiet);
        }
        self.requesters.insert(from, Requester { start, heard: arrived, ..Requester::default() });
        true
    }

    /// Removes a requester and what waits for it.
    fn forget(&mut self, from: u16) {
        let Some(known) = self.requesters.remove(&from) else { return };
        self.answer_bytes -= known.answers.values().map(|answer| answer.bytes.len()).sum::<usize>();
        self.granted.retain(|chunk| chunk.to != from);
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

    /// Queues an answer, whose first bytes, `most` of them, the request has granted from `at` on, if it has. Refused requests get
    /// the NULL response, which needs no grant.
    fn answer(&mut self, to: u16, id: u16, answer: Result<Vec<u8>, Status>, at: Option<Nanos>, most: u32) {
        let (status, bytes) = match answer {
            Ok(bytes) => (Status::Done, bytes),
            Err(status) => {
                self.counters.refused[status as usize] += 1;
                (status, Vec::new())
            }
        };
        if self.granted.len() + self.due.len() >= GRANTED_MAX {
            self.counters.overflows += 1;
            return;
        }
        let granted = at.map_or(0, |_| (bytes.len() as u32).min(most).min(self.granted_at_once()));
        let (at, is_queued) = (at.unwrap_or(Nanos::ZERO), granted > 0 || bytes.is_empty());
        let answers = &mut self.requesters.entry(to).or_default().answers;
        if answers.len() >= self.config.answers_max {
            self.counters.overflows += 1;
            let forgotten = forget_oldest(answers, id);
            self.answer_bytes -= forgotten.as_ref().map_or(0, |(_, answer)| answer.bytes.len());
            let stays = |chunk: &Chunk| forgotten.as_ref().is_none_or(|one| one.0 != chunk.id);
            self.granted.retain(|chunk| chunk.to != to || stays(chunk));
            self.due.retain_of(to, |(_, chunk)| stays(chunk));
        }
        self.answer_bytes += bytes.len();
        let replaced = answers.insert(id, Answer { status, bytes, granted, release: at });
        self.answer_bytes -= replaced.map_or(0, |answer| answer.bytes.len());
        if is_queued {
            self.release_chunks(at, to, id, 0..granted);
        }
    }

    /// When [`poll_message`](Self::poll_message) has something; the time may be in the past.
    pub fn next_message(&self) -> Option<Nanos> {
        self.due.first().map(|(at, _)| *at).or_else(|| self.granted.next_at())
    }

    /// Writes the next message whose time has come over `out`, and returns the node that it is for. To be called when the link is
    /// free: then requesters have equal shares of it.
    pub fn poll_message(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        while let Some((at, chunk)) = self.granted.next_at().zip(self.granted.pop(now)) {
            self.due.push(chunk.to, wire_bytes(chunk.bytes.into()), (at, chunk));
        }
        loop {
            let (_, Chunk { to, id, offset, bytes }) = self.due.pop()?;
            let Some(requester) = self.requesters.get_mut(&to) else { continue };
            let (start, answers) = (requester.start, &mut requester.answers);
            // A request with the same id may have replaced its answer.
            let Some(answer) = answers.get(&id) else { continue };
            let (from, until) = (offset as usize, (offset + bytes) as usize);
            let Some(chunk) = answer.bytes.get(from..until) else { continue };
            let message = Message {
                version: p4rack_wire::edm::VERSION,
                kind: Kind::Rres as u8,
                code: answer.status as u8,
                id,
                key: 0,
                address: 0,
                total: answer.bytes.len() as u32,
                offset,
                bytes: bytes as u16,
                start,
            };
            out.clear();
            out.resize(Message::BYTES, 0);
            message.emit(out);
            out.extend_from_slice(chunk);
            if until == answer.bytes.len() {
                self.answer_bytes -= answer.bytes.len();
                answers.remove(&id);
            }
            return Some(to);
        }
    }
}

/// Bytes on the wire of a frame with so many bytes of an answer.
fn wire_bytes(bytes: u64) -> u64 {
    let headers = (Ethernet::BYTES + Vlan::BYTES + Message::BYTES) as u64;
    overhead::wire_bytes(headers + bytes)
}

/// Removes and returns the oldest id, the one furthest behind `newest`.
fn forget_oldest<T>(of: &mut BTreeMap<u16, T>, newest: u16) -> Option<(u16, T)> {
    let oldest = of.keys().max_by_key(|id| newest.wrapping_sub(**id)).copied()?;
    of.remove_entry(&oldest)
}
