//! The store in EDM memory: slots side by side in one region, and nobody but the clients to look after them.
//!
//! A read is one RREQ; a slot fits into a chunk, so it is of one write. A write locks the slot's word (CAS from the known version to
//! the same with its own number), writes the next version over the whole slot, which unlocks it, and reads the word back: writes
//! are not answered. A client that never learns whether it got the lock sees by its number in the word.

use super::slot::{HEADER_BYTES, Slot, Word, slot_bytes};
use super::{ANY, Failure, Store};
use crate::sys;
use p4rack_fabric::edm::host::compute::Request;
use p4rack_hosts::memory::{Client, Error, Operation, Remote};
use p4rack_wire::edm::Opcode;

/// Requests that leave so much later than a write don't overtake it. If one finds that it is not there, it is repeated: nothing of
/// it can still be under way.
const REPEAT_NS: u64 = 250_000_000;
/// Pause between looking for a lock or a version.
const PAUSE_NS: u64 = 50_000;

/// The memory that has the slots, as a client uses it.
pub trait Memory {
    /// Does an operation. Returns the bytes read, or the old word of an atomic operation.
    fn perform(&mut self, address: u64, request: Request) -> Result<Vec<u8>, Error>;

    /// The time: the system's monotonic clock, or virtual time.
    fn now_ns(&self) -> u64;

    /// Waits.
    fn sleep_until(&mut self, at_ns: u64);
}

/// The memory of a node of the network.
#[derive(Debug)]
pub struct OfNode {
    /// Asks it.
    pub client: Client,
    /// Which node, and the key of its memory.
    pub remote: Remote,
}

impl Memory for OfNode {
    fn perform(&mut self, address: u64, request: Request) -> Result<Vec<u8>, Error> {
        let ticket = self.client.submit(Operation { remote: self.remote, address, request })?;
        self.client.wait(ticket)
    }

    fn now_ns(&self) -> u64 {
        sys::monotonic_ns()
    }

    fn sleep_until(&mut self, at_ns: u64) {
        sys::sleep_until(at_ns);
    }
}

/// A client.
#[derive(Debug)]
pub struct EdmStore<M> {
    memory: M,
    value_bytes: usize,
    /// Number of this client, from 1: its mark on locks.
    own: u16,
    /// Versions that it saw last, by key.
    known: Vec<u64>,
}

impl<M: Memory> EdmStore<M> {
    /// A client of the slots that begin at address 0.
    pub fn new(memory: M, value_bytes: usize, own: u16, records: u32) -> EdmStore<M> {
        EdmStore { memory, value_bytes, own, known: vec![0; records as usize] }
    }

    /// The memory itself.
    pub(super) fn memory(&mut self) -> &mut M {
        &mut self.memory
    }

    fn address(&self, key: u32) -> u64 {
        u64::from(key) * slot_bytes(self.value_bytes) as u64
    }

    /// Repeats an operation whose result is unknown until there is one.
    fn certain(&mut self, until_ns: u64, address: u64, request: &Request) -> Result<Vec<u8>, Failure> {
        loop {
            match self.memory.perform(address, request.clone()) {
                Ok(done) => return Ok(done),
                Err(Error::Unknown | Error::Busy) if self.memory.now_ns() < until_ns => {}
                Err(Error::Unknown | Error::Busy) => return Err(Failure::Lost),
                Err(error) => return Err(Failure::Ended(error.to_string())),
            }
        }
    }

    /// The same for one that answers a word.
    fn word(&mut self, until_ns: u64, address: u64, request: &Request) -> Result<Word, Failure> {
        let bytes = self.certain(until_ns, address, request)?;
        let bytes = bytes.try_into().map_err(|_| Failure::Wrong)?;
        Ok(Word::from_bits(u64::from_be_bytes(bytes)))
    }

    fn pause(&mut self) {
        let now_ns = self.memory.now_ns();
        self.memory.sleep_until(now_ns + PAUSE_NS);
    }

    /// Locks a slot. Returns its version, or `None` if that is not the expected one.
    fn lock(&mut self, key: u32, expected: u64, until_ns: u64) -> Result<Option<u64>, Failure> {
        let (address, own) = (self.address(key), self.own);
        loop {
            let version = if expected == ANY { self.known[key as usize] } else { expected };
            let locked = Word { version, owner: own };
            let cas = Request::Modify(Opcode::Cas, [Word::free(version).bits(), locked.bits()]);
            let old = self.word(until_ns, address, &cas)?;
            self.known[key as usize] = old.version;
            if old == Word::free(version) || old == locked {
                return Ok(Some(version));
            }
            match old.owner {
                0 if expected != ANY => return Ok(None),
                0 => {}
                _ if self.memory.now_ns() >= until_ns => return Err(Failure::Lost),
                _ => self.pause(),
            }
        }
    }
}

impl<M: Memory> Store for EdmStore<M> {
    fn get(&mut self, key: u32, until_ns: u64) -> Result<Slot, Failure> {
        let (address, bytes) = (self.address(key), HEADER_BYTES + self.value_bytes);
        let bytes = self.certain(until_ns, address, &Request::Read(bytes as u32))?;
        let slot = Slot::decode(&bytes).ok_or(Failure::Wrong)?;
        self.known[key as usize] = slot.version;
        Ok(slot)
    }

    fn put(&mut self, key: u32, expected: u64, value: &[u8], until_ns: u64) -> Result<Option<u64>, Failure> {
        let Some(version) = self.lock(key, expected, until_ns)? else { return Ok(None) };
        let (next, address) = (version + 1, self.address(key));
        let bytes = Slot { key: key.into(), version: next, value: value.to_vec() }.encode();
        let write = Request::Write(bytes);
        while self.memory.now_ns() < until_ns {
            self.certain(until_ns, address, &write)?;
            let repeat_ns = self.memory.now_ns() + REPEAT_NS;
            loop {
                let late = self.memory.now_ns() >= repeat_ns;
                let there = self.word(until_ns, address, &Request::Read(8))?.version;
                if there >= next {
                    self.known[key as usize] = there;
                    return Ok(Some(next));
                }
                if late {
                    break;
                }
                self.pause();
            }
        }
        Err(Failure::Lost)
    }

    fn now_ns(&self) -> u64 {
        self.memory.now_ns()
    }

    fn sleep_until(&mut self, at_ns: u64) {
        self.memory.sleep_until(at_ns);
    }
}
