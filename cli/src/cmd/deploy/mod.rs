//! `p4rack deploy`: installs a rack's program and entries on its switches.

mod args;
mod once;
mod step;
mod watch;

pub use args::Args;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    if args.watch { watch::run(args) } else { once::run(args) }
}
