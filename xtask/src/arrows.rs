//! Dependencies between crates: compares the manifests with the table in ARCHITECTURE.md.

use crate::picture::{self, Uses as Picture};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Dependencies that crates without I/O must not have.
const IMPURE_DEPENDENCIES: &[&str] = &["tokio", "tonic", "libc", "rand", "socket2", "nix"];
/// Lints of crates without I/O; each links to this file.
const PURE_LINTS: &str = "../xtask/pure-clippy.toml";

/// The crates that a crate may use.
#[derive(Debug, PartialEq, Eq)]
enum Uses {
    All,
    These(BTreeSet<String>),
}

/// Checks every manifest against the table, and the crates without I/O against the sentence that names them.
pub fn check(root: &Path) -> Result<(), String> {
    let text = read(&root.join("ARCHITECTURE.md"))?;
    let table = table(&text)?;
    let mut wrong = Vec::new();
    for name in members(&read(&root.join("Cargo.toml"))?) {
        let dependencies = dependencies(&read(&root.join(&name).join("Cargo.toml"))?);
        match table.get(&name) {
            None => wrong.push(format!("ARCHITECTURE.md's table lacks `{name}/`")),
            Some(Uses::All) => {}
            Some(Uses::These(uses)) => wrong.extend(differences(&name, uses, &dependencies)),
        }
    }
    let pure = pure(&text)?;
    for name in table.keys() {
        let lints = fs::read_link(root.join(name).join("clippy.toml")).ok();
        let linked = lints.is_some_and(|target| target == Path::new(PURE_LINTS));
        match (pure.contains(name), linked) {
            (true, false) => {
                wrong.push(format!("{name} must have no I/O: link {PURE_LINTS} as its clippy.toml"));
            }
            (false, true) => wrong.push(format!("ARCHITECTURE.md does not say that `{name}` has no I/O")),
            _ => {}
        }
    }
    for name in &pure {
        let dependencies = dependencies(&read(&root.join(name).join("Cargo.toml"))?);
        let impure = IMPURE_DEPENDENCIES.iter().filter(|impure| dependencies.contains(**impure));
        wrong.extend(impure.map(|impure| format!("{name} has no I/O, yet depends on {impure}")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// The crates and their dependencies, by their manifests. Errors: a circle, or a manifest that can't be read.
pub fn picture(root: &Path) -> Result<String, String> {
    let mut uses = Picture::new();
    for name in members(&read(&root.join("Cargo.toml"))?) {
        let dependencies = dependencies(&read(&root.join(&name).join("Cargo.toml"))?);
        let own = dependencies.iter().filter_map(|one| one.strip_prefix("p4rack-")).map(str::to_owned);
        uses.insert(name, own.collect());
    }
    picture::draw("crates", &uses)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn differences(name: &str, uses: &BTreeSet<String>, dependencies: &BTreeSet<String>) -> Vec<String> {
    let real: BTreeSet<String> =
        dependencies.iter().filter_map(|one| one.strip_prefix("p4rack-")).map(str::to_owned).collect();
    let new =
        real.difference(uses).map(|one| format!("{name} uses {one}, which ARCHITECTURE.md does not say"));
    let gone =
        uses.difference(&real).map(|one| format!("ARCHITECTURE.md says that {name} uses {one}; it doesn't"));
    new.chain(gone).collect()
}

/// The table of folders: the allowed dependencies of each.
fn table(architecture: &str) -> Result<BTreeMap<String, Uses>, String> {
    let mut table = BTreeMap::new();
    let rows = architecture.lines().skip_while(|line| !line.starts_with("| folder |")).skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let (Some(first), Some(last), 3) = (cells.first(), cells.last(), cells.len()) else {
            return Err(format!(
                "ARCHITECTURE.md: a row of the table of folders does not have three cells: {row}"
            ));
        };
        for folder in quoted(first) {
            let uses = match *last {
                "all" => Uses::All,
                "–" => Uses::These(BTreeSet::new()),
                _ => Uses::These(quoted(last).map(str::to_owned).collect()),
            };
            table.insert(folder.trim_end_matches('/').to_owned(), uses);
        }
    }
    if table.is_empty() { Err("ARCHITECTURE.md has no table of folders".into()) } else { Ok(table) }
}

/// Crates that the invariant about I/O names.
fn pure(architecture: &str) -> Result<BTreeSet<String>, String> {
    let sentence = architecture.lines().find(|line| line.contains(" have no sockets"));
    let sentence = sentence.ok_or("ARCHITECTURE.md no longer says which crates `have no sockets`")?;
    let before = sentence.split(" have no sockets").next().unwrap_or_default();
    Ok(quoted(before).map(str::to_owned).collect())
}

/// Text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Folders of the workspace's members.
fn members(manifest: &str) -> Vec<String> {
    let line = manifest.lines().find(|line| line.starts_with("members")).unwrap_or_default();
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_real_dependencies_count() {
        let text = "[package]\nname = \"x\"\n\n[dependencies]\np4rack-wire.workspace = true\nlibc = \"1\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
        assert_eq!(dependencies(text), set(&["libc", "p4rack-wire"]));
    }

    #[test]
    fn the_table_says_who_uses_whom() {
        let text = "x\n| folder | what | uses |\n|---|---|---|\n| `a/` | A. | – |\n| `b/` | Of `x`. | `a`, `c` (messages) |\n\
                    | `d/`, `e/` | All. | all |\n\n| `f/` | not this one | – |\n";
        let table = table(text).unwrap();
        assert_eq!(table["a"], Uses::These(set(&[])));
        assert_eq!(table["b"], Uses::These(set(&["a", "c"])));
        assert_eq!((&table["d"], &table["e"]), (&Uses::All, &Uses::All));
        assert_eq!(table.len(), 4);
        assert!(super::table("no table").is_err());
    }

    #[test]
    fn an_arrow_too_many_and_one_too_few_are_both_told() {
        let found = differences("x", &set(&["a", "b"]), &set(&["p4rack-b", "p4rack-c", "libc"]));
        assert_eq!(
            found,
            [
                "x uses c, which ARCHITECTURE.md does not say",
                "ARCHITECTURE.md says that x uses a; it doesn't"
            ]
        );
    }

    #[test]
    fn members_and_pure_crates_are_read() {
        assert_eq!(members("[workspace]\nmembers = [\"a\", \"b\"]\nexclude = [\"c\"]\n"), ["a", "b"]);
        assert_eq!(pure("2. `a`, `b` and `c` have no sockets, no `d`").unwrap(), set(&["a", "b", "c"]));
    }

    #[test]
    fn this_workspace_agrees() {
        check(&crate::root()).unwrap();
    }
}
