//! A switch: any program on the embedded switch's core, with the links of its ports.

use super::plan::{Plan, Planted};
use super::wires::{Outlet, Wires};
use crate::check::Digest;
use crate::frames::Frame;
use p4rack_entities::{Candidate, accepted, write};
use p4rack_p4rt::p4::v1::{Update, WriteRequest};
use p4rack_switch::{Config, Switch};
use p4rack_wire::Nanos;
use std::collections::BTreeSet;

/// Numbers of ports.
const PORTS: usize = 512;
/// Switches that a frame passes at most, as with IPv4's largest TTL.
pub(super) const HOPS_MAX: u16 = 255;
/// Replaces an outlet's position where a port has none.
const NO_OUTLET: u16 = u16::MAX;

/// A switch in virtual time.
#[derive(Debug)]
pub(super) struct SwitchNode {
    /// Position in the topology.
    pub index: usize,
    pub switch: Switch,
    /// Port of each inlet, and of the outlet at the same position.
    ports: Vec<u16>,
    pub outlets: Vec<Outlet>,
    /// Position of each port's outlet.
    by_port: Box<[u16; PORTS]>,
    now: Nanos,
    /// Frames that it has sent over links.
    pub hops: u64,
    /// Packets for its controller.
    pub to_controller: u64,
    /// Frames that it has dropped because they had passed [`HOPS_MAX`] switches.
    pub looped: u64,
    /// Ports through which frames have left that go round in a loop.
    pub loop_ports: BTreeSet<u16>,
    pub digest: Digest,
    /// Whether all packets that it makes are copies, which it counts: v1model.
    pub is_counted: bool,
    packet: Vec<u8>,
}

impl SwitchNode {
    /// A switch that runs a program with its entries.
    pub fn new(
        index: usize,
        config: Config,
        candidate: Candidate,
        updates: &[Update],
        outlets: Vec<(u16, Outlet)>,
    ) -> Result<SwitchNode, String> {
        let mut switch = Switch::new(config);
        let program = candidate.load(None, &mut switch);
        let request = WriteRequest { updates: updates.to_vec(), ..WriteRequest::default() };
        accepted(write(&program, &request, &mut switch, Nanos::ZERO))?;
        let mut by_port = Box::new([NO_OUTLET; PORTS]);
        for (at, (port, _)) in outlets.iter().enumerate() {
            if let Some(place) = by_port.get_mut(usize::from(*port)) {
                *place = at as u16;
            }
        }
        let arch = program.info.pkg_info.as_ref().map_or("", |info| info.arch.as_str());
        let is_counted = arch == "v1model";
        let (ports, outlets) = outlets.into_iter().unzip();
        Ok(SwitchNode {
            index,
            switch,
            ports,
            outlets,
            by_port,
            now: Nanos::ZERO,
            hops: 0,
            to_controller: 0,
            looped: 0,
            loop_ports: BTreeSet::new(),
            digest: Digest::new(),
            is_counted,
            packet: Vec::new(),
        })
    }

    /// The component of its dues for the switch itself; those before it are inlets.
    pub fn own_component(&self) -> usize {
        self.ports.len()
    }

    /// Handles the earliest event.
    #[inline]
    pub fn step(&mut self, at: usize, (component, due): (usize, Nanos), plan: &Plan, wires: &mut Wires) {
        self.now = self.now.max(due);
        let own = self.own_component();
        if component < own {
            let inlets = &mut wires.inlets[at];
            let received = inlets.ends[component].receive(self.now);
            inlets.dues.set(component, inlets.ends[component].due());
            let swallows = Planted::Swallow.is(plan.planted) && inlets.ends[component].delivered == 10;
            match received {
                Some(received) if swallows => wires.frames.release(received.frame),
                Some(received) => self.arrive(component, received.frame, plan, wires),
                None => {}
            }
        } else {
            self.poll(plan, wires);
        }
        while self.switch.poll_cpu(&mut self.packet) {
            self.to_controller += 1;
        }
        let next = self.switch.next_timeout().unwrap_or(Nanos::MAX);
        wires.inlets[at].dues.set(own, next);
    }

    #[inline]
    fn arrive(&mut self, inlet: usize, mut frame: Frame, plan: &Plan, wires: &mut Wires) {
        self.digest.frame(self.now, &frame);
        if frame.hops >= HOPS_MAX {
            self.looped += 1;
            return wires.frames.release(frame);
        }
        self.switch.set_tag(frame.hops);
        match self.switch.forward_given(self.ports[inlet], &mut frame, self.now) {
            Some(port) => self.send(port, frame, plan, wires),
            None => wires.frames.release(frame),
        }
    }

    /// Sends the frame that it has ready.
    fn poll(&mut self, plan: &Plan, wires: &mut Wires) {
        // It comes back with the buffer that the frame is in.
        let mut frame = wires.frames.take(true);
        match self.switch.poll_transmit(self.now, &mut frame) {
            Some(port) => self.send(port, frame, plan, wires),
            None => wires.frames.release(frame),
        }
    }

    #[inline]
    fn send(&mut self, port: u16, mut frame: Frame, plan: &Plan, wires: &mut Wires) {
        self.hops += 1;
        frame.hops = self.switch.tag() + 1;
        if frame.hops >= plan.loop_hops {
            self.loop_ports.insert(port);
            wires.loop_hops += 1;
        }
        let at = self.by_port.get(usize::from(port)).copied().unwrap_or(NO_OUTLET);
        match self.outlets.get_mut(usize::from(at)) {
            Some(_) if Planted::Vanish.is(plan.planted) && self.hops == 100 => wires.frames.release(frame),
            Some(outlet) => wires.send(outlet, frame, self.now),
            // Only ports with links are configured.
            None => wires.frames.release(frame),
        }
    }
}
