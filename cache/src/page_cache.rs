//! Kona-PC: Linux's page cache in front of remote memory. Blocks are pages in two lists.

use crate::lists::{DIRTY, dirty};
use crate::pages::Pages;
use crate::{Actions, Block, Policy, Refused, Served, Shape};

struct PageCache(Pages);

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(2)?;
    Ok(Box::new(PageCache(Pages::new(shape.capacity))))
}

impl Policy for PageCache {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(slot) = self.0.arena.find(block) {
            *self.0.arena.mark_mut(slot) |= dirty(write);
            self.0.used(slot);
            return Served::Device;
        }
        if self.0.is_full() {
            self.0.evict(DIRTY, actions);
        }
        actions.fetch(block);
        self.0.insert(block, dirty(write));
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.0.arena.bytes()
    }
}
