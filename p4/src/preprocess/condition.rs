//! Evaluates the expression after `#if`.

use super::macros::{Token, TokenClass};

/// Maximum nesting of brackets and unary operators.
const MAX_NESTING: u32 = 100;

/// Evaluates a condition whose macros are expanded and whose `defined` is replaced. Remaining names count as
/// 0, as in C.
pub(super) fn evaluate(tokens: &[Token]) -> Result<i64, String> {
    let mut evaluator = Evaluator { tokens, at: 0, nesting: 0 };
    if tokens.is_empty() {
        return Err("nothing to decide upon".to_owned());
    }
    let value = evaluator.ternary(true)?;
    match evaluator.peek() {
        "" => Ok(value),
        other => Err(format!("unexpected `{other}`")),
    }
}

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    nesting: u32,
}

/// Operators by precedence, loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Evaluator<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |t| &t.text)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.peek() == sign;
        self.at += usize::from(found);
        found
    }

    /// The operator of this precedence level at the cursor. `>>` is two tokens.
    fn operator(&self, level: usize) -> Option<(&'static str, usize)> {
        let shift =
            self.peek() == ">" && self.tokens.get(self.at + 1).is_some_and(|t| &*t.text == ">" && !t.space);
        let (found, tokens) = if shift { (">>", 2) } else { (self.peek(), 1) };
        LEVELS.get(level)?.iter().find(|op| **op == found).map(|op| (*op, tokens))
    }

    /// `live` is false where the value is not needed, such as to the right of `0 &&`.
    fn ternary(&mut self, live: bool) -> Result<i64, String> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(format!("nested more than {MAX_NESTING} deep"));
        }
        let condition = self.binary(0, live)?;
        let mut value = condition;
        if self.eat("?") {
            let then = self.ternary(live && condition != 0)?;
            if !self.eat(":") {
                return Err("expected `:`".to_owned());
            }
            let otherwise = self.ternary(live && condition == 0)?;
            value = if condition != 0 { then } else { otherwise };
        }
        self.nesting -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize, live: bool) -> Result<i64, String> {
        if level == LEVELS.len() {
            return self.unary(live);
        }
        let mut left = self.binary(level + 1, live)?;
        while let Some((op, tokens)) = self.operator(level) {
            self.at += tokens;
            let right_live = live
                && match op {
                    "||" => left == 0,
                    "&&" => left != 0,
                    _ => true,
                };
            let right = self.binary(level + 1, right_live)?;
            if matches!(op, "/" | "%") && right == 0 && live {
                return Err("division by zero".to_owned());
            }
            let shift = u32::try_from(right & 63).unwrap_or(0);
            left = match op {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => left.wrapping_shl(shift),
                ">>" => left.wrapping_shr(shift),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right).unwrap_or(0),
                _ => left.checked_rem(right).unwrap_or(0),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Result<i64, String> {
        let mut prefixes = Vec::new();
        while matches!(self.peek(), "!" | "~" | "-" | "+") {
            prefixes.push(self.at);
            self.at += 1;
        }
        let mut value = self.primary(live)?;
        while let Some(prefix) = prefixes.pop() {
            value = match self.tokens.get(prefix).map_or("", |t| &t.text) {
                "!" => i64::from(value == 0),
                "~" => !value,
                "-" => value.wrapping_neg(),
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self, live: bool) -> Result<i64, String> {
        if self.eat("(") {
            let value = self.ternary(live)?;
            return if self.eat(")") { Ok(value) } else { Err("expected `)`".to_owned()) };
        }
        let Some(token) = self.tokens.get(self.at) else {
            return Err("expected a value at the end".to_owned());
        };
        self.at += 1;
        match token.kind {
            TokenClass::Word => Ok(i64::from(&*token.text == "true")),
            TokenClass::Number => {
                number(&token.text).ok_or_else(|| format!("`{}` is not an integer", token.text))
            }
            _ => Err(format!("expected a value, found `{}`", token.text)),
        }
    }
}

fn number(text: &str) -> Option<i64> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (radix, digits) = match plain.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &plain[2..]),
        [b'0', b'b' | b'B', ..] => (2, &plain[2..]),
        [b'0', b'o' | b'O', ..] => (8, &plain[2..]),
        [b'0', _, ..] => (8, &plain[1..]),
        _ => (10, plain.as_str()),
    };
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let digits = if digits.is_empty() && radix == 8 { "0" } else { digits };
    // Like a C compiler's `uintmax_t` read as `intmax_t`.
    u64::from_str_radix(digits, radix).ok().map(|value| value as i64)
}
