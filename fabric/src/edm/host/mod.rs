//! EDM's hosts without I/O: compute nodes that ask, memory nodes that answer (§3.2.1).

pub mod compute;
pub mod memory;
#[cfg(test)]
mod tests;
mod window;
