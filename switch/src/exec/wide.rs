//! Arithmetic at any width up to 2048 bits, and rare operators at narrow widths.
//!
//! Values are copied to the stack first, so a destination may overlap an operand.

use crate::code::ops::{Slot, Vars};
use crate::code::plans::{ValueType, WidePlan};
use crate::words::ones;
use p4rack_p4::ir::{BinOp, UnOp};
use std::cmp::Ordering;

/// Words of a value of the maximum width.
const LIMBS: usize = 32;

type Limbs = [u64; LIMBS];

fn read(vars: &Vars, slot: Slot, kind: ValueType) -> Limbs {
    let mut limbs = [0; LIMBS];
    let words = kind.limbs().min(LIMBS);
    limbs[..words].copy_from_slice(&vars[slot as usize..][..words]);
    limbs
}

fn write(vars: &mut Vars, slot: Slot, width: u32, mut limbs: Limbs) {
    cut(&mut limbs, width);
    let words = (width as usize).div_ceil(64).clamp(1, LIMBS);
    vars[slot as usize..][..words].copy_from_slice(&limbs[..words]);
}

fn cut(limbs: &mut Limbs, width: u32) {
    for (index, limb) in limbs.iter_mut().enumerate() {
        *limb &= ones(width.saturating_sub(64 * index as u32).min(64));
    }
}

fn bit(limbs: &Limbs, index: u32) -> bool {
    limbs.get(index as usize / 64).is_some_and(|limb| limb >> (index % 64) & 1 == 1)
}

fn negative(limbs: &Limbs, kind: ValueType) -> bool {
    kind.signed && kind.width > 0 && bit(limbs, kind.width - 1)
}

/// Fills the bits from `width` upwards with the sign.
fn sign_extend(limbs: &mut Limbs, kind: ValueType) {
    if negative(limbs, kind) {
        for (index, limb) in limbs.iter_mut().enumerate() {
            *limb |= !ones(kind.width.saturating_sub(64 * index as u32).min(64));
        }
    }
}

fn add(a: &Limbs, b: &Limbs, mut carry: bool) -> (Limbs, bool) {
    let mut sum = [0; LIMBS];
    for index in 0..LIMBS {
        let (first, over) = a[index].overflowing_add(b[index]);
        let (second, more) = first.overflowing_add(carry.into());
        sum[index] = second;
        carry = over | more;
    }
    (sum, carry)
}

fn not(a: &Limbs) -> Limbs {
    a.map(|limb| !limb)
}

fn sub(a: &Limbs, b: &Limbs) -> Limbs {
    add(a, &not(b), true).0
}

fn mul(a: &Limbs, b: &Limbs) -> Limbs {
    let mut product = [0u64; LIMBS];
    for (i, &left) in a.iter().enumerate().filter(|(_, limb)| **limb != 0) {
        let mut carry = 0u128;
        for j in 0..LIMBS - i {
            let sum = u128::from(left) * u128::from(b[j]) + u128::from(product[i + j]) + carry;
            product[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
    product
}

fn shift_left(a: &Limbs, by: u64) -> Limbs {
    if by >= 64 * LIMBS as u64 {
        return [0; LIMBS];
    }
    let (words, bits) = (by as usize / 64, by as u32 % 64);
    let at = |index: Option<usize>| index.map_or(0, |index| a[index]);
    std::array::from_fn(|index| match bits {
        0 => at(index.checked_sub(words)),
        _ => at(index.checked_sub(words)) << bits | at(index.checked_sub(words + 1)) >> (64 - bits),
    })
}

/// Shifts right and fills with the bits of `fill`.
fn shift_right(a: &Limbs, by: u64, fill: u64) -> Limbs {
    if by >= 64 * LIMBS as u64 {
        return [fill; LIMBS];
    }
    let (words, bits) = (by as usize / 64, by as u32 % 64);
    let at = |index: usize| a.get(index).copied().unwrap_or(fill);
    std::array::from_fn(|index| match bits {
        0 => at(index + words),
        _ => at(index + words) >> bits | at(index + words + 1) << (64 - bits),
    })
}

fn compare(a: &Limbs, b: &Limbs) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// Quotient and remainder; both are zero if the divisor is.
fn divide(a: &Limbs, b: &Limbs, width: u32) -> (Limbs, Limbs) {
    let zero = [0; LIMBS];
    if *b == zero {
        return (zero, zero);
    }
    if width <= 64 {
        let (mut quotient, mut rest) = (zero, zero);
        quotient[0] = a[0] / b[0];
        rest[0] = a[0] % b[0];
        return (quotient, rest);
    }
    let (mut quotient, mut rest) = (zero, zero);
    for index in (0..width).rev() {
        // The remainder may need one bit more than the width, which has to fit.
        let over = bit(&rest, 64 * LIMBS as u32 - 1);
        rest = shift_left(&rest, 1);
        rest[0] |= u64::from(bit(a, index));
        if over || compare(&rest, b) != Ordering::Less {
            rest = sub(&rest, b);
            quotient[index as usize / 64] |= 1 << (index % 64);
        }
    }
    (quotient, rest)
}

fn amount(limbs: &Limbs) -> u64 {
    if limbs[1..].iter().any(|limb| *limb != 0) { u64::MAX } else { limbs[0] }
}

/// The largest or smallest value of a type.
fn extreme(kind: ValueType, largest: bool) -> Limbs {
    let mut limbs = [0; LIMBS];
    match (kind.signed, largest) {
        (false, false) => {}
        (false, true) => limbs = [u64::MAX; LIMBS],
        (true, _) => {
            let top = kind.width.saturating_sub(1);
            limbs[top as usize / 64] = 1 << (top % 64);
            if largest {
                limbs = not(&limbs);
            }
        }
    }
    cut(&mut limbs, kind.width);
    limbs
}

fn saturating(op: BinOp, mut a: Limbs, mut b: Limbs, kind: ValueType) -> Limbs {
    if !kind.signed {
        if op == BinOp::SubSat {
            return if compare(&a, &b) == Ordering::Less { [0; LIMBS] } else { sub(&a, &b) };
        }
        let (sum, carry) = add(&a, &b, false);
        let largest = extreme(kind, true);
        return if carry || compare(&sum, &largest) == Ordering::Greater { largest } else { sum };
    }
    let (sign_a, sign_b) = (negative(&a, kind), negative(&b, kind));
    sign_extend(&mut a, kind);
    sign_extend(&mut b, kind);
    let sum = if op == BinOp::SubSat { sub(&a, &b) } else { add(&a, &b, false).0 };
    // Overflow: the operands have the same sign and the result has the other one.
    let same = sign_a == (sign_b ^ (op == BinOp::SubSat));
    if same && negative(&sum, kind) != sign_a { extreme(kind, !sign_a) } else { sum }
}

fn signed_order(a: &Limbs, b: &Limbs, kind: ValueType) -> Ordering {
    match (negative(a, kind), negative(b, kind)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => compare(a, b),
    }
}

fn truth(value: bool) -> Limbs {
    let mut limbs = [0; LIMBS];
    limbs[0] = value.into();
    limbs
}

fn binary(op: BinOp, a: Limbs, b: Limbs, kind: ValueType) -> (Limbs, u32) {
    let order = || signed_order(&a, &b, kind);
    let result = match op {
        BinOp::Eq => return (truth(a == b), 1),
        BinOp::Ne => return (truth(a != b), 1),
        BinOp::Lt => return (truth(order() == Ordering::Less), 1),
        BinOp::Le => return (truth(order() != Ordering::Greater), 1),
        BinOp::Gt => return (truth(order() == Ordering::Greater), 1),
        BinOp::Ge => return (truth(order() != Ordering::Less), 1),
        BinOp::Add => add(&a, &b, false).0,
        BinOp::Sub => sub(&a, &b),
        BinOp::Mul => mul(&a, &b),
        BinOp::Div => divide(&a, &b, kind.width).0,
        BinOp::Mod => divide(&a, &b, kind.width).1,
        BinOp::AddSat | BinOp::SubSat => saturating(op, a, b, kind),
        BinOp::BitAnd | BinOp::And => std::array::from_fn(|index| a[index] & b[index]),
        BinOp::BitOr | BinOp::Or => std::array::from_fn(|index| a[index] | b[index]),
        BinOp::BitXor => std::array::from_fn(|index| a[index] ^ b[index]),
        BinOp::Shl => shift_left(&a, amount(&b)),
        BinOp::Shr => {
            let fill = if negative(&a, kind) { u64::MAX } else { 0 };
            let mut extended = a;
            sign_extend(&mut extended, kind);
            shift_right(&extended, amount(&b), fill)
        }
    };
    (result, kind.width)
}

/// Executes a plan.
pub(crate) fn run(plan: &WidePlan, vars: &mut Vars) {
    match *plan {
        WidePlan::Unary { op, dst, a, kind } => {
            let value = read(vars, a, kind);
            let result = match op {
                UnOp::Not => truth(value[0] == 0),
                UnOp::BitNot => not(&value),
                UnOp::Neg => sub(&[0; LIMBS], &value),
            };
            write(vars, dst, kind.width, result);
        }
        // Varbits can only be compared: length, then bits.
        WidePlan::Binary { op, dst, a, b, kind, .. } if kind.varbit => {
            let words = kind.words();
            let same = vars[a as usize..][..words] == vars[b as usize..][..words];
            vars[dst as usize] = u64::from(same == (op == BinOp::Eq));
        }
        WidePlan::Binary { op, dst, a, b, kind, right } => {
            let (result, width) = binary(op, read(vars, a, kind), read(vars, b, right), kind);
            write(vars, dst, width, result);
        }
        WidePlan::Cast { dst, a, from, to } => {
            let mut value = read(vars, a, from);
            sign_extend(&mut value, from);
            write(vars, dst, to.width, value);
        }
        WidePlan::Slice { dst, a, from, hi, lo } => {
            let value = shift_right(&read(vars, a, from), lo.into(), 0);
            write(vars, dst, hi - lo + 1, value);
        }
        WidePlan::Concat { dst, a, left, b, right } => {
            let high = shift_left(&read(vars, a, left), right.width.into());
            let low = read(vars, b, right);
            let value = std::array::from_fn(|index| high[index] | low[index]);
            write(vars, dst, left.width + right.width, value);
        }
        WidePlan::Insert { dst, whole, a, hi, lo } => {
            let width = hi - lo + 1;
            let part = ValueType { width, signed: false, varbit: false };
            let mut mask = [u64::MAX; LIMBS];
            cut(&mut mask, width);
            let mask = shift_left(&mask, lo.into());
            let value = shift_left(&read(vars, a, part), lo.into());
            let old = read(vars, dst, whole);
            let result = std::array::from_fn(|index| old[index] & !mask[index] | value[index] & mask[index]);
            write(vars, dst, whole.width, result);
        }
    }
}

#[cfg(test)]
#[path = "wide_tests.rs"]
mod tests;
