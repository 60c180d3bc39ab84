//! How much a compute node sends (§4.4): a congestion window per board and one incast window for all.
//!
//! ```text
//!                ┌─ Congestion of the board: packets under way < cwnd, or a pause if cwnd < 1
//!   a packet ────┤
//!    leaves if   └─ Incast of the node: bytes of expected responses fit into iwnd, or there are none
//! ```
//!
//! `cwnd` follows the measured delay: additive increase up to the target, multiplicative decrease above it, at most once per round
//! trip. The rules are Swift's (SIGCOMM 2020, §3.1 and §3.5), which the paper names as its model.

use super::config::Config;
use crate::common::Delay;
use p4rack_wire::Nanos;

/// Largest share that one decrease takes away.
const DECREASE_MAX: f64 = 0.5;
/// Strength of a decrease.
const BETA: f64 = 0.8;
/// Packets that a round trip without congestion adds.
const INCREASE: f64 = 1.0;
/// Smallest window: a packet in a hundred round trips.
const LEAST: f64 = 0.01;

/// The congestion window of one board, and its delay.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    /// In packets; below 1 it is a pause.
    cwnd: f64,
    max: f64,
    /// Packets under way.
    outstanding: u32,
    /// Time of the next packet while the window is below one.
    resume: Nanos,
    /// Time of the last decrease.
    decreased: Option<Nanos>,
    delay: Delay,
    /// Delay without queues before the first sample.
    base: Nanos,
    /// Queueing delay above the base at which the window stops growing.
    queueing: Nanos,
}

impl Congestion {
    pub fn new(config: &Config) -> Congestion {
        Congestion {
            cwnd: f64::from(config.cwnd_start.clamp(1, config.cwnd_max.max(1))),
            max: f64::from(config.cwnd_max.max(1)),
            outstanding: 0,
            resume: Nanos::ZERO,
            decreased: None,
            delay: Delay::new(config.base_window),
            base: config.base,
            queueing: config.queueing,
        }
    }

    /// The measured delay.
    pub fn delay(&self) -> &Delay {
        &self.delay
    }

    /// The window, in packets.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Packets under way.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Delay without queues.
    pub fn base(&self) -> Nanos {
        self.delay.min().unwrap_or(self.base)
    }

    /// Mean round trip.
    fn round_trip(&self) -> Nanos {
        if self.delay.samples() == 0 { self.base } else { self.delay.mean() }
    }

    /// Packets that may leave now.
    pub fn room(&self, now: Nanos) -> u32 {
        if self.cwnd < 1.0 {
            return u32::from(self.outstanding == 0 && now >= self.resume);
        }
        (self.cwnd as u32).saturating_sub(self.outstanding)
    }

    /// When the window has room again if no response comes; `None` if only a response makes room.
    pub fn room_at(&self) -> Option<Nanos> {
        if self.cwnd < 1.0 {
            return (self.outstanding == 0).then_some(self.resume);
        }
        (self.outstanding < self.cwnd as u32).then_some(Nanos::ZERO)
    }

    /// Packets have left.
    pub fn sent(&mut self, packets: u32, now: Nanos) {
        self.outstanding += packets;
        if self.cwnd < 1.0 {
            let pause = self.round_trip().0 as f64 / self.cwnd;
            self.resume = now.saturating_add(Nanos(pause as u64));
        }
    }

    /// Packets are no longer under way: answered, or given up.
    pub fn left(&mut self, packets: u32) {
        debug_assert!(self.outstanding >= packets, "they were sent");
        self.outstanding = self.outstanding.saturating_sub(packets);
    }

    /// A response has come `delay` after its request.
    pub fn answered(&mut self, delay: Nanos, now: Nanos) {
        self.delay.record(delay, now);
        let target = self.base().saturating_add(self.queueing);
        if delay <= target {
            self.cwnd = (self.cwnd + INCREASE / self.cwnd.max(1.0)).min(self.max);
        } else {
            let above = (delay - target).0 as f64 / delay.0 as f64;
            self.decrease((BETA * above).min(DECREASE_MAX), now);
        }
    }

    /// A packet was lost: no response in time.
    pub fn lost(&mut self, now: Nanos) {
        self.decrease(DECREASE_MAX, now);
    }

    fn decrease(&mut self, share: f64, now: Nanos) {
        let round_trip = self.round_trip();
        if self.decreased.is_some_and(|at| now < at.saturating_add(round_trip)) {
            return;
        }
        self.decreased = Some(now);
        self.cwnd = (self.cwnd * (1.0 - share)).max(LEAST);
    }
}

/// The incast window: bytes of responses that a compute node expects, from all boards.
#[derive(Clone, Debug)]
pub(super) struct Incast {
    rate_bps: u64,
    expected_bytes: u64,
}

impl Incast {
    /// A window for a link of `rate_bps`; 0: no limit.
    pub fn new(rate_bps: u64) -> Incast {
        Incast { rate_bps, expected_bytes: 0 }
    }

    /// Bytes of expected responses.
    pub fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    /// Bytes of responses that may be requested now: as many as the link carries in two round trips of `base`, less
    /// those expected.
    pub fn room_bytes(&self, base: Nanos) -> u64 {
        if self.rate_bps == 0 {
            return u64::MAX;
        }
        let window = u128::from(self.rate_bps) * u128::from(base.0) * 2 / 8_000_000_000;
        u64::try_from(window).unwrap_or(u64::MAX).saturating_sub(self.expected_bytes)
    }

    /// Whether a response of this length may be asked for. One that exceeds the window is expected alone.
    pub fn fits(&self, bytes: u64, base: Nanos) -> bool {
        self.expected_bytes == 0 || bytes <= self.room_bytes(base)
    }

    /// A response is expected.
    pub fn expect(&mut self, bytes: u64) {
        self.expected_bytes += bytes;
    }

    /// It has come, or is given up.
    pub fn settle(&mut self, bytes: u64) {
        debug_assert!(self.expected_bytes >= bytes, "it was expected");
        self.expected_bytes = self.expected_bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Congestion {
        let us = Nanos::from_micros;
        Congestion::new(&Config { base: us(2), queueing: us(5), cwnd_max: 64, ..Config::default() })
    }

    /// A round trip with every packet answered after `delay`.
    fn round(window: &mut Congestion, now: &mut Nanos, delay: Nanos) {
        let packets = window.room(*now);
        window.sent(packets, *now);
        *now += delay;
        for _ in 0..packets {
            window.left(1);
            window.answered(delay, *now);
        }
    }

    #[test]
    fn it_begins_as_it_is_told_within_its_bounds() {
        let start =
            |cwnd_start| Congestion::new(&Config { cwnd_start, cwnd_max: 64, ..Config::default() }).cwnd();
        assert_eq!([0, 1, 8, 100].map(start), [1.0, 1.0, 8.0, 64.0]);
    }

    #[test]
    fn it_grows_by_a_packet_a_round_trip_and_is_cut_once_a_round_trip() {
        let (mut window, mut now) = (window(), Nanos::ZERO);
        for _ in 0..10 {
            round(&mut window, &mut now, Nanos::from_micros(2));
        }
        let grown = window.cwnd();
        assert!((8.0..=11.0).contains(&grown), "{grown}");
        // 20 µs against a target of 7: 0.8 · 13/20 is beyond the largest decrease.
        round(&mut window, &mut now, Nanos::from_micros(20));
        assert_eq!(window.cwnd(), grown * 0.5);
        // 8 µs: an eighth above the target takes a tenth. Its first answers are within a round trip of the last decrease.
        now += Nanos::from_micros(100);
        let before = window.cwnd();
        round(&mut window, &mut now, Nanos::from_micros(8));
        assert!((window.cwnd() - before * 0.9).abs() < 1e-9, "{} after {before}", window.cwnd());
    }

    #[test]
    fn below_one_packet_it_is_a_pause() {
        let (mut window, mut now) = (window(), Nanos::ZERO);
        round(&mut window, &mut now, Nanos::from_micros(2));
        for _ in 0..3 {
            now += Nanos::from_micros(10);
            window.lost(now);
        }
        let cwnd = window.cwnd();
        assert_eq!(cwnd, 0.25);
        assert_eq!(window.room(now), 1);
        window.sent(1, now);
        assert_eq!((window.room(now), window.room_at()), (0, None));
        window.left(1);
        assert_eq!((window.room(now), window.room_at()), (0, Some(now + Nanos::from_micros(8))));
        assert_eq!(window.room(now + Nanos::from_micros(8)), 1);
        // Never a standstill, however much is lost.
        for _ in 0..100 {
            now += Nanos::from_millis(1);
            window.lost(now);
        }
        assert_eq!(window.cwnd(), LEAST);
        now += Nanos::from_micros(1_000);
        assert_eq!(window.room(now), 1);
        round(&mut window, &mut now, Nanos::from_micros(2));
        assert!(window.cwnd() >= 1.0, "Swift adds a whole packet");
    }

    #[test]
    fn responses_fit_into_two_round_trips_of_the_link() {
        let base = Nanos::from_micros(2);
        let mut incast = Incast::new(10_000_000_000);
        assert_eq!(incast.room_bytes(base), 5_000);
        assert!(incast.fits(1 << 20, base), "alone");
        incast.expect(4_000);
        assert!(incast.fits(1_000, base) && !incast.fits(1_001, base));
        incast.settle(4_000);
        incast.expect(1 << 20);
        assert!(!incast.fits(1, base));
        assert!(Incast::new(0).fits(u64::MAX, base));
    }
}
