//! Stores whose records are another host's: with a server over TCP, or in its memory by any way that has atomic operations; bulk
//! traffic beside their clients; and the figures of all stores.

pub mod bulk;
pub(crate) mod figures;
pub mod run;
pub mod simulated;
pub mod slot;
pub mod slots;
pub mod tcp;
