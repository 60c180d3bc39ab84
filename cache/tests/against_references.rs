//! Each policy does exactly what a plain implementation of its rules does: it serves the same accesses and evicts the same blocks.

use crate::common;
use crate::reference;

use common::{Access, accesses};
use p4rack_cache::{Action, Actions, Block, Served, Shape, find};
use proptest::prelude::*;
use reference::{ALL, Reference};

fn compare(
    name: &str,
    reference: &mut dyn Reference,
    shape: &Shape,
    trace: &[Access],
) -> Result<(), TestCaseError> {
    let mut policy = find(name).expect("is listed").open(shape, &[]).expect("fits");
    let mut actions = Actions::default();
    for (at, (block, write)) in trace.iter().enumerate() {
        let mut expected = Vec::new();
        let hit = reference.access(*block, &mut expected);
        let served = policy.access(*block, *write, &mut actions);
        let evicted: Vec<Block> = actions
            .as_slice()
            .iter()
            .filter_map(|action| match action {
                Action::Evict { block, .. } => Some(*block),
                _ => None,
            })
            .collect();
        prop_assert_eq!(hit, served != Served::Remote, "{}: access {} to {}", name, at, block);
        prop_assert_eq!(&expected, &evicted, "{}: access {} to {}", name, at, block);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn policies_follow_their_rules(trace in accesses(300, 800), capacity in 8u32..120) {
        for (name, open) in ALL {
            compare(name, open(300, capacity as usize).as_mut(), &Shape::new(300, capacity, 8), &trace)?;
        }
    }
}
