//! Plain entries, written by the million: key and arguments are passed as the words that the table stores.
//!
//! Most entries consist of key, action and arguments. For these, [`TableLayout`] says where the words of each
//! value go, so a server can fill them in while reading a request. A rejection here carries no reason: the
//! same request through the general calls gives it.

use super::{TableState, hash};
use crate::shape::{KeyShape, PackedKey, ParamShape, Style, TableShape};
use crate::words::ones;
use p4rack_p4::ir::MatchKind;

/// Position of a value's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Width of the value in bits.
    pub width: u32,
    /// First word, counted from the first word of the key or of the arguments; the lowest word comes first.
    pub offset: usize,
    /// Number of words.
    pub limbs: usize,
}

impl FieldLayout {
    /// Writes a big-endian number of any length to the field's words, which are 0 before. Returns false if
    /// there are no bytes or too many bits, or if `words` has no room for the field.
    #[inline]
    pub fn put(&self, words: &mut [u64], bytes: &[u8]) -> bool {
        let Some(words) = words.get_mut(self.offset..self.offset + self.limbs) else { return false };
        if bytes.is_empty() {
            return false;
        }
        if let ([word], 1..=8) = (&mut *words, bytes.len()) {
            *word = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            return *word <= ones(self.width);
        }
        for (at, &byte) in bytes.iter().rev().enumerate().filter(|(_, byte)| **byte != 0) {
            if 8 * (at + 1) - byte.leading_zeros() as usize > self.width as usize {
                return false;
            }
            words[at / 8] |= u64::from(byte) << (8 * (at % 8));
        }
        true
    }

    /// Sets the first `length` bits of the field in a mask; all if `length` is the field's width.
    #[inline]
    pub fn put_prefix(&self, mask: &mut [u64], length: u32) {
        let free = self.width - length.min(self.width);
        for (limb, word) in mask.iter_mut().skip(self.offset).take(self.limbs).enumerate() {
            let below = 64 * limb as u32;
            let all = ones(self.width.saturating_sub(below).min(64));
            *word = all & !ones(free.saturating_sub(below).min(64));
        }
    }

    /// The words of the field.
    #[inline]
    pub fn of<'a>(&self, words: &'a [u64]) -> &'a [u64] {
        words.get(self.offset..self.offset + self.limbs).unwrap_or(&[])
    }
}

/// How a table stores plain entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Fields of the key and their match kinds, in order; never ranges.
    pub keys: Vec<(MatchKind, FieldLayout)>,
    /// Words of a key.
    pub key_words: usize,
    /// Parameters of each action. `None` if entries cannot use the action.
    pub actions: Vec<Option<Vec<FieldLayout>>>,
    /// Words of the arguments, the same for each action.
    pub arg_words: usize,
    /// Whether all fields are matched exactly. Such entries have no mask.
    pub is_exact: bool,
    /// Whether entries have a priority.
    pub needs_priority: bool,
}

/// Kind of update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainVerb {
    /// Adds an entry.
    Insert,
    /// Replaces an entry's action.
    Modify,
    /// Removes an entry; action and arguments are ignored.
    Delete,
}

/// An update in the table's own words, built with its [`TableLayout`]. No value has more bits than its field,
/// and no bit is set outside of the mask.
#[derive(Clone, Copy, Debug)]
pub struct PlainUpdate<'a> {
    /// Kind of update.
    pub verb: PlainVerb,
    /// Words of the key.
    pub value: &'a [u64],
    /// Words of the mask; empty if all fields are matched exactly.
    pub mask: &'a [u64],
    /// Priority or prefix length; 0 if there is neither.
    pub rank: i32,
    /// Position in the table's list of actions.
    pub action: u32,
    /// All words of the arguments. Words that the action does not use are 0.
    pub args: &'a [u64],
}

impl TableShape {
    /// How plain entries are stored. `None` if entries have more properties.
    pub fn layout(&self) -> Option<TableLayout> {
        let has_more = self.entries_const
            || self.keys.is_empty()
            || self.meter.is_some()
            || self.idle_timeout
            || self.masked
            || self.implementation.is_some()
            || self.keys.iter().any(|key| key.kind == MatchKind::Range || key.width == 0);
        if has_more {
            return None;
        }
        let field = |width, offset, limbs| FieldLayout { width, offset, limbs };
        let keys = self.keys.iter().map(|key| (key.kind, field(key.width, key.offset, key.limbs)));
        let actions = self.actions.iter().map(|action| {
            let mut offset = 0;
            let params = action.params.iter().map(|ParamShape { width, .. }| {
                let limbs = (*width as usize).div_ceil(64).max(1);
                offset += limbs;
                field(*width, offset - limbs, limbs)
            });
            (!action.default_only).then(|| params.collect())
        });
        Some(TableLayout {
            keys: keys.collect(),
            key_words: self.words,
            actions: actions.collect(),
            arg_words: self.arg_words(),
            is_exact: self.style == Style::Exact,
            needs_priority: self.style == Style::Ternary,
        })
    }
}

impl TableState {
    /// Applies an update. Returns false without changing anything if it is rejected.
    pub fn write_plain(&mut self, shape: &TableShape, update: &PlainUpdate<'_>) -> bool {
        let fits = update.value.len() == self.words
            && update.mask.len() == if self.style == Style::Exact { 0 } else { self.words }
            && update.args.len() == self.arg_words
            && (update.action as usize) < shape.actions.len();
        if !fits || self.metered || self.aged || !self.element.is_empty() || self.range_words > 0 {
            return false;
        }
        match self.style {
            Style::Exact => self.write_exact(shape, update),
            _ => self.write_masked(shape, update),
        }
    }

    fn write_exact(&mut self, shape: &TableShape, update: &PlainUpdate<'_>) -> bool {
        let PlainUpdate { verb, value, action, args, .. } = *update;
        let hash = hash(value.iter().copied());
        let found = self.groups.first().and_then(|group| group.rows.get(hash, |row| self.key(row) == value));
        match (verb, found) {
            (PlainVerb::Insert, None) if self.used < shape.size => {
                let row = self.place(value, action, args);
                match self.groups.first_mut() {
                    Some(group) => group.rows.insert(hash, row),
                    None => self.link(shape, row, &shape.exactly(value)),
                }
                true
            }
            (PlainVerb::Modify, Some(row)) => self.replace(row, action, args),
            (PlainVerb::Delete, Some(row)) if !self.is_const(row) => {
                if let Some(group) = self.groups.first_mut() {
                    group.rows.remove(hash, row);
                }
                self.release(row);
                true
            }
            _ => false,
        }
    }

    fn write_masked(&mut self, shape: &TableShape, update: &PlainUpdate<'_>) -> bool {
        let PlainUpdate { verb, value, mask, rank, action, args } = *update;
        let key = PackedKey { value: value.to_vec(), mask: mask.to_vec(), ranges: Vec::new(), rank };
        match (verb, self.find(shape, &key)) {
            (PlainVerb::Insert, None) if self.used < shape.size => {
                let row = self.place(value, action, args);
                self.place_mask(row, &key);
                self.link(shape, row, &key);
                true
            }
            (PlainVerb::Modify, Some(row)) => self.replace(row, action, args),
            (PlainVerb::Delete, Some(row)) if !self.is_const(row) => {
                self.unlink(shape, row, &key);
                self.release(row);
                true
            }
            _ => false,
        }
    }

    fn replace(&mut self, row: u32, action: u32, args: &[u64]) -> bool {
        if self.is_const(row) {
            return false;
        }
        self.args[row as usize * self.arg_words..][..self.arg_words].copy_from_slice(args);
        self.actions[row as usize] = action;
        self.answer(row);
        // Had metadata, and has none now.
        self.extras.remove(&row);
        true
    }
}

impl TableShape {
    /// The key of an exact table.
    fn exactly(&self, value: &[u64]) -> PackedKey {
        let words = |key: &KeyShape| {
            let width = key.width;
            (0..key.limbs).map(move |limb| ones(width.saturating_sub(64 * limb as u32).min(64)))
        };
        let mask = self.keys.iter().flat_map(words).collect();
        PackedKey { value: value.to_vec(), mask, ranges: Vec::new(), rank: 0 }
    }
}

/// An entry in words, like [`PlainUpdate`].
#[derive(Clone, Copy, Debug)]
pub struct PlainEntry<'a> {
    /// Words of the key.
    pub value: &'a [u64],
    /// Words of the mask; empty if there is none, or only that of a prefix.
    pub mask: &'a [u64],
    /// Priority or prefix length; 0 if there is neither.
    pub rank: i32,
    /// Position in the table's list of actions.
    pub action: u32,
    /// All words of the arguments.
    pub args: &'a [u64],
}

impl TableState {
    /// Calls `each` with up to `most` entries from a position on. Returns the position after them if there
    /// may be more; `None` if an entry is not plain, or if `each` returns false.
    pub fn read_plain(
        &self,
        from: u32,
        most: usize,
        mut each: impl FnMut(PlainEntry<'_>) -> bool,
    ) -> Option<Option<u32>> {
        let (mut count, mut last) = (0, None);
        for row in self.rows_from(from).take(most) {
            if !self.extras.is_empty() && self.extras.contains_key(&row) {
                return None;
            }
            let mask = match self.style {
                Style::Ternary => &self.masks[row as usize * self.words..][..self.words],
                _ => &[],
            };
            let rank = if self.style == Style::Exact { 0 } else { self.ranks[row as usize] };
            let (action, args) = self.action(row);
            if !each(PlainEntry { value: self.key(row), mask, rank, action, args }) {
                return None;
            }
            (count, last) = (count + 1, Some(row));
        }
        Some(last.filter(|_| count == most).map(|row| row + 1))
    }
}
