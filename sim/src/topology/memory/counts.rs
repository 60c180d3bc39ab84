//! Counters of operations on remote memory.

use super::operations::{Ended, How};
use p4rack_wire::{Histogram, Nanos};

/// Counters of a traffic's reads, or of its writes.
#[derive(Clone, Debug)]
pub(in crate::topology) struct OperationCounts {
    /// From the beginning to the end of those that were done and begun in the measured time.
    pub latency: Histogram,
    pub done: u64,
    /// Bytes that were compared, and of these: bytes that were not written there.
    pub checked_bytes: u64,
    pub wrong_bytes: u64,
    pub refused: u64,
    pub unknown: u64,
    /// How often bytes were written again.
    pub again: u64,
}

/// Counters of a traffic's operations.
#[derive(Clone, Debug)]
pub(in crate::topology) struct Operated {
    pub reads: OperationCounts,
    pub writes: OperationCounts,
}

impl OperationCounts {
    fn new() -> OperationCounts {
        OperationCounts {
            latency: Histogram::new(),
            done: 0,
            checked_bytes: 0,
            wrong_bytes: 0,
            refused: 0,
            unknown: 0,
            again: 0,
        }
    }

    fn add(&mut self, other: &OperationCounts) {
        self.latency.add(&other.latency);
        self.done += other.done;
        self.checked_bytes += other.checked_bytes;
        self.wrong_bytes += other.wrong_bytes;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.again += other.again;
    }
}

impl Operated {
    /// No operations.
    pub fn new() -> Operated {
        Operated { reads: OperationCounts::new(), writes: OperationCounts::new() }
    }

    /// Those of reads, and those of writes.
    pub fn each(&self) -> [&OperationCounts; 2] {
        [&self.reads, &self.writes]
    }

    /// Operations that were done.
    pub fn done(&self) -> u64 {
        self.reads.done + self.writes.done
    }

    /// Adds another group's counters.
    pub fn add(&mut self, other: &Operated) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
    }

    /// Counts an operation; `latency` if it was begun in the measured time.
    pub fn count(&mut self, ended: &Ended, latency: Option<Nanos>) {
        let one = if ended.is_read { &mut self.reads } else { &mut self.writes };
        one.checked_bytes += ended.checked_bytes;
        one.again += u64::from(ended.again);
        match ended.how {
            How::Done => {
                one.done += 1;
                if let Some(latency) = latency {
                    one.latency.record(latency.0.max(1));
                }
            }
            How::Wrong(bytes) => one.wrong_bytes += bytes,
            How::Refused => one.refused += 1,
            How::Unknown => one.unknown += 1,
        }
    }
}
