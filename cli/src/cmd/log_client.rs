//! `p4rack workload log-client`: the client of `up`'s log store.

use super::way::WayArgs;
use p4rack_lab::LabError;
use p4rack_lab::log_store::{self, ClientTask};
use p4rack_wire::Nanos;
use std::path::PathBuf;

/// A log store's client, and its way to older records.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Rack description with a log store as workload
    rack: PathBuf,
    #[command(flatten)]
    way: WayArgs,
    /// Duration of all mixes together
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    duration_ns: u64,
    /// Seed of keys and operations
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
}

impl Args {
    /// Runs the program.
    pub(super) fn run(self) -> Result<(), LabError> {
        let end = self.way.end();
        let end = end.ok_or_else(|| LabError::Unfit("a log store's client needs --way".to_owned()))?;
        let task = ClientTask { end, window: Nanos(self.duration_ns), seed: self.seed };
        log_store::use_store(&self.rack, task)
    }
}
