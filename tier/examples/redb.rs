//! redb with its cold pages in remote memory, beside the same database in local memory: a table of 200-byte values, then
//! reads and, one in twenty, a transaction that replaces a value (YCSB's mix B). All on this machine, in namespaces of its
//! own. Every value read is checked.
//!
//! `cargo run --release -p p4rack-tier --example redb` needs root or user namespaces.

use p4rack_hosts::remote::setting::{Setting, Way};
use p4rack_hosts::remote::{Shape, UnderWay};
use p4rack_netdev::netns;
use p4rack_sim::{Random, Zipf};
use p4rack_tier::ColdTier;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, TableDefinition};
use std::error::Error;
use std::time::{Duration, Instant};

const TABLE: TableDefinition<u32, &[u8]> = TableDefinition::new("values");
const KEYS: u32 = 20_000;
const VALUE_BYTES: usize = 200;
/// Duration of each measurement.
const EACH: Duration = Duration::from_secs(1);
/// redb mostly requests pages of 4 KiB, and several of them when it writes a transaction.
const SHAPE: Shape =
    Shape { region_bytes: 32 << 20, reads: UnderWay::of(16, 4_096), writes: UnderWay::of(64, 4_096) };

/// A value: its key and version, and bytes computed from them.
fn value(key: u32, version: u32) -> [u8; VALUE_BYTES] {
    let mut random = Random::new(u64::from(key) << 32 | u64::from(version));
    let mut value = [0; VALUE_BYTES];
    value.fill_with(|| random.below(256) as u8);
    value[..4].copy_from_slice(&version.to_be_bytes());
    value
}

/// Figures of one place of storage.
struct Figures {
    load: Duration,
    reads: u32,
    writes: u32,
    wrong: u32,
    reading: Duration,
    writing: Duration,
}

fn run(database: &Database) -> Result<Figures, Box<dyn Error>> {
    let start = Instant::now();
    let load = database.begin_write()?;
    {
        let mut table = load.open_table(TABLE)?;
        for key in 0..KEYS {
            table.insert(key, &value(key, 0)[..])?;
        }
    }
    load.commit()?;
    let mut figures = Figures {
        load: start.elapsed(),
        reads: 0,
        writes: 0,
        wrong: 0,
        reading: Duration::ZERO,
        writing: Duration::ZERO,
    };
    let (zipf, mut random) = (Zipf::new(KEYS, 0.99), Random::new(1));
    let mut versions = vec![0; KEYS as usize];
    while figures.reading + figures.writing < EACH {
        let key = zipf.sample(&mut random);
        let version = &mut versions[key as usize];
        let start = Instant::now();
        if random.below(20) == 0 {
            *version += 1;
            let change = database.begin_write()?;
            change.open_table(TABLE)?.insert(key, &value(key, *version)[..])?;
            change.commit()?;
            figures.writing += start.elapsed();
            figures.writes += 1;
        } else {
            let found = database.begin_read()?.open_table(TABLE)?.get(key)?;
            figures.reading += start.elapsed();
            figures.reads += 1;
            let right = found.is_some_and(|found| found.value() == value(key, *version));
            figures.wrong += u32::from(!right);
        }
    }
    Ok(figures)
}

fn main() -> Result<(), Box<dyn Error>> {
    netns::acquire()?;
    println!("{KEYS} values of {VALUE_BYTES} bytes; redb's cache by row; {} s each", EACH.as_secs());
    println!(
        "{:<34} {:>8} {:>9} {:>10} {:>10} {:>6}",
        "storage", "load", "reads/s", "read", "commit", "wrong"
    );
    let places = [
        ("local memory", None, 8 << 20),
        ("Cowbird, cache of 8 MiB", Some(Way::COWBIRD_SPOT), 8 << 20),
        ("Cowbird, cache of 1 MiB", Some(Way::COWBIRD_SPOT), 1 << 20),
        ("RDMA, one by one, cache of 1 MiB", Some(Way::RDMA_SYNC), 1 << 20),
    ];
    let mut wrong = 0;
    for (name, way, cache_bytes) in places {
        let mut builder = Database::builder();
        builder.set_cache_size(cache_bytes);
        let (database, _serves) = match way {
            None => (builder.create_with_backend(InMemoryBackend::new())?, None),
            Some(way) => {
                let (remote, serves) = Setting::start(way, SHAPE)?.split();
                (builder.create_with_backend(ColdTier::new(remote, SHAPE)?)?, Some(serves))
            }
        };
        let figures = run(&database)?;
        let each = |time: Duration, count: u32| 1e6 * time.as_secs_f64() / f64::from(count.max(1));
        println!(
            "{name:<34} {:>6.0} ms {:>9.0} {:>7.1} µs {:>7.1} µs {:>6}",
            1e3 * figures.load.as_secs_f64(),
            f64::from(figures.reads) / figures.reading.as_secs_f64(),
            each(figures.reading, figures.reads),
            each(figures.writing, figures.writes),
            figures.wrong
        );
        wrong += figures.wrong;
    }
    if wrong > 0 { Err(format!("{wrong} values were wrong").into()) } else { Ok(()) }
}
