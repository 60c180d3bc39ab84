//! `p4rack far bench`: a Redis server under YCSB's operations, in near memory, in far memory and with Linux's swap; and the same records in a
//! region of this process.

mod servers;
mod swap;

use crate::cmd::cache::names;
use crate::cmd::memory::online;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Way;
use p4rack_hosts::paging::check_privileges;
use p4rack_hosts::region::RegionError;
use p4rack_lab::rows::Rows;
use p4rack_lab::store::fixed::{self, Done, Load};
use p4rack_memory::region::{self, RegionConfig};
use p4rack_memory::{Access, OpenError};
use p4rack_report::text::{bytes, count, micros};
use serde::Serialize;
use serde_json::{Value, json};
use servers::{Failed, Servers};
use std::net::SocketAddr;
use std::time::Duration;
use swap::Swap;

/// Time for a server that another command starts, and which may run under a tool that slows it down.
const STARTS: Duration = Duration::from_secs(600);
/// Bytes of the kernel's pages.
const PAGE_BYTES: u64 = 4_096;
/// Far memory that a server without records may need.
const EMPTY_BYTES: u64 = 64 << 20;
/// Bytes that a record may take in a server beside its value.
const RECORD_BYTES: u64 = 256;
/// Local memory of a region beside its blocks, however few they are.
const SPARE_BYTES: u64 = 1 << 20;

/// Arguments of `p4rack far bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Use the Redis server at this address, which may still be starting, and start none
    #[arg(long, value_name = "ADDR")]
    redis: Option<SocketAddr>,
    /// Number of records
    #[arg(long, default_value_t = 20_000, value_parser = crate::numbers::within::<u32>(1..=100_000_000))]
    records: u32,
    /// Bytes of a value, a multiple of 8
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = value_bytes)]
    value: u32,
    /// YCSB's mix of reads and writes: A, B, C or F
    #[arg(long, default_value = "B")]
    mix: Mix,
    /// Number of operations, after each record was written once
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = crate::numbers::within::<u64>(1..))]
    operations: u64,
    /// Operations under way
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = crate::numbers::within::<usize>(1..=4_096))]
    depth: usize,
    /// Seed of keys and operations
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Local memory in percent of the use with all of it local; may be repeated
    #[arg(long, value_name = "PERCENT", default_values_t = [50, 25, 10], conflicts_with = "redis",
        value_parser = crate::numbers::within::<u64>(1..=99))]
    local: Vec<u64>,
    /// Policy of the cache of blocks, of far memory and of the region
    #[arg(long, default_value = "runs", value_parser = names(online()), conflicts_with = "redis")]
    policy: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses the bytes of a value.
fn value_bytes(text: &str) -> Result<u32, String> {
    let bytes = crate::numbers::within::<u32>(8..=1 << 20)(text)?;
    bytes.is_multiple_of(8).then_some(bytes).ok_or_else(|| format!("{bytes} is no multiple of 8"))
}

/// One system with one size of local memory.
#[derive(Debug, Serialize)]
struct Row {
    system: &'static str,
    /// Operations under way, if they are others than the load's.
    depth: Option<usize>,
    local_percent: Option<u64>,
    /// Local memory of the records, without the server's other memory.
    local_bytes: Option<u64>,
    #[serde(flatten)]
    done: Option<Done>,
    /// Bytes that moved to local memory, and from there, from the first write to the last operation.
    moved_bytes: Option<[u64; 2]>,
    /// Why it did not run.
    skipped: Option<String>,
}

impl Row {
    fn near(done: Done) -> Row {
        let (system, local_percent, local_bytes) = ("near memory", None, None);
        Row {
            system,
            depth: None,
            local_percent,
            local_bytes,
            done: Some(done),
            moved_bytes: None,
            skipped: None,
        }
    }

    fn of(system: &'static str, local: (u64, u64), (done, moved): (Done, [u64; 2])) -> Row {
        let (percent, bytes) = local;
        Row {
            local_percent: Some(percent),
            local_bytes: Some(bytes),
            moved_bytes: Some(moved),
            system,
            ..Row::near(done)
        }
    }

    /// A measured one, or one without room for it. Errors: another one failed.
    fn made(
        system: &'static str,
        local: (u64, u64),
        done: Result<(Done, [u64; 2]), Failed>,
    ) -> Result<Row, String> {
        match done {
            Ok(done) => Ok(Row::of(system, local, done)),
            Err(Failed::Room(why)) => Ok(Row::skipped(system, format!("with {} %: {why}", local.0))),
            Err(Failed::Other(why)) => Err(format!("{system}, {} %: {why}", local.0)),
        }
    }

    fn skipped(system: &'static str, why: String) -> Row {
        Row {
            system,
            depth: None,
            local_percent: None,
            local_bytes: None,
            done: None,
            moved_bytes: None,
            skipped: Some(why),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let load = Load {
        records: args.records,
        value_bytes: args.value,
        mix: args.mix,
        operations: args.operations,
        depth: args.depth,
        seed: args.seed,
    };
    let rows = match args.redis {
        Some(at) => {
            let done = fixed::on_redis(at, &load, STARTS).map_err(|error| error.to_string())?;
            vec![Row { system: "the server", ..Row::near(done) }]
        }
        None => compare(args, &load)?,
    };
    match args.json {
        true => println!("{:#}", json!({ "load": described(&load), "mglru": swap::mglru(), "rows": rows })),
        false => print!("{}", text(&load, &rows)),
    }
    Ok(())
}

fn compare(args: &Args, load: &Load) -> Result<Vec<Row>, String> {
    let records = u64::from(load.records);
    let far_bytes = EMPTY_BYTES + 4 * records * (u64::from(load.value_bytes) + RECORD_BYTES);
    let servers = Servers::start(far_bytes.next_power_of_two(), &args.policy)?;
    let of = |percent: u64, all: u64| (percent, all * percent / 100);
    let (done, near_bytes) = servers.near(load)?;
    let mut rows = vec![Row::near(done)];
    // Local memory is a share of the used bytes: of far memory, or as much of near memory.
    let mut used_bytes = records * (u64::from(load.value_bytes) + RECORD_BYTES);
    match check_privileges() {
        Ok(()) => {
            let (done, moved, in_use_bytes) = servers.far(load, far_bytes)?;
            used_bytes = in_use_bytes;
            rows.push(Row::of("far run", (100, used_bytes), (done, moved)));
            for percent in &args.local {
                let local = of(*percent, used_bytes);
                // Little local memory has no room for a mapping's tables and a region's.
                let done = servers.far(load, local.1).map(|(done, moved, _)| (done, moved));
                rows.push(Row::made("far run", local, done)?);
            }
        }
        Err(error) => rows.push(Row::skipped("far run", format!("needs userfaultfd: {error}"))),
    }
    let region_bytes = fixed::region_bytes(load);
    for percent in [100].iter().chain(&args.local) {
        // All of it local has its tables too, and blocks that are set aside.
        let local =
            if *percent == 100 { (100, 2 * region_bytes + SPARE_BYTES) } else { of(*percent, region_bytes) };
        let row = Row::made("region", local, in_region(&servers, load, local.1, &args.policy))?;
        rows.push(Row { depth: Some(1), ..row });
    }
    for percent in &args.local {
        let local = of(*percent, used_bytes);
        // The other memory of the server has room beside that.
        let beside = near_bytes.saturating_sub(used_bytes);
        match Swap::open(2 * near_bytes, local.1 + beside) {
            Ok(swap) => rows.push(Row::made("swap to zram", local, servers.swapped(load, &swap))?),
            Err(needs) => {
                rows.push(Row::skipped("swap to zram", format!("needs {needs}")));
                break;
            }
        }
    }
    Ok(rows)
}

/// The same records in a region of this process, by the same way to the same memory.
fn in_region(
    servers: &Servers,
    load: &Load,
    local_bytes: u64,
    policy: &str,
) -> Result<(Done, [u64; 2]), Failed> {
    let rack = Rack::load(servers.rack()).map_err(|error| error.to_string())?;
    let memory = servers.memory();
    let access = Access { way: Some(Way::TCP), memory: Some(&memory), ..Access::new("h1", "h2") };
    let config = RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(local_bytes) };
    let region = region::open(&rack, &access, &config).map_err(|error| match error {
        OpenError::Region(RegionError::Room(refused)) => Failed::Room(refused.to_string()),
        error => Failed::Other(error.to_string()),
    })?;
    let done = fixed::on_region(&region, load).map_err(|error| error.to_string())?;
    let statistics = region.statistics();
    let counters = &statistics.counters;
    let moved =
        [counters.fetched, counters.written_back].map(|blocks| blocks * u64::from(statistics.block_bytes));
    Ok((done, moved))
}

fn described(load: &Load) -> Value {
    json!({
        "records": load.records,
        "value_bytes": load.value_bytes,
        "mix": load.mix.name(),
        "operations": load.operations,
        "depth": load.depth,
        "seed": load.seed,
    })
}

fn text(load: &Load, rows: &[Row]) -> String {
    let mut table = Rows::new(&[
        "",
        ">local",
        ">local bytes",
        ">loaded s",
        ">operations a second",
        ">p50",
        ">p99",
        ">fetched",
        ">written",
    ]);
    let mut skipped = String::new();
    for row in rows {
        let Some(done) = &row.done else {
            let why = row.skipped.as_deref().unwrap_or_default();
            skipped += &format!("{} skipped: {why}\n", row.system);
            continue;
        };
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let [fetched, written] = [0, 1].map(|way| or_dash(row.moved_bytes.map(|moved| bytes(moved[way]))));
        table.push(vec![
            match row.depth {
                Some(depth) => format!("{}, {depth} under way", row.system),
                None => row.system.to_owned(),
            },
            or_dash(row.local_percent.map(|percent| format!("{percent} %"))),
            or_dash(row.local_bytes.map(bytes)),
            format!("{:.2}", done.load_ns as f64 / 1e9),
            count(done.per_s as u64),
            micros(done.p50_us),
            micros(done.p99_us),
            fetched,
            written,
        ]);
    }
    let head = format!(
        "YCSB {}: {} records with values of {} B, {} operations, {} under way, seed {}\n\n",
        load.mix.name(),
        count(load.records.into()),
        load.value_bytes,
        count(load.operations),
        load.depth,
        load.seed
    );
    let has_swap = rows.iter().any(|row| row.system == "swap to zram" && row.done.is_some());
    let mglru =
        if has_swap { format!("swap: multi-generational LRU is {}\n", swap::mglru()) } else { String::new() };
    format!("{head}{}\n{mglru}{skipped}", table.text())
}
