//! Fields of an experiment's file.

use crate::experiment::{PaperSpec, Pattern, SizeSpec};
use crate::random::{Between, Distribution};
use crate::transport::TransportSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file's fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TopologySpec {
    /// Name in results.
    pub name: String,
    /// The kind of experiments: `"topology"`.
    pub kind: String,
    /// Path of the topology, relative to the experiment's folder.
    pub topology: String,
    /// With a `topology.json` of the P4 tutorials: whether programs of the solution are taken.
    #[serde(default)]
    pub solution: bool,
    /// Seed of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long hosts send, from time 0.
    pub duration_us: u64,
    /// Start of the measured time.
    #[serde(default)]
    pub warmup_us: u64,
    /// Time for frames to arrive after the hosts have stopped.
    #[serde(default = "drain")]
    pub drain_us: u64,
    /// Delay of a switch's pipeline.
    #[serde(default = "pipeline")]
    pub pipeline_ns: DelaySpec,
    /// The same of single switches, by name.
    #[serde(default)]
    pub switch_pipeline_ns: BTreeMap<String, DelaySpec>,
    /// Dynamic thresholds: a queue may hold this percentage of the free part of its switch's buffer.
    pub dynamic_percent: Option<u32>,
    /// Size of the queue between a host and its link.
    #[serde(default = "one_mib")]
    pub host_queue: String,
    /// Parameters of TCP.
    #[serde(default)]
    pub transport: TransportSpec,
    /// What hosts send.
    pub traffic: Vec<SenderSpec>,
    /// Figures of a paper, shown beside the simulated ones.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// A delay in nanoseconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "is no delay; write nanoseconds from 0 to 10000000, such as 400, or quantiles, such as [[0, 320], [0.5, 349], [1, 6820]]"
)]
pub enum DelaySpec {
    /// Always the same.
    Constant(u32),
    /// Quantiles: pairs of probability and nanoseconds.
    Quantiles(Vec<(f64, f64)>),
}

impl DelaySpec {
    pub(super) fn quantiles(&self) -> Result<Distribution, String> {
        match self {
            DelaySpec::Constant(ns) => Ok(Distribution::constant(*ns)),
            DelaySpec::Quantiles(points) => Distribution::new(points, Between::Linear),
        }
    }

    /// The longest one.
    pub(super) fn most_ns(&self) -> Result<u32, String> {
        self.quantiles().map(|quantiles| quantiles.at(1.0) as u32)
    }
}

/// How the hosts of a traffic send.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SendKind {
    /// UDP at even intervals.
    Constant,
    /// UDP at random times.
    Poisson,
    /// The frames of a capture, at its times.
    Pcap,
    /// A UDP request; the next one follows its answer.
    RequestResponse,
    /// TCP without congestion control: only the window limits.
    Tcp,
    /// TCP Cubic.
    Cubic,
    /// DCTCP.
    Dctcp,
    /// Reads and writes of remote memory.
    Memory,
}

impl SendKind {
    /// Its name in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            SendKind::Constant => "constant",
            SendKind::Poisson => "poisson",
            SendKind::Pcap => "pcap",
            SendKind::RequestResponse => "request-response",
            SendKind::Tcp => "tcp",
            SendKind::Cubic => "cubic",
            SendKind::Dctcp => "dctcp",
            SendKind::Memory => "memory",
        }
    }

    /// Whether it is a variant of TCP.
    pub(super) fn is_tcp(self) -> bool {
        matches!(self, SendKind::Tcp | SendKind::Cubic | SendKind::Dctcp)
    }
}

/// `[[traffic]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SenderSpec {
    /// Name in results.
    pub name: String,
    /// How the senders send.
    pub send: SendKind,
    /// Pairs of senders and receivers.
    #[serde(default = "all_to_all")]
    pub pattern: Pattern,
    /// Names of the senders.
    pub senders: Option<Vec<String>>,
    /// Names of the receivers.
    pub receivers: Option<Vec<String>>,
    /// Flows of each pair.
    #[serde(default = "one_usize")]
    pub flows: usize,
    /// Payload bytes of a message, or bytes of an operation.
    #[serde(default = "size")]
    pub size: SizeSpec,
    /// Payload of a flow, as a rate.
    pub rate: Option<String>,
    /// Time between two messages of a flow.
    pub interval_us: Option<f64>,
    /// Messages of a flow at most, or its operations.
    pub messages: Option<u64>,
    /// Payload bytes of an answer.
    #[serde(default = "answer")]
    pub answer_size: SizeSpec,
    /// Requests of a flow that wait for an answer at most, or its operations under way.
    #[serde(default = "one_usize")]
    pub under_way: usize,
    /// Time between an answer and the next request, or two operations.
    #[serde(default)]
    pub think_us: u64,
    /// A request without an answer counts as lost after this time.
    #[serde(default = "timeout")]
    pub timeout_us: u64,
    // A run's frames depend on all fields that are written; these leave those of other traffic as they are.
    /// Way to remote memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// Operations that read, in percent; the others write. Default: half of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<f64>,
    /// Size of the memory of a flow, whose places its operations read and write. Default: 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The capture, relative to the experiment's folder.
    pub file: Option<String>,
    /// Destination port of UDP and TCP.
    #[serde(default = "port")]
    pub port: u16,
    /// Differentiated services code point of its packets.
    #[serde(default)]
    pub dscp: u8,
    /// When senders start.
    #[serde(default)]
    pub start_us: u64,
    /// When they stop. Default: the end of the run.
    pub stop_us: Option<u64>,
}

fn one() -> u64 {
    1
}
fn one_usize() -> usize {
    1
}
fn drain() -> u64 {
    20_000
}
fn pipeline() -> DelaySpec {
    DelaySpec::Constant(400)
}
fn one_mib() -> String {
    "1 MiB".into()
}
fn all_to_all() -> Pattern {
    Pattern::AllToAll
}
fn size() -> SizeSpec {
    SizeSpec::Bytes(1_000)
}
fn answer() -> SizeSpec {
    SizeSpec::Bytes(1_000)
}
fn timeout() -> u64 {
    10_000
}
fn port() -> u16 {
    5_001
}
