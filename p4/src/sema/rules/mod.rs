//! Rules for controllers' writes, from annotations: `@entry_restriction` and `@action_restriction`, whose language is
//! that of p4-constraints, and `@refers_to` and `@referenced_by`.
//!
//! ```text
//! annotation ─ lexer ─ parser ─ types ─→ ir::Restriction
//!            └ references ─────────────→ ir::Reference
//! ```

mod lexer;
mod parser;
mod references;
mod types;

use crate::ast::{AnnotationToken, Span};
use crate::diag::Diagnostic;
use crate::ir::{ActionId, Annotation, Clause, MatchKind, Named, Program, Restriction, TableId};
use lexer::Parsed;
use std::ops::Range;
use types::Names;

/// Finds the rules of a program. Returns the mistakes in them.
pub(super) fn find(program: &mut Program) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let (mut entries, mut actions) = (Vec::new(), Vec::new());
    for (at, table) in program.tables.iter().enumerate() {
        let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        let names =
            || Names::Keys(keys.clone().map(|key| (&*key.named.name, key.ty.width(), key.kind)).collect());
        let found = restriction(&table.named, "entry_restriction", names, &mut diagnostics);
        entries.extend(found.map(|found| (TableId(at as u32), found)));
    }
    for (at, action) in program.actions.iter().enumerate().filter(|(_, action)| action.in_table) {
        let names = || {
            Names::Params(action.params.iter().map(|param| (&*param.named.name, param.ty.width())).collect())
        };
        let found = restriction(&action.named, "action_restriction", names, &mut diagnostics);
        actions.extend(found.map(|found| (ActionId(at as u32), found)));
    }
    program.rules.references = references::find(program, &mut diagnostics);
    (program.rules.entries, program.rules.actions) = (entries, actions);
    diagnostics
}

fn restriction<'a>(
    named: &Named,
    kind: &str,
    names: impl Fn() -> Names<'a>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Restriction> {
    let mut clauses = Vec::new();
    let mut annotations = named.annotations.iter().filter(|annotation| annotation.name == kind).peekable();
    annotations.peek()?;
    for annotation in annotations {
        let Some(text) = Text::of(annotation) else {
            diagnostics.push(
                Diagnostic::error(annotation.span, format!("`@{kind}` takes a string"))
                    .help(format!("write `@{kind}(\"key != 0; other::mask == 0\")`")),
            );
            continue;
        };
        match parse(&text.joined, &names()) {
            Ok(more) => clauses.extend(more),
            Err(fault) => {
                let message = format!("`@{kind}`: {}", fault.message);
                // An action is once here for each set of arguments that tables bind.
                let diagnostic = Diagnostic::error(text.span(fault.at), message);
                if !diagnostics.contains(&diagnostic) {
                    diagnostics.push(diagnostic);
                }
            }
        }
    }
    Some(Restriction { clauses })
}

fn parse(text: &str, names: &Names<'_>) -> Parsed<Vec<Clause>> {
    let clause = |expr: &parser::Expr| {
        let text = plain(text.get(expr.at.clone()).unwrap_or_default());
        Ok(Clause { text, test: types::test(names, expr)? })
    };
    parser::clauses(text)?.iter().map(clause).collect()
}

/// A piece of text on one line, without comments.
fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The strings of an annotation, one a line, and their places in the program.
struct Text<'a> {
    joined: String,
    strings: &'a [AnnotationToken],
}

impl<'a> Text<'a> {
    fn of(annotation: &'a Annotation) -> Option<Text<'a>> {
        let strings = &annotation.tokens[..];
        if strings.is_empty() || strings.iter().any(|token| !token.is_string) {
            return None;
        }
        let joined = strings.iter().map(|token| &*token.text).collect::<Vec<_>>().join("\n");
        Some(Text { joined, strings })
    }

    /// The place of some bytes. Within a string with escapes that is the whole string.
    fn span(&self, at: Range<usize>) -> Span {
        let mut from = 0;
        for token in self.strings {
            if at.start <= from + token.text.len() {
                let is_verbatim = token.text.len() + 2 == (token.span.hi - token.span.lo) as usize;
                let place = |byte: usize| {
                    let within = byte.saturating_sub(from).min(token.text.len());
                    token.span.lo + 1 + within as u32
                };
                return match is_verbatim {
                    true => Span { lo: place(at.start), hi: place(at.end.max(at.start + 1)) },
                    false => token.span,
                };
            }
            from += token.text.len() + 1;
        }
        self.strings.last().map(|token| token.span).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
