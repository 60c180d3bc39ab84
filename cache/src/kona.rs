//! Kona's cache (Calciu et al., ASPLOS 2021): four ways a set. Its authors' simulator replaces the least recently used way;
//! UniMem's authors' simulator of it replaces the oldest.
//!
//! SR&RB-4SC is the same cache without Kona's translation, which costs time and changes no decision.

use crate::{Actions, Block, Policy, Refused, Served, Shape};

const WAYS: usize = 4;
/// No block.
const EMPTY: Block = Block::MAX;

/// Ways from the newest to the oldest.
#[derive(Clone, Copy)]
struct Set {
    blocks: [Block; WAYS],
    dirty: [bool; WAYS],
}

struct Kona {
    sets: Vec<Set>,
    /// Whether a use makes a way the newest.
    by_use: bool,
}

pub(crate) fn lru(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    open(shape, true)
}

pub(crate) fn fifo(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    open(shape, false)
}

fn open(shape: &Shape, by_use: bool) -> Result<Box<dyn Policy>, Refused> {
    shape.check(WAYS as u32)?;
    let set = Set { blocks: [EMPTY; WAYS], dirty: [false; WAYS] };
    Ok(Box::new(Kona { sets: vec![set; shape.capacity as usize / WAYS], by_use }))
}

impl Set {
    /// Makes one way the newest.
    #[inline]
    fn rotate(&mut self, way: usize) {
        self.blocks[..=way].rotate_right(1);
        self.dirty[..=way].rotate_right(1);
    }
}

impl Policy for Kona {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let set = block as usize % self.sets.len();
        let set = &mut self.sets[set];
        if let Some(way) = set.blocks.iter().position(|one| *one == block) {
            set.dirty[way] |= write;
            if self.by_use {
                set.rotate(way);
            }
            return Served::Device;
        }
        let oldest = WAYS - 1;
        if set.blocks[oldest] != EMPTY {
            actions.evict(set.blocks[oldest], set.dirty[oldest]);
        }
        actions.fetch(block);
        (set.blocks[oldest], set.dirty[oldest]) = (block, write);
        set.rotate(oldest);
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        (self.sets.len() * size_of::<Set>()) as u64
    }
}
