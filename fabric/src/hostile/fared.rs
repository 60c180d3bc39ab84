//! Effect of a hostile host on the others.

use serde::Serialize;

/// Results of the hosts that share a rack with a hostile one, compared with the same host behaving.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fared {
    /// Least share of a host's goodput that was left; NaN if one was not measured.
    pub goodput_share: f64,
    /// Frames that they lost.
    pub frames_lost: u64,
    /// Largest growth of the 99th percentile of latency among their kinds of messages, as a factor; NaN if one was not measured,
    /// absent if there are no messages.
    pub p99_times: Option<f64>,
}

/// A figure while the host behaves, and while it is hostile. NaN, or a former figure of 0, means not measured.
pub type Compared = (f64, f64);

impl Fared {
    /// The promise: the others keep at least this share of their goodput …
    pub const GOODPUT_SHARE_MIN: f64 = 0.9;
    /// … and their 99th percentile grows at most by this factor. None of their frames is lost.
    pub const P99_TIMES_MAX: f64 = 2.0;

    /// From the goodput of each of the others, the frames that they lost beside the hostile host, and the 99th
    /// percentile of each kind of their messages. A host without any progress beside it has a goodput of 0 there, and an
    /// infinite percentile.
    pub fn new(
        goodputs: impl IntoIterator<Item = Compared>,
        frames_lost: u64,
        p99s: impl IntoIterator<Item = Compared>,
    ) -> Fared {
        Fared {
            goodput_share: worst(goodputs, f64::min).unwrap_or(f64::NAN),
            frames_lost,
            p99_times: worst(p99s, f64::max),
        }
    }

    /// Broken promises, in words. An unmeasured promise counts as broken.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.goodput_share.is_nan() {
            broken.push("goodput not measured".to_owned());
        } else if self.goodput_share < Fared::GOODPUT_SHARE_MIN {
            broken.push(format!("goodput {:.0} % of its fair share", 100.0 * self.goodput_share));
        }
        if self.frames_lost > 0 {
            broken.push(format!("{} frames lost", self.frames_lost));
        }
        match self.p99_times {
            Some(times) if times.is_nan() => broken.push("p99 not measured".to_owned()),
            Some(times) if times > Fared::P99_TIMES_MAX => {
                broken.push(format!("p99 {times:.1} times as long"));
            }
            _ => {}
        }
        broken
    }
}

/// The ratio that `choose` finds worst; NaN if any is.
fn worst(compared: impl IntoIterator<Item = Compared>, choose: fn(f64, f64) -> f64) -> Option<f64> {
    let ratio = |(honest, hostile): Compared| if honest > 0.0 { hostile / honest } else { f64::NAN };
    let either = |one: f64, other: f64| match one.is_nan() || other.is_nan() {
        true => f64::NAN,
        false => choose(one, other),
    };
    compared.into_iter().map(ratio).reduce(either)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fares_worst_counts_and_what_was_not_measured_keeps_no_promise() {
        let none = [] as [String; 0];
        let fared = Fared::new([(20.0, 18.0), (5.0, 5.0)], 0, [(100.0, 200.0), (7.0, 1.0)]);
        assert_eq!((fared.goodput_share, fared.p99_times, fared.broken()), (0.9, Some(2.0), none.to_vec()));
        let fared = Fared::new([(5.0, 5.0), (20.0, 17.0)], 3, [(7.0, 1.0), (100.0, 210.0)]);
        let bad = ["goodput 85 % of its fair share", "3 frames lost", "p99 2.1 times as long"];
        assert_eq!(fared.broken(), bad);
        // Nothing of it came through.
        let fared = Fared::new([(5.0, 0.0)], 0, [(7.0, f64::INFINITY)]);
        assert_eq!(fared.broken(), ["goodput 0 % of its fair share", "p99 inf times as long"]);
        // A good one beside it does not hide it.
        for at in 0..2 {
            let mut figures = [(5.0, 5.0); 2];
            for unknown in [(0.0, 5.0), (f64::NAN, 5.0), (5.0, f64::NAN)] {
                figures[at] = unknown;
                let fared = Fared::new(figures, 0, figures);
                assert_eq!(fared.broken(), ["goodput not measured", "p99 not measured"]);
            }
        }
        // There may be no messages, but there are others.
        assert_eq!(Fared::new([], 0, []).broken(), ["goodput not measured"]);
    }
}
