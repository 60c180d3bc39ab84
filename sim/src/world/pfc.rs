//! Priority flow control: the switch pauses a host of whose frames it holds too many.

use super::World;
use crate::agenda::HostEvent;
use crate::message::host_of;
use crate::switch::Model;
use p4rack_wire::Nanos;

/// One host's part of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    bytes: u64,
    /// What the host was told last.
    paused: bool,
}

/// What the switch's buffer holds of a frame: at least the shortest, with FCS.
fn stored(len: usize) -> u64 {
    len.max(60) as u64 + 4
}

impl World {
    /// A frame of `host` has entered, when so much was in the buffer before.
    pub(super) fn pfc_entered(&mut self, host: usize, before: u64) {
        let Some(limit) = self.experiment.spec.rack.pfc_bytes else { return };
        let held = &mut self.nodes[host].held;
        held.bytes += self.switch.buffered_bytes().saturating_sub(before);
        if held.bytes > limit && !held.paused {
            held.paused = true;
            self.pauses += 1;
            self.tell_pause(host, true);
        }
    }

    /// A frame leaves.
    pub(super) fn pfc_left(&mut self, source: &[u8], len: usize) {
        let Some(limit) = self.experiment.spec.rack.pfc_bytes else { return };
        let Some(host) = host_of(source) else { return };
        let held = &mut self.nodes[host].held;
        held.bytes = held.bytes.saturating_sub(stored(len));
        if held.bytes <= limit / 2 && held.paused {
            held.paused = false;
            self.tell_pause(host, false);
        }
    }

    /// The pause frame takes the link's median delay.
    fn tell_pause(&mut self, host: usize, paused: bool) {
        let at = self.now + self.pause_delay;
        self.pauses_told += 1;
        self.nodes[host].host.agenda.push_foreign(at, self.pauses_told, HostEvent::Pause(paused));
        self.hosts_due.hasten(host, at);
    }

    pub(super) fn pause(&mut self, host: usize, paused: bool) {
        self.nodes[host].host.paused = paused;
        self.drain_host(host);
    }

    pub(super) fn pause_delay(points: &[(f64, f64)]) -> Nanos {
        let above = points.iter().find(|(share, _)| *share >= 0.5);
        Nanos(above.map_or(0, |(_, ns)| *ns as u64))
    }
}
