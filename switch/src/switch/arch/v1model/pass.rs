//! One packet's pass through the parts of the pipeline, written once for frames that have just arrived and
//! for packets of the pool.

use crate::arch::v1model::{DEPARSER, EGRESS, INGRESS};
use crate::code::ops::Vars;
use crate::code::plans::Code;
use crate::compile::Pipeline;
use crate::config::Config;
use crate::exec::{Cx, Exit, Requests};
use crate::pool::{Meta, Packet, PacketId};
use crate::state::State;
use crate::stats::DropReason;
use crate::switch::packets::{clear, form, restore_list};
use crate::switch::{Running, Switch};
use p4rack_p4::ir::Intrinsic;
use p4rack_wire::Nanos;

/// Ingress's decision for a packet.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub exit: Exit,
    pub destination: u64,
    pub group: u64,
    pub priority: u8,
}

/// Egress's decision for a packet.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub exit: Exit,
    pub dropped: bool,
    /// Whether it made requests to the switch.
    pub asked: bool,
}

/// A packet, the program and the variables.
pub(super) struct Pass<'a, 'p> {
    pub pipeline: &'a Pipeline,
    pub state: &'a mut State,
    pub vars: &'a mut Vars,
    pub clock: Clock,
    pub cx: Cx<'p>,
}

impl Pass<'_, '_> {
    /// Starts at the first byte, with cleared variables except those of the field list that the packet
    /// carries.
    pub fn begin(&mut self, list: Option<u16>, words: &[u64]) {
        self.cx.cursor = 0;
        clear(&self.pipeline.code, self.vars);
        if let Some(list) = list {
            restore_list(&self.pipeline.code, self.vars, list, words);
        }
    }

    /// Runs the parser, checksum verification and ingress. The variables are cleared before, or by the
    /// machine code itself.
    #[inline(always)]
    pub fn ingress(&mut self, meta: &Meta) -> Verdict {
        let code = &self.pipeline.code;
        set_ingress_fields(code, self.vars, meta, self.cx.len, self.clock);
        let exit = self.pipeline.run(self.state, self.vars, &mut self.cx, INGRESS);
        let field = |role: Intrinsic| self.vars[code.intrinsics[role] as usize];
        Verdict {
            exit,
            destination: field(Intrinsic::Destination),
            group: field(Intrinsic::MulticastGroup),
            priority: (field(Intrinsic::Priority) & 7) as u8,
        }
    }

    /// Runs the parser alone, for a clone of a packet as received.
    pub fn parse(&mut self, meta: &Meta) {
        let intrinsics = &self.pipeline.code.intrinsics;
        self.vars[intrinsics[Intrinsic::PacketLength] as usize] = self.cx.len as u64;
        self.vars[intrinsics[Intrinsic::IngressPort] as usize] = meta.ingress_port.into();
        self.cx.parse_only = true;
        self.pipeline.run(self.state, self.vars, &mut self.cx, INGRESS);
    }

    /// Runs egress for a packet whose queue still holds `left` others.
    #[inline(always)]
    pub fn egress(&mut self, meta: &Meta, left: u64) -> Outcome {
        let code = &self.pipeline.code;
        set_egress_fields(code, self.vars, meta, self.cx.len, left, self.cx.now, self.clock);
        // Many programs have an empty egress.
        if code.late.is_empty {
            return Outcome { exit: Exit::Done, dropped: false, asked: false };
        }
        let exit = self.pipeline.run(self.state, self.vars, &mut self.cx, EGRESS);
        let destination = self.vars[code.intrinsics[Intrinsic::Destination] as usize];
        let dropped = destination == u64::from(self.cx.drop_port);
        Outcome { exit, dropped, asked: self.cx.requests.any }
    }

    /// Runs checksum computation and the deparser.
    #[inline(always)]
    pub fn deparse(&mut self) -> Exit {
        let exit = self.pipeline.run(self.state, self.vars, &mut self.cx, DEPARSER);
        if self.cx.requests.any {
            // Too late for these requests.
            *self.cx.requests = Requests::default();
        }
        exit
    }
}

/// Writes the intrinsic fields that ingress reads.
#[inline(always)]
fn set_ingress_fields(code: &Code, vars: &mut Vars, meta: &Meta, len: usize, clock: Clock) {
    let mut set = |role: Intrinsic, value: u64| vars[code.intrinsics[role] as usize] = value;
    set(Intrinsic::IngressPort, meta.ingress_port.into());
    set(Intrinsic::PacketLength, len as u64);
    set(Intrinsic::Origin, meta.origin.into());
    set(Intrinsic::IngressTime, clock.time(meta.arrived, 48));
}

/// Writes the intrinsic fields that egress reads; `left` packets wait in the packet's queue.
#[inline(always)]
fn set_egress_fields(
    code: &Code,
    vars: &mut Vars,
    meta: &Meta,
    len: usize,
    left: u64,
    now: Nanos,
    clock: Clock,
) {
    let mut set = |role: Intrinsic, value: u64| vars[code.intrinsics[role] as usize] = value;
    set(Intrinsic::Destination, 0);
    if code.late.looks {
        set(Intrinsic::IngressPort, meta.ingress_port.into());
        set(Intrinsic::EgressPort, meta.egress_port.into());
        set(Intrinsic::Origin, meta.origin.into());
        set(Intrinsic::PacketLength, len as u64);
        set(Intrinsic::Replica, meta.rid.into());
    }
    if code.late.looks_at_times {
        set(Intrinsic::EnqueueTime, clock.time(meta.enqueued, 32));
        set(Intrinsic::EnqueueDepth, u64::from(meta.enqueued_depth) & 0x7_ffff);
        set(Intrinsic::QueueingTime, clock.units(now.saturating_sub(meta.enqueued), 32));
        set(Intrinsic::DequeueDepth, left & 0x7_ffff);
        set(Intrinsic::IngressTime, clock.time(meta.arrived, 48));
        set(Intrinsic::EgressTime, clock.time(now, 48));
    }
}

/// The clock that the program sees.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    zero: Nanos,
    unit_ns: u64,
}

impl Clock {
    #[inline]
    pub fn of(config: &Config) -> Clock {
        Clock { zero: config.clock_zero, unit_ns: config.time_unit_ns }
    }

    /// What it shows at a time, truncated to the width of a field.
    #[inline]
    fn time(self, at: Nanos, width: u32) -> u64 {
        self.units(at.saturating_sub(self.zero), width)
    }

    /// A duration in its unit, truncated to the width of a field.
    #[inline]
    fn units(self, duration: Nanos, width: u32) -> u64 {
        let value = if self.unit_ns <= 1 { duration.0 } else { duration.0 / self.unit_ns };
        value & ((1 << width) - 1)
    }
}

/// Prepares a packet for another pass. Returns false if it had too many passes and was dropped.
pub(super) fn next_pass(switch: &mut Switch, id: PacketId, origin: u32) -> bool {
    let meta = &mut switch.pool.get_mut(id).meta;
    meta.passes += 1;
    meta.origin = origin;
    if meta.passes > switch.config.recirculation_limit {
        switch.end(id, DropReason::RecirculationLimit, None);
        return false;
    }
    true
}

/// The pass of a packet of the pool whose variables are loaded. `None` if no program is loaded. Packets that are
/// traced record events.
#[inline(always)]
pub(super) fn pass<'s: 'o, 'o>(
    switch: &'s mut Switch,
    id: PacketId,
    out: &'o mut Vec<u8>,
    now: Nanos,
) -> Option<(Pass<'s, 'o>, &'s Packet)> {
    let Switch { running, tracer, vars, pool, requests, config, .. } = switch;
    let Running { pipeline, state } = running.as_mut()?;
    let packet = pool.get(id);
    let pipeline = form(pipeline, tracer.as_deref(), &packet.meta);
    state.trace.packet = packet.meta.trace;
    let view = (packet.padded(), packet.len(), packet.meta.cursor);
    let cx = Cx::new(view, out, requests, config.drop_port, now);
    Some((Pass { pipeline, state, vars, clock: Clock::of(config), cx }, packet))
}
