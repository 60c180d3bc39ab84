//! Copies of packets: replicas of multicast groups, clones of packets as received, clones of packets after
//! egress.

use super::pass::{next_pass, pass};
use crate::arch::v1model::origin;
use crate::pool::PacketId;
use crate::stats::DropReason;
use crate::switch::Switch;
use p4rack_wire::Nanos;

#[inline(never)]
pub(super) fn multicast(switch: &mut Switch, id: PacketId, group: u64, now: Nanos) {
    let group = u32::try_from(group).ok().and_then(|group| switch.groups.get_key_value(&group));
    let Some((&group, replicas)) = group.filter(|(_, replicas)| !replicas.live().is_empty()) else {
        return switch.end(id, DropReason::EmptyGroup, None);
    };
    let count = replicas.live().len();
    for index in 0..count {
        let Some(&replica) = switch.groups.get(&group).and_then(|replicas| replicas.live().get(index)) else {
            break;
        };
        // The last replica is the packet itself.
        let copy = if index + 1 == count { id } else { switch.pool.copy(id) };
        let meta = &mut switch.pool.get_mut(copy).meta;
        meta.origin = origin::REPLICATED;
        meta.rid = replica.instance;
        switch.passes.replicas += 1;
        switch.save(copy);
        switch.enqueue(copy, replica.port.into(), now);
    }
}

/// Clones a packet as it was received: it is parsed again and carries the metadata of its field list.
pub(super) fn ingress_clone(switch: &mut Switch, copy: PacketId, session: u64, list: u16, now: Nanos) {
    switch.save_hot();
    let meta = &mut switch.pool.get_mut(copy).meta;
    (meta.truncate, meta.origin) = (u32::MAX, origin::INGRESS_CLONE);
    let mut out = std::mem::take(&mut switch.cpu_out);
    let for_clone = std::mem::take(&mut switch.for_clone);
    let Some((mut pass, packet)) = pass(switch, copy, &mut out, now) else {
        return switch.pool.release(copy);
    };
    pass.begin(Some(list), &for_clone);
    pass.parse(&packet.meta);
    let cursor = pass.cx.cursor;
    switch.pool.get_mut(copy).meta.cursor = cursor;
    (switch.cpu_out, switch.for_clone) = (out, for_clone);
    switch.save(copy);
    send_clone(switch, copy, session, now);
}

/// Clones a packet after egress, with its headers and the metadata of its field list.
pub(super) fn egress_clone(switch: &mut Switch, id: PacketId, session: u64, list: u16, now: Nanos) {
    let copy = switch.pool.copy(id);
    if !next_pass(switch, copy, origin::EGRESS_CLONE) {
        return;
    }
    switch.save(copy);
    if let Some(running) = &switch.running {
        let code = &running.pipeline.code;
        let slots = code.saved.iter().flat_map(|&(slot, count)| slot..slot + count);
        let saved = &mut switch.pool.get_mut(copy).saved;
        let listed = |slot: u16| {
            let spans = code.lists.get(list as usize).into_iter().flatten();
            spans.into_iter().any(|&(first, count)| (first..first + count).contains(&slot))
        };
        for ((word, slot), &is_header) in saved.iter_mut().zip(slots).zip(&code.saved_is_header) {
            if !is_header && !listed(slot) {
                *word = 0;
            }
        }
    }
    switch.pool.get_mut(copy).meta.truncate = u32::MAX;
    send_clone(switch, copy, session, now);
}

/// Sends a clone, whose variables are already saved, to all replicas of a session.
fn send_clone(switch: &mut Switch, copy: PacketId, session: u64, now: Nanos) {
    let key = u32::try_from(session).unwrap_or(u32::MAX);
    let Some(session) = switch.sessions.get(&key).filter(|session| !session.replicas.live().is_empty())
    else {
        return switch.end(copy, DropReason::NoCloneSession, None);
    };
    let (count, length) = (session.replicas.live().len(), session.packet_length_bytes);
    let meta = &mut switch.pool.get_mut(copy).meta;
    meta.priority = session.class_of_service & 7;
    if length != 0 {
        meta.truncate = length.into();
    }
    for index in 0..count {
        let replica = switch.sessions.get(&key).and_then(|session| session.replicas.live().get(index));
        let Some(&replica) = replica else {
            break;
        };
        let id = if index + 1 == count { copy } else { switch.pool.copy(copy) };
        if id != copy {
            let saved = std::mem::take(&mut switch.pool.get_mut(copy).saved);
            switch.pool.get_mut(id).saved.clone_from(&saved);
            switch.pool.get_mut(copy).saved = saved;
        }
        switch.pool.get_mut(id).meta.rid = replica.instance;
        switch.passes.clones += 1;
        switch.enqueue(id, replica.port.into(), now);
    }
}
