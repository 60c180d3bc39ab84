//! Plain Ethernet: frames are sent when the wire is free, in the order of arrival. The baseline for PL2, with
//! the same queues, limits and pacing, but no reservations.

use crate::common::{
    AppFrame, ConfigError, Delay, Directory, Frames, Item, Ledger, MTU_MAX, Reason, Station, Stats,
    check_app, check_link, clean_peers,
};
use crate::machine::{HostMachine, Machine};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::{MacAddr, Nanos};

/// Configuration of an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Configuration of the host.
    pub station: Station,
    /// Hosts with a queue of their own; frames to all others share one.
    pub peers: Vec<MacAddr>,
}

impl Config {
    /// Defaults for a host on a link of `rate_bps`, without peers.
    pub fn new(mac: MacAddr, rate_bps: u64) -> Self {
        Config { station: Station::new(mac, rate_bps), peers: Vec::new() }
    }

    /// Checks what types cannot express.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.station.check("Ethernet")
    }
}

/// Placeholder for control frames and scheduled frames, which this scheme does not have.
#[derive(Clone, Copy, Debug)]
enum Never {}

/// A host's Ethernet machine: between the application's frames and the link, NIC included.
#[derive(Clone, Debug)]
pub struct Endpoint {
    station: Station,
    directory: Directory,
    /// Number of frames waiting for each peer.
    waiting: Vec<usize>,
    frames: Frames<Never, Never, ()>,
}

impl Endpoint {
    /// A new endpoint at `now`. Values that [`Config::check`] rejects are replaced by the nearest that work.
    pub fn new(mut config: Config, now: Nanos) -> Self {
        config.station.mtu = config.station.mtu.min(MTU_MAX);
        clean_peers(&mut config.peers, config.station.mac, |peer| *peer);
        Endpoint {
            directory: Directory::new(config.peers.iter().copied()),
            waiting: vec![0; config.peers.len()],
            frames: Frames::new(&config.station, now),
            station: config.station,
        }
    }

    fn accept(&mut self, frame: &[u8], now: Nanos) -> Result<(), Reason> {
        let destination = self.directory.find(check_app(frame, &self.station)?.dst);
        let there = destination.map(|d| self.waiting[d]);
        let id = self.frames.keep(frame, there, &self.station)?;
        if let Some(d) = destination {
            self.waiting[d] += 1;
        }
        self.frames.push_best_effort(id, destination, now);
        Ok(())
    }

    /// Where its frames have gone.
    pub fn ledger(&self) -> Ledger {
        self.frames.ledger()
    }

    /// Whether there is room for a frame to a host.
    pub(crate) fn has_room(&self, to: MacAddr) -> bool {
        let there = self.directory.find(to).map(|d| self.waiting[d]);
        self.frames.room(there, &self.station).is_ok()
    }

    fn receive(&mut self, frame: &[u8], now: Nanos) -> Option<AppFrame> {
        self.frames.advance(now);
        self.frames.stats.counters.link_in += 1;
        match check_link(frame, &self.station, Vlan::BYTES) {
            Ok(ethernet) => {
                self.frames.stats.counters.best_effort_in += 1;
                Some(AppFrame::new(ethernet.ether_type, Ethernet::BYTES))
            }
            Err(reason) => {
                self.frames.stats.drop_frame(reason);
                None
            }
        }
    }
}

impl Machine for Endpoint {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) {
        if let Some(app) = self.receive(frame, now) {
            self.frames.keep_for_app(app, frame, &self.station);
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.frames.advance(now);
    }

    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        let now = self.frames.advance(now);
        let (Item::BestEffort(data), ready) = self.frames.nic.next(now)?;
        self.frames.write_best_effort(data, out);
        if let Some(d) = data.destination {
            self.waiting[d] -= 1;
        }
        self.frames.sent(out, ready, now);
        Some(())
    }

    #[inline]
    fn next_timeout(&self) -> Option<Nanos> {
        self.frames.nic.next_at()
    }
}

impl HostMachine for Endpoint {
    fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        let now = self.frames.advance(now);
        self.frames.stats.counters.app_in += 1;
        if let Err(reason) = self.accept(frame, now) {
            self.frames.stats.drop_frame(reason);
        }
    }

    fn forward_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        let app = self.receive(frame, now)?;
        self.frames.stats.counters.app_out += 1;
        Some(app)
    }

    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        self.frames.fetch(out)
    }

    fn backlog_frames(&self) -> usize {
        self.frames.waiting
    }

    fn position_of(&self, peer: MacAddr) -> Option<usize> {
        self.directory.find(peer)
    }

    #[inline]
    fn backlog_at(&self, position: usize) -> usize {
        self.waiting.get(position).copied().unwrap_or(0)
    }

    fn station(&self) -> &Station {
        &self.station
    }

    fn stats(&self) -> &Stats {
        &self.frames.stats
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.frames.stats.counters.iter().collect()
    }

    fn delays(&self) -> Vec<(&'static str, &Delay)> {
        Vec::new()
    }
}
