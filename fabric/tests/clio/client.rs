//! A board, and requests to it.

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Config, Grant, PhysicalMemory, Quota, Quotas};
use p4rack_fabric::clio::token::Secret;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{
    AllocBody, FreeBody, Header, Kind, Manage, PAGE_SIZES, PageSize, Rights, Status, VERSION, packet,
};

/// Quotas without limits: all pages of all sizes.
pub const ALL: Quotas = [Quota { reserved: 0, limit: u32::MAX, shared: 0 }; PAGE_SIZES];

/// A request's header. Its id is 0.
pub fn header(grant: &Grant, kind: Kind, code: u8, address: u64, length: u32) -> Header {
    Header {
        version: VERSION,
        kind: kind as u8,
        code,
        flags: 0,
        attempt: 0,
        index: 0,
        packets: 1,
        id: 0,
        address,
        pid: grant.space.pid,
        length,
        token: grant.token,
        epoch: grant.space.epoch,
        reserved: 0,
        crc: 0,
    }
}

/// A board, a clock and ids for requests.
pub struct Client<M> {
    pub board: Board<M, ()>,
    pub now: Nanos,
    pub ids: u64,
    out: Vec<u8>,
}

impl<M: PhysicalMemory> Client<M> {
    pub fn new(config: Config, memory: M) -> Client<M> {
        let board = Board::new(config, Secret::new([1; 16]), memory).unwrap();
        Client { board, now: Nanos::ZERO, ids: 0, out: Vec::new() }
    }

    /// Sends a request and returns the header of the last packet of its answer.
    pub fn ask(&mut self, header: &Header, data: &[u8]) -> Header {
        self.ids += 1;
        packet::compose(&Header { id: self.ids, ..*header }, data, &mut self.out);
        self.board.handle_link(((), &self.out), self.now, self.now);
        loop {
            let mut last = None;
            while self.board.poll_link(self.now, &mut self.out).is_some() {
                last = Some(packet::parse_intact(&self.out).unwrap().header);
            }
            if let Some(header) = last {
                return header;
            }
            self.now = self.now.max(self.board.next_timeout().unwrap());
            self.board.handle_timeout(self.now);
        }
    }

    pub fn alloc(&mut self, grant: &Grant, size: PageSize, pages: u64) -> Result<u64, Status> {
        let mut body = [0; AllocBody::BYTES];
        let bytes = pages * size.bytes();
        AllocBody { bytes, page_size: size as u8, rights: Rights::ALL.code(), reserved: 0 }.emit(&mut body);
        let answer = self.ask(&header(grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32), &body);
        match Status::of(answer.code).unwrap() {
            Status::Done => Ok(answer.address),
            status => Err(status),
        }
    }

    pub fn free(&mut self, grant: &Grant, address: u64, size: PageSize, pages: u64) {
        let mut body = [0; FreeBody::BYTES];
        FreeBody { bytes: pages * size.bytes() }.emit(&mut body);
        let header = header(grant, Kind::Manage, Manage::Free as u8, address, body.len() as u32);
        assert_eq!(self.ask(&header, &body).code, Status::Done as u8);
    }
}
