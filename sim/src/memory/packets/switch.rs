//! The switch: an egress queue for each port, and for CXL a buffer for each ingress.

use super::{Event, Kind, Packet, Run, Scheme};

impl Run<'_> {
    pub(super) fn at_switch(&mut self, packet: Packet, now_ps: u64) {
        let port = &mut self.ports[usize::from(packet.to)];
        if packet.kind != Kind::Data {
            port.control.push_back(packet);
        } else {
            match self.params.scheme {
                Scheme::Cxl => self.ports[usize::from(packet.from)].ingress.push_back(packet),
                Scheme::Ird | Scheme::Fastpass => self.enqueue(packet),
                Scheme::Dctcp | Scheme::Pfabric | Scheme::PfcDcqcn => self.admit(packet, now_ps),
            }
            if self.params.scheme == Scheme::Cxl {
                self.cross(packet.from, now_ps);
            }
        }
        self.port(packet.to, now_ps);
    }

    pub(super) fn enqueue(&mut self, packet: Packet) {
        let port = &mut self.ports[usize::from(packet.to)];
        port.bytes += u64::from(packet.bytes);
        port.queue.push_back(packet);
        // The packet being sent does not wait.
        let waiting = port.bytes - if port.busy { 0 } else { u64::from(packet.bytes) };
        self.messages.shown.queue_max_bytes = self.messages.shown.queue_max_bytes.max(waiting);
    }

    pub(super) fn port(&mut self, nth: u16, now_ps: u64) {
        let port = &mut self.ports[usize::from(nth)];
        if port.busy {
            return;
        }
        let packet = match port.control.pop_front() {
            Some(control) => control,
            None => {
                // The first of the best rank: all have the same, except pFabric's.
                let best = match self.params.scheme {
                    Scheme::Pfabric => (0..port.queue.len()).min_by_key(|at| port.queue[*at].rank),
                    _ => Some(0),
                };
                let Some(packet) = best.and_then(|at| port.queue.remove(at)) else { return };
                port.bytes -= u64::from(packet.bytes);
                packet
            }
        };
        port.busy = true;
        let done_ps = now_ps + packet.blocks * self.block_ps;
        self.agenda.add(done_ps, Event::PortDone(nth));
        self.agenda.add(
            done_ps + self.params.modules.link_ps + self.params.modules.data_in_ps,
            Event::AtHost(packet),
        );
        if packet.kind == Kind::Data {
            self.left_switch(&packet, now_ps);
        }
    }

    /// A packet has left its queue.
    fn left_switch(&mut self, packet: &Packet, now_ps: u64) {
        match self.params.scheme {
            Scheme::Cxl => self.cross_all(packet.to, now_ps),
            Scheme::PfcDcqcn => self.unpause(packet, now_ps),
            _ => {}
        }
    }
}
