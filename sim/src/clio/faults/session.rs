//! A session: a node's client of one board, from a start of either to the next.

use super::board::{PAGE_BYTES, client_config};
use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::{Client, Config, Credentials};
use p4rack_history::{Opcode, Outcome};
use p4rack_offload::KvFunction;
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;

/// Threads of a session, and operations of each under way.
pub(super) const THREADS: u16 = 2;
pub(super) const DEPTH: usize = 4;
/// Threads if a missed dependency is planted: one for each operation.
pub(super) const THREADS_PLANTED: u16 = 1_024;

/// Memory that an operation accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Shared,
    /// A range that the process has allocated.
    Own(usize),
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Read {
        place: Target,
        at: u64,
        bytes: u64,
    },
    /// Each word becomes this.
    Write {
        place: Target,
        at: u64,
        bytes: u64,
        value: u64,
    },
    Change {
        place: Target,
        at: u64,
        opcode: Opcode,
        operands: [u64; 2],
    },
    Store {
        key: u8,
        function: KvFunction,
        value: u64,
        is_ordered: bool,
    },
    Lock(usize),
    Unlock(usize),
    Fence,
    Alloc {
        pages: u64,
    },
    Free {
        range: usize,
        pages: u64,
    },
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    Bytes(Vec<u8>),
    Word(u64),
    Address(u64),
    Held,
    Refused(Status),
    Unknown,
}

/// An operation of a session's thread.
#[derive(Clone, Debug)]
pub(super) struct IssuedOperation {
    pub session: usize,
    pub thread: u16,
    pub what: OperationKind,
    /// Address of its first byte, for accesses and frees.
    pub address: u64,
    pub at: Nanos,
    /// When the operations before it that it depends on had ended.
    pub begins: Nanos,
    pub end: Option<(Nanos, Ended)>,
}

/// Place of an operation in the order of its thread, by the rules of the paper (§3.1, §4.5).
enum Order {
    None,
    Barrier,
    Pages { first: u64, last: u64, writes: bool },
}

impl IssuedOperation {
    fn order(&self) -> Order {
        let range = |bytes: u64, writes| {
            let (first, last) = (self.address / PAGE_BYTES, (self.address + bytes - 1) / PAGE_BYTES);
            Order::Pages { first, last, writes }
        };
        match self.what {
            OperationKind::Read { bytes, .. } => range(bytes, false),
            OperationKind::Write { bytes, .. } => range(bytes, true),
            OperationKind::Change { .. } => range(8, true),
            OperationKind::Alloc { .. } | OperationKind::Store { is_ordered: false, .. } => Order::None,
            OperationKind::Free { pages, .. } => range(pages * PAGE_BYTES, true),
            OperationKind::Lock(_)
            | OperationKind::Unlock(_)
            | OperationKind::Fence
            | OperationKind::Store { .. } => Order::Barrier,
        }
    }

    /// Whether it may only start when an earlier one has ended.
    pub fn depends_on(&self, earlier: &IssuedOperation) -> bool {
        if (self.session, self.thread) != (earlier.session, earlier.thread) {
            return false;
        }
        match (self.order(), earlier.order()) {
            (Order::Barrier, _) | (_, Order::Barrier) => true,
            (Order::None, _) | (_, Order::None) => false,
            (Order::Pages { first, last, writes }, Order::Pages { first: from, last: to, writes: wrote }) => {
                (writes || wrote) && first <= to && from <= last
            }
        }
    }

    /// How it ended, for histories.
    pub fn outcome(&self) -> Option<Outcome> {
        let (at, end) = self.end.as_ref()?;
        Some(match end {
            Ended::Unknown => Outcome::Unknown,
            // Some packets of a longer write may have been executed.
            Ended::Refused(_) if matches!(self.what, OperationKind::Write { bytes: 9.., .. }) => {
                Outcome::Unknown
            }
            Ended::Refused(_) => Outcome::Refused,
            _ => Outcome::Known(at.0),
        })
    }
}

/// A range that a process has allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnRange {
    pub session: usize,
    pub address: u64,
    pub pages: u64,
    pub is_freed: bool,
}

/// A session.
pub(super) struct Session {
    pub node: usize,
    pub board: usize,
    /// The board's start.
    pub life: u64,
    pub credentials: Credentials,
    /// The client's number at the board.
    pub number: u32,
    /// The shared pages' address.
    pub shared: u64,
    pub client: Client,
    pub is_open: bool,
    /// Its operations, by their positions.
    pub asked: Vec<usize>,
    /// Locks that it no longer uses: an unlock without an answer may still be executed.
    pub unsure_locks: [bool; 2],
}

impl Session {
    pub fn new(
        (node, board, life): (usize, usize, u64),
        (credentials, shared): (Credentials, u64),
        number: u32,
        threads: u16,
    ) -> Session {
        let first_thread = (number as u16).wrapping_mul(THREADS);
        let config = Config { threads, first_thread, ..client_config() };
        let client = Client::new(config, &[credentials], number);
        let unsure_locks = [false; 2];
        Session {
            node,
            board,
            life,
            credentials,
            number,
            shared,
            client,
            is_open: true,
            asked: Vec::new(),
            unsure_locks,
        }
    }

    pub fn space(&self) -> Space {
        Space { pid: self.credentials.pid, epoch: self.credentials.epoch }
    }
}
