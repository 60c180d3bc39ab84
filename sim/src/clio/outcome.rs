//! Runs an experiment with boards of Clio and collects its results.

use super::board::Translations;
use super::compute::Library;
use super::experiment::ClioExperiment;
use super::fill::{FillOutcome, fill};
use super::rack::HEADERS;
use super::setup::config;
use super::spec::{ClioScheme, Load};
use super::world::{ClioWorld, MemoryNode};
use crate::latency::Latency;
use crate::outcome::{Compared, compared, concerns};
use crate::switch::Model;
use p4rack_switch::DropReason;
use p4rack_wire::Nanos;
use p4rack_wire::clio::Header;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes of an entry of the page table.
const ENTRY_BYTES: u64 = 16;
/// Bytes of a packet on the wire beside its data.
const OVERHEAD_BYTES: u64 = (HEADERS + Header::BYTES + 24) as u64;

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ClioOutcome {
    /// Name of the experiment.
    pub name: String,
    /// Scheme.
    pub scheme: &'static str,
    /// Default times.
    pub profile: &'static str,
    /// Seed.
    pub seed: u64,
    /// Duration of the measurement in seconds.
    pub measured_s: f64,
    /// Operations that ended well in this time: those that are measured.
    pub operations: u64,
    /// Operations that ended otherwise in this time. `wrong`, `refused` and `unknown` say how, and count those before it, too.
    pub failed: u64,
    /// Million operations per second.
    pub mops: f64,
    /// From a thread's call to its end. Threads of a baseline post and poll.
    pub latency_ns: Latency,
    /// Mean of the latency, without the rounding of quantiles; none if nothing was measured.
    pub mean_ns: Option<f64>,
    /// Data of operations.
    pub goodput_gbps: f64,
    /// The same as a share of the data that the boards', or the compute nodes', links can carry in one direction. With
    /// reads and writes it may exceed 1.
    pub goodput_share: f64,
    /// Mean time of an operation in each stage; `network` has links, switch and all waiting. None for baselines.
    pub stages_ns: BTreeMap<&'static str, f64>,
    /// Translations of the boards.
    pub translations: Translations,
    /// Misses of a baseline's caches.
    pub cache_misses: u64,
    /// Page faults of a baseline.
    pub page_faults: u64,
    /// The page table; none for baselines.
    pub table: Option<TableCost>,
    /// With `load = "fill"`.
    pub fill: Option<FillOutcome>,
    /// Sums of the libraries' counters, without those that are zero.
    pub clib: BTreeMap<&'static str, u64>,
    /// Sums of the boards' counters and refusals, without those that are zero.
    pub boards: BTreeMap<&'static str, u64>,
    /// Packets that were sent again.
    pub retries: u64,
    /// Longest queue of a port of the switch.
    pub queue_max_bytes: u64,
    /// Frames dropped by the switch, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Frames that were lost: by the switch and on links.
    pub lost_frames: u64,
    /// Reads with wrong content.
    pub wrong: u64,
    /// Operations that boards refused, or that a baseline can't do at all.
    pub refused: u64,
    /// Operations without an answer.
    pub unknown: u64,
    /// Frames that arrived at hosts.
    pub frame_hops: u64,
    /// Checksum of everything that happened. The same file and seed give the same digest.
    pub digest: String,
    /// Comparison with the paper's figures.
    pub paper: Vec<Compared>,
    /// Checks that failed.
    pub problems: Vec<String>,
}

/// Memory that a page table takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TableCost {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Slots for each frame.
    pub slots_per_page: f64,
    /// Bytes for each frame.
    pub bytes_per_page: f64,
    /// The same in percent of the memory.
    pub percent: f64,
}

impl ClioOutcome {
    fn new(experiment: &ClioExperiment) -> ClioOutcome {
        let spec = &experiment.spec;
        ClioOutcome {
            name: spec.name.clone(),
            scheme: spec.scheme.name(),
            profile: spec.profile.name(),
            seed: spec.seed,
            measured_s: 0.0,
            operations: 0,
            failed: 0,
            mops: 0.0,
            latency_ns: Latency::default(),
            mean_ns: None,
            goodput_gbps: 0.0,
            goodput_share: 0.0,
            stages_ns: BTreeMap::new(),
            translations: Translations::default(),
            cache_misses: 0,
            page_faults: 0,
            table: None,
            fill: None,
            clib: BTreeMap::new(),
            boards: BTreeMap::new(),
            retries: 0,
            queue_max_bytes: 0,
            drops: BTreeMap::new(),
            lost_frames: 0,
            wrong: 0,
            refused: 0,
            unknown: 0,
            frame_hops: 0,
            digest: String::new(),
            paper: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds results that need all others.
    fn finished(mut self, experiment: &ClioExperiment) -> ClioOutcome {
        let spec = &experiment.spec;
        let settings = serde_json::to_value(spec).unwrap_or_default();
        let papers = spec.paper.iter().filter(|paper| concerns(paper, spec.scheme.name(), &settings));
        self.paper = compared(&self, papers);
        self
    }
}

/// Memory of the page table of an experiment's boards.
fn table(experiment: &ClioExperiment, frames: u64, slots: u64) -> TableCost {
    let page_bytes = experiment.page_size.bytes();
    let slots_per_page = slots as f64 / frames as f64;
    let bytes_per_page = slots_per_page * ENTRY_BYTES as f64;
    TableCost {
        page_bytes,
        slots_per_page,
        bytes_per_page,
        percent: bytes_per_page * 100.0 / page_bytes as f64,
    }
}

/// Runs an experiment. Errors: the generator or a board refuses it.
pub fn run_clio(experiment: &ClioExperiment) -> Result<ClioOutcome, String> {
    let spec = &experiment.spec;
    let mut outcome = ClioOutcome::new(experiment);
    if spec.load == Load::Fill {
        let fill = fill(experiment)?;
        outcome.table = Some(table(experiment, fill.frames.into(), fill.slots));
        outcome.operations = fill.allocations as u64;
        outcome.problems = fill.problems();
        outcome.fill = Some(fill);
        return Ok(outcome.finished(experiment));
    }
    if spec.scheme != ClioScheme::Clio && experiment.all_regions() > experiment.rdma.regions_max {
        // The adapter has no room for these regions, so nothing can be measured.
        (outcome.failed, outcome.refused) = (spec.operations, spec.operations);
        return Ok(outcome.finished(experiment));
    }
    let mut world = ClioWorld::new(experiment)?;
    world.run();
    collect(&mut outcome, experiment, &mut world);
    outcome.problems = problems(&outcome, experiment);
    Ok(outcome.finished(experiment))
}

fn collect(outcome: &mut ClioOutcome, experiment: &ClioExperiment, world: &mut ClioWorld<'_>) {
    let (spec, tally) = (&experiment.spec, &world.tally);
    let measured_ps = tally.end_ps.saturating_sub(tally.begun_ps).max(1);
    outcome.measured_s = measured_ps as f64 / 1e12;
    outcome.operations = tally.done;
    let ended = tally.ended.saturating_sub(spec.warmup);
    outcome.failed = ended - tally.done;
    outcome.mops = tally.done as f64 * 1e6 / measured_ps as f64;
    outcome.latency_ns = Latency::of(&tally.latency, true);
    let measured = tally.latency.len();
    outcome.mean_ns = (measured > 0).then(|| tally.latency_ps as f64 / 1e3 / measured as f64);
    let moves_data = spec.load != Load::Allocations;
    outcome.goodput_gbps = if moves_data { tally.bytes as f64 * 8e3 / measured_ps as f64 } else { 0.0 };
    outcome.goodput_share = outcome.goodput_gbps / ceiling_gbps(experiment);
    (outcome.wrong, outcome.refused, outcome.unknown) = (tally.wrong, tally.refused, tally.unknown);
    let ns = |sum_ps: u64| sum_ps as f64 / 1e3 / ended.max(1) as f64;
    if spec.scheme == ClioScheme::Clio {
        let config = config(experiment);
        outcome.table = Some(table(experiment, config.frames(), config.slots()));
    }
    if spec.scheme == ClioScheme::Clio
        && let Some(mean_ns) = outcome.mean_ns
    {
        let sums = world.sums().since(&world.before);
        let library = (experiment.compute.send_ns + experiment.compute.receive_ns) as f64;
        let adapters = ns(tally.nic_ps) + experiment.compute.nic_ns as f64;
        let mut stages: BTreeMap<&'static str, f64> = [
            ("clib", library),
            ("adapter", adapters),
            ("board_mac", ns(sums.mac)),
            ("board_parse", ns(sums.parse)),
            ("board_translate", ns(sums.translate)),
            ("board_memory", ns(sums.memory)),
            ("board_stack", ns(sums.stack)),
            ("board_offload", ns(sums.offload)),
            ("board_slow", ns(sums.slow)),
        ]
        .into();
        let known: f64 = stages.values().sum();
        stages.insert("network", (mean_ns - known).max(0.0));
        outcome.stages_ns = stages;
    }
    for node in &world.nodes {
        match node {
            MemoryNode::Board(node) => {
                let all = &mut outcome.translations;
                all.hits += node.translations.hits;
                all.misses += node.translations.misses;
                all.faults += node.translations.faults;
                let counters = node.machine.counters();
                add(&mut outcome.boards, counters.iter().chain(node.machine.refusals().iter()));
            }
            MemoryNode::Modelled(node) => {
                outcome.cache_misses += node.misses;
                outcome.page_faults += node.faults;
            }
        }
    }
    for stack in &world.stacks {
        if let Library::Clio(client) = &stack.library {
            outcome.retries += client.counters().retries;
            add(&mut outcome.clib, client.counters().iter());
        }
    }
    outcome.lost_frames = world.wires.lost();
    if let Some(hub) = &world.hub {
        let stats = hub.model.stats(Nanos(world.now_ps / 1_000));
        outcome.queue_max_bytes = stats.ports.iter().map(|port| port.queue_max_bytes).max().unwrap_or(0);
        let counted = hub.model.counted().drops.into_iter();
        outcome.drops = counted.map(|(reason, count)| (reason.to_owned(), count)).collect();
        // The program counts its drops by its own reasons.
        let others = stats.drops.iter().filter(|(reason, _)| *reason != DropReason::IngressDrop);
        outcome.drops.extend(others.map(|(reason, count)| (reason.name().to_owned(), *count)));
        outcome.lost_frames += outcome.drops.values().sum::<u64>();
    }
    outcome.frame_hops = world.frame_hops;
    let mut digest = world.digest;
    [tally.done, tally.latency.len(), world.now_ps].into_iter().for_each(|number| digest.add(number));
    outcome.digest = format!("{:016x}", digest.0);
}

/// Adds counters that are not zero.
fn add(to: &mut BTreeMap<&'static str, u64>, counters: impl Iterator<Item = (&'static str, u64)>) {
    for (name, count) in counters.filter(|(_, count)| *count > 0) {
        *to.entry(name).or_default() += count;
    }
}

/// Data that the boards' links, or the compute nodes', can carry in one direction.
fn ceiling_gbps(experiment: &ClioExperiment) -> f64 {
    let spec = &experiment.spec;
    let boards = u64::from(spec.boards) * experiment.rate_bps;
    let computes = u64::from(spec.compute_nodes) * experiment.compute_bps;
    let data = u64::from(spec.network.packet_bytes).min(spec.bytes.max(1));
    boards.min(computes) as f64 / 1e9 * data as f64 / (data + OVERHEAD_BYTES) as f64
}

/// Without windows, or with losses, operations may fail.
fn problems(outcome: &ClioOutcome, experiment: &ClioExperiment) -> Vec<String> {
    let (mut problems, operations) = (Vec::new(), experiment.spec.operations);
    let mut check = |bad: bool, what: String| problems.extend(bad.then_some(what));
    check(outcome.wrong > 0, format!("{} reads had a wrong content", outcome.wrong));
    let ended = outcome.operations + outcome.failed;
    check(
        ended < operations,
        format!("{ended} of {operations} operations ended: the run stood still or took too long"),
    );
    let may_fail = outcome.lost_frames > 0 || !experiment.spec.clib.incast;
    check(outcome.refused > 0 && !may_fail, format!("{} operations were refused", outcome.refused));
    check(outcome.unknown > 0 && !may_fail, format!("{} operations were not answered", outcome.unknown));
    problems
}
