//! Macro definitions and the tokens they consist of.

use super::is_word_byte;
use crate::ast::Span;
use crate::lexer::sign_length;
use std::rc::Rc;

/// Class of a token, as far as macros distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenClass {
    Word,
    Number,
    String,
    Sign,
}

/// A token inside a macro.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenClass,
    pub(super) text: Rc<str>,
    /// Whether white space precedes it.
    pub(super) space: bool,
    /// Macros that must no longer expand it.
    pub(super) hidden: Option<Rc<Hidden>>,
}

/// A list of macro names.
#[derive(Debug)]
pub(super) struct Hidden {
    pub(super) name: Rc<str>,
    pub(super) depth: usize,
    pub(super) next: Option<Rc<Hidden>>,
}

/// Whether a list contains a name.
pub(super) fn hides(list: &Option<Rc<Hidden>>, name: &str) -> bool {
    let mut next = list.as_ref();
    while let Some(entry) = next {
        if &*entry.name == name {
            return true;
        }
        next = entry.next.as_ref();
    }
    false
}

/// A macro definition.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    /// Parameters of a function-like macro.
    pub(super) params: Option<Vec<String>>,
    /// Whether the last parameter takes all further arguments.
    pub(super) variadic: bool,
    pub(super) body: Vec<Token>,
    /// Source location of the definition.
    pub(super) at: Span,
}

impl Macro {
    /// `NAME body` or `NAME(a, b) body`
    pub(super) fn parse(text: &str, at: Span) -> Result<(String, Macro), String> {
        let end = text.bytes().position(|b| !is_word_byte(b)).unwrap_or(text.len());
        let name = &text[..end];
        if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
            return Err("a macro needs a name made of letters, digits and underscores".to_owned());
        }
        let mut rest = &text[end..];
        let mut params = None;
        let mut variadic = false;
        if let Some(after) = rest.strip_prefix('(') {
            let Some((list, body)) = after.split_once(')') else {
                return Err(format!("the parameters of macro `{name}` lack a `)`"));
            };
            let mut names: Vec<String> = Vec::new();
            for param in list.split(',').map(str::trim) {
                if param.is_empty() && list.trim().is_empty() {
                    break;
                }
                if variadic {
                    return Err("`...` has to be the last parameter".to_owned());
                }
                let param = match param.strip_suffix("...") {
                    None => param,
                    Some(named) => {
                        variadic = true;
                        if named.trim().is_empty() { "__VA_ARGS__" } else { named.trim() }
                    }
                };
                let well_formed =
                    param.bytes().all(is_word_byte) && !param.starts_with(|c: char| c.is_ascii_digit());
                if param.is_empty() || !well_formed || names.iter().any(|n| n == param) {
                    return Err(format!("`{param}` cannot be a parameter of macro `{name}`"));
                }
                names.push(param.to_owned());
            }
            params = Some(names);
            rest = body;
        }
        let mut body = tokenize(rest);
        if let Some(first) = body.first_mut() {
            first.space = false;
        }
        let pastes = |token: Option<&Token>| token.is_some_and(|t| &*t.text == "##");
        if pastes(body.first()) || pastes(body.last()) {
            return Err("`##` needs something on both sides".to_owned());
        }
        Ok((name.to_owned(), Macro { params, variadic, body, at }))
    }

    /// Whether another definition is equivalent.
    pub(super) fn same_as(&self, other: &Macro) -> bool {
        let alike = |(a, b): (&Token, &Token)| a.text == b.text && a.space == b.space;
        self.params == other.params
            && self.variadic == other.variadic
            && self.body.len() == other.body.len()
            && self.body.iter().zip(&other.body).all(alike)
    }
}

/// Splits a text without comments and line ends into tokens.
pub(super) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut space = false;
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        if let Some(blank) = rest.chars().next().filter(|c| c.is_whitespace()) {
            at += blank.len_utf8();
            space = true;
            continue;
        }
        let (kind, length) = token_length(rest);
        tokens.push(Token { kind, text: rest[..length].into(), space, hidden: None });
        space = false;
        at += length;
    }
    tokens
}

/// Class and length of the first token of a text. The text is not empty and does not start with white space.
pub(super) fn token_length(text: &str) -> (TokenClass, usize) {
    let bytes = text.as_bytes();
    let word = || bytes.iter().position(|b| !is_word_byte(*b)).unwrap_or(bytes.len());
    match bytes.first() {
        Some(b'0'..=b'9') => (TokenClass::Number, word()),
        Some(b'"') => {
            let mut escaped = false;
            let close = bytes.iter().skip(1).position(|b| {
                let ends = *b == b'"' && !escaped;
                escaped = *b == b'\\' && !escaped;
                ends
            });
            (TokenClass::String, close.map_or(bytes.len(), |at| at + 2))
        }
        Some(byte) if is_word_byte(*byte) => (TokenClass::Word, word()),
        Some(b'#') => (TokenClass::Sign, if bytes.get(1) == Some(&b'#') { 2 } else { 1 }),
        _ => (TokenClass::Sign, sign_length(text).unwrap_or(text.chars().next().map_or(1, char::len_utf8))),
    }
}

/// Whether two adjacent texts would be read as different tokens than separately.
pub(super) fn fuses(left: &str, right: &str) -> bool {
    let is_word = |b: Option<&u8>| b.is_some_and(|b| is_word_byte(*b));
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if is_word(left.last()) || is_word(right.first()) {
        return is_word(left.last()) && is_word(right.first());
    }
    // No sign is longer than four characters.
    let tail = &left[left.len().saturating_sub(3)..];
    let head = &right[..right.len().min(3)];
    (0..tail.len()).any(|from| {
        let pair: String = tail[from..].iter().chain(head).map(|b| char::from(*b)).collect();
        let own = tail.len() - from;
        sign_length(&pair).is_some_and(|l| l > own)
            || (own == 1 && (pair.starts_with("//") || pair.starts_with("/*")))
    })
}

/// Text of tokens, with spaces where they were written or where tokens would run together.
pub(super) fn join(tokens: &[Token]) -> String {
    let mut out = String::new();
    let mut previous: Option<&Token> = None;
    for token in tokens {
        let runs_together = previous.is_some_and(|p| fuses(&p.text, &token.text));
        if !out.is_empty() && (token.space || runs_together) {
            out.push(' ');
        }
        out.push_str(&token.text);
        previous = Some(token);
    }
    out
}
