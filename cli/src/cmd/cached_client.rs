//! `p4rack workload cached-client`: a client of `up`'s stores in cached regions.

use super::way::WayArgs;
use p4rack_lab::LabError;
use p4rack_lab::cached::{self, ClientTask, Fate, Lending};
use p4rack_wire::Nanos;
use std::path::PathBuf;

/// A client with a store in a cached region, and its way to the region's memory.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Rack description with stores in cached regions as workload
    rack: PathBuf,
    #[command(flatten)]
    way: WayArgs,
    /// Name of the memory node
    #[arg(long)]
    server: String,
    /// Number of the region at the memory node, from 0, and of all regions there, e.g. 0/2
    #[arg(long, value_name = "N/M", value_parser = part)]
    part: (u64, u64),
    /// Address of the pool's service, HOST:PORT, if the region consists of extents
    #[arg(long, value_name = "ADDR", requires = "holder")]
    balloon: Option<String>,
    /// Number of the compute node at that service
    #[arg(long, requires = "balloon", value_parser = crate::numbers::number::<u32>)]
    holder: Option<u32>,
    /// Duration of each mix with each percentage
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    each_ns: u64,
    /// Seed of keys and operations
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Then: end, work until killed, or work until this many more extents have been added
    #[arg(long, value_name = "ends|dies|N", default_value = "ends", value_parser = fate)]
    fate: Fate,
}

fn part(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(nth, of)| Some((nth.parse().ok()?, of.parse().ok()?)));
    numbers.filter(|(nth, of): &(u64, u64)| nth < of).ok_or_else(|| "write N/M with N below M".to_owned())
}

fn fate(text: &str) -> Result<Fate, String> {
    match text {
        "ends" => Ok(Fate::Ends),
        "dies" => Ok(Fate::Dies),
        "holds" => Ok(Fate::Holds),
        count => count.parse().map(Fate::Takes).map_err(|_| "write ends, dies, holds or a number".to_owned()),
    }
}

impl Args {
    /// Runs the program.
    pub(super) fn run(self) -> Result<(), LabError> {
        let end = self.way.end();
        let end = end.ok_or_else(|| LabError::Unfit("a client of a region needs --way".to_owned()))?;
        let lending = self.balloon.zip(self.holder).map(|(addr, holder)| Lending { addr, holder });
        let (server, part, each) = (self.server, self.part, Nanos(self.each_ns));
        let task = ClientTask { end, server, part, lending, each, seed: self.seed, fate: self.fate };
        cached::use_store(&self.rack, &task)
    }
}
