//! The store's client as a process on a host of a rack.

use super::log::LogStore;
use super::logged::Logged;
use super::run::Setup;
use crate::error::LabError;
use crate::sys;
use crate::ways::End;
use crate::workload::{Span, print_result};
use crate::ycsb::{Client, ClientReport, Contents};
use p4rack_codegen::Rack;
use p4rack_hosts::remote::{Certain, Remote, Written};
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The line that reports that all records are written, and when the first mix begins.
pub(super) const READY: &str = "ready";
/// Pause before the first mix, in which the parent reads the switch's counters.
const LEAD_NS: u64 = 300_000_000;

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct ClientTask {
    /// Its way to older records.
    pub end: End,
    /// Duration of all mixes together.
    pub window: Nanos,
    /// Seed of keys and operations.
    pub seed: u64,
}

/// Results of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) report: ClientReport,
    pub(super) contents: Contents,
}

/// Parameters of a description's log store, for a given time.
pub(super) fn setup(rack: &Rack, window: Nanos, seed: u64) -> Result<Setup, LabError> {
    let store = rack.workload.as_ref().and_then(|workload| workload.store.as_ref());
    let Some((store, log)) = store.zip(rack.log()) else {
        return Err(LabError::Unfit(format!("{}: its workload is no log store", rack.name)));
    };
    Ok(Setup {
        records: store.records,
        value_bytes: store.value_bytes as usize,
        memory_percent: log.memory_percent.into(),
        depth: store.depth as usize,
        each: Nanos(window.0 / store.mixes.len().max(1) as u64),
        mixes: store.mixes.clone(),
        seed,
    })
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::measurement("the store's client", error)
}

/// Uses the log store of a description, from the calling thread's network namespace, and prints the results as JSON.
pub fn use_store(path: &Path, task: ClientTask) -> Result<(), LabError> {
    let rack = Rack::load(path)?;
    let (setup, way) = (setup(&rack, task.window, task.seed)?, task.end.way);
    let config = setup.config(way);
    let (opened, _held) = task.end.open(&rack, config.shape())?;
    // A page may leave local memory when it is in remote memory.
    let mut remote: Box<dyn Remote> = match opened.abilities().writes {
        Written::There => opened,
        Written::Sent => Box::new(Certain::new(opened)),
    };
    let log = LogStore::new(config).map_err(failed)?;
    let config = setup.client(way, true);
    let mut store = Logged::new(log, remote.as_mut(), setup.records, config.depth);
    let mut client = Client::new(&mut store, &config);
    client.load().map_err(failed)?;
    let start_ns = sys::monotonic_ns() + LEAD_NS;
    let mut out = std::io::stdout();
    writeln!(out, "{READY} {start_ns}")
        .and_then(|()| out.flush())
        .map_err(LabError::system("telling that records are written"))?;
    let span = Span { start_ns, duration_ns: task.window.0 };
    let mixes = client.mixes(&config.mixes, span).map_err(failed)?;
    let contents = client.contents().map_err(failed)?;
    let report = ClientReport { mixes, writes: client.writes(), lost_writes: 0 };
    print_result(&Outcome { report, contents }).map_err(LabError::system("telling the result"))
}
