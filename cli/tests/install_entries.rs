//! Entries during `p4 install`: those of the program's text, and those that a failure has kept from the switch.

#[path = "common/between.rs"]
mod between;
mod common;

use between::{Between, Fault};
use common::install::{ENTRIES, Files, PROGRAM, entries, replace, report, with_a_forbidden_one};
use common::switch::{Running, fine, free_addr, run, switch};
use common::{p4rack, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The program whose table has entries of its own that controllers may change; `port` is that of one of them.
fn with_own_entries(port: u8, mark: u8) -> String {
    let table = "default_action = lost(); size = 64; }";
    assert!(PROGRAM.contains(table));
    let own = format!(
        "default_action = lost(); size = 64; entries = {{ 48w0x020000000051: to({port}); 48w0x020000000052: to(2); }} }}"
    );
    PROGRAM.replace(table, &own).replace("mark = 1;", &format!("mark = {mark};"))
}

/// Entries of table forward, with the last byte of their key and their port.
fn forwards(addr: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = entries(addr);
    let found = found.iter().filter(|entry| text(&entry["table"]).ends_with("forward"));
    let pair = |entry: &Value| {
        let key = text(&entry["keys"]["h.e.dst"]);
        (key[key.len() - 2..].to_owned(), text(&entry["action"]["params"]["port"]))
    };
    let mut found: Vec<(String, String)> = found.map(pair).collect();
    found.sort();
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, port)| ((*key).to_owned(), (*port).to_owned())).collect()
}

#[test]
fn entries_of_the_text_come_and_go_with_the_program() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let program = files.write("t.p4", &with_own_entries(1, 1));
    let entries_file = files.path("t.entries");
    let first = report(&addr, &[&program, "--entries", &entries_file]);
    assert_eq!(first["inserted"], 2, "{first}");
    let all = pairs(&[("01", "1"), ("02", "2"), ("51", "1"), ("52", "2")]);
    assert_eq!(forwards(&addr), all);
    // Between two packets: the entries of the new text, not those of the old one.
    files.write("t.p4", &with_own_entries(9, 2));
    let next = report(&addr, &[&program]);
    assert_eq!((&next["installed"], &next["kept"]), (&"between two packets".into(), &2.into()), "{next}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("51", "9"), ("52", "2")]));
    // What a controller has made of them is kept, and overrides the new text.
    fine(&addr, &["table", "modify", "forward", "dst=02:00:00:00:00:51", "--action", "to", "port=4"]);
    files.write("t.p4", &with_own_entries(8, 3));
    let next = report(&addr, &[&program]);
    assert_eq!((&next["installed"], &next["kept"]), (&"between two packets".into(), &3.into()), "{next}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("51", "4"), ("52", "2")]));
    // One that a controller has deleted stays deleted, as long as the program is the same.
    fine(&addr, &["table", "delete", "forward", "dst=02:00:00:00:00:52"]);
    let same = report(&addr, &[&program]);
    assert_eq!((&same["installed"], &same["kept"]), (&"same program".into(), &3.into()), "{same}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("51", "4")]));
    // Without anything of the controllers: the same program, and another one.
    report(&addr, &[&program, "--clear"]);
    assert_eq!(forwards(&addr), pairs(&[("51", "8"), ("52", "2")]));
    report(&addr, &[&program, "--entries", &entries_file]);
    files.write("t.p4", &with_own_entries(7, 4));
    let cleared = report(&addr, &[&program, "--clear"]);
    assert_eq!(cleared["installed"], "between two packets", "{cleared}");
    assert_eq!(forwards(&addr), pairs(&[("51", "7"), ("52", "2")]));
    // Where the program is replaced: an action has another parameter.
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:03", "--action", "lost"]);
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:04", "--action", "to", "port=1"]);
    fine(&addr, &["table", "modify", "forward", "dst=02:00:00:00:00:52", "--action", "lost"]);
    let other =
        with_own_entries(6, 5).replace("to(bit<9> port)", "to(bit<9> way)").replace("= port;", "= way;");
    files.write("t.p4", &other);
    let replaced = report(&addr, &[&program]);
    assert_eq!((&replaced["installed"], &replaced["kept"]), (&"replaced".into(), &2.into()), "{replaced}");
    assert_eq!(replaced["dropped"].as_array().map(Vec::len), Some(1), "{replaced}");
    let found = fine(&addr, &["table", "read", "forward"]);
    assert!(found.contains("way=6") && !found.contains("way=2"), "{found}");
    assert_eq!(forwards(&addr).len(), 3, "{found}");
}

#[test]
fn a_controllers_entry_that_becomes_constant_is_kept_or_dropped_with_the_reason() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let program = files.path("t.p4");
    let with = |entries: &str| {
        let table = "default_action = lost(); size = 64; }";
        let text = PROGRAM.replace(table, &table.replace('}', &format!("{entries} }}")));
        files.write("t.p4", &text);
    };
    let entries_file = files.path("t.entries");
    report(&addr, &[&program, "--entries", &entries_file]);
    // The same one, among others that may change, and as the only one that there can be.
    with("entries = { const 48w0x020000000001: to(1); 48w0x020000000051: to(5); }");
    let dry = run(&addr, &["p4", "install", &program, "--dry-run"]);
    assert!(stdout(&dry).contains("would be installed, 2 entries stay\n"), "{}", stdout(&dry));
    let next = report(&addr, &[&program]);
    assert_eq!((&next["installed"], &next["kept"]), (&"between two packets".into(), &2.into()), "{next}");
    assert_eq!(next["dropped"], Value::Array(vec![]), "{next}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("51", "5")]));
    // It is not the controller's any more, and a file may still have it.
    let again = report(&addr, &[&program, "--entries", &entries_file]);
    assert_eq!((&again["installed"], &again["inserted"]), (&"same program".into(), &0.into()), "{again}");
    fine(&addr, &["table", "delete", "forward", "dst=02:00:00:00:00:51"]);
    with("const entries = { 48w0x020000000002: to(2); }");
    let last = report(&addr, &[&program]);
    assert_eq!((&last["installed"], &last["kept"]), (&"between two packets".into(), &1.into()), "{last}");
    assert_eq!(last["dropped"], Value::Array(vec![]), "{last}");
    assert_eq!(forwards(&addr), pairs(&[("02", "2")]));
    // Another one with the same key.
    with("");
    report(&addr, &[&program, "--entries", &entries_file]);
    with("entries = { const 48w0x020000000001: to(7); }");
    let other = fine(&addr, &["p4", "install", &program]);
    let why = "key h.e.dst=02:00:00:00:00:01: the program has another, constant entry with this key now";
    assert!(other.contains("1 entries kept, 1 dropped") && other.contains(why), "{other}");
    assert_eq!(forwards(&addr), pairs(&[("01", "7"), ("02", "2")]));
    with("const entries = { 48w0x020000000001: to(7); }");
    let only = fine(&addr, &["p4", "install", &program]);
    assert!(only.contains("key h.e.dst=02:00:00:00:00:02: the table's entries are constant now"), "{only}");
}

/// The text between two others.
fn part<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let start = text.find(before).unwrap_or_else(|| panic!("{before}: {text}")) + before.len();
    let end = text[start..].find(after).unwrap_or_else(|| panic!("{after}: {text}"));
    &text[start..start + end]
}

/// Writes an entry, and a program that can't take it over, so that the old one is replaced.
fn incompatible(files: &Files, addr: &str) -> String {
    fine(addr, &["group", "insert", "--profile", "ways", "--member", "7", "--action", "to", "port=4"]);
    fine(addr, &["table", "insert", "spread", "src=02:00:00:00:00:09", "--member", "7"]);
    files.with("next try.p4", "h.e.src: exact;", "h.e.kind: exact;")
}

/// Runs the command that an error names.
fn remedy(command: &str) {
    let binary = env!("CARGO_BIN_EXE_p4rack");
    let script = format!("p4rack() {{ '{binary}' \"$@\"; }}\n{command}");
    let output = Command::new("sh").args(["-c", &script]).output().expect("sh starts");
    assert!(output.status.success(), "{command}: {}", stderr(&output));
}

#[test]
fn a_connection_that_is_lost_before_the_entries_is_taken_up_again_with_them() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let between = Between::before(&addr);
    let (program, entries_file) = (files.path("t.p4"), files.path("t.entries"));
    let words =
        ["p4", "install", &program, "--entries", &entries_file, "--watch", "--grpc-addr", &between.addr];
    let mut watches = Running::start(p4rack().args(words));
    watches.until("installed, 2 inserted");
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "to", "port=7"]);
    let next = fs::read_to_string(incompatible(&files, &addr)).expect("the program");
    between.arm(Fault::Cut);
    replace(&program, &next);
    watches.until("without the 2 entries");
    let said = watches.until("brings them");
    let file = part(&said, "entries are in ", ":").to_owned();
    assert!(fs::read_to_string(&file).expect("the file").contains("table_entry"), "{said}");
    assert_eq!(entries(&addr).len(), 0, "the new program is there, and no entries");
    between.mend();
    let said = watches.until("installed, 2 entries kept");
    assert!(said.contains("2 inserted, 1 dropped"), "{said}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("0a", "7")]));
    assert!(!Path::new(&file).exists(), "the switch has them");
}

#[test]
fn entries_that_another_primary_keeps_from_the_switch_are_in_a_file() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let between = Between::before(&addr);
    report(&addr, &[&files.path("t.p4"), "--entries", &files.path("t.entries")]);
    fine(&addr, &["group", "insert", "--multicast", "5", "1", "2"]);
    let next = incompatible(&files, &addr);
    between.arm(Fault::Stolen);
    let output = run(&between.addr, &["p4", "install", &next]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the switch runs the new program, without the 4 entries"), "{said}");
    assert_eq!(entries(&addr).len(), 0);
    between.mend();
    // It reaches the switch on the way that this command took.
    let command = part(&said, "`p4rack ", "`");
    assert!(command.contains(&between.addr), "{said}");
    remedy(&format!("p4rack {command} --election-id 0,10"));
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2")]));
    let groups = fine(&addr, &["group", "read"]);
    assert!(groups.contains('7') && groups.contains('5'), "{groups}");
    fs::remove_file(part(&said, "entries are in ", ":")).expect("the file stays until it is removed");
}

#[test]
fn entries_that_the_way_back_has_cleared_come_with_the_next_try() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let between = Between::before(&addr);
    let (program, entries_file) = (files.path("t.p4"), files.path("t.entries"));
    let words =
        ["p4", "install", &program, "--entries", &entries_file, "--watch", "--grpc-addr", &between.addr];
    let mut watches = Running::start(p4rack().args(words));
    watches.until("installed, 2 inserted");
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "to", "port=7"]);
    // The switch refuses a group with a number that it doesn't have.
    replace(&entries_file, &with_a_forbidden_one());
    watches.until("the switch has its old program and entries");
    between.arm(Fault::CutBack);
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 2;"));
    watches.until("the switch runs the old program, without all or some of its 3 entries");
    let said = watches.until("brings them");
    assert!(said.contains(" 3 entries are in "), "those that were refused are not among them: {said}");
    assert_eq!(entries(&addr).len(), 0, "the old program is there, and no entries");
    between.mend();
    replace(&entries_file, ENTRIES);
    watches.until("installed, 1 entries kept, 2 inserted");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2"), ("0a", "7")]));
    assert!(!Path::new(part(&said, "entries are in ", ":")).exists(), "the switch has them");
}

#[test]
fn a_way_back_that_is_cut_off_between_two_packets_clears_nothing() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let between = Between::before(&addr);
    report(&between.addr, &[&files.path("t.p4"), "--entries", &files.path("t.entries")]);
    fine(&addr, &["counter", "write", "seen", "--index", "2", "--packets", "4711"]);
    let next = files.with("next.p4", "h.in_.mark = 1;", "h.in_.mark = 2;");
    let forbidden = files.write("forbidden.entries", &with_a_forbidden_one());
    between.arm(Fault::Mute);
    let output = run(&between.addr, &["p4", "install", &next, "--entries", &forbidden]);
    let said = stderr(&output);
    assert!(said.contains("the switch runs the new program or the old one, with the old entries"), "{said}");
    assert!(!said.contains("entries are in"), "{said}");
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2")]));
    let counted = fine(&addr, &["counter", "read", "seen"]);
    assert!(counted.contains("4711"), "VERIFY_AND_COMMIT was not sent: {counted}");
}

/// What BMv2 does with RECONCILE_AND_COMMIT, in front of the embedded switch.
#[test]
fn a_switch_that_keeps_no_entries_between_two_packets_gets_them_again_and_that_is_said() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let between = Between::before(&addr);
    let program = files.path("t.p4");
    report(&between.addr, &[&program, "--entries", &files.path("t.entries")]);
    let why = [
        (Fault::HalfWay, "Error when reconciling config"),
        (Fault::Forgetful, "the switch lost 2 entries in RECONCILE_AND_COMMIT"),
    ];
    for (mark, (fault, why)) in (2..).zip(why) {
        replace(&program, &PROGRAM.replace("mark = 1;", &format!("mark = {mark};")));
        between.arm(fault);
        let next = report(&between.addr, &[&program]);
        assert_eq!((&next["installed"], &next["kept"]), (&"replaced".into(), &2.into()), "{next}");
        assert_eq!((&next["inserted"], &next["dropped"]), (&0.into(), &Value::Array(vec![])), "{next}");
        let declined = next["declined"].as_str().unwrap_or_default();
        assert!(declined.contains(why) && next["gap_ms"].is_number(), "{next}");
        assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2")]));
    }
    // The way back, too.
    let forbidden = files.write("forbidden.entries", &with_a_forbidden_one());
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 4;"));
    between.arm(Fault::HalfWay);
    let output = run(&between.addr, &["p4", "install", &program, "--entries", &forbidden]);
    assert!(stderr(&output).contains("the old program and its entries are back"), "{}", stderr(&output));
    assert_eq!(forwards(&addr), pairs(&[("01", "1"), ("02", "2")]));
}
