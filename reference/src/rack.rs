//! A rack in virtual time: endpoints, links with delay, jitter and faults, and the reference switch.

use crate::{Switch, SwitchConfig};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::{Config, Endpoint, HostMachine, Machine};
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::Kind;
use p4rack_wire::{Nanos, hash};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A uniform distribution from `.0` to `.1`.
pub type Spread = (Nanos, Nanos);

/// Sources of jitter in a rack.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    /// Delay from host to switch, beyond the wire time; frames stay in order.
    pub up: Spread,
    /// Delay from switch to host; frames stay in order.
    pub down: Spread,
    /// How late a host wakes for a timer or a received frame.
    pub wake: Spread,
}

/// Faults of the links, per million frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Lost control frames (RSV, GRT).
    pub lose_control: u32,
    /// Lost data frames.
    pub lose_data: u32,
    /// Frames that arrive twice.
    pub duplicate: u32,
    /// Frames that are overtaken by others.
    pub reorder: u32,
    /// Time at which the faults end.
    pub until: Nanos,
}

/// A frame that reached an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Receiving host.
    pub host: usize,
    /// Time of the delivery.
    pub at: Nanos,
    /// The frame.
    pub frame: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake { host: usize, turn: u64 },
    Switch,
    Arrive { port: usize, frame: Vec<u8> },
    Receive { host: usize, frame: Vec<u8>, received_at: Nanos },
    App { host: usize, frame: Vec<u8> },
}

struct Host {
    endpoint: Option<Endpoint>,
    config: Config,
    turn: u64,
    last_up: Nanos,
    last_down: Nanos,
    last_read: Nanos,
}

/// A rack. Drive it with [`app`](Self::app) and [`run_until`](Self::run_until).
pub struct Rack {
    hosts: Vec<Host>,
    switch: Switch,
    jitter: Jitter,
    faults: Faults,
    random: SplitMix,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    order: u64,
    now: Nanos,
    switch_wake: Nanos,
    buffer: Vec<u8>,
    /// Frames delivered to applications; the caller may drain them.
    pub deliveries: Vec<Delivery>,
    /// Data frames lost to faults, to the switch or to a crashed host.
    pub lost: Vec<Vec<u8>>,
    /// Control frames lost to faults.
    pub control_lost: u64,
    /// Digest of all frames on the links, to compare runs.
    pub digest: u64,
}

impl Rack {
    /// A rack with host `i` on port `i`.
    pub fn new(hosts: Vec<Config>, switch: SwitchConfig, jitter: Jitter, seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let host = |config: Config| Host {
            endpoint: Some(Endpoint::new(config.clone(), random.next(), Nanos::ZERO)),
            config,
            turn: 0,
            last_up: Nanos::ZERO,
            last_down: Nanos::ZERO,
            last_read: Nanos::ZERO,
        };
        Rack {
            hosts: hosts.into_iter().map(host).collect(),
            switch: Switch::new(switch),
            jitter,
            faults: Faults::default(),
            random,
            events: BinaryHeap::new(),
            order: 0,
            now: Nanos::ZERO,
            switch_wake: Nanos::MAX,
            buffer: Vec::new(),
            deliveries: Vec::new(),
            lost: Vec::new(),
            control_lost: 0,
            digest: hash::EMPTY,
        }
    }

    /// Sets the faults from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Sends `frame` from an application of `host` at `at`.
    pub fn app(&mut self, host: usize, frame: Vec<u8>, at: Nanos) {
        self.push(at, Event::App { host, frame });
    }

    /// Crashes the host's agent, with everything it held.
    pub fn crash(&mut self, host: usize) {
        self.hosts[host].endpoint = None;
    }

    /// Starts a new agent on `host`.
    pub fn restart(&mut self, host: usize) {
        let seed = self.random.next();
        let host = &mut self.hosts[host];
        host.endpoint = Some(Endpoint::new(host.config.clone(), seed, self.now));
    }

    /// The host's machine, unless it crashed.
    pub fn endpoint(&self, host: usize) -> Option<&Endpoint> {
        self.hosts[host].endpoint.as_ref()
    }

    /// The switch.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// The switch, to reset registers or statistics.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// The current time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Runs until `end`. Returns whether anything is left to happen.
    pub fn run_until(&mut self, end: Nanos) -> bool {
        while let Some(Reverse(next)) = self.events.peek() {
            if next.0 > end {
                self.now = end;
                return true;
            }
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.now = at;
            self.step(event);
        }
        self.now = end;
        false
    }

    fn step(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Wake { host, turn } => {
                if self.hosts[host].turn == turn {
                    self.drive(host, |endpoint| endpoint.handle_timeout(now));
                }
            }
            Event::App { host, frame } => {
                let frames = self.batch(host, frame);
                self.drive(host, |endpoint| {
                    frames.iter().for_each(|frame| endpoint.handle_app(frame, now));
                });
            }
            Event::Receive { host, frame, received_at } => {
                if self.hosts[host].endpoint.is_none() {
                    self.lose(frame);
                } else {
                    self.drive(host, |endpoint| endpoint.handle_link(&frame, received_at, now));
                }
            }
            Event::Arrive { port, frame } => {
                if let Err((_, frame)) = self.switch.handle_frame(port, frame, now) {
                    self.lose(frame);
                }
                self.drain_switch();
            }
            Event::Switch => {
                self.switch_wake = Nanos::MAX;
                self.drain_switch();
            }
        }
    }

    /// `first`, with everything that the host's applications send at the same time, which the agent reads
    /// together.
    fn batch(&mut self, host: usize, first: Vec<u8>) -> Vec<Vec<u8>> {
        let mut frames = vec![first];
        while let Some(Reverse((at, _, Event::App { host: next, .. }))) = self.events.peek() {
            if (*at, *next) != (self.now, host) {
                break;
            }
            if let Some(Reverse((_, _, Event::App { frame, .. }))) = self.events.pop() {
                frames.push(frame);
            }
        }
        frames
    }

    /// Lets a host's machine act, then carries out its requests.
    fn drive(&mut self, index: usize, act: impl FnOnce(&mut Endpoint)) {
        let now = self.now;
        let Some(mut endpoint) = self.hosts[index].endpoint.take() else { return };
        act(&mut endpoint);
        endpoint.handle_timeout(now);
        let mut buffer = std::mem::take(&mut self.buffer);
        while endpoint.poll_link(now, &mut buffer).is_some() {
            let wire =
                Nanos::on_wire(wire_bytes(buffer.len() as u64), self.hosts[index].config.station().rate_bps);
            let (arrivals, last) = self.carry(&buffer, now + wire, self.jitter.up, self.hosts[index].last_up);
            self.hosts[index].last_up = last;
            for at in arrivals.into_iter().flatten() {
                self.push(at, Event::Arrive { port: index, frame: buffer.clone() });
            }
        }
        while endpoint.poll_app(&mut buffer) {
            self.deliveries.push(Delivery { host: index, at: now, frame: buffer.clone() });
        }
        self.buffer = buffer;
        let timeout = endpoint.next_timeout();
        let host = &mut self.hosts[index];
        host.endpoint = Some(endpoint);
        host.turn += 1;
        if let Some(at) = timeout {
            let turn = host.turn;
            let wake_at = at.max(now).saturating_add(self.pick(self.jitter.wake));
            self.push(wake_at, Event::Wake { host: index, turn });
        }
    }

    fn drain_switch(&mut self) {
        while let Some((port, frame, gone_at)) = self.switch.poll_transmit(self.now) {
            let (arrivals, last) = self.carry(&frame, gone_at, self.jitter.down, self.hosts[port].last_down);
            self.hosts[port].last_down = last;
            for received_at in arrivals.into_iter().flatten() {
                let awake = received_at.saturating_add(self.pick(self.jitter.wake));
                // The host reads its socket in order.
                let at = if last == received_at { awake.max(self.hosts[port].last_read) } else { awake };
                self.hosts[port].last_read = self.hosts[port].last_read.max(at);
                self.push(at, Event::Receive { host: port, frame: frame.clone(), received_at });
            }
        }
        if let Some(at) = self.switch.next_timeout().filter(|at| *at < self.switch_wake) {
            self.switch_wake = at.max(self.now);
            self.push(self.switch_wake, Event::Switch);
        }
    }

    /// Arrivals of a frame that left at `sent_at`: one, two or none. Updates the link's latest arrival.
    fn carry(
        &mut self,
        frame: &[u8],
        sent_at: Nanos,
        spread: Spread,
        last: Nanos,
    ) -> ([Option<Nanos>; 2], Nanos) {
        let time = sent_at.0.to_be_bytes();
        self.digest = hash::further(self.digest, frame.iter().chain(&time).copied());
        let arrival = sent_at.saturating_add(self.pick(spread));
        let in_order = arrival.max(last);
        if self.now >= self.faults.until {
            return ([Some(in_order), None], in_order);
        }
        let faults = self.faults;
        let lose = if self.is_control(frame) { faults.lose_control } else { faults.lose_data };
        if self.chance(lose) {
            self.lose(frame.to_vec());
            return ([None, None], last);
        }
        let copy = self.chance(faults.duplicate);
        let late = self.chance(faults.reorder);
        let more = self.pick((Nanos::ZERO, Nanos::from_micros(500)));
        let copy = copy.then_some(in_order.saturating_add(more));
        match late {
            true => ([Some(arrival.saturating_add(more)), copy], last),
            false => ([Some(in_order), copy], in_order),
        }
    }

    fn lose(&mut self, frame: Vec<u8>) {
        match self.is_control(&frame) {
            true => self.control_lost += 1,
            false => self.lost.push(frame),
        }
    }

    fn is_control(&self, frame: &[u8]) -> bool {
        let Some(Config::Pl2(config)) = self.hosts.first().map(|host| &host.config) else { return false };
        frame.get(16..18) == Some(&config.ether_type.0.to_be_bytes())
            && frame.get(18).is_some_and(|first| first & 0xf != Kind::Data as u8)
    }

    fn chance(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.random.next() % 1_000_000 < u64::from(per_million)
    }

    fn pick(&mut self, (least, most): Spread) -> Nanos {
        let width = most.0.saturating_sub(least.0);
        if width == 0 {
            return least;
        }
        Nanos(least.0 + self.random.next() % (width + 1))
    }

    fn push(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }
}
