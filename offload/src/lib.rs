//! Offloads of a board of Clio: functions next to the memory, so that a compute node needs one exchange where it would need several
//! (paper §4.6 and §6).
//!
//! ```text
//!   CALL ─▶ Board ── poll_call ─▶ Offloads ─▶ PointerChase, Kv, Wasm
//!             ▲                                  │ reads and writes virtual addresses,
//!             └────────── finish_call ◀──────────┘ of its own process and of the caller's
//! ```
//!
//! An offload has a process of its own, with an address space like any other. It sees memory through a [`View`], which
//! checks rights and counts the bytes that a call reads; a call that reads too much is stopped.
//!
//! A function either changes memory and returns nothing, or returns something and changes nothing. So the board's memory of executed
//! requests serves calls as it serves writes: a retry of the former, or of a call that failed, gets the first result; a retry of the latter
//! is executed again.

mod chase;
mod kv;
pub mod wasm;

pub use chase::{Chase, PointerChase};
pub use kv::{KEY_BYTES_MAX, Kv, KvArguments, KvFunction, VALUE_BYTES_MAX, VERSION_BYTES, block_bytes};

use p4rack_fabric::clio::board::{self, Board, PhysicalMemory, Space, View};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;
use std::cell::Cell;
use std::fmt;

/// A call, as an offload sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The caller's process.
    pub caller: Space,
    /// The caller's number of the call: unique among its calls.
    pub id: u64,
    /// The offload's function.
    pub function: u8,
    /// Arguments: the data of the request.
    pub arguments: &'a [u8],
    /// The offload's notes on a call that continues [`Later`](Step::Later); zeros at first.
    pub progress: &'a Cell<[u64; 2]>,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has ended.
    Ended,
    /// It goes on when it is called again: after other work of the board.
    Later,
    /// It has not begun, because another call is under way.
    Blocked,
}

/// Work done by an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: no call waits.
    Idle,
    /// A call has ended.
    Ended,
    /// A call has come further, and goes on later.
    Paused,
    /// A call waits for another one that is paused.
    Blocked,
}

/// Functions next to the memory.
pub trait Offload: Send {
    /// Executes a call, or a part of it. When it ends, its results are in `results`, which is empty before. Errors: the status of the
    /// answer; then nothing has changed, except bytes that a module wrote before it failed.
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<Step, Status>;

    /// The process has ended: its paused calls don't go on.
    fn forget(&mut self, _caller: Space) {}

    /// Reason of the last failed call.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// An offload, and its process.
struct Entry {
    number: u64,
    own: Space,
    offload: Box<dyn Offload>,
    calls: u64,
    failed: u64,
}

/// Facts about an offload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its number.
    pub number: u64,
    /// Its process.
    pub own: Space,
    /// Calls that ended.
    pub calls: u64,
    /// Those of them that ended as [`OffloadFailed`](Status::OffloadFailed).
    pub failed: u64,
    /// Reason of the last failure.
    pub failure: Option<String>,
}

/// The offloads of a board, by number.
#[derive(Default)]
pub struct Offloads {
    /// In the order of their numbers.
    list: Vec<Entry>,
    next: u64,
    results: Vec<u8>,
}

impl fmt::Debug for Offloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offloads").field("count", &self.list.len()).finish_non_exhaustive()
    }
}

impl Offloads {
    /// Adds an offload, with its own process. Returns its number, for `Header.address` of calls.
    pub fn add(&mut self, own: Space, offload: Box<dyn Offload>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.list.push(Entry { number, own, offload, calls: 0, failed: 0 });
        number
    }

    /// Removes an offload. Returns its process, which is the caller's to end. Its number is never used again.
    pub fn remove(&mut self, number: u64) -> Option<Space> {
        let at = self.list.binary_search_by_key(&number, |entry| entry.number).ok()?;
        Some(self.list.remove(at).own)
    }

    /// A process has ended: its paused calls don't go on.
    pub fn forget(&mut self, caller: Space) {
        self.list.iter_mut().for_each(|entry| entry.offload.forget(caller));
    }

    /// Facts about an offload.
    pub fn facts(&self, number: u64) -> Option<Facts> {
        let at = self.list.binary_search_by_key(&number, |entry| entry.number).ok()?;
        let Entry { number, own, ref offload, calls, failed } = self.list[at];
        Some(Facts { number, own, calls, failed, failure: offload.failure().map(str::to_owned) })
    }

    /// Leaves the next number to no offload.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// Executes all calls that wait at a board.
    pub fn serve<M: PhysicalMemory, P: Copy + Send>(&mut self, board: &mut Board<M, P>, now: Nanos) {
        while self.step(board, now) != Progress::Idle {}
    }

    /// Executes the next call that waits at a board, or a part of it. Calls that have not begun come first.
    pub fn step<M: PhysicalMemory, P: Copy + Send>(
        &mut self,
        board: &mut Board<M, P>,
        now: Nanos,
    ) -> Progress {
        let call = board.poll_call();
        self.execute(board, call, now)
    }

    /// Executes the next call that has not begun, or a part of it.
    pub fn begin<M: PhysicalMemory, P: Copy + Send>(
        &mut self,
        board: &mut Board<M, P>,
        now: Nanos,
    ) -> Progress {
        let call = board.poll_new_call();
        self.execute(board, call, now)
    }

    /// Executes a part of the next call that was paused, although others may wait.
    pub fn resume<M: PhysicalMemory, P: Copy + Send>(
        &mut self,
        board: &mut Board<M, P>,
        now: Nanos,
    ) -> Progress {
        let call = board.poll_paused_call();
        self.execute(board, call, now)
    }

    fn execute<M: PhysicalMemory, P: Copy + Send>(
        &mut self,
        board: &mut Board<M, P>,
        call: Option<board::Call<P>>,
        now: Nanos,
    ) -> Progress {
        let Some(call) = call else { return Progress::Idle };
        self.results.clear();
        let found = self.list.binary_search_by_key(&call.offload(), |entry| entry.number);
        let ended = match found {
            Err(_) => Err(Status::NoSuchOffload),
            Ok(at) => {
                let entry = &mut self.list[at];
                let mut view = board.view(entry.own, &call);
                let (caller, id, function) = (call.caller, call.id(), call.function());
                let (arguments, progress) = (call.arguments(), call.progress());
                let called = Call { caller, id, function, arguments, progress };
                let ended = entry.offload.call(&called, &mut view, &mut self.results);
                drop(view);
                if let Ok(step @ (Step::Later | Step::Blocked)) = ended {
                    board.pause_call(call);
                    return if step == Step::Later { Progress::Paused } else { Progress::Blocked };
                }
                entry.calls += 1;
                entry.failed += u64::from(ended == Err(Status::OffloadFailed));
                ended.map(|_| ())
            }
        };
        board.finish_call(call, ended, &self.results, now);
        Progress::Ended
    }
}
