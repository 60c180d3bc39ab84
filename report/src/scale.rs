//! Scales of axes: the position of a value, and the values with a mark.

/// The range of an axis, linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    from: f64,
    to: f64,
    log: bool,
}

/// Marks of a linear axis that are aimed at.
const MARKS: f64 = 5.0;

impl Scale {
    /// A linear scale.
    pub fn linear(from: f64, to: f64) -> Scale {
        Scale { from, to: if to > from { to } else { from + 1.0 }, log: false }
    }

    /// A linear scale that has 0, all finite `values`, and a mark at its end.
    pub fn linear_of(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = range(values.chain([0.0]));
        let scale = Scale::linear(low, high);
        let step = scale.step();
        Scale { to: (scale.to / step - 1e-9).ceil() * step, ..scale }
    }

    /// A logarithmic scale with both ends extended to powers of ten.
    pub fn log(from: f64, to: f64) -> Scale {
        let low = from.max(1e-9).log10().floor();
        let high = to.max(1e-9).log10().ceil();
        Scale { from: 10f64.powf(low), to: 10f64.powf(high.max(low + 1.0)), log: true }
    }

    /// The same with all `values` above 0.
    pub fn log_of(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = range(values.filter(|value| *value > 0.0));
        if low > high { Scale::log(1.0, 1.0) } else { Scale::log(low, high) }
    }

    /// A logarithmic scale with exact ends, both above 0.
    pub fn log_exact(from: f64, to: f64) -> Scale {
        Scale { from, to, log: true }
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Its first value.
    pub fn from(&self) -> f64 {
        self.from
    }

    /// Its last value.
    pub fn to(&self) -> f64 {
        self.to
    }

    /// Position of `value`, from 0 to 1; values outside are clamped.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.from).log10() - self.from.log10()) / (self.to.log10() - self.from.log10())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    /// Values with a mark: powers of ten, with 2 and 5 times these if the scale has only two of them, or multiples of 1, 2 or 5
    /// times a power of ten.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.log {
            let step = self.step();
            let first = (self.from / step - 1e-9).ceil() as i64;
            let last = (self.to / step + 1e-9).floor() as i64;
            return (first..=last).map(|nth| nth as f64 * step).collect();
        }
        let decades = (self.to / self.from).log10();
        let parts: &[f64] = if decades > 2.0 + 1e-9 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (low, high) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let all = (low..=high).flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)));
        let within = |tick: &f64| *tick >= self.from * (1.0 - 1e-9) && *tick <= self.to * (1.0 + 1e-9);
        all.filter(within).collect()
    }

    /// Distance of the marks of a linear scale.
    fn step(&self) -> f64 {
        let rough = (self.to - self.from) / MARKS;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * power);
        steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough)
    }
}

/// Least and greatest of the finite values; the least is above the greatest if there are none.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_place_their_ends_and_clamp_what_lies_outside() {
        let linear = Scale::linear(0.0, 10.0);
        assert_eq!((linear.place(0.0), linear.place(5.0), linear.place(99.0)), (0.0, 0.5, 1.0));
        let log = Scale::log(20.0, 7_000.0);
        assert_eq!((log.from, log.to), (10.0, 10_000.0));
        assert!((log.place(100.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(log.place(0.0), 0.0);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Scale::linear(0.0, 10.0).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Scale::log(1.0, 1_000.0).ticks(), [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(Scale::log(1.0, 100.0).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Scale::log_exact(0.5, 300.0).ticks(), [1.0, 10.0, 100.0]);
        for to in [0.3, 7.0, 12.5, 99.0, 1234.0] {
            assert!((3..=7).contains(&Scale::linear(0.0, to).ticks().len()), "{to}");
        }
        // An empty range must neither loop nor divide by zero.
        assert!(!Scale::linear(3.0, 3.0).ticks().is_empty());
        assert!(!Scale::log(5.0, 5.0).ticks().is_empty());
    }

    #[test]
    fn scales_of_values_have_all_of_them_and_end_at_marks() {
        for greatest in [0.02, 1.0, 7.3, 80.0, 1e6] {
            let scale = Scale::linear_of([greatest, f64::NAN, greatest / 3.0].into_iter());
            assert!(scale.from == 0.0 && scale.to >= greatest && scale.to <= 1.5 * greatest, "{scale:?}");
            let last = scale.ticks().last().copied().unwrap_or(0.0);
            assert!((last / scale.to - 1.0).abs() < 1e-9, "{scale:?} ends at {last}");
        }
        assert_eq!(Scale::linear_of([-3.0, 1.0].into_iter()).from, -3.0);
        assert_eq!(Scale::linear_of(std::iter::empty()), Scale { from: 0.0, to: 1.0, log: false });
        assert_eq!(Scale::log_of([0.0, 3.0, 40.0].into_iter()), Scale { from: 1.0, to: 100.0, log: true });
        assert_eq!(Scale::log_of(std::iter::empty()), Scale { from: 1.0, to: 10.0, log: true });
    }
}
