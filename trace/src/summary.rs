//! Summary of a trace: its footprint, density, reuse distances and runs.

use crate::{Access, LINE_BYTES, PAGE_BYTES};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

type Fixed = BuildHasherDefault<DefaultHasher>;

/// Bytes of UniMem's blocks.
const BLOCK_BYTES: u64 = 512;

/// Figures of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Accesses.
    pub accesses: u64,
    /// Those that write.
    pub writes: u64,
    /// Threads or clients.
    pub threads: usize,
    /// Touched cache lines, in bytes.
    pub lines_bytes: u64,
    /// Touched blocks of 512 B, in bytes.
    pub blocks_bytes: u64,
    /// Touched pages of 4 KB, in bytes.
    pub pages_bytes: u64,
    /// Share of the touched pages' lines that is touched.
    pub density: f64,
    /// Touched blocks of 512 B a touched page.
    pub blocks_per_page: f64,
    /// Reuse distances: at index p, the uses of blocks of 512 B whose block was at place 2^p to 2^(p+1) − 1 of an LRU list.
    pub reuse: Vec<u64>,
    /// Touches of blocks for the first time.
    pub first_touches: u64,
    /// Runs of adjacent lines, by length: for each power of two, how many runs have that many lines up to twice as many.
    pub runs: Vec<u64>,
}

/// Takes accesses and makes their summary.
#[derive(Debug, Default)]
pub struct Watcher {
    accesses: u64,
    writes: u64,
    threads: HashSet<u16, Fixed>,
    lines: HashSet<u64, Fixed>,
    /// For each block the time of its last use.
    last: HashMap<u64, usize, Fixed>,
    order: Order,
    last_block: Option<u64>,
    reuse: Vec<u64>,
    run: Option<(u64, u64)>,
    runs: Vec<u64>,
}

/// Counts the blocks whose last use is later than a time: a Fenwick tree over times, renumbered when it is full.
#[derive(Debug)]
struct Order {
    tree: Vec<u32>,
    now: usize,
}

impl Default for Order {
    fn default() -> Order {
        Order { tree: vec![0; (1 << 12) + 1], now: 0 }
    }
}

impl Order {
    fn add(&mut self, time: usize, by: i32) {
        let mut at = time + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// How many are at `time` or earlier.
    fn until(&self, time: usize) -> u32 {
        let (mut at, mut sum) = (time + 1, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }
}

fn count(histogram: &mut Vec<u64>, power: u32) {
    let power = power as usize;
    if histogram.len() <= power {
        histogram.resize(power + 1, 0);
    }
    histogram[power] += 1;
}

impl Watcher {
    /// Takes the next access.
    pub fn add(&mut self, access: &Access) {
        self.accesses += 1;
        self.writes += u64::from(access.write);
        self.threads.insert(access.thread);
        for line in access.lines() {
            self.lines.insert(line);
            self.run = match self.run {
                Some((last, length)) if line == last => Some((last, length)),
                Some((last, length)) if line == last + 1 => Some((line, length + 1)),
                Some((_, length)) => {
                    count(&mut self.runs, length.ilog2());
                    Some((line, 1))
                }
                None => Some((line, 1)),
            };
            let block = line * LINE_BYTES / BLOCK_BYTES;
            if self.last_block != Some(block) {
                self.use_of(block);
                self.last_block = Some(block);
            }
        }
    }

    fn use_of(&mut self, block: u64) {
        if self.order.now + 1 == self.order.tree.len() {
            self.renumber();
        }
        let now = self.order.now;
        self.order.now += 1;
        if let Some(last) = self.last.insert(block, now) {
            let later = self.last.len() as u32 - self.order.until(last);
            count(&mut self.reuse, (later + 1).ilog2());
            self.order.add(last, -1);
        }
        self.order.add(now, 1);
    }

    /// Gives the blocks' last uses the first times, in a tree with room for as many again.
    fn renumber(&mut self) {
        let mut blocks: Vec<(usize, u64)> = self.last.iter().map(|(block, time)| (*time, *block)).collect();
        blocks.sort_unstable();
        let room = (blocks.len() * 2).next_power_of_two().max(1 << 12);
        self.order = Order { tree: vec![0; room + 1], now: blocks.len() };
        for (time, (_, block)) in blocks.into_iter().enumerate() {
            self.last.insert(block, time);
            self.order.add(time, 1);
        }
    }

    /// The figures of all accesses so far.
    pub fn finish(mut self) -> Summary {
        if let Some((_, length)) = self.run {
            count(&mut self.runs, length.ilog2());
        }
        let units = |bytes: u64| {
            self.lines.iter().map(|line| line * LINE_BYTES / bytes).collect::<HashSet<_, Fixed>>().len()
                as u64
        };
        let (lines, blocks, pages) = (self.lines.len() as u64, units(BLOCK_BYTES), units(PAGE_BYTES));
        let a_page = |count: u64| if pages == 0 { 0.0 } else { count as f64 / pages as f64 };
        Summary {
            accesses: self.accesses,
            writes: self.writes,
            threads: self.threads.len(),
            lines_bytes: lines * LINE_BYTES,
            blocks_bytes: blocks * BLOCK_BYTES,
            pages_bytes: pages * PAGE_BYTES,
            density: a_page(lines) * LINE_BYTES as f64 / PAGE_BYTES as f64,
            blocks_per_page: a_page(blocks),
            reuse: self.reuse,
            first_touches: self.last.len() as u64,
            runs: self.runs,
        }
    }
}
