//! Limits of a region, and how many frames fit into local memory.

use super::frames::Frames;
use super::{Actions, Counters, Residency};
use crate::{Build, Definition, Refused, Shape};
use std::collections::VecDeque;

/// Limits of requests under way beside the policy's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Guards.
    pub guards: u16,
    /// Accesses that wait for a fetch.
    pub claims: u16,
    /// Prefetched blocks that were not used.
    pub prefetched: u16,
    /// Blocks of a fetch in one request, at least 1.
    pub fetch: u32,
}

impl Limits {
    /// Frames beside the policy's: for each of these blocks one, so that the policy's blocks never wait for them.
    pub(super) fn frames(&self) -> u32 {
        u32::from(self.guards) + u32::from(self.claims) + u32::from(self.prefetched)
    }

    /// Fetches that are queued or under way: two for each claim, of its block and ahead of it, those of prefetched blocks, and those
    /// of two pages.
    fn fetches(&self) -> u32 {
        2 * u32::from(self.claims) + u32::from(self.prefetched) + 2 * crate::PAGE_BLOCKS_MAX
    }
}

/// How much local memory a region has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Bytes, with room for all tables and frames in them.
    Bytes(u64),
    /// Blocks of the policy. Frames of [`Limits`] come on top.
    Blocks(u32),
}

impl Residency {
    /// A region without local blocks, of `footprint` blocks of `block_bytes` bytes. Its policy may divide local memory as it
    /// finds best. Errors: local memory is too small or too large for the policy, or the policy knows the future.
    pub fn new(
        definition: &Definition,
        (footprint, block_bytes): (u32, u32),
        room: Room,
        limits: Limits,
    ) -> Result<Residency, Refused> {
        let in_blocks = |bytes: u64| u32::try_from(bytes / u64::from(block_bytes)).unwrap_or(u32::MAX);
        let bytes = match room {
            Room::Blocks(blocks) => {
                return Residency::with_capacity(definition, footprint, block_bytes, blocks, limits);
            }
            Room::Bytes(bytes) => bytes,
        };
        let open = |capacity| {
            let residency = Residency::with_capacity(definition, footprint, block_bytes, capacity, limits)?;
            let frames = in_blocks(bytes.saturating_sub(residency.tables_bytes()));
            Ok((residency, frames.saturating_sub(limits.frames())))
        };
        let mut capacity = in_blocks(bytes).saturating_sub(limits.frames());
        if capacity >= footprint {
            let (residency, fits) = open(footprint)?;
            if fits >= footprint {
                return Ok(residency);
            }
            // Less than all is divided in another way, with other tables.
            capacity = footprint.saturating_sub(1);
        }
        loop {
            let (residency, fits) = open(capacity)?;
            if fits >= capacity {
                return Ok(residency);
            }
            capacity = fits;
        }
    }

    fn with_capacity(
        definition: &Definition,
        footprint: u32,
        block_bytes: u32,
        capacity: u32,
        limits: Limits,
    ) -> Result<Residency, Refused> {
        if matches!(definition.build, Build::Offline(_)) {
            return Err(Refused::Future { name: definition.name });
        }
        let blocks_per_page = (crate::PAGE_BYTES / block_bytes.max(1)).max(1);
        let mut shape = Shape { one_memory: true, ..Shape::new(footprint, capacity, blocks_per_page) };
        if capacity >= footprint {
            // Nothing has to be chosen, and a part for whole pages would keep others out.
            shape.host_percent = 0;
        }
        let policy = definition.open(&shape, &[])?;
        let count = capacity + limits.frames();
        let frames = Frames::new(count, limits.prefetched);
        let fetches_max = limits.fetches().min(count);
        Ok(Residency {
            policy,
            actions: Actions::default(),
            turn: None,
            frames,
            limits: Limits { fetch: limits.fetch.max(1), ..limits },
            footprint,
            blocks_per_page,
            epoch: 1,
            fetches: VecDeque::with_capacity(fetches_max as usize),
            fetches_max,
            fetching: 0,
            unflushed: 0,
            guards: 0,
            claims: 0,
            failed: false,
            has_changed: false,
            counters: Counters::default(),
            overwritten: None,
            #[cfg(test)]
            plant: None,
        })
    }
}
