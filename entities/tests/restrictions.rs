//! `@entry_restriction` and `@action_restriction`, operator by operator; no write bypasses them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_entities::{Candidate, Checked, Program, Reading, all, refuse, write};
use p4rack_p4::Options;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    Action, Entity, FieldMatch, ReadRequest, TableAction, TableEntry, Update, WriteRequest, action,
    table_action,
};
use p4rack_switch::{Config, Switch};
use p4rack_wire::Nanos;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A table with a key of each kind, with annotations for it and for its action.
fn loaded(entry: &str, action: &str) -> (Arc<Program>, Switch) {
    let text = format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
struct headers_t {{ h_t h; }}
struct meta_t {{}}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {action} @id(1) action set(@id(1) bit<8> x) {{ hdr.h.a = x; }}
    {entry} @id(1) table t {{
        key = {{
            hdr.h.a: exact @name("a") @id(1);
            hdr.h.b: ternary @name("b") @id(2);
            hdr.h.c: range @name("c") @id(3);
            hdr.h.d: lpm @name("d") @id(4);
        }}
        actions = {{ set; }}
        size = 64;
    }}
    @id(2) table u {{
        key = {{ hdr.h.a: exact @name("a") @id(1); }}
        actions = {{ set; }}
        size = 64;
    }}
    apply {{ t.apply(); u.apply(); }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{}} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    );
    let mut switch = Switch::new(Config::default());
    let candidate = Candidate::compile(&text, "t.p4", &Options::default());
    let candidate = candidate.unwrap_or_else(|error| panic!("{entry} {action}: {error}"));
    (candidate.load(None, &mut switch), switch)
}

const T: u32 = 0x0200_0001;
const U: u32 = 0x0200_0002;

fn key(field_id: u32, field_match_type: FieldMatchType) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(field_match_type) }
}

/// An entry that matches all of `b`, `c` and `d`, except as `more` restricts them.
fn entry(table_id: u32, a: u8, more: &[FieldMatch], x: u8) -> TableEntry {
    let mut keys = vec![key(1, FieldMatchType::Exact(Exact { value: vec![a] }))];
    keys.extend_from_slice(more);
    let set = Action { action_id: 0x0100_0001, params: vec![action::Param { param_id: 1, value: vec![x] }] };
    let action = Some(TableAction { r#type: Some(table_action::Type::Action(set)) });
    let priority = if table_id == T { 7 } else { 0 };
    TableEntry { table_id, r#match: keys, action, priority, ..Default::default() }
}

fn insert(entry: &TableEntry) -> Update {
    let entity = Some(Entity { entity: Some(EntityKind::TableEntry(entry.clone())) });
    Update { r#type: Type::Insert as i32, entity }
}

fn written((program, switch): &mut (Arc<Program>, Switch), entry: &TableEntry) -> Checked<()> {
    let request = WriteRequest { updates: vec![insert(entry)], ..Default::default() };
    write(program, &request, switch, Nanos::ZERO).remove(0)
}

#[test]
fn every_operator_means_what_it_says() {
    let b = |value, mask| key(2, FieldMatchType::Ternary(Ternary { value: vec![value], mask: vec![mask] }));
    let c = |low, high| key(3, FieldMatchType::Range(Range { low: vec![low], high: vec![high] }));
    let d = |value, prefix_len| key(4, FieldMatchType::Lpm(Lpm { value: vec![value], prefix_len }));
    type Case = (u8, Vec<FieldMatch>, bool);
    let plain = |cases: &[(u8, bool)]| cases.iter().map(|(a, ok)| (*a, vec![], *ok)).collect::<Vec<Case>>();
    for (clause, cases) in [
        ("true", plain(&[(5, true)])),
        ("false", plain(&[(5, false)])),
        ("a == 5", plain(&[(4, false), (5, true), (6, false)])),
        ("a != 5", plain(&[(4, true), (5, false), (6, true)])),
        ("a < 5", plain(&[(4, true), (5, false), (6, false)])),
        ("a <= 5", plain(&[(4, true), (5, true), (6, false)])),
        ("a > 5", plain(&[(4, false), (5, false), (6, true)])),
        ("a >= 5", plain(&[(4, false), (5, true), (6, true)])),
        ("!(a == 5)", plain(&[(4, true), (5, false)])),
        ("a == 5 || a == 7", plain(&[(5, true), (6, false), (7, true)])),
        ("a > 5 && a < 7", plain(&[(5, false), (6, true), (7, false)])),
        ("(a > 5) == (a < 7)", plain(&[(5, false), (6, true), (7, false)])),
        ("a > 5 -> a == 7", plain(&[(5, true), (6, false), (7, true)])),
        // Negative numbers are those of the key's width.
        ("a == -1", plain(&[(1, false), (254, false), (255, true)])),
        ("a == -251", plain(&[(5, true), (251, false)])),
        ("::priority == 7", plain(&[(5, true)])),
        ("::priority > 7", plain(&[(5, false)])),
        ("-::priority == -7", plain(&[(5, true)])),
        ("a == -::priority", plain(&[(7, false), (249, true)])),
        ("b == 5", vec![(1, vec![b(5, 255)], true), (1, vec![b(4, 4)], false), (1, vec![], false)]),
        ("b::mask == -1", vec![(1, vec![b(5, 255)], true), (1, vec![b(4, 4)], false), (1, vec![], false)]),
        ("b::mask == 0", vec![(1, vec![b(5, 255)], false), (1, vec![], true)]),
        ("b::value == 4", vec![(1, vec![b(4, 4)], true), (1, vec![b(5, 255)], false)]),
        ("c::low >= 3", vec![(1, vec![c(3, 9)], true), (1, vec![c(2, 9)], false), (1, vec![], false)]),
        ("c::high <= 9", vec![(1, vec![c(3, 9)], true), (1, vec![c(3, 10)], false), (1, vec![], false)]),
        ("c::low == 0 && c::high == 255", vec![(1, vec![], true), (1, vec![c(1, 255)], false)]),
        ("d::prefix_length >= 4", vec![(1, vec![d(16, 4)], true), (1, vec![d(32, 3)], false)]),
        ("d::value == 16", vec![(1, vec![d(16, 4)], true), (1, vec![d(32, 4)], false)]),
    ] {
        let mut loaded = loaded(&format!("@entry_restriction(\"{clause}\")"), "");
        for (a, more, is_permitted) in cases {
            let outcome = written(&mut loaded, &entry(T, a, &more, 1));
            let against = |error: &UpdateError| {
                (
                    error.code,
                    error.message.starts_with("table I.t: the entry is against its @entry_restriction `"),
                )
            };
            let expected = if is_permitted { None } else { Some((Code::InvalidArgument, true)) };
            assert_eq!(outcome.as_ref().err().map(against), expected, "{clause}: a = {a}, {more:?}");
        }
    }
}

/// One clause of several, and of each table and action its own.
#[test]
fn restrictions_are_of_their_own_table_and_action() {
    let mut entries = loaded("@entry_restriction(\"a != 0; a != 9;\")", "");
    let mut actions = loaded("", "@action_restriction(\"x != 0\")");
    for (table, a, x, by_entry, by_action) in [
        (T, 1, 0, true, false),
        (T, 2, 1, true, true),
        (T, 9, 1, false, true),
        (T, 0, 1, false, true),
        (U, 9, 1, true, true),
        (U, 1, 0, true, false),
    ] {
        let entry = entry(table, a, &[], x);
        assert_eq!(written(&mut entries, &entry).is_ok(), by_entry, "{table} {a}");
        assert_eq!(written(&mut actions, &entry).is_ok(), by_action, "{table} {a} {x}");
    }
}

/// Entries of a table with restrictions of either kind are never written or read as plain ones, past the check.
#[test]
fn the_plain_way_is_for_tables_without_restrictions() {
    let is_plain = |entry: &str, action: &str, table: u32| {
        let (program, switch) = loaded(entry, action);
        program.plans.read(table, &switch, 0, 1).is_some()
    };
    let (of_entries, of_actions) = ("@entry_restriction(\"a != 0\")", "@action_restriction(\"x != 0\")");
    assert!(is_plain("", "", U));
    assert!(is_plain(of_entries, "", U), "it is another table's");
    assert!(!is_plain("", of_actions, U));
    assert!(!is_plain(of_entries, "", T));
}

/// If the caller does not allow an entity, the whole request is neither written nor read.
#[test]
fn what_is_not_allowed_is_neither_written_nor_read() {
    let (program, mut switch) = loaded("", "");
    let mut asked = |allowed: fn(&Update) -> Checked<()>| {
        let updates = [1, 2].map(|a| insert(&entry(U, a, &[], 1)));
        let mut job = all(&program, &updates, allowed, 1);
        loop {
            if let ControlFlow::Break(outcomes) = job(&mut switch, Nanos::ZERO) {
                let entries = switch.entries(p4rack_p4::ir::TableId(1)).unwrap().len();
                return (
                    outcomes.into_iter().map(|one| one.err().map(|e| e.code)).collect::<Vec<_>>(),
                    entries,
                );
            }
        }
    };
    let is_first = |update: &Update| {
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
        matches!(entity, Some(EntityKind::TableEntry(entry))
            if matches!(&entry.r#match[0].field_match_type, Some(FieldMatchType::Exact(exact)) if exact.value == [1]))
    };
    assert!(is_first(&insert(&entry(U, 1, &[], 1))));
    let denied = Some(Code::PermissionDenied);
    assert_eq!(asked(|_| refuse(Code::PermissionDenied, "no")), (vec![denied, Some(Code::Aborted)], 0));
    assert_eq!(asked(|_| Ok(())), (vec![None, None], 2));

    let all_of = |table_id| Entity {
        entity: Some(EntityKind::TableEntry(TableEntry { table_id, ..Default::default() })),
    };
    let entities = vec![all_of(T), all_of(U), all_of(U)];
    let allowed = |entity: &Entity| match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if entry.table_id == T => refuse(Code::PermissionDenied, "no"),
        _ => Ok(()),
    };
    let mut reading =
        Reading::new(program, ReadRequest { entities, ..Default::default() }, Box::new(allowed));
    let mut found = Vec::new();
    while reading.outcomes().is_none() {
        let mut part = reading.part(1);
        reading = loop {
            if let ControlFlow::Break((rest, more)) = part(&mut switch, Nanos::ZERO) {
                found.extend(more.into_iter().flat_map(p4rack_entities::ReadResults::messages));
                break rest;
            }
        };
    }
    let codes = reading.outcomes().unwrap().iter().map(|one| one.as_ref().err().map(|e| e.code));
    assert_eq!((codes.collect::<Vec<_>>(), found.len()), (vec![denied, None, None], 4));
}
