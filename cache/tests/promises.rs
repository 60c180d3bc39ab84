//! Promises of every policy, whatever it decides: never more blocks than the capacity, each read returns the last
//! write, dirty blocks are written back when they leave, only absent blocks are fetched.

use crate::common;

use common::{Access, Memory, accesses};
use p4rack_cache::{ARTIFACT, Actions, Block, POLICIES, Parts, Policy, Shape};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const FOOTPRINT: u32 = 512;

fn run(name: &str, policy: &mut dyn Policy, shape: &Shape, trace: &[Access]) -> Result<(), TestCaseError> {
    let (mut memory, mut actions) = (Memory::new(shape), Actions::default());
    for (at, access) in trace.iter().enumerate() {
        if let Err(error) = memory.access(policy, *access, &mut actions) {
            return Err(TestCaseError::fail(format!(
                "{name} with {shape:?}, access {at} {access:?}: {error}"
            )));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        // Seeds of past failures, beside this file: they are run before new ones.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_policy_is_memory(
        trace in accesses(FOOTPRINT, 600),
        capacity in 16u32..400,
        shift in 0u32..7,
        host_percent in 0u32..60,
        pairs in 0u32..3,
    ) {
        let shape = Shape { host_percent, pairs: 1 << pairs, ..Shape::new(FOOTPRINT, capacity, 1 << shift) };
        let blocks: Vec<Block> = trace.iter().map(|(block, _)| *block).collect();
        for definition in POLICIES {
            let mut policy = definition.open(&shape, &blocks).expect("the shape fits all");
            run(definition.name, policy.as_mut(), &shape, &trace)?;
        }
    }

    /// Each limit of their lists is rounded up, and Kona-PC has a page more than stated.
    #[test]
    fn variants_of_the_artifact_are_memory(
        trace in accesses(FOOTPRINT, 600),
        capacity in 64u32..400,
        shift in 0u32..4,
        host_percent in 0u32..60,
    ) {
        let shape = Shape { host_percent, ..Shape::new(FOOTPRINT, capacity, 1 << shift) };
        let room = Shape { capacity: capacity + 3 + (3 << shift), ..shape.clone() };
        for definition in ARTIFACT {
            let mut policy = definition.open(&shape, &[]).expect("the shape fits all");
            run(definition.name, policy.as_mut(), &room, &trace)?;
        }
    }

    #[test]
    fn each_part_of_ours_can_be_left_out(
        trace in accesses(FOOTPRINT, 400),
        capacity in 16u32..400,
        bits in 0u16..1 << 9,
    ) {
        let has = |bit: u32| bits >> bit & 1 != 0;
        let parts = Parts {
            runs: has(0),
            ahead: has(1),
            regions: has(2),
            frequency: has(5),
            host: has(3),
            choosy: has(6),
            filled: has(7),
            split: has(8),
        };
        let shape = Shape { one_memory: has(4), ..Shape::new(FOOTPRINT, capacity, 8) };
        // So that the split moves.
        let trace = trace.repeat(if has(4) { 1 + 40_000 / trace.len() } else { 1 });
        let mut policy = parts.open(&shape).expect("the shape fits");
        run(&format!("{parts:?}"), policy.as_mut(), &shape, &trace)?;
    }
}

/// The tests above cover the rarely used parts only if these parts run at all.
#[test]
fn pages_move_both_ways() {
    use p4rack_cache::Action;
    for name in ["unimem", "runs"] {
        let shape = Shape::new(FOOTPRINT, 128, 8);
        let definition = p4rack_cache::find(name).expect("is listed");
        let mut policy = definition.open(&shape, &[]).expect("the shape fits");
        let (mut memory, mut actions) = (Memory::new(&shape), Actions::default());
        let (mut promoted, mut demoted, mut dirty) = (0, 0, 0);
        // A few pages are used often, then others.
        for round in 0..400u32 {
            for block in 0..64u32 {
                let block = (round / 40 * 48 + block) % FOOTPRINT;
                memory
                    .access(policy.as_mut(), (block, round % 3 == 0), &mut actions)
                    .expect("keeps its promises");
                for action in actions.as_slice() {
                    match action {
                        Action::Promote { .. } => promoted += 1,
                        Action::Demote { .. } => demoted += 1,
                        Action::Evict { dirty: true, .. } => dirty += 1,
                        _ => {}
                    }
                }
            }
        }
        assert!(promoted > 10 && demoted > 10 && dirty > 10, "{name}: {promoted} {demoted} {dirty}");
    }
}

#[test]
fn policies_have_names_of_their_own_and_refuse_shapes_that_they_cannot_serve() {
    for (index, definition) in POLICIES.iter().enumerate() {
        assert!(POLICIES[..index].iter().all(|one| one.name != definition.name), "{}", definition.name);
        for (shape, field) in [
            (Shape::new(0, 64, 8), "footprint"),
            (Shape::new(1 << 10, 0, 8), "capacity"),
            (Shape::new(1 << 10, 64, 3), "blocks_per_page"),
            (Shape::new(1 << 10, 64, 128), "blocks_per_page"),
            (Shape { pairs: 3, ..Shape::new(1 << 10, 64, 8) }, "pairs"),
        ] {
            let refused = definition.open(&shape, &[]).err().expect("can't be served").to_string();
            assert!(
                refused.starts_with(field) && refused.contains("expected"),
                "{}: {refused}",
                definition.name
            );
        }
    }
    let refused = Shape { host_percent: 100, ..Shape::new(1 << 10, 64, 8) };
    let refused = Parts::ALL.open(&refused).err().expect("the device has no room").to_string();
    assert!(refused.starts_with("host_percent: 100"), "{refused}");
}

#[test]
fn a_cache_of_everything_fetches_each_block_once() {
    let (pages, per_page) = (64u32, 8);
    let footprint = pages * per_page;
    let trace: Vec<Block> = (0..3).flat_map(|_| 0..footprint).collect();
    for definition in POLICIES {
        // A policy that splits memory into two tiers can't hold everything in one of them.
        if definition.name == "unimem" {
            continue;
        }
        let mut policy = definition.open(&Shape::new(footprint, footprint, per_page), &trace).expect("fits");
        let (mut fetched, mut actions) = (0, Actions::default());
        for block in &trace {
            policy.access(*block, false, &mut actions);
            fetched += actions
                .as_slice()
                .iter()
                .map(|action| match action {
                    p4rack_cache::Action::Fetch { count, .. } => *count,
                    _ => 0,
                })
                .sum::<u32>();
        }
        // Kept apart by name: these give parts of the memory to lists of their own.
        let apart = ["unimem-nopromote", "2q", "s3-fifo", "w-tinylfu", "kona-pc"];
        let most = if apart.contains(&definition.name) { footprint * 3 } else { footprint };
        assert!(fetched >= footprint && fetched <= most, "{}: {fetched} of {footprint}", definition.name);
    }
}
