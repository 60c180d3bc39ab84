//! An agent's statistics as JSON. The agent writes them and measurements read them through the same types.
//!
//! Missing fields are errors when reading: an absent count is not a zero.

use p4rack_fabric::common::Delay;
use p4rack_netdev::link::LinkInfo;
use p4rack_netdev::packet;
use p4rack_netdev::sched::Granted;
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Statistics of a running agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the host.
    pub host: String,
    /// MAC address of the host.
    pub mac: String,
    /// `l2`, `pl2-counter` or `pl2-clock`.
    pub scheme: String,
    /// How long the agent has been running.
    pub running_ns: u64,
    /// Processor time of the agent's thread.
    pub cpu_ns: u64,
    /// Number of times its loop woke up.
    pub wakeups: u64,
    /// How late timers woke the loop.
    pub wake_late: DelayFigures,
    /// Scheduling that the kernel granted; `None` before the loop starts.
    #[serde(deserialize_with = "Option::deserialize")]
    pub scheduling: Option<Granted>,
    /// TCP's congestion control in its namespace; `None` if the kernel does not say.
    #[serde(deserialize_with = "Option::deserialize")]
    pub congestion_control: Option<String>,
    /// Errors while reading the link or the TAP.
    pub read_errors: u64,
    /// Interfaces to the rack's switches that vanished while the agent ran.
    pub links_gone: u64,
    /// The host's machine.
    pub endpoint: EndpointReport,
    /// The interface to the switch.
    pub link: LinkReport,
    /// The same for the rack's other switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<PathReport>,
    /// With several switches: frames and their copies by name, those of [`p4rack_fabric::paths::Counters`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<BTreeMap<String, u64>>,
    /// The interface that applications use.
    pub tap: TapReport,
}

impl Report {
    /// The machine at a switch, by its position.
    pub fn machine(&self, switch: usize) -> Option<&EndpointReport> {
        match switch.checked_sub(1) {
            None => Some(&self.endpoint),
            Some(nth) => self.more.get(nth).map(|path| &path.endpoint),
        }
    }
}

/// Statistics of the host's machine at another switch, and of its link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The machine.
    pub endpoint: EndpointReport,
    /// The link.
    pub link: LinkReport,
}

/// Statistics of the host's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointReport {
    /// Events by name, those of [`p4rack_fabric::HostMachine::counters`]. See [`EndpointReport::counter`].
    pub counters: BTreeMap<String, u64>,
    /// Dropped frames by reason, including zeros.
    pub drops: BTreeMap<String, u64>,
    /// Application frames dropped before they reached the link.
    pub app_frames_dropped: u64,
    /// Time from a request to its grant; `None` if the scheme has no requests.
    #[serde(deserialize_with = "Option::deserialize")]
    pub rsv_grt: Option<DelayFigures>,
    /// How late frames were sent; `None` if the scheme gives them no time.
    #[serde(deserialize_with = "Option::deserialize")]
    pub lateness: Option<DelayFigures>,
    /// Maximum frames in all queues together.
    pub queue_max_frames: u64,
    /// Frames waiting now.
    pub backlog_frames: u64,
}

impl EndpointReport {
    /// The count of an event. The error names the missing counter.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        let count = self.counters.get(name).copied();
        count.ok_or_else(|| format!("endpoint.counters: missing field `{name}`"))
    }
}

/// Statistics of the interface to the switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Name of the interface.
    pub interface: String,
    /// Counters of the socket.
    pub socket: packet::Stats,
    /// Size of the socket's receive buffer.
    pub receive_buffer_bytes: u64,
    /// The kernel's counters; `None` if the interface is gone.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kernel: Option<LinkInfo>,
}

/// Statistics of the interface that applications use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapReport {
    /// Name of the interface.
    pub interface: String,
    /// The kernel's counters; `None` if the interface is gone.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kernel: Option<LinkInfo>,
    /// Frames that the system did not accept.
    pub refused: u64,
}

/// Distribution of a delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayFigures {
    /// Number of measurements.
    pub samples: u64,
    /// Minimum.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// 50th percentile.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl From<&Delay> for DelayFigures {
    fn from(delay: &Delay) -> DelayFigures {
        DelayFigures {
            samples: delay.samples(),
            min_ns: delay.min().unwrap_or(Nanos::ZERO).0,
            mean_ns: delay.mean().0,
            p50_ns: delay.quantile(0.5).0,
            p99_ns: delay.quantile(0.99).0,
            p999_ns: delay.quantile(0.999).0,
            max_ns: delay.max().0,
        }
    }
}
