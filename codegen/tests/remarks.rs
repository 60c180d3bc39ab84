//! Defects that a reader would remark on in a generated program are found: in a made-up one, and planted in each of the
//! golden ones.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::programs;

use std::path::{Path, PathBuf};

/// A program with one of each fault. Names that one control does not use are used by the other.
const FAULTY: &str = r"const bit<8> SPARE = 1;
typedef bit<8> spare_t;
struct metadata_t {
    one_metadata_t one;
    bit<8>         drop; // why
}
struct one_metadata_t {
    bit<8> kept;
    bit<8> written;
}
struct headers_t {
    mark_t  mark;
    gone_t  gone;
}
header mark_t {
    bit<8> used;
    bit<8> drop;
}
header gone_t {
    bit<8> used;
}
control One(inout headers_t hdr, inout metadata_t meta) {
    bit<8> spare = 1;
    meter(4) late;
    // What it holds.
    Register<bit<8>, bit<8>>(4) held;

    Register<bit<8>, bit<8>>(4) silent;

    RegisterAction<bit<8>, bit<8>, bit<8>>(held) count_held = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = 1;
        }
    };
    action keep_3(bit<8> why,
                  bit<8> count) {
        meta.one.kept = meta.one.kept + count;
      meta.one.written[3:0] = silent.read(0);
    }
    action one_line(bit<8> drop) { }
    action never() {
        meta.drop = 1;
    }
    @hidden table third {
        key = {
            meta.drop     : exact;
            hdr.mark.used : ternary;
        }
        actions = {
            keep_3;
            one_line;
            never;
        }
        const entries = {
            (0, 2 &&& 2) : keep_3(1, 1);
            (1, _)       : one_line(1);

        }
    }
    table decide {
        key = {
            hdr.gone.isValid() : exact;
        }
        actions = {
            never;
        }
    }
    apply {
        third.apply();
        late.execute(0);
    }
}
control Two(inout headers_t hdr, inout metadata_t meta) {
    action keep() {
        meta.drop = 2;
    }
    action never() { }
    table decide {
        actions = {
            keep;
        }
    }
    apply {
        decide.apply();
        count_held.execute(0);
    }
}
control Main(inout headers_t hdr, inout metadata_t meta) {
    One() one;
    counter(4) drops;

    apply {
        one.apply(hdr, meta);
        drops.count(0);
    }
}
Switch(Main()) main;
";

#[test]
fn what_a_reader_would_remark_on_is_found() {
    let mut faults = programs::faults(FAULTY);
    faults.sort();
    let mut expected = [
        "constant SPARE is not used",
        "type spare_t is not used",
        "control Two is not used",
        "object count_held is not used",
        "variable spare is not used",
        "action never is not used",
        "action never is in no entry of table third",
        "table decide is not used",
        "parameter why of action keep_3 is not used",
        "parameter drop of action one_line is not used",
        "parameter value of count_held is not used",
        "field written of one_metadata_t is not read",
        "field drop of mark_t is not named",
        "field used of gone_t is not named",
        "meter late of One is declared too late",
        "counter drops of Main is declared too late",
        "line 38 is indented by 6 and not by 8",
        "line 58 follows an empty line at the edge of a block",
        "action keep_3 is named by a place, not by what it decides",
        "table third is named by a place, not by what it decides",
        "table third has the number 2 in a key: give it a name",
        "no sentence says what `Register<bit<8>, bit<8>>(4) silent;` holds",
    ];
    expected.sort_unstable();
    assert_eq!(faults, expected);
}

/// The golden programs.
fn golden() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = entries(folder).flat_map(entries);
    let programs = files.filter(|path| path.extension().is_some_and(|ending| ending == "p4"));
    programs.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn what_is_planted_in_a_golden_program_is_found() {
    let mut planted = 0;
    for (path, program) in golden() {
        let (mut with, mut expected) = (String::new(), Vec::new());
        let mut behind = String::new();
        for line in program.lines() {
            let (line, faults) = plant(line, &mut behind);
            expected.extend(faults);
            with.push_str(&line);
            with.push('\n');
            if line.ends_with('{') {
                with.push_str(&std::mem::take(&mut behind));
            }
        }
        planted += expected.len();
        // A fault planted in front of counters and meters delays these.
        let is_planted = |fault: &String| !fault.ends_with("is declared too late");
        let mut found: Vec<String> = programs::faults(&with).into_iter().filter(is_planted).collect();
        found.sort();
        expected.sort();
        // Both have each fault as often as it was planted.
        assert_eq!(found, expected, "{}", path.display());
    }
    assert!(planted > 500, "{planted}");
}

/// A line with what is planted in it, and the faults that this makes. `behind` comes where the line's block begins.
fn plant(line: &str, behind: &mut String) -> (String, Vec<String>) {
    let mut faults = Vec::new();
    if let Some(name) = line.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
        let end = if name.contains("metadata") || name.contains("headers") { "read" } else { "named" };
        // The second one is a field that another protocol's struct has.
        let others = if name.starts_with("edm_") { "holder" } else { "granted" };
        for field in ["planted_field", others] {
            *behind += &format!("    bit<8> {field};\n");
            faults.push(format!("field {field} of {name} is not {end}"));
        }
    }
    if line.starts_with("control ") && !line.contains("Checksum") {
        *behind += "    bit<8> planted_variable = 1;\n";
        faults.push("variable planted_variable is not used".to_owned());
        // The second ones are names that another control uses.
        let (action, table) = match line.contains("RackIngress") {
            true => ("planted_other", "planted_others"),
            false => ("accept_source", "l2_forward"),
        };
        for action in ["planted_action", action] {
            *behind += &format!("    action {action}() {{ }}\n");
            faults.push(format!("action {action} is not used"));
        }
        for table in ["planted_table", table] {
            *behind += &format!("    table {table} {{ }}\n");
            faults.push(format!("table {table} is not used"));
        }
    }
    let action = line.trim_start().trim_start_matches("@hidden ").strip_prefix("action ");
    if let Some((name, rest)) = action.and_then(|action| action.split_once('(')) {
        let comma = if rest.starts_with(')') { "" } else { ", " };
        faults.push(format!("parameter planted_parameter of action {name} is not used"));
        let (before, after) = line.split_once('(').unwrap_or_default();
        return (format!("{before}(bit<8> planted_parameter{comma}{after}"), faults);
    }
    (line.to_owned(), faults)
}
