//! A compute node's side: its session, its lease, and the extents that it holds.

use super::convert;
use crate::clio::{ClioError, Patience, Session as Client};
use crate::roce::SetupError;
use crate::roce::setup::Server;
use p4rack_fabric::balloon::{Ask, Extent, Lent, Refusal, Request, Session};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::balloon_client::BalloonClient;
use p4rack_p4rt::p4rack::balloon::v1::{AskRequest, AskResponse, ListRequest, ListResponse, Process};
use p4rack_wire::Nanos;
use prost::Message as _;
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Time between two tries while the service starts, or can't be reached.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The service can't be reached, refuses, or answers nonsense.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The board of an extent can't be reached, or refuses.
    #[error(transparent)]
    Board(#[from] ClioError),
    /// The lease has ended: another session may have the extents.
    #[error("the lease has ended, and with it all that was held")]
    Ended,
}

/// A refusal as gRPC has it.
pub(super) fn status(refusal: Refusal) -> Status {
    let said = refusal.to_string();
    match refusal {
        Refusal::Starting | Refusal::Repeated => Status::unavailable(said),
        Refusal::Superseded => Status::aborted(said),
        Refusal::NoSession | Refusal::OldInstance => Status::failed_precondition(said),
        Refusal::Bytes | Refusal::Number | Refusal::NotHeld | Refusal::Online => {
            Status::invalid_argument(said)
        }
        Refusal::Full | Refusal::Quota | Refusal::NoRoom => Status::resource_exhausted(said),
    }
}

/// A compute node's session. It has to be [renewed](Self::renew) before its lease ends; then all that it holds is taken away.
#[derive(Debug)]
pub struct Tenancy {
    server: Server,
    client: Option<BalloonClient<Channel>>,
    session: Session,
    lease: Nanos,
    /// When the lease ends at the latest, by the clock of this host.
    until: Nanos,
    number: u64,
}

impl Tenancy {
    /// Opens a session for the compute node `holder` at a service; an earlier one of the same compute node ends. While the service starts,
    /// it is asked again, for at most `patience`.
    pub async fn open(server: Server, holder: u32, patience: Duration) -> Result<Tenancy, LeaseError> {
        let session = Session { holder, instance: clock::wall_ns() };
        let (lease, until) = (Nanos::ZERO, Nanos::ZERO);
        let mut tenancy = Tenancy { server, client: None, session, lease, until, number: 0 };
        let end = clock::now() + Nanos(patience.as_nanos() as u64);
        tenancy.until = end;
        let asked_at = clock::now();
        let response = tenancy.ask(Ask::Open).await?;
        tenancy.extend(&response, asked_at);
        Ok(tenancy)
    }

    /// The session.
    pub fn session(&self) -> Session {
        self.session
    }

    /// How long the session lasts after it was renewed.
    pub fn lease(&self) -> Nanos {
        self.lease
    }

    /// Asks another service from now on: the one that has taken over the memory nodes knows the session.
    pub fn ask_at(&mut self, server: Server) {
        (self.server, self.client) = (server, None);
    }

    fn extend(&mut self, response: &AskResponse, asked_at: Nanos) {
        self.lease = convert::lease_of(response);
        // The service counts from a later time.
        self.until = asked_at.saturating_add(self.lease);
    }

    /// Asks, and asks again as long as the lease lasts while the service starts or can't be reached: copies have no second effect.
    async fn ask(&mut self, ask: Ask) -> Result<AskResponse, LeaseError> {
        let request = convert::request(&Request { session: self.session, ask });
        loop {
            let failed = match self.try_once(&request).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            match failed {
                Ok(status) if status.code() == Code::FailedPrecondition => return Err(LeaseError::Ended),
                Ok(status) if status.code() != Code::Unavailable => {
                    return Err(self.server.refused(&status).into());
                }
                Ok(status) if clock::now() >= self.until => return Err(self.server.refused(&status).into()),
                Err(error) if clock::now() >= self.until => return Err(error.into()),
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn try_once(&mut self, request: &AskRequest) -> Result<AskResponse, Result<Status, SetupError>> {
        // After an error, the next try connects anew.
        let mut client = match self.client.take() {
            Some(client) => client,
            None => BalloonClient::new(self.server.channel().await.map_err(Err)?),
        };
        let response = client.ask(*request).await.map_err(Ok)?;
        self.client = Some(client);
        Ok(response.into_inner())
    }

    /// Holds for another lease what is held. Returns all of it, each with the set-up service of its memory node; extents that are missing
    /// are lost. Errors: the lease has ended, or the service can't be reached.
    pub async fn renew(&mut self) -> Result<Vec<(Lent, String)>, LeaseError> {
        let asked_at = clock::now();
        let response = self.ask(Ask::Renew).await?;
        self.extend(&response, asked_at);
        response.lent.into_iter().map(|lent| self.sense(convert::lent_of(lent))).collect()
    }

    /// Reserves an extent of `bytes` bytes, a power of two from 2 MiB to 1 GiB. Returns it with the set-up service of its memory node.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(Lent, String), LeaseError> {
        self.number += 1;
        let number = self.number;
        let response = self.ask(Ask::Reserve { number, bytes }).await?;
        let lent = response.lent.into_iter().next().ok_or_else(|| "no extent came".to_owned());
        let (lent, addr) = self.sense(lent.and_then(convert::lent_of))?;
        match (lent.number, lent.extent.bytes) == (number, bytes) {
            true => Ok((lent, addr)),
            false => Err(self.server.nonsense(format!("another extent came: {:?}", lent.extent)).into()),
        }
    }

    /// Begins to use an extent: it can't be returned until it is offline.
    pub async fn online(&mut self, extent: Extent) -> Result<(), LeaseError> {
        self.ask(Ask::Online(extent)).await.map(drop)
    }

    /// Ends the use of an extent, whose data has moved away.
    pub async fn offline(&mut self, extent: Extent) -> Result<(), LeaseError> {
        self.ask(Ask::Offline(extent)).await.map(drop)
    }

    /// Returns an extent.
    pub async fn give_back(&mut self, extent: Extent) -> Result<(), LeaseError> {
        self.ask(Ask::Return(extent)).await.map(drop)
    }

    /// Ends the session: everything is taken back.
    pub async fn close(mut self) -> Result<(), LeaseError> {
        self.ask(Ask::Close).await.map(drop)
    }

    fn sense<T>(&self, value: Result<T, String>) -> Result<T, LeaseError> {
        value.map_err(|wrong| self.server.nonsense(wrong).into())
    }

    /// Opens an extent: a client of the process on its board, whose set-up service came with it. It blocks, so it is called outside of a
    /// runtime.
    pub fn connect(lent: &Lent, board: &Server, patience: Patience) -> Result<Client, LeaseError> {
        let nonsense = |wrong: &str| LeaseError::Setup(board.nonsense(wrong.to_owned()));
        let process: Process = Process::decode(lent.access.bytes())
            .map_err(|_| nonsense("the access is not to a process of a board"))?;
        let epoch = u16::try_from(process.epoch).map_err(|_| nonsense("epoch has more than 16 bits"))?;
        let credentials = Credentials { pid: process.pid, epoch, token: process.token };
        Ok(Client::open_granted(board, credentials, (process.address, lent.extent.bytes), patience)?)
    }
}

/// The pool, its extents and their holders. Errors: the service can't be reached.
pub async fn list(server: &Server) -> Result<ListResponse, SetupError> {
    let listed = BalloonClient::new(server.channel().await?).list(ListRequest {}).await;
    listed.map(tonic::Response::into_inner).map_err(|status| server.refused(&status))
}

/// Ends the session of a compute node, as its operator does: what it holds is fenced. Returns how many extents it held. Errors: the
/// service can't be reached, or the compute node has no session.
pub async fn release(server: &Server, holder: u32) -> Result<u64, SetupError> {
    let listed = list(server).await?;
    let found = listed.holders.iter().find(|of| of.session.is_some_and(|of| of.holder == holder));
    let no_session = || SetupError::Refused {
        addr: server.addr.clone(),
        reason: format!("compute node {holder} has no session"),
    };
    let found = found.ok_or_else(no_session)?;
    let instance = found.session.map(|of| of.instance).unwrap_or_default();
    let request = convert::request(&Request { session: Session { holder, instance }, ask: Ask::Close });
    let closed = BalloonClient::new(server.channel().await?).ask(request).await;
    closed.map(|_| found.extents).map_err(|status| server.refused(&status))
}
