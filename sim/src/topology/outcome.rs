//! Results of a run.

use super::judge::Balance;
use super::network::LoadTime;
use crate::latency::Latency;
use crate::outcome::Compared;
use p4rack_wire::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct TopologyOutcome {
    /// The experiment's name.
    pub name: String,
    /// The topology's name.
    pub topology: String,
    /// Its seed.
    pub seed: u64,
    /// Simulated time that was measured, seconds.
    pub measured_s: f64,
    /// Payload that arrived in that time.
    pub goodput_gbps: f64,
    /// Results per traffic.
    pub traffic: Vec<SentTraffic>,
    /// Results per flow; empty if there are more than a thousand.
    pub flows: Vec<FlowOutcome>,
    /// Operations on remote memory: of each traffic with some, its reads, then its writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationsOutcome>,
    /// Sums of the counters of remote memory's machines: EDM's compute and memory nodes, Clio's clients and boards.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, u64>,
    /// Results per direction of a link.
    pub links: Vec<LinkOutcome>,
    /// Results per switch.
    pub switches: Vec<SwitchNodeOutcome>,
    /// Sums of the counters of hosts' agents.
    pub agents: BTreeMap<&'static str, u64>,
    /// Frames that they have dropped, by reason.
    pub agents_drops: BTreeMap<&'static str, u64>,
    /// Balance of all frames of the whole run.
    pub balance: Balance,
    /// Frames that switches have sent over links.
    pub switch_hops: u64,
    /// Time windows in which nodes ran alone; the shorter the links' delays, the more.
    pub windows: u64,
    /// Failed checks; empty if all passed.
    pub problems: Vec<String>,
    /// Figures compared with those of a paper.
    pub paper: Vec<Compared>,
    /// Checksum of everything that happened. The same file and seed give the same digest.
    pub digest: String,
    /// Cost of the run, if it was measured. It is not part of the results.
    #[serde(skip)]
    pub took: Option<Took>,
}

/// Cost of a run.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Seconds to read and to compile what it names; loading the switches counts as compiling.
    pub load_time: LoadTime,
    /// Seconds that it ran.
    pub run_s: f64,
    /// Processor time of all threads in that time, seconds.
    pub run_cpu_s: f64,
    /// Number of threads.
    pub threads: u64,
}

/// Results of a traffic.
#[derive(Clone, Debug, Serialize)]
pub struct SentTraffic {
    /// Its name.
    pub name: String,
    /// How it was sent.
    pub send: &'static str,
    /// Number of flows.
    pub flows: usize,
    /// Frames sent over the whole run, with answers and acknowledgements; with `memory` operations, here and in the next two.
    pub sent: u64,
    /// Those that arrived where they belong; none for captures, whose frames belong to no host.
    pub received: Option<u64>,
    /// Those that did not arrive until the end.
    pub lost: Option<u64>,
    /// Frames that arrived again: copies that switches have made, and TCP's segments that were sent again for nothing.
    pub twice: u64,
    /// Frames that arrived after a later one.
    pub reordered: u64,
    /// Frames that arrived changed behind their headers, or with TCP's numbers outside of what the connection can send.
    pub damaged: u64,
    /// Payload that arrived in the measured time, each byte once.
    pub goodput_gbps: f64,
    /// Requests without an answer in time; messages for which TCP had no room; operations that were refused, had no answer, or had not
    /// ended.
    pub failed: u64,
    /// TCP's retransmissions and timeouts.
    pub retransmissions: u64,
    /// TCP's timeouts.
    pub timeouts: u64,
    /// Unit that `latency` measures: a frame, a request and its answer, a message until it was acknowledged, or an operation.
    pub of: &'static str,
    /// Latency.
    pub latency_ns: Latency,
}

/// Results of a traffic's reads of remote memory, or of its writes, over the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct OperationsOutcome {
    /// Name of the traffic, and which of them.
    pub name: String,
    /// The way to the memory.
    pub way: String,
    /// Operations that were done.
    pub done: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those without an answer.
    pub unknown: u64,
    /// Those that had not ended at the end.
    pub open: u64,
    /// How often a write was sent again because a read did not find it.
    pub again: u64,
    /// Bytes that were read and compared, also those that reads found when they looked for a write.
    pub checked_bytes: u64,
    /// Of these: bytes that were not written there, which is a failed check.
    pub wrong_bytes: u64,
    /// From an operation's beginning to its end, of those that began in the measured time and were done.
    pub latency_ns: Latency,
}

/// Results of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowOutcome {
    /// Its ends, and its number if there are several.
    pub name: String,
    /// Name of its traffic.
    pub traffic: String,
    /// Frames sent by its sender over the whole run; with `request-response` requests, with `memory` operations.
    pub sent: u64,
    /// Frames that arrived, each once; with `request-response` answers, with `memory` operations that were done.
    pub received: u64,
    /// Payload that arrived in the measured time.
    pub goodput_mbps: f64,
    /// Latency, to a sixteenth of itself.
    pub latency_ns: Latency,
}

/// Results of a direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkOutcome {
    /// Its ends: from, to.
    pub name: String,
    /// Its rate; none if it has no limit.
    pub rate_gbps: Option<f64>,
    /// Share of the measured time in which it carried frames, gaps included; none without a rate.
    pub utilisation: Option<f64>,
    /// Frames sent over the whole run.
    pub frames: u64,
    /// Those lost at random.
    pub lost: u64,
    /// Frames dropped in front of it: by a switch for this port, by a host because its queue was full.
    pub dropped: u64,
    /// Bytes that waited for it in a switch at most, and in 99.9 % of the time.
    pub queue_max_bytes: u64,
    /// 99.9 % of the time no more than this waited.
    pub queue_p999_bytes: u64,
}

/// Results of a switch over the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchNodeOutcome {
    /// Its name.
    pub name: String,
    /// Frames that it has sent over links.
    pub hops: u64,
    /// Packets for its controller.
    pub to_controller: u64,
    /// Clones, replicas of multicast groups, and further passes that its program has asked for.
    pub clones: u64,
    /// Copies made by multicast.
    pub replicas: u64,
    /// Passes by `resubmit` and `recirculate`.
    pub passes: u64,
    /// Maximum bytes in its buffer.
    pub buffer_max_bytes: u64,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// A host's captured link: its name, frames with their times, frames beyond the limit.
#[derive(Clone, Debug)]
pub struct HostCapture {
    /// Name of the host.
    pub host: String,
    /// Frames in both directions.
    pub frames: Vec<(Nanos, Vec<u8>)>,
    /// Frames beyond the limit.
    pub lost: u64,
}
