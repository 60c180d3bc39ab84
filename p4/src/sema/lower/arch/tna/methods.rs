//! Calls of methods of TNA's extern objects.

use super::{checksum, foreign, hash, is_second, math, minmax, registers};
use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, Half, InstanceId, Ty};
use crate::sema::lower::{Lower, Made, Object, Val, constant, zero};
use crate::sema::tree::{FnDef, TCall};
use crate::sema::types::Type;

const COLORS: usize = 3;
/// Values of `MeterColor_t`: red, yellow, green.
const DEFAULT_COLORS: [u64; COLORS] = [3, 1, 0];
/// Colours as the switch's meters give them; green is 0.
const YELLOW: u64 = 1;
const RED: u64 = 2;

/// Lowers a call and returns its result. `None` if it is void or was rejected.
pub(super) fn lower_method(
    lower: &mut Lower<'_>,
    object: &Object,
    def: &FnDef,
    call: &TCall,
    at: Span,
) -> Option<Val> {
    let before = lower.error_count();
    let result = known_method(lower, object, def, call, at);
    if result.is_none() && !matches!(def.ret, Type::Void) && lower.error_count() == before {
        lower.unsupported(at, format!("this use of `{}.{}`", object.ext.def.name, def.name));
    }
    result
}

fn known_method(lower: &mut Lower<'_>, object: &Object, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
    match (object.ext.def.name.as_str(), def.name.as_str(), &object.made) {
        ("Counter", "count", Made::Instance(instance)) => {
            let (index, _) = lower.scalar_arg(call, 0);
            let less = lower.arg(call, 1).is_some().then(|| lower.scalar_arg(call, 1).0);
            lower.emit_extern(ExternCall::CounterCount { instance: *instance, index, less });
            None
        }
        ("DirectCounter", "count", Made::Instance(instance)) => {
            let less = lower.arg(call, 0).is_some().then(|| lower.scalar_arg(call, 0).0);
            lower.emit_extern(ExternCall::DirectCount { instance: *instance, less });
            None
        }
        // `execute([index, ][color, ]adjust_byte_count)`
        ("Meter" | "DirectMeter", "execute", Made::Instance(instance)) => {
            let first = usize::from(object.ext.def.name == "Meter");
            let has_color = def.params.len() > first + 1;
            let index = (first > 0).then(|| lower.scalar_arg(call, 0).0);
            let given = has_color.then(|| color_given(lower, call, first, at));
            let at_less = first + usize::from(has_color);
            let less = lower.arg(call, at_less).is_some().then(|| lower.scalar_arg(call, at_less).0);
            meter(lower, object, *instance, Metered { index, given, less }, at)
        }
        ("Lpf" | "Wred" | "DirectLpf" | "DirectWred", "execute", Made::Instance(instance)) => {
            smooth(lower, object, *instance, call, at)
        }
        ("Register", "read" | "write", Made::Instance(_)) => registers::access(lower, object, def, call, at),
        ("RegisterAction" | "RegisterAction2" | "RegisterAction3" | "RegisterAction4", "execute", _) => {
            registers::execute(lower, object, call, at)
        }
        ("DirectRegisterAction", "execute", _) => registers::execute_direct(lower, object, call, at),
        ("MinMaxAction" | "MinMaxAction2" | "MinMaxAction3" | "MinMaxAction4", "execute", _) => {
            minmax::execute(lower, object, call, at)
        }
        (_, "min8" | "max8" | "min16" | "max16", Made::Nothing) => minmax::search(lower, def, call, at),
        ("RegisterAction", "predicate", _) => registers::predicate(lower, object, call),
        ("RegisterParam", "read", Made::Instance(instance)) => {
            registers::read(lower, object, *instance, zero(Ty::Bit(1)))
        }
        ("MathUnit", "execute", _) => math::execute(lower, object, call, at),
        ("Hash", "get", _) => hash::get(lower, object, call, at),
        ("Random", "get", _) => hash::random(lower, object, at),
        ("Checksum", method, Made::Variables(vars)) => {
            checksum::lower_call(lower, vars.first().copied()?, method, call, at)
        }
        ("ParserCounter", method, Made::Variables(vars)) => {
            checksum::lower_counter(lower, vars.first().copied()?, object, def, method, call, at)
        }
        // Its argument matters only for overloaded parsers, which don't exist here.
        ("ParserPriority", "set", _) => None,
        ("Mirror", "emit", _) => {
            let egress = lower.role().half == Half::Egress;
            let (session, _) = lower.scalar_arg(call, 0);
            let header = lower.data_arg(call, 1);
            lower.emit_extern(ExternCall::CloneWith { egress, session, header });
            None
        }
        ("Resubmit", "emit", _) => {
            let header = lower.data_arg(call, 0);
            let bits: u32 = header.iter().map(|(_, ty)| ty.width()).sum();
            let most = if is_second(lower) { 128 } else { 64 };
            if bits > most {
                lower.error(
                    at,
                    format!("a resubmitted packet carries at most {most} bits of data, not {bits}"),
                );
            }
            lower.emit_extern(ExternCall::ResubmitWith { header });
            None
        }
        ("Digest", "pack", Made::Digest(digest)) => {
            let data = lower.data_arg(call, 0);
            let receiver = zero(Ty::Bit(1));
            lower.emit_extern(ExternCall::Digest { receiver, digest: *digest, data });
            None
        }
        _ => foreign(lower, object, def, call, at),
    }
}

/// `execute(value[, index])`: the filtered value, or one of two values: for a drop and for none.
fn smooth(
    lower: &mut Lower<'_>,
    object: &Object,
    instance: InstanceId,
    call: &TCall,
    at: Span,
) -> Option<Val> {
    let name = object.ext.def.name.as_str();
    let (value, ty) = lower.scalar_arg(call, 0);
    let index = (!name.starts_with("Direct")).then(|| lower.scalar_arg(call, 1).0);
    let (dst, _) = lower.out_leaf(None, &Type::Bit(64), at)?;
    let result = lower.read_target(&dst);
    lower.emit_extern(ExternCall::Smooth { instance, index, value, dst });
    // `([size, ]drop, no drop)`
    let first = match name {
        "Wred" => 1,
        "DirectWred" => 0,
        _ => return Some(Val::Leaf(lower.cast(result, Ty::Bit(64), ty), ty)),
    };
    let byte = Ty::Bit(8);
    let given =
        lower.at_object(object, |l| [0, 1].map(|at| constant(l.ctor_number(&object.inst, first + at), byte)));
    let [then, otherwise] = given.map(Box::new);
    let zero = Box::new(zero(Ty::Bit(64)));
    let cond = Expr::Binary { op: BinOp::Ne, left: Box::new(result), right: zero, ty: Ty::Bit(64) };
    Some(Val::Leaf(Expr::Ternary { cond: Box::new(cond), ty: byte, then, otherwise }, byte))
}

/// Input of a meter.
struct Metered {
    index: Option<Expr>,
    given: Option<Expr>,
    less: Option<Expr>,
}

/// The colour of a packet before a meter, as the switch's meters take it. Red has both bits set; the device takes
/// both values with one bit for yellow.
fn color_given(lower: &mut Lower<'_>, call: &TCall, index: usize, at: Span) -> Expr {
    let (color, ty) = lower.scalar_arg(call, index);
    let Val::Leaf(color, ty) = lower.save(Val::Leaf(color, ty), at) else { return zero(Ty::Bit(8)) };
    let is = |number: u64| Expr::Binary {
        op: BinOp::Eq,
        left: Box::new(color.clone()),
        right: Box::new(constant(number, ty)),
        ty,
    };
    let choose = |cond: Expr, then: Expr, otherwise: Expr| Expr::Ternary {
        cond: Box::new(cond),
        ty: Ty::Bit(8),
        then: Box::new(then),
        otherwise: Box::new(otherwise),
    };
    let value = |color: u64| constant(color, Ty::Bit(8));
    choose(is(DEFAULT_COLORS[2]), value(0), choose(is(DEFAULT_COLORS[0]), value(RED), value(YELLOW)))
}

/// Runs a meter and translates its colour.
fn meter(
    lower: &mut Lower<'_>,
    object: &Object,
    instance: InstanceId,
    Metered { index, given, less }: Metered,
    at: Span,
) -> Option<Val> {
    let ty = Ty::Bit(8);
    let (dst, _) = lower.out_leaf(None, &Type::Bit(8), at)?;
    let color = lower.read_target(&dst);
    lower.emit_extern(match index {
        Some(index) => ExternCall::MeterExecute { instance, index, given, less, dst },
        None => ExternCall::DirectMeterRead { instance, given, less, dst },
    });
    // `([size, ]type, red, yellow, green)`
    let first = if object.ext.def.name == "Meter" { 2 } else { 1 };
    let [red, yellow, green] = match object.inst.args.len() >= first + COLORS {
        true => lower.at_object(object, |l| [0, 1, 2].map(|at| l.ctor_number(&object.inst, first + at))),
        false => DEFAULT_COLORS,
    };
    let value = |color: u64| constant(color, ty);
    let is = |number: u64| Expr::Binary {
        op: BinOp::Eq,
        left: Box::new(color.clone()),
        right: Box::new(constant(number, ty)),
        ty,
    };
    let choose = |cond: Expr, then: Expr, otherwise: Expr| Expr::Ternary {
        cond: Box::new(cond),
        ty,
        then: Box::new(then),
        otherwise: Box::new(otherwise),
    };
    let result = choose(is(RED), value(red), choose(is(YELLOW), value(yellow), value(green)));
    Some(Val::Leaf(result, ty))
}
