//! The sending end of a connection: data in flight, losses, retransmissions.

use super::MSS;
use super::congestion::{Acked, Control};
use crate::message::MessageId;
use crate::transport::wire::Range;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Number of SACKed segments above one that make it count as lost.
const DUPLICATES: usize = 3;
/// Maximum retransmission timeout, as in Linux.
const RTO_MAX: Nanos = Nanos::from_secs(120);
/// Retransmission timeout before the first measurement.
const RTO_FIRST: Nanos = Nanos::from_secs(1);

/// Parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The receiver's window.
    pub window_bytes: u64,
    /// Minimum retransmission timeout.
    pub rto_min: Nanos,
    /// Minimum time before a probe.
    pub probe_min: Nanos,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the stream.
    pub start: u64,
    /// Number of bytes.
    pub bytes: u16,
    /// Its message.
    pub message: MessageId,
    /// Whether the message ends with it.
    pub last: bool,
    /// Whether it was sent before.
    pub again: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    segment: Segment,
    /// Time at which it was last sent.
    at: Nanos,
    /// Whether it counts as in flight.
    out: bool,
    sacked: bool,
    lost: bool,
    again: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.segment.start + u64::from(self.segment.bytes)
    }
}

#[derive(Clone, Copy, Debug)]
struct Written {
    message: MessageId,
    end: u64,
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    pub control: Control,
    una: u64,
    nxt: u64,
    written: VecDeque<Written>,
    written_end: u64,
    sent: VecDeque<Sent>,
    /// Bytes in flight.
    out_bytes: u64,
    lost_segments: usize,
    /// Losses up to this offset are covered by one reduction.
    recovery: Option<u64>,
    /// Whether a timeout found them; the window then grows in the meantime.
    timed_out: bool,
    srtt: Option<(Nanos, Nanos)>,
    rtt_min: Nanos,
    /// Time at which the latest segment known to have arrived was sent.
    newest_arrived: Nanos,
    backoff: u32,
    /// Time from which the timeout counts.
    armed_at: Nanos,
    probed: bool,
    /// Retransmitted segments, and timeouts.
    pub retransmissions: u64,
    pub timeouts: u64,
}

impl Sender {
    pub fn new(config: Config, control: Control) -> Sender {
        Sender {
            config,
            control,
            una: 0,
            nxt: 0,
            written: VecDeque::new(),
            written_end: 0,
            sent: VecDeque::new(),
            out_bytes: 0,
            lost_segments: 0,
            recovery: None,
            timed_out: false,
            srtt: None,
            rtt_min: Nanos::MAX,
            newest_arrived: Nanos::ZERO,
            backoff: 0,
            armed_at: Nanos::ZERO,
            probed: false,
            retransmissions: 0,
            timeouts: 0,
        }
    }

    /// The application writes a message.
    pub fn write(&mut self, message: MessageId, bytes: u32) {
        self.written_end += u64::from(bytes);
        self.written.push_back(Written { message, end: self.written_end });
    }

    /// The stream's first byte that has not been acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Bytes that have been written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.written_end - self.nxt
    }

    /// Bytes that have been written, from the beginning of the stream.
    pub fn written(&self) -> u64 {
        self.written_end
    }

    /// Whether [`poll`](Self::poll) has a segment.
    pub fn can_send(&self) -> bool {
        let room = self.out_bytes + u64::from(MSS) <= self.control.window() || self.out_bytes == 0;
        room && (self.lost_segments > 0 || self.has_new())
    }

    fn has_new(&self) -> bool {
        self.nxt < self.written_end
            && self.nxt - self.una + u64::from(MSS) <= self.config.window_bytes.max(MSS.into())
    }

    /// The next segment. Lost ones come first.
    pub fn poll(&mut self, now: Nanos) -> Option<Segment> {
        if !self.can_send() {
            return None;
        }
        if self.sent.is_empty() {
            self.arm(now);
        }
        if self.lost_segments > 0
            && let Some(at) = self.sent.iter().position(|sent| sent.lost)
        {
            self.lost_segments -= 1;
            return Some(self.again_at(at, now));
        }
        self.new_segment(now)
    }

    fn new_segment(&mut self, now: Nanos) -> Option<Segment> {
        let &Written { message, end } = self.written.front()?;
        let bytes = (end - self.nxt).min(u64::from(MSS));
        let last = self.nxt + bytes == end;
        let segment = Segment { start: self.nxt, bytes: bytes as u16, message, last, again: false };
        if last {
            self.written.pop_front();
        }
        self.nxt += bytes;
        self.out_bytes += bytes;
        self.sent.push_back(Sent { segment, at: now, out: true, sacked: false, lost: false, again: false });
        Some(segment)
    }

    fn again_at(&mut self, at: usize, now: Nanos) -> Segment {
        let sent = &mut self.sent[at];
        if !sent.out {
            self.out_bytes += u64::from(sent.segment.bytes);
        }
        (sent.out, sent.lost, sent.again, sent.at) = (true, false, true, now);
        self.retransmissions += 1;
        Segment { again: true, ..sent.segment }
    }

    /// Handles an acknowledgement.
    pub fn handle_ack(&mut self, next: u64, marked: bool, ranges: &[Range], now: Nanos) {
        let limited = self.control.window() < self.out_bytes + 2 * u64::from(MSS) || self.lost_segments > 0;
        let before = self.una;
        let mut newest: Option<Sent> = None;
        let mut arrived = |sent: &Sent| {
            if newest.is_none_or(|known| known.at <= sent.at) {
                newest = Some(*sent);
            }
        };
        while let Some(first) = self.sent.front().copied().filter(|first| first.end() <= next) {
            self.sent.pop_front();
            self.out_bytes -= if first.out { u64::from(first.segment.bytes) } else { 0 };
            self.lost_segments -= usize::from(first.lost);
            if !first.sacked {
                arrived(&first);
            }
        }
        self.una = self.una.max(next.min(self.nxt));
        let mut sacked_more = false;
        for &(from, to) in ranges {
            let first = self.sent.partition_point(|sent| sent.segment.start < from);
            for sent in self.sent.iter_mut().skip(first).take_while(|sent| sent.end() <= to) {
                if !sent.sacked {
                    arrived(sent);
                    self.out_bytes -= if sent.out { u64::from(sent.segment.bytes) } else { 0 };
                    self.lost_segments -= usize::from(sent.lost);
                    (sent.sacked, sent.out, sent.lost) = (true, false, false);
                    sacked_more = true;
                }
            }
        }
        let mut rtt = None;
        if let Some(sent) = newest {
            self.newest_arrived = self.newest_arrived.max(sent.at);
            // Karn: a segment sent twice gives no measurement.
            if !sent.again {
                rtt = Some(now.saturating_sub(sent.at));
                self.measure(now.saturating_sub(sent.at));
            }
        }
        if self.una > before {
            (self.backoff, self.probed) = (0, false);
            self.arm(now);
        }
        if self.recovery.is_some_and(|end| self.una >= end) {
            (self.recovery, self.timed_out) = (None, false);
        }
        if sacked_more || self.recovery.is_some() {
            self.find_losses(now);
        }
        self.control.on_ack(&Acked {
            bytes: self.una - before,
            marked,
            una: self.una,
            nxt: self.nxt,
            recovering: self.recovery.is_some() && !self.timed_out,
            limited,
            srtt: self.srtt.map_or(Nanos::ZERO, |(srtt, _)| srtt),
            rtt,
            now,
        });
    }

    fn find_losses(&mut self, now: Nanos) {
        // A retransmission is lost if something sent well after it has arrived.
        let reorder = Nanos(self.rtt_min.0.min(RTO_FIRST.0) / 4);
        let mut above = 0;
        let mut found = false;
        for sent in self.sent.iter_mut().rev() {
            if sent.sacked {
                above += 1;
                continue;
            }
            let by_count = !sent.again && above >= DUPLICATES;
            let by_time = sent.again && above > 0 && sent.at + reorder < self.newest_arrived;
            if sent.out && (by_count || by_time) {
                (sent.out, sent.lost) = (false, true);
                self.out_bytes -= u64::from(sent.segment.bytes);
                self.lost_segments += 1;
                found = true;
            }
        }
        if found && self.recovery.is_none() {
            self.recovery = Some(self.nxt);
            self.control.on_loss();
            self.arm(now);
        }
    }

    fn measure(&mut self, rtt: Nanos) {
        self.rtt_min = self.rtt_min.min(rtt);
        self.srtt = Some(match self.srtt {
            None => (rtt, Nanos(rtt.0 / 2)),
            Some((srtt, var)) => {
                let error = rtt.0.abs_diff(srtt.0);
                (Nanos((7 * srtt.0 + rtt.0) / 8), Nanos((3 * var.0 + error) / 4))
            }
        });
    }

    fn arm(&mut self, now: Nanos) {
        self.armed_at = now;
    }

    fn rto(&self) -> Nanos {
        let base = match self.srtt {
            None => RTO_FIRST.max(self.config.rto_min),
            Some((srtt, var)) => srtt + Nanos(4 * var.0).max(self.config.rto_min),
        };
        Nanos(base.0.saturating_mul(1 << self.backoff.min(16))).min(RTO_MAX)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.sent.is_empty() {
            return None;
        }
        let rto = self.armed_at + self.rto();
        let probe = match self.srtt {
            Some((srtt, _)) if !self.probed && self.recovery.is_none() && self.backoff == 0 => {
                self.armed_at + Nanos(2 * srtt.0).max(self.config.probe_min)
            }
            _ => Nanos::MAX,
        };
        Some(rto.min(probe))
    }

    /// Probes for a lost tail, or declares everything in flight lost. Returns a segment to send regardless of
    /// the window.
    pub fn handle_timeout(&mut self, now: Nanos) -> Option<Segment> {
        if self.next_timeout().is_none_or(|due| due > now) {
            return None;
        }
        if self.armed_at + self.rto() > now {
            self.probed = true;
            self.arm(now);
            if self.has_new() {
                return self.new_segment(now);
            }
            let last = self.sent.iter().rposition(|sent| !sent.sacked)?;
            self.lost_segments -= usize::from(self.sent[last].lost);
            return Some(self.again_at(last, now));
        }
        self.timeouts += 1;
        self.backoff += 1;
        self.control.on_timeout();
        (self.recovery, self.timed_out) = (Some(self.nxt), true);
        for sent in self.sent.iter_mut().filter(|sent| !sent.sacked) {
            self.out_bytes -= if sent.out { u64::from(sent.segment.bytes) } else { 0 };
            self.lost_segments += usize::from(!sent.lost);
            (sent.out, sent.lost) = (false, true);
        }
        self.arm(now);
        None
    }
}
