//! Entries of match-action tables.

use crate::translation::{ACL, BALANCED, LIMITED, entry, exact, invalid, number, translation, truth};
use p4rack_bfrt::p4runtime::PRIORITIES;
use p4rack_p4rt::bfrt_proto::key_field::{Lpm, MatchType, Optional, Range, Ternary};
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableData, TableEntry, data_field, table_entry};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::entity::Entity as Kind;
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::p4::v1::table_entry::IdleTimeout;
use p4rack_p4rt::p4::v1::{
    self, Action, ActionProfileActionSet, CounterData, Entity, FieldMatch, MeterConfig, TableAction, action,
    table_action,
};

const PRIORITY: u32 = 65_537;
const TTL: u32 = 65_536;

fn key(field_id: u32, matched: MatchType) -> KeyField {
    KeyField { field_id, match_type: Some(matched) }
}

fn ternary(value: [u8; 2], mask: [u8; 2]) -> KeyField {
    key(4, MatchType::Ternary(Ternary { value: value.into(), mask: mask.into() }))
}

fn range(low: [u8; 2], high: [u8; 2]) -> KeyField {
    key(5, MatchType::Range(Range { low: low.into(), high: high.into() }))
}

fn lpm(prefix_len: i32) -> KeyField {
    key(3, MatchType::Lpm(Lpm { value: vec![1, 0xff, 0xff, 0xff, 0xff], prefix_len }))
}

fn optional(is_valid: bool) -> KeyField {
    key(6, MatchType::Optional(Optional { value: vec![0, 9], is_valid }))
}

fn acl(keys: Vec<KeyField>) -> TableEntry {
    entry(ACL, keys, 13, Vec::new())
}

/// P4Runtime's entry.
fn p4(message: &TableEntry) -> Result<v1::TableEntry, String> {
    match translation().entity(message).map_err(|error| error.message)?.entity {
        Some(Kind::TableEntry(entry)) => Ok(entry),
        other => panic!("{other:?}"),
    }
}

fn data_of(message: &TableEntry) -> Vec<DataField> {
    message.data.clone().unwrap().fields
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let priority = |value: &[u8]| vec![exact(PRIORITY, value)];
    for (keys, why) in [
        (vec![exact(1, &[0, 5]), exact(1, &[0, 5])], "table `pipe.I.acl`: key `port` is given twice"),
        (vec![exact(99, &[0])], "table `pipe.I.acl` has no key with id 99"),
        (
            vec![ternary([0; 2], [0; 2]), key(4, MatchType::Lpm(Lpm::default()))],
            "table `pipe.I.acl`: key `src` is given twice",
        ),
        (
            vec![key(PRIORITY, MatchType::Optional(Optional::default()))],
            "table `pipe.I.acl`: $MATCH_PRIORITY is an exact number",
        ),
        (priority(&[0, 0, 1]), "pipe.I.acl: 3 bytes, but a number of 32 bits takes 4"),
        (priority(&[1, 0, 0, 0]), "table `pipe.I.acl`: $MATCH_PRIORITY 16777216 is not 0 to 16777215"),
        (vec![lpm(34)], "table `pipe.I.acl`: key `dst`: prefix of 34 bits, but the key has 33"),
        (vec![lpm(-1)], "table `pipe.I.acl`: key `dst`: prefix of -1 bits, but the key has 33"),
        (vec![range([0, 2], [0, 1])], "table `pipe.I.acl`: key `sport`: the range ends before it begins"),
        (
            vec![key(1, MatchType::Optional(Optional::default()))],
            "table `pipe.I.acl`: key `port` is matched Exact",
        ),
        (vec![exact(4, &[0, 1])], "table `pipe.I.acl`: key `src` is matched Ternary"),
        (vec![exact(1, &[2, 0])], "pipe.I.acl: field `port`: 512 needs 10 bits, but the field has 9"),
    ] {
        assert_eq!(p4(&acl(keys.clone())).err().as_deref(), Some(why), "{keys:?}");
    }
    let default = |keys| TableEntry { is_default_entry: true, ..acl(keys) };
    assert_eq!(
        invalid(translation().entity(&default(vec![exact(1, &[0, 5])]))),
        "table `pipe.I.acl`: the default entry has no key"
    );
    assert!(p4(&default(Vec::new())).unwrap().is_default_action);
    let none = TableEntry { value: None, ..acl(Vec::new()) };
    assert_eq!(invalid(translation().entity(&none)), "table `pipe.I.acl`: the entry's key is not set");
    let handle = TableEntry { value: Some(table_entry::Value::HandleId(1)), ..none };
    assert_eq!(translation().entity(&handle).unwrap_err().code, Code::Unimplemented);
}

/// A key that restricts nothing is no match in P4Runtime, and an exact one that is left out is zero.
#[test]
fn keys_become_matches_unless_they_match_anything() {
    use field_match::{Exact, Lpm, Optional, Range, Ternary};
    let zero = |field_id| FieldMatch {
        field_id,
        field_match_type: Some(FieldMatchType::Exact(Exact { value: vec![0] })),
    };
    for (given, expected) in [
        (ternary([0x0f, 0xff], [0, 0]), None),
        (
            ternary([0x0f, 0xff], [0, 0xf0]),
            Some(FieldMatchType::Ternary(Ternary { value: vec![0xf0], mask: vec![0xf0] })),
        ),
        (lpm(0), None),
        (lpm(1), Some(FieldMatchType::Lpm(Lpm { value: vec![1, 0, 0, 0, 0], prefix_len: 1 }))),
        (lpm(33), Some(FieldMatchType::Lpm(Lpm { value: vec![1, 0xff, 0xff, 0xff, 0xff], prefix_len: 33 }))),
        (range([0, 0], [0x0f, 0xff]), None),
        (
            range([0, 1], [0x0f, 0xff]),
            Some(FieldMatchType::Range(Range { low: vec![1], high: vec![0x0f, 0xff] })),
        ),
        (
            range([0, 0], [0x0f, 0xfe]),
            Some(FieldMatchType::Range(Range { low: vec![0], high: vec![0x0f, 0xfe] })),
        ),
        (range([0, 2], [0, 2]), Some(FieldMatchType::Range(Range { low: vec![2], high: vec![2] }))),
        (optional(false), None),
        (optional(true), Some(FieldMatchType::Optional(Optional { value: vec![9] }))),
    ] {
        let made = p4(&acl(vec![given.clone()])).unwrap();
        let own =
            expected.map(|matched| FieldMatch { field_id: given.field_id, field_match_type: Some(matched) });
        let expected: Vec<_> = [zero(1), zero(2)].into_iter().chain(own).collect();
        assert_eq!(made.r#match, expected, "{given:?}");
    }
}

#[test]
fn priorities_are_turned_round() {
    let back = |priority: i32| {
        let r#match = [1, 2].map(|field_id| FieldMatch {
            field_id,
            field_match_type: Some(FieldMatchType::Exact(field_match::Exact { value: vec![1] })),
        });
        let entry = v1::TableEntry { table_id: ACL, r#match: r#match.into(), priority, ..Default::default() };
        let made = translation().entry(&Entity { entity: Some(Kind::TableEntry(entry)) });
        made.map(|made| match made.value {
            Some(table_entry::Value::Key(key)) => key.fields.last().cloned(),
            other => panic!("{other:?}"),
        })
    };
    let most = PRIORITIES as i32;
    for (wins, priority) in [([0, 0, 0, 0], most), ([0, 0, 0, 3], most - 3), ([0, 0xff, 0xff, 0xff], 1)] {
        assert_eq!(p4(&acl(vec![exact(PRIORITY, &wins)])).unwrap().priority, priority);
        assert_eq!(back(priority), Ok(Some(exact(PRIORITY, &wins))));
    }
    assert_eq!(p4(&acl(Vec::new())).unwrap().priority, most, "the smallest number wins");
    for priority in [0, -1, most + 1] {
        let why = format!("table `pipe.I.acl`: priority {priority} is not 1 to 16777216");
        assert_eq!(invalid(back(priority)), why);
    }
}

#[test]
fn data_that_make_no_sense_are_refused() {
    let of = |table, action, fields| p4(&entry(table, Vec::new(), action, fields)).err();
    let text = DataField { field_id: 1, value: Some(data_field::Value::StrVal("1".into())) };
    for (table, action, fields, why) in [
        (ACL, 99, vec![], "table `pipe.I.acl` has no action with id 99"),
        (ACL, 11, vec![truth(1, true)], "table `pipe.I.acl`: parameter `a` holds a number"),
        (
            ACL,
            11,
            vec![number(77, &[1])],
            "table `pipe.I.acl`: its entries with action `I.set` have no field with id 77",
        ),
        (
            ACL,
            13,
            vec![number(1, &[0, 1])],
            "table `pipe.I.acl`: its entries with action `I.pass` have no field with id 1",
        ),
        (ACL, 0, vec![number(77, &[1])], "table `pipe.I.acl`: its entries have no field with id 77"),
        (
            ACL,
            13,
            vec![truth(TTL, true)],
            "table `pipe.I.acl`: field `$ENTRY_TTL`: the field holds a number, not a truth value",
        ),
        (
            BALANCED,
            0,
            vec![number(1, &[0, 0, 0, 5]), number(2, &[0, 0, 0, 6])],
            "table `pipe.I.balanced`: an entry has a member or a group, not both",
        ),
        (BALANCED, 0, vec![text], "table `pipe.I.balanced`: field 1 holds a number"),
        (
            BALANCED,
            0,
            vec![number(1, &[0xff; 4])],
            "table `pipe.I.balanced`: members and groups are numbered up to 4294967294",
        ),
        (
            BALANCED,
            0,
            vec![number(1, &[1])],
            "table `pipe.I.balanced`: 1 bytes, but a number of 32 bits takes 4",
        ),
    ] {
        assert_eq!(of(table, action, fields.clone()).as_deref(), Some(why), "{fields:?}");
    }
}

#[test]
fn data_become_actions_counts_and_times() {
    let fields = vec![
        truth(2, true),
        number(TTL, &[0, 0, 0, 250]),
        number(65_539, &[0, 0, 0, 0, 0, 0, 0, 7]),
        // P4Runtime knows neither whether an entry was hit nor registers of entries.
        DataField { field_id: 65_540, value: Some(data_field::Value::StrVal("ENTRY_ACTIVE".into())) },
        number(65_541, &[1]),
    ];
    let made = p4(&entry(ACL, Vec::new(), 11, fields)).unwrap();
    let params = vec![
        // A missing value is zero.
        action::Param { param_id: 1, value: vec![0] },
        action::Param { param_id: 2, value: vec![1] },
    ];
    let action = table_action::Type::Action(Action { action_id: 11, params });
    assert_eq!(made.action, Some(TableAction { r#type: Some(action) }));
    assert_eq!(made.idle_timeout_ns, 250_000_000);
    assert_eq!(made.counter_data, Some(CounterData { byte_count: 0, packet_count: 7 }));
    let off = p4(&entry(ACL, Vec::new(), 11, vec![truth(2, false)])).unwrap();
    assert!((off.counter_data, off.idle_timeout_ns) == (None, 0), "{off:?}");
    for (fields, expected) in [
        (vec![number(1, &[0, 0, 0, 5])], Some(table_action::Type::ActionProfileMemberId(5))),
        (vec![number(2, &[0; 4])], Some(table_action::Type::ActionProfileGroupId(u32::MAX))),
        (vec![], None),
    ] {
        let made = p4(&entry(BALANCED, Vec::new(), 0, fields)).unwrap();
        assert_eq!(made.action.map(|action| action.r#type.unwrap()), expected);
    }
}

/// Read requests to P4Runtime, with the counts, rates and times that the table has.
#[test]
fn requests_ask_for_what_a_table_has() {
    let asked = |message: &TableEntry| match translation().request(message).unwrap().entity {
        Some(Kind::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    let all = |table_id| TableEntry { table_id, ..Default::default() };
    let expected = v1::TableEntry {
        table_id: ACL,
        counter_data: Some(CounterData::default()),
        time_since_last_hit: Some(IdleTimeout::default()),
        ..Default::default()
    };
    assert_eq!(asked(&all(ACL)), expected);
    let default = TableEntry { is_default_entry: true, ..all(ACL) };
    let of_default = v1::TableEntry { is_default_action: true, time_since_last_hit: None, ..expected };
    assert_eq!(asked(&default), of_default);
    let limited = v1::TableEntry {
        table_id: LIMITED,
        meter_config: Some(MeterConfig::default()),
        ..Default::default()
    };
    assert_eq!(asked(&all(LIMITED)), limited);
    let one = asked(&entry(LIMITED, vec![exact(1, &[0, 0, 0, 0, 0, 7])], 0, Vec::new()));
    assert_eq!(one.r#match.len(), 1);
}

#[test]
fn only_a_read_without_key_and_priority_is_of_all_entries() {
    let keys = |entry: v1::TableEntry| translation().keys(&Entity { entity: Some(Kind::TableEntry(entry)) });
    let of = |table_id| v1::TableEntry { table_id, ..Default::default() };
    assert_eq!(keys(of(LIMITED)), Ok(vec![TableEntry { table_id: LIMITED, ..Default::default() }]));
    let default = keys(v1::TableEntry { is_default_action: true, ..of(LIMITED) }).unwrap();
    assert!(default[0].is_default_entry && default[0].value.is_none());
    assert!(invalid(keys(v1::TableEntry { priority: 1, ..of(ACL) })).contains("key `port` is matched Exact"));
    assert_eq!(keys(of(99)).unwrap_err().code, Code::NotFound);
}

/// An entry of P4Runtime with an exact match of LIMITED.
fn limited(action_id: u32) -> v1::TableEntry {
    let matched = FieldMatchType::Exact(field_match::Exact { value: vec![7] });
    v1::TableEntry {
        table_id: LIMITED,
        r#match: vec![FieldMatch { field_id: 1, field_match_type: Some(matched) }],
        action: does(table_action::Type::Action(Action { action_id, params: Vec::new() })),
        ..Default::default()
    }
}

fn does(action: table_action::Type) -> Option<TableAction> {
    Some(TableAction { r#type: Some(action) })
}

#[test]
fn entities_that_make_no_sense_are_refused() {
    let back = |entry: v1::TableEntry| translation().entry(&Entity { entity: Some(Kind::TableEntry(entry)) });
    assert!(back(limited(12)).is_ok());
    let set = |params: Vec<action::Param>| v1::TableEntry {
        table_id: ACL,
        is_default_action: true,
        action: does(table_action::Type::Action(Action { action_id: 11, params })),
        ..Default::default()
    };
    let param = |param_id, value: &[u8]| action::Param { param_id, value: value.to_vec() };
    assert!(back(set(vec![param(1, &[1, 0xff]), param(2, &[1])])).is_ok());
    let wide = back(set(vec![param(1, &[2, 0]), param(2, &[1])])).unwrap_err();
    assert_eq!(wide.code, Code::OutOfRange, "{wide:?}");
    assert_eq!(back(set(vec![param(1, &[]), param(2, &[1])])).unwrap_err().code, Code::OutOfRange);
    for (entry, why) in [
        (set(vec![param(2, &[1])]), "table `pipe.I.acl`: parameter `a` is missing"),
        (limited(99), "table `pipe.I.limited` has no action with P4Runtime's id 99"),
        (
            v1::TableEntry { idle_timeout_ns: 1, ..limited(12) },
            "table `pipe.I.limited`: its entries have no idle timeouts",
        ),
        (
            v1::TableEntry { r#match: Vec::new(), ..limited(12) },
            "table `pipe.I.limited`: key `dst` is matched Exact",
        ),
        (
            v1::TableEntry { action: does(table_action::Type::ActionProfileMemberId(1)), ..limited(12) },
            "table `pipe.I.limited` has no such action",
        ),
    ] {
        assert_eq!(invalid(back(entry)), why);
    }
    let one_shot = table_action::Type::ActionProfileActionSet(ActionProfileActionSet::default());
    let one_shot = back(v1::TableEntry { action: does(one_shot), ..limited(12) }).unwrap_err();
    assert_eq!(one_shot.code, Code::Unimplemented);
}

/// The default action of a table with members is none of the table's own.
#[test]
fn a_table_of_members_shows_no_default_action() {
    let miss = v1::TableEntry {
        table_id: BALANCED,
        is_default_action: true,
        action: does(table_action::Type::Action(Action { action_id: 12, params: Vec::new() })),
        ..Default::default()
    };
    let entity = Entity { entity: Some(Kind::TableEntry(miss)) };
    let made = translation().entry(&entity).unwrap();
    assert!(made.is_default_entry && made.value.is_none());
    assert_eq!(made.data, Some(TableData::default()));
}

/// Keys without a match stand for everything; the time to live is the remaining one.
#[test]
fn entities_become_whole_entries() {
    let exact_match = |field_id| FieldMatch {
        field_id,
        field_match_type: Some(FieldMatchType::Exact(field_match::Exact { value: vec![1] })),
    };
    let back = |elapsed_ns: Option<i64>, counter_data| {
        let entry = v1::TableEntry {
            table_id: ACL,
            r#match: vec![exact_match(1), exact_match(2)],
            priority: 1,
            action: does(table_action::Type::Action(Action { action_id: 13, params: Vec::new() })),
            idle_timeout_ns: 250_000_000,
            time_since_last_hit: elapsed_ns.map(|elapsed_ns| IdleTimeout { elapsed_ns }),
            counter_data,
            ..Default::default()
        };
        translation().entry(&Entity { entity: Some(Kind::TableEntry(entry)) }).unwrap()
    };
    let made = back(None, None);
    let Some(table_entry::Value::Key(key)) = &made.value else { panic!("{made:?}") };
    let anything = [
        exact(1, &[0, 1]),
        exact(2, &[1]),
        self::key(3, MatchType::Lpm(Lpm { value: vec![0; 5], prefix_len: 0 })),
        ternary([0; 2], [0; 2]),
        range([0; 2], [0x0f, 0xff]),
        self::key(6, MatchType::Optional(Optional { value: vec![0; 2], is_valid: false })),
        exact(PRIORITY, &[0, 0xff, 0xff, 0xff]),
    ];
    assert_eq!(key.fields, anything);
    for (elapsed_ns, left_ms) in [(None, 250), (Some(100_000_000), 150), (Some(300_000_000), 0)] {
        assert_eq!(data_of(&back(elapsed_ns, None)), [number(TTL, &[0, 0, 0, left_ms])], "{elapsed_ns:?}");
    }
    let counted = back(None, Some(CounterData { byte_count: 9, packet_count: -1 }));
    let count = |id, last| number(id, &[0, 0, 0, 0, 0, 0, 0, last]);
    assert_eq!(data_of(&counted)[..2], [count(65_538, 9), count(65_539, 0)]);
}

/// Whether a change needs to know the old entry.
#[test]
fn a_change_is_whole_with_all_parameters_and_times() {
    let is_whole = |table, action, fields| translation().is_whole(&entry(table, Vec::new(), action, fields));
    let ttl = || number(TTL, &[0; 4]);
    let (a, up) = (|| number(1, &[0, 0]), || truth(2, true));
    assert!(is_whole(ACL, 11, vec![a(), up(), ttl()]));
    for fields in [vec![a(), up()], vec![a(), ttl()], vec![up(), ttl()], vec![]] {
        assert!(!is_whole(ACL, 11, fields.clone()), "{fields:?}");
    }
    assert!(is_whole(ACL, 13, vec![ttl()]) && !is_whole(ACL, 0, vec![ttl()]), "an action without parameters");
    assert!(
        is_whole(BALANCED, 0, vec![number(1, &[0; 4])]) && is_whole(BALANCED, 0, vec![number(2, &[0; 4])])
    );
    assert!(!is_whole(BALANCED, 0, vec![]) && !is_whole(LIMITED, 12, vec![]), "its rates stay");
    assert!(!translation().is_whole(&TableEntry { table_id: ACL, ..Default::default() }), "without data");
}
