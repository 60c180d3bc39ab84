//! `MinMaxAction`, and the search for the least or greatest part of a value, which any action on a register of the
//! second generation may make.
//!
//! A `MinMaxAction` sees neighbouring cells as one word, the first cell lowest; its index counts words. The part
//! that a bit of the mask selects, and the use of the found part, follow p4c's programs for the device and their
//! known results.

use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, InstanceId, LValue, Stmt, Ty};
use crate::sema::lower::{Lower, Object, Place, Val, concatenated, constant, scalars, zero};
use crate::sema::tree::{FnDef, TCall};
use crate::sema::types::Type;
use num_bigint::BigUint;

/// Bits of a word of the device's memory.
const WORD: u32 = 128;
/// Bits of the smallest cells that can be searched.
const NARROWEST: u32 = 8;

/// A word of a register: cells side by side.
struct Word {
    register: InstanceId,
    /// Number of its first cell.
    first: Expr,
    /// Types of a cell's fields.
    fields: Vec<Ty>,
    cells: u32,
}

impl Word {
    fn cell(&self, at: u32) -> Expr {
        binary(BinOp::Add, self.first.clone(), constant(at, Ty::Bit(32)), Ty::Bit(32))
    }
}

fn binary(op: BinOp, left: Expr, right: Expr, ty: Ty) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), ty }
}

fn choose(cond: &Expr, then: Expr, otherwise: Expr, ty: Ty) -> Expr {
    Expr::Ternary { cond: Box::new(cond.clone()), ty, then: Box::new(then), otherwise: Box::new(otherwise) }
}

fn slice(expr: &Expr, width: u32, lo: u32, bits: u32) -> Expr {
    Expr::Slice { expr: Box::new(expr.clone()), from: Ty::Bit(width), hi: lo + bits - 1, lo }
}

/// Evaluates now, into a variable of a name that separates the search from the program's own statements.
fn saved(lower: &mut Lower<'_>, expr: Expr, ty: Ty, at: Span) -> Expr {
    if matches!(expr, Expr::Const { .. }) {
        return expr;
    }
    let name = lower.temp_name("search");
    let var = lower.new_var(name, ty);
    lower.emit(Stmt::Assign { target: LValue::Var(var), value: expr, span: at });
    Expr::Var(var)
}

/// Bits of a value as the device keeps it: the first field of a struct is lowest.
fn bits_of(lower: &Lower<'_>, value: &Val) -> Option<(Expr, u32)> {
    let mut parts = Vec::new();
    scalars(lower, value, &mut parts);
    parts.reverse();
    let width = parts.iter().map(|(_, ty)| ty.width()).sum();
    let unsigned = parts.into_iter().map(|(expr, ty)| {
        let bits = Ty::Bit(ty.width());
        (lower.cast(expr, ty, bits), bits)
    });
    Some((concatenated(unsigned.collect())?, width))
}

/// `execute(index, out others…)`: the body of `apply` on a word. The result is the body's first `out` parameter.
pub(super) fn execute(lower: &mut Lower<'_>, action: &Object, call: &TCall, at: Span) -> Option<Val> {
    let Some(Some(index)) = call.args.first().cloned() else {
        lower.error(at, "`execute` needs an index: give the word to act on");
        return None;
    };
    let register = lower.at_object(action, |l| l.object_arg(&action.inst, 0))?;
    let instance = register.instance()?;
    let element = lower.type_arg(&register.ext, 0)?;
    let width = u32::try_from(element.bit_size()?.0).ok()?;
    if !(NARROWEST..=WORD).contains(&width) || !width.is_power_of_two() {
        let name = &action.ext.def.name;
        lower.error(at, format!("`{name}` needs cells of 8, 16, 32, 64 or 128 bits; these have {width}"));
        return None;
    }
    let cells = WORD / width;
    let Val::Leaf(index, index_ty) = lower.expr(&index) else { return None };
    let number = lower.cast(index, index_ty, Ty::Bit(32));
    let first = binary(BinOp::Mul, number, constant(cells, Ty::Bit(32)), Ty::Bit(32));
    let first = saved(lower, first, Ty::Bit(32), at);
    let mut word = Word { register: instance, first, fields: Vec::new(), cells };

    let value = load(lower, &mut word, &element)?;
    let bits = saved(lower, value, Ty::Bit(WORD), at);
    let name = lower.temp_name("word");
    let place = lower.alloc(&Type::Bit(WORD), &name);
    lower.assign(&place, Val::Leaf(bits.clone(), Ty::Bit(WORD)), at);

    let body = lower.body_of(action, "apply")?;
    let mut places = vec![place];
    for param in body.params.iter().skip(1) {
        let ty = lower.at_object(action, |l| l.ty(&param.ty));
        places.push(lower.zeroed(&ty, "result", at));
    }
    lower.inline_body(action, &body, &places, at);
    store(lower, &word, &places[0], &bits, at);
    for (arg, place) in call.args[1..].iter().zip(places.iter().skip(2)) {
        if let Some(target) = arg.as_ref().and_then(|arg| lower.place(arg)) {
            let value = lower.read(place);
            lower.assign(&target, value, at);
        }
    }
    match places.get(1) {
        Some(place) => Some(lower.read(place)),
        None => match lower.type_arg(&action.ext, 2)? {
            Type::Void => Some(Val::Opaque),
            ty => ty.scalar().map(|scalar| Val::Leaf(zero(scalar), scalar)),
        },
    }
}

/// The cells of a word, the first one lowest.
fn load(lower: &mut Lower<'_>, word: &mut Word, element: &Type) -> Option<Expr> {
    let mut all = Vec::new();
    for at in 0..word.cells {
        let name = lower.temp_name("cell");
        let place = lower.alloc(element, &name);
        let dst = match &place {
            Place::Leaf(target, _) => target.clone(),
            _ => lower.element_into(word.register, place.clone())?,
        };
        lower.emit_extern(ExternCall::RegisterRead { instance: word.register, index: word.cell(at), dst });
        let value = lower.read(&place);
        if at == 0 {
            let mut parts = Vec::new();
            scalars(lower, &value, &mut parts);
            word.fields = parts.iter().map(|(_, ty)| *ty).collect();
        }
        let (bits, width) = bits_of(lower, &value)?;
        all.push((bits, Ty::Bit(width)));
    }
    all.reverse();
    concatenated(all)
}

/// Writes the cells of a word that the body has changed.
fn store(lower: &mut Lower<'_>, word: &Word, place: &Place, before: &Expr, at: Span) {
    let Val::Leaf(new, ty) = lower.read(place) else { return };
    let width: u32 = WORD / word.cells;
    let mut then = Vec::new();
    for cell in 0..word.cells {
        // The first field is lowest, but highest in the switch's cells.
        let mut lo = cell * width;
        let mut parts = Vec::new();
        for field in &word.fields {
            parts.push((slice(&new, WORD, lo, field.width()), Ty::Bit(field.width())));
            lo += field.width();
        }
        let Some(mut value) = concatenated(parts) else { return };
        if let [only @ Ty::Int(_)] = word.fields[..] {
            value = lower.cast(value, Ty::Bit(only.width()), only);
        }
        then.push(Stmt::Extern {
            call: ExternCall::RegisterWrite { instance: word.register, index: word.cell(cell), value },
            span: at,
        });
    }
    let cond = binary(BinOp::Ne, new, before.clone(), ty);
    let cond = saved(lower, cond, Ty::Bool, at);
    lower.emit(Stmt::If { cond, then, otherwise: Vec::new(), span: at });
}

/// `min8(value, mask[, out index[, postmod]])` and the others: the least or greatest of the parts that the mask
/// selects, and its number. Of equal ones it is the lowest part. `postmod` is then added to this part of the value.
pub(super) fn search(lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
    let part: u32 = if def.name.ends_with('8') { 8 } else { 16 };
    let (better, worst) = match def.name.starts_with("min") {
        true => (BinOp::Le, (BigUint::from(1u8) << part) - 1u8),
        false => (BinOp::Ge, BigUint::ZERO),
    };
    let given = lower.arg(call, 0)?.clone();
    let value = lower.expr(&given);
    let (bits, width) = bits_of(lower, &value)?;
    let count = width / part;
    let (mask, mask_ty) = lower.scalar_arg(call, 1);
    if count == 0 || width % part != 0 || count > mask_ty.width() {
        let most = mask_ty.width() * part;
        lower.error(
            at,
            format!("`{}` searches parts of {part} bits in {most} at most, not in {width}", def.name),
        );
        return None;
    }
    let bits = saved(lower, bits, Ty::Bit(width), at);
    let mask = saved(lower, mask, mask_ty, at);
    let (part_ty, number_ty) = (Ty::Bit(part), Ty::Bit(if part == 8 { 4 } else { 3 }));
    let element = |at: u32| slice(&bits, width, at * part, part);
    let (mut best, mut number) = (constant(worst, part_ty), zero(number_ty));
    for i in (0..count).rev() {
        let selected =
            binary(BinOp::Eq, slice(&mask, mask_ty.width(), i, 1), constant(1u8, Ty::Bit(1)), Ty::Bit(1));
        let wins = binary(better, element(i), best.clone(), part_ty);
        let wins = saved(lower, binary(BinOp::And, selected, wins, Ty::Bool), Ty::Bool, at);
        best = saved(lower, choose(&wins, element(i), best, part_ty), part_ty, at);
        number = saved(lower, choose(&wins, constant(i, number_ty), number, number_ty), number_ty, at);
    }
    if lower.arg(call, 3).is_some() {
        let (change, change_ty) = lower.scalar_arg(call, 3);
        let change = lower.cast(change, change_ty, Ty::Int(part));
        let change = lower.cast(change, Ty::Int(part), part_ty);
        let new = saved(lower, binary(BinOp::Add, best.clone(), change, part_ty), part_ty, at);
        let any =
            binary(BinOp::Ne, slice(&mask, mask_ty.width(), 0, count), zero(Ty::Bit(count)), Ty::Bit(count));
        let any = saved(lower, any, Ty::Bool, at);
        let mut parts = Vec::new();
        for i in (0..count).rev() {
            let is_it = binary(BinOp::Eq, number.clone(), constant(i, number_ty), number_ty);
            let changes = binary(BinOp::And, any.clone(), is_it, Ty::Bool);
            parts.push((choose(&changes, new.clone(), element(i), part_ty), part_ty));
        }
        let changed = saved(lower, concatenated(parts)?, Ty::Bit(width), at);
        let target = lower.place(&given)?;
        lower.assign(&target, Val::Leaf(changed, Ty::Bit(width)), at);
    }
    if let Some(arg) = lower.arg(call, 2).cloned() {
        let target = lower.place(&arg)?;
        lower.assign(&target, Val::Leaf(number, number_ty), at);
    }
    Some(Val::Leaf(best, part_ty))
}
