//! Priority flow control: the switch pauses a host if it holds too many of its frames.

use super::mail::ToHost;
use super::switch::Tor;
use crate::agenda::{HostEvent, Origin};
use crate::message::host_of;
use crate::switch::Model;

/// Bytes that a frame takes in the switch's buffer: at least a minimum frame, with FCS.
fn stored(len: usize) -> u64 {
    len.max(60) as u64 + 4
}

impl Tor {
    /// A frame of `host` has entered; `before`: bytes in the buffer before that.
    #[inline(never)]
    pub(super) fn pfc_entered(&mut self, host: usize, before: u64) {
        let Some(limit) = self.plan.experiment.spec.rack.pfc_bytes else { return };
        let held = &mut self.lanes[host].held;
        held.bytes += self.model.buffered_bytes().saturating_sub(before);
        if held.bytes > limit && !held.paused {
            held.paused = true;
            self.pauses += 1;
            self.tell_pause(host, true);
        }
    }

    /// A frame of `source` leaves.
    #[inline(never)]
    pub(super) fn pfc_left(&mut self, source: &[u8], len: usize) {
        let Some(limit) = self.plan.experiment.spec.rack.pfc_bytes else { return };
        let Some(host) = host_of(source) else { return };
        let held = &mut self.lanes[host].held;
        held.bytes = held.bytes.saturating_sub(stored(len));
        if held.bytes <= limit / 2 && held.paused {
            held.paused = false;
            self.tell_pause(host, false);
        }
    }

    /// Pauses or resumes a host. The pause frame takes the link's median delay.
    fn tell_pause(&mut self, host: usize, paused: bool) {
        let at = self.now + self.plan.pause_delay;
        self.pauses_sent += 1;
        let (nth, event, origin) = (self.pauses_sent, HostEvent::Pause(paused), Origin::Switch);
        self.outbox(host).push(at, ToHost::Event { host: host as u16, at, origin, nth, event });
    }
}
