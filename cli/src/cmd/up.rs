//! `p4rack up`, `exec`, `down` and the traffic programs.

use std::process::ExitCode;

/// Arguments of `p4rack up`.
#[derive(clap::Args, Debug)]
pub struct UpArgs {}

/// Arguments of `p4rack exec`.
#[derive(clap::Args, Debug)]
pub struct ExecArgs {}

/// Arguments of `p4rack down`.
#[derive(clap::Args, Debug)]
pub struct DownArgs {}

/// Arguments of `p4rack workload`.
#[derive(clap::Args, Debug)]
pub struct WorkloadArgs {}

/// Runs it.
pub fn up(_args: UpArgs) -> ExitCode {
    ExitCode::from(3)
}

/// Runs it.
pub fn exec(_args: ExecArgs) -> ExitCode {
    ExitCode::from(3)
}

/// Runs it.
pub fn down(_args: DownArgs) -> ExitCode {
    ExitCode::from(3)
}

/// Runs it.
pub fn workload(_args: WorkloadArgs) -> ExitCode {
    ExitCode::from(3)
}
