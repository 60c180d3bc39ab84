//! The store in remote memory: slots side by side in one region, maintained by the clients alone. It needs a way with atomic
//! operations that writes a slot in one step.
//!
//! A read is one operation. A write locks the slot's word (CAS from the known version to the same with the client's number), and
//! writes the next version over the whole slot, which unlocks it. If the end of a write means only that it has left, the client
//! then reads the word back. A client whose CAS has an unknown result finds its number in the word if it has the lock.

use super::slot::{HEADER_BYTES, Slot, Word, slot_bytes};
use super::{ANY, Failure, Store};
use p4rack_hosts::remote::{Region, Remote, RemoteError, WordOrder, Written};
use p4rack_wire::Nanos;

/// Requests that leave this much later than a write don't overtake it. If one finds the old version, the write is repeated: no
/// frame of it can still be in flight.
const REPEAT_NS: u64 = 250_000_000;
/// Pause between two checks of a lock or version.
const PAUSE_NS: u64 = 50_000;

/// A client.
#[derive(Debug)]
pub struct Slots<R: Remote> {
    memory: Region<R>,
    /// Byte order of a slot's word.
    words: WordOrder,
    /// Whether the end of a write only means that it has left.
    looks: bool,
    value_bytes: usize,
    /// Number of this client, from 1: its mark on locks.
    own: u16,
    /// Latest versions that it saw, by key.
    known: Vec<u64>,
    /// A slot's bytes.
    slot: Vec<u8>,
}

impl<R: Remote> Slots<R> {
    /// A client of the slots that begin at the region's first byte.
    pub fn new(remote: R, value_bytes: usize, own: u16, records: u32) -> Slots<R> {
        let abilities = remote.abilities();
        let (words, looks) = (abilities.words, abilities.writes == Written::Sent);
        let (known, slot) = (vec![0; records as usize], vec![0; HEADER_BYTES + value_bytes]);
        Slots { memory: Region::new(remote), words, looks, value_bytes, own, known, slot }
    }

    /// The memory itself.
    pub(super) fn memory(&mut self) -> &mut Region<R> {
        &mut self.memory
    }

    fn address(&self, key: u32) -> u64 {
        u64::from(key) * slot_bytes(self.value_bytes) as u64
    }

    /// Repeats an operation until its result is known.
    fn certain<T>(
        &mut self,
        until_ns: u64,
        mut operation: impl FnMut(&mut Region<R>) -> Result<T, RemoteError>,
    ) -> Result<T, Failure> {
        loop {
            match operation(&mut self.memory) {
                Ok(done) => return Ok(done),
                Err(RemoteError::Failed(status)) if status.is_passing() => {
                    if self.now_ns() >= until_ns {
                        return Err(Failure::Lost);
                    }
                }
                Err(error) => return Err(Failure::Ended(error.to_string())),
            }
        }
    }

    fn word(&mut self, at: u64, until_ns: u64) -> Result<Word, Failure> {
        let words = self.words;
        self.certain(until_ns, |memory| {
            let mut bytes = [0; 8];
            memory.read(at, &mut bytes)?;
            Ok(Word::from_bits(words.word(bytes)))
        })
    }

    fn pause(&mut self) {
        let now_ns = self.now_ns();
        self.sleep_until(now_ns + PAUSE_NS);
    }

    /// Locks a slot. Returns its version, or `None` if that is not the expected one.
    fn lock(&mut self, key: u32, expected: u64, until_ns: u64) -> Result<Option<u64>, Failure> {
        let (address, own) = (self.address(key), self.own);
        loop {
            let version = if expected == ANY { self.known[key as usize] } else { expected };
            let (free, locked) = (Word::free(version), Word { version, owner: own });
            let old = self.certain(until_ns, |memory| memory.cas(address, free.bits(), locked.bits()))?;
            let old = Word::from_bits(old);
            self.known[key as usize] = old.version;
            if old == free || old == locked {
                return Ok(Some(version));
            }
            match old.owner {
                0 if expected != ANY => return Ok(None),
                0 => {}
                _ if self.now_ns() >= until_ns => return Err(Failure::Lost),
                _ => self.pause(),
            }
        }
    }

    /// Waits until the next version is there. Returns the version found, or `None` if the write has to be repeated.
    fn looked(&mut self, address: u64, next: u64, until_ns: u64) -> Result<Option<u64>, Failure> {
        let repeat_ns = self.now_ns() + REPEAT_NS;
        loop {
            let late = self.now_ns() >= repeat_ns;
            let there = self.word(address, until_ns)?.version;
            if there >= next || late {
                return Ok((there >= next).then_some(there));
            }
            self.pause();
        }
    }
}

impl<R: Remote> Store for Slots<R> {
    fn get(&mut self, key: u32, until_ns: u64) -> Result<Slot, Failure> {
        let (address, mut bytes) = (self.address(key), std::mem::take(&mut self.slot));
        let read = self.certain(until_ns, |memory| memory.read(address, &mut bytes));
        let slot = Slot::decode(&bytes, self.words);
        self.slot = bytes;
        read?;
        let slot = slot.ok_or(Failure::Wrong)?;
        self.known[key as usize] = slot.version;
        Ok(slot)
    }

    fn put(&mut self, key: u32, expected: u64, value: &[u8], until_ns: u64) -> Result<Option<u64>, Failure> {
        let Some(version) = self.lock(key, expected, until_ns)? else { return Ok(None) };
        let (next, address) = (version + 1, self.address(key));
        let bytes = Slot { key: key.into(), version: next, value: value.to_vec() }.encode(self.words);
        while self.now_ns() < until_ns {
            self.certain(until_ns, |memory| memory.write(address, &bytes))?;
            let there = if self.looks { self.looked(address, next, until_ns)? } else { Some(next) };
            if let Some(there) = there {
                self.known[key as usize] = there;
                return Ok(Some(next));
            }
        }
        Err(Failure::Lost)
    }

    fn now_ns(&mut self) -> u64 {
        self.memory.remote().now().0
    }

    fn sleep_until(&mut self, at_ns: u64) {
        while self.now_ns() < at_ns {
            // A lost way returns an error at its next use.
            if self.memory.remote().poll(Nanos(at_ns), &mut |_, _| {}).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_hosts::remote::Local;

    #[test]
    fn a_slot_is_written_over_the_version_that_is_expected_and_no_other() {
        let mut store = Slots::new(Local::new(4 * slot_bytes(40) as u64), 40, 3, 4);
        let until_ns = store.now_ns() + 10_000_000_000;
        assert_eq!(store.put(2, ANY, &[7; 40], until_ns), Ok(Some(1)));
        assert_eq!(store.put(2, 0, &[8; 40], until_ns), Ok(None));
        assert_eq!(store.put(2, 1, &[9; 40], until_ns), Ok(Some(2)));
        assert_eq!(store.get(2, until_ns), Ok(Slot { key: 2, version: 2, value: vec![9; 40] }));
        // Another client has the lock and ends.
        let locked = Word { version: 2, owner: 9 };
        let address = store.address(2);
        let old = store.memory().cas(address, Word::free(2).bits(), locked.bits());
        assert_eq!(old.ok(), Some(Word::free(2).bits()));
        let until_ns = store.now_ns() + 1_000_000;
        assert_eq!(store.put(2, ANY, &[1; 40], until_ns), Err(Failure::Lost));
        assert_eq!(store.get(2, until_ns).map(|slot| slot.version), Ok(2), "a lock changes no value");
    }
}
