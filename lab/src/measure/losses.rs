//! Frames lost, by place and reason: each once.

use crate::control::{self, PortStats, SwitchStats};
use crate::ends::End;
use crate::error::LabError;
use crate::network;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::workload::udp::SendReport;
use p4rack_codegen::scheme::{Cost, DropReason};
use std::collections::BTreeMap;

/// Frames by place and reason of their loss.
pub(super) type Counts = BTreeMap<String, u64>;

/// Counts of the switch since the scheme was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchCounts {
    /// Lost frames by reason, of the traffic manager and the program.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Unsolicited frames over t or T, by reason.
    pub(crate) unsolicited: Counts,
}

impl SwitchCounts {
    /// All lost frames.
    pub(super) fn fabric(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Frames lost since `earlier`, by name.
    pub(super) fn since(&self, earlier: &SwitchCounts) -> BTreeMap<String, u64> {
        let more = |(name, count): (&String, &u64)| {
            let more = count.saturating_sub(earlier.lost.get(name).copied().unwrap_or(0));
            (more > 0).then(|| (name.clone(), more))
        };
        self.lost.iter().filter_map(more).collect()
    }
}

/// Everything that the switch has dropped: the traffic manager's counts before and after they were reset,
/// with the program's own reasons in place of "the program dropped it".
pub(crate) fn switch_counts(
    running: &Running<'_>,
    early: &SwitchStats,
    late: &SwitchStats,
) -> Result<SwitchCounts, LabError> {
    combined(control::program_drops(running)?, [early, late], &running.rack.drop_reasons())
}

/// Combines the counts of the program's reasons with the traffic manager's.
pub(super) fn combined(
    mut program: Counts,
    switch: [&SwitchStats; 2],
    reasons: &[DropReason],
) -> Result<SwitchCounts, LabError> {
    let mut lost = Counts::new();
    for (reason, count) in switch.iter().flat_map(|stats| &stats.drops) {
        add(&mut lost, &format!("switch.{reason}"), *count);
    }
    let named: u64 = program.values().sum();
    if let Some(unnamed) = lost.get_mut("switch.ingress_drop") {
        *unnamed = unnamed.saturating_sub(named);
    }
    let mut unsolicited = Counts::new();
    for reason in reasons.iter().filter(|reason| reason.cost != Cost::Frame) {
        let count = program.remove(reason.name).ok_or_else(|| {
            let why = format!("no `{}` among the program's reasons", reason.name);
            LabError::measurement("the program's counter of drops", why)
        })?;
        if reason.cost == Cost::SentAgain {
            unsolicited.insert(format!("program.{}", reason.name), count);
        }
    }
    lost.extend(program.into_iter().map(|(reason, count)| (format!("program.{reason}"), count)));
    lost.retain(|_, count| *count > 0);
    Ok(SwitchCounts { lost, unsolicited })
}

/// Adds what the switch, the links and the hosts have dropped. `receivers` are positions of hosts; one may have been killed.
pub(super) fn fill_drops(
    result: &mut SchemeResult,
    running: &Running<'_>,
    counts: &SwitchCounts,
    switch: [&SwitchStats; 2],
    ends: &[End],
    senders: &BTreeMap<String, SendReport>,
    (receivers, killed): (&[usize], Option<&str>),
) -> Result<(), LabError> {
    let (mut links, mut hosts) = (Counts::new(), Counts::new());
    for end in ends {
        let port = running.rack.hosts[end.index].port;
        add_host(end, [switch[0].port(port)?, switch[1].port(port)?], &mut links, &mut hosts);
    }
    // A dead host's sockets reject everything, which is not a loss of the run.
    let living = senders.iter().filter(|(host, _)| killed != Some(host.as_str()));
    let refused: u64 = living.map(|(_, sender)| sender.no_buffer + sender.errors).sum();
    hosts.insert("socket.refused".to_owned(), refused);
    for receiver in receivers {
        let buffer = network::udp_buffer_drops(&running.network.hosts[*receiver])?;
        add(&mut hosts, "socket.receive_buffer", buffer);
    }

    let copies: Vec<(u64, u64)> = ends.iter().filter_map(|end| end.copies).collect();
    if copies.is_empty() {
        result.fabric_drops = counts.fabric() + links.values().sum::<u64>();
    } else {
        // What a switch or a link loses is a copy. A frame is lost if no copy arrives.
        let (taken, arrived) = copies.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        result.fabric_drops = lost_between(taken, arrived);
        links = [("fabric.all_copies".to_owned(), result.fabric_drops)].into();
    }
    result.host_drops = hosts.values().sum();
    result.drops = counts.lost.clone();
    result.drops.extend(counts.unsolicited.clone());
    result.drops.extend(links);
    result.drops.extend(hosts);
    result.drops.retain(|_, count| *count > 0);
    Ok(())
}

/// Adds the losses of a host and its link. `port` holds its port's statistics before and after they were
/// reset.
pub(super) fn add_host(end: &End, port: [&PortStats; 2], links: &mut Counts, hosts: &mut Counts) {
    let [rx_frames, tx_frames] = [|port: &PortStats| port.rx_frames, |port: &PortStats| port.tx_frames]
        .map(|of| port.map(of).iter().sum());
    // Sent by one end and never received by the other.
    add(links, "link.to_switch", lost_between(end.sent_frames, rx_frames));
    add(links, "link.to_host", lost_between(tx_frames, end.received_frames));
    for (reason, count) in &end.drops {
        add(hosts, reason, *count);
    }
}

fn add(counts: &mut Counts, name: &str, more: u64) {
    *counts.entry(name.to_owned()).or_default() += more;
}

/// Frames sent but not received. If more were received than sent, the kernel itself sends on the link.
pub(super) fn lost_between(sent: u64, seen: u64) -> u64 {
    sent.saturating_sub(seen)
}
