//! Rate limit of a port's arrivals: no more than a wire of the port's rate could carry.
//!
//! This is a token bucket in the form of the generic cell rate algorithm. Its state is the time at which the
//! accepted frames would have arrived over such a wire. A frame exceeds the rate if that time is further
//! ahead than the burst allows.

use crate::config::Config;
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;

/// Fractional bits of a byte's time.
const SHIFT: u32 = 24;
/// Number of full frames that may always arrive back to back.
const FRAMES: u64 = 16;
/// Bytes of a full frame with two tags on the wire.
const FULL_WIRE_BYTES: u64 = wire_bytes(1_514 + 2 * 4);

/// The rate limit of a port's arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inlet {
    /// Wire time of a byte in 2⁻²⁴ ns, rounded down so that exactly the rate never exceeds it; 0 is no limit.
    byte_time: u64,
    /// How far `free_at` may be ahead of a frame.
    burst: Nanos,
    /// Time at which a wire would have carried all accepted frames, with the fraction of a nanosecond.
    free_at: Nanos,
    fraction: u64,
}

impl Inlet {
    /// The limit for this rate; 0 is no limit.
    pub fn new(rate_bps: u64, config: &Config) -> Inlet {
        // With an endless burst there is no limit either.
        let rate_bps = if config.arrival_burst == Nanos::MAX { 0 } else { rate_bps };
        let byte_time = (8_000_000_000u128 << SHIFT).checked_div(rate_bps.into()).unwrap_or(0) as u64;
        let frames = byte_time.saturating_mul(FRAMES * FULL_WIRE_BYTES) >> SHIFT;
        let burst = config.arrival_burst.max(Nanos(frames));
        Inlet { byte_time, burst, free_at: Nanos::ZERO, fraction: 0 }
    }

    /// Whether a frame of this length that arrives now is accepted. An accepted frame counts.
    #[inline(always)]
    pub fn takes(&mut self, len: usize, now: Nanos) -> bool {
        if self.byte_time == 0 {
            return true;
        }
        if self.free_at.0 > now.0.saturating_add(self.burst.0) {
            return false;
        }
        if self.free_at < now {
            (self.free_at, self.fraction) = (now, 0);
        }
        let time = self.byte_time.saturating_mul(wire_bytes(len as u64)).saturating_add(self.fraction);
        self.fraction = time & ((1 << SHIFT) - 1);
        self.free_at = self.free_at.saturating_add(Nanos(time >> SHIFT));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of a full frame with one tag on the wire.
    const WIRE_BYTES: u64 = 1_518 + 4 + 20;

    fn inlet(rate_bps: u64, burst: Nanos) -> Inlet {
        Inlet::new(rate_bps, &Config { arrival_burst: burst, ..Config::default() })
    }

    #[test]
    fn a_burst_and_from_then_on_the_rate() {
        let mut inlet = inlet(100_000_000, Nanos::from_millis(10));
        // 123.36 µs per frame at 100 Mb/s, and at most 10 ms ahead: 82 frames back to back.
        let at_once = (0..1_000).filter(|_| inlet.takes(1_518, Nanos(5_000))).count();
        assert_eq!(at_once, 82);
        // A second of 4 Gb/s.
        let taken =
            (0..300_000u64).filter(|n| inlet.takes(1_518, Nanos(5_000 + n * 10_000_000 / 3_000))).count();
        assert!((8_105..=8_107).contains(&taken), "{taken}");
    }

    #[test]
    fn sixteen_frames_at_once_at_any_rate_and_no_limit_without_one() {
        for rate_bps in [1_000, 64_000, 1_000_000] {
            let mut inlet = inlet(rate_bps, Nanos::ZERO);
            let taken = (0..100).filter(|_| inlet.takes(1_518, Nanos(7))).count();
            assert!((16..=17).contains(&taken), "{rate_bps}: {taken}");
        }
        let mut inlet = inlet(0, Nanos::ZERO);
        assert!((0..100_000).all(|_| inlet.takes(9_216, Nanos(7))));
    }

    proptest! {
        /// All traffic that a wire of the rate carries is accepted, however late within the burst it is
        /// handed over.
        #[test]
        fn what_a_wire_carries_is_taken_even_late(
            rate_bps in prop::sample::select(vec![10_000_000u64, 100_000_000, 999_999_937, 100_000_000_000]),
            frames in prop::collection::vec((60usize..9_216, 0u64..100_000, 0u64..10_000_000), 1..400),
        ) {
            let mut inlet = inlet(rate_bps, Nanos::from_millis(10));
            let (mut wire, mut handed) = (1_000_000_000u128 << 64, Nanos::ZERO);
            for (len, idle, late) in frames {
                wire += u128::from(idle) << 64;
                let bytes = u128::from(wire_bytes(len as u64));
                wire += ((bytes * 8_000_000_000) << 64) / u128::from(rate_bps);
                let arrived = Nanos((wire >> 64) as u64 + 1);
                handed = handed.max(arrived + Nanos(late));
                prop_assert!(inlet.takes(len, handed));
            }
        }

        /// Never more than rate and burst, in any interval from the start.
        #[test]
        fn never_more_than_rate_and_burst(gaps in prop::collection::vec((60usize..1_600, 0u64..200_000), 1..2_000)) {
            let rate_bps = 100_000_000;
            let mut inlet = inlet(rate_bps, Nanos::from_millis(2));
            let (mut now, mut taken) = (Nanos(1_000), 0);
            for (len, gap) in gaps {
                now += Nanos(gap);
                if inlet.takes(len, now) {
                    taken += wire_bytes(len as u64);
                }
                // One frame may begin when the burst is not quite used up.
                let most = (now.0 - 1_000 + 2_000_000) / 80 + 1_700;
                prop_assert!(taken <= most, "{taken} of {most} at {now}");
            }
        }
    }

    #[test]
    fn a_full_frame_has_its_wire_bytes() {
        assert_eq!(wire_bytes(1_518), WIRE_BYTES);
    }
}
