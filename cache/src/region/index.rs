//! Which frame has a block: a table of frames, found by the hash of their blocks.
//!
//! ```text
//!   31       bits          0
//! ┌────────────┬────────────┐
//! │    tag     │   frame    │   in its block's place, or in the next one that was empty
//! └────────────┴────────────┘
//! ```
//!
//! The tag is a part of the hash: nearly all entries of other blocks differ in it, so few of their frames are looked at.

use crate::Block;
use crate::arena::mix;

/// No frame. No entry is equal, as the largest number of `bits` is no frame's.
const EMPTY: u32 = u32::MAX;

/// An entry takes 5 bytes: one place in five stays empty.
pub(super) struct Index {
    places: Vec<u32>,
    /// Bits of a frame's number.
    bits: u32,
}

impl Index {
    /// Of this many frames.
    pub fn new(frames: u32) -> Index {
        let places = frames as usize + frames as usize / 4 + 1;
        Index { places: vec![EMPTY; places], bits: u32::BITS - frames.leading_zeros() }
    }

    pub fn bytes(&self) -> u64 {
        (self.places.len() * size_of::<u32>()) as u64
    }

    /// The first place of a block, and its entry without the frame.
    #[inline]
    fn home(&self, block: Block) -> (usize, u32) {
        let hash = mix(block);
        (((u64::from(hash) * self.places.len() as u64) >> 32) as usize, hash << self.bits)
    }

    #[inline]
    fn frame(&self, entry: u32) -> u32 {
        entry & !(u32::MAX << self.bits)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }

    /// The frame of a block. `block_of` says which block a frame has.
    #[inline]
    pub fn find(&self, block: Block, block_of: impl Fn(u32) -> Block) -> Option<u32> {
        let (mut at, tag) = self.home(block);
        loop {
            let entry = self.places[at];
            if entry == EMPTY {
                return None;
            }
            let frame = self.frame(entry);
            if (entry ^ tag) >> self.bits == 0 && block_of(frame) == block {
                return Some(frame);
            }
            at = self.next(at);
        }
    }

    /// Enters a block that has no frame yet.
    pub fn insert(&mut self, block: Block, frame: u32) {
        let (mut at, tag) = self.home(block);
        while self.places[at] != EMPTY {
            at = self.next(at);
        }
        self.places[at] = tag | frame;
    }

    /// Takes out a block, which has this frame. Entries behind it move up, so that none is cut off from its first place.
    pub fn remove(&mut self, block: Block, frame: u32, block_of: impl Fn(u32) -> Block) {
        let (mut hole, tag) = self.home(block);
        while self.places[hole] != tag | frame {
            hole = self.next(hole);
        }
        let len = self.places.len();
        let distance = |from: usize, to: usize| if to >= from { to - from } else { to + len - from };
        let mut at = self.next(hole);
        while self.places[at] != EMPTY {
            let entry = self.places[at];
            let (home, _) = self.home(block_of(self.frame(entry)));
            if distance(home, at) >= distance(hole, at) {
                self.places[hole] = entry;
                hole = at;
            }
            at = self.next(at);
        }
        self.places[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// With few frames most blocks share places, and with few bits of a tag some share these, too.
        #[test]
        fn it_is_a_map(
            frames in 1u32..40,
            tags in any::<bool>(),
            steps in prop::collection::vec((any::<bool>(), 0u32..120), 1..600),
        ) {
            let (mut index, mut blocks) = (Index::new(frames), vec![0; frames as usize]);
            if !tags {
                index.bits = u32::BITS - 1;
            }
            let (mut model, mut free) = (BTreeMap::new(), (0..frames).collect::<Vec<_>>());
            for (inserts, block) in steps {
                let block_of = |frame: u32| blocks[frame as usize];
                prop_assert_eq!(index.find(block, block_of), model.get(&block).copied());
                match (inserts, model.get(&block).copied()) {
                    (true, None) => if let Some(frame) = free.pop() {
                        blocks[frame as usize] = block;
                        index.insert(block, frame);
                        model.insert(block, frame);
                    },
                    (false, Some(frame)) => {
                        index.remove(block, frame, block_of);
                        model.remove(&block);
                        free.push(frame);
                    }
                    _ => {}
                }
                for (block, frame) in &model {
                    prop_assert_eq!(index.find(*block, |frame| blocks[frame as usize]), Some(*frame));
                }
            }
        }
    }
}
