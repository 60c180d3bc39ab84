//! The extend path: calls of offloads, which run in the driver next to the memory (paper §4.6).
//!
//! ```text
//!   CALL ─▶ fast path ─▶ queue ── poll_call ─▶ driver: runs the offload on a view of memory
//!                          ▲                     │
//!                          ├─────── pause_call ◀─┤
//!             answer ◀─────│────── finish_call ◀─┘
//! ```
//!
//! An offload has a process of its own, and sees its memory and the caller's. A call that returns nothing counts as a change: its retries
//! get its result. One that returns bytes has to change nothing: its retries are executed. Copies of an attempt that was answered are
//! not, because a client could put one answer together from two executions. Refusals are final, unless they are temporary.

use super::Board;
use super::answers::Body;
use super::entry::Space;
use super::memory::PhysicalMemory;
use super::retry::{Ended, Operation};
use super::slow::PeerRequest;
use super::vm::{Translation, Vm};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Kind, PageSize, Rights, Status};
use std::cell::Cell;
use std::collections::VecDeque;

/// A call that waits for its offload.
#[derive(Clone, Debug)]
pub struct Call<P> {
    /// The process that calls.
    pub caller: Space,
    asked: PeerRequest<P>,
    arguments: Vec<u8>,
    /// Bytes that it may still read. Each read costs 64 more.
    left: Cell<u64>,
    progress: Cell<[u64; 2]>,
}

impl<P> Call<P> {
    /// An offload's notes on a call that continues later; zeros at first.
    pub fn progress(&self) -> &Cell<[u64; 2]> {
        &self.progress
    }

    /// The caller's number of it.
    pub fn id(&self) -> u64 {
        self.asked.header.id
    }

    /// The offload's number: the address of the request.
    pub fn offload(&self) -> u64 {
        self.asked.header.address
    }

    /// Which of its functions.
    pub fn function(&self) -> u8 {
        self.asked.header.code
    }

    /// Arguments: the data of the request.
    pub fn arguments(&self) -> &[u8] {
        &self.arguments
    }
}

/// Memory as an offload sees it: virtual addresses of the spaces that it may use.
pub trait View {
    /// Reads as many bytes as `into` has, across pages. Errors: those of a read; [`NotPermitted`](Status::NotPermitted) for other spaces;
    /// [`OffloadFailed`](Status::OffloadFailed) if the call has read as much as it may.
    fn read(&mut self, space: Space, address: u64, into: &mut [u8]) -> Result<(), Status>;

    /// Writes all of `bytes`, across pages. Errors: those of a write, after pages before may have been written;
    /// [`NotPermitted`](Status::NotPermitted) for other spaces.
    fn write(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Status>;
}

struct BoardView<'a, M> {
    vm: &'a mut Vm,
    memory: &'a mut M,
    spaces: [Space; 2],
    /// Bytes that the call may still read.
    left: &'a Cell<u64>,
}

impl<M: PhysicalMemory> BoardView<'_, M> {
    /// The physical address of the first of `bytes` bytes, and how many of them are in its page.
    fn part(
        &mut self,
        space: Space,
        address: u64,
        bytes: usize,
        rights: Rights,
    ) -> Result<(u64, usize), Status> {
        if !self.spaces.contains(&space) {
            return Err(Status::NotPermitted);
        }
        let size = PageSize::of_address(address).map_err(|_| Status::NoSuchAddress)?;
        let part = size.bytes_in_page(address, bytes as u64);
        let place = self.vm.translate(space, address, part as u32, rights)?;
        Ok((place.at, part as usize))
    }
}

impl<M: PhysicalMemory> View for BoardView<'_, M> {
    fn read(&mut self, space: Space, mut address: u64, mut into: &mut [u8]) -> Result<(), Status> {
        let left = self.left.get().checked_sub(64 + into.len() as u64);
        self.left.set(left.ok_or(Status::OffloadFailed)?);
        while !into.is_empty() {
            let (at, part) = self.part(space, address, into.len(), Rights { read: true, write: false })?;
            let (now, later) = std::mem::take(&mut into).split_at_mut(part);
            now.copy_from_slice(self.memory.at(at..at + part as u64));
            (address, into) = (address + part as u64, later);
        }
        Ok(())
    }

    fn write(&mut self, space: Space, mut address: u64, mut bytes: &[u8]) -> Result<(), Status> {
        while !bytes.is_empty() {
            let (at, part) = self.part(space, address, bytes.len(), Rights { read: false, write: true })?;
            let (now, later) = bytes.split_at(part);
            self.memory.at_mut(at..at + part as u64).copy_from_slice(now);
            (address, bytes) = (address + part as u64, later);
        }
        Ok(())
    }
}

/// Calls that wait, whose callers take turns.
#[derive(Clone, Debug)]
struct Queue<P> {
    calls: VecDeque<Call<P>>,
    /// Their callers, each once.
    turns: VecDeque<Space>,
}

impl<P: Copy> Queue<P> {
    fn new() -> Queue<P> {
        Queue { calls: VecDeque::new(), turns: VecDeque::new() }
    }

    fn push(&mut self, call: Call<P>) {
        if !self.turns.contains(&call.caller) {
            self.turns.push_back(call.caller);
        }
        self.calls.push_back(call);
    }

    /// The first call of the caller whose turn it is.
    fn pop(&mut self) -> Option<Call<P>> {
        let caller = self.turns.pop_front()?;
        let mut own = (0..self.calls.len()).filter(|nth| self.calls[*nth].caller == caller);
        let (first, has_more) = (own.next()?, own.next().is_some());
        if has_more {
            self.turns.push_back(caller);
        }
        self.calls.remove(first)
    }

    /// Drops the calls of a process. Returns how many.
    fn forget(&mut self, caller: Space) -> usize {
        let before = self.calls.len();
        self.calls.retain(|call| call.caller != caller);
        self.turns.retain(|other| *other != caller);
        before - self.calls.len()
    }
}

/// Calls that are not finished.
#[derive(Clone, Debug)]
pub(super) struct Calls<P> {
    waiting: Queue<P>,
    /// Calls that have begun and go on when none waits, or the driver says so: short calls pass long ones.
    paused: Queue<P>,
    /// Calls that an offload works on, by caller and id.
    running: Vec<(Space, u64)>,
    spare: Vec<Vec<u8>>,
    /// Calls of each process and of all.
    max: [usize; 2],
}

impl<P: Copy> Calls<P> {
    pub fn new(max: [usize; 2]) -> Calls<P> {
        Calls { waiting: Queue::new(), paused: Queue::new(), running: Vec::new(), spare: Vec::new(), max }
    }

    /// Calls that are not finished, of all processes.
    pub fn unfinished(&self) -> usize {
        self.waiting.calls.len() + self.paused.calls.len() + self.running.len()
    }

    /// Calls of a process that are not finished.
    pub fn unfinished_of(&self, caller: Space) -> usize {
        let waiting =
            self.waiting.calls.iter().chain(&self.paused.calls).filter(|call| call.caller == caller);
        waiting.count() + self.running.iter().filter(|(other, _)| *other == caller).count()
    }

    /// Drops the calls of a process that wait. Returns how many.
    pub fn forget(&mut self, caller: Space) -> usize {
        self.waiting.forget(caller) + self.paused.forget(caller)
    }
}

impl<M: PhysicalMemory, P: Copy + Send> Board<M, P> {
    /// Puts a call into the queue.
    pub(super) fn call(&mut self, caller: Space, asked: &PeerRequest<P>, arguments: &[u8]) {
        let operation = Operation { space: caller, id: asked.header.id, index: asked.header.index };
        let [of_each, of_all] = self.calls.max;
        if of_all == 0 {
            return self.refuse(asked, Status::NoSuchOffload);
        }
        if asked.header.packets != 1 {
            return self.refuse(asked, Status::BadLength);
        }
        let same = |other: &&mut Call<P>| other.caller == caller && other.asked.header.id == asked.header.id;
        if let Some(call) = self.calls.waiting.calls.iter_mut().chain(&mut self.calls.paused.calls).find(same)
        {
            // A retry asks for the same: only where the answer goes is new.
            let known = call.asked.header;
            if (known.address, known.code) != (asked.header.address, asked.header.code) {
                return self.refuse(asked, Status::BadRequest);
            }
            call.asked.peer = asked.peer;
            call.asked.header.attempt = known.attempt.max(asked.header.attempt);
            self.counters.joined += 1;
            return;
        }
        if self.calls.running.contains(&(caller, asked.header.id)) {
            self.counters.joined += 1;
            return;
        }
        match self.retries.find(&operation, self.now) {
            None => {}
            Some(ended) if ended.word == 0 => return self.repeat(asked, Kind::Call, ended),
            Some(ended) if u64::from(asked.header.attempt) < ended.word => {
                self.counters.joined += 1;
                return;
            }
            Some(_) => {}
        }
        let own = self.calls.unfinished_of(caller) + self.answers.results_of(caller.pid);
        let all = self.calls.unfinished() + self.answers.results();
        // There is always room for one call of a process.
        let is_full = own >= of_each || (all >= of_all && own > 0);
        if is_full || !self.retries.has_room(self.now) {
            return self.refuse(asked, Status::Busy);
        }
        let mut bytes = self.calls.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(arguments);
        let left = Cell::new(self.config.call_read_bytes_max);
        let progress = Cell::default();
        self.calls.waiting.push(Call { caller, asked: *asked, arguments: bytes, left, progress });
        if let Some(process) = self.vm.processes.get_mut(caller) {
            process.jobs += 1;
        }
        // Until there is a result, the call itself is found.
        self.retries.set_aside();
    }

    /// Whether calls wait that have not begun.
    pub fn has_new_calls(&self) -> bool {
        !self.calls.waiting.calls.is_empty()
    }

    /// Whether calls wait that were paused.
    pub fn has_paused_calls(&self) -> bool {
        !self.calls.paused.calls.is_empty()
    }

    /// The next call for an offload: one that has not begun, callers taking turns, else one that was paused. The driver runs it on a
    /// [`view`](Self::view), and gives it to [`finish_call`](Self::finish_call) or [`pause_call`](Self::pause_call).
    pub fn poll_call(&mut self) -> Option<Call<P>> {
        self.poll_new_call().or_else(|| self.poll_paused_call())
    }

    /// The next call that has not begun.
    pub fn poll_new_call(&mut self) -> Option<Call<P>> {
        let call = self.calls.waiting.pop()?;
        Some(self.begin_call(call))
    }

    /// The next call that was paused, callers taking turns: it may go on although others wait.
    pub fn poll_paused_call(&mut self) -> Option<Call<P>> {
        let call = self.calls.paused.pop()?;
        Some(self.begin_call(call))
    }

    fn begin_call(&mut self, call: Call<P>) -> Call<P> {
        self.calls.running.push((call.caller, call.asked.header.id));
        call
    }

    /// A call goes on later: after those that have not begun, and when its caller has its turn.
    pub fn pause_call(&mut self, call: Call<P>) {
        self.calls.running.retain(|other| *other != (call.caller, call.id()));
        if self.vm.processes.get(call.caller).is_some_and(|process| process.is_alive()) {
            self.calls.paused.push(call);
        } else {
            self.finish_call(call, Err(Status::NoSuchProcess), &[], self.now);
        }
    }

    /// Memory as an offload with this process sees it during a call.
    pub fn view<'a>(&'a mut self, own: Space, call: &'a Call<P>) -> impl View + 'a {
        let (spaces, left) = ([own, call.caller], &call.left);
        BoardView { vm: &mut self.vm, memory: &mut self.memory, spaces, left }
    }

    /// Answers a call with its results, or with the status of its failure.
    pub fn finish_call(&mut self, call: Call<P>, ended: Result<(), Status>, results: &[u8], now: Nanos) {
        self.now = self.now.max(now);
        let Call { caller, asked, arguments, .. } = call;
        self.calls.spare.push(arguments);
        self.calls.running.retain(|other| *other != (caller, asked.header.id));
        let operation = Operation { space: caller, id: asked.header.id, index: asked.header.index };
        let fits = results.len() <= self.config.call_result_bytes_max as usize;
        let status = ended.err().unwrap_or(if fits { Status::Done } else { Status::OffloadFailed });
        let ended = Ended { status, address: asked.header.address, word: 0 };
        // Of a call with results, the next attempt is kept.
        let has_results = status == Status::Done && !results.is_empty();
        let word = if has_results { u64::from(asked.header.attempt) + 1 } else { 0 };
        if status.is_temporary() {
            self.retries.give_back(1);
        } else {
            self.retries.keep_call(operation, Ended { word, ..ended }, self.now);
        }
        let Some(process) = self.vm.processes.get_mut(caller) else { return };
        process.jobs -= 1;
        let is_alive = process.is_alive();
        if is_alive && has_results {
            let body = self.answers.store(results);
            self.answer(&asked, Ended { address: 0, ..ended }, body, 0, Translation::None);
        } else if is_alive {
            self.answer(&asked, ended, Body::None, 0, Translation::None);
        }
        self.counters.offloads += 1;
        self.settle();
    }
}
