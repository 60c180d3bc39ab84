//! A switch around the allocator: admission, output queues with strict priorities, finite buffers.

use crate::{Allocator, Demoted, Fate, Limits};
use p4rack_fabric::pl2::Mode;
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, VERSION};
use p4rack_wire::{EtherType, MacAddr, Nanos, quantiles};
use std::collections::{BTreeMap, VecDeque};

const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;
const CLASSES: usize = 3;
/// Resolution of the depth histogram.
const DEPTH_STEP: usize = 64;

/// Parameters of a [`Switch`].
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// How it keeps reservations; `None` only forwards.
    pub mode: Option<Mode>,
    /// EtherType of control frames.
    pub ether_type: EtherType,
    /// First VLAN of scheduled data, one VLAN per cell of a pair.
    pub vid: u16,
    /// K: maximum demand, in slots.
    pub k: u8,
    /// Limits of the rights of reservations.
    pub limits: Limits,
    /// Maximum bytes waiting at a port.
    pub buffer_bytes: u64,
    /// Tick of the clock.
    pub time_unit: Nanos,
    /// Ports: address of the host, rate in bits per second, slot.
    pub ports: Vec<(MacAddr, u64, Nanos)>,
}

/// An output port.
#[derive(Clone, Debug)]
pub struct OutputPort {
    mac: MacAddr,
    rate_bps: u64,
    free_at: Nanos,
    queues: [VecDeque<Vec<u8>>; CLASSES],
    depth_bytes: u64,
    changed_at: Nanos,
    /// Maximum depth of the queue, in bytes with FCS.
    pub depth_max_bytes: u64,
    /// Nanoseconds at each depth, in steps of 64 bytes.
    depth_ns: Vec<u64>,
}

impl OutputPort {
    fn depth_changes(&mut self, by: i64, now: Nanos) {
        let step = (self.depth_bytes as usize).div_ceil(DEPTH_STEP);
        if self.depth_ns.len() <= step {
            self.depth_ns.resize(step + 1, 0);
        }
        self.depth_ns[step] += now.saturating_sub(self.changed_at).0;
        self.changed_at = now;
        self.depth_bytes = self.depth_bytes.saturating_add_signed(by);
        self.depth_max_bytes = self.depth_max_bytes.max(self.depth_bytes);
    }

    /// Depth not exceeded for a share of the time, in bytes with FCS.
    pub fn depth_quantile_bytes(&self, share: f64) -> u64 {
        let steps = self.depth_ns.iter().enumerate().map(|(step, ns)| ((step * DEPTH_STEP) as u64, *ns));
        quantiles::weighted(steps, share).unwrap_or(self.depth_max_bytes)
    }

    /// Bytes waiting now, with FCS.
    pub fn depth_bytes(&self) -> u64 {
        self.depth_bytes
    }

    /// Restarts the measurements.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.depth_max_bytes = self.depth_bytes;
        self.depth_ns.clear();
        self.changed_at = now;
    }
}

/// The reference switch.
#[derive(Clone, Debug)]
pub struct Switch {
    config: SwitchConfig,
    /// The registers.
    pub allocator: Allocator,
    ports: Vec<OutputPort>,
    drops: BTreeMap<&'static str, u64>,
    demoted: BTreeMap<Demoted, u64>,
    not_now: u64,
}

impl Switch {
    /// An empty switch.
    pub fn new(config: SwitchConfig) -> Self {
        let slots: Vec<Nanos> = config.ports.iter().map(|(_, _, slot)| *slot).collect();
        let port = |(mac, rate_bps, _): &(MacAddr, u64, Nanos)| OutputPort {
            mac: *mac,
            rate_bps: *rate_bps,
            free_at: Nanos::ZERO,
            queues: Default::default(),
            depth_bytes: 0,
            changed_at: Nanos::ZERO,
            depth_max_bytes: 0,
            depth_ns: Vec::new(),
        };
        Switch {
            allocator: Allocator::new(
                config.mode.unwrap_or(Mode::Clock),
                &slots,
                config.time_unit,
                config.limits,
            ),
            ports: config.ports.iter().map(port).collect(),
            drops: BTreeMap::new(),
            demoted: BTreeMap::new(),
            not_now: 0,
            config,
        }
    }

    /// Handles a frame that `port` received. Returns frames dropped, by reason.
    pub fn handle_frame(
        &mut self,
        port: usize,
        mut frame: Vec<u8>,
        now: Nanos,
    ) -> Result<(), (&'static str, Vec<u8>)> {
        match self.route(port, &mut frame, now) {
            Err(reason) => {
                *self.drops.entry(reason).or_default() += 1;
                Err((reason, frame))
            }
            Ok((None, class)) => {
                for other in (0..self.ports.len()).filter(|other| *other != port) {
                    // A copy without room is counted; the others continue.
                    let _ = self.enqueue(other, class, frame.clone(), now);
                }
                Ok(())
            }
            Ok((Some(out), class)) => self.enqueue(out, class, frame, now),
        }
    }

    /// Output port (none means all others) and class of a frame. An RSV becomes its grant.
    fn route(
        &mut self,
        port: usize,
        frame: &mut [u8],
        now: Nanos,
    ) -> Result<(Option<usize>, usize), &'static str> {
        let ethernet = Ethernet::parse(frame).map_err(|_| "malformed")?;
        if self.ports[port].mac != ethernet.src {
            return Err("spoofed");
        }
        let out = match ethernet.dst.is_group() {
            true => None,
            false => Some(self.port_of(ethernet.dst).ok_or("unknown_destination")?),
        };
        if out == Some(port) {
            return Err("same_port");
        }
        if ethernet.ether_type != EtherType::VLAN || self.config.mode.is_none() {
            return Ok((out, 2));
        }
        let vlan = Vlan::parse(&frame[Ethernet::BYTES..]).map_err(|_| "malformed")?;
        let cells = 2 * u16::from(self.config.limits.lanes);
        let cell = vlan.vid.wrapping_sub(self.config.vid);
        let (true, Some(destination)) = (cell < cells, out) else { return Ok((out, 2)) };
        let bytes = frame.len() as u64;
        let rest = &mut frame[TAGGED..];
        let is_data = || Control::parse(rest).is_ok_and(|c| c.kind == Kind::Data as u8);
        if vlan.ether_type != self.config.ether_type || is_data() {
            return match self.allocator.claim((port, destination), cell as u8, vlan.dei, bytes, now) {
                Fate::Scheduled => Ok((out, 1)),
                Fate::HasSlots => Err("unsolicited_has_slots"),
                Fate::OverThreshold => Err("unsolicited_over_threshold"),
                Fate::Demoted(reason) => {
                    *self.demoted.entry(reason).or_default() += 1;
                    Ok((out, 2))
                }
            };
        }
        let mut control = Control::parse(rest).map_err(|_| "malformed")?;
        if control.version != VERSION || control.kind != Kind::Rsv as u8 {
            return Err("bad_kind");
        }
        let least = u8::from(self.config.mode == Some(Mode::Clock));
        if !(least..=self.config.k.saturating_mul(self.config.limits.slot_parts)).contains(&control.demand) {
            return Err("bad_demand");
        }
        if !self.allocator.has_cell(control.cell) {
            return Err("bad_lane");
        }
        let (cell, demand, unsolicited) = (control.cell, control.demand, control.unsolicited == 1);
        let replies = self.allocator.reserve((port, destination), cell, demand, unsolicited, now);
        self.not_now += u64::from(replies.is_none());
        (control.send_wait, control.recv_wait) = replies.unwrap_or((NOT_NOW, NOT_NOW));
        control.kind = Kind::Grt as u8;
        control.emit(rest);
        Ethernet { dst: ethernet.src, src: ethernet.dst, ..ethernet }.emit(frame);
        Ok((Some(port), 0))
    }

    fn enqueue(
        &mut self,
        port: usize,
        class: usize,
        frame: Vec<u8>,
        now: Nanos,
    ) -> Result<(), (&'static str, Vec<u8>)> {
        let port = &mut self.ports[port];
        let bytes = frame.len() as u64 + overhead::FCS;
        if port.depth_bytes + bytes > self.config.buffer_bytes {
            *self.drops.entry("buffer_full").or_default() += 1;
            return Err(("buffer_full", frame));
        }
        port.depth_changes(bytes as i64, now);
        port.queues[class].push_back(frame);
        Ok(())
    }

    /// The next frame that starts to leave now: port, frame, and when it has left.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<(usize, Vec<u8>, Nanos)> {
        for (index, port) in self.ports.iter_mut().enumerate() {
            if port.free_at > now {
                continue;
            }
            let Some(frame) = port.queues.iter_mut().find_map(VecDeque::pop_front) else { continue };
            let len = frame.len() as u64;
            port.depth_changes(-((len + overhead::FCS) as i64), now);
            port.free_at = now + Nanos::on_wire(overhead::wire_bytes(len), port.rate_bps);
            return Some((index, frame, port.free_at));
        }
        None
    }

    /// The next time at which a waiting frame can leave.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let waiting = self.ports.iter().filter(|port| port.queues.iter().any(|queue| !queue.is_empty()));
        waiting.map(|port| port.free_at).min()
    }

    /// A port.
    pub fn port(&self, port: usize) -> &OutputPort {
        &self.ports[port]
    }

    /// Restarts the measurements of depths.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.ports.iter_mut().for_each(|port| port.restart_measuring(now));
    }

    /// Dropped frames, by reason.
    pub fn drops(&self) -> &BTreeMap<&'static str, u64> {
        &self.drops
    }

    /// Frames that claimed a reservation and became best effort, by reason.
    pub fn demoted(&self) -> &BTreeMap<Demoted, u64> {
        &self.demoted
    }

    /// RSVs refused because their lane's reservation had not begun.
    pub fn not_now(&self) -> u64 {
        self.not_now
    }

    fn port_of(&self, mac: MacAddr) -> Option<usize> {
        self.ports.iter().position(|port| port.mac == mac)
    }
}
