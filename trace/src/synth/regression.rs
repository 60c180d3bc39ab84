//! Linear regression: every thread reads its part of the rows from end to end, and adds to sums of its own.

use super::{COUNT_MAX, Heap, Ran, Sink, within};
use crate::Access;
use serde::Deserialize;

/// Passes over rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    rows: u64,
    #[serde(default = "columns")]
    columns: u64,
    #[serde(default = "passes")]
    passes: u64,
    #[serde(default = "threads")]
    threads: u16,
}

fn columns() -> u64 {
    2
}

fn passes() -> u64 {
    1
}

fn threads() -> u16 {
    8
}

const NUMBER_BYTES: u64 = 8;
/// Bytes of a thread's sums: a cache line.
const SUMS_BYTES: u64 = 64;

impl Regression {
    pub(super) fn check(&self) -> Result<(), String> {
        within("rows", self.rows, 1, COUNT_MAX)?;
        within("columns", self.columns, 1, 1024)?;
        within("passes", self.passes, 1, 1 << 16)?;
        within("threads", u64::from(self.threads), 1, 1024)
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        let (threads, row_bytes) = (u64::from(self.threads), self.columns * NUMBER_BYTES);
        let mut heap = Heap::new();
        let rows = heap.array(self.rows, row_bytes);
        let sums = heap.array(threads, SUMS_BYTES);
        let part = self.rows.div_ceil(threads);
        for _ in 0..self.passes {
            for at in 0..part {
                for thread in 0..threads {
                    let row = thread * part + at;
                    if row >= self.rows.min((thread + 1) * part) {
                        continue;
                    }
                    let address = rows + row * row_bytes;
                    let thread_id = thread as u16;
                    sink(Access { address, bytes: row_bytes as u32, write: false, thread: thread_id })?;
                    let address = sums + thread * SUMS_BYTES;
                    sink(Access { address, bytes: NUMBER_BYTES as u32, write: true, thread: thread_id })?;
                }
            }
        }
        Ran::Continue(())
    }
}
