//! Ordinary memory behind a region: eight threads with evictions, each read checked; system calls, discards and
//! flushes.

#![allow(clippy::unwrap_used)]

#[path = "common/range.rs"]
mod range;

use p4rack_hosts::paging::{Faults, Mapping, MappingConfig, MappingError, check_privileges};
use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::{Delayed, Local, Remote};
use p4rack_wire::{Nanos, SplitMix};
use range::{Range, may_map};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 4 << 20;
const PAGES_BYTES: u64 = 1 << 20;
const THREADS: u64 = 8;

fn local() -> Box<dyn Remote> {
    Box::new(Local::new(BYTES))
}

fn delayed() -> Box<dyn Remote> {
    Box::new(Delayed::new(Local::new(BYTES), Nanos::from_micros(50)))
}

fn map(remote: Box<dyn Remote>, config: &MappingConfig) -> (Mapping, Arc<RemoteRegion>) {
    let region = Arc::new(RemoteRegion::new(remote, &RegionConfig::new(512 << 10)).unwrap());
    (Mapping::new(Arc::clone(&region), config).unwrap(), region)
}

fn config(faults: Faults) -> MappingConfig {
    MappingConfig { faults, ..MappingConfig::new(PAGES_BYTES) }
}

/// Faults by threads where the process may, and in the thread.
fn all_faults() -> impl Iterator<Item = Faults> {
    [Faults::InThread, Faults::ByThread].into_iter().filter(|faults| *faults == Faults::InThread || may_map())
}

/// Accesses of each of the threads.
fn accesses() -> u64 {
    let all = std::env::var("P4RACK_MAPPING_ACCESSES").ok();
    all.map_or(20_000, |all| all.parse::<u64>().unwrap() / THREADS)
}

/// A thread's random accesses. It has every `THREADS`th word, so that threads share all pages. Returns its words.
fn words(range: Range, thread: u64) -> Vec<u64> {
    let count = BYTES / 8 / THREADS;
    let mut random = SplitMix(thread);
    let mut written = vec![0u64; count as usize];
    for step in 0..accesses() {
        // Half of them in a hot part, which has to stay.
        let limit = if random.next().is_multiple_of(2) { count } else { count / 16 };
        let word = random.between(0, limit - 1);
        let (place, last) = (word * THREADS + thread, &mut written[word as usize]);
        if random.next().is_multiple_of(3) {
            *last = step << 8 | thread;
            range.write(place, *last);
        } else {
            let seen = range.read(place);
            assert_eq!(seen, *last, "thread {thread}, step {step}, word {place}");
        }
    }
    written
}

fn used_by_threads(remote: Box<dyn Remote>, faults: Faults, starts_zeroed: bool) {
    let config = MappingConfig { starts_zeroed, ..config(faults) };
    let (mapping, region) = map(remote, &config);
    let range = Range::of(&mapping);
    let written: Vec<Vec<u64>> = std::thread::scope(|scope| {
        // Small stacks suffice to serve faults.
        let builder = || std::thread::Builder::new().stack_size(64 << 10);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| builder().spawn_scoped(scope, move || words(range, thread)).unwrap())
            .collect();
        // The limit holds at any time, for the range by the kernel's count as well.
        while !threads.iter().all(|thread| thread.is_finished()) {
            let (resident, statistics) = (range.resident_bytes(), mapping.statistics());
            assert!(resident <= PAGES_BYTES, "{resident} bytes are in place");
            assert!(statistics.local_bytes <= PAGES_BYTES, "{statistics:?}");
            mapping.flush().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    mapping.flush().unwrap();
    is_counted_as_by_the_kernel(&mapping);
    let mut bytes = vec![0; BYTES as usize];
    region.read(0, &mut bytes).unwrap();
    for (place, word) in bytes.chunks_exact(8).enumerate() {
        let expected = written[place % THREADS as usize][place / THREADS as usize];
        assert_eq!(u64::from_ne_bytes(word.try_into().unwrap()), expected, "word {place} after a flush");
    }
    let statistics = mapping.statistics();
    assert!(statistics.local_bytes_max <= PAGES_BYTES, "{statistics:?}");
    let pages = statistics.pages;
    assert!(pages.restored > 0 && pages.evicted > 0 && pages.evicted_dirty > 0, "{statistics:?}");
    assert!(pages.twins > 0 && pages.written_back_bytes > 0, "{statistics:?}");
}

/// Pages in place, twins and the shelf: the kernel counts no more of them than the mapping does. No thread uses the range.
fn is_counted_as_by_the_kernel(mapping: &Mapping) {
    let range = Range::of(mapping);
    // A page that leaves between the kernel's two counts is in both: count again.
    for _ in 0..1_000 {
        let before = mapping.statistics();
        let resident = range.resident_bytes() + range.buffers_resident_bytes();
        let after = mapping.statistics();
        if (before.pages, before.local_bytes) == (after.pages, after.local_bytes) {
            let counted = before.local_bytes - before.tables_bytes;
            assert!(resident <= counted, "{resident} bytes are in memory: {before:?}");
            assert!(range.buffers_resident_bytes() > 0 && resident > counted / 2, "{resident}: {before:?}");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("pages still leave: {:?}", mapping.statistics());
}

#[test]
fn threads_read_what_they_wrote() {
    all_faults().for_each(|faults| used_by_threads(local(), faults, false));
}

#[test]
fn threads_read_what_they_wrote_in_memory_that_begins_as_zeros() {
    all_faults().for_each(|faults| used_by_threads(local(), faults, true));
}

#[test]
fn threads_read_what_they_wrote_over_a_slow_way() {
    all_faults().for_each(|faults| used_by_threads(delayed(), faults, false));
}

#[test]
fn a_range_begins_with_the_regions_content_or_as_zeros_without_fetches() {
    for faults in all_faults() {
        for starts_zeroed in [false, true] {
            let region = Arc::new(RemoteRegion::new(local(), &RegionConfig::new(512 << 10)).unwrap());
            region.write(0, &vec![0xee; BYTES as usize]).unwrap();
            let config = MappingConfig { starts_zeroed, ..config(faults) };
            let mapping = Mapping::new(Arc::clone(&region), &config).unwrap();
            let before = region.statistics().counters.accesses();
            let range = Range::of(&mapping);
            let content = if starts_zeroed { 0 } else { 0xeeee_eeee_eeee_eeee };
            // A word of each page is written, so that pages leave with pieces that the region never had.
            for page in 0..BYTES / 4_096 {
                assert_eq!(range.read(page * 512 + 100), content, "page {page}");
                range.write(page * 512 + 200, page);
            }
            for page in 0..BYTES / 4_096 {
                assert_eq!(range.read(page * 512 + 200), page);
                assert_eq!(range.read(page * 512 + 511), content, "page {page}");
                assert_eq!(range.read(page * 512 + 201), content, "page {page}");
            }
            let pages = mapping.statistics().pages;
            assert!(pages.evicted_dirty > 0);
            if starts_zeroed {
                assert!(pages.zeroed >= BYTES / 4_096);
                let blocks = region.statistics().counters.accesses() - before;
                // One piece of each page is written once and read at most once.
                assert!(blocks <= 2 * BYTES / 4_096, "{blocks} blocks were used");
            }
        }
    }
}

#[test]
fn only_pieces_that_differ_are_written_back() {
    for faults in all_faults() {
        let (mapping, region) = map(local(), &config(faults));
        let range = Range::of(&mapping);
        for page in 0..100 {
            range.write(page * 512 + 300, page + 1);
            // The same value again: a write that changes nothing.
            range.write(page * 512, 0);
        }
        mapping.flush().unwrap();
        let pages = mapping.statistics().pages;
        assert_eq!((pages.written_back_bytes, pages.changed_lines), (100 * 512, 100));
        // Clean pages are not written back again, and the next write is noticed.
        mapping.flush().unwrap();
        assert_eq!(mapping.statistics().pages.written_back_bytes, 100 * 512);
        range.write(300, 77);
        mapping.flush().unwrap();
        let mut bytes = [0; 8];
        region.read(2_400, &mut bytes).unwrap();
        assert_eq!((u64::from_ne_bytes(bytes), mapping.statistics().pages.changed_lines), (77, 101));
    }
}

#[test]
fn pages_that_leave_dirty_are_written_without_fetches() {
    for policy in ["runs", "lru", "kona"] {
        let region = RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(512 << 10) };
        let region = Arc::new(RemoteRegion::new(local(), &region).unwrap());
        let config = MappingConfig { starts_zeroed: true, ..config(Faults::InThread) };
        let mapping = Mapping::new(Arc::clone(&region), &config).unwrap();
        let range = Range::of(&mapping);
        for page in 0..BYTES / 4_096 {
            (0..512).for_each(|word| range.write(page * 512 + word, page + 1));
        }
        mapping.flush().unwrap();
        let (pages, counters) = (mapping.statistics().pages, region.statistics().counters);
        assert_eq!(pages.written_back_bytes, BYTES, "{policy}");
        // `runs` fetches the missing blocks of a page that it moves to its host's part.
        let most = if policy == "runs" { BYTES / 512 / 20 } else { 0 };
        assert!(counters.fetched <= most, "{policy}: {pages:?}, {counters:?}");
        (0..BYTES / 4_096).for_each(|page| assert_eq!(range.read(page * 512 + 511), page + 1));
    }
}

#[test]
fn discarded_pages_read_as_zeros_and_are_not_written_back() {
    for faults in all_faults() {
        let (mapping, region) = map(local(), &config(faults));
        let range = Range::of(&mapping);
        // In place, on the shelf, and gone.
        for page in 0..BYTES / 4_096 {
            range.write(page * 512 + 7, page + 1);
        }
        let half = BYTES / 2;
        mapping.discard(0, half).unwrap();
        mapping.discard(half + 4_096, 0).unwrap();
        mapping.flush().unwrap();
        for page in 0..BYTES / 4_096 {
            let expected = if page < half / 4_096 { 0 } else { page + 1 };
            assert_eq!(range.read(page * 512 + 7), expected, "page {page}");
        }
        // The region still has the evicted bytes; the range never shows them.
        let written = mapping.statistics().pages.written_back_bytes;
        mapping.discard(half, half).unwrap();
        mapping.flush().unwrap();
        let statistics = mapping.statistics();
        assert_eq!(
            (statistics.pages.written_back_bytes, statistics.in_place, statistics.on_shelf),
            (written, 0, 0)
        );
        let mut bytes = [0; 8];
        region.read(BYTES - 4_096 + 56, &mut bytes).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), BYTES / 4_096);
        for (at, bytes) in [(1, 4_096), (0, 100), (BYTES, 4_096), (4_096, u64::MAX - 4_095)] {
            let refused = mapping.discard(at, bytes).unwrap_err();
            assert!(matches!(refused, MappingError::Unaligned { .. }), "{refused}");
            assert!(refused.to_string().contains("of a range of 4194304; expected whole pages"), "{refused}");
        }
    }
}

#[test]
fn system_calls_use_the_range_if_threads_serve_faults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at >> 7) as u8).collect();
    File::create(&path).unwrap().write_all(&bytes).unwrap();
    if may_map() {
        let (mapping, _) = map(local(), &config(Faults::ByThread));
        let range = Range::of(&mapping);
        File::open(&path).unwrap().read_exact(range.bytes_mut()).unwrap();
        let copy = folder.path().join("copy");
        File::create(&copy).unwrap().write_all(range.bytes_mut()).unwrap();
        assert!(std::fs::read(&copy).unwrap() == bytes);
    }
    let (mapping, _) = map(local(), &config(Faults::InThread));
    let refused = File::open(&path).unwrap().read(Range::of(&mapping).bytes_mut()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EFAULT), "{refused}");
}

#[test]
fn bad_sizes_are_refused_with_what_was_expected() {
    let refused = |bytes: u64, config: MappingConfig| {
        let region = RemoteRegion::new(Box::new(Local::new(bytes)), &RegionConfig::new(256 << 10)).unwrap();
        Mapping::new(Arc::new(region), &config).unwrap_err().to_string()
    };
    let few = refused(BYTES, MappingConfig { faults: Faults::InThread, ..MappingConfig::new(100_000) });
    assert!(few.starts_with("pages_bytes: 100000; expected at least 2"), "{few}");
    let none = refused(4_000, config(Faults::InThread));
    assert_eq!(none, "a region of 4000 bytes; expected at least 4096");
    let threads = refused(BYTES, MappingConfig { threads: 0, ..config(Faults::ByThread) });
    assert_eq!(threads, "threads: 0; expected 1 or more");
    let batch = refused(BYTES, MappingConfig { batch_pages: 33, ..config(Faults::InThread) });
    assert_eq!(batch, "batch_pages: 33; expected 1 to 32");
}

#[test]
fn privileges_are_known_before_a_mapping_is_made() {
    // The kernel decides; the check and the mapping agree.
    let region = RemoteRegion::new(local(), &RegionConfig::new(256 << 10)).unwrap();
    let mapping = Mapping::new(Arc::new(region), &config(Faults::ByThread));
    assert_eq!(
        check_privileges().map_err(|error| error.to_string()),
        mapping.map(drop).map_err(|error| error.to_string())
    );
}
