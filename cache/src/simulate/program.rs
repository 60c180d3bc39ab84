//! A policy on a load, access by access: for drivers in which a fetch takes a time that only they know.

use super::used::Used;
use super::{Event, LINE_BYTES, Load, Local, Setup};
use crate::{
    Action, Actions, Block, Build, Counting, Definition, PAGE_BYTES, Policy, Refused, Served, Shape,
};

/// An access that a policy has decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// Its block.
    pub block: Block,
    /// Which memory serves it.
    pub served: Served,
    /// Whether the CPU waits for it: it is no write-back of the CPU's own caches.
    pub waits: bool,
}

/// A policy on a load.
pub struct Program<'a> {
    policy: Box<dyn Policy>,
    events: std::slice::Iter<'a, Event>,
    lines_per_block: u32,
    used: Used,
    capacity: u32,
    tables_bytes: u64,
}

impl std::fmt::Debug for Program<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<'a> Program<'a> {
    /// A policy with the local memory of `setup`, its tables included, at the beginning of a load. Errors: a load that no CPU waits
    /// for; local memory, its share or a block that the policy can't have; a policy that counts its memory otherwise.
    pub fn new(definition: &Definition, load: &'a Load, setup: &Setup) -> Result<Program<'a>, Refused> {
        check(load, setup)?;
        if definition.counting != Counting::Equal {
            return Err(Refused::Counting);
        }
        let block_bytes = setup.block_bytes;
        let lines_per_block = block_bytes / LINE_BYTES;
        let blocks: Vec<Block> = match definition.build {
            Build::Online(_) => Vec::new(),
            Build::Offline(_) => load.events.iter().map(|event| event.line / lines_per_block).collect(),
        };
        let in_blocks = |bytes: u64| u32::try_from(bytes / u64::from(block_bytes)).unwrap_or(u32::MAX);
        let bytes = |percent: u32| load.footprint_bytes() * u64::from(percent) / 100;
        let mut capacity = match setup.local {
            Local::Percent(percent) => in_blocks(bytes(percent)),
            Local::Blocks(blocks) => blocks,
        };
        let mut policy = definition.open(&shape(load, setup, capacity), &blocks)?;
        let online = matches!(definition.build, Build::Online(_));
        if let (Local::Percent(percent), true) = (setup.local, online) {
            // Fewer blocks mostly have smaller tables. Where another division of the memory makes them larger, more blocks go.
            loop {
                let fits = in_blocks(bytes(percent).saturating_sub(policy.metadata_bytes()));
                if fits >= capacity {
                    break;
                }
                capacity = fits;
                policy = definition.open(&shape(load, setup, capacity), &blocks)?;
            }
        }
        let tables_bytes = if online { policy.metadata_bytes() } else { 0 };
        let used = Used::new(load.footprint_bytes(), block_bytes);
        Ok(Program { policy, events: load.events.iter(), lines_per_block, used, capacity, tables_bytes })
    }

    /// The next access; `actions` gets the driver's work for it.
    #[inline]
    pub fn next(&mut self, actions: &mut Actions) -> Option<Accessed> {
        let event = self.events.next()?;
        let block = event.line / self.lines_per_block;
        let served = self.policy.access(block, event.write || event.write_back, actions);
        for action in actions.as_slice() {
            if let Action::Fetch { first, count, .. } = *action {
                self.used.fetched(first, count);
            }
        }
        self.used.access(event.line);
        Some(Accessed { block, served, waits: !event.write_back })
    }

    /// Blocks of local memory.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bytes of lines that were accessed, once for each fetch of their block.
    pub fn used_bytes(&self) -> u64 {
        self.used.bytes()
    }

    /// Bytes of the policy's tables.
    pub fn tables_bytes(&self) -> u64 {
        self.tables_bytes
    }
}

/// Refuses blocks that are no part of a page, and loads without accesses that a CPU waits for.
pub(super) fn check(load: &Load, setup: &Setup) -> Result<(), Refused> {
    let block_bytes = setup.block_bytes;
    if !block_bytes.is_power_of_two() || !(LINE_BYTES..=PAGE_BYTES).contains(&block_bytes) {
        return Err(Refused::Page { blocks: PAGE_BYTES / block_bytes.max(1) });
    }
    if load.fills() == 0 { Err(Refused::Load) } else { Ok(()) }
}

/// The shape of a policy with `capacity` blocks.
pub(super) fn shape(load: &Load, setup: &Setup, capacity: u32) -> Shape {
    let per_page = PAGE_BYTES / setup.block_bytes;
    Shape {
        host_percent: setup.host_percent,
        one_memory: setup.one_memory,
        pairs: setup.pairs,
        ..Shape::new(load.pages.saturating_mul(per_page), capacity, per_page)
    }
}
