//! The store's workload on a running rack.

use super::bulk::{self, BulkReport, Load};
use super::figures::{self, Measured};
use super::keys::{self, KeyStore};
use super::piped::PipedStore;
use super::servers;
use super::slot::slot_bytes;
use super::slots::Slots;
use super::tcp;
use crate::control;
use crate::error::LabError;
use crate::measure::Plan;
use crate::process::{Process, START};
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::sys;
use crate::tors;
use crate::ways::{self, End, Reach};
use crate::workload::{Span, print_result};
use crate::ycsb::{self, Client, ClientConfig, ClientReport, Error, Store};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{KvServer, Run, StoreParameters};
use p4rack_codegen::scheme::clio::Clio;
use p4rack_fabric::remote::{Link, Service, Way};
use p4rack_hosts::clio::{Kv, KvShape};
use p4rack_hosts::remote::{Shape, UnderWay};
use p4rack_report::text;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Port of the store's TCP server.
const STORE_PORT: u16 = 7_003;
/// Time from the start of the clients to their operations.
const LEAD_NS: u64 = 1_000_000_000;
/// Time limit for loading or reading all records.
const ALL_RECORDS: Duration = Duration::from_secs(60);

/// Work of a client's process.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Writes every record once.
    Load,
    /// Runs the mixes.
    Run(Span),
    /// Writes, or writes and reads, as fast as it can while clients use the store. Without a load it writes slots.
    Bulk(Span, Option<Load>),
    /// Reads every record.
    Contents,
}

/// Where the room of bulk traffic begins: behind the records.
pub(super) fn bulk_start(store: &StoreParameters) -> u64 {
    u64::from(store.records) * slot_bytes(store.value_bytes as usize) as u64
}

/// Bytes of the region that a store needs, with room for bulk traffic.
pub(super) fn region_bytes(store: &StoreParameters) -> u64 {
    bulk_start(store) + bulk::ROOM_BYTES
}

/// Checks that the rack's store can use its server's memory by a way: the way has atomic operations and writes a slot in one step.
pub fn check(rack: &Rack, way: Way, store: &StoreParameters, server: &str) -> Result<(), LabError> {
    if !way.definition().atomics || !way.is_remote() {
        return Err(LabError::Unfit(format!(
            "{way} has no atomic operations that clients share, which lock the slots of a store: add [workload.log] for one whose \
             records a single client owns"
        )));
    }
    let (what, whole) = match (way.definition().service, way.definition().link) {
        (Service::Node, _) => {
            p4rack_memory::memory_node(rack, server)?;
            ("edm.chunk_bytes", p4rack_memory::edm(rack)?.chunk_bytes as usize)
        }
        (Service::Board, _) => return check_board(rack, store, server),
        (_, Link::Adapter) => ("the payload of a packet", ways::mtu(rack).bytes() as usize),
        _ => return Ok(()),
    };
    let slot = slot_bytes(store.value_bytes as usize);
    if slot > whole {
        let fits = whole.saturating_sub(slot - store.value_bytes as usize);
        return Err(LabError::Unfit(format!(
            "a value of {} bytes has a slot of {slot}, but {what} is {whole}, and a value is one write: \
             set workload.value_bytes to {fits} at most{}",
            store.value_bytes,
            if what == "edm.chunk_bytes" { format!(", or {what} to {slot}") } else { String::new() }
        )));
    }
    Ok(())
}

/// Checks that the server has a board, and the board memory for the store.
fn check_board(rack: &Rack, store: &StoreParameters, server: &str) -> Result<(), LabError> {
    p4rack_memory::board(rack, server)?;
    let Some(clio) = rack.protocol::<Clio>() else { return Ok(()) };
    if clio.store_bytes > 0 {
        return check_offload(rack, store, clio.store_bytes);
    }
    let (needed, sizes) = (region_bytes(store), clio.page_sizes.len() as u64);
    let range = clio.memory_bytes / sizes.max(1);
    if range >= needed {
        return Ok(());
    }
    Err(LabError::Unfit(format!(
        "the store needs {needed} bytes, and a board's range of pages of the first size has {range}: set clio.memory to \"{} MiB\", \
         or lower workload.records or workload.value_bytes",
        (needed * sizes).div_ceil(1 << 20).next_power_of_two()
    )))
}

/// Checks that the records fit into a board's key-value store.
fn check_offload(rack: &Rack, store: &StoreParameters, store_bytes: u64) -> Result<(), LabError> {
    if !store.value_bytes.is_multiple_of(8) {
        return Err(LabError::Unfit(format!(
            "values of {} bytes can't be checked in a board's store: set workload.value_bytes to a multiple of 8, or clio.store to \"0 B\" \
             for slots in its memory",
            store.value_bytes
        )));
    }
    let clients = rack.workload.as_ref().map_or(0, |workload| workload.ends().1.len());
    let under_way = clients * store.depth as usize;
    let needed = keys::store_bytes(store.records, store.value_bytes as usize, under_way);
    if needed <= store_bytes {
        return Ok(());
    }
    Err(LabError::Unfit(format!(
        "the records need {needed} bytes of a board's store, and it has {store_bytes}: set clio.store to \"{} MiB\", or lower \
         workload.records or workload.value_bytes",
        needed.div_ceil(1 << 20)
    )))
}

/// Whether a store by a way is in the key-value offload of a board.
pub(super) fn is_in_offload(rack: &Rack, way: Way) -> bool {
    let has_store = || rack.protocol::<Clio>().is_some_and(|clio| clio.store_bytes > 0);
    way.definition().service == Service::Board && has_store()
}

/// A host that loads the server's port beside the clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    pub(crate) host: &'a str,
    pub(crate) load: Option<Load>,
}

/// The host that the workload names for that.
pub(crate) fn described_bulk(store: &StoreParameters) -> Option<Beside<'_>> {
    store.bulk.as_deref().map(|host| Beside { host, load: None })
}

/// Runs the workload, by a run's way to remote memory or against its server, with a host beside the clients.
pub(crate) fn run(
    running: &mut Running<'_>,
    run: Run,
    store: &StoreParameters,
    beside: Option<Beside<'_>>,
    plan: Plan<'_>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let scheme = running.name.clone();
    let (server, clients) = plan.workload.ends();
    let serving = start_server(running, run, store, server)?;
    running.serving.extend(serving);
    let first = clients.first().map_or("", String::as_str);
    let records = text::count(store.records.into());
    progress.step(
        &format!("{scheme}: writing {records} records"),
        || {
            let mut client = start_client(running, run, first, plan, plan.seed, Task::Load)?;
            client.finish_beside(ALL_RECORDS, &mut || running.check())
        },
        |_| format!("{scheme}: {records} records written"),
    )?;

    let window = Span { start_ns: sys::monotonic_ns() + LEAD_NS, duration_ns: plan.window_ns };
    running.death = tors::plan(plan.workload, window);
    let mut processes = Vec::new();
    for (nth, host) in clients.iter().enumerate() {
        let seed = crate::workload::seed(plan.seed, nth + 1);
        processes.push(start_client(running, run, host, plan, seed, Task::Run(window))?);
    }
    if let Some(Beside { host, load }) = beside {
        processes.push(start_client(running, run, host, plan, plan.seed, Task::Bulk(window, load))?);
    }
    progress.wait_until(&format!("{scheme}: starting the clients"), window.start_ns, &mut || {
        running.check()?;
        processes.iter_mut().try_for_each(Process::check_not_failed)
    })?;
    let early = control::start_stats_anew(running)?;
    let server = figures::watch(progress, running, store, window, &mut processes)?;
    let windowed = control::stats(running)?;
    let bulk = beside.and_then(|_| processes.pop());
    let bulk: Option<BulkReport> =
        bulk.map(|mut process| figures::report(&mut process, running)).transpose()?;
    let reports = processes.iter_mut().map(|process| figures::report(process, running));
    let reports: Vec<ClientReport> = reports.collect::<Result<_, _>>()?;
    let contents = progress.step(
        &format!("{scheme}: reading {records} records"),
        || {
            let mut client = start_client(running, run, first, plan, plan.seed, Task::Contents)?;
            figures::report(&mut client, running)
        },
        |_| format!("{scheme}: {records} records read again"),
    )?;
    running.check()?;
    let last = control::stats(running)?;
    let switch = [early, windowed, last];
    let measured = Measured { reports: &reports, contents, caches: Vec::new(), window, switch, bulk, server };
    figures::result(running, store, plan, measured, progress)
}

/// Starts the server of the records: memory, another project's server, or the store's own.
fn start_server(
    running: &Running<'_>,
    run: Run,
    store: &StoreParameters,
    host: &str,
) -> Result<Vec<Process>, LabError> {
    if let Some(way) = run.way {
        return Reach { running, way, server: host }.serve(region_bytes(store), true);
    }
    if let Some(server) = run.server {
        let at = store_at(running.rack, host)?;
        return Ok(vec![servers::start(running, server, host, at, store)?]);
    }
    let args = vec!["store-server".to_owned(), running.path.display().to_string()];
    let mut serving = running.program(host, args)?;
    serving.wait_for_line("ready", START)?;
    Ok(vec![serving])
}

fn start_client(
    running: &Running<'_>,
    run: Run,
    host: &str,
    plan: Plan<'_>,
    seed: u64,
    task: Task,
) -> Result<Process, LabError> {
    let word = match task {
        Task::Load => "store-load",
        Task::Run(_) => "store-client",
        Task::Bulk(..) => "store-bulk",
        Task::Contents => "store-contents",
    };
    let mut args = vec![word.to_owned(), running.path.display().to_string()];
    args.extend(match run.way {
        Some(way) => Reach { running, way, server: plan.workload.ends().0 }.client(host)?,
        None => ways::client(running, host)?,
    });
    let mut push = |option: &str, value: String| args.extend([option.to_owned(), value]);
    push("--seed", seed.to_string());
    if let Some(server) = run.server {
        push("--server", server.to_string());
    }
    if let Task::Run(span) | Task::Bulk(span, _) = task {
        push("--start-ns", span.start_ns.to_string());
        push("--duration-ns", span.duration_ns.to_string());
    }
    if let Task::Bulk(_, Some(load)) = task {
        push("--writes", load.writes.to_string());
        push("--reads", load.reads.to_string());
        push("--bytes", load.bytes.to_string());
    }
    running.program(host, args)
}

/// Serves the store of a description over TCP until a signal ends the process.
pub fn serve(path: &Path) -> Result<(), LabError> {
    let (rack, store) = described(path)?;
    let at = store_at(&rack, server_of(&rack))?;
    tcp::serve(at, store.records, store.value_bytes as usize).map_err(LabError::system("serving the store"))
}

/// Name of the host with the records.
fn server_of(rack: &Rack) -> &str {
    rack.workload.as_ref().map_or("", |workload| workload.ends().0)
}

/// Where a server of records listens on a host.
fn store_at(rack: &Rack, host: &str) -> Result<SocketAddr, LabError> {
    let host = &rack.hosts[usize::from(p4rack_memory::node(rack, host)?)];
    Ok((host.ip, STORE_PORT).into())
}

/// How a client reaches the records.
#[derive(Debug)]
pub enum Reached {
    /// By a way to the memory that has them.
    Memory(Box<End>),
    /// From the store's own server.
    Own,
    /// From another project's server.
    Server(KvServer),
}

/// Uses the store of a description from one of its hosts, and prints the result as JSON.
pub fn use_store(path: &Path, name: &str, reached: Reached, seed: u64, task: Task) -> Result<(), LabError> {
    let (rack, store) = described(path)?;
    let (own, value_bytes) = (p4rack_memory::node(&rack, name)?, store.value_bytes as usize);
    let (start, region_bytes, depth) = (bulk_start(&store), region_bytes(&store), store.depth as usize);
    let mut config = ClientConfig { mixes: store.mixes, records: store.records, depth, seed, tells: true };
    let at = store_at(&rack, server_of(&rack))?;
    let connecting = || LabError::system("connecting to the store");
    let mut end = match (reached, task) {
        (Reached::Memory(end), _) => *end,
        (_, Task::Bulk(span, _)) => return told(bulk::over_tcp(at, span)),
        (Reached::Own, _) => {
            let connected = PipedStore::connect(at, tcp::Slots::new(value_bytes, seed));
            return operate(&mut connected.map_err(connecting())?, &config, task);
        }
        (Reached::Server(server), _) => {
            let connected = servers::connect(server, at, value_bytes, seed);
            return operate(connected.map_err(connecting())?.as_mut(), &config, task);
        }
    };
    let way = end.way;
    if is_in_offload(&rack, way) && !matches!(task, Task::Bulk(..)) {
        let board = end
            .attachment
            .memory
            .ok_or_else(|| LabError::Unfit(format!("{way} without the address of a board")))?;
        let shape = KvShape {
            value_bytes_max: store.value_bytes,
            written_bytes_max: store.value_bytes,
            under_way_max: store.depth as u16,
        };
        let kv = Kv::open(&board, shape, p4rack_memory::patience(&rack))
            .map_err(|error| LabError::measurement(format!("{way} on {name}"), error))?;
        let mut records = KeyStore::new(kv, value_bytes, own + 1, store.records);
        return operate(&mut records, &config, task);
    }
    // Its clients share the records.
    end.attachment.shared = true;
    let load = match task {
        Task::Bulk(_, Some(load)) => load,
        _ => Load::writing(slot_bytes(value_bytes)),
    };
    let under_way = UnderWay::of(depth.max(load.writes).max(load.reads) as u64, load.bytes as u32);
    let shape = Shape { region_bytes, reads: under_way, writes: under_way };
    let (mut remote, _held) = end.open(&rack, shape)?;
    if let Task::Bulk(span, _) = task {
        return told(bulk::over(remote.as_mut(), start, load, span));
    }
    config.depth = way.depth(depth);
    let slots = Slots::new(remote, value_bytes, own + 1, config.records);
    operate(&mut slots.map_err(|lacks| LabError::Unfit(format!("{way} {lacks}")))?, &config, task)
}

fn operate<S: Store + ?Sized>(store: &mut S, config: &ClientConfig, task: Task) -> Result<(), LabError> {
    let mut client = Client::new(store, config);
    let done = match task {
        Task::Load => client.load().and_then(|()| match client.contents()? {
            all if all.lost + all.wrong == 0 => Ok(()),
            missing => Err(Error::NotLoaded(missing.lost + missing.wrong)),
        }),
        Task::Run(span) => ycsb::run(store, config, span).and_then(|report| Ok(print_result(&report)?)),
        // Not of a client.
        Task::Bulk(..) => Ok(()),
        Task::Contents => client.contents().and_then(|contents| Ok(print_result(&contents)?)),
    };
    done.map_err(|error| LabError::measurement("using the store", error))
}

fn told(done: std::io::Result<BulkReport>) -> Result<(), LabError> {
    done.and_then(|report| print_result(&report))
        .map_err(LabError::system("writing beside the store's clients"))
}

fn described(path: &Path) -> Result<(Rack, StoreParameters), LabError> {
    let rack = Rack::load(path)?;
    let store = rack.workload.as_ref().and_then(|workload| workload.store.clone());
    let store =
        store.ok_or_else(|| LabError::Unfit(format!("{}: its workload is no store", path.display())))?;
    Ok((rack, store))
}
