//! Random reservations and data through the generated programs, against the same allocator written
//! down in a few lines of Rust.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::lanes::Lanes;
use common::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::Rack;
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{Kind, NOT_NOW, Target};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::LazyLock;

const RATES: [&str; 4] = ["100 Mb/s", "1 Gb/s", "100 Mb/s", "25 Gb/s"];
const PL2: &str =
    "k = 5\nlanes = 2\nt = 3\ndrop_threshold = 12\ncontrol_per_slot = 0\nbest_effort_percent = 100";

static COUNTER: LazyLock<Built> = LazyLock::new(|| {
    Built::new(rack(&["100 Mb/s"; 4], &format!("mode = \"counter\"\n{PL2}")), Scheme::Pl2Counter)
});
static CLOCK: LazyLock<Built> =
    LazyLock::new(|| Built::new(rack(&RATES, &format!("mode = \"clock\"\n{PL2}")), Scheme::Pl2Clock));

#[derive(Clone, Debug)]
enum Step {
    Reserve { from: u16, to: u16, demand: u8, cell: u8 },
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
        8 => (port(), port(), 0u8..=6, cell())
            .prop_map(|(from, to, demand, cell)| Step::Reserve { from, to, demand, cell }),
        8 => (port(), port(), 0u8..4, any::<bool>(), prop_oneof![Just(100usize), Just(1500), Just(1508), Just(1509)])
            .prop_map(|(from, to, cell, unsolicited, payload)| Step::Data { from, to, cell, unsolicited, payload }),
        4 => wait.prop_map(|ns| Step::Wait { ns }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Read { out, port }),
        1 => (any::<bool>(), port(), 0u32..1_000_000).prop_map(|(out, port, value)| Step::Write { out, port, value }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Reset { out, port }),
        1 => (port(), port(), 0u8..4).prop_map(|(from, to, cell)| Step::Forget { from, to, cell }),
    ]
}

/// The allocator: reserved slots, or the time at which each port is free, by (is destination, port).
struct Reference {
    rack: Rack,
    clock: bool,
    now: u64,
    cells: HashMap<(bool, u16), u64>,
    lanes: Lanes,
}

impl Reference {
    /// What is reserved: slots, or time from now, in the target's 48-bit time.
    fn value(&self, cell: (bool, u16)) -> u64 {
        let raw = self.cells.get(&cell).copied().unwrap_or(0);
        match self.clock {
            false => raw,
            true => Some(raw.wrapping_sub(self.now) & ((1 << 48) - 1))
                .filter(|ahead| *ahead < 1 << 30)
                .unwrap_or(0),
        }
    }

    fn set(&mut self, cell: (bool, u16), value: u64) {
        let base = if self.clock { self.now } else { 0 };
        self.cells.insert(cell, base.wrapping_add(value) & ((1 << 48) - 1));
    }

    fn slot(&self, port: u16) -> u64 {
        host(&self.rack, port).slot.0
    }

    fn reserve(&mut self, from: u16, to: u16, demand: u8, cell: u8) -> Option<(u32, u32)> {
        let k = self.rack.pl2.as_ref()?.k;
        let least = u8::from(self.clock);
        if !(least..=k).contains(&demand) || !self.lanes.exists(cell) || from == to {
            return None;
        }
        let Some(given_back) = self.lanes.take((from, to, cell), demand, self.now) else {
            return Some((NOT_NOW, NOT_NOW));
        };
        let held = given_back + self.lanes.replace((from, to, cell), demand);
        let mut reply = |cell: (bool, u16)| {
            let before = self.value(cell).saturating_sub(if self.clock { 0 } else { held });
            let unit = if self.clock { self.slot(cell.1) } else { 1 };
            self.set(cell, before + u64::from(demand) * unit);
            before
        };
        let waits = (reply((false, from)), reply((true, to)));
        let unit = if self.clock { 1 } else { self.slot(from) };
        self.lanes.begin_at((from, to, cell), self.now + waits.0.max(waits.1) * unit);
        Some((waits.0 as u32, waits.1 as u32))
    }

    fn data(&mut self, from: u16, to: u16, cell: u8, unsolicited: bool, bytes: u64) -> Fate {
        if from == to {
            return Fate::Dropped;
        }
        if unsolicited {
            let unit = if self.clock { self.slot(to) } else { 1 };
            return match self.lanes.unsolicited((from, to, cell), bytes) {
                false => Fate::Demoted("uncovered_unsolicited"),
                true if self.value((true, to)) > 12 * unit => Fate::Dropped,
                true => Fate::Scheduled,
            };
        }
        let (fate, covered) = self.lanes.scheduled((from, to, cell), bytes, self.now);
        if !self.clock && covered {
            for cell in [(false, from), (true, to)] {
                self.set(cell, self.value(cell).saturating_sub(1));
            }
        }
        fate
    }

    fn forget(&mut self, from: u16, to: u16, cell: u8) -> u64 {
        let held = self.lanes.forget((from, to, cell));
        if !self.clock {
            for cell in [(false, from), (true, to)] {
                self.set(cell, self.value(cell).saturating_sub(held));
            }
        }
        held
    }
}

fn same_as_reference(built: &Built, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(built);
    let clock = built.scheme == Scheme::Pl2Clock;
    let lanes = Lanes::new(built);
    let mut reference =
        Reference { rack: built.rack.clone(), clock, now: rig.now.0, cells: HashMap::new(), lanes };
    let target = |out: bool| if out { Target::Out } else { Target::In };
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Step::Reserve { from, to, demand, cell } => {
                let expected = reference.reserve(from, to, demand, cell);
                let granted = rig.reserve_cell(from, to, demand, cell);
                prop_assert_eq!(granted, expected, "step {}: {:?}", i, step);
            }
            Step::Data { from, to, cell, unsolicited, payload } => {
                let frame = data(&built.rack, from, to, cell, unsolicited, payload);
                let expected = reference.data(from, to, cell, unsolicited, frame.len() as u64);
                prop_assert_eq!(rig.fate_of(from, to, &frame), expected, "step {}: {:?}", i, step);
            }
            Step::Wait { ns } => {
                rig.now += Nanos(ns);
                reference.now = rig.now.0;
            }
            Step::Read { out, port } => {
                let expected = reference.value((out, port)) as u32;
                let read = rig.manage(Kind::MgmtRead, target(out), port, 5);
                prop_assert_eq!(read, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Write { out, port, value } => {
                let expected = reference.value((out, port)) as u32;
                reference.set((out, port), value.into());
                let before = rig.manage(Kind::MgmtWrite, target(out), port, value);
                prop_assert_eq!(before, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Reset { out, port } => {
                let expected = reference.value((out, port)) as u32;
                reference.set((out, port), 0);
                let before = rig.manage(Kind::MgmtReset, target(out), port, 5);
                prop_assert_eq!(before, Some(expected), "step {}: {:?}", i, step);
            }
            Step::Forget { from, to, cell } => {
                let expected = reference.forget(from, to, cell) as u32;
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
