//! Translation of TNA's extern objects.

use super::hash;
use crate::ir::{HashAlgorithm, InstanceKind, Ty, Unit};
use crate::sema::lower::{Lower, Made};
use crate::sema::tree::{InstDecl, TExpr};
use crate::sema::types::{ExternTy, Type};
use num_bigint::BigUint;

/// `None` for objects that are not executed: calls of their methods stay calls by name, which the switch refuses.
pub(super) fn lower_object(lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<Made> {
    let kind = match ext.def.name.as_str() {
        "Counter" => InstanceKind::Counter {
            size: lower.ctor_number(inst, 0),
            unit: counter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 1),
        },
        "DirectCounter" => {
            let unit = counter_unit(lower.ctor_number(inst, 0));
            InstanceKind::DirectCounter { table: None, unit, on_call: true }
        }
        "Meter" => InstanceKind::Meter {
            size: lower.ctor_number(inst, 0),
            unit: meter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 0),
        },
        "DirectMeter" => InstanceKind::DirectMeter {
            table: None,
            unit: meter_unit(lower.ctor_number(inst, 0)),
            on_call: true,
        },
        "Register" => {
            let element = lower.type_arg(ext, 0)?;
            let ty = lower.register_ty(&element, inst.span)?;
            let data = lower.data_ty(&element);
            let index_type = lower.type_arg_name(ext, 1);
            let initial = initial(lower, inst, 1, &element);
            InstanceKind::Register { size: lower.ctor_number(inst, 0), ty, data, initial, index_type }
        }
        "DirectRegister" => {
            let element = lower.type_arg(ext, 0)?;
            let ty = lower.register_ty(&element, inst.span)?;
            let data = lower.data_ty(&element);
            let initial = initial(lower, inst, 0, &element);
            let kind = InstanceKind::DirectRegister { table: None, ty, data, initial };
            let made = lower.add_instance(inst, kind);
            lower.hide(&made);
            return Some(made);
        }
        name @ ("Lpf" | "Wred") => {
            let kind = InstanceKind::Smoother { size: lower.ctor_number(inst, 0), drops: name == "Wred" };
            let made = lower.add_instance(inst, kind);
            lower.hide(&made);
            return Some(made);
        }
        name @ ("DirectLpf" | "DirectWred") => {
            let kind = InstanceKind::DirectSmoother { table: None, drops: name == "DirectWred" };
            let made = lower.add_instance(inst, kind);
            lower.hide(&made);
            return Some(made);
        }
        // A register of one cell, which only the control plane writes.
        "RegisterParam" => {
            let element = lower.type_arg(ext, 0)?;
            let ty = lower.register_ty(&element, inst.span)?;
            let data = lower.data_ty(&element);
            let initial = initial(lower, inst, 0, &element);
            let made = lower
                .add_instance(inst, InstanceKind::Register { size: 1, ty, data, initial, index_type: None });
            lower.hide(&made);
            return Some(made);
        }
        "ActionProfile" => InstanceKind::ActionProfile { size: lower.ctor_number(inst, 0) },
        "ActionSelector" => selector(lower, inst)?,
        "Digest" => {
            let ty = lower.type_arg(ext, 0)?;
            return lower.digest_object(inst, &ty);
        }
        // A sum of 16 bits.
        "Checksum" => return Some(lower.packet_variables(&[("sum", Ty::Bit(16))])),
        "ParserCounter" => return Some(lower.packet_variables(&[("count", Ty::Bit(8))])),
        "RegisterAction"
        | "RegisterAction2"
        | "RegisterAction3"
        | "RegisterAction4"
        | "DirectRegisterAction"
        | "MinMaxAction"
        | "MinMaxAction2"
        | "MinMaxAction3"
        | "MinMaxAction4"
        | "Hash"
        | "CRCPolynomial"
        | "Random"
        | "Mirror"
        | "Resubmit"
        | "ParserPriority"
        | "MathUnit"
        | "Alpm"
        | "Atcam"
        | "IdleTimeout" => return Some(Made::Nothing),
        _ => return None,
    };
    Some(lower.add_instance(inst, kind))
}

/// The initial value of a register's elements; 0 if none is given.
fn initial(lower: &mut Lower<'_>, inst: &InstDecl, index: usize, element: &Type) -> BigUint {
    let given: Option<TExpr> = inst.args.get(index).cloned().flatten();
    given.and_then(|value| lower.known_bits(&value, element)).unwrap_or_default()
}

/// A selector of a profile: `(profile, hash, mode[, register], largest group, groups)`; or one with members of its own:
/// `(size, hash, mode[, register])`.
fn selector(lower: &mut Lower<'_>, inst: &InstDecl) -> Option<InstanceKind> {
    let profile = lower.object_arg(inst, 0).and_then(|object| object.instance());
    let (size, max_group_size, groups) = match profile.and_then(|id| lower.object(id)).map(|o| &o.kind) {
        Some(InstanceKind::ActionProfile { size }) => {
            let (size, last) = (*size, inst.args.len().checked_sub(1)?);
            (size, lower.ctor_number(inst, last.checked_sub(1)?), lower.ctor_number(inst, last))
        }
        _ => (lower.ctor_number(inst, 0), 0, 0),
    };
    let hash = lower.object_arg(inst, 1);
    let output_width =
        hash.as_ref().and_then(|hash| lower.type_arg(&hash.ext, 0)?.scalar()).map_or(0, Ty::width);
    let algorithm = hash.as_ref().and_then(|hash| hash::algorithm(lower, hash, output_width));
    if algorithm.is_some_and(|(_, taken)| taken != hash::Taken::Low) {
        let what = "a selector whose hash takes the high bits of its polynomial, or repeats them,";
        lower.unsupported(inst.span, what);
    }
    Some(InstanceKind::ActionSelector {
        size,
        algorithm: algorithm.map_or(HashAlgorithm::Crc32, |(algorithm, _)| algorithm),
        output_width,
        max_group_size,
        profile,
        groups,
    })
}

fn counter_unit(member: u64) -> Unit {
    match member {
        0 => Unit::Packets,
        1 => Unit::Bytes,
        _ => Unit::Both,
    }
}

fn meter_unit(member: u64) -> Unit {
    if member == 0 { Unit::Packets } else { Unit::Bytes }
}
