//! The balloon's service takes any requests and answers, and its nodes any commands, in any order. Each request has at most one reply, the
//! service's extents and free ranges add up to the nodes' memory, and no two keys reach the same bytes.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::balloon::{
    Access, Answer, Ask, Balloon, Command, Config, EXTENT_BYTES_MIN, Epoch, Extent, Memory, Node, Order, Place,
    Received, Report, Reported, Request, Sent, Session, Term, Told, Why,
};
use p4rack_wire::Nanos;
use std::collections::HashSet;

const NODES: u16 = 2;
const UNITS: u64 = 8;

/// An extent near those that there are.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Near {
    node: u8,
    unit: u8,
    power: u8,
    term: u8,
    number: u8,
}

/// Two services have each number.
fn term(of: u8) -> Term {
    Term { number: (of % 8 / 2).into(), service: (of % 2).into() }
}

impl Near {
    fn extent(self) -> Extent {
        Extent {
            place: Place { node: (self.node % 3).into(), start: u64::from(self.unit % 10) * EXTENT_BYTES_MIN },
            bytes: (EXTENT_BYTES_MIN / 2) << (self.power % 6),
            epoch: Epoch { term: term(self.term), number: self.number.into() },
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Step {
    Ask { holder: u8, instance: u8, what: u8, number: u8, power: u8, near: Near },
    /// About an extent that there is.
    AskKnown { what: u8, nth: u8 },
    /// A node executes one of the commands that have left.
    Execute { nth: u8, keeps: bool },
    /// An answer that no node has given.
    Answer { node: u8, instance: u8, what: u8, near: Near },
    /// A command that the service has not given.
    Command { node: u8, instance: u8, what: u8, near: Near },
    /// A report that no node has given.
    Report { node: u8, instance: u8, nonce: u8, extents: Vec<Near> },
    Restart { node: u8 },
    Wait(u16),
}

#[derive(Default)]
struct Keys {
    extents: Vec<Extent>,
}

impl Memory for Keys {
    fn grant(&mut self, extent: &Extent) -> Option<Access> {
        let end = |extent: &Extent| extent.place.start + extent.bytes;
        let overlaps = |of: &Extent| of.place.start < end(extent) && extent.place.start < end(of);
        assert!(!self.extents.iter().any(overlaps), "two keys reach the same bytes");
        self.extents.push(*extent);
        Access::new(&[1])
    }

    fn revoke(&mut self, extent: &Extent) {
        self.extents.retain(|of| of.place.start != extent.place.start);
    }

    fn zero(&mut self, extent: &Extent) -> bool {
        assert!(!self.extents.iter().any(|of| of.place.start == extent.place.start), "zeroed in use");
        true
    }
}

fn told(what: u8, extent: Extent) -> Told {
    match what % 10 {
        0 => Told::Stale(extent.epoch.term),
        1 => Told::OtherInstance,
        2 => Told::Alive,
        3 => Told::Granted(extent, Access::new(&[2]).unwrap()),
        4 => Told::NotGranted(extent, [Why::Late, Why::Taken, Why::Full][usize::from(what / 10 % 3)]),
        5 => Told::Fenced(extent),
        6 => Told::Zeroed(extent),
        7 => Told::Zeroing(extent),
        8 => Told::OtherNumber { nonce: extent.epoch.number, node: extent.place.node },
        _ => Told::Refused(extent),
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let config = Config { extents_max: 12, holders_max: 2, numbers_max: 3, replies_max: 5, ..Config::new(NODES) };
    let mut service = Balloon::new(config, term(4), Nanos::ZERO).unwrap();
    let node = |instance| (Node::new(instance, UNITS * EXTENT_BYTES_MIN, 6), Keys::default());
    let mut nodes = [node(1), node(2)];
    let (mut now, mut callers, mut instances) = (Nanos::ZERO, 0, 2);
    let mut open = HashSet::new();
    let mut commands: Vec<(u16, Command)> = Vec::new();
    for step in steps {
        match step {
            Step::Ask { holder, instance, what, number, power, near } => {
                callers += 1;
                open.insert(callers);
                let session = Session { holder: (holder % 3).into(), instance: (instance % 4).into() };
                let ask = match what % 7 {
                    0 => Ask::Open,
                    1 => Ask::Renew,
                    2 => Ask::Reserve {
                        number: number.into(),
                        bytes: (EXTENT_BYTES_MIN / 2) << (power % 6),
                    },
                    3 => Ask::Online(near.extent()),
                    4 => Ask::Offline(near.extent()),
                    5 => Ask::Return(near.extent()),
                    _ => Ask::Close,
                };
                service.handle_link(Received::Request(callers, Request { session, ask }), now, now);
            }
            Step::AskKnown { what, nth } => {
                let known: Vec<_> = service.extents().collect();
                let some = known.get(usize::from(nth) % known.len().max(1));
                if let Some((session, extent)) = some.and_then(|of| Some((of.session?, of.extent))) {
                    callers += 1;
                    open.insert(callers);
                    let ask = match what % 3 {
                        0 => Ask::Online(extent),
                        1 => Ask::Offline(extent),
                        _ => Ask::Return(extent),
                    };
                    service.handle_link(Received::Request(callers, Request { session, ask }), now, now);
                }
            }
            Step::Execute { nth, keeps } if !commands.is_empty() => {
                let nth = usize::from(nth) % commands.len();
                let (number, command) = commands[nth].clone();
                if !keeps {
                    commands.remove(nth);
                }
                let (node, keys) = &mut nodes[usize::from(number)];
                let answer = node.handle(&command, keys);
                service.handle_link(Received::Answer(number, answer), now, now);
            }
            Step::Execute { .. } => {}
            Step::Answer { node, instance, what, near } => {
                let answer = Answer { instance: instance.into(), told: told(what, near.extent()) };
                service.handle_link(Received::Answer((node % 3).into(), answer), now, now);
            }
            Step::Command { node, instance, what, near } => {
                let extent = near.extent();
                let order = match what % 5 {
                    0 => Order::Join { nonce: near.number.into(), node: extent.place.node },
                    1 => Order::Probe,
                    2 => Order::Grant { extent, session: Session { holder: 1, instance: 1 }, number: 1 },
                    3 => Order::Fence(extent),
                    _ => Order::Zero(extent),
                };
                let command = Command { term: term(near.term), instance: instance.into(), order };
                let (node, keys) = &mut nodes[usize::from(node % 2)];
                node.handle(&command, keys);
            }
            Step::Report { node, instance, nonce, extents } => {
                let reported = |near: Near| {
                    let Extent { place, bytes, epoch } = near.extent();
                    let session = Session { holder: (near.node % 3).into(), instance: epoch.term.number };
                    let lent = (near.power < 200).then(|| (session, epoch.number, Access::new(&[3]).unwrap()));
                    Reported { start: place.start, bytes, epoch, lent }
                };
                let extents = extents.into_iter().map(reported).collect();
                let report = Report { nonce: nonce.into(), bytes: UNITS * EXTENT_BYTES_MIN, extents };
                let answer = Answer { instance: instance.into(), told: Told::Joined(report) };
                service.handle_link(Received::Answer((node % 2).into(), answer), now, now);
            }
            Step::Restart { node: number } => {
                instances += 1;
                nodes[usize::from(number % 2)] = node(instances);
            }
            Step::Wait(ms) => now = now.saturating_add(Nanos::from_millis(ms.into())),
        }
        service.handle_timeout(now);
        let mut polls = 0;
        while let Some(sent) = service.poll_link(now, &mut ()) {
            polls += 1;
            assert!(polls < 1_000, "there is an end of what it sends");
            match sent {
                Sent::Reply(caller, _) => assert!(open.remove(&caller), "a request has one reply"),
                Sent::Command(number, command) => {
                    commands.push((number, command));
                    if commands.len() > 64 {
                        commands.remove(0);
                    }
                }
            }
        }
        assert!(service.next_call(Nanos::ZERO).is_none_or(|at| at > now), "it has done what is due");
        if service.end().is_none() {
            for facts in service.nodes().into_iter().filter_map(|node| node.memory) {
                let sum = facts.free_bytes + facts.lent_bytes + facts.fencing_bytes + facts.zeroing_bytes;
                assert_eq!(sum, facts.bytes, "{facts:?}");
            }
        }
        assert!(service.extents().count() <= 12 + 6);
    }
});
