//! A compute node: reads, writes and atomic operations on others' memory, without I/O.
//!
//! ```text
//!   requests ── handle_request ─▶ ┌─────────────┐ ── poll_link ──▶ RREQ, RMWREQ, NOTIFY, WREQ
//!   completions ◀ poll_completion │ ComputeNode │ ◀─ handle_link ─ GRANT, RRES
//!                     clock ◀──── └─────────────┘ ◀─ handle_timeout, at next_timeout
//! ```
//!
//! At most X messages per kind and memory node are active; others wait in order. Each has a lane of its own, the low bits of its
//! id, which the switch uses to distinguish them. Granted data leaves at the grant's time, in the order of these times. A read or
//! atomic request without an answer ends with the NULL response when its timer expires; it is then unknown whether an atomic
//! operation was done. A write without grants asks again for the rest, with a new id. A write waits for earlier ones to the same
//! bytes, so these take effect in the order of the calls (§3.1.1).
//!
//! The node first opens a session with a memory node, by an ordinary request. If the memory node has restarted, it
//! knows no session: the node repeats reads in a new one. Everything else in flight ends with the NULL response, and data sent
//! since the last answer may be lost ([`Counters::sessions_lost`]). The next answer reports refused writes
//! ([`Counters::writes_refused`]); the node requests such an answer if none comes ([`Config::confirm`]).

mod sessions;

use super::parts::{Parts, Taken};
use super::release::Releases;
use crate::machine::Machine;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind, Message, OPEN, Opcode, Status, VERSION};
use std::collections::{BTreeMap, VecDeque};

/// Maximum of [`Config::active_per_pair`].
pub const ACTIVE_MAX: u16 = 32;
/// Ids of active messages are less far apart than this, as far as memory nodes remember.
const SPAN: u16 = super::window::IDS;

/// Parameters of a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// X: maximum active messages per kind and memory node, from 1 to [`ACTIVE_MAX`].
    pub active_per_pair: u16,
    /// Maximum waiting requests per memory node.
    pub waiting_max: usize,
    /// Maximum bytes per message.
    pub message_bytes_max: u32,
    /// Maximum bytes per chunk.
    pub chunk_bytes: u32,
    /// Maximum chunks per grant.
    pub window: u32,
    /// Unit of the waits in grants.
    pub wait_unit: Nanos,
    /// Timeout, after which reads and atomic operations end and writes ask again. Longer than the switch remembers a demand.
    pub timeout: Nanos,
    /// Number of times that a write asks again before it fails.
    pub retries: u8,
    /// Time after a write without any later answer at which the node asks whether its session still exists and all writes were
    /// accepted. `None`: never.
    pub confirm: Option<Nanos>,
    /// Whether writes of the same bytes wait for each other. Without it their chunks may mix.
    pub keep_order: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            active_per_pair: 3,
            waiting_max: 1_024,
            message_bytes_max: 1 << 24,
            chunk_bytes: 256,
            window: 1,
            wait_unit: Nanos(1),
            timeout: Nanos::from_micros(50),
            retries: 3,
            confirm: None,
            keep_order: true,
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
    /// Sessions that a memory node no longer knew: it has started again. Writes since its last answer may be lost.
    pub sessions_lost: u64,
    /// Writes that memory nodes refused or gave up, as far as their answers say.
    pub writes_refused: u64,
    /// Sessions without an answer whether the last writes were taken.
    pub unconfirmed: u64,
}

impl Counters {
    /// All of them by name.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("requests", self.requests),
            ("refused", self.refused),
            ("answers", self.answers),
            ("timeouts", self.timeouts),
            ("again", self.again),
            ("malformed", self.malformed),
            ("grants_unasked", self.grants_unasked),
            ("answers_unasked", self.answers_unasked),
            ("sessions_lost", self.sessions_lost),
            ("writes_refused", self.writes_refused),
            ("unconfirmed", self.unconfirmed),
        ]
    }
}

/// An entry of the message state table.
#[derive(Clone, Debug)]
struct Active {
    /// `None`: it opens a session, or repeats the opening.
    token: Option<u64>,
    /// The session of the request.
    session: u16,
    key: u32,
    address: u64,
    request: Request,
    /// Bytes of an answer, and which of them arrived.
    done: Vec<u8>,
    parts: Parts,
    sent: u32,
    /// When the last granted chunk may leave: later ones don't pass it.
    release: Nanos,
    retries: u8,
    deadline: Nanos,
}

#[derive(Clone, Debug)]
struct Waiting {
    token: u64,
    key: u32,
    address: u64,
    request: Request,
    since: Nanos,
    retries: u8,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    session: Option<u16>,
    /// Writes of the session that were refused, as its last answer said, and why the last one was.
    refused: u32,
    refused_why: Option<Status>,
    /// Time of the next question whether the last writes were accepted, and the number of unanswered ones.
    confirm: Option<Nanos>,
    confirms: u8,
    /// Writes, and requests with an answer, by id.
    active: [BTreeMap<u16, Active>; 2],
    next_id: [u16; 2],
    waiting: [VecDeque<Waiting>; 2],
}

/// A demand to send: the memory node, the class of the message and its id.
#[derive(Clone, Copy, Debug)]
struct Ask {
    to: u16,
    class: usize,
    id: u16,
}

/// A chunk that was granted.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    to: u16,
    id: u16,
    offset: u32,
    bytes: u32,
}

/// A compute node.
#[derive(Clone, Debug)]
pub struct ComputeNode {
    config: Config,
    incarnation: u64,
    peers: BTreeMap<u16, Peer>,
    asks: VecDeque<Ask>,
    chunks: Releases<Chunk>,
    completions: VecDeque<(u64, Outcome)>,
    tokens: u64,
    counters: Counters,
    now: Nanos,
}

const WRITE: usize = 0;
const ANSWERED: usize = 1;

impl ComputeNode {
    /// A node without requests or sessions. `incarnation` must differ from those of all earlier nodes at this address.
    pub fn new(config: Config, incarnation: u64) -> ComputeNode {
        let active_per_pair = config.active_per_pair.clamp(1, ACTIVE_MAX);
        ComputeNode {
            config: Config { active_per_pair, ..config },
            incarnation,
            peers: BTreeMap::new(),
            asks: VecDeque::new(),
            chunks: Releases::new(),
            completions: VecDeque::new(),
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
        waiting.push_back(Waiting { token, key, address, request, since: self.now, retries: 0 });
        self.fill(to, class);
        Ok(token)
    }

    /// Activates waiting messages while fewer than X are active, and while none is so old that its id would be forgotten. Without a
    /// session opens one.
    fn fill(&mut self, to: u16, class: usize) {
        let lanes = self.config.active_per_pair;
        let peer = self.peers.entry(to).or_default();
        let Some(session) = peer.session else {
            if peer.waiting.iter().any(|waiting| !waiting.is_empty()) {
                // One opening in flight suffices, and a taken lane leads back here.
                let _asked = self.open(to);
            }
            return;
        };
        while peer.active[class].len() < usize::from(lanes)
            && let Some(next) = peer.waiting[class].front()
            && !(class == WRITE && self.config.keep_order && peer.is_writing(next))
            && let Some(id) = peer.free_id(class, lanes)
            && let Some(Waiting { token, key, address, request, retries, .. }) =
                peer.waiting[class].pop_front()
        {
            let deadline = self.now.saturating_add(self.config.timeout);
            let active = Active::new(Some(token), session, (key, address, request), retries, deadline);
            peer.active[class].insert(id, active);
            self.asks.push_back(Ask { to, class, id });
        }
    }

    fn handle_grant(&mut self, from: u16, bytes: &[u8], arrived: Nanos) -> Option<()> {
        let grant = Control::parse(bytes).ok()?;
        let chunk_bytes = self.config.chunk_bytes;
        let at = arrived.saturating_add(Nanos(self.config.wait_unit.0.saturating_mul(grant.wait.into())));
        let active = self.peers.get_mut(&from).and_then(|peer| peer.active[WRITE].get_mut(&grant.id));
        match active {
            Some(active)
                if grant.answer == 0
                    && grant.offset == active.sent
                    && (1..=chunk_bytes.saturating_mul(self.config.window)).contains(&grant.bytes)
                    && grant.bytes <= size(&active.request) - active.sent
                    // Chunks stay whole, even if an earlier message with this id was granted something else.
                    && (grant.bytes.is_multiple_of(chunk_bytes)
                        || grant.bytes == size(&active.request) - active.sent) =>
            {
                active.sent += grant.bytes;
                active.release = at.max(active.release);
                active.deadline = active.release.max(self.now).saturating_add(self.config.timeout);
                let end = grant.offset + grant.bytes;
                for offset in (grant.offset..end).step_by(chunk_bytes as usize) {
                    let bytes = chunk_bytes.min(end - offset);
                    self.chunks.push(active.release, Chunk { to: from, id: grant.id, offset, bytes });
                }
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
        let incarnation = self.incarnation;
        let asked = self.peers.get_mut(&from).and_then(|peer| peer.active[ANSWERED].get_mut(&message.id));
        // An answer that opens a session must be addressed to this start of the node.
        let is_own = |active: &&mut Active| {
            message.start == active.session
                && (active.token.is_some()
                    || status != Status::Done
                    || sessions::is_offered(chunk, incarnation))
        };
        let Some(active) = asked.filter(is_own) else {
            self.counters.answers_unasked += 1;
            return Some(());
        };
        let whole = size(&active.request);
        let outcome = match status {
            Status::Done => {
                let end = message.offset.checked_add(message.bytes.into()).filter(|end| *end <= whole);
                let end = end.filter(|end| {
                    message.total == whole
                        && !chunk.is_empty()
                        && active.parts.take(message.offset, *end) == Taken::New
                });
                let Some(end) = end else {
                    self.counters.answers_unasked += 1;
                    return Some(());
                };
                let (from, until) = (message.offset as usize, end as usize);
                if active.done.len() < until {
                    active.done.resize(until, 0);
                }
                active.done[from..until].copy_from_slice(chunk);
                active.deadline = deadline;
                if active.parts.until() < whole {
                    return Some(());
                }
                Outcome::Answer(std::mem::take(&mut active.done))
            }
            refused => Outcome::Refused(refused),
        };
        let (is_opening, session) = (active.token.is_none(), active.session);
        match outcome {
            Outcome::Answer(bytes) if is_opening => self.opened(from, &message, &bytes),
            Outcome::Refused(Status::NoSession) if !is_opening => {
                self.session_lost(from, session);
                self.ask_elsewhere(from, message.id);
            }
            // The next request asks again.
            Outcome::Refused(_) if is_opening => {}
            outcome => {
                self.counters.answers += 1;
                self.learn(from, session, &message);
                self.finish(from, ANSWERED, message.id, outcome);
            }
        }
        Some(())
    }

    fn finish(&mut self, to: u16, class: usize, id: u16, outcome: Outcome) {
        let (confirm_at, peer) = (self.confirm_at(), self.peers.entry(to).or_default());
        let Some(active) = peer.active[class].remove(&id) else { return };
        // Whether a write took effect in a session that is over is unknown.
        let is_over = class == WRITE && peer.session != Some(active.session);
        let outcome = if is_over { Outcome::Null } else { outcome };
        if outcome == Outcome::Sent && peer.confirm.is_none() {
            peer.confirm = confirm_at;
        }
        self.completions.extend(active.token.map(|token| (token, outcome)));
        self.fill(to, class);
    }

    /// Handles a write without grants: the rest becomes a new message, without the bytes already sent.
    fn ask_again(&mut self, to: u16, id: u16) {
        let (deadline, peer) =
            (self.now.saturating_add(self.config.timeout), self.peers.entry(to).or_default());
        let Some(mut active) = peer.active[WRITE].remove(&id) else { return };
        // Granted chunks still have to be sent from it, so they leave first.
        let is_held = self.chunks.any(|chunk| (chunk.to, chunk.id) == (to, id));
        let again = if is_held { None } else { peer.free_id(WRITE, self.config.active_per_pair) };
        let Some(again) = again else {
            active.deadline = deadline;
            peer.active[WRITE].insert(id, active);
            return;
        };
        if let Request::Write(bytes) = &mut active.request {
            bytes.drain(..active.sent as usize);
        }
        active.address = active.address.wrapping_add(active.sent.into());
        (active.sent, active.retries, active.deadline) = (0, active.retries + 1, deadline);
        peer.active[WRITE].insert(again, active);
        self.counters.again += 1;
        self.asks.push_back(Ask { to, class: WRITE, id: again });
        // Others may have waited for its id to go.
        self.fill(to, WRITE);
    }

    /// The next outcome: the number of its request, and how it ended.
    pub fn poll_completion(&mut self) -> Option<(u64, Outcome)> {
        self.completions.pop_front()
    }
}

impl Machine for ComputeNode {
    type Received<'a> = (u16, &'a [u8]);
    type Sent = u16;
    type Buffer = Vec<u8>;

    /// Accepts a message about the memory of a node. Waits in it count from `received_at`, which may be earlier than the times of
    /// other calls.
    fn handle_link(&mut self, (from, bytes): (u16, &[u8]), received_at: Nanos, _now: Nanos) {
        self.now = self.now.max(received_at);
        let handled = match bytes.first().map(|first| Kind::of(*first)) {
            Some(Ok(Kind::Grant)) => self.handle_grant(from, bytes, received_at),
            Some(Ok(Kind::Rres)) => self.handle_answer(from, bytes),
            _ => None,
        };
        if handled.is_none() {
            self.counters.malformed += 1;
        }
    }

    /// Ends requests that have waited too long.
    fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        let mut late = Vec::new();
        for (to, peer) in &self.peers {
            for class in [WRITE, ANSWERED] {
                let of = peer.active[class].iter().filter(|(_, active)| active.deadline <= self.now);
                late.extend(of.map(|(id, active)| (*to, class, *id, active.retries)));
            }
        }
        for (to, class, id, retries) in late {
            let peer = self.peers.entry(to).or_default();
            let active = peer.active[class].get(&id);
            let is_over = active.is_some_and(|active| peer.session != Some(active.session));
            if active.is_some_and(|active| active.token.is_none()) {
                self.not_opened(to, id);
            } else if class == WRITE && retries < self.config.retries && !is_over {
                self.ask_again(to, id);
            } else {
                self.counters.timeouts += 1;
                self.finish(to, class, id, Outcome::Null);
            }
        }
        self.confirm();
    }

    /// Writes the next message over `out`: demands first, then chunks whose time has come. Returns the memory node to which it
    /// belongs.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        // Timers that a departing message starts run from this time.
        self.now = self.now.max(now);
        while let Some(Ask { to, class, id }) = self.asks.pop_front() {
            if let Some(active) = self.peers.get(&to).and_then(|peer| peer.active[class].get(&id)) {
                ask(active, id, out);
                return Some(to);
            }
        }
        while let Some(Chunk { to, id, offset, bytes }) = self.chunks.pop(now) {
            let active = self.peers.get(&to).and_then(|peer| peer.active[WRITE].get(&id));
            let Some((active, Request::Write(data))) = active.map(|active| (active, &active.request)) else {
                continue;
            };
            let (from, until) = (offset as usize, (offset + bytes) as usize);
            let Some(chunk) = data.get(from..until) else { continue };
            let whole = until == data.len();
            header(active, Kind::Wreq, 0, id, data.len() as u32, offset, bytes, out);
            out.extend_from_slice(chunk);
            if whole {
                self.finish(to, WRITE, id, Outcome::Sent);
            }
            return Some(to);
        }
        None
    }

    fn next_link(&self) -> Option<Nanos> {
        if self.asks.is_empty() { self.chunks.next_at() } else { Some(Nanos::ZERO) }
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let peers = self.peers.values();
        let active = peers.clone().flat_map(|peer| peer.active.iter().flat_map(BTreeMap::values));
        active.map(|active| active.deadline).chain(peers.filter_map(|peer| peer.confirm)).min()
    }
}

impl Active {
    fn new(
        token: Option<u64>,
        session: u16,
        (key, address, request): (u32, u64, Request),
        retries: u8,
        deadline: Nanos,
    ) -> Active {
        let (done, parts, sent, release) = (Vec::new(), Parts::default(), 0, Nanos::ZERO);
        Active { token, session, key, address, request, done, parts, sent, release, retries, deadline }
    }
}

impl Peer {
    /// Whether an active write overlaps this one.
    fn is_writing(&self, next: &Waiting) -> bool {
        let end = |address: u64, request: &Request| u128::from(address) + u128::from(size(request));
        self.active[WRITE].values().any(|active| {
            u128::from(active.address) < end(next.address, &next.request)
                && u128::from(next.address) < end(active.address, &active.request)
        })
    }

    /// The next id whose lane no active message of the class has; `None` while it is too far ahead of one of them. There is a lane
    /// while fewer than `lanes` are active.
    fn free_id(&mut self, class: usize, lanes: u16) -> Option<u16> {
        let all = lanes.max(2).next_power_of_two();
        let lane = |id: u16| id % all;
        let active = &self.active[class];
        let is_taken = |id: u16| lane(id) >= lanes || active.keys().any(|other| lane(*other) == lane(id));
        let mut id = self.next_id[class];
        while is_taken(id) {
            id = id.wrapping_add(1);
        }
        if active.keys().any(|other| id.wrapping_sub(*other) >= SPAN) {
            return None;
        }
        self.next_id[class] = id.wrapping_add(1);
        Some(id)
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

/// The announcement of a message: a notification, or the request itself.
fn ask(active: &Active, id: u16, out: &mut Vec<u8>) {
    match &active.request {
        Request::Write(bytes) => {
            out.clear();
            out.resize(Control::BYTES, 0);
            let kind = Kind::Notify as u8;
            Control { version: VERSION, kind, answer: 0, id, offset: 0, bytes: bytes.len() as u32, wait: 0 }
                .emit(out);
        }
        Request::Read(bytes) => {
            let code = if active.token.is_none() { OPEN } else { 0 };
            header(active, Kind::Rreq, code, id, *bytes, 0, 0, out);
        }
        Request::Modify(opcode, operands) => {
            let count = opcode.operands();
            header(active, Kind::Rmwreq, *opcode as u8, id, 8, 0, 8 * count as u32, out);
            operands[..count].iter().for_each(|operand| out.extend_from_slice(&operand.to_be_bytes()));
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn header(
    active: &Active,
    kind: Kind,
    code: u8,
    id: u16,
    total: u32,
    offset: u32,
    bytes: u32,
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(Message::BYTES, 0);
    let (version, kind, bytes) = (VERSION, kind as u8, bytes as u16);
    let (key, address, start) = (active.key, active.address, active.session);
    Message { version, kind, code, id, key, address, total, offset, bytes, start }.emit(out);
}
