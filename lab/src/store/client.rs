//! A client of the store: one operation at a time, by YCSB's mixes, each result checked.
//!
//! Versions of a record count its writes, which reveals a lost write: the client finds an older version than one that it has seen
//! or written, or at the end records have fewer versions than all clients together have written.

use super::{ANY, Failure, Store};
use crate::workload::Span;
use p4rack_codegen::rack::Mix;
use p4rack_history::Records;
use p4rack_sim::{Random, Zipf};
use p4rack_wire::Histogram;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Exponent of the keys' popularity, YCSB's.
const ZIPF: f64 = 0.99;
/// Time after which an operation is lost.
const LOST_NS: u64 = 2_000_000_000;
/// Interval between two progress lines.
const TELL_NS: u64 = 250_000_000;

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Mixes, one after the other, each for an equal part of the span.
    pub mixes: Vec<Mix>,
    /// Number of keys.
    pub records: u32,
    /// Size of values.
    pub value_bytes: usize,
    /// Seed of keys, operations and values.
    pub seed: u64,
    /// Whether it prints progress lines.
    pub tells: bool,
}

/// Results of a client under one mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MixReport {
    /// The mix.
    pub mix: String,
    /// Operations that ended well.
    pub operations: u64,
    /// Operations without an answer.
    pub lost: u64,
    /// Wrong answers: wrong checksum, another key, or an older version than seen before.
    pub wrong: u64,
    /// Values that were read or written.
    pub values: u64,
    /// Latencies in nanoseconds, with their counts; lost operations count with the time they waited.
    pub latencies: Vec<(u64, u64)>,
    /// Additional results of a log store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogCosts>,
}

/// Additional counters of a log store's client under one mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogCosts {
    /// Values that were read from remote memory.
    pub cold_reads: u64,
    /// Processor time of the client's thread, kernel included.
    pub thread_cpu_ns: u64,
}

/// Results of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Results of each mix.
    pub mixes: Vec<MixReport>,
    /// Confirmed writes, in all mixes together.
    pub writes: u64,
    /// Records with an older version at the end than this client had written.
    pub lost_writes: u64,
}

/// Contents of the store after all clients have finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Versions of all records together: every write adds one.
    pub versions: u64,
    /// Records that could not be read.
    pub lost: u64,
    /// Records that no client has written.
    pub wrong: u64,
}

/// A progress line: operations so far; percentiles of the latest latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Operations that ended well.
    pub operations: u64,
    /// Their 50th percentile since the line before.
    pub p50_us: u64,
    /// Their 99th percentile since the line before.
    pub p99_us: u64,
}

impl SoFar {
    /// The latest one in a client's output.
    pub fn latest(output: &str) -> Option<SoFar> {
        output.lines().rev().find_map(|line| {
            let mut numbers = line.strip_prefix("done ")?.split(' ').map_while(|word| word.parse().ok());
            Some(SoFar { operations: numbers.next()?, p50_us: numbers.next()?, p99_us: numbers.next()? })
        })
    }

    fn tell(&self) -> io::Result<()> {
        let mut out = io::stdout();
        writeln!(out, "done {} {} {}", self.operations, self.p50_us, self.p99_us)?;
        out.flush()
    }
}

/// Prints a progress line at intervals.
#[derive(Debug)]
pub(crate) struct Teller {
    so_far: SoFar,
    recent: Histogram,
    tell_ns: u64,
}

impl Teller {
    /// From a time on.
    pub(crate) fn new(start_ns: u64) -> Teller {
        Teller { so_far: SoFar::default(), recent: Histogram::new(), tell_ns: start_ns + TELL_NS }
    }

    /// Counts an operation that has ended now.
    pub(crate) fn ended(&mut self, took_ns: u64, now_ns: u64) -> io::Result<()> {
        self.so_far.operations += 1;
        self.recent.record(took_ns);
        if now_ns < self.tell_ns {
            return Ok(());
        }
        self.tell_ns = now_ns + TELL_NS;
        let quantile_us = |q: f64| self.recent.at(q) / 1_000;
        (self.so_far.p50_us, self.so_far.p99_us) = (quantile_us(0.5), quantile_us(0.99));
        self.recent.reset();
        self.so_far.tell()
    }
}

/// Writes the first version of every record, and reads it back.
pub fn load(store: &mut impl Store, config: &ClientConfig) -> io::Result<()> {
    let mut random = Random::new(config.seed);
    for key in 0..config.records {
        let value = value(&mut random, config.value_bytes);
        let until_ns = store.now_ns() + LOST_NS;
        let written = store.put(key, ANY, &value, until_ns).and_then(|_| store.get(key, until_ns));
        match written {
            Ok(slot) if slot.value == value => {}
            Ok(_) => return Err(io::Error::other(format!("record {key} is not what was written"))),
            Err(failure) => return Err(io::Error::other(format!("writing record {key}: {failure:?}"))),
        }
    }
    Ok(())
}

/// Reads every record after all writes have ended.
pub fn contents(store: &mut impl Store, records: u32) -> io::Result<Contents> {
    let mut contents = Contents::default();
    for key in 0..records {
        let until_ns = store.now_ns() + LOST_NS;
        match store.get(key, until_ns) {
            Ok(slot) if slot.key == u64::from(key) => contents.versions += slot.version,
            Ok(_) | Err(Failure::Wrong) => contents.wrong += 1,
            Err(Failure::Lost) => contents.lost += 1,
            Err(Failure::Ended(why)) => return Err(io::Error::other(why)),
        }
    }
    Ok(contents)
}

/// Runs the mixes.
pub fn run(store: &mut impl Store, config: &ClientConfig, span: Span) -> io::Result<ClientReport> {
    let mut client = Client {
        store,
        random: Random::new(config.seed),
        zipf: Zipf::new(config.records, ZIPF),
        records: Records::shared(config.records as usize),
        confirmed: vec![0; config.records as usize],
        config,
        values: 0,
        writes: 0,
        teller: Teller::new(span.start_ns),
    };
    let part_ns = span.duration_ns / config.mixes.len().max(1) as u64;
    let mut report = ClientReport::default();
    for (nth, mix) in config.mixes.iter().enumerate() {
        let start_ns = span.start_ns + nth as u64 * part_ns;
        client.store.sleep_until(start_ns);
        report.mixes.push(client.mix(*mix, start_ns + part_ns)?);
    }
    report.lost_writes = client.lost_writes()?;
    report.writes = client.writes;
    Ok(report)
}

struct Client<'a, S> {
    store: &'a mut S,
    config: &'a ClientConfig,
    random: Random,
    zipf: Zipf,
    /// Versions by key. Other clients write too.
    records: Records,
    /// Newest version that this client wrote, by key.
    confirmed: Vec<u64>,
    values: u64,
    writes: u64,
    teller: Teller,
}

impl<S: Store> Client<'_, S> {
    fn mix(&mut self, mix: Mix, end_ns: u64) -> io::Result<MixReport> {
        let mut report = MixReport { mix: mix.name().to_owned(), ..MixReport::default() };
        let mut latencies = Histogram::new();
        self.values = 0;
        loop {
            let start_ns = self.store.now_ns();
            if start_ns >= end_ns {
                break;
            }
            let key = self.zipf.sample(&mut self.random);
            let reads = self.random.chance(mix.reads());
            let done = if reads { self.get(key).map(drop) } else { self.change(key, mix) };
            let now_ns = self.store.now_ns();
            let took_ns = now_ns - start_ns;
            match done {
                Ok(()) => report.operations += 1,
                Err(Failure::Lost) => report.lost += 1,
                Err(Failure::Wrong) => report.wrong += 1,
                Err(Failure::Ended(why)) => return Err(io::Error::other(why)),
            }
            latencies.record(took_ns);
            if self.config.tells {
                self.teller.ended(took_ns, now_ns)?;
            }
        }
        report.values = self.values;
        report.latencies = latencies.counts().collect();
        Ok(report)
    }

    /// Reads a record and checks it. Returns its version.
    fn get(&mut self, key: u32) -> Result<u64, Failure> {
        let until_ns = self.store.now_ns() + LOST_NS;
        let slot = self.store.get(key, until_ns)?;
        let record = key as usize;
        if slot.key != u64::from(key)
            || self.records.found(record, self.records.newest(record), slot.version).is_err()
        {
            return Err(Failure::Wrong);
        }
        self.values += 1;
        Ok(slot.version)
    }

    /// Writes a record; under a mix with changes, in place of the version that it has read.
    fn change(&mut self, key: u32, mix: Mix) -> Result<(), Failure> {
        let value = value(&mut self.random, self.config.value_bytes);
        let until_ns = self.store.now_ns() + LOST_NS;
        loop {
            let expected = if mix.reads_before_writing() { self.get(key)? } else { ANY };
            if let Some(version) = self.store.put(key, expected, &value, until_ns)? {
                self.confirmed[key as usize] = version;
                self.values += 1;
                self.writes += 1;
                return self.records.wrote(key as usize, version).map_err(|_| Failure::Wrong);
            }
            if self.store.now_ns() >= until_ns {
                return Err(Failure::Lost);
            }
        }
    }

    /// Counts records with an older version than this client has written.
    fn lost_writes(&mut self) -> io::Result<u64> {
        let mut lost = 0;
        for key in 0..self.config.records {
            let confirmed = self.confirmed[key as usize];
            if confirmed == 0 {
                continue;
            }
            let until_ns = self.store.now_ns() + LOST_NS;
            match self.store.get(key, until_ns) {
                Ok(slot) => lost += u64::from(slot.version < confirmed),
                Err(Failure::Ended(why)) => return Err(io::Error::other(why)),
                Err(_) => lost += 1,
            }
        }
        Ok(lost)
    }
}

fn value(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(bytes + 8);
    while value.len() < bytes {
        value.extend_from_slice(&random.next().to_le_bytes());
    }
    value.truncate(bytes);
    value
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
