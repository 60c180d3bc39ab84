//! Hosts in the rack: arriving frames, and the work of machines and threads.

use super::mail::{Notice, ToSwitch};
use super::{Group, Planted};
use crate::experiment::Arrivals;
use crate::host::Fed;
use crate::message::{Head, host_of};
use crate::record::Point;
use crate::scheme::WatchHost;
use crate::transport::wire::Pdu;
use p4rack_fabric::{Event, HostMachine as _, Machine as _};
use p4rack_wire::Nanos;

impl Group {
    /// A frame arrives at a host.
    pub(super) fn enter_host(&mut self, at: usize) {
        let measures = (self.measuring, self.measures());
        let node = &mut self.nodes[at];
        let Some(received) = self.inlets.ends[at].receive(self.now) else { return };
        let frame = &received.frame[..];
        node.digest_down.frame(self.now, frame);
        if self.now >= node.host.dies {
            self.counts.frames_to_dead += 1;
            return self.frames.release(received.frame);
        }
        let concerns = node.watcher.enters(frame, received.arrived, measures, &mut self.counts.scheme);
        let host = node.host.index;
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::HostIn(host), self.now, frame);
        }
        if let Some(hostile) = &mut node.host.hostile {
            hostile.handle_link(frame, self.now, self.now);
        }
        let app = node.host.endpoint.forward_link(frame, received.arrived, self.now);
        if let (Some(recorder), Some(app)) = (&mut self.recorder, app) {
            let (addresses, ether_type, rest) = app.parts(frame);
            recorder.note(Point::App(host), self.now, &[addresses, &ether_type, rest].concat());
        }
        let head = app.and_then(|app| Head::parse(app.ether_type, app.rest(frame)));
        // Frames of transports carry more fields.
        let mut carried = None;
        if let (true, Some(head), Some(app)) = (self.plan.transports, head, app)
            && self.plan.flows.get(head.flow as usize).is_some_and(|flow| !flow.raw)
        {
            carried = Pdu::parse(app.ether_type, app.rest(frame));
        }
        self.frames.release(received.frame);
        // A grant may show that frames sent ahead of it have arrived, which makes room for others.
        if let Some(destination) = concerns
            && destination < self.plan.group_of.len()
        {
            self.feed(at, destination);
        }
        let answers = self.transport_frames;
        match (&carried, head) {
            (Some(frame), _) => {
                self.counts.frames_delivered += 1;
                self.take_transport(at, frame);
            }
            (None, Some(head)) => self.give(at, head),
            (None, None) => {}
        }
        // Data goes to the threads. It gives the machine something to send only if a transport answers it.
        let only_data = concerns.is_none() && self.plan.reports.is_none();
        if !only_data || self.transport_frames != answers {
            self.drain_host(at);
        }
    }

    /// The machine's timeout has expired.
    pub(super) fn wake(&mut self, at: usize) {
        self.nodes[at].host.endpoint.handle_timeout(self.now);
        self.drain(at, true);
    }

    /// Sends the ready frames of a host's machine, and refills the machine.
    pub(super) fn drain_host(&mut self, at: usize) {
        self.drain(at, false);
    }

    /// The same; `due`: the machine is known to have something ready.
    fn drain(&mut self, at: usize, due: bool) {
        let one = &mut self.nodes[at].host;
        let asleep =
            Planted::Sleep.is(self.plan.planted) && one.index == 1 && self.counts.frames_delivered > 1_000;
        if one.hostile.is_some() {
            return self.attack(at);
        }
        if asleep || self.now >= one.dies {
            one.machine_due = Nanos::MAX;
            return;
        }
        let mut next = if due { self.now } else { one.due() };
        if next <= self.now {
            next = self.send_due(at);
        }
        if let Some(delay) = self.plan.reports {
            let one = &mut self.nodes[at].host;
            while let Some(Event::SenderSilent(sender)) = one.endpoint.poll_event(self.now) {
                if let Some(sender) = host_of(&sender.0) {
                    let (sender, destination, now) = (sender as u16, one.index as u16, self.now);
                    self.outbox.push(now + delay, ToSwitch::Silent { sender, destination, now });
                }
            }
            next = one.due();
        }
        self.nodes[at].host.machine_due = next;
    }

    /// Sends due frames; returns the next due time.
    fn send_due(&mut self, at: usize) -> Nanos {
        let measured = self.measures();
        loop {
            let node = &mut self.nodes[at];
            let mut frame = self.frames.take(node.host.endpoint.next_is_control());
            if node.host.endpoint.poll_link(self.now, &mut frame).is_none() {
                self.frames.release(frame);
                return node.host.due();
            }
            let destination = host_of(&frame);
            node.watcher.leaves(&frame, self.now, measured, &mut self.counts.scheme);
            let host = node.host.index;
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, &frame);
            }
            let mut leaves = self.now;
            if Planted::Address.is(self.plan.planted) {
                leaves += Nanos(frame.as_ptr() as u64 >> 5 & 63);
            }
            self.outbox.send(host, &mut node.up, frame, leaves, &mut self.frames);
            if let Some(destination) = destination.filter(|d| node.host.has_for(*d)) {
                self.feed(at, destination);
            }
            let due = self.nodes[at].host.due();
            if due > self.now {
                return due;
            }
        }
    }

    /// Delivers a part of a message to a thread.
    #[inline]
    fn give(&mut self, at: usize, head: Head) {
        if Planted::Swap.is(self.plan.planted) {
            if self.counts.frames_delivered == 1_000 && self.held.is_none() {
                self.held = Some(Some(head));
                return;
            }
            if self.counts.frames_delivered > 1_500
                && let Some(held) = self.held.as_mut().and_then(Option::take)
            {
                self.take_part(at, &held);
            }
        }
        self.take_part(at, &head);
    }

    /// Fills a host's machine with frames for a destination.
    pub(super) fn feed(&mut self, at: usize, destination: usize) {
        loop {
            let (node, outbox, now) = (&mut self.nodes[at], &mut self.outbox, self.now);
            let given = &mut self.counts.frames_given;
            let fed = node.host.feed(destination, &mut node.outflows, now, given, |flow, message| {
                outbox.push(Nanos::MAX, ToSwitch::Notice(flow, Notice::Begins(message, now)));
            });
            match fed {
                Fed::Nothing => return,
                Fed::Carried(flow) => self.plan_timer(at, flow),
                Fed::FlowEmpty(flow) => {
                    self.plan_timer(at, flow);
                    let traffic = usize::from(self.nodes[at].outflows[flow as usize].traffic);
                    let one = &self.plan.traffic[traffic];
                    if one.spec.arrivals == Arrivals::Saturate && now < one.stop {
                        self.submit(at, flow, now, true);
                    }
                }
            }
        }
    }
}
