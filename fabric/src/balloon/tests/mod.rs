//! Tests of the service with nodes: rules, a naive model, and a world with faults.

mod dram;
mod faults;
mod model;
mod pool;
mod rules;
mod services;
mod store;
mod world;

use super::*;
use crate::machine::Machine as _;
use dram::Dram;
use p4rack_wire::Nanos;
use store::Store as _;

const UNIT: u64 = EXTENT_BYTES_MIN;

fn config() -> Config {
    Config::new(1)
}

const A: Session = Session { holder: 1, instance: 10 };
const B: Session = Session { holder: 2, instance: 5 };

/// A rig whose sessions `A` and `B` are open.
fn open(config: Config, units: &[u64]) -> Rig {
    let mut rig = Rig::new(config, units);
    for session in [A, B] {
        assert_eq!(rig.ask(session, Ask::Open), Reply::Opened(Nanos::from_secs(10)));
    }
    rig
}

fn refused(rig: &mut Rig, session: Session, ask: Ask) -> Refusal {
    match rig.ask(session, ask) {
        Reply::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn reserve(number: u64, units: u64) -> Ask {
    Ask::Reserve { number, bytes: units * UNIT }
}

/// A service and nodes that answer without delay.
struct Rig {
    service: Balloon,
    nodes: Vec<(Node, Dram)>,
    now: Nanos,
    callers: u64,
    replies: Vec<(u64, Reply)>,
    /// Nodes that don't answer.
    silent: Vec<u16>,
}

/// A term of the service that most tests have.
fn term(number: u64) -> Term {
    Term { number, service: 1 }
}

fn session(holder: u32, instance: u64) -> Session {
    Session { holder, instance }
}

impl Rig {
    /// Nodes with that many units, which have joined.
    fn new(config: Config, units: &[u64]) -> Rig {
        let service = Balloon::new(config, term(1), Nanos::ZERO).unwrap();
        let node = |(number, units): (usize, &u64)| {
            (Node::new(100 + number as u64, units * UNIT, 64), Dram::new(*units, 0, 100 + number as u64))
        };
        let nodes = units.iter().enumerate().map(node).collect();
        let mut rig =
            Rig { service, nodes, now: Nanos::ZERO, callers: 0, replies: Vec::new(), silent: Vec::new() };
        rig.settle();
        rig
    }

    /// Does all that is due.
    fn settle(&mut self) {
        while let Some(sent) = self.service.poll_link(self.now, &mut ()) {
            match sent {
                Sent::Reply(caller, reply) => self.replies.push((caller, reply)),
                Sent::Command(number, command) if !self.silent.contains(&number) => {
                    let (node, dram) = &mut self.nodes[usize::from(number)];
                    let answer = node.handle(&command, dram);
                    assert_eq!(dram.problem, None);
                    self.service.handle_link(Received::Answer(number, answer), self.now, self.now);
                }
                Sent::Command(..) => {}
            }
        }
    }

    /// Sends a request without looking for its reply. Returns its number.
    fn send(&mut self, session: Session, ask: Ask) -> u64 {
        let caller = self.send_before(session, ask, |_| {});
        self.settle();
        caller
    }

    /// The same; `then` happens before the service has sent anything.
    fn send_before(&mut self, session: Session, ask: Ask, then: impl FnOnce(&mut Rig)) -> u64 {
        self.callers += 1;
        let request = Received::Request(self.callers, Request { session, ask });
        self.service.handle_link(request, self.now, self.now);
        then(self);
        self.callers
    }

    fn ask(&mut self, session: Session, ask: Ask) -> Reply {
        let caller = self.send(session, ask);
        self.reply(caller).expect("it was answered")
    }

    fn reply(&mut self, caller: u64) -> Option<Reply> {
        let at = self.replies.iter().position(|(of, _)| *of == caller)?;
        Some(self.replies.remove(at).1)
    }

    fn reserve(&mut self, session: Session, number: u64, units: u64) -> Lent {
        match self.ask(session, Ask::Reserve { number, bytes: units * UNIT }) {
            Reply::Reserved(lent) => lent,
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass, step by step.
    fn wait(&mut self, time: Nanos) {
        let end = self.now + time;
        loop {
            let next = self.service.next_call(Nanos::ZERO).filter(|at| *at <= end);
            self.now = self.now.max(next.unwrap_or(end));
            self.service.handle_timeout(self.now);
            self.settle();
            if next.is_none() {
                return;
            }
        }
    }

    /// The memory of a node that has joined.
    fn memory(&self, node: usize) -> MemoryFacts {
        self.service.nodes()[node].memory.expect("it has joined")
    }

    fn free_bytes(&self) -> u64 {
        self.service.nodes().iter().filter_map(|node| Some(node.memory?.free_bytes)).sum()
    }
}
