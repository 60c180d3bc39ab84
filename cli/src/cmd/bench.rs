//! `p4rack bench`.

use std::process::ExitCode;

/// Arguments of `p4rack bench`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> ExitCode {
    ExitCode::from(3)
}
