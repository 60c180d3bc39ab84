//! Free ranges of a memory node, found by address and by size.

use super::{EXTENT_BYTES_MAX, EXTENT_BYTES_MIN};
use std::collections::{BTreeMap, BTreeSet};

/// Classes of sizes: extents have a power of two of bytes.
const CLASSES: usize = (EXTENT_BYTES_MAX / EXTENT_BYTES_MIN).ilog2() as usize + 1;

/// Free ranges. No two touch: neighbours are one range.
#[derive(Clone, Debug, Default)]
pub(super) struct Free {
    /// Bytes by start.
    by_start: BTreeMap<u64, u64>,
    /// Starts by the largest extent that fits. The last class has all ranges of [`EXTENT_BYTES_MAX`] and more.
    by_size: [BTreeSet<u64>; CLASSES],
    bytes: u64,
}

fn class(bytes: u64) -> usize {
    ((bytes / EXTENT_BYTES_MIN).max(1).ilog2() as usize).min(CLASSES - 1)
}

impl Free {
    /// The first `bytes` bytes are free, rounded down to whole extents.
    pub fn new(bytes: u64) -> Free {
        let mut free = Free::default();
        let whole = bytes - bytes % EXTENT_BYTES_MIN;
        if whole > 0 {
            free.put(0, whole);
        }
        free
    }

    /// Free bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of ranges.
    pub fn ranges(&self) -> usize {
        self.by_start.len()
    }

    /// Bytes of the longest range.
    pub fn longest_bytes(&self) -> u64 {
        let longest = self.by_size.iter().rev().find(|starts| !starts.is_empty());
        let bytes = longest.into_iter().flatten().filter_map(|start| self.by_start.get(start));
        bytes.max().copied().unwrap_or(0)
    }

    /// Start and bytes of the ranges.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.by_start.iter().map(|(start, bytes)| (*start, *bytes))
    }

    /// Takes the first range that an extent of `bytes` bytes, a power of two, fits into. Returns the start.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let fitting = &self.by_size[class(bytes)..];
        let start = fitting.iter().filter_map(|starts| starts.first()).min().copied()?;
        self.take_at(start, bytes).then_some(start)
    }

    /// Takes these bytes. Returns whether all of them were free.
    pub fn take_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        let Some((first, length)) = self.by_start.range(..=start).next_back() else { return false };
        let (first, last) = (*first, *first + *length);
        if end > last {
            return false;
        }
        self.remove(first, last - first);
        if first < start {
            self.put(first, start - first);
        }
        if end < last {
            self.put(end, last - end);
        }
        true
    }

    /// Gives bytes back that are not free, and merges them with their neighbours.
    pub fn give(&mut self, start: u64, bytes: u64) {
        let (mut start, mut bytes) = (start, bytes);
        if let Some((before, length)) = self.by_start.range(..start).next_back().map(|(s, b)| (*s, *b))
            && before + length == start
        {
            self.remove(before, length);
            (start, bytes) = (before, bytes + length);
        }
        if let Some(behind) = self.by_start.get(&(start + bytes)).copied() {
            self.remove(start + bytes, behind);
            bytes += behind;
        }
        self.put(start, bytes);
    }

    fn put(&mut self, start: u64, bytes: u64) {
        self.by_start.insert(start, bytes);
        self.by_size[class(bytes)].insert(start);
        self.bytes += bytes;
    }

    fn remove(&mut self, start: u64, bytes: u64) {
        self.by_start.remove(&start);
        self.by_size[class(bytes)].remove(&start);
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: u64 = EXTENT_BYTES_MIN;

    #[test]
    fn the_first_fit_is_taken_and_neighbours_merge() {
        let mut free = Free::new(8 * UNIT + 5);
        assert_eq!([1, 2, 1, 4].map(|units| free.take(units * UNIT)), [0, 1, 3, 4].map(|at| Some(at * UNIT)));
        assert_eq!((free.take(UNIT), free.bytes()), (None, 0));
        free.give(0, UNIT);
        free.give(3 * UNIT, UNIT);
        assert_eq!((free.take(2 * UNIT), free.ranges(), free.longest_bytes()), (None, 2, UNIT));
        free.give(UNIT, 2 * UNIT);
        assert_eq!((free.ranges(), free.longest_bytes()), (1, 4 * UNIT));
        assert!(!free.take_at(3 * UNIT, 2 * UNIT) && !free.take_at(u64::MAX, 2) && free.take_at(UNIT, UNIT));
        assert_eq!(free.iter().collect::<Vec<_>>(), [(0, UNIT), (2 * UNIT, 2 * UNIT)]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Take(u32),
        TakeAt(u64, u64),
        Give(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..10).prop_map(Step::Take),
            1 => (0u64..1_300, 1u64..9).prop_map(|(start, units)| Step::TakeAt(start, units)),
            4 => any::<usize>().prop_map(Step::Give),
        ]
    }

    proptest! {
        /// The model is an array with a word for each unit.
        #[test]
        fn it_agrees_with_an_array(units in 0u64..1_300, steps in prop::collection::vec(step(), 0..120)) {
            let mut free = Free::new(units * UNIT);
            let mut model = vec![true; units as usize];
            let mut taken: Vec<(u64, u64)> = Vec::new();
            let is_free = |model: &[bool], start: u64, units: u64| {
                (start..start + units).all(|unit| model.get(unit as usize) == Some(&true))
            };
            for step in steps {
                match step {
                    Step::Take(power) => {
                        let length = 1u64 << power;
                        let fits = (0..units).find(|start| is_free(&model, *start, length));
                        prop_assert_eq!(free.take(length * UNIT), fits.map(|start| start * UNIT));
                        if let Some(start) = fits {
                            (start..start + length).for_each(|unit| model[unit as usize] = false);
                            taken.push((start, length));
                        }
                    }
                    Step::TakeAt(start, length) => {
                        let fits = is_free(&model, start, length);
                        prop_assert_eq!(free.take_at(start * UNIT, length * UNIT), fits);
                        if fits {
                            (start..start + length).for_each(|unit| model[unit as usize] = false);
                            taken.push((start, length));
                        }
                    }
                    Step::Give(nth) if !taken.is_empty() => {
                        let (start, length) = taken.swap_remove(nth % taken.len());
                        free.give(start * UNIT, length * UNIT);
                        (start..start + length).for_each(|unit| model[unit as usize] = true);
                    }
                    Step::Give(_) => {}
                }
                let runs = model.chunk_by(|a, b| a == b).scan(0u64, |at, run| {
                    let start = *at;
                    *at += run.len() as u64;
                    Some((run[0], start * UNIT, run.len() as u64 * UNIT))
                });
                let runs: Vec<_> = runs.filter(|run| run.0).map(|run| (run.1, run.2)).collect();
                prop_assert_eq!(free.longest_bytes(), runs.iter().map(|run| run.1).max().unwrap_or(0));
                prop_assert_eq!(free.bytes(), runs.iter().map(|run| run.1).sum::<u64>());
                prop_assert_eq!(free.iter().collect::<Vec<_>>(), runs);
            }
        }
    }
}
