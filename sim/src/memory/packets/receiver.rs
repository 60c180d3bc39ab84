//! IRD: receivers credit packets one at a time, the shortest flow first. A sender with credits from several receivers sends one
//! packet after the other, and the links of the waiting receivers stay idle.

use super::{Kind, Packet, Run};

/// A receiver's state.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Flows that are not completely credited, with the remaining bytes.
    flows: Vec<(u32, u32)>,
    /// Time of the next credit at the earliest: credits are paced at the link's rate.
    from_ps: u64,
    /// Bytes credited but not received.
    under_way: u64,
}

/// Maximum packets that a receiver has under way: a round trip's worth, and one more.
const PACKETS_MORE: u64 = 1;

impl Run<'_> {
    /// A receiver learns of a flow, without delay.
    pub(super) fn known(&mut self, nth: u32, now_ps: u64) {
        let flow = &self.flows[nth as usize];
        let (destination, bytes) = (flow.destination, flow.bytes);
        self.hosts[usize::from(destination)].receiver.flows.push((nth, bytes));
        self.give_credit(destination, now_ps);
    }

    /// Credits the shortest flow, if a credit is due.
    pub(super) fn give_credit(&mut self, host: u16, now_ps: u64) {
        let modules = &self.params.modules;
        let round_ps =
            4 * modules.link_ps + 2 * (modules.identify_ps + modules.forward_ps) + modules.data_in_ps;
        let round_bytes = round_ps / self.block_ps.max(1) * 8 + PACKETS_MORE * u64::from(self.params.packet);
        let receiver = &mut self.hosts[usize::from(host)].receiver;
        if now_ps < receiver.from_ps || receiver.under_way >= round_bytes {
            return;
        }
        let Some(at) = (0..receiver.flows.len()).min_by_key(|at| receiver.flows[*at].1) else { return };
        let (flow, left) = receiver.flows[at];
        let bytes = left.min(self.params.packet);
        match left - bytes {
            0 => _ = receiver.flows.swap_remove(at),
            left => receiver.flows[at].1 = left,
        }
        receiver.under_way += u64::from(bytes);
        let blocks = self.blocks(&self.flows[flow as usize], bytes);
        let from_ps = now_ps + blocks * self.block_ps;
        self.hosts[usize::from(host)].receiver.from_ps = from_ps;
        self.agenda.add(from_ps, super::Event::Credit(host));
        let source = self.flows[flow as usize].source;
        let (kind, blocks) = (Kind::Credit { from_ps: 0 }, self.params.headers.control_blocks());
        let credit = Packet { flow, kind, bytes, marked: false, from: host, to: source, blocks, rank: 0 };
        self.control(credit, now_ps);
    }

    /// Data has arrived.
    pub(super) fn arrived(&mut self, host: u16, bytes: u32, now_ps: u64) {
        self.hosts[usize::from(host)].receiver.under_way -= u64::from(bytes);
        self.give_credit(host, now_ps);
    }

    /// The next packet that a host may send: requests first, then the shortest flow whose credit is due.
    pub(super) fn credited(&mut self, host: u16, now_ps: u64) -> Option<(u32, u32)> {
        if let Some(request) = self.next_request(host) {
            return Some(request);
        }
        let (flows, credits) = (&self.flows, &mut self.hosts[usize::from(host)].credits);
        let may = |credit: &(u32, u32, u64)| credit.2 <= now_ps && flows[credit.0 as usize].there;
        let candidates = (0..credits.len()).filter(|at| may(&credits[*at]));
        let at = candidates.min_by_key(|at| (credits[*at].2, flows[credits[*at].0 as usize].left()))?;
        let (flow, bytes, _) = credits.swap_remove(at);
        Some((flow, bytes))
    }
}
