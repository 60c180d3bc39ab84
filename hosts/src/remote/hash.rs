//! The paper's hash-index probe (§7): most records are in remote memory, some in local memory, and a thread looks up keys at
//! random. All schemes share table and loop; only the way to a remote record differs.
//!
//! No scheme spins while it waits, so processor time measures work alone. With RDMA, the thread runs the adapter's software, so its
//! time includes the work of a network adapter. With Cowbird, the thread only loads and stores: another thread runs the adapter
//! that answers the engine, and its time is reported separately.

use super::setting::{Setting, Switch, Used};
use super::{Operation, Outcome, Remote, RemoteError, Shape, UnderWay, Window};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::remote::Way;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use serde::Serialize;
use std::time::Duration;

/// One record in this many is in local memory: 5 %.
const LOCAL: u64 = 20;
/// Look-ups in flight: the paper's batch of asynchronous requests.
const BATCH: usize = 100;
/// Longest wait for a response.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Longest wait between two checks of the time.
const WAIT: Nanos = Nanos::from_millis(5);
/// Maximum bytes of a record.
pub const RECORD_BYTES_MAX: u32 = 4_096;

/// Measured values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Probes {
    /// Access path to records.
    pub scheme: Way,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Keys looked up, each with the right record.
    pub probes: u64,
    /// Keys per second.
    pub probes_per_s: f64,
    /// Processor time of the thread per key, kernel included.
    pub thread_cpu_ns: f64,
    /// Processor time of the compute node's adapter per key, if it has a thread of its own.
    pub adapter_cpu_ns: Option<f64>,
    /// Processor time of the engine per key.
    pub engine_cpu_ns: Option<f64>,
    /// Processor time of the pool per key.
    pub pool_cpu_ns: Option<f64>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// The remote memory can't be used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A record was not the requested one.
    #[error("the record of key {0:#x} is another one")]
    Wrong(u64),
    /// No response in time.
    #[error("no response for {0:?}")]
    Silence(Duration),
}

/// Keys and locations of their records.
#[derive(Debug)]
struct Table {
    /// Keys and numbers of records, with open addressing. The key 0 marks a free place.
    places: Vec<(u64, u64)>,
    records: u64,
    record_bytes: u32,
}

fn key(number: u64) -> u64 {
    // A bijection; only one number has the key 0, far beyond those in use.
    SplitMix(number).next()
}

impl Table {
    fn new(records: u64, record_bytes: u32) -> Table {
        let size = (2 * records).next_power_of_two();
        let mut table = Table { places: vec![(0, 0); size as usize], records, record_bytes };
        for number in 0..records {
            let at = table.find(key(number));
            table.places[at] = (key(number), number);
        }
        table
    }

    /// The place of a key, or the free place for it.
    fn find(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = key as usize & mask;
        while self.places[at].0 != key && self.places[at].0 != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// The records whose number `which` accepts, concatenated.
    fn content(&self, which: impl Fn(u64) -> bool) -> Vec<u8> {
        let mut content = Vec::new();
        for number in (0..self.records).filter(|number| which(*number)) {
            let mut random = SplitMix(key(number));
            content.extend_from_slice(&key(number).to_le_bytes());
            for _ in 1..self.record_bytes / 8 {
                content.extend_from_slice(&random.next().to_le_bytes());
            }
        }
        content
    }
}

/// Whether a record is local under every scheme.
fn is_local(number: u64) -> bool {
    number.is_multiple_of(LOCAL)
}

/// Index of a remote record among the remote ones.
fn remote(number: u64) -> u64 {
    number - number / LOCAL - 1
}

/// Looks up keys for `span`. Returns their number, the elapsed time, and the thread's processor time.
fn look_up(
    table: &Table,
    local: &[u8],
    (remote_records, depth): (Option<&mut dyn Remote>, usize),
    span: Nanos,
) -> Result<(u64, Nanos, Nanos), HashError> {
    let (mut random, mut asked, mut probes, mut wrong) = (SplitMix(3), Window::default(), 0u64, None);
    let bytes = table.record_bytes as usize;
    let mut record = [0; RECORD_BYTES_MAX as usize];
    let check = |key: u64, record: &[u8]| record.first_chunk() == Some(&key.to_le_bytes());
    let (start, before) = (clock::now(), clock::thread_cpu());
    let mut remote_records = remote_records;
    let mut last = start;
    while clock::now() < start + span || !asked.is_empty() {
        let more = if clock::now() < start + span { depth } else { 0 };
        let mut here = 0;
        while asked.len() + here < more {
            let wanted = key(random.next() % table.records);
            let (_, number) = table.places[table.find(wanted)];
            match remote_records.as_deref_mut().filter(|_| !is_local(number)) {
                Some(far) => {
                    let at = remote(number) * u64::from(table.record_bytes);
                    let tag = asked.push(wanted);
                    let read = Operation::Read { at, bytes: table.record_bytes };
                    far.submit(tag, read).map_err(RemoteError::from)?;
                }
                None => {
                    let place = if local.len() as u64 / u64::from(table.record_bytes) == table.records {
                        number
                    } else {
                        number / LOCAL
                    };
                    let at = place as usize * bytes;
                    record[..bytes].copy_from_slice(&local[at..at + bytes]);
                    if !check(wanted, &record) {
                        return Err(HashError::Wrong(wanted));
                    }
                    (probes, here) = (probes + 1, here + 1);
                }
            }
        }
        let Some(far) = remote_records.as_deref_mut().filter(|_| !asked.is_empty()) else { continue };
        let waiting = asked.len();
        far.poll(clock::now() + WAIT, &mut |tag, outcome| {
            let (wanted, record) =
                (asked.take(tag), if let Outcome::Read(record) = outcome { record } else { &[] });
            if !wanted.is_some_and(|wanted| check(wanted, record)) {
                wrong = wanted.or(Some(0));
            }
            probes += 1;
        })?;
        if let Some(key) = wrong {
            return Err(HashError::Wrong(key));
        }
        if asked.len() < waiting {
            last = clock::now();
        } else if clock::now() > last + PATIENCE {
            return Err(HashError::Silence(Duration::from_nanos(PATIENCE.0)));
        }
    }
    Ok((probes, clock::now() - start, clock::thread_cpu() - before))
}

/// Measures a scheme without a switch for `seconds`, with this many records.
pub fn run(way: Way, records: u64, record_bytes: u32, seconds: f64) -> Result<Probes, HashError> {
    let span = span(seconds);
    let record_bytes = record_bytes.clamp(8, RECORD_BYTES_MAX).next_multiple_of(8);
    let table = Table::new(records.max(2), record_bytes);
    if way == Way::LOCAL {
        let measured = look_up(&table, &table.content(|_| true), (None, BATCH), span)?;
        return Ok(probes(way, record_bytes, measured, Used::default()));
    }
    run_in(way, &table, |shape| Setting::start(way, shape), span)
}

/// Measures [`Way::COWBIRD_P4`] in the same way.
pub fn run_in_switch(
    switch: Switch,
    records: u64,
    record_bytes: u32,
    seconds: f64,
) -> Result<Probes, HashError> {
    let record_bytes = record_bytes.clamp(8, RECORD_BYTES_MAX).next_multiple_of(8);
    let table = Table::new(records.max(2), record_bytes);
    run_in(Way::COWBIRD_P4, &table, |shape| Setting::in_switch(switch, shape), span(seconds))
}

fn span(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.01, 60.0) * 1e9) as u64)
}

fn run_in(
    way: Way,
    table: &Table,
    setting: impl FnOnce(Shape) -> Result<Setting, RemoteError>,
    span: Nanos,
) -> Result<Probes, HashError> {
    let (local, far) = (table.content(is_local), table.content(|number| !is_local(number)));
    let (record_bytes, region_bytes) = (table.record_bytes, far.len() as u64);
    let (reads, writes) = (UnderWay::of(BATCH as u64, record_bytes), UnderWay::default());
    let setting = setting(Shape { region_bytes, reads, writes })?;
    setting.fill(far)?;
    let (mut end, meter) = setting.split();
    let before = meter.used()?;
    let measured = look_up(table, &local, (Some(end.as_mut()), way.depth(BATCH)), span)?;
    Ok(probes(way, record_bytes, measured, meter.used()?.since(before)))
}

fn probes(
    scheme: Way,
    record_bytes: u32,
    (probes, elapsed, thread): (u64, Nanos, Nanos),
    used: Used,
) -> Probes {
    let each = |time: Nanos| time.0 as f64 / probes.max(1) as f64;
    Probes {
        scheme,
        record_bytes,
        probes,
        probes_per_s: probes as f64 / elapsed.as_secs_f64(),
        thread_cpu_ns: each(thread),
        adapter_cpu_ns: used.adapter.map(each),
        engine_cpu_ns: used.engine.map(each),
        pool_cpu_ns: used.pool.map(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_its_record_is_where_it_belongs() {
        let table = Table::new(101, 24);
        let (local, far) = (table.content(is_local), table.content(|number| !is_local(number)));
        assert_eq!((local.len(), far.len()), (6 * 24, 95 * 24));
        for number in 0..101 {
            let (found, place) = table.places[table.find(key(number))];
            assert_eq!((found, place), (key(number), number));
            let (content, at) =
                if is_local(number) { (&local, number / LOCAL) } else { (&far, remote(number)) };
            let record = &content[at as usize * 24..][..24];
            assert_eq!(record.first_chunk(), Some(&key(number).to_le_bytes()));
        }
        assert_eq!(table.places[table.find(key(101))].0, 0, "nobody put it there");
    }

    #[test]
    fn a_record_of_another_key_is_seen() {
        let table = Table::new(40, 8);
        let mut content = table.content(|_| true);
        let span = Nanos::from_millis(1);
        assert!(look_up(&table, &content, (None, BATCH), span).is_ok());
        content.rotate_left(8);
        assert!(matches!(look_up(&table, &content, (None, BATCH), span), Err(HashError::Wrong(_))));
    }
}
