//! Packets of the pool: ingress and its requests, queues, egress and its requests.

use super::copies::{egress_clone, ingress_clone, multicast};
use super::pass::{Outcome, Verdict, next_pass, pass};
use crate::arch::v1model::origin;
use crate::exec::{Exit, Requests};
use crate::pool::{NONE, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::Switch;
use crate::switch::packets::{restore, save_list};
use p4rack_wire::Nanos;

/// Runs ingress for a packet. `list` is the field list whose metadata is in `for_pass`.
#[inline(always)]
pub(super) fn ingress(switch: &mut Switch, id: PacketId, list: Option<u16>, now: Nanos) {
    match run_ingress(switch, id, list, now) {
        Some(verdict) => proceed(switch, id, verdict, now),
        None => switch.end(id, DropReason::NoProgram, None),
    }
}

/// Carries out the verdict of ingress.
#[inline(always)]
pub(super) fn proceed(switch: &mut Switch, id: PacketId, verdict: Verdict, now: Nanos) {
    if verdict.exit != Exit::Done {
        switch.give_up(id, verdict.exit, None);
    } else if switch.requests.any {
        serve(switch, id, verdict, now);
    } else {
        forward(switch, id, verdict, now);
    }
}

/// Carries out requests of ingress, and runs ingress again for each resubmit.
#[cold]
#[inline(never)]
fn serve(switch: &mut Switch, id: PacketId, mut verdict: Verdict, now: Nanos) {
    while switch.requests.any {
        let requests = std::mem::take(&mut switch.requests);
        if let Some(bytes) = requests.truncate {
            let meta = &mut switch.pool.get_mut(id).meta;
            meta.truncate = meta.truncate.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        if let Some(list) = requests.resubmit {
            save_list(&switch.running, &switch.vars, list, &mut switch.for_pass);
        }
        if let Some((session, list)) = requests.clone {
            save_list(&switch.running, &switch.vars, list, &mut switch.for_clone);
            let copy = switch.pool.copy(id);
            // The clone is first, because its parser needs the variables.
            switch.save(id);
            ingress_clone(switch, copy, session, list, now);
            switch.restore(id);
        }
        let Some(list) = requests.resubmit else { break };
        switch.passes.resubmits += 1;
        if !next_pass(switch, id, origin::RESUBMITTED) || switch.returns(id, list, now) {
            return;
        }
        verdict = match run_ingress(switch, id, Some(list), now) {
            Some(verdict) if verdict.exit == Exit::Done => verdict,
            Some(verdict) => return switch.give_up(id, verdict.exit, None),
            None => return switch.end(id, DropReason::NoProgram, None),
        };
    }
    forward(switch, id, verdict, now);
}

/// Runs the parser and ingress. `None` if no program is loaded.
#[inline(always)]
fn run_ingress(switch: &mut Switch, id: PacketId, list: Option<u16>, now: Nanos) -> Option<Verdict> {
    switch.save_hot();
    switch.pool.get_mut(id).meta.arrived = now;
    let mut out = std::mem::take(&mut switch.cpu_out);
    let for_pass = std::mem::take(&mut switch.for_pass);
    let (mut pass, packet) = pass(switch, id, &mut out, now)?;
    pass.begin(list, &for_pass);
    let verdict = pass.ingress(&packet.meta);
    let cursor = pass.cx.cursor;
    switch.pool.get_mut(id).meta.cursor = cursor;
    (switch.cpu_out, switch.for_pass) = (out, for_pass);
    Some(verdict)
}

/// Sends a packet to its port or group.
#[inline(always)]
fn forward(switch: &mut Switch, id: PacketId, verdict: Verdict, now: Nanos) {
    switch.pool.get_mut(id).meta.priority = verdict.priority;
    if verdict.group != 0 {
        multicast(switch, id, verdict.group, now);
    } else if verdict.destination == u64::from(switch.config.drop_port) {
        switch.end(id, DropReason::IngressDrop, None);
    } else {
        switch.pool.get_mut(id).meta.origin = 0;
        if switch.enqueue(id, verdict.destination, now) {
            // It is often the next packet to leave its queue; then nothing has to be copied.
            switch.hot = id;
        }
    }
}

/// Runs egress for a packet that has left its queue, in which `left` others remain. Returns true if `out`
/// holds the frame to send, in which case the caller still owns the packet, and false if the packet went
/// elsewhere.
#[inline(always)]
pub(crate) fn egress(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    left: u64,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    match switch.pool.get(id).meta.stage {
        Stage::Sent => {
            switch.pool.hand_out(id, out);
            true
        }
        Stage::Ended(exit) => after_egress(switch, id, at, exit, true, now, out),
        Stage::Ingress => run_egress(switch, id, at, left, now, out),
    }
}

#[inline(never)]
fn run_egress(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    left: u64,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    if switch.hot == id {
        switch.hot = NONE;
    } else {
        switch.save_hot();
        let vars = &mut *switch.vars;
        if let Some(running) = &switch.running {
            restore(&running.pipeline.code, vars, &switch.pool.get(id).saved);
        }
    }
    leave(switch, id, at, left, now, out)
}

/// Same for a packet whose variables are loaded.
#[inline(always)]
fn leave(switch: &mut Switch, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>) -> bool {
    out.clear();
    let Some((mut pass, packet)) = pass(switch, id, out, now) else {
        switch.end(id, DropReason::NoProgram, Some(at));
        return false;
    };
    let Outcome { exit, dropped, .. } = pass.egress(&packet.meta, left);
    after_egress(switch, id, at, exit, dropped, now, out)
}

/// Carries out the verdict and the requests of egress.
pub(super) fn after_egress(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    mut exit: Exit,
    dropped: bool,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    let mut requests = None;
    if switch.requests.any {
        let asked = std::mem::take(&mut switch.requests);
        requests = Some(asked);
        if let (Exit::Done, Some((session, list))) = (exit, asked.clone) {
            egress_clone(switch, id, session, list, now);
        }
    }
    if exit == Exit::Done && !dropped {
        exit = deparse(switch, id, now, out);
    }
    match exit {
        Exit::Done if dropped => switch.end(id, DropReason::EgressDrop, Some(at)),
        Exit::Done => return requests.is_none_or(|requests| finish(switch, id, at, &requests, now, out)),
        exit => switch.give_up(id, exit, Some(at)),
    }
    false
}

/// Runs checksums and the deparser, and leaves the frame in `out`.
#[inline(always)]
fn deparse(switch: &mut Switch, id: PacketId, now: Nanos, out: &mut Vec<u8>) -> Exit {
    let Some((mut pass, packet)) = pass(switch, id, out, now) else {
        return Exit::Done;
    };
    let exit = pass.deparse();
    out.extend_from_slice(packet.payload());
    if packet.meta.truncate != u32::MAX {
        out.truncate(packet.meta.truncate as usize);
    }
    exit
}

/// Carries out requests of egress other than clones. Returns true if `out` is to be sent.
#[cold]
#[inline(never)]
fn finish(
    switch: &mut Switch,
    id: PacketId,
    at: usize,
    requests: &Requests,
    now: Nanos,
    out: &mut Vec<u8>,
) -> bool {
    if let Some(bytes) = requests.truncate {
        out.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    let Some(list) = requests.recirculate else {
        return true;
    };
    switch.passes.recirculations += 1;
    save_list(&switch.running, &switch.vars, list, &mut switch.for_pass);
    if out.len() > switch.config.max_frame_bytes {
        switch.end(id, DropReason::FrameTooLong, Some(at));
    } else if next_pass(switch, id, origin::RECIRCULATED) {
        let packet = switch.pool.get_mut(id);
        packet.set_frame(out);
        packet.meta.truncate = u32::MAX;
        packet.meta.rid = 0;
        if !switch.returns(id, list, now) {
            ingress(switch, id, Some(list), now);
        }
    }
    false
}
