//! Ways to the pool that misses may take, by the registry's names. A new one is a line in [`WAYS`].

use crate::clio::ClioPrograms;
use crate::cowbird::{CowbirdPrograms, CowbirdScheme};
use crate::memory::EdmPrograms;
use crate::requests::{Requests, Sharing};
use p4rack_codegen::scheme::edm::Mode;
use p4rack_fabric::remote::{Way, names_of};

/// A function that uses a rack.
pub(super) type Use<'a> = &'a mut dyn FnMut(&mut dyn Requests) -> Result<(), String>;

/// Makes a rack and uses it. Errors: it can't have these parameters, or its use fails.
type With = fn(Sharing, Use<'_>) -> Result<(), String>;

/// The ways of the registry that have a rack in virtual time, and those racks.
const WAYS: &[(Way, With)] = &[
    (Way::RDMA, |sharing, used| cowbird(CowbirdScheme::Rdma, sharing, used)),
    (Way::EDM_TIMED_DST, |sharing, used| used(&mut EdmPrograms::new(Mode::TimedDst, sharing)?)),
    (Way::EDM_TIMED, |sharing, used| used(&mut EdmPrograms::new(Mode::Timed, sharing)?)),
    (Way::EDM_CALENDAR, |sharing, used| used(&mut EdmPrograms::new(Mode::Calendar, sharing)?)),
    (Way::EDM_MATCHED, |sharing, used| used(&mut EdmPrograms::new(Mode::Matched, sharing)?)),
    (Way::CLIO, clio),
    (Way::COWBIRD_SPOT, |sharing, used| cowbird(CowbirdScheme::CowbirdSpot, sharing, used)),
    (Way::COWBIRD_P4, |sharing, used| cowbird(CowbirdScheme::CowbirdP4, sharing, used)),
];

/// A way with a rack in virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackWay {
    pub way: Way,
    with: With,
}

impl RackWay {
    /// The way of that name. Errors: there is none, or none in virtual time.
    pub fn named(name: &str) -> Result<RackWay, String> {
        let found = name.parse().ok().and_then(|way: Way| WAYS.iter().find(|(one, _)| *one == way));
        found.map(|(way, with)| RackWay { way: *way, with: *with }).ok_or_else(|| {
            let names: Vec<Way> = WAYS.iter().map(|(way, _)| *way).collect();
            format!("there is no `{name}` in a simulated rack; write one of {}", names_of(&names))
        })
    }

    /// Uses a rack. Errors: it can't have these parameters, or its use fails.
    pub fn with_rack(self, sharing: Sharing, used: Use<'_>) -> Result<(), String> {
        (self.with)(sharing, used)
    }
}

fn clio(sharing: Sharing, used: Use<'_>) -> Result<(), String> {
    let experiment = ClioPrograms::experiment(&sharing)?;
    used(&mut ClioPrograms::new(&experiment)?)
}

fn cowbird(scheme: CowbirdScheme, sharing: Sharing, used: Use<'_>) -> Result<(), String> {
    let experiment = CowbirdPrograms::experiment(scheme, &sharing)?;
    used(&mut CowbirdPrograms::new(&experiment, sharing)?)
}
