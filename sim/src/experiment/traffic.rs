//! `[[traffic]]`: who sends what to whom, and when.

use super::one_usize;
use crate::random::{Between, Quantiles};
use crate::sizes;
use crate::transport::Transport;
use serde::{Deserialize, Serialize};

/// `[[traffic]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name, for results.
    pub name: String,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Names of the senders.
    pub senders: Option<Vec<String>>,
    /// Names of the receivers.
    pub receivers: Option<Vec<String>>,
    /// Sizes of messages.
    #[serde(default = "full_frame")]
    pub size: SizeSpec,
    /// What carries them.
    #[serde(default)]
    pub transport: Transport,
    /// With `VGG16`: share of the network's true size.
    #[serde(default = "whole")]
    pub scale: f64,
    /// With `trace`: the CSV file.
    pub trace: Option<String>,
    /// With `rpc`: a mix of YCSB's.
    pub ycsb: Option<Ycsb>,
    /// With `ycsb`: how many keys there are.
    #[serde(default = "keys")]
    pub keys: u32,
    /// With `ycsb`: exponent of the keys' popularity.
    #[serde(default = "zipf")]
    pub zipf: f64,
    /// When they come.
    pub arrivals: Arrivals,
    /// With `poisson`: share of the link's rate.
    pub load: Option<f64>,
    /// The host whose link `load` is a share of.
    pub load_link: Option<String>,
    /// What the load counts.
    #[serde(default)]
    pub load_in: LoadIn,
    /// Sending threads, each sender and receiver.
    #[serde(default = "one_usize")]
    pub flows: usize,
    /// Messages that may wait in a flow; further ones are dropped and counted.
    #[serde(default = "queue_limit")]
    pub queue_limit: usize,
    /// With `rpc`: size of requests.
    #[serde(default = "request_bytes")]
    pub request_bytes: u32,
    /// With `rpc`: time that the server takes.
    #[serde(default)]
    pub service_ns: u64,
    /// With `rpc`: time between an answer and the next request.
    #[serde(default)]
    pub think_ns: u64,
    /// From when latencies count.
    #[serde(default)]
    pub timed_from: TimedFrom,
    /// When it starts.
    #[serde(default)]
    pub start_us: u64,
    /// When it stops; at the end if not given.
    pub stop_us: Option<u64>,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All others to the first host.
    Incast,
    /// The first host to all others.
    Outcast,
    /// Every sender to every receiver; the first half to the second if not given.
    Shuffle,
    /// Everybody to everybody else.
    AllToAll,
    /// Everybody to one other, nobody to the same.
    Permutation,
    /// As a trace says.
    Trace,
}

/// From when a message's latency counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TimedFrom {
    /// The sending side has it: it may still wait for messages before it.
    #[default]
    Arrival,
    /// Its thread begins to send it, as where a thread takes no message before the last one is sent.
    Turn,
}

/// Sizes of messages.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SizeSpec {
    /// All the same.
    Bytes(u32),
    /// A distribution by name.
    Name(String),
    /// Quantiles.
    Quantiles(Vec<(f64, f64)>),
}

/// When messages come.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each flow has always one more.
    Saturate,
    /// At random, without regard to what is under way.
    Poisson,
    /// A flow sends a request; the receiver answers with a message; then the next request.
    Rpc,
    /// Every flow sends one message; when all have arrived, again.
    Rounds,
    /// As a trace says.
    Trace,
}

/// YCSB's core workloads (Cooper et al., SoCC 2010) that read and write single records.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub enum Ycsb {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// Half reads, half a read followed by an update.
    F,
}

impl Ycsb {
    /// Share of operations that write.
    pub fn writes(self) -> f64 {
        match self {
            Ycsb::A | Ycsb::F => 0.5,
            Ycsb::B => 0.05,
            Ycsb::C => 0.0,
        }
    }
}

/// What a load counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadIn {
    /// Bytes on the wire.
    #[default]
    Bytes,
    /// Bytes on the wire without the tags that a scheme adds: the same messages at the same times under every scheme.
    Untagged,
    /// Slots: a frame takes one, however short.
    Slots,
}

impl SizeSpec {
    /// The distribution.
    pub fn quantiles(&self) -> Result<Quantiles, String> {
        match self {
            SizeSpec::Bytes(0) => Err("is 0; a message has at least one byte".into()),
            SizeSpec::Bytes(bytes) => Ok(Quantiles::constant(*bytes)),
            SizeSpec::Name(name) => sizes::named(name),
            SizeSpec::Quantiles(points) => Quantiles::new(points, Between::Logarithmic),
        }
    }

    /// Whether it is a network's layers, one after the other, and not a distribution.
    pub fn is_layers(&self) -> bool {
        matches!(self, SizeSpec::Name(name) if name == sizes::VGG16)
    }
}

fn full_frame() -> SizeSpec {
    SizeSpec::Bytes(crate::message::MTU)
}
fn whole() -> f64 {
    1.0
}
fn keys() -> u32 {
    100_000
}
fn zipf() -> f64 {
    0.99
}
fn queue_limit() -> usize {
    10_000
}
fn request_bytes() -> u32 {
    64
}
