//! Schemes in which senders decide: DCTCP, pFabric on top of it, and DCQCN with pauses.

use super::{Event, Kind, Packet, Packets, Run, Scheme};

/// DCTCP's gain g, and DCQCN's.
const GAIN: f64 = 1.0 / 16.0;
/// DCQCN: interval in which a flow is notified of congestion and slowed at most once, and sped up once.
const DCQCN_PERIOD_PS: u64 = 50_000_000;

/// A sender's state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    bytes: f64,
    under_way: u64,
    /// Share of marked packets, and this window's counts.
    alpha: f64,
    marked: u32,
    seen: u32,
    until: u64,
    acknowledged: u64,
    grows_fast: bool,
    /// DCQCN: share of the link's rate, the one before the last cut, when to send next, when it was cut last.
    share_now: f64,
    target_share: f64,
    next_ps: u64,
    cut_ps: Option<u64>,
}

impl Window {
    /// State of a new flow.
    pub fn new(params: &Packets) -> Window {
        Window {
            bytes: f64::from(params.window),
            under_way: 0,
            alpha: 0.0,
            marked: 0,
            seen: 0,
            until: u64::from(params.window),
            acknowledged: 0,
            grows_fast: true,
            share_now: 1.0,
            target_share: 1.0,
            next_ps: 0,
            cut_ps: None,
        }
    }

    /// Bytes were handed to the NIC.
    pub fn sent(&mut self, bytes: u32) {
        self.under_way += u64::from(bytes);
    }

    /// Bytes were lost: the window starts over at half.
    pub fn missed(&mut self, bytes: u32) {
        self.under_way = self.under_way.saturating_sub(u64::from(bytes));
        self.bytes = (self.bytes / 2.0).max(f64::from(bytes));
        self.grows_fast = false;
    }

    /// DCTCP's reaction to an acknowledgement.
    fn acknowledged(&mut self, bytes: u32, marked: bool, packet: u32) {
        self.under_way = self.under_way.saturating_sub(u64::from(bytes));
        self.acknowledged += u64::from(bytes);
        self.seen += 1;
        self.marked += u32::from(marked);
        self.grows_fast &= !marked;
        let step = f64::from(packet) * f64::from(bytes);
        self.bytes += if self.grows_fast { f64::from(bytes) } else { step / self.bytes };
        if self.acknowledged >= self.until {
            let share = f64::from(self.marked) / f64::from(self.seen);
            self.alpha += GAIN * (share - self.alpha);
            if self.marked > 0 {
                self.bytes = (self.bytes * (1.0 - self.alpha / 2.0)).max(f64::from(packet));
            }
            (self.marked, self.seen) = (0, 0);
            self.until = self.acknowledged + self.bytes as u64;
        }
    }
}

impl Run<'_> {
    /// The next packet of a host: in turns, or the shortest flow's (pFabric), as windows or rates allow.
    pub(super) fn next_in_window(&mut self, host: u16, now_ps: u64) -> Option<(u32, u32)> {
        let rates = self.params.scheme == Scheme::PfcDcqcn;
        let may = |flow: &&u32| {
            let window = &self.flows[**flow as usize].window;
            if rates { window.next_ps <= now_ps } else { (window.under_way as f64) < window.bytes }
        };
        let flows = &self.hosts[usize::from(host)].flows;
        let flow = match self.params.scheme {
            Scheme::Pfabric => flows.iter().filter(may).min_by_key(|flow| self.flows[**flow as usize].left()),
            _ => flows.iter().find(may),
        };
        let Some(flow) = flow.copied() else {
            // Rates allow the next one later.
            let later = flows.iter().map(|flow| self.flows[*flow as usize].window.next_ps).min();
            if let Some(at_ps) = later.filter(|at_ps| rates && *at_ps > now_ps) {
                self.agenda.add(at_ps, Event::Nic(host));
            }
            return None;
        };
        let bytes = self.flows[flow as usize].left().min(self.params.packet);
        let blocks_ps = self.blocks(&self.flows[flow as usize], bytes) * self.block_ps;
        let window = &mut self.flows[flow as usize].window;
        window.next_ps = now_ps + (blocks_ps as f64 / window.share_now) as u64;
        Some((flow, bytes))
    }

    /// A packet arrives at its egress queue: it may be marked or dropped, or its ingress port paused.
    pub(super) fn admit(&mut self, mut packet: Packet, now_ps: u64) {
        let port = &self.ports[usize::from(packet.to)];
        packet.marked = port.bytes > self.params.mark;
        if self.params.scheme == Scheme::PfcDcqcn {
            let ingress = &mut self.ports[usize::from(packet.from)];
            ingress.from_here += u64::from(packet.bytes);
            if ingress.from_here > self.params.pause && !std::mem::replace(&mut ingress.paused, true) {
                self.agenda.add(now_ps + self.params.modules.link_ps, Event::Pause(packet.from, true));
            }
        } else if port.bytes + u64::from(packet.bytes) > self.params.buffer {
            packet = self.drop_one(packet, now_ps);
            if packet.bytes == 0 {
                return;
            }
        }
        self.enqueue(packet);
    }

    /// Drops a packet, or with pFabric the one of the longest flow. Returns the one that stays, or an empty one.
    fn drop_one(&mut self, packet: Packet, now_ps: u64) -> Packet {
        let port = &mut self.ports[usize::from(packet.to)];
        let worst = (0..port.queue.len()).max_by_key(|at| port.queue[*at].rank);
        let worse =
            worst.filter(|at| self.params.scheme == Scheme::Pfabric && port.queue[*at].rank > packet.rank);
        let (dropped, stays) = match worse.and_then(|at| port.queue.remove(at)) {
            Some(worst) => {
                port.bytes -= u64::from(worst.bytes);
                (worst, packet)
            }
            None => (packet, Packet { bytes: 0, ..packet }),
        };
        self.messages.shown.dropped += 1;
        self.agenda.add(now_ps + self.params.again_ps, Event::Missed(dropped));
        stays
    }

    /// A packet has left, so its ingress port may send again.
    pub(super) fn unpause(&mut self, packet: &Packet, now_ps: u64) {
        let ingress = &mut self.ports[usize::from(packet.from)];
        ingress.from_here -= u64::from(packet.bytes);
        if ingress.paused && ingress.from_here < self.params.pause / 2 {
            ingress.paused = false;
            self.agenda.add(now_ps + self.params.modules.link_ps, Event::Pause(packet.from, false));
        }
    }

    /// The receiver's answer to a packet: always with windows, with rates only if it is marked.
    pub(super) fn acknowledge(&mut self, packet: &Packet, now_ps: u64) {
        let answers = match self.params.scheme {
            Scheme::Dctcp | Scheme::Pfabric => true,
            Scheme::PfcDcqcn => packet.marked,
            _ => false,
        };
        if answers {
            let (from, to, blocks) = (packet.to, packet.from, self.params.headers.control_blocks());
            self.control(Packet { kind: Kind::Ack, from, to, blocks, ..*packet }, now_ps);
        }
    }

    /// The sender's reaction to it.
    pub(super) fn acknowledged(&mut self, packet: &Packet, now_ps: u64) {
        let rates = self.params.scheme == Scheme::PfcDcqcn;
        let window = &mut self.flows[packet.flow as usize].window;
        if !rates {
            return window.acknowledged(packet.bytes, packet.marked, self.params.packet);
        }
        if window.cut_ps.is_some_and(|cut_ps| now_ps < cut_ps + DCQCN_PERIOD_PS) {
            return;
        }
        let first = window.cut_ps.is_none();
        window.alpha = if first { 1.0 } else { window.alpha + GAIN * (1.0 - window.alpha) };
        window.target_share = window.share_now;
        window.share_now = (window.share_now * (1.0 - window.alpha / 2.0)).max(0.001);
        window.cut_ps = Some(now_ps);
        self.agenda.add(now_ps + DCQCN_PERIOD_PS, Event::Rate(packet.flow));
    }

    /// DCQCN's recovery: half the way back to the rate before the cut, and on from there.
    pub(super) fn raise(&mut self, nth: u32, now_ps: u64) {
        let flow = &mut self.flows[nth as usize];
        if flow.left() == 0 {
            return;
        }
        let window = &mut flow.window;
        window.alpha *= 1.0 - GAIN;
        if window.target_share - window.share_now < 0.01 {
            window.target_share = (window.target_share + 0.05).min(1.0);
        }
        window.share_now = f64::midpoint(window.share_now, window.target_share);
        if window.share_now < 0.99 {
            self.agenda.add(now_ps + DCQCN_PERIOD_PS, Event::Rate(nth));
        }
    }
}
