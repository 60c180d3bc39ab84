//! The oldest Rust that `rust-version` promises is the one that the tests run on.

use crate::report::Report;
use crate::root;
use std::process::Command;

/// Compares the promise of both workspaces with the compiler at hand.
pub fn check(report: &mut Report) {
    let output = Command::new("rustc").arg("--version").output().map(|output| output.stdout);
    let rustc = String::from_utf8_lossy(&output.unwrap_or_default()).trim().to_owned();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let text = std::fs::read_to_string(root().join(manifest)).unwrap_or_default();
        match promised(&text) {
            None => report.check(manifest, Err(format!("{manifest} has no line `rust-version = \"…\"`"))),
            Some(oldest) if is(&rustc, oldest) => report.check(manifest, Ok(())),
            Some(oldest) => report.skip(
                &format!("oldest Rust of {manifest}"),
                &format!(
                    "needs Rust {oldest}, this is {rustc}, get it by: rustup toolchain install {oldest}"
                ),
            ),
        }
    }
}

fn promised(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

/// Whether `rustc --version` names a patch of this version.
fn is(rustc: &str, version: &str) -> bool {
    rustc
        .split_whitespace()
        .nth(1)
        .and_then(|own| own.strip_prefix(version))
        .is_some_and(|p| p.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_the_promised_version_are_it() {
        assert_eq!(promised("[a]\nrust-version = \"1.95\"\n"), Some("1.95"));
        assert_eq!(promised("rust-version.workspace = true"), None);
        assert!(is("rustc 1.95.0 (59807616e 2026-04-14)", "1.95"));
        for other in ["rustc 1.96.0 (x)", "rustc 1.950.0", ""] {
            assert!(!is(other, "1.95"), "{other}");
        }
    }
}
