//! Which crate may use which: the table of ARCHITECTURE.md, kept by a check.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Crate and what it may depend on inside the workspace.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("p4rt", &[]),
    ("fabric", &["wire"]),
    ("p4", &["p4rt"]),
    ("switch", &["p4", "wire"]),
    ("stf", &["p4", "switch", "wire"]),
    ("netdev", &["wire"]),
    ("switchd", &["netdev", "p4", "p4rt", "switch", "wire"]),
    ("codegen", &["p4", "p4rt", "wire"]),
    ("hosts", &["fabric", "netdev", "wire"]),
    ("ctrl", &["codegen", "p4rt", "wire"]),
    ("lab", &["codegen", "ctrl", "hosts", "netdev", "wire"]),
    ("conformance", &["p4", "p4rt", "stf", "switch", "wire"]),
    ("sim", &["codegen", "fabric", "p4", "p4rt", "switch", "wire"]),
    ("xtask", &[]),
];

/// Crates without clock, sockets, threads: nothing of these among their dependencies.
const PURE: &[&str] = &["wire", "fabric", "p4", "switch", "stf", "sim"];
const IMPURE_DEPENDENCIES: &[&str] = &["tokio", "tonic", "libc", "rand", "socket2", "nix"];

/// Every crate's manifest against the table.
pub fn check(root: &Path) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, allowed) in ARROWS {
        let path = root.join(name).join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let dependencies = dependencies(&text);
        for dependency in &dependencies {
            if let Some(target) = dependency.strip_prefix("p4rack-")
                && !allowed.contains(&target)
            {
                wrong.push(format!("{name} uses {target}, which ARCHITECTURE.md does not allow"));
            }
            if PURE.contains(name) && IMPURE_DEPENDENCIES.contains(&dependency.as_str()) {
                wrong.push(format!("{name} has no I/O, yet depends on {dependency}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
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
    use super::dependencies;

    #[test]
    fn only_real_dependencies_count() {
        let text = "[package]\nname = \"x\"\n\n[dependencies]\np4rack-wire.workspace = true\nlibc = \"1\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
        let found: Vec<String> = dependencies(text).into_iter().collect();
        assert_eq!(found, ["libc", "p4rack-wire"]);
    }
}
