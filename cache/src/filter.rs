//! UniMem's filter cache (paper §3.2): a block has to be used twice before it displaces others that were.
//!
//! ```text
//!  miss ───────────────▶ inactive: FIFO, ≥ 10 % ── used ──▶ active: LRU, ≤ 90 %
//!  miss, in the refault queue ─────────────────────────────▶ │
//!        ▲                        │ cache full                │ over 90 %
//!        └── refault queue ◀──────┴───────────────────────────┘ both leave the cache
//! ```
//!
//! There are several pairs of lists, chosen by the block's hash, so that hardware can work on them in parallel.

use crate::arena::{Arena, List, mix};
use crate::lists::{self, DIRTY, dirty};
use crate::ring::Ring;
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// In a slot's mark.
const ACTIVE: u8 = 1;
/// In a slot's mark: the block came from the host, and may have an entry in the refault queue still. All others took theirs.
const GIVEN: u8 = 1 << 1;

/// One pair of lists and the addresses of blocks that left them.
struct Pair {
    active: List,
    inactive: List,
    refault: Ring,
    capacity: u32,
    active_max: u32,
}

/// Result of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The block was active.
    Active,
    /// It became active, by its second use.
    Activated,
    /// It was fetched into the active list: it had been here before.
    Refault,
    /// It was fetched into the inactive list.
    New,
}

/// The cache of single blocks in the device.
pub(crate) struct Filter {
    arena: Arena,
    pairs: Vec<Pair>,
}

impl Filter {
    /// A filter of `capacity` blocks, a part of the shape's. If all blocks fit, the active list may have all of them.
    pub(crate) fn new(capacity: u32, shape: &Shape) -> Filter {
        let (pairs, active_percent) = (shape.pairs, if shape.holds_all() { 100 } else { 90 });
        let pair = |index: u32| {
            let capacity = capacity / pairs + u32::from(index < capacity % pairs);
            Pair {
                active: List::EMPTY,
                inactive: List::EMPTY,
                refault: Ring::new(capacity),
                capacity,
                active_max: (u64::from(capacity) * active_percent / 100) as u32,
            }
        };
        Filter { arena: Arena::new(capacity), pairs: (0..pairs).map(pair).collect() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes() + self.pairs.iter().map(|pair| pair.refault.bytes()).sum::<u64>()
    }

    #[inline]
    fn pair(&self, block: Block) -> usize {
        mix(block) as usize & (self.pairs.len() - 1)
    }

    #[inline]
    pub(crate) fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Found {
        let index = self.pair(block);
        let (arena, pair) = (&mut self.arena, &mut self.pairs[index]);
        if let Some(slot) = arena.find(block) {
            *arena.mark_mut(slot) |= dirty(write);
            if arena.mark(slot) & ACTIVE != 0 {
                arena.refresh(&mut pair.active, slot);
                return Found::Active;
            }
            pair.room_in_active(arena, actions);
            arena.unlink(&mut pair.inactive, slot);
            arena.push(&mut pair.active, slot);
            *arena.mark_mut(slot) |= ACTIVE;
            return Found::Activated;
        }
        if pair.refault.take(block) {
            pair.room_in_active(arena, actions);
            pair.room(arena, actions);
            lists::fetch(arena, &mut pair.active, block, ACTIVE | dirty(write), actions);
            return Found::Refault;
        }
        pair.room(arena, actions);
        lists::fetch(arena, &mut pair.inactive, block, dirty(write), actions);
        Found::New
    }

    /// 2 for an active block, 1 for an inactive one, 0 for one that is not here.
    pub(crate) fn score(&self, block: Block) -> u32 {
        self.arena.find(block).map_or(0, |slot| 1 + u32::from(self.arena.mark(slot) & ACTIVE))
    }

    /// Hands a block over to the host: whether it is dirty, if it is here. Leaving like this is no eviction.
    pub(crate) fn take(&mut self, block: Block) -> Option<bool> {
        let slot = self.arena.find(block)?;
        let index = self.pair(block);
        let (pair, mark) = (&mut self.pairs[index], self.arena.mark(slot));
        let list = if mark & ACTIVE != 0 { &mut pair.active } else { &mut pair.inactive };
        self.arena.unlink(list, slot);
        self.arena.release(slot);
        Some(mark & DIRTY != 0)
    }

    /// Takes a block back from the host, at the head of the inactive list.
    pub(crate) fn give(&mut self, block: Block, dirty: bool, actions: &mut Actions) {
        let index = self.pair(block);
        let pair = &mut self.pairs[index];
        pair.room(&mut self.arena, actions);
        let slot = self.arena.insert(block, GIVEN | lists::dirty(dirty));
        self.arena.push(&mut pair.inactive, slot);
    }
}

impl Pair {
    /// Evicts the active list's tail if the list has its 90 %.
    #[inline]
    fn room_in_active(&mut self, arena: &mut Arena, actions: &mut Actions) {
        if self.active.len() == self.active_max.max(1) {
            evict(arena, &mut self.active, &mut self.refault, actions);
        }
    }

    /// Evicts the inactive list's tail if the pair is full.
    #[inline]
    fn room(&mut self, arena: &mut Arena, actions: &mut Actions) {
        if self.active.len() + self.inactive.len() == self.capacity {
            let list = if self.inactive.len() > 0 { &mut self.inactive } else { &mut self.active };
            evict(arena, list, &mut self.refault, actions);
        }
    }
}

/// Evicts the tail of a list.
#[inline]
fn evict(arena: &mut Arena, list: &mut List, refault: &mut Ring, actions: &mut Actions) {
    let tail = list.tail();
    let is_given = arena.mark(tail) & GIVEN != 0;
    let block = lists::evict(arena, list, tail, actions);
    match is_given {
        true => refault.enter_again(block),
        false => refault.enter(block),
    }
}

/// UniMem without promotion: the filter has all of the local memory.
struct NoPromote(Filter);

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    let shape = Shape { host_percent: 0, ..shape.clone() };
    shape.check(2 * shape.pairs)?;
    Ok(Box::new(NoPromote(Filter::new(shape.capacity, &shape))))
}

impl Policy for NoPromote {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        match self.0.access(block, write, actions) {
            Found::Active | Found::Activated => Served::Device,
            Found::Refault | Found::New => Served::Remote,
        }
    }

    fn metadata_bytes(&self) -> u64 {
        self.0.bytes()
    }
}
