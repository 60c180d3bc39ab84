//! `[[hostile]]` in experiments on Cowbird racks.

use super::{CowbirdScheme, CowbirdSpec};
use crate::experiment::{Check, NO_ATTACK};
use p4rack_fabric::hostile::cowbird::Attack;
use serde::{Deserialize, Serialize};

/// `[[hostile]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostileComputeSpec {
    /// Name of the second compute node's attack, or `none`: it has threads like the first one.
    pub attack: String,
    /// Number of its queue pairs with the pool.
    #[serde(default = "pairs")]
    pub pairs: u16,
    /// Number of its sets of rings, which the engine serves.
    #[serde(default = "sets")]
    pub sets: u16,
}

fn pairs() -> u16 {
    64
}
fn sets() -> u16 {
    16
}

/// Checks it.
pub(super) fn check(spec: &CowbirdSpec, check: &mut Check<'_>) {
    for (nth, one) in spec.hostile.iter().enumerate() {
        let engine = matches!(spec.scheme, CowbirdScheme::CowbirdSpot | CowbirdScheme::CowbirdP4);
        if !engine && spec.scheme != CowbirdScheme::Rdma {
            check.problem("", 0, "scheme", "has no attacks: write rdma, cowbird-spot or cowbird-p4");
        }
        match one.attack.parse::<Attack>() {
            Ok(attack) if attack.needs_engine() && !engine => {
                check.problem(
                    "hostile",
                    nth,
                    "attack",
                    format!("{attack} is an attack on an engine: use another scheme"),
                );
            }
            Ok(_) => {}
            Err(_) if one.attack == NO_ATTACK => {}
            Err(error) => check.problem("hostile", nth, "attack", format!("{error}, or {NO_ATTACK}")),
        }
        for (key, value, most) in [("pairs", one.pairs, 512), ("sets", one.sets, 64)] {
            if !(1..=most).contains(&value) {
                check.problem("hostile", nth, key, format!("{value} is out of range; write 1 to {most}"));
            }
        }
        if spec.competing.is_some() {
            check.problem("hostile", nth, "attack", "takes the fourth port: leave out [competing]");
        }
    }
    if spec.hostile.len() > 1 {
        check.problem("hostile", 1, "attack", "there is one hostile host at most");
    }
}
