//! Horizontal bars, one per line.

use crate::colour::Colour;
use crate::html::{escape, hover};
use crate::scale::Scale;
use crate::{put, text};

/// Pixels: the whole width, the names at the left, the values at the right, a line's height.
const WIDTH: f64 = 520.0;
const LEFT: f64 = 200.0;
const RIGHT: f64 = 58.0;
const LINE: f64 = 20.0;
/// Characters of a name that have room; a pointer over it shows the rest.
const NAME_CHARS: usize = 34;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its name in the plot.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its length.
    pub value: f64,
    /// The value of another source: a stroke across the bar.
    pub mark: Option<f64>,
}

/// Bars from 0 on.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The quantity.
    pub title: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// Source of the marks, such as "paper".
    pub source: &'static str,
    /// Bars from the top on.
    pub bars: Vec<Bar>,
}

impl Bars {
    /// Title, unit and the meaning of the strokes.
    pub fn caption(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let marks = match self.bars.iter().any(|bar| bar.mark.is_some()) {
            true => format!("; strokes: the {}’s", self.source),
            false => String::new(),
        };
        format!("{}{unit}{marks}", self.title)
    }

    /// The bars as an SVG element.
    pub fn svg(&self) -> String {
        let height = LINE * self.bars.len() as f64 + 12.0;
        let scale = Scale::linear_of(self.bars.iter().flat_map(|bar| [bar.value, bar.mark.unwrap_or(0.0)]));
        let says: Vec<String> =
            self.bars.iter().map(|bar| format!("{}: {}", bar.name, text::number(bar.value, 4))).collect();
        let label = escape(&format!("{}. {}", self.caption(), says.join("; ")));
        let mut out = format!("<svg viewBox='0 0 {WIDTH} {height}' role=img aria-label='{label}'>");
        for (nth, bar) in self.bars.iter().enumerate() {
            self.bar(bar, 6.0 + LINE * nth as f64, &scale, &mut out);
        }
        put(&mut out, format_args!("<path class=axis d='M{LEFT} 2V{}'/></svg>", height - 4.0));
        out
    }

    fn bar(&self, bar: &Bar, y: f64, scale: &Scale, out: &mut String) {
        let x = |value: f64| LEFT + scale.place(value) * (WIDTH - LEFT - RIGHT);
        let value = |value: f64| format!("{} {}", text::number(value, 4), self.unit).trim_end().to_owned();
        let mut says = format!("{}: {}", bar.name, value(bar.value));
        if let Some(mark) = bar.mark {
            says += &format!("; {} {}", self.source, value(mark));
        }
        let (title, base) = (hover(&says), y + 11.0);
        put(
            out,
            format_args!(
                "<text x={} y={base} text-anchor=end>{}{}</text>",
                LEFT - 6.0,
                hover(&bar.name),
                escape(&clipped(&bar.name))
            ),
        );
        let (class, width) = (bar.colour.class(), x(bar.value) - LEFT);
        put(
            out,
            format_args!(
                "<rect class='bar {class}' x={LEFT} y={y} width={width:.1} height=14>{title}</rect>"
            ),
        );
        if let Some(mark) = bar.mark {
            put(out, format_args!("<path class=mark d='M{:.1} {}v18'>{title}</path>", x(mark), y - 2.0));
        }
        let end = x(bar.value.max(bar.mark.unwrap_or(0.0))) + 5.0;
        put(out, format_args!("<text x={end:.1} y={base}>{}</text>", text::number(bar.value, 4)));
    }
}

/// A name as far as there is room for it.
fn clipped(name: &str) -> String {
    match name.chars().count() > NAME_CHARS {
        true => name.chars().take(NAME_CHARS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(mark: Option<f64>) -> Bars {
        let bar =
            |name: &str, value, mark| Bar { name: name.to_owned(), colour: Colour::Series(0), value, mark };
        Bars {
            title: "Links".to_owned(),
            unit: "%".to_owned(),
            source: "paper",
            bars: vec![bar("h<1", 50.0, mark), bar(&"long ".repeat(20), 25.0, None)],
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg = bars(None).svg();
        let width = |share: f64| format!("width={:.1} ", share * (WIDTH - LEFT - RIGHT));
        assert!(svg.contains(&width(1.0)) && svg.contains(&width(0.5)), "{svg}");
        assert!(svg.contains("<title>h&lt;1: 50 %</title>") && !svg.contains("class=mark"), "{svg}");
        assert_eq!(bars(None).caption(), "Links, %");
    }

    #[test]
    fn marks_of_another_source_are_named() {
        let svg = bars(Some(40.0)).svg();
        assert!(svg.contains("h&lt;1: 50 %; paper 40 %") && svg.contains("class=mark"), "{svg}");
        assert_eq!(bars(Some(40.0)).caption(), "Links, %; strokes: the paper’s");
    }

    #[test]
    fn long_names_are_clipped_and_shown_whole_by_a_pointer() {
        let svg = bars(None).svg();
        assert!(
            svg.contains("long long long long long long lon…<") && svg.contains(&"long ".repeat(20)),
            "{svg}"
        );
    }
}
