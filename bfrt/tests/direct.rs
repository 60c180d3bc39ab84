//! Updates that are translated without messages in between mean the same as with them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::p4runtime::{Scratch, Translation};
use p4rack_bfrt::{Entry, Match, Schema};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry, data_field, entity, key_field, table_entry};
use p4rack_p4rt::p4::v1;
use proptest::prelude::*;
use prost::Message;
use std::sync::LazyLock;

static TABLES: LazyLock<(Schema, Translation)> = LazyLock::new(|| {
    let compiled =
        p4rack_p4::compile(include_str!("direct.p4"), "direct", &p4rack_p4::Options::default()).unwrap();
    let schema = Schema::parse(compiled.bf_rt().unwrap().to_string().as_bytes()).unwrap();
    let translation = Translation::new(&schema, &compiled.p4info).unwrap();
    (schema, translation)
});

fn serialised(kind: bfrt::update::Type, entry: TableEntry) -> Vec<u8> {
    let entity = bfrt::Entity { entity: Some(entity::Entity::TableEntry(entry)) };
    bfrt::Update { r#type: kind as i32, entity: Some(entity) }.encode_to_vec()
}

/// An update's translation: with messages, if it is valid, and without, if it is ordinary.
fn both(inserts: bool, entry: &TableEntry) -> (Option<v1::Update>, Option<v1::Update>) {
    let translation = &TABLES.1;
    let (kind, p4_kind) = match inserts {
        true => (bfrt::update::Type::Insert, v1::update::Type::Insert),
        false => (bfrt::update::Type::Delete, v1::update::Type::Delete),
    };
    let whole = if inserts { entry.clone() } else { TableEntry { data: None, ..entry.clone() } };
    let update = |entity| v1::Update { r#type: p4_kind as i32, entity: Some(entity) };
    let slow = translation.entity(&whole).ok().map(update);
    let mut bytes = Vec::new();
    let may = |table: u32, given: bool| table == entry.table_id && given == inserts;
    let fast = translation.direct(&serialised(kind, entry.clone()), may, &mut Scratch::default(), &mut bytes);
    let fast = fast.map(|()| v1::WriteRequest::decode(&bytes[..]).unwrap().updates.pop().unwrap());
    (slow, fast)
}

fn short(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    bytes[(value.leading_zeros() as usize / 8).min(15)..].to_vec()
}

fn entry(table: u8, [a, b, c]: [u64; 3], prefix: u32, floods: bool) -> TableEntry {
    let wide = |value: u64| u128::from(value >> 16);
    let entry = match table {
        0 => Entry::of("exact_dst")
            .exact("hdr.ethernet.dst", wide(a))
            .exact("hdr.ethernet.flag", (b & 1).into()),
        1 => Entry::of("acl")
            .key("hdr.ethernet.src", Match::Ternary(short(wide(a) >> 1), short(wide(b) >> 1)))
            .exact("hdr.ethernet.dst", wide(c))
            .exact("$MATCH_PRIORITY", (a & 0xffff).into()),
        _ => Entry::of("routes").key("hdr.ethernet.src", Match::Lpm(short(wide(a) >> 1), prefix)),
    };
    let entry = match floods {
        true => entry.action("flood"),
        false => entry.action("send").data("port", (b & 0x1ff) as u16).data("queue", (c & 0x1f) as u16),
    };
    entry.build(&TABLES.0).unwrap()
}

#[test]
fn ordinary_updates_need_no_messages() {
    for table in 0..3 {
        for floods in [false, true] {
            for inserts in [false, true] {
                let (slow, fast) = both(inserts, &entry(table, [1 << 40, 1 << 41, 1 << 42], 9, floods));
                assert!(slow.is_some() && slow == fast, "{slow:?} {fast:?}");
            }
        }
    }
}

/// A field with bytes, serialised.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    prost::encoding::bytes::encode(number, &bytes.to_vec(), &mut field);
    field
}

/// Updates that the translation without messages rejects, for each reason alone; the messages name the
/// mistake.
#[test]
fn other_updates_need_messages() {
    let update = |kind: i32, entry: &TableEntry| {
        let entity = bfrt::Entity { entity: Some(entity::Entity::TableEntry(entry.clone())) };
        bfrt::Update { r#type: kind, entity: Some(entity) }.encode_to_vec()
    };
    let takes = |update: &[u8], may: bool| {
        let mut bytes = Vec::new();
        TABLES.1.direct(update, |_, _| may, &mut Scratch::default(), &mut bytes).is_some()
    };
    let plain = entry(0, [1 << 40, 1, 0], 0, true);
    let [insert, delete] = [bfrt::update::Type::Insert as i32, bfrt::update::Type::Delete as i32];
    assert!(takes(&update(insert, &plain), true) && takes(&update(delete, &plain), true));
    assert!(!takes(&update(insert, &plain), false), "the table may not be written so");
    for kind in [bfrt::update::Type::Modify as i32, bfrt::update::Type::Unspecified as i32, 99, -1] {
        assert!(!takes(&update(kind, &plain), true), "{kind}");
    }
    let without_data = TableEntry { data: None, ..plain.clone() };
    assert!(!takes(&update(insert, &without_data), true) && takes(&update(delete, &without_data), true));
    let edits: &[(&str, Edit)] = &[
        ("no key", |entry| entry.value = None),
        ("a handle", |entry| entry.value = Some(table_entry::Value::HandleId(1))),
        ("the default entry", |entry| entry.is_default_entry = true),
        ("an unknown table", |entry| entry.table_id += 1),
        ("no table", |entry| entry.table_id = 0),
        ("a field less", |entry| drop(keys(entry).pop())),
        ("a field twice", |entry| {
            let first = keys(entry)[0].clone();
            keys(entry).push(first);
        }),
        ("an unknown action", |entry| entry.data.as_mut().unwrap().action_id += 99),
        ("no action", |entry| entry.data.as_mut().unwrap().action_id = 0),
    ];
    for (what, edit) in edits {
        let mut other = plain.clone();
        edit(&mut other);
        assert!(!takes(&update(insert, &other), true), "{what}");
    }
}

type Edit = fn(&mut TableEntry);

fn keys(entry: &mut TableEntry) -> &mut Vec<bfrt::KeyField> {
    match &mut entry.value {
        Some(table_entry::Value::Key(key)) => &mut key.fields,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_number_without_an_end_ends_the_message() {
    let entry = entry(0, [1 << 40, 1, 0], 0, true);
    let Some(table_entry::Value::Key(key)) = &entry.value else { panic!("{entry:?}") };
    let action_id = entry.data.as_ref().unwrap().action_id;
    let mut data = bfrt::TableData { action_id, fields: Vec::new() }.encode_to_vec();
    assert!(!data.is_empty());
    data.extend([0xff; 11]);
    let table_id = TableEntry { table_id: entry.table_id, ..Default::default() }.encode_to_vec();
    let entry = [table_id, field(2, &key.encode_to_vec()), field(3, &data)].concat();
    let kind = bfrt::Update { r#type: bfrt::update::Type::Insert as i32, entity: None }.encode_to_vec();
    let update = [kind, field(2, &field(1, &entry))].concat();
    let mut made = Vec::new();
    assert!(TABLES.1.direct(&update, |_, _| true, &mut Scratch::default(), &mut made).is_none());
}

proptest! {
    #[test]
    fn both_ways_mean_the_same(
        table in 0u8..3,
        values in any::<[u64; 3]>(),
        prefix in 0u32..48,
        (floods, inserts) in any::<(bool, bool)>(),
        fault in 0u8..16,
        noise in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut entry = entry(table, values, prefix, floods);
        let Some(table_entry::Value::Key(key)) = &mut entry.value else { panic!("no key") };
        let data = entry.data.as_mut().unwrap();
        match fault {
            0 => drop(key.fields.pop()),
            1 => key.fields.extend(key.fields.clone()),
            2 => key.fields[0].field_id += 7,
            3 => key.fields.reverse(),
            4 => match key.fields[0].match_type.as_mut().unwrap() {
                key_field::MatchType::Exact(exact) => exact.value = noise,
                key_field::MatchType::Ternary(ternary) => ternary.mask = noise,
                key_field::MatchType::Lpm(lpm) => lpm.prefix_len = 60 - i32::from(values[0] as u8),
                _ => {}
            },
            5 => data.action_id += 1,
            6 => drop(data.fields.pop()),
            7 => data.fields.extend(data.fields.clone()),
            8 => data.fields.iter_mut().for_each(|field| field.value = Some(data_field::Value::Stream(noise.clone()))),
            9 => data.fields.iter_mut().for_each(|field| field.value = Some(data_field::Value::BoolVal(true))),
            10 => entry.is_default_entry = true,
            11 => entry.data = None,
            _ => {}
        }
        let (slow, fast) = both(inserts, &entry);
        // Key fields may come in any order. A prefix of no bits is rare enough for messages.
        let is_ordinary = (fault == 3 || fault > 11) && (table != 2 || prefix > 0);
        prop_assert!(fast.is_some() || !is_ordinary, "{:?}", entry);
        if let Some(mut fast) = fast {
            // Messages put the fields of keys in the table's order.
            let sorted = |update: &mut v1::Update| {
                if let Some(v1::entity::Entity::TableEntry(entry)) =
                    update.entity.as_mut().and_then(|entity| entity.entity.as_mut())
                {
                    entry.r#match.sort_by_key(|field| field.field_id);
                }
            };
            let mut slow = slow.unwrap();
            sorted(&mut slow);
            sorted(&mut fast);
            prop_assert_eq!(slow, fast);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut made = Vec::new();
        let _ = TABLES.1.direct(&bytes, |_, _| true, &mut Scratch::default(), &mut made);
    }
}
