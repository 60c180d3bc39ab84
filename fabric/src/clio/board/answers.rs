//! Answers that wait for the link. Processes take turns, so a long read delays only the answers of its own process.
//!
//! The bytes of a read are copied from memory when their packet leaves. Until then the read is under way: its range is not freed, and
//! fences wait for it.

use super::entry::Space;
use super::memory::PhysicalMemory;
use super::vm::Translation;
use crate::common::Turns;
use p4rack_wire::clio::{Header, packet};
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::ipv4::{Ipv4, Udp};
use std::ops::Range;

/// An answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<P> {
    pub peer: P,
    /// Its header. Of a read: that of its next packet.
    pub header: Header,
    pub body: Body,
    pub translation: Translation,
}

/// The data of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    None,
    /// The old word of an atomic operation.
    Word(u64),
    /// Bytes at a physical address.
    Read {
        at: u64,
        left: u32,
    },
    /// Bytes of a stored result.
    Result {
        nth: u32,
        at: u32,
        left: u32,
    },
}

impl<P> Answer<P> {
    fn space(&self) -> Space {
        Space { pid: self.header.pid, epoch: self.header.epoch }
    }

    /// Data of its next packet.
    fn data_bytes(&self, max: u32) -> u32 {
        match self.body {
            Body::None => 0,
            Body::Word(_) => 8,
            Body::Read { left, .. } | Body::Result { left, .. } => left.min(max),
        }
    }
}

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left<P> {
    pub peer: P,
    pub translation: Translation,
    /// The process of the read of which it was the last packet.
    pub read: Option<Space>,
}

/// Answers by PID.
#[derive(Clone, Debug)]
pub(super) struct Answers<P> {
    turns: Turns<u32, Answer<P>>,
    /// Answers of each process and of all.
    max: [usize; 2],
    data_bytes_max: u32,
    /// Results of offloads that wait, at most one per answer.
    results: Vec<Vec<u8>>,
    /// Places in `results` that are free.
    free: Vec<u32>,
}

/// Bytes of an answer on the wire.
fn wire_bytes(data_bytes: u32) -> u64 {
    let headers = Ethernet::BYTES + Ipv4::BYTES + Udp::BYTES + Header::BYTES;
    overhead::wire_bytes(headers as u64 + u64::from(data_bytes))
}

impl<P: Copy> Answers<P> {
    pub fn new(max: [usize; 2], data_bytes_max: u32) -> Answers<P> {
        let (turns, results, free) = (Turns::new(wire_bytes(data_bytes_max)), Vec::new(), Vec::new());
        Answers { turns, max, data_bytes_max, results, free }
    }

    pub fn is_empty(&self) -> bool {
        self.turns.len() == 0
    }

    /// Answers of a process.
    pub fn len_of(&self, pid: u32) -> usize {
        self.turns.len_of(pid)
    }

    /// Whether there is no room for another answer to this process.
    pub fn is_full(&self, pid: u32) -> bool {
        let own = self.turns.len_of(pid);
        // There is always room for one answer to a process.
        own >= self.max[0] || (own > 0 && self.turns.len() >= self.max[1])
    }

    /// Adds an answer. The caller has asked for room, except for answers whose number other limits bound.
    pub fn push(&mut self, mut answer: Answer<P>) {
        if let Body::Read { left, .. } | Body::Result { left, .. } = answer.body {
            answer.header.packets = left.div_ceil(self.data_bytes_max) as u16;
        }
        self.put(answer);
    }

    /// Results that wait.
    pub fn results(&self) -> usize {
        self.results.len() - self.free.len()
    }

    /// Results for a process that wait.
    pub fn results_of(&self, pid: u32) -> usize {
        self.turns.of(pid).filter(|answer| matches!(answer.body, Body::Result { .. })).count()
    }

    /// Keeps the bytes of a result until its answer has left.
    pub fn store(&mut self, bytes: &[u8]) -> Body {
        let nth = self.free.pop().unwrap_or_else(|| {
            self.results.push(Vec::new());
            (self.results.len() - 1) as u32
        });
        let kept = &mut self.results[nth as usize];
        kept.clear();
        kept.extend_from_slice(bytes);
        Body::Result { nth, at: 0, left: bytes.len() as u32 }
    }

    fn put(&mut self, answer: Answer<P>) {
        let bytes = wire_bytes(answer.data_bytes(self.data_bytes_max));
        self.turns.push(answer.header.pid, bytes, answer);
    }

    /// Writes the next packet over `out`.
    pub fn poll<M: PhysicalMemory>(&mut self, memory: &M, out: &mut Vec<u8>) -> Option<Left<P>> {
        let answer = self.turns.pop()?;
        let bytes = answer.data_bytes(self.data_bytes_max);
        let header = Header { length: bytes, ..answer.header };
        let place = packet::begin(&header, bytes as usize, out);
        let mut read = None;
        match answer.body {
            Body::None => {}
            Body::Word(word) => out[place].copy_from_slice(&word.to_le_bytes()),
            Body::Read { at, left } => {
                out[place].copy_from_slice(memory.at(at..at + u64::from(bytes)));
                if left > bytes {
                    let body = Body::Read { at: at + u64::from(bytes), left: left - bytes };
                    let address = answer.header.address + u64::from(bytes);
                    let header = Header { index: answer.header.index + 1, address, ..answer.header };
                    self.put(Answer { header, body, ..answer });
                } else {
                    read = Some(answer.space());
                }
            }
            Body::Result { nth, at, left } => {
                let part = at as usize..(at + bytes) as usize;
                out[place].copy_from_slice(&self.results[nth as usize][part]);
                if left > bytes {
                    let body = Body::Result { nth, at: at + bytes, left: left - bytes };
                    let address = answer.header.address + u64::from(bytes);
                    let header = Header { index: answer.header.index + 1, address, ..answer.header };
                    self.put(Answer { header, body, ..answer });
                } else {
                    self.free.push(nth);
                }
            }
        }
        packet::seal(out);
        Some(Left { peer: answer.peer, translation: answer.translation, read })
    }

    /// Whether a read of a process at these addresses is under way. A read stays within its page, and ranges begin and end with pages.
    pub fn is_read(&self, space: Space, addresses: &Range<u64>) -> bool {
        let is_read = |answer: &Answer<P>| {
            matches!(answer.body, Body::Read { .. })
                && answer.space() == space
                && addresses.contains(&answer.header.address)
        };
        self.turns.of(space.pid).any(is_read)
    }

    /// Drops the answers of a process that has ended. Returns how many.
    pub fn forget(&mut self, pid: u32) -> usize {
        let before = self.turns.len();
        let results = self.turns.of(pid).filter_map(|answer| match answer.body {
            Body::Result { nth, .. } => Some(nth),
            _ => None,
        });
        self.free.extend(results);
        self.turns.forget(pid);
        before - self.turns.len()
    }
}
