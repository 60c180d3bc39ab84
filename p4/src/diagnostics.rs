//! Errors and warnings with the source text they point at, rendered for people and as JSON.
//!
//! ```text
//! error: `hdr` has no field `ttll`
//!   --> router.p4:57:23
//!    |
//! 57 |         hdr.ipv4.ttll = hdr.ipv4.ttl - 1;
//!    |                  ^^^^ no such field
//!    |
//!    = help: there is a field `ttl`
//! ```

use crate::diag::{Diagnostic, Severity};
use crate::source::{Location, SourceMap};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// Errors and warnings, with the source text they refer to.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// In source order, if built by [`Diagnostics::new`].
    pub items: Vec<Diagnostic>,
    sources: Arc<SourceMap>,
}

impl Diagnostics {
    /// Sorts the diagnostics by position and drops duplicates.
    pub fn new(sources: Arc<SourceMap>, mut items: Vec<Diagnostic>) -> Diagnostics {
        items.sort_by(|a, b| (a.span.lo, a.severity, &a.message).cmp(&(b.span.lo, b.severity, &b.message)));
        items.dedup();
        Diagnostics { items, sources }
    }

    /// The source text they refer to.
    pub fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    /// Whether there is no diagnostic.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Number of diagnostics.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|d| d.severity == Severity::Error)
    }

    /// All diagnostics, each with its source line; `color` adds terminal colours.
    pub fn render(&self, color: bool) -> String {
        let paint = Paint { color };
        let mut out = String::new();
        for diagnostic in &self.items {
            render_one(&mut out, diagnostic, &self.sources, paint);
            out.push('\n');
        }
        let count = |severity| self.items.iter().filter(|d| d.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if errors + warnings > 1 {
            let part = |n: usize, what: &str| match n {
                0 => None,
                1 => Some(format!("1 {what}")),
                n => Some(format!("{n} {what}s")),
            };
            let parts: Vec<_> =
                [part(errors, "error"), part(warnings, "warning")].into_iter().flatten().collect();
            out.push_str(&parts.join(", "));
            out.push('\n');
        }
        out
    }

    /// A JSON array of `{severity, message, file, line, column, end_column, labels, notes, help}`.
    pub fn to_json(&self) -> String {
        let strings = |texts: &[String]| texts.iter().map(|t| json_string(t)).collect::<Vec<_>>().join(",");
        let items: Vec<String> = self
            .items
            .iter()
            .map(|d| {
                let labels: Vec<String> = d
                    .labels
                    .iter()
                    .map(|l| {
                        format!(
                            "{{{},\"text\":{}}}",
                            json_place(&self.sources.locate(l.span)),
                            json_string(&l.text)
                        )
                    })
                    .collect();
                format!(
                    "{{\"severity\":\"{}\",\"message\":{},{},\"labels\":[{}],\"notes\":[{}],\"help\":[{}]}}",
                    d.severity.name(),
                    json_string(&d.message),
                    json_place(&self.sources.locate(d.span)),
                    labels.join(","),
                    strings(&d.notes),
                    strings(&d.help),
                )
            })
            .collect();
        format!("[{}]", items.join(","))
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

fn json_place(at: &Location<'_>) -> String {
    format!(
        "\"file\":{},\"line\":{},\"column\":{},\"end_column\":{}",
        json_string(at.file),
        at.line,
        at.column,
        at.end_column
    )
}

fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Applies terminal colours, or none.
#[derive(Clone, Copy)]
struct Paint {
    color: bool,
}

impl Paint {
    fn apply(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    fn severity(self, severity: Severity, text: &str) -> String {
        self.apply(if severity == Severity::Error { "1;31" } else { "1;33" }, text)
    }
    fn bold(self, text: &str) -> String {
        self.apply("1", text)
    }
    fn frame(self, text: &str) -> String {
        self.apply("1;34", text)
    }
}

/// A marked piece of a source line.
struct Mark<'a> {
    at: Location<'a>,
    text: &'a str,
    primary: bool,
}

fn render_one(out: &mut String, d: &Diagnostic, sources: &SourceMap, paint: Paint) {
    let title = format!("{}: ", d.severity.name());
    push_line(out, &format!("{}{}", paint.severity(d.severity, &title), paint.bold(&visible(&d.message))));

    let beside = d.labels.iter().find(|l| l.span == d.span).map_or("", |l| l.text.as_str());
    let mut marks = vec![Mark { at: sources.locate(d.span), text: beside, primary: true }];
    for label in d.labels.iter().filter(|l| l.span != d.span) {
        marks.push(Mark { at: sources.locate(label.span), text: &label.text, primary: false });
    }
    let gutter = marks.iter().map(|m| m.at.line.to_string().len()).max().unwrap_or(1);
    let pad = " ".repeat(gutter);

    // One excerpt per source line: marks on the same line share it, other lines follow.
    let mut shown = vec![false; marks.len()];
    let mut previous_file = None;
    for first in 0..marks.len() {
        if shown[first] {
            continue;
        }
        let at = &marks[first].at;
        if previous_file != Some(at.file) {
            let arrow = if first == 0 { "-->" } else { ":::" };
            let place = format!("{}:{}:{}", visible(at.file), at.line, at.column);
            push_line(out, &format!("{pad}{} {place}", paint.frame(arrow)));
            push_line(out, &format!("{pad} {}", paint.frame("|")));
        } else {
            push_line(out, &format!("{pad}{}", paint.frame("...")));
        }
        previous_file = Some(at.file);
        let (line, window) = Window::around(at);
        let number = format!("{:>gutter$} |", at.line);
        push_line(out, &format!("{} {line}", paint.frame(&number)));
        for index in first..marks.len() {
            let mark = &marks[index];
            if shown[index] || mark.at.file != at.file || mark.at.line != at.line {
                continue;
            }
            shown[index] = true;
            let (indent, width) = window.columns(&mark.at);
            let sign = if mark.primary { "^" } else { "-" };
            let underline = format!("{} {}", sign.repeat(width), visible(mark.text));
            let underline = underline.trim_end();
            let underline =
                if mark.primary { paint.severity(d.severity, underline) } else { paint.frame(underline) };
            push_line(out, &format!("{pad} {} {}{underline}", paint.frame("|"), " ".repeat(indent)));
        }
    }

    let at = &marks[0].at;
    let mut remarks: Vec<(&str, String)> = Vec::new();
    if let Some(name) = at.expansion_of {
        remarks.push(("note", format!("inside the expansion of macro `{name}`")));
    }
    for (file, line) in at.file_id.map(|id| sources.include_chain(id)).unwrap_or_default() {
        remarks.push(("note", format!("included from {file}:{line}")));
    }
    remarks.extend(d.notes.iter().map(|n| ("note", n.clone())));
    remarks.extend(d.help.iter().map(|h| ("help", h.clone())));
    if !remarks.is_empty() {
        push_line(out, &format!("{pad} {}", paint.frame("|")));
    }
    for (kind, text) in remarks {
        let hanging = format!("\n{pad}         ");
        let text = text.lines().map(visible).collect::<Vec<_>>().join(&hanging);
        push_line(out, &format!("{pad} {} {}{text}", paint.frame("="), paint.bold(&format!("{kind}: "))));
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Makes text safe for a terminal: control characters become visible.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

/// The part of a source line that is shown, with tabs expanded.
struct Window {
    /// Display column of each character of the line, and of its end.
    starts: Vec<usize>,
    /// Display columns cut off on the left, and their replacement.
    cut: usize,
    ellipsis: usize,
    end: usize,
}

impl Window {
    const TAB: usize = 4;
    /// Longer lines are cut around the mark.
    const WIDTH: usize = 160;

    fn around(at: &Location<'_>) -> (String, Window) {
        let mut line = String::new();
        let mut starts = Vec::new();
        let mut column = 0;
        for c in at.source_line.chars() {
            starts.push(column);
            let width = if c == '\t' { Window::TAB - column % Window::TAB } else { 1 };
            match c {
                '\t' => line.extend(std::iter::repeat_n(' ', width)),
                c if c.is_control() => line.push('\u{FFFD}'),
                c => line.push(c),
            }
            column += width;
        }
        starts.push(column);
        let mut window = Window { starts, cut: 0, ellipsis: 0, end: column };
        if column > Window::WIDTH {
            let here = window.display(at.column);
            window.cut = here.saturating_sub(Window::WIDTH / 2).min(column - Window::WIDTH);
            window.ellipsis = if window.cut > 0 { 3 } else { 0 };
            window.end = window.cut + Window::WIDTH;
            let middle: String = line.chars().skip(window.cut).take(Window::WIDTH).collect();
            let (left, right) =
                (if window.cut > 0 { "..." } else { "" }, if window.end < column { "..." } else { "" });
            line = format!("{left}{middle}{right}");
        }
        (line, window)
    }

    /// Display column of a character column (from 1).
    fn display(&self, column: u32) -> usize {
        let index = (column as usize).saturating_sub(1);
        self.starts.get(index).or(self.starts.last()).copied().unwrap_or(0)
    }

    /// Indentation and width of a mark.
    fn columns(&self, at: &Location<'_>) -> (usize, usize) {
        let clamp = |column: usize| column.clamp(self.cut, self.end) - self.cut + self.ellipsis;
        let lo = clamp(self.display(at.column));
        let hi = clamp(self.display(at.end_column));
        (lo, hi.saturating_sub(lo).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::Span;

    fn sources(text: &str) -> Arc<SourceMap> {
        Arc::new(SourceMap::from_text("a.p4", text))
    }

    fn span_of(sources: &SourceMap, piece: &str) -> Span {
        let lo = sources.text().find(piece).unwrap() as u32;
        Span { lo, hi: lo + piece.len() as u32 }
    }

    #[test]
    fn renders_source_line_carets_labels_notes_and_help() {
        let map = sources("const bit<8> x = 1;\n\tconst bool x = true;\n");
        let (second, first) = (span_of(&map, "x = true"), span_of(&map, "x = 1"));
        let d = Diagnostic::error(second, "`x` is declared twice")
            .label(second, "again")
            .label(first, "first here")
            .note("names are unique in a scope")
            .help("rename one");
        let text = Diagnostics::new(map, vec![d]).render(false);
        assert_eq!(
            text,
            "\
error: `x` is declared twice
 --> a.p4:2:13
  |
2 |     const bool x = true;
  |                ^^^^^^^^ again
 ...
1 | const bit<8> x = 1;
  |              ----- first here
  |
  = note: names are unique in a scope
  = help: rename one

"
        );
    }

    #[test]
    fn sorts_counts_and_drops_repetitions() {
        let map = sources("abc\n");
        let at = |lo| Span { lo, hi: lo + 1 };
        let items = vec![
            Diagnostic::warning(at(2), "w"),
            Diagnostic::error(at(1), "e"),
            Diagnostic::error(at(1), "e"),
            Diagnostic::error(at(0), "f"),
        ];
        let all = Diagnostics::new(map, items);
        let text = all.render(false);
        assert_eq!(all.len(), 3);
        assert!(text.find("error: f").unwrap() < text.find("error: e").unwrap());
        assert!(text.ends_with("2 errors, 1 warning\n"), "{text}");
    }

    #[test]
    fn hostile_source_text_cannot_reach_the_terminal() {
        let map = sources("x \u{1b}[31m y\n");
        let text = Diagnostics::new(map.clone(), vec![Diagnostic::error(span_of(&map, "y"), "\u{7}bell")])
            .render(true);
        assert!(!text.contains("\u{1b}[31m y") && !text.contains('\u{7}'), "{text:?}");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let map = sources(&format!("{}HERE{}\n", "a ".repeat(5000), "b ".repeat(5000)));
        let text =
            Diagnostics::new(map.clone(), vec![Diagnostic::error(span_of(&map, "HERE"), "m")]).render(false);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[3].len() < 200, "{}", lines[3].len());
        assert_eq!(lines[3].find("HERE"), lines[4].find("^^^^"));
    }

    #[test]
    fn json_is_escaped() {
        let map = sources("x\n");
        let d = Diagnostic::error(span_of(&map, "x"), "a \"b\"\n").help("h");
        assert_eq!(
            Diagnostics::new(map, vec![d]).to_json(),
            r#"[{"severity":"error","message":"a \"b\"\u000a","file":"a.p4","line":1,"column":1,"end_column":2,"labels":[],"notes":[],"help":["h"]}]"#
        );
    }
}
