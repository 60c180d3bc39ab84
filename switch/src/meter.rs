//! Two-rate three-colour meters (RFC 2698). In colour-blind mode packets come as green.

use crate::objects::{CounterData, MeterConfig};

/// Colours as programs see them.
const GREEN: u64 = 0;
const YELLOW: u64 = 1;
const RED: u64 = 2;

/// Tokens are counted in billionths, so that a rate per second times nanoseconds is exact.
const SCALE: u128 = 1_000_000_000;

/// A meter cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    config: Option<MeterConfig>,
    committed: u128,
    peak: u128,
    last_ns: u64,
    /// Counts of green, yellow and red.
    pub counts: [CounterData; 3],
}

impl Meter {
    /// Configures the meter and fills its buckets. Without configuration everything is green. Counts are
    /// preserved.
    pub fn configure(&mut self, config: Option<MeterConfig>, now_ns: u64) {
        let full = config.unwrap_or_default();
        self.config = config;
        self.committed = u128::from(full.cburst) * SCALE;
        self.peak = u128::from(full.pburst) * SCALE;
        self.last_ns = now_ns;
    }

    /// Its configuration.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Colours and counts a packet of this length, which costs one token per byte (`by_bytes`) or one in all. It gets
    /// no better colour than it comes with (`given`).
    pub fn execute(&mut self, bytes: u64, by_bytes: bool, given: u64, now_ns: u64) -> u64 {
        let color = self.color(if by_bytes { bytes } else { 1 }, given.min(RED), now_ns);
        let count = &mut self.counts[color as usize];
        count.packets += 1;
        count.bytes += bytes;
        color
    }

    fn color(&mut self, amount: u64, given: u64, now_ns: u64) -> u64 {
        let Some(config) = self.config else {
            return given;
        };
        let passed = u128::from(now_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(now_ns);
        let fill = |tokens: u128, rate_per_s: u64, burst: u64| {
            tokens.saturating_add(u128::from(rate_per_s) * passed).min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, config.cir, config.cburst);
        self.peak = fill(self.peak, config.pir, config.pburst);
        let cost = u128::from(amount) * SCALE;
        if given == RED || self.peak < cost {
            return RED;
        }
        self.peak -= cost;
        if given == YELLOW || self.committed < cost {
            return YELLOW;
        }
        self.committed -= cost;
        GREEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: MeterConfig = MeterConfig { cir: 1000, cburst: 1500, pir: 2000, pburst: 3000 };

    fn meter() -> Meter {
        let mut meter = Meter::default();
        meter.configure(Some(CONFIG), 0);
        meter
    }

    #[test]
    fn packets_are_counted_by_colour() {
        let mut meter = meter();
        for bytes in [1500, 1500, 60, 60] {
            meter.execute(bytes, true, GREEN, 0);
        }
        let seen = meter.counts.map(|count| (count.packets, count.bytes));
        assert_eq!(seen, [(1, 1500), (1, 1500), (2, 120)]);
        meter.configure(None, 0);
        assert_eq!(meter.execute(64, true, GREEN, 0), GREEN);
        assert_eq!(meter.counts[0], CounterData { packets: 2, bytes: 1564 });
    }

    #[test]
    fn unconfigured_is_green() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(9000, true, GREEN, 0), GREEN);
    }

    #[test]
    fn bursts_go_green_yellow_red() {
        let mut meter = meter();
        assert_eq!(meter.execute(1500, true, GREEN, 0), GREEN);
        assert_eq!(meter.execute(1500, true, GREEN, 0), YELLOW);
        assert_eq!(meter.execute(1, true, GREEN, 0), RED);
        // 1 ms: one committed token and two peak tokens.
        assert_eq!(meter.execute(2, true, GREEN, 1_000_000), YELLOW);
        assert_eq!(meter.execute(1, true, GREEN, 2_000_000), GREEN);
    }

    #[test]
    fn a_packet_gets_no_better_colour_than_it_has() {
        let mut meter = meter();
        assert_eq!(meter.execute(1500, true, RED, 0), RED);
        assert_eq!(meter.execute(1500, true, YELLOW, 0), YELLOW);
        // A red packet costs nothing, a yellow one no committed token.
        assert_eq!(meter.execute(1500, true, GREEN, 0), GREEN);
        assert_eq!(meter.execute(1, true, GREEN, 0), RED);
        assert_eq!(Meter::default().execute(1, true, YELLOW, 0), YELLOW);
    }

    #[test]
    fn a_long_run_gets_its_rates() {
        let mut meter = meter();
        let mut bytes = [0u64; 3];
        for step in 1..=100_000u64 {
            bytes[meter.execute(10, true, GREEN, step * 1_000_000) as usize] += 10;
        }
        // 100 s at 10 kB/s offered: 1 kB/s green and another 1 kB/s yellow, up to a burst.
        assert!(bytes[0].abs_diff(100_000) <= 1510, "green {}", bytes[0]);
        assert!(bytes[1].abs_diff(100_000) <= 3010, "yellow {}", bytes[1]);
        assert_eq!(bytes.iter().sum::<u64>(), 1_000_000);
    }
}
