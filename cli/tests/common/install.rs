//! A program, its entries, and installations of them on running switches.

use super::switch::fine;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// How long anything may take here.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Answers packets of the controller with `MARK`.
pub const PROGRAM: &str = "#include <core.p4>\n#include <v1model.p4>\n
    @controller_header(\"packet_out\") header out_t { bit<16> number; }
    @controller_header(\"packet_in\") header in_t { bit<16> mark; }
    header e_t { bit<48> dst; bit<48> src; bit<16> kind; }
    struct h_t { out_t out_; in_t in_; e_t e; }
    struct m_t { }
    parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
        state start { transition select(s.ingress_port) { 510: from_controller; default: ethernet; } }
        state from_controller { p.extract(h.out_); transition ethernet; }
        state ethernet { p.extract(h.e); transition accept; }
    }
    control V(inout h_t h, inout m_t m) { apply { } }
    control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
        counter(4, CounterType.packets) seen;
        action_profile(8) ways;
        action to(bit<9> port) { s.egress_spec = port; }
        action lost() { mark_to_drop(s); }
        table forward { key = { h.e.dst: exact; } actions = { to; lost; } default_action = lost(); size = 64; }
        table spread { key = { h.e.src: exact; } actions = { to; } implementation = ways; size = 64; }
        apply {
            seen.count(0);
            if (h.out_.isValid()) {
                h.out_.setInvalid();
                h.in_.setValid();
                h.in_.mark = 1;
                s.egress_spec = 510;
            } else { forward.apply(); spread.apply(); }
        }
    }
    control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
    control C(inout h_t h, inout m_t m) { apply { } }
    control D(packet_out p, in h_t h) { apply { p.emit(h); } }
    V1Switch(P(), V(), I(), E(), C(), D()) main;
";
/// Two entries of it.
pub const ENTRIES: &str =
    "forward dst=02:00:00:00:00:01 --action to port=1\nforward dst=02:00:00:00:00:02 --action to port=2\n";

/// [`ENTRIES`] and a group that only a switch refuses: it has no numbers above 65535.
pub fn with_a_forbidden_one() -> String {
    ENTRIES.to_owned() + "--multicast 70000 1\n"
}

/// A folder with the program and its entries.
pub struct Files(tempfile::TempDir);

impl Files {
    /// Writes both: t.p4 and t.entries.
    pub fn new() -> Files {
        let files = Files(tempfile::tempdir().expect("a scratch folder"));
        files.write("t.p4", PROGRAM);
        files.write("t.entries", ENTRIES);
        files
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    /// The program with a replaced text, in a file of its own.
    pub fn with(&self, name: &str, from: &str, to: &str) -> String {
        assert!(PROGRAM.contains(from), "{from}");
        self.write(name, &PROGRAM.replace(from, to))
    }
}

/// Installs and returns the report.
pub fn report(addr: &str, words: &[&str]) -> Value {
    serde_json::from_str(&fine(addr, &[&["p4", "install", "--json"], words].concat())).expect("JSON")
}

/// All table entries, sorted.
pub fn entries(addr: &str) -> Vec<Value> {
    let mut found: Vec<Value> =
        serde_json::from_str(&fine(addr, &["table", "read", "--json"])).expect("JSON");
    found.sort_by_key(Value::to_string);
    found
}

/// Replaces a file as editors do: a new one takes its name.
pub fn replace(path: &str, text: &str) {
    let new = format!("{path}.new");
    fs::write(&new, text).expect("a file");
    fs::rename(new, path).expect("renamed");
}
