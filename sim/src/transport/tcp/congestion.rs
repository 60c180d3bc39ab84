//! Congestion control: the window and its algorithms.

use super::MSS;
use crate::transport::Transport;
use p4rack_wire::Nanos;

/// Initial window in segments.
const INITIAL: f64 = 10.0;
/// Cubic's C and β.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// DCTCP's gain g.
const G: f64 = 1.0 / 16.0;

/// A congestion window with its algorithm, counted in segments.
#[derive(Clone, Debug)]
pub struct Control {
    kind: Algorithm,
    pub cwnd: f64,
    ssthresh: f64,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Off,
    Cubic(Cubic),
    Dctcp(Dctcp),
}

#[derive(Clone, Debug, Default)]
struct Cubic {
    w_max: f64,
    /// Start of this epoch, the window at that time, and when it will reach `w_max` again.
    epoch: Option<(Nanos, f64)>,
    k: f64,
    w_est: f64,
    start: HyStart,
}

/// Leaves slow start before a loss, as Linux does: once the acknowledgements of a round come as a train longer than half
/// the shortest round trip, or their round trips have grown.
#[derive(Clone, Debug, Default)]
struct HyStart {
    /// The round ends when this byte is acknowledged.
    round_to: u64,
    began: Nanos,
    last: Nanos,
    shortest: Option<Nanos>,
    /// Shortest round trip of this round's first samples, and their number.
    here: Option<Nanos>,
    samples: u32,
}

/// HyStart, as in Linux: minimum window in segments, maximum time between two acknowledgements of a train, samples per
/// round, and bounds of the growth of round trips.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_GAP: Nanos = Nanos::from_millis(2);
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_GROWTH: (Nanos, Nanos) = (Nanos::from_millis(4), Nanos::from_millis(16));

#[derive(Clone, Debug)]
struct Dctcp {
    alpha: f64,
    acked: u64,
    marked: u64,
    /// Ends of the observation window and of the last reduction, as stream offsets.
    observe_to: u64,
    reduced_to: u64,
}

impl Control {
    /// The control of `transport`. `window_bytes` is the receiver's window, the only limit without congestion
    /// control.
    pub fn new(transport: Transport, window_bytes: u32) -> Control {
        let kind = match transport {
            Transport::Cubic => Algorithm::Cubic(Cubic::default()),
            Transport::Dctcp => {
                Algorithm::Dctcp(Dctcp { alpha: 1.0, acked: 0, marked: 0, observe_to: 0, reduced_to: 0 })
            }
            Transport::Raw | Transport::Tcp | Transport::Rds => Algorithm::Off,
        };
        let cwnd =
            if matches!(kind, Algorithm::Off) { f64::from(window_bytes) / f64::from(MSS) } else { INITIAL };
        Control { kind, cwnd, ssthresh: f64::INFINITY }
    }

    /// Whether frames may be marked.
    pub fn markable(&self) -> bool {
        matches!(self.kind, Algorithm::Dctcp(_))
    }

    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        (self.cwnd.max(1.0) * f64::from(MSS)) as u64
    }

    /// Handles an acknowledgement of new bytes. `limited` says that the window held the sender back; `una`
    /// and `nxt` are the first unacknowledged and the first unsent byte of the stream.
    pub fn on_ack(&mut self, ack: &Acked) {
        let segments = ack.bytes as f64 / f64::from(MSS);
        if let Algorithm::Dctcp(dctcp) = &mut self.kind {
            dctcp.acked += ack.bytes;
            dctcp.marked += if ack.marked { ack.bytes } else { 0 };
            if ack.una >= dctcp.observe_to {
                let share = dctcp.marked as f64 / dctcp.acked.max(1) as f64;
                dctcp.alpha = (1.0 - G) * dctcp.alpha + G * share;
                (dctcp.acked, dctcp.marked, dctcp.observe_to) = (0, 0, ack.nxt);
            }
            if ack.marked && ack.una > dctcp.reduced_to && !ack.recovering {
                dctcp.reduced_to = ack.nxt;
                self.cwnd = (self.cwnd * (1.0 - dctcp.alpha / 2.0)).max(2.0);
                self.ssthresh = self.cwnd;
                return;
            }
        }
        if matches!(self.kind, Algorithm::Off) || ack.recovering || !ack.limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd = (self.cwnd + segments).min(self.ssthresh);
            if let Algorithm::Cubic(cubic) = &mut self.kind
                && cubic.start.is_over(ack)
                && self.cwnd >= HYSTART_WINDOW
            {
                self.ssthresh = self.cwnd;
            }
            return;
        }
        match &mut self.kind {
            Algorithm::Cubic(cubic) => self.cwnd = cubic.grow(self.cwnd, segments, ack),
            _ => self.cwnd += segments / self.cwnd,
        }
    }

    /// Handles losses, once per window.
    pub fn on_loss(&mut self) {
        match &mut self.kind {
            Algorithm::Off => return,
            Algorithm::Cubic(cubic) => {
                // Fast convergence: a flow that loses share leaves room for others.
                cubic.w_max =
                    if self.cwnd < cubic.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
                cubic.epoch = None;
                self.ssthresh = (self.cwnd * BETA).max(2.0);
            }
            Algorithm::Dctcp(_) => self.ssthresh = (self.cwnd / 2.0).max(2.0),
        }
        self.cwnd = self.ssthresh;
    }

    /// Handles a retransmission timeout.
    pub fn on_timeout(&mut self) {
        self.on_loss();
        if !matches!(self.kind, Algorithm::Off) {
            self.cwnd = 1.0;
        }
    }
}

/// The contents of an acknowledgement that matter for the window.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    pub bytes: u64,
    pub marked: bool,
    pub una: u64,
    pub nxt: u64,
    pub recovering: bool,
    pub limited: bool,
    pub srtt: Nanos,
    /// Its round trip, if it was measured.
    pub rtt: Option<Nanos>,
    pub now: Nanos,
}

impl HyStart {
    /// Whether this acknowledgement ends slow start.
    fn is_over(&mut self, ack: &Acked) -> bool {
        if ack.una >= self.round_to {
            let round = HyStart { round_to: ack.nxt, began: ack.now, last: ack.now, ..HyStart::default() };
            *self = HyStart { shortest: self.shortest, ..round };
        }
        if let Some(rtt) = ack.rtt {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
            if self.samples < HYSTART_SAMPLES {
                self.here = Some(self.here.map_or(rtt, |here| here.min(rtt)));
                self.samples += 1;
            }
        }
        let Some(shortest) = self.shortest else { return false };
        if ack.now.saturating_sub(self.last) <= HYSTART_GAP {
            self.last = ack.now;
            if ack.now.saturating_sub(self.began).0 > shortest.0 / 2 {
                return true;
            }
        }
        let growth = Nanos(shortest.0 / 8).clamp(HYSTART_GROWTH.0, HYSTART_GROWTH.1);
        self.samples >= HYSTART_SAMPLES && self.here.is_some_and(|here| here > shortest + growth)
    }
}

impl Cubic {
    fn grow(&mut self, cwnd: f64, segments: f64, ack: &Acked) -> f64 {
        let (began, _) = *self.epoch.get_or_insert_with(|| {
            self.w_max = self.w_max.max(cwnd);
            self.k = ((self.w_max - cwnd) / C).cbrt();
            self.w_est = cwnd;
            (ack.now, cwnd)
        });
        let t = (ack.now.saturating_sub(began) + ack.srtt).as_secs_f64() - self.k;
        let target = (C * t * t * t + self.w_max).clamp(cwnd, 1.5 * cwnd);
        // RFC 9438, 4.3: as much as Reno would get, with Cubic's own reduction.
        self.w_est += 3.0 * (1.0 - BETA) / (1.0 + BETA) * segments / cwnd;
        (cwnd + (target - cwnd) / cwnd * segments).max(self.w_est)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now_us: u64, bytes: u64, una: u64, marked: bool) -> Acked {
        Acked {
            bytes,
            marked,
            una,
            nxt: una + 100_000,
            recovering: false,
            limited: true,
            srtt: Nanos::from_micros(100),
            rtt: None,
            now: Nanos::from_micros(now_us),
        }
    }

    #[test]
    fn slow_start_doubles_and_a_loss_takes_cubic_to_seven_tenths() {
        let mut control = Control::new(Transport::Cubic, 1 << 20);
        for n in 0..10 {
            control.on_ack(&ack(n, u64::from(MSS), 0, false));
        }
        assert_eq!(control.cwnd, 20.0);
        control.cwnd = 100.0;
        control.on_loss();
        assert_eq!(control.cwnd, 70.0);
    }

    #[test]
    fn cubic_leaves_slow_start_when_acknowledgements_come_as_a_long_train() {
        let mut control = Control::new(Transport::Cubic, 1 << 30);
        control.on_ack(&Acked { rtt: Some(Nanos::from_micros(100)), ..ack(0, u64::from(MSS), 0, false) });
        for n in 1..200 {
            control.on_ack(&ack(n, u64::from(MSS), n, false));
        }
        // 50 µs of acknowledgements, one each microsecond, are half a round trip.
        assert!((60.0..64.0).contains(&control.cwnd), "{}", control.cwnd);
    }

    /// RFC 9438: the old window is reached again after cbrt(w_max (1 − β) / C) seconds.
    #[test]
    fn cubic_returns_to_its_old_window_after_k() {
        let mut control = Control::new(Transport::Cubic, 1 << 30);
        control.cwnd = 1_000.0;
        control.on_loss();
        let k = (1_000.0 * 0.3 / C).cbrt();
        let step_us = 100_000;
        let mut reached = None;
        for n in 0..2_000 {
            // A window's worth of acknowledgements each 100 ms, too rare for the Reno-friendly region.
            let bytes = (control.cwnd * f64::from(MSS)) as u64;
            let mut one = ack(n * step_us, bytes, 0, false);
            one.srtt = Nanos::from_micros(step_us);
            control.on_ack(&one);
            if control.cwnd >= 990.0 && reached.is_none() {
                reached = Some(n as f64 * step_us as f64 / 1e6);
            }
        }
        let reached = reached.unwrap();
        // 1 % below the plateau is reached about 2.9 s before it: cbrt(10 / 0.4).
        assert!((reached - (k - 2.92)).abs() < 0.5, "{reached} against {k}");
    }

    #[test]
    fn dctcp_reduces_by_the_share_that_is_marked() {
        let mut control = Control::new(Transport::Dctcp, 1 << 20);
        (control.cwnd, control.ssthresh) = (100.0, 1.0);
        let mut una = 0;
        for _ in 0..200 {
            una += 100_000;
            control.on_ack(&ack(0, 100_000, una, false));
        }
        let before = control.cwnd;
        una += 100_001;
        control.on_ack(&ack(0, 100_001, una, true));
        let Algorithm::Dctcp(dctcp) = &control.kind else { panic!() };
        assert!(dctcp.alpha < 0.07, "{}", dctcp.alpha);
        assert!(control.cwnd > before * 0.96 && control.cwnd < before, "{} {before}", control.cwnd);
        assert!(control.markable());
    }
}
