//! UniMem's refault queue: the addresses of the last blocks that were evicted, as many as the cache has blocks.

use crate::Block;
use crate::arena::mix;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The block; `NONE` if it came back, or if nothing was entered yet.
    block: Block,
    /// The entry that was the newest of this one's bucket.
    chain: u32,
}

/// A ring of addresses, found by hash. An entry takes 10 bytes with its part of the buckets.
///
/// Entries hold whole block numbers: a hit is never another block's. Entries are only overwritten: none is taken out of its
/// bucket's chain. A chain goes from newer to older entries, so it ends where the next one is newer, which was overwritten since.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    entries: Vec<Entry>,
    heads: Vec<u32>,
    /// Where the next block is entered: the oldest entry.
    at: u32,
    #[cfg(test)]
    plant: Option<tests::Plant>,
}

impl Ring {
    pub(crate) fn new(capacity: u32) -> Ring {
        let entries = vec![Entry { block: NONE, chain: NONE }; capacity as usize];
        Ring {
            entries,
            heads: vec![NONE; capacity.div_ceil(2) as usize],
            at: 0,
            #[cfg(test)]
            plant: None,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.len() * size_of::<Entry>() + self.heads.len() * size_of::<u32>()) as u64
    }

    #[inline]
    fn bucket(&self, block: Block) -> usize {
        ((u64::from(mix(block)) * self.heads.len() as u64) >> 32) as usize
    }

    /// Enters a block that may have an older entry, which is used up: it came back by another way.
    #[inline]
    pub(crate) fn enter_again(&mut self, block: Block) {
        self.remove(block, self.bucket(block));
        self.enter(block);
    }

    /// Enters a block without an entry; the oldest entry goes.
    #[inline]
    pub(crate) fn enter(&mut self, block: Block) {
        let bucket = self.bucket(block);
        self.entries[self.at as usize] = Entry { block, chain: self.heads[bucket] };
        self.heads[bucket] = self.at;
        self.at = if self.at + 1 == self.entries.len() as u32 { 0 } else { self.at + 1 };
    }

    /// Whether the block has an entry, which is used up: one eviction proves one return.
    #[inline]
    pub(crate) fn take(&mut self, block: Block) -> bool {
        #[cfg(test)]
        if let Some(plant) = self.plant {
            return plant.take(self, block);
        }
        self.remove(block, self.bucket(block))
    }

    /// How many entries are newer than this one.
    #[inline]
    fn age(&self, entry: u32) -> u32 {
        let newer = self.at.wrapping_sub(entry + 1);
        if entry < self.at { newer } else { newer.wrapping_add(self.entries.len() as u32) }
    }

    #[inline]
    fn remove(&mut self, block: Block, bucket: usize) -> bool {
        let (mut at, mut age) = (self.heads[bucket], 0);
        while at != NONE {
            let is_older = self.age(at) >= age;
            let entry = &mut self.entries[at as usize];
            if !is_older {
                return false;
            }
            if entry.block == block {
                entry.block = NONE;
                return true;
            }
            let next = entry.chain;
            (at, age) = (next, self.age(at) + 1);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::SplitMix;
    use std::collections::VecDeque;

    /// A mistake.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Plant {
        /// An entry proves more than one return.
        HitCountsTwice,
        /// An entry of the same bucket proves the return of another block.
        EntryOfAnother,
    }

    impl Plant {
        pub(super) fn take(self, ring: &mut Ring, block: Block) -> bool {
            let bucket = ring.bucket(block);
            let first = ring.heads[bucket];
            match self {
                Plant::HitCountsTwice => ring.entries.iter().any(|entry| entry.block == block),
                Plant::EntryOfAnother => {
                    first != NONE && ring.remove(ring.entries[first as usize].block, bucket)
                }
            }
        }
    }

    /// Random evictions and returns of blocks, beside a plain list. The error is the first difference.
    fn beside_a_list(seed: u64, plant: Option<Plant>) -> Result<u32, String> {
        const CAPACITY: usize = 12;
        let (mut ring, mut random) = (Ring::new(CAPACITY as u32), SplitMix(seed));
        ring.plant = plant;
        let (mut list, mut returns) = (VecDeque::from([NONE; CAPACITY]), 0);
        for step in 0..2_000 {
            let block = random.between(0, 39) as u32;
            let place = list.iter().position(|one| *one == block);
            if random.between(0, 1) == 0 {
                place.into_iter().for_each(|place| list[place] = NONE);
                list.pop_front();
                list.push_back(block);
                ring.enter_again(block);
                continue;
            }
            place.into_iter().for_each(|place| list[place] = NONE);
            returns += u32::from(place.is_some());
            if ring.take(block) != place.is_some() {
                return Err(format!("step {step}: block {block} has an entry: {}", place.is_some()));
            }
        }
        Ok(returns)
    }

    #[test]
    fn each_entry_proves_one_return_of_its_block() {
        for seed in 0..50 {
            let returns = beside_a_list(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            assert!(returns > 50, "seed {seed}: {returns}");
        }
        for plant in [Plant::HitCountsTwice, Plant::EntryOfAnother] {
            assert!(beside_a_list(1, Some(plant)).is_err(), "{plant:?} is not seen");
        }
    }

    /// A block that was evicted, promoted with its page, and evicted again.
    #[test]
    fn a_block_has_one_entry() {
        let mut ring = Ring::new(4);
        for block in [1, 2, 1, 3, 1, 4, 5, 6, 7, 8] {
            ring.enter_again(block);
        }
        assert!(!ring.take(1));
        assert!((5..9).all(|block| ring.take(block)));
    }

    /// All entries are in one bucket, where only their numbers differ.
    #[test]
    fn an_entry_is_proof_of_its_own_block_only() {
        let mut ring = Ring::new(2);
        ring.enter(6);
        assert!(!ring.take(7));
        assert!(ring.take(6));
        assert!(!ring.take(6));
    }
}
