//! The rack in virtual time: the loop that moves frames, and what it moves them between.
//!
//! ```text
//!  threads ─ Host ─▶ up link ─▶ pipeline delay ─▶ Tor (generated P4, traffic manager) ─▶ down link ─▶ Host
//! ```

mod messages;
mod pfc;
mod sources;
mod transports;
mod trunk;

use crate::check::{Digest, Grants};
use crate::experiment::{Arrivals, Experiment, Kind, Place};
use crate::frames::{FrameId, Frames};
use crate::host::{Fed, Host};
use crate::link::{Delays, Link};
use crate::message::{Flow, FlowId, MessageId, Messages, host_of};
use crate::random::{Between, Quantiles, Random};
use crate::record::{Point, Recorder};
use crate::schedule::{Next, Schedule};
use crate::tor::{Tor, TorError};
use crate::traffic::{Traffic, histogram};
use hdrhistogram::Histogram;
use p4rack_codegen::rack::units::parse_size;
use p4rack_wire::Nanos;
use p4rack_wire::pl2;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// When an RSV left that is answered now.
fn take_rsv(left: &mut VecDeque<(u32, Nanos)>, id: u32) -> Option<Nanos> {
    let at = left.iter().position(|(known, _)| *known == id)?;
    left.remove(at).map(|(_, when)| when)
}

/// Why a simulation did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The switch.
    #[error(transparent)]
    Tor(#[from] TorError),
    /// A parameter.
    #[error("{0}")]
    Parameter(String),
}

/// Component numbers in the schedule: the switch, the agenda, then three a host.
const SWITCH: usize = 0;
const AGENDA: usize = 1;
const FIRST_HOST: usize = 2;
const UP: usize = 0;
const DOWN: usize = 1;
const MACHINE: usize = 2;

/// What happens seldom: once a message or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A message has come to the machine.
    Ready(FlowId, MessageId),
    /// A traffic's next message.
    Arrival(usize),
    /// A traffic begins.
    Start(usize),
    /// A server answers; the request was made then.
    Answer(FlowId, Nanos),
    /// A client asks.
    Ask(FlowId),
    /// A round begins.
    Round(usize),
    /// A trace's next message.
    Replay(usize),
    /// A transport's timer.
    Timer(FlowId),
    /// The timer of a host's receiving end.
    Receiver(usize),
    /// The controller takes back what the first had reserved towards the second.
    Forget(usize, usize),
    /// The switch's pause has come to a host, or its end.
    Pause(usize, bool),
    /// Measuring begins.
    Warm,
    /// A host falls silent.
    Die(usize),
}

/// A planted fault, for the checks' own tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A frame vanishes on a link without being counted.
    Vanish,
    /// Two frames change places before an application.
    Swap,
    /// A grant says 0 for both waits.
    GrantNow,
    /// Frames vanish before the switch, so their slots stay reserved.
    Leak,
    /// A frame's time depends on where its buffer lies.
    Address,
    /// The switch takes more than its buffer holds.
    Overfill,
    /// A host's machine is never asked again.
    Sleep,
}

/// A rack under way.
#[derive(Debug)]
pub(crate) struct World {
    pub experiment: Experiment,
    pub now: Nanos,
    schedule: Schedule,
    agenda: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    agenda_count: u64,
    frames: Frames,
    pub tor: Tor,
    pub hosts: Vec<Host>,
    /// Each host's switch port.
    ports: Vec<u16>,
    pub up: Vec<Link>,
    pub down: Vec<Link>,
    /// Ports that hosts share, and which one a host's is.
    pub trunks: Vec<trunk::Trunk>,
    trunk_of: Vec<Option<usize>>,
    pub flows: Vec<Flow>,
    pub messages: Messages,
    pub traffic: Vec<Traffic>,
    dma: Option<Arc<Quantiles>>,
    random: Random,
    scratch: Vec<u8>,
    pub grants: Grants,
    pub digest: Digest,
    pub recorder: Option<Box<Recorder>>,
    pub measuring: bool,
    /// Frames that passed the switch.
    pub hops: u64,
    pub frames_given: u64,
    pub frames_delivered: u64,
    pub frames_to_dead: u64,
    pub out_of_order: u64,
    /// Switch's counters up to the end of the warm-up.
    pub before: Before,
    /// RSVs that left, by host: number, when.
    rsv_left: Vec<VecDeque<(u32, Nanos)>>,
    pub rsv_grt: Histogram<u64>,
    /// Control frames in the measured time: that hosts sent, and that came to them.
    pub control: (u64, u64),
    /// Bytes of application payload that arrived since the warm-up, by host.
    pub received: Vec<u64>,
    pub sources_end: Nanos,
    pub planted: Option<Planted>,
    held: Option<Vec<u8>>,
    /// Frames of transports' own.
    told: u64,
    /// Whether frames may have to be marked.
    marks: bool,
    /// What the switch holds of each host's frames, for pauses.
    held_by: Vec<pfc::Held>,
    pause_delay: Nanos,
    /// Reservations taken back: when, whose, towards whom.
    pub resets: Vec<(Nanos, usize, usize)>,
    /// Pauses that the switch asked for.
    pub pauses: u64,
}

/// Sums of the switch's counters before its reset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub rx: u64,
    pub tx: u64,
    pub drops: u64,
    pub clones: u64,
}

impl World {
    pub fn new(experiment: Experiment) -> Result<World, SimError> {
        let spec = &experiment.spec;
        let hosts = spec.rack.hosts;
        let sample = Nanos::from_micros(spec.sample_us);
        let tor = Tor::new(&experiment.rack, experiment.scheme, |config| {
            config.sample_interval = sample;
            config.seed = spec.seed;
            config.dynamic_percent = spec.rack.dynamic_percent;
        })?;
        let quantiles = |points: &[(f64, f64)]| {
            Quantiles::new(points, Between::Linear).map(Arc::new).map_err(SimError::Parameter)
        };
        let (wire, dma) = (quantiles(&spec.link.delay_ns)?, quantiles(&spec.nic.dma_ns)?);
        let pipeline = quantiles(&spec.rack.pipeline_ns)?;
        let bus = (spec.nic.place == Place::Host).then(|| dma.clone());
        let link = |host: usize, direction: u64, before, after| {
            let delays = Delays { before, wire: wire.clone(), after };
            let random = Random::stream(spec.seed, 2 * host as u64 + direction);
            Link::new(experiment.rack.hosts[host].rate_bps, delays, &experiment.faults(host), random)
        };
        let up = (0..hosts).map(|host| link(host, 0, bus.clone(), Some(pipeline.clone()))).collect();
        let lane_bytes = parse_size(&spec.rack.lane_buffer).map_err(SimError::Parameter)?;
        let (trunks, trunk_of) = trunk::trunks(&experiment, lane_bytes);
        let lane = |host: usize| {
            let link = link(host, 1, None, bus.clone());
            if trunk_of[host].is_some() { link.bounded(lane_bytes) } else { link }
        };
        let down = (0..hosts).map(lane).collect();
        let (mut flows, mut traffic) = (Vec::new(), Vec::new());
        for nth in 0..spec.traffic.len() {
            let one = Traffic::new(&experiment, nth, flows.len() as FlowId).map_err(SimError::Parameter)?;
            for flow in one.flows.clone() {
                let (src, dst) = one.ends(flow);
                flows.push(Flow::new(src, dst, nth, transports::machine(&experiment, nth, src)));
            }
            traffic.push(one);
        }
        let endpoints: Result<Vec<Host>, String> =
            (0..hosts).map(|host| Host::new(&experiment, host)).collect();
        let rack = &experiment.rack;
        let ether_type = rack.pl2.as_ref().map_or(p4rack_wire::EtherType::PL2_DEFAULT, |pl2| pl2.ether_type);
        let grants = Grants::new(
            ether_type,
            spec.scheme.kind == Kind::Pl2Counter,
            rack.switch.time_unit_ns,
            rack.hosts.iter().map(|host| (host.slot.0 / rack.slot_parts(), host.link)).collect(),
        );
        let sources_end = Nanos::from_micros(spec.duration_us);
        let mut world = World {
            now: Nanos::ZERO,
            schedule: Schedule::new(FIRST_HOST + 3 * hosts + trunks.len()),
            agenda: BinaryHeap::new(),
            agenda_count: 0,
            frames: Frames::default(),
            tor,
            hosts: endpoints.map_err(SimError::Parameter)?,
            ports: experiment.rack.hosts.iter().map(|host| host.port).collect(),
            up,
            down,
            trunks,
            trunk_of,
            flows,
            messages: Messages::default(),
            traffic,
            dma: (spec.nic.place == Place::Nic).then_some(dma),
            random: Random::stream(spec.seed, 0xd3a),
            scratch: Vec::with_capacity(2_048),
            grants,
            digest: Digest::new(),
            recorder: None,
            measuring: false,
            hops: 0,
            frames_given: 0,
            frames_delivered: 0,
            frames_to_dead: 0,
            out_of_order: 0,
            before: Before::default(),
            rsv_left: vec![VecDeque::new(); hosts],
            rsv_grt: histogram(),
            control: (0, 0),
            received: vec![0; hosts],
            sources_end,
            planted: None,
            held: None,
            told: 0,
            marks: World::marks(&experiment),
            held_by: vec![pfc::Held::default(); hosts],
            pause_delay: World::pause_delay(&experiment.spec.link.delay_ns),
            pauses: 0,
            resets: Vec::new(),
            experiment,
        };
        world.begin();
        Ok(world)
    }

    fn begin(&mut self) {
        self.at(Nanos::from_micros(self.experiment.spec.warmup_us), Event::Warm);
        for nth in 0..self.traffic.len() {
            self.at(self.traffic[nth].start, Event::Start(nth));
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].dies != Nanos::MAX {
                self.at(self.hosts[host].dies, Event::Die(host));
            }
        }
    }

    /// Notes an event.
    fn at(&mut self, time: Nanos, event: Event) {
        self.agenda_count += 1;
        self.agenda.push(Reverse((time, self.agenda_count, event)));
        self.show_agenda();
    }

    fn show_agenda(&mut self) {
        self.schedule.set(AGENDA, self.agenda.peek().map(|Reverse((time, _, _))| *time));
    }

    /// Runs until nothing happens any more before `end`. Whether something is left.
    pub fn run_until(&mut self, end: Nanos) -> bool {
        loop {
            let (component, due) = match self.schedule.next(end) {
                Next::Due(component, due) => (component, due),
                rest => {
                    self.now = end;
                    return rest == Next::Later;
                }
            };
            self.now = self.now.max(due);
            match component {
                SWITCH => self.drain_switch(),
                AGENDA => self.happen(),
                _ if component >= FIRST_HOST + 3 * self.hosts.len() => {
                    self.leave_trunk(component - FIRST_HOST - 3 * self.hosts.len());
                }
                _ => {
                    let (host, part) = ((component - FIRST_HOST) / 3, (component - FIRST_HOST) % 3);
                    match part {
                        UP => self.enter_switch(host),
                        DOWN => self.enter_host(host),
                        _ => self.wake(host),
                    }
                }
            }
        }
    }

    #[inline]
    fn set(&mut self, host: usize, part: usize, due: Option<Nanos>) {
        self.schedule.set(FIRST_HOST + 3 * host + part, due);
    }

    /// A frame comes to the switch, or to what hosts share before it.
    fn enter_switch(&mut self, host: usize) {
        if let Some(received) = self.up[host].receive(self.now) {
            match self.trunk_of[host] {
                Some(trunk) => self.enter_trunk(trunk, received.frame),
                None => self.at_port(host, received.frame),
            }
        }
        self.set(host, UP, self.up[host].due());
    }

    /// A frame of `host` is at its switch port.
    fn at_port(&mut self, host: usize, id: FrameId) {
        let frame = self.frames.get(id);
        self.digest.frame(host, self.now, frame);
        if let Some(seen) = self.grants.read(frame) {
            self.grants.asked(&seen, self.now);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchIn(host), self.now, frame, &self.messages);
        }
        let swallowed =
            self.planted == Some(Planted::Leak) && self.hops.is_multiple_of(500) && frame.len() > 1_000;
        if !swallowed {
            self.mark(id);
            self.feed_switch(host, id);
        } else {
            self.frames.give_back(id);
        }
        self.drain_switch();
    }

    /// Takes out what the switch has ready.
    fn drain_switch(&mut self) {
        let mut due = self.tor.switch.next_timeout();
        while due.is_some_and(|due| due <= self.now) {
            let id = self.frames.take();
            let sent = self.tor.switch.poll_transmit(self.now, self.frames.get_mut(id));
            due = self.tor.switch.next_timeout();
            match sent {
                Some(port) => self.out_of_switch(port, id),
                None => {
                    self.frames.give_back(id);
                    break;
                }
            }
        }
        self.schedule.set(SWITCH, due);
    }

    fn feed_switch(&mut self, host: usize, id: FrameId) {
        let port = self.port_of(host);
        if self.experiment.spec.rack.pfc_bytes.is_some() {
            // What a source has in the buffer is told from what the buffer holds before and after.
            let before = self.tor.switch.buffered_bytes();
            self.tor.switch.handle_frame(port, self.frames.get(id), self.now);
            self.frames.give_back(id);
            return self.pfc_entered(host, before);
        }
        match self.tor.switch.forward_given(port, self.frames.get_mut(id), self.now) {
            Some(port) => self.out_of_switch(port, id),
            None => self.frames.give_back(id),
        }
    }

    /// A host's switch port.
    #[inline]
    pub fn port_of(&self, host: usize) -> u16 {
        self.ports[host]
    }

    /// The switch puts a frame on the wire of a port.
    fn out_of_switch(&mut self, port: u16, id: FrameId) {
        self.hops += 1;
        let host = self.host_at(port, id);
        let frame = self.frames.get_mut(id);
        if let Some(mut seen) = self.grants.read(frame) {
            if self.planted == Some(Planted::GrantNow) {
                frame[26..34].fill(0);
                (seen.control.send_wait, seen.control.recv_wait) = (0, 0);
            }
            if seen.kind == pl2::Kind::Grt as u8 {
                self.grants.granted(&seen);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Point::SwitchOut(host), self.now, frame, &self.messages);
        }
        if self.planted == Some(Planted::Vanish) && self.hops == 1_000 {
            return self.frames.give_back(id);
        }
        if self.experiment.spec.rack.pfc_bytes.is_some() {
            let frame = self.frames.get(id);
            let (mut source, len) = ([0; 6], frame.len());
            source.copy_from_slice(&frame[6..12]);
            self.pfc_left(&source, len);
        }
        self.down[host].send(id, self.now, &mut self.frames);
        self.set(host, DOWN, self.down[host].due());
    }

    /// A frame comes to a host.
    fn enter_host(&mut self, host: usize) {
        if let Some(received) = self.down[host].receive(self.now) {
            let frame = self.frames.get(received.frame);
            self.digest.frame(host | 0x4000, self.now, frame);
            let (mut only_data, mut granted) = (false, None);
            if self.now >= self.hosts[host].dies {
                self.frames_to_dead += 1;
            } else {
                let seen = self.grants.read(frame);
                only_data = seen.is_none() && !self.experiment.spec.scheme.notify_receiver;
                self.control.1 += u64::from(seen.is_some() && self.measures());
                granted = seen.as_ref().map(|seen| seen.destination);
                if let Some(seen) = seen
                    && seen.kind == pl2::Kind::Grt as u8
                    && let Some(when) = take_rsv(&mut self.rsv_left[host], seen.id)
                    && self.measuring
                {
                    self.rsv_grt.saturating_record(received.arrived.saturating_sub(when).0);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.note(Point::HostIn(host), self.now, frame, &self.messages);
                }
                self.hosts[host].endpoint.handle_link(frame, received.arrived, self.now);
            }
            self.frames.give_back(received.frame);
            // A grant may show that frames sent ahead of it have arrived, so that there is room for others.
            if let Some(destination) = granted.filter(|host| *host < self.hosts.len()) {
                self.feed(host, destination);
            }
            let told = self.told;
            self.give_app(host);
            // Data is for the threads: what the machine has to send depends on it only by what transports answer.
            if !only_data || self.told != told {
                self.drain_host(host);
            }
        }
        self.set(host, DOWN, self.down[host].due());
    }

    fn wake(&mut self, host: usize) {
        self.hosts[host].endpoint.handle_timeout(self.now);
        self.drain_host(host);
    }

    /// Takes out what a host's machine has ready, and gives it what it has room for.
    fn drain_host(&mut self, host: usize) {
        let asleep = self.planted == Some(Planted::Sleep) && host == 1 && self.hops > 1_000;
        if asleep || self.now >= self.hosts[host].dies {
            self.set(host, MACHINE, None);
            return;
        }
        let mut due = self.hosts[host].due();
        while due.is_some_and(|due| due <= self.now) {
            let measures = self.measures();
            let id = self.frames.take();
            let frame = self.frames.get_mut(id);
            if !self.hosts[host].endpoint.poll_link(self.now, frame) {
                self.frames.give_back(id);
                due = self.hosts[host].due();
                break;
            }
            let destination = host_of(frame);
            if let Some(seen) = self.grants.read(frame) {
                self.control.0 += u64::from(measures);
                let left = &mut self.rsv_left[host];
                if left.len() == 256 {
                    left.pop_front();
                }
                left.push_back((seen.id, self.now));
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Point::HostOut(host), self.now, frame, &self.messages);
            }
            let mut leaves = self.now;
            if self.planted == Some(Planted::Address) {
                leaves += Nanos(frame.as_ptr() as u64 >> 5 & 63);
            }
            self.up[host].send(id, leaves, &mut self.frames);
            self.set(host, UP, self.up[host].due());
            if let Some(destination) = destination.filter(|d| self.hosts[host].has_for(*d)) {
                self.feed(host, destination);
            }
            due = self.hosts[host].due();
        }
        if self.experiment.spec.scheme.notify_receiver {
            self.look_for_silent(host);
            due = self.hosts[host].due();
        }
        self.set(host, MACHINE, due);
    }

    /// What a host's machine says of those who fell silent goes to the controller.
    fn look_for_silent(&mut self, host: usize) {
        while let Some(sender) = self.hosts[host].endpoint.poll_silent(self.now) {
            let delay = Nanos::from_micros(self.experiment.spec.scheme.controller_us);
            if let Some(sender) = host_of(&sender.0) {
                self.at(self.now + delay, Event::Forget(sender, host));
            }
        }
    }

    /// Gives the threads what the machine has for them.
    fn give_app(&mut self, host: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        while self.hosts[host].endpoint.poll_app(&mut scratch) {
            if self.planted == Some(Planted::Swap) && self.frames_delivered == 1_000 && self.held.is_none() {
                self.held = Some(scratch.clone());
                continue;
            }
            self.deliver(host, &scratch);
            if self.frames_delivered > 1_500
                && let Some(held) = self.held.take_if(|held| !held.is_empty())
            {
                self.deliver(host, &held);
            }
        }
        self.scratch = scratch;
    }

    /// Gives a host's machine frames for a destination as long as it has room.
    fn feed(&mut self, host: usize, destination: usize) {
        loop {
            let fed = self.hosts[host].feed(destination, &mut self.flows, &mut self.messages, self.now);
            if let Fed::Frame(flow) | Fed::FlowEmpty(flow) = fed {
                self.plan_timer(flow);
            }
            match fed {
                Fed::Nothing => return,
                Fed::Frame(_) => self.frames_given += 1,
                Fed::FlowEmpty(flow) => {
                    self.frames_given += 1;
                    let traffic = usize::from(self.flows[flow as usize].traffic);
                    let one = &self.traffic[traffic];
                    if one.spec.arrivals == Arrivals::Saturate && self.now < one.stop {
                        self.submit(flow, self.now, true);
                    }
                }
            }
        }
    }

    /// Whether what happens now counts.
    #[inline]
    fn measures(&self) -> bool {
        self.measuring && self.now < self.sources_end
    }

    fn warm(&mut self) {
        self.measuring = true;
        let stats = self.tor.switch.stats(self.now);
        self.before.rx += stats.ports.iter().map(|port| port.rx_frames).sum::<u64>();
        self.before.tx += stats.ports.iter().map(|port| port.tx_frames).sum::<u64>();
        self.before.clones += stats.clones;
        self.before.drops += stats.drops.iter().map(|(_, count)| count).sum::<u64>();
        self.tor.switch.reset_stats(self.now);
    }

    /// Frames on links, of both directions.
    pub fn on_links(&self) -> usize {
        self.links().map(Link::in_flight).sum()
    }

    /// All links, and what shared ports have before the switch.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.up.iter().chain(&self.down).chain(self.trunks.iter().map(|trunk| &trunk.link))
    }
}
