//! Stores whose records are another host's: with a server over TCP, p4rack's or another project's, in its memory by any way that has atomic operations, or in a
//! key-value offload beside it, or in a region with a cache; bulk traffic beside their clients; and the figures of all stores.

pub mod bulk;
mod fields;
pub(crate) mod figures;
pub mod fixed;
mod hashes;
mod keys;
mod lines;
mod load;
mod memcached;
mod piped;
mod redis;
mod region;
pub mod run;
pub(crate) mod servers;
pub mod simulated;
pub mod slot;
pub mod slots;
pub mod tcp;
