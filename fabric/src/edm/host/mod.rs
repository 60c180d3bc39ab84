//! EDM's hosts without I/O: compute nodes, which send requests, and memory nodes, which answer them (§3.2.1).

pub mod compute;
#[cfg(test)]
mod limits_tests;
pub mod memory;
mod parts;
mod release;
#[cfg(test)]
mod rights_tests;
mod session;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use session::offered;
