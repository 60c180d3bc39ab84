//! Values of integer and string literals.

use crate::ast::IntWidth;
use num_bigint::BigInt;

/// Maximum digits of an integer literal; parsing is quadratic in the length.
const MAX_DIGITS: usize = 2_000;

/// Maximum width of an integer literal, far beyond any target's.
const MAX_WIDTH: u32 = 65_536;

/// Value, width and base of literals such as `0xFF`, `8w0b1010`, `4s-1` and `1_000`.
pub(super) fn integer(text: &str) -> Result<(BigInt, Option<IntWidth>, u8), String> {
    if text.len() > MAX_DIGITS {
        return Err(format!("a number of {} characters is too long, the limit is {MAX_DIGITS}", text.len()));
    }
    let (width, number) = match text.find(['w', 's']) {
        None => (None, text),
        Some(at) => {
            let digits: String = text[..at].chars().filter(|c| *c != '_').collect();
            let bits = digits.parse::<u32>().ok().filter(|bits| *bits <= MAX_WIDTH).ok_or_else(|| {
                format!("`{}` is not a width: expected a number of bits up to {MAX_WIDTH}", &text[..at])
            })?;
            let signed = text.as_bytes().get(at) == Some(&b's');
            (Some(IntWidth { bits, signed }), &text[at + 1..])
        }
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (radix, digits) = match number.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &number[2..]),
        [b'0', b'b' | b'B', ..] => (2, &number[2..]),
        [b'0', b'o' | b'O', ..] => (8, &number[2..]),
        [b'0', b'd' | b'D', ..] => (10, &number[2..]),
        _ => (10, number),
    };
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.is_empty() {
        return Err(format!("`{text}` has no digits"));
    }
    if let Some(wrong) = plain.chars().find(|c| !c.is_digit(radix)) {
        let system = match radix {
            2 => "binary",
            8 => "octal",
            16 => "hexadecimal",
            _ => "decimal",
        };
        return Err(format!("`{wrong}` is not a {system} digit"));
    }
    let value =
        BigInt::parse_bytes(plain.as_bytes(), radix).ok_or_else(|| format!("`{text}` is not a number"))?;
    Ok((if negative { -value } else { value }, width, radix as u8))
}

/// Text of a string literal, which is given with its quotes. Escapes other than `\"`, `\\`, `
/// `, `\t` and `\r` are kept as written.
pub(super) fn string(literal: &str) -> String {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some(c @ ('"' | '\\')) => value.push(c),
            other => {
                value.push('\\');
                value.extend(other);
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_every_base_with_widths_and_separators() {
        type Case = (&'static str, i64, Option<(u32, bool)>);
        let cases: &[Case] = &[
            ("0", 0, None),
            ("007", 7, None),
            ("1_000", 1000, None),
            ("0xFf_0", 0xFF0, None),
            ("0b1_01", 5, None),
            ("0o17", 15, None),
            ("0d19", 19, None),
            ("8w10", 10, Some((8, false))),
            ("16w0xBEEF", 0xBEEF, Some((16, false))),
            ("4s7", 7, Some((4, true))),
            ("4s-1", -1, Some((4, true))),
            ("1w0b1", 1, Some((1, false))),
        ];
        for (text, value, width) in cases {
            let (got, got_width, _) = integer(text).unwrap();
            assert_eq!(got, BigInt::from(*value), "{text}");
            assert_eq!(got_width.map(|w| (w.bits, w.signed)), *width, "{text}");
        }
        assert_eq!(integer(&"9".repeat(100)).unwrap().0.to_string(), "9".repeat(100));
    }

    #[test]
    fn malformed_integers_say_why() {
        for (text, why) in [
            ("0x", "has no digits"),
            ("8w", "has no digits"),
            ("0b12", "`2` is not a binary digit"),
            ("12ab", "`a` is not a decimal digit"),
            ("99999999999w1", "is not a width"),
            ("0xw1", "is not a width"),
            ("8w_", "has no digits"),
        ] {
            let error = integer(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(integer(&"1".repeat(3000)).unwrap_err().contains("too long"));
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(string(r#""a\"b\\c\n\d""#), "a\"b\\c\n\\d");
        assert_eq!(string("\"\\"), "\\");
    }
}
