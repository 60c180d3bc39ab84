//! One file a subcommand. Each parses its arguments, calls the crate that does the work, prints.

pub mod bench;
mod bench_hostile;
mod bench_p4runtime;
pub mod bench_sim;
pub mod bench_soak;
mod bmv2;
pub mod deploy;
pub mod doctor;
pub mod entity;
pub mod generate;
pub mod generator;
pub mod host;
pub mod mininet;
pub mod p4;
pub mod p4_run;
pub mod p4_samples;
pub mod p4_stf;
pub mod pl2;
pub mod rack;
pub mod sim;
pub mod sim_report;
pub mod sim_sweep;
pub mod switch;
pub mod target;
pub mod top;
pub mod up;
pub mod watch;
