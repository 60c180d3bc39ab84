//! `MathUnit`: functions of a register's value, set up as Tofino's compiler does it (p4c,
//! `backends/tofino/bf-p4c/mau/stateful_alu.cpp`).

use crate::ast::Span;
use crate::ir::{Curve, ExternCall, Ty};
use crate::sema::lower::{Lower, Object, Val};
use crate::sema::tree::{InstDecl, TCall};
use crate::sema::types::Type;
use crate::sema::value::Value;
use num_traits::ToPrimitive;

/// Scales that the device has.
const SCALES: std::ops::RangeInclusive<i32> = -32..=31;
/// Bits of a unit's input.
const BITS: u32 = 32;

/// The curve of `(invert, shift, scale, table)`, `(op, factor)` or `(op, a, b)`. `None` where it was rejected.
fn curve(lower: &mut Lower<'_>, inst: &InstDecl) -> Option<Curve> {
    let number = |at: usize| match lower.value(inst.args.get(at)?.as_ref()?)? {
        Value::Int(number) => number.to_i64(),
        Value::Bool(truth) => Some(i64::from(truth)),
        Value::Member(member) => Some(i64::from(member)),
        _ => None,
    };
    let mut table = [0; Curve::ENTRIES];
    if let Some(given) = inst.args.get(3) {
        let (inverts, shift, scale) = (number(0)? != 0, number(1)? as i32, number(2)? as i32);
        // The last entry comes first.
        let bytes = Type::Tuple(vec![Type::Bit(8); Curve::ENTRIES].into());
        let all = lower.known_bits(&given.clone()?, &bytes)?.to_bytes_le();
        table.iter_mut().zip(all).for_each(|(entry, byte)| *entry = byte);
        return Some(Curve { inverts, shift, scale, table });
    }
    let (op, a) = (number(0)?, number(1)? as f64);
    let b = if inst.args.len() > 2 { number(2)? as f64 } else { 1.0 };
    let (inverts, shift) = match op {
        0 => (false, 0),
        1 => (false, 1),
        2 => (false, -1),
        3 => (true, 0),
        4 => (true, 1),
        _ => (true, -1),
    };
    let value = |at: usize| {
        let x = at as f64 / 8.0;
        let power = match shift {
            1 => x * x,
            -1 => x.sqrt(),
            _ => x,
        };
        a / b * if inverts { power.recip() } else { power }
    };
    let used = if shift < 0 { 4 } else { 8 }..Curve::ENTRIES;
    // The largest scale whose entries are bytes.
    let most = used.clone().map(value).fold(0.0, f64::max);
    let scale = (most.log2().floor() as i32 - 7).clamp(*SCALES.start(), *SCALES.end());
    for at in used {
        table[at] = (value(at) * f64::from(-scale).exp2()).round_ties_even().clamp(0.0, 255.0) as u8;
    }
    Some(Curve { inverts, shift, scale, table })
}

/// `execute(x)`
pub(super) fn execute(lower: &mut Lower<'_>, object: &Object, call: &TCall, at: Span) -> Option<Val> {
    let (x, ty) = lower.scalar_arg(call, 0);
    let curve = lower.at_object(object, |l| curve(l, &object.inst))?;
    if ty.width() > BITS {
        lower.error(at, format!("a MathUnit takes at most {BITS} bits, not {}", ty.width()));
        return None;
    }
    let bits = Ty::Bit(ty.width());
    let value = lower.cast(x, ty, bits);
    let (dst, _) = lower.out_leaf(None, &Type::Bit(bits.width()), at)?;
    let result = lower.read_target(&dst);
    lower.emit_extern(ExternCall::Approximate { curve: Box::new(curve), value, width: bits.width(), dst });
    Some(Val::Leaf(lower.cast(result, bits, ty), ty))
}
