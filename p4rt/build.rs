//! Compiles the `.proto` files: no `protoc` to install.

use std::error::Error;
use std::path::PathBuf;

const FILES: [&str; 10] = [
    "google/rpc/code.proto",
    "google/rpc/status.proto",
    "p4/config/v1/p4info.proto",
    "p4/config/v1/p4types.proto",
    "p4/v1/p4data.proto",
    "p4/v1/p4runtime.proto",
    "p4rack/generator/v1/generator.proto",
    "p4rack/telemetry/v1/telemetry.proto",
    "p4rack/trace/v1/trace.proto",
    "stratum/p4_role_config.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let services = std::env::var_os("CARGO_FEATURE_SERVICES").is_some();
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .build_client(services)
        .build_server(services)
        .btree_map(".")
        .emit_rerun_if_changed(false)
        .compile_fds(descriptors)?;
    Ok(())
}
