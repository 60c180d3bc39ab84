//! Hostile nodes.

use super::{KEY, Pipeline};
use crate::message::mac_of;
use p4rack_fabric::Machine as _;
use p4rack_fabric::hostile::edm::{Config, Machine};
use p4rack_wire::Nanos;

/// Seed of their random choices.
const SEED: u64 = 7;

impl Pipeline<'_> {
    /// Makes nodes attackers, which begin immediately.
    pub(super) fn add_attackers(&mut self) {
        for (node, attack, victim) in &self.params.attackers {
            let mac = |node: u16| mac_of(node.into());
            let config = Config {
                attack: *attack,
                mac: mac(*node),
                victim: mac(*victim),
                others: (0..self.params.nodes).filter(|other| other != node).map(mac).collect(),
                ether_type: self.edm.ether_type,
                lanes: self.edm.lanes() as u16,
                demands: self.params.demands as u16,
                chunk_bytes: self.params.chunk_bytes,
                window: self.params.window,
                key: KEY,
                write_key: KEY,
                address: 0,
                wait_unit: Nanos(1),
                patience: self.timeout,
                rate_bps: self.params.rate_bps,
                catch_up: Nanos::ZERO,
                session: Some(1),
            };
            self.nodes[usize::from(*node)].hostile = Some(Machine::new(config, SEED, Nanos::ZERO));
            self.plan(*node, 0);
        }
    }

    /// Sends an attacker's next frame.
    pub(super) fn attack(&mut self, nth: u16, now_ps: u64) {
        let mut frame = self.frames.take(true);
        let node = &mut self.nodes[usize::from(nth)];
        let Some(hostile) = &mut node.hostile else { return self.frames.release(frame) };
        if hostile.poll_link(Nanos(now_ps.div_ceil(1_000)), &mut frame).is_none() {
            return self.frames.release(frame);
        }
        let tail_ps = node.uplink.send(&frame, now_ps);
        self.rises(nth, frame, tail_ps);
    }
}
