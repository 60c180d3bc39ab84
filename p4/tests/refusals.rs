//! Messages of sema about programs with mistakes: every line with `// error: …` gets that error, and
//! no other line gets any.

use crate::common;

use common::{errors, program};
use p4rack_p4::{Options, Severity};
use std::path::Path;

#[test]
fn every_marked_line_gets_its_error_and_no_other_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sema");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder").map(|e| e.expect("entry").path()).collect();
    files.sort();
    assert!(files.len() >= 5);
    let mut failures = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a program");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut expected: Vec<(u32, String)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if let Some((_, message)) = line.split_once("// error: ") {
                expected.push((number as u32 + 1, message.trim().to_owned()));
            }
        }
        let Err(diagnostics) = p4rack_p4::compile(&text, &name, &Options::default()) else {
            failures.push(format!("{name}: accepted"));
            continue;
        };
        let mut found: Vec<(u32, String)> = Vec::new();
        for d in diagnostics.items.iter().filter(|d| d.severity == Severity::Error) {
            found.push((diagnostics.sources().locate(d.span).line, d.message.clone()));
        }
        for (line, message) in &expected {
            match found.iter().position(|(l, m)| l == line && m.contains(message.as_str())) {
                Some(at) => {
                    found.remove(at);
                }
                None => failures.push(format!("{name}:{line}: missing: {message}")),
            }
        }
        failures.extend(found.iter().map(|(line, m)| format!("{name}:{line}: not expected: {m}")));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn a_near_name_is_offered() {
    let text = program("", "", "", "hdr.eht.dst = 1;");
    let Err(diagnostics) = common::try_compile(&text) else { panic!("accepted") };
    assert_eq!(diagnostics.items[0].message, "`hdr_t` has no field `eht`");
    assert_eq!(diagnostics.items[0].help, ["did you mean `eth`?"]);
}

#[test]
fn a_program_needs_main_of_a_known_architecture() {
    assert_eq!(errors("#include <core.p4>\n"), ["the program has no `main`"]);
    let other =
        "#include <core.p4>\ncontrol C(); package Mine(C c); control K() { apply { } } Mine(K()) main;";
    assert_eq!(errors(other), ["`main` is a `Mine`: this architecture is not supported"]);
    // A name alone makes no architecture's package.
    let empty = "package Switch(); Switch() main;";
    assert_eq!(errors(empty), ["`main` is a `Switch`: this architecture is not supported"]);
}

#[test]
fn one_mistake_is_told_once() {
    let text = program("", "", "unknown_t v;", "v.x = 1; v.y = v.x + 1; meta.a = v.z;");
    assert_eq!(errors(&text), ["unknown name `unknown_t`"]);
    assert_eq!(errors(&program("", "", "", "bit<8> i = i; meta.a = i;")), ["unknown name `i`"]);
}

#[test]
fn old_and_new_versions_of_v1model_are_known() {
    let index = "counter<bit<9>>(8, CounterType.packets) c;";
    let text = program("", "", index, "c.count(sm.ingress_port);");
    assert!(!errors(&text).is_empty());
    assert_eq!(errors(&format!("#define V1MODEL_VERSION 20200408\n{text}")), Vec::<String>::new());
    assert_eq!(
        errors(&format!("#define V1MODEL_VERSION 2\n{}", program("", "", "", "")))[0],
        "static_assert failed: V1MODEL_VERSION is between 20180101 and 20200408"
    );
}

#[test]
fn another_architecture_is_refused_with_what_is_supported_and_what_to_do() {
    let text = "#include <core.p4>\n#include <psa.p4>\n";
    let shown = p4rack_p4::compile(text, "psa.p4", &Options::default()).unwrap_err().render(false);
    for part in ["`psa.p4` is not found", "v1model is supported", "V1Switch", "six blocks", "-I"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Any other file is just not found.
    let text = text.replace("psa.p4", "mine.p4");
    let shown = p4rack_p4::compile(&text, "mine.p4", &Options::default()).unwrap_err().render(false);
    assert!(!shown.contains("architecture") && shown.contains("-I"), "{shown}");
    let text = "#include <core.p4>\ncontrol C(); package Top(C c);\n\
                control D() { apply { } }\nTop(D()) main;\n";
    let shown = p4rack_p4::compile(text, "top.p4", &Options::default()).unwrap_err().render(false);
    for part in ["`main` is a `Top`", "v1model is supported", "six blocks"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_program_in_the_first_version_of_the_language_is_called_so() {
    let old = "header_type h_t { fields { a : 8; } }\nheader h_t h;\nparser start { return ingress; }\n\
               field_list l { h.a; }\naction f() { drop(); }\ntable t { reads { h.a : exact; } actions { f; } }\n\
               control ingress { apply(t); }\n";
    let only_blocks = "parser start { return ingress; }\ncontrol ingress { }\n";
    let metadata = "metadata m_t m { a : 1; }\n";
    for text in [old, only_blocks, metadata, &format!("#include <core.p4>\n{old}")] {
        let shown = p4rack_p4::compile(text, "old.p4", &Options::default()).unwrap_err().render(false);
        for part in ["error: this is P4_14, and P4_16 is needed", "p4test --std p4-14"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(shown.matches("error:").count(), 1, "{shown}");
    }
    // Mistakes in P4_16 keep their own messages.
    for text in [
        "control I() { apply { } }\nheader h { bit<8> a }",
        "control c { apply { } }",
        "struct counter { bit<8> a }",
    ] {
        assert!(!errors(text)[0].contains("P4_14"), "{text}");
    }
}

/// Warnings of a program, by their messages.
fn warnings(text: &str) -> Vec<String> {
    let compiled = common::compile(text);
    compiled.warnings.items.iter().map(|d| d.message.clone()).collect()
}

#[test]
fn a_change_to_a_header_that_is_never_emitted_is_warned_of() {
    let with = |locals: &str, apply: &str, emits: &str| {
        program(
            "",
            "state start { pkt.extract(hdr.eth); pkt.extract(hdr.other); transition accept; }",
            locals,
            apply,
        )
        .replace("pkt.emit(hdr);", emits)
    };
    let lost = ["`hdr.other` is extracted and changed here, but never emitted: the change is lost"];
    let action = "action a(bit<48> to) { hdr.other.src = to; } table t { actions = { a; NoAction; } key = { hdr.other.dst: exact; } }";
    for (locals, apply) in [
        ("", "hdr.other.type = 1;"),
        ("", "hdr.other.type[7:0] = 1;"),
        ("", "hdr.other.type = hdr.other.type - 1;"),
        (action, "if (hdr.other.isValid()) { t.apply(); }"),
    ] {
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr.eth);")), lost, "{apply}");
        // All is emitted.
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr);")), [""; 0], "{apply}");
        // Nothing is: no deparser to put it into.
        assert_eq!(warnings(&with(locals, apply, "")), [""; 0], "{apply}");
    }
    for (locals, apply) in [
        // Its removal is intended.
        ("", "hdr.other.type = 1; hdr.other.setInvalid();"),
        // The changed value has another use: a copy, another header, a decision, a key, a call.
        ("", "hdr.other.type = 1; hdr.eth = hdr.other;"),
        ("", "hdr.other.type = 1; hdr.eth.type = hdr.other.type;"),
        ("", "hdr.other.type = hdr.eth.type; if (hdr.other.type == 5) { mark_to_drop(sm); }"),
        (
            "table t { key = { hdr.other.type: exact; } actions = { NoAction; } }",
            "hdr.other.type = 2; t.apply();",
        ),
        ("", "hdr.other.type = 3; digest<eth_t>(1, hdr.other);"),
        // It is not changed.
        ("", "hdr.eth.type = hdr.other.type;"),
    ] {
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr.eth);")), [""; 0], "{apply}");
    }
}

#[test]
fn a_header_that_is_made_valid_and_never_emitted_is_warned_of() {
    let with = |locals: &str, apply: &str, emits: &str| {
        program("", "state start { pkt.extract(hdr.eth); transition accept; }", locals, apply)
            .replace("pkt.emit(hdr);", emits)
    };
    let lost = ["`hdr.other` is made valid and written here, but never emitted: what is written is lost"];
    let action = "action a(bit<48> to) { hdr.other.setValid(); hdr.other.src = to; } table t { actions = { a; NoAction; } key = { hdr.eth.dst: exact; } }";
    for (locals, apply) in [
        ("", "hdr.other.setValid(); hdr.other.type = 1;"),
        ("", "hdr.other.setValid(); hdr.other.type = hdr.eth.type; hdr.other.src = hdr.other.dst;"),
        ("", "hdr.other = { 1, 2, 3 };"),
        (action, "t.apply();"),
    ] {
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr.eth);")), lost, "{apply}");
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr);")), [""; 0], "{apply}");
        assert_eq!(warnings(&with(locals, apply, "")), [""; 0], "{apply}");
    }
    for (locals, apply) in [
        // Nothing is written.
        ("", "hdr.other.setValid();"),
        // It is meant to go, or goes elsewhere.
        ("", "hdr.other.setValid(); hdr.other.type = 1; hdr.other.setInvalid();"),
        ("", "hdr.other.setValid(); hdr.other.type = 1; hdr.eth = hdr.other;"),
        ("", "hdr.other.setValid(); hdr.other.type = 1; digest<eth_t>(1, hdr.other);"),
        ("", "hdr.other.setValid(); hdr.other.type = 1; if (hdr.other.type == 1) { mark_to_drop(sm); }"),
        // No deparser has it.
        ("eth_t own;", "own.setValid(); own.type = 1;"),
    ] {
        assert_eq!(warnings(&with(locals, apply, "pkt.emit(hdr.eth);")), [""; 0], "{apply}");
    }
}
