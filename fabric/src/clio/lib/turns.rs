//! Round robin over many members of which few are active.

/// Members of 0..count as bits, to be visited in a circle. A visit looks at 64 at a time, so thousands that rest cost little.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    words: Vec<u64>,
    count: usize,
}

impl Turns {
    /// No members.
    pub fn new(count: usize) -> Turns {
        Turns { words: vec![0; count.div_ceil(64)], count }
    }

    /// Makes `nth` a member or not.
    pub fn set(&mut self, nth: usize, is_member: bool) {
        let bit = 1 << (nth % 64);
        let word = &mut self.words[nth / 64];
        *word = if is_member { *word | bit } else { *word & !bit };
    }

    /// The first member from `start` on in the circle, the first `passed` of it left out. Returns how many of the circle come before it.
    pub fn next(&self, start: usize, passed: usize) -> Option<usize> {
        let (from, count) = (start + passed, self.count);
        let ahead = || self.first(from, count).map(|nth| nth - start);
        let around = || self.first(from.saturating_sub(count), start).map(|nth| nth + count - start);
        ahead().or_else(around)
    }

    /// The first member of a range.
    fn first(&self, from: usize, end: usize) -> Option<usize> {
        if from >= end {
            return None;
        }
        let mut mask = !0 << (from % 64);
        for nth in from / 64..end.div_ceil(64) {
            let word = self.words[nth] & mask;
            if word != 0 {
                return Some(nth * 64 + word.trailing_zeros() as usize).filter(|nth| *nth < end);
            }
            mask = !0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn members_are_visited_in_the_order_of_the_circle(
            count in 1usize..200,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
            start in any::<prop::sample::Index>(),
        ) {
            let (mut turns, mut model) = (Turns::new(count), BTreeSet::new());
            for (nth, is_member) in changes {
                let nth = nth.index(count);
                turns.set(nth, is_member);
                if is_member { model.insert(nth) } else { model.remove(&nth) };
            }
            let start = start.index(count);
            let (mut visited, mut passed) = (Vec::new(), 0);
            while let Some(nth) = turns.next(start, passed) {
                visited.push((start + nth) % count);
                passed = nth + 1;
            }
            let expected: Vec<usize> = model.range(start..).chain(model.range(..start)).copied().collect();
            prop_assert_eq!(visited, expected);
        }
    }
}
