//! The report's plots.

use crate::promises;
use crate::results::{CacheResult, MixResult, Results, SchemeResult};
use crate::stats::thin_by_max;
use crate::workload::BUCKET_NS;
use p4rack_codegen::rack::WorkloadKind;
use p4rack_report::{Axis, Colour, Layer, Line, LineStyle, NARROW, Plot, Point, Scale, WIDE};

/// Maximum points of a line, more than its width in pixels.
const POINTS: usize = 700;

/// The colour of a scheme: that of its place among the report's.
pub fn scheme_colour(results: &Results, name: &str) -> Colour {
    Colour::Series(results.schemes.iter().position(|scheme| scheme.name == name).unwrap_or(0))
}

/// Points of a latency's distribution: µs, share at or below.
type Curve = [Point];

/// Share of operations completed within a latency, one line per scheme that has a curve.
pub fn latency(results: &Results, what: &str, curve: impl Fn(&SchemeResult) -> Option<&Curve>) -> Plot {
    let curves: Vec<(&str, &Curve)> =
        results.schemes.iter().filter_map(|scheme| Some((scheme.name.as_str(), curve(scheme)?))).collect();
    let latencies = || curves.iter().flat_map(|(_, points)| points.iter().map(|&(us, _)| us));
    let (low, high) = (latencies().fold(f64::MAX, f64::min), latencies().fold(1.0, f64::max));
    let line = |(name, points): &(&str, &Curve)| {
        let first = (points.first().map_or(low, |point| point.0), 0.0);
        Layer::Line(Line {
            name: (*name).to_owned(),
            colour: scheme_colour(results, name),
            style: LineStyle::Steps,
            points: [&[first][..], *points].concat(),
            row: None,
        })
    };
    Plot {
        label: format!("Share of {what}, by latency"),
        size: WIDE,
        x: Axis::new("latency", "", Scale::log(low.min(high), high * 1.05)).marked(latency_mark),
        y: Axis::new("share", "", Scale::linear(0.0, 1.0)).marked(|share| format!("{:.0} %", share * 100.0)),
        layers: curves.iter().map(line).chain([Layer::Level(0.99, "")]).collect(),
    }
}

/// A figure of a mix by local memory, one line per scheme.
pub fn by_local(
    results: &Results,
    mix: &str,
    what: &str,
    value: impl Fn(&MixResult, &CacheResult) -> f64,
) -> Plot {
    let points = |scheme: &SchemeResult| {
        let mixes = scheme.store.iter().flat_map(|store| &store.mixes).filter(|figures| figures.mix == mix);
        let mut points: Vec<Point> = mixes
            .filter_map(|figures| {
                let cache = figures.cache.as_ref()?;
                Some((f64::from(cache.local_percent), value(figures, cache)))
            })
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let lines: Vec<(&str, Vec<Point>)> =
        results.schemes.iter().map(|scheme| (scheme.name.as_str(), points(scheme))).collect();
    // Zero has no place on a logarithmic axis.
    let highest = lines.iter().flat_map(|(_, points)| points).fold(1.0, |most: f64, point| most.max(point.1));
    let line = |(name, points): (&str, Vec<Point>)| {
        Layer::Line(Line {
            name: name.to_owned(),
            colour: scheme_colour(results, name),
            style: LineStyle::Dots,
            points,
            row: None,
        })
    };
    Plot {
        label: format!("{what} of mix {mix}, by local memory"),
        size: WIDE,
        x: Axis::new("local memory", "%", Scale::linear(0.0, 100.0)),
        y: Axis::new(what, "", Scale::linear(0.0, highest * 1.05)),
        layers: lines.into_iter().map(line).collect(),
    }
}

fn seconds_mark(seconds: f64) -> String {
    format!("{}", (seconds * 100.0).round() / 100.0)
}

fn latency_mark(us: f64) -> String {
    match us {
        u if u >= 1e6 => format!("{:.0} s", u / 1e6),
        u if u >= 1e3 => format!("{:.0} ms", u / 1e3),
        u if u >= 1.0 => format!("{u:.0} µs"),
        u => format!("{:.0} ns", u * 1e3),
    }
}

/// Depth of the congested queue over time. The axis is logarithmic and the same for all schemes, so that both
/// a full buffer and a short queue are legible.
pub fn queue(results: &Results, scheme: &SchemeResult) -> Plot {
    let frame_bytes = results.setting.mtu_frame_bytes.max(1) as f64;
    let top = results.setting.buffer_bytes as f64 / frame_bytes * 1.6;
    let depth = Layer::Line(Line {
        name: scheme.name.clone(),
        colour: scheme_colour(results, &scheme.name),
        style: LineStyle::Thin,
        points: thin_by_max(&scheme.series.queue, POINTS)
            .into_iter()
            .map(|(at_ns, bytes)| (at_ns as f64 / 1e9, bytes as f64 / frame_bytes))
            .collect(),
        row: None,
    });
    let mut layers = vec![window(scheme), depth];
    if results.setting.kind != WorkloadKind::Store {
        layers.push(Layer::Level(promises::QUEUE_P999_FRAMES as f64, "16 frames"));
    }
    layers.extend(moments(scheme));
    Plot {
        label: format!("Depth of the congested queue over time under {}", scheme.name),
        size: NARROW,
        x: time_axis(scheme),
        y: Axis::new("frames", "", Scale::log_exact(0.5, top.max(64.0))),
        layers,
    }
}

/// Goodput by sender, stacked, over time.
pub fn goodput(results: &Results, scheme: &SchemeResult) -> Plot {
    let x = time_axis(scheme);
    let port_mbps = results.setting.port_rate_bps as f64 / 1e6;
    let buckets = (x.scale.to() * 1e9 / BUCKET_NS as f64) as usize;
    let mut low: Vec<Point> = (0..buckets).map(|bucket| (mid_s(bucket), 0.0)).collect();
    let mut layers = vec![window(scheme)];
    for (index, host) in results.setting.many.iter().enumerate() {
        let line = scheme.series.goodput.get(host);
        let high: Vec<Point> = low
            .iter()
            .enumerate()
            .map(|(i, &(x, below))| {
                let bytes = line.and_then(|line| line.bytes.get(i)).copied().unwrap_or(0);
                (x, below + bytes as f64 * 8e3 / BUCKET_NS as f64)
            })
            .collect();
        let (name, colour) = (host.clone(), Colour::Host(index));
        layers.push(Layer::Area { name, colour, low, high: high.clone() });
        low = high;
    }
    layers.push(Layer::Level(port_mbps, "port rate"));
    layers.extend(moments(scheme));
    Plot {
        label: format!("Goodput by sender over time under {}", scheme.name),
        size: NARROW,
        x,
        y: Axis::new("goodput", "Mb/s", Scale::linear(0.0, port_mbps * 1.12)),
        layers,
    }
}

/// The middle of a bucket, in seconds.
fn mid_s(bucket: usize) -> f64 {
    (bucket as f64 + 0.5) * BUCKET_NS as f64 / 1e9
}

/// Time axis of a scheme, to the end of the window or of the series, whichever is later.
fn time_axis(scheme: &SchemeResult) -> Axis {
    let longest = scheme.series.goodput.values().map(|line| line.bytes.len()).max().unwrap_or(0);
    let end_s = (longest as f64 * BUCKET_NS as f64 / 1e9).max(scheme.series.window_ns.1 as f64 / 1e9);
    Axis::new("time", "s", Scale::linear(0.0, end_s)).marked(seconds_mark)
}

/// A shade on the measured window.
fn window(scheme: &SchemeResult) -> Layer {
    let (from, to) = scheme.series.window_ns;
    Layer::Shade(from as f64 / 1e9, to as f64 / 1e9)
}

/// The events that there were.
fn moments(scheme: &SchemeResult) -> impl Iterator<Item = Layer> {
    let moment = |ns: Option<u64>, text| ns.map(|ns| Layer::Moment(ns as f64 / 1e9, text));
    [moment(scheme.series.kill_ns, "kill"), moment(scheme.series.reset_ns, "reset")].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn marks_of_short_runs_differ() {
        for end in [0.3, 1.2, 3.0, 60.0] {
            let ticks = Scale::linear(0.0, end).ticks();
            let texts: BTreeSet<String> = ticks.iter().map(|seconds| seconds_mark(*seconds)).collect();
            assert_eq!(texts.len(), ticks.len(), "{texts:?}");
        }
    }
}
