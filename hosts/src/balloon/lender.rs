//! A board of Clio as a memory node of a balloon.

use super::convert;
use super::key::Key;
use crate::clio::server::{Host, Offer};
use crate::clio::service::Service as Board;
use crate::commands::Handle;
use crate::roce::{Desk, SetupError};
use p4rack_fabric::balloon::{Access, Extent, Memory, Node};
use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::node_server::{Node as Service, NodeServer};
use p4rack_p4rt::p4rack::balloon::v1::{Answer, Command, Process};
use p4rack_p4rt::p4rack::clio::v1::clio_server::ClioServer;
use p4rack_p4rt::transport::tls::ServerTls;
use prost::Message as _;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

/// Extents that a board lends at most: its report of all of them is one message.
const EXTENTS_MAX: usize = 16_384;

/// The board's part of a pool.
struct Lender {
    handle: Handle<Host>,
    /// Only the board's thread takes the lock, so it is always free.
    state: Arc<Mutex<State>>,
    desk: Desk,
    /// The service proves with it that it is the pool's.
    key: Key,
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
        let Credentials { pid, epoch, token } = credentials;
        let process = Process { pid, epoch: epoch.into(), token, address: range.address };
        self.processes.insert(extent.place.start, credentials);
        Access::new(&process.encode_to_vec())
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

impl Lender {
    /// Lends the memory that clients of the board may reserve.
    fn new(board: &Board, key: Key) -> Lender {
        let (handle, Offer { reserve_bytes_max, processes_max, .. }) = board.board();
        let extents_max = usize::try_from(processes_max).map_or(EXTENTS_MAX, |max| max.min(EXTENTS_MAX));
        // Another instance whenever the board starts.
        let node = Node::new(clock::wall_ns(), reserve_bytes_max, extents_max);
        let state = State { node, processes: BTreeMap::new() };
        Lender { handle, state: Arc::new(Mutex::new(state)), desk: board.desk(), key }
    }

    async fn executed(&self, request: Request<Command>) -> Result<Answer, Status> {
        self.key.check(request.metadata())?;
        let command = convert::command_of(request.into_inner()).map_err(Status::invalid_argument)?;
        let state = self.state.clone();
        let work = move |host: &mut Host| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let State { node, processes } = &mut *state;
            node.handle(&command, &mut OnBoard { host, processes })
        };
        let answer = self.handle.call(work).await.map_err(|gone| Status::unavailable(gone.to_string()))?;
        Ok(convert::answer(answer))
    }
}

#[tonic::async_trait]
impl Service for Lender {
    async fn execute(&self, request: Request<Command>) -> Result<Response<Answer>, Status> {
        let executed = self.executed(request).await;
        self.desk.note(executed).map(Response::new)
    }
}

/// Serves a board's set-up, and the board as a balloon's memory node for services that have the key, until the future is dropped.
pub async fn serve_board(
    listener: TcpListener,
    board: Board,
    key: Key,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let lender = Lender::new(&board, key);
    let incoming = board.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(ClioServer::new(board)).add_service(NodeServer::new(lender));
    Ok(router.serve_with_incoming(incoming).await?)
}
