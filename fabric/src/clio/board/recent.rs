//! A map of fixed size that remembers in which order its entries came.
//!
//! The TLB, the memory of executed requests and the locks are such maps. Nothing is allocated after the start, and no call takes longer
//! than the chain of a key: chains are short, because keys are spread by a hash with a secret seed.

use std::ops::Range;

/// A key, with a hash.
pub(super) trait Key: Copy + Eq {
    /// A hash that can't be predicted without the seed.
    fn hash(&self, seed: u64) -> u64;
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The map.
#[derive(Clone, Debug)]
pub(super) struct Recent<K, V> {
    slots: Vec<Slot<K, V>>,
    /// First slot of each chain.
    heads: Vec<u32>,
    seed: u64,
    capacity: u32,
    newest: u32,
    oldest: u32,
    /// First slot that is free again; linked by `chain`.
    free: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    /// The next slot with the same hash.
    chain: u32,
    older: u32,
    newer: u32,
}

impl<K: Key, V: Copy> Recent<K, V> {
    /// A map of at most `capacity` entries, below 2^31.
    pub fn new(capacity: u32, seed: u64) -> Recent<K, V> {
        let heads = vec![NONE; (capacity.max(1) as usize).next_power_of_two()];
        let slots = Vec::with_capacity(capacity as usize);
        Recent { slots, heads, seed, capacity, newest: NONE, oldest: NONE, free: NONE, len: 0 }
    }

    /// Writes an entry to each slot of an empty map, so that its memory is the process's from now on. Without it, the map takes memory
    /// as entries come.
    pub fn prefault(&mut self, key: K, value: V) {
        debug_assert!(self.len == 0 && self.slots.is_empty());
        let slot = Slot { key, value, chain: NONE, older: NONE, newer: NONE };
        self.slots.resize(self.capacity as usize, slot);
        self.slots.clear();
    }

    /// Where its slots are, taken or not.
    pub fn memory(&self) -> Range<*const u8> {
        let start = self.slots.as_ptr();
        start.cast()..start.wrapping_add(self.slots.capacity()).cast()
    }

    /// Entries that it has.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the next new entry replaces the oldest one.
    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key).map(|at| &self.slots[at as usize].value)
    }

    /// The value of a key, which becomes the newest entry.
    #[inline]
    pub fn touch(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key)?;
        if at != self.newest {
            self.unlink(at);
            self.link(at);
        }
        Some(&mut self.slots[at as usize].value)
    }

    /// The value of a key, whose place in the order stays.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key)?;
        Some(&mut self.slots[at as usize].value)
    }

    /// The oldest entry.
    pub fn oldest(&self) -> Option<(&K, &V)> {
        let slot = self.slots.get(self.oldest as usize)?;
        Some((&slot.key, &slot.value))
    }

    /// All entries, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let next = |at: &u32| {
            self.slots.get(self.slots[*at as usize].newer as usize).map(|_| self.slots[*at as usize].newer)
        };
        let first = (self.oldest != NONE).then_some(self.oldest);
        std::iter::successors(first, next)
            .map(|at| (&self.slots[at as usize].key, &self.slots[at as usize].value))
    }

    /// Sets the value of a key, as the newest entry. If the map is full, the oldest entry goes.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.touch(&key) {
            *known = value;
            return;
        }
        if self.capacity == 0 {
            return;
        }
        if self.is_full() {
            self.take_out(self.oldest);
        }
        let head = self.head_of(&key);
        let slot = Slot { key, value, chain: self.heads[head], older: NONE, newer: NONE };
        let at = if self.free == NONE {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.slots[at as usize].chain;
            self.slots[at as usize] = slot;
            at
        };
        self.heads[head] = at;
        self.link(at);
        self.len += 1;
    }

    /// Removes the oldest entry.
    pub fn remove_oldest(&mut self) {
        if self.oldest != NONE {
            self.take_out(self.oldest);
        }
    }

    /// Removes a key. Returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key)?;
        self.take_out(at);
        Some(self.slots[at as usize].value)
    }

    #[inline]
    fn head_of(&self, key: &K) -> usize {
        key.hash(self.seed) as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn find(&self, key: &K) -> Option<u32> {
        let mut at = self.heads[self.head_of(key)];
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.key == *key {
                return Some(at);
            }
            at = slot.chain;
        }
        None
    }

    /// Frees a slot that is in use. Its value stays readable until the next insertion.
    fn take_out(&mut self, at: u32) {
        self.unlink(at);
        let (key, next) = (self.slots[at as usize].key, self.slots[at as usize].chain);
        let head = self.head_of(&key);
        if self.heads[head] == at {
            self.heads[head] = next;
        } else {
            let mut before = self.heads[head];
            while self.slots[before as usize].chain != at {
                before = self.slots[before as usize].chain;
            }
            self.slots[before as usize].chain = next;
        }
        self.slots[at as usize].chain = self.free;
        self.free = at;
        self.len -= 1;
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let Slot { older, newer, .. } = self.slots[at as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer as usize].older = older,
        }
    }

    #[inline]
    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        (self.slots[at as usize].older, self.slots[at as usize].newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = at,
            _ => self.slots[newest as usize].newer = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Key for u8 {
        fn hash(&self, seed: u64) -> u64 {
            // Few different values: chains are long.
            (u64::from(*self) % 3) ^ seed
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u32),
        Touch(u8),
        Remove(u8),
        RemoveOldest,
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0u8..12;
        prop_oneof![
            4 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            2 => key.clone().prop_map(Step::Touch),
            1 => key.prop_map(Step::Remove),
            1 => Just(Step::RemoveOldest),
        ]
    }

    proptest! {
        /// A list in the order of age is the plainest such map.
        #[test]
        fn it_is_a_list_in_the_order_of_age(steps in prop::collection::vec(step(), 0..200), capacity in 0u32..9) {
            let (mut map, mut list) = (Recent::new(capacity, 5), Vec::<(u8, u32)>::new());
            let place = |list: &[(u8, u32)], key| list.iter().position(|(other, _)| *other == key);
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        map.insert(key, value);
                        place(&list, key).map(|at| list.remove(at));
                        list.push((key, value));
                        if list.len() > capacity as usize {
                            list.remove(0);
                        }
                    }
                    Step::Touch(key) => {
                        let touched = place(&list, key).map(|at| list.remove(at));
                        prop_assert_eq!(map.touch(&key).copied(), touched.map(|(_, value)| value));
                        list.extend(touched);
                    }
                    Step::Remove(key) => {
                        let removed = place(&list, key).map(|at| list.remove(at).1);
                        prop_assert_eq!(map.remove(&key), removed);
                    }
                    Step::RemoveOldest => {
                        map.remove_oldest();
                        (!list.is_empty()).then(|| list.remove(0));
                    }
                }
                let kept: Vec<(u8, u32)> = map.iter().map(|(key, value)| (*key, *value)).collect();
                prop_assert_eq!(&kept, &list);
                prop_assert_eq!((map.is_full(), map.len()), (list.len() >= capacity as usize, list.len() as u32));
                prop_assert_eq!(map.oldest().map(|(key, _)| *key), list.first().map(|(key, _)| *key));
                prop_assert!((0..12).all(|key| map.get(&key).copied() == place(&list, key).map(|at| list[at].1)));
            }
        }
    }
}
