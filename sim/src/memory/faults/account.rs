//! Conservation: each frame that entered a switch has left it, was dropped and counted, or is queued.

use crate::switch::{Model, P4};
use p4rack_wire::Nanos;

/// Frames of a switch.
#[derive(Debug)]
pub(super) struct Account {
    /// Received frames, and copies made by the switch.
    pub came: u64,
    /// Dropped frames.
    pub drops: u64,
    /// Passes of frames after their first one.
    pub passes: u64,
    /// Mismatches.
    pub problems: Vec<String>,
}

pub(super) fn account(model: &P4, now_ns: u64) -> Account {
    let stats = model.stats(Nanos(now_ns));
    let sum = |of: fn(&p4rack_switch::PortStats) -> u64| stats.ports.iter().map(of).sum::<u64>();
    let came = sum(|port| port.rx_frames) + stats.clones;
    let drops: u64 = stats.drops.iter().map(|(_, count)| count).sum();
    let queued = sum(|port| port.queues.iter().map(|queue| queue.frames).sum());
    let went = sum(|port| port.tx_frames) + drops + queued;
    let named: u64 = model.counted().drops.iter().map(|(_, count)| count).sum();
    let ingress = stats.drops.iter().find(|(reason, _)| reason.name() == "ingress_drop");
    let ingress = ingress.map_or(0, |(_, count)| *count);
    let mut problems = Vec::new();
    if came != went {
        problems.push(format!("{came} frames came, {went} went"));
    }
    if named != ingress {
        problems.push(format!("{ingress} frames dropped, {named} by reason"));
    }
    Account { came, drops, passes: stats.resubmits + stats.recirculations, problems }
}
