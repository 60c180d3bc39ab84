//! Parser value sets: they always exist and are replaced as a whole.

use super::{Answer, Change, Query, Snapshot};
use crate::matching::{check_fields, matcher};
use crate::program::Program;
use crate::{Checked, control, refuse};
use num_bigint::BigUint;
use p4rack_p4::ir::{self, Matcher, ValueSetId};
use p4rack_p4::p4info::field_match;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::ValueSet;
use p4rack_p4rt::p4::v1::{Entity, FieldMatch, ValueSetEntry, ValueSetMember, update};
use p4rack_p4rt::schema::name_of;
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::sync::Arc;

fn ir(program: &Program, set: ValueSetId) -> &ir::ValueSet {
    &program.ir.value_sets[set.0 as usize]
}

/// Checks an update of a value set.
pub fn write(program: &Arc<Program>, kind: update::Type, entry: &ValueSetEntry) -> Checked<Change> {
    let (set, info) = program.value_set(entry.value_set_id)?;
    let name = format!("value set {}", name_of(info.preamble.as_ref()));
    if kind != update::Type::Modify {
        let message = format!("{name} is always there; it can only be modified, also to no members");
        return refuse(Code::InvalidArgument, message);
    }
    let fields = &ir(program, set).fields;
    let member = |member: &ValueSetMember| -> Checked<Vec<Matcher>> {
        check_fields(&name, &info.r#match, &member.r#match)?;
        let pairs = fields.iter().zip(&info.r#match);
        pairs
            .map(|((_, ty, kind), field)| {
                let given = member.r#match.iter().find(|given| given.field_id == field.id);
                let what = format_args!("{name} field `{}`", field.name);
                matcher(what, (*kind, ty.width()), given, None)
            })
            .collect()
    };
    let members = entry.members.iter().map(member).collect::<Checked<Vec<_>>>()?;
    Ok(Box::new(move |switch, _| control(switch.value_set_set(set, members))))
}

/// Reads value sets: one, or with id 0 all.
pub fn read(program: &Arc<Program>, request: &ValueSetEntry) -> Checked<Vec<Query>> {
    let ids = match request.value_set_id {
        0 => program.info.value_sets.iter().filter_map(|info| Some(info.preamble.as_ref()?.id)).collect(),
        id => vec![id],
    };
    let query = |id: u32| -> Checked<Query> {
        let (set, _) = program.value_set(id)?;
        let program = program.clone();
        Ok(Box::new(move |switch: &Switch, _: Nanos| {
            let members = control(switch.value_set_get(set))?.to_vec();
            Ok(Answer::whole(Box::new(move || {
                let Ok((set, info)) = program.value_set(id) else { return Vec::new() };
                let members = members.iter().map(|member| message(ir(&program, set), info, member)).collect();
                let entry = ValueSetEntry { value_set_id: id, members };
                vec![Entity { entity: Some(EntityKind::ValueSetEntry(entry)) }]
            })))
        }))
    };
    ids.into_iter().map(query).collect()
}

fn message(set: &ir::ValueSet, info: &ValueSet, member: &[Matcher]) -> ValueSetMember {
    let fields = set.fields.iter().zip(&info.r#match).zip(member);
    let matches = fields.filter_map(|(((_, ty, kind), field), matcher)| {
        let field_match_type = Some(field_match(*kind, ty.width(), matcher, BigUint::to_bytes_be)?);
        Some(FieldMatch { field_id: field.id, field_match_type })
    });
    ValueSetMember { r#match: matches.collect() }
}

/// Saves the members of a value set for an undo.
pub fn snapshot(program: &Arc<Program>, entry: &ValueSetEntry) -> Checked<Snapshot> {
    let (set, _) = program.value_set(entry.value_set_id)?;
    Ok(Box::new(move |switch| {
        let before = switch.value_set_get(set).map(<[_]>::to_vec).unwrap_or_default();
        Box::new(move |switch| {
            let _ = switch.value_set_set(set, before);
        })
    }))
}
