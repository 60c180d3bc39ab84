//! A group of nodes, simulated by one worker at a time.

use super::counts::Counts;
use super::host::HostNode;
use super::plan::Plan;
use super::switch::SwitchNode;
use super::wires::{Mail, Wires};
use crate::world::fetch;
use p4rack_wire::Nanos;
use std::sync::Arc;

/// A node of the network.
#[derive(Debug)]
pub(super) enum Node {
    Switch(Box<SwitchNode>),
    Host(Box<HostNode>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Group {
    plan: Arc<Plan>,
    pub nodes: Vec<Node>,
    pub wires: Wires,
    pub counts: Counts,
    /// Mail from each group.
    pub inboxes: Vec<Vec<Mail>>,
    /// The last time window in which its nodes have run.
    pub window: u64,
}

impl Group {
    /// A group of nodes with their links.
    pub fn new(plan: Arc<Plan>, nodes: Vec<Node>, wires: Wires) -> Group {
        let inboxes = wires.outboxes.iter().map(|_| Vec::new()).collect();
        let mut group = Group { counts: Counts::new(&plan), plan, nodes, wires, inboxes, window: 0 };
        for (at, node) in group.nodes.iter().enumerate() {
            let dues = &mut group.wires.inlets[at].dues;
            match node {
                Node::Host(host) => {
                    (0..host.out.len()).for_each(|out| dues.set(out + 1, host.due_of(out)));
                    if host.agent.is_some() {
                        dues.set(host.agent_component(), Nanos::ZERO);
                    }
                    if host.machines.is_some() {
                        dues.set(host.memory_component(), Nanos::ZERO);
                    }
                }
                Node::Switch(switch) => {
                    let due = switch.switch.next_timeout().unwrap_or(Nanos::MAX);
                    dues.set(switch.own_component(), due);
                }
            }
        }
        group
    }

    /// Reads mail in the order of groups.
    pub fn take_mail(&mut self) {
        for inbox in &mut self.inboxes {
            fetch(inbox.iter().map(|mail| &mail.frame.frame));
            self.wires.take(inbox);
        }
    }

    /// Runs the nodes up to `until`, before which none of them can affect another.
    pub fn run(&mut self, until: Nanos) {
        let Group { plan, nodes, wires, counts, .. } = self;
        // A node has few frames in a window, and each would cost a cache miss.
        let ends = wires.inlets.iter().flat_map(|inlets| &inlets.ends);
        fetch(ends.filter_map(|end| end.before(until)));
        for (at, node) in nodes.iter_mut().enumerate() {
            let mut next = wires.inlets[at].dues.first();
            if next.1 >= until {
                continue;
            }
            wires.inlets[at].until = until;
            match node {
                Node::Switch(switch) => {
                    while next.1 < until {
                        switch.step(at, next, plan, wires);
                        next = wires.inlets[at].dues.first();
                    }
                }
                Node::Host(host) => {
                    while next.1 < until {
                        host.step(at, next, plan, wires, counts);
                        next = wires.inlets[at].dues.first();
                    }
                }
            }
        }
    }
}
