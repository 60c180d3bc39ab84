//! Tests of a whole board, by packets.

mod calls;
mod hostile;
mod limits;
mod model;
mod rules;
mod sharing;

use super::plant::Plant;
use super::*;
use p4rack_wire::clio::{AllocBody, Atomic, FreeBody, Manage, Rights, ShareBody, flags, lock_word};
use std::ops::Range;

/// Time that the slow path has between two requests.
const PAUSE: Nanos = Nanos::from_micros(100);
const KEEP: Nanos = Nanos::from_millis(10);

/// Memory that does not zero, if that bug is planted.
#[derive(Clone, Debug)]
struct Dram {
    bytes: Vec<u8>,
    zeroes: bool,
}

impl PhysicalMemory for Dram {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        self.bytes.at(range)
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        self.bytes.at_mut(range)
    }

    fn zero(&mut self, range: Range<u64>) {
        if self.zeroes {
            self.bytes.zero(range);
        }
    }
}

fn config() -> Config {
    let pools = vec![
        Pool { size: PageSize::K4, frames: 12, ready: 3 },
        Pool { size: PageSize::K64, frames: 2, ready: 1 },
    ];
    Config {
        bucket_slots: 4,
        tlb_entries: 4,
        data_bytes_max: 64,
        read_bytes_max: 4_096,
        retry_entries: 4_096,
        retry_keep: KEEP,
        locks_max: [2, 2],
        lock_lease: Nanos::from_millis(5),
        step_pages: 3,
        step_zero_bytes: 16 << 10,
        ..Config::new(pools)
    }
}

fn quotas(reserved: u32, limit: u32) -> Quotas {
    let mut quotas = Quotas::default();
    quotas[PageSize::K4 as usize] = Quota { reserved, limit, shared: limit };
    quotas[PageSize::K64 as usize] = Quota { reserved: 0, limit, shared: limit };
    quotas
}

/// A packet that came back: its header and data.
type Back = (Header, Vec<u8>);

/// A board, and clients that send it packets.
#[derive(Clone)]
struct Rig {
    board: Board<Dram, u8>,
    now: Nanos,
    ids: u64,
}

impl Rig {
    fn new(config: Config) -> Rig {
        let dram = Dram { bytes: vec![0xee; config.bytes() as usize], zeroes: true };
        let board = Board::new(config, Secret::new([3; 16]), dram).unwrap();
        let mut rig = Rig { board, now: Nanos::ZERO, ids: 0 };
        rig.pause();
        rig
    }

    fn planted(config: Config, plant: Option<Plant>) -> Rig {
        let mut rig = Rig::new(config);
        rig.board.vm.plant = plant;
        rig.board.vm.table.overflows = plant == Some(Plant::BucketOverflow);
        rig
    }

    /// Lets the slow path work. Answers wait.
    fn pause(&mut self) {
        let until = self.now + PAUSE;
        while let Some(at) = self.board.next_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.board.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Lets the slow path do a step. Answers wait.
    fn step(&mut self) {
        if let Some(at) = self.board.next_timeout() {
            self.now = self.now.max(at);
            self.board.handle_timeout(self.now);
        }
    }

    /// A request's header, with a new id.
    fn header(&mut self, grant: &Grant, kind: Kind, code: u8, address: u64, length: u32) -> Header {
        self.ids += 1;
        Header {
            version: VERSION,
            kind: kind as u8,
            code,
            flags: 0,
            attempt: 0,
            index: 0,
            packets: 1,
            id: self.ids,
            address,
            pid: grant.space.pid,
            length,
            token: grant.token,
            epoch: grant.space.epoch,
            reserved: 0,
            crc: 0,
        }
    }

    /// Delivers a packet. Its answer waits.
    fn deliver(&mut self, header: &Header, data: &[u8]) {
        let mut bytes = Vec::new();
        packet::compose(header, data, &mut bytes);
        self.board.handle_link((header.pid as u8, &bytes), self.now, self.now);
    }

    /// All packets that wait for the link.
    fn poll(&mut self) -> Vec<Back> {
        let mut out = Vec::new();
        std::iter::from_fn(|| {
            let sent = self.board.poll_link(self.now, &mut out)?;
            let packet = packet::parse_intact(&out).unwrap();
            assert_eq!(sent.to, packet.header.pid as u8);
            Some((packet.header, packet.data.to_vec()))
        })
        .collect()
    }

    /// Delivers a packet and waits for its answer, whose parts are put together.
    fn ask(&mut self, header: &Header, data: &[u8]) -> (Status, Header, Vec<u8>) {
        self.deliver(header, data);
        let waits = (0..1_000).take_while(|_| {
            self.pause();
            self.board.next_link().is_none()
        });
        assert!(waits.count() < 1_000, "no answer to {header:?}");
        let parts = self.poll();
        self.pause();
        let first = parts.first().expect("an answer").0;
        let mut bytes = Vec::new();
        for (nth, (part, data)) in parts.iter().enumerate() {
            assert_eq!((part.index, part.packets), (first.index + nth as u16, first.packets));
            assert_eq!(part.address, first.address + bytes.len() as u64);
            bytes.extend_from_slice(data);
        }
        assert_eq!((first.id, first.attempt), (header.id, header.attempt));
        (Status::of(first.code).unwrap(), first, bytes)
    }

    fn alloc(&mut self, grant: &Grant, size: PageSize, bytes: u64, rights: Rights) -> Result<u64, Status> {
        let mut body = [0; AllocBody::BYTES];
        AllocBody { bytes, page_size: size as u8, rights: rights.code(), reserved: 0 }.emit(&mut body);
        let header = self.header(grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
        let (status, header, _) = self.ask(&header, &body);
        if status == Status::Done { Ok(header.address) } else { Err(status) }
    }

    fn free_header(&mut self, grant: &Grant, address: u64, bytes: u64) -> (Header, Vec<u8>) {
        let mut body = vec![0; FreeBody::BYTES];
        FreeBody { bytes }.emit(&mut body);
        (self.header(grant, Kind::Manage, Manage::Free as u8, address, body.len() as u32), body)
    }

    fn free(&mut self, grant: &Grant, address: u64, bytes: u64) -> Status {
        let (header, body) = self.free_header(grant, address, bytes);
        self.ask(&header, &body).0
    }

    fn share_header(
        &mut self,
        from: &Grant,
        address: u64,
        bytes: u64,
        to: Space,
        rights: Rights,
    ) -> (Header, Vec<u8>) {
        let mut body = vec![0; ShareBody::BYTES];
        ShareBody { bytes, pid: to.pid, epoch: to.epoch, rights: rights.code(), reserved: 0 }.emit(&mut body);
        (self.header(from, Kind::Manage, Manage::Share as u8, address, body.len() as u32), body)
    }

    fn share(
        &mut self,
        from: &Grant,
        address: u64,
        bytes: u64,
        to: Space,
        rights: Rights,
    ) -> Result<u64, Status> {
        let (header, body) = self.share_header(from, address, bytes, to, rights);
        let (status, header, _) = self.ask(&header, &body);
        if status == Status::Done { Ok(header.address) } else { Err(status) }
    }

    fn read(&mut self, grant: &Grant, address: u64, bytes: u32) -> Result<Vec<u8>, Status> {
        let header = self.header(grant, Kind::Read, 0, address, bytes);
        let (status, _, bytes) = self.ask(&header, &[]);
        if status == Status::Done { Ok(bytes) } else { Err(status) }
    }

    fn write(&mut self, grant: &Grant, address: u64, bytes: &[u8]) -> Status {
        let header = self.header(grant, Kind::Write, 0, address, bytes.len() as u32);
        self.ask(&header, bytes).0
    }

    fn atomic(
        &mut self,
        grant: &Grant,
        atomic: Atomic,
        address: u64,
        operands: &[u64],
    ) -> Result<u64, Status> {
        let data: Vec<u8> = operands.iter().flat_map(|operand| operand.to_le_bytes()).collect();
        let header = self.header(grant, Kind::Atomic, atomic as u8, address, data.len() as u32);
        let (status, _, word) = self.ask(&header, &data);
        if status == Status::Done { Ok(u64::from_le_bytes(word.try_into().unwrap())) } else { Err(status) }
    }
}
