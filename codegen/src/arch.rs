//! Architectures for which programs are generated.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A P4 architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arch {
    /// The architecture of the embedded switch and of BMv2.
    #[default]
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

impl<'de> Deserialize<'de> for Arch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arch, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Arch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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

    /// Name of the folders of templates that change registers in the architecture's way: by statements, or by stateful
    /// ALUs that read and write one cell a pass.
    pub(crate) fn registers(self) -> &'static str {
        if self.is_tofino() { "alu" } else { "registers" }
    }

    /// Bits of the data that a frame carries to its next pass.
    pub(crate) fn pass_bits(self) -> u32 {
        if self == Arch::T2na { 128 } else { 64 }
    }

    /// Ports of a pipe by which what is sent comes back, if no host has them: the numbers below those of pipes.
    pub(crate) fn loop_ports(self) -> &'static [u16] {
        match self {
            Arch::V1model => &[],
            Arch::Tna => &[68, 69, 70, 71],
            Arch::T2na => &[6, 7, 1],
        }
    }

    /// Whether it is an architecture of Tofino.
    pub fn is_tofino(self) -> bool {
        matches!(self, Arch::Tna | Arch::T2na)
    }
}
