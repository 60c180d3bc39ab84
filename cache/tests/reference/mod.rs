//! Plain implementations: vectors, searched from end to end. Index 0 is the newest entry of a list.

mod adaptive;
mod queues;

use p4rack_cache::Block;

/// A cache of blocks.
pub trait Reference {
    /// Whether the block is here. Adds evicted blocks to `evicted`.
    fn access(&mut self, block: Block, evicted: &mut Vec<Block>) -> bool;
}

/// A plain implementation for a footprint and a capacity.
type Open = fn(usize, usize) -> Box<dyn Reference>;

/// All, by the name of their policy.
pub const ALL: &[(&str, Open)] = &[
    ("lru", |_, capacity| Box::new(queues::OneList { list: Vec::new(), capacity, by_use: true })),
    ("fifo", |_, capacity| Box::new(queues::OneList { list: Vec::new(), capacity, by_use: false })),
    ("kona", |_, capacity| Box::new(queues::Ways { sets: vec![Vec::new(); capacity / 4], by_use: true })),
    ("kona-fifo", |_, capacity| {
        Box::new(queues::Ways { sets: vec![Vec::new(); capacity / 4], by_use: false })
    }),
    ("kona-pc", |_, capacity| {
        Box::new(queues::PageCache { active: Vec::new(), inactive: Vec::new(), capacity })
    }),
    ("sieve", |_, capacity| Box::new(queues::Sieve { list: Vec::new(), hand: None, capacity })),
    ("s3-fifo", |_, capacity| Box::new(queues::S3Fifo::new(capacity))),
    ("2q", |_, capacity| Box::new(queues::TwoQ::new(capacity))),
    ("unimem-nopromote", |_, capacity| Box::new(adaptive::Filter::new(capacity))),
    ("arc", |_, capacity| Box::new(adaptive::Arc::new(capacity))),
    ("w-tinylfu", |footprint, capacity| Box::new(adaptive::TinyLfu::new(footprint, capacity))),
];

/// Removes a block from a list; returns whether it was present.
fn take(list: &mut Vec<Block>, block: Block) -> bool {
    let at = list.iter().position(|one| *one == block);
    at.map(|at| list.remove(at)).is_some()
}

/// Enters an address into a list of ghosts with a limit.
fn ghost(list: &mut Vec<Block>, block: Block, limit: usize) {
    if limit == 0 {
        return;
    }
    if list.len() == limit {
        list.pop();
    }
    list.insert(0, block);
}
