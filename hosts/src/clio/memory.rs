//! A board's memory on a host: pages that the system gives when they are first used.

use p4rack_fabric::clio::board::PhysicalMemory;
use p4rack_netdev::{Error, Pages};
use std::ops::Range;

/// Fresh pages, filled with zeros.
#[derive(Debug)]
pub struct Fresh(Pages);

impl Fresh {
    /// `bytes` bytes. Errors: none, or more than the machine has.
    pub fn new(bytes: u64) -> Result<Fresh, Error> {
        Pages::fresh(bytes).map(Fresh)
    }
}

impl PhysicalMemory for Fresh {
    fn bytes(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        &self.0.as_ref()[range.start as usize..range.end as usize]
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        &mut self.0.as_mut()[range.start as usize..range.end as usize]
    }
}
