//! P4Info, the control plane's view of a program.

use crate::common;

use common::{compile, program};
use p4rack_p4rt::p4::config::v1::{P4Info, action_ref::Scope};

fn names(info: &P4Info) -> Vec<(u32, String, String)> {
    let mut all = Vec::new();
    macro_rules! collect {
        ($($field:ident),*) => {$( for o in &info.$field {
            let p = o.preamble.as_ref().expect("every object has one");
            all.push((p.id, p.name.clone(), p.alias.clone()));
        } )*};
    }
    collect!(tables, actions, action_profiles, counters, direct_counters, meters, direct_meters, registers);
    collect!(controller_packet_metadata, value_sets, digests);
    all
}

fn info(globals: &str, locals: &str, apply: &str) -> P4Info {
    compile(&program(globals, "", locals, apply)).p4info
}

#[test]
fn ids_carry_the_kind_and_the_name_hash() {
    let locals = "action drop() { mark_to_drop(sm); } table ipv4_lpm { key = { meta.w : lpm; } actions = { drop; NoAction; } default_action = drop(); }
        counter(4, CounterType.bytes) c; meter(4, MeterType.bytes) m; register<bit<8>>(4) r;";
    let info = info("", locals, "ipv4_lpm.apply(); c.count(0);");
    let all = names(&info);
    let id = |name: &str| all.iter().find(|n| n.1 == name).map(|n| n.0);
    // NoAction's id is the same in every program; controllers rely on it.
    assert_eq!(id("NoAction"), Some(21257015));
    for (name, prefix) in
        [("I.ipv4_lpm", 0x02), ("I.drop", 0x01), ("I.c", 0x12), ("I.m", 0x14), ("I.r", 0x16)]
    {
        let hash = p4rack_p4::p4info::jenkins_hash(name.as_bytes()) & 0x00ff_ffff;
        assert_eq!(id(name), Some(prefix << 24 | hash), "{name}");
    }
}

#[test]
fn given_ids_and_names_win() {
    let locals = "@id(7) @name(\"renamed\") action a(@id(3) bit<8> x, bit<9> y) { }
        @id(0x02000009) table t { key = { meta.a : exact @id(5) @name(\"k\"); } actions = { a; } }
        @name(\".absolute\") counter(4, CounterType.packets) c;";
    let compiled = compile(&program("", "", locals, "t.apply();"));
    let action = compiled.p4info.actions.iter().find(|a| a.params.len() == 2).expect("the action");
    let preamble = action.preamble.as_ref().expect("a preamble");
    assert_eq!((preamble.id, preamble.name.as_str()), (0x0100_0007, "I.renamed"));
    let params: Vec<(u32, i32)> = action.params.iter().map(|p| (p.id, p.bitwidth)).collect();
    assert_eq!(params, [(3, 8), (2, 9)]);
    let table = &compiled.p4info.tables[0];
    assert_eq!(table.preamble.as_ref().map(|p| p.id), Some(0x0200_0009));
    assert_eq!((table.match_fields[0].id, table.match_fields[0].name.as_str()), (5, "k"));
    assert_eq!(compiled.p4info.counters[0].preamble.as_ref().map(|p| p.name.as_str()), Some("absolute"));
    assert_eq!(compiled.ids.table(0x0200_0009).map(|t| t.0), Some(0));
    assert_eq!(compiled.ids.table(1), None);
}

#[test]
fn aliases_are_the_shortest_unique_suffixes() {
    let sub = "control Sub(inout meta_t m) { action set(bit<8> v) { m.a = v; } table t { key = { m.b : exact; } actions = { set; } } apply { t.apply(); } }";
    let text = program(
        "",
        "",
        "Sub() one; Sub() two; table only { actions = { NoAction; } }",
        "one.apply(meta); two.apply(meta); only.apply();",
    )
    .replace("control V(", &format!("{sub}\ncontrol V("));
    let aliases: Vec<String> = names(&compile(&text).p4info).into_iter().map(|n| n.2).collect();
    for alias in ["one.t", "two.t", "only", "one.set", "two.set", "NoAction"] {
        assert!(aliases.iter().any(|a| a == alias), "{alias} in {aliases:?}");
    }
}

#[test]
fn tables_tell_their_defaults_scopes_and_sizes() {
    let locals = "action a(bit<12> v) { } action b() { }
        table t { key = { meta.a : exact; meta.b : optional; } actions = { @tableonly a; @defaultonly b; } const default_action = b; size = 100; }
        table u { actions = { a; } default_action = a(0x123); const entries = { } }
        table v { key = { meta.a : range; } actions = { b; } entries = { 1 .. 3 : b(); } support_timeout = true; }";
    let info = info("", &locals.replace("const entries = { } ", ""), "t.apply(); u.apply(); v.apply();");
    let id = |name: &str| names(&info).into_iter().find(|n| n.1 == name).map(|n| n.0).unwrap_or_default();
    let t = &info.tables[0];
    assert_eq!((t.size, t.const_default_action_id, t.is_const_table), (100, id("I.b"), false));
    let scopes: Vec<i32> = t.action_refs.iter().map(|r| r.scope).collect();
    assert_eq!(scopes, [Scope::TableOnly as i32, Scope::DefaultOnly as i32]);
    assert_eq!(t.action_refs[0].annotations, ["@tableonly"]);
    let u = &info.tables[1];
    assert_eq!((u.size, u.const_default_action_id), (1024, 0));
    let initial = u.initial_default_action.as_ref().expect("always there");
    assert_eq!((initial.action_id, initial.arguments[0].value.as_slice()), (id("I.a"), &[0x01, 0x23][..]));
    let v = &info.tables[2];
    assert!(v.has_initial_entries && !v.is_const_table && v.idle_timeout_behavior == 1);
    // A table without default action is shown NoAction, for the default only.
    let last = v.action_refs.last().expect("one");
    assert_eq!((last.id, last.scope), (21257015, Scope::DefaultOnly as i32));
}

#[test]
fn controller_headers_types_and_digests_are_described() {
    let globals = "@p4runtime_translation(\"p4rack.dev/port\", string) type bit<9> PortName;
        @p4runtime_translation(\"p4rack.dev/slot\", bit<32>) type bit<16> Slot;
        enum bit<8> Op { Rsv = 1, Grt = 2 }
        @controller_header(\"packet_in\") header pin_t { PortName port; @padding bit<7> pad; }
        struct note_t { Slot slot; Op op; bool late; }";
    let locals = "register<Slot>(8) slots; action a(PortName p) { } table t { key = { (PortName) sm.ingress_port : exact @name(\"p\"); } actions = { a; } }";
    let info = info(globals, locals, "t.apply(); digest<note_t>(1, {(Slot) 1, Op.Rsv, true});");
    let header = &info.controller_packet_metadata[0];
    assert_eq!(header.preamble.as_ref().map(|p| (p.id >> 24, p.name.as_str())), Some((4, "packet_in")));
    assert_eq!(header.metadata.iter().map(|m| (m.id, m.bitwidth)).collect::<Vec<_>>(), [(1, 0), (2, 7)]);
    assert_eq!(header.metadata[0].type_name.as_ref().map(|n| n.name.as_str()), Some("PortName"));
    assert_eq!(info.tables[0].match_fields[0].type_name.as_ref().map(|n| n.name.as_str()), Some("PortName"));
    let types = info.type_info.as_ref().expect("types");
    assert_eq!(types.new_types.len(), 2);
    assert_eq!(types.structs["note_t"].members.len(), 3);
    assert_eq!(types.serializable_enums["Op"].members[1].value, [2]);
    assert_eq!(info.digests[0].preamble.as_ref().map(|p| p.id >> 24), Some(0x17));
    assert!(info.registers[0].type_spec.is_some());
}

#[test]
fn a_digest_may_be_a_single_value() {
    use p4rack_p4rt::p4::config::v1::p4_data_type_spec::TypeSpec;
    let globals = "enum bit<8> Op { Rsv = 1, Grt = 2 } struct note_t { bit<8> a; }";
    let apply = "digest<note_t>(1, {1}); digest(2, sm.ingress_port); digest(3, Op.Grt);
        digest(4, sm.ingress_port == 1); digest(5, {sm.ingress_port, meta.a});";
    let info = info(globals, "", apply);
    let digests: Vec<_> = info
        .digests
        .iter()
        .map(|digest| {
            let name = digest.preamble.as_ref().expect("a preamble").name.as_str();
            (name, digest.type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref()).expect("a type"))
        })
        .collect();
    // Digests whose type has no name are numbered.
    let names: Vec<_> = digests.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["note_t", "digest_0", "Op", "digest_1", "digest_2"]);
    assert!(matches!(digests[1].1, TypeSpec::Bitstring(_)), "{:?}", digests[1]);
    assert!(matches!(digests[2].1, TypeSpec::SerializableEnum(_)), "{:?}", digests[2]);
    assert!(matches!(digests[3].1, TypeSpec::Bool(_)), "{:?}", digests[3]);
    assert!(matches!(digests[4].1, TypeSpec::Tuple(_)), "{:?}", digests[4]);
}

#[test]
fn package_and_object_annotations_are_kept() {
    let text = program(
        "",
        "",
        "@brief(\"Short.\") @my(1, \"x\") @note(seen by ops, A/B) @struct[k = true] table t { actions = { NoAction; } }",
        "t.apply();",
    )
    .replace("V1Switch(P(", "@pkginfo(name=\"demo\", version=\"1.2\") V1Switch(P(");
    let info = compile(&text).p4info;
    let package = info.pkg_info.as_ref().expect("always there");
    assert_eq!(
        (package.name.as_str(), package.version.as_str(), package.arch.as_str()),
        ("demo", "1.2", "v1model")
    );
    let preamble = info.tables[0].preamble.as_ref().expect("a preamble");
    // Without a known meaning, token by token: words stay apart.
    assert_eq!(preamble.annotations, ["@my(1 , \"x\")", "@note(seen by ops , A / B)"]);
    assert_eq!(preamble.structured_annotations[0].name, "struct");
    assert_eq!(preamble.doc.as_ref().map(|d| d.brief.as_str()), Some("Short."));
}

#[test]
fn profiles_counters_and_meters_point_at_their_tables() {
    let locals = "action a() { } direct_counter(CounterType.packets_and_bytes) dc; direct_meter<bit<2>>(MeterType.bytes) dm;
        @max_group_size(8) action_selector(HashAlgorithm.crc16, 64, 10) sel; bit<2> color;
        table t { key = { meta.a : exact; meta.b : selector; } actions = { a; } implementation = sel; counters = dc; meters = dm; }
        table u { key = { meta.a : exact; } actions = { a; } @name(\"inline\") implementation = action_profile(16); }";
    let info = info("", locals, "t.apply(); u.apply();");
    let t = &info.tables[0];
    let id = |p: &Option<p4rack_p4rt::p4::config::v1::Preamble>| p.as_ref().map_or(0, |p| p.id);
    assert_eq!(t.match_fields.len(), 1, "selector keys are not match fields");
    assert_eq!(
        t.direct_resource_ids,
        [id(&info.direct_counters[0].preamble), id(&info.direct_meters[0].preamble)]
    );
    assert_eq!(info.direct_counters[0].direct_table_id, id(&t.preamble));
    let selector = info.action_profiles.iter().find(|p| p.with_selector).expect("a selector");
    assert_eq!(
        (selector.size, selector.max_group_size, selector.table_ids.clone()),
        (64, 8, vec![id(&t.preamble)])
    );
    let profile = info.action_profiles.iter().find(|p| !p.with_selector).expect("a profile");
    assert_eq!(profile.preamble.as_ref().map(|p| p.name.as_str()), Some("inline"));
    assert_eq!(info.tables[1].implementation_id, id(&profile.preamble));
}

#[test]
fn a_register_that_is_read_for_nothing_is_not_shown() {
    let shown = |globals: &str, locals: &str, apply: &str| info(globals, locals, apply).registers.len();
    let local = "register<bit<8>>(4) r;";
    assert_eq!(shown("", local, "bit<8> x; r.read(x, 0);"), 0);
    assert_eq!(shown("", local, "bit<8> x; r.read(x, 0); meta.a = x;"), 1);
    assert_eq!(shown("", local, "bit<8> x; r.read(x, 0); r.write(0, 1);"), 1);
    assert_eq!(shown("", local, "bit<8> x = 0; r.read(x, 0); if (x == 1) { mark_to_drop(sm); }"), 1);
    // Never mentioned, or the whole program's: shown.
    assert_eq!(shown("", local, ""), 1);
    assert_eq!(shown(local, "", "bit<8> x; r.read(x, 0);"), 1);
}

#[test]
fn actions_with_one_absolute_name_are_listed_once() {
    let sub = "control Sub(inout meta_t m) { @name(\".mark\") action set(bit<8> v) { m.a = v; }
        table t { key = { m.b: exact; } actions = { set; } } apply { t.apply(); } }";
    let locals = "Sub() sub; @name(\".mark\") action set(bit<8> v) { meta.b = v; }
        table u { key = { meta.a: exact; } actions = { set; } }";
    let text = program("", "", locals, "sub.apply(meta); u.apply();")
        .replace("control V(", &format!("{sub}\ncontrol V("));
    let compiled = compile(&text);
    let marks =
        names(&compiled.p4info).into_iter().filter(|n| n.1 == "mark").map(|n| n.0).collect::<Vec<_>>();
    let [id] = marks[..] else { panic!("{marks:?}") };
    // Each table has its own action behind the id.
    let behind: Vec<u32> = compiled.program.tables.iter().map(|t| t.actions[0].action.0).collect();
    assert_ne!(behind[0], behind[1]);
    for (table, action) in compiled.p4info.tables.iter().zip(behind) {
        assert_eq!(table.action_refs[0].id, id);
        assert_eq!(compiled.ids.actions[action as usize], id);
    }
}
