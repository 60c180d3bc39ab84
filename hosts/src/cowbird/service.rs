//! The set-up service of an engine.

use super::spot::{AddError, Spot, Tenant};
use crate::commands::Handle;
use crate::roce::SetupError;
use crate::roce::pool::{server, whole};
use crate::roce::setup::{Connected, End, Offer, Server, Station, Token, agree, numbers};
use crate::roce::tls::ServerTls;
use p4rack_fabric::cowbird::{Pool, Set};
use p4rack_fabric::roce::{Config, PairError};
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_server::{Cowbird, CowbirdServer};
use p4rack_p4rt::p4rack::cowbird::v1::{self, ServeRequest, ServeResponse};
use p4rack_wire::cowbird::Layout;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status};

/// Protection domain of the engine's queue pairs: it offers no memory.
const DOMAIN: u32 = 0;
/// Sets of a call.
const SETS_MAX: usize = 256;

/// What the service needs to know.
#[derive(Clone, Debug)]
pub struct SpotConfig {
    /// Addresses of the adapter.
    pub station: Station,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// The memory pool.
    pub pool: Server,
}

/// The set-up service of an engine.
#[derive(Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spot: Handle<Spot>,
    config: SpotConfig,
}

/// A call that makes sense.
#[derive(Debug)]
struct Asked {
    peer: End,
    token: Token,
    sets: Vec<(u32, u64, Layout)>,
}

impl Service {
    /// A service for the engine behind `spot`.
    pub fn new(spot: Handle<Spot>, config: SpotConfig) -> Service {
        Service(Arc::new(Inner { spot, config }))
    }
}

fn set(set: &v1::Set) -> (u32, u64, Layout) {
    let v1::Set { key, address, entries, request_bytes, response_bytes } = *set;
    (key, address, Layout { entries, request_bytes, response_bytes })
}

impl Inner {
    fn check(&self, request: &ServeRequest) -> Result<Asked, Status> {
        let peer = End::of(request.end.as_ref()).map_err(Status::invalid_argument)?;
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
        let sets: Vec<_> = request.sets.iter().map(set).collect();
        // Before anything is computed from the sizes.
        for (nth, (.., layout)) in sets.iter().enumerate() {
            layout.check().map_err(|why| Status::invalid_argument(format!("set {nth}: {why}")))?;
        }
        Ok(Asked { peer, token, sets })
    }

    /// Serves until the caller has gone or something fails.
    async fn begin(
        self: Arc<Inner>,
        asked: Asked,
    ) -> Result<ReceiverStream<Result<ServeResponse, Status>>, Status> {
        let Asked { peer, token, sets } = asked;
        let SpotConfig { station, adapter, pool } = &self.config;
        let mut random = numbers();
        let pool = pool.connect(*station, adapter, Some(&token), &mut random).await.map_err(not_connected)?;
        let end = End::draw(*station, &mut random);
        let compute = (end.qpn, end.connection(&peer, DOMAIN));
        let sets = sets.into_iter().map(|set| with_regions(set, end.qpn, &pool)).collect();
        let (failed, why) = oneshot::channel();
        let tenant = Tenant { compute, pool: (pool.qpn, pool.connection), sets, failed };
        let added = self.spot.call(move |spot| spot.add(tenant)).await;
        let number = added.map_err(|gone| Status::unavailable(gone.to_string()))?.map_err(not_added)?;
        tracing::info!(compute_node = %peer.station.ip, "served");
        let (answers, answered) = mpsc::channel(2);
        // There is room for both.
        let _ = answers.try_send(Ok(ServeResponse { end: Some(end.message()) }));
        tokio::spawn(self.keep(number, pool, why, answers));
        Ok(ReceiverStream::new(answered))
    }

    /// Ends a lease when its caller has gone, the pool has, or a queue pair fails.
    async fn keep(
        self: Arc<Inner>,
        number: u32,
        mut pool: Connected,
        failed: oneshot::Receiver<String>,
        answers: mpsc::Sender<Result<ServeResponse, Status>>,
    ) {
        let why = tokio::select! {
            () = answers.closed() => "the compute node has ended it, or is gone".to_owned(),
            why = failed => why.unwrap_or_else(|_| "the engine's thread has ended".to_owned()),
            why = pool.ended() => format!("the connection with the pool ended: {why}"),
        };
        tracing::info!(why, "served no more");
        // An engine that is gone serves nothing.
        let _ = self.spot.call(move |spot| spot.remove(number)).await;
        let _ = answers.try_send(Err(Status::aborted(why)));
    }
}

/// A set with the pool's regions.
fn with_regions((key, address, layout): (u32, u64, Layout), qpn: u32, pool: &Connected) -> Set {
    let region =
        |offer: &Offer| Pool { qpn: pool.qpn, key: offer.key, address: offer.address, bytes: offer.bytes };
    Set { qpn, key, address, layout, regions: pool.offers.iter().map(region).collect() }
}

fn not_connected(error: SetupError) -> Status {
    let text = format!("the engine's pool: {error}");
    match error {
        SetupError::Refused { .. } => Status::failed_precondition(text),
        _ => Status::unavailable(text),
    }
}

fn not_added(error: AddError) -> Status {
    match error {
        AddError::Pair(PairError::Taken(_)) => Status::unavailable(format!("{error}; try again")),
        AddError::Pair(PairError::Full) => Status::resource_exhausted(error.to_string()),
        AddError::Overlap(_) => Status::already_exists(error.to_string()),
        AddError::Pair(_) | AddError::Set(..) => Status::invalid_argument(error.to_string()),
    }
}

#[tonic::async_trait]
impl Cowbird for Service {
    type ServeStream = ReceiverStream<Result<ServeResponse, Status>>;

    async fn serve(&self, request: Request<ServeRequest>) -> Result<Response<Self::ServeStream>, Status> {
        let asked = self.0.check(request.get_ref())?;
        whole(self.0.clone().begin(asked)).await
    }
}

/// Serves until the future is dropped.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let router = server(tls)?.add_service(CowbirdServer::new(service));
    Ok(router.serve_with_incoming(TcpListenerStream::new(listener)).await?)
}
