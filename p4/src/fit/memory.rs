//! Resources of a stage that a logical table takes.

use super::access::Bits;
use super::chip;
use super::tree::{Kind, LogicalTable};
use crate::ir::{InstanceId, InstanceKind, MatchKind, Program, Storage, Table, Unit};
use std::collections::BTreeSet;

/// Parts of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Logical tables.
    pub tables: u32,
    /// Gateways, of which a logical table has one.
    pub gateways: u32,
    /// Blocks of SRAM.
    pub srams: u32,
    /// Blocks of TCAM.
    pub tcams: u32,
    /// Blocks of map RAM.
    pub map_rams: u32,
    /// Stateful ALUs, and those of meters and selectors, which are the same.
    pub meter_alus: u32,
    /// ALUs of counters.
    pub counter_alus: u32,
    /// Units that take hashes to addresses and actions.
    pub hash_units: u32,
    /// Bits of hashes.
    pub hash_bits: u32,
    /// Bytes of exact keys and of hash inputs.
    pub exact_bytes: u32,
    /// Bytes of ternary keys.
    pub ternary_bytes: u32,
}

impl Need {
    /// All resources of a stage.
    pub const STAGE: Need = Need {
        tables: chip::TABLES,
        gateways: chip::TABLES,
        srams: chip::SRAMS,
        tcams: chip::TCAMS,
        map_rams: chip::MAP_RAMS,
        meter_alus: chip::METER_ALUS,
        counter_alus: chip::COUNTER_ALUS,
        hash_units: chip::HASH_UNITS,
        hash_bits: chip::HASH_BITS,
        exact_bytes: chip::EXACT_BYTES,
        ternary_bytes: chip::TERNARY_BYTES,
    };

    /// The parts with their names, in the order of reports.
    pub fn parts(&self) -> [(&'static str, u32); 11] {
        [
            ("tables", self.tables),
            ("gateways", self.gateways),
            ("srams", self.srams),
            ("tcams", self.tcams),
            ("map_rams", self.map_rams),
            ("meter_alus", self.meter_alus),
            ("counter_alus", self.counter_alus),
            ("hash_units", self.hash_units),
            ("hash_bits", self.hash_bits),
            ("exact_bytes", self.exact_bytes),
            ("ternary_bytes", self.ternary_bytes),
        ]
    }

    /// Both together.
    pub fn and(self, other: Need) -> Need {
        Need {
            tables: self.tables + other.tables,
            gateways: self.gateways + other.gateways,
            srams: self.srams + other.srams,
            tcams: self.tcams + other.tcams,
            map_rams: self.map_rams + other.map_rams,
            meter_alus: self.meter_alus + other.meter_alus,
            counter_alus: self.counter_alus + other.counter_alus,
            hash_units: self.hash_units + other.hash_units,
            hash_bits: self.hash_bits + other.hash_bits,
            exact_bytes: self.exact_bytes + other.exact_bytes,
            ternary_bytes: self.ternary_bytes + other.ternary_bytes,
        }
    }

    /// Whether a stage has that much.
    pub fn fits(self) -> bool {
        self.parts().iter().zip(Need::STAGE.parts()).all(|(own, stage)| own.1 <= stage.1)
    }

    /// The first part of which a stage has less.
    pub fn excess(self) -> Option<&'static str> {
        let pairs = self.parts().into_iter().zip(Need::STAGE.parts());
        pairs.into_iter().find(|(own, stage)| own.1 > stage.1).map(|(own, _)| own.0)
    }
}

/// Parts into which a table's entries are divided that an algorithm finds.
const PARTITIONS: u64 = 1024;

fn blocks(amount: u64, each: u64) -> u32 {
    u32::try_from(amount.div_ceil(each.max(1))).unwrap_or(u32::MAX / 16)
}

/// Resources that a node takes with this many entries, apart from objects that it may share.
pub(super) fn need(program: &Program, node: &LogicalTable, entries: u64) -> Need {
    let mut need = Need::default();
    match node.kind {
        Kind::Gateway => {
            need.gateways = 1;
            need.exact_bytes = bytes(&node.key);
        }
        Kind::Action => need.tables = 1,
        Kind::Search(id) => {
            let bits: u64 =
                program.tables[id.0 as usize].keys.iter().map(|key| u64::from(key.ty.width())).sum();
            need.tables = 1;
            need.tcams = blocks(PARTITIONS, chip::TCAM_ROWS) * blocks(bits, chip::TCAM_BITS);
            need.srams = 1;
            need.ternary_bytes = bytes(&node.key);
        }
        Kind::Table(id) => table(program, node, &program.tables[id.0 as usize], entries, &mut need),
    }
    let hashed: u32 = node.ops().map(|op| op.hash_bits).sum();
    need.hash_units += hashed.div_ceil(16);
    need.hash_bits += hashed;
    let matched: Vec<Bits> = node.ops().flat_map(|op| op.matched.iter().copied()).collect();
    need.exact_bytes += bytes(&matched).min(chip::EXACT_BYTES / 2);
    need
}

/// Bytes of these bits, each counted once, if they are packed well.
fn bytes(bits: &[Bits]) -> u32 {
    let mut all = BTreeSet::new();
    for bits in bits {
        all.extend((bits.lo..=bits.hi).map(|bit| (bits.var, bit)));
    }
    u32::try_from(all.len().div_ceil(8)).unwrap_or(u32::MAX / 16)
}

/// Bits of an entry's arguments, at most.
fn argument_bits(program: &Program, table: &Table) -> u64 {
    let of = |action: &crate::ir::TableAction| {
        let params = &program.actions[action.action.0 as usize].params;
        params.iter().map(|param| u64::from(param.ty.width()).next_multiple_of(8)).sum::<u64>()
    };
    table.actions.iter().map(of).max().unwrap_or(0)
}

/// Bits that a match word has beside the key: action, arguments of up to 32 bits or their address.
fn beside_key(program: &Program, table: &Table) -> u64 {
    let actions = table.actions.iter().filter(|action| !action.default_only).count() as u64;
    let choice = u64::from(u64::BITS - actions.saturating_sub(1).leading_zeros());
    let arguments = argument_bits(program, table);
    let own = if table.implementation.is_some() {
        19
    } else if arguments <= 32 {
        arguments
    } else {
        19
    };
    choice + own
}

fn table(program: &Program, node: &LogicalTable, table: &Table, entries: u64, need: &mut Need) {
    need.tables = 1;
    let ternary = table.keys.iter().any(|key| {
        matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Lpm | MatchKind::Optional)
    });
    let width = |key: &crate::ir::Key| match key.kind {
        MatchKind::Selector => 0,
        // A range takes two bits of four for each.
        MatchKind::Range => u64::from(key.ty.width()) * 2,
        _ => u64::from(key.ty.width()),
    };
    let bits: u64 = table.keys.iter().map(width).sum();
    let arguments = argument_bits(program, table);
    let beside = beside_key(program, table);
    if bits == 0 {
        // No entries.
    } else if table.storage != Storage::Any {
        need.exact_bytes += bytes(&node.key);
        need.srams += blocks(entries, chip::ROWS) * blocks(2 * bits + beside, chip::WORD_BITS);
    } else if ternary {
        need.tcams += blocks(entries, chip::TCAM_ROWS) * blocks(bits, chip::TCAM_BITS);
        need.ternary_bytes += bytes(&node.key);
        if beside > 0 {
            let per_word = chip::WORD_BITS / beside.next_power_of_two().clamp(8, 64);
            need.srams += blocks(entries, chip::ROWS * per_word);
        }
    } else {
        need.exact_bytes += bytes(&node.key);
        // The lowest bits of the hash are the word's address.
        let stored = bits.saturating_sub(10) + 4 + beside;
        let per_word = (chip::WORD_BITS / stored.max(1)).min(5);
        let (words, wide) = match per_word {
            0 => (entries, stored.div_ceil(chip::WORD_BITS)),
            per_word => (entries.div_ceil(per_word), 1),
        };
        let ways = blocks(words, chip::ROWS).max(if bits <= 10 { 1 } else { 2 });
        need.srams += ways * u32::try_from(wide).unwrap_or(u32::MAX / 64);
        need.hash_bits += 10 * ways.min(4);
    }
    if arguments > 32 && table.implementation.is_none() {
        let per_word = arguments.next_power_of_two().max(8);
        need.srams += blocks(entries * per_word, chip::ROWS * chip::WORD_BITS);
    }
    for direct in [table.counter, table.meter, table.register].into_iter().flatten() {
        *need = need.and(object(program, direct, Some(entries)));
    }
    if table.idle_timeout {
        need.map_rams += blocks(entries, chip::ROWS * 8);
    }
}

/// Resources that a register, counter, meter or profile takes; `entries` for one that belongs to a
/// table's entries.
pub(super) fn object(program: &Program, instance: InstanceId, entries: Option<u64>) -> Need {
    let mut need = Need::default();
    let bits_of = |elements: u64, bits: u64| blocks(elements * bits, chip::ROWS * chip::WORD_BITS) + 1;
    match &program.instances[instance.0 as usize].kind {
        InstanceKind::Register { size, ty, .. } => {
            need.srams = bits_of(*size, u64::from(ty.width()));
            need.map_rams = need.srams;
            need.meter_alus = 1;
        }
        InstanceKind::DirectRegister { ty, .. } => {
            need.srams = bits_of(entries.unwrap_or(0), u64::from(ty.width()));
            need.map_rams = need.srams;
            need.meter_alus = 1;
        }
        InstanceKind::Counter { size, unit, .. } => counter(*size, *unit, &mut need),
        InstanceKind::DirectCounter { unit, .. } => counter(entries.unwrap_or(0), *unit, &mut need),
        InstanceKind::Meter { size, .. } | InstanceKind::Smoother { size, .. } => meter(*size, &mut need),
        InstanceKind::DirectMeter { .. } | InstanceKind::DirectSmoother { .. } => {
            meter(entries.unwrap_or(0), &mut need);
        }
        // Counted where it is computed.
        InstanceKind::Hash { .. } => {}
        InstanceKind::ActionProfile { size } => need.srams = blocks(size * 32, chip::ROWS * chip::WORD_BITS),
        InstanceKind::ActionSelector { size, .. } => {
            need.srams = blocks(size * 32, chip::ROWS * chip::WORD_BITS) + 2;
            need.map_rams = 2;
            need.meter_alus = 1;
        }
    }
    need
}

fn counter(size: u64, unit: Unit, need: &mut Need) {
    // Words hold two counters of one number, or one of both.
    let per_word = if unit == Unit::Both { 1 } else { 2 };
    need.srams = blocks(size, chip::ROWS * per_word) + 1;
    need.map_rams = need.srams;
    need.counter_alus = 1;
}

fn meter(size: u64, need: &mut Need) {
    need.srams = blocks(size, chip::ROWS) + 1;
    need.map_rams = need.srams;
    need.meter_alus = 1;
}
