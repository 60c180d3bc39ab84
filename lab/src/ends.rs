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
    /// At two switches: frames to other hosts that were taken, and first copies of the others' frames.
    pub(crate) copies: Option<(u64, u64)>,
}

/// Reads those of all hosts that still run.
pub(crate) fn read(running: &mut Running<'_>) -> Result<Vec<End>, LabError> {
    if running.network.access == Access::Kernel {
        let hosts = running.rack.hosts.iter().zip(&running.network.hosts).enumerate();
        return hosts.map(|(index, (_, ns))| End::of_kernel(index, ns)).collect();
    }
    let watched = running.watched;
    running.agent_reports()?.iter().map(|(index, report)| End::of_agent(*index, report, watched)).collect()
}

impl End {
    /// By an agent's report: its machine at a switch. Where there are several, a machine drops copies; the frames are dropped if
    /// all machines refuse them.
    pub(crate) fn of_agent(index: usize, report: &Report, switch: usize) -> Result<End, LabError> {
        let mut drops: BTreeMap<String, u64> = BTreeMap::new();
        let of_copies = |name: &str| {
            let what = || format!("statistics of the agent of {}", report.host);
            let missing = || LabError::measurement(what(), format!("copies: missing field `{name}`"));
            report.copies.as_ref().map(|copies| copies.get(name).copied().ok_or_else(missing)).transpose()
        };
        match of_copies("refused")? {
            Some(refused) => _ = drops.insert("agent.refused".to_owned(), refused),
            None => {
                for (reason, count) in &report.endpoint.drops {
                    drops.insert(format!("agent.{reason}"), *count);
                }
            }
        }
        let copies = of_copies("numbered")?.zip(of_copies("first")?);
        let tap = report.tap.kernel.as_ref().ok_or_else(|| {
            let what = format!("statistics of the agent of {}", report.host);
            LabError::measurement(what, "tap.kernel: the interface is gone")
        })?;
        drops.insert("tap.transmit_queue".to_owned(), tap.tx_dropped);
        drops.insert("tap.refused".to_owned(), report.tap.refused);
        let count = |name: &str| {
            let machine = report.machine(switch).unwrap_or(&report.endpoint);
            machine.counter(name).map_err(|why| {
                LabError::measurement(format!("statistics of the agent of {}", report.host), why)
            })
        };
        let (sent_frames, received_frames) = (count(LINK_OUT)?, count(LINK_IN)?);
        Ok(End { index, sent_frames, received_frames, drops, copies })
    }

    /// By the kernel's counts of the link.
    fn of_kernel(index: usize, ns: &NetNs) -> Result<End, LabError> {
        let link = ns.run(|| Links::open()?.get(HOST_INTERFACE))??;
        let drops = [("link.transmit_queue".to_owned(), link.tx_dropped)].into();
        let (sent_frames, received_frames) = (link.tx_frames, link.rx_frames);
        Ok(End { index, sent_frames, received_frames, drops, copies: None })
    }
}

/// A count of an agent's report. The error names the host and the count.
pub(crate) fn counter(report: &Report, name: &str) -> Result<u64, LabError> {
    let what = || format!("statistics of the agent of {}", report.host);
    report.endpoint.counter(name).map_err(|why| LabError::measurement(what(), why))
}
