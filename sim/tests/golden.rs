//! Short experiments of every kind in tests/experiments/, with their results in tests/golden.txt.
//!
//! Any change of a rack's behaviour, from the P4 templates to the hosts' machines, changes a digest here.
//! `cargo xtask bless` rewrites the file; its diff shows the cost or gain of the change.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::summary;

use p4rack_sim::{Experiment, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use summary::summary;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn experiments_show_what_they_showed() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(tests().join("experiments")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut shown = String::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let experiment = Experiment::parse(&text, &path.display().to_string());
        let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(experiment.spec.name.as_str()), path.file_stem().unwrap().to_str(), "names its file");
        let (outcome, _) =
            run(&experiment, None).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        shown += &summary(&outcome);
    }
    let golden = tests().join("golden.txt");
    if std::env::var_os("P4RACK_BLESS").is_some() {
        return std::fs::write(&golden, &shown).unwrap();
    }
    let before = std::fs::read_to_string(&golden).unwrap_or_default();
    let differs = changed(&before, &shown);
    assert!(
        differs.is_empty() && before == shown,
        "experiments show something else than tests/golden.txt:\n{}\nIf that is meant, run `cargo xtask bless` \
         and read the diff.",
        differs.join("\n")
    );
}

/// Lines that one of two summaries has and the other has not, under the experiment's first line.
fn changed(before: &str, after: &str) -> Vec<String> {
    let blocks = |text: &str| -> BTreeMap<String, Vec<String>> {
        let mut blocks = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            if !line.starts_with(' ') {
                name = line.split(':').next().unwrap_or_default().to_owned();
            }
            blocks.entry(name.clone()).or_insert_with(Vec::new).push(line.trim().to_owned());
        }
        blocks
    };
    let (before, after) = (blocks(before), blocks(after));
    let none = Vec::new();
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (old, new) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        if old != new {
            lines.push(format!("{name}:"));
            lines.extend(old.iter().filter(|line| !new.contains(line)).map(|line| format!("  - {line}")));
            lines.extend(new.iter().filter(|line| !old.contains(line)).map(|line| format!("  + {line}")));
        }
    }
    lines
}
