//! A compute node's side: its session, its lease, and the extents that it holds.

use super::convert;
use super::listing::{self, Listed};
use crate::clio::{ClioError, Patience, Session as Client};
use crate::remote::{Attachment, Granted, Opened, RemoteError};
use crate::roce::SetupError;
use crate::roce::setup::Server;
use p4rack_fabric::balloon::{self, Ask, Extent, Lent, Refusal, Request, Session};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::balloon_client::BalloonClient;
use p4rack_p4rt::p4rack::balloon::v1::{AskRequest, AskResponse, LeaveRequest, ListResponse};
use p4rack_wire::Nanos;
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Time between two tries while the service starts, or can't be reached.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time of a request. A service gives up a grant that no memory node answers within a minute.
const WHOLE: Nanos = Nanos::from_secs(300);
/// Longest time that the end of a session is asked for: its lease ends it, too.
const CLOSING: Nanos = Nanos::from_secs(10);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The service can't be reached, refuses, or answers nonsense.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The board of an extent can't be reached, or refuses.
    #[error(transparent)]
    Board(#[from] ClioError),
    /// The pool has no such extent now, or this compute node holds as many as it may: one may come later.
    #[error(transparent)]
    Full(SetupError),
    /// The content of an extent did not move: the extent is held on.
    #[error("moving an extent's content: {0}")]
    Carry(RemoteError),
    /// The session has ended, as the service says: another session may have the extents.
    #[error("all that was held is lost: {0}")]
    Ended(String),
}

/// Why one try of a request has failed.
enum Failure {
    Refused(Status),
    Unreached(SetupError),
    /// No reply came in time.
    Silent,
}

impl Failure {
    /// Whether the same request may succeed later. Copies have no second effect, so calls that fail on the way are
    /// repeated; a verdict of the service is final.
    fn may_pass(&self) -> bool {
        let Failure::Refused(status) = self else { return true };
        match status.code() {
            // The service starts, or a later copy of the request waits for the reply; or nothing listens.
            Code::Unavailable
            // The service is superseded: the next one may listen at the same address.
            | Code::Aborted
            // The connection broke, or something on the way gave up: HTTP/2 and tonic have no other codes for that.
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::Unknown => true,
            // Decisions of the service, and requests that it does not understand.
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss
            | Code::Unauthenticated => false,
        }
    }

    fn error(self, server: &Server) -> SetupError {
        match self {
            Failure::Refused(status) => server.refused(&status),
            Failure::Unreached(error) => error,
            Failure::Silent => {
                SetupError::Connect { addr: server.addr.clone(), reason: "no reply in time".to_owned() }
            }
        }
    }
}

/// A refusal as gRPC has it.
pub(super) fn status(refusal: Refusal) -> Status {
    let said = refusal.to_string();
    match refusal {
        Refusal::Starting | Refusal::Repeated => Status::unavailable(said),
        Refusal::Superseded | Refusal::SameNode => Status::aborted(said),
        Refusal::NoSession | Refusal::OldInstance => Status::failed_precondition(said),
        Refusal::NotHeld => Status::not_found(said),
        Refusal::Bytes | Refusal::Number | Refusal::Online => Status::invalid_argument(said),
        Refusal::Full | Refusal::Quota | Refusal::NoRoom | Refusal::NoNode => {
            Status::resource_exhausted(said)
        }
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
    /// When a request that waits for its reply renews the lease.
    renew_at: Nanos,
    number: u64,
}

impl Tenancy {
    /// Opens a session for the compute node `holder` at a service; an earlier one of the same compute node ends. While the service starts,
    /// it is asked again, for at most `patience`.
    pub async fn open(server: Server, holder: u32, patience: Duration) -> Result<Tenancy, LeaseError> {
        let session = Session { holder, instance: clock::wall_ns() };
        let patience = Nanos(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let until = clock::now().saturating_add(patience);
        let (lease, renew_at) = (Nanos::ZERO, Nanos::MAX);
        let mut tenancy = Tenancy { server, client: None, session, lease, until, renew_at, number: 0 };
        tenancy.ask_for_lease(Ask::Open).await?;
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

    /// Asks to open or to renew, until the service has replied or the lease has ended.
    async fn ask_for_lease(&mut self, ask: Ask) -> Result<AskResponse, LeaseError> {
        let is_open = ask == Ask::Open;
        let request = convert::request(&Request { session: self.session, ask });
        loop {
            let asked_at = clock::now();
            let failure = match self.try_until(&request, self.until).await {
                Ok(response) => {
                    self.lease = self.sense(convert::lease_of(&response))?;
                    // The service counts from a later time.
                    self.until = asked_at.saturating_add(self.lease);
                    self.renew_at = asked_at.saturating_add(Nanos(self.lease.0 / 3));
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            match failure {
                Failure::Refused(status) if status.code() == Code::FailedPrecondition && !is_open => {
                    return Err(LeaseError::Ended(status.message().to_owned()));
                }
                failure if !failure.may_pass() || clock::now() >= self.until => {
                    return Err(failure.error(&self.server).into());
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Asks, and repeats the request while the service starts or can't be reached, for a lease at most. While the reply is not there, the
    /// lease is renewed, and the request repeated: the same number gets the same extent.
    async fn ask(&mut self, ask: Ask) -> Result<AskResponse, LeaseError> {
        let is_return = matches!(ask, Ask::Return(_));
        let request = convert::request(&Request { session: self.session, ask });
        let end = clock::now().saturating_add(WHOLE);
        // A way that fails although renewals succeed is given up, too.
        let mut failing_since: Option<Nanos> = None;
        let mut is_copy = false;
        loop {
            if clock::now() >= self.renew_at {
                self.ask_for_lease(Ask::Renew).await?;
            }
            let failure = match self.try_until(&request, self.renew_at.min(end)).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let now = clock::now();
            failing_since = match failure {
                Failure::Silent => None,
                _ => failing_since.or(Some(now)),
            };
            let is_late = failing_since.is_some_and(|since| now >= since.saturating_add(self.lease));
            match failure {
                Failure::Refused(status) if status.code() == Code::FailedPrecondition => {
                    return Err(LeaseError::Ended(status.message().to_owned()));
                }
                // An earlier copy has returned it, and its reply was lost.
                Failure::Refused(status) if status.code() == Code::NotFound && is_return && is_copy => {
                    return Ok(AskResponse::default());
                }
                Failure::Refused(status) if status.code() == Code::ResourceExhausted => {
                    return Err(LeaseError::Full(self.server.refused(&status)));
                }
                failure if !failure.may_pass() || is_late || now >= end => {
                    return Err(failure.error(&self.server).into());
                }
                Failure::Silent => {}
                _ => tokio::time::sleep(PAUSE).await,
            }
            is_copy = true;
        }
    }

    /// Until when what is held is held, by the clock of this host; the service counts from a later time.
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// Sends a request once, and waits for the reply until `end`.
    async fn try_until(&mut self, request: &AskRequest, end: Nanos) -> Result<AskResponse, Failure> {
        let left = Duration::from_nanos(end.saturating_sub(clock::now()).0).max(PAUSE);
        let tried = tokio::time::timeout(left, self.try_once(request)).await;
        let tried = tried.unwrap_or(Err(Failure::Silent));
        if tried.as_ref().is_err_and(Failure::may_pass) {
            // The next try connects again.
            self.client = None;
        }
        tried
    }

    async fn try_once(&mut self, request: &AskRequest) -> Result<AskResponse, Failure> {
        let mut client = match &self.client {
            Some(client) => client.clone(),
            None => {
                let channel = self.server.channel().await.map_err(Failure::Unreached)?;
                self.client.insert(BalloonClient::new(channel)).clone()
            }
        };
        let response = client.ask(*request).await.map_err(Failure::Refused)?;
        Ok(response.into_inner())
    }

    /// Renews the lease of all held extents. Returns them all, each with the set-up service of its memory node;
    /// extents that are missing are lost. Errors: the session has ended, or the service can't be reached.
    pub async fn renew(&mut self) -> Result<Vec<(Lent, String)>, LeaseError> {
        let response = self.ask_for_lease(Ask::Renew).await?;
        response.lent.into_iter().map(|lent| self.sense(convert::lent_of(lent))).collect()
    }

    /// Reserves an extent of `bytes` bytes, a power of two from 2 MiB to 1 GiB. Returns it with the set-up service of its memory node.
    /// Errors: [`LeaseError::Full`] if there is none now; others as those of [`renew`](Self::renew).
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

    /// Moves an extent away from its memory node: reserves another one, has `carry` copy the content there, and returns the old one.
    /// `carry` gets the new extent and the set-up service of its memory node; it may block, and the lease is renewed until it returns.
    /// No write may reach the old extent once it has returned: [`Movable`](crate::remote::Movable) does that for remote memory in use.
    ///
    /// Errors: there is no other extent, or `carry` has failed: the old one is held on, with its content. Or the session has ended.
    pub async fn move_away(
        &mut self,
        old: &Lent,
        carry: impl FnOnce(Lent, String) -> Result<(), RemoteError> + Send + 'static,
    ) -> Result<Lent, LeaseError> {
        let (new, addr) = self.reserve(old.extent.bytes).await?;
        self.online(new.extent).await?;
        let place = new.clone();
        let mut carried = tokio::task::spawn_blocking(move || carry(place, addr));
        let third = Duration::from_nanos(self.lease.0 / 3);
        let carried = loop {
            tokio::select! {
                carried = &mut carried => break carried,
                () = tokio::time::sleep(third) => drop(self.renew().await?),
            }
        };
        let carried = carried.unwrap_or_else(|error| Err(RemoteError::Broken(error.to_string())));
        let gone = if carried.is_ok() { old } else { &new };
        self.offline(gone.extent).await?;
        self.give_back(gone.extent).await?;
        carried.map_err(LeaseError::Carry)?;
        Ok(new)
    }

    /// Ends the session: everything is taken back. A service that can't be reached is asked for 10 s; the session then ends with its
    /// lease.
    pub async fn close(mut self) -> Result<(), LeaseError> {
        let request = convert::request(&Request { session: self.session, ask: Ask::Close });
        let end = clock::now().saturating_add(CLOSING);
        let mut is_copy = false;
        loop {
            let failure = match self.try_until(&request, end).await {
                Ok(_) => return Ok(()),
                Err(failure) => failure,
            };
            match failure {
                // An earlier copy has ended it, and its reply was lost.
                Failure::Refused(status) if status.code() == Code::FailedPrecondition => match is_copy {
                    true => return Ok(()),
                    false => return Err(LeaseError::Ended(status.message().to_owned())),
                },
                failure if !failure.may_pass() || clock::now() >= end => {
                    return Err(failure.error(&self.server).into());
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
            is_copy = true;
        }
    }

    fn sense<T>(&self, value: Result<T, String>) -> Result<T, LeaseError> {
        value.map_err(|wrong| self.server.nonsense(wrong).into())
    }

    /// Opens an extent as remote memory, by the way that its memory node has: see [`Granted::open`]. The memory of `place` is the set-up
    /// service that came with it.
    pub fn open_extent(lent: &Lent, place: Attachment) -> Result<Opened, RemoteError> {
        let granted = convert::granted(lent.access.bytes(), lent.extent.bytes);
        granted.map_err(RemoteError::Broken)?.open(place)
    }

    /// Opens an extent on a board: a client of its process there. The board's set-up service came with it. It blocks, so it is called outside
    /// of a runtime.
    pub fn connect(lent: &Lent, board: &Server, patience: Patience) -> Result<Client, LeaseError> {
        let nonsense = |wrong: String| LeaseError::Setup(board.nonsense(wrong));
        match convert::granted(lent.access.bytes(), lent.extent.bytes).map_err(nonsense)? {
            Granted::Process { credentials, address, bytes } => {
                Ok(Client::open_granted(board, credentials, (address, bytes), patience)?)
            }
            Granted::Region { .. } => Err(nonsense(
                "the extent is an RDMA pool's, which has no sessions: open it as remote memory".to_owned(),
            )),
        }
    }
}

/// The pool, its extents and their holders. Errors: the service can't be reached, or answers nonsense.
pub async fn list(server: &Server) -> Result<Listed, SetupError> {
    let mut client = BalloonClient::new(server.channel().await?);
    let mut page = page(server, &mut client, None).await?;
    let mut has_more = page.has_more;
    let mut listed = Listed::of(page).map_err(|wrong| server.nonsense(wrong))?;
    while has_more {
        page = self::page(server, &mut client, listed.last()).await?;
        has_more = page.has_more && !page.extents.is_empty();
        listed.add(page).map_err(|wrong| server.nonsense(wrong))?;
    }
    Ok(listed)
}

async fn page(
    server: &Server,
    client: &mut BalloonClient<Channel>,
    after: Option<balloon::Place>,
) -> Result<ListResponse, SetupError> {
    let listed = client.list(listing::request(after)).await;
    listed.map(tonic::Response::into_inner).map_err(|status| server.refused(&status))
}

/// Has a memory node go offline, or come back: it lends nothing more, and holders of its extents learn with their renewals that they should
/// [move away](Tenancy::move_away). Errors: the service can't be reached, or has no such memory node.
pub async fn leave(server: &Server, node: u16, leaves: bool) -> Result<(), SetupError> {
    let request = LeaveRequest { node: node.into(), leaves };
    let left = BalloonClient::new(server.channel().await?).leave(request).await;
    left.map(drop).map_err(|status| server.refused(&status))
}

/// Ends the session of a compute node for its operator: its extents are fenced. Returns how many extents it held.
/// Errors: the service can't be reached, or the compute node has no session.
pub async fn release(server: &Server, holder: u32) -> Result<usize, SetupError> {
    let listed = list(server).await?;
    let found = listed.holders.iter().find(|facts| facts.session.holder == holder);
    let found = found.ok_or_else(|| SetupError::Refused {
        addr: server.addr.clone(),
        reason: format!("compute node {holder} has no session"),
    })?;
    let request = convert::request(&Request { session: found.session, ask: Ask::Close });
    let closed = BalloonClient::new(server.channel().await?).ask(request).await;
    closed.map(|_| found.extents).map_err(|status| server.refused(&status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_on_the_way_is_repeated_and_verdicts_are_not() {
        let may_pass = |status| Failure::Refused(status).may_pass();
        for refusal in [Refusal::Starting, Refusal::Repeated, Refusal::Superseded] {
            assert!(may_pass(status(refusal)), "{refusal:?}");
        }
        for code in [Code::Cancelled, Code::Unknown, Code::Internal, Code::DeadlineExceeded] {
            assert!(may_pass(Status::new(code, "the connection broke")), "{code:?}");
        }
        for refusal in
            [Refusal::NoSession, Refusal::Bytes, Refusal::NotHeld, Refusal::NoRoom, Refusal::NoNode]
        {
            assert!(!may_pass(status(refusal)), "{refusal:?}");
        }
        assert!(Failure::Silent.may_pass());
    }
}
