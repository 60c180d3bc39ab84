//! Faults of frames, and failures with their times.

use crate::random::Random;
use p4rack_wire::edm::Kind;

/// Shares of frames that are lost, duplicated, delayed or damaged.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    lost: f64,
    twice: f64,
    late: f64,
    damaged: f64,
}

/// A failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// This memory node neither receives nor sends, until the end of the faults or for the rest of the run.
    Silent { node: u16, for_ever: bool },
    /// This switch restarts without its state.
    SwitchRestarts(usize),
    /// This one of two switches fails for the rest of the run.
    SwitchDies(usize),
    /// This compute node restarts without its requests.
    ComputeRestarts(u16),
    /// This memory node restarts without its sessions, with its bytes or with zeros.
    MemoryRestarts { node: u16, keeps: bool },
}

/// The faults of a run.
#[derive(Debug)]
pub(super) struct Faults {
    random: Random,
    control: Shares,
    data: Shares,
    /// Maximum delay of late frames.
    late_ns: u64,
    /// End of the faults of frames.
    pub end_ns: u64,
    pub breaks: Vec<(u64, Break)>,
}

/// Fate of a frame on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives { late_ns: u64 },
    Twice { late_ns: u64 },
    Lost,
    Damaged,
}

impl Faults {
    /// The faults of a seed, for nodes 0 to 3, of which 2 and 3 have memory, and this many switches.
    pub fn new(seed: u64, end_ns: u64, switches: usize) -> Faults {
        let mut random = Random::stream(seed, 1);
        let share = |random: &mut Random| [0.0, 0.0, 0.02, 0.1, 0.3][random.below(5) as usize];
        let shares = |random: &mut Random| Shares {
            lost: share(random),
            twice: share(random),
            late: share(random),
            damaged: share(random) / 3.0,
        };
        let (control, data) = (shares(&mut random), shares(&mut random));
        let late_ns = [500, 5_000, 50_000][random.below(3) as usize];
        let mut breaks = Vec::new();
        for _ in 0..random.below(5) {
            let at_ns = random.below(end_ns);
            let what = match random.below(6) {
                0 => Break::Silent { node: 2 + random.below(2) as u16, for_ever: random.chance(0.3) },
                1 => Break::SwitchRestarts(random.below(switches as u64) as usize),
                2 if switches > 1 => Break::SwitchDies(0),
                3..5 => Break::MemoryRestarts { node: 2 + random.below(2) as u16, keeps: random.chance(0.5) },
                _ => Break::ComputeRestarts(random.below(3) as u16),
            };
            breaks.push((at_ns, what));
        }
        Faults { random, control, data, late_ns, end_ns, breaks }
    }

    /// Fate of a frame with a message of this kind.
    pub fn fate(&mut self, kind: Option<Kind>, now_ns: u64) -> Fate {
        if now_ns >= self.end_ns {
            return Fate::Arrives { late_ns: 0 };
        }
        let shares = match kind {
            Some(Kind::Wreq | Kind::Rres) => self.data,
            _ => self.control,
        };
        let random = &mut self.random;
        let late_ns = if random.chance(shares.late) { random.below(self.late_ns) } else { 0 };
        match random.unit() {
            one if one < shares.lost => Fate::Lost,
            one if one < shares.lost + shares.damaged => Fate::Damaged,
            one if one < shares.lost + shares.damaged + shares.twice => Fate::Twice { late_ns },
            _ => Fate::Arrives { late_ns },
        }
    }
}
