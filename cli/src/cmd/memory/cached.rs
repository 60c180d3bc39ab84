//! `p4rack memory bench --local`: a region with a cache in local memory, used as a trace says.

use super::{There, in_words, not_opened};
use crate::cmd::cache::load::Reading;
use crate::cmd::cache::{block_bytes, names};
use p4rack_cache::{Build, PARTS, POLICIES};
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_fabric::remote::Service;
use p4rack_lab::rows::Rows;
use p4rack_memory::OpenError;
use p4rack_memory::region::{self, RegionConfig, RemoteRegion, Statistics};
use p4rack_netdev::clock;
use p4rack_report::text;
use p4rack_trace::{Access, LINE_BYTES, PAGE_BYTES, Places};
use p4rack_wire::Histogram;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Options of the cache.
#[derive(clap::Args, Debug)]
pub struct Cache {
    /// With --name: measure a region with this much local memory as its cache, e.g. "64 MiB", tables included
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, requires_all = ["name", "trace"])]
    pub local: Option<u64>,
    /// With --local: trace, or recipe of a synthetic one (.toml), to replay; reads are checked
    #[arg(long, value_name = "TRACE", requires = "local")]
    trace: Option<PathBuf>,
    /// With --local: replay the first N accesses only
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u64>(1..), requires = "local")]
    first: Option<u64>,
    /// With --local: policy of the cache
    #[arg(long, default_value = "runs", value_parser = names(online()), requires = "local")]
    policy: String,
    /// With --local: bytes of a block, a power of two from 64 to 4096 [default: the policy's own]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes, requires = "local")]
    block: Option<u32>,
}

/// Names of the policies that do not know the future.
pub(in crate::cmd) fn online() -> impl Iterator<Item = &'static str> {
    let all = POLICIES.iter().chain(PARTS).filter(|one| matches!(one.build, Build::Online(_)));
    all.map(|one| one.name)
}

/// Accesses to memory without gaps, and its length.
struct Trace {
    accesses: Vec<Access>,
    bytes: u64,
}

/// Result of a run.
struct Outcome {
    statistics: Statistics,
    latencies: Histogram,
    flush_us: f64,
    /// Accesses all of whose bytes were local.
    hits: u64,
    /// Reads of other bytes than were written.
    wrong: u64,
}

/// Runs the command.
pub(super) fn run(there: &There, cache: &Cache, local_bytes: u64) -> Result<(), String> {
    let file = cache.trace.as_deref().ok_or("--local needs --trace")?;
    let trace = read(file, cache.first.unwrap_or(u64::MAX))?;
    let rack = there.here.rack()?;
    let mut access = there.access();
    let way = p4rack_memory::way(&rack, access.way).map_err(in_words)?;
    if way.definition().service == Service::None && access.reserve_bytes == 0 {
        access.reserve_bytes = trace.bytes;
    }
    let config = RegionConfig {
        policy: cache.policy.clone(),
        block_bytes: cache.block,
        ..RegionConfig::new(local_bytes)
    };
    let region = region::open(&rack, &access, &config)
        .map_err(|error: OpenError| not_opened(&error, error.not_here()))?;
    if region.region_bytes() < trace.bytes {
        return Err(format!(
            "{}: it touches {} bytes, and the region has {}: serve more, or use --first",
            file.display(),
            trace.bytes,
            region.region_bytes()
        ));
    }
    let outcome = make(&region, &trace).map_err(in_words)?;
    match there.json {
        true => println!("{}", figures(&outcome, &trace, &config.policy, way.name())),
        false => print!("{}", table(&outcome, &trace, &config.policy, way.name())),
    }
    match outcome.wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} reads returned other bytes than were written")),
    }
}

/// A trace's accesses, its pages moved together.
fn read(file: &Path, first: u64) -> Result<Trace, String> {
    let (mut accesses, mut left) = (Vec::new(), first);
    Reading::default().each(file, &mut |access| {
        accesses.push(access);
        left -= 1;
        left > 0
    })?;
    let places = Places::new(accesses.iter().flat_map(Access::lines));
    for access in &mut accesses {
        let line = places.of(access.address / LINE_BYTES);
        let line = line.ok_or_else(|| format!("{}: a page got lost", file.display()))?;
        access.address = line * LINE_BYTES + access.address % LINE_BYTES;
    }
    let bytes = places.pages() as u64 * PAGE_BYTES;
    match bytes {
        0 => Err(format!("{}: no accesses", file.display())),
        _ => Ok(Trace { accesses, bytes }),
    }
}

/// Makes all accesses, flushes, and checks the reads. Bytes that were never written have to stay unchanged.
fn make(region: &RemoteRegion, trace: &Trace) -> Result<Outcome, region::RegionError> {
    let length = trace.bytes as usize;
    let (mut plain, mut known) = (vec![0u8; length], vec![false; length]);
    let (mut latencies, mut wrong, mut buffer) = (Histogram::new(), 0, Vec::new());
    let waits = || region.counters().waited();
    let (mut hits, mut before) = (0, waits());
    for (nth, access) in trace.accesses.iter().enumerate() {
        let start = access.address as usize;
        let place = start..(start + access.bytes as usize).min(length);
        buffer.clear();
        buffer.resize(place.len(), nth as u8);
        let (begun, here) = (clock::now(), &mut plain[place.clone()]);
        if access.write {
            region.write(access.address, &buffer)?;
            latencies.record((clock::now() - begun).0);
            here.copy_from_slice(&buffer);
        } else {
            region.read(access.address, &mut buffer)?;
            latencies.record((clock::now() - begun).0);
            let mut each = here.iter().zip(&buffer).zip(&known[place.clone()]);
            wrong += u64::from(each.any(|((here, read), known)| *known && here != read));
            here.copy_from_slice(&buffer);
        }
        known[place].fill(true);
        let after = waits();
        hits += u64::from(after == before);
        before = after;
    }
    let begun = clock::now();
    region.flush()?;
    let flush_us = (clock::now() - begun).0 as f64 / 1e3;
    Ok(Outcome { statistics: region.statistics(), latencies, flush_us, hits, wrong })
}

/// Share of accesses that waited for no block. Its blocks don't count: an access has more of them if they are small.
fn hit_rate(outcome: &Outcome, trace: &Trace) -> f64 {
    outcome.hits as f64 / trace.accesses.len() as f64
}

fn moved(statistics: &Statistics) -> [u64; 2] {
    let block_bytes = u64::from(statistics.block_bytes);
    [statistics.counters.fetched, statistics.counters.written_back].map(|blocks| blocks * block_bytes)
}

fn figures(outcome: &Outcome, trace: &Trace, policy: &str, way: &str) -> Value {
    let (statistics, latencies) = (&outcome.statistics, &outcome.latencies);
    let (counters, [fetched, written]) = (&statistics.counters, moved(statistics));
    let us = |quantile| latencies.at(quantile) as f64 / 1e3;
    json!({
        "way": way,
        "policy": policy,
        "accesses": trace.accesses.len(),
        "touched_bytes": trace.bytes,
        "local_bytes": statistics.local_bytes,
        "tables_bytes": statistics.tables_bytes,
        "block_bytes": statistics.block_bytes,
        "hit_rate": hit_rate(outcome, trace),
        "from_host": counters.from_host,
        "from_device": counters.from_device,
        "from_remote": counters.waited(),
        "fetched_bytes": fetched,
        "written_bytes": written,
        "p50_us": us(0.5),
        "p99_us": us(0.99),
        "p999_us": us(0.999),
        "flush_us": outcome.flush_us,
        "wrong": outcome.wrong,
    })
}

fn table(outcome: &Outcome, trace: &Trace, policy: &str, way: &str) -> String {
    let (statistics, latencies) = (&outcome.statistics, &outcome.latencies);
    let [fetched, written] = moved(statistics);
    let mut rows = Rows::new(&["", ">"]);
    let mut row = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    row("accesses", text::count(trace.accesses.len() as u64));
    row("touched", text::bytes(trace.bytes));
    row("local memory, with tables", text::bytes(statistics.local_bytes));
    row("tables", text::bytes(statistics.tables_bytes));
    row("blocks", text::bytes(statistics.block_bytes.into()));
    row("hit rate", format!("{:.2} %", 100.0 * hit_rate(outcome, trace)));
    row("uses of blocks in whole pages", text::count(statistics.counters.from_host));
    row("fetched", text::bytes(fetched));
    row("written back", text::bytes(written));
    for (what, quantile) in [("access, p50", 0.5), ("access, p99", 0.99), ("access, p99.9", 0.999)] {
        row(what, text::micros(latencies.at(quantile) as f64 / 1e3));
    }
    row("flush at the end", text::micros(outcome.flush_us));
    row("wrong reads", text::count(outcome.wrong));
    format!("{policy} over {way}\n{}", rows.text())
}
