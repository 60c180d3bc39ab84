//! Members of value sets, with one field of each way to match.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::{Translation, info};
use p4rack_p4rt::bfrt_proto::{TableEntry, Update, entity, key_field, table_entry, update};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::match_field::{Match, MatchType};
use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use p4rack_p4rt::p4::v1::{FieldMatch, ValueSetEntry, ValueSetMember, entity::Entity as Kind};

const SETS: &str = r#"{ "schema_version": "1.0.0", "tables": [
  { "id": 9, "name": "pipe.P.kinds", "table_type": "ParserValueSet", "size": 4, "data": [], "key": [
    { "id": 1, "name": "exact", "match_type": "Ternary", "type": { "type": "bytes", "width": 9 } },
    { "id": 2, "name": "masked", "match_type": "Ternary", "type": { "type": "bytes", "width": 12 } },
    { "id": 3, "name": "prefix", "match_type": "Ternary", "type": { "type": "bytes", "width": 20 } } ] } ] }"#;

/// The set as a program declares it: its fields are matched in three ways.
fn translation() -> Translation {
    translation_with(MatchType::Exact)
}

/// The same; this is how its first field is matched.
fn translation_with(first: MatchType) -> Translation {
    let schema = Schema::parse(SETS.as_bytes()).unwrap();
    let mut info = info(&schema);
    let kinds = [first, MatchType::Ternary, MatchType::Lpm];
    for (field, kind) in info.value_sets[0].r#match.iter_mut().zip(kinds) {
        field.r#match = Some(Match::MatchType(kind as i32));
    }
    Translation::new(&schema, &info).unwrap()
}

fn member(fields: &[(u32, FieldMatchType)]) -> ValueSetMember {
    let one = |(id, kind): &(u32, FieldMatchType)| FieldMatch {
        field_id: *id,
        field_match_type: Some(kind.clone()),
    };
    ValueSetMember { r#match: fields.iter().map(one).collect() }
}

fn exact(value: u8) -> FieldMatchType {
    FieldMatchType::Exact(Exact { value: vec![value] })
}

fn ternary(value: u8, mask: u8) -> FieldMatchType {
    FieldMatchType::Ternary(Ternary { value: vec![value], mask: vec![mask] })
}

fn lpm(value: &[u8], prefix_len: i32) -> FieldMatchType {
    FieldMatchType::Lpm(Lpm { value: value.to_vec(), prefix_len })
}

fn set(members: &[ValueSetMember]) -> ValueSetEntry {
    ValueSetEntry { value_set_id: 9, members: members.to_vec() }
}

/// The entries of updates, with their kinds.
fn entries(updates: Vec<Update>) -> Vec<(update::Type, TableEntry)> {
    let one = |update: Update| match update.entity.clone().unwrap().entity {
        Some(entity::Entity::TableEntry(entry)) => (update.r#type(), entry),
        other => panic!("{other:?}"),
    };
    updates.into_iter().map(one).collect()
}

#[test]
fn members_become_entries_and_come_back() {
    let translation = translation();
    let sets = translation.value_sets(9).unwrap();
    let all = [
        member(&[(1, exact(5)), (2, ternary(0x30, 0xf0)), (3, lpm(&[0x0a, 0xb0, 0x00], 8))]),
        member(&[(1, exact(6))]),
    ];
    let made = entries(sets[0].updates(&[], &set(&all)).unwrap());
    assert!(made.iter().all(|(kind, entry)| *kind == update::Type::Insert && entry.table_id == 9));
    let there: Vec<TableEntry> = made.into_iter().map(|(_, entry)| entry).collect();
    let read = sets[0].entity(&there).unwrap().entity;
    assert_eq!(read, Some(Kind::ValueSetEntry(set(&all))));

    // Only differences are written: unwanted members are removed first. Bits behind masks and prefixes don't
    // count.
    let same = member(&[(1, exact(5)), (2, ternary(0x3f, 0xf0)), (3, lpm(&[0x0a, 0xbc, 0xde], 8))]);
    let wanted = set(&[same, member(&[(1, exact(7))])]);
    let changed = entries(sets[0].updates(&there, &wanted).unwrap());
    let kinds: Vec<update::Type> = changed.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [update::Type::Delete, update::Type::Insert]);
    assert_eq!(changed[0].1, there[1]);
}

/// A field that is matched exactly or not at all has no other masks.
#[test]
fn optional_fields_are_whole_or_left_out() {
    let translation = translation_with(MatchType::Optional);
    let sets = translation.value_sets(9).unwrap();
    let optional = FieldMatchType::Optional(Optional { value: vec![5] });
    let all = [member(&[(1, optional)]), member(&[(2, ternary(0x30, 0xf0))])];
    let there = entries(sets[0].updates(&[], &set(&all)).unwrap());
    let mut there: Vec<TableEntry> = there.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(sets[0].entity(&there).unwrap().entity, Some(Kind::ValueSetEntry(set(&all))));
    // Part of the field.
    let part = key_field::Ternary { value: vec![0, 4], mask: vec![0, 4] };
    let Some(table_entry::Value::Key(key)) = &mut there[0].value else { panic!("no key") };
    key.fields[0].match_type = Some(key_field::MatchType::Ternary(part));
    assert_eq!(sets[0].entity(&there).unwrap_err().code, Code::Unimplemented);
}

#[test]
fn what_one_side_does_not_have_is_refused() {
    let translation = translation();
    assert_eq!(translation.value_sets(8).unwrap_err().code, Code::NotFound);
    let sets = translation.value_sets(0).unwrap();
    let refused =
        |fields: &[(u32, FieldMatchType)]| sets[0].updates(&[], &set(&[member(fields)])).unwrap_err();
    let range = FieldMatchType::Range(Range { low: vec![1], high: vec![2] });
    assert_eq!(refused(&[(2, range)]).code, Code::Unimplemented);
    assert_eq!(refused(&[(3, lpm(&[1], 21))]).code, Code::InvalidArgument);
    let unknown = refused(&[(4, exact(1))]);
    assert_eq!(unknown.code, Code::InvalidArgument);
    assert_eq!(unknown.message, "value set `pipe.P.kinds` has no field with P4Runtime's id 4");
    // A mask that is no prefix, and part of a field that P4Runtime matches exactly.
    let schema = Schema::parse(SETS.as_bytes()).unwrap();
    let plain = Translation::new(&schema, &info(&schema)).unwrap();
    for (field, mask) in [(3, 0x0f), (1, 0xf0)] {
        let given = set(&[member(&[(field, ternary(1, mask))])]);
        let there = entries(plain.value_sets(9).unwrap()[0].updates(&[], &given).unwrap());
        let there: Vec<TableEntry> = there.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(sets[0].entity(&there).unwrap_err().code, Code::Unimplemented, "{field}");
    }
}
