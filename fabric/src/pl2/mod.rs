//! PL2: predictable low latency in a rack by timeslot reservation (paper §4).

mod algorithm;
mod config;
mod endpoint;
mod expected;
mod flows;
mod frame;
mod lanes;
mod sender;
mod stats;

pub use config::{Config, Mode, Peer, full_frame_wire_bytes};
pub use endpoint::Endpoint;
pub use stats::{Counters, Stats};
