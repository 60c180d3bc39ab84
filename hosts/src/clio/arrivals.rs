//! Packets that have come and wait for the board.
//!
//! ```text
//!   port ─ as many as have come ─▶ queues of addresses, 64 each ─ in turns ─▶ board
//!                                     └── full: dropped, and counted
//! ```
//!
//! Taking a packet off the port costs less than sending it, so what one client sends beyond its share waits, and is lost, in its own queue:
//! the port's has room for the others. Addresses that fall into one of the queues share it; which ones do is a secret.

use super::port::Peer;
use p4rack_fabric::common::Turns;
use p4rack_wire::SplitMix;
use std::net::IpAddr;

/// Queues, and packets of each and of all.
const QUEUES: u64 = 256;
const OF_QUEUE: usize = 64;
const PACKETS: u16 = 1_024;

/// A packet that waits: where it came from, its buffer, its bytes.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    from: Peer,
    buffer: u16,
    bytes: usize,
}

/// Packets that wait.
#[derive(Debug)]
pub(super) struct Arrivals {
    turns: Turns<u16, Waiting>,
    buffers: Vec<Box<[u8]>>,
    /// Buffers without a packet, the one that was used last at the end.
    free: Vec<u16>,
    seed: u64,
    dropped: u64,
}

impl Arrivals {
    /// Without packets, of which none is longer.
    pub fn new(packet_bytes: usize, seed: u64) -> Arrivals {
        Arrivals {
            // A packet each: on a host, the board's work for one hardly depends on its bytes.
            turns: Turns::new(1),
            buffers: (0..PACKETS).map(|_| vec![0; packet_bytes].into_boxed_slice()).collect(),
            free: (0..PACKETS).rev().collect(),
            seed,
            dropped: 0,
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Packets that found their queue full, or were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn queue_of(&self, peer: &Peer) -> u16 {
        let ip = match peer.addr.ip() {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let words = ip as u64 ^ ((ip >> 64) as u64).rotate_left(32) ^ u64::from(peer.addr.port()) << 40;
        (SplitMix(words ^ self.seed).next() % QUEUES) as u16
    }

    /// Adds a packet, unless its queue is full.
    pub fn add(&mut self, from: Peer, packet: &[u8]) {
        let queue = self.queue_of(&from);
        let is_full = self.turns.len_of(queue) >= OF_QUEUE;
        let buffer = self.free.last().filter(|_| !is_full).copied();
        let place = buffer.and_then(|buffer| self.buffers[usize::from(buffer)].get_mut(..packet.len()));
        let (Some(buffer), Some(place)) = (buffer, place) else {
            self.dropped += 1;
            return;
        };
        place.copy_from_slice(packet);
        self.free.pop();
        self.turns.push(queue, 1, Waiting { from, buffer, bytes: packet.len() });
    }

    /// Gives the next packet away.
    pub fn next(&mut self, taken: impl FnOnce(Peer, &[u8])) -> bool {
        let Some(Waiting { from, buffer, bytes }) = self.turns.pop() else { return false };
        taken(from, &self.buffers[usize::from(buffer)][..bytes]);
        self.free.push(buffer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::MacAddr;
    use std::net::{Ipv4Addr, SocketAddr};

    fn peer(port: u16) -> Peer {
        Peer { addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), mac: MacAddr::default() }
    }

    #[test]
    fn one_address_with_many_packets_holds_no_other_one_up() {
        let mut arrivals = Arrivals::new(100, 5);
        assert_ne!(arrivals.queue_of(&peer(1)), arrivals.queue_of(&peer(2)));
        (0..10_000u32).for_each(|nth| arrivals.add(peer(1), &nth.to_be_bytes()));
        (0..3u32).for_each(|nth| arrivals.add(peer(2), &nth.to_be_bytes()));
        assert_eq!(arrivals.dropped(), 10_000 - OF_QUEUE as u64);
        let mut order = Vec::new();
        while arrivals.next(|from, packet| order.push((from.addr.port(), packet[3]))) {}
        let of = |port| order.iter().filter(|one| one.0 == port).map(|one| one.1).collect::<Vec<_>>();
        assert_eq!(order.iter().position(|one| *one == (2, 2)), Some(5));
        assert_eq!((of(2), of(1)), (vec![0, 1, 2], (0..OF_QUEUE as u8).collect()));
        assert!(arrivals.is_empty() && arrivals.free.len() == usize::from(PACKETS));
    }

    #[test]
    fn many_addresses_fill_no_more_than_there_is_and_long_packets_are_dropped() {
        let mut arrivals = Arrivals::new(8, 5);
        arrivals.add(peer(1), &[0; 9]);
        assert_eq!(arrivals.dropped(), 1);
        for port in 1..=u16::MAX {
            arrivals.add(peer(port), &[0; 8]);
        }
        assert!(arrivals.free.is_empty());
        let mut count = 0;
        while arrivals.next(|_, _| count += 1) {}
        assert_eq!((count, arrivals.free.len()), (usize::from(PACKETS), usize::from(PACKETS)));
    }
}
