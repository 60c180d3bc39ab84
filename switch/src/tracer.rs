//! Traces of single packets on a running switch.
//!
//! ```text
//!  frame ─ filter ─┬─ no: machine code, as always
//!                  └─ yes: a number for it and its copies; ingress and egress as a traced program, interpreted
//! ```
//!
//! Both forms of the program have the same variables, tables and registers, so a packet may meet either. Without a trace
//! a frame costs a look at whether there is one.

use crate::compile::Pipeline;
use crate::error::ControlError;
use crate::pool::{Meta, PacketId};
use crate::stats::DropReason;
use crate::switch::Switch;
use crate::trace::{RawEvent, TraceEvent};
use p4rack_wire::Nanos;

/// Which frames to trace: those that fit all that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// Port it comes in at.
    pub ingress_port: Option<u16>,
    /// Its EtherType: the one after the addresses, or the one after 802.1Q tags.
    pub ether_type: Option<u16>,
    /// Source address.
    pub source: Option<[u8; 6]>,
    /// Destination address.
    pub destination: Option<[u8; 6]>,
}

/// EtherTypes of tags: 802.1Q and 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

impl TraceFilter {
    /// Whether a frame that comes in at a port is to be traced.
    pub fn matches(&self, port: u16, frame: &[u8]) -> bool {
        let is = |wanted: Option<[u8; 6]>, at: usize| {
            wanted.is_none_or(|wanted| frame.get(at..at + 6) == Some(&wanted[..]))
        };
        self.ingress_port.is_none_or(|wanted| wanted == port)
            && is(self.destination, 0)
            && is(self.source, 6)
            && self.ether_type.is_none_or(|wanted| has_ether_type(frame, wanted))
    }
}

fn has_ether_type(frame: &[u8], wanted: u16) -> bool {
    let mut rest = frame.get(12..).unwrap_or(&[]);
    while let [high, low, after @ ..] = rest {
        let found = u16::from_be_bytes([*high, *low]);
        if found == wanted {
            return true;
        }
        if !TAGS.contains(&found) {
            return false;
        }
        rest = after.get(2..).unwrap_or(&[]);
    }
    false
}

/// A trace that is on.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub pipeline: Pipeline,
    filter: TraceFilter,
    /// Frames that may still be traced.
    left: u32,
    /// Number of the first one and of the next one; those of a switch's later traces are larger.
    first: u32,
    next: u32,
}

/// How a trace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceState {
    /// Frames traced so far.
    pub traced: u32,
    /// Frames that may still be traced.
    pub left: u32,
}

/// What happened to a packet, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Number of the frame that came in, from 1; its copies have the same. 0 is of no packet.
    pub packet: u32,
    /// The switch's time.
    pub time: Nanos,
    /// What happened.
    pub event: TraceEvent,
}

impl Switch {
    /// Traces the next `frames` frames that fit the filter; gives a number for [`Switch::trace_stop`]. `pipeline` is the
    /// program that runs, from [`Pipeline::compile_traced`]. It ends with the program, or when it is stopped.
    pub fn trace_start(
        &mut self,
        pipeline: Pipeline,
        filter: TraceFilter,
        frames: u32,
    ) -> Result<u32, ControlError> {
        if self.tracer.is_some() {
            return Err(ControlError::InUse(
                "another trace is on: a switch traces for one at a time; wait until it has ended".into(),
            ));
        }
        let first = self.next_trace;
        let running = self.running_mut()?;
        if !pipeline.traced || !running.pipeline.has_variables_of(&pipeline) {
            return Err(ControlError::Invalid("the program was replaced meanwhile: ask again".into()));
        }
        running.state.trace.tell_from(Some(first));
        self.tracer = Some(Box::new(Tracer { pipeline, filter, left: frames, first, next: first }));
        Ok(first)
    }

    /// Ends the trace with this number, if it is on; what waits of it is gone.
    pub fn trace_stop(&mut self, id: u32) {
        if self.tracer.as_ref().is_some_and(|tracer| tracer.first == id) {
            self.end_trace();
        }
    }

    /// How the trace with this number stands; `None` once it has ended.
    pub fn trace_state(&self, id: u32) -> Option<TraceState> {
        let tracer = self.tracer.as_ref().filter(|tracer| tracer.first == id)?;
        Some(TraceState { traced: tracer.next - tracer.first, left: tracer.left })
    }

    /// The oldest event of the trace that waits.
    pub fn poll_traced(&mut self) -> Option<Traced> {
        let tracer = self.tracer.as_ref()?;
        let running = self.running.as_mut()?;
        let (packet, time, event) = running.state.trace.pop(&tracer.pipeline)?;
        Some(Traced { packet: (packet + 1).saturating_sub(tracer.first), time, event })
    }

    pub(crate) fn end_trace(&mut self) {
        self.tracer = None;
        if let Some(running) = &mut self.running {
            running.state.trace.tell_from(None);
        }
    }

    /// Takes `arrival` over if it is to be traced. Only called while a trace is on.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_arrival(&mut self, port: u16, now: Nanos) -> bool {
        let Some(tracer) = &mut self.tracer else { return false };
        if tracer.left == 0 || !tracer.filter.matches(port, self.arrival.frame()) {
            return false;
        }
        let number = tracer.next;
        (tracer.left, tracer.next) = (tracer.left - 1, tracer.next.saturating_add(1));
        self.next_trace = tracer.next;
        let meta = Meta { ingress_port: port, arrived: now, trace: number, ..Meta::default() };
        let id = self.pool.adopt(&mut self.arrival, meta);
        match self.arch() {
            Some(arch) => arch.ingress(self, id, now),
            None => self.end(id, DropReason::NoProgram, None),
        }
        self.tell_of(0);
        if self.manager.cpu_waits {
            self.serve_cpu(now);
        }
        true
    }

    /// From now on the packet with this number is at work, or none.
    #[inline]
    pub(crate) fn tell_of(&mut self, trace: u32) {
        if let Some(running) = &mut self.running {
            running.state.trace.packet = trace;
        }
    }

    /// Tells that a traced packet leaves.
    #[cold]
    pub(crate) fn tell_sent(&mut self, id: PacketId, port: Option<u16>, bytes: usize, now: Nanos) {
        let trace = self.pool.get(id).meta.trace;
        self.tell_of(trace);
        if let Some(running) = &mut self.running {
            running.state.trace.push(now, RawEvent::Sent { port, bytes });
        }
        self.tell_of(0);
    }
}
