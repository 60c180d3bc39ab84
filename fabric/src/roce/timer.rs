//! How long a requester waits before it repeats: longer where responses take longer.
//!
//! A fixed time is too short as soon as responses queue for longer: on a link that others fill, each request would be repeated
//! before its response can arrive, and the repeats would fill the link further. Twice the slowest of the last responses is more
//! patient than TCP's mean and deviation (RFC 6298): READs, WRITEs and atomic operations of a queue pair take different times.

use p4rack_wire::Nanos;
use p4rack_wire::roce::psn;

/// A timeout lengthens the wait to this many times the least one, and no further.
const STRETCH_MAX: u64 = 16;
/// Slow responses lengthen it to this many times the least one: a peer that delays its responses more and more could otherwise put off
/// for hours that it is given up.
const LONGEST: u64 = 64;
/// Measurements that take the memory of a slow response down to a third.
const MEMORY: u64 = 32;

/// The retransmission timer of a queue pair. It measures one packet at a time, and none that was repeated (Karn's rule): whether a
/// response belongs to the first or the second request can't be seen.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    least: Nanos,
    /// The slowest of the last responses. It fades with each further one.
    slowest: Nanos,
    /// The packet that is measured, and when it was sent.
    measured: Option<(u32, Nanos)>,
}

impl Timer {
    /// A timer that never waits less than `least`.
    pub fn new(least: Nanos) -> Timer {
        Timer { least, slowest: Nanos::ZERO, measured: None }
    }

    /// Time to wait for progress from now on.
    pub fn wait(&self) -> Nanos {
        let most = Nanos(self.least.0.saturating_mul(LONGEST));
        self.least.max(Nanos(self.slowest.0.saturating_mul(2))).min(most)
    }

    /// A packet was sent for the first time.
    pub fn handle_sent(&mut self, at: u32, now: Nanos) {
        self.measured.get_or_insert((at, now));
    }

    /// All packets before `oldest` have been answered.
    pub fn handle_progress(&mut self, oldest: u32, now: Nanos) {
        if let Some((_, sent_at)) = self.measured.take_if(|(at, _)| psn::is_before(*at, oldest)) {
            self.slowest = now.saturating_sub(sent_at).max(Nanos(self.slowest.0 - self.slowest.0 / MEMORY));
        }
    }

    /// Packets are sent again.
    pub fn handle_repeat(&mut self) {
        self.measured = None;
    }

    /// The time has passed without progress. It counts as a response that took that long: slow responses would otherwise never be
    /// measured, because their requests are repeated.
    pub fn handle_timeout(&mut self) {
        let most = Nanos(self.least.0.saturating_mul(STRETCH_MAX / 2));
        self.slowest = self.slowest.max(self.wait().min(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Nanos = Nanos::from_micros(500);

    /// Sends a packet and gets its response after `took`.
    fn exchange(timer: &mut Timer, at: u32, took: Nanos) {
        timer.handle_sent(at, Nanos(1_000));
        timer.handle_progress(psn::add(at, 1), Nanos(1_000 + took.0));
    }

    #[test]
    fn it_waits_the_least_time_while_responses_are_fast() {
        let mut timer = Timer::new(LEAST);
        assert_eq!(timer.wait(), LEAST);
        (0..100).for_each(|at| exchange(&mut timer, at, Nanos::from_micros(20)));
        assert_eq!(timer.wait(), LEAST);
    }

    #[test]
    fn it_waits_longer_than_slow_responses_take() {
        let mut timer = Timer::new(LEAST);
        exchange(&mut timer, 7, Nanos::from_millis(3));
        assert_eq!(timer.wait(), Nanos::from_millis(6));
        exchange(&mut timer, 8, Nanos::from_micros(1));
        assert!(timer.wait() > Nanos::from_millis(5), "one fast response is no reason: {:?}", timer.wait());
        (0..200).for_each(|at| exchange(&mut timer, at, Nanos::from_micros(1)));
        assert_eq!(timer.wait(), LEAST);
    }

    #[test]
    fn a_timeout_counts_as_slow_and_repeated_packets_are_not_measured() {
        let mut timer = Timer::new(LEAST);
        timer.handle_sent(psn::MAX, Nanos(0));
        timer.handle_timeout();
        timer.handle_repeat();
        timer.handle_progress(0, Nanos::from_millis(700));
        assert_eq!(timer.wait(), Nanos(2 * LEAST.0), "no measurement");
        (0..9).for_each(|_| timer.handle_timeout());
        assert_eq!(timer.wait(), Nanos(16 * LEAST.0), "there is a limit");
        exchange(&mut timer, psn::MAX, Nanos::from_millis(10));
        assert_eq!(timer.wait(), Nanos::from_millis(20), "measurements have another one");
        timer.handle_timeout();
        assert_eq!(timer.wait(), Nanos::from_millis(20));
        exchange(&mut timer, 1, Nanos::from_millis(30));
        assert_eq!(timer.wait(), Nanos(64 * LEAST.0));
    }
}
