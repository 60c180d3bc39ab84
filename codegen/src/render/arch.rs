//! The architectures that programs are generated for, and what each supplies.

use crate::scheme::parts::templates;
use std::str::FromStr;

/// P4 architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// The embedded switch's and BMv2's.
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

/// What an architecture supplies.
pub(super) struct Supply {
    /// The template of a whole program.
    pub main: &'static str,
    /// Templates with their names, the one above among them.
    pub templates: &'static [(&'static str, &'static str)],
    /// What it calls what all other templates speak of: TOML, a partial a line.
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
