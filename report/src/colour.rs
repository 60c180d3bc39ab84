//! Colours, by their classes in the style sheet.

/// Colours of series in the style sheet. Further series reuse them, dashed.
pub const SERIES_COLOURS: usize = 10;
/// Colours of hosts in the style sheet, unlike those of the first series. Further hosts reuse them.
pub const HOST_COLOURS: usize = 8;

/// A colour of the style sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Colour {
    /// Of a scheme, or of a row of a table.
    Series(usize),
    /// Of a host.
    Host(usize),
}

impl Colour {
    /// Its classes.
    pub fn class(self) -> String {
        match self {
            Colour::Series(number) if number < SERIES_COLOURS => format!("series-{number}"),
            Colour::Series(number) => format!("series-{} again", number % SERIES_COLOURS),
            Colour::Host(number) => format!("host-{}", number % HOST_COLOURS),
        }
    }
}
