//! Match-action tables.
//!
//! A key is a run of words: field after field, low word first. Entries are grouped by mask: an exact table is
//! one group, an LPM table has one group per prefix length. A group is a hash table from masked key to row,
//! behind a [`filter`]. In a ternary table only masks that several entries share have a group, and at most
//! [`MAX_GROUPS`] of them; all other rows are found by [`vectors`]. Rows are stored in flat arrays, so a
//! lookup touches few cache lines and allocates nothing. Entries are rebuilt from rows on demand.

pub(crate) mod direct;
mod entries;
mod filter;
#[cfg(feature = "native")]
pub(crate) mod fixed;
mod index;
mod masks;
mod plain;
mod vectors;

pub use plain::{FieldLayout, PlainEntry, PlainUpdate, PlainVerb, TableLayout};

use crate::error::ControlError;
use crate::meter::Meter;
use crate::objects::{CounterData, Indirect, TableEntry};
use crate::shape::{KeyShape, PackedKey, Style, TableShape};
use crate::smooth::Smoother;
use direct::Direct;
use entries::Extra;
use filter::Filter;
use hashbrown::HashMap;
use index::Index;
use p4rack_p4::ir::{ActionCall, MatchKind, Matcher};
use p4rack_wire::Nanos;
use vectors::Vectors;

/// Maximum groups of a ternary table, because each adds to the cost of every lookup. Tests have few masks.
const MAX_GROUPS: usize = if cfg!(test) { 3 } else { ASKED };
/// Rows of one mask that stay without a group. Tests have few rows.
const FEW: u32 = if cfg!(test) { 2 } else { 16 };
/// Number of groups whose filters are checked together.
const ASKED: usize = 64;
/// Number of counters for rows without a group.
const COUNTS: usize = 1024;
/// Maximum rows for which memory is reserved up front, if the program declares that many. It is only touched
/// when used.
const ROOM: u64 = 1 << 20;
/// Age of a free row.
const NEVER: u64 = u64::MAX;
/// End of a chain.
const END: u32 = u32::MAX;

/// The entries with one mask.
#[derive(Clone, Debug)]
struct Group {
    mask: Vec<u64>,
    /// Upper bound of its rows' ranks.
    rank: i32,
    rows: Index,
    /// `None` for an exact table, which has no other group to search.
    filter: Option<Filter>,
}

impl Group {
    /// Adds a row to the group.
    fn insert(&mut self, masked: u64, row: u32) {
        self.rows.insert(masked, row);
        if let Some(filter) = &mut self.filter {
            filter.insert(masked, self.rows.hashes());
        }
    }

    /// Removes a row. Returns whether it existed.
    fn remove(&mut self, masked: u64, row: u32) -> bool {
        let found = self.rows.remove(masked, row);
        if let Some(filter) = self.filter.as_mut().filter(|_| found) {
            filter.remove(masked);
        }
        found
    }

    /// Hash of a key under the mask.
    #[inline(always)]
    fn masked(&self, key: &[u64]) -> u64 {
        if let ([word], [mask]) = (key, &self.mask[..]) {
            return mix(SEED, word & mask);
        }
        hash(key.iter().zip(&self.mask).map(|(word, mask)| word & mask))
    }

    #[inline(always)]
    fn may_have(&self, key: &[u64]) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_have(self.masked(key)))
    }
}

/// Position of a range field.
#[derive(Clone, Copy, Debug)]
struct RangeSpot {
    offset: usize,
    limbs: usize,
}

/// The action on a miss.
#[derive(Clone, Debug)]
pub(crate) struct DefaultRow {
    pub call: ActionCall,
    pub args: Vec<u64>,
    /// Its reference instead, in a table with an action profile.
    pub indirect: Option<Indirect>,
}

/// Entries of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableState {
    style: Style,
    words: usize,
    arg_words: usize,
    range_words: usize,
    ranges_at: Vec<RangeSpot>,
    /// Groups, largest rank first.
    groups: Vec<Group>,
    /// The rows once more, if keys are short.
    direct: Direct,
    /// Rows of a ternary table that have no group.
    vectors: Vectors,
    /// Number of rows without a group per mask, ranges aside, by hash of the mask. Masks that collide count
    /// as one, which at worst creates a group too many.
    ungrouped: Vec<u32>,
    keys: Vec<u64>,
    args: Vec<u64>,
    actions: Vec<u32>,
    /// Insertion order of each row; [`NEVER`] if the row is free.
    ages: Vec<u64>,
    /// Ranks of the rows; empty for an exact table.
    ranks: Vec<i32>,
    /// Masks of the rows; empty unless the table is ternary.
    masks: Vec<u64>,
    ranges: Vec<u64>,
    /// The row with the same masked key and the next lower rank.
    chain: Vec<u32>,
    /// Properties that few entries have.
    extras: HashMap<u32, Extra>,
    /// The first free row; `actions` holds the one after each.
    free: u32,
    used: u64,
    inserted: u64,
    /// The current action on a miss, if any.
    pub default: Option<DefaultRow>,
    pub default_is_initial: bool,
    counted: bool,
    metered: bool,
    /// Whether the times of hits are recorded.
    pub aged: bool,
    /// Whether meters count bytes rather than packets.
    pub meter_bytes: bool,
    /// Bytes that its meters add to the length of each packet.
    pub meter_adjust_bytes: i32,
    /// Whether counter and meter work where the program calls them.
    on_call: bool,
    /// Direct counters by row. The default entry's comes first, so row `r` is at `r + 1`.
    pub counters: Vec<CounterData>,
    /// Direct meters, in the same order.
    pub meters: Vec<Meter>,
    /// Elements of a direct register, in the same order, and the initial value of each.
    elements: Vec<u64>,
    element: Vec<u64>,
    /// Smoothers, in the same order, and whether they decide on drops.
    pub smoothers: Vec<Smoother>,
    smoother: Option<bool>,
    /// Mask of a key's relevant bits, if it is set at run time; empty if all are relevant.
    key_mask: Vec<u64>,
    /// If nothing of the table can change: the bits that each word of a key can have.
    #[cfg(feature = "native")]
    fixed: Option<Vec<u64>>,
    /// Time of each row's last hit, if hits are recorded.
    pub last_hit: Vec<u64>,
}

#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15;
    (product as u64) ^ ((product >> 64) as u64)
}

const SEED: u64 = 0x2545_F491_4F6C_DD1D;

#[inline(always)]
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(SEED, mix)
}

/// Index of the counter for rows with this mask but no group.
fn count_of(mask: &[u64]) -> usize {
    hash(mask.iter().copied()) as usize % COUNTS
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
            direct: Direct::of(shape),
            vectors: Vectors::new(&shape.keys),
            ungrouped: vec![0; if shape.style == Style::Ternary { COUNTS } else { 0 }],
            keys: Vec::new(),
            args: Vec::new(),
            actions: Vec::new(),
            ages: Vec::new(),
            ranks: Vec::new(),
            masks: Vec::new(),
            ranges: Vec::new(),
            chain: Vec::new(),
            extras: HashMap::new(),
            free: END,
            used: 0,
            inserted: 0,
            default: None,
            default_is_initial: true,
            counted: shape.counter.is_some(),
            metered: shape.meter.is_some(),
            aged: shape.idle_timeout,
            meter_bytes: shape.meter_bytes,
            meter_adjust_bytes: 0,
            on_call: shape.on_call,
            counters: vec![CounterData::default(); usize::from(shape.counter.is_some())],
            meters: vec![Meter::default(); usize::from(shape.meter.is_some())],
            elements: shape.element.clone(),
            element: shape.element.clone(),
            smoothers: vec![Smoother::default(); usize::from(shape.smoother.is_some())],
            smoother: shape.smoother,
            key_mask: Vec::new(),
            #[cfg(feature = "native")]
            fixed: fixed::word_bits(shape),
            last_hit: Vec::new(),
        };
        state.set_default(shape, None)?;
        Ok(state)
    }

    /// Reserves memory for the rows that the program declares, so that insertions move no rows.
    pub fn make_room(&mut self, size: u64) {
        let rows = (size.min(ROOM) as usize).saturating_sub(self.ages.len());
        let ternary = if self.style == Style::Ternary { rows } else { 0 };
        self.keys.reserve_exact(rows * self.words);
        self.args.reserve_exact(rows * self.arg_words);
        self.actions.reserve_exact(rows);
        self.ages.reserve_exact(rows);
        self.ranks.reserve_exact(if self.style == Style::Exact { 0 } else { rows });
        self.masks.reserve_exact(ternary * self.words);
        self.ranges.reserve_exact(ternary * self.range_words);
        self.chain.reserve_exact(ternary);
        self.counters.reserve_exact(if self.counted { rows } else { 0 });
        self.meters.reserve_exact(if self.metered { rows } else { 0 });
        self.elements.reserve_exact(rows * self.element.len());
        self.smoothers.reserve_exact(if self.smoother.is_some() { rows } else { 0 });
        self.last_hit.reserve_exact(if self.aged { rows } else { 0 });
    }

    /// The row that matches a key.
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        if self.style != Style::Exact {
            return self.lookup_masked(key);
        }
        match *key {
            [word] => self.lookup_exact(&[word]),
            _ => self.groups.first()?.rows.get(hash(key.iter().copied()), |row| self.key(row) == key),
        }
    }

    /// The row that matches a key of `N` words in an exact table.
    #[inline(always)]
    pub fn lookup_exact<const N: usize>(&self, key: &[u64; N]) -> Option<u32> {
        // Word by word: the program has just written the key in words, and larger loads would stall on these
        // stores.
        let same = |row| {
            let known = self.keys.get(row as usize * N..).and_then(<[u64]>::first_chunk::<N>);
            known.is_some_and(|known| known.iter().zip(key).fold(0, |differ, (a, b)| differ | a ^ b) == 0)
        };
        self.groups.first()?.rows.get(hash(key.iter().copied()), same)
    }

    #[inline(never)]
    fn lookup_masked(&self, key: &[u64]) -> Option<u32> {
        match self.style {
            Style::Lpm => self.hopeful(key).find_map(|group| self.probe(group, key)),
            _ => self.lookup_ternary(key),
        }
    }

    /// The groups that may contain a key, in order.
    #[inline(always)]
    fn hopeful<'a>(&'a self, key: &'a [u64]) -> impl Iterator<Item = &'a Group> {
        self.groups.chunks(ASKED).flat_map(move |groups| {
            // Checks all filters before branching on any of them.
            let answers =
                groups.iter().rev().fold(0, |bits, group| bits << 1 | u64::from(group.may_have(key)));
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
            std::iter::successors(Some(answers).filter(|bits| *bits != 0), rest)
                .map(|bits| &groups[bits.trailing_zeros() as usize])
        })
    }

    /// The row of a group that matches a key.
    #[inline(always)]
    fn probe(&self, group: &Group, key: &[u64]) -> Option<u32> {
        if let ([word], [mask]) = (key, &group.mask[..]) {
            let masked = word & mask;
            return group.rows.get(mix(SEED, masked), |row| self.keys[row as usize] == masked);
        }
        group.rows.get(group.masked(key), |row| self.equal(row, key, &group.mask))
    }

    fn lookup_ternary(&self, key: &[u64]) -> Option<u32> {
        let mut best: Option<((i32, u64), u32)> = None;
        for group in self.hopeful(key) {
            if best.is_some_and(|((rank, _), _)| rank > group.rank) {
                break;
            }
            if let Some(row) = self.probe(group, key) {
                best = better(best, (self.order(row), row));
            }
        }
        if !self.vectors.is_below(best.map(|((rank, _), _)| rank)) {
            let found = std::cell::Cell::new(best);
            let each = |row| {
                if better(found.get(), (self.order(row), row)) != found.get() && self.within(row, key) {
                    found.set(Some((self.order(row), row)));
                }
                true
            };
            let beaten = |rank| found.get().is_some_and(|((best, _), _)| best > rank);
            self.vectors.candidates(key, each, beaten);
            best = found.get();
        }
        best.map(|(_, row)| row)
    }

    #[inline(always)]
    fn order(&self, row: u32) -> (i32, u64) {
        (self.ranks[row as usize], self.ages[row as usize])
    }

    #[inline(always)]
    fn key(&self, row: u32) -> &[u64] {
        &self.keys[row as usize * self.words..][..self.words]
    }

    fn equal(&self, row: u32, key: &[u64], mask: &[u64]) -> bool {
        self.key(row).iter().zip(key).zip(mask).all(|((stored, word), mask)| *stored == word & mask)
    }

    fn within(&self, row: u32, key: &[u64]) -> bool {
        let mut bounds = self.bounds(row);
        self.ranges_at.iter().all(|spot| {
            let value = &key[spot.offset..][..spot.limbs];
            let (range, rest) = bounds.split_at(2 * spot.limbs);
            let (lo, hi) = range.split_at(spot.limbs);
            bounds = rest;
            lo.iter().rev().le(value.iter().rev()) && value.iter().rev().le(hi.iter().rev())
        })
    }

    fn bounds(&self, row: u32) -> &[u64] {
        &self.ranges[row as usize * self.range_words..][..self.range_words]
    }

    /// Action and arguments of a row.
    #[inline]
    pub fn action(&self, row: u32) -> (u32, &[u64]) {
        let row = row as usize;
        (self.actions[row], &self.args[row * self.arg_words..][..self.arg_words])
    }

    /// Whether a lookup has side effects: on counters, meters or times of hits.
    #[inline]
    pub fn observed(&self) -> bool {
        self.counted || self.metered || self.aged || !self.element.is_empty() || self.smoother.is_some()
    }

    /// Records a hit of a row, or a miss, by a packet of this length. Returns the meter's colour.
    #[inline(never)]
    pub fn observe(&mut self, row: Option<u32>, bytes: u64, now: Nanos) -> Option<u64> {
        if let Some(row) = row
            && self.aged
        {
            self.last_hit[row as usize] = now.0;
        }
        if self.on_call {
            return None;
        }
        if self.counted {
            self.count(row, bytes);
        }
        self.metered.then(|| self.meter(row, bytes, 0, now))
    }

    /// Counts a packet of this length for a row, or for a miss.
    pub fn count(&mut self, row: Option<u32>, bytes: u64) {
        if let Some(counter) = self.counters.get_mut(row.map_or(0, |row| row as usize + 1)) {
            counter.packets += 1;
            counter.bytes += bytes;
        }
    }

    /// The element at a place, 0 for a miss and `r + 1` for row `r`, in a table with a direct register.
    pub fn element(&self, at: usize) -> Option<&[u64]> {
        let words = self.element.len();
        self.elements.get(at * words..(at + 1) * words).filter(|element| !element.is_empty())
    }

    /// The element of a row, or of a miss, in a table with a direct register.
    pub fn element_mut(&mut self, row: Option<u32>) -> &mut [u64] {
        let (words, at) = (self.element.len(), row.map_or(0, |row| row as usize + 1));
        self.elements.get_mut(at * words..(at + 1) * words).unwrap_or_default()
    }

    /// Result of the smoother of a row, or of a miss, for a value.
    pub fn smooth(&mut self, row: Option<u32>, value: u64, now: Nanos, random: impl FnOnce() -> u64) -> u64 {
        let smoother = self.smoothers.get_mut(row.map_or(0, |row| row as usize + 1));
        let drops = self.smoother == Some(true);
        smoother.map_or(0, |smoother| smoother.execute(value, drops, now.0, random))
    }

    /// The colour that the meter of a row, or of a miss, gives a packet of this length that comes with a colour.
    pub fn meter(&mut self, row: Option<u32>, bytes: u64, given: u64, now: Nanos) -> u64 {
        let bytes = bytes.saturating_add_signed(self.meter_adjust_bytes.into());
        let meter = self.meters.get_mut(row.map_or(0, |row| row as usize + 1));
        meter.map_or(given, |meter| meter.execute(bytes, self.meter_bytes, given, now.0))
    }

    /// Position of the group that contains, or would contain, a key.
    fn group(&self, shape: &TableShape, key: &PackedKey) -> Option<usize> {
        if !shape.ranges_are_open(key) {
            return None;
        }
        self.groups.iter().position(|group| group.mask == key.mask)
    }

    /// The row with exactly this key and rank.
    fn find(&self, shape: &TableShape, key: &PackedKey) -> Option<u32> {
        let found = self.group(shape, key).and_then(|at| self.find_in_group(at, key));
        match self.style {
            Style::Ternary => found.or_else(|| self.find_in_vectors(key)),
            _ => found,
        }
    }

    fn find_in_group(&self, at: usize, key: &PackedKey) -> Option<u32> {
        let same = |row| self.key(row) == &key.value[..];
        let mut row = self.groups[at].rows.get(hash(key.value.iter().copied()), same)?;
        if self.style == Style::Ternary {
            while self.ranks[row as usize] != key.rank {
                row = Some(self.chain[row as usize]).filter(|&next| next != END)?;
            }
        }
        Some(row)
    }

    fn find_in_vectors(&self, key: &PackedKey) -> Option<u32> {
        // An entry accepts the lowest key of its own range.
        let mut lowest = key.value.clone();
        let mut bounds = &key.ranges[..];
        for spot in &self.ranges_at {
            lowest[spot.offset..][..spot.limbs].copy_from_slice(&bounds[..spot.limbs]);
            bounds = &bounds[2 * spot.limbs..];
        }
        let mut found = None;
        let each = |row: u32| {
            let at = row as usize;
            let same = self.ranks[at] == key.rank
                && self.key(row) == &key.value[..]
                && self.masks[at * self.words..][..self.words] == key.mask[..]
                && self.bounds(row) == &key.ranges[..];
            if same {
                found = Some(row);
            }
            !same
        };
        self.vectors.candidates(&lowest, each, |_| false);
        found
    }

    /// The row of an entry.
    pub fn row(&self, shape: &TableShape, keys: &[Matcher], priority: i32) -> Result<u32, ControlError> {
        let key = self.packed(shape, keys, priority)?;
        self.find(shape, &key).ok_or_else(|| ControlError::NotFound(shape.describe(keys)))
    }

    /// Adds an entry and returns its row. The program's own entries (`initial`) may be added to a `const`
    /// table.
    pub fn insert(
        &mut self,
        shape: &TableShape,
        entry: TableEntry,
        initial: bool,
    ) -> Result<u32, ControlError> {
        if shape.entries_const && !initial {
            return Err(ControlError::Constant(format!("the set of entries of {}", shape.name)));
        }
        if shape.keys.is_empty() {
            return Err(ControlError::Invalid(format!("{} has no key: set its default entry", shape.name)));
        }
        let key = self.packed(shape, &entry.keys, entry.priority)?;
        let mut args = shape.entry_args(&entry)?;
        if self.find(shape, &key).is_some() {
            return Err(ControlError::AlreadyExists(shape.describe(&entry.keys)));
        }
        if self.is_full(shape) && !initial {
            return Err(ControlError::ResourceExhausted { object: shape.name.clone(), limit: shape.size });
        }
        args.resize(self.arg_words, 0);
        let row = self.place(&key.value, entry.call.action, &args);
        self.place_mask(row, &key);
        self.set_extra(row, entry);
        self.link(shape, row, &key);
        Ok(row)
    }

    /// Whether it takes no more entries.
    pub fn is_full(&self, shape: &TableShape) -> bool {
        self.used >= shape.size
    }

    /// Allocates a row for a key and its action.
    fn place(&mut self, value: &[u64], action: u32, args: &[u64]) -> u32 {
        let row = match self.free {
            END => self.grow(),
            row => row,
        };
        let at = row as usize;
        if row == self.free {
            self.free = self.actions[at];
        }
        self.used += 1;
        self.keys[at * self.words..][..self.words].copy_from_slice(value);
        self.args[at * self.arg_words..][..self.arg_words].copy_from_slice(args);
        self.actions[at] = action;
        self.answer(row);
        self.ages[at] = self.inserted;
        self.inserted += 1;
        if self.counted {
            self.counters[at + 1] = CounterData::default();
        }
        if self.metered {
            self.meters[at + 1] = Meter::default();
        }
        if self.smoother.is_some() {
            self.smoothers[at + 1] = Smoother::default();
        }
        if let Some(element) = self.elements.chunks_exact_mut(self.element.len().max(1)).nth(at + 1) {
            element.copy_from_slice(&self.element);
        }
        row
    }

    /// Stores the mask of keys that are not matched exactly.
    fn place_mask(&mut self, row: u32, key: &PackedKey) {
        let at = row as usize;
        if self.style != Style::Exact {
            self.ranks[at] = key.rank;
        }
        if self.style == Style::Ternary {
            self.masks[at * self.words..][..self.words].copy_from_slice(&key.mask);
            self.ranges[at * self.range_words..][..self.range_words].copy_from_slice(&key.ranges);
            self.chain[at] = END;
        }
    }

    fn grow(&mut self) -> u32 {
        let row = self.ages.len();
        self.ages.push(NEVER);
        self.keys.resize((row + 1) * self.words, 0);
        self.args.resize((row + 1) * self.arg_words, 0);
        self.actions.push(0);
        if self.style != Style::Exact {
            self.ranks.push(0);
        }
        if self.style == Style::Ternary {
            self.masks.resize((row + 1) * self.words, 0);
            self.ranges.resize((row + 1) * self.range_words, 0);
            self.chain.push(END);
        }
        if self.aged {
            self.last_hit.push(0);
        }
        if self.counted {
            self.counters.push(CounterData::default());
        }
        if self.metered {
            self.meters.push(Meter::default());
        }
        if self.smoother.is_some() {
            self.smoothers.push(Smoother::default());
        }
        self.elements.extend_from_slice(&self.element);
        row as u32
    }

    fn link(&mut self, shape: &TableShape, row: u32, key: &PackedKey) {
        let at = match self.group(shape, key) {
            Some(at) => at,
            None if self.style == Style::Ternary && !self.deserves_group(shape, key) => {
                return self.vectors.insert(row, key);
            }
            None => {
                let at = self.groups.partition_point(|group| group.rank >= key.rank);
                let rows =
                    Index::with_room(if self.style == Style::Exact { shape.size.min(ROOM) } else { 0 });
                let filter = (self.style != Style::Exact).then(Filter::new);
                self.groups.insert(at, Group { mask: key.mask.clone(), rank: key.rank, rows, filter });
                at
            }
        };
        let masked = hash(key.value.iter().copied());
        let (keys, words) = (&self.keys, self.words);
        let same = |row: u32| keys[row as usize * words..][..words] == key.value[..];
        let group = &mut self.groups[at];
        match group.rows.get(masked, same) {
            None => group.insert(masked, row),
            // The largest rank comes first; ranks of one masked key differ.
            Some(first) if self.ranks[first as usize] < key.rank => {
                group.remove(masked, first);
                group.insert(masked, row);
                self.chain[row as usize] = first;
            }
            Some(mut before) => {
                while let after = self.chain[before as usize]
                    && after != END
                    && self.ranks[after as usize] > key.rank
                {
                    before = after;
                }
                self.chain[row as usize] = std::mem::replace(&mut self.chain[before as usize], row);
            }
        }
        self.raise(at, key.rank);
    }

    /// Whether a new row of a ternary table creates a group for its mask. Counts it if not.
    fn deserves_group(&mut self, shape: &TableShape, key: &PackedKey) -> bool {
        if !shape.ranges_are_open(key) {
            return false;
        }
        let Some(rows) = self.ungrouped.get_mut(count_of(&key.mask)) else {
            return true;
        };
        let deserves = *rows >= FEW && self.groups.len() < MAX_GROUPS;
        *rows += u32::from(!deserves);
        deserves
    }

    /// Records that a group has a row of this rank, and moves the group forward.
    fn raise(&mut self, at: usize, rank: i32) {
        if rank > self.groups[at].rank {
            self.groups[at].rank = rank;
            let to = self.groups[..at].partition_point(|group| group.rank >= rank);
            self.groups[to..=at].rotate_right(1);
        }
    }

    fn unlink(&mut self, shape: &TableShape, row: u32, key: &PackedKey) {
        match self.group(shape, key) {
            Some(at) if self.find_in_group(at, key) == Some(row) => self.unlink_from_group(at, row, key),
            _ => {
                self.vectors.remove(row, key);
                if shape.ranges_are_open(key)
                    && let Some(rows) = self.ungrouped.get_mut(count_of(&key.mask))
                {
                    *rows = rows.saturating_sub(1);
                }
            }
        }
    }

    fn unlink_from_group(&mut self, at: usize, row: u32, key: &PackedKey) {
        let masked = hash(key.value.iter().copied());
        let group = &mut self.groups[at];
        if group.remove(masked, row) {
            let next = self.chain.get(row as usize).copied().unwrap_or(END);
            if next != END {
                group.insert(masked, next);
            } else if self.style != Style::Exact && group.rows.is_empty() {
                self.groups.remove(at);
            }
            return;
        }
        // The row is within a chain.
        let (keys, words) = (&self.keys, self.words);
        let same = |row: u32| keys[row as usize * words..][..words] == key.value[..];
        let mut before = group.rows.get(masked, same);
        while let Some(at) = before {
            let after = self.chain[at as usize];
            if after == row {
                self.chain[at as usize] = self.chain[row as usize];
                return;
            }
            before = (after != END).then_some(after);
        }
    }

    /// Replaces all of an entry except its key and returns its row. Its counter continues.
    pub fn modify(&mut self, shape: &TableShape, mut entry: TableEntry) -> Result<u32, ControlError> {
        let row = self.row(shape, &entry.keys, entry.priority)?;
        let mut args = shape.entry_args(&entry)?;
        if self.is_const(row) {
            return Err(ControlError::Constant(shape.describe(&entry.keys)));
        }
        args.resize(self.arg_words, 0);
        self.args[row as usize * self.arg_words..][..self.arg_words].copy_from_slice(&args);
        self.actions[row as usize] = entry.call.action;
        self.answer(row);
        entry.is_const = false;
        self.set_extra(row, entry);
        Ok(row)
    }

    /// Removes an entry and returns its former row.
    pub fn delete(
        &mut self,
        shape: &TableShape,
        keys: &[Matcher],
        priority: i32,
    ) -> Result<u32, ControlError> {
        let key = self.packed(shape, keys, priority)?;
        let row = self.find(shape, &key).ok_or_else(|| ControlError::NotFound(shape.describe(keys)))?;
        if self.is_const(row) {
            return Err(ControlError::Constant(shape.describe(keys)));
        }
        self.unlink(shape, row, &key);
        self.release(row);
        Ok(row)
    }

    /// Frees a row that no key leads to any more.
    fn release(&mut self, row: u32) {
        self.ages[row as usize] = NEVER;
        self.direct.remove(&self.keys[row as usize * self.words..][..self.words]);
        self.extras.remove(&row);
        self.actions[row as usize] = self.free;
        self.free = row;
        self.used -= 1;
    }

    /// Changes the default entry; `None` restores the program's.
    pub fn set_default(&mut self, shape: &TableShape, call: Option<ActionCall>) -> Result<(), ControlError> {
        let initial = call.is_none();
        if !initial && shape.default_is_const && call != shape.default {
            return Err(ControlError::Constant(format!("the default entry of {}", shape.name)));
        }
        self.default = match call.or_else(|| shape.default.clone()) {
            Some(call) => Some(DefaultRow { args: shape.args(&call, true)?, call, indirect: None }),
            None => None,
        };
        self.default_is_initial = initial;
        Ok(())
    }

    /// Lets the default entry refer to an action profile.
    pub fn set_default_indirect(
        &mut self,
        shape: &TableShape,
        indirect: Indirect,
    ) -> Result<(), ControlError> {
        if shape.default_is_const {
            return Err(ControlError::Constant(format!("the default entry of {}", shape.name)));
        }
        if shape.implementation.is_none() {
            return Err(ControlError::Invalid(format!("{} has no action profile", shape.name)));
        }
        let call = ActionCall { action: 0, args: Vec::new() };
        self.default = Some(DefaultRow { call, args: Vec::new(), indirect: Some(indirect) });
        self.default_is_initial = false;
        Ok(())
    }
}

/// The better of two rows, by their order.
#[inline(always)]
fn better(best: Option<((i32, u64), u32)>, other: ((i32, u64), u32)) -> Option<((i32, u64), u32)> {
    match best {
        Some(((rank, age), _)) if rank > other.0.0 || (rank == other.0.0 && age < other.0.1) => best,
        _ => Some(other),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
