//! The store in EDM memory: slots side by side in one region, and nobody but the clients to look after them.
//!
//! A read is one RREQ; a slot fits into a chunk, so it is of one write. A write locks the slot's word (CAS from the known version to
//! the same with its own number), writes the next version over the whole slot, which unlocks it, and reads the word back: writes
//! are not answered. A client that never learns whether it got the lock sees by its number in the word.

use super::slot::{HEADER_BYTES, Slot, Word, slot_bytes};
use super::{ANY, Failure, Store};
use crate::sys;
use p4rack_hosts::memory::{Client, Error, Remote};
use std::time::Duration;

/// Requests that leave so much later than a write don't overtake it. If one finds that it is not there, it is repeated: nothing of
/// it can still be under way.
const REPEAT_NS: u64 = 250_000_000;
/// Pause between looking for a lock or a version.
const PAUSE: Duration = Duration::from_micros(50);

/// A client.
#[derive(Debug)]
pub struct EdmStore {
    client: Client,
    remote: Remote,
    value_bytes: usize,
    /// Number of this client, from 1: its mark on locks.
    own: u16,
    /// Versions that it saw last, by key.
    known: Vec<u64>,
}

impl EdmStore {
    /// A client of the slots that begin at address 0.
    pub fn new(client: Client, remote: Remote, value_bytes: usize, own: u16, records: u32) -> EdmStore {
        EdmStore { client, remote, value_bytes, own, known: vec![0; records as usize] }
    }

    fn address(&self, key: u32) -> u64 {
        u64::from(key) * slot_bytes(self.value_bytes) as u64
    }

    /// Repeats an operation whose result is unknown until there is one.
    fn certain<T>(
        &mut self,
        until_ns: u64,
        mut operation: impl FnMut(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        loop {
            match operation(&mut self.client) {
                Ok(done) => return Ok(done),
                Err(Error::Unknown | Error::Busy) if sys::monotonic_ns() < until_ns => {}
                Err(Error::Unknown | Error::Busy) => return Err(Failure::Lost),
                Err(error) => return Err(Failure::Ended(error.to_string())),
            }
        }
    }

    /// Locks a slot. Returns its version, or `None` if that is not the expected one.
    fn lock(&mut self, key: u32, expected: u64, until_ns: u64) -> Result<Option<u64>, Failure> {
        let (remote, address, own) = (self.remote, self.address(key), self.own);
        loop {
            let version = if expected == ANY { self.known[key as usize] } else { expected };
            let locked = Word { version, owner: own };
            let cas =
                |client: &mut Client| client.cas(remote, address, Word::free(version).bits(), locked.bits());
            let old = Word::from_bits(self.certain(until_ns, cas)?);
            self.known[key as usize] = old.version;
            if old == Word::free(version) || old == locked {
                return Ok(Some(version));
            }
            match old.owner {
                0 if expected != ANY => return Ok(None),
                0 => {}
                _ if sys::monotonic_ns() >= until_ns => return Err(Failure::Lost),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Store for EdmStore {
    fn get(&mut self, key: u32, until_ns: u64) -> Result<Slot, Failure> {
        let (remote, address, bytes) = (self.remote, self.address(key), HEADER_BYTES + self.value_bytes);
        let bytes = self.certain(until_ns, |client| client.read(remote, address, bytes as u32))?;
        let slot = Slot::decode(&bytes).ok_or(Failure::Wrong)?;
        self.known[key as usize] = slot.version;
        Ok(slot)
    }

    fn put(&mut self, key: u32, expected: u64, value: &[u8], until_ns: u64) -> Result<Option<u64>, Failure> {
        let Some(version) = self.lock(key, expected, until_ns)? else { return Ok(None) };
        let next = version + 1;
        let (remote, address) = (self.remote, self.address(key));
        let bytes = Slot { key: key.into(), version: next, value: value.to_vec() }.encode();
        while sys::monotonic_ns() < until_ns {
            self.certain(until_ns, |client| client.write(remote, address, bytes.clone()))?;
            let repeat_ns = sys::monotonic_ns() + REPEAT_NS;
            loop {
                let late = sys::monotonic_ns() >= repeat_ns;
                let word = self.certain(until_ns, |client| client.read(remote, address, 8))?;
                let word = word.try_into().map_err(|_| Failure::Wrong)?;
                let there = Word::from_bits(u64::from_be_bytes(word)).version;
                if there >= next {
                    self.known[key as usize] = there;
                    return Ok(Some(next));
                }
                if late {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        Err(Failure::Lost)
    }
}
