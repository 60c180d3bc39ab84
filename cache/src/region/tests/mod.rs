//! A residency against plain memory, in every order that seeds find; and planted mistakes, each of which has to be seen.

use super as region;

mod world;

use super::plant::Plant;
use super::{Found, Limits, Mode, Request, Residency, Room};
use crate::{Actions, Block, Build, POLICIES, Policy, Served, find};
use p4rack_wire::SplitMix;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use world::{Setting, World};

const LIMITS: Limits = Limits { guards: 3, claims: 4, prefetched: 4, fetch: 6 };

/// A policy, and how often it has seen each block.
struct Seen {
    policy: Box<dyn Policy>,
    uses: Arc<[AtomicU32]>,
}

impl Policy for Seen {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        self.uses[block as usize].fetch_add(1, Ordering::Relaxed);
        self.policy.access(block, write, actions)
    }

    fn metadata_bytes(&self) -> u64 {
        self.policy.metadata_bytes()
    }
}

fn online() -> impl Iterator<Item = &'static crate::Definition> {
    POLICIES.iter().filter(|one| matches!(one.build, Build::Online(_)))
}

fn region(name: &str, blocks: u32, capacity: u32, limits: Limits) -> Residency {
    let definition = find(name).expect("is listed");
    Residency::new(definition, (blocks, 512), Room::Blocks(capacity), limits).expect("fits")
}

/// One run of random steps. Errors: what was broken.
fn run(name: &str, seed: u64, setting: Setting, plant: Option<Plant>) -> Result<(), String> {
    let mut random = SplitMix(seed);
    let capacity = 16 + random.between(0, u64::from(setting.blocks) / 2) as u32;
    let mut residency = region(name, setting.blocks, capacity, LIMITS);
    let uses: Arc<[AtomicU32]> = (0..setting.blocks).map(|_| AtomicU32::new(0)).collect();
    let policy = std::mem::replace(&mut residency.policy, Box::new(Never));
    residency.policy = Box::new(Seen { policy, uses: uses.clone() });
    residency.plant = plant;
    let mut world = World::new(residency, setting);
    let done = world.run(&mut |limit| random.between(0, limit - 1));
    let extra =
        uses.iter().zip(&world.accesses).position(|(seen, made)| seen.load(Ordering::Relaxed) > *made);
    done?;
    extra.map_or(Ok(()), |block| {
        Err(format!("the policy has seen more uses of block {block} than there were"))
    })
}

/// In place of a policy that is being wrapped.
struct Never;

impl Policy for Never {
    fn access(&mut self, _: Block, _: bool, _: &mut Actions) -> Served {
        Served::Device
    }

    fn metadata_bytes(&self) -> u64 {
        0
    }
}

/// Remote memory is fast or slow, and dies in some runs.
fn setting(seed: u64) -> Setting {
    Setting { blocks: 120, threads: 5, steps: 3_000, slow: seed % 10, dies: seed % 4 == 3 }
}

#[test]
fn a_region_is_memory_under_every_policy_in_every_order() {
    for definition in online() {
        for seed in 0..40 {
            if let Err(why) = run(definition.name, seed, setting(seed), None) {
                panic!("{}, seed {seed}: {why}", definition.name);
            }
        }
    }
}

#[test]
fn planted_mistakes_are_seen() {
    for (plant, found) in [
        (Plant::WriteDuringWriteBackLost, "another content"),
        (Plant::TwoFetches, "leaves beside"),
        (Plant::PromotionCleans, "another content"),
        (Plant::PrefetchIsUse, "more uses"),
        (Plant::EvictionCleans, "another content"),
        (Plant::EvictionIgnoresGuards, "under a guard"),
    ] {
        let runs = |seed| ["runs", "unimem"].map(|name| run(name, seed, setting(seed), Some(plant)));
        let whys: Vec<_> = (0..60).flat_map(runs).filter_map(Result::err).collect();
        assert!(whys.iter().any(|why| why.contains(found)), "{plant:?}: {:?}", whys.first());
    }
}

/// Carries out all requests, in order.
fn settle(residency: &mut Residency) -> Vec<Request> {
    let mut all = Vec::new();
    while let Some(request) = residency.next_request() {
        match request {
            Request::Fetch { first, count } => residency.fetched(first, count),
            Request::WriteBack { frame, .. } => residency.written(frame),
        }
        all.push(request);
    }
    all
}

/// Access to a block, whose requests are carried out.
fn use_block(residency: &mut Residency, block: Block, mode: Mode) {
    if residency.access(block, mode) == Found::Wait {
        settle(residency);
        let Found::Here(frame) = residency.claimed(block, mode) else { panic!("block {block} is not there") };
        residency.unpin(frame, mode);
    }
    settle(residency);
}

#[test]
fn accesses_that_wait_for_one_block_share_its_fetch() {
    let mut residency = region("lru", 64, 16, LIMITS);
    for _ in 0..3 {
        assert_eq!(residency.access(7, Mode::Read), Found::Wait);
    }
    assert_eq!(settle(&mut residency), [Request::Fetch { first: 7, count: 1 }]);
    for _ in 0..3 {
        assert!(matches!(residency.claimed(7, Mode::Read), Found::Here(_)));
    }
    assert_eq!((residency.counters().from_remote, residency.counters().joined), (1, 2));
}

#[test]
fn a_block_that_is_used_while_it_leaves_stays_without_a_fetch() {
    let mut residency = region("fifo", 64, 16, LIMITS);
    use_block(&mut residency, 0, Mode::Write);
    for block in 1..16 {
        use_block(&mut residency, block, Mode::Read);
    }
    // Block 0 has to leave, and its write-back does not end yet.
    assert_eq!(residency.access(16, Mode::Read), Found::Wait);
    assert_eq!(residency.next_request(), Some(Request::Fetch { first: 16, count: 1 }));
    let left = residency.next_request();
    let Some(Request::WriteBack { block: 0, frame }) = left else { panic!("{left:?}") };
    assert_eq!(residency.access(0, Mode::Write), Found::Here(frame));
    residency.written(frame);
    assert_eq!(residency.counters().rescued, 1);
    // It was written since: the next time it leaves, it is written back again.
    let before = residency.counters().written_back;
    residency.begin_flush();
    settle(&mut residency);
    assert!(residency.is_flushed());
    assert_eq!(residency.counters().written_back, before + 1);
}

#[test]
fn guards_keep_their_blocks_and_have_a_limit() {
    let mut residency = region("fifo", 64, 16, LIMITS);
    for block in 0..3 {
        use_block(&mut residency, block, Mode::Read);
        let Found::Here(frame) = residency.access(block, Mode::Read) else { panic!("{block}") };
        assert!(residency.pin(frame, Mode::Read));
    }
    let frame = residency.frame_of(0).expect("is pinned");
    let Found::Here(again) = residency.access(0, Mode::Read) else { panic!("readers share") };
    assert!(again == frame && !residency.pin(frame, Mode::Read), "more guards than may be");
    assert_eq!(residency.access(0, Mode::Write), Found::Wait, "a writer waits for readers");
    residency.give_up(0);
    for block in 3..60 {
        use_block(&mut residency, block, Mode::Write);
    }
    assert_eq!(residency.frame_of(0), Some(frame), "dropped by the policy, and held");
    residency.release(frame, Mode::Read);
    assert_eq!(residency.frame_of(0), None);
}

#[test]
fn the_oldest_unused_prefetched_blocks_make_room() {
    let mut residency = region("lru", 64, 16, LIMITS);
    assert_eq!(residency.prefetch(10, 3), 3);
    assert_eq!(settle(&mut residency), [Request::Fetch { first: 10, count: 3 }]);
    use_block(&mut residency, 12, Mode::Read);
    assert_eq!(residency.counters().from_remote, 0, "it was there");
    assert_eq!(residency.prefetch(20, 4), 4);
    let counters = *residency.counters();
    assert_eq!((counters.prefetched, counters.prefetched_used, counters.prefetched_unused), (7, 1, 2));
    assert_eq!((residency.frame_of(10), residency.frame_of(11)), (None, None));
    // All are on their way: there is nothing to drop.
    assert_eq!(residency.prefetch(40, 1), 0);
    assert_eq!(residency.prefetch(63, 100), 0);
}

#[test]
fn after_a_loss_every_access_fails() {
    let mut residency = region("runs", 64, 16, LIMITS);
    use_block(&mut residency, 1, Mode::Write);
    assert_eq!(residency.access(2, Mode::Read), Found::Wait);
    residency.fail();
    assert_eq!(residency.claimed(2, Mode::Read), Found::Failed);
    assert_eq!(residency.access(1, Mode::Read), Found::Failed);
    assert_eq!((residency.next_request(), residency.prefetch(9, 1)), (None, 0));
}

#[test]
fn frames_and_tables_fit_into_local_memory_whatever_the_policy() {
    let limits = Limits { guards: 16, claims: 32, prefetched: 16, fetch: 8 };
    for definition in online() {
        for kib in [128u64, 256, 1_000, 4_096] {
            let shape = (16_384, definition.block_bytes);
            let room = Room::Bytes(kib << 10);
            let residency = match Residency::new(definition, shape, room, limits) {
                Ok(residency) => residency,
                Err(why) => {
                    assert!(
                        kib == 128 || definition.block_bytes > 512 && kib == 256,
                        "{}: {why}",
                        definition.name
                    );
                    continue;
                }
            };
            let frames = u64::from(residency.frame_count()) * u64::from(definition.block_bytes);
            let used = frames + residency.tables_bytes();
            assert!(used <= kib << 10, "{} in {kib} KiB: {used}", definition.name);
            assert!(
                used + (kib << 10) / 8 > kib << 10,
                "{} in {kib} KiB: no more than {used}",
                definition.name
            );
        }
    }
}

/// A use that the policy does not see changes little: about as many fetches as with every use shown.
#[test]
fn uses_that_are_shown_once_between_changes_cost_no_fetches() {
    for definition in online() {
        let (blocks, capacity) = (2_048, 256);
        let mut random = SplitMix(5);
        let trace: Vec<Block> = (0..60_000)
            .map(|_| {
                let limit = random.between(1, u64::from(blocks));
                random.between(0, limit * limit / u64::from(blocks)).min(u64::from(blocks) - 1) as u32
            })
            .collect();
        let mut residency = region(definition.name, blocks, capacity, LIMITS);
        let shape = crate::Shape { one_memory: true, ..crate::Shape::new(blocks, capacity, 8) };
        let mut policy = definition.open(&shape, &[]).expect("fits");
        let (mut actions, mut fetched) = (Actions::default(), 0);
        for block in trace {
            use_block(&mut residency, block, Mode::Read);
            policy.access(block, false, &mut actions);
            fetched += actions
                .as_slice()
                .iter()
                .map(
                    |action| {
                        if let crate::Action::Fetch { count, .. } = action { u64::from(*count) } else { 0 }
                    },
                )
                .sum::<u64>();
        }
        let here = residency.counters().fetched;
        assert!(here * 100 <= fetched * 103, "{}: {here} instead of {fetched}", definition.name);
    }
}
