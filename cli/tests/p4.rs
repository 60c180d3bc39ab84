//! `p4rack p4 stf` and `p4 run`: exit codes, what they print, what they write.

mod common;

use common::{p4rack, repo, stderr, stdout};
use p4rack_wire::Nanos;
use p4rack_wire::pcap::{Reader, Writer};
use std::path::{Path, PathBuf};

/// A folder with a capture of frames of one case, and the case's program.
fn capture(frames: &[&[u8]]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut writer = Writer::default();
    for (number, frame) in frames.iter().enumerate() {
        writer.add(Nanos(1_000_000_000 + number as u64 * 1_000), frame);
    }
    let path = folder.path().join("in.pcap");
    std::fs::write(&path, writer.bytes()).expect("a writable folder");
    (folder, path)
}

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = Reader::new(&bytes).expect("a capture");
    reader.map(|record| record.expect("a whole record").frame.to_vec()).collect()
}

#[test]
fn bmv2s_json_is_written_and_runs_like_the_text() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let run = |words: &[&str]| p4rack().arg("p4").args(words).output().expect("p4rack starts");
    let text = repo("tests/stf/table_lpm.p4").display().to_string();
    let (json, info) = (at("table_lpm.json"), at("table_lpm.p4info.txtpb"));
    let written = run(&["compile", &text, "-o", &json, "--p4info", &info]);
    assert!(written.status.success(), "{}", stderr(&written));
    let passed = run(&["stf", &json, &repo("tests/stf/table_lpm.stf").display().to_string()]);
    assert!(passed.status.success(), "{}{}", stdout(&passed), stderr(&passed));
    let ids = |text: &str| -> Vec<String> {
        let ids = text.lines().filter(|line| line.trim_start().starts_with("id:"));
        let mut ids: Vec<String> = ids.map(str::to_owned).collect();
        ids.sort();
        ids
    };
    let again = run(&["info", &json]);
    let kept = std::fs::read_to_string(&info).expect("written");
    assert_eq!(ids(&stdout(&again)), ids(&kept), "the names give the same ids");
    assert!(stdout(&run(&["check", &json])).contains("accepted: 1 table"));
    let other = std::fs::read_to_string(&json).expect("written").replace("\"assign\"", "\"assigns\"");
    std::fs::write(&json, other).expect("writable");
    let refused = run(&["stf", &json, &text]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("].op`: simple_switch has no primitive `assigns`"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_bmv2_cannot_express_is_refused_with_its_line() {
    let text = std::fs::read_to_string(repo("tests/stf/table_lpm.p4")).expect("readable");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("t.p4");
    let declared = text.replacen("control I(", "extern bit<8> odd(in bit<8> x);\ncontrol I(", 1);
    let called = declared.replacen("t.apply();", "hdr.h.c = (bit<16>) odd(8w1);\n t.apply();", 1);
    assert_ne!(declared, called, "the case has the table's call");
    std::fs::write(&path, called).expect("writable");
    let refused = p4rack().args(["p4", "compile"]).arg(&path).output().expect("p4rack starts");
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    let said = stderr(&refused);
    assert!(said.contains("BMv2 has no extern `odd`") && said.contains("t.p4:"), "{said}");
}

#[test]
fn a_program_for_tofino_is_refused_where_it_says_so() {
    let program = repo("examples/tna-forward.p4");
    let text = std::fs::read_to_string(&program).expect("readable");
    let main = text.lines().position(|line| line.contains(") main;")).expect("a package") + 1;
    let refused = p4rack().args(["p4", "compile"]).arg(&program).output().expect("p4rack starts");
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    let said = stderr(&refused);
    assert!(
        said.contains("program for tna: its switches run v1model") && said.contains(&format!(":{main}:")),
        "{said}"
    );
}

#[test]
fn bytes_that_are_no_text_are_refused_with_advice() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("t.p4");
    std::fs::write(&path, [0x7f, b'E', b'L', b'F', 0xff, 0xfe]).expect("writable");
    for (command, advice) in [
        ("check", "is no text; give P4 text, or BMv2's JSON"),
        ("compile", "is no text; give P4 text, or BMv2's JSON"),
        ("install", "is no text; give P4 text, or BMv2's JSON"),
        ("fit", "is no text; give P4 text"),
    ] {
        let refused = p4rack().args(["p4", command]).arg(&path).output().expect("p4rack starts");
        assert_eq!(refused.status.code(), Some(2), "{command}: {}", stdout(&refused));
        let said = stderr(&refused);
        assert!(said.starts_with("error: ") && said.contains(advice), "{command}: {said}");
    }
}

#[test]
fn stf_exits_with_zero_one_or_two() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let program = repo("tests/stf/table_lpm.p4");
    let run = |text: &str| {
        let path = folder.path().join("case.stf");
        std::fs::write(&path, text).expect("a writable folder");
        p4rack().args(["p4", "stf"]).arg(&program).arg(&path).output().expect("p4rack starts")
    };
    let passed = run("add t h.c:0x1200/8 set(v:7)\npacket 0 00001234\nexpect 1 00071234$\n");
    assert_eq!(passed.status.code(), Some(0), "{}", stderr(&passed));
    assert!(stdout(&passed).contains("passed: 1 packets in, 1 frames expected"));
    let differs = run("packet 0 00001234\nexpect 1 00071234$\n");
    assert_eq!(differs.status.code(), Some(1));
    assert!(stdout(&differs).contains("case.stf:2: port 1, frame 1 of 1"), "{}", stdout(&differs));
    assert!(stdout(&differs).contains("expected  00 07 12 34"), "{}", stdout(&differs));
    let unknown = run("add nowhere k:1 set(v:1)\n");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("line 1: the program has no table nowhere; there are I.t"),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn stf_shows_the_way_of_packets_and_of_those_that_fail_alone() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (program, case) = (repo("tests/stf/table_lpm.p4"), folder.path().join("case.stf"));
    std::fs::write(
        &case,
        "add t h.c:0x1200/8 set(v:7)\npacket 0 00001234\nexpect 1 00071234$\npacket 0 00003456\nexpect 2 00073456\n",
    )
    .expect("a writable folder");
    let run = |trace: &str| {
        let mut command = p4rack();
        command.args(["p4", "stf", trace]).arg(&program).arg(&case);
        let output = command.output().expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        stdout(&output)
    };
    let all = run("--trace");
    for line in [
        "case.stf:2: packet at port 0, 4 bytes",
        "state     P.start",
        "table     I.t [hdr.h.c=4660] hit -> I.set(v=7)",
        "fields    ",
        "egress    port 1, normal, rid 0",
        "headers   hdr.h {",
        "sent      port 1, 4 bytes",
        "case.stf:4: packet at port 0, 4 bytes",
        "table     I.t [hdr.h.c=13398] miss -> ",
        "case.stf:5: port 2, frame 1 of 1: was not sent",
    ] {
        assert!(all.contains(line), "{line}\n{all}");
    }
    assert!(all.contains("c=4660") && all.contains("b=7"), "the headers at the end: {all}");
    let failed = run("--trace=failed");
    assert!(!failed.contains("case.stf:2: packet"), "{failed}");
    let difference = failed.find("case.stf:4: port 1 sent a frame that is not expected");
    let way = failed.find("case.stf:4: packet at port 0");
    assert!(
        failed.contains("case.stf:5: port 2") && difference.is_some() && difference < way,
        "the way is below the difference: {failed}"
    );
}

#[test]
fn run_writes_captures_and_tells_what_happened() {
    let (folder, input) = capture(&[&[1, 0, 0, 0], &[1, 0, 0, 0]]);
    let out = folder.path().join("out");
    let run = |trace: &[&str]| {
        let mut command = p4rack();
        command.args(["p4", "run"]).arg(repo("tests/stf/table_hit_miss.p4"));
        command.arg("--in").arg(format!("3={}", input.display())).arg("--out-dir").arg(&out).args(trace);
        command.output().expect("p4rack starts")
    };
    let quiet = run(&[]);
    assert_eq!(quiet.status.code(), Some(0), "{}", stderr(&quiet));
    assert!(stdout(&quiet).contains("port 1: 2 frames out"), "{}", stdout(&quiet));
    assert_eq!(frames(&out.join("port_1.pcap")), [[1, 0xbb, 0, 0], [1, 0xbb, 0, 0]]);
    let text = stdout(&run(&["--trace"]));
    for line in [
        "packet 1: port 3, 4 bytes",
        "state     P.start",
        "parsed    NoError, payload from byte 4",
        "table     I.t [hdr.h.a=1] miss -> NoAction()",
        "egress    port 1, normal, rid 0",
        "sent      port 1, 4 bytes",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let json = stdout(&run(&["--trace=json"]));
    let first: serde_json::Value =
        serde_json::from_str(json.lines().next().unwrap_or_default()).expect("an object a line");
    let events = first["events"].as_array().expect("a list");
    let of = |kind: &str| events.iter().find(|event| event["event"] == kind).cloned().unwrap_or_default();
    assert_eq!(of("table")["table"], "I.t", "{events:?}");
    assert_eq!(of("fields")["changes"][0]["is"], "1", "{events:?}");
    assert_eq!(first["sent"][0]["frame"], "01bb0000");
}

#[test]
fn a_tna_program_runs_and_is_traced() {
    let (folder, input) = capture(&[&[1, 0, 0, 0], &[0xff, 0, 0, 0], &[1, 0]]);
    let out = folder.path().join("out");
    let mut command = p4rack();
    command.args(["p4", "run"]).arg(repo("tests/tna/parser.p4"));
    command.arg("--in").arg(format!("5={}", input.display())).arg("--out-dir").arg(&out).arg("--trace");
    let run = command.output().expect("p4rack starts");
    let text = stdout(&run);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert_eq!(frames(&out.join("port_3.pcap")), [vec![1, 0, 0, 0], vec![1, 0]]);
    for line in [
        "state     IP.start",
        "parsed    PacketTooShort",
        "dropped   parser_reject",
        "sent      port 3, 4 bytes",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn samples_of_tna_are_accepted_and_run_alike() {
    let run = p4rack().args(["p4", "samples"]).arg(repo("tests/tna")).args(["types", "run"]).output();
    let run = run.expect("p4rack starts");
    let text = stdout(&run);
    assert_eq!(run.status.code(), Some(0), "{text}");
    let count = std::fs::read_dir(repo("tests/tna")).expect("a folder").count() / 2;
    for part in ["types", "run    "] {
        assert!(text.contains(&format!("{part:7} {count} of {count} as expected")), "{part}: {text}");
    }
    assert!(!text.contains("refused") && text.contains("that sent frames"), "{text}");
}

#[test]
fn an_interface_for_bfruntime_names_tables_and_registers() {
    let run = p4rack().args(["p4", "bfrt-info"]).arg(repo("examples/tna-forward.p4")).output();
    let run = run.expect("p4rack starts");
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let schema: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let tables = schema["tables"].as_array().expect("a list");
    for name in ["pipe.Ingress.hosts", "pipe.Ingress.frames", "pipe.Egress.sent"] {
        assert!(tables.iter().any(|table| table["name"] == name), "{name}");
    }
    let other = p4rack().args(["p4", "bfrt-info"]).arg(repo("examples/forward.p4")).output();
    assert_ne!(other.expect("p4rack starts").status.code(), Some(0), "v1model has none");
}

#[test]
fn a_file_without_main_has_an_empty_p4info() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let info = |path: &Path| p4rack().args(["p4", "info"]).arg(path).output().expect("p4rack starts");
    // Even if it has a table.
    let parts = "header h_t { bit<8> a; }
        control C(inout h_t h) {
            table t { key = { h.a : exact; } actions = { NoAction; } }
            apply { t.apply(); }
        }";
    let empty = info(&file("parts.p4", &format!("#include <core.p4>\n{parts}")));
    assert!(empty.status.success(), "{}", stderr(&empty));
    let said = stdout(&empty);
    assert!(said.lines().all(|line| line.starts_with('#') || line.is_empty()), "{said}");
    // A `main` of an unknown architecture could be controlled, but nothing says how.
    let other = "control C(inout bit<8> a); package Other(C c); control One(inout bit<8> a) { apply { } } Other(One()) main;";
    let refused = info(&file("other.p4", other));
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    assert!(
        stderr(&refused).contains("there is no `main` of `V1Switch` or `Switch`"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(stdout(&refused), "");
}

#[test]
fn a_trace_says_why_a_packet_ended() {
    let (folder, input) = capture(&[&[1, 0, 0, 0], &[2, 0, 0, 0]]);
    let mut command = p4rack();
    command.args(["p4", "run"]).arg(repo("tests/stf/drop.p4")).arg("--in").arg(&input);
    command.arg("--out-dir").arg(folder.path().join("out")).arg("--trace");
    let text = stdout(&command.output().expect("p4rack starts"));
    assert!(
        text.contains("mark_to_drop\n  fields    sm.egress_spec 1 -> 511\n  dropped   ingress_drop"),
        "{text}"
    );
    assert!(text.contains("dropped   egress_drop at port 1"), "{text}");
}

#[test]
fn run_refuses_what_it_cannot_read() {
    let (folder, input) = capture(&[]);
    std::fs::write(&input, [0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]).expect("a writable folder");
    let run = |port: &str| {
        let mut command = p4rack();
        command.args(["p4", "run"]).arg(repo("tests/stf/drop.p4"));
        command.arg("--in").arg(format!("{port}{}", input.display())).arg("--out-dir").arg(folder.path());
        command.output().expect("p4rack starts")
    };
    let output = run("");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is a pcapng file; convert it first"), "{}", stderr(&output));
    let output = run("511=");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the port is not within 0 to 510"), "{}", stderr(&output));
}
