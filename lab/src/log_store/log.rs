//! The log and its operations.

use super::index::Index;
use p4rack_hosts::remote::{Operation, Outcome, Remote, RemoteError, Status, Window};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Bytes of a record before its value: the key.
const KEY_BYTES: usize = 8;
/// Minimum pages in local memory: some are changed in place, some are being written to remote memory.
pub(super) const MEMORY_PAGES_MIN: u64 = 8;
/// Maximum pages being written to remote memory.
pub(super) const WRITES_MAX: u64 = 4;
/// Compaction begins when this number of the region's pages is free.
const COMPACT_BELOW: u64 = 8;
/// Pages of the region that only compaction may take.
const RESERVE: u64 = 4;
/// Longest wait for remote memory between two checks of the time.
const WAIT: Nanos = Nanos::from_millis(5);

/// Tags of reads are even, those of writes odd; the other bits are a number.
const fn tag(number: u64, writes: bool) -> u64 {
    number << 1 | writes as u64
}

/// Sizes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum keys.
    pub keys_max: usize,
    /// Bytes of every value, a multiple of 8.
    pub value_bytes: usize,
    /// Records of a page.
    pub page_records: u64,
    /// Pages in local memory: at least 4.
    pub memory_pages: u64,
    /// Of these, pages whose records are changed in place.
    pub mutable_pages: u64,
    /// Pages in remote memory.
    pub region_pages: u64,
    /// Maximum reads of remote memory in flight.
    pub reads_max: usize,
}

impl Config {
    /// A store for `keys`, of which this percentage fits into local memory. The log in remote memory has twice the room of all
    /// records.
    pub fn new(keys: usize, value_bytes: usize, memory_percent: u64, reads_max: usize) -> Config {
        let page_records = (8_192 / (KEY_BYTES + value_bytes)).max(1) as u64;
        let pages = (keys as u64).div_ceil(page_records);
        let memory_pages = (pages * memory_percent / 100).max(MEMORY_PAGES_MIN);
        Config {
            keys_max: keys,
            value_bytes,
            page_records,
            memory_pages,
            mutable_pages: memory_pages * 9 / 10,
            region_pages: 2 * pages + memory_pages + COMPACT_BELOW + RESERVE,
            reads_max,
        }
    }

    /// Whether local memory holds no more than the requested share of the records.
    pub fn has_share(&self, keys: usize, memory_percent: u64) -> bool {
        self.memory_pages <= (keys as u64).div_ceil(self.page_records) * memory_percent / 100
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        KEY_BYTES + self.value_bytes
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_records as usize * self.record_bytes()
    }

    /// Bytes of remote memory.
    pub fn region_bytes(&self) -> u64 {
        self.region_pages * self.page_bytes() as u64
    }

    fn check(&self) -> Result<(), StoreError> {
        let live = (self.keys_max as u64).div_ceil(self.page_records.max(1));
        let rules = [
            (self.value_bytes > 0 && self.value_bytes.is_multiple_of(8), "a value has a multiple of 8 bytes"),
            (self.page_records > 0, "a page has at least one record"),
            (self.memory_pages >= 4, "local memory has at least 4 pages"),
            (
                (1..self.memory_pages).contains(&self.mutable_pages),
                "of the pages in local memory some are changed in place and at least one more is not",
            ),
            (
                self.region_pages >= live + live / 4 + self.memory_pages + COMPACT_BELOW + RESERVE,
                "remote memory needs a quarter more than all records, and local memory's pages",
            ),
            (self.reads_max > 0, "at least one read may be under way"),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(StoreError::Config(rule)),
            None => Ok(()),
        }
    }
}

/// Why a store can't start, or has failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A size is out of range.
    #[error("the store's sizes: {0}")]
    Config(&'static str),
    /// The remote memory failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An operation on the remote memory failed.
    #[error("remote memory: {0}")]
    Failed(#[from] Status),
    /// Remote memory does not hold the record that was written there.
    #[error("record {record} in remote memory has another key than {key:#x}")]
    Wrong {
        /// Number of the record.
        record: u64,
        /// Its expected key.
        key: u64,
    },
    /// A read returned a wrong number of bytes.
    #[error("remote memory answered with {0} bytes, which is not what was asked for")]
    Short(usize),
    /// An unexpected answer came.
    #[error("remote memory answered what nobody had asked")]
    Unasked,
    /// No room for another key.
    #[error("the index is full: {0} keys are the limit")]
    Full(usize),
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The value, and its record's number.
    Here(u64, &'a [u8]),
    /// The value arrives with [`LogStore::wait`].
    Later,
    /// Too many reads are in flight: wait first.
    Busy,
    /// The key was never written.
    Missing,
}

/// Whether a value was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// It was replaced.
    Done,
    /// Another record is current: read again.
    Changed,
    /// There is no room until a page is in remote memory: wait first.
    Busy,
}

/// A read in flight.
#[derive(Debug)]
enum Reading {
    /// A value, for the caller that gave the token.
    Value { token: u64, key: u64, record: u64 },
    /// The oldest page, for compaction.
    Page,
}

/// The oldest page on its way to the tail.
#[derive(Debug)]
struct Moving {
    page: Vec<u8>,
    /// Number of its records already checked.
    done: u64,
}

/// Counters of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Values read from remote memory.
    pub cold_reads: u64,
    /// Pages written to remote memory.
    pub pages_written: u64,
    /// Pages compacted.
    pub pages_compacted: u64,
    /// Records that compaction moved.
    pub moved: u64,
}

/// A store. See the [module](super).
#[derive(Debug)]
pub struct LogStore {
    config: Config,
    index: Index,
    /// Pages in local memory; page `p` is at place `p % memory_pages`.
    memory: Vec<u8>,
    /// Number of the next record.
    tail: u64,
    /// The oldest page that is not compacted.
    begin: u64,
    /// Pages being written to remote memory, by number. All pages before the first of them are complete.
    writing: Window<()>,
    /// Pages before it may be overwritten in remote memory.
    free: u64,
    /// Compacted pages. A page becomes free when all reads before this number have ended.
    leaving: VecDeque<(u64, u64)>,
    reading: Window<Reading>,
    compacting: bool,
    moving: Option<Moving>,
    counters: Counters,
}

impl LogStore {
    /// An empty store.
    pub fn new(config: Config) -> Result<LogStore, StoreError> {
        config.check()?;
        Ok(LogStore {
            index: Index::new(config.keys_max),
            memory: vec![0; config.memory_pages as usize * config.page_bytes()],
            tail: 0,
            begin: 0,
            writing: Window::default(),
            free: 0,
            leaving: VecDeque::new(),
            reading: Window::default(),
            compacting: false,
            moving: None,
            counters: Counters::default(),
            config,
        })
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        self.config.value_bytes
    }

    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether no operation is in flight.
    pub fn is_quiet(&self) -> bool {
        self.reading.is_empty() && self.writing.is_empty() && self.moving.is_none()
    }

    /// The page of the next record.
    fn tail_page(&self) -> u64 {
        self.tail / self.config.page_records
    }

    /// Number of pages so far, an incomplete last one included.
    fn pages(&self) -> u64 {
        self.tail.div_ceil(self.config.page_records)
    }

    /// The oldest page in local memory.
    fn head(&self) -> u64 {
        self.pages().saturating_sub(self.config.memory_pages)
    }

    /// The oldest page whose records are changed in place.
    fn mutable(&self) -> u64 {
        self.pages().saturating_sub(self.config.mutable_pages)
    }

    /// Place of a record in local memory.
    fn place(&self, record: u64) -> std::ops::Range<usize> {
        let (page, nth) = (record / self.config.page_records, record % self.config.page_records);
        let bytes = self.config.record_bytes();
        let at = (page % self.config.memory_pages) as usize * self.config.page_bytes() + nth as usize * bytes;
        at..at + bytes
    }

    /// Place of a page in remote memory.
    fn remote_place(&self, page: u64) -> u64 {
        page % self.config.region_pages * self.config.page_bytes() as u64
    }

    /// Reads a value. A cold value arrives later, with the token.
    pub fn read(&mut self, remote: &mut dyn Remote, key: u64, token: u64) -> Result<Found<'_>, StoreError> {
        let Some(record) = self.index.get(key) else { return Ok(Found::Missing) };
        let page = record / self.config.page_records;
        if page >= self.head() {
            let place = self.place(record);
            return Ok(Found::Here(record, &self.memory[place][KEY_BYTES..]));
        }
        if self.reading.len() >= self.config.reads_max {
            return Ok(Found::Busy);
        }
        let bytes = self.config.record_bytes();
        let at = self.remote_place(page) + record % self.config.page_records * bytes as u64;
        remote.submit(tag(self.reading.next(), false), Operation::Read { at, bytes: bytes as u32 })?;
        self.counters.cold_reads += 1;
        self.reading.push(Reading::Value { token, key, record });
        Ok(Found::Later)
    }

    /// Writes a value. Returns false if there is no room until a page is in remote memory: wait first.
    pub fn write(&mut self, remote: &mut dyn Remote, key: u64, value: &[u8]) -> Result<bool, StoreError> {
        match self.index.get(key) {
            Some(record) if record / self.config.page_records >= self.mutable() => {
                let place = self.place(record);
                self.memory[place][KEY_BYTES..].copy_from_slice(value);
                Ok(true)
            }
            _ if !self.has_room(RESERVE) => {
                self.advance(remote)?;
                Ok(false)
            }
            _ => self.append(remote, key, value).map(|()| true),
        }
    }

    /// Replaces a value that was read.
    pub fn replace(
        &mut self,
        remote: &mut dyn Remote,
        key: u64,
        record: u64,
        value: &[u8],
    ) -> Result<Replaced, StoreError> {
        if self.index.get(key) != Some(record) {
            return Ok(Replaced::Changed);
        }
        Ok(if self.write(remote, key, value)? { Replaced::Done } else { Replaced::Busy })
    }

    /// Whether a record can be added with this many pages of the region left.
    fn has_room(&self, reserve: u64) -> bool {
        if !self.tail.is_multiple_of(self.config.page_records) {
            return true;
        }
        // A new page replaces one that must already be in remote memory, and needs a place there later.
        let page = self.tail_page();
        let leaves = page.checked_sub(self.config.memory_pages);
        let is_written = leaves.is_none_or(|leaves| leaves < self.writing.first());
        is_written && page + reserve < self.begin + self.config.region_pages
    }

    /// Adds a record. The caller has checked that there is room.
    fn append(&mut self, remote: &mut dyn Remote, key: u64, value: &[u8]) -> Result<(), StoreError> {
        if !self.index.set(key, self.tail) {
            return Err(StoreError::Full(self.config.keys_max));
        }
        let place = self.place(self.tail);
        let record = &mut self.memory[place];
        record[..KEY_BYTES].copy_from_slice(&key.to_le_bytes());
        record[KEY_BYTES..].copy_from_slice(value);
        self.tail += 1;
        if self.tail.is_multiple_of(self.config.page_records) {
            self.advance(remote)?;
        }
        Ok(())
    }

    /// Writes pages that have become read-only to remote memory, and reads the oldest page back if few are free.
    fn advance(&mut self, remote: &mut dyn Remote) -> Result<(), StoreError> {
        while self.writing.next() < self.mutable()
            && (self.writing.len() as u64) < WRITES_MAX
            && self.writing.next() < self.free + self.config.region_pages
        {
            let (page, bytes) = (self.writing.next(), self.config.page_bytes());
            let at = (page % self.config.memory_pages) as usize * bytes;
            let bytes = &self.memory[at..at + bytes];
            remote.submit(tag(page, true), Operation::Write { at: self.remote_place(page), bytes })?;
            self.writing.push(());
            self.counters.pages_written += 1;
        }
        let used = self.pages() - self.begin;
        let is_due = used + COMPACT_BELOW + RESERVE > self.config.region_pages;
        if is_due && !self.compacting && self.begin < self.writing.first().min(self.head()) {
            let page =
                Operation::Read { at: self.remote_place(self.begin), bytes: self.config.page_bytes() as u32 };
            remote.submit(tag(self.reading.next(), false), page)?;
            self.reading.push(Reading::Page);
            self.compacting = true;
        }
        Ok(())
    }

    /// Waits for remote memory, a while and at most until then, and delivers values that arrived: token, record, value. Returns whether
    /// there was any end.
    pub fn wait(
        &mut self,
        remote: &mut dyn Remote,
        until: Nanos,
        came: &mut dyn FnMut(u64, u64, &[u8]),
    ) -> Result<bool, StoreError> {
        let (mut failed, mut any) = (Ok(()), false);
        let until = until.min(remote.now() + WAIT);
        remote.poll(until, &mut |tag, outcome| {
            any = true;
            let taken = self.take(tag, outcome, came);
            if failed.is_ok() {
                failed = taken;
            }
        })?;
        failed?;
        while self.leaving.front().is_some_and(|(_, reads)| *reads <= self.reading.first()) {
            self.free = self.leaving.pop_front().map_or(self.free, |(page, _)| page + 1);
        }
        self.compact(remote)?;
        self.advance(remote)?;
        Ok(any)
    }

    fn take(
        &mut self,
        tag: u64,
        outcome: Outcome<'_>,
        came: &mut dyn FnMut(u64, u64, &[u8]),
    ) -> Result<(), StoreError> {
        let (number, writes) = (tag >> 1, tag & 1 == 1);
        let bytes = match outcome {
            Outcome::Written if writes => return self.writing.take(number).ok_or(StoreError::Unasked),
            Outcome::Read(bytes) if !writes => bytes,
            Outcome::Failed(status) => return Err(status.into()),
            Outcome::Read(_) | Outcome::Written | Outcome::Word(_) => return Err(StoreError::Unasked),
        };
        match self.reading.take(number) {
            None => Err(StoreError::Unasked),
            Some(Reading::Value { token, key, record }) => {
                if bytes.len() != self.config.record_bytes() {
                    return Err(StoreError::Short(bytes.len()));
                }
                if bytes.first_chunk() != Some(&key.to_le_bytes()) {
                    return Err(StoreError::Wrong { record, key });
                }
                came(token, record, &bytes[KEY_BYTES..]);
                Ok(())
            }
            Some(Reading::Page) => {
                self.moving = Some(Moving { page: bytes.to_vec(), done: 0 });
                Ok(())
            }
        }
    }

    /// Moves current records of the oldest page to the tail, as far as the log has room.
    fn compact(&mut self, remote: &mut dyn Remote) -> Result<(), StoreError> {
        let Some(mut moving) = self.moving.take() else { return Ok(()) };
        let bytes = self.config.record_bytes();
        while moving.done < self.config.page_records {
            let at = moving.done as usize * bytes;
            let record = moving.page.get(at..at + bytes).and_then(|record| record.split_first_chunk());
            let Some((key, value)) = record else { return Err(StoreError::Short(moving.page.len())) };
            let key = u64::from_le_bytes(*key);
            if self.index.get(key) == Some(self.begin * self.config.page_records + moving.done) {
                if !self.has_room(0) {
                    self.moving = Some(moving);
                    return Ok(());
                }
                self.append(remote, key, value)?;
                self.counters.moved += 1;
            }
            moving.done += 1;
        }
        self.leaving.push_back((self.begin, self.reading.next()));
        self.begin += 1;
        self.compacting = false;
        self.counters.pages_compacted += 1;
        Ok(())
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
