//! Values smoothed over time, and random early detection on smoothed values.

/// Configuration of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SmootherConfig {
    /// A low-pass filter. Its result is the smoothed value, divided by a power of two.
    Average {
        /// Whether values are amounts, whose sum decays, rather than samples, which are averaged.
        sums: bool,
        /// Time constant while values rise, in nanoseconds; 0 follows immediately.
        gain_ns: f64,
        /// Time constant while values fall, in nanoseconds.
        decay_ns: f64,
        /// Exponent of the power of two.
        scale_down: u32,
    },
    /// Drops nothing while the average is at most `min`, all from `max` on, and in between with a probability that
    /// rises to `probability`.
    EarlyDrop {
        /// Time constant of the average, in nanoseconds.
        time_ns: f64,
        /// The average up to which nothing is dropped.
        min: u64,
        /// The average from which on everything is dropped.
        max: u64,
        /// The largest probability below `max`, 0 to 1.
        probability: f64,
    },
}

/// A cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Smoother {
    config: Option<SmootherConfig>,
    value: f64,
    last_ns: u64,
    /// Whether there was a value before.
    started: bool,
}

impl Smoother {
    /// Configures the cell and forgets its value. Without configuration values pass unchanged and nothing is dropped.
    pub fn configure(&mut self, config: Option<SmootherConfig>) {
        *self = Smoother { config, ..Smoother::default() };
    }

    /// Its configuration.
    pub fn config(&self) -> Option<SmootherConfig> {
        self.config
    }

    /// The result for a value: the smoothed one or, with `drops`, whether to drop. `random` gives numbers of 64 bits.
    pub fn execute(&mut self, value: u64, drops: bool, now_ns: u64, random: impl FnOnce() -> u64) -> u64 {
        match self.config {
            None => {
                if drops {
                    0
                } else {
                    value
                }
            }
            Some(SmootherConfig::Average { sums: true, decay_ns, scale_down, .. }) => {
                let left = self.value * (1.0 - self.weight(decay_ns, now_ns));
                self.value = left + value as f64;
                (self.value as u64).checked_shr(scale_down).unwrap_or(0)
            }
            Some(SmootherConfig::Average { gain_ns, decay_ns, scale_down, .. }) => {
                let constant = if value as f64 > self.value { gain_ns } else { decay_ns };
                (self.follow(value, constant, now_ns) as u64).checked_shr(scale_down).unwrap_or(0)
            }
            Some(SmootherConfig::EarlyDrop { time_ns, min, max, probability }) => {
                let average = self.follow(value, time_ns, now_ns);
                if average >= max as f64 {
                    return 1;
                }
                let part = (average - min as f64) / max.saturating_sub(min).max(1) as f64;
                let drawn = random() as f64 / u64::MAX as f64;
                u64::from(average > min as f64 && drawn < part * probability)
            }
        }
    }

    /// How far the value follows a new one that comes now.
    fn weight(&mut self, constant_ns: f64, now_ns: u64) -> f64 {
        let passed_ns = now_ns.saturating_sub(self.last_ns) as f64;
        self.last_ns = self.last_ns.max(now_ns);
        if !std::mem::replace(&mut self.started, true) || constant_ns <= 0.0 {
            return 1.0;
        }
        1.0 - (-passed_ns / constant_ns).exp()
    }

    fn follow(&mut self, value: u64, constant_ns: f64, now_ns: u64) -> f64 {
        let weight = self.weight(constant_ns, now_ns);
        self.value += (value as f64 - self.value) * weight;
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoother(config: SmootherConfig) -> Smoother {
        let mut smoother = Smoother::default();
        smoother.configure(Some(config));
        smoother
    }

    #[test]
    fn without_configuration_values_pass() {
        let mut smoother = Smoother::default();
        assert_eq!((smoother.execute(77, false, 1, || 0), smoother.execute(77, true, 2, || 0)), (77, 0));
    }

    #[test]
    fn samples_are_followed_at_the_pace_of_their_time_constant() {
        let average =
            SmootherConfig::Average { sums: false, gain_ns: 1_000.0, decay_ns: 2_000.0, scale_down: 0 };
        let mut smoother = smoother(average);
        assert_eq!(smoother.execute(100, false, 0, || 0), 100, "the first one at once");
        // After one time constant 1 - 1/e of the way: 100 + 0.632 * 900.
        assert_eq!(smoother.execute(1_000, false, 1_000, || 0), 668);
        // Down with the other one: 668.9 * 1/e.
        assert_eq!(smoother.execute(0, false, 3_000, || 0), 246);
        assert_eq!(smoother.execute(0, false, 3_000, || 0), 246, "no time, no change");
    }

    #[test]
    fn sums_decay_and_are_scaled() {
        let sums = SmootherConfig::Average { sums: true, gain_ns: 0.0, decay_ns: 1_000.0, scale_down: 2 };
        let mut smoother = smoother(sums);
        assert_eq!(smoother.execute(400, false, 0, || 0), 100);
        assert_eq!(smoother.execute(400, false, 0, || 0), 200);
        assert_eq!(smoother.execute(0, false, 1_000, || 0), 73);
    }

    #[test]
    fn drops_get_likelier_between_the_thresholds() {
        let drop = SmootherConfig::EarlyDrop { time_ns: 0.0, min: 100, max: 200, probability: 0.5 };
        let mut smoother = smoother(drop);
        assert_eq!([100, 200, 900].map(|value| smoother.execute(value, true, 0, || 0)), [0, 1, 1]);
        // Half way: a quarter.
        let share = |part: f64| (u64::MAX as f64 * part) as u64;
        assert_eq!(smoother.execute(150, true, 0, || share(0.24)), 1);
        assert_eq!(smoother.execute(150, true, 0, || share(0.26)), 0);
    }
}
