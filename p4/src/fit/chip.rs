//! Resources of the chips. The numbers are public: p4lang/p4c, `backends/tofino/bf-p4c/specs` and `bf-asm`,
//! unless a line says otherwise.

use std::fmt;

/// Limits of one generation of the chip. Counts of a stage are shared by ingress and egress.
#[derive(Debug, PartialEq, Eq)]
pub struct Chip {
    /// Its name for compilers.
    pub name: &'static str,
    /// Match-action stages.
    pub stages: usize,
    /// Bits of headers and metadata that actions can reach, and that merely travel with a packet.
    pub phv_bits: u64,
    /// Bits of headers that no table touches, which only the first generation stores apart.
    pub tagalong_bits: u64,
    /// Bytes that the parser of egress may read; `None`: no limit.
    pub egress_parse_bytes: Option<u64>,
    /// Whether a parser that stores into a field again keeps the bits of the value before: it combines both by OR.
    pub parser_ors: bool,
    /// Comparisons of one stateful ALU.
    pub compares: usize,
    /// Words that a stateful ALU gives to the action.
    pub outputs: usize,
    /// Whether a stateful ALU divides.
    pub divides: bool,
    /// Whether tables behind a branch need not wait until all tables within it are placed.
    pub long_branches: bool,
}

/// The first generation.
pub const FIRST: Chip = Chip {
    name: "tofino",
    stages: 12,
    phv_bits: 64 * 8 + 96 * 16 + 64 * 32,
    tagalong_bits: 32 * 8 + 48 * 16 + 32 * 32,
    egress_parse_bytes: Some(160),
    parser_ors: true,
    compares: 2,
    outputs: 1,
    divides: false,
    long_branches: false,
};

/// The second generation.
pub const SECOND: Chip = Chip {
    name: "tofino2",
    stages: 20,
    phv_bits: 80 * 8 + 120 * 16 + 80 * 32,
    tagalong_bits: 0,
    egress_parse_bytes: None,
    parser_ors: false,
    compares: 4,
    outputs: 4,
    divides: true,
    long_branches: true,
};

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Logical tables of a stage, and gateways: each table may have one.
pub const TABLES: u32 = 16;
/// Blocks of SRAM of a stage, each of [`ROWS`] words of [`WORD_BITS`].
pub const SRAMS: u32 = 80;
/// Blocks of TCAM of a stage, each of [`TCAM_ROWS`] words of [`TCAM_BITS`].
pub const TCAMS: u32 = 24;
/// Blocks of map RAM of a stage, which counters, meters and registers need beside SRAM.
pub const MAP_RAMS: u32 = 48;
/// ALUs of a stage that registers, meters and selectors share.
pub const METER_ALUS: u32 = 4;
/// ALUs of a stage for counters.
pub const COUNTER_ALUS: u32 = 4;
/// Units of a stage that take 16 bits of a hash to an address or to an action.
pub const HASH_UNITS: u32 = 6;
/// Bits of a stage's hashes: 8 groups of 52.
pub const HASH_BITS: u32 = 8 * 52;
/// Bytes of exact keys of a stage: 8 groups of 16.
pub const EXACT_BYTES: u32 = 128;
/// Bytes of ternary keys of a stage: 12 groups of 5, and 6 between them.
pub const TERNARY_BYTES: u32 = 66;

/// Words of a block of SRAM.
pub const ROWS: u64 = 1024;
/// Bits of such a word.
pub const WORD_BITS: u64 = 128;
/// Words of a block of TCAM.
pub const TCAM_ROWS: u64 = 512;
/// Bits of such a word.
pub const TCAM_BITS: u64 = 44;

/// Bits of an operation in a stateful ALU.
pub const ALU_BITS: u32 = 32;
/// Bodies that may act on one register.
pub const REGISTER_ACTIONS: usize = 4;
/// Values from the packet that a stateful ALU takes.
pub const ALU_INPUTS: usize = 2;
