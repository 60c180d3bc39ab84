//! The store on this machine, with its cold log behind each way to remote memory.

use super::log::{Config, Counters, LogStore, StoreError, WRITES_MAX};
use super::logged::Logged;
use crate::results::MixResult;
use crate::store::figures::mix_figures;
use crate::ycsb::{self, Client, ClientConfig, MixReport};
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::setting::{Setting, Switch, Used};
use p4rack_hosts::remote::{Local, Remote, RemoteError, Shape, UnderWay};
use p4rack_netdev::clock;
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

    /// Its client; whether that prints progress lines.
    pub(super) fn client(&self, way: Way, tells: bool) -> ClientConfig {
        let (mixes, depth) = (self.mixes.clone(), way.depth(self.depth));
        ClientConfig { mixes, records: self.records, depth, seed: self.seed, tells }
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

/// Figures of one mix by a way. Lost and wrong in the last mix are also records that do not have their last version at the end.
#[derive(Clone, Debug, Serialize)]
pub struct MixFigures {
    /// Way to older records.
    pub scheme: Way,
    /// Measurements of any store.
    #[serde(flatten)]
    pub mix: MixResult,
    /// Operations that ended in time.
    pub operations: u64,
    /// Pages written to remote memory.
    pub pages_written: u64,
    /// Pages compacted.
    pub pages_compacted: u64,
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
    /// The client can't go on.
    #[error(transparent)]
    Client(#[from] ycsb::Error),
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
    let config = setup.client(way, false);
    let mut store = Logged::new(LogStore::new(setup.config(way))?, remote, setup.records, config.depth);
    let mut client = Client::new(&mut store, &config);
    client.load()?;
    let mut all = Vec::new();
    for mix in &setup.mixes {
        let (before, counted) = (used()?, client.store().counters());
        let report = client.mix(*mix, clock::now() + setup.each)?;
        all.push(figures(way, &report, used()?.since(before), [counted, client.store().counters()]));
    }
    let contents = client.contents()?;
    if let Some(MixFigures { mix: last, .. }) = all.last_mut() {
        last.lost += contents.lost;
        last.wrong += contents.wrong;
    }
    Ok(all)
}

fn figures(way: Way, report: &MixReport, used: Used, [before, after]: [Counters; 2]) -> MixFigures {
    let count = (report.operations + report.lost + report.wrong).max(1) as f64;
    let each = |time: Nanos| time.0 as f64 / count;
    MixFigures {
        scheme: way,
        mix: MixResult { cdf: Vec::new(), ..mix_figures(&report.mix, &[report], report.elapsed_ns) },
        operations: report.operations,
        pages_written: after.pages_written - before.pages_written,
        pages_compacted: after.pages_compacted - before.pages_compacted,
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
        assert_eq!(
            all.iter().map(|figures| figures.mix.mix.as_str()).collect::<Vec<_>>(),
            ["A", "B", "C", "F"]
        );
        for figures in all {
            assert!(figures.operations > 100, "{figures:?}");
            let MixResult { lost, wrong, cold_share, .. } = figures.mix;
            assert_eq!((lost, wrong, figures.pages_written), (0, 0, 0), "{figures:?}");
            assert_eq!(cold_share, Some(0.0));
        }
    }
}
