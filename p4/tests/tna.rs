//! Programs for TNA: their constructs are accepted, and their mistakes are found.

use p4rack_p4::ir::{Intrinsic, Role, Task};
use p4rack_p4::{Options, check};

const TWO_GENERATIONS: &str = include_str!("tna/two_generations.p4");
const TWO_PIPELINES: &str = include_str!("tna/two_pipelines.p4");
const SECOND_GENERATION: &str = include_str!("tna/second_generation.p4");

/// Errors and warnings, as shown; panics unless the program is accepted as `accepted` says.
fn shown(text: &str, defines: &[(&str, &str)], accepted: bool) -> String {
    let defines = defines.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = Options { include_dirs: vec![], defines };
    match check(text, "test.p4", &options) {
        Ok(program) => {
            assert!(accepted, "accepted");
            program.warnings().render(false)
        }
        Err(diagnostics) => {
            let text = diagnostics.render(false);
            assert!(!accepted, "{text}");
            text
        }
    }
}

#[test]
fn every_construct_is_accepted_without_a_warning_in_both_generations() {
    assert_eq!(shown(TWO_GENERATIONS, &[], true), "");
    assert_eq!(shown(TWO_GENERATIONS, &[("SECOND", "1")], true), "");
    assert_eq!(shown(TWO_GENERATIONS, &[("__TARGET_TOFINO__", "2")], true), "");
    assert_eq!(shown(SECOND_GENERATION, &[], true), "");
    assert_eq!(shown(TWO_PIPELINES, &[], true), "");
}

#[test]
fn mistakes_are_found() {
    let first = |from: &str, to: &str, message: &str| {
        assert!(TWO_GENERATIONS.contains(from), "{from}");
        let text = shown(&TWO_GENERATIONS.replacen(from, to, 1), &[], false);
        assert!(text.contains(message), "{message}: {text}");
    };
    // Abstract methods: another type, a parameter too many, none.
    first(
        "inout bit<32> value, out bit<32> rv)",
        "inout bit<16> value, out bit<32> rv)",
        "method `apply` differs",
    );
    first(
        "void apply(inout bit<32> value) {",
        "void apply(inout bit<32> value, out bit<32> a, out bit<32> b) {",
        "no abstract method `apply` with this signature",
    );
    first(
        "void apply(inout bit<32> value) { value = half.execute(value); }",
        "",
        "does not implement `apply`",
    );
    // Types distinguish overloads.
    first("pace.execute(n, MeterColor_t.YELLOW)", "pace.execute(n, CounterType_t.BYTES)", "CounterType_t");
    // A block of another signature.
    first("EgressParser(), Egress()", "EgressParser(), Ingress()", "`Ingress` does not fit `EgressT`");
    first("Switch(pipe) main;", "Switch(pipe, 5) main;", "`IH1` of `Switch` cannot be inferred");
    first("sum.verify()", "sum.verified()", "no method `verified`");
    first("Hash<bit<16>>(HashAlgorithm_t.CRC16)", "Hash<bit<16>>(CounterType_t.BYTES)", "HashAlgorithm_t");
    let text = shown(&TWO_GENERATIONS.replace("idle_timeout", "idle_timeouts"), &[], true);
    assert!(text.contains("unknown property `idle_timeouts`"), "{text}");
}

#[test]
fn what_nothing_says_of_a_type_is_an_error_unless_nobody_asks() {
    let text = "control C<H>(inout H h); package P<A, B>(C<A> a, @optional C<B> b); struct S { bit<8> f; }
        control D<T>(inout T t) { apply { } } control E(inout S s) { apply { } }\n";
    assert_eq!(shown(&format!("{text} P(E()) main;"), &[], true), "");
    assert_eq!(shown(&format!("{text} P<S, _>(D()) main;"), &[], true), "");
    let refused = shown(&format!("{text} P(D()) main;"), &[], false);
    assert!(refused.contains("cannot be inferred"), "{refused}");
}

/// The program, elaborated.
fn compiled(text: &str) -> p4rack_p4::Compiled {
    p4rack_p4::compile(text, "test.p4", &Options::default()).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

#[test]
fn a_pipeline_has_its_blocks_by_role_with_storage_of_its_own() {
    let program = compiled(TWO_PIPELINES).program;
    assert_eq!(
        (program.arch.as_str(), &program.pipelines[..]),
        ("tna", &["small".into(), "large".into()][..])
    );
    for pipeline in [0, 1] {
        for task in [Task::Parse, Task::Process, Task::Deparse] {
            for role in [Role::ingress(task), Role::egress(task)] {
                assert!(program.block(pipeline, role).is_some(), "{pipeline} {role:?}");
            }
        }
        let of = |role| {
            program.intrinsics.iter().filter(move |f| f.pipeline == pipeline && f.role == role).count()
        };
        assert_eq!(
            [of(Intrinsic::IngressPort), of(Intrinsic::Destination), of(Intrinsic::EgressPort)],
            [1, 1, 1]
        );
    }
    let ghost = Role::ingress(Task::Watch);
    assert!(compiled(SECOND_GENERATION).program.block(0, ghost).is_some());
    assert_eq!(compiled(SECOND_GENERATION).program.arch, "t2na");
}

#[test]
fn bodies_of_what_acts_on_registers_stand_where_they_are_called() {
    let program = compiled(TWO_GENERATIONS).program;
    assert!(program.methods.iter().all(|method| !method.object.ends_with(".add")), "not a body of its own");
    let ingress = program.text_of(program.control(Role::ingress(Task::Process)));
    for line in ["Ingress.totals[3] = ", "= Ingress.totals[3]"] {
        assert!(ingress.contains(line), "{line}: {ingress}");
    }
    // So do those that search a word for the least or greatest part; a part that no switch runs leaves no body
    // behind.
    let methods = compiled(SECOND_GENERATION).program.methods;
    let kept = |name: &str| methods.iter().any(|m| format!("{}.{}", m.object, m.name) == name);
    assert!(!kept("Ingress.both.overflow") && !kept("Ingress.least.apply") && !kept("Ghost.note.apply"));
}

#[test]
fn p4info_names_what_the_control_plane_sees() {
    let info = compiled(TWO_PIPELINES).p4info;
    let tables: Vec<&str> =
        info.tables.iter().filter_map(|t| Some(t.preamble.as_ref()?.name.as_str())).collect();
    assert_eq!(tables, ["small.Small.forward", "large.Large.forward"]);
    let info = compiled(TWO_GENERATIONS).p4info;
    assert_eq!(info.pkg_info.map(|p| p.arch), Some("tna".into()));
    let table = |name: &str| {
        let found = info.tables.iter().find(|t| t.preamble.as_ref().is_some_and(|p| p.name == name));
        found.unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(table("Ingress.macs").idle_timeout_behavior, 1);
    assert_eq!(table("Ingress.macs").direct_resource_ids.len(), 1);
    assert_ne!(table("Ingress.nexthops").implementation_id, 0);
    assert!(table("Ingress.acl").is_const_table);
    assert_eq!(info.digests.len(), 1);
    assert_eq!(info.value_sets.len(), 2);
    assert_eq!(info.registers.len(), 2);
    let selector = info.action_profiles.iter().find(|p| p.with_selector).map(|p| (p.size, p.max_group_size));
    assert_eq!(selector, Some((128, 32)));
}

#[test]
fn bf_rt_has_a_table_for_every_object_with_ids_and_names_of_its_own() {
    let schema = compiled(TWO_GENERATIONS).bf_rt().expect("TNA has it");
    let tables = schema["tables"].as_array().expect("a list");
    let table = |name: &str| {
        let found = tables.iter().find(|t| t["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {schema:#}"))
    };
    // The hash of a name that public examples have too.
    let id = u64::from(0x0200_0000 | p4rack_p4::p4info::jenkins_hash(b"pipe.Ingress.macs") & 0x00ff_ffff);
    assert_eq!(table("pipe.Ingress.macs")["id"], id);
    assert_eq!(table("pipe.Ingress.macs")["attributes"].to_string(), r#"["EntryScope","IdleTimeout"]"#);
    assert_eq!(table("pipe.Ingress.macs")["has_const_default_action"], true);
    let keys = table("pipe.Ingress.acl")["key"].as_array().expect("a list");
    assert_eq!(keys.last().map(|k| k["name"].clone()), Some("$MATCH_PRIORITY".into()));
    let (selector, profile) = (table("pipe.Ingress.selector"), table("pipe.Ingress.profile"));
    assert_eq!((&selector["size"], &profile["size"]), (&16.into(), &128.into()));
    assert_eq!(table("pipe.Ingress.nexthops")["table_type"], "MatchAction_Indirect_Selector");
    assert_eq!(
        table("pipe.Ingress.nexthops")["depends_on"].to_string(),
        format!("[{},{}]", selector["id"], profile["id"])
    );
    let fields = |name: &str| -> Vec<String> {
        table(name)["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|d| d["singleton"]["name"].to_string())
            .collect()
    };
    assert_eq!(fields("pipe.Ingress.totals"), [r#""Ingress.totals.f1""#]);
    assert_eq!(fields("pipe.Ingress.pairs"), [r#""Ingress.pairs.low""#, r#""Ingress.pairs.high""#]);
    assert_eq!(schema["learn_filters"][0]["name"], "pipe.IngressDeparser.digest");
    let mut ids: Vec<u64> = tables.iter().filter_map(|t| t["id"].as_u64()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    // The fields of the type that the parser gives a port's data.
    assert_eq!(fields("pipe.IngressParser.$PORT_METADATA"), [r#""group""#, r#""rest""#]);
    let two = compiled(TWO_PIPELINES).bf_rt().expect("TNA has it");
    let names: Vec<&str> =
        two["tables"].as_array().expect("a list").iter().filter_map(|t| t["name"].as_str()).collect();
    for name in ["small.Small.forward", "large.Large.forward", "small.ParseIn.$PORT_METADATA"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// The control plane may change a hash that is taken in one place, of plain fields: its configuration of them holds
/// there.
#[test]
fn a_hash_of_other_data_elsewhere_is_not_changed() {
    const KINDS: &str = include_str!("../../switchd/tests/bfruntime/kinds.p4");
    const PLAIN: &str = "hdr.h.c = mixed.get({ hdr.h.b, hdr.h.c });";
    const OTHER: &str = "hdr.h.c = mixed.get({ hdr.h.b, 8w1 });";
    assert!(KINDS.contains(PLAIN));
    let is_offered = |statements: &str| {
        let schema = compiled(&KINDS.replace(PLAIN, statements)).bf_rt().expect("TNA has it");
        let tables = schema["tables"].as_array().expect("a list");
        tables
            .iter()
            .any(|table| table["name"].as_str().is_some_and(|name| name.ends_with("mixed.configure")))
    };
    assert!(is_offered(PLAIN));
    for statements in [OTHER.to_owned(), format!("{PLAIN} {OTHER}"), format!("{OTHER} {PLAIN}")] {
        assert!(!is_offered(&statements), "{statements}");
    }
}
