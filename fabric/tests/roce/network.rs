//! Two adapters and a network between them, in virtual time.

use p4rack_fabric::Machine as _;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{
    Adapter, Completion, Config, Connection, Outcome, Region, Regions, Request, Rights,
};
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Queue pair of both adapters.
pub const QPN: u32 = 0x11;
/// Key of the region that permits everything.
pub const KEY: u32 = 0x77;
/// Key of the region that permits reading alone.
pub const READ_ONLY: u32 = 0x78;
/// Where the first region begins.
pub const START: u64 = 0x10_0000;
/// Where the second region begins.
pub const READ_ONLY_START: u64 = 0x20_0000;
/// Bytes of each region.
pub const BYTES: usize = 16_384;
/// Protection domain of the connection.
pub const DOMAIN: u32 = 5;

/// The network's faults, in thousandths of frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub copied: u64,
    pub delayed: u64,
    pub corrupted: u64,
}

pub struct Network {
    pub adapters: [Adapter<Regions>; 2],
    pub completions: [Vec<Completion>; 2],
    /// Every frame that an adapter sent, if wanted.
    pub record: Option<Vec<Vec<u8>>>,
    pub now: Nanos,
    faults: Faults,
    random: SplitMix,
    /// Frames under way, by time of arrival and a number.
    frames: BTreeMap<(Nanos, u64), (usize, Vec<u8>)>,
    sent: u64,
}

/// The connection as adapter `node` sees it. Sequence numbers are about to go round.
pub fn connection(node: usize) -> Connection {
    let mac = |node: usize| MacAddr([2, 0, 0, 0, 0, node as u8 + 1]);
    let ip = |node: usize| Ipv4Addr::new(10, 0, 0, node as u8 + 1);
    let psn = |node: usize| 0xff_ffe0 + node as u32;
    let path = Path {
        src_mac: mac(node),
        dst_mac: mac(1 - node),
        src_ip: ip(node),
        dst_ip: ip(1 - node),
        src_port: 49_152,
        dscp: 26,
    };
    Connection { path, peer_qpn: QPN, send_psn: psn(node), receive_psn: psn(1 - node), domain: DOMAIN }
}

/// Byte `at` of the region that is never written.
pub fn pattern(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

fn regions() -> Regions {
    let mut regions = Regions::default();
    let all = Region { domain: DOMAIN, key: KEY, start: START, bytes: vec![0; BYTES], rights: Rights::ALL };
    let bytes = (0..BYTES).map(pattern).collect();
    let rights = Rights { read: true, ..Rights::default() };
    let read_only = Region { domain: DOMAIN, key: READ_ONLY, start: READ_ONLY_START, bytes, rights };
    regions.register(all).unwrap();
    regions.register(read_only).unwrap();
    regions
}

impl Network {
    pub fn new(config: Config, faults: Faults, seed: u64) -> Network {
        let adapter = |node| {
            let mut adapter = Adapter::new(config.clone(), regions()).unwrap();
            adapter.add_pair(QPN, connection(node)).unwrap();
            adapter
        };
        Network {
            adapters: [adapter(0), adapter(1)],
            completions: [Vec::new(), Vec::new()],
            record: None,
            now: Nanos::ZERO,
            faults,
            random: SplitMix(seed),
            frames: BTreeMap::new(),
            sent: 0,
        }
    }

    pub fn random(&mut self, below: u64) -> u64 {
        self.random.next() % below
    }

    /// A request of node 0.
    pub fn ask(&mut self, request: Request) -> u64 {
        self.adapters[0].handle_request(QPN, request).unwrap()
    }

    /// Puts a frame on its way to `to`.
    pub fn deliver(&mut self, to: usize, frame: &[u8]) {
        let chance = |network: &mut Network, of: u64| network.random(1_000) < of;
        let faults = self.faults;
        if chance(self, faults.lost) {
            return;
        }
        let copies = 1 + u64::from(chance(self, faults.copied));
        for _ in 0..copies {
            let mut frame = frame.to_vec();
            if chance(self, faults.corrupted) {
                let bit = self.random(frame.len() as u64 * 8) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            let late = if chance(self, faults.delayed) { self.random(20_000) } else { 0 };
            self.sent += 1;
            self.frames.insert((self.now + Nanos(1_000 + late), self.sent), (to, frame));
        }
    }

    /// Sends the adapters' frames and fetches their completions.
    pub fn poll(&mut self) {
        let mut frame = Vec::new();
        for node in 0..2 {
            while self.adapters[node].poll_link(self.now, &mut frame).is_some() {
                if let Some(record) = &mut self.record {
                    record.push(frame.clone());
                }
                self.deliver(1 - node, &frame);
            }
            while let Some((qpn, completion)) = self.adapters[node].poll_completion() {
                assert_eq!(qpn, QPN);
                self.completions[node].push(completion);
            }
        }
    }

    /// The next thing that happens. Returns whether anything did.
    pub fn step(&mut self) -> bool {
        self.poll();
        let arrival = self.frames.keys().next().map(|(at, _)| *at);
        let timeout = self.adapters.iter().filter_map(Adapter::next_timeout).min();
        let Some(next) = [arrival, timeout].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Some((_, (to, frame))) = self.frames.pop_first() else { return false };
            self.adapters[to].handle_link(&frame, self.now, self.now);
        } else {
            self.adapters.iter_mut().for_each(|adapter| adapter.handle_timeout(self.now));
        }
        self.poll();
        true
    }

    /// Runs until nothing is left to do.
    pub fn settle(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("a million steps and still not done");
    }

    /// How node 0's requests ended, in order.
    pub fn outcomes(&self) -> Vec<(u64, Outcome)> {
        let requests = self.completions[0].iter().filter_map(|completion| match completion {
            Completion::Request(id, outcome) => Some((*id, outcome.clone())),
            Completion::Receive(_) => None,
        });
        requests.collect()
    }

    /// Asks for one thing and waits for its outcome.
    pub fn outcome(&mut self, request: Request) -> Outcome {
        let id = self.ask(request);
        self.settle();
        self.outcomes().into_iter().find(|(other, _)| *other == id).map(|(_, outcome)| outcome).unwrap()
    }
}
