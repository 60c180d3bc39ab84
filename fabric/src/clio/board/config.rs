//! Parameters of a board.

use super::table::Index;
use super::tlb::Replacement;
use crate::common::ConfigError;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PAGE_SIZES, PageSize, packet};

/// Physical memory in frames of one size. Pools follow each other in the board's memory, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Size of its frames.
    pub size: PageSize,
    /// Number of its frames.
    pub frames: u32,
    /// Frames that are zeroed ahead, for page faults (the paper's async buffer). Up to as many again are zeroed ahead for frames that
    /// are reserved.
    pub ready: u32,
}

impl Pool {
    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.frames) * self.size.bytes()
    }
}

/// Limits of a process on pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Frames that are kept for it: their page faults find memory, whatever others do.
    pub reserved: u32,
    /// Maximum pages that it allocates. The sum over all processes may exceed the memory.
    pub limit: u32,
    /// Maximum pages that other processes share with it, beside those that it allocates. With 0, it takes none.
    pub shared: u32,
}

/// Quotas by page size.
pub type Quotas = [Quota; PAGE_SIZES];

/// Parameters of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The memory, at most one pool of each page size.
    pub pools: Vec<Pool>,
    /// How a page's bucket is chosen.
    pub index: Index,
    /// Slots of a bucket: 4, 8 or 16.
    pub bucket_slots: u32,
    /// Slots of the page table beyond one per frame, in percent of the frames: 0 to 100. The paper has 100, "2× slots".
    pub spare_percent: u32,
    /// Entries of the TLB; 0 for none.
    pub tlb_entries: u32,
    /// Which entry of the TLB goes when another one comes.
    pub tlb_replacement: Replacement,
    /// Maximum processes.
    pub processes_max: u32,
    /// Maximum data bytes of a packet that the board sends.
    pub data_bytes_max: u32,
    /// Maximum bytes of a read.
    pub read_bytes_max: u32,
    /// Maximum answers that wait for the link, of each process and of all. Requests beyond them are dropped.
    pub answers_max: [usize; 2],
    /// Maximum requests that wait for fences, of each process and of all. Further ones are answered BUSY.
    pub held_max: [usize; 2],
    /// Maximum calls of the slow path that wait or are being done, of each process and of all.
    pub jobs_max: [usize; 2],
    /// Maximum calls of offloads that wait, are being done, or whose results wait for the link, of each process and of all; 0 if the
    /// board has no offloads.
    pub calls_max: [usize; 2],
    /// Maximum bytes that a call reads. Each read costs 64 more.
    pub call_read_bytes_max: u64,
    /// Maximum bytes of a call's results.
    pub call_result_bytes_max: u32,
    /// Results of executed writes, atomic operations and calls that are remembered. To never answer BUSY, it needs as many as packets
    /// of 84 bytes arrive in `retry_keep`.
    pub retry_entries: u32,
    /// How long a result is remembered at least: the paper's 3 × TIMEOUT.
    pub retry_keep: Nanos,
    /// Maximum locks that are held, by each process and by all.
    pub locks_max: [u32; 2],
    /// How long a lock is held before others get it, unless its owner locks it again.
    pub lock_lease: Nanos,
    /// Time between two steps of the slow path.
    pub step: Nanos,
    /// Pages that a step of the slow path looks at.
    pub step_pages: u32,
    /// Bytes that a step zeroes.
    pub step_zero_bytes: u64,
    /// Candidates that an allocation tries before it fails.
    pub retries_max: u32,
    /// Conflict ranges that are remembered of each process and page size. Beyond them, all are forgotten.
    pub conflicts_max: usize,
    /// Maximum rate of NACKs; up to 32 may follow each other.
    pub nacks_per_s: u32,
    /// Whether processes may use fences for all processes.
    pub fence_all: bool,
}

impl Config {
    /// The same with memory for a store in addition: frames of the first pool's page size.
    #[must_use]
    pub fn with_store(mut self, bytes: u64) -> Config {
        if let Some(pool) = self.pools.first_mut() {
            let frames = u32::try_from(pool.size.pages(bytes)).unwrap_or(u32::MAX);
            pool.frames = pool.frames.saturating_add(frames);
        }
        self
    }

    /// The paper's table and defaults for the rest, with memory in these pools.
    pub fn new(pools: Vec<Pool>) -> Config {
        Config {
            pools,
            index: Index::default(),
            bucket_slots: 16,
            spare_percent: 100,
            tlb_entries: 64,
            tlb_replacement: Replacement::default(),
            processes_max: 1_024,
            data_bytes_max: packet::DATA_BYTES_MAX,
            read_bytes_max: packet::READ_BYTES_MAX,
            answers_max: [512, 1_024],
            held_max: [128, 256],
            jobs_max: [16, 1_024],
            calls_max: [0, 0],
            call_read_bytes_max: 1 << 20,
            call_result_bytes_max: packet::RESULTS_BYTES_MAX,
            retry_entries: 1 << 16,
            retry_keep: Nanos::from_millis(60),
            locks_max: [512, 1_024],
            lock_lease: Nanos::from_secs(10),
            step: Nanos(1_000),
            step_pages: 64,
            step_zero_bytes: 256 << 10,
            retries_max: 4_096,
            conflicts_max: 1_024,
            nacks_per_s: 10_000,
            fence_all: false,
        }
    }

    /// Frames of all pools.
    pub fn frames(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.frames)).sum()
    }

    /// Bytes of all pools.
    pub fn bytes(&self) -> u64 {
        self.pools.iter().map(Pool::bytes).sum()
    }

    /// Slots of the page table.
    pub fn slots(&self) -> u64 {
        let slots = (self.frames() * u64::from(100 + self.spare_percent)).div_ceil(100);
        slots.next_multiple_of(self.bucket_slots.into())
    }

    /// Errors: the first parameter that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |field, problem| Err(ConfigError { scheme: "clio", field, problem });
        let mut sizes: Vec<PageSize> = self.pools.iter().map(|pool| pool.size).collect();
        sizes.sort();
        if sizes.is_empty() || sizes.windows(2).any(|pair| pair[0] == pair[1]) {
            return fail("pools", "has to have one to seven pools, each of another page size");
        }
        if self.pools.iter().any(|pool| pool.frames == 0 || pool.ready == 0) {
            return fail("pools", "has a pool without frames or without ready ones; each needs at least 1");
        }
        if self.pools.iter().try_fold(0u64, |sum, pool| sum.checked_add(pool.bytes())).is_none() {
            return fail("pools", "has more than 2^64 bytes");
        }
        if ![4, 8, 16].contains(&self.bucket_slots) {
            return fail("bucket_slots", "has to be 4, 8 or 16");
        }
        if self.spare_percent > 100 {
            return fail("spare_percent", "has to be 0 to 100");
        }
        if self.slots() >= 1 << 32 {
            return fail(
                "pools",
                "has too many frames for a page table of fewer than 2^32 slots; use larger pages",
            );
        }
        if self.tlb_entries > 1 << 20 {
            return fail("tlb_entries", "has to be at most 2^20");
        }
        if self.processes_max == 0 || self.processes_max > 1 << 24 {
            return fail("processes_max", "has to be 1 to 2^24");
        }
        if !(8..=65_000).contains(&self.data_bytes_max) {
            return fail("data_bytes_max", "has to be 8 to 65000");
        }
        for (field, bytes) in
            [("read_bytes_max", self.read_bytes_max), ("call_result_bytes_max", self.call_result_bytes_max)]
        {
            let packets = bytes.div_ceil(self.data_bytes_max);
            if bytes == 0 || packets > u32::from(u16::MAX) {
                return fail(field, "has to be 1 byte to 65535 packets of data_bytes_max");
            }
        }
        let limits = [
            ("answers_max", self.answers_max[0].min(self.answers_max[1])),
            ("jobs_max", self.jobs_max[0].min(self.jobs_max[1])),
            ("retry_entries", self.retry_entries as usize),
            ("step_pages", self.step_pages as usize),
            ("step_zero_bytes", self.step_zero_bytes.min(1) as usize),
            ("step", self.step.0.min(1) as usize),
        ];
        if let Some((field, _)) = limits.into_iter().find(|(_, limit)| *limit == 0) {
            return fail(field, "has to be at least 1");
        }
        if self.calls_max[1] > 0 && self.calls_max[0] == 0 {
            return fail("calls_max", "has calls for all processes and none for each; give each at least 1");
        }
        if self.retry_entries > 1 << 28 || self.locks_max[1] > 1 << 28 {
            return fail("retry_entries", "and locks_max have to be at most 2^28");
        }
        Ok(())
    }
}
