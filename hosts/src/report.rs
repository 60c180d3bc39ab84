//! An agent's statistics as JSON: the agent writes them, whoever measures reads them, by one type.
//!
//! Reading refuses what is missing: a count that nobody wrote is an error, not a zero.

use p4rack_fabric::pl2::Delay;
use p4rack_netdev::link::LinkInfo;
use p4rack_netdev::packet;
use p4rack_netdev::sched::Granted;
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is known about a running agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the host.
    pub host: String,
    /// Its MAC address.
    pub mac: String,
    /// `l2`, `pl2-counter` or `pl2-clock`.
    pub scheme: String,
    /// How long the agent has been running.
    pub running_ns: u64,
    /// Processor time of its thread.
    pub cpu_ns: u64,
    /// Times that its loop woke up.
    pub wakeups: u64,
    /// How late timers woke it.
    pub wake_late: DelayFigures,
    /// What the kernel granted; `None` before the loop has begun.
    #[serde(deserialize_with = "Option::deserialize")]
    pub scheduling: Option<Granted>,
    /// TCP's congestion control in its namespace; `None` where the kernel doesn't tell.
    #[serde(deserialize_with = "Option::deserialize")]
    pub congestion_control: Option<String>,
    /// Errors reading the link or the TAP.
    pub read_errors: u64,
    /// PL2's machine.
    pub endpoint: EndpointReport,
    /// The interface towards the switch.
    pub link: LinkReport,
    /// The interface that applications use.
    pub tap: TapReport,
}

/// PL2's machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointReport {
    /// Events by name: those of [`p4rack_fabric::pl2::Counters`]. See [`EndpointReport::counter`].
    pub counters: BTreeMap<String, u64>,
    /// Dropped frames by reason, zeroes included.
    pub drops: BTreeMap<String, u64>,
    /// Applications' frames that were dropped before they reached the link.
    pub app_frames_dropped: u64,
    /// From a request to its grant.
    pub rsv_grt: DelayFigures,
    /// How late frames left.
    pub lateness: DelayFigures,
    /// Most frames that waited in the queues together.
    pub queue_max_frames: u64,
    /// Frames that wait now.
    pub backlog_frames: u64,
}

impl EndpointReport {
    /// An event's count; an error names the counter that is missing.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        let count = self.counters.get(name).copied();
        count.ok_or_else(|| format!("endpoint.counters: missing field `{name}`"))
    }
}

/// The interface towards the switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its name.
    pub interface: String,
    /// What happened on the socket.
    pub socket: packet::Stats,
    /// Receive buffer of the socket.
    pub receive_buffer_bytes: u64,
    /// What the kernel says; `None` if the interface is gone.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kernel: Option<LinkInfo>,
}

/// The interface that applications use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapReport {
    /// Its name.
    pub interface: String,
    /// What the kernel says; `None` if the interface is gone.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kernel: Option<LinkInfo>,
    /// Frames that the system did not take.
    pub refused: u64,
}

/// A delay's figures, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayFigures {
    /// How often it was measured.
    pub samples: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl From<&Delay> for DelayFigures {
    fn from(delay: &Delay) -> DelayFigures {
        DelayFigures {
            samples: delay.samples(),
            min_ns: delay.min().unwrap_or(Nanos::ZERO).0,
            mean_ns: delay.mean().0,
            p50_ns: delay.percentile(500).0,
            p99_ns: delay.percentile(990).0,
            p999_ns: delay.percentile(999).0,
            max_ns: delay.max().0,
        }
    }
}
