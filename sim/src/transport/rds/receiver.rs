//! The receiving end of a host.

use super::{Config, Part, Reply};
use crate::message::{FlowId, MTU};
use crate::transport::wire::{RANGES, Range};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Frames per grant.
const GRANT_FRAMES: u64 = 4;

/// A message of which parts are missing.
#[derive(Clone, Debug)]
struct Incoming {
    flow: FlowId,
    key: u32,
    size: u64,
    granted: u64,
    /// Ranges received, sorted and disjoint.
    have: Vec<Range>,
    have_bytes: u64,
    /// Time at which something new was last received.
    heard_at: Nanos,
}

impl Incoming {
    /// Records a part. Returns how much of it is new.
    fn take(&mut self, from: u64, to: u64) -> u64 {
        let first = self.have.partition_point(|range| range.1 < from);
        let last = self.have.partition_point(|range| range.0 <= to);
        let old: u64 = self.have[first..last].iter().map(|range| range.1 - range.0).sum();
        let start = self.have[first..last].first().map_or(from, |range| range.0.min(from));
        let end = self.have[first..last].last().map_or(to, |range| range.1.max(to));
        self.have.splice(first..last, [(start, end)]);
        let new = end - start - old;
        self.have_bytes += new;
        new
    }

    /// The first missing ranges up to `end`.
    fn missing(&self, end: u64) -> ([Range; RANGES], usize) {
        let (mut ranges, mut count, mut at) = ([(0, 0); RANGES], 0, 0);
        for &(from, to) in self.have.iter().chain([&(end, end)]) {
            if at < from.min(end) && count < RANGES {
                ranges[count] = (at, from.min(end));
                count += 1;
            }
            at = at.max(to);
        }
        (ranges, count)
    }
}

/// Complete messages of a flow, by key: all below a number, and some above.
#[derive(Clone, Debug, Default)]
struct Finished {
    below: u32,
    above: BTreeSet<u32>,
}

impl Finished {
    fn has(&self, key: u32) -> bool {
        key < self.below || self.above.contains(&key)
    }

    fn add(&mut self, key: u32) {
        self.above.insert(key);
        while self.above.remove(&self.below) {
            self.below += 1;
        }
    }
}

/// A host's receiving end, which assigns the link's time.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    open: Vec<Incoming>,
    finished: BTreeMap<FlowId, Finished>,
    /// The position of the message with the next turn.
    turn: usize,
    free_at: Nanos,
    replies: VecDeque<Reply>,
}

impl Receiver {
    pub fn new(config: Config) -> Receiver {
        Receiver {
            config,
            open: Vec::new(),
            finished: BTreeMap::new(),
            turn: 0,
            free_at: Nanos::ZERO,
            replies: VecDeque::new(),
        }
    }

    /// Handles a part of a message. Returns the number of new bytes, and whether the message is complete.
    pub fn handle(&mut self, flow: FlowId, part: &Part, now: Nanos) -> (u64, bool) {
        let key = part.key;
        if self.finished.get(&flow).is_some_and(|finished| finished.has(key)) {
            self.replies.push_back(Reply::Done { flow, key });
            return (0, false);
        }
        let found = self.open.iter().position(|one| one.flow == flow && one.key == key);
        let at = found.unwrap_or_else(|| {
            let size = u64::from(part.size);
            let granted = size.min(self.config.blind_bytes);
            let have = Vec::new();
            self.open.push(Incoming { flow, key, size, granted, have, have_bytes: 0, heard_at: now });
            self.open.len() - 1
        });
        let one = &mut self.open[at];
        let highest = one.have.last().map_or(0, |range| range.1);
        let (from, to) = (part.offset, (part.offset + u64::from(part.bytes)).min(one.size));
        let new = if from < to { one.take(from, to) } else { 0 };
        // Copies are no progress: they must not delay requests for missing data.
        if new > 0 {
            one.heard_at = now;
        }
        if one.have_bytes == one.size {
            self.finished.entry(flow).or_default().add(key);
            self.replies.push_back(Reply::Done { flow, key });
            self.open.remove(at);
            return (new, true);
        }
        if new > 0 && one.have_bytes >= one.granted && one.granted <= self.config.blind_bytes {
            // It waits for its turn. The sender must not take that for loss.
            self.replies.push_back(Reply::Resend { flow, key, ranges: [(0, 0); RANGES], count: 0 });
        } else if from > highest && !part.again {
            let ranges = [(highest, from), (0, 0), (0, 0)];
            self.replies.push_back(Reply::Resend { flow, key, ranges, count: 1 });
        }
        (new, false)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Option<Nanos> {
        if !self.replies.is_empty() {
            return Some(Nanos::ZERO);
        }
        let most = if self.config.active == 0 { usize::MAX } else { self.config.active };
        let mut active = self.open.iter().filter(|one| one.granted < one.size).take(most);
        let grant = active.any(|one| self.may_grant(one)).then_some(self.free_at);
        let silent = self.open.iter().map(|one| one.heard_at + self.config.timeout);
        silent.chain(grant).min()
    }

    fn may_grant(&self, one: &Incoming) -> bool {
        one.granted < one.size && one.granted - one.have_bytes.min(one.granted) < self.config.blind_bytes
    }

    /// Assigns time, and requests missing data.
    pub fn handle_timeout(&mut self, now: Nanos) {
        for at in 0..self.open.len() {
            let one = &mut self.open[at];
            if one.heard_at + self.config.timeout <= now {
                one.heard_at = now;
                let (ranges, count) = one.missing(one.granted);
                self.replies.push_back(Reply::Resend { flow: one.flow, key: one.key, ranges, count });
            }
        }
        if self.free_at > now {
            return;
        }
        let most = if self.config.active == 0 { usize::MAX } else { self.config.active };
        let waiting = |at: &usize| self.open[*at].granted < self.open[*at].size;
        let active: Vec<usize> = (0..self.open.len()).filter(waiting).take(most).collect();
        // The one after the last, or the first again.
        let next = active.partition_point(|at| *at < self.turn);
        let turns = active[next..].iter().chain(&active[..next]).copied();
        let Some(at) = turns.into_iter().find(|at| self.may_grant(&self.open[*at])) else { return };
        self.turn = at + 1;
        let one = &mut self.open[at];
        let before = one.granted;
        // Until now it was silent because it had no grant.
        if one.have_bytes >= before {
            one.heard_at = now;
        }
        one.granted = (before + GRANT_FRAMES * u64::from(MTU)).min(one.size);
        let frames = (one.granted - before).div_ceil(u64::from(MTU));
        self.free_at = now + Nanos(self.config.frame_time.0 * frames);
        self.replies.push_back(Reply::Grant { flow: one.flow, key: one.key, to: one.granted });
    }

    /// The next message to a sender. Call until `None`.
    pub fn poll(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }
}
