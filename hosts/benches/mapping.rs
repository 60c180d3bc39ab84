//! Cost of ordinary memory behind a region, over a way without latency: faults above the region's read of a page, pages
//! that leave, and accesses to pages in place beside plain memory. The goals: a fault 6 µs in the thread and 10 µs by a
//! thread, a page that leaves 3 µs alone and 1.5 µs in a batch, an access to a page in place at most 3 % longer.
//!
//! ```sh
//! cargo bench --profile verify -p p4rack-hosts --bench mapping
//! ```
// Any error ends the benchmark.
#![allow(clippy::unwrap_used)]

use p4rack_hosts::paging::{Faults, Mapping, MappingConfig, check_privileges};
use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::Local;
use p4rack_netdev::clock;
use p4rack_wire::{SplitMix, quantiles};
use std::hint::black_box;
use std::sync::Arc;

const BYTES: u64 = 16 << 20;
const PAGES: u64 = BYTES / 4_096;
/// Rounds, of which the best counts: what else the machine does makes all others longer.
const ROUNDS: usize = 12;

/// All of it is local.
fn region() -> Arc<RemoteRegion> {
    let region = RemoteRegion::new(Box::new(Local::new(BYTES)), &RegionConfig::new(3 * BYTES)).unwrap();
    let mut page = vec![1; 4_096];
    (0..PAGES).for_each(|number| region.write(number * 4_096, &page).unwrap());
    (0..2).for_each(|_| (0..PAGES).for_each(|number| region.read(number * 4_096, &mut page).unwrap()));
    Arc::new(region)
}

fn map(region: &Arc<RemoteRegion>, faults: Faults, pages_bytes: u64, batch_pages: u16) -> Mapping {
    let config = MappingConfig { faults, batch_pages, ..MappingConfig::new(pages_bytes) };
    Mapping::new(Arc::clone(region), &config).unwrap()
}

fn read(mapping: &Mapping, at: u64) -> u64 {
    assert!(at < BYTES);
    // SAFETY: in bounds; nothing writes it at the same time.
    unsafe { mapping.start().add(at as usize).cast::<u64>().read_volatile() }
}

fn write(mapping: &Mapping, at: u64, value: u64) {
    assert!(at < BYTES);
    // SAFETY: in bounds; nothing uses it at the same time.
    unsafe { mapping.start().add(at as usize).cast::<u64>().write_volatile(value) };
}

/// Median ns of one step of a round, in the best round.
fn median_ns(mut round: impl FnMut(&mut dyn FnMut(&mut dyn FnMut()))) -> f64 {
    let medians = (0..ROUNDS).map(|_| {
        let mut times = Vec::with_capacity(PAGES as usize);
        round(&mut |step| {
            let start = clock::now();
            step();
            times.push((clock::now() - start).0);
        });
        times.sort_unstable();
        quantiles::of_sorted(&times, 0.5).expect("a round has steps") as f64
    });
    medians.fold(f64::MAX, f64::min)
}

fn main() {
    let region = region();
    let mut page = [0; 4_096];
    let read_ns = median_ns(|time| {
        (0..PAGES)
            .for_each(|number| time(&mut || region.read(number * 4_096, black_box(&mut page)).unwrap()));
    });
    println!("the region's read of a local page: {:.1} µs", read_ns / 1e3);
    let by_thread = check_privileges().map(|()| (Faults::ByThread, 10.0));
    let by_thread = by_thread.map_err(|error| println!("not measured by thread: {error}")).ok();
    for (faults, goal_us) in [(Faults::InThread, 6.0)].into_iter().chain(by_thread) {
        measure_faults(&region, faults, goal_us, read_ns);
    }
    for batch_pages in [1, 32] {
        measure_leaving(&region, batch_pages);
    }
    measure_in_place(&region);
}

fn measure_faults(region: &Arc<RemoteRegion>, faults: Faults, goal_us: f64, read_ns: f64) {
    // Each round has a fresh mapping, which has room for all pages and twins.
    let fresh = || map(region, faults, 3 * BYTES, 32);
    let reads = median_ns(|time| {
        let mapping = fresh();
        (0..PAGES).for_each(|page| {
            time(&mut || {
                black_box(read(&mapping, page * 4_096));
            })
        });
    });
    let first_writes = median_ns(|time| {
        let mapping = fresh();
        (0..PAGES).for_each(|page| time(&mut || write(&mapping, page * 4_096, page)));
    });
    let later_writes = median_ns(|time| {
        let mapping = fresh();
        (0..PAGES).for_each(|page| {
            black_box(read(&mapping, page * 4_096));
        });
        (0..PAGES).for_each(|page| time(&mut || write(&mapping, page * 4_096, page)));
    });
    println!(
        "{faults:?}: a fault above the region's read {:.1} µs (goal {goal_us} µs), one that writes {:.1} µs; a write to a page that was read {:.1} µs",
        (reads - read_ns) / 1e3,
        (first_writes - read_ns) / 1e3,
        later_writes / 1e3
    );
}

/// A scan of four times the pages that fit.
fn measure_leaving(region: &Arc<RemoteRegion>, batch_pages: u16) {
    let goal_us = if batch_pages == 1 { 3.0 } else { 1.5 };
    let mut best = [f64::MAX; 2];
    for writes in [false, true] {
        let mapping = map(region, Faults::InThread, BYTES / 4, batch_pages);
        for round in 0..ROUNDS as u64 {
            let before = mapping.statistics().pages;
            for page in 0..PAGES {
                match writes {
                    true => write(&mapping, page * 4_096 + 1_024, round),
                    false => {
                        black_box(read(&mapping, page * 4_096));
                    }
                }
            }
            let pages = mapping.statistics().pages;
            let cpu_ns = pages.leaving_cpu_ns - before.leaving_cpu_ns;
            let per_page = cpu_ns as f64 / (pages.shelved - before.shelved) as f64;
            best[usize::from(writes)] = best[usize::from(writes)].min(per_page);
        }
    }
    let [clean, dirty] = best.map(|ns| ns / 1e3);
    println!(
        "processor time for a page that leaves, of at most {batch_pages} together: {clean:.1} µs clean (goal {goal_us} µs), {dirty:.1} µs with a block written back"
    );
}

fn measure_in_place(region: &Arc<RemoteRegion>) {
    let mapping = map(region, Faults::InThread, 3 * BYTES, 32);
    let plain = vec![1u64; BYTES as usize / 8];
    let mut random = SplitMix(1);
    // One size that fits into a processor's second-level cache, and one that doesn't.
    for bytes in [256 << 10, BYTES] {
        let places: Vec<u64> = (0..1 << 15).map(|_| random.between(0, bytes / 8 - 1)).collect();
        places.iter().for_each(|place| {
            black_box(read(&mapping, place * 8));
        });
        // SAFETY: all of these words are in the mapping, and nothing writes them.
        let mapped =
            unsafe { std::slice::from_raw_parts(mapping.start().as_ptr().cast::<u64>(), plain.len()) };
        let mut best = [f64::MAX; 2];
        for _ in 0..200 {
            for (words, best) in [plain.as_slice(), mapped].into_iter().zip(&mut best) {
                let start = clock::now();
                let sum = places.iter().fold(0u64, |sum, place| sum.wrapping_add(words[*place as usize]));
                black_box(sum);
                *best = best.min((clock::now() - start).0 as f64 / places.len() as f64);
            }
        }
        let [plain_ns, mapped_ns] = best;
        println!(
            "a word at a random place of {} KiB in place: {mapped_ns:.2} ns, of plain memory {plain_ns:.2} ns: {:+.1} % (goal 3 %)",
            bytes >> 10,
            (mapped_ns / plain_ns - 1.0) * 100.0
        );
    }
}
