//! Lowers calls of v1model's extern functions.

use super::algorithm;
use crate::ast::Span;
use crate::ir::{Expr, ExternCall, HashAlgorithm, Intrinsic, LValue, VarId};
use crate::sema::lower::{Lower, Place, Val, zero};
use crate::sema::tree::TCall;
use crate::sema::value::Value;
use num_traits::ToPrimitive;

/// First index of the field lists that stand for the data of old-style calls. Programs cannot write such an
/// index.
const ANONYMOUS_LIST: u32 = 1 << 16;

pub(super) fn lower_call(lower: &mut Lower<'_>, name: &str, call: &TCall, span: Span) -> Option<()> {
    match (name, call.args.len()) {
        ("mark_to_drop", _) => {
            let given = lower.arg(call, 0).and_then(|a| lower.place(a));
            match given {
                Some(copy) if !is_the_packets(lower, &copy) => drop_copy(lower, copy, span),
                _ => lower.emit_extern(ExternCall::Drop),
            }
        }
        ("random", 3) => {
            let ty = call.type_args.first().map(|t| lower.ty(t))?;
            let (lo, _) = lower.scalar_arg(call, 1);
            let (hi, _) = lower.scalar_arg(call, 2);
            let (dst, dst_ty) = lower.out_leaf(lower.arg(call, 0), &ty, span)?;
            lower.emit_extern(ExternCall::Random { dst, dst_ty, lo, hi });
        }
        ("hash", 5) => {
            let algorithm = algorithm_arg(lower, call, 1, span)?;
            let (base, _) = lower.scalar_arg(call, 2);
            let data = lower.data_arg(call, 3);
            let (max, _) = lower.scalar_arg(call, 4);
            let ty = call.type_args.first().map(|t| lower.ty(t))?;
            let (dst, dst_ty) = lower.out_leaf(lower.arg(call, 0), &ty, span)?;
            let bounds = Some((base, max));
            lower.emit_extern(ExternCall::Hash { object: None, algorithm, dst, dst_ty, data, bounds });
        }
        ("digest", 2) => {
            let ty = call.type_args.first().map(|t| lower.ty(t))?;
            let (receiver, _) = lower.scalar_arg(call, 0);
            let data = lower.data_arg(call, 1);
            let digest = lower.digest(&ty, span)?;
            lower.emit_extern(ExternCall::Digest { receiver, digest, data });
        }
        ("clone", 2) | ("clone_preserving_field_list" | "clone3", 3) => {
            let egress = lower.known_arg(call, 0, span)? == 1;
            let (session, _) = lower.scalar_arg(call, 1);
            let field_list = match name {
                "clone" => None,
                "clone3" => Some(anonymous_list(lower, call, 2, span)?),
                _ => Some(lower.known_arg(call, 2, span)?.to_u32()?),
            };
            lower.emit_extern(ExternCall::Clone { egress, session, field_list });
        }
        ("resubmit_preserving_field_list", 1) => {
            let field_list = lower.known_arg(call, 0, span)?.to_u32()?;
            lower.emit_extern(ExternCall::Resubmit { field_list });
        }
        ("resubmit", 1) => {
            let field_list = anonymous_list(lower, call, 0, span)?;
            lower.emit_extern(ExternCall::Resubmit { field_list });
        }
        ("recirculate_preserving_field_list", 1) => {
            let field_list = lower.known_arg(call, 0, span)?.to_u32()?;
            lower.emit_extern(ExternCall::Recirculate { field_list });
        }
        ("recirculate", 1) => {
            let field_list = anonymous_list(lower, call, 0, span)?;
            lower.emit_extern(ExternCall::Recirculate { field_list });
        }
        ("truncate", 1) => {
            let (bytes, _) = lower.scalar_arg(call, 0);
            lower.emit_extern(ExternCall::Truncate { bytes });
        }
        ("verify_checksum" | "verify_checksum_with_payload", 4) => {
            let (cond, _) = lower.scalar_arg(call, 0);
            let data = lower.data_arg(call, 1);
            let (checksum, checksum_ty) = lower.scalar_arg(call, 2);
            let algorithm = algorithm_arg(lower, call, 3, span)?;
            let payload = name.ends_with("payload");
            lower.emit_extern(ExternCall::VerifyChecksum {
                cond,
                data,
                checksum,
                checksum_ty,
                algorithm,
                payload,
            });
        }
        ("update_checksum" | "update_checksum_with_payload", 4) => {
            let (cond, _) = lower.scalar_arg(call, 0);
            let data = lower.data_arg(call, 1);
            let algorithm = algorithm_arg(lower, call, 3, span)?;
            let ty = lower.arg(call, 2).map(|a| lower.ty(&a.ty))?;
            let (dst, dst_ty) = lower.out_leaf(lower.arg(call, 2), &ty, span)?;
            let payload = name.ends_with("payload");
            lower.emit_extern(ExternCall::UpdateChecksum { cond, data, dst, dst_ty, algorithm, payload });
        }
        ("log_msg", 1 | 2) => {
            let format = match lower.arg(call, 0).and_then(|a| lower.value(a)) {
                Some(Value::Str(s)) => s,
                _ => String::new(),
            };
            let args = lower.data_arg(call, 1);
            lower.emit_extern(ExternCall::LogMsg { format, args });
        }
        ("assert" | "assume", 1) => {
            let (cond, _) = lower.scalar_arg(call, 0);
            lower.emit_extern(ExternCall::Assert { cond, assume: name == "assume", span });
        }
        _ => lower.unsupported(span, format!("extern function `{name}`")),
    }
    Some(())
}

fn algorithm_arg(lower: &mut Lower<'_>, call: &TCall, index: usize, span: Span) -> Option<HashAlgorithm> {
    let member = lower.known_arg(call, index, span)?;
    algorithm(member)
}

/// `mark_to_drop` on a copy of the metadata takes effect when the copy is written back.
fn drop_copy(lower: &mut Lower<'_>, copy: Place, span: Span) {
    let Place::Tuple(fields) = copy else { return };
    let own = lower.intrinsics().to_vec();
    for (field, own) in fields.iter().zip(&own) {
        let Place::Leaf(_, ty) = field else { continue };
        let value = match own.role {
            Intrinsic::Destination => Expr::DropPort,
            Intrinsic::MulticastGroup => zero(*ty),
            _ => continue,
        };
        lower.assign(field, Val::Leaf(value, *ty), span);
    }
}

/// Whether this is the packet's own standard metadata rather than a copy.
fn is_the_packets(lower: &Lower<'_>, place: &Place) -> bool {
    let Place::Tuple(parts) = place else { return false };
    let is = |part: &Place, var: VarId| matches!(part, Place::Leaf(LValue::Var(v), _) if *v == var);
    parts.iter().zip(lower.intrinsics()).all(|(part, own)| is(part, own.var))
}

/// A field list of the variables given as data.
fn anonymous_list(lower: &mut Lower<'_>, call: &TCall, index: usize, span: Span) -> Option<u32> {
    let data = lower.data_arg(call, index);
    let mut vars: Vec<VarId> = Vec::new();
    for (e, _) in data {
        match e {
            Expr::Var(v) => vars.push(v),
            Expr::Const { .. } => {}
            _ => {
                lower.unsupported(span, "data to preserve that is not a list of fields");
                return None;
            }
        }
    }
    Some(lower.add_field_list(ANONYMOUS_LIST, vars))
}
