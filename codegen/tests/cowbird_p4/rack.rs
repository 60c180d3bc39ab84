//! The switch, the adapters, the threads, and the links between them.

use crate::common::{Built, Rig};
use p4rack_codegen::rack::Rack;
use p4rack_codegen::scheme::cowbird::{self, Cowbird, Instance, Pool, SENT_COUNTER, Start};
use p4rack_codegen::{Arch, Scheme};
use p4rack_cowbird::{Area, Client, Layout, PollId, Refused};
use p4rack_fabric::Machine as _;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{self, Adapter, Connection, Region, Regions, RegisteredMemory, Rights};
use p4rack_history::Page;
use p4rack_p4rt::p4::v1::{Update, update};
use p4rack_wire::cowbird::{Management, Phase, RED_AT, Red};
use p4rack_wire::roce::Mtu;
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of remote memory that each thread has for itself.
pub const SPAN: usize = 1_024;
/// Key and address of the pool's region.
const POOL_KEY: u32 = 0x99;
const POOL_START: u64 = 1 << 20;
/// Key of the first thread's set; the others follow.
const SET_KEY: u32 = 0x50;
/// Port, and end of the addresses, of compute node and pool.
pub const COMPUTE: u16 = 1;
pub const POOL: u16 = 2;
/// Where turns come in.
pub const TICK_QPN: u32 = 0xabcdef;
const TURN: Nanos = Nanos(2_000);

/// Faults of links, in thousandths of frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub copied: u64,
    pub delayed: u64,
}

pub struct Thread {
    pub client: Client<Arc<[AtomicU64]>>,
    poll: PollId,
    pub history: Page,
    pub left: usize,
    pub instance: Option<Instance>,
}

pub struct Net {
    pub rig: Rig,
    /// Switches with programs for other architectures, which have to do the same.
    twins: Vec<Rig>,
    pub compute: Adapter<Area>,
    pub pool: Adapter<Regions>,
    pub threads: Vec<Thread>,
    pub now: Nanos,
    pub random: SplitMix,
    layout: Layout,
    faults: Faults,
    frames: BTreeMap<(Nanos, u64), (u16, Vec<u8>)>,
    sent: u64,
    qpn: u32,
    turn: Nanos,
    pub to_controller: Vec<Vec<u8>>,
    /// Frames that came into the switch, if they are to be recorded.
    pub seen: Option<Vec<(u16, Vec<u8>)>>,
}

/// A program whose instances have `in_flight` requests under way.
pub fn built(in_flight: u32) -> Built {
    built_beside(in_flight, "", &[])
}

/// The same for another architecture.
pub fn built_on(in_flight: u32, arch: Arch) -> Built {
    described(in_flight, "", &[], arch)
}

/// The same, with the variants of other protocols in one pipeline, whose tables are `others`.
pub fn built_beside(in_flight: u32, others: &str, variants: &[&'static str]) -> Built {
    described(in_flight, others, variants, Arch::V1model)
}

/// The same for any architecture.
pub fn described(in_flight: u32, others: &str, variants: &[&'static str], arch: Arch) -> Built {
    let hosts: String = (1..=3)
        .map(|n| {
            format!("[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n")
        })
        .collect();
    let text = format!(
        "name = \"test\"\n[switch]\nport_rate = \"10 Gb/s\"\n[cowbird]\nip = \"10.0.0.254\"\ncompute = [\"h1\"]\n\
         pool = [\"h2\"]\ninstances = 4\nmtu = 256\nin_flight = {in_flight}\nmessage_bytes_max = 4096\n\
         rest_turns = 4\ntimeout_us = 60\n{others}\n{hosts}"
    );
    let rack = Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let scheme = Scheme::of(variants.iter().copied().chain(["cowbird"]));
    Built::on(rack, scheme, arch)
}

pub fn cowbird(rig: &Rig) -> Cowbird {
    rig.built.rack.protocol::<Cowbird>().unwrap().clone()
}

fn mac(port: u16) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, port as u8])
}

fn ip(port: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, port as u8)
}

impl Net {
    pub fn new(
        built: &Built,
        threads: usize,
        operations: usize,
        layout: Layout,
        faults: Faults,
        seed: u64,
    ) -> Net {
        Net::beside(built, &[], threads, operations, layout, faults, seed)
    }

    /// A rack whose switch has twins: programs that have to send the same frames.
    pub fn beside(
        built: &Built,
        twins: &[Built],
        threads: usize,
        operations: usize,
        layout: Layout,
        faults: Faults,
        seed: u64,
    ) -> Net {
        let adapter = roce::Config {
            mtu: Mtu::B256,
            message_bytes_max: 4_096,
            reads_max: 16,
            icrc_verified: false,
            ..roce::Config::default()
        };
        let mut area = Area::default();
        let set = |nth: usize| {
            let words: Arc<[AtomicU64]> = (0..layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
            assert!(area.offer(0, SET_KEY + nth as u32, set_start(nth), words.clone()));
            let mut client = Client::new(words, layout, vec![SPAN as u64]).unwrap();
            let poll = client.poll_create();
            Thread { client, poll, history: Page::new(SPAN), left: operations, instance: None }
        };
        let threads: Vec<Thread> = (0..threads).map(set).collect();
        let mut memory = Regions::default();
        let bytes = vec![0; threads.len() * SPAN];
        memory
            .register(Region { domain: 0, key: POOL_KEY, start: POOL_START, bytes, rights: Rights::ALL })
            .unwrap();
        let mut net = Net {
            rig: Rig::new(built),
            twins: twins.iter().map(Rig::new).collect(),
            compute: Adapter::new(adapter.clone(), area).unwrap(),
            pool: Adapter::new(adapter, memory).unwrap(),
            threads,
            now: Nanos::from_millis(1),
            random: SplitMix(seed),
            layout,
            faults,
            frames: BTreeMap::new(),
            sent: 0,
            qpn: 0x10,
            turn: Nanos::from_millis(1),
            to_controller: Vec::new(),
            seen: None,
        };
        net.begin_turns();
        for nth in 0..net.threads.len() {
            net.begin(nth);
        }
        net
    }

    fn begin_turns(&mut self) {
        let threads = self.threads.len() as u32;
        self.share_turns(TICK_QPN, 0..threads);
    }

    /// Gives some threads turns of their own, by frames for a queue pair.
    pub fn share_turns(&mut self, qpn: u32, threads: Range<u32>) {
        for rig in self.rigs() {
            let ticks = cowbird(rig).ticks(COMPUTE, qpn, &threads, &rig.built.schema()).unwrap();
            rig.write(vec![ticks]);
        }
    }

    /// Gives a turn by a frame for a queue pair.
    pub fn turn(&mut self, qpn: u32) {
        let frame = cowbird(&self.rig).tick_frame(qpn);
        self.arrive(COMPUTE, &frame);
    }

    /// Another switch with the same program: it has lost all of this one's state.
    pub fn replace_switch(&mut self) {
        for rig in self.rigs() {
            *rig = Rig::new(&rig.built.clone());
        }
        self.begin_turns();
        for nth in 0..self.threads.len() {
            self.free_pairs(nth);
            self.begin(nth);
        }
    }

    /// Starts serving a thread again, at the same switch.
    pub fn restart(&mut self, nth: usize) {
        self.end(nth);
        self.begin(nth);
    }

    fn free_pairs(&mut self, nth: usize) {
        let instance = self.threads[nth].instance.take().unwrap();
        for n in 0..Phase::COMPUTE.len() as u32 {
            assert!(self.compute.remove_pair(instance.compute.peer_qpn + n));
        }
        for n in 0..Phase::POOL.len() as u32 {
            assert!(self.pool.remove_pair(instance.pool.peer_qpn + n));
        }
    }

    /// Stops serving a thread.
    pub fn end(&mut self, nth: usize) {
        let instance = self.threads[nth].instance.clone().unwrap();
        let delete = |one: Update| Update { r#type: update::Type::Delete.into(), ..one };
        for rig in self.rigs() {
            let inserts = cowbird(rig).serve(&instance, &rig.built.schema()).unwrap();
            rig.write(inserts.all().into_iter().rev().map(delete).collect());
        }
        self.free_pairs(nth);
    }

    /// A thread is served, from where its red block says.
    pub fn begin(&mut self, nth: usize) {
        let psn = 0xff_ff00 + (self.random.next() % 0x100) as u32;
        let mut connect = |port: u16| {
            self.qpn += 16;
            cowbird::Connection {
                port,
                mac: mac(port),
                ip: ip(port),
                own_qpn: self.qpn,
                peer_qpn: self.qpn + 8,
                psn,
                udp_port: 0xc000 + nth as u16,
            }
        };
        let (compute, pool) = (connect(COMPUTE), connect(POOL));
        let engine = cowbird(&self.rig);
        for n in 0..Phase::COMPUTE.len() as u32 {
            self.compute.add_pair(compute.peer_qpn + n, connection(&engine, &compute, n)).unwrap();
        }
        for n in 0..Phase::POOL.len() as u32 {
            self.pool.add_pair(pool.peer_qpn + n, connection(&engine, &pool, n)).unwrap();
        }
        let red = self.red(nth);
        let start = Start {
            reads: red.read_progress,
            writes: red.write_progress,
            response_data_tail: red.response_data_tail,
            request_data_head: red.request_data_head,
        };
        assert_eq!(red.request_head, start.reads + start.writes);
        let instance = Instance {
            number: nth as u32,
            compute,
            pool,
            key: SET_KEY + nth as u32,
            address: set_start(nth),
            layout: self.layout,
            regions: vec![Pool {
                key: POOL_KEY,
                address: POOL_START + (nth * SPAN) as u64,
                bytes: SPAN as u64,
            }],
            start,
        };
        self.write(&instance, |inserts| inserts.rings);
        for frame in engine.begin_frames(nth as u32, &start) {
            let reply = self.ask_switch(&frame);
            assert_eq!((reply.instance, reply.head), (nth as u32, start.reads + start.writes));
        }
        self.write(&instance, |inserts| inserts.others);
        self.threads[nth].instance = Some(instance);
    }

    /// Sends a frame from the controller. Returns what the reply says.
    pub fn ask_switch(&mut self, frame: &[u8]) -> Management {
        let port = self.rig.built.rack.switch.cpu_port;
        let now = self.now;
        let ask = |rig: &mut Rig| {
            rig.now = now;
            assert_eq!(rig.send(port, frame), []);
            let mut reply = Vec::new();
            assert!(rig.switch.poll_cpu(&mut reply), "{:?}", rig.all_drops());
            Cowbird::reply(&reply[2..]).unwrap()
        };
        let replies: Vec<Management> = self.rigs().map(ask).collect();
        assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
        replies[0]
    }

    fn rigs(&mut self) -> impl Iterator<Item = &mut Rig> {
        std::iter::once(&mut self.rig).chain(&mut self.twins)
    }

    /// Writes some of the entries that have an instance served.
    fn write(&mut self, instance: &Instance, part: impl Fn(cowbird::Inserts) -> Vec<Update>) {
        for rig in self.rigs() {
            let inserts = cowbird(rig).serve(instance, &rig.built.schema()).unwrap();
            rig.write(part(inserts));
        }
    }

    fn red(&self, nth: usize) -> Red {
        let words = self.threads[nth].client.words();
        let words = &words[RED_AT as usize / 8..][..Red::BYTES / 8];
        // Words are in network order already.
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        Red::parse(&bytes).unwrap()
    }

    pub fn refusal(&self, nth: usize) -> u64 {
        self.red(nth).refusal
    }

    /// Packets that an instance sent in a phase; 0: how often it started again.
    pub fn sent(&self, nth: usize, phase: u8) -> u64 {
        self.rig.counter(SENT_COUNTER, nth as u64 * 8 + u64::from(phase)).packets
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.random.next() % 1_000 < of
    }

    /// The pool's span of a thread.
    pub fn span(&self, nth: usize) -> &[u8] {
        &self.pool.memory().get(POOL_KEY).unwrap().bytes[nth * SPAN..(nth + 1) * SPAN]
    }

    /// Puts a frame on a link: up to the switch, or down from port `to`.
    fn put(&mut self, to: u16, frame: &[u8]) {
        let faults = self.faults;
        if self.chance(faults.lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance(faults.copied));
        for _ in 0..copies {
            let late = if self.chance(faults.delayed) { self.random.next() % 20_000 } else { 0 };
            self.sent += 1;
            self.frames.insert((self.now + Nanos(500 + late), self.sent), (to, frame.to_vec()));
        }
    }

    /// A frame comes into the switch.
    pub fn arrive(&mut self, port: u16, frame: &[u8]) {
        if let Some(seen) = &mut self.seen {
            seen.push((port, frame.to_vec()));
        }
        let now = self.now;
        let arrive = |rig: &mut Rig| {
            rig.now = now;
            let (sent, mut packet_in, mut told) = (rig.send(port, frame), Vec::new(), Vec::new());
            while rig.switch.poll_cpu(&mut packet_in) {
                told.push(std::mem::take(&mut packet_in));
            }
            (sent, told, rig.all_drops())
        };
        let mut all: Vec<_> = self.rigs().map(arrive).collect();
        for twin in &all[1..] {
            assert_eq!(*twin, all[0], "at {now}, what became of {frame:02x?} from port {port}");
        }
        let (sent, told, _) = all.swap_remove(0);
        for (to, frame) in sent {
            self.put(to, &frame);
        }
        self.to_controller.extend(told);
    }

    fn poll(&mut self) {
        let mut frames = Vec::new();
        drain(&mut self.compute, self.now, COMPUTE, &mut frames);
        drain(&mut self.pool, self.now, POOL, &mut frames);
        for (port, frame) in frames {
            // Ports of the switch have their link's number, and 16 more.
            self.put(port + 16, &frame);
        }
    }

    /// The next thing that happens.
    pub fn step(&mut self) {
        self.poll();
        let arrival = self.frames.keys().next().map(|(at, _)| *at);
        if arrival.is_none_or(|at| at > self.turn) {
            self.now = self.now.max(self.turn);
            self.turn += TURN;
            self.turn(TICK_QPN);
        } else if let Some(((at, _), (to, frame))) = self.frames.pop_first() {
            self.now = self.now.max(at);
            match to {
                COMPUTE => self.compute.handle_link(&frame, self.now, self.now),
                POOL => self.pool.handle_link(&frame, self.now, self.now),
                port => self.arrive(port - 16, &frame),
            }
        }
        self.poll();
    }

    /// A thread issues a request if its rings have room. Errors: the engine has ended its set.
    pub fn ask(&mut self, nth: usize) -> Result<(), String> {
        let most = (self.layout.request_bytes.min(self.layout.response_bytes) / 2).min(700);
        let (random, thread) = (&mut self.random, &mut self.threads[nth]);
        if thread.left == 0 {
            return Ok(());
        }
        let most = if random.next().is_multiple_of(2) { most } else { most.min(64) };
        let length = 1 + random.next() % most;
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

    /// A thread looks what is done. The error says what is out of order.
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

    /// Whether all threads have what they wanted.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| thread.left == 0 && thread.history.is_done())
    }
}

/// A host's end of one of the queue pairs.
fn connection(engine: &Cowbird, ends: &cowbird::Connection, nth: u32) -> Connection {
    let path = Path {
        src_mac: ends.mac,
        dst_mac: engine.mac,
        src_ip: ends.ip,
        dst_ip: engine.ip,
        src_port: 50_000,
        dscp: 0,
    };
    Connection { path, peer_qpn: ends.own_qpn + nth, send_psn: 7, receive_psn: ends.psn, domain: 0 }
}

pub fn set_start(nth: usize) -> u64 {
    (nth as u64 + 1) << 16
}

fn drain<M: RegisteredMemory>(
    adapter: &mut Adapter<M>,
    now: Nanos,
    port: u16,
    frames: &mut Vec<(u16, Vec<u8>)>,
) {
    let mut frame = Vec::new();
    while adapter.poll_link(now, &mut frame).is_some() {
        frames.push((port, frame.clone()));
    }
}
