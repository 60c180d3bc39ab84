//! Where a crate has one program for its tests, each file of tests is a part of it.
//!
//! Such a crate turns cargo's search for test programs off, so a file that `tests/all.rs` does not name would never run.

use super::Source;
use std::path::Path;

/// The root of a crate's one test program.
const ALL: &str = "tests/all.rs";

/// Files of tests that are neither modules of their crate's program nor programs that its manifest lists, and manifests that don't list
/// that program.
pub fn left_out(sources: &[Source]) -> Vec<String> {
    let all = sources.iter().filter(|source| source.path.ends_with(ALL));
    all.flat_map(|all| {
        let tests = all.path.parent().unwrap_or(Path::new(""));
        let manifest = tests.with_file_name("Cargo.toml");
        let text = sources.iter().find(|source| source.path == manifest).map_or("", |source| &source.text);
        let programs: Vec<&str> = text.split("\n[").filter(|table| table.starts_with("[test]]")).collect();
        let lists = |line: String| programs.iter().any(|table| table.lines().any(|one| one == line));
        let is_run = |name: &str| {
            all.text.lines().any(|line| line == format!("mod {name};")) || lists(format!("name = \"{name}\""))
        };
        let mut problems = Vec::new();
        if !lists(format!("path = \"{ALL}\"")) {
            problems.push(format!("{}: list {ALL} as a test", manifest.display()));
        }
        for source in sources.iter().filter(|source| source.path.parent() == Some(tests)) {
            let name = source.path.file_stem().unwrap_or_default().to_string_lossy();
            if source.ends_in(&["rs"]) && source.path != all.path && !is_run(&name) {
                problems.push(format!("{}: add it to {}", source.path.display(), all.path.display()));
            }
        }
        problems
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_program_names_are_found() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [
            source(
                "p4/Cargo.toml",
                "[package]\nname = \"p4\"\n\n[[test]]\nname = \"alone\"\n\n[[test]]\npath = \"tests/all.rs\"\n",
            ),
            source("p4/tests/p4.rs", ""),
            source("p4/tests/all.rs", "mod common;\nmod named;\n"),
            source("p4/tests/named.rs", ""),
            source("p4/tests/alone.rs", ""),
            source("p4/tests/common/mod.rs", ""),
            source("p4/tests/forgotten.rs", ""),
            source("sim/tests/all.rs", ""),
            source("wire/tests/each.rs", ""),
        ];
        let problems = [
            "p4/tests/p4.rs: add it to p4/tests/all.rs",
            "p4/tests/forgotten.rs: add it to p4/tests/all.rs",
            "sim/Cargo.toml: list tests/all.rs as a test",
        ];
        assert_eq!(left_out(&sources), problems);
    }
}
