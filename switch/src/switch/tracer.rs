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
use crate::switch::event::{self, TraceEvent};
use crate::trace::RawEvent;
use p4rack_wire::Nanos;

/// A filter for the frames to trace. A frame has to match everything that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// Port on which it arrives.
    pub ingress_port: Option<u16>,
    /// EtherType after any 802.1Q tags, or directly after the addresses.
    pub ether_type: Option<u16>,
    /// Source MAC address.
    pub source: Option<[u8; 6]>,
    /// Destination MAC address.
    pub destination: Option<[u8; 6]>,
}

/// EtherTypes of tags: 802.1Q and 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

impl TraceFilter {
    /// Whether a frame that arrives on a port matches the filter.
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

/// An active trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub pipeline: Pipeline,
    filter: TraceFilter,
    /// Frames that may still be traced; `None`: all for whose events there is room.
    left: Option<u32>,
    /// Number of the first packet and of the next one. Later traces of the switch use larger numbers.
    first: u32,
    next: u32,
}

/// Progress of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceState {
    /// Frames traced so far.
    pub traced: u32,
    /// Frames that may still be traced.
    pub left: u32,
}

/// An event of a packet, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Number of the frame that arrived, from 1, shared by its copies; 0 if it belongs to no packet.
    pub packet: u32,
    /// Time in the switch's clock.
    pub time: Nanos,
    /// The event.
    pub event: TraceEvent,
}

impl Switch {
    /// Traces the next `frames` frames that match the filter. Returns a number for [`Switch::trace_stop`].
    /// `pipeline` is the loaded program, compiled by [`Pipeline::compile_traced`]. The trace ends with the
    /// program, or when it is stopped.
    pub fn trace_start(
        &mut self,
        pipeline: Pipeline,
        filter: TraceFilter,
        frames: u32,
    ) -> Result<u32, ControlError> {
        self.begin_trace(pipeline, filter, Some(frames))
    }

    /// Traces all frames from now on, like [`Switch::trace_start`]. A frame that arrives while too many events wait is left
    /// out and counted.
    pub fn trace_all(&mut self, pipeline: Pipeline) -> Result<u32, ControlError> {
        self.begin_trace(pipeline, TraceFilter::default(), None)
    }

    fn begin_trace(
        &mut self,
        pipeline: Pipeline,
        filter: TraceFilter,
        left: Option<u32>,
    ) -> Result<u32, ControlError> {
        if self.tracer.is_some() {
            return Err(ControlError::InUse(
                "another trace is active, and a switch runs one at a time; wait until it has ended".into(),
            ));
        }
        let first = self.next_trace;
        let running = self.running_mut()?;
        if !pipeline.traced || !running.pipeline.has_variables_of(&pipeline) {
            return Err(ControlError::Invalid("the program was replaced in the meantime; try again".into()));
        }
        running.state.trace.tell_from(Some(first));
        self.tracer = Some(Box::new(Tracer { pipeline, filter, left, first, next: first }));
        Ok(first)
    }

    /// Ends the trace with this number, if it is active, and discards its waiting events.
    pub fn trace_stop(&mut self, id: u32) {
        if self.tracer.as_ref().is_some_and(|tracer| tracer.first == id) {
            self.end_trace();
        }
    }

    /// Progress of the trace with this number; `None` once it has ended.
    pub fn trace_state(&self, id: u32) -> Option<TraceState> {
        let tracer = self.tracer.as_ref().filter(|tracer| tracer.first == id)?;
        Some(TraceState { traced: tracer.next - tracer.first, left: tracer.left.unwrap_or(u32::MAX) })
    }

    /// The oldest waiting event of the trace.
    pub fn poll_traced(&mut self) -> Option<Traced> {
        let tracer = self.tracer.as_ref()?;
        let running = self.running.as_mut()?;
        let (packet, time, raw) = running.state.trace.pop()?;
        let event = event::named(raw, &tracer.pipeline, &running.state.pipe.tables);
        Some(Traced { packet: (packet + 1).saturating_sub(tracer.first), time, event })
    }

    pub(crate) fn end_trace(&mut self) {
        self.tracer = None;
        if let Some(running) = &mut self.running {
            running.state.trace.tell_from(None);
        }
    }

    /// Starts tracing `arrival` if it matches. Only called while a trace is active.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_arrival(&mut self, port: u16, now: Nanos) -> bool {
        let Some(tracer) = &mut self.tracer else { return false };
        if tracer.left == Some(0) || !tracer.filter.matches(port, self.arrival.frame()) {
            return false;
        }
        let trace = self.running.as_mut().map(|running| &mut running.state.trace);
        if tracer.left.is_none() && trace.is_some_and(|trace| trace.skips(now)) {
            return false;
        }
        let number = tracer.next;
        (tracer.left, tracer.next) = (tracer.left.map(|left| left - 1), number.saturating_add(1));
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

    /// Makes the packet with this number the one being processed; 0 for none.
    #[inline]
    pub(crate) fn tell_of(&mut self, trace: u32) {
        if let Some(running) = &mut self.running {
            running.state.trace.packet = trace;
        }
    }

    /// Records that a traced packet is sent.
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
