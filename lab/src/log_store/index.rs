//! From keys to numbers of records: open addressing.

use p4rack_fabric::common::SplitMix;

/// Marks a free place.
const FREE: u64 = u64::MAX;

/// An index for a fixed number of keys.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Keys and their records; at least half of them are free.
    places: Vec<(u64, u64)>,
    keys: usize,
}

impl Index {
    /// Room for this many keys.
    pub(super) fn new(keys_max: usize) -> Index {
        Index { places: vec![(0, FREE); (2 * keys_max.max(1)).next_power_of_two()], keys: 0 }
    }

    /// The place of a key, or the free place for it.
    fn place(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = SplitMix(key).next() as usize & mask;
        while self.places[at].1 != FREE && self.places[at].0 != key {
            at = (at + 1) & mask;
        }
        at
    }

    /// The record of a key.
    pub(super) fn get(&self, key: u64) -> Option<u64> {
        let (_, record) = self.places[self.place(key)];
        (record != FREE).then_some(record)
    }

    /// Sets the record of a key. Returns false if there is no room for another key.
    pub(super) fn set(&mut self, key: u64, record: u64) -> bool {
        let at = self.place(key);
        if self.places[at].1 == FREE {
            if 2 * (self.keys + 1) > self.places.len() {
                return false;
            }
            self.keys += 1;
        }
        self.places[at] = (key, record);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_is_a_map_with_a_limit() {
        let (mut index, mut model, mut random) = (Index::new(100), HashMap::new(), SplitMix(1));
        for record in 0..2_000 {
            let key = random.next() % 150;
            let fits = model.contains_key(&key) || 2 * (model.len() + 1) <= 256;
            assert_eq!(index.set(key, record), fits);
            if fits {
                model.insert(key, record);
            }
        }
        assert_eq!(model.len(), 128, "the limit was reached");
        for key in 0..150 {
            assert_eq!(index.get(key), model.get(&key).copied());
        }
    }
}
