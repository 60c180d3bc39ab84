//! All tests of the generator's renderings in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod behaviour;
mod beside;
mod calendar;
mod clio;
mod common;
mod crossing;
mod differential;
mod edm;
mod edm_asks_again;
mod edm_calendars;
mod edm_crossing;
mod edm_crossing_hostile;
mod edm_crossing_rates;
mod edm_differential;
mod edm_modes;
mod edm_shares;
mod endpoint;
mod extremes;
mod fit;
mod golden;
mod kept;
mod lanes;
mod no_private_knowledge;
mod passes;
mod pipes;
mod programs;
mod rack;
mod reference;
mod remarks;
mod templates;
mod third;
mod topology;
mod values;
