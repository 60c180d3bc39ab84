//! Directives: lines that start with `#`.

use super::macros::Macro;
use super::{Condition, MAX_INCLUDE_DEPTH, MAX_INCLUDES, Preprocessor, Reader, condition};
use crate::arch;
use crate::ast::Span;
use crate::builtin::{self, builtin_include};
use crate::diag::Diagnostic;
use p4rack_p4rt::nearest::nearest;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

impl Preprocessor<'_> {
    /// Executes the directive at the cursor, up to its line end.
    pub(super) fn directive(&mut self, reader: &mut Reader<'_>) {
        let start = reader.at;
        let (line, shown_end) = logical_line(reader);
        let at = self.map.file_span(reader.file, start, shown_end);
        let line = line.trim_start_matches('#').trim();
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let rest = rest.trim();
        match word {
            "if" => self.open_condition(at, |p| p.condition(at, rest)),
            "ifdef" => {
                self.open_condition(at, |p| p.macro_name(at, "ifdef", rest).is_some_and(|n| p.is_defined(n)))
            }
            "ifndef" => self
                .open_condition(at, |p| p.macro_name(at, "ifndef", rest).is_some_and(|n| !p.is_defined(n))),
            "elif" => self.next_branch(reader, at, "elif", Some(rest)),
            "else" => self.next_branch(reader, at, "else", None),
            "endif" => {
                if self.conditions.len() > reader.conditions {
                    self.conditions.pop();
                } else {
                    self.error(Diagnostic::error(at, "`#endif` without `#if`"));
                }
            }
            _ if !self.active() => {}
            "" => {}
            "define" => self.define(at, rest),
            "undef" => {
                if let Some(name) = self.macro_name(at, "undef", rest) {
                    self.macros.remove(name);
                }
            }
            "include" => self.include(reader, at, rest),
            "error" => self.error(Diagnostic::error(at, format!("#error {rest}"))),
            "warning" => self.error(Diagnostic::warning(at, format!("#warning {rest}"))),
            "line" => self.line_marker(reader, at, rest),
            "pragma" => {
                if rest == "once" {
                    let name = self.map.file_name(reader.file).to_owned();
                    self.once.insert(name);
                }
            }
            // `# 12 "file" 3`, as compilers write it.
            word if word.bytes().all(|b| b.is_ascii_digit()) => self.line_marker(reader, at, line),
            // The reference compiler ignores such lines, and programs use them as comments. A slip is an error.
            word => self.error(match nearest(word, KNOWN.iter().copied()) {
                Some(near) => Diagnostic::error(at, format!("unknown directive `#{word}`"))
                    .help(format!("did you mean `#{near}`?")),
                None => Diagnostic::warning(at, format!("unknown directive `#{word}`: the line is ignored"))
                    .note(format!("known directives are {}", KNOWN.join(", "))),
            }),
        }
    }

    // Conditions.

    fn open_condition(&mut self, at: Span, wanted: impl FnOnce(&mut Self) -> bool) {
        let outside = self.active();
        let active = outside && wanted(self);
        self.conditions.push(Condition { at, active, done: active || !outside, seen_else: false });
    }

    /// `#elif e` or `#else`.
    fn next_branch(&mut self, reader: &Reader<'_>, at: Span, word: &str, condition: Option<&str>) {
        let open = self.conditions.len() > reader.conditions;
        let Some((done, seen_else)) = self.conditions.last().filter(|_| open).map(|c| (c.done, c.seen_else))
        else {
            self.error(Diagnostic::error(at, format!("`#{word}` without `#if`")));
            return;
        };
        if seen_else {
            self.error(Diagnostic::error(at, format!("`#{word}` after `#else`")));
        }
        let active = !done && !seen_else && condition.is_none_or(|text| self.condition(at, text));
        if let Some(last) = self.conditions.last_mut() {
            last.active = active;
            last.done |= active;
            last.seen_else |= condition.is_none();
        }
    }

    fn condition(&mut self, at: Span, text: &str) -> bool {
        let tokens = self.expand_condition(at, text);
        match condition::evaluate(&tokens) {
            Ok(value) => value != 0,
            Err(why) => {
                self.error(Diagnostic::error(at, format!("malformed condition: {why}")));
                false
            }
        }
    }

    /// The single name that `#ifdef` and similar directives take.
    fn macro_name<'t>(&mut self, at: Span, directive: &str, rest: &'t str) -> Option<&'t str> {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            self.error(Diagnostic::error(at, format!("`#{directive}` needs the name of a macro")));
            return None;
        }
        if !rest[end..].trim().is_empty() {
            self.error(Diagnostic::warning(at, format!("text after `#{directive} {name}` is ignored")));
        }
        Some(name)
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || matches!(name, "__FILE__" | "__LINE__")
    }

    // Macros.

    fn define(&mut self, at: Span, rest: &str) {
        match Macro::parse(rest, at) {
            Err(why) => self.error(Diagnostic::error(at, why)),
            Ok((name, made)) => {
                if matches!(name.as_str(), "defined" | "__FILE__" | "__LINE__") {
                    self.error(Diagnostic::error(at, format!("`{name}` cannot be redefined")));
                    return;
                }
                if let Some(old) = self.macros.get(&name).filter(|old| !old.same_as(&made)) {
                    let warning = Diagnostic::warning(at, format!("macro `{name}` is redefined"))
                        .label(old.at, "first defined here")
                        .help(format!("put `#undef {name}` before it if this is intended"));
                    self.error(warning);
                }
                self.macros.insert(name, made);
            }
        }
    }

    /// `-D name=value`
    pub(super) fn define_option(&mut self, name: &str, value: &str) {
        match Macro::parse(&format!("{name} {value}"), Span::default()) {
            Ok((name, made)) => {
                self.macros.insert(name, made);
            }
            Err(why) => self.error(Diagnostic::error(Span::default(), format!("-D {name}={value}: {why}"))),
        }
    }

    /// `#line 12 "file"`
    fn line_marker(&mut self, reader: &Reader<'_>, at: Span, rest: &str) {
        let expanded;
        let rest = if rest.starts_with(|c: char| c.is_ascii_digit()) {
            rest
        } else {
            expanded = self.expand_text(at, rest);
            expanded.trim()
        };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(line) = rest[..end].parse::<u32>() else {
            self.error(
                Diagnostic::error(at, "`#line` needs a line number").help("write `#line 12 \"file.p4\"`"),
            );
            return;
        };
        let name = rest[end..].trim().strip_prefix('"').map(|quoted| {
            let mut name = String::new();
            let mut chars = quoted.chars();
            while let Some(c) = chars.next().filter(|c| *c != '"') {
                name.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
            }
            name
        });
        self.map.add_marker(reader.file, reader.at, name, line);
    }

    // Includes.

    fn include(&mut self, reader: &Reader<'_>, at: Span, rest: &str) {
        let expanded;
        let rest = if rest.starts_with(['"', '<']) {
            rest
        } else {
            expanded = self.expand_text(at, rest);
            expanded.trim()
        };
        let quoted = rest.starts_with('"');
        let inner = rest.strip_prefix('"').and_then(|r| r.split_once('"'));
        let inner = inner.or_else(|| rest.strip_prefix('<').and_then(|r| r.split_once('>')));
        let Some((name, _)) = inner.filter(|(name, _)| !name.trim().is_empty()) else {
            let error = Diagnostic::error(at, "`#include` needs a file name");
            self.error(error.help("write `#include \"file.p4\"` or `#include <core.p4>`"));
            return;
        };
        if self.depth >= MAX_INCLUDE_DEPTH {
            let error =
                Diagnostic::error(at, format!("includes are nested more than {MAX_INCLUDE_DEPTH} deep"));
            self.stop(error.help(
                "a file that includes itself needs a guard: `#ifndef NAME`, `#define NAME`, ..., `#endif`",
            ));
            return;
        }
        self.includes += 1;
        if self.includes > MAX_INCLUDES {
            self.stop(Diagnostic::error(at, format!("more than {MAX_INCLUDES} files are included")));
            return;
        }
        self.open_include(reader, at, name.trim(), quoted);
    }

    fn open_include(&mut self, reader: &Reader<'_>, at: Span, name: &str, quoted: bool) {
        let own = reader.dir.clone().filter(|_| quoted);
        let dirs: Vec<PathBuf> = own.into_iter().chain(self.options.include_dirs.iter().cloned()).collect();
        for dir in &dirs {
            let path = dir.join(name);
            match (self.loader)(&path) {
                Ok(text) => {
                    let dir = path.parent().map(Path::to_owned);
                    self.enter(at, &path.to_string_lossy(), &text, dir);
                    return;
                }
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => {
                    self.error(Diagnostic::error(at, format!("cannot read {}: {error}", path.display())));
                    return;
                }
            }
        }
        if let Some(text) = builtin_include(name) {
            self.enter(at, name, text, None);
            return;
        }
        let shown: Vec<String> = dirs
            .iter()
            .map(|d| if d.as_os_str().is_empty() { ".".to_owned() } else { d.display().to_string() })
            .collect();
        let mut error = Diagnostic::error(at, format!("include file `{name}` is not found"));
        if !shown.is_empty() {
            error = error.note(format!("searched in {}", shown.join(", ")));
        }
        if builtin::is_other_architecture(name) {
            let error = error.note(format!("it declares another architecture; {}", arch::supported()));
            let check = "to check its declarations alone, add the file's folder with -I";
            return self.error(error.help(format!("to run it, {}; {check}", arch::how_to_port())));
        }
        self.error(error.help("add its folder with -I"));
    }

    fn enter(&mut self, at: Span, name: &str, text: &str, dir: Option<PathBuf>) {
        if self.once.contains(name) {
            return;
        }
        match self.map.add_file(name, text.to_owned(), Some(at)) {
            Some(file) => self.file(file, text, dir),
            None => self.stop(Diagnostic::error(at, "the included files are too large together")),
        }
    }
}

/// The directives.
const KNOWN: &[&str] = &[
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "warning",
    "line", "pragma",
];

/// Whether the `#` at the cursor begins a directive, and not a line of a string that happens to.
pub(super) fn is_known(reader: &Reader<'_>) -> bool {
    let line = reader.text.get(reader.at + 1..).unwrap_or("").trim_start_matches([' ', '\t']);
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(line.len());
    KNOWN.contains(&&line[..end])
}

/// Reads a directive up to its line end: comments become spaces and continued lines are joined. Also returns
/// the end of its first line, for messages.
fn logical_line(reader: &mut Reader<'_>) -> (String, usize) {
    let mut line = String::new();
    let mut first_end = None;
    let mut plain = reader.at;
    let text = reader.text;
    let flush = |line: &mut String, from: usize, to: usize| line.push_str(text.get(from..to).unwrap_or(""));
    while let Some(byte) = reader.byte(0) {
        let at = reader.at;
        match byte {
            b'\n' => break,
            b'"' => {
                reader.string();
                continue;
            }
            b'/' if reader.starts_with("//") => {
                flush(&mut line, plain, at);
                reader.line_comment();
            }
            b'/' if reader.starts_with("/*") => {
                flush(&mut line, plain, at);
                line.push(' ');
                reader.block_comment();
            }
            b'\\' if reader.splice() > 0 => {
                flush(&mut line, plain, at);
                reader.at += reader.splice();
            }
            _ => {
                reader.at += 1;
                continue;
            }
        }
        plain = reader.at;
        first_end = first_end.or(Some(at));
    }
    flush(&mut line, plain, reader.at);
    let end = first_end.unwrap_or(reader.at);
    let shown = text.get(..end).map_or(end, |t| t.trim_end().len());
    (line, shown)
}
