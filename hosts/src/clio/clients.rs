//! Processes of a board, and clients that join and leave them.

use super::error::BoardError;
use super::server::{Bounds, Host, Range, credentials_of};
use super::threads::GIVEN;
use p4rack_fabric::clio::board::{Quota, Quotas, Space};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_netdev::clock;
use p4rack_wire::clio::PAGE_SIZES;

/// A client of a board.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// Its process, and the range that this has from its beginning.
    pub process: (Credentials, Range),
    /// Its number in words of locks.
    pub thread: u16,
}

/// Why a client does not join.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    /// All numbers are in use.
    #[error("the board's clients and their locks use all {} numbers of threads; end some of the clients first", GIVEN.len())]
    NoThread,
    /// No process began.
    #[error(transparent)]
    Process(#[from] BoardError),
}

impl Host {
    /// Begins a process with a range of `bytes` bytes; its frames are taken at the first access, and if `is_reserved`, kept for it from
    /// now on.
    pub(crate) fn create(
        &mut self,
        bytes: u64,
        is_reserved: bool,
    ) -> Result<(Credentials, Range), BoardError> {
        let reserved = if is_reserved { bytes } else { 0 };
        self.begin(bytes, Bounds { reserved, limit: bytes, shared: 0 })
    }

    /// Begins a process with a range of `bytes` bytes that may have this much in all.
    pub(super) fn begin(&mut self, bytes: u64, bounds: Bounds) -> Result<(Credentials, Range), BoardError> {
        let pages = |bytes| u32::try_from(self.page.pages(bytes)).unwrap_or(u32::MAX);
        let mut quotas: Quotas = [Quota::default(); PAGE_SIZES];
        // Of other page sizes, each process may allocate all pages.
        for pool in &self.board.config().pools {
            quotas[pool.size as usize] = Quota { reserved: 0, limit: pool.frames, shared: 0 };
        }
        let [reserved, limit, shared] = [bounds.reserved, bounds.limit, bounds.shared].map(pages);
        quotas[self.page as usize] = Quota { reserved, limit, shared };
        let credentials = credentials_of(self.board.begin(quotas)?);
        match self.allocate(credentials, bytes) {
            Ok(address) => Ok((credentials, Range { address, bytes })),
            Err(why) => {
                self.destroy(credentials);
                Err(BoardError::Range(bytes, why))
            }
        }
    }

    /// Whether a process has frames or is not at its end yet.
    pub(crate) fn has(&self, space: Space) -> bool {
        self.board.list().iter().any(|facts| facts.space == space)
    }

    /// Has a process share none of its memory with others.
    pub(crate) fn confine(&mut self, credentials: Credentials) {
        let Credentials { pid, epoch, .. } = credentials;
        self.board.confine(Space { pid, epoch });
    }

    /// Ends a process, and frees its memory.
    pub(crate) fn destroy(&mut self, credentials: Credentials) {
        let Credentials { pid, epoch, .. } = credentials;
        self.board.end(Space { pid, epoch }, clock::now());
        self.offloads.forget(Space { pid, epoch });
    }

    /// Adds a client, of a new process with these bounds or else of the one that is offered to all.
    pub(super) fn join(
        &mut self,
        to_all: (Credentials, Range),
        own: Option<Bounds>,
    ) -> Result<Joined, JoinError> {
        let thread = self.threads.take(self.board.lock_words()).ok_or(JoinError::NoThread)?;
        let process = own.map_or(Ok(to_all), |bounds| self.begin(bounds.reserved, bounds));
        match process {
            Ok(process) => Ok(Joined { process, thread }),
            Err(error) => {
                self.threads.give_back(thread);
                Err(error.into())
            }
        }
    }

    /// A client has left; its process ends if it is its own.
    pub(super) fn leave(&mut self, joined: &Joined, is_own: bool) {
        self.threads.give_back(joined.thread);
        if is_own {
            self.destroy(joined.process.0);
        }
    }
}
