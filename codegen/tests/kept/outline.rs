//! Outlines of long files.

use super::Files;
use p4rack_p4rt::p4::config::v1::{MatchField, P4Info, Preamble, match_field};
use p4rack_p4rt::p4::v1::{Update, WriteRequest, entity::Entity};
use p4rack_p4rt::text;
use p4rack_wire::hash::fnv1a;
use std::collections::BTreeMap;
use std::path::Path;

/// The outline of a file in `folder`, where the P4Info is that explains its entries.
pub fn outline(name: &str, text: &str, files: &Files, folder: &Path) -> String {
    let contents = match name.split_once('.') {
        Some((_, "p4info.txtpb")) => objects(text),
        Some((rack, "entries.txtpb")) => entries(text, &files[&folder.join(format!("{rack}.p4info.txtpb"))]),
        _ => Vec::new(),
    };
    let mut outline =
        format!("{name}: {} lines, digest {:016x}\n", text.lines().count(), fnv1a(text.bytes()));
    contents.iter().for_each(|line| outline.push_str(&format!("  {line}\n")));
    outline + "\n"
}

/// A line for each of the controller's objects.
fn objects(text: &str) -> Vec<String> {
    let info: P4Info = read(text);
    let mut lines = Vec::new();
    for table in &info.tables {
        let keys: Vec<String> = table.match_fields.iter().map(key).collect();
        let constant = if table.is_const_table { ", constant" } else { "" };
        let (actions, size) = (table.action_refs.len(), table.size);
        lines.push(format!(
            "table {} ({}): {actions} actions, {size} entries{constant}",
            full_name(&table.preamble),
            keys.join(", ")
        ));
    }
    for action in &info.actions {
        let params: Vec<String> =
            action.params.iter().map(|param| format!("{}: {}", param.name, param.bitwidth)).collect();
        lines.push(format!("action {}({})", full_name(&action.preamble), params.join(", ")));
    }
    let registers = info.registers.iter().map(|one| ("register", &one.preamble, i64::from(one.size)));
    let counters = info.counters.iter().map(|one| ("counter", &one.preamble, one.size));
    let meters = info.meters.iter().map(|one| ("meter", &one.preamble, one.size));
    let arrays = registers.chain(counters).chain(meters);
    lines.extend(arrays.map(|(kind, preamble, size)| format!("{kind} {}: {size}", full_name(preamble))));
    for externs in &info.externs {
        let kind = externs.extern_type_name.to_lowercase();
        lines.extend(externs.instances.iter().map(|one| format!("{kind} {}", full_name(&one.preamble))));
    }
    lines
}

fn key(field: &MatchField) -> String {
    let kind = match field.r#match {
        Some(match_field::Match::MatchType(kind)) => match_field::MatchType::try_from(kind)
            .map_or_else(|_| kind.to_string(), |kind| kind.as_str_name().to_lowercase()),
        _ => "other".to_owned(),
    };
    format!("{}: {} {kind}", field.name, field.bitwidth)
}

/// Number of updates, by the object that they concern.
fn entries(text: &str, info: &str) -> Vec<String> {
    let (request, info): (WriteRequest, P4Info) = (read(text), read(info));
    let tables: BTreeMap<u32, &str> = info
        .tables
        .iter()
        .map(|table| (table.preamble.as_ref().map_or(0, |preamble| preamble.id), full_name(&table.preamble)))
        .collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for update in &request.updates {
        *counts.entry(concerns(update, &tables)).or_default() += 1;
    }
    counts.into_iter().map(|(what, count)| format!("{what}: {count}")).collect()
}

fn concerns(update: &Update, tables: &BTreeMap<u32, &str>) -> String {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(Entity::TableEntry(entry)) => format!("entries of {}", tables[&entry.table_id]),
        Some(Entity::PacketReplicationEngineEntry(_)) => "groups and sessions".to_owned(),
        Some(Entity::MeterEntry(_)) => "cells of meters".to_owned(),
        _ => "others".to_owned(),
    }
}

fn read<M: text::TextMessage>(text: &str) -> M {
    text::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn full_name(preamble: &Option<Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| preamble.name.as_str())
}
