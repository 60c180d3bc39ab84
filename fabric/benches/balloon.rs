//! Reservations a second that the balloon's service executes on one core, with 64 memory nodes that answer without delay: Reserve, Grant,
//! Return, Fence, Zero, and the nodes' own work. Half of the pool is lent, in extents of mixed sizes.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_fabric::Machine as _;
use p4rack_fabric::balloon::{
    Access, Ask, Balloon, Config, EXTENT_BYTES_MIN, Extent, Lent, Memory, Node, Received, Reply, Request,
    Sent, Session, Term,
};
use p4rack_wire::{Nanos, SplitMix};
use std::collections::VecDeque;

const NODES: u16 = 64;
const NODE_BYTES: u64 = 64 << 30;
const RESERVATIONS: u64 = 1_000;
const SESSION: Session = Session { holder: 1, instance: 1 };

/// Memory that costs nothing.
struct Nothing;

impl Memory for Nothing {
    fn grant(&mut self, _extent: &Extent) -> Option<Access> {
        Access::new(&[7; 16])
    }

    fn revoke(&mut self, _extent: &Extent) {}

    fn zero(&mut self, _extent: &Extent) -> bool {
        true
    }
}

struct Rig {
    service: Balloon,
    nodes: Vec<Node>,
    number: u64,
}

impl Rig {
    fn new() -> Rig {
        let service = Balloon::new(Config::new(NODES), Term { number: 1, service: 1 }, Nanos::ZERO);
        let nodes = (0..NODES).map(|number| Node::new(number.into(), NODE_BYTES, 1 << 16)).collect();
        let mut rig = Rig { service: service.unwrap_or_else(|error| panic!("{error}")), nodes, number: 0 };
        rig.settle();
        rig.ask(Ask::Open);
        rig
    }

    /// Executes due work. Returns the last reply.
    fn settle(&mut self) -> Option<Reply> {
        let mut last = None;
        while let Some(sent) = self.service.poll_link(Nanos::ZERO, &mut ()) {
            match sent {
                Sent::Reply(_, reply) => last = Some(reply),
                Sent::Command(number, command) => {
                    let answer = self.nodes[usize::from(number)].handle(&command, &mut Nothing);
                    self.service.handle_link(Received::Answer(number, answer), Nanos::ZERO, Nanos::ZERO);
                }
            }
        }
        last
    }

    fn ask(&mut self, ask: Ask) -> Option<Reply> {
        let request = Received::Request(0, Request { session: SESSION, ask });
        self.service.handle_link(request, Nanos::ZERO, Nanos::ZERO);
        self.settle()
    }

    fn reserve(&mut self, bytes: u64) -> Lent {
        self.number += 1;
        match self.ask(Ask::Reserve { number: self.number, bytes }) {
            Some(Reply::Reserved(lent)) => lent,
            other => panic!("{other:?}"),
        }
    }
}

fn reservations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("balloon");
    group.throughput(Throughput::Elements(RESERVATIONS));
    let (mut rig, mut random) = (Rig::new(), SplitMix(1));
    let mut bytes = move || EXTENT_BYTES_MIN << random.between(0, 6);
    let (mut lent, mut held_bytes) = (VecDeque::new(), 0);
    while held_bytes < u64::from(NODES) * NODE_BYTES / 2 {
        let one = rig.reserve(bytes());
        held_bytes += one.extent.bytes;
        lent.push_back(one);
    }
    group.bench_function("reserve and return, 64 nodes", |bencher| {
        bencher.iter(|| {
            for _ in 0..RESERVATIONS {
                lent.push_back(rig.reserve(bytes()));
                let first = lent.pop_front().map(|lent| rig.ask(Ask::Return(lent.extent)));
                assert_eq!(first, Some(Some(Reply::Done)));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, reservations);
criterion_main!(benches);
