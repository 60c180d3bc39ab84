//! Destinations of a packet after ingress: its port, groups, the controller; and clones.

use super::pass::Verdict;
use super::prefix;
use crate::arch::tna::origin;
use crate::objects::CloneSession;
use crate::objects::ReplicationSpread;
use crate::pool::{Meta, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::Switch;
use p4rack_wire::Nanos;

/// Queues the packet that ingress has deparsed, in [`Switch::middle`], for the verdict's
/// destinations.
pub(super) fn send<const SECOND: bool>(switch: &mut Switch, meta: Meta, verdict: &Verdict, now: Nanos) {
    let stored = if meta.stage == Stage::Sent { 0 } else { prefix::egress_bytes(SECOND) };
    let id = switch.pool.adopt_frame(&mut switch.middle, meta);
    if verdict.to_controller {
        match switch.engine.config.copy_port.or(switch.config.cpu_port) {
            Some(port) => {
                let copy = switch.pool.copy(id);
                enqueue(switch, copy, port.into(), stored, now);
            }
            None => switch.drop_frame(DropReason::NoSuchPort, None),
        }
    }
    if verdict.dropped {
        return switch.end(id, DropReason::IngressDrop, None);
    }
    let grouped = verdict.groups != [0, 0];
    for group in verdict.groups.into_iter().filter(|group| *group != 0) {
        if switch.engine.has_group(group) {
            spread::<SECOND>(switch, id, group, &verdict.spread, stored, now);
        } else {
            replicate(switch, id, group, stored, now);
        }
    }
    let is_sent = verdict.is_unicast() && verdict.destination != u64::from(switch.config.drop_port);
    if is_sent {
        enqueue(switch, id, verdict.destination, stored, now);
    } else if grouped || verdict.to_controller {
        switch.pool.release(id);
    } else {
        switch.end(id, DropReason::IngressDrop, None);
    }
}

/// Puts a packet into the queue of a port. Its first `stored` bytes are the device's.
fn enqueue(switch: &mut Switch, id: PacketId, port: u64, stored: usize, now: Nanos) {
    match switch.manager.find(port) {
        Some(at) => {
            let len = switch.pool.get(id).len() - stored;
            switch.enqueue_at(id, len, at, now);
        }
        None => switch.end(id, DropReason::NoSuchPort, None),
    }
}

/// Sends the copies that the replication engine makes for a group.
fn spread<const SECOND: bool>(
    switch: &mut Switch,
    id: PacketId,
    group: u64,
    by: &ReplicationSpread,
    stored: usize,
    now: Nanos,
) {
    // Queues know nothing of either.
    let (engine, down) = (std::mem::take(&mut switch.engine), std::mem::take(&mut switch.down));
    let mut is_first = true;
    let all = engine.copies(group, by, SECOND, &down, |port, rid| {
        let copy = switch.pool.copy(id);
        let meta = &mut switch.pool.get_mut(copy).meta;
        (meta.origin, meta.rid, meta.is_first) = (origin::REPLICATED, rid, is_first);
        is_first = false;
        switch.passes.replicas += 1;
        enqueue(switch, copy, port.into(), stored, now);
    });
    (switch.engine, switch.down) = (engine, down);
    if is_first {
        switch.drop_frame(DropReason::EmptyGroup, None);
    }
    if !all {
        switch.drop_frame(DropReason::CopyLimit, None);
    }
}

/// Sends a copy to each replica of a group.
fn replicate(switch: &mut Switch, id: PacketId, group: u64, stored: usize, now: Nanos) {
    let group = u32::try_from(group).unwrap_or(u32::MAX);
    let count = switch.groups.get(&group).map_or(0, |replicas| replicas.live().len());
    if count == 0 {
        return switch.drop_frame(DropReason::EmptyGroup, None);
    }
    for index in 0..count {
        let replica = switch.groups.get(&group).and_then(|replicas| replicas.live().get(index));
        let Some(&replica) = replica else { break };
        let copy = switch.pool.copy(id);
        let meta = &mut switch.pool.get_mut(copy).meta;
        (meta.origin, meta.rid, meta.is_first) = (origin::REPLICATED, replica.instance, index == 0);
        switch.passes.replicas += 1;
        enqueue(switch, copy, replica.port.into(), stored, now);
    }
}

/// Clones [`Switch::arrival`] as it came in, behind `skipped` bytes of the device.
pub(super) fn ingress_clone<const SECOND: bool>(
    switch: &mut Switch,
    meta: &Meta,
    skipped: usize,
    session: u64,
    now: Nanos,
) {
    let meta = Meta { origin: origin::INGRESS_CLONE, stage: Stage::Ingress, ..*meta };
    let frame = switch.arrival.frame().get(skipped..).unwrap_or(&[]);
    let id = switch.pool.alloc(frame, meta);
    clone::<SECOND>(switch, id, session, now);
}

/// Sends a clone, with the header that the program asked for in front, to all replicas of a session.
fn clone<const SECOND: bool>(switch: &mut Switch, id: PacketId, session: u64, now: Nanos) {
    let key = u32::try_from(session).unwrap_or(u32::MAX);
    let of_egress = switch.pool.get(id).meta.origin == origin::EGRESS_CLONE;
    let is_for = |session: &&CloneSession| {
        let goes = !session.replicas.live().is_empty() || session.groups != [0, 0] || session.to_controller;
        goes && !session.ignores[usize::from(of_egress)]
    };
    let Some(session) = switch.sessions.get(&key).filter(is_for) else {
        return switch.end(id, DropReason::NoCloneSession, None);
    };
    let Some(running) = &switch.running else { return switch.pool.release(id) };
    let (stored, header) = (prefix::egress_bytes(SECOND), &running.state.clone_header);
    let packet = switch.pool.get_mut(id);
    packet.meta.priority = session.class_of_service & 7;
    packet.prepend(stored + header.len(), 0);
    packet.head_mut(stored + header.len())[stored..].copy_from_slice(header);
    if session.packet_length_bytes != 0 {
        packet.cut(stored + usize::from(session.packet_length_bytes));
    }
    let (groups, by, to_controller) = (session.groups, session.spread, session.to_controller);
    let count = session.replicas.live().len();
    let to_one = count > 0 && groups == [0, 0] && !to_controller;
    for index in 0..count {
        let replica = switch.sessions.get(&key).and_then(|session| session.replicas.live().get(index));
        let Some(&replica) = replica else { break };
        let copy = if to_one && index + 1 == count { id } else { switch.pool.copy(id) };
        switch.pool.get_mut(copy).meta.rid = replica.instance;
        switch.passes.clones += 1;
        enqueue(switch, copy, replica.port.into(), stored, now);
    }
    if to_one {
        return;
    }
    for group in groups.into_iter().filter(|group| *group != 0) {
        spread::<SECOND>(switch, id, group.into(), &by, stored, now);
    }
    match switch.engine.config.copy_port.or(switch.config.cpu_port).filter(|_| to_controller) {
        Some(port) => enqueue(switch, id, port.into(), stored, now),
        None => switch.pool.release(id),
    }
}

/// Carries out egress's request: a clone of the frame in this packet.
#[cold]
#[inline(never)]
pub(super) fn clone_of_egress<const SECOND: bool>(switch: &mut Switch, id: PacketId, none: bool, now: Nanos) {
    let requests = std::mem::take(&mut switch.requests);
    let Some((session, _)) = requests.clone.filter(|_| !none) else { return };
    let copy = switch.pool.copy(id);
    let meta = &mut switch.pool.get_mut(copy).meta;
    (meta.passes, meta.origin, meta.stage) = (meta.passes + 1, origin::EGRESS_CLONE, Stage::Ingress);
    if meta.passes > switch.config.recirculation_limit {
        return switch.end(copy, DropReason::RecirculationLimit, None);
    }
    clone::<SECOND>(switch, copy, session, now);
}
