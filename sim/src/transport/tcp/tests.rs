//! Two ends and a bad wire between them.

use super::{Config, Control, HEADER_BYTES, Receiver, Sender};
use crate::random::Random;
use crate::transport::Transport;
use crate::transport::wire::Range;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Fault of a wire on a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Wire {
    loss: f64,
    duplication: f64,
    reordering: f64,
    /// Queue at which frames are marked, and at which they are dropped.
    mark_at: usize,
    drop_at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Flying {
    Data { start: u64, bytes: u64, push: bool, marked: bool },
    Ack { next: u64, marked: bool, ranges: [Range; 3], count: usize },
}

struct Bench {
    sender: Sender,
    receiver: Receiver,
    delivered: u64,
    flying: BTreeMap<(Nanos, u64), Flying>,
    count: u64,
    random: Random,
    wire: Wire,
    now: Nanos,
    /// When the bottleneck is free, 1 Gb/s.
    free_at: Nanos,
}

const FRAME_NS: u64 = 12_000;
const DELAY: Nanos = Nanos::from_micros(50);

impl Bench {
    fn new(transport: Transport, wire: Wire, seed: u64) -> Bench {
        let config = Config {
            window_bytes: 1 << 20,
            rto_min: Nanos::from_millis(5),
            probe_min: Nanos::from_millis(1),
        };
        Bench {
            sender: Sender::new(config, Control::new(transport, 1 << 20)),
            receiver: Receiver::default(),
            delivered: 0,
            flying: BTreeMap::new(),
            count: 0,
            random: Random::new(seed),
            wire,
            now: Nanos::ZERO,
            free_at: Nanos::ZERO,
        }
    }

    fn put(&mut self, what: Flying, at: Nanos) {
        if self.random.chance(self.wire.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.wire.duplication));
        for _ in 0..copies {
            let late = if self.random.chance(self.wire.reordering) { self.random.below(300_000) } else { 0 };
            self.count += 1;
            self.flying.insert((at + DELAY + Nanos(late), self.count), what);
        }
    }

    fn data(&mut self, segment: super::Segment) {
        let queue = (self.free_at.saturating_sub(self.now).0 / FRAME_NS) as usize;
        if queue >= self.wire.drop_at {
            return;
        }
        let marked = queue >= self.wire.mark_at && self.sender.control.markable();
        self.free_at = self.free_at.max(self.now) + Nanos(FRAME_NS);
        let (start, bytes, push) = (segment.start, u64::from(segment.bytes), segment.last);
        self.put(Flying::Data { start, bytes, push, marked }, self.free_at);
    }

    fn pump(&mut self) {
        while let Some(segment) = self.sender.poll(self.now) {
            self.data(segment);
        }
    }

    /// Runs until nothing is under way or `end`.
    fn run(&mut self, end: Nanos) {
        self.pump();
        loop {
            let next = self.flying.first_key_value().map(|(key, _)| key.0);
            let timer = self.sender.next_timeout();
            let Some(now) = next.into_iter().chain(timer).min().filter(|now| *now <= end) else { return };
            self.now = self.now.max(now);
            if next == Some(now) {
                let Some((_, what)) = self.flying.pop_first() else { return };
                match what {
                    Flying::Data { start, bytes, push, marked } => {
                        let (first, new, second) = self.receiver.handle(start, bytes, push, marked);
                        self.delivered += new;
                        for ack in first.into_iter().chain(second) {
                            let super::receiver::Ack { next, marked, ranges, count } = ack;
                            self.put(Flying::Ack { next, marked, ranges, count }, self.now);
                        }
                    }
                    Flying::Ack { next, marked, ranges, count } => {
                        self.sender.handle_ack(next, marked, &ranges[..count], self.now);
                    }
                }
            } else if let Some(segment) = self.sender.handle_timeout(self.now) {
                self.data(segment);
            }
            self.pump();
        }
    }
}

const FAR: Nanos = Nanos::from_secs(4_000);

#[test]
fn every_byte_arrives_once_and_in_order_whatever_the_wire_does() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let transport = [Transport::Tcp, Transport::Cubic, Transport::Dctcp][random.below(3) as usize];
        let wire = Wire {
            loss: random.unit() * 0.3,
            duplication: random.unit() * 0.2,
            reordering: random.unit() * 0.3,
            mark_at: 5,
            drop_at: 5 + random.below(100) as usize,
        };
        let mut bench = Bench::new(transport, wire, seed);
        let mut total = 0;
        for message in 0..20 {
            let bytes = 1 + random.below(40_000) as u32;
            total += u64::from(bytes);
            bench.sender.write(message, bytes);
        }
        bench.run(FAR);
        assert_eq!(bench.delivered, total, "{seed} {transport:?} {wire:?}");
        assert!(bench.sender.next_timeout().is_none() && !bench.sender.can_send(), "{seed}: it rests");
    }
}

fn long(transport: Transport, drop_at: usize) -> (f64, Sender, u64) {
    let mut bench = Bench::new(transport, Wire { mark_at: 20, drop_at, ..Wire::default() }, 1);
    (0..1_000).for_each(|message| bench.sender.write(message, 100_000));
    let end = Nanos::from_millis(400);
    bench.run(end);
    let share = bench.delivered as f64 / 1_448.0 * FRAME_NS as f64 / end.0 as f64;
    let queue = bench.free_at.saturating_sub(bench.now).0 / FRAME_NS;
    (share, bench.sender, queue)
}

#[test]
fn alone_each_fills_the_bottleneck() {
    for transport in [Transport::Tcp, Transport::Cubic, Transport::Dctcp] {
        let drop_at = if transport == Transport::Tcp { usize::MAX } else { 100 };
        let (share, sender, _) = long(transport, drop_at);
        assert!(share > 0.95 && share <= 1.0, "{transport:?} {share}");
        assert_eq!(sender.timeouts, 0, "{transport:?}");
        assert_eq!(sender.retransmissions > 0, transport == Transport::Cubic, "{transport:?}");
    }
}

#[test]
fn dctcp_keeps_the_queue_near_its_threshold_and_cubic_fills_it() {
    let ((_, _, marked), (_, _, dropped)) = (long(Transport::Dctcp, 1_000), long(Transport::Cubic, 1_000));
    assert!(marked < 60 && dropped > 100, "{marked} {dropped}");
}

#[test]
fn a_lost_tail_is_probed_for_before_the_timeout() {
    let mut bench = Bench::new(Transport::Cubic, Wire { mark_at: 999, drop_at: 999, ..Wire::default() }, 1);
    bench.sender.write(0, 14_480);
    bench.run(FAR);
    bench.wire.drop_at = 0;
    bench.sender.write(1, 1_000);
    bench.pump();
    bench.wire.drop_at = 999;
    let before = bench.now;
    bench.run(FAR);
    assert_eq!((bench.delivered, bench.sender.timeouts), (15_480, 0));
    assert!(bench.now - before < Nanos::from_millis(3), "{}", bench.now - before);
    assert_eq!(HEADER_BYTES + 1_448, 1_500);
}
