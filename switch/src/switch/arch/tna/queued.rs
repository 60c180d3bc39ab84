//! Packets that leave a queue: egress, its clones, and ports that come back.

use super::pass::Pass;
use super::{arrival, copies, prefix};
use crate::arch::tna::origin;
use crate::exec::Cx;
use crate::pool::{Meta, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::packets::form;
use crate::switch::{Running, Switch};
use p4rack_wire::Nanos;

/// Runs egress for a packet that has left the queue of the port at position `at`, in which `left` others remain.
/// Returns true if `out` holds the frame to send, in which case the caller still owns the packet, and false if the
/// packet went elsewhere.
#[inline(always)]
pub(in crate::switch::arch) fn egress<const SECOND: bool>(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    left: u64,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    let sent = match switch.pool.get(id).meta.stage {
        Stage::Ingress => run::<SECOND>(switch, id, at, left, now, out),
        Stage::Sent | Stage::Ended(_) => {
            out.clear();
            out.extend_from_slice(switch.pool.get(id).frame());
            true
        }
    };
    if sent && switch.manager.port_mut(at).is_loop {
        come_back::<SECOND>(switch, id, at, now, out);
        return false;
    }
    sent
}

fn run<const SECOND: bool>(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    left: u64,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    let stored = prefix::egress_bytes(SECOND);
    let unit_ns = switch.config.time_unit_ns;
    let packet = switch.pool.get_mut(id);
    let (meta, room) = (packet.meta, packet.len() - stored);
    prefix::egress::<SECOND>(packet.head_mut(stored), &meta, left, room, now, unit_ns);
    let Switch { running, tracer, vars, pool, requests, config, .. } = switch;
    let Some(Running { pipeline, state }) = running else {
        switch.end(id, DropReason::NoProgram, Some(at));
        return false;
    };
    let pipeline = form(pipeline, tracer.as_deref(), &meta);
    state.trace.packet = meta.trace;
    out.clear();
    let packet = pool.get(id);
    let mut pass = Pass::new(pipeline, state, vars, unit_ns, meta.egress_port);
    let mut cx = Cx::new((packet.padded(), packet.len(), 0), out, requests, config.drop_port, now);
    let ended = pass.egress(&mut cx, stored);
    let cursor = cx.cursor;
    let (dropped, no_clones) = match ended {
        Ok(done) => done,
        Err(exit) => {
            switch.give_up(id, exit, Some(at));
            return false;
        }
    };
    out.extend_from_slice(packet.frame().get(cursor..).unwrap_or(&[]));
    if requests.any {
        let copy = switch.pool.alloc(out, meta);
        copies::clone_of_egress::<SECOND>(switch, copy, no_clones, now);
        switch.pool.release(copy);
    }
    if dropped {
        switch.end(id, DropReason::EgressDrop, Some(at));
    }
    !dropped
}

/// Loops the frame in `out` back into the port at position `at`, to which it was sent.
fn come_back<const SECOND: bool>(switch: &mut Switch, id: PacketId, at: usize, now: Nanos, out: &[u8]) {
    switch.manager.sent(at, out.len(), now);
    let port = switch.manager.port_mut(at);
    port.rx_frames += 1;
    port.rx_bytes += out.len() as u64;
    switch.passes.recirculations += 1;
    let number = switch.manager.number(at);
    switch.has_come_back::<SECOND>(number, out, now);
    let packet = switch.pool.get_mut(id);
    let Meta { passes, trace, .. } = packet.meta;
    let meta = Meta {
        ingress_port: number,
        arrived: now,
        passes: passes + 1,
        origin: origin::CAME_BACK,
        trace,
        ..Meta::default()
    };
    packet.meta = meta;
    if meta.passes > switch.config.recirculation_limit {
        switch.end(id, DropReason::RecirculationLimit, Some(at));
    } else if out.len() > switch.config.max_frame_bytes {
        switch.end(id, DropReason::FrameTooLong, Some(at));
    } else {
        packet.set_frame(out);
        arrival::ingress::<SECOND>(switch, id, now);
    }
}
