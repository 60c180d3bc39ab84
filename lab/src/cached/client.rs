//! A store's client as a process on a host of a rack.

use super::claim::Claim;
use super::extents::{Extent, Holding};
use super::setup::Setup;
use super::store::Cached;
use super::takeover::{Taken, inspect};
use crate::error::LabError;
use crate::sys;
use crate::ways::End;
use crate::workload::{Span, print_result};
use crate::ycsb::{Client, ClientConfig, ClientReport, Contents, MixReport};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Service;
use p4rack_hosts::region::Statistics;
use p4rack_hosts::remote::{Attachment, Held, Joined, Part, Remote};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The line that reports that a region is open, with its number among the percentages. The answer is when its mixes begin.
pub(super) const OPEN: &str = "open";
/// The line that reports until when a client's extents are held, on the monotonic clock; the last one counts.
pub(super) const HELD: &str = "held";
/// Time between two looks at what has come, beside operations.
const LOOK: Nanos = Nanos::from_millis(20);
/// Time that other clients may take for their records before one is killed.
const OTHERS: Nanos = Nanos::from_secs(120);
/// Longest time, beyond the lease, that a client waits for extents of a killed one.
const TAKEOVER: Nanos = Nanos::from_secs(30);

/// A pool's service, and the client's number there.
#[derive(Clone, Debug)]
pub struct Lending {
    /// Its address, HOST:PORT.
    pub addr: String,
    /// Number of the compute node.
    pub holder: u32,
}

/// Behaviour of a client after its mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ends.
    Ends,
    /// It holds its extents until its standard input ends.
    Holds,
    /// It works until it is killed.
    Dies,
    /// It works until it has this many more extents of the pool, and inspects their content.
    Takes(u64),
}

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct ClientTask {
    /// Its way to the region's memory.
    pub end: End,
    /// Name of the memory node.
    pub server: String,
    /// Number of its region at the memory node, and of all regions there.
    pub part: (u64, u64),
    /// The pool whose extents hold the region; `None` if a memory node holds it.
    pub lending: Option<Lending>,
    /// Duration of each mix with each percentage.
    pub each: Nanos,
    /// Seed of keys and operations.
    pub seed: u64,
    /// Its behaviour after the mixes.
    pub fate: Fate,
}

/// Counters of a region during a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CacheReport {
    /// Uses of blocks.
    pub accesses: u64,
    /// Of them, those that waited for a fetch.
    pub waited: u64,
    /// Bytes that were fetched.
    pub fetched_bytes: u64,
    /// Bytes that were written back.
    pub written_back_bytes: u64,
    /// Bytes of local memory, blocks and tables: the most that was seen.
    pub local_bytes: u64,
    /// The limit.
    pub limit_bytes: u64,
}

/// Results of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// All mixes with the first percentage, then with the next one.
    pub report: ClientReport,
    /// The same order.
    pub caches: Vec<CacheReport>,
    /// All records at the end, in a newly opened region.
    pub contents: Contents,
    /// Extents of its region, if it has any.
    pub claims: Vec<Claim>,
}

impl CacheReport {
    fn between(before: &Statistics, after: &Statistics, limit_bytes: u64) -> CacheReport {
        let (from, to, block) = (&before.counters, &after.counters, u64::from(after.block_bytes));
        CacheReport {
            accesses: to.accesses() - from.accesses(),
            waited: to.waited() - from.waited(),
            fetched_bytes: (to.fetched - from.fetched) * block,
            written_back_bytes: (to.written_back - from.written_back) * block,
            local_bytes: before.local_bytes.max(after.local_bytes),
            limit_bytes,
        }
    }
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::measurement("the store's client", error)
}

/// A client's memory.
struct Opened {
    way: Box<dyn Remote>,
    _held: Vec<Held>,
    pool: Option<(Holding, Vec<Claim>)>,
}

fn open(rack: &Rack, setup: &Setup<'_>, task: &ClientTask) -> Result<Opened, LabError> {
    let (own, of) = task.part;
    if let Some(Lending { addr, holder }) = &task.lending {
        let wanted = (setup.extents(), setup.cache.pool.extent_bytes);
        let attachment =
            Attachment { patience: p4rack_memory::patience(rack), ..task.end.attachment.clone() };
        let (holding, extents) = Holding::begin(addr, *holder, wanted, attachment)?;
        let claims = extents.iter().map(|extent| extent.claim).collect();
        let (ways, held) = extents.into_iter().map(|Extent { way, held, .. }| (way, held)).unzip();
        let way = Part::new(Joined::new(ways).map_err(failed)?, 0, setup.layout.region_bytes());
        let way = Box::new(way.map_err(failed)?);
        return Ok(Opened { way, _held: held, pool: Some((holding, claims)) });
    }
    let service = task.end.way.definition().service;
    let shape = setup.shape(task.end.way, of);
    let (way, held) = task.end.clone().open_at(rack, &task.server, shape)?;
    let bytes = setup.layout.region_bytes();
    let start = if matches!(service, Service::Node | Service::Bytes) { own * bytes } else { 0 };
    let way = Part::new(way, start, bytes).map_err(failed)?;
    Ok(Opened { way: Box::new(way), _held: vec![held], pool: None })
}

/// A line that the parent sends. Errors: it is gone.
fn begin_ns() -> Result<u64, LabError> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(LabError::system("reading when to begin"))?;
    line.trim().parse().map_err(|_| failed("was not told when to begin"))
}

fn say(line: &str) -> Result<(), LabError> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::system("telling how far it is"))
}

/// Uses the store of a description, from the calling thread's network namespace, and prints the results as JSON.
pub fn use_store(path: &Path, task: &ClientTask) -> Result<(), LabError> {
    let rack = Rack::load(path)?;
    let setup = Setup::of(&rack)?;
    let Opened { way, _held, pool } = open(&rack, &setup, task)?;
    let (holding, claims) = pool.map_or((None, Vec::new()), |(holding, claims)| (Some(holding), claims));
    let first = setup.cache.local_percent.first().copied().unwrap_or(100);
    let mut store = Cached::new(way, setup.layout, &setup.region(first)).map_err(failed)?;
    let (mixes, records) = (setup.mixes().to_vec(), setup.store.records);
    let config = ClientConfig { mixes, records, depth: 1, seed: task.seed, tells: true };
    let mut client = Client::new(&mut store, &config);
    client.load().map_err(failed)?;
    let outcome = measure(&mut client, &setup, task.each)?;
    print_result(&Outcome { claims, ..outcome }).map_err(LabError::system("telling the result"))?;
    let Some(holding) = holding else { return Ok(()) };
    match task.fate {
        Fate::Ends => Ok(()),
        Fate::Holds => {
            let ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            ended.map(drop).map_err(LabError::system("waiting for the end"))
        }
        Fate::Dies => {
            let mut said = Nanos::ZERO;
            loop {
                let until = holding.until();
                if until != said {
                    say(&format!("{HELD} {}", until.0))?;
                    said = until;
                }
                client.mix(Mix::A, clock::now() + LOOK).map_err(failed)?;
            }
        }
        Fate::Takes(count) => {
            let lease = Nanos::from_secs(setup.cache.pool.lease_s.into());
            let taken = take(&mut client, &holding, count, lease, &setup)?;
            print_result(&taken).map_err(LabError::system("telling what was taken over"))
        }
    }
}

/// Runs the mixes with each percentage, and reads all records at the end.
fn measure(client: &mut Client<'_, Cached>, setup: &Setup<'_>, each: Nanos) -> Result<Outcome, LabError> {
    let (mut reports, mut caches, mut lost_writes) = (Vec::new(), Vec::new(), 0);
    let mut wrong = 0;
    let reopen = |client: &mut Client<'_, Cached>, percent| {
        client.store_mut().reopen(&setup.region(percent)).map_err(failed)
    };
    for (nth, (percent, region)) in setup.regions().enumerate() {
        reopen(client, percent)?;
        // All writes are in remote memory. Then all that fits is local, by every way and with every percentage.
        let records = u64::from(setup.store.records);
        let all = client.contents().map_err(failed)?;
        // Later ones have more versions than records.
        let missing = records.saturating_sub(all.versions + all.lost + all.wrong);
        (lost_writes, wrong) = (lost_writes + all.lost + missing, wrong + all.wrong);
        if let Some(mix) = setup.mixes().first() {
            // A number of operations, not a time: slow ways have caches as warm as fast ones.
            let warm = client.operations(*mix, records).map_err(failed)?;
            (lost_writes, wrong) = (lost_writes + warm.lost, wrong + warm.wrong);
        }
        say(&format!("{OPEN} {nth}"))?;
        let mut start_ns = begin_ns()?;
        for mix in setup.mixes() {
            let before = client.store().statistics().map_err(failed)?;
            let span = Span { start_ns, duration_ns: each.0 };
            let report = client.mixes(&[*mix], span).map_err(failed)?;
            let after = client.store().statistics().map_err(failed)?;
            caches.push(CacheReport::between(&before, &after, region.local_bytes));
            reports.extend(report);
            start_ns += each.0;
        }
    }
    // Nothing is local, so these are the bytes that remote memory has.
    let last = setup.cache.local_percent.last().copied().unwrap_or(100);
    reopen(client, last)?;
    let contents = client.contents().map_err(failed)?;
    if let Some(MixReport { wrong: of_last, .. }) = reports.last_mut() {
        *of_last += wrong;
    }
    let report = ClientReport { mixes: reports, writes: client.writes(), lost_writes };
    Ok(Outcome { report, caches, contents, claims: Vec::new() })
}

/// Works until the pool has no more extents for it, looks at those that came, and then at all of its own records.
fn take(
    client: &mut Client<'_, Cached>,
    holding: &Holding,
    count: u64,
    lease: Nanos,
    setup: &Setup<'_>,
) -> Result<Taken, LabError> {
    let (mut taken, mut extents, mut operations) = (Taken::default(), Vec::new(), MixReport::default());
    let until = clock::now() + OTHERS + lease + TAKEOVER;
    holding.take();
    while (extents.len() as u64) < count && clock::now() < until {
        let report = client.mix(Mix::A, clock::now() + LOOK).map_err(failed)?;
        (operations.lost, operations.wrong) =
            (operations.lost + report.lost, operations.wrong + report.wrong);
        extents.extend(holding.taken()?);
    }
    for extent in extents {
        inspect(extent, &mut taken)?;
    }
    // Each record is checked to have the version that this client wrote last, in remote memory.
    let last = setup.cache.local_percent.last().copied().unwrap_or(100);
    client.store_mut().reopen(&setup.region(last)).map_err(failed)?;
    let contents = client.contents().map_err(failed)?;
    taken.lost = operations.lost + contents.lost;
    taken.wrong = operations.wrong + contents.wrong;
    Ok(taken)
}

/// When the mixes of a region may begin, if all clients are as far as this.
pub(super) fn lead_ns() -> u64 {
    sys::monotonic_ns() + 50_000_000
}
