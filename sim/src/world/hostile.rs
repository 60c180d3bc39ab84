//! Hosts that break the rules put frames on their links.

use super::World;
use crate::record::Point;
use p4rack_wire::Nanos;

impl World {
    /// Puts on a hostile host's link what is due, until the sources end.
    pub(super) fn attack(&mut self, host: usize) {
        let node = &mut self.nodes[host];
        let Some(hostile) = &mut node.host.hostile else { return };
        while self.now < self.sources_end {
            let id = self.frames.take(true);
            let frame = self.frames.get_mut(id);
            if !hostile.poll_link(self.now, frame) {
                self.frames.give_back(id);
                node.host.machine_due = hostile.next_timeout();
                return;
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, frame);
            }
            node.up.send(id, self.now, &mut self.frames);
            self.inlets.hasten(host, node.up.due());
        }
        node.host.machine_due = Nanos::MAX;
    }
}
