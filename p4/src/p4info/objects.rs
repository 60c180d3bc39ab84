//! P4Info of tables, actions, extern objects, headers, value sets and digests.

use super::ids::{Symbols, part_ids};
use super::types::{Types, padded};
use super::{annotations, documentation, preamble};
use crate::ir::{InstanceKind, MatchKind, Program, Structured, Unit};
use p4rack_p4rt::p4::config::v1 as pb;
use std::collections::BTreeSet;

fn match_type(kind: MatchKind) -> Option<pb::match_field::Match> {
    use pb::match_field::MatchType;
    let kind = match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Lpm => MatchType::Lpm,
        MatchKind::Ternary => MatchType::Ternary,
        MatchKind::Range => MatchType::Range,
        MatchKind::Optional => MatchType::Optional,
        MatchKind::Selector => return None,
    };
    Some(pb::match_field::Match::MatchType(kind as i32))
}

pub(super) fn tables(program: &Program, symbols: &Symbols, types: &mut Types<'_>, info: &mut pb::P4Info) {
    for (index, table) in program.tables.iter().enumerate() {
        if table.named.hidden {
            continue;
        }
        let action_id = |at: u32| {
            let listed = table.actions.get(at as usize)?;
            symbols.ids.actions.get(listed.action.0 as usize).copied()
        };
        let keys: Vec<_> = table.keys.iter().filter(|k| k.kind != MatchKind::Selector).collect();
        let ids = part_ids(keys.iter().map(|k| &k.named));
        let mut match_fields = Vec::new();
        for (key, id) in keys.into_iter().zip(ids) {
            let (type_name, bitwidth) = types.field(key.ty, key.type_name.as_deref());
            let shown = annotations(&key.named.annotations, &[]);
            match_fields.push(pb::MatchField {
                id,
                name: key.named.name.clone(),
                annotations: shown.plain,
                structured_annotations: shown.structured,
                bitwidth,
                r#match: match_type(key.kind),
                doc: documentation(&key.named.annotations),
                type_name,
                ..Default::default()
            });
        }
        let mut action_refs = Vec::new();
        for (at, listed) in table.actions.iter().enumerate() {
            use pb::action_ref::Scope;
            let scope = match (listed.table_only, listed.default_only) {
                (true, _) => Scope::TableOnly,
                (_, true) => Scope::DefaultOnly,
                _ => Scope::TableAndDefault,
            };
            let shown = annotations(&listed.annotations, &[]);
            action_refs.push(pb::ActionRef {
                id: action_id(at as u32).unwrap_or_default(),
                scope: scope as i32,
                annotations: shown.plain,
                structured_annotations: shown.structured,
                ..Default::default()
            });
        }
        let default = table.default_action.as_ref();
        let default_id = default.and_then(|d| action_id(d.action)).unwrap_or_default();
        let initial = default.map(|call| {
            let params =
                table.actions.get(call.action as usize).map(|l| &program.actions[l.action.0 as usize].params);
            let params = params.map(Vec::as_slice).unwrap_or_default();
            let arguments = params.iter().zip(part_ids(params.iter().map(|p| &p.named))).zip(&call.args);
            let arguments = arguments.map(|((param, param_id), value)| pb::table_action_call::Argument {
                param_id,
                value: padded(value, param.ty.width()),
            });
            pb::TableActionCall { action_id: default_id, arguments: arguments.collect() }
        });
        let instance = |id: crate::ir::InstanceId| symbols.ids.instances.get(id.0 as usize).copied();
        let direct = [table.counter, table.meter].into_iter().flatten().filter_map(instance).collect();
        let name = &table.named.name;
        info.tables.push(pb::Table {
            preamble: preamble(&table.named, symbols.ids.tables[index], symbols.alias(name), &[]),
            match_fields,
            action_refs,
            const_default_action_id: if table.default_is_const { default_id } else { 0 },
            initial_default_action: initial,
            implementation_id: table.implementation.and_then(instance).unwrap_or_default(),
            direct_resource_ids: direct,
            size: i64::try_from(table.size).unwrap_or(i64::MAX),
            idle_timeout_behavior: i32::from(table.idle_timeout),
            is_const_table: table.entries_const,
            has_initial_entries: !table.entries.is_empty(),
            other_properties: None,
        });
    }
}

pub(super) fn actions(program: &Program, symbols: &Symbols, types: &mut Types<'_>, info: &mut pb::P4Info) {
    let mut seen = BTreeSet::new();
    for (action, id) in program.actions.iter().zip(&symbols.ids.actions) {
        if action.named.hidden || !seen.insert(*id) {
            continue;
        }
        let ids = part_ids(action.params.iter().map(|p| &p.named));
        let mut params = Vec::new();
        for (param, id) in action.params.iter().zip(ids) {
            let (type_name, bitwidth) = types.field(param.ty, param.type_name.as_deref());
            let shown = annotations(&param.named.annotations, &[]);
            params.push(pb::action::Param {
                id,
                name: param.named.name.clone(),
                annotations: shown.plain,
                structured_annotations: shown.structured,
                bitwidth,
                doc: documentation(&param.named.annotations),
                type_name,
                ..Default::default()
            });
        }
        let alias = symbols.alias(&action.named.name);
        info.actions.push(pb::Action { preamble: preamble(&action.named, *id, alias, &[]), params });
    }
}

fn counter_spec(unit: Unit) -> Option<pb::CounterSpec> {
    use pb::counter_spec::Unit as U;
    let unit = match unit {
        Unit::Packets => U::Packets,
        Unit::Bytes => U::Bytes,
        Unit::Both => U::Both,
    };
    Some(pb::CounterSpec { unit: unit as i32 })
}

fn meter_spec(unit: Unit) -> Option<pb::MeterSpec> {
    use pb::meter_spec::Unit as U;
    let unit = if unit == Unit::Packets { U::Packets } else { U::Bytes };
    Some(pb::MeterSpec { unit: unit as i32, ..Default::default() })
}

pub(super) fn instances(program: &Program, symbols: &Symbols, types: &mut Types<'_>, info: &mut pb::P4Info) {
    for (index, instance) in program.instances.iter().enumerate() {
        let named = &instance.named;
        if named.hidden {
            continue;
        }
        let id = symbols.ids.instances[index];
        let alias = symbols.alias(&named.name);
        let pre = |hidden: &[&str]| preamble(named, id, alias.clone(), hidden);
        let size64 = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let table_id =
            |t: &Option<crate::ir::TableId>| t.and_then(|t| symbols.ids.tables.get(t.0 as usize)).copied();
        match &instance.kind {
            InstanceKind::Counter { size, unit, index_type } => info.counters.push(pb::Counter {
                preamble: pre(&[]),
                spec: counter_spec(*unit),
                size: size64(*size),
                index_type_name: types.index(index_type.as_deref()),
            }),
            // A direct counter that no table uses is not shown.
            InstanceKind::DirectCounter { table, unit, .. } => {
                if let Some(direct_table_id) = table_id(table) {
                    info.direct_counters.push(pb::DirectCounter {
                        preamble: pre(&[]),
                        spec: counter_spec(*unit),
                        direct_table_id,
                    });
                }
            }
            InstanceKind::Meter { size, unit, index_type } => info.meters.push(pb::Meter {
                preamble: pre(&[]),
                spec: meter_spec(*unit),
                size: size64(*size),
                index_type_name: types.index(index_type.as_deref()),
            }),
            InstanceKind::DirectMeter { table, unit, .. } => {
                if let Some(direct_table_id) = table_id(table) {
                    info.direct_meters.push(pb::DirectMeter {
                        preamble: pre(&[]),
                        spec: meter_spec(*unit),
                        direct_table_id,
                    });
                }
            }
            InstanceKind::Register { size, data, index_type, .. } => {
                let spec = types.data(data);
                info.registers.push(pb::Register {
                    preamble: pre(&[]),
                    type_spec: Some(spec),
                    size: i32::try_from(*size).unwrap_or(i32::MAX),
                    index_type_name: types.index(index_type.as_deref()),
                });
            }
            // P4Info has none.
            InstanceKind::DirectRegister { .. }
            | InstanceKind::Smoother { .. }
            | InstanceKind::DirectSmoother { .. }
            | InstanceKind::Hash { .. } => {}
            InstanceKind::ActionProfile { size } => {
                info.action_profiles.push(profile(
                    program,
                    symbols,
                    index,
                    pre(SELECTOR_ANNOTATIONS),
                    *size,
                    None,
                ));
            }
            InstanceKind::ActionSelector { size, max_group_size, .. } => {
                let pre = pre(SELECTOR_ANNOTATIONS);
                info.action_profiles.push(profile(
                    program,
                    symbols,
                    index,
                    pre,
                    *size,
                    Some(*max_group_size),
                ));
            }
        }
    }
}

/// Annotations that P4Info shows as fields of their own.
const SELECTOR_ANNOTATIONS: &[&str] =
    &["max_group_size", "selector_size_semantics", "max_member_weight", "weights_disallowed"];

fn profile(
    program: &Program,
    symbols: &Symbols,
    index: usize,
    preamble: Option<pb::Preamble>,
    size: u64,
    max_group_size: Option<u64>,
) -> pb::ActionProfile {
    use pb::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
    let mut tables: Vec<(&str, u32)> = Vec::new();
    for (table, id) in program.tables.iter().zip(&symbols.ids.tables) {
        if table.implementation.is_some_and(|i| i.0 as usize == index) {
            tables.push((&table.named.name, *id));
        }
    }
    tables.sort_unstable();
    let list = &program.instances[index].named.annotations;
    let text = |name: &str| {
        let found = list.iter().find(|a| a.name == name)?;
        match &found.structured {
            Some(Structured::List(_)) => None,
            _ => Some(found.body.trim_matches('"').to_ascii_lowercase()),
        }
    };
    let semantics = match (max_group_size, text("selector_size_semantics").as_deref()) {
        (Some(_), Some("sum_of_weights")) => Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
        (Some(_), Some("sum_of_members")) => {
            let max_member_weight = text("max_member_weight").and_then(|t| t.parse().ok()).unwrap_or(0);
            Some(SelectorSizeSemantics::SumOfMembers(SumOfMembers { max_member_weight }))
        }
        _ => None,
    };
    pb::ActionProfile {
        preamble,
        table_ids: tables.into_iter().map(|t| t.1).collect(),
        with_selector: max_group_size.is_some(),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        max_group_size: max_group_size.and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
        selector_size_semantics: semantics,
        weights_disallowed: max_group_size.is_some() && list.iter().any(|a| a.name == "weights_disallowed"),
    }
}

pub(super) fn controller_headers(
    program: &Program,
    symbols: &Symbols,
    types: &mut Types<'_>,
    info: &mut pb::P4Info,
) {
    for (header, id) in program.controller_headers.iter().zip(&symbols.ids.controller_headers) {
        if header.named.hidden {
            continue;
        }
        let ids = part_ids(header.fields.iter().map(|f| &f.0));
        let mut metadata = Vec::new();
        for ((named, ty, type_name), id) in header.fields.iter().zip(ids) {
            if named.hidden {
                continue;
            }
            let (type_name, bitwidth) = types.field(*ty, type_name.as_deref());
            let shown = annotations(&named.annotations, &[]);
            metadata.push(pb::controller_packet_metadata::Metadata {
                id,
                name: named.name.clone(),
                annotations: shown.plain,
                structured_annotations: shown.structured,
                bitwidth,
                type_name,
                ..Default::default()
            });
        }
        info.controller_packet_metadata.push(pb::ControllerPacketMetadata {
            preamble: preamble(&header.named, *id, header.named.name.clone(), &[]),
            metadata,
        });
    }
}

pub(super) fn value_sets(program: &Program, symbols: &Symbols, info: &mut pb::P4Info) {
    for (set, id) in program.value_sets.iter().zip(&symbols.ids.value_sets) {
        let ids = part_ids(set.fields.iter().map(|f| &f.0));
        let fields = set.fields.iter().zip(ids).map(|((named, ty, kind), id)| {
            let shown = annotations(&named.annotations, &["match"]);
            pb::MatchField {
                id,
                name: named.name.clone(),
                annotations: shown.plain,
                structured_annotations: shown.structured,
                bitwidth: ty.width() as i32,
                r#match: match_type(*kind),
                doc: documentation(&named.annotations),
                ..Default::default()
            }
        });
        info.value_sets.push(pb::ValueSet {
            preamble: preamble(&set.named, *id, symbols.alias(&set.named.name), &[]),
            r#match: fields.collect(),
            size: i32::try_from(set.size).unwrap_or(i32::MAX),
        });
    }
}

pub(super) fn digests(program: &Program, symbols: &Symbols, types: &mut Types<'_>, info: &mut pb::P4Info) {
    for (digest, id) in program.digests.iter().zip(&symbols.ids.digests) {
        let bare = crate::ir::Named { annotations: Vec::new(), ..digest.named.clone() };
        info.digests.push(pb::Digest {
            preamble: preamble(&bare, *id, symbols.alias(&digest.named.name), &[]),
            type_spec: Some(types.data(&digest.data)),
        });
    }
}
