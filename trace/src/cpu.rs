//! A CPU's caches: which accesses reach memory.
//!
//! Three levels, each with sets and LRU order, inclusive (a line that leaves a level leaves those nearer to the CPU) and
//! write-back (memory sees a change when the line leaves the last level).

use crate::{Access, LINE_BYTES};

/// Sizes of a CPU's caches.
#[derive(Debug)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Description in a few words.
    pub about: &'static str,
    /// Bytes and ways of each level, the nearest one first.
    pub levels: &'static [(u64, usize)],
    /// Whether a use makes a line the newest of its set.
    by_use: bool,
}

/// All models.
pub const MODELS: &[Model] = &[
    Model {
        name: "paper",
        about: "UniMem's: 48 KB of 12 ways, 1.25 MB of 20, 24 MB of 12",
        levels: &[(48 << 10, 12), (1280 << 10, 20), (24 << 20, 12)],
        by_use: true,
    },
    Model {
        name: "small",
        about: "the same shape for small traces: 8 KB of 4 ways, 64 KB of 8",
        levels: &[(8 << 10, 4), (64 << 10, 8)],
        by_use: true,
    },
    Model {
        name: "fifo-48k",
        about: "what UniMem's artifact simulates in effect: its first level alone, FIFO",
        levels: &[(48 << 10, 12)],
        by_use: false,
    },
    Model { name: "none", about: "every line of every access reaches memory", levels: &[], by_use: true },
];

/// An access that reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A line is read because an access missed; whether the access writes.
    Fill {
        /// The line's number.
        line: u64,
        /// Whether the access changes it.
        write: bool,
    },
    /// A changed line left the last level.
    WriteBack {
        /// The line's number.
        line: u64,
    },
}

/// No line.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Debug)]
struct Level {
    /// Lines of all sets, the newest of each set first, and whether each is dirty.
    lines: Vec<(u64, bool)>,
    ways: usize,
    by_use: bool,
}

/// The caches of a model.
#[derive(Clone, Debug)]
pub struct CpuCache {
    levels: Vec<Level>,
    /// Lines that each level was asked for and did not have.
    misses: Vec<u64>,
}

impl Level {
    fn set(&mut self, line: u64) -> &mut [(u64, bool)] {
        let sets = self.lines.len() / self.ways;
        let first = (line % sets as u64) as usize * self.ways;
        &mut self.lines[first..first + self.ways]
    }

    /// A use: whether the line is here.
    fn hit(&mut self, line: u64, write: bool) -> bool {
        let by_use = self.by_use;
        let set = self.set(line);
        let Some(way) = set.iter().position(|(one, _)| *one == line) else { return false };
        set[way].1 |= write;
        if by_use {
            set[..=way].rotate_right(1);
        }
        true
    }

    /// Inserts an absent line; returns the line that it replaces.
    fn insert(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        let set = self.set(line);
        let last = set.len() - 1;
        let gone = std::mem::replace(&mut set[last], (line, dirty));
        set.rotate_right(1);
        (gone.0 != EMPTY).then_some(gone)
    }

    /// Takes a line out: whether it was dirty.
    fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let Some(way) = set.iter().position(|(one, _)| *one == line) else { return false };
        set[way..].rotate_left(1);
        let last = set.len() - 1;
        std::mem::replace(&mut set[last], (EMPTY, false)).1
    }
}

impl CpuCache {
    /// Empty caches.
    pub fn new(model: &Model) -> CpuCache {
        let level = |(bytes, ways): &(u64, usize)| Level {
            lines: vec![(EMPTY, false); (bytes / LINE_BYTES) as usize / ways * ways],
            ways: *ways,
            by_use: model.by_use,
        };
        CpuCache { levels: model.levels.iter().map(level).collect(), misses: vec![0; model.levels.len()] }
    }

    /// Lines that each level did not have when an access asked for them, the nearest level first.
    pub fn misses(&self) -> &[u64] {
        &self.misses
    }

    /// An access. `reaches` gets the resulting accesses to memory: for each line a fill at most, and write-backs before
    /// it.
    pub fn access(&mut self, access: &Access, reaches: &mut dyn FnMut(Memory)) {
        for line in access.lines() {
            self.touch(line, access.write, reaches);
        }
    }

    fn touch(&mut self, line: u64, write: bool, reaches: &mut dyn FnMut(Memory)) {
        let hit = (0..self.levels.len()).find(|level| self.levels[*level].hit(line, write && *level == 0));
        // The farthest level that missed makes room first: a line that leaves it leaves all levels.
        for level in (0..hit.unwrap_or(self.levels.len())).rev() {
            self.misses[level] += 1;
            self.bring(level, line, write && level == 0, reaches);
        }
        if hit.is_none() {
            reaches(Memory::Fill { line, write });
        }
    }

    fn bring(&mut self, level: usize, line: u64, dirty: bool, reaches: &mut dyn FnMut(Memory)) {
        let Some((gone, mut dirty)) = self.levels[level].insert(line, dirty) else { return };
        for nearer in &mut self.levels[..level] {
            dirty |= nearer.remove(gone);
        }
        if !dirty {
            return;
        }
        match self.levels.get_mut(level + 1) {
            // Inclusive: the next level has the line.
            Some(next) => {
                if let Some(entry) = next.set(gone).iter_mut().find(|(one, _)| *one == gone) {
                    entry.1 = true;
                }
            }
            None => reaches(Memory::WriteBack { line: gone }),
        }
    }
}
