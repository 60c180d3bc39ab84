//! A folder of three programs: some results count as passed, others do not.

use p4rack_conformance::{Outcome, Part, Suite};
use std::fs;
use std::path::Path;

const BLOCKS: &str = "struct hdr_t { } struct meta_t { }
parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout hdr_t hdr, inout meta_t meta) { apply { } }
control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { BODY }
control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout hdr_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in hdr_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn program(globals: &str, body: &str) -> String {
    format!("#include <core.p4>\n#include <v1model.p4>\n{globals}\n{}", BLOCKS.replace("BODY", body))
}

fn suite(folder: &Path, files: &[(&str, String)]) -> Suite {
    for sub in ["p4_16_samples", "p4_16_samples_outputs", "p4_16_errors", "p4_16_errors_outputs"] {
        fs::create_dir_all(folder.join(sub)).expect("a folder");
    }
    for (path, text) in files {
        fs::write(folder.join(path), text).expect("a file");
    }
    Suite { testdata: folder.to_owned(), include_dirs: Vec::new(), defines: Vec::new() }
}

fn run(files: &[(&str, String)], part: Part) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    suite(folder.path(), files).run(part).expect("a result")
}

#[test]
fn programs_are_accepted_and_taken_by_the_switch() {
    let files = [
        ("p4_16_samples/fine.p4", program("", "apply { sm.egress_spec = 1; }")),
        ("p4_16_samples/foreign.p4", program("extern void f();", "apply { f(); }")),
        ("p4_16_samples/library.p4", "#include <v1model.p4>\nstruct s { bit<8> x; }\n".to_owned()),
        ("p4_16_samples/other.p4", "struct t { bit<8> x; }\n".to_owned()),
        ("p4_16_samples/wrong.p4", program("", "apply { sm.nonsense = 1; }")),
    ];
    let outcome = run(&files, Part::Accept);
    assert_eq!((outcome.tried, outcome.passed), (4, 3));
    assert!(!outcome.is_success());
    assert_eq!(outcome.counts.get("taken by the switch"), Some(&1));
    assert_eq!(outcome.counts.get("without a V1Switch"), Some(&1));
    assert_eq!(outcome.failures[0].file, "wrong.p4");
    assert!(outcome.failures[0].why.contains("`standard_metadata_t` has no field `nonsense`"));
    assert_eq!(outcome.notes[0].file, "foreign.p4");
}

#[test]
fn errors_count_at_the_right_line_only() {
    let wrong = "#include <core.p4>\nconst bit<8> A = 1;\nconst bit<8> B = C;\n".to_owned();
    let says = |line: u32, name: &str| format!("{name}.p4({line}): [--Werror=x] error: C: not found\n");
    let files = [
        ("p4_16_errors/here.p4", wrong.clone()),
        ("p4_16_errors_outputs/here.p4-stderr", says(3, "here")),
        ("p4_16_errors/there.p4", wrong.clone()),
        ("p4_16_errors_outputs/there.p4-stderr", says(2, "there")),
        ("p4_16_errors/nowhere.p4", wrong),
        ("p4_16_errors_outputs/nowhere.p4-stderr", "error: no place\n".to_owned()),
        ("p4_16_errors/fine.p4", "const bit<8> A = 1;\n".to_owned()),
        ("p4_16_errors_outputs/fine.p4-stderr", says(1, "fine")),
    ];
    let outcome = run(&files, Part::Refuse);
    assert_eq!((outcome.tried, outcome.passed, outcome.required), (4, 1, 4));
    assert_eq!(outcome.counts.get("refused"), Some(&3));
    let why: Vec<&str> = outcome.failures.iter().map(|f| f.why.as_str()).collect();
    assert_eq!(why[0], "accepted");
    assert_eq!(why[1], "refused, but no line to compare with");
    assert_eq!(why[2], "refused at line 3 rather than 2: unknown name `C`");
}

#[test]
fn p4info_is_compared_whatever_its_order() {
    let table = "action b() { } action a() { } table t { actions = { a; b; } default_action = a; } apply { t.apply(); }";
    let folder = tempfile::tempdir().expect("a folder");
    let text = program("", table);
    let Ok(compiled) = p4rack_p4::compile(&text, "t.p4", &p4rack_p4::Options::default()) else {
        panic!("refused")
    };
    let mut info = compiled.p4info;
    info.actions.reverse();
    let expected = p4rack_p4rt::text::print(&info);
    let files = |expected: String| {
        [("p4_16_samples/t.p4", text.clone()), ("p4_16_samples_outputs/t.p4.p4info.txtpb", expected)]
    };
    let same = suite(folder.path(), &files(expected.clone())).run(Part::P4Info).expect("a result");
    assert_eq!((same.tried, same.passed), (1, 1), "{:?}", same.failures);
    let other = expected.replace("I.t", "I.u");
    let other = suite(folder.path(), &files(other)).run(Part::P4Info).expect("a result");
    assert_eq!(other.failures[0].why, "expected `name: \"I.u\"`, found `name: \"I.t\"`");
}

#[test]
fn an_empty_folder_is_no_success_and_a_missing_one_is_told() {
    let outcome = run(&[], Part::Accept);
    assert!(!outcome.is_success());
    let missing = Suite { testdata: "/nonexistent".into(), include_dirs: Vec::new(), defines: Vec::new() };
    assert!(missing.run(Part::Refuse).expect_err("no folder").starts_with("/nonexistent"));
}

#[test]
fn whole_programs_of_subfolders_count_and_parts_of_programs_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("p4_16_samples/set/inner")).expect("a folder");
    fs::create_dir_all(folder.path().join("p4_16_samples_outputs/set")).expect("a folder");
    let fine = program("", "apply { sm.egress_spec = 1; }");
    let compiled = p4rack_p4::compile(&fine, "fine.p4", &p4rack_p4::Options::default()).expect("accepted");
    let expected = p4rack_p4rt::text::print(&compiled.p4info);
    let files = [
        ("p4_16_samples/set/fine.p4", fine.clone()),
        ("p4_16_samples_outputs/set/fine.p4.p4info.txtpb", expected),
        ("p4_16_samples/set/inner/wrong.p4", program("", "apply { sm.nonsense = 1; }")),
        ("p4_16_samples/set/part.p4", "#include <v1model.p4>\nstruct s { missing x; }\n".to_owned()),
    ];
    let suite = suite(folder.path(), &files);
    let accepted = suite.run(Part::Accept).expect("a result");
    assert_eq!((accepted.tried, accepted.passed), (2, 1));
    assert_eq!(accepted.failures[0].file, "set/inner/wrong.p4");
    let info = suite.run(Part::P4Info).expect("a result");
    assert_eq!((info.tried, info.passed), (1, 1));
}
