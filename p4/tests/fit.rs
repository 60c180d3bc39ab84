//! Whether programs fit into a chip: stages are counted, and constructs that the chip can't run are refused at
//! their place.

use p4rack_p4::fit::{Report, check, chip, chip_of};
use p4rack_p4::{Options, compile};

/// A program with this in its ingress: declarations and statements. The pieces are placed so that line 1 of each is
/// found again.
fn program(include: &str, egress_headers: &str, locals: &str, apply: &str, egress: &str) -> String {
    format!(
        "#include <{include}>
header eth_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}
header data_t {{ bit<32> a; bit<32> b; bit<32> c; bit<32> d; bit<8> e; bit<8> f; bit<16> g; }}
header long_t {{ bit<1024> bytes; }}
header huge_t {{ bit<2048> a; bit<2048> b; bit<2048> c; }}
struct headers_t {{ eth_t eth; data_t data; long_t one; long_t two; huge_t huge; }}
struct meta_t {{ bit<32> x; bit<32> y; bit<32> z; bit<16> w; bool flag; int<32> s; }}
parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {{
    state start {{
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.eth);
        pkt.extract(hdr.data);
        transition accept;
    }}
}}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {{
    action forward(PortId_t port) {{ tm.ucast_egress_port = port; }}
    {locals}
    apply {{
        {apply}
    }}
}}
control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {{
    apply {{ pkt.emit(hdr); }}
}}
parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {{
    state start {{ pkt.extract(eg); pkt.extract(hdr.eth); pkt.extract(hdr.data); {egress_headers} transition accept; }}
}}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {{
    apply {{ {egress} }}
}}
control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {{
    apply {{ pkt.emit(hdr); }}
}}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
"
    )
}

fn report_of(text: &str) -> Report {
    let compiled = compile(text, "test.p4", &Options::default()).unwrap_or_else(|d| panic!("{d}"));
    let chip = chip_of(&compiled.program).expect("a chip's program");
    check(&compiled, chip)
}

fn fit(locals: &str, apply: &str) -> Report {
    report_of(&program("tna.p4", "", locals, apply, ""))
}

fn fit_second(locals: &str, apply: &str) -> Report {
    report_of(&program("t2na.p4", "", locals, apply, ""))
}

/// Stages of a program that must fit.
fn stages(locals: &str, apply: &str) -> usize {
    let report = fit(locals, apply);
    assert!(report.fits(), "{}", report.diagnostics());
    report.stages()
}

/// Fails unless exactly this rule is broken, at this piece of the program.
fn assert_refused(report: &Report, rule: &str, text: &str, piece: &str) {
    let found: Vec<&str> = report.refusals.iter().map(|refusal| refusal.rule.name()).collect();
    assert_eq!(found, [rule], "{}", report.diagnostics());
    let at = text.find(piece).expect("the piece is in the program");
    let line = text[..at].lines().count().max(1) as u64 + u64::from(text[..at].ends_with('\n'));
    assert_eq!(report.json()["refusals"][0]["line"], line, "{}", report.diagnostics());
}

/// Fails unless the first generation refuses these declarations and statements by this rule.
fn refused(rule: &str, locals: &str, apply: &str, piece: &str) {
    let text = program("tna.p4", "", locals, apply, "");
    assert_refused(&report_of(&text), rule, &text, piece);
}

#[test]
fn only_what_depends_on_each_other_takes_stages() {
    assert_eq!(stages("", "hdr.data.a = hdr.data.b; hdr.data.c = hdr.data.d;"), 1);
    // One reads a value that the other writes.
    assert_eq!(stages("", "hdr.data.a = hdr.data.b + 1; hdr.data.c = hdr.data.a;"), 2);
    // It overwrites a value that the other one reads, which is still valid in the same stage.
    assert_eq!(stages("", "hdr.data.a = hdr.data.b; hdr.data.b = hdr.data.c;"), 1);
    // Other bits of the same field.
    assert_eq!(stages("", "hdr.data.a[15:0] = 1; hdr.data.c = (bit<32>) hdr.data.a[31:16];"), 1);
    assert_eq!(stages("", "hdr.data.a[15:0] = 1; hdr.data.c = (bit<32>) hdr.data.a[15:0];"), 2);
    // A condition runs in the stage of its statements; its inputs must be valid before.
    assert_eq!(stages("", "if (hdr.data.e == 1) { hdr.data.a = 1; }"), 1);
    assert_eq!(stages("", "hdr.data.e = hdr.data.f; if (hdr.data.e == 1) { hdr.data.a = 1; }"), 2);
    // Only one of two sides runs.
    assert_eq!(
        stages("", "if (hdr.data.e == 1) { hdr.data.a = hdr.data.b; } else { hdr.data.c = hdr.data.a; }"),
        1
    );
    // Nothing reads it.
    assert_eq!(stages("", "meta.x = hdr.data.a; meta.y = meta.x; meta.z = meta.y;"), 0);
}

const HOSTS: &str = "table hosts { key = { hdr.eth.dst: exact; } actions = { forward; } size = 1024; }
    action mark(bit<32> v) { meta.x = v; }
    table marks { key = { hdr.eth.src: exact; } actions = { mark; } size = 1024; }
    table after { key = { meta.x: ternary; } actions = { forward; } size = 512; }";

#[test]
fn tables_wait_for_their_keys_and_results() {
    assert_eq!(stages(HOSTS, "hosts.apply();"), 1);
    assert_eq!(stages(HOSTS, "marks.apply(); after.apply();"), 2);
    // A result is known in the same stage.
    assert_eq!(stages(HOSTS, "if (!hosts.apply().hit) { marks.apply(); }"), 1);
    assert_eq!(stages(HOSTS, "switch (marks.apply().action_run) { mark: { after.apply(); } }"), 2);
    let report = fit(HOSTS, "marks.apply(); after.apply();");
    let chain = &report.pipelines[0].chain;
    assert_eq!(chain[1].1, "match", "{chain:?}");
    assert!(chain[1].0.contains("I.after") && chain[1].0.contains("meta.x"), "{chain:?}");
}

#[test]
fn a_stage_has_only_so_much() {
    let registers: String = (0..5)
        .map(|n| {
            format!(
                "Register<bit<32>, bit<8>>(256) r{n};
                RegisterAction<bit<32>, bit<8>, bit<32>>(r{n}) act{n} = {{
                    void apply(inout bit<32> v) {{ v = v + 1; }}
                }};"
            )
        })
        .collect();
    let calls = |n: usize| (0..n).map(|n| format!("act{n}.execute(hdr.data.e);")).collect::<String>();
    assert_eq!(stages(&registers, &calls(4)), 1);
    assert_eq!(stages(&registers, &calls(5)), 2, "a stage has four stateful ALUs");
    // 24 blocks of TCAM, each 512 × 44 bits.
    let ternary = |size: usize| {
        format!("table t {{ key = {{ hdr.data.a: ternary; }} actions = {{ forward; }} size = {size}; }}")
    };
    assert_eq!(stages(&ternary(24 * 512), "t.apply();"), 1);
    assert_eq!(stages(&ternary(25 * 512), "t.apply();"), 2);
}

#[test]
fn only_the_second_generation_places_tables_behind_a_branch_before_those_within() {
    // The branch takes three stages, and nothing behind depends on it but by order.
    let apply = "if (hdr.data.e == 1) { meta.x = hdr.data.a + 1; meta.y = meta.x + 1; hdr.data.a = meta.y + 1; }
        if (hdr.data.f == 1) { meta.z = hdr.data.b + 1; meta.w = (bit<16>) meta.z + 1; hdr.data.g = meta.w + 1; }";
    let (first, second) = (fit("", apply), fit_second("", apply));
    assert_eq!((first.stages(), second.stages()), (5, 3), "{}{}", first.text(), second.text());
}

#[test]
fn arithmetic_that_no_stage_has_is_refused() {
    refused("arithmetic", "", "hdr.data.a = hdr.data.b * hdr.data.c;", "hdr.data.a = hdr.data.b *");
    let less = |value: &str| {
        format!(
            "action less(bit<32> by) {{ hdr.data.a = {value}; }}
    table lessened {{ key = {{ hdr.data.c : exact; }} actions = {{ less; }} }}"
        )
    };
    refused("arithmetic", &less("hdr.data.b - by"), "lessened.apply();", "hdr.data.a = hdr.data.b - by");
    assert!(fit(&less("by - hdr.data.b"), "lessened.apply();").fits());
    refused("arithmetic", "", "hdr.data.a = hdr.data.b << hdr.data.e;", "hdr.data.a = hdr.data.b <<");
    assert!(fit("", "hdr.data.a = hdr.data.b << 3; hdr.data.c = hdr.data.d * 4;").fits());
    refused(
        "one-operation",
        "",
        "hdr.data.a = hdr.data.b + hdr.data.c - hdr.data.d;",
        "hdr.data.a = hdr.data.b +",
    );
    let action = "action two() { meta.x = hdr.data.a - hdr.data.b; hdr.data.c = meta.x - hdr.data.d; }";
    refused("one-operation", action, "two();", "action two");
    assert_eq!(stages("", "meta.x = hdr.data.a - hdr.data.b; hdr.data.c = meta.x - hdr.data.d;"), 2);
    let action = "action maybe() { if (hdr.data.e == 1) { hdr.data.a = 1; } }
    table t { key = { hdr.data.f: exact; } actions = { maybe; } }";
    refused("condition-in-action", action, "t.apply();", "action maybe");
}

#[test]
fn conditions_that_no_gateway_computes_are_refused() {
    refused("gateway", "", "if (hdr.data.a < hdr.data.b) { hdr.data.c = 1; }", "if (hdr.data.a <");
    refused("gateway", "", "if (hdr.data.a + 1 == hdr.data.b) { hdr.data.c = 1; }", "if (hdr.data.a +");
    assert!(
        fit("", "if (hdr.data.a == hdr.data.b) { hdr.data.c = 1; } if (hdr.data.e < 9) { hdr.data.d = 1; }")
            .fits()
    );
}

#[test]
fn the_larger_of_two_values_is_an_operation_and_no_condition() {
    let action = "action larger() { meta.x = max(hdr.data.a, hdr.data.b); }";
    for (locals, apply) in [(action, "larger();"), ("", "hdr.data.c = min(hdr.data.a, hdr.data.b);")] {
        let report = fit(locals, apply);
        assert!(report.fits(), "{locals} {apply}: {}", report.text());
    }
    // As p4c's backend says of both.
    refused("gateway", "", "if (max(hdr.data.a, hdr.data.b) == 5) { hdr.data.c = 1; }", "if (max(");
    refused(
        "one-operation",
        "",
        "hdr.data.c = min(hdr.data.a, hdr.data.b) + hdr.data.d;",
        "hdr.data.c = min(",
    );
    let two = "action two() { meta.x = max(hdr.data.a, hdr.data.b); hdr.data.c = meta.x - hdr.data.d; }";
    refused("one-operation", two, "two();", "action two");
    assert!(fit(&register("bit<32>", "v = max(v, hdr.data.b); r = v;"), ONCE).fits());
    let chosen = "action choose() { meta.x = hdr.data.a > hdr.data.b ? hdr.data.c : hdr.data.d; }";
    refused("condition-in-action", chosen, "choose();", "action choose");
}

/// A register of this element with one body.
fn register(element: &str, body: &str) -> String {
    format!(
        "Register<{element}, bit<8>>(256) cells;
    RegisterAction<{element}, bit<8>, bit<32>>(cells) one = {{
        void apply(inout {element} v, out bit<32> r) {{
            {body}
        }}
    }};
    RegisterAction<{element}, bit<8>, bit<32>>(cells) other = {{
        void apply(inout {element} v, out bit<32> r) {{ v = 7; }}
    }};"
    )
}

const ONCE: &str = "hdr.data.a = one.execute(hdr.data.e);";

#[test]
fn a_packet_accesses_a_register_once() {
    let cells = register("bit<32>", "v = v + 1; r = v;");
    assert_eq!(stages(&cells, ONCE), 1);
    let twice = "hdr.data.a = one.execute(0);\n        hdr.data.b = other.execute(1);";
    refused("one-access", &cells, twice, "hdr.data.b = other");
    let sides =
        "if (hdr.data.f == 1) { hdr.data.a = one.execute(0); } else { hdr.data.b = other.execute(1); }";
    assert_eq!(stages(&cells, sides), 1);
    refused("one-apply", HOSTS, "hosts.apply();\n        hosts.apply();", "hosts.apply();\n    }");
}

#[test]
fn a_stateful_alu_does_little() {
    let body = |body: &str| register("bit<32>", body);
    refused("stateful-expression", &body("v = v * hdr.data.b;"), ONCE, "v = v *");
    refused("stateful-expression", &body("v = v << hdr.data.e;"), ONCE, "v = v <<");
    refused("stateful-expression", &body("v = v + hdr.data.b - hdr.data.c;"), ONCE, "v = v +");
    refused(
        "stateful-operands",
        &body("v = hdr.data.a; if (v > hdr.data.b) { v = hdr.data.c; }"),
        ONCE,
        "hdr.data.a = one",
    );
    let other = "RegisterAction<bit<32>, bit<8>, bit<32>>(cells) wide = {
        void apply(inout bit<32> v, out bit<32> r) { r = v; v = hdr.data.d; }
    };";
    let both = body("v = hdr.data.b + hdr.data.c;") + other;
    let sides =
        "if (hdr.data.f == 1) { hdr.data.a = one.execute(0); } else { hdr.data.a = wide.execute(0); }";
    refused("stateful-operands", &both, sides, "hdr.data.a = wide");
    assert!(fit(&(body("v = hdr.data.b + hdr.data.d;") + other), sides).fits());
    let compares = "if (v < 1) { v = 2; } else if (v < 3) { v = 4; } else if (v < 5) { v = 6; }";
    refused("stateful-compares", &body(compares), ONCE, "if (v < 1)");
    assert!(fit_second(&body(compares), ONCE).fits(), "the second generation has four");
    refused("register-width", &register("bit<24>", "v = v + 1;"), ONCE, "hdr.data.a = one");
    assert!(
        fit(
            &body("if (v - hdr.data.b < 0x1000) { v = hdr.data.b; } else { v = v + hdr.data.c; } r = v;"),
            ONCE
        )
        .fits()
    );
}

#[test]
fn a_register_has_four_bodies() {
    let bodies: String = (0..5)
        .map(|n| {
            format!(
                "RegisterAction<bit<32>, bit<8>, bit<32>>(cells) b{n} = {{ void apply(inout bit<32> v) {{ v = {n}; }} }};
    action a{n}() {{ b{n}.execute(0); }}
    "
            )
        })
        .collect();
    let locals = |n: usize| {
        let names: String = (0..n).map(|n| format!("a{n};")).collect();
        format!(
            "Register<bit<32>, bit<8>>(256) cells;
    {bodies}
    table t {{ key = {{ hdr.data.e: exact; }} actions = {{ {names} }} }}"
        )
    };
    assert!(fit(&locals(4), "t.apply();").fits());
    // However often one is run.
    let one = register("bit<32>", "v = v + 1; r = v;");
    let branches: String = (0..5)
        .map(|n| format!("if (hdr.data.f == {n}) {{ hdr.data.a = one.execute(hdr.data.e); }} else "))
        .collect();
    assert!(fit(&one, &format!("{branches} {{ }}")).fits());
    refused("stateful-actions", &locals(5), "t.apply();", "action a4()");
}

#[test]
fn a_miss_names_no_cell() {
    let locals = |key: &str, default: &str, entry: &str, index: &str| {
        format!(
            "{}
    action look() {{ hdr.data.a = one.execute({index}); }}
    table t {{ key = {{ {key} }} actions = {{ look; NoAction; }} const default_action = {default}; {entry} }}",
            register("bit<32>", "v = v + 1; r = v;")
        )
    };
    let (key, entry) = ("hdr.data.f: ternary;", "const entries = { (_) : look(); }");
    let names = |report: &Report| report.refusals.iter().map(|r| r.rule.name()).collect::<Vec<_>>();
    assert_eq!(names(&fit(&locals(key, "look()", "", "hdr.data.e"), "t.apply();")), ["default-action"]);
    assert!(fit(&locals(key, "look()", "", "3"), "t.apply();").fits());
    assert!(fit(&locals("", "look()", "", "hdr.data.e"), "t.apply();").fits());
    assert!(fit(&locals(key, "NoAction()", entry, "hdr.data.e"), "t.apply();").fits());
}

#[test]
fn a_program_has_only_so_many_stages() {
    let chain =
        |n: usize| (0..n).map(|_| "hdr.data.a = hdr.data.a + 1;").collect::<Vec<_>>().join("\n        ");
    assert_eq!(stages("", &chain(12)), 12);
    let thirteen = fit("", &chain(13));
    assert_eq!(thirteen.refusals.iter().map(|r| r.rule.name()).collect::<Vec<_>>(), ["stages"]);
    assert_eq!(thirteen.stages(), 13);
    let second = fit_second("", &chain(13));
    assert!(second.fits() && second.stages() == 13 && second.chip == &chip::SECOND);
}

#[test]
fn parsers_read_only_so_far() {
    let far =
        |include| report_of(&program(include, "pkt.extract(hdr.one); pkt.extract(hdr.two);", "", "", ""));
    let names = |report: &Report| report.refusals.iter().map(|r| r.rule.name()).collect::<Vec<_>>();
    assert_eq!(names(&far("tna.p4")), ["parse-depth"]);
    assert_eq!(names(&far("t2na.p4")), Vec::<&str>::new());
}

#[test]
fn a_state_with_several_ways_to_it_notes_nothing_of_before() {
    let states = |early: &str, late: &str| {
        let text = program("tna.p4", "", "", "hdr.data.a = meta.x;", "");
        let parser = format!(
            "pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.kind) {{ 1 : one; default : both; }}
    }}
    state one {{ pkt.extract(hdr.one); {early} transition both; }}
    state both {{ {late} pkt.extract(hdr.data); transition accept;"
        );
        let (first, last) = ("pkt.extract(ig);", "transition accept;");
        let (from, to) = (text.find(first).expect("a start"), text.find(last).expect("an end") + last.len());
        report_of(&format!("{}{parser}{}", &text[..from], &text[to..]))
    };
    let note = "meta.x = (bit<32>) ig.ingress_mac_tstamp[31:0];";
    let names = |report: &Report| report.refusals.iter().map(|r| r.rule.name()).collect::<Vec<_>>();
    assert_eq!(names(&states("", note)), ["parse-back"]);
    assert_eq!(names(&states(note, "")), Vec::<&str>::new());
    assert_eq!(names(&states("", "meta.x = 1;")), Vec::<&str>::new());
}

/// The first generation's parser combines a field's values by OR.
#[test]
fn a_parser_that_stores_twice_is_warned_of_on_the_first_generation() {
    let of = |include: &str, first: &str, second: &str| {
        let text = program(include, "", "", "hdr.data.a = meta.x;", "").replacen(
            "pkt.extract(hdr.data);
        transition accept;
    }",
            &format!(
                "pkt.extract(hdr.data);
        {first}
        transition select(hdr.eth.kind) {{
            1: other;
            default: accept;
        }}
    }}
    state other {{
        {second}
        transition accept;
    }}"
            ),
            1,
        );
        report_of(&text)
    };
    let report = of("tna.p4", "meta.x = 5;", "meta.x = 8;");
    assert!(report.fits(), "{}", report.diagnostics());
    let said = report.warnings().render(false);
    assert!(report.warnings.len() == 1 && said.contains("meta.x") && said.contains("OR"), "{said}");
    assert_eq!(report.json()["warnings"][0]["message"], report.warnings[0].message);
    for (first, second) in [
        ("meta.x = 5;", "meta.x = hdr.data.b;"),
        ("meta.x = hdr.data.b;", "meta.x = 5;"),
        ("", "hdr.data.a = 1;"),
        ("meta.x = 5;", "meta.x[3:0] = 8;"),
        ("if (hdr.eth.kind == 2) { meta.x = 5; }", "meta.x = 8;"),
        ("", "if (hdr.eth.kind == 2) { meta.x = 5; meta.x = 8; } else { meta.x = 6; }"),
        (
            "",
            "if (hdr.eth.kind == 2) { meta.x = 5; } if (hdr.eth.kind != 2) { meta.y = 6; } else { meta.x = 8; }",
        ),
    ] {
        assert_eq!(of("tna.p4", first, second).warnings.len(), 1, "{first} {second}");
    }
    for (first, second) in [
        ("meta.x = 0;", "meta.x = hdr.data.b;"),
        ("meta.x = 5;", "meta.x = 7;"),
        ("meta.x = hdr.data.b;", "meta.x = 0xFFFFFFFF;"),
        ("meta.x = 5;", "meta.y = 8;"),
        ("meta.x = 5;", "meta.x = meta.x | 8;"),
        ("", "if (hdr.eth.kind == 2) { meta.x = 5; } else { meta.x = 8; }"),
        (
            "",
            "if (hdr.eth.kind == 2) { meta.x = 5; } else { if (hdr.data.b == 1) { meta.x = 8; } else { meta.x = 6; } }",
        ),
    ] {
        let found = of("tna.p4", first, second).warnings();
        assert!(found.is_empty(), "{first} {second}: {found}");
    }
    assert!(of("t2na.p4", "meta.x = 5;", "meta.x = 8;").warnings.is_empty());
}

#[test]
fn headers_and_keys_have_only_so_much_room() {
    let names = |report: &Report| report.refusals.iter().map(|r| r.rule.name()).collect::<Vec<_>>();
    let huge = report_of(&program("t2na.p4", "pkt.extract(hdr.huge);", "", "", ""));
    assert_eq!(names(&huge), ["packet-bits"]);
    let wide = "table t { key = { hdr.one.bytes: ternary; } actions = { forward; } }";
    let report = fit(wide, "t.apply();");
    assert_eq!(names(&report), ["key-width"], "{}", report.text());
}

#[test]
fn a_register_is_in_ingress_or_in_egress() {
    let text = program("tna.p4", "", "", "hdr.data.a = add.execute(0);", "hdr.data.b = add.execute(1);");
    let global = "Register<bit<32>, bit<8>>(256) cells;
RegisterAction<bit<32>, bit<8>, bit<32>>(cells) add = {
    void apply(inout bit<32> v, out bit<32> r) { v = v + 1; r = v; }
};
control I(";
    let text = text.replace("control I(", global);
    assert_refused(&report_of(&text), "one-place", &text, "hdr.data.b = add");
}

#[test]
fn programs_for_no_chip_have_no_estimate() {
    let text = include_str!("../../examples/forward.p4");
    let compiled = compile(text, "forward.p4", &Options::default()).unwrap();
    assert!(chip_of(&compiled.program).is_none());
}

/// Resources of all stages together, and bits beyond the chip's: these are remarked, not refused.
#[test]
fn a_report_has_totals() {
    let report = fit("", "hdr.data.a = hdr.data.b;");
    let pipeline = &report.pipelines[0];
    let of_stages: u32 = pipeline.stages.iter().map(|stage| stage.used.tables).sum();
    assert_eq!(pipeline.used().tables, of_stages);
    let json = report.json();
    assert_eq!(json["pipelines"][0]["totals"]["tables"], of_stages);
    let srams = json["pipelines"][0]["totals"]["srams"].as_u64().unwrap();
    assert_eq!(json["pipelines"][0]["totals"]["sram_bytes"], srams * 16 * 1024);
    assert!(report.text().contains("in all stages: "), "{}", report.text());
    assert!(!report.text().contains("share containers"), "{}", report.text());
    let mut more = report.clone();
    more.pipelines[0].packet_bits = more.chip.phv_bits + 1;
    assert!(more.text().contains("tables reach 4097 bits") && more.text().contains("share containers"));
    assert!(more.fits());
}
