//! Match-action tables.
//!
//! A key is a run of words, one field after the other, low word first. Entries are grouped by mask (an
//! exact table is one group, an LPM table has one a prefix length); a group is a hash table from
//! masked key to row. Range fields have mask 0 and are compared row by row. Rows are kept in flat
//! arrays, so that a look-up touches few cache lines and allocates nothing.

use crate::error::ControlError;
use crate::meter::Meter;
use crate::objects::{CounterData, TableEntry};
use crate::shape::{KeyShape, PackedKey, Style, TableShape};
use hashbrown::HashTable;
use p4rack_p4::ir::{ActionCall, MatchKind, Matcher};

/// Entries with one mask.
#[derive(Clone, Debug)]
struct Group {
    mask: Vec<u64>,
    /// The largest rank of its rows.
    rank: i32,
    rows: HashTable<u32>,
}

/// A range field's place.
#[derive(Clone, Copy, Debug)]
struct RangeSpot {
    offset: usize,
    limbs: usize,
}

/// What a miss does.
#[derive(Clone, Debug)]
pub(crate) struct DefaultRow {
    pub call: ActionCall,
    pub args: Vec<u64>,
}

/// A row beside what the look-up reads.
#[derive(Clone, Debug)]
struct Row {
    entry: TableEntry,
    key: PackedKey,
}

/// A table's entries.
#[derive(Clone, Debug)]
pub(crate) struct TableState {
    style: Style,
    words: usize,
    arg_words: usize,
    range_words: usize,
    ranges_at: Vec<RangeSpot>,
    groups: Vec<Group>,
    keys: Vec<u64>,
    ranges: Vec<u64>,
    args: Vec<u64>,
    actions: Vec<u32>,
    /// Rank and age.
    order: Vec<(i32, u64)>,
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
    inserted: u64,
    /// The default entry's.
    pub default: Option<DefaultRow>,
    pub default_is_initial: bool,
    counted: bool,
    metered: bool,
    aged: bool,
    /// Whether meters count bytes, not packets.
    pub meter_bytes: bool,
    /// By row; the default entry's comes first, so row `r` is at `r + 1`.
    pub counters: Vec<CounterData>,
    /// Likewise.
    pub meters: Vec<Meter>,
    /// When each row was hit last.
    pub last_hit: Vec<u64>,
}

fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15;
    (product as u64) ^ ((product >> 64) as u64)
}

const SEED: u64 = 0x2545_F491_4F6C_DD1D;

fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(SEED, mix)
}

impl TableState {
    /// An empty table with the program's default action.
    pub fn new(shape: &TableShape) -> Result<TableState, ControlError> {
        let spot = |key: &KeyShape| RangeSpot { offset: key.offset, limbs: key.limbs };
        let ranges_at: Vec<RangeSpot> =
            shape.keys.iter().filter(|key| key.kind == MatchKind::Range).map(spot).collect();
        let mut state = TableState {
            style: shape.style,
            words: shape.words,
            arg_words: shape.arg_words(),
            range_words: ranges_at.iter().map(|spot| 2 * spot.limbs).sum(),
            ranges_at,
            groups: Vec::new(),
            keys: Vec::new(),
            ranges: Vec::new(),
            args: Vec::new(),
            actions: Vec::new(),
            order: Vec::new(),
            rows: Vec::new(),
            free: Vec::new(),
            inserted: 0,
            default: None,
            default_is_initial: true,
            counted: shape.counter.is_some(),
            metered: shape.meter.is_some(),
            aged: shape.idle_timeout,
            meter_bytes: shape.meter_bytes,
            counters: vec![CounterData::default(); usize::from(shape.counter.is_some())],
            meters: vec![Meter::default(); usize::from(shape.meter.is_some())],
            last_hit: Vec::new(),
        };
        state.set_default(shape, None)?;
        Ok(state)
    }

    /// The row that matches.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        match self.style {
            Style::Exact => {
                let group = self.groups.first()?;
                if let [word] = *key {
                    return group.rows.find(mix(SEED, word), |&row| self.keys[row as usize] == word).copied();
                }
                let found = group.rows.find(hash(key.iter().copied()), |&row| self.key(row) == key);
                found.copied()
            }
            Style::Lpm => self.groups.iter().find_map(|group| {
                let masked = hash(key.iter().zip(&group.mask).map(|(word, mask)| word & mask));
                group.rows.find(masked, |&row| self.equal(row, key, &group.mask)).copied()
            }),
            Style::Ternary => self.lookup_ternary(key),
        }
    }

    fn lookup_ternary(&self, key: &[u64]) -> Option<u32> {
        let mut best: Option<((i32, u64), u32)> = None;
        for group in &self.groups {
            if best.is_some_and(|((rank, _), _)| rank > group.rank) {
                break;
            }
            let masked = hash(key.iter().zip(&group.mask).map(|(word, mask)| word & mask));
            for &row in group.rows.iter_hash(masked) {
                let (rank, age) = self.order[row as usize];
                let better =
                    best.is_none_or(|((other, older), _)| rank > other || (rank == other && age < older));
                if better && self.equal(row, key, &group.mask) && self.within(row, key) {
                    best = Some(((rank, age), row));
                }
            }
        }
        best.map(|(_, row)| row)
    }

    fn key(&self, row: u32) -> &[u64] {
        &self.keys[row as usize * self.words..][..self.words]
    }

    fn equal(&self, row: u32, key: &[u64], mask: &[u64]) -> bool {
        self.key(row).iter().zip(key).zip(mask).all(|((stored, word), mask)| *stored == word & mask)
    }

    fn within(&self, row: u32, key: &[u64]) -> bool {
        let mut bounds = &self.ranges[row as usize * self.range_words..][..self.range_words];
        self.ranges_at.iter().all(|spot| {
            let value = &key[spot.offset..][..spot.limbs];
            let (range, rest) = bounds.split_at(2 * spot.limbs);
            let (lo, hi) = range.split_at(spot.limbs);
            bounds = rest;
            lo.iter().rev().le(value.iter().rev()) && value.iter().rev().le(hi.iter().rev())
        })
    }

    /// Action and arguments of a row.
    #[inline]
    pub fn action(&self, row: u32) -> (u32, &[u64]) {
        let row = row as usize;
        (self.actions[row], &self.args[row * self.arg_words..][..self.arg_words])
    }

    /// Whether rows have counters.
    #[inline]
    pub fn counted(&self) -> bool {
        self.counted
    }

    /// Whether rows have meters.
    #[inline]
    pub fn metered(&self) -> bool {
        self.metered
    }

    /// Whether hits are dated.
    #[inline]
    pub fn aged(&self) -> bool {
        self.aged
    }

    fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// The row with exactly this key and rank.
    fn find(&self, key: &PackedKey) -> Option<u32> {
        let group = self.groups.iter().find(|group| group.mask == key.mask)?;
        let same = |row: u32| self.rows[row as usize].as_ref().is_some_and(|found| found.key == *key);
        group.rows.find(hash(key.value.iter().copied()), |&row| same(row)).copied()
    }

    /// The row of an entry.
    pub fn row(&self, shape: &TableShape, keys: &[Matcher], priority: i32) -> Result<u32, ControlError> {
        let key = shape.pack(keys, priority)?;
        self.find(&key).ok_or_else(|| ControlError::NotFound(shape.describe(keys)))
    }

    /// An entry as it was given.
    pub fn entry(&self, row: u32) -> Option<&TableEntry> {
        self.rows.get(row as usize)?.as_ref().map(|row| &row.entry)
    }

    /// All rows, the oldest first.
    pub fn rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> =
            (0..self.rows.len() as u32).filter(|&row| self.entry(row).is_some()).collect();
        rows.sort_by_key(|&row| self.order[row as usize].1);
        rows
    }

    /// Adds an entry; the program's own (`initial`) need not heed `const`.
    pub fn insert(
        &mut self,
        shape: &TableShape,
        entry: TableEntry,
        initial: bool,
    ) -> Result<(), ControlError> {
        if shape.entries_const && !initial {
            return Err(ControlError::Constant(format!("the set of entries of {}", shape.name)));
        }
        if shape.keys.is_empty() {
            return Err(ControlError::Invalid(format!("{} has no key: set its default entry", shape.name)));
        }
        let key = shape.pack(&entry.keys, entry.priority)?;
        let mut args = shape.entry_args(&entry)?;
        if self.find(&key).is_some() {
            return Err(ControlError::AlreadyExists(shape.describe(&entry.keys)));
        }
        if self.len() as u64 >= shape.size && !initial {
            return Err(ControlError::ResourceExhausted { object: shape.name.clone(), limit: shape.size });
        }
        args.resize(self.arg_words, 0);
        let row = self.free.pop().unwrap_or_else(|| self.grow());
        let at = row as usize;
        self.keys[at * self.words..][..self.words].copy_from_slice(&key.value);
        self.ranges[at * self.range_words..][..self.range_words].copy_from_slice(&key.ranges);
        self.args[at * self.arg_words..][..self.arg_words].copy_from_slice(&args);
        self.actions[at] = entry.call.action;
        self.order[at] = (key.rank, self.inserted);
        self.inserted += 1;
        if self.counted {
            self.counters[at + 1] = CounterData::default();
        }
        if self.metered {
            self.meters[at + 1] = Meter::default();
        }
        self.link(row, &key);
        self.rows[at] = Some(Row { entry, key });
        Ok(())
    }

    fn grow(&mut self) -> u32 {
        let row = self.rows.len();
        self.rows.push(None);
        self.keys.resize((row + 1) * self.words, 0);
        self.ranges.resize((row + 1) * self.range_words, 0);
        self.args.resize((row + 1) * self.arg_words, 0);
        self.actions.push(0);
        self.order.push((0, 0));
        self.last_hit.push(0);
        if self.counted {
            self.counters.push(CounterData::default());
        }
        if self.metered {
            self.meters.push(Meter::default());
        }
        row as u32
    }

    fn link(&mut self, row: u32, key: &PackedKey) {
        let at = match self.groups.iter().position(|group| group.mask == key.mask) {
            Some(at) => at,
            None => {
                let rows = HashTable::new();
                self.groups.push(Group { mask: key.mask.clone(), rank: key.rank, rows });
                self.groups.len() - 1
            }
        };
        let (keys, words) = (&self.keys, self.words);
        let rehash = |&row: &u32| hash(keys[row as usize * words..][..words].iter().copied());
        let group = &mut self.groups[at];
        group.rank = group.rank.max(key.rank);
        group.rows.insert_unique(hash(key.value.iter().copied()), row, rehash);
        self.sort();
    }

    fn sort(&mut self) {
        if !self.groups.is_sorted_by_key(|group| -i64::from(group.rank)) {
            self.groups.sort_by_key(|group| -i64::from(group.rank));
        }
    }

    /// Replaces action, arguments and metadata of an entry; its counter goes on.
    pub fn modify(&mut self, shape: &TableShape, mut entry: TableEntry) -> Result<(), ControlError> {
        let row = self.row(shape, &entry.keys, entry.priority)? as usize;
        let mut args = shape.entry_args(&entry)?;
        let Some(stored) = &mut self.rows[row] else {
            return Err(ControlError::NotFound(shape.describe(&entry.keys)));
        };
        if stored.entry.is_const {
            return Err(ControlError::Constant(shape.describe(&entry.keys)));
        }
        args.resize(self.arg_words, 0);
        self.args[row * self.arg_words..][..self.arg_words].copy_from_slice(&args);
        self.actions[row] = entry.call.action;
        entry.is_const = false;
        stored.entry = entry;
        Ok(())
    }

    /// Removes an entry.
    pub fn delete(
        &mut self,
        shape: &TableShape,
        keys: &[Matcher],
        priority: i32,
    ) -> Result<(), ControlError> {
        let row = self.row(shape, keys, priority)?;
        if self.entry(row).is_some_and(|entry| entry.is_const) {
            return Err(ControlError::Constant(shape.describe(keys)));
        }
        let Some(Row { key, .. }) = self.rows[row as usize].take() else {
            return Err(ControlError::NotFound(shape.describe(keys)));
        };
        if let Some(at) = self.groups.iter().position(|group| group.mask == key.mask) {
            let group = &mut self.groups[at];
            if let Ok(found) = group.rows.find_entry(hash(key.value.iter().copied()), |&found| found == row) {
                found.remove();
            }
            if group.rows.is_empty() {
                self.groups.remove(at);
            } else if self.style == Style::Ternary && group.rank == key.rank {
                let order = &self.order;
                group.rank = group.rows.iter().map(|&row| order[row as usize].0).max().unwrap_or(0);
                self.sort();
            }
        }
        self.free.push(row);
        Ok(())
    }

    /// Changes the default entry; `None` is the program's.
    pub fn set_default(&mut self, shape: &TableShape, call: Option<ActionCall>) -> Result<(), ControlError> {
        let initial = call.is_none();
        if !initial && shape.default_is_const && call != shape.default {
            return Err(ControlError::Constant(format!("the default entry of {}", shape.name)));
        }
        self.default = match call.or_else(|| shape.default.clone()) {
            Some(call) => Some(DefaultRow { args: shape.args(&call, true)?, call }),
            None => None,
        };
        self.default_is_initial = initial;
        Ok(())
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
