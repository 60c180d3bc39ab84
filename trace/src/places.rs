//! Addresses without gaps: a program's pages are far apart, a cache's remote memory is one array.

use crate::{LINE_BYTES, PAGE_BYTES};

/// The touched pages in the order of their addresses. Pages side by side stay side by side.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pages: Vec<u64>,
}

const LINES_PER_PAGE: u64 = PAGE_BYTES / LINE_BYTES;

impl Places {
    /// From the lines that are touched, in any order.
    pub fn new(lines: impl Iterator<Item = u64>) -> Places {
        let mut pages = Vec::new();
        for page in lines.map(|line| line / LINES_PER_PAGE) {
            if pages.last() != Some(&page) {
                pages.push(page);
            }
            // Repeats are dropped now and then, so that long traces take little memory.
            if pages.len() > 1 << 22 && pages.len().is_power_of_two() {
                pages.sort_unstable();
                pages.dedup();
            }
        }
        pages.sort_unstable();
        pages.dedup();
        Places { pages }
    }

    /// How many pages are touched.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A line's number in memory without gaps; `None` if its page is not among the touched ones.
    pub fn of(&self, line: u64) -> Option<u64> {
        let page = self.pages.binary_search(&(line / LINES_PER_PAGE)).ok()?;
        Some(page as u64 * LINES_PER_PAGE + line % LINES_PER_PAGE)
    }
}
