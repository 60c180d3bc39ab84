//! Operations of the nodes: traces of the EDM authors' generator, random messages at a given load, or operations in a closed loop.

mod arrivals;
mod generator;
mod spec;
mod trace;

pub use arrivals::Arrivals;
pub use generator::{Generator, Part};
pub use spec::{AFTER, KindSpec, MixSpec, WorkloadSpec, generator};
pub use trace::parse_trace;

/// Maximum bytes of a message.
pub const BYTES_MAX: u64 = 1 << 24;
