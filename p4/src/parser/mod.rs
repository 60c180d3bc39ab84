//! Tokens to syntax tree: recursive descent, expressions by precedence climbing.
//!
//! P4's grammar cannot tell `(a) - b` or `a < b > (c)` apart without knowing which names are types,
//! so the parser keeps [`scope::Scopes`] of declared names. Where one token of look-ahead is not
//! enough it tries a reading and goes back; a reading that failed once is remembered, which keeps
//! the whole thing quadratic at worst.
//!
//! After an error the parser continues at the next `;` or `}` of the list it is in, so that one run reports
//! several errors. Both nesting and the height of the tree are limited, so walkers of the tree may recurse.

mod annotation;
mod blocks;
mod decl;
mod expr;
mod literal;
mod scope;
mod stmt;
mod table;
mod types;

#[cfg(test)]
mod print;
#[cfg(test)]
mod tests;

use crate::ast::{Ident, Program, Span};
use crate::diag::Diagnostic;
use crate::lexer::{self, Token, TokenKind};
use crate::source::SourceMap;
use scope::Scopes;
use std::collections::HashSet;

/// Maximum nesting of brackets, blocks and types.
pub const MAX_NESTING: u32 = 100;

/// Maximum length of a chain of operators, postfixes or `else if`, and so the maximum height of a tree.
pub const MAX_HEIGHT: u32 = 400;

/// The parser gives up after this many errors.
const MAX_ERRORS: usize = 100;

/// Parses a program. The tree is complete if there are no errors; otherwise it holds the parts that could be
/// parsed.
pub fn parse(sources: &SourceMap) -> (Program, Vec<Diagnostic>) {
    let text = sources.text();
    let (tokens, errors) = lexer::lex(text);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        errors,
        last_error_at: None,
        scopes: Scopes::default(),
        nesting: 0,
        height: 0,
        in_angles: false,
        trials: 0,
        failed_trials: HashSet::new(),
    };
    let program = parser.program();
    (program, parser.errors)
}

/// A syntax error. It has been recorded already; callers that can recover catch it.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// A reading that can be tried and undone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Trial {
    TypeArguments,
    Cast,
    TupleKeyset,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    errors: Vec<Diagnostic>,
    /// Token of the last error. A second message about the same token is suppressed.
    last_error_at: Option<usize>,
    scopes: Scopes<'a>,
    nesting: u32,
    /// Height of the tree parsed last.
    height: u32,
    /// Inside `bit<...>`, where `>` closes the bracket.
    in_angles: bool,
    /// Number of trials under way; errors are not recorded during trials.
    trials: u32,
    failed_trials: HashSet<(Trial, usize)>,
}

impl<'a> Parser<'a> {
    // Looking ahead.

    fn token(&self, ahead: usize) -> Token {
        let end = Token { kind: TokenKind::End, span: Span::default() };
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn kind(&self) -> TokenKind {
        self.token(0).kind
    }

    fn kind_ahead(&self, ahead: usize) -> TokenKind {
        self.token(ahead).kind
    }

    fn span(&self) -> Span {
        self.token(0).span
    }

    /// Span from `start` to the last consumed token.
    fn span_from(&self, start: Span) -> Span {
        match self.previous() {
            Some(last) if last.lo >= start.lo => start.to(last),
            _ => Span { lo: start.lo, hi: start.lo },
        }
    }

    fn previous(&self) -> Option<Span> {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map(|t| t.span)
    }

    fn text_of(&self, span: Span) -> &'a str {
        self.text.get(span.lo as usize..span.hi as usize).unwrap_or("")
    }

    /// Whether two tokens are adjacent without a space, like the halves of `>>`.
    fn touches_next(&self, ahead: usize) -> bool {
        self.token(ahead).span.hi == self.token(ahead + 1).span.lo
    }

    // Consuming tokens.

    fn bump(&mut self) -> Span {
        let span = self.span();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        span
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<Span> {
        if self.kind() == kind { Ok(self.bump()) } else { self.expected(kind.describe()) }
    }

    /// Consumes a closing bracket, or reports the opening one that lacks it.
    fn expect_close(&mut self, kind: TokenKind, open: Span) -> Parsed<Span> {
        if self.kind() == kind {
            return Ok(self.bump());
        }
        let message = format!("expected {}, found {}", kind.describe(), self.found());
        self.error(|at| Diagnostic::error(at, message).label(open, "to close this bracket"));
        Err(Failed)
    }

    /// Consumes a `;`. If it is missing at a line end, reports that and continues as if it were there.
    fn semicolon(&mut self) -> Parsed<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        let Some(previous) = self.previous() else { return self.expected("`;`") };
        let next = self.span();
        let gap = self.text_of(Span { lo: previous.hi, hi: next.lo.max(previous.hi) });
        if self.trials > 0 || !(gap.contains('\n') || self.kind() == TokenKind::CloseBrace) {
            return self.expected("`;`");
        }
        let end = Span { lo: previous.hi.saturating_sub(1).max(previous.lo), hi: previous.hi };
        self.error(|_| Diagnostic::error(end, "expected `;` after this"));
        Ok(())
    }

    fn name(&mut self) -> Parsed<Ident> {
        if self.kind().is_name() {
            return Ok(self.ident());
        }
        if self.kind().is_word() && self.kind() != TokenKind::Underscore {
            let word = self.text_of(self.span());
            self.error(|at| {
                Diagnostic::error(at, format!("expected a name, found the keyword `{word}`"))
                    .help(format!("choose another name, for example `{word}_`"))
            });
            return Err(Failed);
        }
        self.expected("a name")
    }

    /// The current token as a name, of any kind.
    fn ident(&mut self) -> Ident {
        let span = self.bump();
        Ident { name: self.text_of(span).to_owned(), span }
    }

    // Errors.

    /// The current token, for a message.
    fn found(&self) -> String {
        let token = self.token(0);
        match token.kind {
            TokenKind::Ident | TokenKind::Int | TokenKind::String | TokenKind::Unknown => {
                let text = self.text_of(token.span);
                match text.char_indices().nth(30) {
                    Some((cut, _)) => format!("`{}...`", &text[..cut]),
                    None => format!("`{text}`"),
                }
            }
            kind => kind.describe().to_owned(),
        }
    }

    fn error(&mut self, make: impl FnOnce(Span) -> Diagnostic) {
        if self.trials > 0 || self.last_error_at == Some(self.at) {
            return;
        }
        self.last_error_at = Some(self.at);
        let error = make(self.span());
        self.errors.push(error);
        if self.errors.len() == MAX_ERRORS {
            let note = Diagnostic::error(self.span(), "too many errors; the rest is not checked");
            self.errors.push(note);
        }
        if self.errors.len() > MAX_ERRORS {
            // Every list ends at the end of the text.
            self.at = self.tokens.len().saturating_sub(1);
            self.last_error_at = Some(self.at);
        }
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        if self.trials > 0 {
            return Err(Failed);
        }
        let found = self.found();
        if self.kind() == TokenKind::Unknown {
            let note = if found.contains('#') {
                "a preprocessor directive has to be the first thing on its line"
            } else {
                "outside of strings, comments and annotations P4 is written with ASCII letters and signs"
            };
            self.error(|at| Diagnostic::error(at, format!("{found} is not allowed here")).note(note));
        } else {
            self.error(|at| Diagnostic::error(at, format!("expected {what}, found {found}")));
        }
        Err(Failed)
    }

    // Limits.

    /// Parses one nesting level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return self.over_limit(|at| {
                Diagnostic::error(at, "this is nested too deeply")
                    .note(format!("the limit is {MAX_NESTING} levels of brackets and blocks"))
            });
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Records the height of a node above trees of height `below`.
    fn grow(&mut self, below: u32) -> Parsed<()> {
        self.height = below + 1;
        if self.height > MAX_HEIGHT {
            self.height = 0;
            return self.over_limit(|at| {
                Diagnostic::error(at, "this chain is too long")
                    .note(format!("the limit is {MAX_HEIGHT} chained operators or `else if`"))
                    .help("break it up with intermediate variables")
            });
        }
        Ok(())
    }

    /// Records an error even during a trial, because another reading would not help.
    fn over_limit<T>(&mut self, make: impl FnOnce(Span) -> Diagnostic) -> Parsed<T> {
        let trials = std::mem::take(&mut self.trials);
        self.error(make);
        self.trials = trials;
        Err(Failed)
    }

    /// Tries a reading. On failure, goes back and returns `None`.
    fn attempt<T>(&mut self, trial: Trial, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Option<T>> {
        let start = self.at;
        if self.failed_trials.contains(&(trial, start)) {
            return Ok(None);
        }
        let (in_angles, height, errors) = (self.in_angles, self.height, self.errors.len());
        self.trials += 1;
        let result = parse(self);
        self.trials -= 1;
        if self.errors.len() > errors {
            return Err(Failed);
        }
        if result.is_err() {
            self.at = start;
            self.in_angles = in_angles;
            self.height = height;
            self.failed_trials.insert((trial, start));
        }
        Ok(result.ok())
    }

    // Lists.

    /// `item, item, ...` up to `close`, which is not consumed. A trailing comma is accepted if asked for.
    fn separated<T>(
        &mut self,
        close: TokenKind,
        trailing_comma: bool,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        let mut height = 0;
        while items.is_empty() || !(trailing_comma && self.kind() == close) {
            if items.is_empty() && self.kind() == close {
                break;
            }
            self.height = 0;
            items.push(item(self)?);
            height = height.max(self.height);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.height = height;
        Ok(items)
    }

    /// `{ item item ... }`, recovering from errors inside an item at its `;` or `}`. Returns the span of the
    /// whole. A token that only occurs further out closes the list, with an error.
    fn braced(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<Span> {
        let open = self.expect(TokenKind::OpenBrace)?;
        let mut height = 0;
        loop {
            match self.kind() {
                TokenKind::CloseBrace => {
                    self.bump();
                    break;
                }
                kind if kind == TokenKind::End || is_outer(kind) => {
                    let found = self.found();
                    self.error(|at| {
                        Diagnostic::error(at, format!("expected `}}`, found {found}"))
                            .label(open, "this `{` is still open")
                    });
                    if kind == TokenKind::End || self.trials > 0 {
                        return Err(Failed);
                    }
                    break;
                }
                _ => {
                    let start = self.at;
                    self.height = 0;
                    if item(self).is_err() {
                        if self.trials > 0 {
                            return Err(Failed);
                        }
                        self.recover(start);
                    }
                    height = height.max(self.height);
                }
            }
        }
        self.height = height;
        Ok(self.span_from(open))
    }

    /// Recovers from an error in an item that began at token `start`: skips past the next `;` or `{...}`, or
    /// up to the `}` that closes the list.
    fn recover(&mut self, start: usize) {
        let mut depth = 0u32;
        loop {
            let kind = self.kind();
            match kind {
                TokenKind::End => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace if depth == 0 => return,
                TokenKind::CloseBrace => depth -= 1,
                // An outer declaration at the start of a line: most likely a bracket is missing above it.
                kind if is_outer(kind) && depth == 0 && self.at > start => return,
                _ => {}
            }
            self.bump();
            if depth == 0 && matches!(kind, TokenKind::Semicolon | TokenKind::CloseBrace) {
                if kind == TokenKind::CloseBrace {
                    // Skip the other branch along with the first.
                    if self.kind() == TokenKind::Else {
                        continue;
                    }
                    // `};` is a common end of a block.
                    self.eat(TokenKind::Semicolon);
                }
                return;
            }
        }
    }

    /// Parses in a new scope of names.
    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push();
        let result = parse(self);
        self.scopes.pop();
        result
    }

    fn declare_type(&mut self, name: &Ident) {
        let text = self.text_of(name.span);
        self.scopes.declare_type(text);
    }

    fn declare_value(&mut self, name: &Ident) {
        let text = self.text_of(name.span);
        self.scopes.declare_value(text);
    }
}

/// Keywords of declarations that occur only at top level.
fn is_outer(kind: TokenKind) -> bool {
    use TokenKind::*;
    matches!(kind, Parser | Control | Header | HeaderUnion | Struct | Enum | Typedef | Package | Extern)
}
