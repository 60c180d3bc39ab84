//! A request on its way, packet by packet: a *part* is what one packet writes, or what one packet of an answer has.
//!
//! ```text
//!              leaves                    answered
//!   Unsent ───────────────▶ InFlight ───────────────▶ Done
//!                            │    ▲                     ▲
//!        NACK, busy, TIMEOUT ▼    │ next attempt        │ answer to an earlier attempt
//!                            Back ┴─────────────────────┘
//! ```
//!
//! The paper gives each retry a new id beside that of the failed request (§4.5); here both are the pair of id and attempt. The board
//! executes a part of an id once, whichever attempt comes first, as long as it remembers it. So an answer to any attempt counts, and
//! only what is missing is sent again.

use super::config::Granule;
use super::gather::Gather;
use super::operation::Ending;
use super::order::{Access, Kind};
use super::part::{Part, Progress, UNSENT};
use super::split::Split;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{AllocBody, Atomic, FreeBody, ShareBody, Status};

/// Bytes of data, and parts, for which a free slot keeps room.
const KEPT_BYTES: usize = 64 << 10;
const KEPT_PARTS: usize = 64;

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The slot has no request.
    Free,
    /// Earlier requests have to end first.
    Waiting,
    /// Its packets leave, and are answered.
    Active,
    /// It has ended, and its outcome has not been fetched.
    Ended,
}

/// A request without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Read,
    Write,
    Atomic(Atomic, [u64; 2]),
    Fence {
        all: bool,
    },
    Alloc(AllocBody),
    Free(FreeBody),
    Share(ShareBody),
    /// `address` is the number of the offload.
    Call {
        function: u8,
        results_bytes_max: u32,
        is_ordered: bool,
    },
    /// Has no packets.
    Release,
}

/// An act, and its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RangedAct {
    pub act: Act,
    pub address: u64,
    /// Up to 2^48 for a free.
    pub range_bytes: u64,
}

impl RangedAct {
    /// Its place in the order of the thread. Synchronous operations of the paper (§3.1) are barriers.
    pub fn access(&self, seat: u16, granule: Granule) -> Access {
        let range = |kind, granule| Access::of(kind, (seat, self.address), self.range_bytes, granule);
        match self.act {
            Act::Alloc(_) | Act::Call { is_ordered: false, .. } => Access::nothing(),
            Act::Read => range(Kind::Read, granule),
            Act::Atomic(Atomic::Lock | Atomic::Unlock, _)
            | Act::Fence { .. }
            | Act::Release
            | Act::Call { .. } => Access::barrier(),
            Act::Write | Act::Atomic(..) => range(Kind::Write, granule),
            // The board's unit is the page.
            Act::Free(_) | Act::Share(_) => range(Kind::Write, Granule::Page),
        }
    }

    /// Whether the board's slow path executes it.
    pub fn is_slow(&self) -> bool {
        matches!(self.act, Act::Alloc(_) | Act::Free(_) | Act::Share(_))
    }
}

/// Effect of an answer to an attempt of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// It is the answer to the attempt in flight.
    Current,
    /// It is a late one: it counts if the part was executed.
    Earlier,
    /// Nothing: the part is done.
    Before,
    /// Nothing: no such attempt was sent.
    Unasked,
}

/// Why a packet comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The board was busy: not executed.
    Busy,
    /// It came damaged: not executed.
    Nack,
    /// The answer came damaged: executed, or refused.
    DamagedAnswer,
}

/// Parts in flight that timed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    /// Parts without an answer in time, and their bytes.
    pub lost: u32,
    pub lost_bytes: u64,
    /// Whether one of them has no attempt left.
    pub is_exhausted: bool,
    /// When the oldest of those still in flight left.
    pub oldest: Option<Nanos>,
}

/// A slot, and the request in it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub state: State,
    pub tag: u64,
    pub thread: u16,
    /// Place of its process in the client's list.
    pub seat: u16,
    pub what: RangedAct,
    pub split: Split,
    /// Bytes of a write, of a call's arguments, or of a read's answers.
    pub data: Vec<u8>,
    /// A call's results, as far as they have come.
    pub results: Gather,
    /// Bytes that the client counts for it.
    pub buffered_bytes: u32,
    /// When the client accepted it.
    pub admitted: Nanos,
    /// Requests that this slot had before.
    pub generation: u32,
    /// Pauses without progress since.
    pub pauses: u8,
    /// End of the pause because the board was busy.
    pub paused: Option<Nanos>,
    /// Why the board refused a part. No further part is sent, but those in flight may still be executed.
    pub refused: Option<Status>,
    /// Whether it is in its seat's queue.
    pub is_queued: bool,
    /// Bytes of answers that the incast window counts.
    pub expected_bytes: u64,
    pub ending: Ending,
    parts: Vec<Part>,
    /// The first part that was never sent, and the first that is not done.
    cursor: u32,
    low: u32,
    /// Parts that are not done, in flight, and back.
    left: u32,
    in_flight: u32,
    back: u32,
}

impl Request {
    /// An empty slot.
    pub fn new() -> Request {
        Request {
            state: State::Free,
            tag: 0,
            thread: 0,
            seat: 0,
            what: RangedAct { act: Act::Release, address: 0, range_bytes: 0 },
            split: Split::one(0),
            data: Vec::new(),
            results: Gather::default(),
            buffered_bytes: 0,
            admitted: Nanos::ZERO,
            generation: 0,
            pauses: 0,
            paused: None,
            refused: None,
            is_queued: false,
            expected_bytes: 0,
            ending: Ending::Done,
            parts: Vec::new(),
            cursor: 0,
            low: 0,
            left: 0,
            in_flight: 0,
            back: 0,
        }
    }

    /// Places a request of `split` in the slot. Its data is set by the caller.
    pub fn place(&mut self, tag: u64, (thread, seat): (u16, u16), what: RangedAct, split: Split) {
        (self.tag, self.thread, self.seat, self.what, self.split) = (tag, thread, seat, what, split);
        (self.state, self.pauses, self.paused, self.refused) = (State::Waiting, 0, None, None);
        (self.cursor, self.low, self.in_flight, self.back) = (0, 0, 0, 0);
        self.left = split.count() as u32;
        self.parts.clear();
        // A later request of more parts then has room, too.
        self.parts.reserve(KEPT_PARTS);
        self.parts.resize(self.left as usize, UNSENT);
    }

    /// Frees the slot. Long buffers are returned to the allocator.
    pub fn vacate(&mut self) {
        self.state = State::Free;
        self.generation = self.generation.wrapping_add(1);
        self.data.clear();
        self.data.shrink_to(KEPT_BYTES);
        self.results.clear(KEPT_BYTES);
        self.parts.clear();
        self.parts.shrink_to(KEPT_PARTS);
    }

    /// Number of parts.
    pub fn count(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Whether all parts are done.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Whether parts are in flight.
    pub fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether a part that is not done may have been executed, or still be.
    pub fn is_unsure(&self) -> bool {
        self.what.act != Act::Read
            && self.parts.iter().any(|part| part.progress != Progress::Done && part.is_unsure)
    }

    /// The next part to send: those that came back first.
    pub fn next_part(&self) -> Option<u32> {
        if self.paused.is_some() || self.refused.is_some() {
            return None;
        }
        let is_back = |nth: &u32| self.parts[*nth as usize].progress == Progress::Back;
        let back = if self.back > 0 { (self.low..self.cursor).find(is_back) } else { None };
        back.or((self.cursor < self.count()).then_some(self.cursor))
    }

    /// The attempt of a part that is in flight, or comes next.
    pub fn attempt(&self, nth: u32) -> u8 {
        self.parts[nth as usize].attempt
    }

    /// When the first attempt left, if one of them may have been executed: then the next one has to come while the board remembers.
    pub fn unsure_since(&self, nth: u32) -> Option<Nanos> {
        let part = &self.parts[nth as usize];
        part.first.filter(|_| part.is_unsure && self.what.act != Act::Read)
    }

    /// How many parts from `nth` on, at most `max`, one READ may ask for: of one page, and alike.
    pub fn together(&self, nth: u32, max: u32) -> u32 {
        let like = self.parts[nth as usize];
        let mut count = 1;
        while count < max && nth + count < self.count() && !self.split.ends_page(nth + count - 1) {
            let next = self.parts[(nth + count) as usize];
            if (next.progress, next.attempt) != (like.progress, like.attempt) {
                break;
            }
            count += 1;
        }
        count
    }

    /// A packet with parts from `nth` on has left.
    pub fn sent(&mut self, nth: u32, count: u32, now: Nanos) {
        for part in &mut self.parts[nth as usize..(nth + count) as usize] {
            self.back -= u32::from(part.progress == Progress::Back);
            (part.progress, part.sent, part.group) = (Progress::InFlight, now, 1);
            part.first.get_or_insert(now);
        }
        self.parts[nth as usize].group = count as u16;
        self.in_flight += count;
        self.cursor = self.cursor.max(nth + count);
    }

    /// Effect that an answer to an attempt of a part would have.
    pub fn expects(&self, nth: u32, attempt: u8) -> Expected {
        let Some(part) = self.parts.get(nth as usize) else { return Expected::Unasked };
        match part.progress {
            Progress::Done => Expected::Before,
            Progress::InFlight if attempt == part.attempt => Expected::Current,
            _ if attempt < part.attempt => Expected::Earlier,
            _ => Expected::Unasked,
        }
    }

    /// The part is done. Returns whether it was in flight, and since when.
    pub fn complete(&mut self, nth: u32) -> Option<Nanos> {
        let part = &mut self.parts[nth as usize];
        let in_flight = (part.progress == Progress::InFlight).then_some(part.sent);
        self.in_flight -= u32::from(in_flight.is_some());
        self.back -= u32::from(part.progress == Progress::Back);
        part.progress = Progress::Done;
        self.left -= 1;
        self.pauses = 0;
        while self.low < self.cursor && self.parts[self.low as usize].progress == Progress::Done {
            self.low += 1;
        }
        in_flight
    }

    /// The board refused the attempt of a part that is in flight.
    pub fn refuse(&mut self, nth: u32, status: Status) {
        self.refused.get_or_insert(status);
        self.parts[nth as usize].progress = Progress::Back;
        self.in_flight -= 1;
        self.back += 1;
    }

    /// The packet in flight that begins with the part has to be sent again; if its answer was damaged, the part alone, since the
    /// others' answers are packets of their own. Returns how many parts from there on come back, and whether one has no attempt left.
    pub fn put_back(&mut self, nth: u32, why: Why, retries: u8) -> (u32, bool) {
        let Part { attempt, group, .. } = self.parts[nth as usize];
        let group = if why == Why::DamagedAnswer { 1 } else { group };
        let (mut count, mut is_exhausted) = (0, false);
        for part in &mut self.parts[nth as usize..][..group.into()] {
            if part.progress != Progress::InFlight || part.attempt != attempt {
                continue;
            }
            part.progress = Progress::Back;
            part.losses += u8::from(why != Why::Busy);
            part.is_unsure |= why == Why::DamagedAnswer;
            if !part.is_unsure {
                part.first = None;
            }
            is_exhausted |= part.losses > retries || part.attempt == u8::MAX;
            part.attempt = part.attempt.saturating_add(1);
            count += 1;
        }
        self.in_flight -= count;
        self.back += count;
        (count, is_exhausted)
    }

    /// Parts that left at `until` or before, and are still in flight, are lost.
    pub fn expire(&mut self, until: Option<Nanos>, retries: u8) -> Expired {
        let mut expired = Expired::default();
        for nth in self.low..self.cursor {
            let part = &mut self.parts[nth as usize];
            if part.progress != Progress::InFlight {
                continue;
            }
            if until.is_none_or(|until| part.sent > until) {
                expired.oldest = Some(expired.oldest.map_or(part.sent, |oldest| oldest.min(part.sent)));
                continue;
            }
            (part.progress, part.is_unsure) = (Progress::Back, true);
            part.losses += 1;
            expired.is_exhausted |= part.losses > retries || part.attempt == u8::MAX;
            part.attempt = part.attempt.saturating_add(1);
            expired.lost += 1;
            expired.lost_bytes += u64::from(self.split.nth(nth).bytes);
        }
        self.in_flight -= expired.lost;
        self.back += expired.lost;
        expired
    }

    /// Gives up waiting for parts in flight. Returns how many there were.
    pub fn give_up(&mut self) -> u32 {
        std::mem::take(&mut self.in_flight)
    }
}
