//! A receiver-driven scheme, RDS of PL2's §6.1, similar to Homa: the first 61 KiB of a message are sent
//! immediately, the rest as the receiver permits. The receiver assigns its link's time, four frames at a
//! time, to the waiting messages in turn. Gaps are reported when seen; a millisecond of silence counts as
//! loss at both ends. There are no priorities, as in the paper.

use crate::message::{FlowId, MTU, MessageId};
use crate::transport::wire::{RANGES, Range};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Frames per grant.
const GRANT_FRAMES: u64 = 4;

/// Timeouts that a sender waits for a receiver that knows the message. The receiver reports on it once per timeout, even
/// while it waits for its turn.
const PATIENCE: u64 = 4;

/// Parameters of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes sent without a grant; also the maximum granted and not received.
    pub blind_bytes: u64,
    /// Number of messages, oldest first, to which grants go in turn; 0 is all.
    pub active: usize,
    /// Silence that counts as loss.
    pub timeout: Nanos,
    /// Wire time of a full frame on the receiver's link.
    pub frame_time: Nanos,
}

/// A part of a message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The message, for the simulator.
    pub message: MessageId,
    /// Number of the message within the flow.
    pub key: u32,
    /// Size of the message.
    pub size: u32,
    /// Offset in the message.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u16,
    /// Whether it was sent before.
    pub again: bool,
}

#[derive(Clone, Debug)]
struct Outgoing {
    message: MessageId,
    key: u32,
    size: u32,
    next: u64,
    granted: u64,
    again: VecDeque<Range>,
    /// Time of the last frame sent or received for it.
    active_at: Nanos,
    /// Whether the receiver has reported on it, and so detects its losses.
    known: bool,
}

impl Outgoing {
    fn wants(&self) -> bool {
        !self.again.is_empty() || self.next < self.granted
    }

    fn is_sent(&self) -> bool {
        self.next == u64::from(self.size)
    }
}

/// A flow's sending end. Messages start one after the other.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    open: VecDeque<Outgoing>,
    next_key: u32,
    /// Frames sent again.
    pub retransmissions: u64,
}

impl Sender {
    pub fn new(config: Config) -> Sender {
        Sender { config, open: VecDeque::new(), next_key: 0, retransmissions: 0 }
    }

    /// The application writes a message.
    pub fn write(&mut self, message: MessageId, size: u32) {
        let granted = u64::from(size).min(self.config.blind_bytes);
        let (key, again) = (self.next_key, VecDeque::new());
        let active_at = Nanos::ZERO;
        self.open.push_back(Outgoing {
            message,
            key,
            size,
            next: 0,
            granted,
            again,
            active_at,
            known: false,
        });
        self.next_key = key.wrapping_add(1);
    }

    fn first(&self) -> Option<usize> {
        for (at, one) in self.open.iter().enumerate() {
            if one.wants() {
                return Some(at);
            }
            if !one.is_sent() {
                // Later messages wait for it.
                return self.open.iter().skip(at).position(|one| !one.again.is_empty()).map(|more| at + more);
            }
        }
        None
    }

    /// Whether [`poll`](Self::poll) has something.
    pub fn can_send(&self) -> bool {
        self.first().is_some()
    }

    /// The next part to send.
    pub fn poll(&mut self, now: Nanos) -> Option<Part> {
        let at = self.first()?;
        let one = &mut self.open[at];
        one.active_at = now;
        let mut part =
            Part { message: one.message, key: one.key, size: one.size, offset: 0, bytes: 0, again: false };
        if let Some((from, to)) = one.again.pop_front() {
            let bytes = (to - from).min(u64::from(MTU));
            if from + bytes < to {
                one.again.push_front((from + bytes, to));
            }
            (part.offset, part.bytes, part.again) = (from, bytes as u16, true);
            self.retransmissions += 1;
        } else {
            let bytes = (u64::from(one.size) - one.next).min(u64::from(MTU));
            (part.offset, part.bytes) = (one.next, bytes as u16);
            one.next += bytes;
        }
        Some(part)
    }

    fn find(&mut self, key: u32) -> Option<&mut Outgoing> {
        self.open.iter_mut().find(|one| one.key == key)
    }

    /// The receiver permits more bytes.
    pub fn handle_grant(&mut self, key: u32, to: u64, now: Nanos) {
        if let Some(one) = self.find(key) {
            one.granted = one.granted.max(to.min(one.size.into()));
            (one.active_at, one.known) = (now, true);
        }
    }

    /// The receiver reports missing ranges, or none: the message has to wait for its turn.
    pub fn handle_resend(&mut self, key: u32, ranges: &[Range], now: Nanos) {
        if let Some(one) = self.find(key) {
            (one.active_at, one.known) = (now, true);
            for &(from, to) in ranges {
                // What was not sent yet is not lost, but its grant was.
                one.granted = one.granted.max(to.min(one.size.into()));
                let to = to.min(one.next);
                if from < to && !one.again.contains(&(from, to)) {
                    one.again.push_back((from, to));
                }
            }
        }
    }

    /// The receiver has the whole message.
    pub fn handle_done(&mut self, key: u32) {
        self.open.retain(|one| one.key != key);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Option<Nanos> {
        let waits = self.open.iter().filter(|one| !one.wants() && one.next > 0);
        waits.map(|one| self.due(one)).min()
    }

    /// When a message has waited too long for its receiver. If the receiver knows the message, this happens only if several
    /// of its reports in a row are lost.
    fn due(&self, one: &Outgoing) -> Nanos {
        let times = if one.known { PATIENCE } else { 1 };
        one.active_at + Nanos(self.config.timeout.0 * times)
    }

    /// Sends the first bytes again, from which the receiver learns of the message and finds what is missing.
    pub fn handle_timeout(&mut self, now: Nanos) {
        for at in 0..self.open.len() {
            let due = self.due(&self.open[at]);
            let one = &mut self.open[at];
            if !one.wants() && one.next > 0 && due <= now {
                one.active_at = now;
                let blind = if one.known { MTU.into() } else { self.config.blind_bytes };
                one.again.push_back((0, one.next.min(blind)));
            }
        }
    }
}

/// A message of the receiver to a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Permits bytes up to `to`.
    Grant { flow: FlowId, key: u32, to: u64 },
    /// Reports missing ranges.
    Resend { flow: FlowId, key: u32, ranges: [Range; RANGES], count: usize },
    /// Reports a complete message.
    Done { flow: FlowId, key: u32 },
}

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
    /// Whose turn it is.
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
        // Copies are no progress: they must not delay asking for what is missing.
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

    /// Assigns time, and asks for what is missing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const CONFIG: Config =
        Config { blind_bytes: 61 * 1_024, active: 0, timeout: Nanos::from_millis(1), frame_time: Nanos(124) };
    const DELAY: Nanos = Nanos(1_000);

    #[derive(Clone, Copy)]
    enum Flying {
        Data(FlowId, Part),
        Reply(Reply),
    }

    /// Senders over one link of 100 Gb/s. When all has arrived, and how much.
    fn run(
        messages: &[(FlowId, u32)],
        loss: f64,
        duplication: f64,
        reordering: f64,
        seed: u64,
    ) -> (Nanos, u64) {
        let (end, new, _) = run_with(CONFIG, messages, [loss, duplication, reordering], seed);
        (end, new)
    }

    /// The same, and how many frames were sent again.
    fn run_with(
        config: Config,
        messages: &[(FlowId, u32)],
        [loss, duplication, reordering]: [f64; 3],
        seed: u64,
    ) -> (Nanos, u64, u64) {
        let flows = messages.iter().map(|(flow, _)| *flow + 1).max().unwrap();
        let mut senders: Vec<Sender> = (0..flows).map(|_| Sender::new(config)).collect();
        let mut receiver = Receiver::new(config);
        let mut random = Random::new(seed);
        messages.iter().for_each(|(flow, size)| senders[*flow as usize].write(0, *size));
        let (mut flying, mut count) = (BTreeMap::new(), 0);
        let (mut now, mut free_at, mut new, mut done) = (Nanos::ZERO, Nanos::ZERO, 0, 0);
        while done < messages.len() {
            let mut put = |what, at: Nanos| {
                let copies = if random.chance(loss) { 0 } else { 1 + u64::from(random.chance(duplication)) };
                for _ in 0..copies {
                    count += 1;
                    let late = if random.chance(reordering) { random.below(5_000) } else { 0 };
                    flying.insert((at + DELAY + Nanos(late), count), what);
                }
            };
            for (flow, sender) in senders.iter_mut().enumerate() {
                while let Some(part) = sender.poll(now) {
                    free_at = free_at.max(now) + CONFIG.frame_time;
                    put(Flying::Data(flow as FlowId, part), free_at);
                }
            }
            while let Some(reply) = receiver.poll() {
                put(Flying::Reply(reply), now);
            }
            let timers = senders.iter().filter_map(Sender::next_timeout).chain(receiver.next_timeout());
            let first = flying.first_key_value().map(|(key, _)| key.0);
            now = now.max(timers.chain(first).min().expect("it goes on"));
            assert!(now < Nanos::from_secs(10), "it comes to an end");
            senders.iter_mut().for_each(|sender| sender.handle_timeout(now));
            receiver.handle_timeout(now);
            while flying.first_key_value().is_some_and(|(key, _)| key.0 <= now) {
                match flying.pop_first().unwrap().1 {
                    Flying::Data(flow, part) => {
                        let (bytes, whole) = receiver.handle(flow, &part, now);
                        new += bytes;
                        done += usize::from(whole);
                    }
                    Flying::Reply(Reply::Grant { flow, key, to }) => {
                        senders[flow as usize].handle_grant(key, to, now);
                    }
                    Flying::Reply(Reply::Resend { flow, key, ranges, count }) => {
                        senders[flow as usize].handle_resend(key, &ranges[..count], now);
                    }
                    Flying::Reply(Reply::Done { flow, key }) => senders[flow as usize].handle_done(key),
                }
            }
        }
        (now, new, senders.iter().map(|sender| sender.retransmissions).sum())
    }

    #[test]
    fn every_byte_arrives_once_whatever_the_wire_does() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let messages: Vec<(FlowId, u32)> =
                (0..12).map(|_| (random.below(4) as FlowId, 1 + random.below(300_000) as u32)).collect();
            let total: u64 = messages.iter().map(|(_, size)| u64::from(*size)).sum();
            let mut share = || random.unit() * 0.2;
            let (_, new) = run(&messages, share(), share(), share(), seed);
            assert_eq!(new, total, "{seed}");
        }
    }

    /// 30 messages of 3 MB take 7 ms: most wait for longer than a timeout.
    #[test]
    fn what_waits_for_its_turn_is_not_sent_again() {
        for active in [0, 1, 2] {
            let messages: Vec<(FlowId, u32)> = (0..30).map(|flow| (flow, 3_000_000)).collect();
            let (_, new, again) = run_with(Config { active, ..CONFIG }, &messages, [0.0; 3], 1);
            assert_eq!((new, again), (90_000_000, 0), "{active} active");
        }
    }

    #[test]
    fn alone_it_reaches_the_line_rate() {
        let (end, new) = run(&[(0, 30_000_000)], 0.0, 0.0, 0.0, 1);
        let share = new as f64 / f64::from(MTU) * CONFIG.frame_time.0 as f64 / end.0 as f64;
        assert!(share > 0.99 && share <= 1.0, "{share}");
    }
}
