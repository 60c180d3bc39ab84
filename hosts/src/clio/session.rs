//! A client's process on a board, and its operations.

use super::link::Link;
use super::{Attached, ClioError, Patience, Wanted, attach};
use crate::roce::setup::Server;
use crate::runtime::runtime;
use p4rack_fabric::clio::lib::{Config, Credentials, Operation, Outcome, Refused};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet::RESULTS_BYTES_MAX;
use p4rack_wire::clio::{PageSize, Rights, Status};
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

/// A client of a board: the operations of Clio's interface, by addresses of the process. A reserved process ends when this is dropped.
pub struct Session {
    link: Link,
    under_way: usize,
    attached: Attached,
    // Dropped last: the call of `attached` runs on it.
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
        let runtime = runtime()?;
        let attached = runtime.block_on(attach(server, wanted))?;
        let link = Link::open(server, &attached, thread, patience)?;
        Ok(Session { link, under_way: 0, attached, runtime })
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
        let link = Link::open(server, &attached, thread, patience)?;
        Ok(Session { link, under_way: 0, attached, runtime })
    }

    /// Waits for the end of the client's process, or of the board, for this long. Returns why it has ended.
    pub fn ended(&mut self, within: Duration) -> Option<String> {
        let Session { attached, runtime, .. } = self;
        runtime.block_on(async { tokio::time::timeout(within, attached.ended()).await.ok() })
    }

    /// The process.
    pub fn credentials(&self) -> Credentials {
        self.attached.credentials
    }

    /// Number of the client in [lock words](p4rack_wire::clio::lock_word).
    pub fn thread(&self) -> u16 {
        self.link.config().first_thread
    }

    /// Address and bytes of the range that the process has from its beginning.
    pub fn range(&self) -> (u64, u64) {
        self.attached.range
    }

    /// Bytes that the process may have allocated, its range included.
    pub fn limit_bytes(&self) -> u64 {
        self.attached.limit_bytes
    }

    /// Bytes that other processes may share with it.
    pub fn share_limit_bytes(&self) -> u64 {
        self.attached.share_limit_bytes
    }

    /// Data bytes of the longest packet: a write of no more is atomic, and the arguments of a call have no more.
    pub fn packet_bytes(&self) -> u32 {
        self.attached.mtu_bytes
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

    /// Accepts an operation, which ends under this tag. It leaves with the next [`poll`](Self::poll). Errors: it is refused and has no
    /// end.
    pub fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        self.link.submit(tag, operation)?;
        self.under_way += 1;
        Ok(())
    }

    /// Operations under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Executes an operation, and waits for its end. Errors: others are under way, or it has no result.
    pub fn ask(&mut self, operation: Operation<'_>) -> Result<Reply, AskError> {
        if self.under_way > 0 {
            return Err(AskError::UnderWay);
        }
        self.submit(0, operation)?;
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

    /// Size of the pages of the process's range.
    pub fn page_size(&self) -> PageSize {
        self.attached.page_size
    }

    /// Allocates bytes, which are zeros. Returns their address.
    pub fn alloc(&mut self, bytes: u64, rights: Rights) -> Result<u64, AskError> {
        match self.ask(Operation::Alloc { bytes, page_size: self.page_size(), rights })? {
            Reply::Address(address) => Ok(address),
            _ => Err(AskError::Unknown),
        }
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
        match self.ask(Operation::Share { address, bytes, with, rights })? {
            Reply::Address(address) => Ok(address),
            _ => Err(AskError::Unknown),
        }
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
        let under_way = &mut self.under_way;
        self.link.poll(until, &mut |tag, outcome| {
            *under_way -= 1;
            ended(tag, outcome);
        })
    }
}
