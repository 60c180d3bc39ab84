//! Just enough of SVG for line plots: a frame with two axes, lines, areas, marks.

use std::fmt::Write;

/// An axis: its range, and whether it is logarithmic.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(from: f64, to: f64) -> Axis {
        Axis { from, to: if to > from { to } else { from + 1.0 }, log: false }
    }

    /// A logarithmic axis with both ends extended to powers of ten.
    pub fn log(from: f64, to: f64) -> Axis {
        let low = from.max(1e-9).log10().floor();
        let high = to.max(1e-9).log10().ceil();
        Axis { from: 10f64.powf(low), to: 10f64.powf(high.max(low + 1.0)), log: true }
    }

    /// A logarithmic axis with exact ends.
    pub fn log_exact(from: f64, to: f64) -> Axis {
        Axis { from, to, log: true }
    }

    /// Position of `value`, from 0 to 1; values outside are clamped.
    fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.from).log10() - self.from.log10()) / (self.to.log10() - self.from.log10())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    /// Tick values: powers of ten, or steps of 1, 2 or 5 times one.
    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (low, high) = (self.from.log10().ceil() as i32, self.to.log10().floor() as i32);
            return (low..=high).map(|power| 10f64.powi(power)).collect();
        }
        let rough = (self.to - self.from) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// A plot under construction.
pub struct Plot {
    x: Axis,
    y: Axis,
    width: f64,
    height: f64,
    body: String,
    label: String,
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 38.0;

impl Plot {
    /// An empty plot of a size in pixels. `label` describes it for those who cannot see it.
    pub fn new((width, height): (f64, f64), x: Axis, y: Axis, label: &str) -> Plot {
        Plot { x, y, width, height, body: String::new(), label: label.to_owned() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (w, h) = (self.width - LEFT - RIGHT, self.height - TOP - BOTTOM);
        (LEFT + self.x.place(x) * w, TOP + (1.0 - self.y.place(y)) * h)
    }

    /// Grid, tick labels and axis titles.
    pub fn axes(
        &mut self,
        x_title: &str,
        y_title: &str,
        x_text: fn(f64) -> String,
        y_text: fn(f64) -> String,
    ) {
        let (bottom, right) = (self.height - BOTTOM, self.width - RIGHT);
        for tick in self.x.ticks() {
            let (x, _) = self.at(tick, self.y.from);
            let text = escape(&x_text(tick));
            put(&mut self.body, format_args!("<path class=grid d='M{x:.1} {TOP}V{bottom}'/>"));
            let y = bottom + 14.0;
            put(&mut self.body, format_args!("<text x={x:.1} y={y} text-anchor=middle>{text}</text>"));
        }
        for tick in self.y.ticks() {
            let (_, y) = self.at(self.x.from, tick);
            let text = escape(&y_text(tick));
            put(&mut self.body, format_args!("<path class=grid d='M{LEFT} {y:.1}H{right}'/>"));
            let (x, y) = (LEFT - 6.0, y + 3.5);
            put(&mut self.body, format_args!("<text x={x} y={y:.1} text-anchor=end>{text}</text>"));
        }
        let (middle, low) = ((LEFT + right) / 2.0, self.height - 6.0);
        let (x_title, y_title) = (escape(x_title), escape(y_title));
        put(
            &mut self.body,
            format_args!("<text class=title x={middle} y={low} text-anchor=middle>{x_title}</text>"),
        );
        let centre = (TOP + bottom) / 2.0;
        put(
            &mut self.body,
            format_args!(
                "<text class=title transform='translate(11 {centre})rotate(-90)' text-anchor=middle>{y_title}</text>"
            ),
        );
        put(&mut self.body, format_args!("<path class=axis d='M{LEFT} {TOP}V{bottom}H{right}'/>"));
    }

    fn path(&self, points: &[(f64, f64)], steps: bool) -> String {
        let mut path = String::new();
        let mut last_y = None;
        for &(x, y) in points {
            let (x, y) = self.at(x, y);
            match last_y {
                None => put(&mut path, format_args!("M{x:.1} {y:.1}")),
                Some(_) if steps => put(&mut path, format_args!("H{x:.1}V{y:.1}")),
                Some(_) => put(&mut path, format_args!("L{x:.1} {y:.1}")),
            }
            last_y = Some(y);
        }
        path
    }

    /// A line through points, in the colour of the class. `steps` keeps each value until the next.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)], steps: bool) {
        let path = self.path(points, steps);
        put(&mut self.body, format_args!("<path class='line {class}' d='{path}'/>"));
    }

    /// The area between two lines with the same x values.
    pub fn area(&mut self, class: &str, low: &[(f64, f64)], high: &[(f64, f64)]) {
        if high.is_empty() {
            return;
        }
        let mut path = self.path(high, false);
        for &(x, y) in low.iter().rev() {
            let (x, y) = self.at(x, y);
            put(&mut path, format_args!("L{x:.1} {y:.1}"));
        }
        put(&mut self.body, format_args!("<path class='area {class}' d='{path}Z'/>"));
    }

    /// A dashed horizontal line at `y`, labelled at its start.
    pub fn level(&mut self, y: f64, text: &str) {
        let (left, at) = self.at(self.x.from, y);
        let right = self.width - RIGHT;
        let (tx, ty, text) = (left + 5.0, at - 4.0, escape(text));
        put(&mut self.body, format_args!("<path class=mark d='M{left:.1} {at:.1}H{right}'/>"));
        put(&mut self.body, format_args!("<text class=note x={tx} y={ty:.1}>{text}</text>"));
    }

    /// A dashed vertical line at `x`, labelled at its top.
    pub fn moment(&mut self, x: f64, text: &str) {
        let (at, bottom) = self.at(x, self.y.from);
        let (tx, ty, text) = (at + 4.0, TOP + 10.0, escape(text));
        put(&mut self.body, format_args!("<path class=mark d='M{at:.1} {TOP}V{bottom:.1}'/>"));
        put(&mut self.body, format_args!("<text class=note x={tx:.1} y={ty}>{text}</text>"));
    }

    /// Shades the range from one x to another.
    pub fn shade(&mut self, from: f64, to: f64) {
        let ((a, top), (b, bottom)) = (self.at(from, self.y.to), self.at(to, self.y.from));
        let (w, h) = (b - a, bottom - top);
        put(
            &mut self.body,
            format_args!("<rect class=shade x={a:.1} y={top:.1} width={w:.1} height={h:.1} />"),
        );
    }

    /// The finished element.
    pub fn finish(self) -> String {
        let (w, h, label) = (self.width, self.height, escape(&self.label));
        format!("<svg viewBox='0 0 {w} {h}' role=img aria-label='{label}'>{}</svg>", self.body)
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes everything");
}

/// Escapes text for HTML elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_place_their_ends_and_clamp_what_lies_outside() {
        let linear = Axis::linear(0.0, 10.0);
        assert_eq!((linear.place(0.0), linear.place(5.0), linear.place(99.0)), (0.0, 0.5, 1.0));
        let log = Axis::log(20.0, 7_000.0);
        assert_eq!((log.from, log.to), (10.0, 10_000.0));
        assert!((log.place(100.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(log.place(0.0), 0.0);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Axis::linear(0.0, 10.0).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Axis::log(1.0, 1_000.0).ticks(), [1.0, 10.0, 100.0, 1_000.0]);
        for to in [0.3, 7.0, 12.5, 99.0, 1234.0] {
            assert!((3..=7).contains(&Axis::linear(0.0, to).ticks().len()), "{to}");
        }
        // An empty range must neither loop nor divide by zero.
        assert!(!Axis::linear(3.0, 3.0).ticks().is_empty());
        assert!(!Axis::log(5.0, 5.0).ticks().is_empty());
    }

    #[test]
    fn text_is_escaped() {
        let mut plot = Plot::new((100.0, 100.0), Axis::linear(0.0, 1.0), Axis::linear(0.0, 1.0), "a'b");
        plot.level(0.5, "<script>");
        let svg = plot.finish();
        assert!(svg.contains("a&#39;b") && svg.contains("&lt;script&gt;") && !svg.contains("<script>"));
    }
}
