//! Registers and their actions. An action reads a cell, runs its body on it and writes it, atomically: a packet's
//! operations aren't interleaved with others'.

use super::is_second;
use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, InstanceId, Ty};
use crate::sema::lower::{Lower, Object, Place, Val, concatenated, constant, scalars};
use crate::sema::tree::{FnDef, TCall, TExpr};
use crate::sema::types::Type;

/// The accessed cell of a register.
enum Cell {
    At(Expr),
    /// That of the entry whose action runs.
    Own,
}

/// A place with the value of a cell.
fn load(lower: &mut Lower<'_>, register: &Object, instance: InstanceId, cell: &Cell) -> Option<Place> {
    let element = lower.type_arg(&register.ext, 0)?;
    let name = lower.temp_name("cell");
    let place = lower.alloc(&element, &name);
    let dst = match &place {
        Place::Leaf(lvalue, _) => lvalue.clone(),
        _ => lower.element_into(instance, place.clone())?,
    };
    lower.emit_extern(match cell {
        Cell::At(index) => ExternCall::RegisterRead { instance, index: index.clone(), dst },
        Cell::Own => ExternCall::DirectRegisterRead { instance, dst },
    });
    Some(place)
}

fn store(lower: &mut Lower<'_>, instance: InstanceId, cell: Cell, value: &Val) -> Option<()> {
    let mut parts = Vec::new();
    scalars(lower, value, &mut parts);
    let value = concatenated(parts)?;
    lower.emit_extern(match cell {
        Cell::At(index) => ExternCall::RegisterWrite { instance, index, value },
        Cell::Own => ExternCall::DirectRegisterWrite { instance, value },
    });
    Some(())
}

/// The value of a cell.
pub(super) fn read(
    lower: &mut Lower<'_>,
    register: &Object,
    instance: InstanceId,
    index: Expr,
) -> Option<Val> {
    let place = load(lower, register, instance, &Cell::At(index))?;
    Some(lower.read(&place))
}

/// `read(index)`, `write(index, value)`
pub(super) fn access(
    lower: &mut Lower<'_>,
    register: &Object,
    def: &FnDef,
    call: &TCall,
    at: Span,
) -> Option<Val> {
    let instance = register.instance()?;
    let args: Vec<_> = call.args.iter().flatten().collect();
    let mut values = lower.exprs(&args).into_iter();
    let index = values.next()?;
    let Val::Leaf(index, _) = lower.save(index, at) else { return None };
    let old = read(lower, register, instance, index.clone())?;
    if def.name == "write" {
        store(lower, instance, Cell::At(index), &values.next()?)?;
    }
    Some(old)
}

/// `execute(index, out others…)`
pub(super) fn execute(lower: &mut Lower<'_>, action: &Object, call: &TCall, at: Span) -> Option<Val> {
    let Some(index) = call.args.first().and_then(|arg| arg.as_ref()) else {
        lower.error(at, "`execute` needs an index: give the cell to act on");
        return None;
    };
    let index = lower.expr(&index.clone());
    let Val::Leaf(index, _) = lower.save(index, at) else { return None };
    run(lower, action, Cell::At(index), &call.args[1..], at)
}

/// `execute(out others…)`
pub(super) fn execute_direct(lower: &mut Lower<'_>, action: &Object, call: &TCall, at: Span) -> Option<Val> {
    run(lower, action, Cell::Own, &call.args, at)
}

/// The body of `apply` on a cell. The result is the body's first `out` parameter, the others go to `outs`.
fn run(lower: &mut Lower<'_>, action: &Object, cell: Cell, outs: &[Option<TExpr>], at: Span) -> Option<Val> {
    let register = lower.at_object(action, |l| l.object_arg(&action.inst, 0))?;
    let instance = register.instance()?;
    let body = lower.body_of(action, "apply")?;
    let mut places = vec![load(lower, &register, instance, &cell)?];
    for param in body.params.iter().skip(1) {
        let ty = lower.at_object(action, |l| l.ty(&param.ty));
        places.push(lower.zeroed(&ty, "result", at));
    }
    lower.inline_body(action, &body, &places, at);
    let new = lower.read(&places[0]);
    store(lower, instance, cell, &new)?;
    for (arg, place) in outs.iter().zip(places.iter().skip(2)) {
        if let Some(target) = arg.as_ref().and_then(|arg| lower.place(arg)) {
            let value = lower.read(place);
            lower.assign(&target, value, at);
        }
    }
    match places.get(1) {
        Some(place) => Some(lower.read(place)),
        None => {
            let ty = lower.type_arg(&action.ext, action.ext.args.len().checked_sub(1)?)?;
            match ty {
                Type::Void => Some(Val::Opaque),
                _ => ty.scalar().map(|scalar| Val::Leaf(constant(0u8, scalar), scalar)),
            }
        }
    }
}

/// `predicate(…)`: one bit set, by the number that the comparisons form, the first one lowest.
pub(super) fn predicate(lower: &mut Lower<'_>, action: &Object, call: &TCall) -> Option<Val> {
    let result = lower.type_arg(&action.ext, 2)?.scalar()?;
    let count = if is_second(lower) { 4 } else { 2 };
    let mut bits = Vec::new();
    for at in (0..count).rev() {
        bits.push(match lower.arg(call, at).is_some() {
            true => lower.scalar_arg(call, at),
            false => (constant(0u8, Ty::Bool), Ty::Bool),
        });
    }
    let number = concatenated(bits)?;
    let shifted = Expr::Binary {
        op: BinOp::Shl,
        left: Box::new(constant(1u8, Ty::Bit(16))),
        right: Box::new(number),
        ty: Ty::Bit(16),
    };
    Some(Val::Leaf(lower.cast(shifted, Ty::Bit(16), result), result))
}
