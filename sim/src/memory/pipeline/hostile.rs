//! Nodes that break the rules.

use super::{Event, KEY, Pipeline};
use crate::message::mac_of;
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
        let slot = self.slot();
        let frame = &mut self.frames[slot as usize];
        let Some(hostile) = &mut self.nodes[usize::from(nth)].hostile else { return };
        if !hostile.poll_link(Nanos(now_ps.div_ceil(1_000)), frame) {
            return self.free.push(slot);
        }
        let tail_ps = now_ps + self.wire_ps(slot);
        self.nodes[usize::from(nth)].free_ps = tail_ps;
        self.agenda.add(tail_ps + self.params.modules.link_ps, Event::AtSwitch(nth, slot));
    }
}
