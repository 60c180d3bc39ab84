//! Accepted entries: the engine's expectations of the next one, and the operation that an entry requests.

use super::set::{Corruption, Set};
use p4rack_wire::cowbird::{Entry, Kind, Red, RequestId, WORD_BYTES, place};

/// Positions and numbers of a set in use stay far below this limit: it would take centuries to reach it.
const COUNT_MAX: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Begun,
    /// A read whose bytes have arrived.
    Arrived,
    Done,
}

/// An accepted request.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub kind: Kind,
    pub region: u16,
    /// Address in the region.
    pub remote: u64,
    /// Address in the set.
    pub local: u64,
    pub length: u32,
    /// Position in the response or request data ring after it.
    pub end: u64,
    pub phase: Phase,
    /// Data received so far.
    pub bytes: Vec<u8>,
}

impl Operation {
    /// Adds the next piece of its data. Returns whether that was the last one.
    pub fn gather(&mut self, piece: Vec<u8>) -> bool {
        match self.bytes.is_empty() {
            true => self.bytes = piece,
            false => self.bytes.extend_from_slice(&piece),
        }
        self.bytes.len() >= self.length as usize
    }

    pub fn overlaps(&self, other: &Operation) -> bool {
        let (start, end) = (self.remote, self.remote + u64::from(self.length));
        self.region == other.region && start < other.remote + u64::from(other.length) && other.remote < end
    }
}

/// Number and data position of the next entry of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    number: u64,
    tail: u64,
}

/// Expected fields of the next entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// Its position.
    pub position: u64,
    /// Entries before this position may have been executed by a previous engine.
    pub recovered: u64,
    read: Next,
    write: Next,
}

impl Entries {
    /// Continues from a red block, with the client's tail at that time. Errors: numbers that no engine writes.
    pub fn recover(red: &Red, tail: u64) -> Result<Entries, Corruption> {
        let numbers =
            [tail, red.read_progress, red.response_data_tail, red.write_progress, red.request_data_head];
        if numbers.iter().any(|number| *number > COUNT_MAX) {
            return Err(Corruption::Tail);
        }
        Ok(Entries {
            position: red.request_head,
            recovered: tail,
            read: Next { number: red.read_progress, tail: red.response_data_tail },
            write: Next { number: red.write_progress, tail: red.request_data_head },
        })
    }

    /// Whether an entry has the expected id.
    pub fn is_next(&self, bytes: &[u8]) -> bool {
        let Ok(entry) = Entry::parse(bytes) else { return false };
        let next = match Kind::of(entry.rw_type) {
            Ok(Kind::Read) => RequestId::new(Kind::Read, entry.region_id, self.read.number + 1),
            Ok(Kind::Write) => RequestId::new(Kind::Write, entry.region_id, self.write.number + 1),
            Err(_) => return false,
        };
        entry.request_id == next.0
    }

    /// Accepts the next entry. One that a previous engine completed is [`Phase::Done`].
    pub fn parse(&mut self, bytes: &[u8], set: &Set, red: &Red) -> Result<Operation, Corruption> {
        let entry = Entry::parse(bytes).map_err(|_| Corruption::Type)?;
        let kind = Kind::of(entry.rw_type).map_err(|_| Corruption::Type)?;
        let region = set.regions.get(usize::from(entry.region_id)).ok_or(Corruption::Region)?;
        let (addresses, layout) = ((entry.req_addr, entry.resp_addr), &set.layout);
        let (next, progress, ring, ring_at, (remote, local)) = match kind {
            Kind::Read => {
                let (ring, at) = (layout.response_bytes, layout.response_data_at());
                (&mut self.read, red.read_progress, ring, at, addresses)
            }
            Kind::Write => {
                let (ring, at) = (layout.request_bytes, layout.request_data_at());
                (&mut self.write, red.write_progress, ring, at, (addresses.1, addresses.0))
            }
        };
        let length = u64::from(entry.length);
        if length == 0 || length.next_multiple_of(WORD_BYTES) > ring / 2 {
            return Err(Corruption::Length);
        }
        if remote.checked_add(length).is_none_or(|end| end > region.bytes) {
            return Err(Corruption::Bounds);
        }
        let id = RequestId(entry.request_id);
        // Only entries known to a previous engine can be done already.
        let known = self.position < self.recovered
            && next.number == progress
            && id == RequestId::new(kind, entry.region_id, id.number())
            && id.is_done(progress);
        let (end, phase) = if known {
            (0, Phase::Done)
        } else {
            if id != RequestId::new(kind, entry.region_id, next.number + 1) {
                return Err(Corruption::Id);
            }
            let (start, end) = place(next.tail, length, ring);
            if local != ring_at + (start & (ring - 1)) {
                return Err(Corruption::Place);
            }
            *next = Next { number: next.number + 1, tail: end };
            (end, Phase::Waiting)
        };
        self.position += 1;
        let (region, length) = (entry.region_id, entry.length);
        Ok(Operation { kind, region, remote, local, length, end, phase, bytes: Vec::new() })
    }
}
