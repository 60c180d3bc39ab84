//! Origin of every byte of the preprocessed text.
//!
//! ```text
//!  spans                0 ............ 2^31 .................. 2^32
//!  what they point at   preprocessed    file 0 | file 1 | ...
//!                       text              ^
//!                          `- segments ---'
//! ```
//!
//! The lexer and parser see one long text. A [`Span`] in it is traced back to the file, line and
//! column the reader wrote, through macro expansions and includes. The preprocessor's own messages
//! point into a file directly: files live in the upper half of the span's address space.

use crate::ast::Span;
use crate::diag::Diagnostic;

/// First address of files.
const FILE_BASE: u32 = 1 << 31;

/// Maximum bytes of preprocessed text, and of all files together.
pub const MAX_BYTES: usize = 32 << 20;

/// Index of a file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// The preprocessed text and the origin of each of its bytes.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    text: String,
    segments: Vec<Segment>,
    warnings: Vec<Diagnostic>,
}

/// A file as it was read.
#[derive(Clone, Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// Address of its first byte.
    base: u32,
    /// Offset of the first byte of each line.
    line_starts: Vec<u32>,
    /// The include directive that brought it in.
    included_at: Option<Span>,
    /// `#line` directives, sorted by physical line.
    markers: Vec<Marker>,
}

/// From this physical line (0-based) on, lines are reported as `name:line`.
#[derive(Clone, Debug)]
struct Marker {
    physical: u32,
    name: Option<String>,
    line: u32,
}

/// A run of preprocessed text with a single origin. It ends where the next run starts.
#[derive(Clone, Debug)]
struct Segment {
    out: u32,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// Copied verbatim from this address.
    Verbatim(u32),
    /// Produced by the macro `name`, used at `at`.
    Expansion { at: Span, name: String },
}

/// A position in the files as the user wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Name as given on the command line, in the include directive or by `#line`.
    pub file: &'a str,
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Where the marked text ends on this line, in characters; at least `column`.
    pub end_column: u32,
    /// The source line without its line feed.
    pub source_line: &'a str,
    /// The macro whose expansion contains the position, if any.
    pub expansion_of: Option<&'a str>,
    /// The physical file, for sorting.
    pub(crate) file_id: Option<FileId>,
}

impl SourceMap {
    /// A map whose preprocessed text is the file itself.
    #[cfg(test)]
    pub(crate) fn from_text(name: &str, text: &str) -> SourceMap {
        let mut map = SourceMap::default();
        let file = map.add_file(name, text.to_owned(), None).expect("test texts are short");
        map.push_verbatim(file, 0, text.len());
        map
    }

    /// The preprocessed text, the lexer's input.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Name of the main file.
    pub fn main_file(&self) -> &str {
        self.files.first().map_or("", |f| &f.name)
    }

    /// Warnings of the preprocessor.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The preprocessed text that a span covers.
    pub fn snippet(&self, span: Span) -> &str {
        self.text.get(span.lo as usize..span.hi as usize).unwrap_or("")
    }

    /// File, line, columns and source line of the start of a span.
    pub fn locate(&self, span: Span) -> Location<'_> {
        let (at, expansion_of) = self.trace(span);
        let Some((file_id, file)) = self.file_at(at.lo) else {
            return Location {
                file: self.main_file(),
                line: 1,
                column: 1,
                end_column: 1,
                source_line: "",
                expansion_of: None,
                file_id: None,
            };
        };
        let lo = (at.lo - file.base) as usize;
        let hi = at.hi.saturating_sub(file.base) as usize;
        let physical = file.line_of(lo);
        let start = file.line_starts.get(physical).copied().unwrap_or(0) as usize;
        let source_line = file.line_text(physical);
        let column = |offset: usize| {
            let prefix =
                source_line.as_bytes().get(..offset.saturating_sub(start)).unwrap_or(source_line.as_bytes());
            // UTF-8 continuation bytes do not start a character.
            1 + prefix.iter().filter(|b| **b & 0xC0 != 0x80).count() as u32
        };
        let (name, line) = file.presented(physical);
        let first = column(lo);
        Location {
            file: name,
            line,
            column: first,
            end_column: column(hi).max(first),
            source_line,
            expansion_of,
            file_id: Some(file_id),
        }
    }

    /// The include directives that lead to a file, innermost first, as `(file, line)`.
    pub(crate) fn include_chain(&self, file: FileId) -> Vec<(&str, u32)> {
        let mut chain = Vec::new();
        let mut next = self.files.get(file.0 as usize).and_then(|f| f.included_at);
        while let Some(span) = next {
            let at = self.locate(span);
            chain.push((at.file, at.line));
            next = at.file_id.and_then(|id| self.files.get(id.0 as usize)).and_then(|f| f.included_at);
        }
        chain
    }

    /// The preprocessed text with `#line N "file"` wherever the origin changes. Preprocessing the result
    /// again gives the same text with the same origins.
    pub fn to_marked_text(&self) -> String {
        /// Up to this many skipped lines are written as empty lines instead of a marker.
        const MAX_GAP: u32 = 6;
        let mut out = String::with_capacity(self.text.len() + self.text.len() / 8);
        let mut expected: Option<(&str, u32)> = None;
        let mut offset = 0;
        for line in self.text.split_inclusive('\n') {
            let at = self.locate(Span { lo: offset, hi: offset });
            offset += line.len() as u32;
            if line.trim().is_empty() {
                continue;
            }
            match expected {
                Some((file, next)) if file == at.file && next <= at.line && at.line - next <= MAX_GAP => {
                    out.extend(std::iter::repeat_n('\n', (at.line - next) as usize));
                }
                _ => {
                    let name = at.file.replace('\\', "\\\\").replace('"', "\\\"");
                    out.push_str(&format!("#line {} \"{name}\"\n", at.line));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
            expected = Some((at.file, at.line.saturating_add(1)));
        }
        out
    }

    /// Adds a file. Returns `None` if the map is full.
    pub(crate) fn add_file(&mut self, name: &str, text: String, included_at: Option<Span>) -> Option<FileId> {
        let base = self.files.last().map_or(FILE_BASE as usize, |f| f.base as usize + f.text.len() + 1);
        if base + text.len() - FILE_BASE as usize > MAX_BYTES {
            return None;
        }
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(0).chain(newlines).collect();
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.to_owned(),
            text,
            base: base as u32,
            line_starts,
            included_at,
            markers: Vec::new(),
        });
        Some(id)
    }

    /// A span that points into a file.
    pub(crate) fn file_span(&self, file: FileId, lo: usize, hi: usize) -> Span {
        let base = self.files.get(file.0 as usize).map_or(FILE_BASE, |f| f.base);
        Span { lo: base + lo as u32, hi: base + hi as u32 }
    }

    /// Name under which a file was opened.
    pub(crate) fn file_name(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.name)
    }

    /// Reports the lines after the one at `offset` as `name:line` and following.
    pub(crate) fn add_marker(&mut self, file: FileId, offset: usize, name: Option<String>, line: u32) {
        if let Some(file) = self.files.get_mut(file.0 as usize) {
            let physical = file.line_of(offset) as u32 + 1;
            let name = name.or_else(|| file.markers.last().and_then(|m| m.name.clone()));
            file.markers.push(Marker { physical, name, line });
        }
    }

    /// Appends bytes of a file to the preprocessed text.
    pub(crate) fn push_verbatim(&mut self, file: FileId, lo: usize, hi: usize) {
        let Some(source) = self.files.get(file.0 as usize) else { return };
        let Some(piece) = source.text.get(lo..hi).filter(|p| !p.is_empty()) else { return };
        let address = source.base + lo as u32;
        let out = self.text.len() as u32;
        let continues = matches!(self.segments.last(), Some(Segment { out: start, origin: Origin::Verbatim(from) })
            if from + (out - start) == address);
        if !continues {
            self.segments.push(Segment { out, origin: Origin::Verbatim(address) });
        }
        self.text.push_str(piece);
    }

    /// Appends text that a macro produced.
    pub(crate) fn push_expansion(&mut self, at: Span, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let out = self.text.len() as u32;
        self.segments.push(Segment { out, origin: Origin::Expansion { at, name: name.to_owned() } });
        self.text.push_str(text);
    }

    /// Appends a space or line feed that replaces the text removed at `address`.
    pub(crate) fn push_filler(&mut self, file: FileId, offset: usize, filler: char) {
        let out = self.text.len() as u32;
        let at = self.file_span(file, offset, offset);
        self.segments.push(Segment { out, origin: Origin::Verbatim(at.lo) });
        self.text.push(filler);
    }

    /// Records a warning of the preprocessor.
    pub(crate) fn push_warning(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// A span in terms of files, and the macro that produced it.
    fn trace(&self, span: Span) -> (Span, Option<&str>) {
        if span.lo >= FILE_BASE {
            return (span, None);
        }
        let Some(lo) = self.trace_byte(span.lo) else { return (span, None) };
        let hi = if span.hi > span.lo { self.trace_byte(span.hi - 1) } else { None };
        let same_file = |a: u32, b: u32| self.file_at(a).map(|f| f.0) == self.file_at(b).map(|f| f.0);
        match (lo, hi) {
            (Traced::Byte(lo), Some(Traced::Byte(hi))) if hi >= lo && same_file(lo, hi) => {
                (Span { lo, hi: hi + 1 }, None)
            }
            (Traced::Byte(lo), Some(Traced::Expansion(at, _))) if at.hi >= lo && same_file(lo, at.hi) => {
                (Span { lo, hi: at.hi }, None)
            }
            (Traced::Byte(lo), _) => (Span { lo, hi: lo }, None),
            (Traced::Expansion(at, name), _) => (at, Some(name)),
        }
    }

    fn trace_byte(&self, offset: u32) -> Option<Traced<'_>> {
        let index = self.segments.partition_point(|s| s.out <= offset).checked_sub(1)?;
        let segment = self.segments.get(index)?;
        Some(match &segment.origin {
            Origin::Verbatim(address) => Traced::Byte(address + (offset - segment.out)),
            Origin::Expansion { at, name } => Traced::Expansion(*at, name),
        })
    }

    fn file_at(&self, address: u32) -> Option<(FileId, &SourceFile)> {
        let index = self.files.partition_point(|f| f.base <= address).checked_sub(1)?;
        Some((FileId(index as u32), self.files.get(index)?))
    }
}

enum Traced<'a> {
    Byte(u32),
    Expansion(Span, &'a str),
}

impl SourceFile {
    /// Physical line (0-based) that holds an offset.
    fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start as usize <= offset).saturating_sub(1)
    }

    fn line_text(&self, physical: usize) -> &str {
        let start = self.line_starts.get(physical).map_or(0, |s| *s as usize);
        let end = self.line_starts.get(physical + 1).map_or(self.text.len(), |s| *s as usize);
        self.text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// Name and line (1-based) under which a physical line is reported.
    fn presented(&self, physical: usize) -> (&str, u32) {
        let index = self.markers.partition_point(|m| m.physical as usize <= physical);
        match index.checked_sub(1).and_then(|i| self.markers.get(i)) {
            None => (&self.name, physical as u32 + 1),
            Some(marker) => (
                marker.name.as_deref().unwrap_or(&self.name),
                marker.line.saturating_add(physical as u32 - marker.physical),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_line_and_column_of_a_span() {
        let map = SourceMap::from_text("a.p4", "one\ntwo öx three\n");
        let lo = map.text().find('x').unwrap() as u32;
        let at = map.locate(Span { lo, hi: lo + 1 });
        assert_eq!((at.file, at.line, at.column, at.end_column), ("a.p4", 2, 6, 7));
        assert_eq!(at.source_line, "two öx three");
    }

    #[test]
    fn traces_through_an_expansion_and_an_include() {
        let mut map = SourceMap::default();
        let main = map.add_file("main.p4", "#include \"b\"\nint X;\n".into(), None).unwrap();
        let directive = map.file_span(main, 0, 12);
        let inner = map.add_file("b", "bit y;\n".into(), Some(directive)).unwrap();
        map.push_verbatim(inner, 0, 7);
        map.push_verbatim(main, 13, 17);
        let usage = map.file_span(main, 17, 18);
        map.push_expansion(usage, "X", "1 + 2");
        map.push_verbatim(main, 18, 20);

        let at = map.locate(Span { lo: 4, hi: 5 });
        assert_eq!((at.file, at.line, at.column), ("b", 1, 5));
        assert_eq!(map.include_chain(at.file_id.unwrap()), vec![("main.p4", 1)]);

        let two = map.text().find('2').unwrap() as u32;
        let at = map.locate(Span { lo: two, hi: two + 1 });
        assert_eq!((at.file, at.line, at.column, at.end_column), ("main.p4", 2, 5, 6));
        assert_eq!(at.expansion_of, Some("X"));
        assert_eq!(map.to_marked_text(), "#line 1 \"b\"\nbit y;\n#line 2 \"main.p4\"\nint 1 + 2;\n");
    }

    #[test]
    fn any_span_can_be_located() {
        let map = SourceMap::from_text("a.p4", "é");
        for (lo, hi) in [(0, 0), (1, 1), (1, 9), (7, 3), (u32::MAX, u32::MAX), (FILE_BASE, FILE_BASE + 9)] {
            map.locate(Span { lo, hi });
        }
        SourceMap::default().locate(Span { lo: 3, hi: 4 });
    }
}
