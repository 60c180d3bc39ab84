//! Shared parts of the schemes' machines: configuration of the host, queues and NIC, lookup of peers,
//! duplicate removal, delays and counters.

mod dedup;
mod delay;
mod directory;
mod frames;
mod ledger;
mod nic;
mod pool;
mod station;
mod stats;
mod turns;

pub use delay::Delay;
pub use frames::AppFrame;
pub use ledger::Ledger;
pub use p4rack_wire::SplitMix;
pub use station::{ConfigError, Station};
pub use stats::{Counters, Reason, Stats};

pub(crate) use dedup::{Verdict, WINDOW, Window};
pub(crate) use directory::Directory;
pub(crate) use frames::{Frames, check_app, check_link, clean_peers};
pub(crate) use nic::Item;
pub(crate) use pool::FrameId;
#[cfg(test)]
pub(crate) use pool::Pool;
pub(crate) use station::MTU_MAX;
pub(crate) use stats::counters;
pub use turns::Turns;
