//! A client of a board without a network: for the set-up before a run, and for allocations until a memory
//! is full.

use super::memory::SimMemory;
use super::offload::BoardStore;
use super::rack::End;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Grant};
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet;
use p4rack_wire::clio::{AllocBody, FreeBody, Header, Kind, Manage, PageSize, Rights, Status, VERSION};

/// Where answers go.
const OWN: End = End { host: u16::MAX, port: 0 };
/// Its number in ids of requests: those of other clients are smaller.
const NUMBER: u64 = (1 << 28) - 1;
/// How long it waits before it asks a busy board again that has nothing to do.
const WAIT: Nanos = Nanos::from_micros(100);
/// How often it asks.
const ATTEMPTS_MAX: u32 = 1 << 24;

/// Why a request was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The board refused it.
    Refused(Status),
    /// The board did not answer.
    Silent,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Refused(status) => {
                write!(f, "a board refuses what the experiment needs: {}", status.name())
            }
            Failed::Silent => write!(f, "a board does not answer"),
        }
    }
}

/// A client of one board at a time.
#[derive(Debug)]
pub(crate) struct Direct {
    pub now: Nanos,
    ids: u64,
    out: Vec<u8>,
}

impl Direct {
    pub fn new() -> Direct {
        Direct { now: Nanos::ZERO, ids: 0, out: Vec::new() }
    }

    /// Sends a request and waits for its answer, whose address it returns. A busy board is asked again.
    pub(super) fn ask(
        &mut self,
        (board, mut store): (&mut Board<SimMemory, End>, Option<&mut BoardStore>),
        grant: &Grant,
        (kind, code): (Kind, u8),
        (address, length): (u64, u32),
        data: &[u8],
    ) -> Result<u64, Failed> {
        for _ in 0..ATTEMPTS_MAX {
            self.ids += 1;
            let header = Header {
                version: VERSION,
                kind: kind as u8,
                code,
                flags: 0,
                attempt: 0,
                index: 0,
                packets: 1,
                id: NUMBER << 36 | self.ids,
                address,
                pid: grant.space.pid,
                length,
                token: grant.token,
                epoch: grant.space.epoch,
                reserved: 0,
                crc: 0,
            };
            packet::compose(&header, data, &mut self.out);
            board.handle_link((OWN, &self.out), self.now, self.now);
            if let Some(store) = store.as_deref_mut()
                && let Some(call) = board.poll_call()
            {
                let (ended, results, _) = store.serve(board, &call);
                board.finish_call(call, ended, &results, self.now);
            }
            while board.poll_link(self.now, &mut self.out).is_none() {
                self.now = self.now.max(board.next_timeout().ok_or(Failed::Silent)?);
                board.handle_timeout(self.now);
            }
            let answer = packet::parse(&self.out).map_err(|_| Failed::Silent)?.header;
            match Status::of(answer.code).ok_or(Failed::Silent)? {
                Status::Done => return Ok(answer.address),
                status if status.is_temporary() => self.step(board),
                status => return Err(Failed::Refused(status)),
            }
        }
        Err(Failed::Silent)
    }

    /// Goes on to the board's next step.
    pub fn step(&mut self, board: &mut Board<SimMemory, End>) {
        let next = board.next_timeout().unwrap_or(self.now.saturating_add(WAIT));
        self.now = self.now.max(next);
        board.handle_timeout(self.now);
    }

    /// Allocates pages. Returns the address of the first.
    pub fn alloc(
        &mut self,
        board: &mut Board<SimMemory, End>,
        grant: &Grant,
        size: PageSize,
        pages: u64,
    ) -> Result<u64, Failed> {
        let mut body = [0; AllocBody::BYTES];
        let bytes = pages * size.bytes();
        AllocBody { bytes, page_size: size as u8, rights: Rights::ALL.code(), reserved: 0 }.emit(&mut body);
        self.ask((board, None), grant, (Kind::Manage, Manage::Alloc as u8), (0, body.len() as u32), &body)
    }

    /// Writes bytes from an address on.
    pub fn write(
        &mut self,
        board: &mut Board<SimMemory, End>,
        grant: &Grant,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), Failed> {
        let most = board.config().data_bytes_max as usize;
        for (nth, packet) in bytes.chunks(most).enumerate() {
            let at = address + (nth * most) as u64;
            self.ask((board, None), grant, (Kind::Write, 0), (at, packet.len() as u32), packet)?;
        }
        Ok(())
    }

    /// Frees pages.
    pub fn free(
        &mut self,
        board: &mut Board<SimMemory, End>,
        grant: &Grant,
        address: u64,
        bytes: u64,
    ) -> Result<u64, Failed> {
        let mut body = [0; FreeBody::BYTES];
        FreeBody { bytes }.emit(&mut body);
        self.ask(
            (board, None),
            grant,
            (Kind::Manage, Manage::Free as u8),
            (address, body.len() as u32),
            &body,
        )
    }

    /// Accesses each page once.
    pub fn touch(
        &mut self,
        board: &mut Board<SimMemory, End>,
        grant: &Grant,
        (address, size, pages): (u64, PageSize, u64),
    ) -> Result<(), Failed> {
        for page in 0..pages {
            let at = address + page * size.bytes();
            self.ask((board, None), grant, (Kind::Read, 0), (at, 8), &[])?;
        }
        Ok(())
    }
}
