//! Scripted senders of datagrams: when the next message is due, and its size.

use super::experiment::Capture;
use super::frame::DATAGRAM_MAX;
use super::plan::Traffic;
use crate::random::{Distribution, Random};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Messages at times that do not depend on the network.
#[derive(Debug)]
pub(super) struct Timed {
    /// When the next message is created; `Nanos::MAX`: there is none.
    pub next: Nanos,
    stop: Nanos,
    left: u64,
    /// Payload per second, if the time to the next message follows from a message's size, and the remaining part of a nanosecond.
    rate_bps: Option<u64>,
    rest: u64,
    /// Mean time to the next message, and the remaining part of a nanosecond of earlier ones.
    gap_ns: f64,
    fraction_ns: f64,
    is_random: bool,
    sizes: Arc<Distribution>,
    random: Random,
}

impl Timed {
    /// Messages of a traffic's flow. They begin at a random time within the first interval, so that flows are out of step.
    pub fn new(traffic: &Traffic, is_random: bool, mut random: Random) -> Timed {
        let first = (random.unit() * traffic.gap_ns) as u64;
        let next = traffic.start.saturating_add(Nanos(first));
        Timed {
            next: if next < traffic.stop { next } else { Nanos::MAX },
            stop: traffic.stop,
            left: traffic.spec.messages.unwrap_or(u64::MAX),
            rate_bps: traffic.rate_bps,
            rest: 0,
            gap_ns: traffic.gap_ns,
            fraction_ns: 0.0,
            is_random,
            sizes: traffic.sizes.clone(),
            random,
        }
    }

    /// Creates the message that is due: its payload bytes.
    #[inline]
    pub fn create(&mut self) -> u32 {
        let bytes = self.sizes.sample(&mut self.random).clamp(1, u32::MAX.into());
        self.left -= 1;
        let gap = match self.rate_bps {
            _ if self.is_random => {
                let gap_ns = self.random.exponential(self.gap_ns);
                self.whole(gap_ns)
            }
            Some(rate_bps) => {
                let bits = u128::from(bytes) * 8_000_000_000 + u128::from(self.rest);
                self.rest = (bits % u128::from(rate_bps)) as u64;
                (bits / u128::from(rate_bps)) as u64
            }
            None => self.whole(self.gap_ns),
        };
        let next = self.next.saturating_add(Nanos(gap));
        self.next = if self.left > 0 && next < self.stop { next } else { Nanos::MAX };
        bytes as u32
    }

    /// The whole nanoseconds of a gap. The rest belongs to the next gap: without it, short gaps would be too short on average.
    fn whole(&mut self, gap_ns: f64) -> u64 {
        let gap_ns = gap_ns + self.fraction_ns;
        self.fraction_ns = gap_ns.fract();
        gap_ns as u64
    }
}

/// The frames of a capture.
#[derive(Debug)]
pub(super) struct Replay {
    frames: Capture,
    at: usize,
    start: Nanos,
    stop: Nanos,
}

impl Replay {
    /// The frames of a traffic's capture.
    pub fn new(traffic: &Traffic, frames: Capture) -> Replay {
        Replay { frames, at: 0, start: traffic.start, stop: traffic.stop }
    }

    /// When the next frame is due; `Nanos::MAX`: there is none.
    pub fn due(&self) -> Nanos {
        let at = self.frames.get(self.at).map(|(time, _)| self.start.saturating_add(Nanos(*time)));
        at.filter(|at| *at < self.stop).unwrap_or(Nanos::MAX)
    }

    /// Copies the frame that is due.
    pub fn take(&mut self, frame: &mut Vec<u8>) {
        frame.clear();
        if let Some((_, bytes)) = self.frames.get(self.at) {
            frame.extend_from_slice(bytes);
        }
        self.at += 1;
    }
}

/// A client's requests.
#[derive(Debug)]
pub(super) struct Requests {
    slots: Vec<Slot>,
    left: u64,
    stop: Nanos,
    think: Nanos,
    timeout: Nanos,
    sizes: Arc<Distribution>,
    random: Random,
    /// Requests without an answer in time.
    pub lost: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    /// Number of its last request; its place among the slots is the remainder by their number.
    number: u32,
    sent: Nanos,
    /// When the next request begins, or this one counts as lost.
    due: Nanos,
    is_open: bool,
    /// Parts of the answer that have arrived.
    parts: u64,
    /// Parts of all answers.
    seen: Seen,
}

/// Which frames of a slot's requests, or of their answers, have arrived: of each part, by the number of the round.
#[derive(Clone, Debug, Default)]
struct Seen(Vec<Arrived>);

impl Seen {
    /// Notes a part of a message of this round. Returns whether it is new.
    fn add(&mut self, round: u32, part: u8) -> bool {
        let part = usize::from(part.min(PART_MAX));
        if self.0.len() <= part {
            self.0.resize_with(part + 1, Arrived::default);
        }
        self.0[part].add(round)
    }
}

/// The last part of the longest message.
const PART_MAX: u8 = 63;

/// All parts up to the last one.
fn all_parts(last: u8) -> u64 {
    u64::MAX >> (PART_MAX - last.min(PART_MAX))
}

impl Requests {
    /// Requests of a traffic's flow. They begin at a random time within a tenth of a millisecond.
    pub fn new(traffic: &Traffic, mut random: Random) -> Requests {
        let spec = &traffic.spec;
        let slots = (0..spec.under_way as u32).map(|place| Slot {
            number: place,
            sent: Nanos::ZERO,
            due: traffic.start + Nanos(random.below(100_000)),
            is_open: false,
            parts: 0,
            seen: Seen::default(),
        });
        Requests {
            slots: slots.collect(),
            left: spec.messages.unwrap_or(u64::MAX),
            stop: traffic.stop,
            think: Nanos::from_micros(spec.think_us),
            timeout: Nanos::from_micros(spec.timeout_us),
            sizes: traffic.sizes.clone(),
            random,
            lost: 0,
        }
    }

    /// When a request begins or counts as lost; `Nanos::MAX`: never.
    pub fn due(&self) -> Nanos {
        self.slots.iter().map(|slot| slot.due).min().unwrap_or(Nanos::MAX)
    }

    /// Begins the next request that is due: its number and its bytes. Call until `None`.
    pub fn create(&mut self, now: Nanos) -> Option<(u32, u32)> {
        let count = self.slots.len() as u32;
        while let Some(slot) = self.slots.iter_mut().find(|slot| slot.due <= now) {
            if std::mem::take(&mut slot.is_open) {
                self.lost += 1;
            }
            if self.left == 0 || now >= self.stop {
                slot.due = Nanos::MAX;
                continue;
            }
            self.left -= 1;
            slot.number = slot.number.wrapping_add(count);
            (slot.sent, slot.due, slot.is_open, slot.parts) = (now, now + self.timeout, true, 0);
            let bytes = self.sizes.sample(&mut self.random).max(1) as u32;
            return Some((slot.number, bytes));
        }
        None
    }

    /// A part of an answer has arrived.
    pub fn answered(&mut self, number: u32, part: u8, last: u8, now: Nanos) -> Part<Nanos> {
        let count = self.slots.len() as u32;
        let slot = &mut self.slots[(number % count) as usize];
        if !slot.seen.add(number / count, part) {
            return Part::Copy;
        }
        if !slot.is_open || slot.number != number {
            return Part::First(None);
        }
        slot.parts |= 1 << part.min(PART_MAX);
        if slot.parts != all_parts(last) {
            return Part::First(None);
        }
        slot.is_open = false;
        slot.due = if self.left == 0 { Nanos::MAX } else { now + self.think };
        Part::First(Some(now.saturating_sub(slot.sent)))
    }

    /// Requests that wait for an answer.
    pub fn open(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.is_open).count() as u64
    }
}

/// A part of a request or an answer that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<T> {
    /// It is new. With the last missing part: what follows from the whole message.
    First(Option<T>),
    /// It had arrived before.
    Copy,
}

/// The requests of a client's slot.
#[derive(Debug, Default)]
struct SlotRequests {
    /// Number of the last one, and its parts that have arrived.
    number: u32,
    parts: u64,
    /// Parts of all requests.
    seen: Seen,
}

/// A server's view of a client's requests.
#[derive(Debug)]
pub(super) struct Server {
    slots: Vec<SlotRequests>,
    sizes: Arc<Distribution>,
    random: Random,
}

impl Server {
    /// The server of a traffic's flow.
    pub fn new(traffic: &Traffic, random: Random) -> Server {
        // No request has this number at this place.
        let slots = (0..traffic.spec.under_way as u32)
            .map(|number| SlotRequests { number, ..SlotRequests::default() });
        Server { slots: slots.collect(), sizes: traffic.answers.clone(), random }
    }

    /// A part of a request has arrived. The whole request is followed by an answer of these bytes.
    pub fn take(&mut self, number: u32, part: u8, last: u8) -> Part<u32> {
        let count = self.slots.len() as u32;
        let slot = &mut self.slots[(number % count) as usize];
        if !slot.seen.add(number / count, part) {
            return Part::Copy;
        }
        // Older ones were given up.
        if number.wrapping_sub(slot.number) as i32 > 0 {
            (slot.number, slot.parts) = (number, 0);
        }
        let (before, all) = (slot.parts, all_parts(last));
        if slot.number != number || before == all {
            return Part::First(None);
        }
        slot.parts |= 1 << part.min(PART_MAX);
        Part::First((slot.parts == all).then(|| self.sizes.sample(&mut self.random).max(1) as u32))
    }
}

/// Bytes of each datagram of a message.
pub(super) fn parts(bytes: u32) -> impl Iterator<Item = usize> {
    let (full, rest) = (bytes as usize / DATAGRAM_MAX, bytes as usize % DATAGRAM_MAX);
    std::iter::repeat_n(DATAGRAM_MAX, full).chain((rest > 0).then_some(rest))
}

/// Which of a flow's last 128 numbers have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    /// The next number after the highest one.
    next: u32,
    /// A bit for each of the numbers before it; the last one is bit 0.
    bits: u128,
    pub twice: u64,
    pub reordered: u64,
}

impl Arrived {
    /// Notes a frame. Returns whether it is the first with its number.
    #[inline]
    pub fn add(&mut self, number: u32) -> bool {
        if number >= self.next {
            let ahead = number - self.next + 1;
            self.bits = self.bits.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = number.saturating_add(1);
            return true;
        }
        let bit = 1u128.checked_shl(self.next - 1 - number).unwrap_or(0);
        if self.bits & bit != 0 {
            self.twice += 1;
            return false;
        }
        self.bits |= bit;
        self.reordered += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_late_frames_are_told_apart() {
        let mut arrived = Arrived::default();
        let first = [0, 1, 3, 2, 2, 400, 399, 0, 400].map(|number| arrived.add(number));
        assert_eq!(first, [true, true, true, true, false, true, true, true, false]);
        assert_eq!((arrived.twice, arrived.reordered), (2, 3));
    }

    #[test]
    fn messages_are_divided_into_full_frames_and_the_rest() {
        assert_eq!(parts(3_000).collect::<Vec<_>>(), [1_472, 1_472, 56]);
        assert_eq!(parts(1_472).collect::<Vec<_>>(), [1_472]);
        assert_eq!(parts(1).collect::<Vec<_>>(), [1]);
        assert_eq!((all_parts(0), all_parts(2), all_parts(63)), (1, 7, u64::MAX));
    }
}
