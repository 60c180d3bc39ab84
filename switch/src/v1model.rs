//! The two halves of v1model's pipeline and what lies between them, with BMv2's meaning.

use crate::compile::Pipeline;
use crate::compile::ops::Frame;
use crate::compile::plans::{Code, NO_LIST, RUN};
use crate::exec::{Block, Cx, Exit, Requests, run};
use crate::pool::{Meta, NONE, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::{Running, Switch};
use crate::tracer::Tracer;
use p4rack_wire::Nanos;

/// Values of `standard_metadata.instance_type`.
const INGRESS_CLONE: u32 = 1;
const EGRESS_CLONE: u32 = 2;
const RECIRCULATED: u32 = 4;
const REPLICATED: u32 = 5;
const RESUBMITTED: u32 = 6;

/// What ingress decided about a packet.
#[derive(Clone, Copy)]
pub(crate) struct Verdict {
    pub exit: Exit,
    pub egress_spec: u64,
    pub group: u64,
    pub priority: u8,
}

impl Verdict {
    /// From what is in the frame after ingress.
    #[inline(always)]
    pub fn new(code: &Code, frame: &Frame, exit: Exit) -> Verdict {
        let standard = &code.standard;
        Verdict {
            exit,
            egress_spec: frame[standard.egress_spec as usize],
            group: frame[standard.mcast_grp as usize],
            priority: (frame[standard.priority as usize] & 7) as u8,
        }
    }
}

impl Switch {
    /// Ingress of a packet. `list`: metadata that waits in `for_pass`.
    #[inline(always)]
    pub(crate) fn ingress(&mut self, id: PacketId, list: Option<u16>, now: Nanos) {
        match self.run_ingress(id, list, now) {
            Some(verdict) => self.proceed(id, verdict, now),
            None => self.end(id, DropReason::NoProgram, None),
        }
    }

    /// Does what ingress decided.
    #[inline(always)]
    pub(crate) fn proceed(&mut self, id: PacketId, verdict: Verdict, now: Nanos) {
        if verdict.exit != Exit::Done {
            self.give_up(id, verdict.exit, None);
        } else if self.requests.any {
            self.serve(id, verdict, now);
        } else {
            self.forward(id, verdict, now);
        }
    }

    /// A block did not come to its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_up(&mut self, id: PacketId, exit: Exit, at: Option<usize>) {
        self.requests = Requests::default();
        let reason = match exit {
            Exit::LoopLimit => DropReason::LoopLimit,
            Exit::AssertFailed | Exit::Done => DropReason::AssertFailed,
        };
        self.end(id, reason, at);
    }

    /// Does what ingress asked for, and ingress again for each resubmit.
    #[cold]
    #[inline(never)]
    fn serve(&mut self, id: PacketId, mut verdict: Verdict, now: Nanos) {
        while self.requests.any {
            let requests = std::mem::take(&mut self.requests);
            if let Some(bytes) = requests.truncate {
                let meta = &mut self.pool.get_mut(id).meta;
                meta.truncate = meta.truncate.min(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
            if let Some(list) = requests.resubmit {
                keep_list(&self.running, &self.frame, list, &mut self.for_pass);
            }
            if let Some((session, list)) = requests.clone {
                keep_list(&self.running, &self.frame, list, &mut self.for_clone);
                let copy = self.pool.copy(id);
                // The clone goes first, and its parser needs the variables.
                self.keep(id);
                self.ingress_clone(copy, session, list, now);
                self.recall(id);
            }
            if requests.resubmit.is_none() {
                break;
            }
            self.passes.resubmits += 1;
            if !self.next_pass(id, RESUBMITTED) {
                return;
            }
            verdict = match self.run_ingress(id, requests.resubmit, now) {
                Some(verdict) if verdict.exit == Exit::Done => verdict,
                Some(verdict) => return self.give_up(id, verdict.exit, None),
                None => return self.end(id, DropReason::NoProgram, None),
            };
        }
        self.forward(id, verdict, now);
    }

    /// Parser and ingress; `None` without a program.
    #[inline(always)]
    fn run_ingress(&mut self, id: PacketId, list: Option<u16>, now: Nanos) -> Option<Verdict> {
        self.cool();
        let Running { pipeline, state } = self.running.as_mut()?;
        let frame = &mut *self.frame;
        let packet = self.pool.get_mut(id);
        let pipeline = form(pipeline, self.tracer.as_deref(), &packet.meta);
        state.trace.packet = packet.meta.trace;
        let code = &pipeline.code;
        clear(code, frame);
        if let Some(list) = list {
            restore_list(code, frame, list, &self.for_pass);
        }
        packet.meta.arrived = now;
        tell_ingress(code, frame, &packet.meta, packet.len(), self.config.time_unit_ns);
        let mut cx = Cx {
            bytes: packet.padded(),
            len: packet.len(),
            cursor: 0,
            out: &mut self.cpu_out,
            now,
            drop_port: self.config.drop_port,
            parse_only: false,
            cleared: true,
            requests: &mut self.requests,
            color: 0,
        };
        let exit = run(pipeline, state, frame, &mut cx, Block::Ingress);
        packet.meta.cursor = cx.cursor;
        Some(Verdict::new(code, frame, exit))
    }

    /// Sends a packet on to its port or group.
    #[inline(always)]
    fn forward(&mut self, id: PacketId, verdict: Verdict, now: Nanos) {
        self.pool.get_mut(id).meta.priority = verdict.priority;
        if verdict.group != 0 {
            self.multicast(id, verdict.group, now);
        } else if verdict.egress_spec == u64::from(self.config.drop_port) {
            self.end(id, DropReason::IngressDrop, None);
        } else {
            self.pool.get_mut(id).meta.instance_type = 0;
            if self.enqueue(id, verdict.egress_spec, now) {
                // Often it is the next to leave its queue: then nothing need be copied.
                self.hot = id;
            }
        }
    }

    #[inline(never)]
    fn multicast(&mut self, id: PacketId, group: u64, now: Nanos) {
        let group = u32::try_from(group).ok().and_then(|group| self.groups.get_key_value(&group));
        let Some((&group, replicas)) = group.filter(|(_, replicas)| !replicas.live().is_empty()) else {
            return self.end(id, DropReason::EmptyGroup, None);
        };
        let count = replicas.live().len();
        for index in 0..count {
            let Some(&replica) = self.groups.get(&group).and_then(|replicas| replicas.live().get(index))
            else {
                break;
            };
            // The last replica is the packet itself.
            let copy = if index + 1 == count { id } else { self.pool.copy(id) };
            let meta = &mut self.pool.get_mut(copy).meta;
            meta.instance_type = REPLICATED;
            meta.rid = replica.instance;
            self.passes.replicas += 1;
            self.keep(copy);
            self.enqueue(copy, replica.port.into(), now);
        }
    }

    /// A clone of what came in: parsed again, with the metadata of its field list.
    fn ingress_clone(&mut self, copy: PacketId, session: u64, list: u16, now: Nanos) {
        self.cool();
        let Some(Running { pipeline, state }) = self.running.as_mut() else {
            return self.pool.release(copy);
        };
        let frame = &mut *self.frame;
        let packet = self.pool.get_mut(copy);
        let pipeline = form(pipeline, self.tracer.as_deref(), &packet.meta);
        let code = &pipeline.code;
        clear(code, frame);
        restore_list(code, frame, list, &self.for_clone);
        packet.meta.truncate = u32::MAX;
        packet.meta.instance_type = INGRESS_CLONE;
        frame[code.standard.packet_length as usize] = packet.len() as u64;
        frame[code.standard.ingress_port as usize] = packet.meta.ingress_port.into();
        let mut cx = Cx {
            bytes: packet.padded(),
            len: packet.len(),
            cursor: 0,
            out: &mut self.cpu_out,
            now,
            drop_port: self.config.drop_port,
            parse_only: true,
            cleared: true,
            requests: &mut self.requests,
            color: 0,
        };
        run(pipeline, state, frame, &mut cx, Block::Ingress);
        packet.meta.cursor = cx.cursor;
        self.keep(copy);
        self.send_clone(copy, session, now);
    }

    /// Sends a clone, whose variables are kept already, to all replicas of a session.
    fn send_clone(&mut self, copy: PacketId, session: u64, now: Nanos) {
        let key = u32::try_from(session).unwrap_or(u32::MAX);
        let Some(session) = self.sessions.get(&key).filter(|session| !session.replicas.live().is_empty())
        else {
            return self.end(copy, DropReason::NoCloneSession, None);
        };
        let (count, length) = (session.replicas.live().len(), session.packet_length_bytes);
        let meta = &mut self.pool.get_mut(copy).meta;
        meta.priority = session.class_of_service & 7;
        if length != 0 {
            meta.truncate = length.into();
        }
        for index in 0..count {
            let replica = self.sessions.get(&key).and_then(|session| session.replicas.live().get(index));
            let Some(&replica) = replica else {
                break;
            };
            let id = if index + 1 == count { copy } else { self.pool.copy(copy) };
            if id != copy {
                let kept = std::mem::take(&mut self.pool.get_mut(copy).kept);
                self.pool.get_mut(id).kept.clone_from(&kept);
                self.pool.get_mut(copy).kept = kept;
            }
            self.pool.get_mut(id).meta.rid = replica.instance;
            self.passes.clones += 1;
            self.enqueue(id, replica.port.into(), now);
        }
    }

    /// Stores the variables that egress needs with the packet.
    #[inline(never)]
    fn keep(&mut self, id: PacketId) {
        if let Some(running) = &self.running {
            let kept = &mut self.pool.get_mut(id).kept;
            kept.clear();
            for &(slot, count) in &running.pipeline.code.kept {
                kept.extend_from_slice(&self.frame[slot as usize..][..count as usize]);
            }
        }
    }

    /// Puts the variables that are stored with the packet back.
    fn recall(&mut self, id: PacketId) {
        if let Some(running) = &self.running {
            restore(&running.pipeline.code, &mut self.frame, &self.pool.get(id).kept);
        }
    }

    /// The frame is about to be used for another packet.
    #[inline]
    pub(crate) fn cool(&mut self) {
        if self.hot != NONE {
            let id = std::mem::replace(&mut self.hot, NONE);
            self.keep(id);
        }
    }

    /// Puts a packet into a queue; false if it ended.
    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, port: u64, now: Nanos) -> bool {
        let Some(at) = self.manager.find(port) else {
            self.end(id, DropReason::NoSuchPort, None);
            return false;
        };
        let packet = self.pool.get(id);
        let len = packet.len().min(packet.meta.truncate as usize);
        self.enqueue_at(id, len, at, now)
    }

    /// Likewise, of the port at this position; the packet takes the room of so many bytes.
    #[inline(always)]
    pub(crate) fn enqueue_at(&mut self, id: PacketId, len: usize, at: usize, now: Nanos) -> bool {
        if let Err(reason) = self.manager.enqueue(&mut self.pool, id, len, at, now) {
            self.end(id, reason, Some(at));
            return false;
        }
        true
    }

    /// A packet ends here.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self, id: PacketId, reason: DropReason, at: Option<usize>) {
        self.tell_of(self.pool.get(id).meta.trace);
        self.drop_frame(reason, at);
        self.tell_of(0);
        self.pool.release(id);
    }

    /// Readies a packet for another pass; false if it had too many and is gone.
    fn next_pass(&mut self, id: PacketId, instance_type: u32) -> bool {
        let meta = &mut self.pool.get_mut(id).meta;
        meta.passes += 1;
        meta.instance_type = instance_type;
        if meta.passes > self.config.recirculation_limit {
            self.end(id, DropReason::RecirculationLimit, None);
            return false;
        }
        true
    }

    /// Egress of a packet that has left its queue, in which `left` wait on. True: `out` is the frame to send and
    /// the packet is still the caller's. False: it went elsewhere.
    #[inline(always)]
    pub(crate) fn egress(
        &mut self,
        id: PacketId,
        at: usize,
        left: u64,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> bool {
        match self.pool.get(id).meta.stage {
            Stage::Sent => {
                self.pool.hand_out(id, out);
                true
            }
            Stage::Ended(exit) => self.after_egress(id, at, exit, true, now, out),
            Stage::Ingress => self.run_egress(id, at, left, now, out),
        }
    }

    #[inline(never)]
    fn run_egress(&mut self, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>) -> bool {
        if self.hot == id {
            self.hot = NONE;
        } else {
            self.cool();
            let frame = &mut *self.frame;
            if let Some(running) = &self.running {
                restore(&running.pipeline.code, frame, &self.pool.get(id).kept);
            }
        }
        self.leave(id, at, left, now, out)
    }

    /// Likewise, of a packet whose variables are in the frame.
    #[inline(always)]
    fn leave(&mut self, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>) -> bool {
        let Some(Running { pipeline, state }) = self.running.as_mut() else {
            self.end(id, DropReason::NoProgram, Some(at));
            return false;
        };
        let frame = &mut *self.frame;
        let packet = self.pool.get_mut(id);
        let pipeline = form(pipeline, self.tracer.as_deref(), &packet.meta);
        state.trace.packet = packet.meta.trace;
        let code = &pipeline.code;
        tell_egress(code, frame, &packet.meta, packet.len(), left, now, self.config.time_unit_ns);
        out.clear();
        let mut cx = Cx {
            bytes: packet.padded(),
            len: packet.len(),
            cursor: packet.meta.cursor,
            out,
            now,
            drop_port: self.config.drop_port,
            parse_only: false,
            cleared: true,
            requests: &mut self.requests,
            color: 0,
        };
        let exit = run(pipeline, state, frame, &mut cx, Block::Egress);
        let dropped = frame[code.standard.egress_spec as usize] == u64::from(self.config.drop_port);
        self.after_egress(id, at, exit, dropped, now, out)
    }

    /// Does what egress decided and asked for.
    pub(crate) fn after_egress(
        &mut self,
        id: PacketId,
        at: usize,
        mut exit: Exit,
        dropped: bool,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut requests = None;
        if self.requests.any {
            let asked = std::mem::take(&mut self.requests);
            requests = Some(asked);
            if let (Exit::Done, Some((session, list))) = (exit, asked.clone) {
                self.egress_clone(id, session, list, now);
            }
        }
        if exit == Exit::Done && !dropped {
            exit = self.deparse(id, now, out);
            if self.requests.any {
                // It is too late for that.
                self.requests = Requests::default();
            }
        }
        match exit {
            Exit::Done if dropped => self.end(id, DropReason::EgressDrop, Some(at)),
            Exit::Done => return requests.is_none_or(|requests| self.finish(id, at, &requests, now, out)),
            exit => self.give_up(id, exit, Some(at)),
        }
        false
    }

    /// Checksums and deparser: what is to be sent, if nothing else becomes of it.
    #[inline(always)]
    fn deparse(&mut self, id: PacketId, now: Nanos, out: &mut Vec<u8>) -> Exit {
        let Some(Running { pipeline, state }) = self.running.as_mut() else {
            return Exit::Done;
        };
        let packet = self.pool.get(id);
        let mut cx = Cx {
            bytes: packet.padded(),
            len: packet.len(),
            cursor: packet.meta.cursor,
            out,
            now,
            drop_port: self.config.drop_port,
            parse_only: false,
            cleared: true,
            requests: &mut self.requests,
            color: 0,
        };
        let exit = run(pipeline, state, &mut self.frame, &mut cx, Block::Deparser);
        out.extend_from_slice(packet.payload());
        if packet.meta.truncate != u32::MAX {
            out.truncate(packet.meta.truncate as usize);
        }
        exit
    }

    /// What egress asked for beside clones; true: `out` is to be sent.
    #[cold]
    #[inline(never)]
    fn finish(
        &mut self,
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
        self.passes.recirculations += 1;
        keep_list(&self.running, &self.frame, list, &mut self.for_pass);
        if out.len() > self.config.max_frame_bytes {
            self.end(id, DropReason::FrameTooLong, Some(at));
        } else if self.next_pass(id, RECIRCULATED) {
            let packet = self.pool.get_mut(id);
            packet.set_frame(out);
            packet.meta.truncate = u32::MAX;
            packet.meta.rid = 0;
            self.ingress(id, Some(list), now);
        }
        false
    }

    /// A clone of what egress made: its headers, and the metadata of its field list.
    fn egress_clone(&mut self, id: PacketId, session: u64, list: u16, now: Nanos) {
        let copy = self.pool.copy(id);
        if !self.next_pass(copy, EGRESS_CLONE) {
            return;
        }
        self.keep(copy);
        if let Some(running) = &self.running {
            let code = &running.pipeline.code;
            let slots = code.kept.iter().flat_map(|&(slot, count)| slot..slot + count);
            let kept = &mut self.pool.get_mut(copy).kept;
            let listed = |slot: u16| {
                let spans = code.lists.get(list as usize).into_iter().flatten();
                spans.into_iter().any(|&(first, count)| (first..first + count).contains(&slot))
            };
            for ((word, slot), &is_header) in kept.iter_mut().zip(slots).zip(&code.kept_is_header) {
                if !is_header && !listed(slot) {
                    *word = 0;
                }
            }
        }
        self.pool.get_mut(copy).meta.truncate = u32::MAX;
        self.send_clone(copy, session, now);
    }
}

/// The form of the program for a packet.
#[inline(always)]
fn form<'a>(running: &'a Pipeline, tracer: Option<&'a Tracer>, meta: &Meta) -> &'a Pipeline {
    match tracer {
        Some(tracer) if meta.trace != 0 => &tracer.pipeline,
        _ => running,
    }
}

/// `standard_metadata` for ingress.
#[inline(always)]
pub(crate) fn tell_ingress(code: &Code, frame: &mut Frame, meta: &Meta, len: usize, unit_ns: u64) {
    let standard = &code.standard;
    frame[standard.ingress_port as usize] = meta.ingress_port.into();
    frame[standard.packet_length as usize] = len as u64;
    frame[standard.instance_type as usize] = meta.instance_type.into();
    frame[standard.ingress_global_timestamp as usize] = units(meta.arrived, unit_ns, 48);
}

/// `standard_metadata` for egress; `left` wait in the packet's queue.
#[inline(always)]
pub(crate) fn tell_egress(
    code: &Code,
    frame: &mut Frame,
    meta: &Meta,
    len: usize,
    left: u64,
    now: Nanos,
    unit_ns: u64,
) {
    let standard = &code.standard;
    frame[standard.egress_spec as usize] = 0;
    if standard.in_egress {
        frame[standard.ingress_port as usize] = meta.ingress_port.into();
        frame[standard.egress_port as usize] = meta.egress_port.into();
        frame[standard.instance_type as usize] = meta.instance_type.into();
        frame[standard.packet_length as usize] = len as u64;
        frame[standard.egress_rid as usize] = meta.rid.into();
    }
    if standard.times_in_egress {
        frame[standard.enq_timestamp as usize] = units(meta.enqueued, unit_ns, 32);
        frame[standard.enq_qdepth as usize] = u64::from(meta.enqueued_depth) & 0x7_ffff;
        frame[standard.deq_timedelta as usize] = units(now.saturating_sub(meta.enqueued), unit_ns, 32);
        frame[standard.deq_qdepth as usize] = left & 0x7_ffff;
        frame[standard.ingress_global_timestamp as usize] = units(meta.arrived, unit_ns, 48);
        frame[standard.egress_global_timestamp as usize] = units(now, unit_ns, 48);
    }
}

/// Time in units of a program, cut to a field's width.
#[inline]
fn units(time: Nanos, unit_ns: u64, width: u32) -> u64 {
    let value = if unit_ns <= 1 { time.0 } else { time.0 / unit_ns };
    value & ((1 << width) - 1)
}

/// Clears what a program may read before it is written.
#[inline(always)]
pub(crate) fn clear(code: &Code, frame: &mut Frame) {
    for &slot in &code.cleared {
        if let Some(run) = frame[slot as usize..].first_chunk_mut::<RUN>() {
            *run = [0; RUN];
        }
    }
}

/// Clears the variables, then restores those that were kept.
#[inline]
fn restore(code: &Code, frame: &mut Frame, kept: &[u64]) {
    clear(code, frame);
    let mut from = 0;
    for &(slot, count) in &code.kept {
        let words = &kept[from..from + count as usize];
        frame[slot as usize..][..count as usize].copy_from_slice(words);
        from += count as usize;
    }
}

/// Takes the values of a field list out of the frame.
fn keep_list(running: &Option<Running>, frame: &Frame, list: u16, words: &mut Vec<u64>) {
    words.clear();
    if let Some(running) = running
        && list != NO_LIST
    {
        for &(slot, count) in running.pipeline.code.lists.get(list as usize).into_iter().flatten() {
            words.extend_from_slice(&frame[slot as usize..][..count as usize]);
        }
    }
}

/// Puts the values of a field list back.
fn restore_list(code: &Code, frame: &mut Frame, list: u16, words: &[u64]) {
    let mut from = 0;
    for &(slot, count) in code.lists.get(list as usize).into_iter().flatten() {
        if let Some(words) = words.get(from..from + count as usize) {
            frame[slot as usize..][..count as usize].copy_from_slice(words);
        }
        from += count as usize;
    }
}
