//! Switch ports shared by several hosts: frames of all their lanes go through one port, frames from the port are
//! distributed to the lanes.

use super::node::Trunk;
use super::switch::Tor;
use crate::frames::Frame;
use crate::message::host_of;

impl Tor {
    /// A frame passes from its lane to the port.
    #[inline(never)]
    pub(super) fn enter_trunk(&mut self, trunk: usize, frame: Frame) {
        let Trunk { link, far, .. } = &mut self.trunks[trunk];
        link.send(frame, self.now, &mut self.frames, &mut |frame, joins| far.put(frame, joins));
        self.show_trunk(trunk);
    }

    /// A frame has passed a shared port.
    #[inline(never)]
    pub(super) fn leave_trunk(&mut self, trunk: usize) {
        if let Some(received) = self.trunks[trunk].far.receive(self.now) {
            let source = received.frame.get(6..).and_then(host_of);
            match source.filter(|host| *host < self.lanes.len()) {
                Some(host) => self.at_port(host, received.frame),
                None => self.frames.release(received.frame),
            }
        }
        self.show_trunk(trunk);
    }

    fn show_trunk(&mut self, trunk: usize) {
        let due = self.trunks[trunk].far.due();
        self.inlets.dues.set(self.lanes.len() + trunk, due);
    }

    /// The receiver of a frame that leaves by `port`.
    #[inline]
    pub(super) fn host_at(&self, port: u16, frame: &[u8]) -> usize {
        let first = usize::from(port) - 1;
        if self.lanes[first].trunk.is_none() {
            return first;
        }
        host_of(frame).filter(|host| *host < self.lanes.len()).unwrap_or(first)
    }
}
