//! CXL: credits on each hop, and first-in, first-out buffers. A packet whose egress has no room blocks all packets behind it.

use super::{Event, Run};

impl Run<'_> {
    /// The next packet of a host, if the switch's ingress buffer has room for it.
    pub(super) fn next_with_credit(&mut self, host: u16) -> Option<(u32, u32)> {
        let of = &mut self.hosts[usize::from(host)];
        let flow = *of.flows.front()?;
        let bytes = self.flows[flow as usize].left().min(self.params.packet);
        if of.ingress_credit < u64::from(bytes) {
            return None;
        }
        of.ingress_credit -= u64::from(bytes);
        Some((flow, bytes))
    }

    /// Moves packets from an ingress buffer to their egress queues, in order, while these have room.
    pub(super) fn cross(&mut self, ingress: u16, now_ps: u64) {
        while let Some(packet) = self.ports[usize::from(ingress)].ingress.front().copied() {
            let bytes = u64::from(packet.bytes);
            if self.ports[usize::from(packet.to)].bytes + bytes > self.params.buffer {
                return;
            }
            self.ports[usize::from(ingress)].ingress.pop_front();
            self.enqueue(packet);
            self.port(packet.to, now_ps);
            self.agenda.add(now_ps + self.params.modules.link_ps, Event::Returned(ingress, bytes));
        }
    }

    /// An egress queue has room again. Ingress buffers take turns, so that none starves.
    pub(super) fn cross_all(&mut self, egress: u16, now_ps: u64) {
        let count = self.ports.len() as u16;
        for nth in 1..=count {
            let ingress = (egress + nth) % count;
            if self.ports[usize::from(ingress)].ingress.front().is_some_and(|packet| packet.to == egress) {
                self.cross(ingress, now_ps);
            }
        }
    }
}
