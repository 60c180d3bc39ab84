//! Checks after all operations have ended: locks, contents, histories, and leftovers of processes.

use super::ask::{KEYS, LOCKS, OWN_WORDS, SHARED_WORDS, lock_at, store_call};
use super::board::{KEEP, LEASE, Mail, PAGE_BYTES, Reply, STORE};
use super::history::{Cell, Key, KeyAct};
use super::session::{Ended, IssuedOperation, OperationKind, Target};
use super::world::{BOARDS, ClioFaultsWorld};
use crate::memory::FaultsOutcome;
use p4rack_fabric::clio::lib::Operation;
use p4rack_history::{Entry, Outcome, Word};
use p4rack_offload::KvFunction;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PageSize, Status};

/// Longest time in which a board frees the memory of a process.
const FREEING: Nanos = Nanos::from_millis(1);

/// The word at an offset.
fn word(bytes: &[u8], at: u64) -> u64 {
    let bytes = bytes.get(at as usize..).unwrap_or_default();
    bytes.iter().take(8).rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl ClioFaultsWorld {
    pub fn finish(mut self) -> Result<FaultsOutcome, String> {
        self.look_at_locks()?;
        for tag in 0..self.asked.len() {
            let asked = self.asked[tag].clone();
            match asked.end {
                Some(_) => self.enter(&asked),
                None => self.outcome.problems.push(format!("{asked:?} never ends")),
            }
        }
        for board in 0..BOARDS {
            self.look_at_contents(board)?;
            self.look_at_rest(board);
            self.count_board(board);
        }
        self.outcome.problems.extend(self.histories.problems());
        self.outcome.problems.extend(self.holds.problems());
        self.outcome.operations = self.asked.len() as u64;
        let is_unknown = |asked: &&IssuedOperation| matches!(asked.end, Some((_, Ended::Unknown)));
        self.outcome.unknown = self.asked.iter().filter(is_unknown).count() as u64;
        for (name, count) in ["lost", "copied", "damaged", "late"].into_iter().zip(self.network.counts) {
            self.count(name, count);
        }
        let [mut timeouts, mut retries, mut busy] = [0; 3];
        for session in &self.sessions {
            let counters = session.client.counters();
            timeouts += counters.timeouts;
            retries += counters.retries;
            busy += counters.busy;
        }
        for (name, count) in [("timeouts", timeouts), ("retries", retries), ("busy", busy)] {
            self.count(name, count);
        }
        Ok(self.outcome)
    }

    /// Adds the counters of a board that ends.
    pub fn count_board(&mut self, board: usize) {
        let (counters, refusals) = (self.boards[board].board.counters(), self.boards[board].board.refusals());
        let [no_memory, no_page_yet] =
            [Status::NoMemory, Status::NoPageYet].map(|status| refusals.of(status));
        for (name, count) in [
            ("executed_once_asked_again", counters.repeated),
            ("page_faults", counters.faults),
            ("locks_ended", counters.locks_ended),
            ("store_calls", counters.offloads),
            ("no_memory", no_memory),
            ("no_page_yet", no_page_yet),
        ] {
            self.count(name, count);
        }
    }

    /// Executes an operation of a board's keeper.
    fn keeper(&mut self, board: usize, operation: Operation<'_>) -> Result<Reply, String> {
        let mut mail = Mail::new();
        let reply = self.boards[board].call(operation, &mut self.now, &mut mail);
        self.deliver(mail);
        reply
    }

    fn rest(&mut self, time: Nanos) {
        let until = self.now + time;
        for node in &mut self.boards {
            let mut now = self.now;
            node.rest(&mut now, until, &mut Mail::new());
        }
        self.now = until;
    }

    /// A lock ends with its owner's process, and otherwise with its lease.
    fn look_at_locks(&mut self) -> Result<(), String> {
        // Boards have room to remember again, and no lock is held.
        self.rest(KEEP.max(LEASE));
        self.run_while(|_| true)?;
        for board in 0..BOARDS {
            let owners = self.open_sessions(|one| one.board == board);
            for (nth, owner) in owners.iter().take(LOCKS).enumerate() {
                self.lock(*owner, nth)?;
            }
            let [dead, alive] = owners[..].first_chunk().copied().ok_or("nodes have no sessions")?;
            let space = self.sessions[dead].space();
            self.close(dead);
            self.boards[board].end(space, self.now);
            self.lock_is_free(board, 0, "a lock outlives its owner")?;
            self.close(alive);
            self.rest(LEASE);
            self.lock_is_free(board, 1, "a lock outlives its lease")?;
        }
        Ok(())
    }

    /// Takes a free lock for a session, and again if the board has no room to remember that.
    fn lock(&mut self, session: usize, nth: usize) -> Result<(), String> {
        let mut end = Some(Ended::Refused(Status::Busy));
        while end == Some(Ended::Refused(Status::Busy)) {
            let tag = self.asked.len();
            self.submit(session, 0, OperationKind::Lock(nth));
            // Not longer: the lease must not end.
            self.run_while(|world| world.asked.get(tag).is_some_and(|asked| asked.end.is_none()))?;
            end = self.asked.get(tag).and_then(|asked| asked.end.clone()).map(|(_, end)| end);
        }
        if end != Some(Ended::Done) {
            self.outcome.problems.push(format!("session {session}: lock {nth} is not free at last: {end:?}"));
        }
        Ok(())
    }

    fn lock_is_free(&mut self, board: usize, nth: usize, otherwise: &str) -> Result<(), String> {
        let address = self.boards[board].shared + lock_at(nth);
        let reply = self.keeper(board, Operation::Lock { address })?;
        if reply != Reply::Done {
            self.outcome.problems.push(format!("board {board}, lock {nth}: {otherwise}: {reply:?}"));
        }
        Ok(())
    }

    /// Reads the words and keys of a board.
    fn look_at_contents(&mut self, board: usize) -> Result<(), String> {
        let (life, shared) = (self.boards[board].life, self.boards[board].shared);
        let now = |world: &ClioFaultsWorld| world.now.0;
        for at in SHARED_WORDS {
            let asked = now(self);
            let reply = self.keeper(board, Operation::Read { address: shared + at, bytes: 8 })?;
            let Reply::Bytes(bytes) = reply else {
                return Err(format!("board {board}, word {at:#x}: {reply:?}"));
            };
            let outcome = Outcome::Known(now(self) + 1);
            let entry = Entry { asked, outcome, act: Word::Read(word(&bytes, 0)) };
            self.histories.words.add(Cell::Shared { board, life, at }, entry);
        }
        for key in 0..KEYS {
            let (asked, function) = (now(self), KvFunction::Read);
            let arguments = store_call(key, function, 0, 0);
            let call = Operation::Call {
                offload: STORE,
                function: function as u8,
                arguments: &arguments,
                results_bytes_max: 1 << 10,
                is_ordered: true,
            };
            let found = match self.keeper(board, call)? {
                Reply::Bytes(bytes) => Some(word(&bytes, 0)),
                Reply::Failed(Status::NotFound) => None,
                reply => return Err(format!("board {board}, key {key}: {reply:?}")),
            };
            let entry = Entry { asked, outcome: Outcome::Known(now(self) + 1), act: KeyAct::Get(found) };
            self.histories.keys.add(Key { board, life, key }, entry);
        }
        Ok(())
    }

    /// When all processes have ended, nothing is left of them.
    fn look_at_rest(&mut self, board: usize) {
        for session in self.open_sessions(|one| one.board == board) {
            self.close(session);
        }
        let spaces: Vec<_> =
            self.sessions.iter().filter(|one| one.board == board).map(|one| one.space()).collect();
        spaces.into_iter().for_each(|space| self.boards[board].end(space, self.now));
        self.boards[board].end_own(self.now);
        self.rest(FREEING);
        let one = &self.boards[board].board;
        let left = (one.processes(), one.table().taken(), one.usage(PageSize::K4).taken);
        if left != (0, 0, 0) {
            let what = "processes, entries and frames are left";
            self.outcome.problems.push(format!("board {board}: {left:?} {what}"));
        }
    }

    /// Enters an operation into the histories.
    fn enter(&mut self, asked: &IssuedOperation) {
        let Some(outcome) = asked.outcome() else { return };
        let (session, asked_at) = (&self.sessions[asked.session], asked.begins.0);
        let (board, life) = (session.board, session.life);
        let end = asked.end.as_ref().map(|(_, end)| end);
        let mut add = |place: Target, at: u64, act: Word| {
            let cell = match place {
                Target::Shared => Cell::Shared { board, life, at },
                Target::Own(range) => Cell::Own { range, at },
            };
            self.histories.words.add(cell, Entry { asked: asked_at, outcome, act });
        };
        match (asked.what, end) {
            (OperationKind::Read { place, at, bytes }, Some(Ended::Bytes(found))) => {
                words(place, at, bytes).for_each(|cell| add(place, cell, Word::Read(word(found, cell - at))));
            }
            (OperationKind::Write { place, at, bytes, value }, _) => {
                words(place, at, bytes).for_each(|cell| add(place, cell, Word::Write(value)));
            }
            (OperationKind::Change { place, at, opcode, operands }, end) => {
                let found = if let Some(Ended::Word(found)) = end { Some(*found) } else { None };
                add(place, at, Word::Modify(opcode, operands, found));
            }
            (OperationKind::Store { key, function, value, .. }, Some(end)) => {
                let (is_known, is_refused) = (*end != Ended::Unknown, matches!(end, Ended::Refused(_)));
                let is_busy = *end == Ended::Refused(Status::Busy);
                let act = match function {
                    KvFunction::Read => match end {
                        Ended::Bytes(bytes) => KeyAct::Get(Some(word(bytes, 0))),
                        Ended::Refused(Status::NotFound) => KeyAct::Get(None),
                        _ => return,
                    },
                    KvFunction::Create => {
                        KeyAct::Create(value, (is_known && !is_busy).then_some(!is_refused))
                    }
                    KvFunction::Delete => KeyAct::Delete((is_known && !is_busy).then_some(!is_refused)),
                    _ => KeyAct::Put(value),
                };
                // The store has answered, although it has changed nothing.
                let at = asked.end.as_ref().map_or(0, |(at, _)| at.0);
                let outcome = if is_refused && !is_busy { Outcome::Known(at) } else { outcome };
                self.histories.keys.add(Key { board, life, key }, Entry { asked: asked_at, outcome, act });
            }
            _ => {}
        }
    }
}

/// The words that an access covers.
fn words(place: Target, at: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let all = if place == Target::Shared { &SHARED_WORDS[..] } else { &OWN_WORDS[..] };
    all.iter().copied().filter(move |word| (at..at + bytes).contains(word))
}

const _: () = assert!(OWN_WORDS[3] < 2 * PAGE_BYTES, "ranges have at most two pages");
