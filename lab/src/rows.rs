//! Tables of text, no wider than the terminal.
//!
//! Columns of text wrap between words; figures never do, and their thousands are separated. Where all columns of figures don't fit side by side, the rest of them
//! follow in a second table with the same first columns.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use p4rack_report::text;
use std::io::IsTerminal;

/// Width of tables in characters where standard output is no terminal, and no COLUMNS says otherwise.
const WIDTH: usize = 160;
/// Characters that a wrapped column of text has at least.
const TEXT_MIN: usize = 14;
/// Characters between two columns.
const GAP: u16 = 2;

/// The width in characters that tables on standard output may have: COLUMNS, the terminal's, or 160.
pub fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        let output = std::io::stdout();
        let size = output.is_terminal().then(|| terminal_size::terminal_size_of(&output)).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    said.or_else(terminal).filter(|width| *width > 0).unwrap_or(WIDTH)
}

/// A table of text under a header.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    header: Vec<String>,
    /// Whether a column is one of figures whatever its cells look like.
    figures: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// A table with these columns. A name that begins with `>` is of a column of figures, whose thousands are separated. Columns of
    /// bare numbers are figures, too, but may be identifiers: they stay as they are.
    pub fn new<S: AsRef<str>>(header: &[S]) -> Rows {
        let names = || header.iter().map(AsRef::as_ref);
        Rows {
            header: names().map(|name| name.strip_prefix('>').unwrap_or(name).to_owned()).collect(),
            figures: names().map(|name| name.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, mut row: Vec<String>) {
        let figures = row.iter_mut().zip(&self.figures).filter(|(_, is_figure)| **is_figure);
        figures.for_each(|(cell, _)| *cell = text::thousands(cell));
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, as wide as standard output takes it.
    pub fn text(&self) -> String {
        self.within(width())
    }

    /// The table as lines of at most `width` characters, if its longest words permit.
    pub fn within(&self, width: usize) -> String {
        let columns: Vec<Column> = (0..self.header.len()).map(|nth| self.column(nth)).collect();
        let leading = columns.iter().take_while(|column| !column.is_figures).count();
        let room = |shown: &[usize]| {
            let gaps = usize::from(GAP) * shown.len().saturating_sub(1);
            shown.iter().map(|nth| columns[*nth].least).sum::<usize>() + gaps
        };
        let mut tables: Vec<Vec<usize>> = vec![(0..leading).collect()];
        for nth in leading..columns.len() {
            let last = tables.last_mut().expect("there is always one");
            last.push(nth);
            // Each table has at least one column of its own.
            if room(last) > width && last.len() > leading + 1 {
                last.pop();
                tables.push((0..leading).chain([nth]).collect());
            }
        }
        let texts: Vec<String> = tables.iter().map(|shown| self.part(shown, &columns, width)).collect();
        texts.join("\n")
    }

    /// Some of its columns.
    fn part(&self, shown: &[usize], columns: &[Column], width: usize) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width.try_into().unwrap_or(u16::MAX));
        let cells = |row: &[String]| -> Vec<Cell> {
            let cell = |nth: &usize| {
                let right = if columns[*nth].is_figures { CellAlignment::Right } else { CellAlignment::Left };
                Cell::new(row.get(*nth).map_or("", String::as_str)).set_alignment(right)
            };
            shown.iter().map(cell).collect()
        };
        table.set_header(cells(&self.header));
        self.rows.iter().for_each(|row| _ = table.add_row(cells(row)));
        let natural: usize = shown.iter().map(|nth| columns[*nth].natural).sum();
        let fits = natural + usize::from(GAP) * shown.len().saturating_sub(1) <= width;
        let widths = if fits { Vec::new() } else { least_widths(shown, columns, width) };
        for (position, nth) in shown.iter().enumerate() {
            let Some(column) = table.column_mut(position) else { continue };
            let gap = if position + 1 == shown.len() { 0 } else { GAP };
            column.set_padding((0, gap));
            let of = &columns[*nth];
            let chars = widths.get(position).copied().unwrap_or(of.natural);
            // The gap is included.
            let width = Width::Fixed(u16::try_from(chars.max(1)).unwrap_or(u16::MAX).saturating_add(gap));
            column.set_constraint(match fits || of.is_figures {
                true => ColumnConstraint::Absolute(width),
                false => ColumnConstraint::LowerBoundary(width),
            });
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
        lines.collect()
    }

    fn column(&self, nth: usize) -> Column {
        let cells = || self.rows.iter().map(|row| row.get(nth).map_or("", String::as_str));
        let header = self.header[nth].as_str();
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(chars).max().unwrap_or(0);
        let longest_cell = longest(&mut cells());
        let is_figures = self.figures[nth] || (!self.rows.is_empty() && cells().all(is_number));
        let natural = longest_cell.max(chars(header));
        let least = match is_figures {
            true => longest_cell.max(longest(&mut header.split(' '))),
            false => natural.min(TEXT_MIN),
        };
        let words = &mut cells().chain([header]).flat_map(|text| text.split(' '));
        let word = if is_figures { least } else { longest(words).max(least) };
        Column { is_figures, natural, least, word }
    }
}

/// A table that is printed row by row while the rows come.
#[derive(Clone, Debug)]
pub struct Live {
    widest: Rows,
}

impl Live {
    /// A table with these columns, see [`Rows::new`], as wide as the cells of `widest`; longer cells shift the rest of their line.
    pub fn new(header: &[&str], widest: &[&str]) -> Live {
        let mut rows = Rows::new(header);
        rows.push(widest.iter().map(|cell| (*cell).to_owned()).collect());
        Live { widest: rows }
    }

    /// Its first line, without a line break.
    pub fn header(&self) -> String {
        self.widest.within(usize::MAX).lines().next().unwrap_or_default().to_owned()
    }

    /// A row as a line, without a line break.
    pub fn line(&self, row: Vec<String>) -> String {
        let mut rows = self.widest.clone();
        rows.push(row);
        rows.within(usize::MAX).lines().last().unwrap_or_default().to_owned()
    }
}

/// Width of a column, in characters.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Right-aligned, without wrapping.
    is_figures: bool,
    /// Without wrapping.
    natural: usize,
    /// As narrow as it may be.
    least: usize,
    /// As narrow as it may be without breaking words.
    word: usize,
}

/// Characters that each column has at least, so that all fit: words stay whole where possible, those of the first column longest.
fn least_widths(shown: &[usize], columns: &[Column], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = shown.iter().map(|nth| columns[*nth].word).collect();
    let gaps = usize::from(GAP) * shown.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let is_spare = |position: &usize| widths[*position] > columns[shown[*position]].least;
        let widest = (1..shown.len()).filter(is_spare).max_by_key(|position| widths[*position]);
        let Some(position) = widest.or((0..1).find(is_spare)) else { break };
        widths[position] -= 1;
    }
    widths
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn is_number(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '\u{202f}');
    text == "–"
        || (text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(is_part)
            && text.matches('.').count() < 2)
}

#[cfg(test)]
mod tests {
    use super::{Live, Rows};

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let mut rows = Rows::new(&["port", "name", ">takes"]);
        rows.push(row(&["1", "a", "3 µs"]));
        rows.push(row(&["12345", "b", "20 µs"]));
        assert_eq!(rows.within(80), " port  name  takes\n    1  a      3 µs\n12345  b     20 µs\n");
    }

    #[test]
    fn thousands_of_figures_are_separated_and_those_of_identifiers_are_not() {
        let mut rows = Rows::new(&["id", ">frames", ">Mb/s"]);
        rows.push(row(&["33554432", "1234567", "1234.5"]));
        let text = rows.within(80);
        assert!(text.ends_with("\n33554432  1\u{202f}234\u{202f}567  1\u{202f}234.5\n"), "{text}");
    }

    #[test]
    fn addresses_are_no_numbers() {
        let mut rows = Rows::new(&["ip", "name"]);
        rows.push(row(&["10.0.0.1", "h1"]));
        rows.push(row(&["10.0.0.22", "h2"]));
        assert_eq!(rows.within(80), "ip         name\n10.0.0.1   h1\n10.0.0.22  h2\n");
    }

    #[test]
    fn text_wraps_between_words() {
        let mut rows = Rows::new(&["table", "actions"]);
        rows.push(row(&["ingress.forward", "set_port drop count multicast mirror"]));
        let text = rows.within(34);
        assert_eq!(
            text,
            "table            actions\ningress.forward  set_port drop\n                 count multicast\n                 mirror\n"
        );
    }

    #[test]
    fn words_break_last_in_the_first_column() {
        let mut rows = Rows::new(&["table", "keys", "actions"]);
        rows.push(row(&[
            "Ingress.guard_of_sources",
            "standard_metadata.ingress_port:9 exact",
            "drop, NoAction",
        ]));
        let text = rows.within(60);
        assert!(text.contains("\nIngress.guard_of_sources  "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let text = rows.within(80);
        assert!(text.contains("standard_metadata.ingress_port:9"), "{text}");
    }

    /// A figure in two lines would be read as two.
    #[test]
    fn figures_never_wrap_and_columns_that_do_not_fit_follow_below() {
        let mut rows = Rows::new(&["", ">one", ">two", ">three"]);
        rows.push(row(&["frames lost in the fabric", "146 799", "2 626 000", "12 ms"]));
        rows.push(row(&["goodput", "97.4 Mb/s", "91.0 Mb/s", "92.8 Mb/s"]));
        for width in [20, 30, 40, 50, 60] {
            let text = rows.within(width);
            for figure in ["146 799", "2 626 000", "12 ms", "97.4 Mb/s", "91.0 Mb/s", "92.8 Mb/s"] {
                assert_eq!(text.matches(figure).count(), 1, "{width}: {text}");
            }
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width.max(25)), "{width}: {text}");
        }
        assert_eq!(rows.within(40).lines().filter(|line| line.contains("goodput")).count(), 2);
        assert_eq!(rows.within(80).lines().count(), 3);
    }

    #[test]
    fn lines_of_a_growing_table_stand_below_its_header() {
        let live = Live::new(&[">seconds", "unit", ">count"], &["1000.0", "entries", "10000000"]);
        assert_eq!(live.header(), "seconds  unit          count");
        assert_eq!(live.line(row(&["0.5", "a", "17"])), "    0.5  a                17");
        let line = live.line(row(&["120.0", "entries", "1234567"]));
        assert_eq!(line, "  120.0  entries   1\u{202f}234\u{202f}567");
        assert_eq!(
            live.line(row(&["1.0", "longer than all", "1"])).trim_end(),
            "    1.0  longer than all           1"
        );
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        assert_eq!(Rows::new(&["a", "b"]).within(80), "a  b\n");
        assert_eq!(Rows::new::<&str>(&[]).within(80), "");
    }
}
