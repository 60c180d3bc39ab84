//! Policies of lists.

use super::{Reference, ghost, take};
use p4rack_cache::Block;

pub struct OneList {
    pub list: Vec<Block>,
    pub capacity: usize,
    pub by_use: bool,
}

impl Reference for OneList {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        let hit = self.list.contains(&block);
        if hit && self.by_use {
            take(&mut self.list, block);
            self.list.insert(0, block);
        }
        if !hit {
            if self.list.len() == self.capacity {
                evicted.extend(self.list.pop());
            }
            self.list.insert(0, block);
        }
        hit
    }
}

pub struct Ways {
    pub sets: Vec<Vec<Block>>,
    pub by_use: bool,
}

impl Reference for Ways {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        let at = block as usize % self.sets.len();
        let list = std::mem::take(&mut self.sets[at]);
        let mut set = OneList { list, capacity: 4, by_use: self.by_use };
        let hit = set.access(block, evicted);
        self.sets[at] = set.list;
        hit
    }
}

pub struct PageCache {
    pub active: Vec<Block>,
    pub inactive: Vec<Block>,
    pub capacity: usize,
}

impl PageCache {
    fn balance(&mut self) {
        if self.active.len() > self.inactive.len() {
            self.inactive.insert(0, self.active.pop().expect("is longer"));
        }
    }
}

impl Reference for PageCache {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if take(&mut self.active, block) || take(&mut self.inactive, block) {
            self.active.insert(0, block);
            self.balance();
            return true;
        }
        if self.active.len() + self.inactive.len() == self.capacity {
            evicted.extend(self.inactive.pop().or_else(|| self.active.pop()));
            self.balance();
        }
        self.inactive.insert(0, block);
        false
    }
}

pub struct Sieve {
    /// Blocks, and whether each was used since the hand passed.
    pub list: Vec<(Block, bool)>,
    pub hand: Option<usize>,
    pub capacity: usize,
}

impl Reference for Sieve {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if let Some(entry) = self.list.iter_mut().find(|(one, _)| *one == block) {
            entry.1 = true;
            return true;
        }
        if self.list.len() == self.capacity {
            let oldest = self.list.len() - 1;
            let mut at = self.hand.unwrap_or(oldest);
            while self.list[at].1 {
                self.list[at].1 = false;
                at = at.checked_sub(1).unwrap_or(oldest);
            }
            evicted.push(self.list.remove(at).0);
            self.hand = at.checked_sub(1);
        }
        self.list.insert(0, (block, false));
        self.hand = self.hand.map(|hand| hand + 1);
        false
    }
}

pub struct S3Fifo {
    small: Vec<(Block, u8)>,
    main: Vec<(Block, u8)>,
    ghosts: Vec<Block>,
    capacity: usize,
    evicts: bool,
}

impl S3Fifo {
    pub fn new(capacity: usize) -> S3Fifo {
        S3Fifo { small: Vec::new(), main: Vec::new(), ghosts: Vec::new(), capacity, evicts: false }
    }

    fn small_max(&self) -> usize {
        (self.capacity / 10).max(1)
    }

    fn evict(&mut self) -> Block {
        self.evicts = true;
        if self.main.len() <= self.capacity - self.small_max() {
            while let Some((block, uses)) = self.small.pop() {
                if uses < 2 {
                    ghost(&mut self.ghosts, block, self.capacity * 9 / 10);
                    return block;
                }
                self.main.insert(0, (block, 0));
            }
        }
        loop {
            match self.main.pop().expect("holds the rest") {
                (block, 0) => return block,
                (block, uses) => self.main.insert(0, (block, uses - 1)),
            }
        }
    }
}

impl Reference for S3Fifo {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if let Some(entry) = self.small.iter_mut().chain(&mut self.main).find(|(one, _)| *one == block) {
            entry.1 = (entry.1 + 1).min(3);
            return true;
        }
        let came_back = take(&mut self.ghosts, block);
        while self.small.len() + self.main.len() == self.capacity {
            evicted.push(self.evict());
        }
        let first_fill = !self.evicts && self.small.len() >= self.small_max();
        let queue = if came_back || first_fill { &mut self.main } else { &mut self.small };
        queue.insert(0, (block, 0));
        false
    }
}

pub struct TwoQ {
    first: Vec<Block>,
    out: Vec<Block>,
    main: Vec<Block>,
    capacity: usize,
}

impl TwoQ {
    pub fn new(capacity: usize) -> TwoQ {
        TwoQ { first: Vec::new(), out: Vec::new(), main: Vec::new(), capacity }
    }
}

impl Reference for TwoQ {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if self.first.contains(&block) {
            return true;
        }
        if take(&mut self.main, block) {
            self.main.insert(0, block);
            return true;
        }
        let came_back = take(&mut self.out, block);
        let first_max = self.capacity / 4;
        if self.first.len() + self.main.len() == self.capacity {
            if self.first.len() > first_max {
                let gone = self.first.pop().expect("is not empty");
                ghost(&mut self.out, gone, self.capacity / 2);
                evicted.push(gone);
            } else {
                evicted.extend(self.main.pop());
            }
        }
        if came_back {
            if self.main.len() == self.capacity - first_max {
                evicted.extend(self.main.pop());
            }
            self.main.insert(0, block);
        } else {
            self.first.insert(0, block);
        }
        false
    }
}
