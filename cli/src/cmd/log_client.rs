//! `p4rack workload log-client`: the client of `up`'s log store.

use super::adapter::Adapter;
use p4rack_codegen::Arch;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::Place;
use p4rack_hosts::roce::setup::Server;
use p4rack_lab::LabError;
use p4rack_lab::log_store::{self, ClientTask};
use p4rack_wire::Nanos;
use std::path::PathBuf;

/// A log store's client: its adapter, and its way to older records.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Rack description with a log store as workload
    rack: PathBuf,
    /// Name of this host in the description
    #[arg(long)]
    name: String,
    /// Architecture of the switch's program
    #[arg(long)]
    arch: Arch,
    /// How older records are reached
    #[arg(long)]
    way: Way,
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, or of the server of bytes, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    memory: Option<String>,
    /// Address of an engine's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    engine: Option<String>,
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
        let server = |addr| Server { addr, tls: None };
        let place = Place {
            ip: self.adapter.ip,
            adapter: self.adapter.config(),
            interface: self.adapter.interface,
            memory: self.memory.map(server),
            engines: self.engine.map(server).into_iter().collect(),
            node: None,
        };
        let task = ClientTask {
            way: self.way,
            name: self.name,
            arch: self.arch,
            place,
            window: Nanos(self.duration_ns),
            seed: self.seed,
        };
        log_store::use_store(&self.rack, task)
    }
}
