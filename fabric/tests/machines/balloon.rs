//! The balloon's service, with two memory nodes.

use super::driver::Rig;
use p4rack_fabric::Machine;
use p4rack_fabric::balloon::{
    Access, Answer, Ask, Balloon, Config, EXTENT_BYTES_MIN, Extent, Memory, Node, Received, Request, Sent,
    Session, Term,
};
use p4rack_wire::Nanos;

const NODES: u16 = 2;

struct Nothing;

impl Memory for Nothing {
    fn grant(&mut self, _extent: &Extent) -> Option<Access> {
        Access::new(&[])
    }

    fn revoke(&mut self, _extent: &Extent) {}

    fn zero(&mut self, extent: &Extent) -> bool {
        // Each other time it takes longer.
        extent.epoch.number.is_multiple_of(2)
    }
}

/// A service.
pub struct Service {
    machine: Balloon,
    nodes: Vec<Node>,
    callers: u64,
    lent: Vec<(Session, Extent)>,
}

impl Service {
    pub fn new() -> Service {
        let us = Nanos::from_micros;
        let (lease, retry, probe, grace) = (us(40), us(3), us(10), us(20));
        let config = Config { lease, retry, probe, grace, grants_max: 2, ..Config::new(NODES) };
        let machine = Balloon::new(config, Term { number: 1, service: 1 }, Nanos::ZERO).unwrap();
        let node = |instance: u16| Node::new(instance.into(), 8 * EXTENT_BYTES_MIN, 5);
        Service { machine, nodes: (0..NODES).map(node).collect(), callers: 0, lent: Vec::new() }
    }
}

impl Rig for Service {
    type Machine = Balloon;
    type Mail = (u16, Answer);
    const NAME: &'static str = "balloon";
    /// It probes the memory nodes forever.
    const RESTS: bool = false;

    fn machine(&mut self) -> &mut Balloon {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<(u16, Answer)> {
        self.callers += 1;
        let session = Session { holder: u32::from(what % 3), instance: u64::from(what / 128) };
        let known = self.lent.pop().filter(|_| what.is_multiple_of(2));
        let (session, ask) = match (what % 5, known) {
            (_, Some((session, extent))) => (session, Ask::Return(extent)),
            (0, None) => (session, Ask::Renew),
            (1, None) => (session, Ask::Open),
            (of, None) => {
                (session, Ask::Reserve { number: self.callers, bytes: EXTENT_BYTES_MIN << (of - 2) })
            }
        };
        self.machine.handle_link(Received::Request(self.callers, Request { session, ask }), now, now);
        let extents = self.machine.extents();
        self.lent = extents.filter_map(|facts| Some((facts.session?, facts.extent))).collect();
        Vec::new()
    }

    fn answer(&mut self, sent: Sent, _out: &(), _now: Nanos) -> Vec<(u16, Answer)> {
        match sent {
            Sent::Command(node, command) => {
                vec![(node, self.nodes[usize::from(node)].handle(&command, &mut Nothing))]
            }
            Sent::Reply(..) => Vec::new(),
        }
    }

    fn deliver(&mut self, (node, answer): (u16, Answer), now: Nanos) {
        self.machine.handle_link(Received::Answer(node, answer), now, now);
    }

    fn collect(&mut self, _now: Nanos) {}
}
