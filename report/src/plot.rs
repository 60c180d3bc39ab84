//! Plots of lines and areas over two axes.

use crate::colour::Colour;
use crate::html::{escape, hover};
use crate::scale::Scale;
use crate::{put, text};

/// Width and height in pixels of a plot that has half of a wide page.
pub const WIDE: (f64, f64) = (520.0, 280.0);
/// The same of one that has a third of it.
pub const NARROW: (f64, f64) = (360.0, 240.0);

/// Space around the axes, in pixels.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// x and y, in the units of the axes.
pub type Point = (f64, f64);

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity.
    pub title: String,
    /// Its unit; empty if it has none or the marks name it.
    pub unit: String,
    /// Scale of its values.
    pub scale: Scale,
    /// Text of a mark.
    pub text: fn(f64) -> String,
}

impl Axis {
    /// An axis whose marks are numbers.
    pub fn new(title: impl Into<String>, unit: impl Into<String>, scale: Scale) -> Axis {
        Axis { title: title.into(), unit: unit.into(), scale, text: |value| text::number(value, 4) }
    }

    /// The same with other text at its marks.
    pub fn marked(self, text: fn(f64) -> String) -> Axis {
        Axis { text, ..self }
    }

    fn heading(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        escape(&format!("{}{unit}{}", self.title, if self.scale.is_log() { " (log)" } else { "" }))
    }

    /// A value with its unit.
    fn value(&self, value: f64) -> String {
        let number = text::number(value, 4);
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineStyle {
    /// From point to point.
    Plain,
    /// The same, thin: one of many.
    Thin,
    /// Each value lasts until the next.
    Steps,
    /// From point to point, with a dot at each that shows its value.
    Dots,
}

/// A line through points.
#[derive(Clone, Debug)]
pub struct Line {
    /// Text that a pointer over it shows.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub style: LineStyle,
    /// Points in the order of x.
    pub points: Vec<Point>,
    /// The attribute `data-row`, by which a page's script shows and hides it.
    pub row: Option<usize>,
}

/// A part of a plot.
#[derive(Clone, Debug)]
pub enum Layer {
    /// A line.
    Line(Line),
    /// The area between two lines with the same x.
    Area {
        /// Text that a pointer over it shows.
        name: String,
        /// Its colour.
        colour: Colour,
        /// The lower line.
        low: Vec<Point>,
        /// The upper line.
        high: Vec<Point>,
    },
    /// A shade between two x.
    Shade(f64, f64),
    /// A dashed line at a y, and the text at its start.
    Level(f64, &'static str),
    /// A dashed line at an x, and the text at its top.
    Moment(f64, &'static str),
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The plot in words, for readers that can't see it.
    pub label: String,
    /// Width and height in pixels; a page scales it.
    pub size: (f64, f64),
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its parts, each above those before it.
    pub layers: Vec<Layer>,
}

impl Plot {
    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let (width, height) = self.size;
        let mut out =
            format!("<svg viewBox='0 0 {width} {height}' role=img aria-label='{}'>", escape(&self.label));
        self.grid(&mut out);
        self.layers.iter().for_each(|layer| self.layer(layer, &mut out));
        put(
            &mut out,
            format_args!("<path class=axis d='M{LEFT} {TOP}V{}H{}'/></svg>", self.bottom(), self.right()),
        );
        out
    }

    fn bottom(&self) -> f64 {
        self.size.1 - BOTTOM
    }

    fn right(&self) -> f64 {
        self.size.0 - RIGHT
    }

    /// Position of a point, in pixels.
    fn at(&self, (x, y): Point) -> Point {
        let (width, height) = (self.right() - LEFT, self.bottom() - TOP);
        (LEFT + self.x.scale.place(x) * width, TOP + (1.0 - self.y.scale.place(y)) * height)
    }

    /// Marks with lines across, and the axes' titles.
    fn grid(&self, out: &mut String) {
        let (bottom, right) = (self.bottom(), self.right());
        for tick in self.x.scale.ticks() {
            let (x, text) = (self.at((tick, self.y.scale.from())).0, escape(&(self.x.text)(tick)));
            put(out, format_args!("<path class=grid d='M{x:.1} {TOP}V{bottom}'/>"));
            put(out, format_args!("<text x={x:.1} y={} text-anchor=middle>{text}</text>", bottom + 14.0));
        }
        for tick in self.y.scale.ticks() {
            let (y, text) = (self.at((self.x.scale.from(), tick)).1, escape(&(self.y.text)(tick)));
            put(out, format_args!("<path class=grid d='M{LEFT} {y:.1}H{right}'/>"));
            put(out, format_args!("<text x={} y={:.1} text-anchor=end>{text}</text>", LEFT - 6.0, y + 3.5));
        }
        let (middle, low) = ((LEFT + right) / 2.0, self.size.1 - 6.0);
        put(out, format_args!("<text x={middle} y={low} text-anchor=middle>{}</text>", self.x.heading()));
        let centre = (TOP + bottom) / 2.0;
        put(
            out,
            format_args!(
                "<text transform='translate(12 {centre})rotate(-90)' text-anchor=middle>{}</text>",
                self.y.heading()
            ),
        );
    }

    fn layer(&self, layer: &Layer, out: &mut String) {
        match layer {
            Layer::Line(line) => self.line(line, out),
            Layer::Area { name, colour, low, high } => {
                let mut path = self.path(high, false);
                for point in low.iter().rev() {
                    let (x, y) = self.at(*point);
                    put(&mut path, format_args!("L{x:.1} {y:.1}"));
                }
                if !high.is_empty() {
                    let (class, title) = (colour.class(), hover(name));
                    put(out, format_args!("<path class='area {class}' d='{path}Z'>{title}</path>"));
                }
            }
            Layer::Shade(from, to) => {
                let (left, right) = (self.at((*from, 0.0)).0, self.at((*to, 0.0)).0);
                let (width, height) = (right - left, self.bottom() - TOP);
                put(
                    out,
                    format_args!("<rect class=shade x={left:.1} y={TOP} width={width:.1} height={height} />"),
                );
            }
            Layer::Level(y, text) => {
                let y = self.at((self.x.scale.from(), *y)).1;
                put(out, format_args!("<path class=mark d='M{LEFT} {y:.1}H{}'/>", self.right()));
                note(LEFT + 5.0, y - 4.0, text, out);
            }
            Layer::Moment(x, text) => {
                let x = self.at((*x, self.y.scale.from())).0;
                put(out, format_args!("<path class=mark d='M{x:.1} {TOP}V{}'/>", self.bottom()));
                note(x + 4.0, TOP + 10.0, text, out);
            }
        }
    }

    fn line(&self, line: &Line, out: &mut String) {
        let (path, title) = (self.path(&line.points, line.style == LineStyle::Steps), hover(&line.name));
        let row = line.row.map_or(String::new(), |row| format!(" data-row={row}"));
        put(out, format_args!("<g class='{}'{row}>", line.colour.class()));
        let class = if line.style == LineStyle::Thin { "'line thin'" } else { "line" };
        put(out, format_args!("<path class={class} d='{path}'>{title}</path>"));
        if line.style == LineStyle::Dots {
            for point in &line.points {
                let (x, y) = self.at(*point);
                let value = format!("{}: {} at {}", line.name, self.y.value(point.1), self.x.value(point.0));
                put(
                    out,
                    format_args!("<circle class=dot cx={x:.1} cy={y:.1} r=3.5>{}</circle>", hover(&value)),
                );
            }
        }
        out.push_str("</g>");
    }

    fn path(&self, points: &[Point], steps: bool) -> String {
        let mut path = String::new();
        for point in points {
            let (x, y) = self.at(*point);
            match (path.is_empty(), steps) {
                (true, _) => put(&mut path, format_args!("M{x:.1} {y:.1}")),
                (false, true) => put(&mut path, format_args!("H{x:.1}V{y:.1}")),
                (false, false) => put(&mut path, format_args!("L{x:.1} {y:.1}")),
            }
        }
        path
    }
}

/// Text beside a dashed line.
fn note(x: f64, y: f64, text: &str, out: &mut String) {
    if !text.is_empty() {
        put(out, format_args!("<text class=note x={x:.1} y={y:.1}>{}</text>", escape(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(layers: Vec<Layer>) -> Plot {
        let axis = |title: &str, unit: &str| Axis::new(title, unit, Scale::linear(0.0, 10.0));
        Plot {
            label: "a'b".to_owned(),
            size: (100.0 + LEFT + RIGHT, 100.0 + TOP + BOTTOM),
            x: axis("hosts", ""),
            y: axis("latency", "µs"),
            layers,
        }
    }

    fn line(style: LineStyle) -> Line {
        let points = vec![(0.0, 0.0), (5.0, 10.0)];
        Line { name: "<script>".to_owned(), colour: Colour::Series(13), style, points, row: Some(4) }
    }

    #[test]
    fn lines_go_through_their_points() {
        let svg = |style| plot(vec![Layer::Line(line(style))]).svg();
        let (low, high) = (100.0 + TOP, TOP);
        assert!(svg(LineStyle::Plain).contains(&format!("d='M58.0 {low:.1}L108.0 {high:.1}'")));
        assert!(svg(LineStyle::Steps).contains(&format!("d='M58.0 {low:.1}H108.0V{high:.1}'")));
        assert!(
            svg(LineStyle::Thin).contains("<g class='series-3 again' data-row=4><path class='line thin'")
        );
        assert!(svg(LineStyle::Plain).contains("'><title>&lt;script&gt;</title></path>"));
        let dots = svg(LineStyle::Dots);
        assert_eq!(dots.matches("<circle").count(), 2);
        assert!(dots.contains("<title>&lt;script&gt;: 10 µs at 5</title>"), "{dots}");
    }

    #[test]
    fn axes_have_titles_and_units() {
        let mut plot = plot(Vec::new());
        assert!(plot.svg().contains(">hosts</text>") && plot.svg().contains(">latency, µs</text>"));
        plot.y.scale = Scale::log(1.0, 100.0);
        assert!(plot.svg().contains(">latency, µs (log)</text>"));
    }

    #[test]
    fn text_is_escaped_and_elements_end() {
        let area = |high: Vec<Point>| Layer::Area {
            name: "h<2".to_owned(),
            colour: Colour::Host(9),
            low: high.iter().map(|point| (point.0, 0.0)).collect(),
            high,
        };
        let layers = vec![
            Layer::Shade(2.0, 3.0),
            area(vec![(0.0, 3.0), (10.0, 5.0)]),
            area(Vec::new()),
            Layer::Line(line(LineStyle::Dots)),
            Layer::Level(5.0, "16 <frames>"),
            Layer::Moment(5.0, "kill"),
        ];
        let svg = plot(layers).svg();
        assert!(svg.contains("a&#39;b") && svg.contains("16 &lt;frames&gt;") && !svg.contains("<script>"));
        assert!(svg.contains("class='area host-1'") && svg.matches("class='area").count() == 1, "{svg}");
        for element in ["svg", "g", "path", "title", "circle", "text"] {
            let tag = format!("<{element}");
            let starts = svg.split(&tag).skip(1).filter(|rest| rest.starts_with([' ', '>']));
            let is_open = |rest: &&str| !rest.split('>').next().unwrap_or_default().ends_with('/');
            let ends = svg.matches(&format!("</{element}>")).count();
            assert_eq!(starts.filter(is_open).count(), ends, "<{element}>");
        }
    }
}
