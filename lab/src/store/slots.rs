//! The store in remote memory: slots side by side in one region, maintained by the clients alone. It needs a way with atomic
//! operations that writes a slot in one step.
//!
//! ```text
//!  get  Read ──▶ found
//!  put  Lock ──▶ Write ──▶ wrote                 CAS from the known version to the same with the client's number
//!        ▲  │      ▲  ╲
//!        └──┘      └── Look ──▶ wrote            if the end of a write means only that it has left
//! ```
//!
//! The write puts the next version over the whole slot, which unlocks it. A client whose CAS has an unknown result finds its number in
//! the word if it has the lock. So it has one write of a record in flight; further ones wait for it.

use super::slot::{HEADER_BYTES, Slot, Word, slot_bytes};
use crate::ycsb::{Ended, Error, Store};
use p4rack_history::fill;
use p4rack_hosts::remote::{
    Abilities, Opcode, Operation, Outcome, Remote, Status, Window, WordOrder, Written,
};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Requests that leave this much later than a write don't overtake it. If one finds the old version, the write is repeated: no
/// frame of it can still be in flight.
const REPEAT: Nanos = Nanos::from_millis(250);
/// Pause between two checks of a lock or version.
const PAUSE: Nanos = Nanos::from_micros(50);
/// An operation without an end this long after its time limit is given up.
const SILENCE: Nanos = Nanos::from_secs(5);

/// Abilities that a way lacks for slots with values of this size, in words.
pub fn lacks(abilities: &Abilities, value_bytes: usize, records: u32) -> Option<String> {
    let slot = slot_bytes(value_bytes) as u64;
    let needed = slot * u64::from(records);
    if !abilities.atomics.contains(&Opcode::Cas) {
        Some("has no atomic operations that clients share, which lock the slots of a store".to_owned())
    } else if u64::from(abilities.whole_bytes) < slot {
        Some(format!("writes {} bytes in one step, and a slot has {slot}", abilities.whole_bytes))
    } else if abilities.edge_bytes < needed && !abilities.edge_bytes.is_multiple_of(slot) {
        let edge = abilities.edge_bytes;
        Some(format!(
            "divides writes at multiples of {edge} bytes, which are none of a slot's {slot}: change value_bytes"
        ))
    } else if abilities.region_bytes < needed {
        Some(format!("has a region of {} bytes, and the slots need {needed}", abilities.region_bytes))
    } else {
        None
    }
}

/// Current step of an operation.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Reads the slot.
    Read,
    /// Waits for this client's other operation that writes the record.
    Queues,
    /// Locks the slot in this version.
    Lock(u64),
    /// Writes the slot in this version.
    Write(u64),
    /// Reads the word until it has this version; writes again if it has not by then.
    Look(u64, Nanos),
}

/// Awaited result of an operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The request with this number.
    Asked(u64),
    /// The time to ask.
    Rests(Nanos),
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    key: u32,
    doing: Doing,
    /// The version that a write replaces, if not any.
    expected: Option<u64>,
    until: Nanos,
    step: Step,
}

/// A client.
#[derive(Debug)]
pub struct Slots<R: Remote> {
    remote: R,
    /// Byte order of a slot's word.
    words: WordOrder,
    /// Whether the end of a write means only that it has left.
    looks: bool,
    value_bytes: usize,
    /// Number of this client, from 1: its mark on locks.
    own: u16,
    /// Latest versions that it saw, by key.
    known: Vec<u64>,
    /// Whether it is writing a record, by key.
    writing: Vec<bool>,
    /// Tokens that wait until it has written their records.
    queue: VecDeque<usize>,
    /// Operations in flight, by token.
    under_way: Vec<Option<UnderWay>>,
    /// Requests of the way, and whose they are.
    asked: Window<usize>,
    /// Results by token. Kept to reuse its allocation.
    came: Vec<(usize, Came)>,
    /// A slot to write.
    slot: Slot,
}

/// Result of a request.
#[derive(Debug)]
enum Came {
    Slot(Option<Slot>),
    Word(Word),
    Written,
    Failed(Status),
}

impl<R: Remote> Slots<R> {
    /// A client of the slots that begin at the region's first byte. The error names the abilities that the way lacks.
    pub fn new(remote: R, value_bytes: usize, own: u16, records: u32) -> Result<Slots<R>, String> {
        let abilities = remote.abilities();
        if let Some(lacks) = lacks(abilities, value_bytes, records) {
            return Err(lacks);
        }
        let (words, looks) = (abilities.words, abilities.writes == Written::Sent);
        Ok(Slots {
            remote,
            words,
            looks,
            value_bytes,
            own,
            known: vec![0; records as usize],
            writing: vec![false; records as usize],
            queue: VecDeque::new(),
            under_way: Vec::new(),
            asked: Window::default(),
            came: Vec::new(),
            slot: Slot { key: 0, version: 0, value: vec![0; value_bytes] },
        })
    }

    /// The memory itself.
    pub(super) fn memory(&mut self) -> &mut R {
        &mut self.remote
    }

    fn address(&self, key: u32) -> u64 {
        u64::from(key) * slot_bytes(self.value_bytes) as u64
    }

    /// Submits an operation's current request to the way.
    fn ask(&mut self, token: usize) -> Result<(), Error> {
        let Some(mut one) = self.under_way.get(token).copied().flatten() else { return Err(Error::Unasked) };
        let (at, number, now) = (self.address(one.key), self.asked.next(), self.remote.now());
        let bytes;
        let operation = match one.doing {
            Doing::Read => Operation::Read { at, bytes: (HEADER_BYTES + self.value_bytes) as u32 },
            Doing::Queues => return Ok(()),
            Doing::Lock(version) => {
                let locked = Word { version, owner: self.own };
                Operation::cas(at, Word::free(version).bits(), locked.bits())
            }
            Doing::Write(version) => {
                (self.slot.key, self.slot.version) = (one.key.into(), version);
                fill(one.key.into(), version, &mut self.slot.value);
                bytes = self.slot.encode(self.words);
                Operation::Write { at, bytes: &bytes }
            }
            Doing::Look(..) => Operation::Read { at, bytes: 8 },
        };
        one.step = match self.remote.submit(number, operation) {
            Ok(()) => {
                self.asked.push(token);
                Step::Asked(number)
            }
            // There is room again when a request has ended.
            Err(Status::Full) => Step::Rests(now),
            Err(status) if status.is_passing() => Step::Rests(now + PAUSE),
            Err(status) => return Err(Error::gone(status)),
        };
        self.under_way[token] = Some(one);
        Ok(())
    }

    fn begin(&mut self, token: usize, one: UnderWay) -> Result<Option<Ended>, Error> {
        if self.under_way.len() <= token {
            self.under_way.resize(token + 1, None);
        }
        self.under_way[token] = Some(one);
        self.ask(token).map(|()| None)
    }

    /// An operation goes on with something else: now, or later.
    fn goes_on(&mut self, token: usize, doing: Doing, again: Option<Nanos>) -> Result<(), Error> {
        if let Some(Some(one)) = self.under_way.get_mut(token) {
            one.doing = doing;
            if let Some(again) = again {
                one.step = Step::Rests(again);
                return Ok(());
            }
        }
        self.ask(token)
    }

    /// Continues an operation with the result of its request. Returns how that ended, if it has.
    fn go_on(&mut self, token: usize, one: UnderWay, came: Came) -> Result<Option<Ended>, Error> {
        let (key, now) = (one.key as usize, self.remote.now());
        let (is_over, later) = (now >= one.until, Some(now + PAUSE));
        let ended = match (one.doing, came) {
            (_, Came::Failed(status)) if !status.is_passing() => return Err(Error::gone(status)),
            (_, Came::Failed(_)) if is_over => Ended::Lost,
            (doing, Came::Failed(_)) => return self.goes_on(token, doing, later).map(|()| None),
            (Doing::Read, Came::Slot(Some(slot))) if slot.key == u64::from(one.key) => {
                self.known[key] = slot.version;
                Ended::Found(slot.version)
            }
            (Doing::Read, Came::Slot(_)) => Ended::Wrong,
            (Doing::Lock(version), Came::Word(there)) => {
                self.known[key] = there.version;
                let doing = match there.owner {
                    0 if there.version == version => Doing::Write(version + 1),
                    // Its answer was lost.
                    owner if owner == self.own && there.version == version => Doing::Write(version + 1),
                    0 if one.expected.is_some() => return Ok(Some(Ended::Changed)),
                    0 => Doing::Lock(there.version),
                    _ if is_over => return Ok(Some(Ended::Lost)),
                    _ => {
                        let doing = Doing::Lock(one.expected.unwrap_or(there.version));
                        return self.goes_on(token, doing, later).map(|()| None);
                    }
                };
                return self.goes_on(token, doing, None).map(|()| None);
            }
            (Doing::Write(version), Came::Written) if self.looks => {
                return self.goes_on(token, Doing::Look(version, now + REPEAT), None).map(|()| None);
            }
            (Doing::Write(version), Came::Written) => {
                self.known[key] = version;
                Ended::Wrote(version)
            }
            (Doing::Look(version, _), Came::Word(there)) if there.version >= version => {
                self.known[key] = there.version;
                Ended::Wrote(version)
            }
            (Doing::Look(version, repeat), Came::Word(_)) if now < repeat => {
                return self.goes_on(token, Doing::Look(version, repeat), later).map(|()| None);
            }
            (Doing::Look(..), Came::Word(_)) if is_over => Ended::Lost,
            (Doing::Look(version, _), Came::Word(_)) => {
                return self.goes_on(token, Doing::Write(version), None).map(|()| None);
            }
            (Doing::Read | Doing::Queues | Doing::Lock(_) | Doing::Write(_) | Doing::Look(..), _) => {
                return Err(Error::gone("the memory answered something else than was asked"));
            }
        };
        Ok(Some(ended))
    }

    /// An operation has ended. If it wrote, the next one may write its record.
    fn end(&mut self, token: usize, one: UnderWay) -> Result<(), Error> {
        self.under_way[token] = None;
        if matches!(one.doing, Doing::Read | Doing::Queues) {
            self.queue.retain(|waiting| *waiting != token);
            return Ok(());
        }
        let key_of = |waiting: &usize| self.under_way.get(*waiting).copied().flatten().map(|one| one.key);
        let next = self.queue.iter().position(|waiting| key_of(waiting) == Some(one.key));
        let Some(next) = next.and_then(|next| self.queue.remove(next)) else {
            self.writing[one.key as usize] = false;
            return Ok(());
        };
        let expected = self.under_way[next].and_then(|waiting| waiting.expected);
        let version = expected.unwrap_or(self.known[one.key as usize]);
        self.goes_on(next, Doing::Lock(version), None)
    }

    /// Resumes operations that have rested for long enough, and ends those without an answer. Returns when to do so
    /// again.
    fn look(&mut self, ended: &mut dyn FnMut(usize, Ended)) -> Result<(Nanos, bool), Error> {
        let (now, mut wakes, mut any) = (self.remote.now(), Nanos::MAX, false);
        for token in 0..self.under_way.len() {
            let Some(one) = self.under_way[token] else { continue };
            match one.step {
                Step::Rests(_) if matches!(one.doing, Doing::Queues) => {
                    if now >= one.until {
                        ended(token, Ended::Lost);
                        any = true;
                        self.end(token, one)?;
                    }
                }
                Step::Rests(again) if again <= now => {
                    self.ask(token)?;
                    if let Some(UnderWay { step: Step::Rests(again), .. }) = self.under_way[token] {
                        wakes = wakes.min(again.max(now + PAUSE));
                    }
                }
                Step::Rests(again) => wakes = wakes.min(again),
                Step::Asked(number) if now >= one.until + SILENCE => {
                    self.asked.take(number);
                    ended(token, Ended::Lost);
                    any = true;
                    self.end(token, one)?;
                }
                Step::Asked(_) => {}
            }
        }
        Ok((wakes, any))
    }
}

impl<R: Remote> Store for Slots<R> {
    fn get(&mut self, token: usize, key: u32, until: Nanos) -> Result<Option<Ended>, Error> {
        let (doing, step) = (Doing::Read, Step::Rests(Nanos::ZERO));
        self.begin(token, UnderWay { key, doing, expected: None, until, step })
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        until: Nanos,
    ) -> Result<Option<Ended>, Error> {
        let doing = match std::mem::replace(&mut self.writing[key as usize], true) {
            true => {
                self.queue.push_back(token);
                Doing::Queues
            }
            false => Doing::Lock(expected.unwrap_or(self.known[key as usize])),
        };
        self.begin(token, UnderWay { key, doing, expected, until, step: Step::Rests(Nanos::ZERO) })
    }

    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        let (wakes, mut any) = self.look(ended)?;
        if any {
            return Ok(true);
        }
        let (asked, under_way, came) = (&mut self.asked, &self.under_way, &mut self.came);
        let words = self.words;
        let polled = self.remote.poll(until.min(wakes), &mut |number, outcome| {
            // Without a token: it was given up.
            let Some(token) = asked.take(number) else { return };
            let is_read = matches!(under_way[token], Some(UnderWay { doing: Doing::Read, .. }));
            let what = match outcome {
                Outcome::Read(bytes) if is_read => Came::Slot(Slot::decode(bytes, words)),
                Outcome::Read(bytes) => match bytes.first_chunk() {
                    Some(word) => Came::Word(Word::from_bits(words.word(*word))),
                    None => Came::Failed(Status::Unknown),
                },
                Outcome::Word(word) => Came::Word(Word::from_bits(word)),
                Outcome::Written => Came::Written,
                Outcome::Failed(status) => Came::Failed(status),
            };
            came.push((token, what));
        });
        polled.map_err(Error::gone)?;
        let mut came = std::mem::take(&mut self.came);
        any = !came.is_empty();
        for (token, what) in came.drain(..) {
            let Some(one) = self.under_way[token] else { return Err(Error::Unasked) };
            if let Some(how) = self.go_on(token, one, what)? {
                ended(token, how);
                self.end(token, one)?;
            }
        }
        self.came = came;
        Ok(any)
    }

    fn now(&self) -> Nanos {
        self.remote.now()
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
