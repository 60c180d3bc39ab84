//! src/generated/ matches the current proto/ and code generator.
//!
//! It is kept rather than made in each build: the generator is compiled longer than anything that waits for these
//! messages. `cargo xtask bless` writes it again.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

const FILES: [&str; 15] = [
    "bfruntime.proto",
    "google/rpc/code.proto",
    "google/rpc/status.proto",
    "p4/config/v1/p4info.proto",
    "p4/config/v1/p4types.proto",
    "p4/v1/p4data.proto",
    "p4/v1/p4runtime.proto",
    "p4rack/balloon/v1/balloon.proto",
    "p4rack/clio/v1/clio.proto",
    "p4rack/cowbird/v1/cowbird.proto",
    "p4rack/generator/v1/generator.proto",
    "p4rack/roce/v1/roce.proto",
    "p4rack/telemetry/v1/telemetry.proto",
    "p4rack/trace/v1/trace.proto",
    "stratum/p4_role_config.proto",
];

/// Names and contents of a folder's files.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

#[test]
fn generated_code_is_that_of_the_proto_files() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(FILES, [here.join("proto")]).unwrap();
    let made = tempfile::tempdir().unwrap();
    fs::write(made.path().join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors)).unwrap();
    tonic_prost_build::configure()
        .client_mod_attribute(".", "#[cfg(feature = \"services\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"services\")]")
        .btree_map(".")
        .codec_path("crate::codec::StubCodec")
        .emit_rerun_if_changed(false)
        .out_dir(made.path())
        .compile_fds(descriptors)
        .unwrap();
    let kept = here.join("src/generated");
    if env::var_os("P4RACK_BLESS").is_some() {
        for name in files(&kept).keys() {
            fs::remove_file(kept.join(name)).unwrap();
        }
        for (name, content) in files(made.path()) {
            fs::write(kept.join(name), content).unwrap();
        }
    }
    let (made, kept) = (files(made.path()), files(&kept));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&kept), "`cargo xtask bless` makes them anew");
    for (name, content) in &made {
        assert!(kept[name] == *content, "{name} is not what proto/ says: `cargo xtask bless` makes it anew");
    }
}
