//! The set-up service of a board: processes, and their clients.

use super::clients::Joined;
use super::names::LOADED_MAX;
use super::offloads::{Described, OffloadError};
use super::server::{Bounds, Host, Offer};
use crate::commands::{Gone, Handle};
use crate::roce::{Desk, Lease, SetupError};
use p4rack_fabric::clio::board::ProcessFacts;
use p4rack_fabric::clio::lib::NUMBER_BITS;
use p4rack_offload::wasm::{Limits, Program};
use p4rack_p4rt::p4rack::clio::v1::clio_server::{Clio, ClioServer};
use p4rack_p4rt::p4rack::clio::v1::{
    AddressRange, AttachRequest, AttachResponse, ListOffloadsRequest, ListOffloadsResponse, ListRequest,
    ListResponse, LoadOffloadRequest, LoadOffloadResponse, OffloadFacts, PageUse, Process, ProcessPages,
    RemoveOffloadRequest, RemoveOffloadResponse,
};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Full, Share, Shares, Tenant, Visitor};
use p4rack_wire::clio::PageSize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

/// Ranges that are listed of a process.
const RANGES_MAX: usize = 256;

/// Limits of a client's own process, and its shares of the tenant's part.
type Reserved = (Bounds, Vec<Share<Tenant>>);

/// The set-up service of a board.
#[derive(Debug)]
pub struct Service(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    handle: Handle<Host>,
    offer: Offer,
    clients: AtomicU32,
    processes: Arc<Shares<Tenant>>,
    bytes: Arc<Shares<Tenant>>,
    /// Bytes that processes may allocate beyond those.
    more: Arc<Shares<Tenant>>,
    /// Bytes that other processes may share with processes.
    shared: Arc<Shares<Tenant>>,
    offloads: Arc<Shares<Tenant>>,
    desk: Desk,
}

impl Service {
    /// A service for the board behind `handle`, whose processes, bytes and offloads this many tenants share.
    pub fn new(handle: Handle<Host>, offer: Offer, tenants: u64) -> Service {
        let bytes_max = offer.reserve_bytes_max;
        let processes = Shares::new("processes", offer.processes_max, tenants);
        let bytes = Shares::new("bytes to reserve", bytes_max, tenants);
        let more = Shares::new("bytes to allocate beyond those reserved", bytes_max, tenants);
        let shared = Shares::new("bytes to take from other processes", bytes_max, tenants);
        let (clients, desk) = (AtomicU32::new(1), Desk::default());
        let offloads = Shares::new("offloads", LOADED_MAX, tenants);
        Service(Arc::new(Shared { handle, offer, clients, processes, bytes, more, shared, offloads, desk }))
    }

    /// Its entrance and counters.
    pub fn desk(&self) -> Desk {
        self.0.desk.clone()
    }

    /// The board, and its offer.
    pub(crate) fn board(&self) -> (Handle<Host>, Offer) {
        (self.0.handle.clone(), self.0.offer)
    }
}

impl Shared {
    fn answer(&self, joined: &Joined, bounds: Bounds) -> Result<AttachResponse, Status> {
        let Joined { process: (credentials, range), thread } = *joined;
        let client = self.clients.fetch_add(1, Ordering::Relaxed);
        if client >> NUMBER_BITS != 0 {
            return Err(Status::resource_exhausted(
                "the board has used up its clients' numbers: start it anew",
            ));
        }
        Ok(AttachResponse {
            pid: credentials.pid,
            epoch: credentials.epoch.into(),
            token: credentials.token,
            client,
            udp_port: self.offer.udp_port.into(),
            address: range.address,
            bytes: range.bytes,
            mtu_bytes: self.offer.mtu_bytes,
            memory_ns: self.offer.memory_ns,
            thread: thread.into(),
            limit_bytes: bounds.limit,
            share_limit_bytes: bounds.shared,
        })
    }

    /// Limits of a client's own process, and the shares that this takes; `None` if it joins the one that is offered to
    /// all.
    fn bounds(&self, tenant: &Tenant, request: AttachRequest) -> Result<Option<Reserved>, Status> {
        let AttachRequest { reserve_bytes: reserved, limit_bytes, share_limit_bytes } = request;
        if reserved == 0 {
            if limit_bytes.or(share_limit_bytes).is_none() {
                return Ok(None);
            }
            return Err(Status::invalid_argument(
                "limit_bytes and share_limit_bytes are for a process of the caller's own: give reserve_bytes, too",
            ));
        }
        let most = self.offer.reserve_bytes_max;
        if let Some(limit) = limit_bytes.filter(|limit| !(reserved..=most).contains(limit)) {
            return Err(Status::invalid_argument(format!(
                "limit_bytes: {limit}; write {reserved}, what is reserved, to {most}, the bytes of the board"
            )));
        }
        if let Some(limit) = share_limit_bytes.filter(|limit| *limit > most) {
            return Err(Status::invalid_argument(format!(
                "share_limit_bytes: {limit}; write at most {most}, the bytes of the board"
            )));
        }
        // The board counts pages.
        let page = self.offer.page;
        let whole = |bytes: u64| page.pages(bytes).saturating_mul(page.bytes());
        let reserved = whole(reserved);
        let processes = self.processes.take(tenant, 1).map_err(full)?;
        let bytes = self.bytes.take(tenant, reserved).map_err(full)?;
        // Without a limit, as many as are reserved, or the rest.
        let more = match limit_bytes {
            Some(limit) => self.more.take(tenant, whole(limit).saturating_sub(reserved)).map_err(full)?,
            None => self.more.take_up_to(tenant, reserved),
        };
        // Ranges that others share with it stay when they end. So a process takes something only if its client says
        // so.
        let shared = self.shared.take(tenant, whole(share_limit_bytes.unwrap_or(0))).map_err(full)?;
        let limit = reserved + more.count() / page.bytes() * page.bytes();
        let bounds = Bounds { reserved, limit, shared: shared.count() };
        Ok(Some((bounds, vec![processes, bytes, more, shared])))
    }

    async fn attach(&self, tenant: Tenant, request: AttachRequest) -> Result<Lease<AttachResponse>, Status> {
        let (own, shares) = self.bounds(&tenant, request)?.unzip();
        let to_all = self.offer.to_all;
        let joined = self.handle.call(move |host| host.join(to_all, own)).await.map_err(gone)?;
        let joined = joined.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        if own.is_some() {
            let (credentials, range) = joined.process;
            tracing::info!(pid = credentials.pid, bytes = range.bytes, "process");
        }
        let handle = self.handle.clone();
        // From here on, the client leaves with the lease, or with an error.
        let end = move || {
            // A board that is gone has no clients.
            let _: Result<(), Gone> = handle.post(move |host| {
                host.leave(&joined, own.is_some());
                drop(shares);
            });
        };
        match self.answer(&joined, own.unwrap_or(self.offer.bounds)) {
            Ok(answer) => Ok(Lease::new(answer, end)),
            Err(status) => {
                end();
                Err(status)
            }
        }
    }
}

impl Shared {
    async fn list(&self) -> Result<ListResponse, Status> {
        self.handle.call(|host| listed(host)).await.map_err(gone)
    }

    async fn load(&self, tenant: Tenant, request: LoadOffloadRequest) -> Result<LoadOffloadResponse, Status> {
        let LoadOffloadRequest { name, module, memory_bytes } = request;
        let most = self.offer.reserve_bytes_max;
        if !(1..=most).contains(&memory_bytes) {
            let why = format!("memory_bytes: {memory_bytes}; write 1 to {most}, the bytes of the board");
            return Err(Status::invalid_argument(why));
        }
        let share = self.offloads.take(&tenant, 1).map_err(full)?;
        let share = [share, self.bytes.take(&tenant, memory_bytes).map_err(full)?];
        let bytes = [module.len() as u64, memory_bytes];
        let translate = move || Program::new(&module, Limits::default());
        let program = tokio::task::spawn_blocking(translate).await;
        let program = program.map_err(|error| Status::internal(error.to_string()))?;
        let program = program.map_err(|error| Status::invalid_argument(format!("module: {error}")))?;
        let by = tenant.to_string();
        let loaded = self.handle.call(move |host| host.load(name, program, bytes, (tenant, share))).await;
        let number = loaded.map_err(gone)?.map_err(refused)?;
        tracing::info!(number, tenant = by, "offload");
        Ok(LoadOffloadResponse { number })
    }

    async fn remove(&self, tenant: Tenant, name: String) -> Result<RemoveOffloadResponse, Status> {
        self.handle.call(move |host| host.unload(&name, &tenant)).await.map_err(gone)?.map_err(refused)?;
        Ok(RemoveOffloadResponse {})
    }
}

/// A board's memory and its processes.
fn listed(host: &Host) -> ListResponse {
    let board = &host.board;
    let sizes = || board.config().pools.iter().map(|pool| pool.size);
    let of_size = |size: PageSize| {
        let usage = board.usage(size);
        PageUse {
            page_bytes: size.bytes(),
            frames: usage.frames,
            taken: usage.taken,
            ready: usage.ready,
            promised: usage.promised,
        }
    };
    let pages_of = |process: &ProcessFacts, size: PageSize| {
        let of = process.pages[size as usize];
        ProcessPages {
            page_bytes: size.bytes(),
            reserved: of.quota.reserved,
            limit: of.quota.limit,
            allocated: of.allocated,
            taken: of.taken,
            shared: of.shared,
            share_limit: of.quota.shared,
            from_others: of.from_others,
        }
    };
    let of_process = |process: &ProcessFacts| {
        let space = process.space;
        let is_to_all = host.to_all.is_some_and(|all| (all.pid, all.epoch) == (space.pid, space.epoch));
        let kind = if is_to_all { "all" } else { host.names.of(space).unwrap_or("client") };
        let pages = sizes().map(|size| pages_of(process, size)).filter(|pages| pages.limit > 0);
        // Clients of other processes know theirs.
        let mut all = is_to_all.then(|| board.ranges_of(space)).into_iter().flatten();
        let ranges = all.by_ref().take(RANGES_MAX).map(|(address, bytes)| AddressRange { address, bytes });
        let ranges = ranges.collect();
        Process {
            pid: space.pid,
            epoch: space.epoch.into(),
            kind: kind.to_owned(),
            is_ending: process.is_ending,
            pages: pages.collect(),
            locks: process.locks,
            reads: process.reads,
            calls: process.calls,
            ranges,
            ranges_left: all.count() as u64,
        }
    };
    let processes = board.list().iter().map(of_process).collect();
    ListResponse { pages: sizes().map(of_size).collect(), processes }
}

fn facts(described: Described) -> OffloadFacts {
    let Described { name, bytes: [module_bytes, memory_bytes], facts } = described;
    OffloadFacts {
        number: facts.number,
        name,
        pid: facts.own.pid,
        module_bytes,
        memory_bytes,
        calls: facts.calls,
        failed: facts.failed,
        failure: facts.failure.unwrap_or_default(),
    }
}

fn refused(error: OffloadError) -> Status {
    let said = error.to_string();
    match error {
        OffloadError::Name(_) => Status::invalid_argument(said),
        OffloadError::Taken(_) => Status::already_exists(said),
        OffloadError::Unknown(..) => Status::not_found(said),
        OffloadError::NotOwner(_) => Status::permission_denied(said),
        OffloadError::Board(_) => Status::resource_exhausted(said),
    }
}

fn full(full: Full) -> Status {
    // With fewer tenants, less is kept for the others.
    let is_kept = full.asked.saturating_sub(full.left) <= full.kept;
    let help = if is_kept { ", or serve the board with fewer --tenants" } else { "" };
    Status::resource_exhausted(format!("{full}{help}"))
}

fn gone(gone: Gone) -> Status {
    Status::unavailable(gone.to_string())
}

#[tonic::async_trait]
impl Clio for Service {
    type AttachStream = Lease<AttachResponse>;

    async fn attach(
        &self,
        request: Request<AttachRequest>,
    ) -> Result<Response<Lease<AttachResponse>>, Status> {
        let tenant = Visitor::of(&request)?.tenant();
        let (shared, request) = (self.0.clone(), request.into_inner());
        // It runs to its end even if the caller leaves: then the lease ends the process.
        let work = async move { shared.desk.note(shared.attach(tenant, request).await) };
        crate::roce::pool::whole(work).await
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        self.0.desk.note(self.0.list().await).map(Response::new)
    }

    async fn load_offload(
        &self,
        request: Request<LoadOffloadRequest>,
    ) -> Result<Response<LoadOffloadResponse>, Status> {
        let tenant = Visitor::of(&request)?.tenant();
        let shared = self.0.clone();
        let work = async move { shared.desk.note(shared.load(tenant, request.into_inner()).await) };
        crate::roce::pool::whole(work).await
    }

    async fn list_offloads(
        &self,
        _: Request<ListOffloadsRequest>,
    ) -> Result<Response<ListOffloadsResponse>, Status> {
        let described = self.0.handle.call(|host| host.described()).await;
        let described = self.0.desk.note(described.map_err(gone))?;
        let offloads = described.into_iter().map(facts).collect();
        Ok(Response::new(ListOffloadsResponse { offloads }))
    }

    async fn remove_offload(
        &self,
        request: Request<RemoveOffloadRequest>,
    ) -> Result<Response<RemoveOffloadResponse>, Status> {
        let tenant = Visitor::of(&request)?.tenant();
        let removed = self.0.remove(tenant, request.into_inner().name).await;
        self.0.desk.note(removed).map(Response::new)
    }
}

/// Serves until the future is dropped.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let incoming = service.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(ClioServer::new(service));
    Ok(router.serve_with_incoming(incoming).await?)
}
