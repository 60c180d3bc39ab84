//! The fast path: reads, writes, atomic operations and fences; and where it hands requests over to the slow path.

use super::Board;
use super::answers::Body;
use super::entry::Space;
use super::fences::Fence;
use super::locks::Life;
use super::memory::PhysicalMemory;
use super::retry::{Ended, Operation};
use super::slow::PeerRequest;
use super::vm::{Place, Translation};
use p4rack_wire::clio::{Atomic, Kind, Packet, Rights, Status, WORD_BYTES, flags, lock_word};

const READ: Rights = Rights { read: true, write: false };
const WRITE: Rights = Rights { read: false, write: true };

/// An operand, or a word of memory.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl<M: PhysicalMemory, P: Copy + Send> Board<M, P> {
    /// Executes a request of a process. The caller has checked that its answer has room.
    pub(super) fn execute(&mut self, space: Space, peer: P, packet: &Packet<'_>) {
        let asked = PeerRequest { peer, header: packet.header };
        match packet.kind {
            Kind::Read => self.read(space, &asked),
            Kind::Write | Kind::Atomic | Kind::Manage => self.change(space, &asked, packet),
            Kind::Fence => self.fence(space, asked),
            Kind::Call => self.call(space, &asked, packet.data),
            // No requests: they were dropped.
            Kind::Answer | Kind::Nack => {}
        }
    }

    /// Answers that a request was not executed.
    pub(super) fn refuse(&mut self, asked: &PeerRequest<P>, status: Status) {
        let ended = Ended { status, address: asked.header.address, word: 0 };
        self.answer(asked, ended, Body::None, 0, Translation::None);
    }

    fn read(&mut self, space: Space, asked: &PeerRequest<P>) {
        let (address, left) = (asked.header.address, asked.header.length);
        if left > self.config.read_bytes_max {
            return self.refuse(asked, Status::BadLength);
        }
        let Place { at, translation, .. } = match self.vm.translate(space, address, left, READ) {
            Ok(place) => place,
            Err(status) => return self.refuse(asked, status),
        };
        self.counters.reads += 1;
        self.reads += 1;
        if let Some(process) = self.vm.processes.get_mut(space) {
            process.reads += 1;
        }
        let ended = Ended { status: Status::Done, address, word: 0 };
        self.answer(asked, ended, Body::Read { at, left }, 0, translation);
    }

    /// Executes a request that changes something, unless it was executed before.
    fn change(&mut self, space: Space, asked: &PeerRequest<P>, packet: &Packet<'_>) {
        let operation = self.operation(space, asked);
        let known =
            if planted!(self.vm, NoRetryMemory) { None } else { self.retries.find(&operation, self.now) };
        if packet.kind == Kind::Manage {
            return self.manage(space, asked, packet.data, operation, known);
        }
        if let Some(ended) = known {
            return self.repeat(asked, packet.kind, ended);
        }
        if !self.retries.has_room(self.now) {
            return self.refuse(asked, Status::Busy);
        }
        let done = match packet.kind {
            Kind::Atomic => self.modify(space, asked, packet.data),
            _ => self.write(space, asked, packet.data),
        };
        let (ended, translation) = match done {
            Ok(done) => done,
            Err(status) => {
                self.remember_refusal(operation, asked, status);
                return self.refuse(asked, status);
            }
        };
        self.retries.keep(operation, ended, self.now);
        self.answer(asked, ended, body_of(packet.kind, ended), 0, translation);
    }

    /// The client gives up a request that is refused for good. A copy that comes later must not be executed.
    fn remember_refusal(&mut self, operation: Operation, asked: &PeerRequest<P>, status: Status) {
        if !status.is_temporary() {
            let ended = Ended { status, address: asked.header.address, word: 0 };
            self.retries.keep(operation, ended, self.now);
        }
    }

    /// The key that all attempts of a request share.
    fn operation(&self, space: Space, asked: &PeerRequest<P>) -> Operation {
        let (mut id, mut index) = (asked.header.id, asked.header.index);
        if planted!(self.vm, RetryWithoutIndex) {
            index = 0;
        }
        if planted!(self.vm, LateOriginal) {
            id ^= u64::from(asked.header.attempt) << 56;
        }
        Operation { space, id, index }
    }

    /// Answers with the result of the attempt that was executed.
    pub(super) fn repeat(&mut self, asked: &PeerRequest<P>, kind: Kind, ended: Ended) {
        self.counters.repeated += 1;
        self.answer(asked, ended, body_of(kind, ended), flags::REPEATED, Translation::None);
    }

    fn write(
        &mut self,
        space: Space,
        asked: &PeerRequest<P>,
        data: &[u8],
    ) -> Result<(Ended, Translation), Status> {
        let address = asked.header.address;
        let place = self.vm.translate(space, address, asked.header.length, WRITE)?;
        self.memory.at_mut(place.at..place.at + data.len() as u64).copy_from_slice(data);
        self.counters.writes += 1;
        Ok((Ended { status: Status::Done, address, word: 0 }, place.translation))
    }

    fn modify(
        &mut self,
        space: Space,
        asked: &PeerRequest<P>,
        data: &[u8],
    ) -> Result<(Ended, Translation), Status> {
        let (address, epoch) = (asked.header.address, space.epoch);
        let atomic = Atomic::of(asked.header.code).ok_or(Status::BadRequest)?;
        if data.len() != atomic.operand_bytes() as usize {
            return Err(Status::BadLength);
        }
        if !address.is_multiple_of(WORD_BYTES.into()) {
            return Err(Status::BadRequest);
        }
        let (first, second) = data.split_at(WORD_BYTES as usize);
        let (operand, second) = (word(first), word(second));
        let mine = match (atomic, u16::try_from(operand)) {
            (Atomic::Lock | Atomic::Unlock, Ok(thread)) => lock_word(space.pid, thread, epoch),
            (Atomic::Lock | Atomic::Unlock, Err(_)) => return Err(Status::BadRequest),
            _ => 0,
        };
        let place = self.vm.translate(space, address, WORD_BYTES, Rights::ALL)?;
        let old = word(self.memory.at(place.at..place.at + u64::from(WORD_BYTES)));
        let new = match atomic {
            Atomic::CompareSwap => (old == operand).then_some(second),
            Atomic::FetchAdd => Some(old.wrapping_add(operand)),
            Atomic::Swap => Some(operand),
            Atomic::Lock if old == 0 || old == mine => {
                if !self.locks.has_room(place.at, space) {
                    return Err(Status::Busy);
                }
                let (size, frame) = (place.size, place.frame);
                let life = Life { size, frame, nth: self.vm.pages.life(size, frame) };
                self.locks.hold(place.at, space, mine, life, self.now);
                Some(mine)
            }
            Atomic::Unlock if old == mine => {
                self.locks.release(place.at);
                Some(0)
            }
            Atomic::Lock => None,
            Atomic::Unlock => return Err(Status::NotOwner),
        };
        if let Some(new) = new {
            let bytes = self.memory.at_mut(place.at..place.at + u64::from(WORD_BYTES));
            bytes.copy_from_slice(&new.to_le_bytes());
        }
        self.counters.atomics += 1;
        Ok((Ended { status: Status::Done, address, word: old }, place.translation))
    }

    /// Hands a call to the slow path, which answers when it is done.
    fn manage(
        &mut self,
        space: Space,
        asked: &PeerRequest<P>,
        data: &[u8],
        operation: Operation,
        known: Option<Ended>,
    ) {
        if asked.header.packets != 1 {
            return self.refuse(asked, Status::BadLength);
        }
        if let Some(call) = self.slow.find(space, asked.header.id) {
            *call = *asked;
            self.counters.joined += 1;
            return;
        }
        if let Some(ended) = known {
            return self.repeat(asked, Kind::Manage, ended);
        }
        let [of_process, of_all] = self.config.jobs_max;
        let jobs = self.vm.processes.get(space).map_or(0, |process| process.jobs);
        let jobs = jobs.saturating_sub(self.calls.unfinished_of(space));
        // There is always room for one call of a process.
        let is_full = jobs >= of_process || (self.slow.len() >= of_all && jobs > 0);
        if is_full || !self.retries.has_room(self.now) {
            return self.refuse(asked, Status::Busy);
        }
        if let Err(status) = self.slow.begin(space, *asked, data, &mut self.vm) {
            self.remember_refusal(operation, asked, status);
            return self.refuse(asked, status);
        }
        if let Some(process) = self.vm.processes.get_mut(space) {
            process.jobs += 1;
        }
        // Until there is a result, the call itself is found.
        self.retries.set_aside();
    }

    fn fence(&mut self, space: Space, asked: PeerRequest<P>) {
        let all = asked.header.flags & flags::ALL != 0;
        if all && !self.config.fence_all {
            return self.refuse(&asked, Status::NotPermitted);
        }
        self.fences.add(Fence { space, asked, all });
    }
}

/// The data of an answer.
fn body_of(kind: Kind, ended: Ended) -> Body {
    let has_word = kind == Kind::Atomic && ended.status == Status::Done;
    if has_word { Body::Word(ended.word) } else { Body::None }
}
