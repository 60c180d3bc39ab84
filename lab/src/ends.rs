//! The hosts' ends of their links: frames that each has sent, received and dropped.

use crate::error::LabError;
use crate::network::{Access, HOST_INTERFACE};
use crate::running::Running;
use p4rack_hosts::report::Report;
use p4rack_netdev::{Links, NetNs};
use std::collections::BTreeMap;

/// An agent's counter of frames that it sent to its link; the next one, of frames received.
pub(crate) const LINK_OUT: &str = "link_out";
pub(crate) const LINK_IN: &str = "link_in";

/// Counts of a host's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// Position of the host.
    pub(crate) index: usize,
    /// Frames sent to the switch.
    pub(crate) sent_frames: u64,
    /// Frames received from it.
    pub(crate) received_frames: u64,
    /// Frames lost in the host, by place and reason.
    pub(crate) drops: BTreeMap<String, u64>,
}

/// Reads those of all hosts that still run.
pub(crate) fn read(running: &mut Running<'_>) -> Result<Vec<End>, LabError> {
    if running.network.access == Access::Kernel {
        let hosts = running.rack.hosts.iter().zip(&running.network.hosts).enumerate();
        return hosts.map(|(index, (_, ns))| End::of_kernel(index, ns)).collect();
    }
    running.agent_reports()?.iter().map(|(index, report)| End::of_agent(*index, report)).collect()
}

impl End {
    /// By an agent's report.
    pub(crate) fn of_agent(index: usize, report: &Report) -> Result<End, LabError> {
        let mut drops: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, count) in &report.endpoint.drops {
            drops.insert(format!("agent.{reason}"), *count);
        }
        let tap = report.tap.kernel.as_ref().ok_or_else(|| {
            let what = format!("statistics of the agent of {}", report.host);
            LabError::measurement(what, "tap.kernel: the interface is gone")
        })?;
        drops.insert("tap.transmit_queue".to_owned(), tap.tx_dropped);
        drops.insert("tap.refused".to_owned(), report.tap.refused);
        let (sent_frames, received_frames) = (counter(report, LINK_OUT)?, counter(report, LINK_IN)?);
        Ok(End { index, sent_frames, received_frames, drops })
    }

    /// By the kernel's counts of the link.
    fn of_kernel(index: usize, ns: &NetNs) -> Result<End, LabError> {
        let link = ns.run(|| Links::open()?.get(HOST_INTERFACE))??;
        let drops = [("link.transmit_queue".to_owned(), link.tx_dropped)].into();
        Ok(End { index, sent_frames: link.tx_frames, received_frames: link.rx_frames, drops })
    }
}

/// A count of an agent's report. The error names the host and the count.
pub(crate) fn counter(report: &Report, name: &str) -> Result<u64, LabError> {
    let what = || format!("statistics of the agent of {}", report.host);
    report.endpoint.counter(name).map_err(|why| LabError::measurement(what(), why))
}
