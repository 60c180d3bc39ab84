//! An access to any policy allocates nothing: all tables are made with the policy.

#[path = "../../tests/allocations.rs"]
mod allocations;

use p4rack_cache::{ARTIFACT, Actions, Block, Build, PARTS, POLICIES, Policy, Shape};

const FOOTPRINT: u32 = 4096;

/// Scans, runs and lone uses of a small hot part and of all memory, so that blocks and pages come, move and leave.
fn use_it(policy: &mut dyn Policy, actions: &mut Actions, state: &mut u64) {
    let mut random = |limit: u32| {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (((*state >> 32) * u64::from(limit)) >> 32) as u32
    };
    let mut use_block = |block: Block, write: bool| {
        policy.access(block, write, actions);
    };
    for _ in 0..20_000 {
        let write = random(3) == 0;
        match random(8) {
            0..4 => use_block(random(FOOTPRINT / 16), write),
            4..6 => use_block(random(FOOTPRINT), write),
            _ => {
                let first = random(FOOTPRINT - 32);
                (first..first + 32).for_each(|block| use_block(block, write));
            }
        }
    }
}

#[test]
fn an_access_allocates_nothing() {
    for definition in POLICIES.iter().chain(PARTS).chain(ARTIFACT) {
        // The one that knows the future is for simulations, and has a search tree.
        if matches!(definition.build, Build::Offline(_)) {
            continue;
        }
        for one_memory in [false, true] {
            let shape = Shape { one_memory, ..Shape::new(FOOTPRINT, FOOTPRINT / 4, 8) };
            let mut policy = definition.open(&shape, &[]).expect("the shape fits all");
            let (mut actions, mut state) = (Actions::default(), 1);
            // The buffer of actions grows to its size.
            use_it(policy.as_mut(), &mut actions, &mut state);
            let before = allocations::count();
            use_it(policy.as_mut(), &mut actions, &mut state);
            assert_eq!(allocations::count() - before, 0, "{}, one memory: {one_memory}", definition.name);
        }
    }
}
