//! Random accesses, and plain memory behind a policy.
#![allow(dead_code)]

use p4rack_cache::{Action, Actions, Block, Policy, Served, Shape};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// An access.
pub type Access = (Block, bool);

/// Accesses with a hot part, runs of adjacent blocks and a cold part.
pub fn accesses(footprint: u32, len: usize) -> impl Strategy<Value = Vec<Access>> {
    let hot = (0..footprint / 8, any::<bool>()).prop_map(|access| vec![access]);
    let cold = (0..footprint, prop::bool::weighted(0.2)).prop_map(|access| vec![access]);
    let run = (0..footprint, 2u32..24, any::<bool>()).prop_map(move |(first, count, write)| {
        (first..(first + count).min(footprint)).map(|block| (block, write)).collect()
    });
    prop::collection::vec(prop_oneof![3 => hot, 2 => cold, 1 => run], 1..len).prop_map(|parts| parts.concat())
}

/// A block of local memory.
#[derive(Clone, Copy, Debug)]
struct Local {
    version: u32,
    dirty: bool,
    tier: Served,
}

/// Content of plain memory, and of the memories of a driver that obeys the policy. Versions
/// represent bytes.
pub struct Memory {
    shape: Shape,
    plain: Vec<u32>,
    remote: Vec<u32>,
    local: BTreeMap<Block, Local>,
}

impl Memory {
    pub fn new(shape: &Shape) -> Memory {
        let versions = vec![0; shape.footprint as usize];
        Memory { shape: shape.clone(), plain: versions.clone(), remote: versions, local: BTreeMap::new() }
    }

    pub fn has(&self, block: Block) -> bool {
        self.local.contains_key(&block)
    }

    /// One access: executes the policy's actions, and checks its promises.
    pub fn access(
        &mut self,
        policy: &mut dyn Policy,
        (block, write): Access,
        actions: &mut Actions,
    ) -> Result<Served, String> {
        let before = self.local.get(&block).map(|local| local.tier);
        let served = policy.access(block, write, actions);
        let waited = actions.as_slice().iter().any(|action| {
            matches!(action, Action::Fetch { first, count, ahead: false } if (*first..first + count).contains(&block))
        });
        if waited != (served == Served::Remote) {
            return Err(format!(
                "block {block} came from {served:?}, with a fetch that it waits for: {waited}"
            ));
        }
        for action in actions.as_slice() {
            self.apply(*action).map_err(|error| format!("{action:?}: {error}"))?;
            if self.local.len() > self.shape.capacity as usize {
                return Err(format!("{action:?}: {} blocks are local", self.local.len()));
            }
        }
        let Some(local) = self.local.get_mut(&block) else { return Err(format!("block {block} is absent")) };
        if served != Served::Remote && before != Some(served) {
            return Err(format!("block {block} was in {before:?} and came from {served:?}"));
        }
        if local.version != self.plain[block as usize] {
            return Err(format!("a read of block {block} does not return the last write"));
        }
        if write {
            self.plain[block as usize] += 1;
            (local.version, local.dirty) = (self.plain[block as usize], true);
        }
        Ok(served)
    }

    fn apply(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Fetch { first, count, .. } => {
                for block in first..first + count {
                    let version = *self.remote.get(block as usize).ok_or("behind the memory's end")?;
                    let local = Local { version, dirty: false, tier: Served::Device };
                    if self.local.insert(block, local).is_some() {
                        return Err(format!("block {block} is here"));
                    }
                }
            }
            Action::Evict { block, dirty } => {
                let local = self.local.remove(&block).ok_or("is absent")?;
                if local.dirty != dirty {
                    return Err(format!("its dirty mark should be {}", local.dirty));
                }
                if dirty {
                    self.remote[block as usize] = local.version;
                }
            }
            Action::Promote { page } => {
                let first = page * self.shape.blocks_per_page;
                for block in first..first + self.shape.blocks_per_page {
                    let local = self.local.get_mut(&block).ok_or(format!("block {block} is absent"))?;
                    local.tier = Served::Host;
                }
            }
            Action::Demote { block } => {
                let local = self.local.get_mut(&block).ok_or("is absent")?;
                if local.tier != Served::Host {
                    return Err("is not in the host".into());
                }
                local.tier = Served::Device;
            }
        }
        Ok(())
    }
}
