//! Hosts in the rack: what comes to them, and what their machines and threads do.

use super::{Planted, World};
use crate::experiment::Arrivals;
use crate::flow::Machine;
use crate::host::Fed;
use crate::message::{Head, host_of};
use crate::record::Point;
use crate::scheme::Watch;
use crate::transport::wire::Pdu;
use p4rack_fabric::HostMachine as _;
use p4rack_wire::Nanos;

impl World {
    /// A frame comes to a host.
    pub(super) fn enter_host(&mut self, host: usize) {
        let node = &mut self.nodes[host];
        let Some(received) = node.down.receive(self.now) else { return };
        let frame = self.frames.get(received.frame);
        node.digest_down.frame(self.now, frame);
        if self.now >= node.host.dies {
            self.frames_to_dead += 1;
            return self.frames.give_back(received.frame);
        }
        let concerns = self.watcher.enters_host(host, frame, received.arrived, self.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::HostIn(host), self.now, frame);
        }
        if let Some(hostile) = &mut node.host.hostile {
            hostile.handle_link(frame, self.now);
        }
        let app = node.host.endpoint.forward_link(frame, received.arrived, self.now);
        if let (Some(recorder), Some(app)) = (&mut self.recorder, app) {
            let (addresses, ether_type, rest) = app.parts(frame);
            recorder.note(Point::App(host), self.now, &[addresses, &ether_type, rest].concat());
        }
        let head = app.and_then(|app| Head::parse(app.ether_type, app.rest(frame)));
        // Frames of transports say more.
        let mut carried = None;
        if let (true, Some(head), Some(app)) = (self.transports, head, app)
            && self.flows.get(head.flow as usize).is_some_and(|flow| !matches!(flow.transport, Machine::Raw))
        {
            carried = Pdu::parse(app.ether_type, app.rest(frame));
        }
        self.frames.give_back(received.frame);
        // A grant may show that frames sent ahead of it have arrived, so that there is room for others.
        if let Some(destination) = concerns
            && destination < self.nodes.len()
        {
            self.feed(host, destination);
        }
        let told = self.told;
        match (&carried, head) {
            (Some(frame), _) => {
                self.frames_delivered += 1;
                self.take_transport(host, frame);
            }
            (None, Some(head)) => self.give(host, head),
            (None, None) => {}
        }
        // Data is for the threads: what the machine has to send depends on it only by what transports answer.
        let only_data = concerns.is_none() && self.watcher.controller_delay().is_none();
        if !only_data || self.told != told {
            self.drain_host(host);
        }
    }

    /// The machine's time has come.
    pub(super) fn wake(&mut self, host: usize) {
        self.nodes[host].host.endpoint.handle_timeout(self.now);
        self.drain(host, true);
    }

    /// Takes out what a host's machine has ready, and gives it what it has room for.
    pub(super) fn drain_host(&mut self, host: usize) {
        self.drain(host, false);
    }

    /// Likewise; `due`: it is known that the machine has something.
    fn drain(&mut self, host: usize, due: bool) {
        let asleep = Planted::Sleep.is(self.planted) && host == 1 && self.hops > 1_000;
        let one = &mut self.nodes[host].host;
        if one.hostile.is_some() {
            return self.attack(host);
        }
        if asleep || self.now >= one.dies {
            one.machine_due = Nanos::MAX;
            return;
        }
        let mut next = if due { self.now } else { one.due() };
        if next <= self.now {
            next = self.send_due(host);
        }
        if self.watcher.controller_delay().is_some() {
            let machine = &mut self.nodes[host].host.endpoint;
            self.watcher.ask_host(host, machine, self.now);
            self.inlets.hasten(self.nodes.len() + self.trunks.len(), self.watcher.controller_due());
            next = self.nodes[host].host.due();
        }
        self.nodes[host].host.machine_due = next;
    }

    /// Puts on the link what is due; when something is due again.
    fn send_due(&mut self, host: usize) -> Nanos {
        loop {
            let node = &mut self.nodes[host];
            let id = self.frames.take(node.host.endpoint.next_is_control());
            let frame = self.frames.get_mut(id);
            if !node.host.endpoint.poll_link(self.now, frame) {
                self.frames.give_back(id);
                return node.host.due();
            }
            let destination = host_of(frame);
            self.watcher.leaves_host(host, frame, self.now);
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, frame);
            }
            let mut leaves = self.now;
            if Planted::Address.is(self.planted) {
                leaves += Nanos(frame.as_ptr() as u64 >> 5 & 63);
            }
            node.up.send(id, leaves, &mut self.frames);
            self.inlets.hasten(host, node.up.due());
            if let Some(destination) = destination.filter(|d| node.host.has_for(*d)) {
                self.feed(host, destination);
            }
            let due = self.nodes[host].host.due();
            if due > self.now {
                return due;
            }
        }
    }

    /// Gives a thread a part of a message.
    #[inline]
    fn give(&mut self, host: usize, head: Head) {
        if Planted::Swap.is(self.planted) {
            if self.frames_delivered == 1_000 && self.held.is_none() {
                self.held = Some(Some(head));
                return;
            }
            if self.frames_delivered > 1_500
                && let Some(held) = self.held.as_mut().and_then(Option::take)
            {
                self.take_part(host, &held);
            }
        }
        self.take_part(host, &head);
    }

    /// Gives a host's machine frames for a destination as long as it has room.
    pub(super) fn feed(&mut self, host: usize, destination: usize) {
        loop {
            let fed =
                self.nodes[host].host.feed(destination, &mut self.flows, self.now, &mut self.frames_given);
            match fed {
                Fed::Nothing => return,
                Fed::Carried(flow) => self.plan_timer(flow),
                Fed::FlowEmpty(flow) => {
                    self.plan_timer(flow);
                    let traffic = usize::from(self.flows[flow as usize].traffic);
                    let one = &self.traffic[traffic];
                    if one.spec.arrivals == Arrivals::Saturate && self.now < one.stop {
                        self.submit(flow, self.now, true);
                    }
                }
            }
        }
    }
}
