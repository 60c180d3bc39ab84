//! Key-value stores in memory: an index of 8 bytes a bucket, an entry of 48 bytes a key, and the values.

use super::popularity::{Popularity, shuffled};
use super::{COUNT_MAX, Heap, Ran, Sink, within};
use crate::Access;
use p4rack_wire::SplitMix;
use serde::Deserialize;

const BUCKET_BYTES: u64 = 8;
const ENTRY_BYTES: u64 = 48;
/// An allocator's header in front of each object.
const HEADER_BYTES: u64 = 16;

/// YCSB's workloads by how many operations in a hundred read.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Workload {
    A,
    B,
    C,
}

/// Layout of values in memory.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Layout {
    /// Ten fields of 100 B, each where the allocator had room.
    Scattered,
    /// Records of 1 KB in the order of insertion, which has nothing to do with their popularity.
    ByInsertion,
    /// Records of 1 KB, the popular ones first.
    ByPopularity,
}

/// YCSB on a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ycsb {
    #[serde(default)]
    pub(super) seed: u64,
    workload: Workload,
    layout: Layout,
    records: u64,
    operations: u64,
    #[serde(default = "exponent")]
    exponent: f64,
    #[serde(default = "threads")]
    threads: u16,
}

/// Objects of equal size, each equally likely.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    #[serde(default)]
    pub(super) seed: u64,
    objects: u64,
    #[serde(default = "object_bytes")]
    bytes: u64,
    operations: u64,
    #[serde(default = "half")]
    write_percent: u64,
    #[serde(default = "threads")]
    threads: u16,
}

/// Facebook's ETC.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Etc {
    #[serde(default)]
    pub(super) seed: u64,
    keys: u64,
    operations: u64,
    /// Mutilate's default.
    #[serde(default = "etc_value_bytes")]
    value_bytes: u64,
    #[serde(default = "etc_write_percent")]
    write_percent: u64,
}

fn exponent() -> f64 {
    0.99
}

fn threads() -> u16 {
    1
}

fn object_bytes() -> u64 {
    300
}

fn half() -> u64 {
    50
}

fn etc_value_bytes() -> u64 {
    200
}

fn etc_write_percent() -> u64 {
    3
}

/// The part of a store that all have: index and entries.
struct Index {
    buckets: u64,
    mask: u64,
    entries: u64,
}

impl Index {
    fn new(heap: &mut Heap, keys: u64) -> Index {
        let buckets = keys.next_power_of_two();
        let first = heap.array(buckets, BUCKET_BYTES);
        Index { buckets: first, mask: buckets - 1, entries: heap.array(keys, ENTRY_BYTES) }
    }

    /// Finds a key.
    fn find(&self, key: u64, thread: u16, sink: Sink<'_>) -> Ran {
        let bucket = SplitMix(key).next() & self.mask;
        let read = |address, bytes| Access { address, bytes, write: false, thread };
        sink(read(self.buckets + bucket * BUCKET_BYTES, BUCKET_BYTES as u32))?;
        sink(read(self.entries + key * ENTRY_BYTES, ENTRY_BYTES as u32))
    }
}

impl Ycsb {
    pub(super) fn check(&self) -> Result<(), String> {
        within("records", self.records, 2, COUNT_MAX / 64)?;
        within("operations", self.operations, 1, COUNT_MAX)?;
        within("threads", u64::from(self.threads), 1, 1024)?;
        if !(0.0..=4.0).contains(&self.exponent) {
            return Err(format!("exponent: {}; expected 0 to 4: YCSB has 0.99", self.exponent));
        }
        Ok(())
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        const FIELDS: u64 = 10;
        const FIELD_BYTES: u64 = 100;
        let mut random = SplitMix(self.seed);
        let mut heap = Heap::new();
        let index = Index::new(&mut heap, self.records);
        let step = match self.layout {
            Layout::Scattered => (HEADER_BYTES + FIELD_BYTES).next_multiple_of(16),
            Layout::ByInsertion | Layout::ByPopularity => HEADER_BYTES + 1024,
        };
        let scattered = matches!(self.layout, Layout::Scattered);
        let objects = if scattered { self.records * FIELDS } else { self.records };
        let values = heap.array(objects, step) + HEADER_BYTES;
        let by_popularity = matches!(self.layout, Layout::ByPopularity);
        let places = if by_popularity { Vec::new() } else { shuffled(objects, &mut random) };
        let field = |record: u64, field: u64| {
            if scattered {
                return values + u64::from(places[(record * FIELDS + field) as usize]) * step;
            }
            let record = places.get(record as usize).map_or(record, |place| u64::from(*place));
            values + record * step + field * FIELD_BYTES
        };
        let popularity = Popularity::new(self.records, self.exponent);
        let reads = match self.workload {
            Workload::A => 0.5,
            Workload::B => 0.95,
            Workload::C => 1.0,
        };
        for operation in 0..self.operations {
            let thread = (operation % u64::from(self.threads)) as u16;
            let record = popularity.sample(&mut random) as u64;
            index.find(record, thread, sink)?;
            let bytes = FIELD_BYTES as u32;
            if random.unit() < reads {
                for one in 0..FIELDS {
                    sink(Access { address: field(record, one), bytes, write: false, thread })?;
                }
            } else {
                let one = random.below(FIELDS);
                sink(Access { address: field(record, one), bytes, write: true, thread })?;
            }
        }
        Ran::Continue(())
    }
}

impl Uniform {
    pub(super) fn check(&self) -> Result<(), String> {
        within("objects", self.objects, 1, COUNT_MAX / 16)?;
        within("bytes", self.bytes, 1, 1 << 20)?;
        within("operations", self.operations, 1, COUNT_MAX)?;
        within("write_percent", self.write_percent, 0, 100)?;
        within("threads", u64::from(self.threads), 1, 1024)
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        let mut random = SplitMix(self.seed);
        let mut heap = Heap::new();
        let index = Index::new(&mut heap, self.objects);
        let step = (HEADER_BYTES + self.bytes).next_multiple_of(16);
        let values = heap.array(self.objects, step) + HEADER_BYTES;
        for operation in 0..self.operations {
            let thread = (operation % u64::from(self.threads)) as u16;
            let object = random.below(self.objects);
            index.find(object, thread, sink)?;
            let write = random.below(100) < self.write_percent;
            sink(Access { address: values + object * step, bytes: self.bytes as u32, write, thread })?;
        }
        Ran::Continue(())
    }
}

impl Etc {
    pub(super) fn check(&self) -> Result<(), String> {
        within("keys", self.keys, 1, COUNT_MAX / 16)?;
        within("operations", self.operations, 1, COUNT_MAX)?;
        within("value_bytes", self.value_bytes, 1, 1 << 20)?;
        within("write_percent", self.write_percent, 0, 100)
    }

    /// A key's bytes: a generalised extreme value distribution (Atikoglu et al., SIGMETRICS 2012).
    fn key_bytes(random: &mut SplitMix) -> u64 {
        const LOCATION: f64 = 30.7984;
        const SCALE: f64 = 8.20449;
        const SHAPE: f64 = 0.078688;
        let point = random.unit().max(f64::MIN_POSITIVE);
        let bytes = LOCATION + SCALE * ((-point.ln()).powf(-SHAPE) - 1.0) / SHAPE;
        bytes.clamp(1.0, 250.0) as u64
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        let mut random = SplitMix(self.seed);
        let mut heap = Heap::new();
        let index = Index::new(&mut heap, self.keys);
        let mut places: Vec<(u64, u64)> = Vec::with_capacity(self.keys as usize);
        let mut end = heap.array(1, 0);
        for _ in 0..self.keys {
            let bytes = Self::key_bytes(&mut random) + self.value_bytes;
            places.push((end + HEADER_BYTES, bytes));
            end += (HEADER_BYTES + bytes).next_multiple_of(16);
        }
        for _ in 0..self.operations {
            let key = random.below(self.keys);
            index.find(key, 0, sink)?;
            let (address, bytes) = places[key as usize];
            let write = random.below(100) < self.write_percent;
            sink(Access { address, bytes: bytes as u32, write, thread: 0 })?;
        }
        Ran::Continue(())
    }
}
