//! Learning of `runs`, and its counters.

use super::{Parts, Runs};
use crate::{Action, Actions, Block, Policy, Served, Shape};

const FOOTPRINT: u32 = 4096;

fn runs(capacity: u32, host_percent: u32) -> Runs {
    Runs::new(Parts::ALL, &Shape { host_percent, ..Shape::new(FOOTPRINT, capacity, 8) })
}

impl Runs {
    fn is_local(&self, block: Block) -> bool {
        let spot = self.spot(self.layout.page_of(block));
        spot.in_host || self.device.find(self.layout.set_in(spot.group, block), block).is_some()
    }
}

/// Accesses a block: the fetches, as (first, count, ahead).
fn access(runs: &mut dyn Policy, block: Block) -> (Served, Vec<(Block, u32, bool)>) {
    let mut actions = Actions::default();
    let served = runs.access(block, false, &mut actions);
    let fetches = actions.as_slice().iter().filter_map(|action| match action {
        Action::Fetch { first, count, ahead } => Some((*first, *count, *ahead)),
        _ => None,
    });
    (served, fetches.collect())
}

#[test]
fn blocks_fetched_with_others_are_not_counted_as_used() {
    let mut runs = runs(512, 0);
    (0..64).for_each(|block| {
        access(&mut runs, block);
    });
    let fetched: Vec<Block> = (64..96).filter(|block| runs.is_local(*block)).collect();
    assert!(!fetched.is_empty(), "nothing was fetched ahead");
    assert!(fetched.iter().all(|block| runs.counts.frequency(*block) == 0), "{fetched:?}");
    assert_eq!(runs.counts.frequency(63), 1);
}

#[test]
fn a_first_scan_waits_once_a_run_or_less() {
    let mut runs = runs(512, 30);
    let waits = (0..1024).filter(|block| access(&mut runs, *block).0 == Served::Remote).count();
    assert!(waits < 40, "{waits} of 1024 blocks were waited for");
}

#[test]
fn lone_blocks_are_fetched_alone_once_memory_is_full() {
    let mut runs = runs(512, 30);
    let (_, fetches) = access(&mut runs, 0);
    assert_eq!(fetches, [(0, 8, false)]);
    for block in (0..FOOTPRINT).step_by(8) {
        access(&mut runs, block);
    }
    for block in (0..FOOTPRINT).step_by(37).chain((0..FOOTPRINT).step_by(41)) {
        let (_, fetches) = access(&mut runs, block);
        assert!(fetches.iter().all(|(_, count, _)| *count == 1), "{block}: {fetches:?}");
    }
}

#[test]
fn a_page_in_the_host_stays_until_another_is_used_more() {
    let shape = Shape::new(FOOTPRINT, 256, 8);
    let mut policy = Parts { ahead: false, regions: false, ..Parts::ALL }.open(&shape).expect("fits");
    // Nine pages fill the host's share. They are used three times as often as the rest.
    for round in 0..12 {
        for block in 0..shape.host_pages() * 8 {
            access(policy.as_mut(), block);
        }
        for block in 0..64 {
            access(policy.as_mut(), 1024 + round * 64 % 512 + block);
        }
    }
    let (served, _) = access(policy.as_mut(), 3);
    assert_eq!(served, Served::Host);
}

/// Pages that the host may have before and after many accesses, with one memory of 128 pages for host and device.
fn chosen(host_percent: u32, block: impl Fn(u32) -> Block) -> (u32, u32) {
    let shape = Shape { one_memory: true, host_percent, ..Shape::new(FOOTPRINT, 1024, 8) };
    let mut runs = Runs::new(Parts::ALL, &shape);
    let before = runs.host.limit() * runs.layout.groups;
    (0..2_000_000).for_each(|at| {
        access(&mut runs, block(at));
    });
    (before, runs.host.limit() * runs.layout.groups)
}

#[test]
fn the_split_follows_what_is_used() {
    let random = |at: u32| at.wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b) >> 8;
    // Four blocks of each of 240 pages: as blocks they fit into the memory's 1,024, as pages they do not.
    let (before, halves) = chosen(60, |at| random(at) % 240 * 8 + random(at ^ 0x5555) % 4 * 2);
    assert!(before > 70 && halves < 40, "{before}, then {halves} pages of pages that are half in use");
    // 110 pages beside a scan, which takes the newest quarter of the device's blocks and nothing of the host.
    let hot = 880;
    let beside_a_scan =
        |at: u32| if at.is_multiple_of(4) { hot + at / 4 % (FOOTPRINT - hot) } else { random(at) % hot };
    let (before, whole) = chosen(10, beside_a_scan);
    assert!(before < 20 && whole > 50, "{before}, then {whole} pages of pages in use beside a scan");
}

#[test]
fn streams_side_by_side_are_fetched_in_runs() {
    let shape = Shape { host_percent: 0, ..Shape::new(FOOTPRINT, 2048, 8) };
    let mut runs = Parts::ALL.open(&shape).expect("fits");
    let mut waits = 0;
    for line in 0..8 * 256 {
        for stream in 0..8 {
            waits += u32::from(access(runs.as_mut(), stream * 512 + line / 8).0 == Served::Remote);
        }
    }
    assert!(waits < 8 * 256 / 4, "{waits} of {} blocks were waited for", 8 * 256);
}

#[test]
fn pages_of_which_one_block_is_used_have_all_of_memory() {
    let mut runs = runs(512, 0);
    let mut pass = || (0..300).filter(|page| access(&mut runs, page * 8).0 == Served::Remote).count();
    (0..3).for_each(|_| {
        pass();
    });
    let waits = pass();
    assert!(waits < 30, "{waits} of 300 blocks that fit were waited for");
}
