//! `p4rack deploy`: installs a rack's program and entries on its switches.

mod args;
mod kept;
mod once;
mod step;
mod topology;
mod watch;

pub use args::Args;
pub use once::described;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    if let Err(error) = args.choice.of(&args.rack) {
        return super::refused(error);
    }
    match args.watch {
        true if crate::cmd::topology::is_topology(&args.rack) => kept::run(args),
        true => watch::run(args),
        false => once::run(args),
    }
}
