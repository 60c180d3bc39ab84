//! A client's process on a board, or on each of several, and its operations.

use super::link::{self, Link};
use super::room::{Alloc, Rooms};
use super::spread::{BOARDS_MAX, at_board, locate};
use super::{Attached, ClioError, Patience, Wanted, attach};
use crate::roce::setup::Server;
use crate::runtime::runtime;
use p4rack_fabric::clio::lib::{Config, Credentials, Operation, Outcome, Refused};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet::RESULTS_BYTES_MAX;
use p4rack_wire::clio::{PageSize, Rights, Status};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Time after which an operation that waits looks again.
const TURN: Nanos = Nanos::from_secs(1);

/// Why an operation that waits has no result.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The operation is not accepted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Other operations are under way.
    #[error("operations are under way: poll for their ends first")]
    UnderWay,
    /// The socket failed.
    #[error(transparent)]
    Link(#[from] ClioError),
    /// No answer to any attempt.
    #[error("no answer to any attempt: it may have been executed; is the board running?")]
    Unknown,
    /// The board refused it, and nothing has changed; of a long write, parts may have been written.
    #[error("the board refuses: {}", .0.name().replace('_', " "))]
    Failed(Status),
}

/// Result of an operation that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was executed.
    Done,
    /// The bytes of a read, or the results of a call.
    Bytes(Vec<u8>),
    /// The word before an atomic operation.
    Word(u64),
    /// Address of memory that was allocated or shared.
    Address(u64),
    /// The lock is held by another thread, with this lock word.
    Held(u64),
}

/// A client of a board, or of several: the operations of Clio's interface, by addresses of the process. Its reserved processes end when
/// this is dropped.
///
/// Over several boards it has a process on each, and [addresses](at_board) name the board. Its operations have one order, wherever they
/// are executed. Each board has a congestion window of its own, so operations of one don't wait for the answers of another. The incast
/// window is the client's; answers that a silent board owes take no room there.
pub struct Session {
    link: Link,
    under_way: usize,
    boards: Vec<Attached>,
    rooms: Rooms,
    // Dropped last: the calls of `boards` run on it.
    runtime: Runtime,
}

impl Session {
    /// A client of a new process with a range of `reserve_bytes` and the board's limits, or if that is 0 of the process whose memory is
    /// offered to all. Errors: the board can't be reached, or refuses.
    pub fn open(server: &Server, reserve_bytes: u64, patience: Patience) -> Result<Session, ClioError> {
        Session::open_as(server, Wanted::bytes(reserve_bytes), None, patience)
    }

    /// A client with the resources that it requests. With `thread`, it has this number in [lock
    /// words](p4rack_wire::clio::lock_word) instead of the one that the board gives it, so that a later client may
    /// release a lock. The board gives no client a number from 61,440 on.
    pub fn open_as(
        server: &Server,
        wanted: Wanted,
        thread: Option<u16>,
        patience: Patience,
    ) -> Result<Session, ClioError> {
        Session::open_over(std::slice::from_ref(server), wanted, thread, patience)
    }

    /// A client of several boards, of each for an equal part of what it asks for. Errors: there are none, or more than [`BOARDS_MAX`]; one
    /// can't be reached, refuses, or has packets of another length; two names are of the same board.
    pub fn open_over(
        servers: &[Server],
        wanted: Wanted,
        thread: Option<u16>,
        patience: Patience,
    ) -> Result<Session, ClioError> {
        if servers.len() > BOARDS_MAX {
            let why = format!("{} boards: a client has at most {BOARDS_MAX}", servers.len());
            return Err(ClioError::Broken(why));
        }
        link::all_differ(servers)?;
        let (runtime, wanted) = (runtime()?, wanted.each_of(servers.len()));
        let mut attached = Vec::with_capacity(servers.len());
        for server in servers {
            attached.push(runtime.block_on(attach(server, wanted))?);
        }
        Session::of(servers, attached, thread, patience, runtime)
    }

    fn of(
        servers: &[Server],
        attached: Vec<Attached>,
        thread: Option<u16>,
        patience: Patience,
        runtime: Runtime,
    ) -> Result<Session, ClioError> {
        let link = Link::open(servers, &attached, thread, patience)?;
        let rooms = Rooms::new(attached.iter().map(|attached| attached.page_size));
        Ok(Session { link, under_way: 0, boards: attached, rooms, runtime })
    }

    /// A client of a process whose rights were handed on: it has this range, and ends whenever its owner ends it. Errors: the board can't
    /// be reached, or the range has no place on a board.
    pub fn open_granted(
        server: &Server,
        credentials: Credentials,
        range: (u64, u64),
        patience: Patience,
    ) -> Result<Session, ClioError> {
        Session::open_granted_as(server, credentials, range, None, patience)
    }

    /// The same with `thread` as [`open_as`](Self::open_as) has it.
    pub fn open_granted_as(
        server: &Server,
        credentials: Credentials,
        range: (u64, u64),
        thread: Option<u16>,
        patience: Patience,
    ) -> Result<Session, ClioError> {
        let runtime = runtime()?;
        let attached = runtime.block_on(attach(server, Wanted::default()))?;
        let attached = attached.granted(credentials, range).map_err(ClioError::Broken)?;
        Session::of(std::slice::from_ref(server), vec![attached], thread, patience, runtime)
    }

    /// Waits for the end of a process of the client, or of its board, for this long. Returns why it has ended.
    pub fn ended(&mut self, within: Duration) -> Option<String> {
        let Session { boards, runtime, .. } = self;
        let mut ends: Vec<_> = boards.iter_mut().map(|board| Box::pin(board.ended())).collect();
        let first = std::future::poll_fn(|context| {
            let why = ends.iter_mut().map(|end| end.as_mut().poll(context)).find(Poll::is_ready);
            why.unwrap_or(Poll::Pending)
        });
        runtime.block_on(async { tokio::time::timeout(within, first).await.ok() })
    }

    /// Number of its boards.
    pub fn boards(&self) -> u16 {
        self.boards.len() as u16
    }

    fn first(&self) -> &Attached {
        &self.boards[0]
    }

    /// The process, of several boards that on the first one.
    pub fn credentials(&self) -> Credentials {
        self.first().credentials
    }

    /// The process on a board. `None`: there is no such board.
    pub fn credentials_at(&self, board: u16) -> Option<Credentials> {
        Some(self.boards.get(usize::from(board))?.credentials)
    }

    /// Number of the client in [lock words](p4rack_wire::clio::lock_word), of several boards that of the first one.
    pub fn thread(&self) -> u16 {
        self.link.first_thread(0).unwrap_or_default()
    }

    /// The same on a board. `None`: there is no such board.
    pub fn thread_at(&self, board: u16) -> Option<u16> {
        self.link.first_thread(board)
    }

    /// Address and bytes of the range that the process has from its beginning, of several boards that on the first one.
    pub fn range(&self) -> (u64, u64) {
        self.first().range
    }

    /// Address and bytes of the range on each board.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let range =
            |(board, attached): (u16, &Attached)| (at_board(board, attached.range.0), attached.range.1);
        (0..).zip(&self.boards).map(range)
    }

    /// Bytes that the processes may have allocated, their ranges included.
    pub fn limit_bytes(&self) -> u64 {
        self.boards.iter().fold(0, |sum, board| sum.saturating_add(board.limit_bytes))
    }

    /// Bytes that other processes may share with them.
    pub fn share_limit_bytes(&self) -> u64 {
        self.boards.iter().fold(0, |sum, board| sum.saturating_add(board.share_limit_bytes))
    }

    /// Data bytes of the longest packet: a write of no more is atomic, and the arguments of a call have no more.
    pub fn packet_bytes(&self) -> u32 {
        self.first().mtu_bytes
    }

    /// Bytes of the longest read or write.
    pub fn request_bytes_max(&self) -> u32 {
        self.link.config().request_bytes_max
    }

    /// The client's parameters.
    pub(crate) fn config(&self) -> &Config {
        self.link.config()
    }

    /// Operations that may be under way.
    pub fn under_way_max(&self) -> usize {
        self.link.config().requests_max.into()
    }

    /// Accepts an operation, which ends under this tag; no two under way have the same. It leaves with the next [`poll`](Self::poll). Of
    /// several boards, the one that the address names executes it, and the first one a fence ([`submit_to`](Self::submit_to) names another
    /// one). An allocation goes to the board where this client has asked for least, and to the next where one has no room, in pages of the
    /// board's size whichever size it names. Errors: it is refused and has no end.
    pub fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        match locate(operation) {
            (None, Operation::Alloc { bytes, rights, .. }) => {
                self.allocate(Alloc::new(tag, bytes, rights))?;
                self.under_way += 1;
                Ok(())
            }
            (board, operation) => self.submit_to(board.unwrap_or(0), tag, operation),
        }
    }

    /// The same to a board, with an operation by addresses of that board. No other board is asked for an allocation.
    pub fn submit_to(&mut self, board: u16, tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        self.link.submit(board, tag, operation)?;
        self.under_way += 1;
        self.rooms.asked_at(board, tag, &operation);
        Ok(())
    }

    /// Asks the next board for an allocation.
    fn allocate(&mut self, alloc: Alloc) -> Result<(), Refused> {
        let (board, operation) = self.rooms.next(&alloc).ok_or(Refused::NoSuchEnd)?;
        self.link.submit(board, alloc.tag, operation)?;
        self.rooms.asked(board, alloc);
        Ok(())
    }

    /// Operations under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Executes an operation, and waits for its end. Errors: others are under way, or it has no result.
    pub fn ask(&mut self, operation: Operation<'_>) -> Result<Reply, AskError> {
        self.ask_after(|session| session.submit(0, operation))
    }

    /// Executes what is submitted, and waits for its end.
    fn ask_after(
        &mut self,
        submit: impl FnOnce(&mut Session) -> Result<(), Refused>,
    ) -> Result<Reply, AskError> {
        if self.under_way > 0 {
            return Err(AskError::UnderWay);
        }
        submit(self)?;
        let mut reply = Err(AskError::Unknown);
        // The client library ends every operation.
        while self.under_way > 0 {
            self.poll(clock::now() + TURN, &mut |_, outcome| {
                reply = match outcome {
                    Outcome::Done => Ok(Reply::Done),
                    Outcome::Read(bytes) | Outcome::Results(bytes) => Ok(Reply::Bytes(bytes.to_vec())),
                    Outcome::Word(word) => Ok(Reply::Word(word)),
                    Outcome::Address(address) => Ok(Reply::Address(address)),
                    Outcome::Held(owner) => Ok(Reply::Held(owner)),
                    Outcome::Refused(status) => Err(AskError::Failed(status)),
                    Outcome::Unknown => Err(AskError::Unknown),
                };
            })?;
        }
        reply
    }

    /// Size of the pages of the process's range on a board. `None`: there is no such board.
    pub fn page_size_at(&self, board: u16) -> Option<PageSize> {
        self.boards.get(usize::from(board)).map(|board| board.page_size)
    }

    /// Size of the pages of the process's range, of several boards on the first one.
    pub fn page_size(&self) -> PageSize {
        self.first().page_size
    }

    /// Bytes of the smallest pages of its ranges.
    pub(crate) fn page_bytes_min(&self) -> u64 {
        let bytes = self.boards.iter().map(|board| board.page_size.bytes());
        bytes.min().unwrap_or_default()
    }

    /// Allocates bytes, which are zeros. Returns their address. Of several boards the next is asked where one has no room.
    pub fn alloc(&mut self, bytes: u64, rights: Rights) -> Result<u64, AskError> {
        let page_size = self.page_size();
        address(self.ask(Operation::Alloc { bytes, page_size, rights })?)
    }

    /// Allocates bytes on a board.
    pub fn alloc_at(&mut self, board: u16, bytes: u64, rights: Rights) -> Result<u64, AskError> {
        let page_size = self.boards.get(usize::from(board)).ok_or(Refused::NoSuchEnd)?.page_size;
        let alloc = Operation::Alloc { bytes, page_size, rights };
        address(self.ask_after(|session| session.submit_to(board, 0, alloc))?)
    }

    /// Has each board execute later requests after all that it has under way, of this process, or with `all` of all processes. Errors: the
    /// first board's that has one; the other boards have their fences.
    pub fn fence(&mut self, all: bool) -> Result<(), AskError> {
        let fence = Operation::Fence { all };
        let mut first = Ok(());
        for board in 0..self.boards() {
            let fenced = self.ask_after(|session| session.submit_to(board, 0, fence));
            first = first.and(fenced.map(drop));
        }
        first
    }

    /// Frees pages of an allocated range.
    pub fn free(&mut self, address: u64, bytes: u64) -> Result<(), AskError> {
        self.ask(Operation::Free { address, bytes }).map(drop)
    }

    /// Shares whole pages of an allocated range with another process of the board, named by PID and epoch. Returns their address there,
    /// at which it has these rights.
    pub fn share(
        &mut self,
        address: u64,
        bytes: u64,
        with: (u32, u16),
        rights: Rights,
    ) -> Result<u64, AskError> {
        self::address(self.ask(Operation::Share { address, bytes, with, rights })?)
    }

    /// Reads bytes.
    pub fn read(&mut self, address: u64, bytes: u32) -> Result<Vec<u8>, AskError> {
        match self.ask(Operation::Read { address, bytes })? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(AskError::Unknown),
        }
    }

    /// Writes bytes.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), AskError> {
        self.ask(Operation::Write { address, bytes }).map(drop)
    }

    /// Calls an offload. Returns its results.
    pub fn call(&mut self, offload: u64, function: u8, arguments: &[u8]) -> Result<Vec<u8>, AskError> {
        let results_bytes_max = RESULTS_BYTES_MAX;
        let call = Operation::Call { offload, function, arguments, results_bytes_max, is_ordered: true };
        match self.ask(call)? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(AskError::Unknown),
        }
    }

    /// Delivers ended operations. If there are none, waits for one, at most until `until` (of `p4rack_netdev::clock`); it may return
    /// earlier without one. Errors: the socket failed.
    pub fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), ClioError> {
        let Session { link, under_way, rooms, .. } = self;
        link.poll(until, &mut |board, tag, outcome| {
            if rooms.ended(board, tag, &outcome) {
                return;
            }
            *under_way -= 1;
            let outcome = match outcome {
                Outcome::Address(address) => Outcome::Address(at_board(board, address)),
                outcome => outcome,
            };
            ended(tag, outcome);
        })?;
        while let Some(alloc) = self.rooms.again() {
            if self.allocate(alloc).is_err() {
                self.under_way -= 1;
                ended(alloc.tag, Outcome::Refused(alloc.status));
            }
        }
        Ok(())
    }
}

fn address(reply: Reply) -> Result<u64, AskError> {
    match reply {
        Reply::Address(address) => Ok(address),
        _ => Err(AskError::Unknown),
    }
}
