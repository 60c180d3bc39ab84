//! Sending of adapters and the switch, and transmission over links.

use super::competing::Competing;
use super::nic::{Cause, ps};
use super::rack::COMPUTE;
use super::world::{CLOCK, CowbirdWorld, Event};
use crate::frames::Frame;
use crate::kernel::Direction;
use crate::transport::wire::Pdu;

impl CowbirdWorld<'_> {
    /// Sends the frames of a host's adapter. Their cause was at `from_ps`.
    pub(super) fn send(&mut self, host: usize, now_ps: u64, from_ps: u64, cause: Cause) {
        self.nics[host].collect(now_ps, from_ps, cause, &mut self.frames);
        self.plan_link(host, now_ps);
    }

    /// Puts the next frame of a host's link on the agenda, unless one is scheduled.
    pub(super) fn plan_link(&mut self, host: usize, now_ps: u64) {
        let may_send = || self.competing.as_ref().is_some_and(Competing::may_send);
        let nic = &self.nics[host];
        if nic.is_planned {
            return;
        }
        let next_ps = if host == COMPUTE && may_send() { Some(nic.free_ps) } else { nic.next_ps() };
        if let Some(at_ps) = next_ps {
            self.nics[host].is_planned = true;
            self.agenda.add(at_ps.max(now_ps), Event::Link(host as u16));
        }
    }

    /// Sends a host's next frame. RDMA goes before competing flows.
    pub(super) fn link(&mut self, host: usize, now_ps: u64) {
        let nic = &mut self.nics[host];
        nic.is_planned = false;
        let frame = nic.take(now_ps).or_else(|| {
            let competing = self.competing.as_mut().filter(|_| host == COMPUTE)?;
            let mut frame = self.frames.take(false);
            if competing.poll(CLOCK.nanos(now_ps), &mut frame) {
                return Some(frame);
            }
            self.frames.release(frame);
            None
        });
        if let Some(frame) = frame {
            let tail_ps = nic.transmit(now_ps, frame.len());
            let is_bounded = nic.is_bounded();
            let at_ps = tail_ps + ps(self.experiment.spec.nic.link_ns);
            self.carry(Direction::Up(host as u16), frame, at_ps);
            if is_bounded {
                self.nics[host].collect(now_ps, now_ps, Cause::Frame, &mut self.frames);
            }
        }
        self.plan_link(host, now_ps);
    }

    /// A segment or an acknowledgement of a competing flow has arrived.
    pub(super) fn segment(&mut self, host: usize, pdu: &Pdu, now_ps: u64) {
        let Some(competing) = &mut self.competing else { return };
        let (nic, frames) = (&mut self.nics[host], &mut self.frames);
        competing.handle(pdu, CLOCK.nanos(now_ps), |answer| nic.push(now_ps, frames.copy(answer)));
        self.plan_link(host, now_ps);
        self.resume_flows(now_ps);
    }

    /// Sends more of the competing flows, and plans their timers.
    pub(super) fn resume_flows(&mut self, now_ps: u64) {
        self.plan_link(COMPUTE, now_ps);
        let Some(competing) = &mut self.competing else { return };
        for nth in 0..competing.count() {
            if let Some(at) = competing.timer(nth, CLOCK.nanos(now_ps)) {
                self.agenda.add(CLOCK.ticks(at).max(now_ps), Event::Flow(nth as u16));
            }
        }
    }

    /// Carries a frame over a link, or loses it.
    pub(super) fn carry(&mut self, direction: Direction, frame: Frame, at_ps: u64) {
        let agenda = &mut self.agenda;
        self.wires.carry(direction, frame, at_ps, &mut self.frames, |at_ps, frame| {
            let event = match direction {
                Direction::Up(host) => Event::AtSwitch(host, frame),
                Direction::Down(host) => Event::Arrived(host, frame),
            };
            agenda.add(at_ps, event);
        });
    }

    /// Sends the switch's frames, and plans the next time to ask it.
    pub(super) fn transmit(&mut self, now_ps: u64) {
        let nic = &self.experiment.spec.nic;
        let way_ps = ps(nic.switch_ns) + ps(nic.link_ns);
        while let Some((port, frame)) = self.hub.poll(now_ps, &mut self.frames) {
            let wire_ps = self.nics[usize::from(port - 1)].wire_ps(frame.len());
            self.carry(Direction::Down(port - 1), frame, now_ps + way_ps + wire_ps);
        }
        self.agenda.extend(self.hub.again(now_ps).map(|at_ps| (at_ps, Event::Switch)));
    }
}
