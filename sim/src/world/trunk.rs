//! Switch ports that several hosts share: what their lanes bring goes through one port, what the port brings is
//! parted among the lanes.

use super::node::Trunk;
use super::switch::Tor;
use crate::message::host_of;

impl Tor {
    /// A frame of a lane goes on to the port.
    pub(super) fn enter_trunk(&mut self, trunk: usize, frame: Vec<u8>) {
        let Trunk { link, far, .. } = &mut self.trunks[trunk];
        link.send(frame, self.now, &mut self.frames, |frame, joins| far.put(frame, joins));
        self.show_trunk(trunk);
    }

    /// A frame has come through a shared port.
    pub(super) fn leave_trunk(&mut self, trunk: usize) {
        if let Some(received) = self.trunks[trunk].far.receive(self.now) {
            let source = received.frame.get(6..).and_then(host_of);
            match source.filter(|host| *host < self.lanes.len()) {
                Some(host) => self.at_port(host, received.frame),
                None => self.frames.give_back(received.frame),
            }
        }
        self.show_trunk(trunk);
    }

    fn show_trunk(&mut self, trunk: usize) {
        let due = self.trunks[trunk].far.due();
        self.inlets.set(self.lanes.len() + trunk, due);
    }

    /// The host that a frame leaving by `port` is for.
    #[inline]
    pub(super) fn host_at(&self, port: u16, frame: &[u8]) -> usize {
        let first = usize::from(port) - 1;
        if self.lanes[first].trunk.is_none() {
            return first;
        }
        host_of(frame).filter(|host| *host < self.lanes.len()).unwrap_or(first)
    }
}
