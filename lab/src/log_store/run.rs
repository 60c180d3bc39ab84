//! The store on this machine, with its cold log behind each way to remote memory.

use super::log::{Config, Counters, LogStore, StoreError};
use super::ycsb::{Client, Report};
use p4rack_codegen::rack::Mix;
use p4rack_hosts::cowbird::remote::{Done, Remote, RemoteError, Setting, Shape, Used, Way};
use p4rack_wire::Nanos;
use serde::Serialize;

/// Operations under way where more than one may be.
const DEPTH: usize = 64;
/// Per cent of the records' room in local memory, where all are to stay there and are changed in place.
const ALL_LOCAL: u64 = 125;

/// Where the cold log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Nowhere: all records are in local memory.
    Local,
    /// Behind Cowbird, with an engine on a spare host.
    CowbirdSpot,
    /// Behind a queue pair of the thread's own, many requests under way.
    RdmaAsync,
    /// Behind a queue pair, one operation at a time.
    RdmaSync,
}

impl Scheme {
    /// All.
    pub const ALL: [Scheme; 4] = [Scheme::Local, Scheme::CowbirdSpot, Scheme::RdmaAsync, Scheme::RdmaSync];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Local => "local memory",
            Scheme::CowbirdSpot => "Cowbird-Spot",
            Scheme::RdmaAsync => "RDMA, 64 at once",
            Scheme::RdmaSync => "RDMA, one by one",
        }
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Records.
    pub records: u32,
    /// Bytes of a value, a multiple of 8.
    pub value_bytes: usize,
    /// Per cent of the records' room that local memory has.
    pub memory_percent: u64,
    /// Mixes, one after the other.
    pub mixes: Vec<Mix>,
    /// Duration of each.
    pub each: Nanos,
    /// Seed of keys and operations.
    pub seed: u64,
}

/// Figures of one mix.
#[derive(Clone, Debug, Serialize)]
pub struct MixFigures {
    /// Where the cold log is.
    pub scheme: Scheme,
    /// The mix.
    pub mix: &'static str,
    /// Operations that ended in time.
    pub operations: u64,
    /// Per second.
    pub ops_per_s: f64,
    /// 50th percentile of latencies.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Operations that took too long; in the last mix also records that do not have their last version at the end.
    pub lost: u64,
    /// Values that nobody had written so.
    pub wrong: u64,
    /// Values read from remote memory, for each operation.
    pub cold_share: f64,
    /// Pages written to remote memory.
    pub pages_written: u64,
    /// Pages compacted.
    pub pages_compacted: u64,
    /// Processor time of the thread for each operation, kernel included.
    pub thread_cpu_ns: f64,
    /// Processor time of the compute node's adapter for each, where that is another thread.
    pub adapter_cpu_ns: Option<f64>,
    /// Processor time of the engine for each.
    pub engine_cpu_ns: Option<f64>,
    /// Processor time of the pool for each.
    pub pool_cpu_ns: Option<f64>,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The remote memory failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Remote memory that nobody needs.
struct Nowhere;

impl Nowhere {
    fn refuse() -> Result<(), RemoteError> {
        Err(RemoteError::Refused("the store was to stay in local memory".into()))
    }
}

impl Remote for Nowhere {
    fn read(&mut self, _at: u64, _bytes: u32) -> Result<(), RemoteError> {
        Nowhere::refuse()
    }

    fn write(&mut self, _at: u64, _bytes: &[u8]) -> Result<(), RemoteError> {
        Nowhere::refuse()
    }

    fn wait(&mut self, _came: &mut dyn FnMut(Done<'_>)) -> Result<(), RemoteError> {
        Nowhere::refuse()
    }
}

/// Loads the records, runs the mixes and reads every record again.
pub fn run(scheme: Scheme, setup: &Setup) -> Result<Vec<MixFigures>, RunError> {
    let depth = if scheme == Scheme::RdmaSync { 1 } else { DEPTH };
    let percent = if scheme == Scheme::Local { ALL_LOCAL } else { setup.memory_percent };
    let config = Config::new(setup.records as usize, setup.value_bytes, percent, depth);
    let way = match scheme {
        Scheme::Local => return mixes(scheme, setup, config, depth, &mut Nowhere, &|| Ok(Used::default())),
        Scheme::CowbirdSpot => Way::CowbirdSpot,
        Scheme::RdmaAsync | Scheme::RdmaSync => Way::Rdma,
    };
    if !config.has_share(setup.records as usize, setup.memory_percent) {
        let why = "local memory has 8 pages of 8 KiB at least, which is more than the share asked for: more records, or a greater share";
        return Err(StoreError::Config(why).into());
    }
    let page_bytes = config.page_bytes() as u32;
    // Compaction reads a page while values are read.
    let reads = (depth as u64 + 1, page_bytes);
    let writes = (super::log::WRITES_MAX, page_bytes);
    let shape = Shape { region_bytes: config.region_bytes(), reads, writes };
    let (mut remote, meter) = Setting::start(way, shape)?.split();
    mixes(scheme, setup, config, depth, remote.as_mut(), &|| meter.used())
}

fn mixes(
    scheme: Scheme,
    setup: &Setup,
    config: Config,
    depth: usize,
    remote: &mut dyn Remote,
    used: &dyn Fn() -> Result<Used, RemoteError>,
) -> Result<Vec<MixFigures>, RunError> {
    let mut store = LogStore::new(config)?;
    let mut client = Client::new(&mut store, remote, setup.records, setup.value_bytes, depth);
    client.load(setup.seed)?;
    let mut all = Vec::new();
    for (nth, mix) in setup.mixes.iter().enumerate() {
        let (before, counted) = (used()?, client.counters());
        let report = client.run(*mix, setup.each, setup.seed.wrapping_add(1 + nth as u64))?;
        all.push(figures(scheme, *mix, &report, used()?.since(before), (counted, client.counters())));
    }
    let missing = client.contents()?;
    if let Some(last) = all.last_mut() {
        last.lost += missing;
    }
    Ok(all)
}

fn figures(
    scheme: Scheme,
    mix: Mix,
    report: &Report,
    used: Used,
    (before, after): (Counters, Counters),
) -> MixFigures {
    let count = (report.operations + report.lost + report.wrong).max(1) as f64;
    let each = |time: Nanos| time.0 as f64 / count;
    let us = |q: f64| report.latencies.value_at_quantile(q) as f64 / 1e3;
    MixFigures {
        scheme,
        mix: mix.name(),
        operations: report.operations,
        ops_per_s: report.operations as f64 / report.elapsed.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        p999_us: us(0.999),
        lost: report.lost,
        wrong: report.wrong,
        cold_share: (after.cold_reads - before.cold_reads) as f64 / count,
        pages_written: after.pages_written - before.pages_written,
        pages_compacted: after.pages_compacted - before.pages_compacted,
        thread_cpu_ns: each(report.cpu),
        adapter_cpu_ns: used.adapter.map(each),
        engine_cpu_ns: used.engine.map(each),
        pool_cpu_ns: used.pool.map(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_in_local_memory_need_no_remote_one() {
        let setup = Setup {
            records: 2_000,
            value_bytes: 56,
            memory_percent: 10,
            mixes: Mix::ALL.to_vec(),
            each: Nanos::from_millis(20),
            seed: 1,
        };
        let all = run(Scheme::Local, &setup).unwrap();
        assert_eq!(all.iter().map(|figures| figures.mix).collect::<Vec<_>>(), ["A", "B", "C", "F"]);
        for figures in all {
            assert!(figures.operations > 100, "{figures:?}");
            assert_eq!((figures.lost, figures.wrong, figures.pages_written), (0, 0, 0), "{figures:?}");
            assert_eq!(figures.cold_share, 0.0);
        }
    }
}
