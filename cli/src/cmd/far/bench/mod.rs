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
use servers::{Failed, Servers, paused};
use std::net::SocketAddr;
use std::time::Duration;
use swap::Swap;

/// Time for a server that another command starts, and which may run under a tool that slows it down.
const STARTS: Duration = Duration::from_secs(600);
/// Bytes of the kernel's pages.
const PAGE_BYTES: u64 = 4_096;
/// Far memory that a server without records may need.
const EMPTY_BYTES: u64 = 64 << 20;
/// What a record may take in a server beside its fields, and a field beside its value.
const RECORD_BYTES: u64 = 256;
const FIELD_BYTES: u64 = 64;
/// What the kernel may have for a server, which the limit of a cgroup counts: page tables, stacks, sockets.
const KERNEL_BYTES: u64 = 2 << 20;
/// Local memory of a region beside its blocks, however few they are.
const SPARE_BYTES: u64 = 1 << 20;

/// Arguments of `p4rack far bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Use the Redis server at this address, which may still be starting, and start none
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    redis: Option<SocketAddr>,
    /// Number of records
    #[arg(long, default_value_t = 20_000, value_parser = crate::numbers::within::<u32>(1..=100_000_000))]
    records: u32,
    /// Fields of a record; an operation reads or writes one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u32>(1..=64))]
    fields: u32,
    /// Bytes of a field
    #[arg(long, value_name = "BYTES", default_value_t = 1_000,
        value_parser = crate::numbers::within::<u32>(8..=1 << 20))]
    field_bytes: u32,
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

/// One system with one size of local memory.
#[derive(Debug, Default, Serialize)]
struct Row {
    system: &'static str,
    /// Operations under way, if they are others than the load's.
    depth: Option<usize>,
    local_percent: Option<u64>,
    /// Local memory of the records, without the server's other memory.
    local_bytes: Option<u64>,
    /// All memory that the server may use, of a system that limits it.
    limit_bytes: Option<u64>,
    #[serde(flatten)]
    done: Option<Done>,
    /// Bytes that moved to local memory, and from there, while the records were written first.
    load_moved_bytes: Option<[u64; 2]>,
    /// The same during the operations.
    moved_bytes: Option<[u64; 2]>,
    /// Why it did not run.
    skipped: Option<String>,
}

impl Row {
    fn near(done: Done) -> Row {
        Row { system: "near memory", done: Some(done), ..Row::default() }
    }

    fn of(system: &'static str, (percent, bytes): (u64, u64), (done, moved): (Done, Moved)) -> Row {
        let operations = [0, 1].map(|way| moved.all[way].saturating_sub(moved.load[way]));
        Row {
            local_percent: Some(percent),
            local_bytes: Some(bytes),
            load_moved_bytes: Some(moved.load),
            moved_bytes: Some(operations),
            system,
            ..Row::near(done)
        }
    }

    /// A measured one, or one without room for it. Errors: another one failed.
    fn made(
        system: &'static str,
        local: (u64, u64),
        done: Result<(Done, Moved), Failed>,
    ) -> Result<Row, String> {
        match done {
            Ok(done) => Ok(Row::of(system, local, done)),
            Err(Failed::Room(why)) => Ok(Row::skipped(system, format!("with {} %: {why}", local.0))),
            Err(Failed::Other(why)) => Err(format!("{system}, {} %: {why}", local.0)),
        }
    }

    fn skipped(system: &'static str, why: String) -> Row {
        Row { system, skipped: Some(why), ..Row::default() }
    }
}

/// Bytes that moved to local memory, and from there, since the start.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// Until all records were written.
    load: [u64; 2],
    /// Until the last operation.
    all: [u64; 2],
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    if args.records.checked_mul(args.fields).is_none() {
        return Err(format!("--records × --fields: more than {} fields in all", u32::MAX));
    }
    let load = Load {
        records: args.records,
        fields: args.fields,
        field_bytes: args.field_bytes,
        mix: args.mix,
        operations: args.operations,
        depth: args.depth,
        seed: args.seed,
    };
    let rows = match args.redis {
        Some(at) => {
            let done = fixed::on_redis(at, &load, STARTS, || paused(|| Ok(())))
                .map_err(|error| error.to_string())?;
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
    let fields = u64::from(load.fields);
    let record_bytes = load.record_bytes() + fields * FIELD_BYTES + RECORD_BYTES;
    let far_bytes = EMPTY_BYTES + 4 * records * record_bytes;
    let servers = Servers::start(far_bytes.next_power_of_two(), &args.policy)?;
    let of = |percent: u64, all: u64| (percent, all * percent / 100);
    let (done, near_bytes) = servers.near(load)?;
    let mut rows = vec![Row::near(done)];
    // The far memory in use decides how much of it is local, and of near memory by swap.
    let mut used_bytes = None;
    match check_privileges() {
        Ok(()) => {
            let (done, moved, in_use_bytes) = servers.far(load, far_bytes)?;
            used_bytes = Some(in_use_bytes);
            rows.push(Row::of("far run", (100, in_use_bytes), (done, moved)));
            for percent in &args.local {
                let local = of(*percent, in_use_bytes);
                // Little local memory has no room for a mapping's tables and a region's.
                let done = servers.far(load, local.1).map(|(done, moved, _)| (done, moved));
                rows.push(Row::made("far run", local, done)?);
            }
        }
        Err(error) => rows.push(Row::skipped("far run", format!("needs userfaultfd: {error}"))),
    }
    let (region_bytes, index_bytes) = fixed::region_bytes(load);
    for percent in [100].iter().chain(&args.local) {
        // All of it local has its tables too, and blocks that are set aside.
        let all = region_bytes + index_bytes;
        let local = if *percent == 100 { (100, 2 * all + SPARE_BYTES) } else { of(*percent, all) };
        // Where each record is, the client knows by a table of its own.
        let cached_bytes = local.1.saturating_sub(index_bytes);
        let row = Row::made("region", local, in_region(&servers, load, cached_bytes, &args.policy))?;
        rows.push(Row { depth: Some(1), ..row });
    }
    let Some(used_bytes) = used_bytes else {
        let why =
            "needs userfaultfd, which shows how much of the server's memory the records take".to_owned();
        rows.push(Row::skipped("swap to zram", why));
        return Ok(rows);
    };
    for percent in &args.local {
        let local = of(*percent, used_bytes);
        // The other memory of the server has room beside that, and what the kernel has for it.
        let beside = near_bytes.saturating_sub(used_bytes) + KERNEL_BYTES;
        let limit_bytes = local.1 + beside;
        match Swap::open(2 * near_bytes, limit_bytes) {
            Ok(swap) => {
                let row = Row::made("swap to zram", local, servers.swapped(load, &swap))?;
                rows.push(Row { limit_bytes: Some(limit_bytes), ..row });
            }
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
) -> Result<(Done, Moved), Failed> {
    let rack = Rack::load(servers.rack()).map_err(|error| error.to_string())?;
    let memory = servers.memory();
    let access = Access { way: Some(Way::TCP), memory: Some(&memory), ..Access::new("h1", "h2") };
    let config =
        RegionConfig { policy: policy.to_owned(), starts_zeroed: true, ..RegionConfig::new(local_bytes) };
    let region = region::open(&rack, &access, &config).map_err(|error| match error {
        OpenError::Region(RegionError::Room(refused)) => Failed::Room(refused.to_string()),
        error => Failed::Other(error.to_string()),
    })?;
    let moved = || {
        let statistics = region.statistics();
        [statistics.fetched_bytes(), statistics.written_bytes()]
    };
    let mut at_load = [0; 2];
    let done = fixed::on_region(&region, load, || {
        at_load = paused(|| Ok(moved()))?;
        Ok(())
    });
    let done = done.map_err(|error| error.to_string())?;
    Ok((done, Moved { load: at_load, all: moved() }))
}

fn described(load: &Load) -> Value {
    json!({
        "records": load.records,
        "fields": load.fields,
        "field_bytes": load.field_bytes,
        "mix": load.mix.name(),
        "operations": load.operations,
        "depth": load.depth,
        "seed": load.seed,
    })
}

/// What a record has.
fn shape(load: &Load) -> String {
    match load.fields {
        1 => format!("{} B", load.field_bytes),
        fields => format!("{fields} fields of {} B, of which an operation uses one", load.field_bytes),
    }
}

fn text(load: &Load, rows: &[Row]) -> String {
    let mut table = Rows::new(&[
        "",
        ">local",
        ">local bytes",
        ">of memory",
        ">loaded s",
        ">moved",
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
        let loading = row.load_moved_bytes.map(|moved| bytes(moved.iter().sum()));
        table.push(vec![
            match row.depth {
                Some(depth) => format!("{}, {depth} under way", row.system),
                None => row.system.to_owned(),
            },
            or_dash(row.local_percent.map(|percent| format!("{percent} %"))),
            or_dash(row.local_bytes.map(bytes)),
            or_dash(row.limit_bytes.map(bytes)),
            format!("{:.2}", done.load_ns as f64 / 1e9),
            or_dash(loading),
            count(done.per_s as u64),
            micros(done.p50_us),
            micros(done.p99_us),
            fetched,
            written,
        ]);
    }
    let head = format!(
        "YCSB {}: {} records of {}, {} operations, {} under way, seed {}\n\n",
        load.mix.name(),
        count(load.records.into()),
        shape(load),
        count(load.operations),
        load.depth,
        load.seed
    );
    let has_swap = rows.iter().any(|row| row.system == "swap to zram" && row.done.is_some());
    let mglru =
        if has_swap { format!("swap: multi-generational LRU is {}\n", swap::mglru()) } else { String::new() };
    format!("{head}{}\n{mglru}{skipped}", table.text())
}
