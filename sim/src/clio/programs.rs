//! A rack whose programs use a board's key-value store, in virtual time. Their requests depend on answers and are not known in advance,
//! so the caller that runs the programs issues them, and gets outcomes in order of time.
//!
//! ```text
//!   submit ─ client library ─ machine of the link ─▶ switch ─▶ machine of the link ─▶ board ─ store
//!   next  ◀─ client library ◀─ machine of the link ◀─ switch ◀─ machine of the link ◀─┘
//! ```
//!
//! The generated program runs on the switch's core, and hosts have the machines of real ones. Programs, drivers, processors and the
//! board's memory take no time.

use super::direct::Direct;
use super::memory::{KEPT_BYTES, SimMemory};
use super::rack::{End, HEADERS, HostAddress, datagram, headers, machine};
use super::setup::secret;
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Clock, Due, Hub, SwitchCounts};
use crate::switch::{Model, P4};
use p4rack_codegen::rack::Rack;
use p4rack_fabric::clio::board::{Board, Config, Grant, Quota, Quotas};
use p4rack_fabric::clio::lib::{self, Client, Credentials, Operation, Outcome, Refused};
use p4rack_fabric::{Endpoint, HostMachine as _, Machine as _};
use p4rack_offload::{Kv, Offloads, PointerChase};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PAGE_SIZES, Status};
use std::collections::VecDeque;

/// From one end of a link to the other.
const LINK: Nanos = Nanos(300);
const CLOCK: Clock = Clock::NANOSECONDS;
/// First UDP port of clients.
const PORTS: u16 = 10_000;
/// Bytes of a store for a bucket.
const BUCKET_BYTES: u64 = 128;

/// The board of a rack.
#[derive(Clone, Debug)]
pub struct StoreBoard {
    /// Position of its host.
    pub host: usize,
    /// Port at which it takes packets.
    pub udp_port: u16,
    /// Its parameters, with room for the store.
    pub config: Config,
    /// Bytes of the store, in the first pool.
    pub store_bytes: u64,
}

/// How a call of a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// It was executed, with these results.
    Done(Vec<u8>),
    /// The board refused it.
    Refused(Status),
    /// No answer to any attempt.
    Unknown,
}

enum Event {
    /// The machine of a host's link looks at its clock.
    Link(usize),
    AtSwitch(usize, Frame),
    Switch,
    AtHost(usize, Frame),
    /// A client looks at its clock.
    Client(usize),
    Board,
}

struct Host {
    place: HostAddress,
    port: u16,
    rate_bps: u64,
    link: Endpoint,
    due: Due,
}

struct Caller {
    host: usize,
    client: Client,
    due: Due,
}

/// The board, and the unit that serves its calls.
struct ServedBoard {
    host: usize,
    udp_port: u16,
    board: Board<SimMemory, End>,
    offloads: Offloads,
    due: Due,
}

/// A rack in virtual time.
pub struct StoreRack {
    hub: Hub,
    hosts: Vec<Host>,
    callers: Vec<Caller>,
    node: ServedBoard,
    /// Number of the store among the board's offloads.
    store: u64,
    agenda: Agenda<Event>,
    frames: Frames,
    packet: Vec<u8>,
    ended: VecDeque<(usize, u64, StoreOutcome)>,
    now: Nanos,
}

impl std::fmt::Debug for StoreRack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreRack").field("now", &self.now).finish_non_exhaustive()
    }
}

/// A process without memory of its own that may be allocated.
fn begin(board: &mut Board<SimMemory, End>, quotas: Quotas) -> Result<Grant, String> {
    board.begin(quotas).map_err(|error| error.to_string())
}

impl ServedBoard {
    /// Errors: the board refuses its parameters, or has no room for the store.
    fn new(spec: StoreBoard, seed: u64) -> Result<(ServedBoard, u64, Nanos), String> {
        let config = spec.config;
        let (size, bytes) = (config.pools[0].size, config.bytes());
        if bytes > StoreRack::BYTES_MAX {
            return Err(format!("a board of {bytes} bytes is too large for virtual time"));
        }
        let memory = SimMemory::new(bytes);
        let secret = secret(seed);
        let hashes = secret.seed("store");
        let mut board = Board::new(config, secret, memory).map_err(|error| error.to_string())?;
        let mut offloads = Offloads::default();
        offloads.add(begin(&mut board, Quotas::default())?.space, Box::new(PointerChase));
        let pages = size.pages(spec.store_bytes);
        let mut quotas: Quotas = [Quota::default(); PAGE_SIZES];
        quotas[size as usize] = Quota { reserved: pages as u32, limit: pages as u32, shared: 0 };
        let own = begin(&mut board, quotas)?;
        let mut direct = Direct::new();
        let address = direct.alloc(&mut board, &own, size, pages).map_err(|failed| failed.to_string())?;
        let kv = Kv::new(own.space, address, spec.store_bytes, spec.store_bytes / BUCKET_BYTES, hashes);
        let store = offloads.add(own.space, Box::new(kv));
        let StoreBoard { host, udp_port, .. } = spec;
        Ok((ServedBoard { host, udp_port, board, offloads, due: Due::default() }, store, direct.now))
    }
}

impl StoreRack {
    /// Maximum bytes of the board's memory.
    pub const BYTES_MAX: u64 = KEPT_BYTES;

    /// The rack, which runs its scheme, with a board and its store.
    ///
    /// Errors: the rack's program can't be generated, or the board refuses its parameters.
    pub fn new(rack: &Rack, board: StoreBoard, seed: u64) -> Result<StoreRack, String> {
        let switch = P4::new(rack, rack.scheme(), |_| {}).map_err(|error| error.to_string())?;
        let hosts = rack.hosts.iter().enumerate().map(|(nth, host)| {
            let link = machine(rack, host, seed.wrapping_mul(1_000) + nth as u64)?;
            let place = HostAddress { mac: host.mac, ip: host.ip };
            Ok(Host { place, port: host.port, rate_bps: host.rate_bps, link, due: Due::default() })
        });
        let hosts = hosts.collect::<Result<_, String>>()?;
        let (node, store, now) = ServedBoard::new(board, seed)?;
        let mut built = StoreRack {
            hub: Hub::new(switch, CLOCK),
            hosts,
            callers: Vec::new(),
            node,
            store,
            agenda: Agenda::default(),
            frames: Frames::default(),
            packet: Vec::new(),
            ended: VecDeque::new(),
            now,
        };
        built.pump_board();
        Ok(built)
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Begins a client on a host, as a process of its own. Returns its number. Errors: the board has no process left.
    pub fn begin(&mut self, host: usize, config: lib::Config) -> Result<usize, String> {
        let grant = begin(&mut self.node.board, Quotas::default())?;
        let credentials = Credentials { pid: grant.space.pid, epoch: grant.space.epoch, token: grant.token };
        let number = self.callers.len();
        let client = Client::new(config, &[credentials], number as u32);
        self.callers.push(Caller { host, client, due: Due::default() });
        Ok(number)
    }

    /// A client calls a function of the store, with the tag under which the call ends. Errors: the client library refuses it.
    pub fn call(
        &mut self,
        caller: usize,
        tag: u64,
        function: u8,
        arguments: &[u8],
        results_bytes_max: u32,
    ) -> Result<(), Refused> {
        let call = Operation::Call {
            offload: self.store,
            function,
            arguments,
            results_bytes_max,
            is_ordered: false,
        };
        self.callers[caller].client.submit(0, 0, tag, call, self.now)?;
        self.pump(caller);
        Ok(())
    }

    /// Goes on until a call has ended: its client, its tag, and how. `None` at time `until`, if none has.
    pub fn next(&mut self, until: Nanos) -> Option<(usize, u64, StoreOutcome)> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let Some((at_ns, event)) = self.agenda.next_until(until.0) else {
                self.now = self.now.max(until);
                return None;
            };
            self.now = self.now.max(Nanos(at_ns));
            self.handle(event);
        }
    }

    /// Queues and the traffic manager's drops are counted from now on.
    pub fn start_counting(&mut self) {
        self.hub.model.reset_stats(self.now);
    }

    /// The switch's counters, with the queues of a host's port. `None`: the rack has no such host.
    pub fn counts(&self, host: usize) -> Option<SwitchCounts> {
        self.hub.counts(self.hosts.get(host)?.port, &[], self.now.0)
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Link(host) => {
                if self.hosts[host].due.is_now(now.0) {
                    self.drain(host);
                }
            }
            Event::AtSwitch(host, frame) => {
                self.hub.take(self.hosts[host].port, &frame, now.0);
                self.frames.release(frame);
                self.transmit();
            }
            Event::Switch => {
                if self.hub.is_due(now.0) {
                    self.transmit();
                }
            }
            Event::AtHost(host, frame) => self.arrived(host, frame),
            Event::Client(nth) => {
                let caller = &mut self.callers[nth];
                if caller.due.is_now(now.0) {
                    caller.client.handle_timeout(now);
                    self.pump(nth);
                }
            }
            Event::Board => {
                if self.node.due.is_now(now.0) {
                    self.node.board.handle_timeout(now);
                    self.pump_board();
                }
            }
        }
    }

    /// Sends a client's packets, takes its outcomes, and plans its clock.
    fn pump(&mut self, nth: usize) {
        let (now, Caller { host, client, due }) = (self.now, &mut self.callers[nth]);
        let host = *host;
        let (from, to) = (self.hosts[host].place, self.hosts[self.node.host].place);
        while client.poll_link(now, &mut self.packet).is_some() {
            let ports = (PORTS + nth as u16, self.node.udp_port);
            send(&mut self.hosts[host].link, &mut self.frames, (from, to), ports, &self.packet, now);
        }
        while let Some((tag, outcome)) = client.poll_completion() {
            let outcome = match outcome {
                Outcome::Results(results) => StoreOutcome::Done(results.to_vec()),
                Outcome::Refused(status) => StoreOutcome::Refused(status),
                Outcome::Unknown => StoreOutcome::Unknown,
                _ => StoreOutcome::Done(Vec::new()),
            };
            self.ended.push_back((nth, tag, outcome));
        }
        let next = client.next_timeout().and_then(|at| due.plan(at.0, now.0));
        self.agenda.extend(next.map(|at| (at, Event::Client(nth))));
        self.drain(host);
    }

    /// Executes the board's calls, sends its answers, and plans its clock.
    fn pump_board(&mut self) {
        let now = self.now;
        let ServedBoard { host, udp_port, board, offloads, due } = &mut self.node;
        offloads.serve(board, now);
        let (host, from) = (*host, self.hosts[*host].place);
        while let Some(sent) = board.poll_link(now, &mut self.packet) {
            let Some(to) = self.hosts.get(usize::from(sent.to.host)).map(|host| host.place) else { continue };
            let ports = (*udp_port, sent.to.port);
            send(&mut self.hosts[host].link, &mut self.frames, (from, to), ports, &self.packet, now);
        }
        let next = board.next_timeout().and_then(|at| due.plan(at.0, now.0));
        self.agenda.extend(next.map(|at| (at, Event::Board)));
        self.drain(host);
    }

    /// Sends the frames of a host's machine, and plans its clock.
    fn drain(&mut self, nth: usize) {
        let (now, Host { link, rate_bps, due, .. }) = (self.now, &mut self.hosts[nth]);
        link.handle_timeout(now);
        loop {
            let mut frame = self.frames.take(link.next_is_control());
            if link.poll_link(now, &mut frame).is_none() {
                self.frames.release(frame);
                break;
            }
            let tail = now.0 + CLOCK.on_wire(frame.len(), *rate_bps);
            self.agenda.add(tail + LINK.0, Event::AtSwitch(nth, frame));
        }
        let next = link.next_timeout().and_then(|at| due.plan(at.0, now.0));
        self.agenda.extend(next.map(|at| (at, Event::Link(nth))));
    }

    fn transmit(&mut self) {
        let now = self.now.0;
        while let Some((port, frame)) = self.hub.poll(now, &mut self.frames) {
            match self.hosts.iter().position(|host| host.port == port) {
                Some(host) => {
                    let tail = now + CLOCK.on_wire(frame.len(), self.hosts[host].rate_bps);
                    self.agenda.add(tail + LINK.0, Event::AtHost(host, frame));
                }
                None => self.frames.release(frame),
            }
        }
        self.agenda.extend(self.hub.again(now).map(|at| (at, Event::Switch)));
    }

    fn arrived(&mut self, nth: usize, frame: Frame) {
        let now = self.now;
        let app = self.hosts[nth].link.forward_link(&frame, now, now);
        if let Some((ip, ports, packet)) = app.as_ref().and_then(|app| datagram(app.rest(&frame))) {
            let from = self.hosts.iter().position(|host| host.place.ip == ip);
            if let Some(from) = from.filter(|_| nth == self.node.host && ports.1 == self.node.udp_port) {
                let from = End { host: from as u16, port: ports.0 };
                self.node.board.handle_link((from, packet), now, now);
                self.pump_board();
            } else if let Some(caller) = ports.1.checked_sub(PORTS).map(usize::from)
                && self.callers.get(caller).is_some_and(|caller| caller.host == nth)
            {
                self.callers[caller].client.handle_link((0, packet), now, now);
                self.pump(caller);
            }
        }
        self.frames.release(frame);
        self.drain(nth);
    }
}

/// Gives a packet to the machine of a host's link.
fn send(
    link: &mut Endpoint,
    frames: &mut Frames,
    (from, to): (HostAddress, HostAddress),
    ports: (u16, u16),
    packet: &[u8],
    now: Nanos,
) {
    let mut frame = frames.take(packet.len() < 200);
    frame.clear();
    frame.resize(HEADERS, 0);
    frame.extend_from_slice(packet);
    headers(&mut frame, (from, to), ports);
    link.handle_app(&frame, now);
    frames.release(frame);
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
