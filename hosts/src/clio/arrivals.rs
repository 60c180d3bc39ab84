//! Packets that have come and wait for the board.
//!
//! ```text
//!   port ─ as many as have come ─▶ queues of addresses ─ in turns ─▶ board
//!                                     └── no buffer left: the longest queue loses its last packet, which is counted
//! ```
//!
//! Taking a packet off the port costs less than sending it, so the excess of one host waits, and is lost, in its own queue: the port's
//! has room for the others. The port [refuses](Arrivals::refused) the packets of such a host until half of what it had there is done, so
//! that the board needn't take them off the port only to lose them. Turns are as long as the board's [work](super::costs) for a request: a host that asks for long answers has
//! fewer of them, and it pays for packets that are lost, too. A host has one queue for all its ports; on loopback each socket has one.
//! Hosts whose addresses fall into one of the queues share it; a secret seed decides which ones do. Tokens are verified later, so a host
//! with many addresses, or with others', has more than one queue.

use super::costs::{Asks, Costs, RECEIVED, REQUEST};
use super::port::Peer;
use p4rack_fabric::common::Turns;
use p4rack_netdev::sources::SOURCES_MAX;
use p4rack_wire::SplitMix;
use p4rack_wire::clio::Header;
use std::net::{IpAddr, SocketAddr};

/// Work of a turn: sixteen small requests. What a host sends at a time is then done at a time, and needn't wait for one of another host's
/// between each two.
const TURN: u64 = 16 * REQUEST;
/// Queues, and packets of all.
const QUEUES: usize = 256;
const PACKETS: u16 = 1_024;

/// A packet that waits: where it came from, its buffer, its bytes, what it asks for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    from: Peer,
    buffer: u16,
    bytes: usize,
    asks: Asks,
}

/// A host whose packets the port refuses.
#[derive(Clone, Copy, Debug)]
struct Refused {
    queue: u16,
    /// Its port is 0 if that is for all of its ports.
    addr: SocketAddr,
    /// Packets in its queue from which on they are taken again.
    until: usize,
}

/// Packets that wait.
#[derive(Debug)]
pub(super) struct Arrivals {
    turns: Turns<u16, Waiting>,
    costs: Costs,
    buffers: Vec<Box<[u8]>>,
    /// Buffers without a packet, the one that was used last at the end.
    free: Vec<u16>,
    seed: u64,
    dropped: u64,
    too_long: u64,
    refused: Vec<Refused>,
    /// Whether the port refuses others than `refused`.
    is_changed: bool,
    refusals: u64,
}

impl Arrivals {
    /// Without packets.
    pub fn new(costs: Costs, seed: u64) -> Arrivals {
        let packet_bytes = Header::BYTES + costs.data_bytes_max as usize;
        Arrivals {
            turns: Turns::new(TURN),
            costs,
            buffers: (0..PACKETS).map(|_| vec![0; packet_bytes].into_boxed_slice()).collect(),
            free: (0..PACKETS).rev().collect(),
            seed,
            dropped: 0,
            too_long: 0,
            refused: Vec::with_capacity(SOURCES_MAX),
            is_changed: false,
            refusals: 0,
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Packets that were lost because their host had more waiting than any other.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets that were longer than any of Clio's.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// How often the port began to refuse a host's packets.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Hosts whose packets the port has to refuse from now on, with port 0 those of all ports. `None`: the same as before.
    pub fn refused(&mut self) -> Option<Vec<SocketAddr>> {
        let (before, turns) = (self.refused.len(), &self.turns);
        self.refused.retain(|one| turns.len_of(one.queue) > one.until);
        let is_changed = std::mem::take(&mut self.is_changed) || self.refused.len() < before;
        is_changed.then(|| self.refused.iter().map(|one| one.addr).collect())
    }

    /// A packet of this host was lost.
    fn refuse(&mut self, queue: u16, peer: &Peer) {
        let until = self.turns.len_of(queue) / 2;
        if let Some(one) = self.refused.iter_mut().find(|one| one.queue == queue) {
            one.until = one.until.min(until);
            return;
        }
        if self.refused.len() == SOURCES_MAX {
            return;
        }
        let port = if peer.addr.ip().is_loopback() { peer.addr.port() } else { 0 };
        let addr = SocketAddr::new(peer.addr.ip(), port);
        self.refused.push(Refused { queue, addr, until });
        self.is_changed = true;
        self.refusals += 1;
    }

    fn queue_of(&self, peer: &Peer) -> u16 {
        let ip = match peer.addr.ip() {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        // All programs of this machine have one address on loopback: there each socket counts as a host.
        let port = if peer.addr.ip().is_loopback() { u64::from(peer.addr.port()) << 48 } else { 0 };
        // The seed changes each word before the next one is added: which addresses collide can't be computed without it.
        let low = SplitMix(ip as u64 ^ port ^ self.seed).next();
        (SplitMix((ip >> 64) as u64 ^ low ^ self.seed.rotate_left(32)).next() % QUEUES as u64) as u16
    }

    /// Adds a packet. Where no buffer is left, the longest queue gives one.
    pub fn add(&mut self, from: Peer, packet: &[u8]) {
        if self.buffers.first().is_none_or(|buffer| packet.len() > buffer.len()) {
            self.too_long += 1;
            return;
        }
        let queue = self.queue_of(&from);
        if self.free.is_empty() {
            self.dropped += 1;
            let longest = self.turns.longest().filter(|longest| *longest != queue);
            let longest = longest.filter(|longest| self.turns.len_of(queue) < self.turns.len_of(*longest));
            // The board has taken it off the port.
            self.turns.charge(longest.unwrap_or(queue), RECEIVED);
            let last = longest.and_then(|longest| self.turns.pop_last_of(longest));
            self.refuse(longest.unwrap_or(queue), &last.map_or(from, |last| last.from));
            let Some(last) = last else { return };
            self.free.push(last.buffer);
        }
        let Some(buffer) = self.free.pop() else { return };
        self.buffers[usize::from(buffer)][..packet.len()].copy_from_slice(packet);
        let asks = self.costs.of(packet);
        self.turns.push(queue, asks.cost(), Waiting { from, buffer, bytes: packet.len(), asks });
    }

    /// Charges a host for work of its requests that was not known when they came.
    pub fn charge(&mut self, from: &Peer, cost: u64) {
        let queue = self.queue_of(from);
        self.turns.charge(queue, cost);
    }

    /// Takes the next packet that `may` come now.
    pub fn next(&mut self, may: impl Fn(&Asks) -> bool) -> Option<(Peer, &[u8])> {
        let next = self.turns.pop_if(|waiting| may(&waiting.asks));
        let Waiting { from, buffer, bytes, .. } = next?;
        // It keeps its bytes until the next packet is added.
        self.free.push(buffer);
        Some((from, &self.buffers[usize::from(buffer)][..bytes]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::costs::request;
    use super::*;
    use p4rack_wire::MacAddr;
    use p4rack_wire::clio::Kind;
    use std::net::{Ipv4Addr, SocketAddr};

    const COSTS: Costs = Costs { data_bytes_max: 1_000, read_bytes_max: 64_000 };

    fn peer(host: u32, port: u16) -> Peer {
        Peer { addr: SocketAddr::from((Ipv4Addr::from_bits(host), port)), mac: MacAddr::default() }
    }

    #[test]
    fn one_host_with_many_packets_and_ports_holds_no_other_one_up() {
        let mut arrivals = Arrivals::new(COSTS, 5);
        assert_ne!(arrivals.queue_of(&peer(1, 1)), arrivals.queue_of(&peer(2, 1)));
        (0..10_000u32).for_each(|nth| arrivals.add(peer(1, nth as u16 % 64), &nth.to_be_bytes()));
        (0..3u32).for_each(|nth| arrivals.add(peer(2, 1), &nth.to_be_bytes()));
        assert_eq!(arrivals.dropped(), 10_000 + 3 - u64::from(PACKETS));
        let mut order = Vec::new();
        while let Some((from, packet)) = arrivals.next(|_| true) {
            order.push((from.addr.ip(), packet.to_vec()));
        }
        let of = |host: u32| order.iter().filter(move |one| one.0 == Ipv4Addr::from_bits(host));
        let second: Vec<u8> = of(2).map(|one| one.1[3]).collect();
        assert_eq!(second, [0, 1, 2]);
        assert_eq!(
            order.iter().rposition(|one| one.0 == Ipv4Addr::from_bits(2)),
            Some(2),
            "it has lost none"
        );
        let kept = 0..u32::from(PACKETS) - 3;
        assert!(of(1).map(|one| one.1.clone()).eq(kept.map(|nth| nth.to_be_bytes().to_vec())));
        assert!(arrivals.is_empty() && arrivals.free.len() == usize::from(PACKETS));
    }

    #[test]
    fn a_host_that_loses_packets_is_refused_until_half_of_its_others_are_done() {
        let addr = |host: u32, port| SocketAddr::from((Ipv4Addr::from_bits(host), port));
        let local = u32::from_be_bytes([127, 0, 0, 1]);
        let mut arrivals = Arrivals::new(COSTS, 5);
        (0..PACKETS).for_each(|_| arrivals.add(peer(1, 9), &[0; 8]));
        assert_eq!(arrivals.refused(), None, "none is lost");
        // Another host's packet takes the place of one.
        arrivals.add(peer(local, 7), &[0; 8]);
        assert_eq!(arrivals.refused(), Some(vec![addr(1, 0)]));
        assert_eq!(arrivals.refused(), None);
        (0..PACKETS).for_each(|_| arrivals.add(peer(local, 7), &[0; 8]));
        assert_eq!(arrivals.refused(), Some(vec![addr(1, 0), addr(local, 7)]), "on loopback, a socket");
        let mut opened = Vec::new();
        while arrivals.next(|_| true).is_some() {
            opened.extend(arrivals.refused().map(|refused| (refused.len(), arrivals.turns.len())));
        }
        // Both have about half of the buffers, and do a quarter of all before they are taken again.
        let half = usize::from(PACKETS) / 2;
        assert_eq!(opened.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 0]);
        assert!(opened.iter().all(|one| one.1.abs_diff(half) < half / 4), "{opened:?}");
        assert_eq!(arrivals.refusals(), 2);
    }

    #[test]
    fn hosts_take_turns_by_the_work_that_their_requests_are() {
        let mut arrivals = Arrivals::new(COSTS, 5);
        for _ in 0..300 {
            arrivals.add(peer(1, 1), &request(Kind::Read, 64_000));
            arrivals.add(peer(2, 1), &request(Kind::Read, 64));
        }
        let mut work = [0; 2];
        while work[1] < 200 * REQUEST {
            let (from, packet) = arrivals.next(|_| true).unwrap();
            work[usize::from(from.addr.ip() == Ipv4Addr::from_bits(2))] += COSTS.of(packet).cost();
        }
        let longest = COSTS.of(&request(Kind::Read, 64_000)).cost();
        assert!(work[0].abs_diff(work[1]) <= longest, "{work:?}");
        // Only what may come does.
        let mut hosts = Vec::new();
        while let Some((from, _)) = arrivals.next(|asks| asks.answers == 1) {
            hosts.push(from.addr.ip());
        }
        assert!(hosts.len() == 100 && hosts.iter().all(|ip| *ip == Ipv4Addr::from_bits(2)), "{hosts:?}");
    }

    /// A board in virtual time, beside a host that sends four times as much as the board can do.
    #[test]
    fn a_host_that_asks_for_less_than_its_share_waits_for_a_turn_of_another_and_loses_nothing() {
        let mut arrivals = Arrivals::new(COSTS, 5);
        let (honest, hostile) = (peer(2, 1), peer(1, 1));
        let write = request(Kind::Write, 64);
        let (mut now, mut sent, mut floods, mut is_refused) = (0, 0, 0, false);
        let (mut ends, mut longest) = (0, 0);
        // Two fifths of the board's time.
        let due = |nth: u64| nth * REQUEST * 5 / 2;
        while ends < 20_000 {
            while due(sent) <= now {
                arrivals.add(honest, &write);
                sent += 1;
            }
            while floods * REQUEST / 4 <= now {
                let before = arrivals.dropped();
                if !is_refused {
                    arrivals.add(hostile, &write);
                }
                // What is dropped was taken off the port.
                now += (arrivals.dropped() - before) * RECEIVED;
                floods += 1;
            }
            if let Some(refused) = arrivals.refused() {
                is_refused = refused.iter().any(|addr| addr.ip() == hostile.addr.ip());
            }
            let (from, _) = arrivals.next(|_| true).unwrap();
            now += REQUEST;
            if from == honest {
                longest = longest.max(now - due(ends));
                ends += 1;
            }
        }
        assert!(sent - ends <= 8, "{sent} came, and {ends} are done");
        assert!(longest <= 2 * TURN, "{longest}");
        assert!(arrivals.refusals() > 10 && floods > 4 * ends, "the other one asks for more than there is");
    }

    #[test]
    fn work_that_is_known_later_is_paid_by_turns() {
        let mut arrivals = Arrivals::new(COSTS, 5);
        for _ in 0..500 {
            arrivals.add(peer(1, 1), &request(Kind::Write, 64));
            arrivals.add(peer(2, 1), &request(Kind::Write, 64));
        }
        let mut of = [0u64; 2];
        while of[1] < 300 {
            let (from, _) = arrivals.next(|_| true).unwrap();
            let is_second = from == peer(2, 1);
            of[usize::from(is_second)] += 1;
            if !is_second {
                // Each of its writes takes a frame, whose zeroing costs as much as two requests.
                arrivals.charge(&from, 2 * REQUEST);
            }
        }
        assert!(of[0].abs_diff(100) <= 16, "{of:?}");
    }

    #[test]
    fn many_hosts_fill_no_more_than_there_is_and_long_packets_are_dropped() {
        let mut arrivals = Arrivals::new(COSTS, 5);
        arrivals.add(peer(1, 1), &[0; 1_049]);
        assert_eq!((arrivals.dropped(), arrivals.too_long()), (0, 1));
        for host in 1..=0xffff {
            arrivals.add(peer(host, 1), &[0; 8]);
        }
        assert!(arrivals.free.is_empty());
        let mut count = 0;
        while arrivals.next(|_| true).is_some() {
            count += 1;
        }
        assert_eq!((count, arrivals.free.len()), (usize::from(PACKETS), usize::from(PACKETS)));
    }

    #[test]
    fn addresses_that_share_a_queue_under_one_seed_share_none_under_another() {
        let other = |seed| Arrivals::new(COSTS, seed);
        let (one, two) = (other(5), other(6));
        let shared = (2..).find(|host| one.queue_of(&peer(*host, 1)) == one.queue_of(&peer(1, 1)));
        let host = shared.unwrap();
        assert_ne!(two.queue_of(&peer(host, 1)), two.queue_of(&peer(1, 1)));
    }
}
