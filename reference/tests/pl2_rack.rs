//! Endpoints and the reference switch in virtual time, with faults: invariants of any run.

use p4rack_fabric::common::{Reason, Station};
use p4rack_fabric::pl2::{self, Mode, Peer};
use p4rack_fabric::{Config, Endpoint, HostMachine, Machine, ethernet};
use p4rack_reference::{Faults, Jitter, Limits, Rack, SwitchConfig};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::Side;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::{HashMap, HashSet};

const RATE: u64 = 100_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Content of a test frame: source, destination, number.
type Key = (usize, usize, u32);

#[derive(Clone, Debug)]
struct Plan {
    /// PL2's; `None`: plain Ethernet.
    mode: Option<Mode>,
    hosts: usize,
    k: u8,
    t_slots: u32,
    in_flight: usize,
    spare_lanes: u8,
    queue_limit: usize,
    /// Source, destination (the source itself: broadcast), frames, payload, time in µs.
    bursts: Vec<(usize, usize, u8, usize, u64)>,
    faults: Faults,
    wake_us: u64,
    /// A host that dies at a time in µs and comes back after some more.
    crash: Option<(usize, u64, u64)>,
    seed: u64,
}

fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8])
}

fn frame((from, to, number): Key, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; Ethernet::BYTES + payload.max(12)];
    let dst = if to == from { MacAddr::BROADCAST } else { mac(to) };
    Ethernet { dst, src: mac(from), ether_type: EtherType::IPV4 }.emit(&mut frame);
    for (at, value) in [from as u32, to as u32, number].into_iter().enumerate() {
        frame[Ethernet::BYTES + 4 * at..][..4].copy_from_slice(&value.to_be_bytes());
    }
    frame
}

/// The key at `at` of a frame: 14 as applications see it, 26 with tag and shim.
fn key(frame: &[u8], at: usize) -> Option<Key> {
    let word = |n: usize| frame.get(at + 4 * n..at + 4 * n + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((word(0)? as usize, word(1)? as usize, word(2)?))
}

struct Run {
    rack: Rack,
    sent: HashSet<Key>,
    /// Keys as they reached each host, in order.
    delivered: Vec<Vec<Key>>,
}

impl Plan {
    fn rack(&self) -> Rack {
        let mode = self.mode.unwrap_or(Mode::Clock);
        let slot = pl2::Config::new(mac(0), mode, RATE).slot;
        let peers: Vec<Peer> =
            (0..self.hosts).map(|host| Peer { mac: mac(host), slot, far: false }).collect();
        let station = |host: usize| Station {
            queue_limit_frames: self.queue_limit.max(usize::from(self.k)),
            ..Station::new(mac(host), RATE)
        };
        let pl2 = |host: usize| pl2::Config {
            k: self.k,
            t_slots: self.t_slots,
            in_flight: self.in_flight,
            lanes: self.in_flight as u8 + self.spare_lanes,
            station: station(host),
            peers: peers.clone(),
            ..pl2::Config::new(mac(host), mode, RATE)
        };
        let config = |host: usize| match self.mode {
            Some(_) => Config::Pl2(pl2(host)),
            None => Config::Ethernet(ethernet::Config {
                station: station(host),
                peers: (0..self.hosts).map(mac).collect(),
            }),
        };
        let first = pl2(0);
        let switch = SwitchConfig {
            mode: self.mode,
            ether_type: first.ether_type,
            vid: first.vid,
            k: self.k,
            limits: Limits {
                drop_threshold_slots: u64::from(8 * self.t_slots),
                ..Limits::new(first.lanes, self.k, self.t_slots)
            },
            buffer_bytes: 1 << 20,
            time_unit: Nanos(1),
            ports: (0..self.hosts).map(|host| (mac(host), RATE, slot)).collect(),
        };
        let link = (Nanos(5 * US), Nanos(60 * US));
        let jitter = Jitter { up: link, down: link, wake: (Nanos(0), Nanos(self.wake_us * US)) };
        Rack::new((0..self.hosts).map(config).collect(), switch, jitter, self.seed)
    }

    fn run(&self) -> Run {
        let mut rack = self.rack();
        rack.set_faults(self.faults);
        let (mut sent, mut numbers) = (HashSet::new(), HashMap::new());
        let mut bursts = self.bursts.clone();
        bursts.sort_by_key(|burst| burst.4);
        for (from, to, frames, payload, at_us) in &bursts {
            let (from, to) = (from % self.hosts, to % self.hosts);
            for _ in 0..*frames {
                let number = numbers.entry((from, to)).or_insert(0u32);
                *number += 1;
                rack.app(from, frame((from, to, *number), *payload), Nanos(at_us * US));
                sent.insert((from, to, *number));
            }
        }
        if let Some((host, at_us, pause_us)) = self.crash {
            rack.run_until(Nanos(at_us * US));
            rack.crash(host % self.hosts);
            rack.run_until(Nanos((at_us + pause_us) * US));
            rack.restart(host % self.hosts);
        }
        // Far beyond the last burst, the faults' end and every timeout.
        rack.run_until(Nanos(20_000 * MS));
        let mut delivered = vec![Vec::new(); self.hosts];
        for delivery in rack.deliveries.drain(..) {
            delivered[delivery.host].extend(key(&delivery.frame, 14));
        }
        Run { rack, sent, delivered }
    }

    fn lossless(&self) -> bool {
        self.faults.until == Nanos::ZERO && self.crash.is_none()
    }
}

impl Run {
    fn dropped(&self, reason: Reason) -> u64 {
        self.endpoints().map(|(_, endpoint)| endpoint.stats().dropped(reason)).sum()
    }

    fn endpoints(&self) -> impl Iterator<Item = (usize, &Endpoint)> {
        (0..self.delivered.len()).filter_map(|host| Some((host, self.rack.endpoint(host)?)))
    }

    fn reserved(&self) -> u64 {
        let (switch, now) = (self.rack.switch(), self.rack.now());
        let both = |host| {
            switch.allocator.reserved(Side::In, host, now) + switch.allocator.reserved(Side::Out, host, now)
        };
        (0..self.delivered.len()).map(both).sum()
    }

    fn counter(&self, name: &str) -> u64 {
        let of = |endpoint: &Endpoint| {
            endpoint.counters().iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| *value)
        };
        self.endpoints().map(|(_, endpoint)| of(endpoint)).sum()
    }
}

/// The global checks.
fn check(plan: &Plan) -> Result<(), TestCaseError> {
    let run = plan.run();
    // Once the faults are over, everything queued is sent and nothing is left to do.
    for (host, endpoint) in run.endpoints() {
        prop_assert_eq!(endpoint.backlog_frames(), 0, "host {} still has frames", host);
        prop_assert_eq!(endpoint.next_timeout(), None, "host {} still waits", host);
    }
    // Every frame once; in order where the links keep the order and the switch takes no unsolicited
    // frame out of the middle of a burst (which is sent again behind its later frames).
    let gaps = run.rack.switch().drops().contains_key("unsolicited_over_threshold");
    let ordered = plan.faults.reorder + plan.faults.duplicate == 0 && !gaps;
    let mut arrived = HashSet::new();
    for (host, keys) in run.delivered.iter().enumerate() {
        let mut newest = HashMap::new();
        for key @ (from, to, number) in keys.iter().copied() {
            prop_assert!(to == host || to == from, "{:?} reached host {}", key, host);
            prop_assert!(run.sent.contains(&key), "{:?} was never sent", key);
            // Best effort has no sequence numbers: the links' copies of it stay.
            let tagged = to != from && plan.mode.is_some();
            if to == host {
                // A restarted receiver has forgotten its deliveries.
                let remembers = plan.crash.is_none_or(|(dead, _, _)| dead % plan.hosts != host);
                let once = arrived.insert(key) || !remembers || !tagged && plan.faults.duplicate > 0;
                prop_assert!(once, "{:?} came twice", key);
                let before: u32 = newest.insert((from, to), number).unwrap_or(0);
                let in_order = before < number || !ordered || !remembers;
                prop_assert!(in_order, "{:?} after {}", key, before);
            }
        }
    }
    // Missing frames were lost on the way, died with a host or were dropped for a reason.
    let at = if plan.mode.is_none() { 14 } else { 26 };
    let lost: HashSet<Key> =
        run.rack.lost.iter().flat_map(|frame| [key(frame, 14), key(frame, at)]).flatten().collect();
    let missing = run.sent.iter().filter(|key| key.0 != key.1 && !arrived.contains(*key));
    let unexplained: Vec<_> = missing.filter(|key| !lost.contains(*key)).collect();
    if plan.crash.is_none() {
        let dropped = run.dropped(Reason::QueueFull) + run.dropped(Reason::TotalFull);
        prop_assert_eq!(unexplained.len() as u64, dropped, "unexplained: {:?}", unexplained);
    }
    if plan.crash.is_none() {
        prop_assert_eq!(run.reserved(), 0, "reservations are left over");
    }
    if plan.lossless() {
        prop_assert_eq!(run.counter("rsv_repeated"), 0);
        prop_assert_eq!(run.rack.switch().not_now(), 0, "a lane is used too early");
        let demoted = run.rack.switch().demoted();
        prop_assert!(demoted.is_empty(), "honest hosts are demoted: {:?}", demoted);
        for reason in [Reason::GrtUnasked, Reason::GrtDuplicate, Reason::GrtMismatch, Reason::BadKind] {
            prop_assert_eq!(run.dropped(reason), 0, "{:?}", reason);
        }
        // The queue at a port is bounded by the frames that can be on their way there at the same
        // time.
        let bursts = plan.hosts * plan.in_flight * usize::from(plan.k);
        let bound = (16 + 2 * bursts as u64) * 1530 + unsolicited_bytes(plan, &run);
        for host in 0..plan.hosts {
            let depth = run.rack.switch().port(host).depth_max_bytes;
            prop_assert!(plan.mode.is_none() || depth <= bound, "{} over {}", depth, bound);
        }
    }
    Ok(())
}

/// Unsolicited and best-effort frames arrive at any time: they add their length to a queue.
fn unsolicited_bytes(plan: &Plan, run: &Run) -> u64 {
    let frames = run.counter("unsolicited_out") + run.counter("best_effort_out") * plan.hosts as u64;
    frames * 1530
}

fn plans(mode: Option<Mode>, faulty: bool) -> impl Strategy<Value = Plan> {
    let hosts = 2usize..6;
    let host = 0usize..6;
    let burst = (host.clone(), host.clone(), 1u8..12, 0usize..1500, 0u64..20_000);
    let bursts = proptest::collection::vec(burst, 1..40);
    let fault = 0u32..200_000;
    let faults =
        (fault.clone(), fault.clone(), fault.clone(), fault).prop_map(move |(c, d, u, r)| match faulty {
            true => Faults { lose_control: c, lose_data: d, duplicate: u, reorder: r, until: Nanos(60 * MS) },
            false => Faults::default(),
        });
    let crash = proptest::option::of((host, 0u64..20_000, 1u64..20_000));
    let crash = crash.prop_map(move |crash| crash.filter(|_| faulty));
    let limits = (1u8..9, 0u32..20, 1usize..4, 0u8..3, 4usize..64);
    (hosts, limits, bursts, faults, 0u64..200, crash, any::<u64>()).prop_map(
        move |(
            hosts,
            (k, t_slots, in_flight, spare_lanes, queue_limit),
            bursts,
            faults,
            wake_us,
            crash,
            seed,
        )| Plan {
            mode,
            hosts,
            k,
            t_slots,
            in_flight,
            spare_lanes,
            queue_limit,
            bursts,
            faults,
            wake_us,
            crash,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Seeds of past failures, beside this file: they are run before new ones.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn counter_keeps_every_promise(plan in plans(Some(Mode::Counter), false)) { check(&plan)?; }

    #[test]
    fn clock_keeps_every_promise(plan in plans(Some(Mode::Clock), false)) { check(&plan)?; }

    #[test]
    fn plain_ethernet_keeps_every_promise(plan in plans(None, false)) { check(&plan)?; }

    #[test]
    fn plain_ethernet_survives_faults(plan in plans(None, true)) { check(&plan)?; }

    #[test]
    fn counter_survives_faults(plan in plans(Some(Mode::Counter), true)) { check(&plan)?; }

    #[test]
    fn clock_survives_faults(plan in plans(Some(Mode::Clock), true)) { check(&plan)?; }

    /// Slots that a dead host had reserved remain until the controller takes them back, exactly.
    #[test]
    fn what_a_dead_host_had_reserved_is_taken_back(mut plan in plans(Some(Mode::Counter), true)) {
        // It stays dead.
        let (dead, at_us, _) = plan.crash.unwrap_or((0, 5_000, 0));
        plan.crash = Some((dead, at_us, 10_000_000));
        let mut run = plan.run();
        let dead = dead % plan.hosts;
        for destination in 0..plan.hosts {
            let allocator = &mut run.rack.switch_mut().allocator;
            for cell in (0..=u8::MAX).take_while(|cell| allocator.has_cell(*cell)).collect::<Vec<_>>() {
                allocator.forget((dead, destination), cell);
            }
        }
        prop_assert_eq!(run.reserved(), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(plan in plans(Some(Mode::Clock), true)) {
        let (one, two) = (plan.run(), plan.run());
        prop_assert_eq!(one.rack.digest, two.rack.digest);
        prop_assert_eq!(one.delivered, two.delivered);
    }
}
