//! Makes a P4Info from a schema, for controllers that have none: the program's names, with the schema's ids.

use super::{VALUE_SET, key_name};
use crate::schema::{Field, Key, Learn, MatchType, Schema, Table};
use crate::value::Kind;
use p4rack_p4rt::alias::Aliases;
use p4rack_p4rt::p4::config::v1::{
    Action, ActionProfile, ActionRef, Counter, CounterSpec, Digest, DirectCounter, DirectMeter, MatchField,
    Meter, MeterSpec, P4BitTypeSpec, P4BitstringLikeTypeSpec, P4BoolType, P4DataTypeSpec, P4Info,
    P4TupleTypeSpec, Preamble, Register, ValueSet, action, action_ref::Scope, counter_spec, match_field,
    meter_spec, p4_bitstring_like_type_spec, p4_data_type_spec,
};
use std::collections::HashSet;

/// P4Runtime's name of an object: without the pipeline's name if there is only one pipeline.
fn name<'a>(whole: &'a str, pipeline: Option<&str>) -> &'a str {
    let own = pipeline.and_then(|pipeline| whole.strip_prefix(pipeline)?.strip_prefix('.'));
    own.unwrap_or(whole)
}

fn preamble(id: u32, name: &str) -> Option<Preamble> {
    Some(Preamble { id, name: name.to_owned(), ..Default::default() })
}

fn bits(kind: &Kind) -> i32 {
    match kind {
        Kind::Bits(width) => i32::try_from(*width).unwrap_or(i32::MAX),
        _ => 1,
    }
}

/// Describes the program's objects as P4Info.
pub fn info(schema: &Schema) -> P4Info {
    let mut info = P4Info::default();
    let program =
        || schema.tables().iter().filter(|table| !table.name.starts_with(['$']) && table.name.contains('.'));
    let mut pipelines: Vec<&str> = program().filter_map(|table| table.name.split('.').next()).collect();
    pipelines.dedup();
    let pipeline = match &pipelines[..] {
        [only] => Some(*only),
        _ => None,
    };
    let mut seen = HashSet::new();
    for table in program() {
        let named = preamble(table.id, name(&table.name, pipeline));
        let size = i64::try_from(table.size).unwrap_or(i64::MAX);
        match table.table_type.as_str() {
            kind if kind.starts_with("MatchAction_") => add_table(&mut info, table, named, size),
            "Selector" => info.action_profiles.push(ActionProfile {
                preamble: named,
                with_selector: true,
                size,
                ..Default::default()
            }),
            "Action" => {
                let selector = table.name.strip_suffix("_ap");
                let is_selectors =
                    selector.is_some_and(|name| schema.table(name).is_ok_and(|found| found.name == name));
                if !is_selectors {
                    info.action_profiles.push(ActionProfile { preamble: named, size, ..Default::default() });
                }
            }
            "Counter" => info.counters.push(Counter {
                preamble: named,
                spec: counter(table),
                size,
                ..Default::default()
            }),
            "Meter" => {
                info.meters.push(Meter { preamble: named, spec: meter(table), size, ..Default::default() })
            }
            "Register" => {
                let size = i32::try_from(size).unwrap_or(i32::MAX);
                info.registers.push(Register {
                    preamble: named,
                    type_spec: Some(number(&table.fields)),
                    size,
                    ..Default::default()
                });
            }
            VALUE_SET => info.value_sets.push(ValueSet {
                preamble: named,
                r#match: match_fields(table),
                size: i32::try_from(size).unwrap_or(i32::MAX),
            }),
            _ => continue,
        }
        for one in &table.actions {
            if seen.insert(one.id) {
                let param = |field: &Field| action::Param {
                    id: field.id,
                    name: field.name.clone(),
                    bitwidth: bits(&field.kind),
                    ..Default::default()
                };
                // Names with a dollar are fields of the table, not parameters of the action.
                let own = one.fields.iter().filter(|field| !field.name.starts_with('$'));
                let params = own.map(param).collect();
                info.actions.push(Action { preamble: preamble(one.id, &one.name), params });
            }
        }
    }
    info.digests = schema.learns().iter().map(|learn| digest(learn, pipeline)).collect();
    give_aliases(&mut info);
    info
}

/// Gives each object its alias.
fn give_aliases(info: &mut P4Info) {
    let mut all = preambles(info);
    let aliases = Aliases::new(all.iter().map(|preamble| preamble.name.as_str()));
    all.iter_mut().for_each(|preamble| preamble.alias = aliases.of(&preamble.name).to_owned());
}

/// The preambles of the objects of all kinds.
fn preambles(info: &mut P4Info) -> Vec<&mut Preamble> {
    macro_rules! of {
        ($($kind:ident)*) => {
            std::iter::empty()$(.chain(info.$kind.iter_mut().filter_map(|one| one.preamble.as_mut())))*.collect()
        };
    }
    of!(tables actions action_profiles counters direct_counters meters direct_meters registers value_sets digests)
}

fn digest(learn: &Learn, pipeline: Option<&str>) -> Digest {
    let members = learn.fields.iter().map(|field| number(std::slice::from_ref(field))).collect();
    let fields = p4_data_type_spec::TypeSpec::Tuple(P4TupleTypeSpec { members });
    Digest {
        preamble: preamble(learn.id, name(&learn.name, pipeline)),
        type_spec: Some(P4DataTypeSpec { type_spec: Some(fields) }),
    }
}

/// The fields of a table's key, or of a value set's members.
fn match_fields(table: &Table) -> Vec<MatchField> {
    let keys = table.keys.iter().filter(|key| !key.name.starts_with('$') || key.name.ends_with("$valid"));
    let field = |key: &Key| {
        let kind = match key.match_type {
            MatchType::Exact => match_field::MatchType::Exact,
            MatchType::Ternary => match_field::MatchType::Ternary,
            MatchType::Lpm => match_field::MatchType::Lpm,
            MatchType::Range => match_field::MatchType::Range,
            MatchType::Optional => match_field::MatchType::Optional,
        };
        MatchField {
            id: key.id,
            name: key_name(&key.name).into_owned(),
            bitwidth: bits(&key.kind),
            r#match: Some(match_field::Match::MatchType(kind as i32)),
            ..Default::default()
        }
    };
    keys.map(field).collect()
}

fn add_table(info: &mut P4Info, table: &Table, named: Option<Preamble>, size: i64) {
    use p4rack_p4rt::p4::config::v1::Table as P4Table;
    let refs = table.actions.iter().map(|action| {
        let scope = match (action.in_entries, action.as_default) {
            (true, false) => Scope::TableOnly,
            (false, true) => Scope::DefaultOnly,
            _ => Scope::TableAndDefault,
        };
        ActionRef { id: action.id, scope: scope as i32, ..Default::default() }
    });
    let mut made = P4Table {
        preamble: named,
        match_fields: match_fields(table),
        action_refs: refs.collect(),
        size,
        ..Default::default()
    };
    // They need ids of their own: the table's, in the id range of their kind.
    let direct = |kind: u32| kind << 24 | table.id & 0x00ff_ffff;
    if let Some(spec) = counter(table) {
        let (id, of) = (direct(0x13), Some(spec));
        made.direct_resource_ids.push(id);
        let named = preamble(id, &format!("{}.$counter", table.name));
        info.direct_counters.push(DirectCounter { preamble: named, spec: of, direct_table_id: table.id });
    }
    if let Some(spec) = meter(table) {
        let id = direct(0x15);
        made.direct_resource_ids.push(id);
        let named = preamble(id, &format!("{}.$meter", table.name));
        info.direct_meters.push(DirectMeter { preamble: named, spec: Some(spec), direct_table_id: table.id });
    }
    info.tables.push(made);
}

fn counter(table: &Table) -> Option<CounterSpec> {
    let has = |name: &str| table.fields.iter().any(|field| field.name == name);
    let unit = match (has("$COUNTER_SPEC_BYTES"), has("$COUNTER_SPEC_PKTS")) {
        (true, true) => counter_spec::Unit::Both,
        (true, false) => counter_spec::Unit::Bytes,
        (false, true) => counter_spec::Unit::Packets,
        (false, false) => return None,
    };
    Some(CounterSpec { unit: unit as i32 })
}

fn meter(table: &Table) -> Option<MeterSpec> {
    let has = |name: &str| table.fields.iter().any(|field| field.name == name);
    let unit = match (has("$METER_SPEC_CIR_KBPS"), has("$METER_SPEC_CIR_PPS")) {
        (true, _) => meter_spec::Unit::Bytes,
        (_, true) => meter_spec::Unit::Packets,
        _ => return None,
    };
    Some(MeterSpec { unit: unit as i32, ..Default::default() })
}

/// Type of a register's cell or of a digest's field: one number, in which several fields are concatenated.
fn number(fields: &[Field]) -> P4DataTypeSpec {
    let type_spec = match fields {
        [Field { kind: Kind::Bool, .. }] => p4_data_type_spec::TypeSpec::Bool(P4BoolType {}),
        fields => {
            let bitwidth = fields.iter().map(|field| bits(&field.kind)).fold(0, i32::saturating_add);
            let bit = p4_bitstring_like_type_spec::TypeSpec::Bit(P4BitTypeSpec { bitwidth });
            p4_data_type_spec::TypeSpec::Bitstring(P4BitstringLikeTypeSpec {
                type_spec: Some(bit),
                ..Default::default()
            })
        }
    };
    P4DataTypeSpec { type_spec: Some(type_spec) }
}
