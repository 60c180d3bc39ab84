//! Extern objects of TNA that the control plane sees.

use crate::ir::{HashAlgorithm, InstanceKind, Unit};
use crate::sema::lower::Lower;
use crate::sema::tree::InstDecl;
use crate::sema::types::ExternTy;

pub(super) fn lower_object(lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<InstanceKind> {
    Some(match ext.def.name.as_str() {
        "Counter" => InstanceKind::Counter {
            size: lower.ctor_number(inst, 0),
            unit: counter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 1),
        },
        "DirectCounter" => {
            InstanceKind::DirectCounter { table: None, unit: counter_unit(lower.ctor_number(inst, 0)) }
        }
        "Meter" => InstanceKind::Meter {
            size: lower.ctor_number(inst, 0),
            unit: meter_unit(lower.ctor_number(inst, 1)),
            index_type: lower.type_arg_name(ext, 0),
        },
        "DirectMeter" => {
            InstanceKind::DirectMeter { table: None, unit: meter_unit(lower.ctor_number(inst, 0)) }
        }
        "Register" => {
            let element = lower.type_arg(ext, 0)?;
            let ty = lower.register_ty(&element, inst.span)?;
            let data = lower.data_ty(&element);
            let index_type = lower.type_arg_name(ext, 1);
            InstanceKind::Register { size: lower.ctor_number(inst, 0), ty, data, index_type }
        }
        "ActionProfile" => InstanceKind::ActionProfile { size: lower.ctor_number(inst, 0) },
        "ActionSelector" => return selector(lower, inst),
        "Digest" => {
            let ty = lower.type_arg(ext, 0)?;
            lower.digest_object(inst, &ty)?;
            return None;
        }
        _ => return None,
    })
}

/// A selector of a profile: `(profile, hash, mode[, register], largest group, groups)`; or one with members of its own:
/// `(size, hash, mode[, register])`.
fn selector(lower: &mut Lower<'_>, inst: &InstDecl) -> Option<InstanceKind> {
    let profile = lower.object_arg(inst, 0);
    let (size, max_group_size, groups) = match profile.and_then(|id| lower.object(id)).map(|o| &o.kind) {
        Some(InstanceKind::ActionProfile { size }) => {
            let (size, last) = (*size, inst.args.len().checked_sub(1)?);
            (size, lower.ctor_number(inst, last.checked_sub(1)?), lower.ctor_number(inst, last))
        }
        _ => (lower.ctor_number(inst, 0), 0, 0),
    };
    // The hash is an object of its own, which the calls name.
    Some(InstanceKind::ActionSelector {
        size,
        algorithm: HashAlgorithm::Identity,
        output_width: 0,
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
