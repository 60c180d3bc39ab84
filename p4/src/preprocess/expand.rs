//! Macro expansion.
//!
//! The algorithm is Dave Prosser's: every token carries the set of macros that must no longer expand it, so
//! expansion terminates for any references between macros.

use super::macros::{Hidden, Macro, Token, TokenClass, fuses, hides, join, token_length, tokenize};
use super::{Preprocessor, Reader};
use crate::ast::Span;
use crate::diag::Diagnostic;
use std::rc::Rc;

/// Maximum macro tokens produced per run.
const MAX_EXPANDED: usize = 1_000_000;

/// Maximum nesting of macro uses and of calls within arguments.
const MAX_DEPTH: usize = 100;

/// Source of tokens: the pending ones, then a file.
struct Supply<'r, 't> {
    /// Pending tokens; the next one is last.
    pending: Vec<Token>,
    /// The file that supplies tokens when no more are pending.
    reader: Option<&'r mut Reader<'t>>,
}

impl Supply<'_, '_> {
    fn next(&mut self) -> Option<Token> {
        self.pending.pop().or_else(|| read_token(self.reader.as_deref_mut()?))
    }

    /// Whether the next token is `(`. Consumes nothing otherwise.
    fn next_is_open(&mut self) -> bool {
        if let Some(token) = self.pending.last() {
            return &*token.text == "(";
        }
        let Some(reader) = self.reader.as_deref_mut() else { return false };
        let (at, copied) = (reader.at, reader.copied);
        let found = read_token(reader).is_some_and(|t| &*t.text == "(");
        reader.at = at;
        reader.copied = copied;
        found
    }
}

/// Reads a token from a file, skipping comments and line ends.
fn read_token(reader: &mut Reader<'_>) -> Option<Token> {
    let mut space = false;
    loop {
        match reader.byte(0)? {
            byte if byte.is_ascii_whitespace() => reader.at += 1,
            b'/' if reader.starts_with("//") => reader.line_comment(),
            b'/' if reader.starts_with("/*") => {
                reader.block_comment();
            }
            b'\\' if reader.splice() > 0 => reader.at += reader.splice(),
            _ => break,
        }
        space = true;
    }
    let start = reader.at;
    let kind = if reader.byte(0) == Some(b'"') {
        reader.string();
        TokenClass::String
    } else {
        let (kind, length) = token_length(reader.text.get(start..)?);
        reader.at += length;
        kind
    };
    let text = reader.text.get(start..reader.at)?;
    Some(Token { kind, text: text.into(), space, hidden: None })
}

impl Preprocessor<'_> {
    /// Expands the macro whose name starts at `start` and ends at the reader's position.
    pub(super) fn expand_use(&mut self, reader: &mut Reader<'_>, start: usize) {
        let end = reader.at;
        let name: Rc<str> = reader.text.get(start..end).unwrap_or("").into();
        let file = reader.file;
        let at = self.map.file_span(file, start, end);
        reader.at = start;
        self.copy(reader);
        reader.at = end;
        let token = Token { kind: TokenClass::Word, text: name.clone(), space: false, hidden: None };
        let mut supply = Supply { pending: vec![token], reader: Some(reader) };
        let tokens = self.expand(at, &mut supply, 0);
        let mut text = join(&tokens);
        // Keep the neighbouring text from running together with the expansion.
        let rest = reader.text.get(reader.at..).unwrap_or("");
        if fuses(&text, rest) || (text.is_empty() && fuses(self.map.text(), rest)) {
            text.push(' ');
        }
        if fuses(self.map.text(), &text) {
            text.insert(0, ' ');
        }
        let used = self.map.file_span(file, start, reader.at);
        reader.copied = reader.at;
        self.map.push_expansion(used, &name, &text);
        self.check_size(reader);
    }

    /// Expands a text without comments, for directives.
    pub(super) fn expand_text(&mut self, at: Span, text: &str) -> String {
        join(&self.expand_tokens(at, tokenize(text), 0))
    }

    /// Expands the expression of `#if` after replacing `defined`.
    pub(super) fn expand_condition(&mut self, at: Span, text: &str) -> Vec<Token> {
        let tokens = tokenize(text);
        let mut replaced = Vec::new();
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            index += 1;
            if &*token.text != "defined" {
                replaced.push(token.clone());
                continue;
            }
            let text_at = |i: usize| tokens.get(i).map_or("", |t: &Token| &*t.text);
            let (name, used) = if text_at(index) == "(" && text_at(index + 2) == ")" {
                (tokens.get(index + 1), 3)
            } else {
                (tokens.get(index), 1)
            };
            match name.filter(|n| n.kind == TokenClass::Word) {
                Some(name) => {
                    let value = if self.is_defined(&name.text) { "1" } else { "0" };
                    replaced.push(Token {
                        kind: TokenClass::Number,
                        text: value.into(),
                        space: true,
                        hidden: None,
                    });
                    index += used;
                }
                None => {
                    self.error(
                        Diagnostic::error(at, "`defined` needs the name of a macro")
                            .help("write `defined(NAME)`"),
                    );
                }
            }
        }
        self.expand_tokens(at, replaced, 0)
    }

    fn expand_tokens(&mut self, at: Span, mut tokens: Vec<Token>, depth: usize) -> Vec<Token> {
        tokens.reverse();
        self.expand(at, &mut Supply { pending: tokens, reader: None }, depth)
    }

    /// Expands all pending tokens. A macro call may continue into the file behind them.
    fn expand(&mut self, at: Span, supply: &mut Supply<'_, '_>, depth: usize) -> Vec<Token> {
        let mut out: Vec<Token> = Vec::new();
        while let Some(token) = supply.pending.pop() {
            if self.stopped {
                return out;
            }
            if token.kind != TokenClass::Word || hides(&token.hidden, &token.text) {
                out.push(token);
                continue;
            }
            match &*token.text {
                "__LINE__" => {
                    let line = self.map.locate(at).line.to_string();
                    out.push(Token { kind: TokenClass::Number, text: line.into(), ..token });
                    continue;
                }
                "__FILE__" => {
                    let name = self.map.locate(at).file.replace('\\', "\\\\").replace('"', "\\\"");
                    out.push(Token { kind: TokenClass::String, text: format!("\"{name}\"").into(), ..token });
                    continue;
                }
                _ => {}
            }
            let Some(found) = self.macros.get(&*token.text) else {
                out.push(token);
                continue;
            };
            let is_call = found.params.is_some();
            if is_call && !supply.next_is_open() {
                out.push(token);
                continue;
            }
            let found = found.clone();
            let args = if is_call {
                let Some(args) = self.arguments(at, supply, &token.text, &found) else {
                    out.push(token);
                    continue;
                };
                args
            } else {
                Vec::new()
            };
            let hidden_depth = token.hidden.as_ref().map_or(0, |h| h.depth) + 1;
            if hidden_depth > MAX_DEPTH || depth > MAX_DEPTH {
                self.stop(Diagnostic::error(at, format!("macros are nested more than {MAX_DEPTH} deep")));
                return out;
            }
            let hidden =
                Rc::new(Hidden { name: token.text.clone(), depth: hidden_depth, next: token.hidden.clone() });
            let mut body = self.substitute(at, &found, &args, depth);
            self.expanded += body.len();
            if self.expanded > MAX_EXPANDED {
                self.stop(Diagnostic::error(at, format!("macros expand to more than {MAX_EXPANDED} tokens")));
                return out;
            }
            for made in &mut body {
                // A token from an argument may be hidden from several macros.
                made.hidden = Some(match &made.hidden {
                    None => hidden.clone(),
                    Some(own) => Rc::new(Hidden {
                        name: token.text.clone(),
                        depth: own.depth.max(hidden_depth),
                        next: Some(own.clone()),
                    }),
                });
            }
            if let Some(first) = body.first_mut() {
                first.space = token.space;
            }
            supply.pending.extend(body.into_iter().rev());
        }
        out
    }

    /// Reads the arguments `(a, b)` of a macro call.
    fn arguments(
        &mut self,
        at: Span,
        supply: &mut Supply<'_, '_>,
        name: &str,
        found: &Macro,
    ) -> Option<Vec<Vec<Token>>> {
        let params = found.params.as_deref().unwrap_or(&[]);
        supply.next();
        let mut args: Vec<Vec<Token>> = vec![Vec::new()];
        let mut depth = 0usize;
        loop {
            let Some(token) = supply.next() else {
                self.error(Diagnostic::error(at, format!("the arguments of macro `{name}` lack a `)`")));
                return None;
            };
            match &*token.text {
                "(" => depth += 1,
                ")" if depth == 0 => break,
                ")" => depth -= 1,
                "," if depth == 0 && !(found.variadic && args.len() >= params.len()) => {
                    args.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = args.last_mut() {
                last.push(token);
            }
        }
        if params.is_empty() && args.iter().all(Vec::is_empty) && args.len() == 1 {
            args.clear();
        }
        if found.variadic && args.len() + 1 == params.len() {
            args.push(Vec::new());
        }
        if args.len() != params.len() {
            let error = format!("macro `{name}` takes {} arguments, not {}", params.len(), args.len());
            let error = Diagnostic::error(at, error);
            self.error(if found.at == Span::default() {
                error
            } else {
                error.label(found.at, "defined here")
            });
            return None;
        }
        Some(args)
    }

    /// A macro's body with its parameters replaced, and `#` and `##` applied.
    fn substitute(&mut self, at: Span, found: &Macro, args: &[Vec<Token>], depth: usize) -> Vec<Token> {
        let params = found.params.as_deref().unwrap_or(&[]);
        let argument = |token: &Token| {
            let index = params.iter().position(|p| token.kind == TokenClass::Word && **p == *token.text)?;
            args.get(index)
        };
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; args.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut index = 0;
        while let Some(token) = found.body.get(index) {
            let next = found.body.get(index + 1);
            let pasted = next.is_some_and(|n| &*n.text == "##");
            let stringified =
                next.and_then(argument).filter(|_| found.params.is_some() && &*token.text == "#");
            if let Some(tokens) = stringified {
                let text = join(tokens).replace('\\', "\\\\").replace('"', "\\\"");
                let text = format!("\"{text}\"").into();
                out.push(Token { kind: TokenClass::String, text, space: token.space, hidden: None });
                index += 2;
                continue;
            }
            if &*token.text == "##" {
                let right: Vec<Token> =
                    next.map_or(Vec::new(), |n| argument(n).cloned().unwrap_or_else(|| vec![n.clone()]));
                paste(&mut out, right);
                index += 2;
                continue;
            }
            index += 1;
            let Some(tokens) = argument(token) else {
                out.push(token.clone());
                continue;
            };
            if pasted {
                out.extend(tokens.iter().cloned());
                continue;
            }
            let slot = params.iter().position(|p| **p == *token.text).unwrap_or(0);
            let ready = match expanded.get(slot).cloned().flatten() {
                Some(ready) => ready,
                None => {
                    let ready = self.expand_tokens(at, tokens.clone(), depth + 1);
                    if let Some(place) = expanded.get_mut(slot) {
                        *place = Some(ready.clone());
                    }
                    ready
                }
            };
            self.expanded += ready.len();
            if self.expanded > MAX_EXPANDED {
                return out;
            }
            for (nth, mut made) in ready.into_iter().enumerate() {
                if nth == 0 {
                    made.space = token.space;
                }
                out.push(made);
            }
        }
        out
    }
}

/// Pastes the last token of `left` and the first of `right` together.
fn paste(left: &mut Vec<Token>, right: Vec<Token>) {
    let mut right = right.into_iter();
    if let Some(second) = right.next() {
        match left.pop() {
            None => left.push(second),
            Some(first) => {
                let text = format!("{}{}", first.text, second.text);
                let mut made = tokenize(&text);
                if let Some(made) = made.first_mut() {
                    made.space = first.space;
                }
                left.extend(made);
            }
        }
    }
    left.extend(right);
}
