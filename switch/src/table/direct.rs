//! Answers of an exact table by its key itself, which has few bits: most tables that replace arithmetic have such keys.
//! Machine code reads them without a call.

use super::TableState;
use crate::shape::{Style, TableShape};

/// Maximum bits of a key.
const MAX_BITS: u32 = 16;

/// Bit of an answer's first word, beside 1 plus the action's position in the table's list.
pub(crate) const HIT: u64 = 1 << 32;

/// For each key up to the largest one that ever had an entry: 0, or action and arguments.
#[derive(Debug)]
pub(crate) struct Direct {
    /// Address of `answers`, for machine code, and for how many keys there are some.
    address: usize,
    keys: usize,
    /// Bits of each field of the key; empty if keys are longer, so that there are no answers.
    widths: Vec<u32>,
    /// Words of an answer.
    stride: usize,
    answers: Vec<u64>,
}

impl Clone for Direct {
    fn clone(&self) -> Direct {
        let Direct { widths, stride, answers, .. } = self;
        let mut direct =
            Direct { address: 0, keys: 0, widths: widths.clone(), stride: *stride, answers: answers.clone() };
        direct.note_memory();
        direct
    }
}

impl Direct {
    /// For a table; without answers unless keys are short, and matched exactly.
    pub fn of(shape: &TableShape) -> Direct {
        let widths: Vec<u32> = shape.keys.iter().map(|key| key.width).collect();
        let bits = widths.iter().fold(0u32, |bits, width| bits.saturating_add(*width));
        let fits = shape.style == Style::Exact && (1..=MAX_BITS).contains(&bits);
        let (widths, stride) = (if fits { widths } else { Vec::new() }, 1 + shape.arg_words());
        Direct { address: 0, keys: 0, widths, stride, answers: Vec::new() }
    }

    fn note_memory(&mut self) {
        (self.address, self.keys) = (self.answers.as_ptr() as usize, self.answers.len() / self.stride);
    }

    fn place(&self, key: &[u64]) -> usize {
        key.iter().zip(&self.widths).fold(0, |at, (word, width)| at << width | *word as usize) * self.stride
    }

    /// Sets the answer for a key.
    pub fn set(&mut self, key: &[u64], action: u32, args: &[u64]) {
        if self.widths.is_empty() {
            return;
        }
        let at = self.place(key);
        if at >= self.answers.len() {
            self.answers.resize(at + self.stride, 0);
            self.note_memory();
        }
        if let Some((first, rest)) = self.answers[at..at + self.stride].split_first_mut() {
            *first = HIT | (u64::from(action) + 1);
            rest.copy_from_slice(args);
        }
    }

    /// Removes the answer for a key.
    pub fn remove(&mut self, key: &[u64]) {
        if !self.widths.is_empty()
            && let at = self.place(key)
            && let Some(first) = self.answers.get_mut(at)
        {
            *first = 0;
        }
    }
}

/// Places within a table's state that machine code reads, in bytes.
#[cfg(feature = "native")]
pub(crate) mod places {
    use super::{Direct, TableState};
    use std::mem::offset_of;

    /// The address of the answers.
    pub const ADDRESS: usize = offset_of!(TableState, direct) + offset_of!(Direct, address);
    /// For how many keys there are some.
    pub const KEYS: usize = offset_of!(TableState, direct) + offset_of!(Direct, keys);
}

impl TableState {
    /// Sets the answer for a row's key, whose action or arguments have changed.
    pub(super) fn answer(&mut self, row: u32) {
        let at = row as usize;
        let key = &self.keys[at * self.words..][..self.words];
        let args = &self.args[at * self.arg_words..][..self.arg_words];
        self.direct.set(key, self.actions[at], args);
    }

    /// Action of a row, and arguments from its own on: callers that know their number need no check of the end.
    #[cfg(feature = "native")]
    #[inline(always)]
    pub fn call(&self, row: u32) -> (u32, &[u64]) {
        (self.actions[row as usize], &self.args[row as usize * self.arg_words..])
    }

    /// Bits of each field of the key, and words of an answer, if answers by the key itself are the complete lookup.
    #[cfg(feature = "native")]
    pub fn direct_widths(&self) -> Option<(&[u32], usize)> {
        let Direct { widths, stride, .. } = &self.direct;
        (!widths.is_empty() && !self.observed()).then_some((widths, *stride))
    }
}
