//! Effects of hostile hosts on a pool and an engine.

use super::*;
use crate::Machine as _;
use crate::cowbird::{Config as EngineConfig, Corruption, Engine, Pool, Set, State};
use crate::roce::{Adapter, Completion, Region, Regions, Rights};
use p4rack_wire::cowbird::Layout;
use std::net::Ipv4Addr;

const POOL: u8 = 1;
const SPOT: u8 = 2;
const HOSTILE: u8 = 3;
const START: u64 = 1 << 32;
const MESSAGE_BYTES: u32 = 4_096;
const REGION_BYTES: u64 = 1 << 16;

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

fn connection(from: u8, to: u8, qpn: u32) -> Connection {
    let ip = |host| Ipv4Addr::new(10, 0, 0, host);
    let (src_mac, dst_mac, src_ip, dst_ip) = (mac(from), mac(to), ip(from), ip(to));
    let path = Path { src_mac, dst_mac, src_ip, dst_ip, src_port: 50_000, dscp: 0 };
    Connection { path, peer_qpn: qpn, send_psn: 7, receive_psn: 7, domain: 0 }
}

/// A pool, an engine on a spare host and a hostile host on a perfect network.
struct Rack {
    machine: Machine,
    spot: Adapter<Regions>,
    engine: Engine,
    instance: Option<u32>,
    pool: Adapter<Regions>,
    now: Nanos,
}

impl Rack {
    fn new(attack: Attack) -> Rack {
        let adapter = roce::Config { message_bytes_max: MESSAGE_BYTES, ..roce::Config::default() };
        let mut memory = Regions::default();
        let bytes = vec![0; REGION_BYTES as usize];
        memory.register(Region { domain: 0, key: 1, start: START, bytes, rights: Rights::ALL }).unwrap();
        let mut pool = Adapter::new(adapter.clone(), memory).unwrap();
        let mut spot = Adapter::new(adapter.clone(), Regions::default()).unwrap();
        let mut engine = Engine::new(EngineConfig {
            message_bytes_max: MESSAGE_BYTES,
            batch_bytes: MESSAGE_BYTES as usize,
            ..EngineConfig::default()
        });
        let layout = Layout { entries: 64, request_bytes: 8_192, response_bytes: 8_192 };
        let mut config = Config {
            attack,
            mac: mac(HOSTILE),
            adapter,
            pool: Vec::new(),
            key: 1,
            address: START,
            bytes: REGION_BYTES,
            engine: Vec::new(),
            rings: Rings::default(),
            others: vec![Aim { path: connection(SPOT, POOL, 40).path, qpn: 40, psn: 7 }],
            rate_bps: 10_000_000_000,
            catch_up: Nanos::ZERO,
        };
        pool.add_pair(40, connection(POOL, SPOT, 40)).unwrap();
        spot.add_pair(40, connection(SPOT, POOL, 40)).unwrap();
        let mut instance = None;
        if attack.needs_engine() {
            spot.add_pair(50, connection(SPOT, HOSTILE, 50)).unwrap();
            config.engine.push((50, connection(HOSTILE, SPOT, 50)));
            let set = EndlessSet::new((9, 4_096), layout, attack.rings(), REGION_BYTES, MESSAGE_BYTES);
            config.rings.0.push(set);
            let regions = vec![Pool { qpn: 40, key: 1, address: START, bytes: REGION_BYTES }];
            let set = Set { owner: 0, qpn: 50, key: 9, address: 4_096, layout, regions };
            instance = Some(engine.add(set, Nanos::ZERO).unwrap());
        } else {
            for qpn in 60..64 {
                pool.add_pair(qpn, connection(POOL, HOSTILE, qpn)).unwrap();
                config.pool.push((qpn, connection(HOSTILE, POOL, qpn)));
            }
        }
        let machine = Machine::new(config, 1, Nanos::ZERO).unwrap();
        Rack { machine, spot, engine, instance, pool, now: Nanos::ZERO }
    }

    /// Delivers all frames for a millisecond.
    fn run(&mut self) {
        let (until, mut frame) = (self.now + Nanos::from_millis(1), Vec::new());
        while self.now < until {
            let now = self.now;
            while let Some((qpn, request)) = self.engine.poll_link(now, &mut ()) {
                self.spot.handle_request(qpn, request).unwrap();
            }
            let mut frames = Vec::new();
            while self.spot.poll_link(now, &mut frame).is_some()
                || self.pool.poll_link(now, &mut frame).is_some()
            {
                frames.push(frame.clone());
            }
            while self.machine.poll_link(now, &mut frame).is_some() {
                frames.push(frame.clone());
            }
            for frame in frames {
                match frame[5] {
                    POOL => self.pool.handle_link(&frame, now, now),
                    SPOT => self.spot.handle_link(&frame, now, now),
                    _ => self.machine.handle_link(&frame, now, now),
                }
            }
            while let Some((qpn, completion)) = self.spot.poll_completion() {
                if let Completion::Request(_, outcome) = completion {
                    self.engine.handle_link((qpn, outcome), now, now);
                }
            }
            self.now = now + Nanos::from_micros(1);
            self.spot.handle_timeout(self.now);
            self.pool.handle_timeout(self.now);
        }
    }

    fn state(&self) -> Option<State> {
        self.instance.and_then(|number| self.engine.state(number))
    }

    fn served(&self) -> u64 {
        self.machine.rings().0.iter().map(EndlessSet::done).sum()
    }
}

#[test]
fn an_engine_serves_rings_that_are_always_full_without_end() {
    for attack in [Attack::FullReads, Attack::FullWrites, Attack::SmallReads] {
        let mut rack = Rack::new(attack);
        rack.run();
        let first = rack.served();
        rack.run();
        assert!(first > 16 && rack.served() > first + 16, "{attack}: {first}, then {}", rack.served());
        assert_eq!(rack.state(), Some(State::Serving), "{attack}");
    }
}

#[test]
fn an_engine_gives_up_rings_that_hold_nonsense() {
    let mut rack = Rack::new(Attack::Corrupt);
    rack.run();
    assert!(
        matches!(rack.state(), Some(State::Corrupt(Corruption::Type | Corruption::Region))),
        "{:?}",
        rack.state()
    );
}

#[test]
fn a_pool_does_what_it_is_asked_for_and_counts_what_it_refuses() {
    let counted = |attack: Attack| {
        let mut rack = Rack::new(attack);
        (0..4).for_each(|_| rack.run());
        let counters = rack.pool.responder_counters();
        (counters, rack.pool.counters().clone())
    };
    assert!(counted(Attack::BulkRead).0.reads > 50);
    assert!(counted(Attack::BulkWrite).0.writes > 50);
    // After requests that found no room, it continues in order.
    let (reads, _) = counted(Attack::ReadFlood);
    assert!(reads.reads > 1_000, "{reads:?}");
    assert!(counted(Attack::WriteFlood).0.writes > 300);
    assert!(counted(Attack::AtomicFlood).0.atomics > 1_000);
    let (refused, _) = counted(Attack::WrongKey);
    assert!(refused.refused_access == 4 && refused.after_refusal > 1_000, "{refused:?}");
    let (repeated, _) = counted(Attack::Repeat);
    assert!(repeated.reads == 4 && repeated.copies > 1_000, "{repeated:?}");
}

#[test]
fn a_forged_packet_reaches_no_queue_pair() {
    let mut rack = Rack::new(Attack::Forged);
    rack.run();
    let counters = rack.pool.counters();
    // Three of four frames have its own MAC address. A switch would drop the others; here there is none.
    assert!(counters.frames_in > 500, "{counters:?}");
    assert!(counters.foreign * 10 >= counters.frames_in * 7, "{counters:?}");
}
