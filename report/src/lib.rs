//! Readable results: figures as text, and self-contained HTML pages with plots.
//!
//! A [`Plot`] or [`Bars`] describes a plot; its method `svg` makes the element of a page. Plots have no script and no colour
//! of their own: [`STYLE`] has the colours, dark or light as the reader's system is. A pointer over a part shows its name or its
//! value. [`document`] makes the page.

mod bars;
mod colour;
mod html;
mod plot;
mod scale;
pub mod text;

pub use bars::{Bar, Bars};
pub use colour::{Colour, HOST_COLOURS, SERIES_COLOURS};
pub use html::{Page, attribute, document, escape, figure, legend};
pub use plot::{Axis, Layer, Line, LineStyle, NARROW, Plot, Point, WIDE};
pub use scale::Scale;

/// Style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// Appends to text.
pub fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes everything.
    _ = std::fmt::Write::write_fmt(out, text);
}
