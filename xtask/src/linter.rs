//! The compiler of the workspace's own crates in a first run: clippy, so that sources are read once, with less optimisation for
//! tests and benches.
//!
//! A profile optimises a crate and its tests alike. But tests spend their time in the crates, and longer being compiled than
//! running. Benches are only compiled here.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Variable with the path of clippy's driver, which says that this program is to be it.
pub const DRIVER: &str = "P4RACK_CLIPPY_DRIVER";

/// Compiles if cargo calls this program as its compiler: with the compiler's path and arguments. `None`: it does not.
pub fn run() -> Option<ExitCode> {
    let driver = std::env::var_os(DRIVER)?;
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_compiler = |path: &OsString| Path::new(path).file_name().is_some_and(|name| name == "rustc");
    if !args.first().is_some_and(is_compiler) {
        return None;
    }
    let texts: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let level = level(&texts).map(|level| format!("-Copt-level={level}"));
    let error = Command::new(&driver).args(&args).args(level).exec();
    eprintln!("error: {}: {error}", Path::new(&driver).display());
    Some(ExitCode::FAILURE)
}

/// Another level of optimisation than these arguments have, for a test or a bench in files of its own.
fn level(args: &[&str]) -> Option<u8> {
    let source = args.iter().find(|arg| arg.ends_with(".rs"))?;
    let is_in = |folder: &str| Path::new(source).components().any(|part| part.as_os_str() == folder);
    let own = args.iter().rev().find_map(|arg| arg.strip_prefix("opt-level="));
    match own {
        _ if is_in("benches") => Some(0),
        Some("3") if is_in("tests") => Some(1),
        Some("1") if is_in("tests") => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_in_files_of_their_own_are_optimised_less_than_their_crates() {
        let level = |source: &str, own: &str| level(&["rustc", "--test", source, "-C", own]);
        assert_eq!(level("switch/tests/native.rs", "opt-level=3"), Some(1));
        assert_eq!(level("codegen/tests/cowbird_p4/main.rs", "opt-level=1"), Some(0));
        assert_eq!(level("switch/benches/forward.rs", "opt-level=3"), Some(0));
        assert_eq!(level("switch/src/lib.rs", "opt-level=3"), None);
        assert_eq!(level("p4/src/tests.rs", "opt-level=1"), None);
        assert_eq!(level("cli/tests/up.rs", "debuginfo=0"), None);
    }
}
