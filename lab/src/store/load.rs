//! The work of a fixed number of operations.

use super::fields::Fields;
use p4rack_codegen::rack::Mix;

/// The work: all records are written once, in any order, and then used.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of records.
    pub records: u32,
    /// Fields of a record, at least 1.
    pub fields: u32,
    /// Bytes of a field, at least 8.
    pub field_bytes: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// How many of them.
    pub operations: u64,
    /// How many may be under way.
    pub depth: usize,
    /// Seed of keys, operations and values.
    pub seed: u64,
}

impl Load {
    /// Bytes of all fields of a record.
    pub fn record_bytes(&self) -> u64 {
        u64::from(self.fields) * u64::from(self.field_bytes)
    }

    pub(super) fn fields(&self) -> Fields {
        Fields::new(self.fields, self.field_bytes as usize, self.seed)
    }
}
