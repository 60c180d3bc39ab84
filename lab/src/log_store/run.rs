//! The store on this machine, with its cold log behind each way to remote memory.

use super::log::{Config, Counters, LogStore, StoreError, WRITES_MAX};
use super::ycsb::{Client, Report};
use crate::store::client::Contents;
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::setting::{Setting, Switch, Used};
use p4rack_hosts::remote::{Local, Remote, RemoteError, Shape, UnderWay};
use p4rack_wire::Nanos;
use serde::Serialize;

/// Local memory in percent of the records' size, for runs in which all records stay there and are changed in place.
const ALL_LOCAL: u64 = 125;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Records.
    pub records: u32,
    /// Bytes of a value, a multiple of 8.
    pub value_bytes: usize,
    /// Local memory in percent of the records' size.
    pub memory_percent: u64,
    /// Operations in flight, for ways that permit more than one.
    pub depth: usize,
    /// Mixes, one after the other.
    pub mixes: Vec<Mix>,
    /// Duration of each.
    pub each: Nanos,
    /// Seed of keys and operations.
    pub seed: u64,
}

impl Setup {
    /// The store's sizes.
    pub fn config(&self, way: Way) -> Config {
        let percent = if way.is_remote() { self.memory_percent } else { ALL_LOCAL };
        Config::new(self.records as usize, self.value_bytes, percent, way.depth(self.depth))
    }
}

impl Config {
    /// Maximum requests of a store of these sizes.
    pub(super) fn shape(&self) -> Shape {
        let (record, page) = (self.record_bytes() as u64, self.page_bytes() as u64);
        // Compaction reads a page beside the reads of values.
        let reads = UnderWay {
            count: self.reads_max as u64 + 1,
            bytes: self.reads_max as u64 * record + page,
            longest_bytes: page as u32,
        };
        Shape { region_bytes: self.region_bytes(), reads, writes: UnderWay::of(WRITES_MAX, page as u32) }
    }
}

/// Figures of one mix.
#[derive(Clone, Debug, Serialize)]
pub struct MixFigures {
    /// Access path to older records.
    pub scheme: Way,
    /// The mix.
    pub mix: &'static str,
    /// Operations that ended in time.
    pub operations: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// 50th percentile of latencies.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Operations that took too long; in the last mix also records without their last version at the end.
    pub lost: u64,
    /// Values that were never written.
    pub wrong: u64,
    /// Values read from remote memory, per operation.
    pub cold_share: f64,
    /// Pages written to remote memory.
    pub pages_written: u64,
    /// Pages compacted.
    pub pages_compacted: u64,
    /// Processor time of the thread per operation, kernel included.
    pub thread_cpu_ns: f64,
    /// Processor time of the compute node's adapter per operation, if it has a thread of its own.
    pub adapter_cpu_ns: Option<f64>,
    /// Processor time of the engine per operation.
    pub engine_cpu_ns: Option<f64>,
    /// Processor time of the pool per operation.
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

/// Loads the records, runs the mixes and reads every record again, by a way that needs no switch.
pub fn run(way: Way, setup: &Setup) -> Result<Vec<MixFigures>, RunError> {
    if way.is_remote() {
        return behind(way, setup, |shape| Setting::start(way, shape));
    }
    let mut local = Local::new(setup.config(way).region_bytes());
    measure(way, setup, &mut local, &|| Ok(Used::default()))
}

/// The same behind [`Way::COWBIRD_P4`].
pub fn run_in_switch(switch: Switch, setup: &Setup) -> Result<Vec<MixFigures>, RunError> {
    behind(Way::COWBIRD_P4, setup, |shape| Setting::in_switch(switch, shape))
}

fn behind(
    way: Way,
    setup: &Setup,
    start: impl FnOnce(Shape) -> Result<Setting, RemoteError>,
) -> Result<Vec<MixFigures>, RunError> {
    let config = setup.config(way);
    if !config.has_share(setup.records as usize, setup.memory_percent) {
        let why = "local memory has 8 pages of 8 KiB at least, which is more than the share asked for: more records, or a greater share";
        return Err(StoreError::Config(why).into());
    }
    let (mut remote, meter) = start(config.shape())?.split();
    measure(way, setup, remote.as_mut(), &|| meter.used())
}

fn measure(
    way: Way,
    setup: &Setup,
    remote: &mut dyn Remote,
    used: &dyn Fn() -> Result<Used, RemoteError>,
) -> Result<Vec<MixFigures>, RunError> {
    let mut store = LogStore::new(setup.config(way))?;
    let mut client =
        Client::new(&mut store, remote, setup.records, setup.value_bytes, way.depth(setup.depth));
    client.load(setup.seed)?;
    let (runs, contents) = mixes(&mut client, setup, used)?;
    let mut all: Vec<MixFigures> = runs.iter().map(|run| figures(way, run)).collect();
    if let Some(last) = all.last_mut() {
        last.lost += contents.lost;
        last.wrong += contents.wrong;
    }
    Ok(all)
}

/// Results under a mix, and their costs.
pub(super) struct MixRun {
    pub(super) mix: Mix,
    pub(super) report: Report,
    used: Used,
    counted: (Counters, Counters),
}

impl MixRun {
    /// Values that were read from remote memory.
    pub(super) fn cold_reads(&self) -> u64 {
        self.counted.1.cold_reads - self.counted.0.cold_reads
    }
}

/// Runs the mixes, and reads every record again.
pub(super) fn mixes(
    client: &mut Client<'_>,
    setup: &Setup,
    used: &dyn Fn() -> Result<Used, RemoteError>,
) -> Result<(Vec<MixRun>, Contents), RunError> {
    let mut runs = Vec::new();
    for (nth, mix) in setup.mixes.iter().enumerate() {
        let (before, counted) = (used()?, client.counters());
        let report = client.run(*mix, setup.each, setup.seed.wrapping_add(1 + nth as u64))?;
        let (used, counted) = (used()?.since(before), (counted, client.counters()));
        runs.push(MixRun { mix: *mix, report, used, counted });
    }
    Ok((runs, client.contents()?))
}

fn figures(way: Way, run: &MixRun) -> MixFigures {
    let MixRun { mix, report, used, counted: (before, after) } = run;
    let count = (report.operations + report.lost + report.wrong).max(1) as f64;
    let each = |time: Nanos| time.0 as f64 / count;
    let us = |q: f64| report.latencies.at(q) as f64 / 1e3;
    MixFigures {
        scheme: way,
        mix: mix.name(),
        operations: report.operations,
        ops_per_s: report.operations as f64 / report.elapsed.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        p999_us: us(0.999),
        lost: report.lost,
        wrong: report.wrong,
        cold_share: run.cold_reads() as f64 / count,
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
            depth: 64,
            mixes: Mix::ALL.to_vec(),
            each: Nanos::from_millis(20),
            seed: 1,
        };
        let all = run(Way::LOCAL, &setup).unwrap();
        assert_eq!(all.iter().map(|figures| figures.mix).collect::<Vec<_>>(), ["A", "B", "C", "F"]);
        for figures in all {
            assert!(figures.operations > 100, "{figures:?}");
            assert_eq!((figures.lost, figures.wrong, figures.pages_written), (0, 0, 0), "{figures:?}");
            assert_eq!(figures.cold_share, 0.0);
        }
    }
}
