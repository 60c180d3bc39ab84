//! Rows that no controller can change, for machine code that compares keys itself.

use super::{NEVER, TableState};
use crate::shape::{KeyShape, Style, TableShape};
use crate::words::ones;
use p4rack_p4::ir::MatchKind;
use std::cmp::Reverse;

/// Maximum rows that are compared one after the other.
const MAX_ROWS: u64 = 64;

/// Condition of a row on a word of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    /// Position in the key.
    pub word: usize,
    /// Bits that count; `u64::MAX` if all bits that the word can have do.
    pub mask: u64,
    pub value: u64,
}

/// A row of a table that no controller can change.
#[derive(Debug)]
pub(crate) struct FixedRow<'a> {
    /// All of its conditions, by position.
    pub tests: Vec<Test>,
    /// Place of its action in the table's list.
    pub action: u32,
    /// Arguments, from the action's own on.
    pub args: &'a [u64],
}

/// The bits that each word of the key can have, if entries and default action of the table are constants, and are found by
/// comparing bits.
pub(super) fn word_bits(shape: &TableShape) -> Option<Vec<u64>> {
    let compared = |key: &KeyShape| matches!(key.kind, MatchKind::Exact | MatchKind::Ternary);
    let fixed = shape.entries_const
        && shape.default_is_const
        && shape.implementation.is_none()
        && !shape.masked
        && shape.style != Style::Lpm
        && shape.keys.iter().all(compared);
    let bits = |key: &KeyShape| {
        let width = key.width;
        (0..key.limbs as u32).map(move |limb| ones((width - 64 * limb).min(64)))
    };
    fixed.then(|| shape.keys.iter().flat_map(bits).collect())
}

impl TableState {
    /// Words of the key, if [`TableState::lookup_exact`] is the complete lookup.
    pub fn plain_words(&self) -> Option<usize> {
        (self.style == Style::Exact && !self.observed()).then_some(self.words)
    }

    /// The rows, highest precedence first, of a table that no controller can change, and whose look-ups leave no trace.
    pub fn fixed_rows(&self) -> Option<Vec<FixedRow<'_>>> {
        let bits = self.fixed.as_ref().filter(|_| !self.observed() && self.used <= MAX_ROWS)?;
        let used = |row: &u32| self.ages[*row as usize] != NEVER;
        let mut rows: Vec<u32> = (0..self.ages.len() as u32).filter(used).collect();
        if self.style == Style::Ternary {
            rows.sort_by_key(|row| (Reverse(self.ranks[*row as usize]), self.ages[*row as usize]));
        }
        let fixed = |row: u32| {
            let masks = self.masks.get(row as usize * self.words..).filter(|_| self.style == Style::Ternary);
            let test = |(word, value): (usize, &u64)| {
                let mask = masks.map_or(bits[word], |masks| masks[word]);
                let mask = if mask == bits[word] { u64::MAX } else { mask };
                Test { word, mask, value: *value }
            };
            let tests = self.key(row).iter().enumerate().map(test).filter(|test| test.mask != 0).collect();
            let (action, args) = self.call(row);
            FixedRow { tests, action, args }
        };
        Some(rows.into_iter().map(fixed).collect())
    }
}
