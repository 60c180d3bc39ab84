//! Include files that are part of the front end.

/// What a program may be written for.
pub const SUPPORTED_ARCHITECTURES: &str =
    "v1model is supported: `#include <v1model.p4>` and a `main` of `V1Switch`";

/// What to do with a program for another architecture.
pub const PORT_TO_V1MODEL: &str = "give the program v1model's six blocks: parser, checksum verification, ingress, egress, checksum computation, deparser";

/// Whether an include file is known to declare an architecture that is not supported.
pub(crate) fn is_other_architecture(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let known = ["psa.p4", "pna.p4", "tna.p4", "t2na.p4", "ebpf_model.p4", "ubpf_model.p4", "xdp_model.p4"];
    known.contains(&file)
}

/// Text of `core.p4` or `v1model.p4`.
pub fn builtin_include(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("../include/core.p4")),
        "v1model.p4" => Some(include_str!("../include/v1model.p4")),
        _ => None,
    }
}
