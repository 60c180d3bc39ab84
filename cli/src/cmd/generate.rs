//! `p4rack generate`.

use std::process::ExitCode;

/// Arguments of `p4rack generate`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> ExitCode {
    ExitCode::from(3)
}
