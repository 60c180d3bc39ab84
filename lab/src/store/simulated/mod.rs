//! A store's workload in virtual time: the same clients use it on the same rack, with its generated program and the machines of its
//! hosts. Processors and drivers take no time.
//!
//! Each client is a thread that waits after every request. One thread runs at a time, in the order of virtual time, so a run is
//! repeatable.

mod conductor;
mod edm;
mod keys;

use super::bulk::{self, BulkReport, Load};
use super::figures::{bulk_bps, together, values_bps, whole_ns};
use super::run::{bulk_start, check, is_in_offload};
use super::slot::slot_bytes;
use crate::error::LabError;
use crate::results::SchemeResult;
use crate::workload::{Span, seed};
use crate::ycsb::{self, Client, ClientConfig, ClientReport, Contents};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{StoreParameters, Workload};
use p4rack_sim::SwitchCounts;
use p4rack_wire::Nanos;

/// Time from writing the records to the clients' operations.
const LEAD_NS: u64 = 1_000_000;

/// A client's work.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// Writes all records.
    Load,
    /// Runs the mixes.
    Run(Span),
    /// Writes beside the clients, from `start` on.
    Bulk { start: u64, load: Load, span: Span },
    /// Reads all records.
    Contents,
}

/// A client's job.
#[derive(Clone, Copy, Debug)]
struct Task {
    host: usize,
    seed: u64,
    job: Job,
}

/// A client's results.
enum Done {
    Loaded,
    Ran(ClientReport),
    Bulk(BulkReport),
    Contents(Contents),
}

/// A rack whose clients use the store.
trait SimulatedRack {
    /// The time.
    fn now(&self) -> Nanos;

    /// The switch counts from now on.
    fn start_counting(&mut self);

    /// Its counters, with the queues of the server's port. `None`: it has none.
    fn counts(&self) -> Option<SwitchCounts>;

    /// Runs clients, each to the end of its job.
    fn perform(&mut self, tasks: &[Task]) -> Result<Vec<Done>, LabError>;
}

/// Why the store of a rack, under its scheme, is not run in virtual time; `None`: it is.
pub fn lacks(rack: &Rack, workload: &Workload, store: &StoreParameters) -> Option<String> {
    match rack.scheme().way().is_some_and(|way| is_in_offload(rack, way)) {
        true => keys::lacks(rack, workload.ends().0, store),
        false => (!p4rack_memory::runs(rack))
            .then(|| "only stores in EDM's memory and in a board's offload are".to_owned()),
    }
}

/// Runs the workload on the rack, which runs a scheme with EDM, or with Clio and a store.
pub fn run(
    rack: &Rack,
    workload: &Workload,
    store: &StoreParameters,
    from: u64,
    window_ns: u64,
) -> Result<SchemeResult, LabError> {
    let (server, clients) = workload.ends();
    let way = rack.scheme().way();
    let way = way.ok_or_else(|| LabError::Unfit(format!("{} has no remote memory", rack.scheme())))?;
    check(rack, way, store, server)?;
    let hosts: Vec<usize> = clients
        .iter()
        .map(|name| p4rack_memory::node(rack, name).map(usize::from))
        .collect::<Result<_, _>>()?;
    let mut world: Box<dyn SimulatedRack> = match is_in_offload(rack, way) {
        true => Box::new(keys::Board::new(rack, server, store, from)?),
        false => Box::new(edm::Edm::new(rack, server, store)?),
    };
    let first = |job| hosts.first().map(|host| Task { host: *host, seed: from, job }).into_iter().collect();
    let load: Vec<Task> = first(Job::Load);
    world.perform(&load)?;
    world.start_counting();
    let span = Span { start_ns: world.now().0 + LEAD_NS, duration_ns: window_ns };
    let mut tasks: Vec<Task> = Vec::new();
    let mut add = |host, job| tasks.push(Task { host, seed: seed(from, tasks.len() + 1), job });
    hosts.iter().for_each(|host| add(*host, Job::Run(span)));
    // The bulk host's writers come after the clients.
    if let Some(bulk) = &store.bulk {
        let (host, start) = (usize::from(p4rack_memory::node(rack, bulk)?), bulk_start(store));
        let load = Load { writes: 1, ..Load::writing(slot_bytes(store.value_bytes as usize)) };
        (0..bulk::UNDER_WAY).for_each(|_| add(host, Job::Bulk { start, load, span }));
    }
    let (mut reports, mut bulk) = (Vec::new(), Vec::new());
    for done in world.perform(&tasks)? {
        match done {
            Done::Ran(report) => reports.push(without_processor(report)),
            Done::Bulk(report) => bulk.push(report),
            Done::Loaded | Done::Contents(_) => {}
        }
    }
    let counts = world.counts();
    let counts = counts.ok_or_else(|| LabError::Unfit("the server has no port at the switch".to_owned()))?;
    let contents: Vec<Task> = first(Job::Contents);
    let contents: Vec<Contents> = world
        .perform(&contents)?
        .into_iter()
        .filter_map(|done| match done {
            Done::Contents(contents) => Some(contents),
            _ => None,
        })
        .collect();
    let server = usize::from(p4rack_memory::node(rack, server)?);
    let values_bps = values_bps(store, &reports, whole_ns(&reports));
    let contents = contents.first().copied();
    let contents = contents.ok_or_else(|| LabError::Unfit("the store has no clients".to_owned()))?;
    let mut figures = together(store, &reports, contents);
    figures.bulk_bps = store.bulk.as_ref().map(|_| bulk_bps(&bulk, window_ns));
    Ok(SchemeResult {
        name: rack.scheme().name(),
        offered_bps: values_bps,
        goodput_bps: values_bps,
        goodput_ceiling_bps: rack.goodput_ceiling_bps(&rack.hosts[server]),
        fabric_drops: counts.drops.values().sum(),
        drops: counts.drops,
        queue_max_bytes: counts.queue_max_bytes,
        queue_p999_bytes: counts.queue_p999_bytes,
        store: Some(figures),
        ..SchemeResult::default()
    })
}

/// Clients in virtual time take no time of a processor.
fn without_processor(mut report: ClientReport) -> ClientReport {
    report.mixes.iter_mut().for_each(|mix| mix.thread_cpu_ns = None);
    report
}

/// Parameters of a client.
fn config(store: &StoreParameters, seed: u64) -> ClientConfig {
    ClientConfig {
        mixes: store.mixes.clone(),
        records: store.records,
        depth: store.depth as usize,
        seed,
        tells: false,
    }
}

/// Does a job that is not bulk traffic.
fn perform(store: &mut impl ycsb::Store, config: &ClientConfig, job: Job) -> Result<Done, ycsb::Error> {
    match job {
        Job::Load | Job::Bulk { .. } => Client::new(store, config).load().map(|()| Done::Loaded),
        Job::Run(span) => ycsb::run(store, config, span).map(Done::Ran),
        Job::Contents => Client::new(store, config).contents().map(Done::Contents),
    }
}

#[cfg(test)]
mod tests;
