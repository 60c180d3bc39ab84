//! Stores whose records are another host's: with a server over TCP, in its memory by any way that has atomic operations, or in a
//! key-value offload beside it; bulk traffic beside their clients; and the figures of all stores.

pub mod bulk;
pub(crate) mod figures;
mod keys;
pub mod run;
pub mod simulated;
pub mod slot;
pub mod slots;
pub mod tcp;
