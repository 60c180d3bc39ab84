//! Cost of a cached region beside plain memory, on hits: a view that is held, and reads and writes of 8 bytes at random
//! places. The goals are 25 ns above a plain access for a held view, and 60 ns for a read.
//!
//! ```sh
//! cargo bench --profile verify -p p4rack-hosts --bench region
//! ```
// Any error ends the benchmark.
#![allow(clippy::unwrap_used)]

use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::Local;
use p4rack_netdev::clock;
use p4rack_wire::SplitMix;
use std::hint::black_box;

/// Regions that fit into a processor's second cache, and that don't. All of each is local.
const REGIONS_BYTES: [u64; 2] = [256 << 10, 8 << 20];
const ACCESSES: usize = 1 << 15;
/// The best of them counts: the machine's other load only makes rounds longer.
const ROUNDS: usize = 400;

/// Mean ns of one access, in the best round.
fn best_ns(places: &[u64], mut access: impl FnMut(u64)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = clock::now();
        places.iter().for_each(|at| access(*at));
        (clock::now() - start).0 as f64 / places.len() as f64
    });
    rounds.fold(f64::MAX, f64::min)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn main() {
    for region_bytes in REGIONS_BYTES {
        let mut random = SplitMix(1);
        let places: Vec<u64> = (0..ACCESSES).map(|_| random.between(0, region_bytes / 8 - 1) * 8).collect();
        let plain = vec![1u8; region_bytes as usize];
        let plain_ns = best_ns(&places, |at| {
            black_box(word(black_box(&plain), at as usize));
        });
        println!("{} KiB of plain memory: {plain_ns:.1} ns for a word at a random place", region_bytes >> 10);
        for policy in ["runs", "lru", "kona", "unimem", "s3-fifo"] {
            measure(policy, &plain, &places);
        }
    }
}

fn measure(policy: &str, plain: &[u8], places: &[u64]) {
    let region_bytes = plain.len() as u64;
    let config = RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(3 * region_bytes) };
    let region = RemoteRegion::new(Box::new(Local::new(region_bytes)), &config).unwrap();
    // Twice, since a tier for new blocks drops some, which the second pass brings back.
    let mut all = vec![0; plain.len()];
    region.read(0, &mut all).unwrap();
    region.read(0, &mut all).unwrap();
    let before = region.statistics().counters;
    let mut bytes = [0; 8];
    let read_ns = best_ns(places, |at| region.read(at, black_box(&mut bytes)).unwrap());
    let write_ns = best_ns(places, |at| region.write(at, black_box(&[7; 8])).unwrap());
    let open_ns = best_ns(places, |at| drop(black_box(region.view(at, 8).unwrap())));
    let view = region.view(0, 4_096).unwrap();
    let inside: Vec<u64> = places.iter().map(|at| at % view.len() as u64).collect();
    let view_ns = best_ns(&inside, |at| {
        black_box(word(black_box(&view), at as usize));
    });
    let same = &plain[..view.len()];
    let same_ns = best_ns(&inside, |at| {
        black_box(word(black_box(same), at as usize));
    });
    let missed = region.statistics().counters.from_remote - before.from_remote;
    println!(
        "  {policy}: read {read_ns:.1} ns, write {write_ns:.1} ns, a view opened and closed {open_ns:.1} ns, in a held view {view_ns:.1} ns (plain {same_ns:.1} ns); {missed} misses"
    );
}
