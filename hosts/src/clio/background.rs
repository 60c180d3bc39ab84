//! When work goes on that packets must not wait for: long calls of modules, and the slow path.
//!
//! ```text
//!   packets come:     slice │◀── N × its time: others' ──▶│ slice │◀── …
//!   1 ms without any: slice │ slice │ slice │ …
//! ```
//!
//! A module may run until its fuel is used up, and a caller may repeat the call for ever. So a slice of a long call is followed by time
//! for others, as long as packets come: long calls together have a tenth of the board's time then, and all that is left otherwise. A call
//! is long once it was paused: those of modules after 10,000 units of fuel, chases after 64 nodes. In the same way, steps of the slow path
//! have a quarter of the board's time: clients may allocate and free for ever.

use p4rack_wire::Nanos;

/// Time without packets after which nothing else waits for the board.
const QUIET: Nanos = Nanos::from_millis(1);
/// Time that such work has taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Background {
    /// Others' time for each time that a slice takes.
    others: u64,
    /// When the last packet came.
    packet_at: Nanos,
    /// When it may go on while packets come.
    resume_at: Nanos,
}

impl Background {
    /// Work that has not begun.
    pub fn new(others: u64) -> Background {
        Background { others, packet_at: Nanos::ZERO, resume_at: Nanos::ZERO }
    }

    /// Packets have come.
    pub fn packets(&mut self, now: Nanos) {
        self.packet_at = now;
    }

    /// A slice ran from `began` until `now`. One in a quiet time owes others nothing for earlier ones.
    pub fn ran(&mut self, began: Nanos, now: Nanos) {
        let others = Nanos(now.saturating_sub(began).0.saturating_mul(self.others));
        let is_quiet = began >= self.packet_at.saturating_add(QUIET);
        let from = if is_quiet { now } else { self.resume_at.max(now) };
        self.resume_at = from.saturating_add(others);
    }

    /// When the next slice may run.
    pub fn due(&self) -> Nanos {
        self.resume_at.min(self.packet_at.saturating_add(QUIET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of `slice_us` whenever they are due, a second for each of `packets_us` with a packet as often; the sum of their time in
    /// the last second.
    fn ran_us(slice_us: u64, packets_us: &[u64]) -> u64 {
        let (mut calls, mut now, mut packet, mut ran) = (Background::new(9), 0, 0, 0);
        for (nth, packet_us) in packets_us.iter().enumerate() {
            (ran, packet) = (0, packet.min(now + packet_us));
            while now < (nth as u64 + 1) * 1_000_000 {
                if packet <= now {
                    calls.packets(Nanos::from_micros(now));
                    packet = now + packet_us;
                }
                if calls.due() <= Nanos::from_micros(now) {
                    calls.ran(Nanos::from_micros(now), Nanos::from_micros(now + slice_us));
                    ran += slice_us;
                    now += slice_us;
                } else {
                    now += 1;
                }
            }
        }
        ran
    }

    #[test]
    fn it_has_its_share_while_packets_come_and_all_of_the_time_otherwise() {
        const NEVER: u64 = 10_000_000;
        for slice_us in [1, 40, 700] {
            // Earlier calls make no difference.
            for before_us in [&[][..], &[NEVER], &[2_000], &[50, 2_000]] {
                let share = ran_us(slice_us, &[before_us, &[50]].concat());
                assert!((99_000..=101_000).contains(&share), "{slice_us} {before_us:?}: {share}");
            }
        }
        assert!(ran_us(40, &[NEVER]) > 998_000 && ran_us(40, &[50, NEVER]) > 997_000);
        // A packet takes them a millisecond.
        let share = ran_us(40, &[10_000]);
        assert!((900_000..920_000).contains(&share), "{share}");
    }
}
