//! Memory nodes of a balloon: boards of Clio, and RDMA pools. The service's commands reach them beside their own set-up.

use super::board::LendingBoard;
use super::convert;
use super::key::Key;
use super::lends::Lends;
use super::pool::LendingPool;
use crate::clio::service::Service as Board;
use crate::roce::pool::Service as Pool;
use crate::roce::{Desk, SetupError};
use p4rack_p4rt::p4rack::balloon::v1::node_server::{Node as Service, NodeServer};
use p4rack_p4rt::p4rack::balloon::v1::{Answer, Command};
use p4rack_p4rt::p4rack::clio::v1::clio_server::ClioServer;
use p4rack_p4rt::p4rack::roce::v1::roce_server::RoceServer;
use p4rack_p4rt::transport::tls::ServerTls;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

/// The entrance of a memory node for commands.
struct Lender<M> {
    memory: M,
    desk: Desk,
    /// The service proves with it that it is the pool's.
    key: Key,
}

impl<M: Lends> Lender<M> {
    async fn executed(&self, request: Request<Command>) -> Result<Answer, Status> {
        self.key.check(request.metadata())?;
        let command = convert::command_of(request.into_inner()).map_err(Status::invalid_argument)?;
        self.memory.execute(command).await.map(convert::answer)
    }
}

#[tonic::async_trait]
impl<M: Lends> Service for Lender<M> {
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
    let lender = Lender { memory: LendingBoard::new(&board), desk: board.desk(), key };
    let incoming = board.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(ClioServer::new(board)).add_service(NodeServer::new(lender));
    Ok(router.serve_with_incoming(incoming).await?)
}

/// The same for an RDMA pool, which lends the memory that its peers may reserve.
pub async fn serve_pool(
    listener: TcpListener,
    pool: Pool,
    key: Key,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let lender = Lender { memory: LendingPool::new(&pool), desk: pool.desk(), key };
    let incoming = pool.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(RoceServer::new(pool)).add_service(NodeServer::new(lender));
    Ok(router.serve_with_incoming(incoming).await?)
}
