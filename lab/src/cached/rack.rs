//! The stores as `up`'s workload: memory nodes and a client on each compute node are processes of a rack.

use super::client::{CacheReport, HELD, OPEN, Outcome, lead_ns};
use super::pool::{self, Serving};
use super::setup::Setup;
use super::takeover::{self, Owner, Taken};
use crate::control;
use crate::error::LabError;
use crate::measure::Plan;
use crate::process::{Process, own_binary, pause};
use crate::progress::Progress;
use crate::results::{CacheResult, SchemeResult, Takeover};
use crate::running::Running;
use crate::store::figures::{self, Measured};
use crate::sys;
use crate::ways::Reach;
use crate::workload::{Span, seed};
use crate::ycsb::{Contents, SoFar};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::StoreParameters;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_fabric::remote::{Service, Way};
use p4rack_hosts::region::{RegionError, RemoteRegion};
use p4rack_hosts::remote::Local;
use p4rack_report::text;
use p4rack_wire::Nanos;
use serde::de::DeserializeOwned;
use std::io::{PipeWriter, Write};
use std::time::Duration;

/// Time limit for writing all records, and for reading them after a region was opened.
const ALL_RECORDS: Duration = Duration::from_secs(120);
/// Time limit for a takeover, beyond the lease and the time to check the extents.
const TAKEOVER: Duration = Duration::from_secs(60);
/// Bytes of the pool for which that takes a second: three passes over them.
const LOOK_BYTES: u64 = 2 << 20;
/// Time limit for a client to say until when it holds its extents.
const HELD_LIMIT: Duration = Duration::from_secs(20);
/// Time for which all clients work before one is killed.
const BEFORE_KILL: Duration = Duration::from_millis(200);

/// Checks that regions of the rack's stores, as it is during a run, can be opened by a way.
pub(crate) fn check(rack: &Rack, way: Way) -> Result<(), LabError> {
    let setup = Setup::of(rack)?;
    let unfit = |why: String| Err(LabError::Unfit(why));
    for (percent, region) in setup.regions() {
        let opened = RemoteRegion::new(Box::new(Local::new(setup.layout.region_bytes())), &region);
        match opened {
            Ok(_) => {}
            Err(RegionError::Room(refused)) => {
                return unfit(format!(
                    "workload.cache: local_percent {percent} of a region of {} is {}, with policy {}: {refused}",
                    text::bytes(setup.layout.region_bytes()),
                    text::bytes(region.local_bytes),
                    region.policy
                ));
            }
            Err(error) => return unfit(format!("workload.cache.{error}")),
        }
    }
    if way.definition().service == Service::Node {
        for server in &setup.cache.pool.memory {
            p4rack_memory::memory_node(rack, server)?;
        }
    }
    let Some(cowbird) = rack.protocol::<Cowbird>() else { return Ok(()) };
    let needed = setup.shape(way, 1).reads.ring_bytes() / 2;
    if needed > cowbird.message_bytes_max.into() {
        return unfit(format!(
            "{way}: rings of {} bytes are needed, and the switch takes twice cowbird.message_bytes_max, which is {}: set that to \
             {needed}",
            2 * needed,
            cowbird.message_bytes_max
        ));
    }
    Ok(())
}

/// A client's process, and its standard input, which carries the time to begin.
struct ClientProcess<'a> {
    host: &'a str,
    process: Process,
    orders: PipeWriter,
}

/// Runs the workload.
pub(crate) fn run(
    running: &mut Running<'_>,
    way: Way,
    plan: Plan<'_>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let setup = Setup::of(running.rack)?;
    let hosts = plan.workload.ends().1;
    let each = setup.each(Nanos(plan.window_ns));
    let early = control::start_stats_anew(running)?;
    let Serving { processes, lends } = pool::serve(running, way, &setup, hosts.len())?;
    let killed = plan.workload.kill.as_ref().filter(|_| lends.is_some());
    let killed = killed.and_then(|kill| hosts.iter().position(|host| *host == kill.host));
    let started = hosts.iter().enumerate().map(|(nth, host)| {
        let fate = fate(&setup, hosts.len(), nth, killed);
        start_client(running, way, plan, (nth, host), (each, lends.as_deref(), fate))
    });
    let mut clients: Vec<ClientProcess<'_>> = started.collect::<Result<_, _>>()?;
    running.serving.extend(processes);
    let mut window: Option<Span> = None;
    for (nth, percent) in setup.cache.local_percent.iter().enumerate() {
        let end_ns = step(running, &mut clients, (nth, *percent), &setup, each, progress)?;
        let took_ns = each.0 * setup.mixes().len() as u64;
        let start_ns = window.map_or(end_ns - took_ns, |window| window.start_ns);
        window = Some(Span { start_ns, duration_ns: end_ns - start_ns });
    }
    let window = window.ok_or_else(|| LabError::Unfit("workload.cache.local_percent is empty".to_owned()))?;
    let windowed = control::stats(running)?;
    let records = text::count(u64::from(setup.store.records) * hosts.len() as u64);
    let name = running.name.clone();
    let outcomes: Vec<Outcome> = progress.step(
        &format!("{name}: reading {records} records"),
        || clients.iter_mut().map(|client| told(client, running, 0, ALL_RECORDS)).collect(),
        |_| format!("{name}: {records} records read again"),
    )?;
    let takeover = match killed {
        None => None,
        Some(killed) => Some(take_over(running, &setup, &mut clients, &outcomes, killed, progress)?),
    };
    let last = control::stats(running)?;
    let alive = clients.iter_mut().enumerate().filter(|(nth, _)| Some(*nth) != killed);
    alive.map(|(_, client)| &mut client.process).try_for_each(Process::check_not_failed)?;
    let (takeover, extra) = takeover.map_or((None, Taken::default()), |(told, taken)| (Some(told), taken));
    let measured = Measured {
        reports: &outcomes.iter().map(|outcome| outcome.report.clone()).collect::<Vec<_>>(),
        contents: outcomes.iter().fold(Contents::default(), |all, outcome| Contents {
            versions: all.versions + outcome.contents.versions,
            lost: all.lost + outcome.contents.lost,
            wrong: all.wrong + outcome.contents.wrong,
        }),
        caches: caches(&setup, &outcomes)?,
        window,
        switch: [early, windowed, last],
        bulk: None,
        server: None,
    };
    let mut result = figures::result(running, &together(&setup, hosts.len()), plan, measured, progress)?;
    if let Some(store) = &mut result.store {
        (store.lost, store.wrong) = (store.lost + extra.lost, store.wrong + extra.wrong);
        store.takeover = takeover;
    }
    Ok(result)
}

/// Behaviour of a client after its mixes, as a word of its options.
fn fate(setup: &Setup<'_>, clients: usize, nth: usize, killed: Option<usize>) -> String {
    let heir = killed.map(|killed| usize::from(killed == 0));
    match killed {
        Some(killed) if killed == nth => "dies".to_owned(),
        _ if heir == Some(nth) => {
            // All that others than the killed one do not hold.
            let held = setup.extents() * (clients as u64 - 1);
            (setup.pool_extents(clients) - held).to_string()
        }
        // It gives nothing back before the heir has all.
        Some(_) => "holds".to_owned(),
        None => "ends".to_owned(),
    }
}

fn start_client<'a>(
    running: &Running<'_>,
    way: Way,
    plan: Plan<'_>,
    (nth, host): (usize, &'a str),
    (each, lends, fate): (Nanos, Option<&str>, String),
) -> Result<ClientProcess<'a>, LabError> {
    let setup = Setup::of(running.rack)?;
    let place = setup.place(way, nth);
    let of = setup.regions_at(way, place.server, plan.workload.ends().1.len());
    let mut args =
        vec!["workload".to_owned(), "cached-client".to_owned(), running.path.display().to_string()];
    args.extend(Reach { running, way, server: place.server }.client(host)?);
    let mut push = |option: &str, value: String| args.extend([option.to_owned(), value]);
    push("--server", place.server.to_owned());
    push("--part", format!("{}/{of}", place.nth));
    push("--each-ns", each.0.to_string());
    push("--seed", seed(plan.seed, nth + 1).to_string());
    push("--fate", fate);
    if let Some(addr) = lends {
        push("--balloon", addr.to_owned());
        push("--holder", (nth + 1).to_string());
    }
    let (reader, orders) = std::io::pipe().map_err(LabError::system("a pipe to a client"))?;
    let mut command = own_binary();
    command.args(args).stdin(reader);
    let process =
        Process::start_program(&format!("the client on {host}"), running.namespace(host)?, command)?;
    Ok(ClientProcess { host, process, orders })
}

/// Lets all clients run the mixes with a percentage, from the same time on. Returns when that ends.
fn step(
    running: &mut Running<'_>,
    clients: &mut [ClientProcess<'_>],
    (nth, percent): (usize, u32),
    setup: &Setup<'_>,
    each: Nanos,
    progress: &Progress,
) -> Result<u64, LabError> {
    let name = running.name.clone();
    let doing = match nth {
        0 => format!("{name}: writing {} records by each client", text::count(setup.store.records.into())),
        _ => format!("{name}: opening regions with {percent} % local"),
    };
    let word = format!("{OPEN} {nth}");
    progress.step(
        &doing,
        || {
            let mut all = clients.iter_mut();
            all.try_for_each(|client| {
                client.process.wait_for_line_beside(&word, ALL_RECORDS, &mut || running.check())
            })
        },
        |()| format!("{name}: regions with {percent} % local are open"),
    )?;
    let start_ns = lead_ns();
    for client in clients.iter_mut() {
        writeln!(client.orders, "{start_ns}").map_err(LabError::system("telling a client when to begin"))?;
    }
    let end_ns = start_ns + each.0 * setup.mixes().len() as u64;
    progress.watch(end_ns, || {
        running.check()?;
        clients.iter_mut().try_for_each(|client| client.process.check_not_failed())?;
        let so_far = clients.iter().filter_map(|client| SoFar::latest(&client.process.output()));
        let operations: u64 = so_far.map(|so_far| so_far.operations).sum();
        Ok(format!("{name}, {percent} % local: {} operations", text::count(operations)))
    })?;
    Ok(end_ns)
}

/// The client's result with this number, as soon as it prints it.
fn told<T: DeserializeOwned>(
    client: &mut ClientProcess<'_>,
    running: &mut Running<'_>,
    nth: usize,
    limit: Duration,
) -> Result<T, LabError> {
    let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
    let process = &mut client.process;
    loop {
        let output = process.output();
        let complete = output.rfind('\n').map_or("", |end| &output[..end]);
        if let Some(line) = complete.lines().filter(|line| line.starts_with('{')).nth(nth) {
            return serde_json::from_str(line)
                .map_err(|error| process.failure(&format!("wrote no result: {error}")));
        }
        running.check()?;
        if process.ended().is_some() {
            return Err(process.failure("ended without a result"));
        }
        if sys::monotonic_ns() >= until_ns {
            return Err(process.failure(&format!("has no result after {} s", limit.as_secs())));
        }
        pause(Duration::from_millis(5))?;
    }
}

/// Until when a client's extents are held at least, as it has said last.
fn held_ns(output: &str) -> Option<u64> {
    let complete = output.rfind('\n').map_or("", |end| &output[..end]);
    let last = complete.lines().rev().find_map(|line| line.strip_prefix(HELD));
    last.and_then(|ns| ns.trim().parse().ok())
}

/// Kills a client, and waits until another one has its memory.
fn take_over(
    running: &mut Running<'_>,
    setup: &Setup<'_>,
    clients: &mut [ClientProcess<'_>],
    outcomes: &[Outcome],
    killed: usize,
    progress: &Progress,
) -> Result<(Takeover, Taken), LabError> {
    let name = running.name.clone();
    let heir = usize::from(killed == 0);
    pause(BEFORE_KILL)?;
    let process = &mut clients[killed].process;
    process.wait_for_line_beside(HELD, HELD_LIMIT, &mut || running.check())?;
    process.check_running()?;
    process.kill();
    let kill_ns = sys::monotonic_ns();
    let held_ns = held_ns(&process.output());
    let held_ns = held_ns.ok_or_else(|| process.failure("did not say until when its extents are held"))?;
    let (host, by) = (clients[killed].host, clients[heir].host);
    progress.line(&format!("✓ {name}: killed the client on {host}"));
    let lease = Duration::from_secs(setup.cache.pool.lease_s.into());
    let pool_bytes = setup.pool_extents(clients.len()) * setup.cache.pool.extent_bytes;
    let limit = lease + TAKEOVER + Duration::from_secs(pool_bytes / LOOK_BYTES);
    let taken: Taken = progress.step(
        &format!("{name}: {by} waits for the memory of {host}"),
        || told(&mut clients[heir], running, 1, limit),
        |taken: &Taken| format!("{name}: {by} has {} extents more", taken.claims.len()),
    )?;
    let owner = |nth: usize, until_ns| Owner { claims: &outcomes[nth].claims, until_ns };
    let others = (0..outcomes.len()).filter(|nth| *nth != killed);
    let others: Vec<Owner<'_>> = others.map(|nth| owner(nth, u64::MAX)).collect();
    let lease_ms = lease.as_millis() as u64;
    let judged = takeover::judge((host, kill_ns, owner(killed, held_ns)), &others, (by, &taken), lease_ms);
    Ok((judged, taken))
}

/// All clients' stores as one, with the mixes of all percentages.
fn together(setup: &Setup<'_>, clients: usize) -> StoreParameters {
    let steps = setup.cache.local_percent.len();
    StoreParameters {
        records: setup.store.records * clients as u32,
        mixes: (0..steps).flat_map(|_| setup.mixes().iter().copied()).collect(),
        ..setup.store.clone()
    }
}

/// Figures of all clients' regions, mix by mix. Errors: a client has none of a mix.
fn caches(setup: &Setup<'_>, outcomes: &[Outcome]) -> Result<Vec<CacheResult>, LabError> {
    let percents = setup.cache.local_percent.iter();
    let percents = percents.flat_map(|percent| setup.mixes().iter().map(|_| *percent));
    let result = |(nth, percent): (usize, u32)| {
        let reports = outcomes.iter().map(|outcome| outcome.caches.get(nth));
        let missing = |why: &str| LabError::Measurement {
            what: format!("regions with {percent} % local"),
            why: why.to_owned(),
        };
        let of: Vec<&CacheReport> =
            reports.collect::<Option<_>>().ok_or_else(|| missing("a client told nothing of one"))?;
        let sum = |of_one: fn(&CacheReport) -> u64| of.iter().map(|cache| of_one(cache)).sum::<u64>();
        let reports = outcomes.iter().filter_map(|outcome| outcome.report.mixes.get(nth));
        let operations: u64 = reports.map(|mix| mix.operations + mix.lost + mix.wrong).sum();
        let (accesses, waited) = (sum(|cache| cache.accesses), sum(|cache| cache.waited));
        if accesses == 0 || operations == 0 {
            return Err(missing("no client used one"));
        }
        let (fetched, written) = (sum(|cache| cache.fetched_bytes), sum(|cache| cache.written_back_bytes));
        let limits = of.iter().map(|cache| (cache.local_bytes, cache.limit_bytes));
        let (local_bytes, limit_bytes) = limits
            .reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))
            .ok_or_else(|| missing("there are no clients"))?;
        Ok(CacheResult {
            local_percent: percent,
            hit_share: 1.0 - waited as f64 / accesses as f64,
            fetched_bytes: fetched,
            written_back_bytes: written,
            moved_bytes: (fetched + written) as f64 / operations as f64,
            local_bytes,
            limit_bytes,
        })
    };
    percents.enumerate().map(result).collect()
}
