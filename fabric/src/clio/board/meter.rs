//! A limit of a rate: the generic cell rate algorithm (ITU-T I.371).

use p4rack_wire::Nanos;

/// Events that may follow each other beyond the rate.
const BURST: u64 = 32;

/// Lets a number of events a second pass.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    interval: Nanos,
    /// When an event at the rate would come next.
    next: Nanos,
}

impl Meter {
    /// With a rate of 0, only the first ones pass.
    pub fn new(rate_per_s: u32) -> Meter {
        let interval =
            Nanos(1_000_000_000u64.checked_div(rate_per_s.into()).unwrap_or(u64::MAX / BURST).max(1));
        Meter { interval, next: Nanos::ZERO }
    }

    /// Whether an event passes now.
    pub fn passes(&mut self, now: Nanos) -> bool {
        let next = self.next.max(now);
        let passes = next.saturating_sub(now).0 <= self.interval.0 * (BURST - 1);
        if passes {
            self.next = next.saturating_add(self.interval);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut meter = Meter::new(1_000_000);
        let mut passed = |now| (0..1_000).filter(|_| meter.passes(Nanos(now))).count() as u64;
        assert_eq!(passed(0), BURST);
        assert_eq!((passed(999), passed(1_000), passed(6_000)), (0, 1, 5));
        assert_eq!(passed(1_000_000_000), BURST, "silence saves no more than a burst");
        assert!(Meter::new(0).passes(Nanos::ZERO));
    }
}
