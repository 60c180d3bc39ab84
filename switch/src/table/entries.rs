//! Rebuilds entries, as the control plane wrote them, from rows.

use super::{NEVER, TableState};
use crate::objects::{Indirect, TableEntry};
use crate::shape::{KeyShape, ParamShape, Style, TableShape};
use crate::words::number;
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, MatchKind, Matcher};

/// Properties of an entry besides key and action.
#[derive(Clone, Debug)]
pub(super) struct Extra {
    is_const: bool,
    metadata: Vec<u8>,
    idle_timeout_ns: u64,
    indirect: Option<Indirect>,
}

impl TableState {
    /// Stores the properties of an entry besides key and action.
    pub(super) fn set_extra(&mut self, row: u32, entry: TableEntry) {
        let TableEntry { is_const, metadata, idle_timeout_ns, indirect, .. } = entry;
        if is_const || idle_timeout_ns != 0 || !metadata.is_empty() || indirect.is_some() {
            self.extras.insert(row, Extra { is_const, metadata, idle_timeout_ns, indirect });
        } else {
            self.extras.remove(&row);
        }
    }

    /// Whether an entry is one of the program's `const` entries.
    pub(super) fn is_const(&self, row: u32) -> bool {
        self.extras.get(&row).is_some_and(|extra| extra.is_const)
    }

    /// Idle timeout of a row, if it has one.
    pub fn idle_timeout_ns(&self, row: u32) -> Option<u64> {
        self.extras.get(&row).map(|extra| extra.idle_timeout_ns).filter(|&timeout| timeout != 0)
    }

    /// Reference of a row of a table with an action profile.
    pub fn indirect(&self, row: u32) -> Option<&Indirect> {
        self.extras.get(&row)?.indirect.as_ref()
    }

    /// Number of a row's entry among all that were inserted, from 0.
    pub fn age(&self, row: u32) -> u64 {
        self.ages[row as usize]
    }

    /// Rows in use from `from` on, in no particular order.
    pub fn rows_from(&self, from: u32) -> impl Iterator<Item = u32> {
        (from..self.ages.len() as u32).filter(|&row| self.ages[row as usize] != NEVER)
    }

    /// All rows, oldest first.
    pub fn rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = self.rows_from(0).collect();
        rows.sort_unstable_by_key(|&row| self.ages[row as usize]);
        rows
    }

    /// An entry as it was written.
    pub fn entry(&self, shape: &TableShape, row: u32) -> Option<TableEntry> {
        if self.ages.get(row as usize).is_none_or(|&age| age == NEVER) {
            return None;
        }
        let mut ranges = if self.style == Style::Ternary { self.bounds(row) } else { &[] };
        let mut matcher = |key: &KeyShape| {
            let value = || number(&self.key(row)[key.offset..][..key.limbs]);
            if key.kind == MatchKind::Range {
                let (bounds, rest) = ranges.split_at(2 * key.limbs);
                ranges = rest;
                return match key.is_open(bounds) {
                    true => Matcher::Any,
                    false => {
                        Matcher::Range { lo: number(&bounds[..key.limbs]), hi: number(&bounds[key.limbs..]) }
                    }
                };
            }
            let mask = self.mask(row, key);
            match key.kind {
                MatchKind::Exact => Matcher::Exact(value()),
                _ if mask == BigUint::ZERO => Matcher::Any,
                MatchKind::Optional => Matcher::Exact(value()),
                _ => Matcher::Mask { value: value(), mask },
            }
        };
        let keys = shape.keys.iter().map(&mut matcher).collect();
        let (action, words) = self.action(row);
        let extra = self.extras.get(&row);
        Some(TableEntry {
            priority: if self.style == Style::Ternary { self.ranks[row as usize] } else { 0 },
            is_const: self.is_const(row),
            metadata: extra.map_or_else(Vec::new, |extra| extra.metadata.clone()),
            idle_timeout_ns: extra.map_or(0, |extra| extra.idle_timeout_ns),
            ..match self.indirect(row) {
                Some(indirect) => TableEntry::indirect(keys, indirect.clone()),
                None => TableEntry::new(keys, call(shape, action, words)),
            }
        })
    }

    /// The mask of a field.
    fn mask(&self, row: u32, key: &KeyShape) -> BigUint {
        match (self.style, key.kind) {
            (Style::Ternary, _) => number(&self.masks[row as usize * self.words + key.offset..][..key.limbs]),
            (_, MatchKind::Lpm) => {
                let free = key.width - (self.ranks[row as usize] as u32).min(key.width);
                ((BigUint::from(1u8) << (key.width - free)) - 1u8) << free
            }
            _ => BigUint::ZERO,
        }
    }
}

fn call(shape: &TableShape, action: u32, words: &[u64]) -> ActionCall {
    let mut from = 0;
    let mut args = Vec::new();
    for ParamShape { width, .. } in
        shape.actions.get(action as usize).into_iter().flat_map(|action| &action.params)
    {
        let limbs = (*width as usize).div_ceil(64).max(1);
        args.push(number(&words[from..][..limbs]));
        from += limbs;
    }
    ActionCall { action, args }
}
