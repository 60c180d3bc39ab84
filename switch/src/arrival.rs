//! What becomes of a frame that comes in.
//!
//! ```text
//!  frame ─ parser ─ verify ─ ingress ─┬─ its port is idle: egress ─ compute ─ deparser ─→ out
//!                                     ├─ it has to wait, but egress can't tell: the same ─→ queues
//!                                     └─ else, or copies are asked for: a packet of the pool ─→ queues
//! ```

use crate::compile::ops::Frame;
use crate::exec::{Block, Cx, Exit, Requests, run};
use crate::pool::{Meta, PacketId, Stage};
use crate::stats::DropReason;
use crate::switch::{Running, Switch};
use crate::v1model::{Verdict, clear, tell_egress, tell_ingress};
use p4rack_wire::Nanos;

/// How far a frame got.
enum Reached {
    /// It is in `out`, on its way from the port at this position.
    Wire(usize),
    /// Ingress decided this about it.
    Ingress(Verdict),
    /// Egress of the port at this position ended, so, and dropped it or asked for something.
    Egress(usize, Exit, bool),
    /// The deparser did not come to its end.
    Deparser(usize, Exit),
    /// It is in `out`, to wait with this priority for the port at this position.
    Queue(usize, u8, Stage),
}

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
            let reached = self.process::<false, false>(port, now, &mut out);
            self.go_on(port, reached, now, &mut out);
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
        let reached = self.process::<true, false>(port, now, out);
        self.leave_or_go_on(port, reached, now, out)
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
        let reached = self.process::<true, true>(port, now, frame);
        self.leave_or_go_on(port, reached, now, frame)
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

    /// Runs the program on `arrival`; to the end if `THROUGH` and nothing keeps it. `None` without a program. `GIVEN`:
    /// the frame may be sent in the buffer in which it came.
    #[inline(always)]
    fn process<const THROUGH: bool, const GIVEN: bool>(
        &mut self,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<Reached> {
        self.cool();
        let Switch { running, frame, manager, requests, arrival, config, .. } = self;
        let Running { pipeline, state } = running.as_mut()?;
        let (code, frame): (_, &mut Frame) = (&pipeline.code, frame);
        let (len, unit_ns) = (arrival.len(), config.time_unit_ns);
        let meta = Meta { ingress_port: port, arrived: now, ..Meta::default() };
        let cleared = !pipeline.clears();
        if cleared {
            clear(code, frame);
        }
        tell_ingress(code, frame, &meta, len, unit_ns);
        out.clear();
        let mut cx = Cx {
            bytes: arrival.padded(),
            len,
            cursor: 0,
            out,
            now,
            drop_port: config.drop_port,
            parse_only: false,
            cleared,
            requests,
            color: 0,
        };
        let exit = run(pipeline, state, frame, &mut cx, Block::Ingress);
        let cursor = cx.cursor;
        let verdict = Verdict::new(code, frame, exit);
        let drop_port = u64::from(config.drop_port);
        let early = code.entry.egress_is_early;
        let straight = (THROUGH || early)
            && exit == Exit::Done
            && !cx.requests.any
            && verdict.group == 0
            && verdict.egress_spec != drop_port;
        let at = if straight { manager.find(verdict.egress_spec) } else { None };
        // No closure: it would not be inlined.
        let passes = match at {
            Some(at) if THROUGH => manager.pass(at, verdict.priority, len, now),
            _ => false,
        };
        let Some(at) = at.filter(|_| passes || early) else {
            arrival.meta.cursor = cursor;
            return Some(Reached::Ingress(verdict));
        };
        let meta = Meta { egress_port: manager.number(at), enqueued: now, ..meta };
        tell_egress(code, frame, &meta, len, 0, now, unit_ns);
        if !code.entry.egress_is_empty {
            let exit = run(pipeline, state, frame, &mut cx, Block::Egress);
            let dropped = frame[code.standard.egress_spec as usize] == drop_port;
            if exit != Exit::Done || dropped || cx.requests.any {
                arrival.meta.cursor = cursor;
                return Some(match passes {
                    true => Reached::Egress(at, exit, dropped),
                    false => Reached::Queue(at, verdict.priority, Stage::Ended(exit)),
                });
            }
        }
        let exit = run(pipeline, state, frame, &mut cx, Block::Deparser);
        if cx.requests.any {
            // It is too late for that.
            *cx.requests = Requests::default();
        }
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

    /// Gives the port if `out` is to be sent; most frames are, or wait for it.
    #[inline(always)]
    fn leave_or_go_on(
        &mut self,
        port: u16,
        reached: Option<Reached>,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        match reached {
            Some(Reached::Wire(at)) => {
                self.manager.sent_at_once(at, out.len(), now);
                Some(self.manager.number(at))
            }
            Some(Reached::Queue(at, priority, stage)) => {
                self.wait(port, at, priority, stage, now, out);
                None
            }
            reached => self.go_on(port, reached, now, out),
        }
    }

    /// Makes `arrival` a packet of the pool and goes on from where it got to; gives the port if `out` is to be sent.
    #[inline(never)]
    fn go_on(&mut self, port: u16, reached: Option<Reached>, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let Some(reached) = reached else {
            self.drop_frame(DropReason::NoProgram, None);
            return None;
        };
        if let Reached::Queue(at, priority, stage) = reached {
            self.wait(port, at, priority, stage, now, out);
            return None;
        }
        let cursor = self.arrival.meta.cursor;
        let meta = Meta { ingress_port: port, arrived: now, cursor, ..Meta::default() };
        let id = self.pool.adopt(&mut self.arrival, meta);
        let sent = match reached {
            Reached::Ingress(verdict) => {
                self.proceed(id, verdict, now);
                None
            }
            Reached::Egress(at, exit, dropped) => {
                self.pass_queue(id, at, now);
                self.after_egress(id, at, exit, dropped, now, out).then_some(at)
            }
            Reached::Deparser(at, exit) => {
                self.give_up(id, exit, Some(at));
                None
            }
            Reached::Wire(at) => Some(at),
            Reached::Queue(..) => None,
        };
        if let Some(at) = sent {
            self.pool.release(id);
            self.manager.sent_at_once(at, out.len(), now);
        }
        if self.manager.cpu_waits {
            self.serve_cpu(now);
        }
        sent.map(|at| self.manager.number(at))
    }

    /// Puts `out`, which was made ready, into a queue.
    #[inline(always)]
    fn wait(&mut self, port: u16, at: usize, priority: u8, stage: Stage, now: Nanos, out: &mut Vec<u8>) {
        let cursor = self.arrival.meta.cursor;
        let meta = Meta { ingress_port: port, arrived: now, cursor, priority, stage, ..Meta::default() };
        let id = self.pool.adopt_sent(out, meta);
        self.enqueue_at(id, self.arrival.len(), at, now);
        if self.manager.cpu_waits {
            self.serve_cpu(now);
        }
    }

    /// Notes what a packet learns on its way through an empty queue.
    fn pass_queue(&mut self, id: PacketId, at: usize, now: Nanos) {
        let number = self.manager.number(at);
        let meta = &mut self.pool.get_mut(id).meta;
        (meta.egress_port, meta.enqueued) = (number, now);
    }
}
