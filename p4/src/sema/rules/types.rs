//! Gives an expression its types: bool, int, bit<W>, or the match of a key.
//!
//! A number becomes a `bit<W>` where it meets one, and a match of just that number where it meets a key. So the result has
//! truth values and numbers only.

use super::lexer::{Parsed, fault};
use super::parser::{Expr, Kind};
use crate::ir::{Comparison, KeyPart, MatchKind, Number, Test};
use num_bigint::BigInt;
use num_traits::One;

/// Meaning of names.
pub(super) enum Names<'a> {
    /// Keys of a table: name, width, and how they are matched.
    Keys(Vec<(&'a str, u32, MatchKind)>),
    /// Parameters of an action: name and width.
    Params(Vec<(&'a str, u32)>),
}

/// An expression with its type.
enum Typed {
    Test(Test),
    /// `int`
    Int(Number),
    /// `bit<W>`
    Bits(Number, u32),
    /// Of the key at this position, with this width.
    Match(usize, u32, MatchKind),
}

/// The condition that an expression states.
pub(super) fn test(names: &Names<'_>, expr: &Expr) -> Parsed<Test> {
    match names.typed(expr)? {
        Typed::Test(test) => Ok(test),
        other => fault(expr.at.clone(), format!("expected a condition, found {}", other.name())),
    }
}

impl Typed {
    fn name(&self) -> String {
        match self {
            Typed::Test(_) => "a condition".to_owned(),
            Typed::Int(_) => "a number".to_owned(),
            Typed::Bits(_, width) => format!("a `bit<{width}>`"),
            Typed::Match(_, width, kind) => format!("the {} match of a `bit<{width}>`", word(*kind)),
        }
    }
}

impl Names<'_> {
    fn typed(&self, expr: &Expr) -> Parsed<Typed> {
        let all = |parts: &[Expr]| parts.iter().map(|part| test(self, part)).collect::<Parsed<Vec<_>>>();
        Ok(match &expr.kind {
            Kind::Bool(value) => Typed::Test(Test::Const(*value)),
            Kind::Number(value) => Typed::Int(Number::Const(value.clone())),
            Kind::Name(name) => match self.named(name, expr)? {
                // An exact match is a number.
                Typed::Match(at, width, MatchKind::Exact) => {
                    Typed::Bits(Number::Key(at, KeyPart::Value), width)
                }
                other => other,
            },
            Kind::Field(key, field) => self.field(key, field, expr)?,
            Kind::Attribute(name) => match (name.as_str(), self) {
                ("priority", Names::Keys(_)) => Typed::Int(Number::Priority),
                ("priority", Names::Params(_)) => {
                    return fault(expr.at.clone(), "an action has no priority");
                }
                _ => {
                    let message = format!("there is no attribute `{name}`; there is `::priority`");
                    return fault(expr.at.clone(), message);
                }
            },
            Kind::Not(inner) => Typed::Test(Test::Not(Box::new(test(self, inner)?))),
            Kind::Negative(inner) => match self.typed(inner)? {
                Typed::Int(Number::Const(value)) => Typed::Int(Number::Const(-value)),
                Typed::Int(number) => Typed::Int(Number::Negative(Box::new(number))),
                other => {
                    return fault(inner.at.clone(), format!("expected a number, found {}", other.name()));
                }
            },
            Kind::All(parts) => Typed::Test(Test::All(all(parts)?)),
            Kind::Any(parts) => Typed::Test(Test::Any(all(parts)?)),
            Kind::Implies(left, right) => {
                let left = Test::Not(Box::new(test(self, left)?));
                Typed::Test(Test::Any(vec![left, test(self, right)?]))
            }
            Kind::Compare(comparison, left, right) => {
                let (left, right) = (self.typed(left)?, self.typed(right)?);
                Typed::Test(compare(*comparison, left, right, expr)?)
            }
        })
    }

    /// A key or parameter.
    fn named(&self, name: &str, expr: &Expr) -> Parsed<Typed> {
        let (known, what): (Vec<&str>, _) = match self {
            Names::Keys(keys) => {
                if let Some(at) = keys.iter().position(|key| key.0 == name) {
                    return Ok(Typed::Match(at, keys[at].1, keys[at].2));
                }
                (keys.iter().map(|key| key.0).collect(), "key")
            }
            Names::Params(params) => {
                if let Some(at) = params.iter().position(|param| param.0 == name) {
                    return Ok(Typed::Bits(Number::Argument(at), params[at].1));
                }
                (params.iter().map(|param| param.0).collect(), "parameter")
            }
        };
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        fault(expr.at.clone(), format!("there is no {what} `{name}`; there are: {known}"))
    }

    fn field(&self, key: &str, field: &str, expr: &Expr) -> Parsed<Typed> {
        let Typed::Match(at, width, kind) = self.named(key, expr)? else {
            return fault(expr.at.clone(), format!("`{key}` has no parts: it is a parameter"));
        };
        let part = parts(kind).iter().find(|part| part_name(**part) == field);
        match part {
            Some(KeyPart::PrefixLength) => Ok(Typed::Int(Number::Key(at, KeyPart::PrefixLength))),
            Some(part) => Ok(Typed::Bits(Number::Key(at, *part), width)),
            None => {
                let known: Vec<&str> = parts(kind).iter().map(|part| part_name(*part)).collect();
                let message =
                    format!("{} key has no part `{field}`; it has: {}", word(kind), known.join(", "));
                fault(expr.at.clone(), message)
            }
        }
    }
}

fn word(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact | MatchKind::Selector => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
    }
}

/// The parts of a match.
fn parts(kind: MatchKind) -> &'static [KeyPart] {
    match kind {
        MatchKind::Exact | MatchKind::Selector => &[KeyPart::Value],
        MatchKind::Ternary | MatchKind::Optional => &[KeyPart::Value, KeyPart::Mask],
        MatchKind::Lpm => &[KeyPart::Value, KeyPart::PrefixLength],
        MatchKind::Range => &[KeyPart::Low, KeyPart::High],
    }
}

fn part_name(part: KeyPart) -> &'static str {
    match part {
        KeyPart::Value => "value",
        KeyPart::Mask => "mask",
        KeyPart::PrefixLength => "prefix_length",
        KeyPart::Low => "low",
        KeyPart::High => "high",
    }
}

fn compare(comparison: Comparison, left: Typed, right: Typed, expr: &Expr) -> Parsed<Test> {
    let (left, right) = match (left, right) {
        (Typed::Int(left), Typed::Int(right)) => return Ok(Test::Compare(comparison, left, right)),
        (Typed::Bits(left, width), Typed::Int(right)) => {
            return Ok(Test::Compare(comparison, left, low(right, width)));
        }
        (Typed::Int(left), Typed::Bits(right, width)) => {
            return Ok(Test::Compare(comparison, low(left, width), right));
        }
        (Typed::Bits(left, one), Typed::Bits(right, other)) if one == other => {
            return Ok(Test::Compare(comparison, left, right));
        }
        sides => sides,
    };
    let equal = match (&left, &right) {
        (Typed::Test(left), Typed::Test(right)) => {
            Test::Same(Box::new(left.clone()), Box::new(right.clone()))
        }
        (Typed::Match(at, width, kind), other) | (other, Typed::Match(at, width, kind))
            if fits(other, *width, *kind) =>
        {
            let pair = |part: &KeyPart| {
                Test::Compare(Comparison::Equal, Number::Key(*at, *part), part_of(other, *part, *width))
            };
            Test::All(parts(*kind).iter().map(pair).collect())
        }
        _ => {
            let message = format!("{} can't be compared with {}", left.name(), right.name());
            return fault(expr.at.clone(), message);
        }
    };
    match comparison {
        Comparison::Equal => Ok(equal),
        Comparison::NotEqual => Ok(Test::Not(Box::new(equal))),
        _ => {
            let message = format!("{} has no order; compare one of its parts", left.name());
            fault(expr.at.clone(), message)
        }
    }
}

/// Whether something can be compared with a match of this width and kind.
fn fits(other: &Typed, width: u32, kind: MatchKind) -> bool {
    match other {
        Typed::Test(_) => false,
        Typed::Int(_) => true,
        Typed::Bits(_, bits) => *bits == width,
        Typed::Match(_, bits, same) => *bits == width && *same == kind,
    }
}

/// A part of a match, or of the match of just a number.
fn part_of(other: &Typed, part: KeyPart, width: u32) -> Number {
    match (other, part) {
        (Typed::Match(at, ..), part) => Number::Key(*at, part),
        (_, KeyPart::PrefixLength) => Number::Const(width.into()),
        (_, KeyPart::Mask) => Number::Const(modulus(width) - 1),
        (Typed::Int(number) | Typed::Bits(number, _), _) => low(number.clone(), width),
        (Typed::Test(_), _) => Number::Const(BigInt::ZERO),
    }
}

fn modulus(width: u32) -> BigInt {
    BigInt::one() << width
}

/// The lowest bits of a number.
fn low(number: Number, width: u32) -> Number {
    match number {
        Number::Const(value) => {
            let modulus = modulus(width);
            Number::Const(((value % &modulus) + &modulus) % &modulus)
        }
        // These are of that width.
        Number::Key(_, KeyPart::Value | KeyPart::Mask | KeyPart::Low | KeyPart::High)
        | Number::Argument(_) => number,
        number => Number::Low(Box::new(number), width),
    }
}
