//! The calendars of the generated program against the same in a few lines of Rust, and the reference's lanes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::pl2::EARLY_SLOTS;
use p4rack_reference::{Fate as Claimed, Rights};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::{Kind, NOT_NOW, Side};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

const PL2: &str = "mode = \"clock\"\nclocks = \"calendar\"\nk = 4\nlanes = 2\nt = 2\n\
    drop_threshold = 6\ncontrol_per_slot = 0\nbest_effort_percent = 100";

static BUILT: LazyLock<Built> = LazyLock::new(|| {
    Built::new(rack(&["25 Gb/s", "100 Gb/s", "100 Gb/s", "50 Gb/s"], PL2), Scheme::PL2_CLOCK)
});

#[derive(Clone, Debug)]
enum Step {
    Reserve { from: u16, to: u16, demand: u8, cell: u8, unsolicited: bool },
    Data { from: u16, to: u16, cell: u8, unsolicited: bool },
    Wait { ns: u64 },
    Read { out: bool, port: u16 },
    Reset { out: bool, port: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let port = || 1u16..=4;
    prop_oneof![
        8 => (port(), port(), 1u8..=4, 0u8..4, any::<bool>())
            .prop_map(|(from, to, demand, cell, unsolicited)| Step::Reserve { from, to, demand, cell, unsolicited }),
        4 => (port(), port(), 0u8..4, any::<bool>())
            .prop_map(|(from, to, cell, unsolicited)| Step::Data { from, to, cell, unsolicited }),
        4 => prop_oneof![8 => 0u64..2_000, 1 => Just(1u64 << 40)].prop_map(|ns| Step::Wait { ns }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Read { out, port }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Reset { out, port }),
    ]
}

/// Cells taken, by number, at each port and side.
#[derive(Default)]
struct Calendars(HashMap<(bool, u16), HashSet<u64>>);

impl Calendars {
    fn taken(&self, side: (bool, u16), cell: u64) -> bool {
        self.0.get(&side).is_some_and(|cells| cells.contains(&cell))
    }

    /// The first of `count` cells free at both ends, taken.
    fn take(&mut self, from: u16, to: u16, count: u64, now: u64) -> Option<u64> {
        let (source, destination) = ((false, from), (true, to));
        let free = |cell| !self.taken(source, cell) && !self.taken(destination, cell);
        let first = (now..=now + 64 - count).find(|first| (*first..*first + count).all(free))?;
        for side in [source, destination] {
            self.0.entry(side).or_default().extend(first..first + count);
        }
        Some(first)
    }

    /// Cells up to the last one taken.
    fn length(&self, side: (bool, u16), now: u64) -> u64 {
        let cells = self.0.get(&side).into_iter().flatten();
        cells.filter(|cell| **cell >= now).max().map_or(0, |last| last + 1 - now)
    }
}

fn same_as_reference(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(&BUILT);
    let (shift, _) = BUILT.pl2().calendar_cells(&BUILT.rack);
    let slot = |port: u16| BUILT.slot(port).0;
    let (mut calendars, mut rights, mut full) = (Calendars::default(), Rights::new(4, 2, false), 0);
    let grace = |from, to| {
        let slot = slot(from).max(slot(to));
        (EARLY_SLOTS * slot, BUILT.pl2().late_slots() * slot)
    };
    let target = |out: bool| if out { Side::Out } else { Side::In };
    for (i, step) in steps.iter().enumerate() {
        let now = rig.now.0.div_ceil(1 << shift);
        match *step {
            Step::Reserve { from, to, demand, cell, unsolicited } if from != to => {
                let name = (usize::from(from) - 1, usize::from(to) - 1, cell);
                let count = (u64::from(demand) * slot(from).max(slot(to))).div_ceil(1 << shift);
                let expected = if rights.take(name, demand, grace(from, to), rig.now.0).is_none() {
                    NOT_NOW
                } else if let Some(first) = calendars.take(from, to, count, now) {
                    let wait = (first << shift) - rig.now.0;
                    rights.replace(name, u64::from(demand) * BUILT.pl2().part_wire_bytes());
                    rights.settle(name, first << shift, unsolicited, wait <= 2 * slot(from).min(slot(to)));
                    wait as u32
                } else {
                    rights.forget(name);
                    full += 1;
                    NOT_NOW
                };
                let granted = match unsolicited {
                    true => rig.announce(from, to, demand, cell),
                    false => rig.reserve_cell(from, to, demand, cell),
                };
                prop_assert_eq!(granted, Some((expected, expected)), "step {}: {:?}", i, step);
                prop_assert_eq!(rig.refused()[1], full, "step {}: {:?}", i, step);
            }
            Step::Data { from, to, cell, unsolicited } if from != to => {
                let name = (usize::from(from) - 1, usize::from(to) - 1, cell);
                let frame = data(&BUILT.rack, from, to, cell, unsolicited, 1000);
                let cost = wire_bytes(frame.len() as u64);
                let beyond = (6 * slot(to)) >> shift;
                let expected = match unsolicited {
                    false => match rights.scheduled(name, cost, grace(from, to), rig.now.0).1 {
                        Ok(()) => Fate::Scheduled,
                        Err(reason) => Fate::Demoted(name_of(reason)),
                    },
                    true => match rights.unsolicited(name, cost) {
                        Claimed::Demoted(reason) => Fate::Demoted(name_of(reason)),
                        Claimed::HasSlots | Claimed::OverThreshold => Fate::Dropped,
                        Claimed::Scheduled if calendars.length((true, to), now) > beyond => Fate::Dropped,
                        Claimed::Scheduled => Fate::Scheduled,
                    },
                };
                prop_assert_eq!(rig.fate_of(from, to, &frame), expected, "step {}: {:?}", i, step);
            }
            Step::Reserve { .. } | Step::Data { .. } => {}
            Step::Wait { ns } => rig.now += Nanos(ns),
            Step::Read { out, port } => {
                let expected = (calendars.length((out, port), now) << shift) as u32;
                prop_assert_eq!(
                    rig.manage(Kind::MgmtRead, target(out), port, 5),
                    Some(expected),
                    "step {}: {:?}",
                    i,
                    step
                );
            }
            Step::Reset { out, port } => {
                rig.manage(Kind::MgmtReset, target(out), port, 5);
                calendars.0.remove(&(out, port));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calendars_equal_the_reference(steps in proptest::collection::vec(step(), 1..120)) {
        same_as_reference(&steps)?;
    }
}

#[test]
fn what_does_not_fit_half_a_calendar_is_refused() {
    let rack = rack(&["1 Gb/s", "100 Gb/s"], PL2);
    let error =
        p4rack_codegen::render_p4(&rack, Scheme::PL2_CLOCK, p4rack_codegen::Arch::V1model).unwrap_err();
    assert!(error.to_string().contains("half a calendar"), "{error}");
}
