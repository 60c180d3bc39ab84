//! A hash table from keys to rows without long rehashes. Keys are stored elsewhere.
//!
//! This is extendible hashing: a directory, indexed by the first bits of the hash, refers to segments of at
//! most [`LARGEST`] slots. A full segment is split in two, so an insertion moves few slots however many rows
//! there are. A slot holds half of the hash and the row.

/// Slots of a new segment.
const SMALLEST: usize = 8;
/// Size at which a full segment is split rather than enlarged, in slots.
const LARGEST: usize = 512;
/// Maximum bits that index the directory; beyond, segments are enlarged.
const DEEPEST: u32 = 22;

/// Slots with linear probing. 0 is free, otherwise `tag << 32 | row + 1`.
#[derive(Clone, Debug)]
struct Segment {
    /// Number of tag bits that all its rows share.
    depth: u32,
    used: u32,
    slots: Box<[u64]>,
}

/// The directory and its segments.
#[derive(Clone, Debug)]
pub(super) struct Index {
    depth: u32,
    directory: Vec<u32>,
    segments: Vec<Segment>,
    len: usize,
}

fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Segment {
    fn new(depth: u32, slots: usize) -> Segment {
        Segment { depth, used: 0, slots: vec![0; slots].into_boxed_slice() }
    }

    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = tag_of(slot) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.used += 1;
    }

    fn full(&self) -> bool {
        self.used as usize >= self.slots.len() / 4 * 3
    }

    fn position(&self, slot: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = tag_of(slot) as usize & mask;
        while self.slots[at] != 0 {
            if self.slots[at] == slot {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Frees a slot and moves later slots up, so that no probe ends too early.
    fn free(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = tag_of(slot) as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.used -= 1;
    }
}

impl Index {
    /// An empty index. Adding up to `rows` rows will not reallocate its list of segments.
    pub fn with_room(rows: u64) -> Index {
        let mut segments = Vec::with_capacity(1 + rows as usize / (LARGEST / 4));
        segments.push(Segment::new(0, SMALLEST));
        Index { depth: 0, directory: vec![0], segments, len: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn place(&self, tag: u32) -> usize {
        // Small tables have a single segment, which saves two dependent loads.
        if self.depth == 0 {
            return 0;
        }
        self.directory[(u64::from(tag) >> (32 - self.depth)) as usize] as usize
    }

    /// The row with this hash that `is` accepts.
    #[inline(always)]
    pub fn get(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag_of(hash);
        let slots = &self.segments[self.place(tag)].slots[..];
        let mask = slots.len() - 1;
        let mut at = tag as usize;
        loop {
            let slot = slots[at & mask];
            if slot == 0 {
                return None;
            }
            if tag_of(slot) == tag && is(slot as u32 - 1) {
                return Some(slot as u32 - 1);
            }
            at += 1;
        }
    }

    /// The stored half of each row's hash, in its position.
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        let slots = self.segments.iter().flat_map(|segment| segment.slots.iter());
        slots.filter(|slot| **slot != 0).map(|slot| slot & !u64::from(u32::MAX))
    }

    /// Adds a row.
    pub fn insert(&mut self, hash: u64, row: u32) {
        let tag = tag_of(hash);
        while self.segments[self.place(tag)].full() {
            self.make_room(tag);
        }
        let place = self.place(tag);
        self.segments[place].put(u64::from(tag) << 32 | u64::from(row + 1));
        self.len += 1;
    }

    /// Removes a row. Returns whether it existed.
    pub fn remove(&mut self, hash: u64, row: u32) -> bool {
        let tag = tag_of(hash);
        let place = self.place(tag);
        let segment = &mut self.segments[place];
        let found = segment.position(u64::from(tag) << 32 | u64::from(row + 1));
        if let Some(at) = found {
            segment.free(at);
            self.len -= 1;
        }
        found.is_some()
    }

    fn make_room(&mut self, tag: u32) {
        let place = self.place(tag);
        let (depth, size) = (self.segments[place].depth, self.segments[place].slots.len());
        if size < LARGEST || depth >= DEEPEST {
            let old = std::mem::replace(&mut self.segments[place], Segment::new(depth, size * 2));
            old.slots.iter().filter(|slot| **slot != 0).for_each(|&slot| self.segments[place].put(slot));
            return;
        }
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&place| [place, place]).collect();
            self.depth += 1;
        }
        let old = std::mem::replace(&mut self.segments[place], Segment::new(depth + 1, size));
        let mut upper = Segment::new(depth + 1, size);
        for &slot in old.slots.iter().filter(|slot| **slot != 0) {
            match tag_of(slot) >> (31 - depth) & 1 {
                0 => self.segments[place].put(slot),
                _ => upper.put(slot),
            }
        }
        let spread = self.depth - depth;
        let first = ((u64::from(tag) >> (32 - depth)) << spread) as usize;
        let half = 1 << (spread - 1);
        let added = self.segments.len() as u32;
        self.directory[first + half..first + 2 * half].fill(added);
        self.segments.push(upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn spread(key: u64) -> u64 {
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    proptest! {
        #[test]
        fn is_a_map(steps in proptest::collection::vec((any::<bool>(), 0u64..3000), 1..4000), clash in 0u32..40) {
            // Few distinct hashes for some rows, so that probe sequences collide.
            let hash = |key: u64| spread(key) << clash;
            let (mut index, mut map) = (Index::with_room(0), BTreeMap::new());
            for (add, key) in steps {
                let row = key as u32;
                match (add, map.contains_key(&key)) {
                    (true, false) => {
                        index.insert(hash(key), row);
                        map.insert(key, row);
                    }
                    (false, true) => {
                        prop_assert!(index.remove(hash(key), row));
                        map.remove(&key);
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(index.is_empty(), map.is_empty());
            for key in 0..3000 {
                let found = index.get(hash(key), |row| row == key as u32);
                prop_assert_eq!(found, map.get(&key).copied());
            }
        }
    }

    #[test]
    fn many_rows_are_found() {
        let mut index = Index::with_room(0);
        for row in 0..200_000u32 {
            index.insert(spread(row.into()), row);
        }
        assert!(index.depth >= 9 && index.segments.iter().all(|segment| segment.slots.len() <= LARGEST));
        for row in 0..200_000u32 {
            assert_eq!(index.get(spread(row.into()), |found| found == row), Some(row));
        }
        assert!((0..200_000u32).all(|row| index.remove(spread(row.into()), row)));
        assert!(index.is_empty());
    }
}
