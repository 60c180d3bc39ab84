//! Shapes of tables and their initial entries.

use super::builder::kind;
use crate::code::plans::ActionPlan;
use crate::error::{CompileError, ControlError};
use crate::objects::{Indirect, TableEntry};
use crate::shape::{ActionShape, KeyShape, ParamShape, Style, TableShape};
use crate::table::TableState;
use crate::words::limbs_of;
use num_bigint::BigUint;
use p4rack_p4::ir::{
    ActionParam, InstanceId, InstanceKind, MatchKind, Matcher, Program, Table, TableId, Ty, Unit,
};
use p4rack_p4::shown;

/// Shape and initial state of a table, and the plans of its actions by position in the list.
pub(crate) fn table(
    program: &Program,
    table: &Table,
    plans: &[ActionPlan],
) -> Result<(TableShape, TableState, Vec<ActionPlan>), CompileError> {
    let name = table.named.name.clone();
    let unsupported = |what: String, help: &str| CompileError::Unsupported {
        object: format!("table {name}"),
        what,
        help: help.into(),
    };
    let mut keys = Vec::new();
    let mut offset = 0;
    let mut style = Style::Exact;
    for key in &table.keys {
        let described = kind(key.ty);
        if described.varbit {
            return Err(unsupported(format!("key {} of type varbit", key.named.name), "match a fixed field"));
        }
        match key.kind {
            MatchKind::Exact => {}
            MatchKind::Lpm if style == Style::Exact => style = Style::Lpm,
            MatchKind::Lpm | MatchKind::Ternary | MatchKind::Optional => style = Style::Ternary,
            MatchKind::Range if matches!(key.ty, Ty::Int(_)) => {
                return Err(unsupported(format!("range of the signed key {}", key.named.name), "use bit<W>"));
            }
            MatchKind::Range => style = Style::Ternary,
            // The selector picks a member of a group, not an entry.
            MatchKind::Selector => continue,
        }
        let name = key.named.name.clone();
        keys.push(KeyShape {
            name,
            kind: key.kind,
            width: described.width,
            format: shown::key(program, key),
            offset,
            limbs: described.limbs(),
        });
        offset += described.limbs();
    }
    let masked = table.has_key_mask && style == Style::Exact && !keys.is_empty();
    if masked {
        style = Style::Lpm;
    }
    let mut actions = Vec::new();
    let mut code = Vec::new();
    for listed in &table.actions {
        let action =
            program.actions.get(listed.action.0 as usize).ok_or_else(|| CompileError::Malformed {
                object: format!("table {name}"),
                what: format!("action {} is not declared", listed.action.0),
            })?;
        let param = |param: &ActionParam| ParamShape {
            name: param.named.name.clone(),
            width: param.ty.width(),
            format: shown::param(program, param),
        };
        let params = action.params.iter().map(param).collect();
        if let Some(param) = action.params.iter().find(|param| matches!(param.ty, Ty::Varbit(_))) {
            return Err(unsupported(
                format!("parameter {} of action {} of type varbit", param.named.name, action.named.name),
                "use bit<W>",
            ));
        }
        actions.push(ActionShape {
            name: action.named.name.clone(),
            params,
            table_only: listed.table_only,
            default_only: listed.default_only,
        });
        code.push(plans[listed.action.0 as usize].clone());
    }
    let shape = TableShape {
        name: format!("table {name}"),
        keys,
        words: offset,
        style,
        actions,
        size: table.size,
        entries_const: table.entries_const,
        default: table.default_action.clone(),
        default_is_const: table.default_is_const,
        counter: table.counter,
        meter: table.meter,
        meter_bytes: table.meter.is_some_and(|meter| counts_bytes(program, meter)),
        element: element(program, table),
        smoother: smoother(program, &name),
        on_call: [table.counter, table.meter]
            .into_iter()
            .flatten()
            .any(|object| works_on_call(program, object)),
        idle_timeout: table.idle_timeout,
        masked,
        implementation: table.implementation,
    };
    let malformed = |error: ControlError| CompileError::Malformed {
        object: shape.name.clone(),
        what: format!("an entry of the program is rejected: {error}"),
    };
    let mut state = TableState::new(&shape).map_err(malformed)?;
    for entry in &table.entries {
        let mut loaded = TableEntry::new(normal(&shape, &entry.keys), entry.call.clone());
        loaded.indirect =
            table.implementation.map(|_| Indirect::Set(vec![(entry.call.clone(), 1.into())].into()));
        loaded.is_const = entry.is_const || table.entries_const;
        if shape.style == Style::Ternary {
            loaded.priority = entry.priority;
        }
        match state.insert(&shape, loaded, true) {
            // Of equal entries, the first one in the text wins.
            Ok(_) | Err(ControlError::AlreadyExists(_)) => {}
            Err(error) => return Err(malformed(error)),
        }
    }
    Ok((shape, state, code))
}

/// Matchers as written in a program, normalised to the form that tables store.
fn normal(shape: &TableShape, keys: &[Matcher]) -> Vec<Matcher> {
    let one = BigUint::from(1u8);
    let mut normal = Vec::new();
    for (key, matcher) in shape.keys.iter().zip(keys) {
        let full = (&one << key.width) - &one;
        normal.push(match (key.kind, matcher) {
            (MatchKind::Exact | MatchKind::Optional, Matcher::Mask { value, mask }) if *mask == full => {
                Matcher::Exact(value.clone())
            }
            (MatchKind::Lpm | MatchKind::Ternary, Matcher::Exact(value)) => {
                Matcher::Mask { value: value.clone(), mask: full }
            }
            (_, Matcher::Mask { mask, .. }) if *mask == BigUint::ZERO => Matcher::Any,
            (_, Matcher::Mask { value, mask }) => Matcher::Mask { value: value & mask, mask: mask.clone() },
            (MatchKind::Range, Matcher::Exact(value)) => {
                Matcher::Range { lo: value.clone(), hi: value.clone() }
            }
            (_, other) => other.clone(),
        });
    }
    normal.extend(keys.iter().skip(shape.keys.len()).cloned());
    normal
}

/// The initial words of a direct register's element.
fn element(program: &Program, table: &Table) -> Vec<u64> {
    let register = table.register.and_then(|register| program.instances.get(register.0 as usize));
    match register.map(|register| &register.kind) {
        Some(InstanceKind::DirectRegister { ty, initial, .. }) => limbs_of(initial, kind(*ty).words()),
        _ => Vec::new(),
    }
}

/// Whether a table has a smoother for its entries, and whether that decides on drops.
fn smoother(program: &Program, name: &str) -> Option<bool> {
    let of = |table: &TableId| program.tables.get(table.0 as usize).is_some_and(|t| t.named.name == name);
    program.instances.iter().find_map(|instance| match &instance.kind {
        InstanceKind::DirectSmoother { table, drops } if table.as_ref().is_some_and(of) => Some(*drops),
        _ => None,
    })
}

fn works_on_call(program: &Program, object: InstanceId) -> bool {
    let found = program.instances.get(object.0 as usize).map(|found| &found.kind);
    matches!(
        found,
        Some(
            InstanceKind::DirectCounter { on_call: true, .. }
                | InstanceKind::DirectMeter { on_call: true, .. }
        )
    )
}

fn counts_bytes(program: &Program, meter: InstanceId) -> bool {
    let found = program.instances.get(meter.0 as usize).map(|found| &found.kind);
    matches!(found, Some(InstanceKind::DirectMeter { unit, .. }) if *unit != Unit::Packets)
}
