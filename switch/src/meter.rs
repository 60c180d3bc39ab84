//! Two-rate three-colour meters (RFC 2698, colour-blind).

use crate::objects::MeterConfig;

/// Colours as the program sees them.
const GREEN: u64 = 0;
const YELLOW: u64 = 1;
const RED: u64 = 2;

/// Tokens are counted in billionths, so that a rate a second times nanoseconds is exact.
const SCALE: u128 = 1_000_000_000;

/// One meter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    config: Option<MeterConfig>,
    committed: u128,
    peak: u128,
    last_ns: u64,
}

impl Meter {
    /// A meter with full buckets; unconfigured, everything is green.
    pub fn new(config: Option<MeterConfig>, now_ns: u64) -> Meter {
        let full = config.unwrap_or_default();
        Meter {
            config,
            committed: u128::from(full.cburst) * SCALE,
            peak: u128::from(full.pburst) * SCALE,
            last_ns: now_ns,
        }
    }

    /// What it was made with.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Colour of so many bytes (or one packet) now; takes their tokens.
    pub fn execute(&mut self, amount: u64, now_ns: u64) -> u64 {
        let Some(config) = self.config else {
            return GREEN;
        };
        let passed = u128::from(now_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(now_ns);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            tokens.saturating_add(u128::from(rate) * passed).min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, config.cir, config.cburst);
        self.peak = fill(self.peak, config.pir, config.pburst);
        let cost = u128::from(amount) * SCALE;
        if self.peak < cost {
            return RED;
        }
        self.peak -= cost;
        if self.committed < cost {
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

    #[test]
    fn unconfigured_is_green() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(u64::MAX, 0), GREEN);
    }

    #[test]
    fn bursts_go_green_yellow_red() {
        let mut meter = Meter::new(Some(CONFIG), 0);
        assert_eq!(meter.execute(1500, 0), GREEN);
        assert_eq!(meter.execute(1500, 0), YELLOW);
        assert_eq!(meter.execute(1, 0), RED);
        // 1 ms: one committed and two peak tokens.
        assert_eq!(meter.execute(2, 1_000_000), YELLOW);
        assert_eq!(meter.execute(1, 2_000_000), GREEN);
    }

    #[test]
    fn a_long_run_gets_its_rates() {
        let mut meter = Meter::new(Some(CONFIG), 0);
        let mut bytes = [0u64; 3];
        for step in 1..=100_000u64 {
            bytes[meter.execute(10, step * 1_000_000) as usize] += 10;
        }
        // 100 s at 10 kB/s offered: 1 kB/s green, another 1 kB/s yellow, up to a burst.
        assert!(bytes[0].abs_diff(100_000) <= 1510, "green {}", bytes[0]);
        assert!(bytes[1].abs_diff(100_000) <= 3010, "yellow {}", bytes[1]);
        assert_eq!(bytes.iter().sum::<u64>(), 1_000_000);
    }
}
