//! Hosts that break the rules put frames on their links.

use super::Group;
use super::mail::ToSwitch;
use crate::record::Point;
use p4rack_wire::Nanos;

impl Group {
    /// Puts on a hostile host's link what is due, until the sources end.
    pub(super) fn attack(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(hostile) = &mut node.host.hostile else { return };
        let host = node.host.index;
        while self.now < self.plan.sources_end {
            let mut frame = self.frames.take(true);
            if !hostile.poll_link(self.now, &mut frame) {
                self.frames.give_back(frame);
                node.host.machine_due = hostile.next_timeout();
                return;
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, &frame);
            }
            let outbox = &mut self.outbox;
            node.up.send(frame, self.now, &mut self.frames, |frame, joins| {
                outbox.push(frame.due, ToSwitch::Frame(host as u16, frame, joins));
            });
        }
        node.host.machine_due = Nanos::MAX;
    }
}
