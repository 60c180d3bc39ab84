//! The store's client as a process on a host of a rack.

use super::log::LogStore;
use super::run::{Setup, mixes};
use super::ycsb;
use crate::error::LabError;
use crate::store::client::{ClientReport, Contents, LogCosts, MixReport};
use crate::sys;
use crate::ways::End;
use crate::workload::print_result;
use p4rack_codegen::Rack;
use p4rack_hosts::remote::setting::Used;
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
    /// Duration of each mix, nanoseconds, until its last operation had ended.
    pub(super) spans_ns: Vec<u64>,
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
        depth: log.depth as usize,
        each: Nanos(window.0 / store.mixes.len().max(1) as u64),
        mixes: store.mixes.clone(),
        seed,
    })
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::measurement("the store's client", error)
}

/// Uses the log store of a description, from the calling thread's network namespace, and prints the results as JSON.
pub fn use_store(path: &Path, client: ClientTask) -> Result<(), LabError> {
    let rack = Rack::load(path)?;
    let (setup, way) = (setup(&rack, client.window, client.seed)?, client.end.way);
    let config = setup.config(way);
    let (opened, _held) = client.end.open(&rack, config.shape())?;
    // A page may leave local memory when it is in remote memory.
    let mut remote: Box<dyn Remote> = match opened.abilities().writes {
        Written::There => opened,
        Written::Sent => Box::new(Certain::new(opened)),
    };
    let mut store = LogStore::new(config).map_err(failed)?;
    let (records, depth) = (setup.records, way.depth(setup.depth));
    let mut ycsb = ycsb::Client::new(&mut store, remote.as_mut(), records, setup.value_bytes, depth);
    ycsb.load(setup.seed).map_err(failed)?;
    let start_ns = sys::monotonic_ns() + LEAD_NS;
    let mut out = std::io::stdout();
    writeln!(out, "{READY} {start_ns}")
        .and_then(|()| out.flush())
        .map_err(LabError::system("telling that records are written"))?;
    sys::sleep_until(start_ns);
    ycsb.tell_from(Nanos(start_ns));
    let used = || Ok(Used::default());
    let (runs, contents) = mixes(&mut ycsb, &setup, &used).map_err(failed)?;
    let mixes = runs.iter().map(|run| MixReport {
        mix: run.mix.name().to_owned(),
        operations: run.report.operations,
        lost: run.report.lost,
        wrong: run.report.wrong,
        values: run.report.values,
        latencies: run.report.latencies.counts().collect(),
        log: Some(LogCosts { cold_reads: run.cold_reads(), thread_cpu_ns: run.report.cpu.0 }),
    });
    let report = ClientReport {
        mixes: mixes.collect(),
        writes: ycsb.versions().saturating_sub(records.into()),
        lost_writes: 0,
    };
    let spans_ns = runs.iter().map(|run| run.report.elapsed.0).collect();
    print_result(&Outcome { report, contents, spans_ns }).map_err(LabError::system("telling the result"))
}
