//! A fixed number of YCSB's operations by one client: for loads that are recorded or compared, which have to be the same each time.

use super::piped::PipedStore;
use super::redis::Redis;
use super::region::{self, RegionStore};
use crate::error::LabError;
use crate::ycsb::{Client, ClientConfig, Error, Store};
use p4rack_codegen::rack::Mix;
use p4rack_hosts::region::RemoteRegion;
use p4rack_netdev::clock;
use p4rack_wire::{Histogram, Nanos};
use serde::Serialize;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);

/// Time for one answer: a server may run under a tool that slows it down some hundred times.
const ANSWERS: Nanos = Nanos::from_secs(60);

/// The work: all records are written once, in any order, and then used.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of records.
    pub records: u32,
    /// Bytes of a value, a multiple of 8.
    pub value_bytes: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// How many of them.
    pub operations: u64,
    /// How many may be under way.
    pub depth: usize,
    /// Seed of keys, operations and values.
    pub seed: u64,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Done {
    /// Time of the first writes.
    pub load_ns: u64,
    /// Time of the operations.
    pub elapsed_ns: u64,
    /// Operations a second.
    pub per_s: f64,
    /// Latency of an operation.
    pub p50_us: f64,
    /// The same, 99th percentile.
    pub p99_us: f64,
}

/// Uses a Redis server, which may still be starting: waits for it as long as `starts`, and until it has ended if that is sooner. Errors: it
/// can't be reached, or an answer is missing or wrong.
pub fn on_redis(at: SocketAddr, load: &Load, starts: Duration) -> Result<Done, LabError> {
    let until = clock::now() + Nanos(starts.as_nanos() as u64);
    while let Err(error) = TcpStream::connect(at) {
        if clock::now() >= until {
            let why = format!("{error} for {} s; does redis-server run there?", starts.as_secs());
            return Err(LabError::measurement(at.to_string(), why));
        }
        std::thread::sleep(AGAIN);
    }
    let store = PipedStore::connect(at, Redis::new(load.value_bytes as usize, load.seed));
    run(&mut store.map_err(LabError::system("connecting to the server"))?, load)
        .map_err(|error| LabError::measurement(at.to_string(), error))
}

/// Uses a region by the calling thread, one operation at a time. Errors: the region is lost or too small, or a record is wrong.
pub fn on_region(region: &RemoteRegion, load: &Load) -> Result<Done, LabError> {
    let name = "records in a region";
    let store = RegionStore::new(region, load.records, load.value_bytes, load.seed);
    let mut store = store.map_err(|why| LabError::measurement(name, why))?;
    run(&mut store, load).map_err(|error| LabError::measurement(name, error))
}

/// Bytes that the records of a load take in a region.
pub fn region_bytes(load: &Load) -> u64 {
    region::bytes(load.records, load.value_bytes)
}

fn run<S: Store>(store: &mut S, load: &Load) -> Result<Done, Error> {
    let Load { records, depth, seed, .. } = *load;
    let mut client =
        Client::new(store, &ClientConfig { mixes: Vec::new(), records, depth, seed, tells: false });
    client.set_limit(ANSWERS);
    let began = clock::now();
    client.load()?;
    let load_ns = (clock::now() - began).0;
    let report = client.operations(load.mix, load.operations)?;
    let missing = report.lost + report.wrong;
    if missing > 0 {
        return Err(Error::Gone(format!("{missing} of {} answers were late or wrong", load.operations)));
    }
    let mut latencies = Histogram::new();
    report.latencies.iter().for_each(|(ns, count)| latencies.record_n(*ns, *count));
    let us = |quantile| latencies.at(quantile) as f64 / 1e3;
    Ok(Done {
        load_ns,
        elapsed_ns: report.elapsed_ns,
        per_s: report.operations as f64 * 1e9 / report.elapsed_ns.max(1) as f64,
        p50_us: us(0.5),
        p99_us: us(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_hosts::region::RegionConfig;
    use p4rack_hosts::remote::Local;

    #[test]
    fn records_in_a_region_are_right_whatever_is_local() {
        let load =
            Load { records: 500, value_bytes: 1_000, mix: Mix::F, operations: 3_000, depth: 4, seed: 3 };
        let bytes = region_bytes(&load);
        assert_eq!(bytes, 500 * 1_024);
        let region =
            |bytes, local| RemoteRegion::new(Box::new(Local::new(bytes)), &RegionConfig::new(local)).unwrap();
        let all = region(bytes, bytes * 2);
        let done = on_region(&all, &load).unwrap();
        assert!(done.per_s > 0.0 && done.p99_us >= done.p50_us, "{done:?}");
        let few = region(bytes, bytes / 4);
        on_region(&few, &load).unwrap();
        assert!(few.statistics().counters.fetched > 2 * all.statistics().counters.fetched);
        let small = on_region(&region(bytes - 1, bytes), &load).unwrap_err().to_string();
        assert!(small.contains("has 511999 bytes, and 500 records take 512000"), "{small}");
    }
}
