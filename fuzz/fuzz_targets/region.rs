//! A cached region under any policy, with accesses, guards, prefetches, flushes, and requests that end in any order: every read returns the
//! last write.
#![no_main]

#[path = "../../cache/src/region/tests/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use p4rack_cache::region::{self, Limits, Residency, Room};
use p4rack_cache::{Build, PARTS, POLICIES};
use world::{Setting, World};

fuzz_target!(|bytes: &[u8]| {
    let [policy, capacity, slow, limits, choices @ ..] = bytes else { return };
    let online = POLICIES.iter().chain(PARTS).filter(|one| matches!(one.build, Build::Online(_)));
    let online: Vec<_> = online.collect();
    let definition = online[usize::from(*policy) % online.len()];
    let each = |shift: u8| u16::from(limits >> shift & 3) + 1;
    let limits = Limits { guards: each(0), claims: each(2), prefetched: each(4), fetch: each(6).into() };
    let room = Room::Blocks(16 + u32::from(*capacity % 64));
    let setting = Setting {
        blocks: 96,
        threads: 4,
        steps: choices.len() as u32 / 2,
        slow: u64::from(slow % 9),
        dies: slow & 128 != 0,
        overwrites: true,
    };
    let residency = Residency::new(definition, (setting.blocks, 512), room, limits).expect("the policy fits");
    // Behind the input, numbers that let everything come to rest.
    let (mut at, mut state) = (0, 1u64);
    let mut choose = |limit: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let next = choices.get(at).map_or(state >> 33, |byte| u64::from(*byte));
        at += 1;
        next % limit
    };
    if let Err(why) = World::new(residency, setting).run(&mut choose) {
        panic!("{}: {why}", definition.name);
    }
});
