//! Tables of schemas, and differences between two schemas.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::{Kind, Schema, SchemaError};

fn schema(tables: &str) -> Schema {
    Schema::parse(format!("{{\"tables\": [{tables}]}}").as_bytes()).unwrap()
}

/// A table without keys whose data has this one field.
fn with_field(field: &str) -> Result<Schema, SchemaError> {
    let table = r#"{"id": 1, "name": "pipe.I.t", "table_type": "Register", "key": [], "data": [FIELD]}"#;
    Schema::parse(format!("{{\"tables\": [{}]}}", table.replace("FIELD", field)).as_bytes())
}

#[test]
fn fields_have_the_types_of_the_file() {
    let of = |kind: &str, repeated: bool| {
        let field =
            format!(r#"{{"singleton": {{"id": 3, "name": "f", "repeated": {repeated}, "type": {kind}}}}}"#);
        match with_field(&field) {
            Ok(schema) => Ok(schema.tables()[0].fields[0].kind.clone()),
            Err(SchemaError::Kind { table, field, kind }) => {
                assert_eq!((&*table, &*field), ("pipe.I.t", "f"));
                Err(kind)
            }
            Err(other) => panic!("{other}"),
        }
    };
    let named = |name: &str| format!(r#"{{"type": "{name}"}}"#);
    let bytes = |width: u32| format!(r#"{{"type": "bytes", "width": {width}}}"#);
    assert_eq!(of(&bytes(9), false), Ok(Kind::Bits(9)));
    assert_eq!(of(&bytes(1 << 16), false), Ok(Kind::Bits(1 << 16)));
    assert_eq!(of(&bytes((1 << 16) + 1), false), Err("bytes of 65537 bits".into()));
    assert_eq!((of(&bytes(8), true), of(&bytes(16), true)), (Ok(Kind::Octets), Ok(Kind::Numbers)));
    for width in [8, 16, 32, 64] {
        for name in [format!("uint{width}"), format!("int{width}")] {
            assert_eq!(of(&named(&name), false), Ok(Kind::Bits(width)), "{name}");
        }
        assert_eq!(of(&named(&format!("uint{width}")), true), Ok(Kind::Numbers));
    }
    assert_eq!((of(&named("bool"), false), of(&named("bool"), true)), (Ok(Kind::Bool), Ok(Kind::Bools)));
    assert_eq!(
        (of(&named("float"), false), of(&named("float"), true)),
        (Ok(Kind::Float), Err("float".into()))
    );
    assert_eq!(of(&named("string"), true), Ok(Kind::Texts));
    let choices = r#"{"type": "string", "choices": ["a", "b"]}"#;
    assert_eq!(of(choices, false), Ok(Kind::Text(vec!["a".into(), "b".into()])));
}

/// The file says so of a field, or of a field that it wraps.
#[test]
fn fields_are_needed_and_read_only_as_the_file_says() {
    let field =
        |id: u32, more: &str| format!(r#"{{"id": {id}, "name": "f{id}", "type": {{"type": "bool"}}{more}}}"#);
    let fields = [
        format!(r#"{{"singleton": {}}}"#, field(0, "")),
        format!(r#"{{"mandatory": true, "singleton": {}}}"#, field(1, "")),
        format!(r#"{{"singleton": {}}}"#, field(2, r#", "mandatory": true"#)),
        format!(r#"{{"read_only": true, "singleton": {}}}"#, field(3, "")),
        format!(r#"{{"singleton": {}}}"#, field(4, r#", "read_only": true"#)),
        format!(r#"{{"mandatory": true, "oneof": [{}, {}]}}"#, field(5, ""), field(6, "")),
        r#"{"singleton": {"id": 7, "name": "f7", "container": [{"mandatory": true, "singleton": INNER}]}}"#
            .replace("INNER", &field(8, "")),
    ];
    let schema = with_field(&fields.join(", ")).unwrap();
    let told: Vec<_> =
        schema.tables()[0].fields.iter().map(|one| (one.id, one.mandatory, one.read_only)).collect();
    let expected = [
        (0, false, false),
        (1, true, false),
        (2, true, false),
        (3, false, true),
        (4, false, true),
        (5, true, false),
        (6, true, false),
        (7, false, false),
    ];
    assert_eq!(told, expected);
    let groups = &schema.tables()[0].fields[7];
    assert_eq!((&groups.kind, groups.group.len()), (&Kind::Groups, 1));
    assert_eq!((groups.group[0].id, groups.group[0].mandatory), (8, true));
}

/// Two tables whose last names are the same, a table whose name ends in another's, and actions of each scope.
const NAMES: &str = r#"
  {"id": 1, "name": "pipe.I.dmac", "table_type": "MatchAction_Direct", "key": [
     {"id": 1, "name": "hdr.ethernet.dst", "match_type": "Exact", "type": {"type": "bytes", "width": 48}}],
   "action_specs": [
     {"id": 11, "name": "I.both", "data": [{"id": 1, "name": "port", "type": {"type": "bytes", "width": 9}}]},
     {"id": 12, "name": "I.entries", "action_scope": "TableOnly",
      "data": [{"singleton": {"id": 1, "name": "wrapped", "type": {"type": "bool"}}}]},
     {"id": 13, "name": "I.default", "action_scope": "DefaultOnly"}],
   "data": [{"singleton": {"id": 65536, "name": "$ENTRY_TTL", "type": {"type": "uint32"}}}]},
  {"id": 2, "name": "pipe.I.acl", "table_type": "MatchAction_Direct", "key": []},
  {"id": 3, "name": "pipe.E.acl", "table_type": "MatchAction_Direct", "key": []},
  {"id": 4, "name": "acl", "table_type": "MatchAction_Direct", "key": []},
  {"id": 5, "name": "$PORT", "table_type": "PortConfigure", "key": []}"#;

#[test]
fn names_may_lack_their_first_parts() {
    let schema = schema(NAMES);
    let found = |name: &str| schema.table(name).map(|table| table.id).map_err(|error| error.to_string());
    for (name, id) in
        [("pipe.I.dmac", 1), ("I.dmac", 1), ("dmac", 1), ("I.acl", 2), ("E.acl", 3), ("acl", 4), ("$PORT", 5)]
    {
        assert_eq!(found(name), Ok(id), "{name}");
    }
    assert_eq!(found("mac"), Err("there is no table `mac`; did you mean dmac?".into()), "no whole part");
    assert_eq!(found("zzzzzzzz"), Err("there is no table `zzzzzzzz`".into()));
    let two = Schema::parse(format!("{{\"tables\": [{}]}}", NAMES.replace("\"acl\"", "\"aclx\"")).as_bytes())
        .unwrap();
    let error = two.table("acl").unwrap_err().to_string();
    assert_eq!(error, "table `acl` may be pipe.I.acl or pipe.E.acl");
    let dmac = schema.table_by_id(1).unwrap();
    assert!(schema.table_by_id(6).is_none());
    let named = ["pipe.I.dmac", "I.dmac", "dmac", "pipe.I"].map(|name| dmac.is_named(name));
    assert_eq!(named, [true, true, false, false], "whole, or without the pipeline's name");
}

#[test]
fn actions_have_a_scope_and_fields_of_their_own() {
    let schema = schema(NAMES);
    let table = schema.table("dmac").unwrap();
    let scopes = ["both", "entries", "default"].map(|name| {
        let action = table.action(name).unwrap();
        (action.id, action.in_entries, action.as_default)
    });
    assert_eq!(scopes, [(11, true, true), (12, true, false), (13, false, true)]);
    assert_eq!(table.action_by_id(12).map(|action| &*action.name), Some("I.entries"));
    assert!(table.action_by_id(14).is_none());
    let (both, entries) = (table.action_by_id(11), table.action_by_id(12));
    let names = |action| table.fields_of(action).map(|field| field.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(both), ["port", "$ENTRY_TTL"]);
    assert_eq!(names(entries), ["wrapped", "$ENTRY_TTL"]);
    assert_eq!(names(None), ["$ENTRY_TTL"]);
    assert_eq!(table.field(both, "port").unwrap().id, 1);
    assert_eq!(table.field(None, "$ENTRY_TTL").unwrap().id, 65_536);
    let no = |action| table.field(action, "port").unwrap_err().to_string();
    assert_eq!(no(None), "there is no field of table `pipe.I.dmac`: `port`");
    assert!(no(entries).starts_with("there is no field of action `I.entries`: `port`"), "{}", no(entries));
    assert_eq!(table.key("dst").unwrap().name, "hdr.ethernet.dst");
}

#[test]
fn tables_have_names_and_numbers_of_their_own() {
    let twice = |second: &str| {
        let first = r#"{"id": 1, "name": "a", "table_type": "Register", "key": []}"#;
        Schema::parse(format!("{{\"tables\": [{first}, {second}]}}").as_bytes())
            .err()
            .map(|error| error.to_string())
    };
    let table = |id: u32, name: &str| {
        format!(r#"{{"id": {id}, "name": "{name}", "table_type": "Register", "key": []}}"#)
    };
    assert_eq!(twice(&table(2, "b")), None);
    assert_eq!(twice(&table(1, "b")), Some("the schema has two tables `b`".into()));
    assert_eq!(twice(&table(2, "a")), Some("the schema has two tables `a`".into()));
}

#[test]
fn digests_have_fields() {
    let json = r#"{"tables": [], "learn_filters": [{"id": 9, "name": "pipe.D.seen", "fields": [
        {"id": 1, "name": "src", "type": {"type": "bytes", "width": 48}}]}]}"#;
    let schema = Schema::parse(json.as_bytes()).unwrap();
    let learn = &schema.learns()[0];
    assert_eq!((learn.id, &*learn.name, &learn.fields[0].kind), (9, "pipe.D.seen", &Kind::Bits(48)));
    assert!(schema.tables().is_empty());
}

/// Every property that clients rely on: a change of each is one sentence, which names the table and the part.
#[test]
fn schemas_differ_in_what_clients_rely_on() {
    const TABLE: &str = r#"{"id": 1, "name": "t", "table_type": "MatchAction_Direct", "size": 8, "key": [
        {"id": 2, "name": "k", "match_type": "Exact", "type": {"type": "bytes", "width": 9}}],
        "action_specs": [{"id": 3, "name": "a", "data": [{"id": 4, "name": "p", "type": {"type": "bytes", "width": 10}}]}],
        "data": [{"singleton": {"id": 5, "name": "f", "type": {"type": "bytes", "width": 11}}}]}"#;
    let differences = |given: &str| schema(TABLE).differences(&schema(given));
    assert_eq!(differences(TABLE), [""; 0]);
    assert_eq!(differences(&TABLE.replace("\"size\": 8", "\"size\": 9")), [""; 0], "clients don't see it");
    let more_keys = r#""key": [{"id": 9, "name": "x", "match_type": "Exact", "type": {"type": "bool"}},"#;
    for (from, to, difference) in [
        ("\"id\": 1", "\"id\": 16", "table `t` has id 0x00000001, given is 0x00000010"),
        ("_Direct", "_Indirect", "table `t` is a MatchAction_Direct, given is a MatchAction_Indirect"),
        ("\"id\": 2", "\"id\": 20", "table `t`: key `k` is not given, or is another"),
        ("\"k\"", "\"l\"", "table `t`: key `k` is not given, or is another"),
        ("\"Exact\"", "\"Ternary\"", "table `t`: key `k` is not given, or is another"),
        ("\"width\": 9", "\"width\": 8", "table `t`: key `k` is not given, or is another"),
        ("\"key\": [", more_keys, "table `t` has 1 keys, given are 2"),
        ("\"id\": 3", "\"id\": 30", "table `t`: action `a` is not given, or is another"),
        ("\"a\"", "\"b\"", "table `t`: action `a` is not given, or is another"),
        ("\"id\": 4", "\"id\": 40", "table `t`: action `a` is not given, or is another"),
        ("\"p\"", "\"q\"", "table `t`: action `a` is not given, or is another"),
        ("\"width\": 10", "\"width\": 8", "table `t`: action `a` is not given, or is another"),
        (
            "[{\"id\": 4",
            "[{\"id\": 6, \"name\": \"x\", \"type\": {\"type\": \"bool\"}}, {\"id\": 4",
            "table `t`: action `a` is not given, or is another",
        ),
        (
            "\"action_specs\": [",
            "\"action_specs\": [{\"id\": 6, \"name\": \"x\"},",
            "table `t` has 1 actions, given are 2",
        ),
        ("\"id\": 5", "\"id\": 50", "table `t`: field `f` is not given, or is another"),
        ("\"f\"", "\"g\"", "table `t`: field `f` is not given, or is another"),
        ("\"width\": 11", "\"width\": 8", "table `t`: field `f` is not given, or is another"),
        (
            "\"data\": [{\"singleton\"",
            "\"data\": [{\"singleton\": {\"id\": 6, \"name\": \"x\", \"type\": {\"type\": \"bool\"}}}, {\"singleton\"",
            "table `t` has 1 fields, given are 2",
        ),
    ] {
        let given = TABLE.replace(from, to);
        assert_ne!(given, TABLE, "{from}");
        assert_eq!(differences(&given), [difference], "{from}");
    }
    let renamed = differences(&TABLE.replace("\"t\"", "\"u\""));
    assert_eq!(renamed, ["table `t` is not given", "the program has no table `u`"]);
}
