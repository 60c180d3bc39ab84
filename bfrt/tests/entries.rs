//! Entries by name and their messages: required and optional parts, and their form in output.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::{Entry, Match, Schema, Value};
use p4rack_p4rt::bfrt_proto::data_field::{self, ContainerArray, container_array::Container};
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableData, TableEntry, TableKey, key_field, table_entry};
use std::sync::LazyLock;

/// A table of the program, and a fixed one with text, groups and a key that is optional by its kind and needed.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let json = r#"{"tables": [
      {"id": 7, "name": "pipe.I.acl", "table_type": "MatchAction_Direct",
       "key": [
         {"id": 1, "name": "port", "match_type": "Exact", "type": {"type": "bytes", "width": 9}},
         {"id": 2, "name": "dst", "match_type": "LPM", "type": {"type": "bytes", "width": 33}},
         {"id": 3, "name": "src", "match_type": "Ternary", "type": {"type": "bytes", "width": 12}},
         {"id": 4, "name": "sport", "match_type": "Range", "type": {"type": "bytes", "width": 12}},
         {"id": 5, "name": "vid", "match_type": "Optional", "type": {"type": "bytes", "width": 12}},
         {"id": 6, "name": "wide", "match_type": "Ternary", "mandatory": true, "type": {"type": "bytes", "width": 8}},
         {"id": 65537, "name": "$MATCH_PRIORITY", "match_type": "Exact", "mandatory": true, "type": {"type": "uint32"}}],
       "action_specs": [
         {"id": 11, "name": "I.set", "data": [
           {"id": 1, "name": "a", "mandatory": true, "type": {"type": "bytes", "width": 9}},
           {"id": 2, "name": "b", "type": {"type": "bool"}}]},
         {"id": 12, "name": "I.entries", "action_scope": "TableOnly"},
         {"id": 13, "name": "I.default", "action_scope": "DefaultOnly"}],
       "data": [{"singleton": {"id": 65536, "name": "$ENTRY_TTL", "type": {"type": "uint32"}}}]},
      {"id": 8, "name": "tree", "table_type": "Fixed",
       "key": [{"id": 1, "name": "name", "match_type": "Exact", "type": {"type": "string"}}],
       "data": [{"singleton": {"id": 1, "name": "nodes", "container": [
         {"singleton": {"id": 1, "name": "number", "type": {"type": "bytes", "width": 9}}},
         {"singleton": {"id": 2, "name": "up", "type": {"type": "bool"}}}]}}]},
      {"id": 9, "name": "real", "table_type": "Fixed",
       "key": [{"id": 1, "name": "weight", "match_type": "Exact", "type": {"type": "float"}}]},
      {"id": 10, "name": "truth", "table_type": "Fixed",
       "key": [{"id": 1, "name": "on", "match_type": "Exact", "type": {"type": "bool"}}]}]}"#;
    Schema::parse(json.as_bytes()).unwrap()
});

fn acl() -> Entry {
    Entry::of("acl").exact("port", 1).key("wide", Match::Ternary(vec![1], vec![0xff]))
}

fn fault(entry: Entry) -> Option<String> {
    entry.build(&SCHEMA).err().map(|error| error.to_string())
}

/// The message with this key field in the place of one of `acl`'s.
fn with_key(field_id: u32, match_type: Option<key_field::MatchType>) -> TableEntry {
    let key = TableKey { fields: vec![KeyField { field_id, match_type }] };
    TableEntry { table_id: 7, value: Some(table_entry::Value::Key(key)), ..Default::default() }
}

fn with_data(table_id: u32, action_id: u32, field_id: u32, value: Option<data_field::Value>) -> TableEntry {
    let data = TableData { action_id, fields: vec![DataField { field_id, value }] };
    TableEntry { table_id, data: Some(data), ..Default::default() }
}

#[test]
fn an_entry_has_all_keys_that_are_exact_or_needed() {
    assert_eq!(fault(acl()), None, "a priority may be left out");
    let needs = |key: &str| Some(format!("an entry of table `pipe.I.acl` needs key `{key}`"));
    assert_eq!(fault(Entry::of("acl").key("wide", Match::Ternary(vec![1], vec![1]))), needs("port"));
    assert_eq!(fault(Entry::of("acl").exact("port", 1)), needs("wide"));
    assert_eq!(fault(Entry::default_of("acl")), None);
}

#[test]
fn an_action_has_its_place_and_its_parameters() {
    let default = || Entry::default_of("acl");
    let cant = |name: &str, place: &str| Some(format!("`{name}` can't be {place} of table `pipe.I.acl`"));
    assert_eq!(fault(acl().action("entries")), None);
    assert_eq!(fault(default().action("default")), None);
    assert_eq!(fault(acl().action("default")), cant("I.default", "an entry's action"));
    assert_eq!(fault(default().action("entries")), cant("I.entries", "the default action"));
    assert_eq!(fault(acl().action("set").data("a", 1u16)), None);
    assert_eq!(fault(default().action("set").data("a", 1u16)), None);
    assert_eq!(fault(acl().action("set").data("b", true)), Some("action `set` needs parameter `a`".into()));
    assert_eq!(fault(acl()), None, "without an action it needs none");
    let both = acl().action("set").data("$ENTRY_TTL", 7u32).data("b", true).data("a", 1u16);
    let data = both.build(&SCHEMA).unwrap().data.unwrap();
    assert_eq!(data.fields.iter().map(|field| field.field_id).collect::<Vec<_>>(), [1, 2, 65_536], "sorted");
}

#[test]
fn matches_fit_their_keys() {
    let given = |name: &str, key: Match| fault(acl().key(name, key));
    let key = |name: &str, what: &str| Some(format!("key `{name}` of table `pipe.I.acl`{what}"));
    assert_eq!(given("dst", Match::Lpm(vec![1], 33)), None);
    assert_eq!(given("dst", Match::Lpm(vec![1], 34)), key("dst", ": prefix of 34 bits, but the key has 33"));
    assert_eq!(given("sport", Match::Range(vec![2], vec![2])), None);
    assert_eq!(
        given("sport", Match::Range(vec![2], vec![1])),
        key("sport", ": the range ends before it begins")
    );
    assert_eq!(given("vid", Match::Optional(vec![2])), None);
    for (name, kind) in [("vid", "Optional"), ("sport", "Range"), ("dst", "Lpm"), ("src", "Ternary")] {
        assert_eq!(
            given(name, Match::Exact(vec![2])),
            key(name, &format!(" is matched {kind}, not as given"))
        );
    }
    let masked = acl().key("src", Match::Ternary(vec![0x0a, 0xbc], vec![0x0f, 0x0f])).build(&SCHEMA).unwrap();
    let Some(table_entry::Value::Key(TableKey { fields })) = masked.value else { panic!("no key") };
    let ternary = key_field::Ternary { value: vec![0x0a, 0x0c], mask: vec![0x0f, 0x0f] };
    assert_eq!(fields[1].match_type, Some(key_field::MatchType::Ternary(ternary)));
    assert_eq!(fault(Entry::of("truth").exact("on", 1)), None);
    let more = fault(Entry::of("truth").exact("on", 2));
    assert_eq!(more, Some("key `on` of table `truth`: 2 needs 2 bits, but the field has 1".into()));
    let real = fault(Entry::of("real").exact("weight", 1));
    assert_eq!(real, Some("key `weight` of table `real` is no number".into()));
}

/// Matches of any value are left out, and no others.
#[test]
fn keys_that_match_anything_are_left_out() {
    use key_field::{Exact, Lpm, MatchType, Optional, Range, Ternary};
    let two = |first: u8, second: u8| vec![first, second];
    let ternary = |value, mask| Some(MatchType::Ternary(Ternary { value, mask }));
    let lpm = |prefix_len| Some(MatchType::Lpm(Lpm { value: vec![1, 0, 0, 0, 1], prefix_len }));
    let range = |low, high| Some(MatchType::Range(Range { low, high }));
    let optional = |is_valid| Some(MatchType::Optional(Optional { value: two(0, 2), is_valid }));
    for (id, name, sent, expected) in [
        (3, "src", ternary(two(0, 0), two(0, 0)), None),
        (3, "src", ternary(two(0, 0), two(0, 1)), Some(Match::Ternary(vec![0], vec![1]))),
        (2, "dst", lpm(0), None),
        (2, "dst", lpm(1), Some(Match::Lpm(vec![1, 0, 0, 0, 1], 1))),
        (2, "dst", lpm(33), Some(Match::Lpm(vec![1, 0, 0, 0, 1], 33))),
        (4, "sport", range(two(0, 0), two(0x0f, 0xff)), None),
        (4, "sport", range(two(0, 1), two(0x0f, 0xff)), Some(Match::Range(vec![1], vec![0x0f, 0xff]))),
        (4, "sport", range(two(0, 0), two(0x0f, 0xfe)), Some(Match::Range(vec![0], vec![0x0f, 0xfe]))),
        (4, "sport", range(two(0, 0), two(0x0b, 0xff)), Some(Match::Range(vec![0], vec![0x0b, 0xff]))),
        (4, "sport", range(two(0, 0), two(0x07, 0xff)), Some(Match::Range(vec![0], vec![0x07, 0xff]))),
        (5, "vid", optional(true), Some(Match::Optional(vec![2]))),
        (5, "vid", optional(false), None),
    ] {
        let read = Entry::read(&SCHEMA, &with_key(id, sent.clone())).unwrap();
        assert_eq!(read.matched(name), expected.as_ref(), "{sent:?}");
    }
    let fault = |id, sent| Entry::read(&SCHEMA, &with_key(id, sent)).unwrap_err().to_string();
    assert_eq!(fault(2, lpm(34)), "key `dst` of table `pipe.I.acl`: prefix of 34 bits");
    assert_eq!(fault(2, lpm(-1)), "key `dst` of table `pipe.I.acl`: prefix of -1 bits");
    assert_eq!(fault(2, optional(true)), "key `dst` of table `pipe.I.acl` is matched Lpm");
    assert_eq!(fault(1, None), "key `port` of table `pipe.I.acl` is matched Exact");
    assert_eq!(fault(44, None), "the schema has no key 44");
    let wide = Some(MatchType::Exact(Exact { value: two(2, 0) }));
    assert!(fault(1, wide).ends_with("512 needs 10 bits, but the field has 9"));
}

#[test]
fn data_are_read_by_the_fields_of_the_action() {
    let bits = |value: &[u8]| Some(data_field::Value::Stream(value.to_vec()));
    let read = |table, action, field, value| Entry::read(&SCHEMA, &with_data(table, action, field, value));
    let entry = read(7, 11, 1, bits(&[1, 0xff])).unwrap();
    assert_eq!((entry.action_name(), entry.get("a")), (Some("I.set"), Some(&Value::from(511u16))));
    let ttl = read(7, 0, 65_536, bits(&[0, 0, 0, 9])).unwrap();
    assert_eq!((ttl.action_name(), ttl.get("$ENTRY_TTL")), (None, Some(&Value::from(9u32))));
    assert_eq!(read(7, 11, 1, None).unwrap().get("a"), None, "without a value it is not given");
    let fault = |table, action, field, value| read(table, action, field, value).unwrap_err().to_string();
    assert_eq!(fault(99, 0, 1, None), "the schema has no table 99");
    assert_eq!(fault(7, 99, 1, None), "the schema has no action 99");
    assert_eq!(fault(7, 0, 1, None), "the schema has no field 1");
    assert_eq!(
        fault(7, 11, 2, bits(&[1])),
        "field `b` of table `pipe.I.acl`: the field holds a truth value, not a number"
    );
    let default = TableEntry { is_default_entry: true, ..with_data(7, 13, 65_536, None) };
    assert!(Entry::read(&SCHEMA, &default).unwrap().is_default());
    assert!(!ttl.is_default());
}

#[test]
fn groups_of_fields_come_back() {
    let group = |fields: &[(&str, Value)]| {
        fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Vec<_>>()
    };
    let tree = |groups: Vec<Vec<(String, Value)>>| {
        Entry::of("tree").exact_text_key("name", "root").data("nodes", Value::Groups(groups))
    };
    let nodes = vec![group(&[("number", 5u16.into()), ("up", true.into())]), group(&[("up", false.into())])];
    let built = tree(nodes.clone()).build(&SCHEMA).unwrap();
    let read = Entry::read(&SCHEMA, &built).unwrap();
    assert_eq!((read.get("nodes"), read.exact_text("name")), (Some(&Value::Groups(nodes)), Some("root")));
    assert_eq!(
        fault(tree(vec![group(&[("down", true.into())])])),
        Some("field `nodes` of table `tree` has no `down`".into())
    );
    assert_eq!(
        fault(tree(vec![group(&[("number", 512u16.into())])])),
        Some("field `number` of table `tree`: 512 needs 10 bits, but the field has 9".into())
    );
    let sent = |field_id, value| {
        let val = vec![DataField { field_id, value }];
        let array = ContainerArray { container: vec![Container { val }] };
        Entry::read(&SCHEMA, &with_data(8, 0, 1, Some(data_field::Value::ContainerArrVal(array))))
    };
    assert_eq!(sent(1, None).unwrap().get("nodes"), Some(&Value::Groups(vec![Vec::new()])));
    assert_eq!(sent(3, None).unwrap_err().to_string(), "field `nodes` of table `tree` has no 3");
    let wrong = sent(1, Some(data_field::Value::BoolVal(true))).unwrap_err();
    assert!(wrong.to_string().starts_with("field `number` of table `tree`: "), "{wrong}");
}

#[test]
fn a_change_overwrites_what_it_gives() {
    let old = acl().action("set").data("a", 1u16).data("$ENTRY_TTL", 5u32);
    let longer = old.clone().updated(&acl().data("$ENTRY_TTL", 9u32));
    assert_eq!((longer.action_name(), longer.get("a")), (Some("set"), Some(&Value::from(1u16))));
    assert_eq!(longer.get("$ENTRY_TTL"), Some(&Value::from(9u32)));
    assert_eq!(old.updated(&acl().action("entries")).action_name(), Some("entries"));
}

#[test]
fn keys_are_read_as_numbers_and_text() {
    let entry = acl().exact("big", u128::from(u64::MAX)).exact_text_key("name", "h1");
    assert_eq!((entry.exact_number("port"), entry.exact_number("big")), (Some(1), Some(u64::MAX)));
    assert_eq!((entry.exact_number("wide"), entry.exact_number("none")), (None, None), "it has a mask");
    assert_eq!((entry.exact_text("name"), entry.exact_text("wide")), (Some("h1"), None));
}

#[test]
fn entries_are_shown_by_their_keys() {
    let entry = Entry::of("pipe.I.acl")
        .exact("a", 10)
        .key("b", Match::Ternary(vec![1, 0], vec![0xff]))
        .key("c", Match::Lpm(vec![10], 8))
        .key("d", Match::Range(vec![1], vec![2]))
        .key("e", Match::Optional(vec![3]));
    assert_eq!(entry.to_string(), "pipe.I.acl a=0x0a b=0x0100&0xff c=0x0a/8 d=0x01..0x02 e=0x03");
    assert_eq!(Entry::default_of("acl").to_string(), "acl default entry");
}
