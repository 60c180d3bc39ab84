//! Frames of hosts that break the rules.

use super::Group;
use crate::record::Point;
use p4rack_fabric::Machine as _;
use p4rack_wire::Nanos;

impl Group {
    /// Sends a hostile host's due frames, until the sources end.
    pub(super) fn attack(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(hostile) = &mut node.host.hostile else { return };
        let host = node.host.index;
        while self.now < self.plan.sources_end {
            let mut frame = self.frames.take(true);
            if hostile.poll_link(self.now, &mut frame).is_none() {
                self.frames.release(frame);
                node.host.machine_due = hostile.next_timeout().unwrap_or(Nanos::MAX);
                return;
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, &frame);
            }
            self.outbox.send(host, &mut node.up, frame, self.now, &mut self.frames);
        }
        node.host.machine_due = Nanos::MAX;
    }
}
