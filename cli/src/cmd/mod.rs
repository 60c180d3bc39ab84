//! One file or folder per subcommand. Each parses its arguments, calls the crate that does the work, and prints.

pub mod bench;
mod bench_hostile;
mod bench_p4runtime;
pub mod bench_sim;
pub mod bench_soak;
mod bmv2;
pub mod complete;
pub mod connect;
pub mod deploy;
pub mod doctor;
pub mod entity;
pub mod generate;
pub mod generator;
pub mod host;
pub mod hostile;
pub mod mininet;
pub mod p4;
pub mod pl2;
pub mod rack;
pub mod sim;
mod simulated;
pub mod switch;
pub mod switch_trace;
pub mod top;
pub mod up;
