//! `p4rack deploy`: installs a rack's program and entries on its switches.

mod args;
mod once;
mod step;
mod watch;

pub use args::Args;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    if args.watch && crate::cmd::topology::is_topology(&args.rack) {
        let message = "--watch is for racks: deploy a topology again after a change, without it";
        return super::connect::fail(&p4rack_ctrl::CtrlError::Input(message.to_owned()), args.json);
    }
    if args.watch { watch::run(args) } else { once::run(args) }
}
