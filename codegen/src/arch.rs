//! Architectures for which programs are generated.

use std::fmt;
use std::str::FromStr;

/// A P4 architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// The architecture of the embedded switch and of BMv2.
    V1model,
    /// TNA, the architecture of Tofino.
    Tna,
    /// T2NA, the architecture of Tofino 2: TNA with other widths.
    T2na,
}

impl FromStr for Arch {
    type Err = String;
    fn from_str(s: &str) -> Result<Arch, String> {
        Arch::ALL.into_iter().find(|arch| arch.name() == s).ok_or_else(|| {
            let names = Arch::ALL.map(Arch::name).join(", ");
            format!("`{s}` is no architecture that programs are generated for; there are {names}")
        })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Arch {
    /// All architectures.
    pub const ALL: [Arch; 3] = [Arch::V1model, Arch::Tna, Arch::T2na];

    /// The name of its include file, without the ending.
    pub fn name(self) -> &'static str {
        match self {
            Arch::V1model => "v1model",
            Arch::Tna => "tna",
            Arch::T2na => "t2na",
        }
    }

    /// Whether it is an architecture of Tofino.
    pub fn is_tofino(self) -> bool {
        matches!(self, Arch::Tna | Arch::T2na)
    }
}
