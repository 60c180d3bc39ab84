//! Operations of sessions: chooses them, and checks their outcomes.

use super::board::{LEASE, PAGE_BYTES, STORE};
use super::plant::ClioPlant;
use super::session::{
    DEPTH, Ended, IssuedOperation, OperationKind, OwnRange, THREADS, THREADS_PLANTED, Target,
};
use super::world::ClioFaultsWorld;
use p4rack_fabric::clio::lib::{Change, Operation, Outcome};
use p4rack_history::Opcode;
use p4rack_offload::{KvArguments, KvFunction};
use p4rack_wire::clio::{PageSize, Rights, Status};

/// Words of the shared pages: some pages have several, and long accesses cross their edges.
pub(super) const SHARED_WORDS: [u64; 6] = [0, 8, 2_048, 4_088, 4_096, 6_000];
/// Words of a range, as far as it has them.
pub(super) const OWN_WORDS: [u64; 4] = [0, 8, 4_088, 4_096];
/// The shared bytes with words; locks follow.
const WORDS_BYTES: u64 = 2 * PAGE_BYTES;
pub(super) const LOCKS: usize = 2;
pub(super) const KEYS: u8 = 3;
/// Words of the longest value, so that a call fits into a packet.
const VALUE_WORDS: u64 = 24;
/// Words of the longest access.
const ACCESS_WORDS: u64 = 300;
/// Ranges of a session.
const RANGES: usize = 2;

/// Address of a lock in the shared pages.
pub(super) fn lock_at(nth: usize) -> u64 {
    WORDS_BYTES + 8 * nth as u64
}

/// The call of a store's function: arguments, key and value.
pub(super) fn store_call(key: u8, function: KvFunction, value: u64, words: u64) -> Vec<u8> {
    let value = value.to_le_bytes().repeat(words as usize);
    let has_value = matches!(function, KvFunction::Put | KvFunction::Create);
    let value = if has_value { &value[..] } else { &[] };
    let mut arguments = vec![0; KvArguments::BYTES];
    let value_bytes = value.len() as u32;
    KvArguments { value_address: 0, value_bytes, key_bytes: 1, reserved: 0 }.emit(&mut arguments);
    arguments.push(key);
    arguments.extend_from_slice(value);
    arguments
}

impl ClioFaultsWorld {
    /// Lets sessions ask for operations: some at random, or all that may.
    pub fn issue(&mut self, all: bool) -> bool {
        let mut any = false;
        for session in 0..self.sessions.len() {
            let (node, board) = (self.sessions[session].node, self.sessions[session].board);
            for thread in 0..THREADS {
                let is_chosen = self.sessions[session].is_open
                    && self.left[node][board] > 0
                    && self.under_way(session, thread) < DEPTH;
                if is_chosen && (all || self.random.chance(0.25)) {
                    self.left[node][board] -= 1;
                    self.ask(session, thread);
                    any = true;
                }
            }
        }
        any
    }

    fn under_way(&self, session: usize, thread: u16) -> usize {
        let mine = self.sessions[session].asked.iter().map(|nth| &self.asked[*nth]);
        mine.filter(|asked| asked.thread == thread && asked.end.is_none()).count()
    }

    /// Ranges that a session can use.
    fn ranges_of(&self, session: usize) -> Vec<usize> {
        let is_own = |range: &OwnRange| range.session == session && !range.is_freed;
        (0..self.ranges.len()).filter(|nth| is_own(&self.ranges[*nth])).collect()
    }

    /// Whether an operation on a range is under way, or may still be executed.
    fn is_in_use(&self, session: usize, range: usize) -> bool {
        self.sessions[session].asked.iter().map(|nth| &self.asked[*nth]).any(|asked| {
            let is_on_it = matches!(
                asked.what,
                OperationKind::Read { place: Target::Own(own), .. }
                | OperationKind::Write { place: Target::Own(own), .. }
                | OperationKind::Change { place: Target::Own(own), .. } if own == range
            );
            is_on_it && asked.end.as_ref().is_none_or(|(_, end)| *end == Ended::Unknown)
        })
    }

    fn choose(&mut self, session: usize, thread: u16) -> OperationKind {
        let ranges = self.ranges_of(session);
        let lock = self.random.below(LOCKS as u64) as usize;
        match self.random.below(20) {
            0..4 => {
                self.value += 1;
                let functions = [KvFunction::Read, KvFunction::Put, KvFunction::Create, KvFunction::Delete];
                let function = functions[[0, 0, 1, 1, 2, 3][self.random.below(6) as usize]];
                let (key, is_ordered) = (self.random.below(KEYS.into()) as u8, self.random.chance(0.2));
                return OperationKind::Store { key, function, value: self.value, is_ordered };
            }
            4 | 5 if !self.sessions[session].unsure_locks[lock] => {
                let at = (self.sessions[session].board, self.sessions[session].life, lock);
                let is_held = self.holds.until(at, (session, thread)).is_some_and(|until| until > self.now);
                if !is_held || self.random.chance(0.25) {
                    return OperationKind::Lock(lock);
                }
                return OperationKind::Unlock(lock);
            }
            6 | 9 if ranges.len() < RANGES => {
                return OperationKind::Alloc { pages: 1 + self.random.below(2) };
            }
            6 | 7 | 9 if !ranges.is_empty() => {
                let range = ranges[self.random.below(ranges.len() as u64) as usize];
                if !self.is_in_use(session, range) {
                    return OperationKind::Free { range, pages: self.ranges[range].pages };
                }
            }
            8 if self.random.chance(0.3) => return OperationKind::Fence,
            _ => {}
        }
        self.access(&ranges)
    }

    /// An access to a word, or to a range with several.
    fn access(&mut self, ranges: &[usize]) -> OperationKind {
        let mut below = |limit: usize| self.random.below(limit as u64) as usize;
        let (place, words, end) = match ranges {
            [] => (Target::Shared, &SHARED_WORDS[..], WORDS_BYTES),
            _ if below(2) == 0 => (Target::Shared, &SHARED_WORDS[..], WORDS_BYTES),
            _ => {
                let range = ranges[below(ranges.len())];
                let end = self.ranges[range].pages * PAGE_BYTES;
                let words = if end > PAGE_BYTES { &OWN_WORDS[..] } else { &OWN_WORDS[..3] };
                (Target::Own(range), words, end)
            }
        };
        let at = words[below(words.len())];
        let long = 8 * (1 + below(ACCESS_WORDS as usize) as u64);
        let bytes = if below(3) == 0 { long.min(end - at) } else { 8 };
        self.value += 1;
        let value = self.value;
        match below(8) {
            0..3 => OperationKind::Read { place, at, bytes },
            3..6 => OperationKind::Write { place, at, bytes, value },
            6 => OperationKind::Change { place, at, opcode: Opcode::FetchAdd, operands: [1 << 32, 0] },
            _ if below(2) == 0 => {
                OperationKind::Change { place, at, opcode: Opcode::Swap, operands: [value, 0] }
            }
            _ => OperationKind::Change {
                place,
                at,
                opcode: Opcode::Cas,
                operands: [below(value as usize) as u64, value],
            },
        }
    }

    fn ask(&mut self, session: usize, thread: u16) {
        let what = self.choose(session, thread);
        self.count("asked_after_the_faults", u64::from(self.now > self.quiet_from));
        self.submit(session, thread, what);
    }

    /// Hands an operation to a session's client.
    pub fn submit(&mut self, session: usize, thread: u16, what: OperationKind) {
        let shared = self.sessions[session].shared;
        let base = |place| if let Target::Own(range) = place { self.ranges[range].address } else { shared };
        let address = match what {
            OperationKind::Read { place, at, .. }
            | OperationKind::Write { place, at, .. }
            | OperationKind::Change { place, at, .. } => base(place) + at,
            OperationKind::Lock(nth) | OperationKind::Unlock(nth) => shared + lock_at(nth),
            OperationKind::Free { range, .. } => self.ranges[range].address,
            OperationKind::Store { .. } | OperationKind::Alloc { .. } | OperationKind::Fence => 0,
        };
        let data;
        let operation = match what {
            OperationKind::Read { bytes, .. } => Operation::Read { address, bytes: bytes as u32 },
            OperationKind::Write { bytes, value, .. } => {
                data = value.to_le_bytes().repeat(bytes as usize / 8);
                Operation::Write { address, bytes: &data }
            }
            OperationKind::Change { opcode, operands: [one, two], .. } => {
                let change = match opcode {
                    Opcode::Cas => Change::CompareSwap(one, two),
                    Opcode::Swap => Change::Swap(one),
                    _ => Change::FetchAdd(one),
                };
                Operation::Modify { address, change }
            }
            OperationKind::Store { key, function, value, is_ordered } => {
                data = store_call(key, function, value, 1 + value % VALUE_WORDS);
                let function = function as u8;
                let results_bytes_max = 8 * VALUE_WORDS as u32;
                Operation::Call { offload: STORE, function, arguments: &data, results_bytes_max, is_ordered }
            }
            OperationKind::Lock(_) => Operation::Lock { address },
            OperationKind::Unlock(_) => Operation::Unlock { address },
            OperationKind::Fence => Operation::Fence { all: false },
            OperationKind::Alloc { pages } => {
                let bytes = pages * PAGE_BYTES;
                Operation::Alloc { bytes, page_size: PageSize::K4, rights: Rights::ALL }
            }
            OperationKind::Free { pages, .. } => Operation::Free { address, bytes: pages * PAGE_BYTES },
        };
        let (tag, now) = (self.asked.len(), self.now);
        let is_access = matches!(
            what,
            OperationKind::Read { .. } | OperationKind::Write { .. } | OperationKind::Change { .. }
        );
        let as_thread = match self.plant {
            Some(ClioPlant::MissedDependency) if is_access => (tag % usize::from(THREADS_PLANTED)) as u16,
            _ => thread,
        };
        let one = &mut self.sessions[session];
        if let Err(refused) = one.client.submit(as_thread, 0, tag as u64, operation, now) {
            self.outcome.problems.push(format!("{what:?} is not accepted: {refused}"));
            return;
        }
        let lock = |nth| (one.board, one.life, nth);
        match what {
            OperationKind::Unlock(nth) => self.holds.give_up(lock(nth), (session, thread), now),
            OperationKind::Free { range, .. } => self.ranges[range].is_freed = true,
            _ => {}
        }
        one.asked.push(tag);
        self.asked.push(IssuedOperation { session, thread, what, address, at: now, begins: now, end: None });
    }

    /// Takes the outcome of an operation.
    pub fn ended(&mut self, tag: usize, end: Ended) {
        let mut asked = self.asked[tag].clone();
        let (session, now) = (asked.session, self.now);
        if asked.end.is_some() {
            self.outcome.problems.push(format!("{asked:?} has ended twice"));
            return;
        }
        for earlier in self.sessions[session].asked.iter().filter(|nth| **nth < tag) {
            let earlier = &self.asked[*earlier];
            if asked.depends_on(earlier) {
                match &earlier.end {
                    Some((at, _)) => asked.begins = asked.begins.max(*at),
                    None => self.outcome.problems.push(format!("{asked:?} has overtaken {earlier:?}")),
                }
            }
        }
        // It may have unlocked it already.
        let unlocks = |later: &IssuedOperation| match (later.what, asked.what) {
            (OperationKind::Unlock(one), OperationKind::Lock(other)) => {
                later.thread == asked.thread && one == other
            }
            _ => false,
        };
        let later = self.sessions[session].asked.iter().filter(|nth| **nth > tag);
        let is_given_up = later.map(|nth| &self.asked[*nth]).any(unlocks);
        if let Some(problem) = self.unexpected(&asked, &end) {
            self.outcome.problems.push(format!("{asked:?}: {problem}"));
        }
        let one = &mut self.sessions[session];
        match (asked.what, &end) {
            (OperationKind::Alloc { pages }, Ended::Address(address)) => {
                self.ranges.push(OwnRange { session, address: *address, pages, is_freed: false });
            }
            (OperationKind::Unlock(nth), Ended::Unknown) => one.unsure_locks[nth] = true,
            (OperationKind::Lock(nth), Ended::Done) if !is_given_up && !one.unsure_locks[nth] => {
                let (lock, owner) = ((one.board, one.life, nth), (session, asked.thread));
                self.holds.hold(lock, owner, now, asked.begins + LEASE);
            }
            _ => {}
        }
        asked.end = Some((now, end));
        self.asked[tag] = asked;
    }

    /// Checks an outcome without regard to others. Returns a problem, if there is one.
    fn unexpected(&self, asked: &IssuedOperation, end: &Ended) -> Option<String> {
        let session = &self.sessions[asked.session];
        let is_quiet = asked.at > self.quiet_from && session.life == self.boards[session.board].life;
        let is_possible = match (asked.what, end) {
            (_, Ended::Unknown) => !is_quiet || !session.is_open,
            (_, Ended::Refused(Status::Busy)) => true,
            (OperationKind::Read { .. }, Ended::Bytes(_))
            | (
                OperationKind::Write { .. }
                | OperationKind::Unlock(_)
                | OperationKind::Fence
                | OperationKind::Free { .. },
                Ended::Done,
            )
            | (OperationKind::Change { .. }, Ended::Word(_))
            | (OperationKind::Lock(_), Ended::Done | Ended::Held)
            | (OperationKind::Alloc { .. }, Ended::Address(_)) => true,
            (
                OperationKind::Read { .. } | OperationKind::Write { .. } | OperationKind::Change { .. },
                Ended::Refused(status),
            ) => *status == Status::NoPageYet,
            (OperationKind::Store { function, .. }, Ended::Bytes(bytes)) => match function {
                KvFunction::Read => bytes.len() >= 8 && bytes.chunks(8).all(|word| word == &bytes[..8]),
                _ => bytes.is_empty(),
            },
            (OperationKind::Store { function: KvFunction::Create, .. }, Ended::Refused(status)) => {
                *status == Status::Exists
            }
            (OperationKind::Store { function, .. }, Ended::Refused(status)) => {
                function != KvFunction::Put && *status == Status::NotFound
            }
            // Its lease has ended.
            (OperationKind::Unlock(_), Ended::Refused(status)) => *status == Status::NotOwner,
            (OperationKind::Alloc { .. }, Ended::Refused(status)) => {
                matches!(status, Status::NoMemory | Status::NoAddressSpace)
            }
            _ => false,
        };
        (!is_possible).then(|| format!("it must not end as {end:?}"))
    }

    /// The outcome in words of this module.
    pub fn own(outcome: Outcome<'_>) -> Ended {
        match outcome {
            Outcome::Done => Ended::Done,
            Outcome::Read(bytes) | Outcome::Results(bytes) => Ended::Bytes(bytes.to_vec()),
            Outcome::Word(word) => Ended::Word(word),
            Outcome::Address(address) => Ended::Address(address),
            Outcome::Held(_) => Ended::Held,
            Outcome::Refused(status) => Ended::Refused(status),
            Outcome::Unknown => Ended::Unknown,
        }
    }
}
