//! Include files that are part of the front end.

/// Whether an include file is known to declare an architecture that is not supported.
pub(crate) fn is_other_architecture(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let known = ["psa.p4", "pna.p4", "ebpf_model.p4", "ubpf_model.p4", "xdp_model.p4"];
    known.contains(&file)
}

/// Text of core.p4 or of an architecture's include file.
pub fn builtin_include(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("../include/core.p4")),
        name => crate::arch::include(name),
    }
}
