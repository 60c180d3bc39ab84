//! The architectures' supplies to their programs.

use crate::arch::Arch;
use crate::scheme::parts::templates;

/// Parts that an architecture supplies.
pub(super) struct Supply {
    /// The template of a whole program.
    pub main: &'static str,
    /// The template of a declared register.
    pub register: &'static str,
    /// Templates with their names, including the main one.
    pub templates: &'static [(&'static str, &'static str)],
    /// Terms for concepts that all other templates refer to: TOML, one partial per line.
    pub terms: &'static str,
}

/// The parts of `arch`.
pub(super) fn supply(arch: Arch) -> Supply {
    match arch {
        Arch::V1model => Supply {
            main: "v1model/main",
            register: "v1model/register",
            templates: templates![
                "v1model/main",
                "v1model/register",
                "v1model/parser",
                "v1model/ingress",
                "v1model/best_effort",
                "v1model/egress"
            ],
            terms: include_str!("../../../p4src/v1model/terms.toml"),
        },
        Arch::Tna | Arch::T2na => Supply {
            main: "tna/main",
            register: "tna/register",
            templates: templates![
                "tna/main",
                "tna/register",
                "tna/came",
                "tna/ingress_parser",
                "tna/ingress",
                "tna/egress_parser",
                "tna/egress"
            ],
            terms: include_str!("../../../p4src/tna/terms.toml"),
        },
    }
}
