//! A fixed number of YCSB's operations by one client: for loads that are recorded or compared, which have to be the same each time.

use super::hashes::Hashes;
pub use super::load::Load;
use super::piped::PipedStore;
use super::redis::Redis;
use super::region::{self, RegionStore};
use crate::error::LabError;
use crate::ycsb::{Client, ClientConfig, Error, Store};
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

/// What came of it.
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

/// Uses a Redis server, which may still be starting: waits for it as long as `starts`, and until it has ended if that is sooner. Calls
/// `loaded` when all records were written. Errors: it can't be reached, an answer is missing or wrong, or `loaded` has failed.
pub fn on_redis(
    at: SocketAddr,
    load: &Load,
    starts: Duration,
    loaded: impl FnOnce() -> Result<(), String>,
) -> Result<Done, LabError> {
    let until = clock::now() + Nanos(starts.as_nanos() as u64);
    while let Err(error) = TcpStream::connect(at) {
        if clock::now() >= until {
            let why = format!("{error} for {} s; does redis-server run there?", starts.as_secs());
            return Err(LabError::measurement(at.to_string(), why));
        }
        std::thread::sleep(AGAIN);
    }
    let not_connected = LabError::system("connecting to the server");
    let done = if load.fields == 1 {
        let redis = Redis::new(load.field_bytes as usize, load.seed);
        run(&mut PipedStore::connect(at, redis).map_err(not_connected)?, load, loaded)
    } else {
        let redis = Hashes::new(load.records, load.fields());
        run(&mut PipedStore::connect(at, redis).map_err(not_connected)?, load, loaded)
    };
    done.map_err(|error| LabError::measurement(at.to_string(), error))
}

/// Uses a region by the calling thread, one operation at a time. Calls `loaded` when all records were written. Errors: the region is lost
/// or too small, a record is wrong, or `loaded` has failed.
pub fn on_region(
    region: &RemoteRegion,
    load: &Load,
    loaded: impl FnOnce() -> Result<(), String>,
) -> Result<Done, LabError> {
    let name = "records in a region";
    let store = RegionStore::new(region, load);
    let mut store = store.map_err(|why| LabError::measurement(name, why))?;
    run(&mut store, load, loaded).map_err(|error| LabError::measurement(name, error))
}

/// Bytes that the records of a load take in a region, and those of the client's own memory that say where each record is.
pub fn region_bytes(load: &Load) -> (u64, u64) {
    (region::bytes(load), region::index_bytes(load))
}

fn run<S: Store>(
    store: &mut S,
    load: &Load,
    loaded: impl FnOnce() -> Result<(), String>,
) -> Result<Done, Error> {
    let Load { records, depth, seed, .. } = *load;
    let mut client =
        Client::new(store, &ClientConfig { mixes: Vec::new(), records, depth, seed, tells: false });
    client.set_limit(ANSWERS);
    let began = clock::now();
    client.load()?;
    let load_ns = (clock::now() - began).0;
    loaded().map_err(Error::Gone)?;
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
    use p4rack_codegen::rack::Mix;
    use p4rack_hosts::region::RegionConfig;
    use p4rack_hosts::remote::Local;

    /// A region whose remote memory is the process's own.
    fn region(bytes: u64, local_bytes: u64) -> RemoteRegion {
        let config = RegionConfig { starts_zeroed: true, ..RegionConfig::new(local_bytes) };
        RemoteRegion::new(Box::new(Local::new(bytes)), &config).unwrap()
    }

    fn load(fields: u32, field_bytes: u32) -> Load {
        Load { records: 500, fields, field_bytes, mix: Mix::F, operations: 3_000, depth: 4, seed: 3 }
    }

    #[test]
    fn records_in_a_region_are_right_whatever_is_local() {
        for load in [load(1, 1_000), load(10, 100)] {
            let (bytes, index_bytes) = region_bytes(&load);
            assert_eq!((bytes, index_bytes), (500 * 1_024, 500 * 4));
            let all = region(bytes, bytes * 2);
            let mut loaded = None;
            let done = on_region(&all, &load, || {
                loaded = Some(all.statistics());
                Ok(())
            });
            let done = done.unwrap();
            assert!(done.per_s > 0.0 && done.p99_us >= done.p50_us, "{done:?}");
            let loaded = loaded.unwrap();
            assert_eq!((loaded.fetched_bytes(), loaded.written_bytes()), (0, 0), "nothing was there before");
            let few = region(bytes, bytes / 4);
            on_region(&few, &load, || Ok(())).unwrap();
            assert!(few.statistics().fetched_bytes() > 500 * 512);
            let small = on_region(&region(bytes - 1, bytes), &load, || Ok(())).unwrap_err().to_string();
            assert!(small.contains("has 511999 bytes, and 500 records take 512000"), "{small}");
        }
        let (bytes, _) = region_bytes(&load(1, 1_000));
        let failed = on_region(&region(bytes, bytes * 2), &load(1, 1_000), || Err("not measured".to_owned()));
        assert!(failed.unwrap_err().to_string().contains("not measured"));
    }

    #[test]
    fn an_operation_on_a_field_moves_fewer_bytes_than_one_on_a_record() {
        let moved = |load: Load| {
            let region = region(region_bytes(&load).0, 100 << 10);
            let mut loaded = 0;
            let blocks = || region.statistics().fetched_bytes() + region.statistics().written_bytes();
            let at_load = || {
                loaded = blocks();
                Ok(())
            };
            on_region(&region, &load, at_load).unwrap();
            blocks() - loaded
        };
        let (records, fields) = (moved(load(1, 1_000)), moved(load(10, 100)));
        assert!(fields < records, "{fields} and {records} bytes");
    }
}
