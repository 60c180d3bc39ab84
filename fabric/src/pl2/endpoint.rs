//! The endpoint: what a host agent drives.

use super::{Config, Stats};
use p4rack_wire::Nanos;

/// A host's PL2 machine: between the application's frames and the rack's link.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
    stats: Stats,
}

impl Endpoint {
    /// A fresh endpoint at `now`. `seed` gives the first sequence numbers and reservation numbers.
    pub fn new(config: Config, seed: u64, now: Nanos) -> Self {
        let _ = (seed, now);
        let stats = Stats::new(config.delay_window);
        Endpoint { config, stats }
    }

    /// Takes an Ethernet frame (no FCS) from the application side.
    pub fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        let _ = (frame, now);
    }

    /// Takes an Ethernet frame (no FCS, VLAN tag in place) from the link; `received_at` is when the
    /// kernel or the NIC saw it.
    pub fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        let _ = (frame, received_at, now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The next frame to put on the link now, written over `out`. Call until it says false.
    pub fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let _ = (now, out);
        false
    }

    /// The next frame for the application side, written over `out`. Call until it says false.
    pub fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and then [`poll_link`](Self::poll_link) next.
    pub fn next_timeout(&self) -> Option<Nanos> {
        None
    }

    /// What was counted so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The parameters it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Frames that wait to be sent, all queues together.
    pub fn backlog_frames(&self) -> usize {
        0
    }
}
