//! Rows of an exact table by its key itself, which has few bits: most tables that replace arithmetic have such keys.

#[cfg(feature = "native")]
use super::TableState;
use crate::shape::{Style, TableShape};

/// Maximum bits of a key.
const MAX_BITS: u32 = 16;

/// Rows by key.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// Bits of each field of the key.
    widths: Vec<u32>,
    /// `row + 1`, or 0, up to the largest key that ever had an entry.
    rows: Vec<u32>,
}

impl Direct {
    /// For a table whose keys are short, and matched exactly.
    pub fn of(shape: &TableShape) -> Option<Direct> {
        let widths: Vec<u32> = shape.keys.iter().map(|key| key.width).collect();
        let bits = widths.iter().fold(0u32, |bits, width| bits.saturating_add(*width));
        let fits = shape.style == Style::Exact && (1..=MAX_BITS).contains(&bits);
        fits.then_some(Direct { widths, rows: Vec::new() })
    }

    fn place(&self, key: &[u64]) -> usize {
        key.iter().zip(&self.widths).fold(0, |at, (word, width)| at << width | *word as usize)
    }

    /// The row of a key whose fields are adjacent.
    #[cfg(feature = "native")]
    #[inline(always)]
    pub fn get(&self, key: u64) -> Option<u32> {
        self.rows.get(key as usize)?.checked_sub(1)
    }

    /// Adds a row.
    pub fn insert(&mut self, key: &[u64], row: u32) {
        let at = self.place(key);
        if at >= self.rows.len() {
            self.rows.resize(at + 1, 0);
        }
        self.rows[at] = row + 1;
    }

    /// Removes the row of a key.
    pub fn remove(&mut self, key: &[u64]) {
        let at = self.place(key);
        if let Some(row) = self.rows.get_mut(at) {
            *row = 0;
        }
    }
}

#[cfg(feature = "native")]
impl TableState {
    /// Bits of each field of the key, if [`TableState::lookup_direct`] is the complete lookup.
    pub fn direct_widths(&self) -> Option<&[u32]> {
        self.direct.as_ref().filter(|_| !self.observed()).map(|direct| &direct.widths[..])
    }

    /// Action of a row, and arguments from its own on: callers that know their number need no check of the end.
    #[inline(always)]
    pub fn call(&self, row: u32) -> (u32, &[u64]) {
        (self.actions[row as usize], &self.args[row as usize * self.arg_words..])
    }

    /// The row of a key of few bits, whose fields are adjacent.
    #[inline(always)]
    pub fn lookup_direct(&self, key: u64) -> Option<u32> {
        self.direct.as_ref()?.get(key)
    }
}
