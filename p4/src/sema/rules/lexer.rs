//! Splits the text of a restriction into tokens.

use num_bigint::BigInt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Maximum characters of a number; parsing is quadratic in the length.
const MAX_DIGITS: usize = 2_000;
/// Operators and brackets; longer ones come first.
const SIGNS: [&str; 16] =
    ["::", "&&", "||", "->", "==", "!=", "<=", ">=", "<", ">", "!", "-", "(", ")", ";", "'"];

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, with dots.
    Name(String),
    /// A number or network address.
    Number(BigInt),
    /// One of [`SIGNS`].
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A mistake in a text, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub message: String,
    pub at: Range<usize>,
}

/// A result that may be a fault.
pub(super) type Parsed<T> = Result<T, Fault>;

pub(super) fn fault<T>(at: Range<usize>, message: impl Into<String>) -> Parsed<T> {
    Err(Fault { message: message.into(), at })
}

/// The tokens of a text with their bytes; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Parsed<Vec<(Token, Range<usize>)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(comment) = comment(rest) {
            at += comment;
            continue;
        }
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            (Token::Number(number(&rest[..length], at)?), length)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = name(rest);
            match address(&rest[..length], &rest[length..], at + length)? {
                Some((value, more)) => (Token::Number(value), length + more),
                None => (Token::Name(rest[..length].to_owned()), length),
            }
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return fault(at..at + first.len_utf8(), format!("`{first}` has no meaning here"));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, at..at));
    Ok(tokens)
}

/// Length of a comment at the start of a text.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.find("*/").map_or(text.len(), |end| end + 4))
}

/// Length of a name: `a`, `hdr.ipv4.dst`, `hdr.vlan[0].id`. A dot must be followed by a part.
fn name(text: &str) -> usize {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '[' | ']');
    let mut length = 0;
    loop {
        length += text[length..].find(|c| !inside(c)).unwrap_or(text.len() - length);
        match text[length..].strip_prefix('.').and_then(|part| part.chars().next()) {
            Some(first) if first.is_ascii_alphabetic() || matches!(first, '_' | '$') => length += 1,
            _ => return length,
        }
    }
}

fn number(text: &str, at: usize) -> Parsed<BigInt> {
    let here = at..at + text.len();
    if text.len() > MAX_DIGITS {
        return fault(here, format!("a number of {} characters, the limit is {MAX_DIGITS}", text.len()));
    }
    let (digits, radix) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (&text[2..], 16),
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        Some("0d") => (&text[2..], 10),
        _ => (text, 10),
    };
    match BigInt::parse_bytes(digits.as_bytes(), radix) {
        Some(value) => Ok(value),
        None => fault(here, format!("`{text}` is not a number")),
    }
}

/// `ipv4('…')`, `ipv6('…')` or `mac('…')`: the value, and the length from the bracket on. `at` is the position of
/// `rest`.
fn address(kind: &str, rest: &str, at: usize) -> Parsed<Option<(BigInt, usize)>> {
    if !matches!(kind, "ipv4" | "ipv6" | "mac") {
        return Ok(None);
    }
    let Some(quoted) = rest.trim_start().strip_prefix('(').map(str::trim_start) else { return Ok(None) };
    let Some(quoted) = quoted.strip_prefix('\'') else {
        return fault(at..at + 1, format!("`{kind}(…)` takes an address in single quotes"));
    };
    let whole = quoted
        .split_once('\'')
        .and_then(|(inner, after)| Some((inner, after.trim_start().strip_prefix(')')?)));
    let Some((inner, after)) = whole else {
        return fault(at..at + 1, format!("`{kind}('…')` is not closed"));
    };
    let value = match kind {
        "ipv4" => inner.parse::<Ipv4Addr>().ok().map(|address| BigInt::from(u32::from(address))),
        "ipv6" => inner.parse::<Ipv6Addr>().ok().map(|address| BigInt::from(u128::from(address))),
        _ => mac(inner),
    };
    let length = rest.len() - after.len();
    match value {
        Some(value) => Ok(Some((value, length))),
        None => fault(at..at + length, format!("`{inner}` is not an address of kind `{kind}`")),
    }
}

fn mac(text: &str) -> Option<BigInt> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() != 6 || parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    let bytes: Option<Vec<u8>> = parts.iter().map(|part| u8::from_str_radix(part, 16).ok()).collect();
    Some(BigInt::from_bytes_be(num_bigint::Sign::Plus, &bytes?))
}
