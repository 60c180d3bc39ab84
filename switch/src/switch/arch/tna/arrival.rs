//! Packets that enter ingress: frames that have come in, come back or are resubmitted.

use super::pass::{Pass, Verdict, reason as reason_of};
use super::{copies, prefix};
use crate::arch::tna::origin;
use crate::exec::{Cx, Exit, Requests};
use crate::pool::{Meta, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::packets::form;
use crate::switch::{Running, Switch};
use p4rack_wire::Nanos;

/// How far a packet got.
enum Reached {
    /// The frame is in `out`, ready to be sent by the port at this position.
    Wire(usize),
    /// Ingress ended with this verdict, which is still to be carried out; its deparsed bytes are in
    /// [`Switch::middle`].
    Ingress(Verdict),
    /// Egress of the port at this position dropped the frame, or ended early.
    Ended(usize, DropReason),
    /// Egress asked for a clone. The frame is in `out`.
    Cloned(usize, bool, bool),
}

/// Runs the program on [`Switch::arrival`], which has just come in.
#[inline(always)]
pub(in crate::switch::arch) fn arrive<const SECOND: bool, const THROUGH: bool>(
    switch: &mut Switch,
    port: u16,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<u16> {
    let meta = Meta { ingress_port: port, arrived: now, ..Meta::default() };
    enter::<SECOND, THROUGH>(switch, meta, now, out)
}

/// Runs the program on a packet of the pool, which holds a frame as it came in.
pub(in crate::switch::arch) fn ingress<const SECOND: bool>(switch: &mut Switch, id: PacketId, now: Nanos) {
    let packet = switch.pool.get_mut(id);
    let meta = packet.meta;
    packet.exchange(&mut switch.arrival);
    switch.pool.release(id);
    let mut out = std::mem::take(&mut switch.cpu_out);
    enter::<SECOND, false>(switch, meta, now, &mut out);
    switch.cpu_out = out;
}

/// Puts the device's header in front of [`Switch::arrival`] and processes it.
#[inline(always)]
fn enter<const SECOND: bool, const THROUGH: bool>(
    switch: &mut Switch,
    meta: Meta,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<u16> {
    let count = prefix::ingress_bytes(SECOND);
    switch.arrival.prepend(count, 0);
    let arrived = units(meta.arrived, switch.config.time_unit_ns);
    let data = switch.port_data.of(meta.ingress_port);
    prefix::ingress::<SECOND>(switch.arrival.head_mut(count), meta.ingress_port, arrived, false, data);
    match process::<SECOND, THROUGH>(switch, &meta, count, now, out) {
        // Most frames are sent immediately.
        Some(Reached::Wire(at)) => {
            switch.manager.sent_at_once(at, out.len(), now);
            Some(switch.manager.number(at))
        }
        reached => go_on::<SECOND>(switch, meta, reached, now, out),
    }
}

fn units(time: Nanos, unit_ns: u64) -> u64 {
    if unit_ns <= 1 { time.0 } else { time.0 / unit_ns }
}

/// Runs ingress and, with `THROUGH`, egress if nothing holds the packet up. `None` if no program is loaded.
#[inline(always)]
fn process<const SECOND: bool, const THROUGH: bool>(
    switch: &mut Switch,
    meta: &Meta,
    prefix_bytes: usize,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<Reached> {
    let Switch { running, tracer, vars, manager, requests, arrival, middle, config, .. } = switch;
    let Running { pipeline, state } = running.as_mut()?;
    let mut pipeline = &*pipeline;
    if !THROUGH {
        pipeline = form(pipeline, tracer.as_deref(), meta);
        state.trace.packet = meta.trace;
    }
    let (drop_port, unit_ns) = (config.drop_port, config.time_unit_ns);
    out.clear();
    let mut pass = Pass::new(pipeline, state, vars, unit_ns, meta.ingress_port);
    let mut cx = Cx::new((arrival.padded(), arrival.len(), 0), out, requests, drop_port, now);
    let verdict = pass.ingress(&mut cx, prefix_bytes);
    let cursor = cx.cursor;
    if verdict.exit != Exit::Done {
        return Some(Reached::Ingress(verdict));
    }
    let payload = arrival.frame().get(cursor..).unwrap_or(&[]);
    let len = out.len() + payload.len();
    let is_straight =
        THROUGH && !requests.any && verdict.is_plain() && verdict.destination != u64::from(drop_port);
    let at = if is_straight { manager.find(verdict.destination) } else { None };
    // Not a closure: a closure would not be inlined.
    let passes = match at {
        Some(at) => manager.pass(at, verdict.priority, len, now),
        None => false,
    };
    let egress_bytes = prefix::egress_bytes(SECOND);
    let Some(at) = at.filter(|_| passes) else {
        // It waits behind room for the device's header, whose bytes are written later.
        middle.clear();
        middle.resize(if verdict.bypass { 0 } else { egress_bytes }, 0);
        middle.extend_from_slice(out);
        middle.extend_from_slice(payload);
        return Some(Reached::Ingress(verdict));
    };
    if verdict.bypass {
        out.extend_from_slice(payload);
        return Some(Reached::Wire(at));
    }
    let Pass { pipeline, state, vars, .. } = pass;
    let port = manager.number(at);
    let meta = Meta { egress_port: port, enqueued: now, priority: verdict.priority, ..*meta };
    // Egress parses the frame where it is. Its original bytes are no longer needed.
    let count = egress_bytes + out.len();
    arrival.prepend(count, cursor);
    let head = arrival.head_mut(count);
    head[egress_bytes..].copy_from_slice(out);
    out.clear();
    prefix::egress::<SECOND>(head, &meta, 0, len, now, unit_ns);
    let mut pass = Pass::new(pipeline, state, vars, unit_ns, port);
    let mut cx = Cx::new((arrival.padded(), arrival.len(), 0), out, requests, drop_port, now);
    let ended = pass.egress(&mut cx, egress_bytes);
    let cursor = cx.cursor;
    let (dropped, no_clones) = match ended {
        Ok(done) => done,
        Err(exit) => return Some(Reached::Ended(at, reason_of(exit))),
    };
    out.extend_from_slice(arrival.frame().get(cursor..).unwrap_or(&[]));
    Some(match (requests.any, dropped) {
        (true, _) => Reached::Cloned(at, dropped, no_clones),
        (false, true) => Reached::Ended(at, DropReason::EgressDrop),
        (false, false) => Reached::Wire(at),
    })
}

/// Continues with a packet that was not sent immediately. Returns the port if `out` is to be sent.
#[inline(never)]
fn go_on<const SECOND: bool>(
    switch: &mut Switch,
    mut meta: Meta,
    mut reached: Option<Reached>,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<u16> {
    let mut prefix_bytes = prefix::ingress_bytes(SECOND);
    let verdict = loop {
        match reached {
            None => return lose(switch, &meta, DropReason::NoProgram, None),
            Some(Reached::Wire(_)) => return None,
            Some(Reached::Ended(at, reason)) => {
                switch.requests = Requests::default();
                return lose(switch, &meta, reason, Some(at));
            }
            Some(Reached::Cloned(at, dropped, no_clones)) => {
                let id = switch.pool.adopt_frame(out, meta);
                copies::clone_of_egress::<SECOND>(switch, id, no_clones, now);
                if dropped {
                    switch.end(id, DropReason::EgressDrop, Some(at));
                    return None;
                }
                out.clear();
                out.extend_from_slice(switch.pool.get(id).frame());
                switch.pool.release(id);
                switch.manager.sent_at_once(at, out.len(), now);
                return Some(switch.manager.number(at));
            }
            Some(Reached::Ingress(verdict)) if verdict.exit != Exit::Done => {
                switch.requests = Requests::default();
                return lose(switch, &meta, reason_of(verdict.exit), None);
            }
            Some(Reached::Ingress(verdict)) => {
                let requests = std::mem::take(&mut switch.requests);
                if let Some((session, _)) = requests.clone.filter(|_| !verdict.no_clones) {
                    copies::ingress_clone::<SECOND>(switch, &meta, prefix_bytes, session, now);
                }
                if requests.resubmit.is_none() || verdict.dropped {
                    break verdict;
                }
                switch.passes.resubmits += 1;
                (meta.passes, meta.origin) = (meta.passes + 1, origin::RESUBMITTED);
                if meta.passes > switch.config.recirculation_limit {
                    return lose(switch, &meta, DropReason::RecirculationLimit, None);
                }
                let count = prefix::again_bytes(SECOND);
                switch.arrival.prepend(count, prefix_bytes);
                prefix_bytes = count;
                let arrived = units(meta.arrived, switch.config.time_unit_ns);
                let data = switch.running.as_ref().map_or(&[][..], |running| &running.state.pass_header);
                let head = switch.arrival.head_mut(count);
                prefix::ingress::<SECOND>(head, meta.ingress_port, arrived, true, data);
                reached = process::<SECOND, false>(switch, &meta, count, now, out);
            }
        }
    };
    meta.priority = verdict.priority;
    meta.stage = if verdict.bypass { Stage::Sent } else { Stage::Ingress };
    copies::send::<SECOND>(switch, meta, &verdict, now);
    if let Some(running) = &mut switch.running {
        running.state.trace.packet = 0;
    }
    if switch.manager.cpu_waits {
        switch.serve_cpu(now);
    }
    None
}

/// Counts a packet that is dropped.
#[cold]
#[inline(never)]
fn lose(switch: &mut Switch, meta: &Meta, reason: DropReason, at: Option<usize>) -> Option<u16> {
    switch.tell_of(meta.trace);
    switch.drop_frame(reason, at);
    switch.tell_of(0);
    None
}
