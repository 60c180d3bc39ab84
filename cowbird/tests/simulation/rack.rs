//! The three adapters, the engine, the threads, and the network between them.

use p4rack_cowbird::{Area, Client, Layout, PollId, Refused};
use p4rack_fabric::Machine as _;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::cowbird::{self, Engine, Pool, Set, State};
use p4rack_fabric::roce::{
    self, Adapter, Completion, Connection, Outcome, Region, Regions, RegisteredMemory, Request, Rights,
};
use p4rack_history::Page;
use p4rack_wire::cowbird::Green;
use p4rack_wire::roce::Mtu;
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes of remote memory of each thread.
pub const SPAN: usize = 256;
/// Key and address of the pool's region.
pub const POOL_KEY: u32 = 0x99;
pub const POOL_START: u64 = 1 << 20;
/// Key of the first thread's set; the others follow.
const SET_KEY: u32 = 0x50;
/// Bytes of a read or write at most.
const LENGTH_MAX: u64 = 64;

/// Faults of the network, in thousandths of frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub copied: u64,
    pub delayed: u64,
    pub corrupted: u64,
}

/// A mistake between the engine and its adapter, as a wrong engine would make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Some writes don't arrive at the pool.
    LostWrite,
    /// Writes arrive after they were reported done.
    LateWrite,
    /// A write is reported done before it is.
    EarlyProgress,
    /// Reads bring bytes of a while ago.
    StaleRead,
    /// A bit of the read data flips.
    FlippedBit,
    /// A read that should have waited for a write did not: it brings the bytes from before the last write.
    Overtaken,
    /// An entry is taken before the tail covers it.
    EarlyEntry,
}

impl Bug {
    pub const ALL: [Bug; 7] = [
        Bug::LostWrite,
        Bug::LateWrite,
        Bug::EarlyProgress,
        Bug::StaleRead,
        Bug::FlippedBit,
        Bug::Overtaken,
        Bug::EarlyEntry,
    ];
}

pub struct Thread {
    pub client: Client<Arc<[AtomicU64]>>,
    pub poll: PollId,
    pub history: Page,
    pub left: usize,
    pub instance: u32,
}

pub struct Rack {
    pub compute: Adapter<Area>,
    pub spot: Adapter<Regions>,
    pub pool: Adapter<Regions>,
    pub engine: Engine,
    pub threads: Vec<Thread>,
    pub now: Nanos,
    pub random: SplitMix,
    pub bug: Option<Bug>,
    /// Queue pairs of the engine's connections: to the compute node, to the pool.
    pairs: [u32; 2],
    config: cowbird::Config,
    layout: Layout,
    faults: Faults,
    frames: BTreeMap<(Nanos, u64), Vec<u8>>,
    sent: u64,
    /// Dead parties: they neither receive nor send, but their state can still be read.
    dead: Option<Role>,
    /// The pool's memory as it was some reads ago, and before the last write.
    stale: Vec<Vec<u8>>,
    late: Vec<(Nanos, u64, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Compute = 1,
    Spot = 2,
    Pool = 3,
}

fn mac(node: Role) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, node as u8])
}

/// The connection as `from` sees it; both ends have the same number.
fn connection(from: Role, to: Role, qpn: u32) -> Connection {
    let ip = |node: Role| Ipv4Addr::new(10, 0, 0, node as u8);
    let path = Path {
        src_mac: mac(from),
        dst_mac: mac(to),
        src_ip: ip(from),
        dst_ip: ip(to),
        src_port: 50_000,
        dscp: 0,
    };
    let psn = |node: Role| 0xff_fff0 + node as u32;
    Connection { path, peer_qpn: qpn, send_psn: psn(from), receive_psn: psn(to), domain: 0 }
}

impl Rack {
    pub fn new(
        threads: usize,
        operations: usize,
        config: cowbird::Config,
        layout: Layout,
        faults: Faults,
        seed: u64,
    ) -> Rack {
        let adapter = roce::Config {
            mtu: Mtu::B256,
            message_bytes_max: 4_096,
            timeout: Nanos::from_micros(60),
            retries_max: u8::MAX,
            ..roce::Config::default()
        };
        let mut area = Area::default();
        let set = |nth: usize| {
            let words: Arc<[AtomicU64]> = (0..layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
            assert!(area.offer(0, SET_KEY + nth as u32, set_start(nth), words.clone()));
            let mut client = Client::new(words, layout, vec![SPAN as u64]).unwrap();
            let poll = client.poll_create();
            Thread { client, poll, history: Page::new(SPAN), left: operations, instance: 0 }
        };
        let threads: Vec<Thread> = (0..threads).map(set).collect();
        let mut memory = Regions::default();
        // One span more, for the misplaced writes of a planted bug.
        let bytes = vec![0; (threads.len() + 1) * SPAN];
        memory
            .register(Region { domain: 0, key: POOL_KEY, start: POOL_START, bytes, rights: Rights::ALL })
            .unwrap();
        let mut rack = Rack {
            compute: Adapter::new(adapter.clone(), area).unwrap(),
            spot: Adapter::new(adapter.clone(), Regions::default()).unwrap(),
            pool: Adapter::new(adapter, memory).unwrap(),
            engine: Engine::new(config.clone()),
            threads,
            now: Nanos::ZERO,
            random: SplitMix(seed),
            bug: None,
            pairs: [0x10, 0x11],
            config,
            layout,
            faults,
            frames: BTreeMap::new(),
            sent: 0,
            dead: None,
            stale: Vec::new(),
            late: Vec::new(),
        };
        rack.start_engine();
        rack
    }

    /// A new engine with new queue pairs; those of the former one are gone, with all of its state.
    pub fn start_engine(&mut self) {
        for qpn in self.pairs {
            self.compute.remove_pair(qpn);
            self.spot.remove_pair(qpn);
            self.pool.remove_pair(qpn);
        }
        self.pairs = self.pairs.map(|qpn| qpn + 2);
        let [to_compute, to_pool] = self.pairs;
        self.compute.add_pair(to_compute, connection(Role::Compute, Role::Spot, to_compute)).unwrap();
        self.spot.add_pair(to_compute, connection(Role::Spot, Role::Compute, to_compute)).unwrap();
        self.spot.add_pair(to_pool, connection(Role::Spot, Role::Pool, to_pool)).unwrap();
        self.pool.add_pair(to_pool, connection(Role::Pool, Role::Spot, to_pool)).unwrap();
        self.engine = Engine::new(self.config.clone());
        for (nth, thread) in self.threads.iter_mut().enumerate() {
            let address = POOL_START + (nth * SPAN) as u64;
            let pool = Pool { qpn: to_pool, key: POOL_KEY, address, bytes: SPAN as u64 };
            let set = Set {
                owner: 0,
                qpn: to_compute,
                key: SET_KEY + nth as u32,
                address: set_start(nth),
                layout: self.layout,
                regions: vec![pool],
            };
            thread.instance = self.engine.add(set, self.now).unwrap();
        }
    }

    /// A node dies, with the frames on their way to it.
    pub fn kill(&mut self, node: Role) {
        self.dead = Some(node);
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.random.next() % 1_000 < of
    }

    pub fn state(&self, nth: usize) -> State {
        self.engine.state(self.threads[nth].instance).unwrap()
    }

    /// The pool's span of a thread.
    pub fn span(&self, nth: usize) -> &[u8] {
        &self.pool.memory().get(POOL_KEY).unwrap().bytes[nth * SPAN..(nth + 1) * SPAN]
    }

    /// Puts a frame on its way.
    fn deliver(&mut self, frame: &[u8]) {
        let faults = self.faults;
        if self.chance(faults.lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance(faults.copied));
        for _ in 0..copies {
            let mut frame = frame.to_vec();
            if self.chance(faults.corrupted) {
                // Not the address: no host would take the frame.
                let bit = 48 + self.random.next() as usize % (frame.len() * 8 - 48);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            let late = if self.chance(faults.delayed) { self.random.next() % 20_000 } else { 0 };
            self.sent += 1;
            self.frames.insert((self.now + Nanos(1_000 + late), self.sent), frame);
        }
    }

    /// Sends pending frames.
    fn poll(&mut self) {
        while let Some((qpn, request)) = self.engine.poll_link(self.now, &mut ()) {
            let request = self.spoil_request(qpn, request);
            self.spot.handle_request(qpn, request).unwrap();
        }
        let mut frames = Vec::new();
        drain(&mut self.compute, self.now, &mut frames);
        drain(&mut self.spot, self.now, &mut frames);
        drain(&mut self.pool, self.now, &mut frames);
        let of_the_dead = |frame: &Vec<u8>| self.dead.is_some_and(|node| frame[11] == node as u8);
        frames.retain(|frame| !of_the_dead(frame));
        for frame in frames {
            self.deliver(&frame);
        }
        while let Some((qpn, completion)) = self.spot.poll_completion() {
            if let Completion::Request(_, outcome) = completion {
                let outcome = self.spoil_outcome(qpn, outcome);
                self.engine.handle_link((qpn, outcome), self.now, self.now);
            }
        }
    }

    fn spoil_request(&mut self, qpn: u32, mut request: Request) -> Request {
        let scratch = POOL_START + (self.threads.len() * SPAN) as u64;
        let [to_compute, to_pool] = self.pairs;
        match (self.bug, &mut request) {
            (Some(Bug::LostWrite), Request::Write { address, .. })
                if qpn == to_pool && self.random.next().is_multiple_of(8) =>
            {
                *address = scratch;
            }
            (Some(Bug::LateWrite), Request::Write { address, bytes, .. }) if qpn == to_pool => {
                self.late.push((self.now + Nanos::from_micros(30), *address, bytes.clone()));
                *address = scratch;
            }
            (Some(Bug::EarlyProgress), Request::Write { key, address, bytes, .. })
                if qpn == to_compute && *address & 0xffff == 64 && *key >= SET_KEY =>
            {
                let thread = &self.threads[(*key - SET_KEY) as usize];
                let mut red = p4rack_wire::cowbird::Red::parse(bytes).unwrap();
                red.write_progress = (red.write_progress + 1).min(thread.history.writes());
                red.emit(bytes);
            }
            (Some(Bug::Overtaken), Request::Write { .. }) if qpn == to_pool => {
                let all = self.pool.memory().get(POOL_KEY).unwrap().bytes.clone();
                self.stale = vec![all];
            }
            _ => {}
        }
        request
    }

    fn spoil_outcome(&mut self, qpn: u32, mut outcome: Outcome) -> Outcome {
        // A probe, most of the time: an entry and a write's data may be as long.
        if self.bug == Some(Bug::EarlyEntry)
            && qpn == self.pairs[0]
            && let Outcome::Read(bytes) = &mut outcome
            && bytes.len() == Green::BYTES
            && self.random.next().is_multiple_of(8)
        {
            bytes[7] = bytes[7].wrapping_add(1);
        }
        let (Outcome::Read(mut bytes), true) = (outcome.clone(), qpn == self.pairs[1]) else {
            return outcome;
        };
        match self.bug {
            Some(Bug::FlippedBit) if self.random.next().is_multiple_of(8) => bytes[0] ^= 4,
            Some(Bug::StaleRead | Bug::Overtaken) => {
                if self.bug == Some(Bug::StaleRead) {
                    let all = self.pool.memory().get(POOL_KEY).unwrap().bytes.clone();
                    self.stale.push(all);
                    if self.stale.len() > 6 {
                        self.stale.remove(0);
                    }
                }
                // Where it was read from is not known here: it is found by its bytes.
                let now = &self.pool.memory().get(POOL_KEY).unwrap().bytes;
                let found = now.windows(bytes.len()).position(|window| window == bytes);
                if let (Some(at), Some(old)) = (found, self.stale.first()) {
                    bytes = old[at..at + bytes.len()].to_vec();
                }
            }
            _ => {}
        }
        Outcome::Read(bytes)
    }

    /// The next thing that happens. Returns whether anything did.
    pub fn step(&mut self) -> bool {
        self.poll();
        let arrival = self.frames.keys().next().map(|(at, _)| *at);
        let timeouts = [
            self.compute.next_timeout(),
            self.spot.next_timeout(),
            self.pool.next_timeout(),
            self.engine.next_link(),
            self.late.first().map(|(at, ..)| *at),
        ];
        let Some(next) = timeouts.into_iter().flatten().chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some((at, address, bytes)) = self.late.first().cloned()
            && at <= self.now
        {
            self.late.remove(0);
            let place = roce::RemoteAddress { domain: 0, key: POOL_KEY, address };
            self.pool.memory_mut().write(place, &bytes).unwrap();
        }
        if arrival == Some(next)
            && let Some((_, frame)) = self.frames.pop_first()
        {
            match frame[5] {
                to if self.dead.is_some_and(|node| to == node as u8) => {}
                1 => self.compute.handle_link(&frame, self.now, self.now),
                2 => self.spot.handle_link(&frame, self.now, self.now),
                _ => self.pool.handle_link(&frame, self.now, self.now),
            }
        }
        self.compute.handle_timeout(self.now);
        self.spot.handle_timeout(self.now);
        self.pool.handle_timeout(self.now);
        self.poll();
        true
    }

    /// A thread makes a request if there is room. Errors: the engine has ended its set.
    pub fn ask(&mut self, nth: usize) -> Result<(), String> {
        let (random, thread) = (&mut self.random, &mut self.threads[nth]);
        if thread.left == 0 {
            return Ok(());
        }
        let length = 1 + random.next() % LENGTH_MAX;
        let at = random.next() % (SPAN as u64 - length + 1);
        let asked = if random.next().is_multiple_of(2) {
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            let asked = thread.client.async_write(0, &bytes, at);
            if let Ok(id) = asked {
                thread.history.write(id.0, at as usize, bytes);
            }
            asked
        } else {
            let asked = thread.client.async_read(0, at, length as u32);
            if let Ok(id) = asked {
                thread.history.read(id.0, at as usize, length as usize);
            }
            asked
        };
        match asked {
            Ok(id) => {
                thread.client.poll_add(thread.poll, id).unwrap();
                thread.left -= 1;
                Ok(())
            }
            Err(Refused::RequestsFull | Refused::RequestDataFull | Refused::ResponseDataFull) => Ok(()),
            Err(other) => Err(other.to_string()),
        }
    }

    /// A thread fetches finished requests. Errors: the violation of order.
    pub fn fetch(&mut self, nth: usize) -> Result<(), String> {
        let span = self.span(nth).to_vec();
        let Thread { client, poll, history, .. } = &mut self.threads[nth];
        let mut wrong = Ok(());
        let fetched = client.poll(*poll, usize::MAX, |response| {
            let read = response.data.map(|data| data.to_vec());
            let right = history.done(response.id.0, read.as_deref()).and_then(|()| history.kept(&span));
            if wrong.is_ok() {
                wrong = right;
            }
        });
        fetched.map_err(|error| error.to_string())?;
        wrong
    }

    /// Whether all requests of all threads are done.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| thread.left == 0 && thread.history.is_done())
    }
}

fn set_start(nth: usize) -> u64 {
    (nth as u64 + 1) << 16
}

fn drain<M: RegisteredMemory>(adapter: &mut Adapter<M>, now: Nanos, frames: &mut Vec<Vec<u8>>) {
    let mut frame = Vec::new();
    while adapter.poll_link(now, &mut frame).is_some() {
        frames.push(frame.clone());
    }
}
