//! TNA's extern functions.

use super::super::Function;
use super::is_second;
use crate::ast::Span;
use crate::ir::{BinOp, Expr, Role, Stmt, Task, Ty};
use crate::sema::lower::{Lower, Val, constant};
use crate::sema::tree::{FnDef, TCall};

/// Part of the name of variables that hold a port's metadata, where a parser gives them a type.
const PORT_DATA: &str = "port_data";

/// The call in which this parser reads a port's metadata into a variable, and the variable's field; empty for a scalar.
pub(super) fn port_data<'v>(variable: &'v str, parser: &str) -> Option<(&'v str, &'v str)> {
    let rest = variable.strip_prefix(parser)?;
    let (_, read) = rest.split_once(&format!(".${PORT_DATA}"))?;
    Some(read.split_once('.').unwrap_or((read, "")))
}

const fn anywhere(name: &'static str) -> Function {
    Function { name, callers: &[], place: "" }
}

pub(super) const FUNCTIONS: &[Function] = &[
    anywhere("max"),
    anywhere("min"),
    anywhere("invalidate"),
    anywhere("is_validated"),
    anywhere("sizeInBits"),
    anywhere("sizeInBytes"),
    anywhere("funnel_shift_right"),
    Function {
        name: "port_metadata_unpack",
        callers: &[Role::ingress(Task::Parse)],
        place: "the parser of ingress",
    },
];

/// Lowers a call and returns its result. `None` if it is void or was rejected.
pub(super) fn lower_call(lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: Span) -> Option<Val> {
    match def.name.as_str() {
        name @ ("max" | "min") => {
            let args: Vec<_> = call.args.iter().flatten().collect();
            let values = lower.exprs(&args);
            let [Val::Leaf(a, ty), Val::Leaf(b, _)] = &values[..] else { return None };
            let (Val::Leaf(a, ty), Val::Leaf(b, _)) =
                (lower.save(Val::Leaf(a.clone(), *ty), at), lower.save(Val::Leaf(b.clone(), *ty), at))
            else {
                return None;
            };
            let op = if name == "max" { BinOp::Gt } else { BinOp::Lt };
            let cond = Expr::Binary { op, left: Box::new(a.clone()), right: Box::new(b.clone()), ty };
            let (cond, then, otherwise) = (Box::new(cond), Box::new(a), Box::new(b));
            Some(Val::Leaf(Expr::Ternary { cond, ty, then, otherwise }, ty))
        }
        name @ ("sizeInBits" | "sizeInBytes") => {
            let ty = lower.arg(call, 0).map(|arg| lower.ty(&arg.ty))?;
            let (bits, _) = ty.bit_size()?;
            let size = if name == "sizeInBits" { bits } else { bits.div_ceil(8) };
            Some(Val::Leaf(constant(size, Ty::Bit(32)), Ty::Bit(32)))
        }
        "invalidate" => {
            let place = lower.place(lower.arg(call, 0)?)?;
            lower.unwrite(&place, at);
            None
        }
        "is_validated" => {
            let place = lower.place(lower.arg(call, 0)?)?;
            lower.is_written(&place, at)
        }
        "port_metadata_unpack" => {
            let ty = call.type_args.first().map(|t| lower.ty(t))?;
            let width: u32 = if is_second(lower) { 192 } else { 64 };
            let bits = u32::try_from(ty.bit_size()?.0).ok()?;
            if bits > width {
                let what = format!("`{ty}` has {bits} bits: a port has {width} bits of metadata");
                lower.error(at, what);
                return None;
            }
            let value = lower.ahead(&ty, width, at)?;
            let name = lower.temp_name(PORT_DATA);
            let place = lower.alloc(&ty, &name);
            lower.assign(&place, value, at);
            lower.emit(Stmt::Advance(constant(width, Ty::Bit(32))));
            Some(lower.read(&place))
        }
        // `dst = (src1 ++ src2) >> amount`
        "funnel_shift_right" => {
            let target = lower.place(lower.arg(call, 0)?)?;
            let (high, ty) = lower.scalar_arg(call, 1);
            let (low, _) = lower.scalar_arg(call, 2);
            let by = lower.known_arg(call, 3, at)?;
            let both = Ty::Bit(ty.width() * 2);
            let Some(by) = u32::try_from(by).ok().filter(|by| *by <= ty.width()) else {
                lower.error(at, format!("a shift by {by}: it is at most {}", ty.width()));
                return None;
            };
            let expr = Expr::Concat { left: Box::new(high), left_ty: ty, right: Box::new(low), right_ty: ty };
            let value = Expr::Slice { expr: Box::new(expr), from: both, hi: by + ty.width() - 1, lo: by };
            lower.assign(&target, Val::Leaf(value, ty), at);
            None
        }
        _ => None,
    }
}
