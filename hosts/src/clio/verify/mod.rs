//! Random operations on a board, against plain arrays.
//!
//! ```text
//!   a process ─┬─ its own range    ◀─ compared with ─▶ an array: reads, writes, atomic operations
//!              └─ keys of its own  ◀─ compared with ─▶ a map: put, get, delete
//! ```
//!
//! The client library keeps the order of operations that depend on each other, so the array is changed when an operation is submitted, and
//! a read has to return what the array has then. Another process's bytes would show: each writes bytes of its own.

mod store;

use super::Patience;
use super::error::ClioError;
use super::kv::KvError;
use super::session::{AskError, Session};
use crate::roce::setup::Server;
use p4rack_fabric::clio::lib::{Change, Operation, Outcome};
use p4rack_netdev::clock;
use p4rack_wire::{Nanos, SplitMix};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the longest read or write.
const ACCESS_BYTES: u64 = 20_000;

/// Work of a process.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes of its range.
    pub bytes: u64,
    /// Operations on memory.
    pub operations: u64,
    /// Maximum operations under way.
    pub under_way: usize,
    /// Requests to the store; 0 if the board has none.
    pub requests: u64,
    /// Seed of the operations.
    pub seed: u64,
    /// Longest time in which no operation ends.
    pub patience: Nanos,
}

/// Operations of a process, without errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Verified {
    /// Reads, and found right.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Atomic operations, and the old words found right.
    pub atomics: u64,
    /// Requests to the store, and found right.
    pub requests: u64,
    /// Time that it took.
    pub seconds: f64,
}

/// A detected error.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// The board can't be used.
    #[error(transparent)]
    Link(#[from] ClioError),
    /// An operation was refused.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A request to the store was refused.
    #[error("the store: {0}")]
    Kv(#[from] KvError),
    /// The board has no store.
    #[error("the board has no store: give --requests 0, or start it with --store above 0")]
    NoStore,
    /// An operation was refused by the board, or has no known end.
    #[error("{what}: {status}")]
    Ended {
        /// The operation.
        what: String,
        /// How it ended.
        status: String,
    },
    /// The board returned something else.
    #[error("{what}: {found} instead of {wanted}")]
    Wrong {
        /// The operation.
        what: String,
        /// The board's result.
        found: String,
        /// The expected result.
        wanted: String,
    },
    /// Nothing ended.
    #[error("nothing has ended for {0}, with {1} operations under way")]
    Silence(Nanos, usize),
}

/// Expected result of an operation under way.
enum Wanted {
    Bytes(u64, Vec<u8>),
    Word(u64, u64),
    Written(u64),
}

/// Runs a plan, or less of it when `is_over` is set; then everything is read once more. Errors: the first thing that is wrong.
pub fn run(server: &Server, plan: Plan, is_over: &AtomicBool) -> Result<Verified, VerifyError> {
    if plan.bytes < 64 || plan.under_way == 0 {
        return Err(VerifyError::Plan("a process needs 64 bytes, and 1 operation under way"));
    }
    let start = clock::now();
    let mut done = Verified::default();
    let mut memory = CheckedRange::open(server, plan)?;
    memory.run(is_over, &mut done)?;
    if plan.requests > 0 {
        store::run(server, plan, memory.session.credentials().pid, is_over, &mut done)?;
    }
    done.seconds = clock::now().saturating_sub(start).0 as f64 / 1e9;
    Ok(done)
}

/// A process's range, and the array that it is compared with.
struct CheckedRange {
    session: Session,
    plan: Plan,
    array: Vec<u8>,
    random: SplitMix,
    wanted: HashMap<u64, Wanted>,
    next: u64,
}

impl CheckedRange {
    fn open(server: &Server, plan: Plan) -> Result<CheckedRange, VerifyError> {
        let session = Session::open(server, plan.bytes, Patience::default())?;
        // A new process's memory is zeros.
        let bytes =
            usize::try_from(plan.bytes).map_err(|_| VerifyError::Plan("as many bytes have no array"))?;
        let (array, random) = (vec![0; bytes], SplitMix(plan.seed));
        Ok(CheckedRange { session, plan, array, random, wanted: HashMap::new(), next: 0 })
    }

    fn run(&mut self, is_over: &AtomicBool, done: &mut Verified) -> Result<(), VerifyError> {
        let under_way_max = self.plan.under_way.min(self.session.under_way_max());
        let mut silent_at = clock::now() + self.plan.patience;
        loop {
            let may_submit = self.next < self.plan.operations && !is_over.load(Ordering::Relaxed);
            if may_submit && self.session.under_way() < under_way_max {
                self.submit()?;
                continue;
            }
            if self.session.under_way() == 0 {
                break;
            }
            if self.poll(silent_at, done)? {
                silent_at = clock::now() + self.plan.patience;
            } else if clock::now() >= silent_at {
                return Err(VerifyError::Silence(self.plan.patience, self.session.under_way()));
            }
        }
        // Finally, all of it.
        let (address, step) = (self.session.range().0, ACCESS_BYTES as usize);
        for (nth, wanted) in self.array.chunks(step).enumerate() {
            let at = (nth * step) as u64;
            let found = self.session.read(address + at, wanted.len() as u32)?;
            compare(at, &found, wanted)?;
            done.reads += 1;
        }
        Ok(())
    }

    /// Submits a random operation, and changes the array.
    fn submit(&mut self) -> Result<(), VerifyError> {
        let (start, tag) = (self.session.range().0, self.next);
        self.next += 1;
        let at = self.random.between(0, self.plan.bytes - 1);
        let most = ACCESS_BYTES.min(self.plan.bytes - at);
        // Mostly short ones.
        let most = if self.random.between(0, 7) == 0 { most } else { most.min(300) };
        let bytes = self.random.between(1, most);
        let range = at as usize..(at + bytes) as usize;
        let word = at & !7;
        let is_word = word + 8 <= self.plan.bytes;
        let refused = AskError::from;
        let wanted = match self.random.between(0, 9) {
            0..=4 => {
                let read = Operation::Read { address: start + at, bytes: bytes as u32 };
                self.session.submit(tag, read).map_err(refused)?;
                Wanted::Bytes(at, self.array[range].to_vec())
            }
            5 | 6 if is_word => {
                let place = word as usize..word as usize + 8;
                let mut old = [0; 8];
                old.copy_from_slice(&self.array[place.clone()]);
                let (old, operand) = (u64::from_le_bytes(old), self.random.next());
                let (change, new) = match operand % 4 {
                    0 => (Change::FetchAdd(operand), old.wrapping_add(operand)),
                    1 => (Change::Swap(operand), operand),
                    2 => (Change::CompareSwap(old, operand), operand),
                    _ => (Change::CompareSwap(!old, operand), old),
                };
                let modify = Operation::Modify { address: start + word, change };
                self.session.submit(tag, modify).map_err(refused)?;
                self.array[place].copy_from_slice(&new.to_le_bytes());
                Wanted::Word(word, old)
            }
            _ => {
                let mut fill = SplitMix(self.random.next());
                self.array[range.clone()].fill_with(|| fill.next() as u8);
                let write = Operation::Write { address: start + at, bytes: &self.array[range] };
                self.session.submit(tag, write).map_err(refused)?;
                Wanted::Written(at)
            }
        };
        self.wanted.insert(tag, wanted);
        Ok(())
    }

    /// Compares completed operations. Returns whether anything has.
    fn poll(&mut self, until: Nanos, done: &mut Verified) -> Result<bool, VerifyError> {
        let CheckedRange { session, wanted, .. } = self;
        let (mut any, mut result) = (false, Ok(()));
        session.poll(until, &mut |tag, outcome| {
            any = true;
            let Some(wanted) = wanted.remove(&tag) else { return };
            let compared = check(&wanted, outcome, done);
            if result.is_ok() {
                result = compared;
            }
        })?;
        result.map(|()| any)
    }
}

fn check(wanted: &Wanted, outcome: Outcome<'_>, done: &mut Verified) -> Result<(), VerifyError> {
    match (wanted, outcome) {
        (Wanted::Bytes(at, wanted), Outcome::Read(found)) => {
            done.reads += 1;
            compare(*at, found, wanted)
        }
        (Wanted::Word(at, wanted), Outcome::Word(found)) => {
            done.atomics += 1;
            if *wanted == found {
                return Ok(());
            }
            let (found, wanted) = (format!("{found:#x}"), format!("{wanted:#x}"));
            Err(VerifyError::Wrong { what: format!("the word at {at}"), found, wanted })
        }
        (Wanted::Written(_), Outcome::Done) => {
            done.writes += 1;
            Ok(())
        }
        (Wanted::Bytes(at, _) | Wanted::Word(at, _) | Wanted::Written(at), outcome) => {
            let status = match outcome {
                Outcome::Refused(status) => status.name().replace('_', " "),
                _ => "no answer to any attempt".to_owned(),
            };
            Err(VerifyError::Ended { what: format!("an operation at {at}"), status })
        }
    }
}

/// Errors: the first byte that differs.
fn compare(at: u64, found: &[u8], wanted: &[u8]) -> Result<(), VerifyError> {
    if found.len() != wanted.len() {
        let (found, wanted) = (found.len().to_string(), wanted.len().to_string());
        return Err(VerifyError::Wrong { what: format!("bytes of a read at {at}"), found, wanted });
    }
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None => Ok(()),
        Some(nth) => Err(VerifyError::Wrong {
            what: format!("byte {}", at + nth as u64),
            found: found[nth].to_string(),
            wanted: wanted[nth].to_string(),
        }),
    }
}
