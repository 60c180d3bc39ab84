//! Random reservations and data through the generated programs, against the reference allocator.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::pl2::{EARLY_SLOTS, Pl2};
use p4rack_fabric::pl2::Mode;
use p4rack_reference::{self as reference, Allocator, Limits};
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{Kind, NOT_NOW, Side};
use proptest::prelude::*;
use std::sync::LazyLock;

const RATES: [&str; 4] = ["100 Mb/s", "1 Gb/s", "100 Mb/s", "25 Gb/s"];
const PL2: &str =
    "k = 5\nlanes = 2\nt = 3\ndrop_threshold = 12\ncontrol_per_slot = 0\nbest_effort_percent = 100";

static COUNTER: LazyLock<Built> = LazyLock::new(|| {
    Built::new(rack(&["100 Mb/s"; 4], &format!("mode = \"counter\"\n{PL2}")), Scheme::PL2_COUNTER)
});
static CLOCK: LazyLock<Built> =
    LazyLock::new(|| Built::new(rack(&RATES, &format!("mode = \"clock\"\n{PL2}")), Scheme::PL2_CLOCK));

#[derive(Clone, Debug)]
enum Step {
    Reserve { from: u16, to: u16, demand: u8, cell: u8, unsolicited: bool },
    Data { from: u16, to: u16, cell: u8, unsolicited: bool, payload: usize },
    Wait { ns: u64 },
    Read { out: bool, port: u16 },
    Write { out: bool, port: u16, value: u32 },
    Reset { out: bool, port: u16 },
    Forget { from: u16, to: u16, cell: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly few pairs, so that they meet their own reservations.
    let port = || prop_oneof![3 => 1u16..=2, 1 => 1u16..=4];
    let cell = || prop_oneof![8 => 0u8..4, 1 => any::<u8>()];
    let wait = prop_oneof![
        4 => 0u64..2_000_000,
        1 => 0u64..200_000_000,
        1 => prop_oneof![Just(1u64 << 31), Just((1u64 << 48) - 1_000_000)],
    ];
    prop_oneof![
        8 => (port(), port(), 0u8..=6, cell(), any::<bool>())
            .prop_map(|(from, to, demand, cell, unsolicited)| Step::Reserve { from, to, demand, cell, unsolicited }),
        8 => (port(), port(), 0u8..4, any::<bool>(), prop_oneof![Just(0usize), Just(100), Just(1500), Just(1508), Just(1509)])
            .prop_map(|(from, to, cell, unsolicited, payload)| Step::Data { from, to, cell, unsolicited, payload }),
        4 => wait.prop_map(|ns| Step::Wait { ns }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Read { out, port }),
        1 => (any::<bool>(), port(), 0u32..1_000_000).prop_map(|(out, port, value)| Step::Write { out, port, value }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Reset { out, port }),
        1 => (port(), port(), 0u8..4).prop_map(|(from, to, cell)| Step::Forget { from, to, cell }),
    ]
}

/// The allocator, for hosts on ports 1 up.
struct Reference {
    allocator: Allocator,
    now: Nanos,
}

impl Reference {
    fn new(built: &Built, now: Nanos) -> Reference {
        let (rack, clock) = (&built.rack, built.scheme == Scheme::PL2_CLOCK);
        let pl2 = rack.protocol::<Pl2>().unwrap();
        let slots: Vec<Nanos> = rack.hosts.iter().map(|host| pl2.slot(rack, host)).collect();
        let limits = Limits {
            drop_threshold_slots: pl2.drop_threshold_slots.into(),
            full_wire_bytes: pl2.frame_wire_bytes(),
            ..Limits::new(pl2.lanes, pl2.k, pl2.t_slots)
        };
        assert_eq!((limits.early_slots, limits.late_slots), (EARLY_SLOTS, pl2.late_slots()));
        let mode = if clock { Mode::Clock } else { Mode::Counter };
        Reference { allocator: Allocator::new(mode, &slots, Nanos(1), limits), now }
    }

    fn pair(from: u16, to: u16) -> (usize, usize) {
        (usize::from(from) - 1, usize::from(to) - 1)
    }

    fn reserve(
        &mut self,
        built: &Built,
        from: u16,
        to: u16,
        demand: u8,
        cell: u8,
        unsolicited: bool,
    ) -> Option<(u32, u32)> {
        let least = u8::from(built.scheme == Scheme::PL2_CLOCK);
        let k = built.rack.protocol::<Pl2>()?.k;
        if !(least..=k).contains(&demand) || !self.allocator.has_cell(cell) || from == to {
            return None;
        }
        let waits = self.allocator.reserve(Self::pair(from, to), cell, demand, unsolicited, self.now);
        Some(waits.unwrap_or((NOT_NOW, NOT_NOW)))
    }

    fn data(&mut self, from: u16, to: u16, cell: u8, unsolicited: bool, bytes: u64) -> Fate {
        if from == to {
            return Fate::Dropped;
        }
        match self.allocator.claim(Self::pair(from, to), cell, unsolicited, bytes, self.now) {
            reference::Fate::Scheduled => Fate::Scheduled,
            reference::Fate::HasSlots | reference::Fate::OverThreshold => Fate::Dropped,
            reference::Fate::Demoted(reason) => Fate::Demoted(name_of(reason)),
        }
    }

    fn value(&self, target: Side, port: u16) -> u32 {
        self.allocator.reserved(target, usize::from(port) - 1, self.now) as u32
    }

    fn write(&mut self, target: Side, port: u16, value: u32) {
        self.allocator.write(target, usize::from(port) - 1, value.into(), self.now);
    }
}

fn same_as_reference(built: &Built, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(built);
    let mut reference = Reference::new(built, rig.now);
    let target = |out: bool| if out { Side::Out } else { Side::In };
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Step::Reserve { from, to, demand, cell, unsolicited } => {
                let expected = reference.reserve(built, from, to, demand, cell, unsolicited);
                let granted = match unsolicited {
                    true => rig.announce(from, to, demand, cell),
                    false => rig.reserve_cell(from, to, demand, cell),
                };
                prop_assert_eq!(granted, expected, "step {}: {:?}", i, step);
            }
            Step::Data { from, to, cell, unsolicited, payload } => {
                let frame = data(&built.rack, from, to, cell, unsolicited, payload);
                let expected = reference.data(from, to, cell, unsolicited, frame.len() as u64);
                prop_assert_eq!(rig.fate_of(from, to, &frame), expected, "step {}: {:?}", i, step);
            }
            Step::Wait { ns } => {
                rig.now += Nanos(ns);
                reference.now = rig.now;
            }
            Step::Read { out, port } => {
                let expected = reference.value(target(out), port);
                let read = rig.manage(Kind::MgmtRead, target(out), port, 5);
                prop_assert_eq!(read, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Write { out, port, value } => {
                let expected = reference.value(target(out), port);
                reference.write(target(out), port, value);
                let before = rig.manage(Kind::MgmtWrite, target(out), port, value);
                prop_assert_eq!(before, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Reset { out, port } => {
                let expected = reference.value(target(out), port);
                reference.write(target(out), port, 0);
                let before = rig.manage(Kind::MgmtReset, target(out), port, 5);
                prop_assert_eq!(before, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Forget { from, to, cell } => {
                let expected = reference.allocator.forget(Reference::pair(from, to), cell) as u32;
                prop_assert_eq!(rig.forget(from, to, cell), Some(expected), "step {}: {:?}", i, step);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_equal_the_reference(steps in proptest::collection::vec(step(), 1..120)) {
        same_as_reference(&COUNTER, &steps)?;
    }

    #[test]
    fn clocks_equal_the_reference(steps in proptest::collection::vec(step(), 1..120)) {
        same_as_reference(&CLOCK, &steps)?;
    }
}
