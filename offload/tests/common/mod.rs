//! A board with offloads, called by packets.
// Each test uses a part of it.
#![allow(dead_code)]

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Config, Grant, Pool, Quota, Quotas};
use p4rack_fabric::clio::token::Secret;
use p4rack_offload::Offloads;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{
    AllocBody, Header, Kind, Manage, PAGE_SIZES, PageSize, Rights, Status, VERSION, packet,
};

pub const PAGE: u64 = 4_096;
pub const ALL: Quotas = [Quota { reserved: 0, limit: u32::MAX, shared: 0 }; PAGE_SIZES];

/// A board with offloads, and a process that calls them.
pub struct Rig {
    pub board: Board<Vec<u8>, ()>,
    pub offloads: Offloads,
    pub caller: Grant,
    pub now: Nanos,
    pub ids: u64,
}

impl Rig {
    pub fn new() -> Rig {
        let pool = Pool { size: PageSize::K4, frames: 256, ready: 64 };
        let config = Config { calls_max: [8, 8], data_bytes_max: 256, ..Config::new(vec![pool]) };
        let memory = vec![0xee; config.bytes() as usize];
        let mut board = Board::new(config, Secret::new([2; 16]), memory).unwrap();
        let caller = board.begin(ALL).unwrap();
        let mut rig = Rig { board, offloads: Offloads::default(), caller, now: Nanos::ZERO, ids: 0 };
        rig.wait();
        rig
    }

    pub fn wait(&mut self) {
        while let Some(at) = self.board.next_timeout().filter(|at| *at <= self.now + Nanos(50_000)) {
            self.now = self.now.max(at);
            self.board.handle_timeout(self.now);
        }
    }

    /// Sends a request of one packet.
    pub fn send(&mut self, grant: &Grant, kind: Kind, code: u8, address: u64, data: &[u8]) {
        self.ids += 1;
        let header = Header {
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
            length: data.len() as u32,
            token: grant.token,
            epoch: grant.space.epoch,
            reserved: 0,
            crc: 0,
        };
        let mut out = Vec::new();
        packet::compose(&header, data, &mut out);
        self.board.handle_link(((), &out), self.now, self.now);
    }

    /// Status and data of all answers, which have one packet each.
    pub fn answers(&mut self) -> Vec<(Status, Vec<u8>)> {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        while self.board.poll_link(self.now, &mut out).is_some() {
            let answer = packet::parse_intact(&out).unwrap();
            all.push((Status::of(answer.header.code).unwrap(), answer.data.to_vec()));
        }
        all
    }

    /// A request and its answer: status, address, data.
    pub fn ask(
        &mut self,
        grant: &Grant,
        kind: Kind,
        code: u8,
        address: u64,
        data: &[u8],
    ) -> (Status, u64, Vec<u8>) {
        self.send(grant, kind, code, address, data);
        self.offloads.serve(&mut self.board, self.now);
        self.wait();
        let (mut out, mut bytes) = (Vec::new(), Vec::new());
        let mut last = None;
        while self.board.poll_link(self.now, &mut out).is_some() {
            let part = packet::parse_intact(&out).unwrap();
            bytes.extend_from_slice(part.data);
            last = Some(part.header);
        }
        self.wait();
        let last = last.unwrap();
        (Status::of(last.code).unwrap(), last.address, bytes)
    }

    pub fn alloc(&mut self, grant: &Grant, pages: u64) -> u64 {
        let mut body = [0; AllocBody::BYTES];
        AllocBody { bytes: pages * PAGE, page_size: 0, rights: Rights::ALL.code(), reserved: 0 }
            .emit(&mut body);
        let (status, address, _) = self.ask(grant, Kind::Manage, Manage::Alloc as u8, 0, &body);
        assert_eq!(status, Status::Done);
        address
    }

    /// Writes to the caller's memory, page by page.
    pub fn write(&mut self, mut address: u64, mut bytes: &[u8]) {
        let caller = self.caller;
        while !bytes.is_empty() {
            let (now, later) =
                bytes.split_at(PageSize::K4.bytes_in_page(address, bytes.len() as u64) as usize);
            assert_eq!(self.ask(&caller, Kind::Write, 0, address, now).0, Status::Done);
            (address, bytes) = (address + now.len() as u64, later);
        }
    }
}
