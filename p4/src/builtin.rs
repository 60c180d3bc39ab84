//! Include files that are part of the front end.

/// Text of `core.p4` or `v1model.p4`.
pub fn builtin_include(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("../include/core.p4")),
        "v1model.p4" => Some(include_str!("../include/v1model.p4")),
        _ => None,
    }
}
