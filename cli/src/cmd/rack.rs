//! `p4rack rack`.

use std::process::ExitCode;

/// Arguments of `p4rack rack`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> ExitCode {
    ExitCode::from(3)
}
