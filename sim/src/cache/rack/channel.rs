//! A compute node's requests: those under way, and those that wait.
//!
//! Requests leave in order, but fetches that an access waits for pass the others, also if they were begun ahead. None passes a request for the same block if one of the
//! two writes, and none leaves while such a request is under way. So a fetch brings what was written back last, which is checked.

use crate::requests::{Ask, Ended, Requests, Transfer};
use p4rack_cache::Block;
use std::collections::{BTreeMap, VecDeque};

/// A mistake planted by a test, which the checks have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePlant {
    /// One write-back of 16 never leaves.
    LostWriteBack,
    /// Fetches pass write-backs of the same block.
    Overtaking,
    /// Fetches take one block more than the policy asks for.
    LongFetch,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub first: Block,
    pub count: u32,
    pub is_write: bool,
    /// Whether an access waits for it.
    pub is_urgent: bool,
}

impl Order {
    fn conflicts(&self, other: &Order) -> bool {
        let is_apart = self.first + self.count <= other.first || other.first + other.count <= self.first;
        !is_apart && (self.is_write || other.is_write)
    }

    fn blocks(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// Limits of a compute node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Requests under way at most.
    pub window: u16,
    /// Requests that wait at most, beside those that an access waits for.
    pub queue: u32,
}

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCounts {
    pub fetches: u64,
    pub write_backs: u64,
    pub fetched_bytes: u64,
    pub written_bytes: u64,
    /// Fetches that returned other bytes than those written last.
    pub wrong: u64,
    /// Time of all requests under way, picoseconds, and most of them at a time.
    pub under_way_ps: u128,
    pub under_way_max: usize,
    /// Most that waited.
    pub waiting_max: usize,
}

/// The requests of a compute node.
#[derive(Debug)]
pub(super) struct Channel {
    node: u16,
    block_bytes: u32,
    limits: Limits,
    plant: Option<CachePlant>,
    waiting: VecDeque<Order>,
    /// By tag, with the time of asking.
    under_way: BTreeMap<u64, (Order, u64)>,
    tags: u64,
    /// By block: fetches that have not ended, and how often it was written back.
    coming: Vec<u16>,
    versions: Vec<u32>,
    data: Vec<u8>,
    pub asked: RequestCounts,
}

/// The word that a write-back leaves at an address of a node's part.
fn word_of(node: u16, address: u64, version: u32) -> u64 {
    let mixed =
        (address ^ u64::from(version) << 40 ^ u64::from(node) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Channel {
    pub fn new(
        node: u16,
        blocks: usize,
        block_bytes: u32,
        limits: Limits,
        plant: Option<CachePlant>,
    ) -> Channel {
        Channel {
            node,
            block_bytes,
            limits,
            plant,
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            tags: 0,
            coming: vec![0; blocks],
            versions: vec![0; blocks],
            data: Vec::new(),
            asked: RequestCounts::default(),
        }
    }

    /// Whether a block has come, if it was asked for.
    #[inline]
    pub fn is_here(&self, block: Block) -> bool {
        self.coming[block as usize] == 0
    }

    /// Whether a request fits that no access waits for.
    pub fn has_room(&self) -> bool {
        self.waiting.iter().filter(|order| !order.is_urgent).count() < self.limits.queue as usize
    }

    /// Whether nothing waits or is under way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Adds a request. Those that no access waits for need [room](Channel::has_room).
    pub fn order(&mut self, order: Order) {
        if !order.is_write {
            self.coming[order.blocks()].iter_mut().for_each(|count| *count += 1);
        }
        let at = self.place(&order, self.waiting.len());
        self.waiting.insert(at, order);
    }

    /// Where a request belongs among the first `count` that wait.
    fn place(&self, order: &Order, count: usize) -> usize {
        let behind = |other: &Order| other.is_urgent || self.conflict(order, other);
        match order.is_urgent {
            true => self.waiting.iter().take(count).rposition(behind).map_or(0, |last| last + 1),
            false => count,
        }
    }

    /// An access waits for a block from now on: if its fetch has not left, it passes the others.
    pub fn hasten(&mut self, block: Block) {
        let fetches = |order: &Order| !order.is_write && order.blocks().contains(&(block as usize));
        let Some(before) = self.waiting.iter().position(fetches) else { return };
        let Some(mut order) = self.waiting.get(before).copied().filter(|order| !order.is_urgent) else {
            return;
        };
        order.is_urgent = true;
        let at = self.place(&order, before);
        self.waiting.remove(before);
        self.waiting.insert(at, order);
    }

    fn conflict(&self, order: &Order, other: &Order) -> bool {
        self.plant != Some(CachePlant::Overtaking) && order.conflicts(other)
    }

    /// Issues the requests that may leave now. Errors: the rack refuses it.
    pub fn send(&mut self, requests: &mut dyn Requests, now_ps: u64) -> Result<(), String> {
        while self.under_way.len() < self.limits.window.into()
            && let Some(order) = self.waiting.front().copied()
            && !self.under_way.values().any(|(other, _)| self.conflict(&order, other))
        {
            self.waiting.pop_front();
            self.ask(order, requests, now_ps)?;
        }
        self.asked.under_way_max = self.asked.under_way_max.max(self.under_way.len());
        self.asked.waiting_max = self.asked.waiting_max.max(self.waiting.len());
        Ok(())
    }

    fn ask(&mut self, order: Order, requests: &mut dyn Requests, now_ps: u64) -> Result<(), String> {
        self.tags += 1;
        let (node, tag) = (self.node, self.tags);
        let address = u64::from(order.first) * u64::from(self.block_bytes);
        let mut bytes = order.count * self.block_bytes;
        let what = if order.is_write {
            let version = &mut self.versions[order.first as usize];
            *version += 1;
            if self.plant == Some(CachePlant::LostWriteBack) && tag.is_multiple_of(16) {
                return Ok(());
            }
            self.data.clear();
            let words = (address..address + u64::from(bytes)).step_by(8);
            self.data.extend(words.flat_map(|at| word_of(node, at, *version).to_le_bytes()));
            self.asked.write_backs += 1;
            self.asked.written_bytes += u64::from(bytes);
            Transfer::Write(&self.data)
        } else {
            let has_more = order.blocks().end < self.coming.len();
            if self.plant == Some(CachePlant::LongFetch) && has_more {
                bytes += self.block_bytes;
            }
            self.asked.fetches += 1;
            self.asked.fetched_bytes += u64::from(bytes);
            Transfer::Read(bytes)
        };
        self.under_way.insert(tag, (order, now_ps));
        requests.ask(Ask { node, tag, address, what }, now_ps)
    }

    /// A request has ended. Errors: it failed, or is none of these.
    pub fn ended(&mut self, ended: &Ended, requests: &dyn Requests) -> Result<(), String> {
        let failed = || format!("a request of compute node {} failed in the rack", self.node + 1);
        let (order, since_ps) = self.under_way.remove(&ended.tag).ok_or_else(failed)?;
        let bytes = ended.bytes.as_ref().ok_or_else(failed)?;
        self.asked.under_way_ps += u128::from(ended.at_ps - since_ps);
        if !order.is_write {
            let is_right = self.is_right(&order, bytes, requests);
            self.asked.wrong += u64::from(!is_right);
            self.coming[order.blocks()].iter_mut().for_each(|count| *count -= 1);
        }
        Ok(())
    }

    /// Whether a fetch has returned the last write-back.
    fn is_right(&self, order: &Order, bytes: &[u8], requests: &dyn Requests) -> bool {
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let is_whole = bytes.len() as u64 == u64::from(order.count) * u64::from(self.block_bytes);
        let mut expected = order.blocks().flat_map(|block| {
            let start = block as u64 * u64::from(self.block_bytes);
            let version = self.versions[block];
            (start..start + u64::from(self.block_bytes)).step_by(8).map(move |at| match version {
                0 => requests.fresh(self.node, at),
                version => word_of(self.node, at, version),
            })
        });
        is_whole && expected.all(|word| words.next() == Some(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(first: Block, count: u32, is_urgent: bool) -> Order {
        Order { first, count, is_write: false, is_urgent }
    }

    fn write(first: Block) -> Order {
        Order { first, count: 1, is_write: true, is_urgent: false }
    }

    /// What waits once an access has come to wait for block 9.
    fn hastened(orders: &[Order]) -> Vec<Block> {
        let mut channel = Channel::new(0, 64, 512, Limits { window: 1, queue: 64 }, None);
        orders.iter().for_each(|order| channel.order(*order));
        channel.hasten(9);
        channel.waiting.iter().map(|order| order.first).collect()
    }

    #[test]
    fn a_late_fetch_passes_all_but_what_it_needs() {
        assert_eq!(hastened(&[write(1), fetch(32, 2, false), fetch(8, 4, false), write(2)]), [8, 1, 32, 2]);
        assert_eq!(hastened(&[write(1), fetch(40, 1, true), fetch(8, 4, false)]), [40, 8, 1]);
        let own = [write(1), write(10), write(2), fetch(8, 4, false)];
        assert_eq!(hastened(&own), [1, 10, 8, 2], "behind the write-back of a block that it brings");
        assert_eq!(hastened(&[write(9), fetch(16, 4, false)]), [9, 16], "no fetch of it waits");
        assert_eq!(hastened(&[fetch(8, 4, true), write(1)]), [8, 1]);
    }
}
