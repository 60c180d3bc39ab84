//! S3-FIFO (Yang et al., SOSP 2023): three FIFO queues.
//!
//! ```text
//!  miss ──▶ small, 10 % ──used twice──▶ main ──used──▶ main again
//!                │ else                   │ else
//!                ▼                        ▼
//!             ghosts, 90 % ··miss··▶ main  gone
//! ```

use crate::arena::{Arena, List};
use crate::ghosts::Ghosts;
use crate::lists::{self, DIRTY, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// In a slot's mark: uses since the block entered its queue, up to 3.
const USES: u8 = 0x03;
/// In a slot's mark: the block is in the main queue.
const MAIN: u8 = 0x04;
/// Uses in the small queue that take a block to the main one.
const TO_MAIN: u8 = 2;

struct S3Fifo {
    arena: Arena,
    small: List,
    main: List,
    ghosts: Ghosts,
    capacity: u32,
    small_max: u32,
    main_max: u32,
    /// Until the first eviction, the main queue takes blocks that the small one has no room for.
    full_once: bool,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(2)?;
    let capacity = shape.capacity;
    let small_max = (capacity / 10).max(1);
    Ok(Box::new(S3Fifo {
        arena: Arena::new(capacity),
        small: List::EMPTY,
        main: List::EMPTY,
        ghosts: Ghosts::new((u64::from(capacity) * 9 / 10) as u32),
        capacity,
        small_max,
        main_max: capacity - small_max,
        full_once: false,
    }))
}

impl S3Fifo {
    fn evict(&mut self, actions: &mut Actions) {
        self.full_once = true;
        if self.main.len() > self.main_max || self.small.len() == 0 {
            return self.evict_from_main(actions);
        }
        // A queue of blocks that were all used twice moves to the main queue as a whole: each block moves once.
        while self.small.len() > 0 {
            let slot = self.small.tail();
            let mark = self.arena.mark(slot);
            if mark & USES < TO_MAIN {
                let block = lists::evict(&mut self.arena, &mut self.small, slot, actions);
                self.ghosts.enter(block);
                return;
            }
            self.arena.unlink(&mut self.small, slot);
            self.arena.push(&mut self.main, slot);
            *self.arena.mark_mut(slot) = (mark & DIRTY) | MAIN;
        }
        self.evict_from_main(actions);
    }

    fn evict_from_main(&mut self, actions: &mut Actions) {
        loop {
            let slot = self.main.tail();
            if self.arena.mark(slot) & USES == 0 {
                lists::evict(&mut self.arena, &mut self.main, slot, actions);
                return;
            }
            *self.arena.mark_mut(slot) -= 1;
            self.arena.refresh(&mut self.main, slot);
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(slot) = self.arena.find(block) {
            let mark = self.arena.mark_mut(slot);
            *mark = (*mark + u8::from(*mark & USES != USES)) | dirty(write);
            return Served::Device;
        }
        let came_back = self.ghosts.take(block);
        while self.small.len() + self.main.len() >= self.capacity {
            self.evict(actions);
        }
        if came_back || (!self.full_once && self.small.len() >= self.small_max) {
            lists::fetch(&mut self.arena, &mut self.main, block, MAIN | dirty(write), actions);
        } else {
            lists::fetch(&mut self.arena, &mut self.small, block, dirty(write), actions);
        }
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.arena.bytes() + self.ghosts.bytes()
    }
}
