//! Architectures for which programs are generated, and what each of them supplies.

use crate::scheme::parts::templates;
use std::str::FromStr;

/// A P4 architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// The architecture of the embedded switch and of BMv2.
    V1model,
}

impl FromStr for Arch {
    type Err = String;
    fn from_str(s: &str) -> Result<Arch, String> {
        match s {
            "v1model" => Ok(Arch::V1model),
            _ => Err(format!("`{s}` is no architecture that programs are generated for; there is v1model")),
        }
    }
}

/// Parts that an architecture supplies.
pub(super) struct Supply {
    /// The template of a whole program.
    pub main: &'static str,
    /// Templates with their names, including the main one.
    pub templates: &'static [(&'static str, &'static str)],
    /// Terms for concepts that all other templates refer to: TOML, one partial per line.
    pub terms: &'static str,
}

impl Arch {
    pub(super) fn supply(self) -> Supply {
        match self {
            Arch::V1model => Supply {
                main: "v1model/main",
                templates: templates!["v1model/main", "v1model/parser", "v1model/ingress", "v1model/egress"],
                terms: include_str!("../../../p4src/v1model/terms.toml"),
            },
        }
    }
}
