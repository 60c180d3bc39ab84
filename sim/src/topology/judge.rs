//! The checks at the end of a run: every frame that was sent or copied has arrived, was dropped for a reason, or is on its way, in
//! the network and in the agents of its hosts; and remote memory has given back what was written.

use super::counts::Counts;
use super::world::TopologyWorld;
use p4rack_switch::Stats;
use serde::Serialize;

/// Balance of all frames of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Frames that hosts have sent.
    pub sent: u64,
    /// Copies that switches have made: clones, and replicas beside the frame itself. At those that count no copies: frames that
    /// have left without having come, less those that have come and ended unseen.
    pub copies: i64,
    /// Switches that count no copies, so that a frame which vanishes in one of them is not missed: those with TNA's programs, whose
    /// packets pass the chip several times.
    pub unchecked_switches: u64,
    /// Frames that have arrived at a host.
    pub received: u64,
    /// Of these: frames of flows that end at another host.
    pub elsewhere: u64,
    /// Of these: frames of no flow, such as those of captures.
    pub others: u64,
    /// Of these: kept by hosts' agents.
    pub agents: u64,
    /// Of these: for the agents themselves, such as grants. They have dropped the others.
    pub agents_control: u64,
    /// Of those received: of remote memory, for the machines of its hosts.
    pub memory: u64,
    /// Frames that senders gave to agents.
    pub agents_given: u64,
    /// Of these: sent, each counted once, however many copies of it have left.
    pub agents_sent: u64,
    /// Of these: dropped by agents. They are not among those sent.
    pub agents_dropped: u64,
    /// Of these: waiting in agents at the end. They are not among those sent.
    pub agents_waiting: u64,
    /// Dropped by hosts because their queues were full.
    pub queue_full: u64,
    /// Dropped by switches.
    pub dropped: u64,
    /// Dropped by switches because they went round in a loop.
    pub looped: u64,
    /// Lost on links.
    pub lost: u64,
    /// Dropped because a link held its most.
    pub link_full: u64,
    /// Packets for controllers.
    pub to_controller: u64,
    /// In queues of switches at the end.
    pub queued: u64,
    /// On links at the end.
    pub in_flight: u64,
    /// Frames for which there is no account.
    pub unaccounted: u64,
}

/// The balance, and its violations.
pub(super) fn judge(world: &TopologyWorld, counts: &Counts, stats: &[Stats]) -> (Balance, Vec<String>) {
    let mut balance = Balance {
        sent: counts.sent,
        received: counts.arrived,
        elsewhere: counts.elsewhere,
        others: counts.others,
        agents: counts.agents,
        memory: counts.memory,
        queue_full: counts.queue_full,
        ..Balance::default()
    };
    let (mut unaccounted, mut problems) = (0, Vec::new());
    // Each host: frames given to it are at its link or dropped, and arrived frames are of a known kind.
    let (entered, arrived) = world.delivered();
    let (mut given, mut kept) = (0, 0);
    for host in world.hosts() {
        let (link, in_flight) = world.link(&host.outlet);
        given += link.sent + host.outlet.full;
        balance.link_full += host.outlet.full;
        balance.lost += link.lost;
        balance.in_flight += in_flight;
        unaccounted += link.sent.abs_diff(link.delivered + link.lost + in_flight);
        if let Some(agent) = &host.agent {
            let ledger = agent.machine.ledger();
            balance.agents_given += agent.passed.given;
            balance.agents_sent += ledger.sent;
            balance.agents_dropped += ledger.app_dropped;
            balance.agents_waiting += ledger.waiting;
            balance.agents_control += ledger.control_in;
            kept += ledger.control_in + ledger.link_dropped;
            unaccounted += agent.unaccounted();
        }
    }
    unaccounted += counts.agents.abs_diff(kept);
    unaccounted += counts.sent.abs_diff(given + counts.queue_full);
    // Each switch: what entered or was made has left, was dropped, or waits.
    for ((switch, stats), entered) in world.switches().into_iter().zip(stats).zip(entered) {
        let mut sent = 0;
        for outlet in &switch.outlets {
            let (link, in_flight) = world.link(outlet);
            sent += link.sent + outlet.full;
            balance.link_full += outlet.full;
            balance.lost += link.lost;
            balance.in_flight += in_flight;
            unaccounted += link.sent.abs_diff(link.delivered + link.lost + in_flight);
        }
        let drops: u64 = stats.drops.iter().map(|(_, count)| count).sum();
        let ports = stats.ports.iter().flat_map(|port| &port.queues).map(|queue| queue.frames);
        let queued = ports.sum::<u64>() + stats.nowhere_frames;
        balance.dropped += drops;
        balance.looped += switch.looped;
        balance.queued += queued;
        balance.to_controller += switch.to_controller;
        unaccounted += switch.hops.abs_diff(sent);
        let left = sent + switch.to_controller + drops + switch.looped + queued;
        if switch.is_counted {
            unaccounted += left.abs_diff(entered + stats.copies);
            balance.copies += stats.copies as i64;
        } else {
            balance.unchecked_switches += 1;
            balance.copies += left as i64 - entered as i64;
        }
        if stats.buffer_max_bytes > switch.switch.config().buffer_bytes {
            problems.push(format!("switch {} holds more than its buffer", switch.index + 1));
        }
    }
    unaccounted += counts.arrived.abs_diff(arrived);
    let known: u64 = counts.traffic.iter().map(|one| one.received + one.twice + one.damaged).sum();
    unaccounted +=
        counts.arrived.abs_diff(known + counts.elsewhere + counts.others + counts.agents + counts.memory);
    balance.unaccounted = unaccounted;
    if unaccounted > 0 {
        problems.push(format!("{unaccounted} frames unaccounted for"));
    }
    let gone = balance.received
        + balance.queue_full
        + balance.dropped
        + balance.looped
        + balance.lost
        + balance.link_full
        + balance.to_controller
        + balance.queued
        + balance.in_flight;
    if unaccounted == 0 && balance.sent as i64 + balance.copies != gone as i64 {
        let missing = balance.sent as i64 + balance.copies - gone as i64;
        problems.push(format!("the frames of the whole network do not add up: {missing} are missing"));
    }
    for (traffic, counts) in world.plan.traffic.iter().zip(&counts.traffic) {
        let wrong: u64 =
            counts.operations.iter().flat_map(|both| both.each()).map(|one| one.wrong_bytes).sum();
        if wrong > 0 {
            let name = &traffic.spec.name;
            problems.push(format!(
                "traffic `{name}`: remote memory gave {wrong} bytes that were not written there"
            ));
        }
    }
    let late = world.late_frames();
    if late > 0 {
        problems.push(format!("{late} frames simulated out of turn"));
    }
    (balance, problems)
}
