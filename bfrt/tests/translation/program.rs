//! A program's two descriptions: its P4Info as the schema has it, and where the two don't fit together.

use crate::translation::{ACL, LIMITED, TABLES, both, translation};
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::{Translation, info};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::p4_data_type_spec::TypeSpec;
use p4rack_p4rt::p4::config::v1::{
    MatchField, P4Info, Preamble, action_ref::Scope, counter_spec, match_field, meter_spec,
};

fn named(preamble: &Option<Preamble>) -> (u32, &str, &str) {
    let preamble = preamble.as_ref().unwrap();
    (preamble.id, &preamble.name, &preamble.alias)
}

fn bits(spec: &TypeSpec) -> Option<i32> {
    use p4rack_p4rt::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as Bits;
    match spec {
        TypeSpec::Bitstring(like) => match like.type_spec.as_ref()? {
            Bits::Bit(bit) => Some(bit.bitwidth),
            _ => None,
        },
        _ => None,
    }
}

/// Everything of the schema that P4Runtime has is in the P4Info, with its name for it.
#[test]
fn a_schema_describes_the_program_for_p4runtime() {
    let info = both().1;
    let table = &info.tables[0];
    assert_eq!((named(&table.preamble), table.size), ((ACL, "I.acl", "acl"), 64));
    let keys: Vec<_> = table.match_fields.iter().map(|key| (key.id, &*key.name, key.bitwidth)).collect();
    let expected = [
        (1, "port", 9),
        (2, "hdr.vlan.$valid$", 1),
        (3, "dst", 33),
        (4, "src", 12),
        (5, "sport", 12),
        (6, "vid", 12),
    ];
    assert_eq!(keys, expected, "a priority is no key there");
    use match_field::{Match, MatchType};
    let kinds = [
        MatchType::Exact,
        MatchType::Exact,
        MatchType::Lpm,
        MatchType::Ternary,
        MatchType::Range,
        MatchType::Optional,
    ];
    let told: Vec<_> = table.match_fields.iter().map(|key| key.r#match.clone().unwrap()).collect();
    assert_eq!(told, kinds.map(|kind| Match::MatchType(kind as i32)));
    let scopes: Vec<_> = table.action_refs.iter().map(|action| (action.id, action.scope())).collect();
    assert_eq!(scopes, [(11, Scope::TableAndDefault), (12, Scope::DefaultOnly), (13, Scope::TableOnly)]);
    let actions: Vec<_> =
        info.actions.iter().map(|action| (named(&action.preamble), action.params.len())).collect();
    let expected = [((11, "I.set", "set"), 2), ((12, "I.drop", "drop"), 0), ((13, "I.pass", "pass"), 0)];
    assert_eq!(actions, expected, "each once");
    let params: Vec<_> = info.actions[0].params.iter().map(|it| (it.id, &*it.name, it.bitwidth)).collect();
    assert_eq!(params, [(1, "a", 9), (2, "up", 1)]);

    let direct = &info.direct_counters[0];
    assert_eq!((direct.direct_table_id, direct.spec.unwrap().unit()), (ACL, counter_spec::Unit::Both));
    assert_eq!(table.direct_resource_ids, [0x1300_0007]);
    assert_eq!(named(&direct.preamble).0, 0x1300_0007);
    let direct = &info.direct_meters[0];
    assert_eq!(
        (direct.direct_table_id, direct.spec.as_ref().unwrap().unit()),
        (LIMITED, meter_spec::Unit::Bytes)
    );
    assert_eq!(
        (info.tables[1].direct_resource_ids.as_slice(), named(&direct.preamble).0),
        (&[0x1500_0008][..], 0x1500_0008)
    );

    let profiles: Vec<_> =
        info.action_profiles.iter().map(|it| (named(&it.preamble), it.with_selector, it.size)).collect();
    assert_eq!(
        profiles,
        [((20, "I.profile", "profile"), false, 128), ((21, "I.selector", "selector"), true, 64)]
    );
    assert_eq!((named(&info.counters[0].preamble), info.counters[0].size), ((30, "I.seen", "I.seen"), 512));
    assert_eq!((named(&info.meters[0].preamble), info.meters[0].size), ((31, "I.rate", "rate"), 16));
    let types: Vec<_> =
        info.registers.iter().map(|it| it.type_spec.clone().unwrap().type_spec.unwrap()).collect();
    assert_eq!((bits(&types[0]), info.registers[0].size), (Some(24), 4), "fields one after the other");
    assert!(matches!(types[1], TypeSpec::Bool(_)));
    let set = &info.value_sets[0];
    assert_eq!((named(&set.preamble), set.size, set.r#match[0].bitwidth), ((40, "P.kinds", "kinds"), 4, 16));
    let digest = &info.digests[0];
    assert_eq!(named(&digest.preamble), (60, "D.seen", "D.seen"));
    let Some(TypeSpec::Tuple(tuple)) = &digest.type_spec.as_ref().unwrap().type_spec else {
        panic!("{digest:?}")
    };
    let members: Vec<_> = tuple.members.iter().map(|it| it.type_spec.clone().unwrap()).collect();
    assert_eq!((bits(&members[0]), members.len()), (Some(48), 2));
    assert!(matches!(members[1], TypeSpec::Bool(_)));
}

#[test]
fn counters_and_meters_have_the_units_of_their_fields() {
    let of = |tables: &str| info(&Schema::parse(tables.as_bytes()).unwrap());
    let unit = |info: P4Info| info.counters[0].spec.unwrap().unit();
    assert_eq!(unit(of(&TABLES.replace("$COUNTER_SPEC_PKTS", "$OTHER"))), counter_spec::Unit::Bytes);
    assert_eq!(unit(of(&TABLES.replace("$COUNTER_SPEC_BYTES", "$OTHER"))), counter_spec::Unit::Packets);
    let none = of(&TABLES.replace("$COUNTER_SPEC_", "$OTHER_"));
    assert!(none.counters[0].spec.is_none() && none.direct_counters.is_empty());
    let by_packets = of(&TABLES.replace("_KBPS", "_PPS").replace("_KBITS", "_PKTS"));
    assert_eq!(by_packets.meters[0].spec.as_ref().unwrap().unit(), meter_spec::Unit::Packets);
    let none = of(&TABLES.replace("$METER_SPEC_", "$OTHER_"));
    assert!(none.meters[0].spec.is_none() && none.direct_meters.is_empty());
}

#[test]
fn names_of_several_pipelines_are_whole() {
    let two = Schema::parse(TABLES.replace("pipe.P.", "other.P.").as_bytes()).unwrap();
    let info = info(&two);
    assert_eq!(named(&info.tables[0].preamble).1, "pipe.I.acl");
    assert_eq!(named(&info.value_sets[0].preamble).1, "other.P.kinds");
    assert!(Translation::new(&two, &info).is_ok());
}

/// As in a P4Info that a compiler wrote: the shortest end of a name that is its own.
#[test]
fn aliases_are_unambiguous() {
    let table = |id: u32, name: &str| {
        format!(r#"{{"id": {id}, "name": "{name}", "table_type": "Register", "key": [], "data": []}}"#)
    };
    let names = ["pipe.I.edm.rights", "pipe.I.pl2.rights", "pipe.I.pl2.starts"];
    let tables: Vec<String> = (1..).zip(names).map(|(id, name)| table(id, name)).collect();
    let schema = Schema::parse(format!("{{\"tables\": [{}]}}", tables.join(", ")).as_bytes()).unwrap();
    let info = info(&schema);
    let aliases: Vec<_> = info.registers.iter().map(|it| named(&it.preamble).2).collect();
    assert_eq!(aliases, ["edm.rights", "pl2.rights", "starts"]);
}

/// The members of a selector are its own, also where only the name assigns them.
#[test]
fn a_selector_without_a_profile_has_members() {
    let alone = TABLES.replace(", \"depends_on\": [20]", "").replace("pipe.I.profile", "pipe.I.selector_ap");
    let schema = Schema::parse(alone.as_bytes()).unwrap();
    let info = info(&schema);
    let names: Vec<_> = info.action_profiles.iter().map(|it| named(&it.preamble).1).collect();
    assert_eq!(names, ["I.selector"]);
    assert!(Translation::new(&schema, &info).unwrap().has(20));
}

type Edit = fn(&mut P4Info);

#[test]
fn a_program_has_what_the_schema_has() {
    let fault = |edit: Edit| {
        let (schema, mut info) = both();
        edit(&mut info);
        Translation::new(&schema, &info).err()
    };
    let cases: &[(Edit, Option<&str>)] = &[
        (|_| (), None),
        (
            |info| info.tables[0].match_fields[0].bitwidth = 10,
            Some("key `port` of table `pipe.I.acl` has 10 bits in the program, 9 in the schema"),
        ),
        (
            |info| drop(info.tables[0].match_fields.remove(0)),
            Some("table `pipe.I.acl`: the program has no key `port`"),
        ),
        (
            |info| {
                let more = MatchField { id: 99, name: "more".into(), bitwidth: 8, ..Default::default() };
                info.tables[0].match_fields.push(more);
            },
            Some("table `pipe.I.acl`: the schema has no key `more`"),
        ),
        (|info| drop(info.actions.remove(0)), Some("table `pipe.I.acl`: the program has no action `I.set`")),
        (
            |info| info.actions[0].params[0].name = "b".into(),
            Some("action `I.set` of table `pipe.I.acl` has no parameter `b`"),
        ),
        (
            |info| info.actions[0].params[0].bitwidth = 8,
            Some(
                "parameter `a` of action `I.set` of table `pipe.I.acl` has 8 bits in the program, Bits(9) in the schema",
            ),
        ),
        (
            |info| info.actions[0].params[1].bitwidth = 2,
            Some(
                "parameter `up` of action `I.set` of table `pipe.I.acl` has 2 bits in the program, Bool in the schema",
            ),
        ),
        (|info| drop(info.tables.remove(0)), Some("the program has no MatchAction_Direct `pipe.I.acl`")),
        (
            |info| {
                let mut more = info.tables[1].clone();
                more.preamble = Some(Preamble { id: 99, name: "I.more".into(), ..Default::default() });
                info.tables.push(more);
            },
            Some("the schema has no table `I.more`"),
        ),
        (|info| info.counters.clear(), Some("the program has no Counter `pipe.I.seen`")),
        (|info| info.meters.clear(), Some("the program has no Meter `pipe.I.rate`")),
        (|info| info.registers.clear(), Some("the program has no Register `pipe.I.pairs`")),
        (|info| info.action_profiles.clear(), Some("the program has no Selector `pipe.I.selector`")),
        (
            |info| info.value_sets[0].r#match.clear(),
            Some("value set `pipe.P.kinds` has 0 fields, in the schema 1"),
        ),
        (
            |info| info.value_sets[0].r#match[0].bitwidth = 8,
            Some("field `f1` of value set `pipe.P.kinds` has 8 bits in the program, 16 in the schema"),
        ),
        (|info| info.value_sets.clear(), None),
    ];
    for (edit, expected) in cases {
        assert_eq!(fault(*edit).as_deref(), *expected);
    }
}

#[test]
fn a_schema_has_the_fields_of_its_kinds() {
    let fault = |from: &str, to: &str| {
        let tables = TABLES.replace(from, to);
        assert_ne!(tables, TABLES, "{from}");
        let schema = Schema::parse(tables.as_bytes()).unwrap();
        Translation::new(&schema, &info(&schema)).err()
    };
    let two_keys = r#""key": [ { "id": 9, "name": "x", "match_type": "Exact", "type": { "type": "bool" } },
        { "id": 1, "name": "$REGISTER_INDEX""#;
    for (from, to, expected) in [
        ("$COUNTER_SPEC_", "$OTHER_", "counter `pipe.I.seen` counts nothing in the schema"),
        ("$METER_SPEC_CIR", "$METER_SPEC_XIR", "meter `pipe.I.rate` has no rates in the schema"),
        (
            r#""key": [ { "id": 1, "name": "$REGISTER_INDEX""#,
            two_keys,
            "table `pipe.I.pairs` has 2 key fields, but its entries have a number",
        ),
        ("$ACTION_MEMBER_STATUS", "$OTHER", "table `pipe.I.selector` has no field `$ACTION_MEMBER_STATUS`"),
        (
            r#""I.pairs.low", "type": { "type": "bytes", "width": 8 }"#,
            r#""I.pairs.low", "type": { "type": "bytes", "width": 7 }"#,
            "register `pipe.I.pairs`: several fields that are not whole bytes",
        ),
        (
            r#""I.pairs.low", "type": { "type": "bytes", "width": 8 }"#,
            r#""I.pairs.low", "type": { "type": "float" }"#,
            "register `pipe.I.pairs`: field `I.pairs.low` is no number",
        ),
        (
            r#""vid", "match_type": "Optional", "type": { "type": "bytes", "width": 12 }"#,
            r#""vid", "match_type": "Optional", "type": { "type": "float" }"#,
            "key `vid` of table `pipe.I.acl` is no number",
        ),
    ] {
        assert_eq!(fault(from, to).as_deref(), Some(expected));
    }
    let single = fault(
        r#"{ "singleton": { "id": 1, "name": "I.pairs.low", "type": { "type": "bytes", "width": 8 } } },"#,
        "",
    );
    assert_eq!(single, None);
}

#[test]
fn tables_without_a_counterpart_are_told_from_unknown_ones() {
    let translation = translation();
    let refused = |table_id: u32| {
        let entry = crate::translation::entry(table_id, Vec::new(), 0, Vec::new());
        let error = translation.entity(&entry).unwrap_err();
        assert!(!translation.has(table_id));
        (error.code, error.message)
    };
    assert_eq!(refused(50), (Code::Unimplemented, "table `$PORT` (PortConfigure) is not offered".into()));
    assert_eq!(refused(40).0, Code::Unimplemented, "members of value sets are no entities");
    assert_eq!(refused(99), (Code::NotFound, "there is no table with id 99 (0x00000063)".into()));
    assert_eq!(translation.ttl_field(ACL), Some(65_536));
    assert_eq!((translation.ttl_field(LIMITED), translation.ttl_field(30)), (None, None));
    let zero: Vec<u32> = translation.zero_counters(ACL).iter().map(|field| field.field_id).collect();
    assert_eq!(zero, [65_538, 65_539]);
    assert!(translation.zero_counters(LIMITED).is_empty() && translation.zero_counters(30).is_empty());
}
