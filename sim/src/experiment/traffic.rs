//! `[[traffic]]`: senders, receivers, sizes and times of messages.

use super::one_usize;
use crate::random::{Between, Distribution};
use crate::sizes;
use crate::transport::Transport;
use serde::{Deserialize, Serialize};

/// `[[traffic]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name in results.
    pub name: String,
    /// Pairs of senders and receivers.
    pub pattern: Pattern,
    /// Names of the senders.
    pub senders: Option<Vec<String>>,
    /// Names of the receivers.
    pub receivers: Option<Vec<String>>,
    /// Sizes of the messages.
    #[serde(default = "full_frame")]
    pub size: SizeSpec,
    /// Transport of the messages.
    #[serde(default)]
    pub transport: Transport,
    /// With `VGG16`: fraction of the network's true size.
    #[serde(default = "whole")]
    pub scale: f64,
    /// With `trace`: the CSV file.
    pub trace: Option<String>,
    /// With `rpc`: a mix of YCSB's.
    pub ycsb: Option<Ycsb>,
    /// With `ycsb`: number of keys.
    #[serde(default = "keys")]
    pub keys: u32,
    /// With `ycsb`: exponent of the keys' popularity.
    #[serde(default = "zipf")]
    pub zipf: f64,
    /// Times of the messages.
    pub arrivals: Arrivals,
    /// With `poisson`: load as a fraction of the link's rate.
    pub load: Option<f64>,
    /// The host whose link `load` refers to.
    pub load_link: Option<String>,
    /// Bytes that the load counts.
    #[serde(default)]
    pub load_in: LoadIn,
    /// Sending threads per pair of sender and receiver.
    #[serde(default = "one_usize")]
    pub flows: usize,
    /// With `saturate`: flows begin one after the other, evenly within this time.
    #[serde(default)]
    pub stagger_us: u64,
    /// Maximum messages waiting in a flow; further ones are dropped and counted.
    #[serde(default = "queue_limit")]
    pub queue_limit: usize,
    /// With `rpc`: size of requests.
    #[serde(default = "request_bytes")]
    pub request_bytes: u32,
    /// With `rpc`: processing time of the server.
    #[serde(default)]
    pub service_ns: u64,
    /// With `rpc`: time between a response and the next request.
    #[serde(default)]
    pub think_ns: u64,
    /// Start of a message's latency.
    #[serde(default)]
    pub timed_from: TimedFrom,
    /// When its sources start.
    #[serde(default)]
    pub start_us: u64,
    /// When its sources stop. Default: the end of the run.
    pub stop_us: Option<u64>,
}

/// Pairs of senders and receivers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All others to the first host.
    Incast,
    /// The first host to all others.
    Outcast,
    /// Every sender to every receiver; by default the first half of the hosts to the second.
    Shuffle,
    /// Every host to every other one.
    AllToAll,
    /// Each host to one other; each host receives from one.
    Permutation,
    /// The nth sender to the nth receiver; by default the first half of the hosts to the second.
    Pairs,
    /// As in a trace.
    Trace,
}

/// When the latency of a message starts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TimedFrom {
    /// When the sender has the message, which may still wait for earlier ones.
    #[default]
    Arrival,
    /// When its thread starts to send it, for threads that take no message before the previous one is sent.
    Turn,
}

/// Distribution of message sizes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "is no size; write bytes, such as 1000, the name of a distribution, such as \"W1\", or quantiles, such as [[0, 100], [1, 6000]]"
)]
pub enum SizeSpec {
    /// A constant size.
    Bytes(u32),
    /// A distribution by name.
    Name(String),
    /// A distribution given by quantiles.
    Quantiles(Vec<(f64, f64)>),
}

/// When messages are created.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each flow always has another message.
    Saturate,
    /// At random, regardless of messages in flight.
    Poisson,
    /// A flow sends a request, waits for the receiver's response, and sends the next request.
    Rpc,
    /// Every flow sends one message; once all have arrived, the next round starts.
    Rounds,
    /// As in a trace.
    Trace,
}

/// YCSB's core workloads (Cooper et al., SoCC 2010) that read and write single records.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub enum Ycsb {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads only.
    C,
    /// Half reads, half a read followed by an update.
    F,
}

impl Ycsb {
    /// Fraction of operations that write.
    pub fn writes(self) -> f64 {
        match self {
            Ycsb::A | Ycsb::F => 0.5,
            Ycsb::B => 0.05,
            Ycsb::C => 0.0,
        }
    }
}

/// Bytes that a load counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadIn {
    /// Bytes on the wire.
    #[default]
    Bytes,
    /// Bytes on the wire without the tags that a scheme adds, which gives the same messages at the same times
    /// under every scheme.
    Untagged,
    /// Slots: each frame takes one, however short.
    Slots,
}

impl SizeSpec {
    /// The distribution as quantiles.
    pub fn quantiles(&self) -> Result<Distribution, String> {
        match self {
            SizeSpec::Bytes(0) => Err("is 0; a message has at least one byte".into()),
            SizeSpec::Bytes(bytes) => Ok(Distribution::constant(*bytes)),
            SizeSpec::Name(name) => sizes::named(name),
            SizeSpec::Quantiles(points) => Distribution::new(points, Between::Logarithmic),
        }
    }

    /// Whether it consists of a network's layers in order rather than a distribution.
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
