//! The promises of `HostMachine` to its drivers, for the machines of all frame schemes.

use super::driver::Rig;

use p4rack_fabric::common::{Reason, Station};
use p4rack_fabric::pl2::{self, Mode, Peer};
use p4rack_fabric::{Config, Endpoint, HostMachine, Machine, ethernet};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::{Control, Kind};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use proptest::prelude::*;

/// 1 bit a nanosecond.
const RATE: u64 = 1_000_000_000;
const QUEUE_LIMIT: usize = 6;
const TOTAL_LIMIT: usize = 14;
const PEERS: std::ops::Range<u8> = 2..5;
const TAGGED: usize = 18;

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

pub fn configs() -> [Config; 3] {
    let station = Station {
        queue_limit_frames: QUEUE_LIMIT,
        total_limit_frames: TOTAL_LIMIT,
        best_effort_limit_frames: 4,
        ..Station::new(mac(1), RATE)
    };
    let pl2 = |mode| {
        let alone = pl2::Config::new(mac(1), mode, RATE);
        let peers = PEERS.map(|host| Peer { mac: mac(host), slot: alone.slot, far: false }).collect();
        Config::Pl2(pl2::Config { station: station.clone(), peers, t_slots: 0, ..alone })
    };
    let ethernet = ethernet::Config { station: station.clone(), peers: PEERS.map(mac).collect() };
    [Config::Ethernet(ethernet), pl2(Mode::Counter), pl2(Mode::Clock)]
}

#[derive(Clone, Debug)]
enum Step {
    /// Frames to a peer, to a host that is none, or to all.
    App {
        to: u8,
        payload: usize,
        frames: u8,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (2u8..7, 0usize..1501, 1u8..5).prop_map(|(to, payload, frames)| Step::App { to, payload, frames }),
        (0u64..60_000).prop_map(Step::Wait),
    ]
}

/// A switch's grant for an RSV: some slots or nanoseconds later.
fn grant(frame: &[u8]) -> Option<Vec<u8>> {
    let control = Control::parse(frame.get(TAGGED..)?).ok().filter(|control| {
        control.kind == Kind::Rsv as u8 && frame[16..18] == EtherType::PL2_DEFAULT.0.to_be_bytes()
    })?;
    let mut grant = frame.to_vec();
    let (dst, src) = grant[..12].split_at_mut(6);
    dst.swap_with_slice(src);
    let recv_wait = control.id % 7;
    Control { kind: Kind::Grt as u8, recv_wait, ..control }.emit(&mut grant[TAGGED..]);
    Some(grant)
}

/// An endpoint and a switch that grants its requests.
pub struct Frames(Endpoint);

impl Frames {
    pub fn new(config: Config) -> Frames {
        Frames(Endpoint::new(config, 1, Nanos::ZERO))
    }
}

impl Rig for Frames {
    type Machine = Endpoint;
    type Mail = Vec<u8>;
    const NAME: &'static str = "endpoint";

    fn machine(&mut self) -> &mut Endpoint {
        &mut self.0
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Vec<u8>> {
        let mut frame = vec![what; Ethernet::BYTES + 5 * usize::from(what)];
        let dst = mac(2 + what % 4);
        Ethernet { dst, src: mac(1), ether_type: EtherType::IPV4 }.emit(&mut frame);
        (0..1 + what % 3).for_each(|_| self.0.handle_app(&frame, now));
        Vec::new()
    }

    fn answer(&mut self, (): (), out: &Vec<u8>, _now: Nanos) -> Vec<Vec<u8>> {
        grant(out).into_iter().collect()
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.0.handle_link(&mail, now, now);
    }

    fn collect(&mut self, now: Nanos) {
        while self.0.poll_app(&mut Vec::new()) {}
        while self.0.poll_event(now).is_some() {}
        let ledger = self.0.ledger();
        assert_eq!(ledger.unaccounted(), 0, "{ledger:?}");
    }
}

/// A machine and all that it has put on the link.
struct Host {
    machine: Endpoint,
    now: Nanos,
    left: Vec<(Nanos, Vec<u8>)>,
    /// It is woken when nothing is due, too.
    nervous: bool,
}

impl Host {
    fn drain(&mut self) {
        let mut out = Vec::new();
        while self.machine.poll_link(self.now, &mut out).is_some() {
            if let Some(grant) = grant(&out) {
                self.machine.handle_link(&grant, self.now, self.now);
            }
            self.left.push((self.now, out.clone()));
        }
    }

    fn run_until(&mut self, until: Nanos) {
        loop {
            let due = self.machine.next_timeout().filter(|due| *due <= until);
            if self.nervous {
                let end = due.unwrap_or(until);
                for part in 1..4 {
                    let between = Nanos(self.now.0 + end.0.saturating_sub(self.now.0) * part / 4);
                    if between < end {
                        self.machine.handle_timeout(between);
                        assert!(
                            self.machine.poll_link(between, &mut Vec::new()).is_none(),
                            "before it is due"
                        );
                    }
                }
            }
            let Some(due) = due else { break };
            self.now = self.now.max(due);
            self.machine.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn counter(&self, name: &str) -> u64 {
        self.machine.counters().iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

proptest! {
    /// Drivers that wake only when due and drivers that also wake at other times see the same; each frame waits, has
    /// left or was dropped and counted; queues are bounded, and empty in the end.
    #[test]
    fn a_driver_may_call_whenever_it_likes(steps in proptest::collection::vec(step(), 1..60), seed: u64) {
        for config in configs() {
            let host = |nervous| Host {
                machine: Endpoint::new(config.clone(), seed, Nanos::ZERO),
                now: Nanos::ZERO,
                left: Vec::new(),
                nervous,
            };
            let mut hosts = [false, true].map(host);
            for host in &mut hosts {
                for step in &steps {
                    match step {
                        Step::App { to, payload, frames } => {
                            let mut frame = vec![0; Ethernet::BYTES + payload];
                            let dst = if *to == 6 { MacAddr::BROADCAST } else { mac(*to) };
                            Ethernet { dst, src: mac(1), ether_type: EtherType::IPV4 }.emit(&mut frame);
                            (0..*frames).for_each(|_| host.machine.handle_app(&frame, host.now));
                            host.drain();
                        }
                        Step::Wait(ns) => host.run_until(host.now + Nanos(*ns)),
                    }
                    let backlog = host.machine.backlog_frames();
                    prop_assert!(backlog <= TOTAL_LIMIT);
                    let at: Vec<usize> = (0..PEERS.len()).map(|peer| host.machine.backlog_at(peer)).collect();
                    prop_assert!(at.iter().all(|waiting| *waiting <= QUEUE_LIMIT), "{:?}", at);
                    prop_assert!(at.iter().sum::<usize>() <= backlog, "{:?} of {}", at, backlog);
                    let gone = host.counter("scheduled_out") + host.counter("best_effort_out");
                    let dropped = host.machine.stats().app_frames_dropped();
                    prop_assert_eq!(host.counter("app_in"), gone + dropped + backlog as u64);
                }
                host.run_until(host.now + Nanos::from_secs(10));
                prop_assert_eq!((host.machine.backlog_frames(), host.machine.next_timeout()), (0, None));
            }
            let [calm, nervous] = &hosts;
            prop_assert_eq!(&calm.left, &nervous.left);
        }
    }
}

/// Frames for the application come out unchanged and are counted, with either driver; other frames don't come out.
#[test]
fn frames_reach_the_application_either_way() {
    for config in configs() {
        let mut machine = Endpoint::new(config, 1, Nanos::ZERO);
        let frame = |dst, src, byte| {
            let mut frame = vec![byte; 100];
            Ethernet { dst, src, ether_type: EtherType::IPV4 }.emit(&mut frame);
            frame
        };
        let (first, second) = (frame(mac(1), mac(2), 7), frame(MacAddr::BROADCAST, mac(3), 8));
        machine.handle_link(&first, Nanos::ZERO, Nanos::ZERO);
        let passed = machine.forward_link(&second, Nanos::ZERO, Nanos::ZERO).unwrap();
        assert_eq!(passed.parts(&second), (&second[..12], EtherType::IPV4.0.to_be_bytes(), &second[14..]));
        let mut out = Vec::new();
        assert!(machine.poll_app(&mut out) && out == first);
        assert!(!machine.poll_app(&mut out));
        for foreign in [frame(mac(9), mac(2), 7), frame(mac(1), mac(1), 7), first[..13].to_vec()] {
            machine.handle_link(&foreign, Nanos::ZERO, Nanos::ZERO);
            assert!(machine.forward_link(&foreign, Nanos::ZERO, Nanos::ZERO).is_none());
        }
        assert!(!machine.poll_app(&mut out));
        let (counters, drops) = (&machine.stats().counters, machine.stats());
        assert_eq!((counters.link_in, counters.app_out, counters.best_effort_in), (8, 2, 2));
        let reasons = [Reason::NotForUs, Reason::OwnSource, Reason::LinkTooShort];
        assert_eq!(reasons.map(|reason| drops.dropped(reason)), [2, 2, 2]);
        assert_eq!([1, 2, 4].map(|host| machine.position_of(mac(host))), [None, Some(0), Some(2)]);
        assert_eq!(machine.station().mac, mac(1));
        assert_eq!(machine.poll_event(Nanos::ZERO), None);
    }
}

/// Without reservations frames leave as they came, also to peers; with them they wait for their peer's, flow by flow.
#[test]
fn frames_to_peers_wait_for_reservations_only_where_there_are_some() {
    for reserve in [false, true] {
        let peers = vec![Peer { mac: mac(2), slot: Nanos(12_000), far: false }];
        let config =
            pl2::Config { peers, reserve, by_flow: true, ..pl2::Config::new(mac(1), Mode::Clock, RATE) };
        let mut machine = pl2::Endpoint::new(config, 1, Nanos::ZERO);
        let mut frame = vec![7; 100];
        Ethernet { dst: mac(2), src: mac(1), ether_type: EtherType::IPV4 }.emit(&mut frame);
        for flow in [5, 5, 6] {
            machine.handle_flow(&frame, flow, Nanos::ZERO);
        }
        let waiting = [5, 6, 7].map(|flow| machine.backlog_of(0, flow));
        assert_eq!((waiting, machine.backlog_of(1, 5)), (if reserve { [2, 1, 0] } else { [0; 3] }, 0));
        let mut out = Vec::new();
        assert!(machine.poll_link(Nanos::ZERO, &mut out).is_some());
        assert_eq!(out == frame, !reserve, "{out:02x?}");
    }
}
