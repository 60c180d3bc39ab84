//! A host's transmissions.

use super::{Event, Kind, Packet, Run, Scheme};

impl Run<'_> {
    /// Adds a flow to those of which its source may send.
    pub(super) fn offer(&mut self, source: u16, nth: u32) {
        let flows = &mut self.hosts[usize::from(source)].flows;
        if !flows.contains(&nth) {
            flows.push_back(nth);
        }
    }

    /// Sends a control packet.
    pub(super) fn control(&mut self, packet: Packet, now_ps: u64) {
        let from = packet.from;
        self.hosts[usize::from(from)].control.push_back(packet);
        self.nic(from, now_ps);
    }

    pub(super) fn nic(&mut self, nth: u16, now_ps: u64) {
        let host = &mut self.hosts[usize::from(nth)];
        if host.busy {
            return;
        }
        let packet = match host.control.pop_front() {
            Some(control) => Some(control),
            None if host.paused => None,
            None => self.next_packet(nth, now_ps),
        };
        let Some(packet) = packet else { return };
        self.hosts[usize::from(nth)].busy = true;
        if packet.kind == Kind::Data {
            let flow = &self.flows[packet.flow as usize];
            let times = &mut self.messages.shown.times[flow.message as usize];
            let first = if flow.request { &mut times.asked_ps } else { &mut times.sent_ps };
            first.get_or_insert(now_ps);
        }
        self.messages.shown.sent_ps[usize::from(nth)] += packet.blocks * self.block_ps;
        let modules = &self.params.modules;
        let head_ps = now_ps + modules.link_ps + modules.identify_ps + modules.forward_ps;
        self.agenda.add(now_ps + packet.blocks * self.block_ps, Event::NicDone(nth));
        self.agenda.add(head_ps, Event::AtSwitch(packet));
    }

    /// The next packet of a host's flows.
    fn next_packet(&mut self, host: u16, now_ps: u64) -> Option<Packet> {
        let (flow, bytes) = match self.params.scheme {
            Scheme::Ird | Scheme::Fastpass => self.credited(host, now_ps)?,
            Scheme::Cxl => self.next_with_credit(host)?,
            Scheme::Dctcp | Scheme::Pfabric | Scheme::PfcDcqcn => self.next_in_window(host, now_ps)?,
        };
        let packet = self.packet(flow, bytes);
        let of = &mut self.flows[flow as usize];
        of.sent += bytes;
        of.window.sent(bytes);
        let (left, flows) = (of.left(), &mut self.hosts[usize::from(host)].flows);
        // Those with more to send take turns.
        if let Some(at) = flows.iter().position(|other| *other == flow) {
            flows.remove(at);
            if left > 0 {
                flows.push_back(flow);
            }
        }
        Some(packet)
    }

    /// The requests of reads, which need no permission.
    pub(super) fn next_request(&self, host: u16) -> Option<(u32, u32)> {
        let flow = *self.hosts[usize::from(host)].flows.front()?;
        Some((flow, self.flows[flow as usize].left()))
    }
}
