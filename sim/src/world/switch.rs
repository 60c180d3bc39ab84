//! The switch in the rack: what comes to it and what it sends.

use super::{Node, Planted, World};
use crate::frames::FrameId;
use crate::record::Point;
use crate::scheme::Watch;
use crate::switch::Model;

impl World {
    /// Something comes to the switch, or to what hosts share before it.
    pub(super) fn enter_by(&mut self, inlet: usize) {
        let hosts = self.nodes.len();
        if inlet < hosts {
            self.enter_switch(inlet);
        } else if inlet < hosts + self.trunks.len() {
            self.leave_trunk(inlet - hosts);
        } else {
            self.control();
        }
    }

    fn enter_switch(&mut self, host: usize) {
        let Node { up, trunk, .. } = &mut self.nodes[host];
        let received = up.receive(self.now);
        self.inlets.set(host, up.due());
        if let Some(received) = received {
            match *trunk {
                Some(trunk) => self.enter_trunk(trunk, received.frame),
                None => self.at_port(host, received.frame),
            }
        }
    }

    /// A frame of `host` is at its switch port.
    pub(super) fn at_port(&mut self, host: usize, id: FrameId) {
        let frame = self.frames.get(id);
        self.nodes[host].digest_up.frame(self.now, frame);
        self.watcher.enters_switch(frame, self.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchIn(host), self.now, frame);
        }
        let swallowed =
            Planted::Leak.is(self.planted) && self.hops.is_multiple_of(500) && frame.len() > 1_000;
        if !swallowed {
            self.mark(id);
            self.feed_switch(host, id);
        } else {
            self.frames.give_back(id);
        }
        self.model_due = self.switch.due();
    }

    /// Takes out what the switch has ready.
    pub(super) fn leave_switch(&mut self) {
        // It gets whatever buffer the frame is in.
        let id = self.frames.take(true);
        match self.switch.poll_transmit(self.now, self.frames.get_mut(id)) {
            Some(port) => self.out_of_switch(port, id),
            None => self.frames.give_back(id),
        }
        self.model_due = self.switch.due();
    }

    /// The controller comes to the switch.
    fn control(&mut self) {
        self.watcher.control(&mut self.switch, &self.experiment.rack, self.now);
        self.inlets.set(self.nodes.len() + self.trunks.len(), self.watcher.controller_due());
        self.model_due = self.switch.due();
    }

    fn feed_switch(&mut self, host: usize, id: FrameId) {
        let port = self.port_of(host);
        if self.experiment.spec.rack.pfc_bytes.is_some() {
            // What a source has in the buffer is told from what the buffer holds before and after.
            let before = self.switch.buffered_bytes();
            self.switch.take(port, self.frames.get(id), self.now);
            self.frames.give_back(id);
            return self.pfc_entered(host, before);
        }
        match self.switch.forward(port, self.frames.get_mut(id), self.now) {
            Some(port) => self.out_of_switch(port, id),
            None => self.frames.give_back(id),
        }
    }

    /// A host's switch port.
    #[inline]
    pub fn port_of(&self, host: usize) -> u16 {
        self.nodes[host].port
    }

    /// The switch puts a frame on the wire of a port.
    fn out_of_switch(&mut self, port: u16, id: FrameId) {
        self.hops += 1;
        let host = self.host_at(port, id);
        let frame = self.frames.get_mut(id);
        if Planted::GrantNow.is(self.planted) {
            self.watcher.falsify(frame);
        }
        self.watcher.leaves_switch(frame);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchOut(host), self.now, frame);
        }
        if Planted::Vanish.is(self.planted) && self.hops == 1_000 {
            return self.frames.give_back(id);
        }
        if self.experiment.spec.rack.pfc_bytes.is_some() {
            let frame = self.frames.get(id);
            let (mut source, len) = ([0; 6], frame.len());
            source.copy_from_slice(&frame[6..12]);
            self.pfc_left(&source, len);
        }
        let down = &mut self.nodes[host].down;
        down.send(id, self.now, &mut self.frames);
        self.hosts_due.hasten(host, down.due());
    }
}
