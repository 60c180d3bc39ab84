//! The C preprocessor: includes, macros, conditions.
//!
//! The result is a [`SourceMap`]: the text that the lexer reads, with the origin of every byte. Ordinary text
//! is copied unchanged; only comments, directives and macro uses interrupt the copying.
//!
//! Limits on include depth, expansion and output keep hostile input from exhausting the machine.

mod condition;
mod directive;
mod expand;
mod macros;

#[cfg(test)]
mod tests;

use crate::ast::Span;
use crate::diag::{Diagnostic, Severity};
use crate::diagnostics::Diagnostics;
use crate::source::{FileId, MAX_BYTES, SourceMap};
use macros::Macro;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum include depth.
const MAX_INCLUDE_DEPTH: usize = 64;

/// Maximum number of included files per run, repetitions counted.
const MAX_INCLUDES: usize = 4_096;

/// Maximum size of an included file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The preprocessor gives up after this many errors.
const MAX_ERRORS: usize = 100;

/// Options of the preprocessor from the command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders searched for included files, in order, before the built-in files.
    pub include_dirs: Vec<PathBuf>,
    /// `-D NAME=VALUE`.
    pub defines: Vec<(String, String)>,
}

/// Reads an include file. An error of kind `NotFound` lets the search continue.
pub type Loader<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

/// Preprocesses a text. Reads included files from disk.
pub fn run(text: &str, file_name: &str, options: &Options) -> Result<SourceMap, Diagnostics> {
    run_with(text, file_name, options, &load)
}

/// Preprocesses a text. Included files come from `loader`.
pub fn run_with(
    text: &str,
    file_name: &str,
    options: &Options,
    loader: &Loader<'_>,
) -> Result<SourceMap, Diagnostics> {
    let mut run = Preprocessor {
        map: SourceMap::default(),
        options,
        loader,
        macros: HashMap::new(),
        conditions: Vec::new(),
        once: HashSet::new(),
        includes: 0,
        depth: 0,
        expanded: 0,
        errors: Vec::new(),
        stopped: false,
    };
    for (name, value) in &options.defines {
        run.define_option(name, value);
    }
    let dir = Path::new(file_name).parent().map(Path::to_owned);
    if text.len() > MAX_BYTES {
        run.errors.push(Diagnostic::error(
            Span::default(),
            format!("{file_name} is larger than {MAX_BYTES} bytes"),
        ));
    } else if let Some(file) = run.map.add_file(file_name, text.to_owned(), None) {
        run.file(file, text, dir);
    }
    let mut map = run.map;
    if run.errors.iter().all(|d| d.severity == Severity::Warning) {
        for warning in run.errors {
            map.push_warning(warning);
        }
        return Ok(map);
    }
    Err(Diagnostics::new(Arc::new(map), run.errors))
}

/// Reads an include file from disk.
pub fn load(path: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_FILE_BYTES} bytes")));
    }
    std::fs::read_to_string(path)
}

/// An open `#if`.
struct Condition {
    at: Span,
    /// Whether the text of the current branch is wanted.
    active: bool,
    /// Whether a branch has been taken already, or the whole `#if` is inside unwanted text.
    done: bool,
    seen_else: bool,
}

struct Preprocessor<'a> {
    map: SourceMap,
    options: &'a Options,
    loader: &'a Loader<'a>,
    macros: HashMap<String, Macro>,
    conditions: Vec<Condition>,
    /// Files with `#pragma once`.
    once: HashSet<String>,
    includes: usize,
    depth: usize,
    /// Macro tokens produced so far.
    expanded: usize,
    errors: Vec<Diagnostic>,
    /// A limit was hit; the rest is ignored.
    stopped: bool,
}

/// A position in a file that is being read.
struct Reader<'t> {
    file: FileId,
    text: &'t str,
    at: usize,
    /// Start of the text that is not copied yet.
    copied: usize,
    /// The folder that `#include "x"` searches first; `None` for built-in files.
    dir: Option<PathBuf>,
    /// Number of conditions that were open when the file began.
    conditions: usize,
    /// Whether a string of an earlier line is still open. Its lines hold no comments, but directives select among
    /// them and macros are replaced, as in the reference compiler.
    in_string: bool,
    /// Whether a search has found no further quote in the text.
    no_more_quotes: bool,
}

impl Reader<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(prefix.as_bytes())
    }

    /// Length of a backslash with line end at the cursor, or 0. Invisible blanks between the two count as part of
    /// the line end.
    fn splice(&self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let Some((b'\\', rest)) = rest.split_first() else { return 0 };
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)).count();
        if rest.get(blanks) == Some(&b'\n') { blanks + 2 } else { 0 }
    }

    /// Skips letters, digits and underscores, and returns them.
    fn word(&mut self) -> &str {
        let start = self.at;
        while self.byte(0).is_some_and(is_word_byte) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Skips a string up to its line end at the latest. Returns whether it is closed there.
    fn string(&mut self) -> bool {
        self.at += 1;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' => return false,
                b'"' => {
                    self.at += 1;
                    return true;
                }
                b'\\' if self.splice() > 0 => self.at += self.splice(),
                b'\\' => self.escape(),
                _ => self.at += 1,
            }
        }
        false
    }

    /// Skips a backslash and the character that it escapes.
    fn escape(&mut self) {
        self.at += if self.byte(1).is_some_and(|b| b.is_ascii() && b != b'\n') { 2 } else { 1 };
    }

    /// Whether a later line closes a string that is open at the cursor. One that nothing closes is a mistake, and
    /// ends at its line end.
    fn closes_later(&mut self) -> bool {
        if self.no_more_quotes {
            return false;
        }
        let mut escaped = false;
        let closes = self.text.as_bytes()[self.at..].iter().any(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        self.no_more_quotes = !closes;
        closes
    }

    /// Skips `// ...` up to its line end.
    fn line_comment(&mut self) {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' => return,
                b'\\' if self.splice() > 0 => self.at += self.splice(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips `/* ... */`. Returns whether it is closed.
    fn block_comment(&mut self) -> bool {
        let close = self.text.get(self.at + 2..).and_then(|rest| rest.find("*/"));
        self.at = close.map_or(self.text.len(), |length| self.at + 2 + length + 2);
        close.is_some()
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Preprocessor<'a> {
    /// Whether the text at the cursor is wanted.
    fn active(&self) -> bool {
        self.conditions.last().is_none_or(|c| c.active)
    }

    fn error(&mut self, error: Diagnostic) {
        self.errors.push(error);
        if self.errors.iter().filter(|d| d.severity == Severity::Error).count() >= MAX_ERRORS {
            self.stopped = true;
        }
    }

    /// Reports that a limit was hit, and stops.
    fn stop(&mut self, error: Diagnostic) {
        self.errors.push(error);
        self.stopped = true;
    }

    fn file(&mut self, file: FileId, text: &str, dir: Option<PathBuf>) {
        let conditions = self.conditions.len();
        let (in_string, no_more_quotes) = (false, false);
        let mut reader = Reader { file, text, at: 0, copied: 0, dir, conditions, in_string, no_more_quotes };
        self.depth += 1;
        // Skip a byte order mark.
        if text.starts_with('\u{FEFF}') {
            reader.at = '\u{FEFF}'.len_utf8();
            reader.copied = reader.at;
        }
        while !self.stopped && reader.at < text.len() {
            self.line(&mut reader);
        }
        self.copy(&mut reader);
        self.depth -= 1;
        if !self.map.text().is_empty() && !self.map.text().ends_with('\n') && self.depth > 0 {
            self.map.push_filler(file, text.len(), '\n');
        }
        while self.conditions.len() > reader.conditions {
            if let Some(open) = self.conditions.pop().filter(|_| !self.stopped) {
                self.error(Diagnostic::error(open.at, "this condition is never closed").help("add `#endif`"));
            }
        }
    }

    /// Copies the text since the last stop, if it is wanted.
    fn copy(&mut self, reader: &mut Reader<'_>) {
        if self.active() && reader.copied < reader.at {
            self.map.push_verbatim(reader.file, reader.copied, reader.at);
            self.check_size(reader);
        }
        reader.copied = reader.at;
    }

    fn check_size(&mut self, reader: &Reader<'_>) {
        if self.map.text().len() > MAX_BYTES && !self.stopped {
            let at = self.map.file_span(reader.file, reader.at, reader.at);
            self.stop(Diagnostic::error(
                at,
                format!("the preprocessed text is larger than {MAX_BYTES} bytes"),
            ));
        }
    }

    /// Processes one line, or as many as a comment or macro use spans.
    fn line(&mut self, reader: &mut Reader<'_>) {
        let start = reader.at;
        while matches!(reader.byte(0), Some(b' ' | b'\t' | b'\r')) {
            reader.at += 1;
        }
        if reader.byte(0) == Some(b'#') && (!reader.in_string || directive::is_known(reader)) {
            let hash = reader.at;
            reader.at = start;
            self.copy(reader);
            reader.at = hash;
            self.directive(reader);
            // The line end itself stays.
            reader.copied = reader.at;
            return;
        }
        while let Some(byte) = reader.byte(0) {
            let inside = reader.in_string && self.active();
            match byte {
                b'\n' => {
                    reader.at += 1;
                    if !self.active() {
                        // Within a string, line ends are part of the value; the reference compiler keeps them.
                        if reader.in_string {
                            self.map.push_verbatim(reader.file, reader.at - 1, reader.at);
                        }
                        reader.copied = reader.at;
                    }
                    return;
                }
                b'"' if inside => {
                    reader.at += 1;
                    reader.in_string = false;
                }
                b'\\' if inside && reader.splice() == 0 => reader.escape(),
                b'"' => {
                    if !reader.string() && self.active() {
                        reader.in_string = reader.closes_later();
                    }
                }
                b'/' if !inside && reader.starts_with("//") => {
                    self.copy(reader);
                    reader.line_comment();
                    reader.copied = reader.at;
                }
                b'/' if !inside && reader.starts_with("/*") => self.comment(reader),
                b'\\' if reader.splice() > 0 => {
                    self.copy(reader);
                    reader.at += reader.splice();
                    reader.copied = reader.at;
                }
                b'0'..=b'9' => {
                    reader.word();
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    let start = reader.at;
                    let word = reader.word();
                    if self.macros.contains_key(word) || matches!(word, "__FILE__" | "__LINE__") {
                        if self.active() {
                            self.expand_use(reader, start);
                        }
                        if self.stopped {
                            return;
                        }
                    }
                }
                _ => reader.at += 1,
            }
        }
    }

    /// Replaces a block comment with a space and its line ends.
    fn comment(&mut self, reader: &mut Reader<'_>) {
        self.copy(reader);
        let start = reader.at;
        if !reader.block_comment() {
            let at = self.map.file_span(reader.file, start, start + 2);
            self.error(Diagnostic::error(at, "this comment is never closed").help("add `*/`"));
        }
        if self.active() {
            self.map.push_filler(reader.file, start, ' ');
            for (offset, _) in reader.text[start..reader.at].match_indices('\n') {
                self.map.push_verbatim(reader.file, start + offset, start + offset + 1);
            }
        }
        reader.copied = reader.at;
    }
}
