//! The only time type: unsigned nanoseconds since an origin that the driver chooses.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time or a span, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or an empty span.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any event.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// `self - other`, or zero if `other` is later.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self + other`, at most [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// Time of `bytes` on a wire of `rate_bps` bits per second, rounded up. A rate of 0 is unlimited and
    /// takes no time.
    #[inline]
    pub const fn on_wire(bytes: u64, rate_bps: u64) -> Nanos {
        if rate_bps == 0 {
            return Nanos(0);
        }
        // The common case avoids 128-bit division, because this is called for every frame.
        if bytes <= u32::MAX as u64 / 2 {
            return Nanos((bytes * 8 * 1_000_000_000).div_ceil(rate_bps));
        }
        Nanos((bytes as u128 * 8 * 1_000_000_000).div_ceil(rate_bps as u128) as u64)
    }

    /// Seconds, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// A wire's rate, prepared to compute [`Nanos::on_wire`] for every frame without a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireRate {
    rate_bps: u64,
    /// Time of a byte in 2⁻⁶⁴ ns, rounded down; 0 if that is a nanosecond or more.
    byte_time: u64,
}

impl WireRate {
    /// Number of bytes up to which rounding cannot change the result: 2²⁰ rounding errors are smaller than
    /// the distance of any time at up to 10¹³ bits per second from a whole nanosecond.
    const BYTES_MAX: u64 = 1 << 20;
    const RATE_MAX_BPS: u64 = 10_000_000_000_000;

    /// A rate in bits per second; 0 is unlimited.
    pub const fn new(rate_bps: u64) -> WireRate {
        const BYTE: u128 = 8_000_000_000 << 64;
        let byte_time = if rate_bps <= 8_000_000_000 || rate_bps > WireRate::RATE_MAX_BPS {
            0
        } else {
            (BYTE / rate_bps as u128) as u64
        };
        WireRate { rate_bps, byte_time }
    }

    /// The same result as [`Nanos::on_wire`].
    #[inline]
    pub const fn time(&self, bytes: u64) -> Nanos {
        if self.byte_time == 0 || bytes > WireRate::BYTES_MAX {
            return Nanos::on_wire(bytes, self.rate_bps);
        }
        let time = bytes as u128 * self.byte_time as u128;
        Nanos((time >> 64) as u64 + (time as u64 != 0) as u64)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.3} µs", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rate_made_ready_gives_the_same_times(
            bytes in prop_oneof![0..3_000u64, 0..3_000_000u64, any::<u64>().prop_map(|bytes| bytes >> 20)],
            rate_bps in prop_oneof![
                Just(0), 1..100u64, 1..20_000_000_000_000u64,
                (1..1_000u64).prop_map(|n| n * 1_000_000_000), (1..1_000u64).prop_map(|n| n * 12_500_000_000),
            ],
        ) {
            prop_assert_eq!(WireRate::new(rate_bps).time(bytes), Nanos::on_wire(bytes, rate_bps));
        }
    }

    #[test]
    fn whole_nanoseconds_stay_whole() {
        let rate = WireRate::new(100_000_000_000);
        assert_eq!((rate.time(25), rate.time(26), rate.time(1_538)), (Nanos(2), Nanos(3), Nanos(124)));
    }
}
