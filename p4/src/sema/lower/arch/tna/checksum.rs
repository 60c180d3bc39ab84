//! Checksums and the parser's counter: variables of the packet.
//!
//! A checksum in a parser is a ones' complement sum of 16 bits. A deparser computes the complement of such a sum.

use super::foreign;
use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, HashAlgorithm, HeaderId, LValue, Stmt, Ty, UnOp, VarId};
use crate::sema::lower::{Lower, Object, Place, Val, constant};
use crate::sema::tree::{FnDef, TCall};
use crate::sema::types::Type;

const SUM: Ty = Ty::Bit(16);
/// Type and value of the parser's error that a field is larger than the counter may start with.
const ERROR: Ty = Ty::Bit(16);
const COUNTER_RANGE: u16 = 4;

fn sum_of(var: VarId) -> Val {
    Val::Leaf(Expr::Var(var), SUM)
}

fn binary(op: BinOp, left: Expr, right: Expr, ty: Ty) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), ty }
}

/// A method of `Checksum`, whose sum is in `sum`.
pub(super) fn lower_call(
    lower: &mut Lower<'_>,
    sum: VarId,
    method: &str,
    call: &TCall,
    at: Span,
) -> Option<Val> {
    match method {
        "add" | "subtract" => {
            let data = lower.data_arg(call, 0);
            let complement = complement_of(lower, data, false, at)?;
            let term = match method {
                "add" => Expr::Unary { op: UnOp::BitNot, expr: Box::new(complement), ty: SUM },
                _ => complement,
            };
            add(lower, sum, term, at);
            None
        }
        "get" => Some(sum_of(sum)),
        // True for an error: the sum of all is not zero.
        "verify" => {
            Some(Val::Leaf(binary(BinOp::Ne, Expr::Var(sum), constant(0xffffu32, SUM), SUM), Ty::Bool))
        }
        "subtract_all_and_deposit" => deposit(lower, sum, call, at),
        "update" => {
            let mut data = lower.data_arg(call, 0);
            guard(lower, &mut data);
            let complement = complement_of(lower, data, false, at)?;
            let zeros_as_ones = match lower.arg(call, 1).is_some() {
                true => lower.scalar_arg(call, 1).0,
                false => constant(0u8, Ty::Bool),
            };
            let zero = binary(BinOp::Eq, complement.clone(), constant(0u8, SUM), SUM);
            let ones = binary(BinOp::And, zero, zeros_as_ones, Ty::Bool);
            let result = Expr::Ternary {
                cond: Box::new(ones),
                ty: SUM,
                then: Box::new(constant(0xffffu32, SUM)),
                otherwise: Box::new(complement),
            };
            Some(Val::Leaf(result, SUM))
        }
        _ => None,
    }
}

/// The complement of the sum of data, or of everything behind the cursor (`rest`).
fn complement_of(lower: &mut Lower<'_>, data: Vec<(Expr, Ty)>, rest: bool, at: Span) -> Option<Expr> {
    let (dst, dst_ty) = lower.out_leaf(None, &Type::Bit(16), at)?;
    let value = lower.read_target(&dst);
    lower.emit_extern(ExternCall::UpdateChecksum {
        cond: constant(1u8, Ty::Bool),
        data,
        dst,
        dst_ty,
        algorithm: HashAlgorithm::Csum16,
        payload: rest,
    });
    Some(value)
}

/// `sum += term`, with the carry added at the low end.
fn add(lower: &mut Lower<'_>, sum: VarId, term: Expr, span: Span) {
    let wide = Ty::Bit(32);
    let widened = |lower: &Lower<'_>, e: Expr| lower.cast(e, SUM, wide);
    let total = binary(BinOp::Add, widened(lower, Expr::Var(sum)), widened(lower, term), wide);
    let Val::Leaf(total, _) = lower.save(Val::Leaf(total, wide), span) else { return };
    let part = |hi, lo| Expr::Slice { expr: Box::new(total.clone()), from: wide, hi, lo };
    let value = binary(BinOp::Add, part(15, 0), part(31, 16), SUM);
    lower.emit(Stmt::Assign { target: LValue::Var(sum), value, span });
}

/// The sum without anything that is extracted after this point: everything behind is subtracted here, and the rest
/// behind the last header is added where the parser accepts.
fn deposit(lower: &mut Lower<'_>, sum: VarId, call: &TCall, at: Span) -> Option<Val> {
    let place = lower.place(lower.arg(call, 0)?)?;
    let Place::Leaf(LValue::Var(target), _) = place else {
        lower.unsupported(at, "a residual checksum in anything but a field of metadata");
        return None;
    };
    let rest = complement_of(lower, Vec::new(), true, at)?;
    lower.assign(&place, sum_of(sum), at);
    add(lower, target, rest, at);
    let done = lower.flag("deposited", at);
    lower.before_accept(at, |l| {
        let rest = complement_of(l, Vec::new(), true, at);
        if let Some(rest) = rest {
            let term = Expr::Unary { op: UnOp::BitNot, expr: Box::new(rest), ty: SUM };
            let none = constant(0u8, SUM);
            // Plus zero where this point was not passed.
            let term = Expr::Ternary {
                cond: Box::new(Expr::Var(done)),
                ty: SUM,
                then: Box::new(term),
                otherwise: Box::new(none),
            };
            add(l, target, term, at);
        }
    });
    None
}

/// Fields of invalid headers count as zero.
fn guard(lower: &Lower<'_>, data: &mut [(Expr, Ty)]) {
    let headers: Vec<Option<HeaderId>> = data
        .iter()
        .map(|(value, _)| match value {
            Expr::Var(var) => lower.header_of(*var),
            _ => None,
        })
        .collect();
    let first = headers.iter().flatten().next().copied();
    if headers.iter().flatten().all(|header| Some(*header) == first) {
        return;
    }
    for ((value, ty), header) in data.iter_mut().zip(headers) {
        if let Some(header) = header {
            let own = std::mem::replace(value, constant(0u8, *ty));
            let otherwise = Box::new(constant(0u8, *ty));
            let cond = Box::new(Expr::Var(lower.validity(header)));
            *value = Expr::Ternary { cond, ty: *ty, then: Box::new(own), otherwise };
        }
    }
}

/// A method of `ParserCounter`, whose signed value is in `count`.
pub(super) fn lower_counter(
    lower: &mut Lower<'_>,
    count: VarId,
    object: &Object,
    def: &FnDef,
    method: &str,
    call: &TCall,
    span: Span,
) -> Option<Val> {
    let ty = Ty::Bit(8);
    let own = Expr::Var(count);
    let value = match (method, def.params.len()) {
        ("is_zero", _) => {
            return Some(Val::Leaf(binary(BinOp::Eq, own, constant(0u8, ty), ty), Ty::Bool));
        }
        ("is_negative", _) => {
            let sign = Expr::Slice { expr: Box::new(own), from: ty, hi: 7, lo: 7 };
            return Some(Val::Leaf(binary(BinOp::Eq, sign, constant(1u8, Ty::Bit(1)), Ty::Bit(1)), Ty::Bool));
        }
        ("increment", _) => binary(BinOp::Add, own, lower.scalar_arg(call, 0).0, ty),
        ("decrement", _) => binary(BinOp::Sub, own, lower.scalar_arg(call, 0).0, ty),
        ("set", 1) => {
            let (value, from) = lower.scalar_arg(call, 0);
            lower.cast(value, from, ty)
        }
        // A field, rotated to the right, masked, plus a constant.
        ("set", 5) => {
            let (value, from) = lower.scalar_arg(call, 0);
            let rotate = lower.known_arg(call, 2, span)? % 8;
            let mask = lower.known_arg(call, 3, span)?;
            // The first generation gives the number of bits less one, the second one the mask itself.
            let mask = if super::is_second(lower) { mask } else { (2u64 << mask.min(7)) - 1 };
            let (add, _) = lower.scalar_arg(call, 4);
            let (most, _) = lower.scalar_arg(call, 1);
            let Val::Leaf(byte, _) = lower.save(Val::Leaf(lower.cast(value, from, ty), ty), span) else {
                return None;
            };
            let cond = binary(BinOp::Le, byte.clone(), most, ty);
            lower.emit(Stmt::Verify { cond, error: constant(COUNTER_RANGE, ERROR) });
            let shift = |op, by: u64| binary(op, byte.clone(), constant(by, ty), ty);
            let rotated = match rotate {
                0 => byte.clone(),
                by => binary(BinOp::BitOr, shift(BinOp::Shr, by), shift(BinOp::Shl, 8 - by), ty),
            };
            let masked = binary(BinOp::BitAnd, rotated, constant(mask & 0xff, ty), ty);
            binary(BinOp::Add, masked, add, ty)
        }
        _ => return foreign(lower, object, def, call, span),
    };
    lower.emit(Stmt::Assign { target: LValue::Var(count), value, span });
    None
}
