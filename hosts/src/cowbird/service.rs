//! The set-up service of an engine.

use super::tenant::{Engine, Tenant};
use crate::roce::pool::whole;
use crate::roce::setup::{Connected, End, Offer, Server, Station, Token, agree, numbers, pairs_of};
use crate::roce::{Desk, Members, SetupError};
use p4rack_fabric::cowbird::{Pool, Set};
use p4rack_fabric::roce::Config;
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_server::{Cowbird, CowbirdServer};
use p4rack_p4rt::p4rack::cowbird::v1::{self, ServeRequest, ServeResponse};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Caller, Visitor};
use p4rack_wire::cowbird::{Layout, Red};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Protection domain of the engine's queue pairs: it offers no memory.
const DOMAIN: u32 = 0;
/// Sets of a call.
const SETS_MAX: usize = 256;

/// Configuration of the service.
#[derive(Clone, Debug)]
pub struct SpotConfig {
    /// Addresses of the adapter.
    pub station: Station,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// The memory pool.
    pub pool: Server,
    /// The hosts whose addresses compute nodes may have; `None`: any addresses.
    pub members: Option<Members>,
}

/// The set-up service of an engine.
#[derive(Debug)]
pub struct Service<E>(Arc<Inner<E>>);

#[derive(Debug)]
struct Inner<E> {
    engine: E,
    config: SpotConfig,
    desk: Desk,
}

/// A call that makes sense.
#[derive(Debug)]
struct CheckedServe {
    peer: End,
    token: Token,
    sets: Vec<(u32, u64, Layout)>,
    reds: Vec<Red>,
    pairs_max: u32,
}

impl<E: Engine> Service<E> {
    /// A service for an engine.
    pub fn new(engine: E, config: SpotConfig) -> Service<E> {
        Service(Arc::new(Inner { engine, config, desk: Desk::default() }))
    }

    /// Its entrance and counters.
    pub fn desk(&self) -> Desk {
        self.0.desk.clone()
    }
}

fn set(set: &v1::Set) -> (u32, u64, Layout) {
    let v1::Set { key, address, entries, request_bytes, response_bytes, .. } = *set;
    (key, address, Layout { entries, request_bytes, response_bytes })
}

fn red(set: &v1::Set) -> Red {
    Red {
        request_head: set.request_head,
        request_data_head: set.request_data_head,
        response_data_tail: set.response_data_tail,
        write_progress: set.write_progress,
        read_progress: set.read_progress,
        refusal: set.refusal,
    }
}

impl<E: Engine> Inner<E> {
    fn check(&self, caller: &Caller, request: &ServeRequest) -> Result<CheckedServe, Status> {
        let peer = End::of(request.end.as_ref()).map_err(Status::invalid_argument)?;
        if let Some(members) = &self.config.members {
            members.check(caller, &peer.station)?;
        }
        agree(request.mtu_bytes, request.reads_max, &self.config.adapter)
            .map_err(Status::failed_precondition)?;
        if peer.station.ip == self.config.station.ip {
            return Err(Status::invalid_argument(format!("end.ip {} is the engine's own", peer.station.ip)));
        }
        let token = Token::of(&request.token).map_err(Status::invalid_argument)?;
        if !(1..=SETS_MAX).contains(&request.sets.len()) {
            return Err(Status::invalid_argument(format!(
                "sets has {} sets; expected 1 to {SETS_MAX}",
                request.sets.len()
            )));
        }
        // Before anything is computed from the sizes.
        for (nth, (.., layout)) in request.sets.iter().map(set).enumerate() {
            layout.check().map_err(|why| Status::invalid_argument(format!("set {nth}: {why}")))?;
        }
        // The contents of its rings are still wrong, and its thread knows that they are no longer served.
        let (sets, reds): (Vec<_>, Vec<_>) =
            request.sets.iter().filter(|set| set.refusal == 0).map(|one| (set(one), red(one))).unzip();
        if sets.is_empty() {
            return Err(Status::failed_precondition(
                "all sets were refused before (refusal): their threads need fresh memory",
            ));
        }
        let pairs_max = pairs_of("pairs_max", request.pairs_max).map_err(Status::invalid_argument)?;
        Ok(CheckedServe { peer, token, sets, reds, pairs_max })
    }

    /// Serves until the caller has gone or something fails.
    async fn begin(
        self: Arc<Self>,
        caller: Caller,
        asked: CheckedServe,
    ) -> Result<ReceiverStream<Result<ServeResponse, Status>>, Status> {
        let CheckedServe { peer, token, sets, reds, pairs_max } = asked;
        let pairs = self.engine.pairs(sets.len());
        if pairs.compute > pairs_max {
            return Err(Status::failed_precondition(format!(
                "pairs_max is {pairs_max}; this engine needs {} queue pairs for {} sets",
                pairs.compute,
                sets.len()
            )));
        }
        peer.check_pairs(pairs.compute).map_err(Status::invalid_argument)?;
        let SpotConfig { station, adapter, pool, .. } = &self.config;
        let mut random = numbers();
        let pool = pool.connect_pairs(*station, adapter, Some(&token), pairs.pool, &mut random);
        let pool = pool.await.map_err(not_connected)?;
        let end = End::draw(*station, &mut random);
        let compute = (end.qpn, end.connection(&peer, DOMAIN));
        let sets = sets.into_iter().map(|set| with_regions(set, (&peer, end.qpn), &pool)).collect();
        let (failed, why) = oneshot::channel();
        let tenant = Tenant { caller, compute, pool: (pool.qpn, pool.connection), sets, reds, failed };
        let number = self.engine.add(tenant).await?;
        tracing::info!(compute_node = %peer.station.ip, "served");
        let (answers, answered) = mpsc::channel(2);
        // The answer has room for both.
        let answer = ServeResponse { end: Some(end.message()), pairs: pairs.compute };
        let _ = answers.try_send(Ok(answer));
        tokio::spawn(self.keep(number, pool, why, answers));
        Ok(ReceiverStream::new(answered))
    }

    /// Ends a lease when its caller has gone, the pool has, or a queue pair fails.
    async fn keep(
        self: Arc<Self>,
        number: u32,
        mut pool: Connected,
        failed: oneshot::Receiver<String>,
        answers: mpsc::Sender<Result<ServeResponse, Status>>,
    ) {
        let why = tokio::select! {
            () = answers.closed() => "the compute node has ended it, or is gone".to_owned(),
            why = failed => why.unwrap_or_else(|_| "the engine has ended".to_owned()),
            why = pool.ended() => format!("the connection with the pool ended: {why}"),
        };
        tracing::info!(why, "served no more");
        self.engine.remove(number).await;
        let _ = answers.try_send(Err(Status::aborted(why)));
    }
}

/// A set of `peer` with the pool's regions.
fn with_regions(
    (key, address, layout): (u32, u64, Layout),
    (peer, qpn): (&End, u32),
    pool: &Connected,
) -> Set {
    let owner = peer.station.ip.to_bits();
    let region =
        |offer: &Offer| Pool { qpn: pool.qpn, key: offer.key, address: offer.address, bytes: offer.bytes };
    Set { owner, qpn, key, address, layout, regions: pool.offers.iter().map(region).collect() }
}

fn not_connected(error: SetupError) -> Status {
    let text = format!("the engine's pool: {error}");
    match error {
        SetupError::Refused { .. } => Status::failed_precondition(text),
        _ => Status::unavailable(text),
    }
}

#[tonic::async_trait]
impl<E: Engine> Cowbird for Service<E> {
    type ServeStream = ReceiverStream<Result<ServeResponse, Status>>;

    async fn serve(&self, request: Request<ServeRequest>) -> Result<Response<Self::ServeStream>, Status> {
        let caller = Visitor::of(&request)?.caller().clone();
        let inner = self.0.clone();
        let asked = inner.desk.note(inner.check(&caller, request.get_ref()))?;
        whole(async move { inner.desk.note(inner.clone().begin(caller, asked).await) }).await
    }
}

/// Serves until the future is dropped.
pub async fn serve<E: Engine>(
    listener: TcpListener,
    service: Service<E>,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let incoming = service.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(CowbirdServer::new(service));
    Ok(router.serve_with_incoming(incoming).await?)
}
