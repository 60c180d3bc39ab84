//! PL2: predictable low latency in a rack by timeslot reservation (paper §4).

mod algorithm;
mod config;
mod dedup;
mod delay;
mod directory;
mod endpoint;
mod expected;
mod frame;
mod lanes;
mod nic;
mod pool;
pub mod reference;
mod sender;
mod stats;

pub use config::{Config, ConfigError, Peer, Scheme, full_frame_wire_bytes};
pub use delay::Delay;
pub(crate) use endpoint::SplitMix;
pub use endpoint::{AppFrame, Endpoint};
pub use stats::{Counters, Reason, Stats};
