//! Places in a flow's part of remote memory, and what each of them holds.
//!
//! All bytes of a cell follow from the number of the write that wrote them, so nothing has to be kept to check them. Write 0 is the
//! memory's first contents.

use crate::random::{Distribution, Random};
use p4rack_wire::SplitMix;

/// Cells, and parts of a host's memory, begin at multiples of this.
pub(super) const ALIGNED: u64 = 64;

/// A place that an operation reads or writes as a whole.
#[derive(Clone, Debug, Default)]
struct Cell {
    at: u32,
    bytes: u32,
    /// Number of the last write.
    latest: u32,
    /// The first write whose bytes may be there.
    since: u32,
    /// A write ended without an answer, so it may still happen: bytes of any write since may come back.
    is_unsure: bool,
    is_busy: bool,
}

/// Origin of a cell's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellContent {
    /// Those of the last write.
    Latest,
    /// Each is that of a write that may be there.
    Earlier,
    /// This many are of none.
    Wrong(u64),
}

/// The cells of a flow.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    seed: u64,
    cells: Vec<Cell>,
    expected: Vec<u8>,
    wrong: Vec<bool>,
}

/// Writes the bytes that a write leaves in a cell over `out`.
fn contents(seed: u64, cell: usize, write: u32, out: &mut [u8]) {
    let first = SplitMix(seed ^ (cell as u64) << 32 ^ u64::from(write)).next();
    let mut words = SplitMix(first);
    for word in out.chunks_mut(8) {
        word.copy_from_slice(&words.next().to_le_bytes()[..word.len()]);
    }
}

impl Cells {
    /// As many cells as a part of this many bytes has room for; each has a length of `sizes`.
    pub fn new(part_bytes: u64, sizes: &Distribution, random: &mut Random) -> Cells {
        let (mut cells, mut at) = (Vec::new(), 0);
        loop {
            let bytes = sizes.sample(random).max(1);
            if at + bytes > part_bytes {
                break;
            }
            let cell = Cell { at: at as u32, bytes: bytes as u32, ..Cell::default() };
            cells.push(cell);
            at = (at + bytes).next_multiple_of(ALIGNED);
        }
        Cells { seed: random.next(), cells, expected: Vec::new(), wrong: Vec::new() }
    }

    /// Writes the first contents of all cells over the part's bytes.
    pub fn begin(&self, part: &mut [u8]) {
        for (nth, cell) in self.cells.iter().enumerate() {
            let at = cell.at as usize;
            if let Some(bytes) = part.get_mut(at..at + cell.bytes as usize) {
                contents(self.seed, nth, 0, bytes);
            }
        }
    }

    /// A random cell without an operation, which has one from now on. `None`: all have one.
    pub fn take(&mut self, random: &mut Random) -> Option<usize> {
        let count = self.cells.len();
        let first = random.below(count.max(1) as u64) as usize;
        let found = (0..count).map(|nth| (first + nth) % count).find(|nth| !self.cells[*nth].is_busy)?;
        self.cells[found].is_busy = true;
        Some(found)
    }

    /// First byte of a cell in the part, and its length.
    pub fn place(&self, cell: usize) -> (u64, u32) {
        let Cell { at, bytes, .. } = self.cells[cell];
        (at.into(), bytes)
    }

    /// Begins the next write.
    pub fn write(&mut self, cell: usize) {
        self.cells[cell].latest = self.cells[cell].latest.wrapping_add(1);
    }

    /// Writes the bytes of the last write over `out`.
    pub fn latest(&self, cell: usize, out: &mut Vec<u8>) {
        let Cell { bytes, latest, .. } = self.cells[cell];
        out.resize(bytes as usize, 0);
        contents(self.seed, cell, latest, out);
    }

    /// Handles the end of a write, which is in the memory or may still take effect. Ends the cell's operation.
    pub fn wrote(&mut self, cell: usize, is_there: bool) {
        let cell = &mut self.cells[cell];
        cell.is_unsure |= !is_there;
        if !cell.is_unsure {
            cell.since = cell.latest;
        }
        cell.is_busy = false;
    }

    /// A read has ended. The cell's operation is over.
    pub fn read(&mut self, cell: usize) {
        self.cells[cell].is_busy = false;
    }

    /// Compares bytes that were read with those that may be there.
    pub fn check(&mut self, cell: usize, bytes: &[u8]) -> CellContent {
        let Cells { seed, cells, expected, wrong } = self;
        let Cell { bytes: length, latest, since, .. } = cells[cell];
        expected.resize(length as usize, 0);
        contents(*seed, cell, latest, expected);
        if expected == bytes {
            return CellContent::Latest;
        }
        if expected.len() != bytes.len() {
            return CellContent::Wrong(length.max(bytes.len() as u32).into());
        }
        wrong.clear();
        wrong.extend(expected.iter().zip(bytes).map(|(expected, byte)| expected != byte));
        for write in since..latest {
            contents(*seed, cell, write, expected);
            for (wrong, (expected, byte)) in wrong.iter_mut().zip(expected.iter().zip(bytes)) {
                *wrong &= expected != byte;
            }
        }
        match wrong.iter().filter(|wrong| **wrong).count() {
            0 => CellContent::Earlier,
            count => CellContent::Wrong(count as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Cells {
        Cells::new(1_000, &Distribution::constant(100), &mut Random::new(1))
    }

    #[test]
    fn a_part_is_full_of_cells_that_are_apart() {
        let (mut cells, mut random) = (cells(), Random::new(2));
        let taken: Vec<usize> = std::iter::from_fn(|| cells.take(&mut random)).collect();
        let mut places: Vec<u64> = taken.iter().map(|cell| cells.place(*cell).0).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 128, 256, 384, 512, 640, 768, 896]);
        cells.read(taken[3]);
        assert_eq!(cells.take(&mut random), Some(taken[3]));
    }

    #[test]
    fn bytes_of_writes_that_may_be_there_are_told_from_wrong_ones() {
        let mut cells = cells();
        let mut part = vec![0; 1_000];
        cells.begin(&mut part);
        let first = part[128..228].to_vec();
        assert_eq!(cells.check(1, &first), CellContent::Latest);
        // Some are the same by chance.
        assert!(matches!(cells.check(2, &first), CellContent::Wrong(90..=100)));
        assert_eq!(cells.check(1, &first[1..]), CellContent::Wrong(100));
        cells.write(1);
        let mut second = Vec::new();
        cells.latest(1, &mut second);
        let mixed = [&second[..60], &first[60..]].concat();
        assert_eq!(
            (cells.check(1, &first), cells.check(1, &mixed)),
            (CellContent::Earlier, CellContent::Earlier)
        );
        let mut damaged = mixed;
        damaged[7] = !damaged[7];
        assert_eq!(cells.check(1, &damaged), CellContent::Wrong(1));
        cells.wrote(1, true);
        assert!(matches!(cells.check(1, &first), CellContent::Wrong(_)), "it was written since");
        assert_eq!(cells.check(1, &second), CellContent::Latest);
        // A write without an answer, then one with: either may be there.
        cells.write(1);
        cells.wrote(1, false);
        cells.write(1);
        cells.wrote(1, true);
        assert_eq!(cells.check(1, &second), CellContent::Earlier);
    }
}
