//! A memory pool: regions behind an adapter, and the service that connects peers with it.

use super::desk::Desk;
use super::error::SetupError;
use super::lease::Lease;
use super::members::Members;
use super::setup::{
    End, Offer, Station, Token, add_pairs_of, agree, draw_token, numbers, pairs_of, region, remove_pairs,
};
use crate::commands::{Gone, Handle};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Adapter, Config, PairError, Party, Regions, Reservations, Unreserved};
use p4rack_p4rt::p4rack::roce::v1::roce_server::{Roce, RoceServer};
use p4rack_p4rt::p4rack::roce::v1::{AttachRequest, AttachResponse, ReserveRequest, ReserveResponse};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Caller, Full, Share, Shares, Tenant, Visitor};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

/// Protection domain of connections without reservation: any connected caller may access all offered regions.
pub const DOMAIN: u32 = 0;
/// Numbers drawn until one is free.
const DRAWS_MAX: usize = 16;
/// Default number of tenants that share a pool.
pub const TENANTS: u64 = 8;

/// Configuration of the service.
#[derive(Debug)]
pub struct PoolConfig {
    /// Addresses of the adapter.
    pub station: Station,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// The hosts whose addresses peers may have; `None`: any addresses.
    pub members: Option<Members>,
    /// Memory that every connected caller may access.
    pub offers: Vec<Offer>,
    /// Bytes that callers may reserve for themselves, in sum.
    pub reserve_bytes_max: u64,
    /// Tenants that share queue pairs, regions and bytes to reserve, as [`Shares`] has it: of eight, one may reserve 9/16 of all
    /// bytes. 1: a single tenant may have all.
    pub tenants: u64,
}

/// The set-up service of a pool.
#[derive(Debug)]
pub struct Service(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    handle: Handle<Adapter<Regions>>,
    config: PoolConfig,
    random: Mutex<SplitMix>,
    reservations: Arc<Mutex<Reservations>>,
    pairs: Arc<Shares<Tenant>>,
    regions: Arc<Shares<Tenant>>,
    bytes: Arc<Shares<Tenant>>,
    desk: Desk,
}

/// Weight of a reservation: regions and bytes.
type Held = (Share<Tenant>, Share<Tenant>);

impl Service {
    /// A service for the adapter behind `handle`.
    pub fn new(handle: Handle<Adapter<Regions>>, config: PoolConfig) -> Service {
        let mut random = numbers();
        let reservations = Reservations::new(config.reserve_bytes_max, DOMAIN, random.next() as u32);
        let (random, reservations) = (Mutex::new(random), Arc::new(Mutex::new(reservations)));
        let tenants = config.tenants;
        let pairs = Shares::new("queue pairs", config.adapter.pairs_max as u64, tenants);
        let regions = Shares::new("regions", Regions::REGIONS_MAX as u64, tenants);
        let bytes = Shares::new("bytes to reserve", config.reserve_bytes_max, tenants);
        let desk = Desk::default();
        Service(Arc::new(Pool { handle, config, random, reservations, pairs, regions, bytes, desk }))
    }

    /// Its entrance and counters.
    pub fn desk(&self) -> Desk {
        self.0.desk.clone()
    }

    /// The adapter, and the memory that callers may reserve: its bytes, and the reservations.
    pub(crate) fn memory(&self) -> (Handle<Adapter<Regions>>, u64, Arc<Mutex<Reservations>>) {
        let Pool { handle, config, reservations, .. } = &*self.0;
        (handle.clone(), config.reserve_bytes_max, reservations.clone())
    }
}

impl Pool {
    fn reservations(&self) -> MutexGuard<'_, Reservations> {
        self.reservations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds queue pairs for `peer`, under numbers that are free. Those of a reservation take the place of the ones before.
    async fn add(&self, peer: End, pairs: u32, domain: u32, party: Party) -> Result<End, Status> {
        for _ in 0..DRAWS_MAX {
            let end = {
                let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
                End::draw(self.config.station, &mut random)
            };
            let added = self.handle.call(move |adapter| {
                if domain != DOMAIN {
                    adapter.remove_pairs_of(domain);
                }
                add_pairs_of(adapter, &[end, peer], pairs, domain, party)
            });
            match added.await.map_err(gone)? {
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

    /// Parses a call. Errors: it is invalid.
    fn check(&self, caller: &Caller, request: &AttachRequest) -> Result<(End, u32, Option<Token>), Status> {
        let peer = End::of(request.end.as_ref()).map_err(Status::invalid_argument)?;
        if let Some(members) = &self.config.members {
            members.check(caller, &peer.station)?;
        }
        agree(request.mtu_bytes, request.reads_max, &self.config.adapter)
            .map_err(Status::failed_precondition)?;
        if peer.station.ip == self.config.station.ip {
            return Err(Status::invalid_argument(format!("end.ip {} is the pool's own", peer.station.ip)));
        }
        let token = match request.token.as_slice() {
            [] => None,
            bytes => Some(Token::of(bytes).map_err(Status::invalid_argument)?),
        };
        let pairs = pairs_of("pairs", request.pairs).map_err(Status::invalid_argument)?;
        Ok((peer, pairs, token))
    }

    async fn attach(
        &self,
        tenant: Tenant,
        peer: End,
        pairs: u32,
        token: Option<Token>,
    ) -> Result<Lease<AttachResponse>, Status> {
        peer.check_pairs(pairs).map_err(Status::invalid_argument)?;
        let share = self.pairs.take(&tenant, pairs.into()).map_err(full)?;
        let (domain, offers, party) = match token {
            None => (DOMAIN, self.config.offers.clone(), Party::Peer(peer.station.ip)),
            Some(token) => {
                let reservation = self.reservations().get(&token).ok_or_else(|| {
                    Status::permission_denied("no reservation has this token: it was freed, or never made")
                })?;
                let party = reservation.party.map_or(Party::Peer(peer.station.ip), Party::Served);
                (reservation.domain, reservation.offers, party)
            }
        };
        let end = self.add(peer, pairs, domain, party).await?;
        tracing::info!(peer = %peer.station.ip, qpn = end.qpn, domain, "connected");
        let regions = offers.iter().map(region).collect();
        let handle = self.handle.clone();
        Ok(Lease::new(AttachResponse { end: Some(end.message()), regions }, move || {
            // An adapter that is gone has no queue pairs.
            let _: Result<(), Gone> = handle.post(move |adapter| {
                remove_pairs(adapter, &[end, peer], pairs, domain);
                drop(share);
            });
        }))
    }

    /// The share of a reservation. Errors: the tenant has too much.
    fn share(&self, tenant: &Tenant, region_bytes: &[u64]) -> Result<Held, Status> {
        let regions = self.regions.take(tenant, region_bytes.len() as u64).map_err(full)?;
        let bytes = region_bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        Ok((regions, self.bytes.take(tenant, bytes).map_err(full)?))
    }

    async fn reserve(
        self: Arc<Pool>,
        tenant: Tenant,
        region_bytes: Vec<u64>,
    ) -> Result<Lease<ReserveResponse>, Status> {
        let token = draw_token().map_err(|error| Status::internal(format!("drawing a token: {error}")))?;
        let reserved = self.reservations().reserve(token, Some(number_of(&tenant)), &region_bytes);
        let reservation = reserved.map_err(unreserved)?;
        let share = self.share(&tenant, &region_bytes);
        let share = share.inspect_err(|_| self.reservations().free(&token))?;
        let regions = reservation.offers.iter().map(region).collect();
        let mine = reservation.clone();
        // From here on, whatever happens frees it.
        let (pool, freed) = (self.clone(), reservation.clone());
        let lease = Lease::new(ReserveResponse { regions, token: token.bytes().to_vec() }, move || {
            let handle = pool.handle.clone();
            // The bytes may be reserved again once they are free.
            let _: Result<(), Gone> = handle.post(move |adapter| {
                adapter.remove_pairs_of(freed.domain);
                drop(freed.remove(adapter.memory_mut()));
                pool.reservations().free(&token);
                drop(share);
            });
        });
        let registered = self.handle.call(move |adapter| mine.register(adapter.memory_mut()));
        registered.await.map_err(gone)?.map_err(Status::resource_exhausted)?;
        tracing::info!(domain = reservation.domain, bytes = region_bytes.iter().sum::<u64>(), "reserved");
        Ok(lease)
    }
}

/// The number under which a tenant's queue pairs take turns, whichever engine uses its reservations.
fn number_of(tenant: &Tenant) -> u64 {
    let mut hasher = DefaultHasher::new();
    tenant.hash(&mut hasher);
    hasher.finish()
}

fn full(full: Full) -> Status {
    // With fewer tenants, less is kept for the others.
    let is_kept = full.asked.saturating_sub(full.left) <= full.kept;
    let help = if is_kept { ", or serve the pool with fewer --tenants" } else { "" };
    Status::resource_exhausted(format!("{full}{help}"))
}

fn unreserved(why: Unreserved) -> Status {
    match why {
        Unreserved::Regions => Status::invalid_argument(why.to_string()),
        Unreserved::Room(_) | Unreserved::Numbers => Status::resource_exhausted(why.to_string()),
    }
}

fn gone(gone: Gone) -> Status {
    Status::unavailable(gone.to_string())
}

/// Runs to completion even if the caller disconnects.
pub(crate) async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::spawn(work).await.map_err(|error| Status::internal(error.to_string()))?;
    done.map(Response::new)
}

#[tonic::async_trait]
impl Roce for Service {
    type AttachStream = Lease<AttachResponse>;
    type ReserveStream = Lease<ReserveResponse>;

    async fn attach(
        &self,
        request: Request<AttachRequest>,
    ) -> Result<Response<Lease<AttachResponse>>, Status> {
        let caller = Visitor::of(&request)?.caller().clone();
        let tenant = caller.tenant();
        let (peer, pairs, token) = self.0.desk.note(self.0.check(&caller, request.get_ref()))?;
        let pool = self.0.clone();
        whole(async move { pool.desk.note(pool.attach(tenant, peer, pairs, token).await) }).await
    }

    async fn reserve(
        &self,
        request: Request<ReserveRequest>,
    ) -> Result<Response<Lease<ReserveResponse>>, Status> {
        let tenant = Visitor::of(&request)?.tenant();
        let (pool, region_bytes) = (self.0.clone(), request.into_inner().region_bytes);
        whole(async move { pool.desk.note(pool.clone().reserve(tenant, region_bytes).await) }).await
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
    let incoming = service.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(RoceServer::new(service));
    Ok(router.serve_with_incoming(incoming).await?)
}
