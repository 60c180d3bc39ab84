//! Topologies on one machine: a namespace for all switches, one for each host, and commands on them.
//!
//! ```text
//!  wiring     namespaces and links
//!  hosts      commands on hosts
//!  running    processes: switches with their programs, agents
//!  prompt     lines such as `h1 ping h2`, from a terminal or a script
//!  run        up, lab, up --keep
//! ```

mod hosts;
mod prompt;
mod run;
mod running;
mod wiring;

pub use hosts::Done;
pub use run::{Options, Outcome, Use, keep, supervise};
