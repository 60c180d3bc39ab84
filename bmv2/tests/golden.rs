//! The JSON of some programs, kept in `tests/golden`. `P4RACK_BLESS=1` writes the files again; read the difference.

use p4rack_p4::Options;
use serde_json::Value;
use std::path::Path;

/// Programs: tables without control flow; a parser with all kinds of `select`; returns and exits.
const PROGRAMS: [&str; 3] =
    ["examples/forward.p4", "tests/stf/select_kinds.p4", "tests/stf/return_and_exit.p4"];

#[test]
fn the_json_is_the_one_that_is_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for program in PROGRAMS {
        let path = root.join("..").join(program);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{program}: {error}"));
        let compiled = p4rack_p4::compile(&text, program, &Options::default())
            .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let mut json = p4rack_bmv2::write(&compiled).unwrap_or_else(|refused| panic!("{refused}"));
        // The version of the compiler changes with each release.
        json["__meta__"]["compiler"] = Value::Null;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let kept = root.join("tests/golden").join(format!("{stem}.json"));
        if std::env::var_os("P4RACK_BLESS").is_some() {
            std::fs::write(&kept, format!("{json:#}\n")).unwrap_or_else(|error| panic!("{stem}: {error}"));
        }
        let known = std::fs::read_to_string(&kept).unwrap_or_default();
        let known: Value = serde_json::from_str(&known).unwrap_or_default();
        assert_eq!(json, known, "{program}: if the change is meant, run with P4RACK_BLESS=1");
    }
}
