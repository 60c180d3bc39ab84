//! Unit of an agenda's times.

use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;

/// Ticks of an agenda. The machines' time is whole nanoseconds in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    per_ns: u64,
}

impl Clock {
    /// For racks whose hosts, links and switch take times that are measured in microseconds.
    pub const NANOSECONDS: Clock = Clock { per_ns: 1 };
    /// Resolves blocks of 0.64 ns.
    pub const PICOSECONDS: Clock = Clock { per_ns: 1_000 };

    /// The machines' time.
    #[inline]
    pub fn nanos(self, at: u64) -> Nanos {
        Nanos(at / self.per_ns)
    }

    /// A time of the machines'; `u64::MAX` if it never comes.
    #[inline]
    pub fn ticks(self, at: Nanos) -> u64 {
        at.0.saturating_mul(self.per_ns)
    }

    /// Transmission time of a frame of this length, without FCS, on a link, rounded down.
    #[inline]
    pub fn on_wire(self, frame_bytes: usize, rate_bps: u64) -> u64 {
        let bits = u128::from(wire_bytes(frame_bytes as u64)) * 8;
        (bits * 1_000_000_000 * u128::from(self.per_ns) / u128::from(rate_bps)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        let (ns, ps) = (Clock::NANOSECONDS, Clock::PICOSECONDS);
        assert_eq!((ns.nanos(7), ns.ticks(Nanos(7))), (Nanos(7), 7));
        assert_eq!((ps.nanos(7_999), ps.ticks(Nanos(7))), (Nanos(7), 7_000));
        assert_eq!(ps.ticks(Nanos::MAX), u64::MAX);
        // 1538 bytes with preamble, FCS and gap.
        assert_eq!(
            (ns.on_wire(1_514, 10_000_000_000), ps.on_wire(1_514, 10_000_000_000)),
            (1_230, 1_230_400)
        );
    }
}
