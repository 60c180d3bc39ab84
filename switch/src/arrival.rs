//! Frames that come in: counted, compared with their port's rate, traced if they are to be, given to the program.

use crate::pool::{Meta, Stage};
use crate::stats::DropReason;
use crate::switch::Switch;
use p4rack_wire::Nanos;

impl Switch {
    /// Takes a frame (without FCS) in. From the CPU port it is a packet-out.
    pub fn handle_frame(&mut self, port: u16, frame: &[u8], now: Nanos) {
        self.handle::<true>(port, frame, now);
    }

    /// Takes a frame in that the switch made itself: no wire limits those.
    pub(crate) fn handle_generated(&mut self, port: u16, frame: &[u8], now: Nanos) {
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

    /// Like [`Switch::handle_frame`]. If the frame's port is idle, it does at once what [`Switch::poll_transmit`] would do
    /// next: `out` is the frame to put on the wire of the port given. Else there may be something to poll for.
    pub fn forward_frame(&mut self, port: u16, frame: &[u8], now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.forward_late(port, frame, now, now, out)
    }

    /// Like [`Switch::forward_frame`] of a frame that arrived some time ago, as far as its port's rate is concerned.
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

    /// Like [`Switch::forward_frame`] of a frame that is given away, which saves copying it: `frame` becomes the frame to
    /// put on the wire. If there is none to put there now, `frame` is some buffer to be used again.
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

    /// Counts a frame that comes in, by a wire or not; false if it ends here.
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

    /// Runs the program on `arrival`, as its architecture has it.
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

    /// Puts `out`, which was made ready, into a queue.
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
