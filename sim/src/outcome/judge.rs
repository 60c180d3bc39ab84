//! The checks at the end of a run: no frame is lost without a count, no buffer exceeds its limit, no message is stuck.

use crate::check::Verdict;
use crate::crew::Crew;
use crate::link::LinkStats;
use crate::scheme::Watch;
use crate::switch::Model;
use crate::world::{Counts, FrameWorld, Planted};
use p4rack_fabric::HostMachine as _;
use p4rack_wire::Nanos;

/// The checks at the end.
pub(super) fn judge(world: &mut FrameWorld, crew: &dyn Crew) -> Verdict {
    let counts = world.counts();
    let late_frames =
        world.groups.iter().fold(world.tor.inlets.late_frames, |sum, group| sum + group.inlets.late_frames);
    let mut verdict = Verdict { out_of_order: counts.out_of_order, late_frames, ..Verdict::default() };
    world.tor.watcher.judge(&mut verdict);
    let stats = world.tor.model.stats(world.now);
    // Each link.
    for (stats, in_flight) in world.links() {
        let gone = stats.delivered + losses(&stats) + in_flight as u64;
        verdict.unaccounted_frames += (stats.sent + stats.duplicated) as i64 - gone as i64;
    }
    // The switch: each frame that entered has left, was dropped or waits.
    let before = &world.tor.before;
    let sum = |f: fn(&p4rack_switch::PortStats) -> u64| stats.ports.iter().map(f).sum::<u64>();
    let (rx, tx) = (sum(|port| port.rx_frames) + before.rx, sum(|port| port.tx_frames) + before.tx);
    let queued = sum(|port| port.queues.iter().map(|queue| queue.frames).sum());
    let drops = stats.drops.iter().map(|(_, count)| count).sum::<u64>() + before.drops.values().sum::<u64>();
    let clones = stats.clones + before.clones;
    // A broadcast frame leaves several times; only hostile hosts send them.
    if stats.replicas == 0 {
        verdict.unaccounted_frames += (rx + clones) as i64 - (tx + drops + queued) as i64;
    }
    // Between them.
    // Frames that arrive at shared ports leave by them.
    let delivered_up: u64 = world.tor.inlets.ends.iter().map(|end| end.delivered).sum::<u64>()
        + world.tor.trunks.iter().map(|trunk| trunk.far.delivered).sum::<u64>()
        - world.tor.trunks.iter().map(|trunk| trunk.link.stats.sent).sum::<u64>();
    let managed = world.tor.model.managed();
    let sent_down: u64 = world.tor.lanes.iter().map(|lane| lane.down.stats.sent).sum();
    verdict.unaccounted_frames +=
        (delivered_up + managed).abs_diff(rx) as i64 + tx.abs_diff(sent_down + managed) as i64;
    // From end to end: each frame that never arrived was dropped somewhere.
    let backlog: usize = world.hosts().map(|host| host.endpoint.backlog_frames()).sum();
    let missing =
        counts.frames_given as i64 - counts.frames_delivered as i64 - on_links(world) as i64 - queued as i64;
    let lost = lost_frames(world, &counts) as i64;
    let duplicated: u64 = world.links().map(|(stats, _)| stats.duplicated).sum();
    if missing - backlog as i64 > lost {
        verdict.unaccounted_frames += missing - backlog as i64 - lost;
    } else if counts.frames_delivered > counts.frames_given + duplicated && counts.others.is_none() {
        verdict.unaccounted_frames += missing;
    }
    // Buffers.
    verdict.over_limit += u64::from(stats.buffer_max_bytes > world.tor.model.buffer_limit_bytes());
    if Planted::Overfill.is(world.plan.planted) {
        verdict.over_limit += u64::from(stats.buffer_max_bytes > 0);
    }
    for host in world.hosts() {
        let limit = host.endpoint.station().queue_limit_frames as u64;
        verdict.over_limit += u64::from(host.endpoint.stats().queue_max_frames > limit);
    }
    let failures = lost > 0 || world.hosts().any(|host| host.dies != Nanos::MAX);
    if !failures {
        verdict.stuck_messages = counts.messages_made - counts.messages_ended;
    }
    if let Some(settle) = world.tor.watcher.settles_after() {
        world.run_until(world.now + settle, crew);
        let (tor, rack) = (&mut world.tor, &world.plan.experiment.rack);
        tor.watcher.judge_settled(&mut tor.model, rack, world.now, &mut verdict);
    }
    verdict
}

/// Frames on links.
pub(super) fn on_links(world: &FrameWorld) -> usize {
    world.links().map(|(_, in_flight)| in_flight).sum()
}

/// Frames of any kind dropped anywhere, without those that are sent again anyway.
pub(super) fn lost_frames(world: &FrameWorld, counts: &Counts) -> u64 {
    let switch = world.tor.model.stats(world.now);
    let since: u64 = switch.drops.iter().map(|(_, count)| count).sum();
    let switch = since + world.tor.before.drops.values().sum::<u64>();
    let links: u64 = world.links().map(|(stats, _)| losses(&stats)).sum();
    let hosts: u64 = world.hosts().map(|host| host.endpoint.stats().app_frames_dropped()).sum();
    let sent_again = world.tor.watcher.sent_again(&world.tor.model.counted());
    switch + links + hosts + counts.frames_to_dead - sent_again
}

pub(super) fn losses(stats: &LinkStats) -> u64 {
    stats.lost + stats.corrupted + stats.down + stats.overflow
}
