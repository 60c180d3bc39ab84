//! Wide arithmetic against arbitrary-precision integers.

use super::*;
use crate::code::ops::VARS_WORDS;
use crate::words::limbs_of;
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

fn vars() -> Box<Vars> {
    vec![0; VARS_WORDS].into_boxed_slice().try_into().expect("of that size")
}

fn mask(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

fn number(bytes: &[u8], width: u32) -> BigUint {
    BigUint::from_bytes_le(bytes) & mask(width)
}

/// As a signed number.
fn signed(value: &BigUint, width: u32) -> BigInt {
    let value_signed = BigInt::from(value.clone());
    if width > 0 && value.bit(u64::from(width) - 1) {
        value_signed - (BigInt::from(1) << width)
    } else {
        value_signed
    }
}

/// Back to two's complement.
fn wrap(value: BigInt, width: u32) -> BigUint {
    let modulus = BigInt::from(1) << width;
    let rest = ((value % &modulus) + &modulus) % &modulus;
    rest.to_biguint().expect("not negative")
}

fn clamp(value: BigInt, width: u32, is_signed: bool) -> BigUint {
    let (lo, hi) = if is_signed {
        (-(BigInt::from(1) << (width - 1)), (BigInt::from(1) << (width - 1)) - 1)
    } else {
        (BigInt::from(0), (BigInt::from(1) << width) - 1)
    };
    wrap(value.clamp(lo, hi), width)
}

fn reference(op: BinOp, a: &BigUint, b: &BigUint, width: u32, is_signed: bool) -> BigUint {
    let number = |value: &BigUint| if is_signed { signed(value, width) } else { BigInt::from(value.clone()) };
    let (left, right) = (number(a), number(b));
    let truth = |value: bool| BigUint::from(u8::from(value));
    let by = u32::try_from(b).unwrap_or(u32::MAX).min(5000);
    match op {
        BinOp::Add => wrap(left + right, width),
        BinOp::Sub => wrap(left - right, width),
        BinOp::Mul => wrap(left * right, width),
        BinOp::Div if *b == BigUint::ZERO => BigUint::ZERO,
        BinOp::Mod if *b == BigUint::ZERO => BigUint::ZERO,
        BinOp::Div => a / b,
        BinOp::Mod => a % b,
        BinOp::AddSat => clamp(left + right, width, is_signed),
        BinOp::SubSat => clamp(left - right, width, is_signed),
        BinOp::BitAnd | BinOp::And => a & b,
        BinOp::BitOr | BinOp::Or => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Shl => (a << by) & mask(width),
        BinOp::Shr => wrap(left >> by, width),
        BinOp::Eq => truth(left == right),
        BinOp::Ne => truth(left != right),
        BinOp::Lt => truth(left < right),
        BinOp::Le => truth(left <= right),
        BinOp::Gt => truth(left > right),
        BinOp::Ge => truth(left >= right),
    }
}

const OPS: [BinOp; 18] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Mod,
    BinOp::AddSat,
    BinOp::SubSat,
    BinOp::BitAnd,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 256),
        proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff)], 256),
        // Small numbers, so that shifts and quotients are interesting.
        any::<u16>().prop_map(|small| small.to_le_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn binary_operators(
        a in bytes(),
        b in bytes(),
        width in prop_oneof![1u32..=64, 65u32..=130, Just(2048)],
        signed in any::<bool>(),
        op in proptest::sample::select(&OPS[..]),
    ) {
        // P4 has no signed division.
        let is_signed = signed && !matches!(op, BinOp::Div | BinOp::Mod);
        let kind = ValueType { width, signed: is_signed, varbit: false };
        let right = if matches!(op, BinOp::Shl | BinOp::Shr) { ValueType { width, signed: false, varbit: false } } else { kind };
        let (left_value, right_value) = (number(&a, width), number(&b, width));
        let mut vars = vars();
        vars[10..][..kind.limbs()].copy_from_slice(&limbs_of(&left_value, kind.limbs()));
        vars[50..][..kind.limbs()].copy_from_slice(&limbs_of(&right_value, kind.limbs()));
        // The destination is an operand: results must not depend on it.
        run(&WidePlan::Binary { op, dst: 10, a: 10, b: 50, kind, right }, &mut vars);
        let compares = matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
        let words = if compares { 1 } else { kind.limbs() };
        let expect = reference(op, &left_value, &right_value, width, is_signed);
        prop_assert_eq!(&vars[10..][..words], &limbs_of(&expect, words)[..]);
    }

    #[test]
    fn slices_casts_concats(a in bytes(), b in bytes(), width in 1u32..=200, other in 1u32..=200, cut in any::<(u32, u32)>(), signed_from in any::<bool>()) {
        let (hi, lo) = ((cut.0 % width).max(cut.1 % width), (cut.0 % width).min(cut.1 % width));
        let kind = ValueType { width, signed: signed_from, varbit: false };
        let second = ValueType { width: other, signed: false, varbit: false };
        let (value, low) = (number(&a, width), number(&b, other));
        let mut vars = vars();
        vars[10..][..kind.limbs()].copy_from_slice(&limbs_of(&value, kind.limbs()));
        vars[50..][..second.limbs()].copy_from_slice(&limbs_of(&low, second.limbs()));
        let read_back = |vars: &Vars, slot: usize, width: u32| {
            let limbs = (width as usize).div_ceil(64);
            vars[slot..][..limbs].iter().rev().fold(BigUint::ZERO, |sum, limb| (sum << 64u32) + *limb)
        };

        run(&WidePlan::Slice { dst: 100, a: 10, from: kind, hi, lo }, &mut vars);
        prop_assert_eq!(read_back(&vars, 100, hi - lo + 1), (&value >> lo) & mask(hi - lo + 1));

        run(&WidePlan::Cast { dst: 100, a: 10, from: kind, to: second }, &mut vars);
        let extended = if signed_from { wrap(signed(&value, width), other) } else { &value & mask(other) };
        prop_assert_eq!(read_back(&vars, 100, other), extended);

        run(&WidePlan::Concat { dst: 100, a: 10, left: kind, b: 50, right: second }, &mut vars);
        prop_assert_eq!(read_back(&vars, 100, width + other), (&value << other) + &low);

        run(&WidePlan::Insert { dst: 10, whole: kind, a: 50, hi, lo }, &mut vars);
        let part = low & mask(hi - lo + 1);
        let kept = &value - (&value & (mask(hi - lo + 1) << lo));
        prop_assert_eq!(read_back(&vars, 10, width), kept + (part << lo));
    }
}
