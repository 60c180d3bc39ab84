//! Gives the crate the name of the profile that builds it, for reports of measurements.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // target/PROFILE/build/NAME-HASH/out
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    println!("cargo::rustc-env=P4RACK_PROFILE={profile}");
}
