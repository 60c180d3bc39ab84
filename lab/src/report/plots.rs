//! The report's plots.

use super::svg::{Axis, Plot};
use crate::promises;
use crate::results::{Results, SchemeResult};
use crate::stats::thin_by_max;
use crate::workload::BUCKET_NS;
use p4rack_codegen::rack::WorkloadKind;

const WIDE: (f64, f64) = (520.0, 280.0);
const NARROW: (f64, f64) = (360.0, 240.0);
/// Maximum points of a line, more than its width in pixels.
const POINTS: usize = 700;

/// Number of scheme colours in the style sheet. Further schemes reuse them.
pub const SCHEME_COLOURS: usize = 7;

/// Class with the colour of a scheme: its place among the report's.
pub fn scheme_class(results: &Results, name: &str) -> String {
    let place = results.schemes.iter().position(|scheme| scheme.name == name).unwrap_or(0);
    format!("scheme-{}", place % SCHEME_COLOURS)
}

/// Points of a latency's distribution: µs, share at or below.
type Curve = [(f64, f64)];

/// Share of what was done within a latency, one line per scheme that has a curve.
pub fn latency(results: &Results, what: &str, curve: impl Fn(&SchemeResult) -> Option<&Curve>) -> String {
    let curves: Vec<(&str, &Curve)> =
        results.schemes.iter().filter_map(|scheme| Some((scheme.name.as_str(), curve(scheme)?))).collect();
    let latencies = || curves.iter().flat_map(|(_, points)| points.iter().map(|&(us, _)| us));
    let (low, high) = (latencies().fold(f64::MAX, f64::min), latencies().fold(1.0, f64::max));
    let x = Axis::log(low.min(high), high * 1.05);
    let mut plot = Plot::new(WIDE, x, Axis::linear(0.0, 1.0), &format!("Share of {what}, by latency"));
    plot.axes("latency (log)", "share", latency_tick, |share| format!("{:.0} %", share * 100.0));
    for (name, points) in &curves {
        let mut line = vec![(points.first().map_or(low, |p| p.0), 0.0)];
        line.extend_from_slice(points);
        plot.line(&scheme_class(results, name), &line, true);
    }
    plot.level(0.99, "");
    plot.finish()
}

fn seconds_tick(seconds: f64) -> String {
    format!("{}", (seconds * 100.0).round() / 100.0)
}

fn latency_tick(us: f64) -> String {
    match us {
        u if u >= 1e6 => format!("{:.0} s", u / 1e6),
        u if u >= 1e3 => format!("{:.0} ms", u / 1e3),
        u if u >= 1.0 => format!("{u:.0} µs"),
        u => format!("{:.0} ns", u * 1e3),
    }
}

/// Depth of the congested queue over time. The axis is logarithmic and the same for all schemes, so that both
/// a full buffer and a short queue are legible.
pub fn queue(results: &Results, scheme: &SchemeResult) -> String {
    let frame_bytes = results.setting.mtu_frame_bytes.max(1) as f64;
    let top = results.setting.buffer_bytes as f64 / frame_bytes * 1.6;
    let (x, _) = time_axis(scheme);
    let mut plot = Plot::new(
        NARROW,
        x,
        Axis::log_exact(0.5, top.max(64.0)),
        &format!("Depth of the congested queue over time under {}", scheme.name),
    );
    let points: Vec<(f64, f64)> = thin_by_max(&scheme.series.queue, POINTS)
        .into_iter()
        .map(|(at_ns, bytes)| (at_ns as f64 / 1e9, bytes as f64 / frame_bytes))
        .collect();
    window(&mut plot, scheme);
    plot.line(&format!("thin {}", scheme_class(results, &scheme.name)), &points, false);
    if results.setting.kind != WorkloadKind::Store {
        plot.level(promises::QUEUE_P999_FRAMES as f64, "16 frames");
    }
    moments(&mut plot, scheme);
    plot.axes("seconds", "frames (log)", seconds_tick, |frames| format!("{frames:.0}"));
    plot.finish()
}

/// Goodput by sender, stacked, over time.
pub fn goodput(results: &Results, scheme: &SchemeResult) -> String {
    let (x, end_s) = time_axis(scheme);
    let port_mbps = results.setting.port_rate_bps as f64 / 1e6;
    let mut plot = Plot::new(
        NARROW,
        x,
        Axis::linear(0.0, port_mbps * 1.12),
        &format!("Goodput by sender over time under {}", scheme.name),
    );
    window(&mut plot, scheme);
    let buckets = (end_s * 1e9 / BUCKET_NS as f64) as usize;
    let mut low: Vec<(f64, f64)> = (0..buckets).map(|i| (mid_s(i), 0.0)).collect();
    for (index, host) in results.setting.many.iter().enumerate() {
        let line = scheme.series.goodput.get(host);
        let high: Vec<(f64, f64)> = low
            .iter()
            .enumerate()
            .map(|(i, &(x, below))| {
                let bytes = line.and_then(|line| line.bytes.get(i)).copied().unwrap_or(0);
                (x, below + bytes as f64 * 8e3 / BUCKET_NS as f64)
            })
            .collect();
        plot.area(&format!("host-{}", index % super::HOST_COLOURS), &low, &high);
        low = high;
    }
    plot.level(port_mbps, "port rate");
    moments(&mut plot, scheme);
    plot.axes("seconds", "Mb/s", seconds_tick, |mbps| format!("{mbps:.0}"));
    plot.finish()
}

fn mid_s(bucket: usize) -> f64 {
    (bucket as f64 + 0.5) * BUCKET_NS as f64 / 1e9
}

/// Time axis of a scheme and its end: the window, or what follows it.
fn time_axis(scheme: &SchemeResult) -> (Axis, f64) {
    let longest = scheme.series.goodput.values().map(|line| line.bytes.len()).max().unwrap_or(0);
    let end_s = (longest as f64 * BUCKET_NS as f64 / 1e9).max(scheme.series.window_ns.1 as f64 / 1e9);
    (Axis::linear(0.0, end_s), end_s)
}

/// Shades the measured window.
fn window(plot: &mut Plot, scheme: &SchemeResult) {
    let (from, to) = scheme.series.window_ns;
    plot.shade(from as f64 / 1e9, to as f64 / 1e9);
}

/// Marks events.
fn moments(plot: &mut Plot, scheme: &SchemeResult) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    if let Some(at) = scheme.series.kill_ns {
        plot.moment(seconds(at), "kill");
    }
    if let Some(at) = scheme.series.reset_ns {
        plot.moment(seconds(at), "reset");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn marks_of_short_runs_differ() {
        for end in [0.3, 1.2, 3.0, 60.0] {
            let ticks = Axis::linear(0.0, end).ticks();
            let texts: BTreeSet<String> = ticks.iter().map(|seconds| seconds_tick(*seconds)).collect();
            assert_eq!(texts.len(), ticks.len(), "{texts:?}");
        }
    }
}
