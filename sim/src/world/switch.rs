//! The switch in the rack: arriving and departing frames.

use super::mail::{Inlets, Outbox, ToHost, ToSwitch, fetch};
use super::node::Trunk;
use super::plan::Plan;
use super::{Before, Lane, Planted};
use crate::frames::{Frame, Frames};
use crate::message::host_of;
use crate::record::{Point, Recorder};
use crate::schedule::{Hasten as _, Schedule};
use crate::scheme::{Watch, Watcher};
use crate::switch::{Model, SwitchModel};
use crate::transport::wire;
use p4rack_wire::Nanos;
use std::sync::Arc;

/// The switch, its ends of the links, and its controller.
#[derive(Debug)]
pub(crate) struct Tor {
    pub plan: Arc<Plan>,
    pub now: Nanos,
    pub model: SwitchModel,
    /// Checks of the scheme.
    pub watcher: Watcher,
    /// Per host.
    pub lanes: Vec<Lane>,
    /// Ports shared by several hosts.
    pub trunks: Vec<Trunk>,
    /// Links from hosts. Their dues say when each link, then each trunk, and last the controller has something for the
    /// switch.
    pub inlets: Inlets<Schedule>,
    /// When the switch has something to send or another timeout.
    model_due: Nanos,
    pub frames: Frames,
    /// Per group: mail for its hosts, and mail from them.
    pub outboxes: Vec<Outbox<ToHost>>,
    pub inboxes: Vec<Vec<ToSwitch>>,
    /// Frames that passed the switch.
    pub hops: u64,
    /// Pauses requested by the switch, and pause and resume messages sent to hosts.
    pub pauses: u64,
    pub(super) pauses_sent: u64,
    /// Its counters up to the end of the warm-up.
    pub before: Before,
    pub recorder: Option<Box<Recorder>>,
}

impl Tor {
    pub fn new(
        plan: Arc<Plan>,
        (model, watcher): (SwitchModel, Watcher),
        (lanes, trunks): (Vec<Lane>, Vec<Trunk>),
        groups: usize,
    ) -> Tor {
        Tor {
            plan,
            now: Nanos::ZERO,
            model,
            watcher,
            inlets: Inlets::new(lanes.len(), Schedule::new(lanes.len() + trunks.len() + 1)),
            lanes,
            trunks,
            model_due: Nanos::MAX,
            frames: Frames::default(),
            outboxes: (0..groups).map(|_| Outbox::new()).collect(),
            inboxes: (0..groups).map(|_| Vec::new()).collect(),
            hops: 0,
            pauses: 0,
            pauses_sent: 0,
            before: Before::default(),
            recorder: None,
        }
    }

    /// When the switch or a link towards it has something to do.
    pub fn due(&self) -> Nanos {
        self.model_due.min(self.inlets.dues.first_due())
    }

    /// The outbox for a host.
    #[inline]
    pub(super) fn outbox(&mut self, host: usize) -> &mut Outbox<ToHost> {
        &mut self.outboxes[usize::from(self.plan.group_of[host])]
    }

    /// Prefetches mail that other processors have written.
    pub fn fetch_mail(&self) {
        fetch(self.inboxes.iter().flatten().filter_map(|mail| match mail {
            ToSwitch::Frame(_, frame, _) => Some(&frame.frame),
            _ => None,
        }));
    }

    /// Processes the mail in the inboxes.
    pub fn take_mail(&mut self) {
        for group in 0..self.inboxes.len() {
            let mut inbox = std::mem::take(&mut self.inboxes[group]);
            for mail in inbox.drain(..) {
                match mail {
                    ToSwitch::Frame(host, frame, joins) => self.inlets.put(host.into(), frame, joins),
                    ToSwitch::Notice(flow, notice) => {
                        let receiver = self.plan.flows[flow as usize].dst;
                        self.outbox(receiver.into()).push(Nanos::MAX, ToHost::Notice(flow, notice));
                    }
                    ToSwitch::Silent { sender, destination, now } => self.silent(sender, destination, now),
                }
            }
            self.inboxes[group] = inbox;
        }
    }

    /// A destination reports that a sender is silent.
    pub fn silent(&mut self, sender: u16, destination: u16, now: Nanos) {
        self.watcher.silent(sender.into(), destination.into(), now);
        self.inlets.dues.hasten(self.controller(), self.watcher.controller_due());
    }

    /// The controller's index in the dues of `inlets`.
    fn controller(&self) -> usize {
        self.lanes.len() + self.trunks.len()
    }

    /// Runs the switch up to `until`.
    pub fn run(&mut self, until: Nanos) {
        self.inlets.until = until.max(self.inlets.until);
        loop {
            let (inlet, due) = self.inlets.dues.first();
            if due.min(self.model_due) >= until {
                return;
            }
            // At the same time, departures go before arrivals.
            if due < self.model_due {
                self.now = self.now.max(due);
                self.enter_by(inlet);
            } else {
                self.now = self.now.max(self.model_due);
                self.leave_switch();
            }
        }
    }

    /// The measured time begins.
    pub fn warm(&mut self, now: Nanos) {
        let stats = self.model.stats(now);
        self.before.rx += stats.ports.iter().map(|port| port.rx_frames).sum::<u64>();
        self.before.tx += stats.ports.iter().map(|port| port.tx_frames).sum::<u64>();
        self.before.clones += stats.clones;
        for (reason, count) in &stats.drops {
            *self.before.drops.entry(reason.name()).or_default() += count;
        }
        self.model.reset_stats(now);
    }

    /// Something arrives at the switch or at a shared port before it.
    fn enter_by(&mut self, inlet: usize) {
        let hosts = self.lanes.len();
        if inlet < hosts {
            self.enter_switch(inlet);
        } else if inlet < hosts + self.trunks.len() {
            self.leave_trunk(inlet - hosts);
        } else {
            self.control();
        }
    }

    #[inline(always)]
    fn enter_switch(&mut self, host: usize) {
        let up = &mut self.inlets.ends[host];
        let received = up.receive(self.now);
        self.inlets.dues.set(host, up.due());
        if let Some(received) = received {
            match self.lanes[host].trunk {
                Some(trunk) => self.enter_trunk(trunk, received.frame),
                None => self.at_port(host, received.frame),
            }
        }
    }

    /// A frame of `host` arrives at its switch port.
    #[inline]
    pub(super) fn at_port(&mut self, host: usize, mut frame: Frame) {
        self.lanes[host].digest_up.frame(self.now, &frame);
        self.watcher.enters_switch(&frame, self.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchIn(host), self.now, &frame);
        }
        let swallowed =
            Planted::Leak.is(self.plan.planted) && self.hops.is_multiple_of(500) && frame.len() > 1_000;
        if !swallowed {
            self.mark(&mut frame);
            self.feed_switch(host, frame);
        } else {
            self.frames.release(frame);
        }
        self.model_due = self.model.due();
    }

    /// Marks a frame whose output queue is longer than the threshold (ECN).
    #[inline]
    fn mark(&mut self, frame: &mut [u8]) {
        if !self.plan.marks {
            return;
        }
        let Some(lane) = host_of(frame).and_then(|host| self.lanes.get(host)) else { return };
        let depth = self.model.queued_bytes(lane.port);
        if depth > self.plan.experiment.spec.transport.ecn_threshold_bytes {
            wire::mark(frame);
        }
    }

    /// Sends the frame that the switch has ready.
    fn leave_switch(&mut self) {
        // It comes back with the buffer that the frame is in.
        let mut frame = self.frames.take(true);
        match self.model.poll_transmit(self.now, &mut frame) {
            Some(port) => self.out_of_switch(port, frame),
            None => self.frames.release(frame),
        }
        self.model_due = self.model.due();
    }

    /// The controller acts on the switch.
    #[inline(never)]
    fn control(&mut self) {
        self.watcher.control(&mut self.model, &self.plan.experiment.rack, self.now);
        self.inlets.dues.set(self.controller(), self.watcher.controller_due());
        self.model_due = self.model.due();
    }

    #[inline]
    fn feed_switch(&mut self, host: usize, mut frame: Frame) {
        let port = self.lanes[host].port;
        if self.plan.experiment.spec.rack.pfc_bytes.is_some() {
            // How much a source has in the buffer follows from the fill level before and after.
            let before = self.model.buffered_bytes();
            self.model.take(port, &frame, self.now);
            self.frames.release(frame);
            return self.pfc_entered(host, before);
        }
        match self.model.forward(port, &mut frame, self.now) {
            Some(port) => self.out_of_switch(port, frame),
            None => self.frames.release(frame),
        }
    }

    /// The switch puts a frame on the wire of a port.
    // One copy of the code for frames that pass immediately and frames that waited, see `Link::pass`.
    #[inline(never)]
    fn out_of_switch(&mut self, port: u16, mut frame: Frame) {
        self.hops += 1;
        let host = self.host_at(port, &frame);
        if Planted::GrantNow.is(self.plan.planted) {
            self.watcher.falsify(&mut frame);
        }
        self.watcher.leaves_switch(&frame);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchOut(host), self.now, &frame);
        }
        if Planted::Vanish.is(self.plan.planted) && self.hops == 1_000 {
            return self.frames.release(frame);
        }
        if self.plan.experiment.spec.rack.pfc_bytes.is_some() {
            self.pfc_left(&frame[6..12], frame.len());
        }
        let outbox = &mut self.outboxes[usize::from(self.plan.group_of[host])];
        outbox.send(host, &mut self.lanes[host].down, frame, self.now, &mut self.frames);
    }
}
