//! Belady's MIN (IBM Systems Journal 1966): drops the block whose next use is the farthest. It has to know all accesses, so
//! only simulations can run it.

use crate::{Actions, Block, Policy, Refused, Served, Shape};
use std::collections::BTreeSet;

/// No further use.
const NEVER: u32 = u32::MAX;

struct Belady {
    /// For each access, which later one uses the same block.
    next_use: Vec<u32>,
    now: usize,
    /// Local blocks by their next use.
    local: BTreeSet<(u32, Block)>,
    /// For each block: the next use under which it is listed, and whether it is dirty; `None` if it is not local.
    listed: Vec<Option<(u32, bool)>>,
    capacity: u32,
}

/// A policy for exactly these accesses.
pub(crate) fn open(shape: &Shape, accesses: &[Block]) -> Result<Box<dyn Policy>, Refused> {
    shape.check(1)?;
    let mut last = vec![NEVER; shape.footprint as usize];
    let mut next_use = vec![NEVER; accesses.len()];
    for (at, block) in accesses.iter().enumerate().rev() {
        next_use[at] = std::mem::replace(&mut last[*block as usize], at as u32);
    }
    let listed = vec![None; shape.footprint as usize];
    Ok(Box::new(Belady { next_use, now: 0, local: BTreeSet::new(), listed, capacity: shape.capacity }))
}

impl Policy for Belady {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let next = self.next_use.get(self.now).copied().unwrap_or(NEVER);
        self.now += 1;
        let before = self.listed[block as usize];
        match before {
            Some((listed, _)) => {
                self.local.remove(&(listed, block));
            }
            None => {
                if self.local.len() == self.capacity as usize
                    && let Some((_, farthest)) = self.local.pop_last()
                {
                    let dirty = self.listed[farthest as usize].take().is_some_and(|(_, dirty)| dirty);
                    actions.evict(farthest, dirty);
                }
                actions.fetch(block);
            }
        }
        self.local.insert((next, block));
        self.listed[block as usize] = Some((next, write || before.is_some_and(|(_, dirty)| dirty)));
        if before.is_some() { Served::Device } else { Served::Remote }
    }

    fn metadata_bytes(&self) -> u64 {
        (self.next_use.len() * 4 + self.listed.len() * size_of::<Option<(u32, bool)>>()) as u64
    }
}
