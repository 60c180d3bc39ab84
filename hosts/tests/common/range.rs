//! A mapping's range as words that threads share.

use p4rack_hosts::paging::{Mapping, check_privileges};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// The range of a mapping that outlives it.
#[derive(Clone, Copy)]
pub struct Range {
    start: usize,
    bytes: u64,
}

impl Range {
    pub fn of(mapping: &Mapping) -> Range {
        Range { start: mapping.start().as_ptr() as usize, bytes: mapping.bytes() }
    }

    fn word(&self, number: u64) -> &AtomicU64 {
        assert!(number < self.bytes / 8);
        // SAFETY: in bounds and aligned; the mapping outlives this value, and threads use words atomically.
        unsafe { AtomicU64::from_ptr((self.start as *mut u64).add(number as usize)) }
    }

    pub fn read(&self, word: u64) -> u64 {
        self.word(word).load(Ordering::Relaxed)
    }

    pub fn write(&self, word: u64, value: u64) {
        self.word(word).store(value, Ordering::Relaxed);
    }

    /// All bytes, of a test that uses them in no other way.
    #[allow(dead_code, clippy::mut_from_ref)]
    pub fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: the mapping outlives this value, and its tests have one use at a time.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.bytes as usize) }
    }

    /// Bytes that are in place, as the kernel counts them.
    #[allow(dead_code)]
    pub fn resident_bytes(&self) -> u64 {
        self.resident(0)
    }

    /// Bytes of its buffers that are in memory, as the kernel counts them. Buffers begin a page behind the range.
    #[allow(dead_code)]
    pub fn buffers_resident_bytes(&self) -> u64 {
        self.resident(self.bytes as usize + 4_096)
    }

    /// Of the kernel's mapping that begins here.
    fn resident(&self, at: usize) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", self.start + at);
        let lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let resident = lines.skip(1).find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1_024
    }
}

/// Whether threads may serve faults here. Says so if not.
pub fn may_map() -> bool {
    let may = check_privileges().is_ok();
    if !may {
        let what = "skipped: needs userfaultfd, get it by `sudo sysctl vm.unprivileged_userfaultfd=1`";
        let _ = writeln!(std::io::stderr(), "{what}");
    }
    may
}
