//! How clients join a board, and leave it.

use super::server::{BoardError, Host, Range};
use super::threads::GIVEN;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_wire::clio::lock_thread;
use std::collections::BTreeSet;

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
    /// Adds a client, of a new process with so many reserved bytes or else of the one that is offered to all.
    pub(super) fn join(
        &mut self,
        to_all: (Credentials, Range),
        reserve_bytes: Option<u64>,
    ) -> Result<Joined, JoinError> {
        // The owner of a lock may be gone before its lease is over.
        let locked: BTreeSet<u16> = self.board.lock_words().map(lock_thread).collect();
        let thread = self.threads.take(|number| locked.contains(&number)).ok_or(JoinError::NoThread)?;
        let process = reserve_bytes.map_or(Ok(to_all), |bytes| self.create(bytes, true));
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
