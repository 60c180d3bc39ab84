//! A frame that has just come in.
//!
//! ```text
//!  frame ─ parser ─ verify ─ ingress ─┬─ its port is idle: egress ─ compute ─ deparser ─→ out
//!                                     ├─ it has to wait, but egress can't tell: the same ─→ queues
//!                                     └─ else, or copies are asked for: a packet of the pool ─→ queues
//! ```

use super::pass::{Clock, Outcome, Pass, Verdict};
use super::queued;
use crate::exec::{Cx, Exit};
use crate::pool::{Meta, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::packets::clear;
use crate::switch::{Running, Switch};
use p4rack_wire::Nanos;

/// How far a frame got.
enum Reached {
    /// The frame is in `out`, ready to be sent by the port at this position.
    Wire(usize),
    /// Ingress ended with this verdict, which is still to be carried out.
    Ingress(Verdict),
    /// Egress of the port at this position ended like this, and dropped the frame or made a request.
    Egress(usize, Exit, bool),
    /// The deparser did not finish.
    Deparser(usize, Exit),
    /// The frame is in `out` and has to wait for the port at this position, with this priority.
    Queue(usize, u8, Stage),
}

/// Runs the program on [`Switch::arrival`] and carries out its verdict.
#[inline(always)]
pub(crate) fn arrive<const THROUGH: bool, const GIVEN: bool>(
    switch: &mut Switch,
    port: u16,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<u16> {
    let reached = process::<THROUGH, GIVEN>(switch, port, now, out);
    match reached {
        // Most frames are sent immediately or wait in a queue.
        Some(Reached::Wire(at)) if THROUGH => {
            switch.manager.sent_at_once(at, out.len(), now);
            Some(switch.manager.number(at))
        }
        Some(Reached::Queue(at, priority, stage)) if THROUGH => {
            switch.wait(port, at, priority, stage, now, out);
            None
        }
        reached => go_on(switch, port, reached, now, out),
    }
}

/// Runs the program on [`Switch::arrival`]; with `THROUGH` to the end, unless something holds the frame up.
/// `None` if no program is loaded.
#[inline(always)]
fn process<const THROUGH: bool, const GIVEN: bool>(
    switch: &mut Switch,
    port: u16,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<Reached> {
    switch.save_hot();
    let Switch { running, vars, manager, requests, arrival, config, .. } = switch;
    let Running { pipeline, state } = running.as_mut()?;
    let code = &pipeline.code;
    let (len, drop_port) = (arrival.len(), u64::from(config.drop_port));
    let meta = Meta { ingress_port: port, arrived: now, ..Meta::default() };
    let cleared = !pipeline.clears();
    if cleared {
        clear(code, vars);
    }
    out.clear();
    let mut cx = Cx::new((arrival.padded(), len, 0), out, requests, config.drop_port, now);
    cx.cleared = cleared;
    let mut pass = Pass { pipeline, state, vars, clock: Clock::of(config), cx };
    let verdict = pass.ingress(&meta);
    let cursor = pass.cx.cursor;
    let early = code.late.is_early;
    let straight = (THROUGH || early)
        && verdict.exit == Exit::Done
        && !pass.cx.requests.any
        && verdict.group == 0
        && verdict.destination != drop_port;
    let at = if straight { manager.find(verdict.destination) } else { None };
    // Not a closure: a closure would not be inlined.
    let passes = match at {
        Some(at) if THROUGH => manager.pass(at, verdict.priority, len, now),
        _ => false,
    };
    let Some(at) = at.filter(|_| passes || early) else {
        arrival.meta.cursor = cursor;
        return Some(Reached::Ingress(verdict));
    };
    let meta = Meta { egress_port: manager.number(at), enqueued: now, ..meta };
    let Outcome { exit, dropped, asked } = pass.egress(&meta, 0);
    if exit != Exit::Done || dropped || asked {
        arrival.meta.cursor = cursor;
        return Some(match passes {
            true => Reached::Egress(at, exit, dropped),
            false => Reached::Queue(at, verdict.priority, Stage::Ended(exit)),
        });
    }
    let exit = pass.deparse();
    arrival.meta.cursor = cursor;
    if exit != Exit::Done {
        return Some(match passes {
            true => Reached::Deparser(at, exit),
            false => Reached::Queue(at, verdict.priority, Stage::Ended(exit)),
        });
    }
    arrival.complete(out, GIVEN);
    Some(match passes {
        true => Reached::Wire(at),
        false => Reached::Queue(at, verdict.priority, Stage::Sent),
    })
}

/// Turns [`Switch::arrival`] into a packet of the pool and continues from where it got to. Returns the port
/// if `out` is to be sent.
#[inline(never)]
fn go_on(
    switch: &mut Switch,
    port: u16,
    reached: Option<Reached>,
    now: Nanos,
    out: &mut Vec<u8>,
) -> Option<u16> {
    let Some(reached) = reached else {
        switch.drop_frame(DropReason::NoProgram, None);
        return None;
    };
    if let Reached::Queue(at, priority, stage) = reached {
        switch.wait(port, at, priority, stage, now, out);
        return None;
    }
    let cursor = switch.arrival.meta.cursor;
    let meta = Meta { ingress_port: port, arrived: now, cursor, ..Meta::default() };
    let id = switch.pool.adopt(&mut switch.arrival, meta);
    let sent = match reached {
        Reached::Ingress(verdict) => {
            queued::proceed(switch, id, verdict, now);
            None
        }
        Reached::Egress(at, exit, dropped) => {
            pass_queue(switch, id, at, now);
            queued::after_egress(switch, id, at, exit, dropped, now, out).then_some(at)
        }
        Reached::Deparser(at, exit) => {
            switch.give_up(id, exit, Some(at));
            None
        }
        Reached::Wire(at) => Some(at),
        Reached::Queue(..) => None,
    };
    if let Some(at) = sent {
        switch.pool.release(id);
        switch.manager.sent_at_once(at, out.len(), now);
    }
    if switch.manager.cpu_waits {
        switch.serve_cpu(now);
    }
    sent.map(|at| switch.manager.number(at))
}

/// Records a packet's view of an empty queue that it passes.
fn pass_queue(switch: &mut Switch, id: PacketId, at: usize, now: Nanos) {
    let number = switch.manager.number(at);
    let meta = &mut switch.pool.get_mut(id).meta;
    (meta.egress_port, meta.enqueued) = (number, now);
}
