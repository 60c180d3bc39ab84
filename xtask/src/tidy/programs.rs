//! Where a crate has one program for its tests, each file of tests is a part of it.
//!
//! Such a crate turns cargo's search for test programs off, so a file that `tests/all.rs` does not name would never run.

use super::Source;
use std::path::Path;

/// The root of a crate's one test program.
const ALL: &str = "tests/all.rs";

/// Files of tests that are neither modules of their crate's program nor programs that its manifest lists.
pub fn left_out(sources: &[Source]) -> Vec<String> {
    let all = sources.iter().filter(|source| source.path.ends_with(ALL));
    all.flat_map(|all| {
        let tests = all.path.parent().unwrap_or(Path::new(""));
        let manifest = tests.with_file_name("Cargo.toml");
        let listed = sources.iter().find(|source| source.path == manifest).map_or("", |source| &source.text);
        let is_run = |name: &str| {
            let program = format!("name = \"{name}\"");
            all.text.lines().any(|line| line == format!("mod {name};"))
                || listed.lines().any(|line| line == program)
        };
        let beside = sources.iter().filter(|source| {
            source.ends_in(&["rs"]) && source.path.parent() == Some(tests) && source.path != all.path
        });
        let left = beside
            .filter(|source| !source.path.file_stem().is_some_and(|name| is_run(&name.to_string_lossy())));
        left.map(|source| format!("{}: add it to {}", source.path.display(), all.path.display()))
            .collect::<Vec<_>>()
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
            source("p4/Cargo.toml", "[[test]]\nname = \"alone\"\n"),
            source("p4/tests/all.rs", "mod common;\nmod named;\n"),
            source("p4/tests/named.rs", ""),
            source("p4/tests/alone.rs", ""),
            source("p4/tests/common/mod.rs", ""),
            source("p4/tests/forgotten.rs", ""),
            source("wire/tests/each.rs", ""),
        ];
        assert_eq!(left_out(&sources), ["p4/tests/forgotten.rs: add it to p4/tests/all.rs"]);
    }
}
