//! v1model's extern objects and their methods.

use super::algorithm;
use crate::ast::Span;
use crate::ir::{ExternCall, InstanceId, InstanceKind, Unit};
use crate::sema::lower::{Lower, Val, concatenated, max_group_size, scalars};
use crate::sema::tree::{InstDecl, TCall};
use crate::sema::types::{ExternTy, Type};
use num_bigint::BigUint;
use num_traits::ToPrimitive;

pub(super) fn lower_object(lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<InstanceKind> {
    let span = inst.span;
    let kind = match ext.def.name.as_str() {
        "counter" => InstanceKind::Counter {
            size: lower.ctor_number(inst, 0),
            unit: counter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 0),
        },
        "meter" => InstanceKind::Meter {
            size: lower.ctor_number(inst, 0),
            unit: counter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 0),
        },
        "direct_counter" => InstanceKind::DirectCounter {
            table: None,
            unit: counter_unit(lower.ctor_number(inst, 0)),
            on_call: false,
        },
        "direct_meter" => InstanceKind::DirectMeter {
            table: None,
            unit: counter_unit(lower.ctor_number(inst, 0)),
            on_call: false,
        },
        "register" => {
            let element = lower.type_arg(ext, 0)?;
            let ty = lower.register_ty(&element, span)?;
            let data = lower.data_ty(&element);
            InstanceKind::Register {
                size: lower.ctor_number(inst, 0),
                ty,
                data,
                initial: BigUint::ZERO,
                index_type: lower.type_arg_name(ext, 1),
            }
        }
        "action_profile" => InstanceKind::ActionProfile { size: lower.ctor_number(inst, 0) },
        "action_selector" => InstanceKind::ActionSelector {
            algorithm: algorithm(lower.ctor_number(inst, 0))?,
            size: lower.ctor_number(inst, 1),
            output_width: lower.ctor_number(inst, 2).to_u32().unwrap_or(0),
            max_group_size: max_group_size(inst),
            profile: None,
            groups: 0,
        },
        // The program declares this extern itself: there is nothing to control.
        _ => return None,
    };
    Some(kind)
}

pub(super) fn lower_method(
    lower: &mut Lower<'_>,
    ext: &str,
    instance: InstanceId,
    method: &str,
    call: &TCall,
    span: Span,
) -> Option<()> {
    let done = match (ext, method) {
        ("counter", "count") => {
            let (index, _) = lower.scalar_arg(call, 0);
            ExternCall::CounterCount { instance, index, less: None }
        }
        ("direct_counter", "count") => ExternCall::DirectCount { instance, less: None },
        ("meter", "execute_meter") => {
            let (index, _) = lower.scalar_arg(call, 0);
            let ty = call.type_args.first().map(|t| lower.ty(t))?;
            let (dst, _) = lower.out_leaf(lower.arg(call, 1), &ty, span)?;
            ExternCall::MeterExecute { instance, index, given: None, less: None, dst }
        }
        ("direct_meter", "read") => {
            let ty = lower.arg(call, 0).map_or(Type::Bit(2), |a| lower.ty(&a.ty));
            let (dst, _) = lower.out_leaf(lower.arg(call, 0), &ty, span)?;
            ExternCall::DirectMeterRead { instance, given: None, less: None, dst }
        }
        ("register", "read") => {
            let (index, _) = lower.scalar_arg(call, 1);
            let ty = lower.arg(call, 0).map_or(Type::Bit(1), |a| lower.ty(&a.ty));
            let dst = if ty.scalar().is_some() {
                lower.out_leaf(lower.arg(call, 0), &ty, span)?.0
            } else {
                lower.element_out(instance, lower.arg(call, 0)?)?
            };
            ExternCall::RegisterRead { instance, index, dst }
        }
        ("register", "write") => {
            let (Some(index), Some(value)) = (lower.arg(call, 0), lower.arg(call, 1)) else { return None };
            let values = lower.exprs(&[index, value]);
            let [Val::Leaf(index, _), value] = &values[..] else { return None };
            let mut parts = Vec::new();
            scalars(lower, value, &mut parts);
            ExternCall::RegisterWrite { instance, index: index.clone(), value: concatenated(parts)? }
        }
        (ext, method) => {
            lower.unsupported(span, format!("method `{method}` of extern `{ext}`"));
            return None;
        }
    };
    lower.emit_extern(done);
    Some(())
}

/// The unit, by its position in `CounterType` and `MeterType`.
fn counter_unit(member: u64) -> Unit {
    match member {
        0 => Unit::Packets,
        1 => Unit::Bytes,
        _ => Unit::Both,
    }
}
