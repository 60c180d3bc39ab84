//! TNA, the native architecture of Tofino, and T2NA, that of its second generation.

macro_rules! include_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../include/tna/", $name)))),*]
    };
}

/// Include files: `tna.p4` and `t2na.p4` are for programs, which may also name the others.
pub(super) const INCLUDES: &[(&str, &str)] = include_files![
    "tna.p4",
    "t2na.p4",
    "tofino1_arch.p4",
    "tofino1_base.p4",
    "tofino1_specs.p4",
    "tofino2_arch.p4",
    "tofino2_base.p4",
    "tofino2_register_actions.p4",
    "tofino2_specs.p4",
    "tofino_externs.p4",
    "tofino_ids.p4",
    "tofino_metadata.p4",
    "tofino_values.p4",
];

/// Properties of tables: how they are stored, and what belongs to their entries.
pub(super) const PROPERTIES: &[&str] =
    &["alpm", "atcam", "filters", "idle_timeout", "proxy_hash", "registers", "requires_versioning"];
