//! Real packets beside virtual time: whether both put the schemes in the same order, and why figures differ.

use crate::results::{Results, SchemeResult};
use p4rack_report::text;
use std::cmp::Ordering;

/// Figures of two schemes that differ by a smaller part are the same.
const SAME: f64 = 0.1;
/// Depths of queues that differ by fewer frames are the same.
const SAME_FRAMES: u64 = 4;

/// Why the two differ, for whatever rack.
pub const WHY: [&str; 4] = [
    "Real hosts and the switch are processes of one machine. Each frame waits for several of them to wake, which takes \
     tens of microseconds to milliseconds; virtual time has the delays of hardware, a few microseconds. So real requests \
     take longer, under every scheme.",
    "A process that wakes late sends its burst late, when the slots of others have begun. So real queues are longer, and \
     unsolicited bursts meet more reservations.",
    "A kernel has queues of its own, of hundreds of frames for an interface. Without reservations requests wait in them \
     behind everything else, and real hosts lose other frames than simulated ones, which have a queue for each \
     destination and nothing else.",
    "Real senders that the processor keeps from running offer less. Without reservations, few requests are answered at \
     all, and when is chance in both.",
];

/// A figure and whether real packets and virtual time agree on the order of the schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Name of the figure.
    pub figure: String,
    /// Whether no two schemes are in opposite order.
    pub holds: bool,
}

/// A figure, and by how much two of them may differ and be the same however small they are.
type Figure<'a> = (Box<dyn Fn(&SchemeResult) -> f64 + 'a>, f64);

/// Compares the order of the schemes, figure by figure. Empty unless the run was simulated too.
pub fn agreements(results: &Results) -> Vec<Agreement> {
    let pairs: Vec<(&SchemeResult, &SchemeResult)> = results
        .schemes
        .iter()
        .filter_map(|real| Some((real, results.simulated.iter().find(|other| other.name == real.name)?)))
        .collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let frames = (SAME_FRAMES * results.setting.mtu_frame_bytes) as f64;
    let mut figures: Vec<(String, Figure<'_>)> = vec![
        ("goodput".into(), (Box::new(|s| s.goodput_bps as f64), 0.0)),
        ("frames lost in the fabric".into(), (Box::new(|s| s.fabric_drops as f64), 0.0)),
        ("congested queue, p99.9".into(), (Box::new(|s| s.queue_p999_bytes as f64), frames)),
    ];
    for value in &pairs[0].0.rpc {
        let size = value.value_bytes;
        let name = format!("{} requests, p99", text::bytes(u64::from(size)));
        figures.push((name, (Box::new(move |s| s.rpc_of(size).map_or(0.0, |value| value.p99_us)), 0.0)));
    }
    let agree = |(figure, slack): &Figure<'_>| {
        let order = |a: f64, b: f64| match (a - b).abs() <= slack.max(SAME * a.abs().max(b.abs())) {
            true => Ordering::Equal,
            false => a.total_cmp(&b),
        };
        let opposite = |(a, b): (&(&SchemeResult, &SchemeResult), &(&SchemeResult, &SchemeResult))| {
            let (real, simulated) = (order(figure(a.0), figure(b.0)), order(figure(a.1), figure(b.1)));
            real == simulated.reverse() && real != Ordering::Equal
        };
        !pairs.iter().enumerate().any(|(n, a)| pairs[n + 1..].iter().any(|b| opposite((a, b))))
    };
    figures.into_iter().map(|(name, figure)| Agreement { holds: agree(&figure), figure: name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::good_results;

    #[test]
    fn schemes_in_opposite_order_are_found_and_small_differences_are_none() {
        let mut results = good_results();
        assert_eq!(agreements(&results), [], "nothing was simulated");
        results.simulated = results.schemes.clone();
        assert_eq!(agreements(&results).len(), 5);
        assert!(agreements(&results).iter().all(|agreement| agreement.holds));
        results.simulated[0].goodput_bps = results.schemes[2].goodput_bps * 105 / 100;
        assert!(agreements(&results)[0].holds, "within a tenth");
        results.schemes[0].goodput_bps *= 2;
        results.simulated[0].goodput_bps /= 2;
        let broken: Vec<String> =
            agreements(&results).into_iter().filter(|a| !a.holds).map(|a| a.figure).collect();
        assert_eq!(broken, ["goodput"]);
        results.simulated[1].queue_p999_bytes = results.simulated[2].queue_p999_bytes + 3 * 1_530;
        results.schemes[2].queue_p999_bytes = results.schemes[1].queue_p999_bytes * 4;
        assert!(agreements(&results)[2].holds, "three frames more are not more");
        results.simulated[1].queue_p999_bytes += 2 * 1_530;
        assert!(!agreements(&results)[2].holds);
    }
}
