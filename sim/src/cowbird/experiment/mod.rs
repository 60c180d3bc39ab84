//! Experiments on Cowbird racks: the fields of the file, checked.

mod hostile;

pub use hostile::HostileComputeSpec;

use crate::cowbird::costs::{CpuSpec, NicSpec, P4Spec, RedySpec, SpotSpec};
use crate::experiment::{Check, ExperimentError, LinkSpec, PaperSpec, parse_toml};
use p4rack_codegen::rack::Queueing;
use p4rack_codegen::rack::units::parse_rate;
use serde::{Deserialize, Serialize};

/// `kind` of such a file.
pub const KIND: &str = "cowbird";
/// Hosts' names in files and results, by the number of their port less one.
pub(super) const HOST_NAMES: [&str; 4] = ["compute", "pool", "spot", "sink"];
/// Maximum of the times in a file.
const TIME_MAX_NS: u32 = 1_000_000;
/// Longest run: ten seconds.
const RUN_MAX_US: u64 = 10_000_000;
/// Maximum bytes of records in the pool; their addresses have 48 bits.
const POOL_BYTES_MAX: u64 = 1 << 47;
/// Maximum requests of a thread in flight: an adapter's limit.
const WINDOW_MAX: u32 = 1_024;

/// Fields of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CowbirdSpec {
    /// Name of the experiment.
    pub name: String,
    /// `cowbird`.
    pub kind: String,
    /// How threads reach remote records.
    #[serde(default)]
    pub scheme: CowbirdScheme,
    /// Seed of keys and losses.
    #[serde(default = "one")]
    pub seed: u64,
    /// Threads of the compute node. Each runs at full speed, as if it had a core for itself.
    #[serde(default = "one_thread")]
    pub threads: u16,
    /// Bytes of a record, a multiple of 8.
    #[serde(default = "record_bytes")]
    pub record_bytes: u32,
    /// Records; each thread draws its keys from an equal part of them.
    #[serde(default = "records")]
    pub records: u64,
    /// Records in local memory, in percent.
    #[serde(default = "local_percent")]
    pub local_percent: f64,
    /// Probes that write the record instead of reading it, in percent.
    #[serde(default)]
    pub write_percent: f64,
    /// Probes that a thread makes before it polls for results of earlier ones. 1: it waits for each.
    #[serde(default = "batch")]
    pub batch: u32,
    /// Maximum batches in flight. With one, a thread waits for a whole batch before it begins the next.
    #[serde(default = "batches")]
    pub batches: u32,
    /// Time before measuring.
    #[serde(default = "warmup_us")]
    pub warmup_us: u64,
    /// When the last probe begins.
    #[serde(default = "duration_us")]
    pub duration_us: u64,
    /// Time after that in which probes may still end. Later ones count as lost.
    #[serde(default = "drain_us")]
    pub drain_us: u64,
    /// Rate of the links.
    #[serde(default = "rate")]
    pub rate: String,
    /// How frames take turns at the switch's ports.
    #[serde(default)]
    pub queueing: Queueing,
    /// Probability that a link loses a frame, in each direction: short for `link.loss`.
    #[serde(default)]
    pub loss: f64,
    /// Delays and faults of links.
    #[serde(default, skip_serializing_if = "LinkSpec::is_plain")]
    pub link: LinkSpec,
    /// Costs of threads.
    #[serde(default)]
    pub cpu: CpuSpec,
    /// Adapters, links and the switch.
    #[serde(default)]
    pub nic: NicSpec,
    /// The engine on a spare host.
    #[serde(default)]
    pub spot: SpotSpec,
    /// The engine in the switch.
    #[serde(default)]
    pub p4: P4Spec,
    /// I/O threads.
    #[serde(default)]
    pub redy: RedySpec,
    /// Competing TCP flows.
    pub competing: Option<CompetingSpec>,
    /// A second compute node, which may break the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostile: Vec<HostileComputeSpec>,
    /// The paper's figures.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// `[competing]`: TCP (Cubic) from the compute node to a fourth host, always with more to send.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompetingSpec {
    /// Flows (§8.4: `iperf3` with 10 threads).
    pub flows: u16,
    /// Rate of the fourth host's link (§8.4).
    pub rate: String,
    /// Their class in the switch.
    pub class: CompetingClass,
}

/// The class of competing flows in the switch. At the compute node's own link RDMA goes first in any case.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CompetingClass {
    /// The class of RDMA, except for probes of the engine in the switch, which are below.
    #[default]
    Same,
    /// Below RDMA, above these probes.
    Below,
    /// Below all RDMA, and these probes too.
    Lowest,
}

impl Default for CompetingSpec {
    fn default() -> CompetingSpec {
        CompetingSpec { flows: 10, rate: "25 Gb/s".into(), class: CompetingClass::Same }
    }
}

/// How threads reach remote records.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CowbirdScheme {
    /// All records are local: the upper bound.
    Local,
    /// One-sided RDMA.
    Rdma,
    /// Two-sided RDMA: threads of the pool answer.
    RdmaTwoSided,
    /// I/O threads of the compute node carry requests in batches, which threads of the pool answer.
    Redy,
    /// Cowbird, its engine on a spare host.
    #[default]
    CowbirdSpot,
    /// Cowbird, its engine in the switch.
    CowbirdP4,
}

impl CowbirdScheme {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            CowbirdScheme::Local => "local",
            CowbirdScheme::Rdma => "rdma",
            CowbirdScheme::RdmaTwoSided => "rdma-two-sided",
            CowbirdScheme::Redy => "redy",
            CowbirdScheme::CowbirdSpot => "cowbird-spot",
            CowbirdScheme::CowbirdP4 => "cowbird-p4",
        }
    }
}

fn one() -> u64 {
    1
}
fn one_thread() -> u16 {
    1
}
fn record_bytes() -> u32 {
    64
}
fn records() -> u64 {
    100_000_000
}
fn local_percent() -> f64 {
    5.0
}
fn batch() -> u32 {
    100
}
fn batches() -> u32 {
    2
}
fn warmup_us() -> u64 {
    100
}
fn duration_us() -> u64 {
    1_100
}
fn drain_us() -> u64 {
    20_000
}
fn rate() -> String {
    "100 Gb/s".into()
}

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct CowbirdExperiment {
    /// As in the file.
    pub spec: CowbirdSpec,
    /// Links' rate.
    pub rate_bps: u64,
    /// Rate of the competing flows' host; without such flows that of the others.
    pub competing_bps: u64,
    /// Compute nodes, each with a program that asks from outside; 0: threads, as in the file.
    pub(super) programs: u16,
}

impl CowbirdExperiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<CowbirdExperiment, ExperimentError> {
        let spec: CowbirdSpec = parse_toml(text, file, "docs/cowbird.md lists the fields")?;
        let mut check = Check { text, file, problems: Vec::new() };
        let rate_bps = check_rate("", &spec.rate, &mut check);
        let competing = spec.competing.as_ref();
        let competing_bps = competing.map_or(rate_bps, |tcp| check_rate("competing", &tcp.rate, &mut check));
        check_spec(&spec, &mut check);
        match check.problems.is_empty() {
            true => Ok(CowbirdExperiment { spec, rate_bps, competing_bps, programs: 0 }),
            false => Err(ExperimentError(check.problems)),
        }
    }

    /// Delays and faults of links.
    pub(super) fn link(&self) -> LinkSpec {
        LinkSpec { loss: self.spec.link.loss.max(self.spec.loss), ..self.spec.link.clone() }
    }

    /// Hosts' names, by the number of their port less one.
    pub(super) fn host_names(&self) -> Vec<String> {
        let more = (3..=self.programs).map(|nth| format!("compute{nth}"));
        HOST_NAMES.iter().map(|name| (*name).to_owned()).chain(more).collect()
    }

    /// Maximum requests of a thread in flight.
    pub(super) fn window(&self) -> u32 {
        self.spec.batch * self.spec.batches
    }
}

fn check_rate(table: &str, rate: &str, check: &mut Check) -> u64 {
    let (least, most) = (1_000_000_000, 1_000_000_000_000);
    match parse_rate(rate) {
        Ok(bps) if (least..=most).contains(&bps) => return bps,
        Ok(_) => check.problem(table, 0, "rate", format!("{rate} is out of range; write 1 Gb/s to 1 Tb/s")),
        Err(error) => check.problem(table, 0, "rate", error),
    }
    least
}

fn check_spec(spec: &CowbirdSpec, check: &mut Check) {
    hostile::check(spec, check);
    if spec.kind != KIND {
        check.problem("", 0, "kind", format!("`{}`: write \"{KIND}\"", spec.kind));
    }
    let mut range = |table: &str, key: &str, value: u64, least: u64, most: u64| {
        if !(least..=most).contains(&value) {
            check.problem(table, 0, key, format!("{value} is out of range; write {least} to {most}"));
        }
    };
    range("", "threads", spec.threads.into(), 1, 64);
    range("", "record_bytes", spec.record_bytes.into(), 8, 1 << 16);
    let records_max = POOL_BYTES_MAX / u64::from(spec.record_bytes.max(8));
    range("", "records", spec.records, 100 * u64::from(spec.threads), records_max);
    range("", "batch", spec.batch.into(), 1, WINDOW_MAX.into());
    range("", "batches", spec.batches.into(), 1, u64::from(WINDOW_MAX / spec.batch.clamp(1, WINDOW_MAX)));
    range("", "duration_us", spec.duration_us, 2, RUN_MAX_US);
    range("", "warmup_us", spec.warmup_us, 0, spec.duration_us.saturating_sub(1));
    range("", "drain_us", spec.drain_us, 0, RUN_MAX_US);
    range("cpu", "requests_per_doorbell", spec.cpu.requests_per_doorbell.into(), 1, WINDOW_MAX.into());
    range("cpu", "servers", spec.cpu.servers.into(), 1, 64);
    range("nic", "reads_max", spec.nic.reads_max.into(), 1, 256);
    range("nic", "timeout_us", spec.nic.timeout_us.into(), 10, 1_000_000);
    range("spot", "cores", spec.spot.cores.into(), 1, 64);
    range("spot", "pairs", spec.spot.pairs.into(), 1, 8);
    range("spot", "batch_reads", spec.spot.batch_reads.into(), 1, 64);
    range("spot", "guess_entries", spec.spot.guess_entries.into(), 0, 64);
    range("spot", "probes", spec.spot.probes.into(), 1, 16);
    range("redy", "io_threads", spec.redy.io_threads.into(), 1, 64);
    range("redy", "batch", spec.redy.batch.into(), 1, WINDOW_MAX.into());
    range("redy", "messages", spec.redy.messages.into(), 1, 256);
    let flows = spec.competing.as_ref().map_or(1, |tcp| tcp.flows);
    range("competing", "flows", flows.into(), 1, 1_000);
    range("p4", "in_flight", spec.p4.in_flight.into(), 1, 256);
    range("p4", "rest_turns", spec.p4.rest_turns.into(), 1, 1 << 14);
    range("p4", "timeout_us", spec.p4.timeout_us.into(), 10, 1_000_000);
    let (cpu, nic, spot) = (&spec.cpu, &spec.nic, &spec.spot);
    for (table, key, value, least) in [
        // A probe has to take time, or a thread would make probes without end.
        ("cpu", "compute_ns", cpu.compute_ns, 1),
        ("cpu", "think_ns", cpu.think_ns, 0),
        ("cpu", "access_ns", cpu.access_ns, 0),
        ("cpu", "line_ns", cpu.line_ns, 0),
        ("cpu", "request_ns", cpu.request_ns, 0),
        ("cpu", "doorbell_ns", cpu.doorbell_ns, 0),
        ("cpu", "completion_ns", cpu.completion_ns, 0),
        ("cpu", "receive_ns", cpu.receive_ns, 0),
        ("cpu", "look_ns", cpu.look_ns, 1),
        ("cpu", "issue_ns", cpu.issue_ns, 0),
        ("cpu", "fetch_ns", cpu.fetch_ns, 0),
        ("nic", "packet_ns", nic.packet_ns, 0),
        ("nic", "gap_ns", nic.gap_ns, 0),
        ("nic", "pcie_ns", nic.pcie_ns, 0),
        ("nic", "link_ns", nic.link_ns, 0),
        ("nic", "switch_ns", nic.switch_ns, 0),
        ("spot", "request_ns", spot.request_ns, 1),
        ("spot", "doorbell_ns", spot.doorbell_ns, 0),
        ("spot", "outcome_ns", spot.outcome_ns, 1),
        ("spot", "entry_ns", spot.entry_ns, 0),
        ("spot", "probe_ns", spot.probe_ns, 100),
        ("spot", "probe_max_ns", spot.probe_max_ns, 100),
        ("redy", "request_ns", spec.redy.request_ns, 0),
        ("redy", "answer_ns", spec.redy.answer_ns, 0),
        ("p4", "turn_ns", spec.p4.turn_ns, 100),
    ] {
        range(table, key, value.into(), least, TIME_MAX_NS.into());
    }
    if !spec.record_bytes.is_multiple_of(8) {
        check.problem("", 0, "record_bytes", format!("{} is no multiple of 8", spec.record_bytes));
    }
    for (key, value) in [("local_percent", spec.local_percent), ("write_percent", spec.write_percent)] {
        if !(0.0..=100.0).contains(&value) {
            check.problem("", 0, key, format!("{value} is out of range; write 0 to 100"));
        }
    }
    if !(0.0..=0.1).contains(&spec.loss) {
        check.problem("", 0, "loss", format!("{} is out of range; write 0 to 0.1", spec.loss));
    }
    if spec.loss > 0.0 && spec.link.loss > 0.0 {
        check.problem("link", 0, "loss", "stands for loss, which is there too; write one of them");
    }
    check.link(&spec.link, 0.1, |name| {
        let is_known = HOST_NAMES.contains(&name);
        (!is_known).then(|| format!("`{name}` is no host; there are {}", HOST_NAMES.join(", ")))
    });
    for (key, value) in [("in_flight", spec.p4.in_flight), ("rest_turns", spec.p4.rest_turns)] {
        if !value.is_power_of_two() {
            check.problem("p4", 0, key, format!("{value} is no power of two"));
        }
    }
}
