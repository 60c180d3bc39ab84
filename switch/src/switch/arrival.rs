//! Arriving frames: counts them, applies the port's rate limit, starts traces and runs the program.

use crate::pool::{Meta, Stage};
use crate::stats::DropReason;
use crate::switch::Switch;
use p4rack_wire::Nanos;

impl Switch {
    /// Receives a frame, without FCS. A frame from the CPU port is a packet-out.
    pub fn handle_frame(&mut self, port: u16, frame: &[u8], now: Nanos) {
        self.handle::<true>(port, frame, now);
    }

    /// Receives a frame that the switch generated itself; no rate limit applies.
    pub(crate) fn handle_generated(&mut self, port: u16, frame: &[u8], now: Nanos) {
        self.pool.tag = 0;
        self.handle::<false>(port, frame, now);
    }

    #[inline(always)]
    fn handle<const WIRE: bool>(&mut self, port: u16, frame: &[u8], now: Nanos) {
        if self.arrive::<WIRE>(port, frame.len(), now, now) {
            self.arrival.set_frame(frame);
            if self.tracer.is_some() && self.trace_arrival(port, now) {
                return;
            }
            let mut out = std::mem::take(&mut self.cpu_out);
            self.run::<false, false>(port, now, &mut out);
            self.cpu_out = out;
        }
    }

    /// Like [`Switch::handle_frame`], but if the egress port is idle, takes the next step of
    /// [`Switch::poll_transmit`] immediately: leaves the frame in `out` and returns the port to send it
    /// from. Otherwise returns `None`, and there may be something to poll for.
    pub fn forward_frame(&mut self, port: u16, frame: &[u8], now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.forward_late(port, frame, now, now, out)
    }

    /// Like [`Switch::forward_frame`], for a frame that arrived at `arrived`, the time that the port's rate
    /// limit counts.
    #[inline(always)]
    pub fn forward_late(
        &mut self,
        port: u16,
        frame: &[u8],
        arrived: Nanos,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        if !self.arrive::<true>(port, frame.len(), arrived, now) {
            return None;
        }
        self.arrival.set_frame(frame);
        if self.tracer.is_some() && self.trace_arrival(port, now) {
            return None;
        }
        self.run::<true, false>(port, now, out)
    }

    /// Like [`Switch::forward_frame`], but takes ownership of the frame's buffer, which saves a copy.
    /// Afterwards `frame` holds the frame to send; if there is none to send now, it is an arbitrary buffer
    /// for reuse.
    pub fn forward_given(&mut self, port: u16, frame: &mut Vec<u8>, now: Nanos) -> Option<u16> {
        if !self.arrive::<true>(port, frame.len(), now, now) {
            return None;
        }
        self.arrival.take_frame(frame);
        if self.tracer.is_some() && self.trace_arrival(port, now) {
            return None;
        }
        self.run::<true, true>(port, now, frame)
    }

    /// Counts a frame that arrives, on a wire (`WIRE`) or not. Returns false if it is dropped here.
    #[inline(always)]
    fn arrive<const WIRE: bool>(&mut self, port: u16, len: usize, arrived: Nanos, now: Nanos) -> bool {
        self.now = self.now.max(now);
        let Some(at) = self.manager.find(port.into()) else {
            self.drop_frame(DropReason::UnknownIngressPort, None);
            return false;
        };
        let counters = self.manager.port_mut(at);
        counters.rx_frames += 1;
        counters.rx_bytes += len as u64;
        if WIRE && !counters.inlet.takes(len, arrived) {
            self.drop_frame(DropReason::OverRate, Some(at));
            return false;
        }
        if len > self.config.max_frame_bytes {
            self.drop_frame(DropReason::FrameTooLong, None);
            return false;
        }
        true
    }

    /// Runs the program on `arrival`, as its architecture defines.
    #[inline(always)]
    fn run<const THROUGH: bool, const GIVEN: bool>(
        &mut self,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let Some(arch) = self.arch() else {
            self.drop_frame(DropReason::NoProgram, None);
            return None;
        };
        arch.arrive::<THROUGH, GIVEN>(self, port, now, out)
    }

    /// Puts the finished frame in `out` into a queue.
    #[inline(always)]
    pub(crate) fn wait(
        &mut self,
        port: u16,
        at: usize,
        priority: u8,
        stage: Stage,
        now: Nanos,
        out: &mut Vec<u8>,
    ) {
        let cursor = self.arrival.meta.cursor;
        let meta = Meta { ingress_port: port, arrived: now, cursor, priority, stage, ..Meta::default() };
        let id = self.pool.adopt_sent(out, meta);
        self.enqueue_at(id, self.arrival.len(), at, now);
        if self.manager.cpu_waits {
            self.serve_cpu(now);
        }
    }
}
