//! A thread's set: issues requests and fetches their responses.

use crate::group::{Group, PollId};
use crate::sync::{AtomicU64, Ordering};
use crate::words;
use p4rack_wire::cowbird::{GREEN_AT, Kind, Layout, RED_AT, RequestId, place};
use std::fmt;
use std::hint;
use std::ops::Deref;
use std::time::{Duration, Instant};

/// Words of the green block, in the order of [`p4rack_wire::cowbird::Green`].
const REQUEST_TAIL: usize = GREEN_AT as usize / words::BYTES;
const REQUEST_DATA_TAIL: usize = REQUEST_TAIL + 1;
const RESPONSE_DATA_RESERVED: usize = REQUEST_TAIL + 2;
const RESPONSE_DATA_HEAD: usize = REQUEST_TAIL + 3;
/// Words of the red block, in the order of [`p4rack_wire::cowbird::Red`].
const REQUEST_HEAD: usize = RED_AT as usize / words::BYTES;
const REQUEST_DATA_HEAD: usize = REQUEST_HEAD + 1;
const WRITE_PROGRESS: usize = REQUEST_HEAD + 3;
const READ_PROGRESS: usize = REQUEST_HEAD + 4;
const REFUSAL: usize = REQUEST_HEAD + 5;
/// Polls of `poll_wait` before it reads the clock and yields.
const LOOKS: u32 = 64;

/// Why a set can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSet {
    /// A size is invalid.
    Layout(&'static str),
    /// The memory is too small.
    TooSmall {
        /// Bytes that the layout needs.
        need: u64,
        /// Bytes that there are.
        have: u64,
    },
    /// Its blocks are not zero: another client used it. A new set needs fresh memory.
    Used,
}

impl fmt::Display for BadSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSet::Layout(why) => f.write_str(why),
            BadSet::TooSmall { need, have } => {
                write!(f, "the rings need {need} bytes, the memory has {have}")
            }
            BadSet::Used => write!(f, "the memory held a set before: take fresh memory, filled with zeros"),
        }
    }
}

impl std::error::Error for BadSet {}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No room in the request ring: try again.
    RequestsFull,
    /// No room for the data of a write: try again.
    RequestDataFull,
    /// No room for the data of a read: fetch responses of earlier reads first.
    ResponseDataFull,
    /// No region has this number.
    UnknownRegion,
    /// The request reaches beyond the region's end.
    OutOfBounds,
    /// The request is empty, or longer than half of a ring: split it.
    BadLength,
    /// The engine has ended this set, for this reason: set it up again.
    Ended(u64),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::RequestsFull => write!(f, "the request ring is full: try again"),
            Refused::RequestDataFull => write!(f, "the request data ring is full: try again"),
            Refused::ResponseDataFull => {
                write!(f, "the response data ring is full: fetch responses first")
            }
            Refused::UnknownRegion => write!(f, "there is no such region"),
            Refused::OutOfBounds => write!(f, "the request reaches beyond the region's end"),
            Refused::BadLength => write!(f, "a request has 1 byte to half of a data ring"),
            Refused::Ended(code) => {
                write!(f, "the engine has ended this set with code {code}: set it up anew")
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Why requests can't be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollError {
    /// No group has this number.
    UnknownGroup,
    /// The request was never made, or its response was fetched.
    UnknownRequest,
    /// The request is in the group already.
    Twice,
    /// The engine has ended this set, for this reason.
    Ended(u64),
    /// The engine reports more completed requests than were issued.
    Corrupt,
}

impl fmt::Display for PollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollError::UnknownGroup => write!(f, "there is no such notification group"),
            PollError::UnknownRequest => {
                write!(f, "the request was never made, or its response was fetched")
            }
            PollError::Twice => write!(f, "the request is in the group already"),
            PollError::Ended(code) => {
                write!(f, "the engine has ended this set with code {code}: set it up anew")
            }
            PollError::Corrupt => write!(f, "the engine says that more is done than was asked for"),
        }
    }
}

impl std::error::Error for PollError {}

/// Data of a completed read, in the response ring.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    words: &'a [AtomicU64],
    length: usize,
}

impl Data<'_> {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none; a read has at least one.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies the first bytes, as many as `into` has, at most all.
    #[inline]
    pub fn copy_to(&self, into: &mut [u8]) {
        let length = self.length.min(into.len());
        words::get(self.words, 0, &mut into[..length]);
    }

    /// All bytes.
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.copy_to(&mut bytes);
        bytes
    }
}

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Id of the request.
    pub id: RequestId,
    /// Data of a read, valid only during the call. `None` for writes.
    pub data: Option<Data<'a>>,
}

/// An unfetched read: positions of its data in the response ring.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start: u64,
    end: u64,
    length: u32,
    fetched: bool,
}

/// A thread's set. `S` is the memory, shared with the responder that serves the engine.
#[derive(Debug)]
pub struct Client<S> {
    words: S,
    layout: Layout,
    /// Bytes of each region, by number.
    regions: Vec<u64>,
    request_tail: u64,
    request_data_tail: u64,
    response_data_reserved: u64,
    response_data_head: u64,
    /// As last seen.
    request_head: u64,
    /// As last seen.
    request_data_head: u64,
    /// Reads and writes issued.
    reads: u64,
    writes: u64,
    /// Number of reads up to which all responses have been fetched.
    fetched: u64,
    slots: Vec<Slot>,
    groups: Vec<Group>,
}

impl<S: Deref<Target = [AtomicU64]>> Client<S> {
    /// A set in fresh memory, filled with zeros. `regions` has the bytes of each remote region, by number.
    ///
    /// For a network adapter, the memory has to begin at a multiple of 64 bytes: it takes lines, and no entry or block may have
    /// parts in two. An adapter of `p4rack_fabric::roce` takes words.
    pub fn new(words: S, layout: Layout, regions: Vec<u64>) -> Result<Client<S>, BadSet> {
        layout.check().map_err(BadSet::Layout)?;
        let have = words.len() as u64 * words::BYTES as u64;
        if have < layout.bytes() {
            return Err(BadSet::TooSmall { need: layout.bytes(), have });
        }
        if words[..=REFUSAL].iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            return Err(BadSet::Used);
        }
        Ok(Client {
            words,
            regions,
            request_tail: 0,
            request_data_tail: 0,
            response_data_reserved: 0,
            response_data_head: 0,
            request_head: 0,
            request_data_head: 0,
            reads: 0,
            writes: 0,
            fetched: 0,
            slots: vec![Slot::default(); layout.entries as usize],
            groups: Vec::new(),
            layout,
        })
    }

    /// The memory.
    pub fn words(&self) -> &S {
        &self.words
    }

    /// Requests that are not done, as far as this thread has seen.
    pub fn outstanding(&self) -> u64 {
        self.request_tail.saturating_sub(self.told(REQUEST_HEAD))
    }

    /// Requests `length` bytes of a region, from `src` on.
    #[inline]
    pub fn async_read(&mut self, region: u16, src: u64, length: u32) -> Result<RequestId, Refused> {
        self.check(region, src, length, self.layout.response_bytes)?;
        if self.reads - self.fetched >= self.layout.entries {
            return Err(Refused::ResponseDataFull);
        }
        let (start, end) = place(self.response_data_reserved, length.into(), self.layout.response_bytes);
        if end - self.response_data_head > self.layout.response_bytes {
            return Err(Refused::ResponseDataFull);
        }
        self.reserve_entry()?;
        let slot = self.reads & (self.layout.entries - 1);
        self.slots[slot as usize] = Slot { start, end, length, fetched: false };
        self.response_data_reserved = end;
        self.tell(RESPONSE_DATA_RESERVED, end, Ordering::Relaxed);
        self.reads += 1;
        let id = RequestId::new(Kind::Read, region, self.reads);
        let resp_addr = self.layout.response_data_at() + (start & (self.layout.response_bytes - 1));
        self.publish(id, length, src, resp_addr);
        Ok(id)
    }

    /// Requests a write of `src` to a region, from `dest` on. `src` is copied.
    #[inline]
    pub fn async_write(&mut self, region: u16, src: &[u8], dest: u64) -> Result<RequestId, Refused> {
        let length = u32::try_from(src.len()).map_err(|_| Refused::BadLength)?;
        self.check(region, dest, length, self.layout.request_bytes)?;
        let (start, end) = place(self.request_data_tail, length.into(), self.layout.request_bytes);
        // A head ahead of its tail is an engine error; it must neither free bytes in use nor stop the thread.
        if end.wrapping_sub(self.request_data_head) > self.layout.request_bytes {
            self.request_data_head = self.told(REQUEST_DATA_HEAD);
            if end.wrapping_sub(self.request_data_head) > self.layout.request_bytes {
                return Err(self.full(Refused::RequestDataFull));
            }
        }
        self.reserve_entry()?;
        let req_addr = self.layout.request_data_at() + (start & (self.layout.request_bytes - 1));
        words::put(&self.words, req_addr as usize / words::BYTES, src);
        self.request_data_tail = end;
        self.tell(REQUEST_DATA_TAIL, end, Ordering::Relaxed);
        self.writes += 1;
        let id = RequestId::new(Kind::Write, region, self.writes);
        self.publish(id, length, req_addr, dest);
        Ok(id)
    }

    #[inline]
    fn check(&self, region: u16, at: u64, length: u32, ring: u64) -> Result<(), Refused> {
        let size = *self.regions.get(usize::from(region)).ok_or(Refused::UnknownRegion)?;
        if length == 0 || u64::from(length).next_multiple_of(words::BYTES as u64) > ring / 2 {
            return Err(Refused::BadLength);
        }
        if at.checked_add(length.into()).is_none_or(|end| end > size) {
            return Err(Refused::OutOfBounds);
        }
        Ok(())
    }

    /// Makes sure that there is an entry.
    #[inline]
    fn reserve_entry(&mut self) -> Result<(), Refused> {
        if self.request_tail.wrapping_sub(self.request_head) >= self.layout.entries {
            self.request_head = self.told(REQUEST_HEAD);
            if self.request_tail.wrapping_sub(self.request_head) >= self.layout.entries {
                return Err(self.full(Refused::RequestsFull));
            }
        }
        Ok(())
    }

    /// Why there is no room: the engine may have ended the set.
    #[cold]
    fn full(&self, refused: Refused) -> Refused {
        match self.told(REFUSAL) {
            0 => refused,
            code => Refused::Ended(code),
        }
    }

    /// Fills the next entry and makes the request known.
    #[inline]
    fn publish(&mut self, id: RequestId, length: u32, req_addr: u64, resp_addr: u64) {
        let at = self.layout.entry_at(self.request_tail) as usize / words::BYTES;
        let first = (id.kind() as u64) << 48 | u64::from(id.region()) << 32 | u64::from(length);
        for (nth, word) in [first, req_addr, resp_addr].into_iter().enumerate() {
            self.tell(at + 1 + nth, word, Ordering::Relaxed);
        }
        // An engine may read the entry before the tail covers it: the id makes it valid.
        self.tell(at, id.0, Ordering::Release);
        self.request_tail += 1;
        // A thread that sees this store also sees all stores above.
        self.tell(REQUEST_TAIL, self.request_tail, Ordering::Release);
    }

    #[inline]
    fn tell(&self, word: usize, value: u64, ordering: Ordering) {
        self.words[word].store(value.to_be(), ordering);
    }

    /// A word of the engine's, with acquire order: the engine's earlier writes are visible.
    #[inline]
    fn told(&self, word: usize) -> u64 {
        u64::from_be(self.words[word].load(Ordering::Acquire))
    }

    /// Makes a notification group.
    pub fn poll_create(&mut self) -> PollId {
        self.groups.push(Group::default());
        PollId(self.groups.len() - 1)
    }

    /// Adds a request to a group. A response is fetched once: with the group that comes first.
    #[inline]
    pub fn poll_add(&mut self, poll: PollId, id: RequestId) -> Result<(), PollError> {
        let known = match id.kind() {
            Kind::Read => self.slot(id).is_some_and(|slot| !slot.fetched),
            Kind::Write => id.is_done(self.writes),
        };
        if !known {
            return Err(PollError::UnknownRequest);
        }
        let group = self.groups.get_mut(poll.0).ok_or(PollError::UnknownGroup)?;
        if group.add(id) { Ok(()) } else { Err(PollError::Twice) }
    }

    /// Removes a request from a group without cancelling it. Returns whether it was in the group.
    pub fn poll_remove(&mut self, poll: PollId, id: RequestId) -> Result<bool, PollError> {
        let group = self.groups.get_mut(poll.0).ok_or(PollError::UnknownGroup)?;
        Ok(group.remove(id))
    }

    /// Calls `response` for completed requests of a group, at most `max` of them: writes, then reads, each kind in issue
    /// order. Returns their number.
    #[inline]
    pub fn poll(
        &mut self,
        poll: PollId,
        max: usize,
        mut response: impl FnMut(Response<'_>),
    ) -> Result<usize, PollError> {
        let (write_progress, read_progress) = (self.told(WRITE_PROGRESS), self.told(READ_PROGRESS));
        if write_progress > self.writes || read_progress > self.reads {
            return Err(PollError::Corrupt);
        }
        let group = self.groups.get_mut(poll.0).ok_or(PollError::UnknownGroup)?;
        let (mut count, layout, head) = (0, self.layout, self.response_data_head);
        while count < max
            && let Some(id) = group.next(Kind::Write, write_progress)
        {
            response(Response { id, data: None });
            count += 1;
        }
        while count < max
            && let Some(id) = group.next(Kind::Read, read_progress)
        {
            let slot = &mut self.slots[(id.number().wrapping_sub(1) & (layout.entries - 1)) as usize];
            // It may be in two groups, and the slot a later read's by now.
            if id.is_done(self.fetched) || std::mem::replace(&mut slot.fetched, true) {
                continue;
            }
            let at = layout.response_data_at() + (slot.start & (layout.response_bytes - 1));
            let data =
                Data { words: &self.words[at as usize / words::BYTES..], length: slot.length as usize };
            response(Response { id, data: Some(data) });
            count += 1;
            // Room comes back in the order in which it was taken.
            while self.fetched < self.reads {
                let slot = &self.slots[(self.fetched & (layout.entries - 1)) as usize];
                if !slot.fetched {
                    break;
                }
                self.response_data_head = slot.end;
                self.fetched += 1;
            }
        }
        if self.response_data_head != head {
            self.tell(RESPONSE_DATA_HEAD, self.response_data_head, Ordering::Release);
        }
        Ok(count)
    }

    /// Like [`poll`](Self::poll), until there were `max` responses, the group is empty, or `timeout` has passed. Spins.
    pub fn poll_wait(
        &mut self,
        poll: PollId,
        max: usize,
        timeout: Duration,
        mut response: impl FnMut(Response<'_>),
    ) -> Result<usize, PollError> {
        let start = Instant::now();
        let mut count = 0;
        loop {
            for _ in 0..LOOKS {
                count += self.poll(poll, max - count, &mut response)?;
                if count >= max || self.groups[poll.0].is_empty() {
                    return Ok(count);
                }
                hint::spin_loop();
            }
            if start.elapsed() >= timeout {
                return match self.told(REFUSAL) {
                    0 => Ok(count),
                    code if count == 0 => Err(PollError::Ended(code)),
                    _ => Ok(count),
                };
            }
            std::thread::yield_now();
        }
    }

    /// The slot of an issued read, unless it and all earlier ones have been fetched.
    #[inline]
    fn slot(&self, id: RequestId) -> Option<&Slot> {
        let known = id.is_done(self.reads) && !id.is_done(self.fetched);
        known.then(|| &self.slots[(id.number().wrapping_sub(1) & (self.layout.entries - 1)) as usize])
    }
}
