//! Policies that learn.

use super::{Reference, take};
use p4rack_cache::Block;

pub struct Filter {
    active: Vec<Block>,
    inactive: Vec<Block>,
    /// Evicted blocks in order; `None` for one that came back.
    refault: Vec<Option<Block>>,
    capacity: usize,
}

impl Filter {
    pub fn new(capacity: usize) -> Filter {
        Filter { active: Vec::new(), inactive: Vec::new(), refault: Vec::new(), capacity }
    }

    fn evicts(&mut self, block: Block, evicted: &mut Vec<Block>) {
        evicted.push(block);
        self.refault.insert(0, Some(block));
        self.refault.truncate(self.capacity);
    }

    fn activate(&mut self, block: Block, evicted: &mut Vec<Block>) {
        if self.active.len() == (self.capacity * 9 / 10).max(1) {
            let gone = self.active.pop().expect("is full");
            self.evicts(gone, evicted);
        }
        self.active.insert(0, block);
    }

    fn room(&mut self, evicted: &mut Vec<Block>) {
        if self.active.len() + self.inactive.len() == self.capacity {
            let gone = self.inactive.pop().or_else(|| self.active.pop()).expect("is full");
            self.evicts(gone, evicted);
        }
    }
}

impl Reference for Filter {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if take(&mut self.active, block) {
            self.active.insert(0, block);
            return true;
        }
        if self.inactive.contains(&block) {
            self.activate(block, evicted);
            take(&mut self.inactive, block);
            return true;
        }
        if let Some(entry) = self.refault.iter_mut().find(|entry| **entry == Some(block)) {
            *entry = None;
            // The active list has its limit whether or not the cache is full.
            let full = self.active.len() == (self.capacity * 9 / 10).max(1);
            if full {
                self.activate(block, evicted);
            } else {
                self.room(evicted);
                self.active.insert(0, block);
            }
            return false;
        }
        self.room(evicted);
        self.inactive.insert(0, block);
        false
    }
}

pub struct Arc {
    /// Blocks seen once, blocks seen more often, and the addresses of blocks that left each list.
    once: Vec<Block>,
    often: Vec<Block>,
    once_ghosts: Vec<Block>,
    often_ghosts: Vec<Block>,
    capacity: usize,
    target: f64,
}

impl Arc {
    pub fn new(capacity: usize) -> Arc {
        let list = Vec::new;
        Arc { once: list(), often: list(), once_ghosts: list(), often_ghosts: list(), capacity, target: 0.0 }
    }

    fn replace(&mut self, often_ghost: bool, evicted: &mut Vec<Block>) {
        let once = self.once.len() as f64;
        if !self.once.is_empty() && (once > self.target || (often_ghost && once == self.target))
            || self.often.is_empty()
        {
            let gone = self.once.pop().expect("one of both has blocks");
            self.once_ghosts.insert(0, gone);
            evicted.push(gone);
        } else {
            let gone = self.often.pop().expect("is not empty");
            self.often_ghosts.insert(0, gone);
            evicted.push(gone);
        }
    }
}

impl Reference for Arc {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        if take(&mut self.once, block) || take(&mut self.often, block) {
            self.often.insert(0, block);
            return true;
        }
        let (once, often) = (self.once_ghosts.len() as f64, self.often_ghosts.len() as f64);
        let full = self.once.len() + self.often.len() == self.capacity;
        for (is_often, step) in [(false, (often / once).max(1.0)), (true, -(once / often).max(1.0))] {
            let ghosts = if is_often { &mut self.often_ghosts } else { &mut self.once_ghosts };
            if take(ghosts, block) {
                self.target = (self.target + step).clamp(0.0, self.capacity as f64);
                if full {
                    self.replace(is_often, evicted);
                }
                self.often.insert(0, block);
                return false;
            }
        }
        if full {
            let total = self.once.len() + self.often.len() + self.once_ghosts.len() + self.often_ghosts.len();
            if self.once.len() == self.capacity {
                evicted.extend(self.once.pop());
            } else {
                if self.once.len() + self.once_ghosts.len() == self.capacity {
                    self.once_ghosts.pop();
                } else if total == 2 * self.capacity {
                    self.often_ghosts.pop();
                }
                self.replace(false, evicted);
            }
        }
        self.once.insert(0, block);
        false
    }
}

pub struct TinyLfu {
    window: Vec<Block>,
    probation: Vec<Block>,
    protected: Vec<Block>,
    frequency: Vec<u8>,
    /// Groups of sixteen are halved, one after the other, all within ten times the capacity.
    hand: usize,
    credit: usize,
    capacity: usize,
}

impl TinyLfu {
    pub fn new(footprint: usize, capacity: usize) -> TinyLfu {
        let list = Vec::new;
        let frequency = vec![0; footprint.div_ceil(16) * 16];
        TinyLfu {
            window: list(),
            probation: list(),
            protected: list(),
            frequency,
            hand: 0,
            credit: 0,
            capacity,
        }
    }

    fn window_max(&self) -> usize {
        (self.capacity / 100).max((self.capacity / 2).min(64)).max(1)
    }

    fn count(&mut self, block: Block) {
        let frequency = &mut self.frequency[block as usize];
        *frequency = (*frequency + 1).min(15);
        let groups = self.frequency.len() / 16;
        self.credit += groups;
        while self.credit >= 10 * self.capacity {
            self.credit -= 10 * self.capacity;
            self.frequency[self.hand * 16..][..16].iter_mut().for_each(|one| *one /= 2);
            self.hand = (self.hand + 1) % groups;
        }
    }
}

impl Reference for TinyLfu {
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool {
        self.count(block);
        let main_max = self.capacity - self.window_max();
        if take(&mut self.window, block) {
            self.window.insert(0, block);
            return true;
        }
        if take(&mut self.probation, block) || take(&mut self.protected, block) {
            self.protected.insert(0, block);
            if self.protected.len() > main_max * 8 / 10 {
                self.probation.insert(0, self.protected.pop().expect("is over its limit"));
            }
            return true;
        }
        if self.window.len() == self.window_max() {
            let candidate = self.window.pop().expect("is full");
            if self.probation.len() + self.protected.len() < main_max {
                self.probation.insert(0, candidate);
            } else {
                let list = if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
                let victim = *list.last().expect("the main part is full");
                if self.frequency[candidate as usize] > self.frequency[victim as usize] {
                    list.pop();
                    self.probation.insert(0, candidate);
                    evicted.push(victim);
                } else {
                    evicted.push(candidate);
                }
            }
        }
        self.window.insert(0, block);
        false
    }
}
