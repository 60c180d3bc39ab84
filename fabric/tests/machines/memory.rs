//! Machines of memory's schemes, each with a real one at the other end.

use super::driver::Rig;
use p4rack_fabric::Machine;
use p4rack_fabric::clio::board::{self, Board, Grant, Quota};
use p4rack_fabric::clio::lib::{Change, Client, Config as ClientConfig, Credentials, Operation};
use p4rack_fabric::clio::token::Secret;
use p4rack_fabric::cowbird::{self, Pool, Set};
use p4rack_fabric::edm::host::compute::{self, Request};
use p4rack_fabric::edm::host::memory::{self, Region, Rights};
use p4rack_fabric::hostile::cowbird::{Contents, EndlessSet, Rings};
use p4rack_fabric::roce::{
    self, Adapter, Connection, Outcome, Regions, RegisteredMemory as _, RemoteAddress,
};
use p4rack_wire::clio::{self, AllocBody, PageSize, packet};
use p4rack_wire::cowbird::Layout;
use p4rack_wire::edm::{Control, GRANTED_LATER, Kind, Message, OPEN, Opcode};
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;

/// Numbers of EDM's nodes.
const COMPUTE: u16 = 4;
pub const MEMORY: u16 = 3;
const KEY: u32 = 7;

pub fn compute() -> compute::ComputeNode {
    let confirm = Some(Nanos::from_micros(80));
    compute::ComputeNode::new(compute::Config { confirm, waiting_max: 8, ..compute::Config::default() }, 1)
}

fn memory() -> memory::MemoryNode {
    let rights = Rights { read: true, write: true };
    let region = Region { start: 0, bytes: vec![0; 4_096], key: KEY, rights };
    memory::MemoryNode::new(memory::Config::default(), vec![region]).unwrap()
}

/// Requests of at most a chunk: their messages are granted whole.
pub fn ask(node: &mut compute::ComputeNode, what: u8, now: Nanos) {
    let request = match what % 3 {
        0 => Request::Read(u32::from(what) + 1),
        1 => Request::Write(vec![what; usize::from(what)]),
        _ => Request::Modify(Opcode::FetchAdd, [1, 0]),
    };
    // Some are too short, or too many wait.
    let _ = node.handle_request(MEMORY, KEY, 8 * u64::from(what), request, now);
}

/// A message as the switch forwards it: a notification becomes a grant, and a request gets the time for its
/// answer.
fn switched(message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    match Kind::of(message[0]).unwrap() {
        Kind::Notify => {
            let notify = Control::parse(&message).unwrap();
            let wait = 37 * u32::from(notify.id % 5);
            Control { kind: Kind::Grant as u8, wait: wait as _, ..notify }.emit(&mut message);
        }
        Kind::Rreq => {
            let request = Message::parse(&message).unwrap();
            let wait = 53 * u32::from(request.id % 5);
            Message { offset: if request.code == OPEN { 0 } else { wait }, ..request }.emit(&mut message);
        }
        _ => {}
    }
    assert_ne!(Message::parse(&message).map_or(0, |message| message.offset), GRANTED_LATER);
    message
}

/// All that a node has to send now.
fn drain<M: Machine<Buffer = Vec<u8>>>(machine: &mut M, now: Nanos) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    std::iter::from_fn(|| machine.poll_link(now, &mut out).map(|_| out.clone())).collect()
}

/// A compute node.
pub struct Compute {
    machine: compute::ComputeNode,
    other: memory::MemoryNode,
}

impl Compute {
    pub fn new() -> Compute {
        Compute { machine: compute(), other: memory() }
    }
}

impl Rig for Compute {
    type Machine = compute::ComputeNode;
    type Mail = Vec<u8>;
    const NAME: &'static str = "compute node";

    fn machine(&mut self) -> &mut compute::ComputeNode {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Vec<u8>> {
        ask(&mut self.machine, what, now);
        Vec::new()
    }

    fn answer(&mut self, to: u16, out: &Vec<u8>, now: Nanos) -> Vec<Vec<u8>> {
        assert_eq!(to, MEMORY);
        let message = switched(out);
        if Kind::of(message[0]) == Ok(Kind::Grant) {
            return vec![message];
        }
        self.other.handle_link((COMPUTE, &message), now, now);
        // Its answers leave when they may; here they are carried at the time of the last grant.
        drain(&mut self.other, now + Nanos(1_000))
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.machine.handle_link((MEMORY, &mail), now, now);
    }

    fn collect(&mut self, _now: Nanos) {
        while self.machine.poll_completion().is_some() {}
    }
}

/// A memory node.
pub struct Memory {
    machine: memory::MemoryNode,
    other: compute::ComputeNode,
}

impl Memory {
    pub fn new() -> Memory {
        Memory { machine: memory(), other: compute() }
    }

    /// Messages that the compute node sends; the switch grants its writes immediately.
    fn asked(&mut self, now: Nanos) -> Vec<Vec<u8>> {
        let mut mail = Vec::new();
        loop {
            let messages = drain(&mut self.other, now + Nanos(1_000));
            if messages.is_empty() {
                return mail;
            }
            for message in messages.iter().map(|message| switched(message)) {
                match Kind::of(message[0]) {
                    Ok(Kind::Grant) => self.other.handle_link((MEMORY, &message), now, now),
                    _ => mail.push(message),
                }
            }
        }
    }
}

impl Rig for Memory {
    type Machine = memory::MemoryNode;
    type Mail = Vec<u8>;
    const NAME: &'static str = "memory node";

    fn machine(&mut self) -> &mut memory::MemoryNode {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Vec<u8>> {
        self.other.handle_timeout(now);
        ask(&mut self.other, what, now);
        self.asked(now)
    }

    fn answer(&mut self, to: u16, out: &Vec<u8>, now: Nanos) -> Vec<Vec<u8>> {
        assert_eq!(to, COMPUTE);
        self.other.handle_link((MEMORY, out), now, now);
        self.asked(now)
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.machine.handle_link((COMPUTE, &mail), now, now);
    }

    fn collect(&mut self, _now: Nanos) {}
}

/// Clio's client library, with boards that are busy now and then.
pub struct Clients {
    machine: Client,
    answered: u64,
}

impl Clients {
    pub fn new() -> Clients {
        let board = |token| Credentials { pid: 1, epoch: 2, token };
        let config = ClientConfig { threads: 3, mtu_bytes: 512, ..ClientConfig::default() };
        Clients { machine: Client::new(config, &[board(7), board(8)], 1), answered: 0 }
    }
}

impl Rig for Clients {
    type Machine = Client;
    type Mail = (u16, Vec<u8>);
    const NAME: &'static str = "Clio's client";

    fn machine(&mut self) -> &mut Client {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<(u16, Vec<u8>)> {
        let (address, bytes) = (4_096 + 8 * u64::from(what % 40), vec![what; 40 * usize::from(what)]);
        let operation = match what % 5 {
            0 => Operation::Write { address, bytes: &bytes },
            1 => Operation::Read { address, bytes: 1 + 40 * u32::from(what) },
            2 => Operation::Modify { address, change: Change::FetchAdd(1) },
            3 => Operation::Lock { address },
            _ => Operation::Release,
        };
        // Some are too short, or too many wait.
        let _ = self.machine.submit((what % 3).into(), (what % 2).into(), what.into(), operation, now);
        Vec::new()
    }

    fn answer(&mut self, board: u16, out: &Vec<u8>, _now: Nanos) -> Vec<(u16, Vec<u8>)> {
        let request = packet::parse_intact(out).unwrap();
        self.answered += 1;
        let is_busy = self.answered.is_multiple_of(9);
        let data = match request.kind {
            clio::Kind::Read if !is_busy => request.header.length as usize,
            clio::Kind::Atomic if !is_busy => 8,
            _ => 0,
        };
        let code = if is_busy { clio::Status::Busy as u8 } else { 0 };
        let mut answers = Vec::new();
        for at in (0..data.max(1)).step_by(512) {
            let (mut answer, bytes) = (Vec::new(), vec![0; 512.min(data - at)]);
            let address = request.header.address + at as u64;
            let (kind, length) = (clio::Kind::Answer as u8, bytes.len() as u32);
            let header = clio::Header { kind, code, address, length, ..request.header };
            packet::compose(&header, &bytes, &mut answer);
            answers.push((board, answer));
        }
        answers
    }

    fn deliver(&mut self, (board, mail): (u16, Vec<u8>), now: Nanos) {
        self.machine.handle_link((board, &mail), now, now);
    }

    fn collect(&mut self, _now: Nanos) {
        while self.machine.poll_completion().is_some() {}
    }
}

const QPN: u32 = 0x11;
const START: u64 = 4_096;

/// The connection as an adapter sees it.
fn connection(node: u8) -> Connection {
    let (mac, ip) = (|node| MacAddr([2, 0, 0, 0, 0, node]), |node| Ipv4Addr::new(10, 0, 0, node));
    let (src_mac, dst_mac, src_ip, dst_ip) = (mac(node), mac(3 - node), ip(node), ip(3 - node));
    let path = Path { src_mac, dst_mac, src_ip, dst_ip, src_port: 50_000, dscp: 0 };
    Connection { path, peer_qpn: QPN, send_psn: 7, receive_psn: 7, domain: 0 }
}

fn adapter(node: u8) -> Adapter<Regions> {
    let mut memory = Regions::default();
    let bytes = vec![0; 65_536];
    let region = roce::Region { domain: 0, key: KEY, start: START, bytes, rights: roce::Rights::ALL };
    memory.register(region).unwrap();
    let mut adapter = Adapter::new(roce::Config::default(), memory).unwrap();
    adapter.add_pair(QPN, connection(node)).unwrap();
    adapter
}

/// An adapter that asks and answers.
pub struct Adapters {
    machine: Adapter<Regions>,
    other: Adapter<Regions>,
}

impl Adapters {
    pub fn new() -> Adapters {
        Adapters { machine: adapter(1), other: adapter(2) }
    }
}

impl Rig for Adapters {
    type Machine = Adapter<Regions>;
    type Mail = Vec<u8>;
    const NAME: &'static str = "adapter";

    fn machine(&mut self) -> &mut Adapter<Regions> {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Vec<u8>> {
        let (key, address) = (KEY, START + 8 * u64::from(what));
        let request = match what % 4 / 2 {
            0 => roce::Request::Read { key, address, bytes: 40 * u32::from(what) },
            _ => roce::Request::Write {
                key,
                address,
                bytes: vec![what; 40 * usize::from(what)],
                immediate: None,
            },
        };
        self.other.handle_timeout(now);
        let asks = if what.is_multiple_of(2) { &mut self.machine } else { &mut self.other };
        // A queue pair that has failed refuses it.
        let _ = asks.handle_request(QPN, request);
        drain(&mut self.other, now)
    }

    fn answer(&mut self, (): (), out: &Vec<u8>, now: Nanos) -> Vec<Vec<u8>> {
        self.other.handle_link(out, now, now);
        while self.other.poll_completion().is_some() {}
        drain(&mut self.other, now)
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.machine.handle_link(&mail, now, now);
    }

    fn collect(&mut self, _now: Nanos) {
        while self.machine.poll_completion().is_some() {}
    }
}

const MESSAGE_BYTES: u32 = 4_096;
const RINGS: u32 = 9;
const POOL_QPN: u32 = 40;

/// Cowbird's engine between rings that are always full and a pool.
pub struct Engine {
    machine: cowbird::Engine,
    rings: Rings,
    pool: Regions,
}

impl Engine {
    pub fn new() -> Engine {
        let layout = Layout { entries: 64, request_bytes: 8_192, response_bytes: 8_192 };
        let config = cowbird::Config {
            message_bytes_max: MESSAGE_BYTES,
            batch_bytes: MESSAGE_BYTES as usize,
            ..cowbird::Config::default()
        };
        let (mut machine, mut rings, mut pool) =
            (cowbird::Engine::new(config), Rings::default(), Regions::default());
        let bytes = vec![0; 65_536];
        let region = roce::Region { domain: 0, key: KEY, start: START, bytes, rights: roce::Rights::ALL };
        pool.register(region).unwrap();
        for (nth, contents) in
            [Contents::Reads, Contents::Writes, Contents::SmallReads].into_iter().enumerate()
        {
            let (key, address, qpn) = (RINGS + nth as u32, 4_096, 50 + nth as u32);
            rings.0.push(EndlessSet::new((key, address), layout, contents, 65_536, MESSAGE_BYTES));
            let regions = vec![Pool { qpn: POOL_QPN, key: KEY, address: START, bytes: 65_536 }];
            machine.add(Set { owner: nth as u32, qpn, key, address, layout, regions }, Nanos::ZERO).unwrap();
        }
        Engine { machine, rings, pool }
    }
}

impl Rig for Engine {
    type Machine = cowbird::Engine;
    type Mail = (u32, Outcome);
    const NAME: &'static str = "engine";
    // Adapters repeat lost packets, and outcomes come in order.
    const LOSES: bool = false;
    // It looks at rings as long as they are served.
    const RESTS: bool = false;

    fn machine(&mut self) -> &mut cowbird::Engine {
        &mut self.machine
    }

    fn ask(&mut self, _what: u8, _now: Nanos) -> Vec<(u32, Outcome)> {
        Vec::new()
    }

    fn answer(&mut self, (qpn, request): (u32, roce::Request), (): &(), _now: Nanos) -> Vec<(u32, Outcome)> {
        let is_pool = qpn == POOL_QPN;
        let outcome = match request {
            roce::Request::Read { key, address, bytes } => {
                let (place, mut into) = (RemoteAddress { domain: 0, key, address }, vec![0; bytes as usize]);
                match is_pool {
                    true => self.pool.read(place, &mut into).unwrap(),
                    false => self.rings.read(place, &mut into).unwrap(),
                }
                Outcome::Read(into)
            }
            roce::Request::Write { key, address, bytes, .. } => {
                let place = RemoteAddress { domain: 0, key, address };
                match is_pool {
                    true => self.pool.write(place, &bytes).unwrap(),
                    false => self.rings.write(place, &bytes).unwrap(),
                }
                Outcome::Done
            }
            other => panic!("an engine asks for {other:?}"),
        };
        vec![(qpn, outcome)]
    }

    fn deliver(&mut self, mail: (u32, Outcome), now: Nanos) {
        self.machine.handle_link(mail, now, now);
    }

    fn collect(&mut self, _now: Nanos) {}
}

/// A board of Clio, to which a process sends requests of every kind.
pub struct Clio {
    machine: Board<Vec<u8>, u8>,
    grant: Grant,
    ids: u64,
}

impl Clio {
    pub fn new() -> Clio {
        let pool = board::Pool { size: PageSize::K4, frames: 8, ready: 2 };
        let config =
            board::Config { held_max: [4, 4], answers_max: [16, 16], ..board::Config::new(vec![pool]) };
        let memory = vec![0; config.bytes() as usize];
        let mut machine = Board::new(config, Secret::new([9; 16]), memory).unwrap();
        let mut quotas = board::Quotas::default();
        quotas[PageSize::K4 as usize] = Quota { reserved: 2, limit: 12, shared: 0 };
        let grant = machine.begin(quotas).unwrap();
        Clio { machine, grant, ids: 0 }
    }
}

impl Rig for Clio {
    type Machine = Board<Vec<u8>, u8>;
    type Mail = Vec<u8>;
    const NAME: &'static str = "board";

    fn machine(&mut self) -> &mut Board<Vec<u8>, u8> {
        &mut self.machine
    }

    fn ask(&mut self, what: u8, _now: Nanos) -> Vec<Vec<u8>> {
        let page = PageSize::K4.address_of(1 + u32::from(what) % 5);
        let (kind, code, data) = match what % 8 {
            0..2 => {
                let mut body = vec![0; AllocBody::BYTES];
                AllocBody { bytes: 4_096 * u64::from(what / 64), page_size: 0, rights: 3, reserved: 0 }
                    .emit(&mut body);
                (clio::Kind::Manage, clio::Manage::Alloc as u8, body)
            }
            2 => (clio::Kind::Manage, clio::Manage::Free as u8, 4_096u64.to_be_bytes().to_vec()),
            3 => (clio::Kind::Read, 0, vec![]),
            4 => (clio::Kind::Write, 0, vec![what; usize::from(what)]),
            5 => (clio::Kind::Atomic, 1 + what / 8 % 5, vec![0; 8]),
            6 => (clio::Kind::Fence, 0, vec![]),
            _ => (clio::Kind::Call, 0, vec![]),
        };
        self.ids += u64::from(what < 200);
        let length = if kind == clio::Kind::Read { 4_096 } else { data.len() as u32 };
        let header = clio::Header {
            version: clio::VERSION,
            kind: kind as u8,
            code,
            flags: 0,
            attempt: u8::from(what >= 200),
            index: 0,
            packets: 1,
            id: self.ids,
            address: page,
            pid: self.grant.space.pid,
            length,
            token: self.grant.token,
            epoch: self.grant.space.epoch,
            reserved: 0,
            crc: 0,
        };
        let mut packet = Vec::new();
        clio::packet::compose(&header, &data, &mut packet);
        vec![packet]
    }

    fn answer(&mut self, _sent: board::Sent<u8>, _out: &Vec<u8>, _now: Nanos) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.machine.handle_link((1, &mail), now, now);
    }

    fn collect(&mut self, _now: Nanos) {}
}
