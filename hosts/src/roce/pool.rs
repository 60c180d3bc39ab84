//! A memory pool: regions behind an adapter, and the service that connects peers with it.

use super::error::SetupError;
use super::port::{Gone, Handle};
use super::setup::{End, KEEPALIVE, Offer, Station, numbers};
use super::tls::ServerTls;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Config, PairError, Regions};
use p4rack_p4rt::p4rack::roce::v1::roce_server::{Roce, RoceServer};
use p4rack_p4rt::p4rack::roce::v1::{AttachRequest, AttachResponse};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Protection domain of all connections: who may connect may access all regions that are offered.
pub const DOMAIN: u32 = 0;
/// Numbers drawn until one is free.
const DRAWS_MAX: usize = 16;
/// Calls that a connection may have open: each is a queue pair.
const CALLS_A_CONNECTION: u32 = 64;

/// What the service needs to know.
#[derive(Debug)]
pub struct PoolConfig {
    /// Addresses of the adapter.
    pub station: Station,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// Memory that everyone who connects may access.
    pub offers: Vec<Offer>,
}

/// The set-up service of a pool.
#[derive(Debug)]
pub struct Service {
    handle: Handle<Regions>,
    config: PoolConfig,
    random: Mutex<SplitMix>,
}

impl Service {
    /// A service for the adapter behind `handle`.
    pub fn new(handle: Handle<Regions>, config: PoolConfig) -> Service {
        Service { handle, config, random: Mutex::new(numbers()) }
    }

    /// Adds a queue pair for `peer`, under a number that is free.
    async fn add(&self, peer: End) -> Result<End, Status> {
        for _ in 0..DRAWS_MAX {
            let end = {
                let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
                End::draw(self.config.station, &mut random)
            };
            let connection = end.connection(&peer, DOMAIN);
            let added = self.handle.call(move |adapter| adapter.add_pair(end.qpn, connection)).await;
            match added.map_err(|gone| Status::unavailable(gone.to_string()))? {
                Ok(()) => return Ok(end),
                Err(PairError::Taken(_)) => {}
                Err(PairError::Full) => {
                    return Err(Status::resource_exhausted(
                        "the pool has as many connections as it may have: end one first",
                    ));
                }
                Err(error) => return Err(Status::invalid_argument(error.to_string())),
            }
        }
        Err(Status::unavailable("no free number for a queue pair was found: try again"))
    }
}

/// A connection of a peer: its one answer, then nothing. When the call ends, this is dropped and the queue pair removed.
#[derive(Debug)]
pub struct Lease {
    answer: Option<AttachResponse>,
    qpn: u32,
    handle: Handle<Regions>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let qpn = self.qpn;
        // An adapter that is gone has no queue pairs.
        let _: Result<(), Gone> = self.handle.post(move |adapter| {
            adapter.remove_pair(qpn);
        });
    }
}

impl Stream for Lease {
    type Item = Result<AttachResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.answer.take() {
            Some(answer) => Poll::Ready(Some(Ok(answer))),
            // Nothing wakes it: it ends with the call.
            None => Poll::Pending,
        }
    }
}

#[tonic::async_trait]
impl Roce for Service {
    type AttachStream = Lease;

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Lease>, Status> {
        let request = request.into_inner();
        let peer = End::of(request.end.as_ref()).map_err(Status::invalid_argument)?;
        let ours = &self.config.adapter;
        for (name, theirs, ours) in [
            ("mtu_bytes", request.mtu_bytes, ours.mtu.bytes()),
            ("reads_max", request.reads_max, ours.reads_max as u32),
        ] {
            if theirs != ours {
                return Err(Status::failed_precondition(format!(
                    "{name} is {theirs} there and {ours} here: both ends need the same"
                )));
            }
        }
        if peer.station.ip == self.config.station.ip {
            return Err(Status::invalid_argument(format!("end.ip {} is the pool's own", peer.station.ip)));
        }
        let end = self.add(peer).await?;
        tracing::info!(peer = %peer.station.ip, qpn = end.qpn, "connected");
        let regions = self.config.offers.iter().map(Offer::message).collect();
        let answer = Some(AttachResponse { end: Some(end.message()), regions });
        Ok(Response::new(Lease { answer, qpn: end.qpn, handle: self.handle.clone() }))
    }
}

/// Listens on an address.
pub async fn bind(addr: SocketAddr) -> Result<TcpListener, SetupError> {
    TcpListener::bind(addr).await.map_err(|error| SetupError::Bind { addr, error })
}

/// Serves until the future is dropped.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let mut server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(CALLS_A_CONNECTION)
        .tcp_nodelay(true);
    if let Some(tls) = tls {
        server = server.tls_config(tls.config()?)?;
    }
    let router = server.add_service(RoceServer::new(service));
    Ok(router.serve_with_incoming(TcpListenerStream::new(listener)).await?)
}
