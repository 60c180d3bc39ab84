//! Compile-time values and arithmetic on them.

use super::types::Type;
use crate::ast::{BinaryOp, UnaryOp};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A scalar known at compile time. Integers are stored mathematically: -1 of type `int<8>` is -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Int(BigInt),
    Str(String),
    /// Number of a member of an enum without underlying type, or of an error.
    Member(u32),
}

/// Why constant folding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldError {
    DivisionByZero,
    NegativeDivision,
    NegativeShift,
    TooBig,
}

impl FoldError {
    pub fn message(self) -> &'static str {
        match self {
            FoldError::DivisionByZero => "division by zero",
            FoldError::NegativeDivision => "division and modulo are not defined for negative numbers",
            FoldError::NegativeShift => "shift by a negative amount",
            FoldError::TooBig => "a number of more than 65536 bits",
        }
    }
}

/// Maximum bits of a compile-time number.
pub(crate) const MAX_BITS: u64 = 1 << 16;

pub(crate) fn pow2(bits: u32) -> BigInt {
    BigInt::one() << bits
}

/// Wraps a number into the range of its type.
pub(crate) fn wrap(value: BigInt, ty: &Type) -> BigInt {
    match ty.underlying() {
        Type::Bit(w) => modulo(value, &pow2(*w)),
        Type::Int(0) => BigInt::zero(),
        Type::Int(w) => {
            let low = modulo(value, &pow2(*w));
            if low >= pow2(*w - 1) { low - pow2(*w) } else { low }
        }
        _ => value,
    }
}

/// A constant converted to another type. `None` if there is no such conversion.
pub(crate) fn convert(v: &Value, want: &Type) -> Option<Value> {
    Some(match (v, want.underlying()) {
        (Value::Int(i), Type::Bool) => Value::Bool(!i.is_zero()),
        (Value::Int(i), Type::Bit(_) | Type::Int(_)) => Value::Int(wrap(i.clone(), want)),
        (Value::Int(i), Type::InfInt) => Value::Int(i.clone()),
        (Value::Bool(b), Type::Bit(_) | Type::Int(_)) => {
            Value::Int(if *b { BigInt::one() } else { BigInt::zero() })
        }
        (Value::Bool(b), Type::Bool) => Value::Bool(*b),
        (Value::Member(m), Type::Enum(_)) => Value::Member(*m),
        _ => return None,
    })
}

/// Whether a number is in the range of a type.
pub(crate) fn fits(value: &BigInt, ty: &Type) -> bool {
    wrap(value.clone(), ty) == *value
}

fn modulo(value: BigInt, by: &BigInt) -> BigInt {
    let rest = value % by;
    if rest.is_negative() { rest + by } else { rest }
}

/// The bit pattern of a number in a type of this width.
pub(crate) fn to_bits(value: &BigInt, width: u32) -> BigUint {
    match modulo(value.clone(), &pow2(width)).into_parts() {
        (Sign::Minus, _) => BigUint::zero(),
        (_, magnitude) => magnitude,
    }
}

impl Value {
    pub fn int(value: impl Into<BigInt>) -> Value {
        Value::Int(value.into())
    }

    pub fn as_int(&self) -> Option<&BigInt> {
        match self {
            Value::Int(i) => Some(i),
            _ => None,
        }
    }

    /// The bits that a scalar of this width stores.
    pub fn bits(&self, width: u32) -> BigUint {
        match self {
            Value::Bool(b) => BigUint::from(u8::from(*b)),
            Value::Int(i) => to_bits(i, width),
            Value::Member(m) => BigUint::from(*m),
            Value::Str(_) => BigUint::zero(),
        }
    }
}

/// `op e`; `ty` is the type of operand and result.
pub(crate) fn unary(op: UnaryOp, value: &Value, ty: &Type) -> Option<Value> {
    Some(match (op, value) {
        (UnaryOp::Not, Value::Bool(b)) => Value::Bool(!b),
        (UnaryOp::Neg, Value::Int(i)) => Value::Int(wrap(-i, ty)),
        (UnaryOp::Plus, Value::Int(_)) => value.clone(),
        (UnaryOp::BitNot, Value::Int(i)) => Value::Int(wrap(-i - 1, ty)),
        _ => return None,
    })
}

/// `a op b`; `ty` is the type of the left operand (and of the result unless it is a comparison).
pub(crate) fn binary(
    op: BinaryOp,
    left: &Value,
    right: &Value,
    ty: &Type,
) -> Result<Option<Value>, FoldError> {
    use BinaryOp::*;
    Ok(Some(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match op {
            And => *a && *b,
            Or => *a || *b,
            Eq => a == b,
            Ne => a != b,
            _ => return Ok(None),
        }),
        (Value::Int(a), Value::Int(b)) => return int_binary(op, a, b, ty),
        (a, b) => Value::Bool(match op {
            Eq => a == b,
            Ne => a != b,
            _ => return Ok(None),
        }),
    }))
}

fn int_binary(op: BinaryOp, a: &BigInt, b: &BigInt, ty: &Type) -> Result<Option<Value>, FoldError> {
    use BinaryOp::*;
    let result = match op {
        Eq => return Ok(Some(Value::Bool(a == b))),
        Ne => return Ok(Some(Value::Bool(a != b))),
        Lt => return Ok(Some(Value::Bool(a < b))),
        Le => return Ok(Some(Value::Bool(a <= b))),
        Gt => return Ok(Some(Value::Bool(a > b))),
        Ge => return Ok(Some(Value::Bool(a >= b))),
        Add => a + b,
        Sub => a - b,
        Mul if a.bits() + b.bits() > MAX_BITS => return Err(FoldError::TooBig),
        Mul => a * b,
        Div | Mod => {
            if b.is_zero() {
                return Err(FoldError::DivisionByZero);
            }
            if a.is_negative() || b.is_negative() {
                return Err(FoldError::NegativeDivision);
            }
            if op == Div { a / b } else { a % b }
        }
        AddSat => return Ok(Some(Value::Int(saturate(a + b, ty)))),
        SubSat => return Ok(Some(Value::Int(saturate(a - b, ty)))),
        BitAnd => a & b,
        BitOr => a | b,
        BitXor => a ^ b,
        Shl | Shr => {
            if b.is_negative() {
                return Err(FoldError::NegativeShift);
            }
            let bounded = ty.is_bits();
            match b.to_u64() {
                Some(n) if n <= MAX_BITS => {
                    if op == Shr {
                        a >> n
                    } else if a.bits() + n > MAX_BITS && !bounded {
                        return Err(FoldError::TooBig);
                    } else {
                        a << n
                    }
                }
                _ if op == Shr || bounded => {
                    if op == Shr && a.is_negative() {
                        -BigInt::one()
                    } else {
                        BigInt::zero()
                    }
                }
                _ => return Err(FoldError::TooBig),
            }
        }
        Concat | And | Or => return Ok(None),
    };
    Ok(Some(Value::Int(wrap(result, ty))))
}

fn saturate(value: BigInt, ty: &Type) -> BigInt {
    let (lo, hi) = match ty.underlying() {
        Type::Bit(w) => (BigInt::zero(), pow2(*w) - 1),
        Type::Int(w) if *w > 0 => (-pow2(*w - 1), pow2(*w - 1) - 1),
        _ => return value,
    };
    value.clamp(lo, hi)
}

/// `a ++ b`; `b` has this width.
pub(crate) fn concat(left: &BigInt, right: &BigInt, right_width: u32, ty: &Type) -> BigInt {
    wrap((left << right_width) + BigInt::from(to_bits(right, right_width)), ty)
}

/// `e[hi:lo]`
pub(crate) fn slice(value: &BigInt, hi: u32, lo: u32) -> BigInt {
    modulo(value >> lo, &pow2(hi - lo + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fold(op: BinaryOp, a: i64, b: i64, ty: &Type) -> Option<i64> {
        match binary(op, &Value::int(a), &Value::int(b), ty) {
            Ok(Some(Value::Int(i))) => i.to_i64(),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_machine_arithmetic(a: i8, b: i8) {
            let (ua, ub) = (i64::from(a as u8), i64::from(b as u8));
            let (sa, sb) = (i64::from(a), i64::from(b));
            let (bit, int) = (Type::Bit(8), Type::Int(8));
            prop_assert_eq!(fold(BinaryOp::Add, ua, ub, &bit), Some(i64::from((a as u8).wrapping_add(b as u8))));
            prop_assert_eq!(fold(BinaryOp::Add, sa, sb, &int), Some(i64::from(a.wrapping_add(b))));
            prop_assert_eq!(fold(BinaryOp::Mul, sa, sb, &int), Some(i64::from(a.wrapping_mul(b))));
            prop_assert_eq!(fold(BinaryOp::AddSat, ua, ub, &bit), Some(i64::from((a as u8).saturating_add(b as u8))));
            prop_assert_eq!(fold(BinaryOp::SubSat, sa, sb, &int), Some(i64::from(a.saturating_sub(b))));
            prop_assert_eq!(fold(BinaryOp::BitXor, sa, sb, &int), Some(i64::from(a ^ b)));
            prop_assert_eq!(fold(BinaryOp::Shr, sa, i64::from(b as u8 % 16), &int), Some(sa >> (b as u8 % 16)));
            let expected = if ub == 0 { None } else { Some(ua / ub) };
            prop_assert_eq!(fold(BinaryOp::Div, ua, ub, &bit), expected);
        }
    }

    #[test]
    fn bits_are_in_twos_complement() {
        assert_eq!(Value::int(-1).bits(12), BigUint::from(0xfffu32));
        assert_eq!(slice(&BigInt::from(-2), 3, 0), BigInt::from(14));
        assert_eq!(concat(&BigInt::from(1), &BigInt::from(-1), 4, &Type::Bit(8)), BigInt::from(0x1f));
    }

    #[test]
    fn shifts_by_any_amount_end() {
        let huge: BigInt = BigInt::one() << 100u32;
        let shift = |op, ty: &Type| binary(op, &Value::int(1), &Value::Int(huge.clone()), ty);
        assert_eq!(shift(BinaryOp::Shl, &Type::Bit(8)), Ok(Some(Value::int(0))));
        assert_eq!(shift(BinaryOp::Shr, &Type::InfInt), Ok(Some(Value::int(0))));
        assert_eq!(shift(BinaryOp::Shl, &Type::InfInt), Err(FoldError::TooBig));
    }
}
