//! A board of Clio that lends: an extent is a process of its own.

use super::convert;
use super::lends::Lends;
use crate::clio::server::{Host, Offer};
use crate::clio::service::Service as Board;
use crate::commands::Handle;
use crate::remote::Granted;
use p4rack_fabric::balloon::{Access, Answer, Command, Extent, Memory, Node};
use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_netdev::clock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::Status;

/// Extents that a board lends at most: its report of all of them is one message.
const EXTENTS_MAX: usize = 16_384;

/// The board's part of a pool.
pub(super) struct LendingBoard {
    handle: Handle<Host>,
    /// Only the board's thread takes the lock, so it is always free.
    state: Arc<Mutex<State>>,
}

struct State {
    node: Node,
    /// Processes by start of the extent, until all of their frames are free.
    processes: BTreeMap<u64, Credentials>,
}

/// The board while it executes a command.
struct OnBoard<'a> {
    host: &'a mut Host,
    processes: &'a mut BTreeMap<u64, Credentials>,
}

impl Memory for OnBoard<'_> {
    fn grant(&mut self, extent: &Extent) -> Option<Access> {
        let (credentials, range) = self.host.create(extent.bytes, true).ok()?;
        // Otherwise a holder could keep its frames in another process after they are fenced.
        self.host.confine(credentials);
        self.processes.insert(extent.place.start, credentials);
        let (address, bytes) = (range.address, extent.bytes);
        convert::access(&Granted::Process { credentials, address, bytes })
    }

    fn revoke(&mut self, extent: &Extent) {
        if let Some(credentials) = self.processes.get(&extent.place.start) {
            self.host.destroy(*credentials);
        }
    }

    fn zero(&mut self, extent: &Extent) -> bool {
        let start = extent.place.start;
        let Some(Credentials { pid, epoch, .. }) = self.processes.get(&start).copied() else { return true };
        if self.host.has(Space { pid, epoch }) {
            return false;
        }
        self.processes.remove(&start);
        true
    }
}

impl LendingBoard {
    /// Lends the memory that clients of the board may reserve.
    pub(super) fn new(board: &Board) -> LendingBoard {
        let (handle, Offer { reserve_bytes_max, processes_max, .. }) = board.board();
        let extents_max = usize::try_from(processes_max).map_or(EXTENTS_MAX, |max| max.min(EXTENTS_MAX));
        // Another instance whenever the board starts.
        let node = Node::new(clock::wall_ns(), reserve_bytes_max, extents_max);
        let state = State { node, processes: BTreeMap::new() };
        LendingBoard { handle, state: Arc::new(Mutex::new(state)) }
    }
}

impl Lends for LendingBoard {
    async fn execute(&self, command: Command) -> Result<Answer, Status> {
        let state = self.state.clone();
        let work = move |host: &mut Host| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let State { node, processes } = &mut *state;
            node.handle(&command, &mut OnBoard { host, processes })
        };
        self.handle.call(work).await.map_err(|gone| Status::unavailable(gone.to_string()))
    }
}
