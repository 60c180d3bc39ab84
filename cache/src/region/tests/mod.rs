//! A residency against plain memory, in every order that seeds find; and planted mistakes, each of which has to be seen.

use super as region;

mod world;

use super::plant::Plant;
use super::{Found, Limits, Mode, Request, Residency, Room};
use crate::{Action, Actions, Block, Build, POLICIES, Policy, Served, find};
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

/// One run of random steps. The error names the broken rule.
fn run(name: &str, seed: u64, setting: Setting, plant: Option<Plant>) -> Result<(), String> {
    let mut random = SplitMix(seed);
    let capacity = 16 + random.between(0, u64::from(setting.blocks) / 2) as u32;
    let mut residency = region(name, setting.blocks, capacity, LIMITS);
    let uses: Arc<[AtomicU32]> = (0..setting.blocks).map(|_| AtomicU32::new(0)).collect();
    let policy = std::mem::replace(&mut residency.policy, Box::new(Never));
    residency.policy = Box::new(Seen { policy, uses: uses.clone() });
    residency.plant = plant;
    if seed % 3 == 1 {
        // Most turns have to wait for the queue of fetches.
        residency.fetches_max = 1 + seed as u32 % 4;
    }
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
    Setting { blocks: 120, threads: 5, steps: 3_000, slow: seed % 10, dies: seed % 4 == 3, overwrites: true }
}

/// Seeds of a run; `P4RACK_SEEDS` sets another number.
fn seeds() -> u64 {
    std::env::var("P4RACK_SEEDS").map_or(40, |seeds| seeds.parse().expect("P4RACK_SEEDS is a number"))
}

#[test]
fn a_region_is_memory_under_every_policy_in_every_order() {
    for definition in online() {
        for seed in 0..seeds() {
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
        (Plant::EvictionIgnoresGuards, "pins, and"),
        (Plant::ReleaseLeaks, "is lost"),
        (Plant::ReleaseIsSilent, "nothing woke it"),
        (Plant::ClaimIsSilent, "nothing woke it"),
    ] {
        let setting = |seed| Setting { overwrites: false, ..setting(seed) };
        let runs = |seed| ["runs", "unimem"].map(|name| run(name, seed, setting(seed), Some(plant)));
        let whys: Vec<_> = (0..60).flat_map(runs).filter_map(Result::err).collect();
        assert!(whys.iter().any(|why| why.contains(found)), "{plant:?}: {:?}", whys.first());
    }
}

/// A policy that follows a test's script: an access to a block takes the block's first remaining line.
struct Script(Vec<(Block, Vec<Action>)>);

impl Policy for Script {
    fn access(&mut self, block: Block, _: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(line) = self.0.iter().position(|(at, _)| *at == block) {
            self.0.remove(line).1.into_iter().for_each(|action| actions.push(action));
        }
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        0
    }
}

/// A region of 64 blocks, 16 of them local, whose policy asks for this.
fn scripted<const N: usize>(script: [(Block, Vec<Action>); N]) -> Residency {
    let mut residency = region("lru", 64, 16, LIMITS);
    residency.policy = Box::new(Script(script.into()));
    residency
}

fn fetch(first: Block, count: u32) -> Action {
    Action::Fetch { first, count, ahead: false }
}

fn evict(block: Block) -> Action {
    Action::Evict { block, dirty: false }
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

/// A fetch has its place until it has ended, also if the way refuses it.
#[test]
fn fetches_without_a_place_wait_in_their_turn() {
    let mut residency = scripted([(0, vec![fetch(0, 1), fetch(8, 2), fetch(20, 1)])]);
    residency.fetches_max = 2;
    assert_eq!(residency.access(0, Mode::Read), Found::Wait);
    let first = residency.next_request().expect("a place is free");
    assert_eq!((first, residency.next_request()), (Request::Fetch { first: 0, count: 1 }, None));
    residency.refuse(first);
    assert_eq!((residency.next_request(), residency.next_request()), (Some(first), None));
    residency.fetched(0, 1);
    assert!(matches!(residency.claimed(0, Mode::Read), Found::Here(_)));
    assert_eq!(
        settle(&mut residency),
        [(8, 2), (20, 1)].map(|(first, count)| Request::Fetch { first, count })
    );
}

/// A turn that waited for a frame would fetch its block.
#[test]
fn blocks_that_are_written_as_a_whole_one_after_the_other_are_not_fetched() {
    let mut residency = region("lru", 64, 16, LIMITS);
    let (mut late, mut block) = (0, 0);
    while block < 64 {
        match residency.overwrite(block) {
            Found::Here(_) => block += 1,
            found => {
                assert_eq!(found, Found::Later, "block {block}");
                late += 1;
                settle(&mut residency);
            }
        }
    }
    assert!(late > 0, "there was always a frame");
    let counters = residency.counters();
    assert_eq!((counters.overwritten, counters.fetched), (64, 0));
}

#[test]
fn a_block_that_is_written_as_a_whole_is_not_fetched() {
    let mut residency = region("lru", 64, 16, LIMITS);
    let Found::Here(frame) = residency.overwrite(7) else { panic!("it needs nothing") };
    assert_eq!((residency.next_request(), residency.access(7, Mode::Read)), (None, Found::Here(frame)));
    residency.begin_flush();
    assert_eq!(settle(&mut residency), [Request::WriteBack { block: 7, frame }]);
    // A block on its way here is waited for, as its bytes would land on those written.
    assert_eq!((residency.access(8, Mode::Read), residency.overwrite(8)), (Found::Wait, Found::Wait));
    assert_eq!(settle(&mut residency), [Request::Fetch { first: 8, count: 1 }]);
    let counters = residency.counters();
    assert_eq!((counters.overwritten, counters.from_remote, counters.joined), (1, 2, 1));
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
    assert_eq!(residency.access(0, Mode::Write), Found::Held, "a writer waits for readers");
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

/// A fetch of several blocks brings a prefetched one to the policy before it is used.
#[test]
fn a_prefetched_block_counts_with_its_first_use() {
    let mut residency = scripted([(10, vec![fetch(10, 4)]), (13, vec![evict(11), evict(12)])]);
    assert_eq!(residency.prefetch(10, 3), 3);
    settle(&mut residency);
    let used = |residency: &Residency| {
        let counters = residency.counters();
        (counters.prefetched_used, counters.prefetched_unused)
    };
    use_block(&mut residency, 10, Mode::Read);
    assert_eq!(used(&residency), (1, 0));
    use_block(&mut residency, 11, Mode::Read);
    use_block(&mut residency, 11, Mode::Read);
    assert_eq!(used(&residency), (2, 0), "once");
    use_block(&mut residency, 13, Mode::Read);
    assert_eq!(used(&residency), (2, 1), "the policy drops the third one unused");
    assert_eq!(residency.check(), Ok(()));
}

/// Its claims go to the frame that the turn gives it.
#[test]
fn a_block_that_a_turn_waits_for_is_not_prefetched() {
    let all = LIMITS.frames() + 16;
    let drops = (0..12).map(evict).chain([fetch(40, 12)]).collect();
    let mut residency = scripted([(0, vec![fetch(0, 16)]), (16, vec![fetch(16, all - 16 - 8)]), (40, drops)]);
    use_block(&mut residency, 0, Mode::Read);
    for block in 0..12 {
        use_block(&mut residency, block, Mode::Write);
    }
    assert_eq!(residency.access(16, Mode::Read), Found::Wait);
    residency.give_up(16);
    // Eight frames are free, and twelve blocks leave.
    assert_eq!(residency.access(40, Mode::Read), Found::Wait);
    assert_eq!((residency.frame_of(40), residency.prefetch(40, 1)), (None, 0));
    settle(&mut residency);
    assert!(matches!(residency.claimed(40, Mode::Read), Found::Here(_)));
}

#[test]
fn accesses_that_a_guard_holds_up_leave_the_claims_to_others() {
    let mut residency = region("lru", 64, 16, LIMITS);
    use_block(&mut residency, 1, Mode::Read);
    let Found::Here(frame) = residency.access(1, Mode::Write) else { panic!("block 1 is not there") };
    assert!(residency.pin(frame, Mode::Write));
    for _ in 0..2 * LIMITS.claims {
        assert_eq!(residency.access(1, Mode::Read), Found::Held);
    }
    // Claims on a block that a guard takes as soon as it is here are void.
    for _ in 0..LIMITS.claims {
        assert_eq!(residency.access(2, Mode::Read), Found::Wait);
    }
    settle(&mut residency);
    let Found::Here(other) = residency.claimed(2, Mode::Write) else { panic!("block 2 is not there") };
    assert!(residency.keep(other, Mode::Write));
    for _ in 1..LIMITS.claims {
        assert_eq!(residency.claimed(2, Mode::Read), Found::Held);
    }
    use_block(&mut residency, 3, Mode::Read);
    residency.release(frame, Mode::Write);
    assert_eq!(residency.access(1, Mode::Read), Found::Here(frame));
}

#[test]
fn a_block_that_the_policy_drops_as_it_is_used_is_read_and_freed() {
    for (mode, claims) in [(Mode::Read, 0), (Mode::Write, 0), (Mode::Read, LIMITS.claims)] {
        let mut residency = scripted([(7, vec![fetch(7, 1)]), (7, vec![evict(7)])]);
        use_block(&mut residency, 7, Mode::Read);
        let before = residency.counters().accesses();
        residency.claims = claims.into();
        let found = residency.access(7, mode);
        residency.claims -= u32::from(claims);
        let served = u64::from(found != Found::Later);
        assert_eq!(residency.counters().accesses(), before + served, "{mode:?}: only a served access counts");
        match (mode, claims) {
            (Mode::Read, 0) => {
                assert_eq!(found, Found::Wait);
                assert!(residency.take_changed(), "the access itself goes on");
                let Found::Here(frame) = residency.claimed(7, mode) else { panic!("the frame is gone") };
                residency.unpin(frame, mode);
            }
            (Mode::Read, _) => assert_eq!(found, Found::Later),
            (Mode::Write, _) => {
                assert!(matches!(found, Found::Here(_)));
                assert!(matches!(settle(&mut residency)[..], [Request::WriteBack { block: 7, .. }]));
            }
        }
        assert_eq!((residency.frame_of(7), residency.check()), (None, Ok(())), "{mode:?}");
    }
}

/// The turn that drops the block needs its frame, and gets it.
#[test]
fn a_frame_that_no_claim_is_left_for_goes_to_the_turn() {
    let all = LIMITS.frames() + 16;
    let mut residency = scripted([(7, vec![fetch(7, 1)]), (7, vec![evict(7), fetch(8, all)])]);
    use_block(&mut residency, 7, Mode::Read);
    residency.claims = LIMITS.claims.into();
    assert_eq!(residency.access(7, Mode::Read), Found::Later);
    assert!(residency.frame_of(7).is_none() && residency.frame_of(8).is_some());
    assert!(residency.take_changed(), "the access may be repeated");
}

/// Frames that are asked for don't make room for each other.
#[test]
fn a_fetch_keeps_the_prefetched_blocks_that_it_asks_for() {
    let extra = LIMITS.frames();
    let drops = (0..16).map(evict).chain([fetch(16, extra - 4)]).collect();
    let mut residency = scripted([(0, vec![fetch(0, 16)]), (16, drops), (40, vec![fetch(40, 8)])]);
    use_block(&mut residency, 0, Mode::Read);
    for block in 0..16 {
        use_block(&mut residency, block, Mode::Write);
    }
    assert_eq!(residency.prefetch(40, 4), 4);
    let fetches = residency.next_request();
    assert_eq!(fetches, Some(Request::Fetch { first: 40, count: 4 }));
    residency.fetched(40, 4);
    // All frames are in use: 16 blocks leave, and the write-backs do not end.
    assert_eq!(residency.access(16, Mode::Read), Found::Wait);
    residency.give_up(16);
    assert!(matches!(residency.access(40, Mode::Read), Found::Here(_)));
    assert!((40..44).all(|block| residency.frame_of(block).is_some()), "dropped to be fetched again");
    settle(&mut residency);
    assert_eq!(residency.counters().prefetched_unused, 0);
}

/// Where all of remote memory fits, no policy drops a block.
#[test]
fn each_block_is_fetched_once_where_all_are_local() {
    for definition in online() {
        let mut residency = region(definition.name, 256, 256, LIMITS);
        let mut random = SplitMix(3);
        for _ in 0..20_000 {
            let mode = if random.next().is_multiple_of(4) { Mode::Write } else { Mode::Read };
            use_block(&mut residency, random.between(0, 255) as u32, mode);
        }
        let counters = residency.counters();
        assert_eq!((counters.fetched, counters.evicted), (256, 0), "{}", definition.name);
    }
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
