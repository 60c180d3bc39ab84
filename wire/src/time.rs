//! The one time type: unsigned nanoseconds since an origin that the driver chooses.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time or a span, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or the empty span.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than anything that happens.
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

    /// `self - other`, or zero where `other` is later.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// Time that `bytes` take on a wire of `rate_bps` bits a second, rounded up. A rate of 0 means
    /// a wire without limit: no time at all.
    #[inline]
    pub const fn on_wire(bytes: u64, rate_bps: u64) -> Nanos {
        if rate_bps == 0 {
            return Nanos(0);
        }
        // What fits is divided as it is: this is asked for every frame.
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
