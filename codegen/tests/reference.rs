//! Random reservations and data through the generated programs, against the same allocator written
//! down in a few lines of Rust.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::Rack;
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{Kind, Target};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::LazyLock;

const RATES: [&str; 4] = ["100 Mb/s", "1 Gb/s", "100 Mb/s", "25 Gb/s"];
const PL2: &str = "k = 5\nt = 3\ndrop_threshold = 12\ncontrol_per_slot = 0\nbest_effort_percent = 100";

static COUNTER: LazyLock<Built> = LazyLock::new(|| {
    Built::new(rack(&["100 Mb/s"; 4], &format!("mode = \"counter\"\n{PL2}")), Scheme::Pl2Counter)
});
static CLOCK: LazyLock<Built> =
    LazyLock::new(|| Built::new(rack(&RATES, &format!("mode = \"clock\"\n{PL2}")), Scheme::Pl2Clock));

#[derive(Clone, Debug)]
enum Step {
    Reserve { from: u16, to: u16, demand: u8, release: u8 },
    Data { from: u16, to: u16, unsolicited: bool },
    Wait { ns: u64 },
    Read { out: bool, port: u16 },
    Write { out: bool, port: u16, value: u32 },
    Reset { out: bool, port: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let port = || 1u16..=4;
    prop_oneof![
        8 => (port(), port(), 0u8..=6, prop_oneof![3 => Just(0u8), 1 => 0u8..=6])
            .prop_map(|(from, to, demand, release)| Step::Reserve { from, to, demand, release }),
        8 => (port(), port(), any::<bool>())
            .prop_map(|(from, to, unsolicited)| Step::Data { from, to, unsolicited }),
        4 => prop_oneof![0u64..2_000_000, Just(1u64 << 31), Just((1u64 << 48) - 1_000_000)].prop_map(|ns| Step::Wait { ns }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Read { out, port }),
        1 => (any::<bool>(), port(), 0u32..1_000_000).prop_map(|(out, port, value)| Step::Write { out, port, value }),
        1 => (any::<bool>(), port()).prop_map(|(out, port)| Step::Reset { out, port }),
    ]
}

/// The allocator: reserved slots, or the time at which each port is free, by (is destination, port).
struct Reference {
    rack: Rack,
    clock: bool,
    now: u64,
    cells: HashMap<(bool, u16), u64>,
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

    fn reserve(&mut self, from: u16, to: u16, demand: u8, release: u8) -> Option<(u32, u32)> {
        let k = self.rack.pl2.as_ref()?.k;
        let sound = if self.clock {
            (1..=k).contains(&demand) && release == 0
        } else {
            demand <= k && release <= k && (demand > 0 || release > 0)
        };
        if !sound || from == to {
            return None;
        }
        let mut reply = |cell: (bool, u16)| {
            let before = self.value(cell).saturating_sub(u64::from(release));
            let unit = if self.clock { host(&self.rack, cell.1).slot.0 } else { 1 };
            self.set(cell, before + u64::from(demand) * unit);
            before as u32
        };
        Some((reply((false, from)), reply((true, to))))
    }

    fn data(&mut self, from: u16, to: u16, unsolicited: bool) -> bool {
        if from == to {
            return false;
        }
        if unsolicited {
            let unit = if self.clock { host(&self.rack, to).slot.0 } else { 1 };
            return self.value((true, to)) <= 12 * unit;
        }
        if !self.clock {
            for cell in [(false, from), (true, to)] {
                self.set(cell, self.value(cell).saturating_sub(1));
            }
        }
        true
    }
}

fn same_as_reference(built: &Built, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(built);
    let clock = built.scheme == Scheme::Pl2Clock;
    let mut reference = Reference { rack: built.rack.clone(), clock, now: rig.now.0, cells: HashMap::new() };
    let target = |out: bool| if out { Target::Out } else { Target::In };
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Step::Reserve { from, to, demand, release } => {
                let expected = reference.reserve(from, to, demand, release);
                prop_assert_eq!(rig.reserve(from, to, demand, release), expected, "step {}: {:?}", i, step);
            }
            Step::Data { from, to, unsolicited } => {
                let expected = reference.data(from, to, unsolicited);
                prop_assert_eq!(rig.data(from, to, unsolicited), expected, "step {}: {:?}", i, step);
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
