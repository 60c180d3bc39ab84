//! The artifact's variants count exactly what the programs of UniMem's authors count.
//!
//! The expected numbers are from github.com/yijieZ/UniMem, commit 39300ad, compiled with `g++ -O2` and without any fix. Their sizes were set
//! as `run.sh` sets them, from `workload-PageCount`'s numbers of touched pages and blocks. The trace below was given to them as text, a
//! line `R 0x<address> 64` for each access, with the touched pages moved together. `Unimem.cpp` and `Unimem-nopromote.cpp` had one
//! statement more, which prints the lengths of their lists when the trace ends; `Kona.cpp`'s misses are the pages that it prints.
//! Write-backs are not compared: their marks of dirty pages are never initialised.

#![allow(clippy::unwrap_used)]

use p4rack_cache::artifact::{Counters, NoPromote, PageCache, UniMem};
use p4rack_cache::{ARTIFACT, Actions, Policy, Served, Shape};
use p4rack_trace::synth::Recipe;
use p4rack_trace::{CpuCache, MODELS, Memory, Places};

const RECIPE: &str = r#"
kind = "ycsb"
workload = "c"
layout = "by-popularity"
records = 10_000
operations = 60_000
seed = 4
"#;
const ACCESSES: u64 = 867_496;
const PAGES: u32 = 2_669;
const BLOCKS: u32 = 17_809;
const PERCENTS: [u32; 7] = [100, 75, 50, 25, 10, 5, 2];

/// Lines that reach memory behind the caches that the authors simulate in effect.
fn lines() -> Vec<u32> {
    let model = MODELS.iter().find(|model| model.name == "fifo-48k").unwrap();
    let (mut cpu, mut lines) = (CpuCache::new(model), Vec::new());
    Recipe::read(RECIPE, "recipe").unwrap().make(&mut |access| {
        cpu.access(&access, &mut |memory| {
            if let Memory::Fill { line, .. } = memory {
                lines.push(line);
            }
        });
        true
    });
    let places = Places::new(lines.iter().copied());
    let lines: Vec<u32> = lines.into_iter().map(|line| places.of(line).unwrap() as u32).collect();
    let touched = |lines_each: u32| {
        let mut blocks: Vec<u32> = lines.iter().map(|line| line / lines_each).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len() as u32
    };
    let is = (lines.len() as u64, touched(64), touched(8));
    assert_eq!(is, (ACCESSES, PAGES, BLOCKS), "the trace is another one");
    lines
}

/// Misses of a run over blocks of this many lines.
fn run(policy: &mut dyn Policy, lines: &[u32], lines_each: u32) -> u64 {
    let mut actions = Actions::default();
    let mut misses = 0;
    for line in lines {
        misses += u64::from(policy.access(line / lines_each, false, &mut actions) == Served::Remote);
    }
    misses
}

/// Hits and misses add up to all accesses; insertions add up to removals and present blocks.
fn sums(counters: Counters, device: u32, host: u32) {
    let Counters { faults, refaults, active_hits, inactive_hits, host_hits, .. } = counters;
    assert_eq!(faults + active_hits + inactive_hits + host_hits, ACCESSES, "{counters:?}");
    assert!(refaults <= faults);
    assert_eq!(faults, counters.evictions + 8 * counters.promotions + u64::from(device), "{counters:?}");
    assert_eq!(counters.promotions, counters.host_evictions + u64::from(host), "{counters:?}");
}

#[test]
fn kona_misses_as_often() {
    let lines = lines();
    let kona = ARTIFACT.iter().find(|policy| policy.name == "kona-artifact").unwrap();
    let misses = PERCENTS.map(|percent| {
        let shape = Shape::new(PAGES, PAGES * percent / 100, 1);
        run(kona.open(&shape, &[]).unwrap().as_mut(), &lines, 64)
    });
    assert_eq!(misses, [2_673, 6_240, 11_984, 23_843, 44_354, 64_194, 97_126]);
}

#[test]
fn the_page_cache_has_the_same_counters() {
    let lines = lines();
    // Faults, hits of the active and of the inactive list.
    let expected = [
        [2_669, 853_238, 11_589],
        [4_921, 848_635, 13_940],
        [9_488, 838_965, 19_043],
        [18_867, 818_407, 30_222],
        [35_743, 783_347, 48_406],
        [53_766, 744_402, 69_328],
        [92_439, 700_027, 75_030],
    ];
    for (percent, expected) in PERCENTS.into_iter().zip(expected) {
        let mut policy = PageCache::open(&Shape::new(PAGES, PAGES * percent / 100, 1)).unwrap();
        let misses = run(&mut policy, &lines, 64);
        let Counters { faults, active_hits, inactive_hits, .. } = policy.counters();
        assert_eq!([faults, active_hits, inactive_hits], expected, "{percent} %");
        assert_eq!(misses, faults);
    }
}

#[test]
fn unimem_without_promotion_has_the_same_counters() {
    let lines = lines();
    // Faults, hits of the active list, of the inactive list, and of the refault queue; then the lists' lengths at the end.
    let expected = [
        ([18_150, 831_771, 17_575, 341], [16_028, 234, 1_547]),
        ([22_164, 827_757, 17_575, 4_355], [12_020, 234, 5_555]),
        ([31_788, 817_800, 17_908, 13_638], [8_013, 242, 8_013]),
        ([51_960, 784_866, 30_670, 20_590], [4_006, 442, 4_006]),
        ([86_466, 726_720, 54_310, 26_308], [1_602, 177, 1_602]),
        ([118_191, 675_580, 73_725, 30_424], [801, 88, 801]),
        ([160_624, 610_974, 95_898, 28_893], [320, 36, 320]),
    ];
    for (percent, (events, lengths)) in PERCENTS.into_iter().zip(expected) {
        let mut policy = NoPromote::open(&Shape::new(PAGES * 8, BLOCKS * percent / 100, 8)).unwrap();
        let misses = run(&mut policy, &lines, 8);
        let Counters { faults, active_hits, inactive_hits, refaults, .. } = policy.counters();
        assert_eq!([faults, active_hits, inactive_hits, refaults], events, "{percent} %");
        assert_eq!((policy.lengths(), misses), (lengths, faults), "{percent} %");
        sums(policy.counters(), lengths[0] + lengths[1], 0);
    }
}

#[test]
fn unimem_has_the_same_counters() {
    let lines = lines();
    // Faults, hits of the active list, of the inactive list, of the refault queue and of the host, promotions; then the lengths at
    // the end of the device's active list, inactive list and queue, and of the host's active and inactive list.
    let expected = [
        ([17_809, 176_237, 17_575, 0, 655_875, 1_206], [7_927, 234, 0, 1_205, 1]),
        ([17_809, 176_237, 17_575, 0, 655_875, 1_206], [7_927, 234, 0, 1_205, 1]),
        ([17_809, 176_237, 17_575, 0, 655_875, 1_206], [7_927, 234, 0, 1_205, 1]),
        ([17_809, 176_237, 17_575, 0, 655_875, 1_206], [7_927, 234, 0, 668, 538]),
        ([22_115, 212_621, 21_077, 734, 611_683, 1_264], [8_969, 304, 1_996, 267, 268]),
        ([36_750, 262_499, 24_581, 11_773, 543_666, 739], [4_486, 396, 4_984, 134, 134]),
        ([63_740, 326_400, 45_087, 14_845, 432_269, 442], [1_795, 200, 1_994, 54, 54]),
    ];
    for (percent, (events, lengths)) in PERCENTS.into_iter().zip(expected) {
        let mut policy = UniMem::open(&Shape::new(PAGES * 8, BLOCKS * percent / 100 * 8, 8)).unwrap();
        let misses = run(&mut policy, &lines, 8);
        let Counters { faults, active_hits, inactive_hits, refaults, host_hits, promotions, .. } =
            policy.counters();
        let ours = [faults, active_hits, inactive_hits, refaults, host_hits, promotions];
        assert_eq!(ours, events, "{percent} %");
        assert_eq!((policy.lengths(), misses), (lengths, faults), "{percent} %");
        sums(policy.counters(), lengths[0] + lengths[1], lengths[3] + lengths[4]);
    }
}
