//! 2Q (Johnson and Shasha, VLDB 1994), the full version.
//!
//! ```text
//!  miss ──▶ in: FIFO, 25 % ──▶ out: addresses, 50 % ··miss··▶ main: LRU, 75 %
//! ```

use crate::arena::{Arena, List};
use crate::ghosts::Ghosts;
use crate::lists::{self, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// In a slot's mark: the block is in the main list.
const MAIN: u8 = 1;

struct TwoQ {
    arena: Arena,
    first: List,
    main: List,
    out: Ghosts,
    capacity: u32,
    first_max: u32,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(4)?;
    let capacity = shape.capacity;
    Ok(Box::new(TwoQ {
        arena: Arena::new(capacity),
        first: List::EMPTY,
        main: List::EMPTY,
        out: Ghosts::new(capacity / 2),
        capacity,
        first_max: capacity / 4,
    }))
}

impl TwoQ {
    /// Makes room. `entering` is the list that the next block enters, if it is the main one.
    fn make_room(&mut self, to_main: bool, actions: &mut Actions) {
        if self.first.len() + self.main.len() == self.capacity {
            if self.first.len() > self.first_max {
                let tail = self.first.tail();
                let block = lists::evict(&mut self.arena, &mut self.first, tail, actions);
                self.out.enter(block);
            } else {
                let tail = self.main.tail();
                lists::evict(&mut self.arena, &mut self.main, tail, actions);
            }
        }
        if to_main && self.main.len() == self.capacity - self.first_max {
            let tail = self.main.tail();
            lists::evict(&mut self.arena, &mut self.main, tail, actions);
        }
    }
}

impl Policy for TwoQ {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(slot) = self.arena.find(block) {
            let mark = self.arena.mark_mut(slot);
            *mark |= dirty(write);
            if *mark & MAIN != 0 {
                self.arena.refresh(&mut self.main, slot);
            }
            return Served::Device;
        }
        let came_back = self.out.take(block);
        self.make_room(came_back, actions);
        if came_back {
            lists::fetch(&mut self.arena, &mut self.main, block, MAIN | dirty(write), actions);
        } else {
            lists::fetch(&mut self.arena, &mut self.first, block, dirty(write), actions);
        }
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.arena.bytes() + self.out.bytes()
    }
}
