//! An ordered map that is mostly small.
//!
//! Most processes have one range, or two while a call works on one. A tree has a node of 200 bytes for these, and thousands of processes
//! have as many nodes. So the first [`INLINE`] entries are kept in place, and a tree exists while there are more.

use std::collections::BTreeMap;

/// Entries that need no tree.
const INLINE: usize = 2;

/// Values by key, in the order of their keys.
#[derive(Clone, Debug)]
pub(super) enum Few<V> {
    /// In order, the places that are used first.
    Inline([Option<(u64, V)>; INLINE]),
    /// More than [`INLINE`].
    Tree(BTreeMap<u64, V>),
}

impl<V: Copy> Few<V> {
    /// No entries.
    pub fn new() -> Few<V> {
        Few::Inline([None; INLINE])
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, V)> {
        let (inline, tree) = match self {
            Few::Inline(entries) => (entries.as_slice(), None),
            Few::Tree(tree) => (&[][..], Some(tree)),
        };
        inline.iter().flatten().copied().chain(tree.into_iter().flatten().map(|(key, value)| (*key, *value)))
    }

    /// The last entry whose key is at most `key`.
    pub fn at_or_before(&self, key: u64) -> Option<(u64, V)> {
        match self {
            Few::Inline(entries) => entries.iter().flatten().rfind(|(at, _)| *at <= key).copied(),
            Few::Tree(tree) => tree.range(..=key).next_back().map(|(key, value)| (*key, *value)),
        }
    }

    /// The first entry whose key is at least `key`.
    pub fn at_or_behind(&self, key: u64) -> Option<(u64, V)> {
        match self {
            Few::Inline(entries) => entries.iter().flatten().find(|(at, _)| *at >= key).copied(),
            Few::Tree(tree) => tree.range(key..).next().map(|(key, value)| (*key, *value)),
        }
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: u64, value: V) {
        if let Few::Inline(entries) = self {
            let known = entries.iter_mut().flatten().find(|(at, _)| *at == key);
            if let Some((_, known)) = known {
                *known = value;
                return;
            }
            if let Some(place) = entries.iter_mut().find(|place| place.is_none()) {
                *place = Some((key, value));
                entries.sort_by_key(|entry| entry.map_or(u64::MAX, |(at, _)| at));
                return;
            }
            *self = Few::Tree(entries.iter().flatten().copied().collect());
        }
        if let Few::Tree(tree) = self {
            tree.insert(key, value);
        }
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: u64) {
        match self {
            Few::Inline(entries) => Few::keep(entries, |at, _| at != key),
            Few::Tree(tree) => {
                tree.remove(&key);
                self.shrink();
            }
        }
    }

    /// Removes all whose value isn't one of these.
    pub fn retain(&mut self, is_kept: impl Fn(V) -> bool) {
        match self {
            Few::Inline(entries) => Few::keep(entries, |_, value| is_kept(value)),
            Few::Tree(tree) => {
                tree.retain(|_, value| is_kept(*value));
                self.shrink();
            }
        }
    }

    fn keep(entries: &mut [Option<(u64, V)>; INLINE], is_kept: impl Fn(u64, V) -> bool) {
        let all = *entries;
        let mut kept = all.into_iter().flatten().filter(|(at, value)| is_kept(*at, *value));
        *entries = std::array::from_fn(|_| kept.next());
    }

    /// Gives the tree back if it isn't needed any more.
    fn shrink(&mut self) {
        if let Few::Tree(tree) = self
            && tree.len() <= INLINE
        {
            let mut entries = tree.iter().map(|(key, value)| (*key, *value));
            *self = Few::Inline(std::array::from_fn(|_| entries.next()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It is a map, whatever its size was before, and has a tree only while it needs one.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u64..8, 0u8..4, 0u8..8), 0..60), key in 0u64..9) {
            let (mut few, mut model) = (Few::new(), BTreeMap::new());
            for (key, value, step) in steps {
                match step {
                    0..4 => {
                        few.insert(key, value);
                        model.insert(key, value);
                    }
                    4..7 => {
                        few.remove(key);
                        model.remove(&key);
                    }
                    _ => {
                        few.retain(|kept| kept != value);
                        model.retain(|_, kept| *kept != value);
                    }
                }
                let plain = |(key, value): (&u64, &u8)| (*key, *value);
                prop_assert!(few.iter().eq(model.iter().map(plain)));
                prop_assert_eq!(few.at_or_before(key), model.range(..=key).next_back().map(plain));
                prop_assert_eq!(few.at_or_behind(key), model.range(key..).next().map(plain));
                prop_assert_eq!(matches!(few, Few::Tree(_)), model.len() > INLINE);
            }
            let plain = |(key, value): (&u64, &u8)| (*key, *value);
            prop_assert_eq!(few.at_or_before(key), model.range(..=key).next_back().map(plain));
        }
    }
}
