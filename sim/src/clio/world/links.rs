//! Links and the switch.

use super::{AHEAD, ClioWorld, Event, PORTS, Parcel, word};
use crate::clio::rack::{self, CLOCK, HEADERS};
use crate::clio::spec::ClioScheme;
use crate::frames::Frame;
use crate::kernel::Direction;
use crate::message::host_of;
use p4rack_fabric::{HostMachine as _, Machine as _};
use p4rack_wire::ethernet::Ethernet;

impl ClioWorld<'_> {
    pub(super) fn handed(&mut self, host: u16, frame: Frame, now_ps: u64) {
        let at = usize::from(host);
        match at.checked_sub(self.computes.len()) {
            None => self.computes[at].crossing -= 1,
            Some(board) => self.crossing[board] -= 1,
        }
        match self.links.get_mut(at) {
            Some(link) => {
                link.handle_app(&frame, CLOCK.nanos(now_ps));
                self.frames.release(frame);
                self.drain(at, now_ps);
            }
            None => {
                if let Some(to) = host_of(&frame) {
                    self.arrived(to as u16, frame, now_ps);
                }
                self.resume(at, now_ps);
            }
        }
    }

    /// Sends the frames of a host's machine, and plans its clock.
    pub(super) fn drain(&mut self, host: usize, now_ps: u64) {
        let now = CLOCK.nanos(now_ps);
        let Some(link) = self.links.get_mut(host) else { return };
        link.handle_timeout(now);
        let rate_bps = self.experiment.rate_of(host);
        let link_ps = u64::from(self.experiment.spec.network.link_ns) * 1_000;
        loop {
            let mut frame = self.frames.take(link.next_is_control());
            if link.poll_link(now, &mut frame).is_none() {
                self.frames.release(frame);
                break;
            }
            let at_ps = now_ps + CLOCK.on_wire(frame.len(), rate_bps) + link_ps;
            let agenda = &mut self.agenda;
            self.wires.carry(Direction::Up(host as u16), frame, at_ps, &mut self.frames, |at_ps, frame| {
                agenda.add(at_ps, Event::AtSwitch(host as u16, frame));
            });
        }
        if let Some(at) = link.next_timeout()
            && let Some(at_ps) = self.due[host].plan(CLOCK.ticks(at), now_ps)
        {
            self.agenda.add(at_ps, Event::Link(host as u16));
        }
        self.resume(host, now_ps);
    }

    /// A host's link may have room again.
    pub(super) fn resume(&mut self, host: usize, now_ps: u64) {
        if let Some(board) = host.checked_sub(self.computes.len()) {
            return self.pump_board(board, now_ps);
        }
        while let Some(nth) = self.computes[host].waiting.front().copied() {
            let backlog = self.links.get(host).map_or(0, |link| link.backlog_frames()) as u32;
            if self.computes[host].crossing + backlog >= AHEAD {
                return;
            }
            self.computes[host].waiting.pop_front();
            self.stacks[nth as usize].waits = false;
            self.pump(nth, now_ps);
        }
    }

    /// Sends the switch's frames, and plans the next time to ask it.
    pub(super) fn transmit(&mut self, now_ps: u64) {
        let network = &self.experiment.spec.network;
        let way_ps = (u64::from(network.switch_ns) + u64::from(network.link_ns)) * 1_000;
        let Some(hub) = &mut self.hub else { return };
        while let Some((port, frame)) = hub.poll(now_ps, &mut self.frames) {
            let host = port - 1;
            let at_ps = now_ps + way_ps + CLOCK.on_wire(frame.len(), self.experiment.rate_of(host.into()));
            let agenda = &mut self.agenda;
            self.wires.carry(Direction::Down(host), frame, at_ps, &mut self.frames, |at_ps, frame| {
                agenda.add(at_ps, Event::Arrived(host, frame));
            });
        }
        self.agenda.extend(hub.again(now_ps).map(|at_ps| (at_ps, Event::Switch)));
    }

    pub(super) fn arrived(&mut self, host: u16, frame: Frame, now_ps: u64) {
        self.frame_hops += 1;
        self.digest.frame(CLOCK.nanos(now_ps), &frame);
        let (at, now) = (usize::from(host), CLOCK.nanos(now_ps));
        let skipped = match self.links.get_mut(at) {
            Some(link) => {
                let app = link.forward_link(&frame, now, now);
                app.map(|app| frame.len() - app.rest(&frame).len())
            }
            None => Some(Ethernet::BYTES),
        };
        let found = skipped.and_then(|skipped| {
            let rest = frame.get(skipped..)?;
            let (from, port, packet) = rack::packet(rest)?;
            let start = skipped + HEADERS - Ethernet::BYTES;
            Some((from, port, start, start + packet.len()))
        });
        match found {
            None => self.frames.release(frame),
            Some((from, port, start, end)) => {
                // Ids, tags and checksums are behind the part that a frame's digest covers.
                self.digest.add(word(&frame, start + 8) ^ word(&frame, end.saturating_sub(8)));
                let first = u32::from(host) * u32::from(self.experiment.spec.processes);
                let process = first + u32::from(port.wrapping_sub(PORTS));
                let parcel = Parcel { frame, from, process, start: start as u16, end: end as u16 };
                match at.checked_sub(self.computes.len()) {
                    None => {
                        let at_ps = now_ps + self.receive_ps();
                        self.agenda.add(at_ps, Event::Delivered(parcel));
                    }
                    Some(board) => self.at_board(board, parcel, now_ps),
                }
            }
        }
        if at < self.links.len() {
            self.drain(at, now_ps);
        }
    }

    /// From a packet's last bit at a compute node to its library.
    pub(super) fn receive_ps(&self) -> u64 {
        let (compute, rdma) = (&self.experiment.compute, &self.experiment.rdma);
        let ns = match self.experiment.spec.scheme {
            ClioScheme::Clio => compute.nic_ns + compute.receive_ns,
            _ => rdma.packet_ns + rdma.pcie_ns + rdma.poll_ns,
        };
        ns * 1_000
    }
}
