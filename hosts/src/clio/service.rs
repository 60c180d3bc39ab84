//! The set-up service of a board: processes, and their clients.

use super::server::{Host, Offer, Range};
use crate::commands::{Gone, Handle};
use crate::roce::{Desk, Lease, SetupError};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_p4rt::p4rack::clio::v1::clio_server::{Clio, ClioServer};
use p4rack_p4rt::p4rack::clio::v1::{AttachRequest, AttachResponse};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Full, Shares, Tenant, Visitor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

/// Tenants among which processes are shared by default.
const TENANTS: u64 = 8;
/// Bits of a client's number.
const CLIENT_BITS: u32 = 28;

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
    desk: Desk,
}

impl Service {
    /// A service for the board behind `handle`.
    pub fn new(handle: Handle<Host>, offer: Offer) -> Service {
        let processes = Shares::new("processes", offer.processes_max, TENANTS);
        let bytes = Shares::new("bytes to reserve", offer.reserve_bytes_max, 1);
        let (clients, desk) = (AtomicU32::new(1), Desk::default());
        Service(Arc::new(Shared { handle, offer, clients, processes, bytes, desk }))
    }

    /// Its entrance and counters.
    pub fn desk(&self) -> Desk {
        self.0.desk.clone()
    }
}

impl Shared {
    fn answer(&self, credentials: Credentials, range: Range) -> Result<AttachResponse, Status> {
        let client = self.clients.fetch_add(1, Ordering::Relaxed);
        if client >> CLIENT_BITS != 0 {
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
        })
    }

    async fn attach(&self, tenant: Tenant, reserve_bytes: u64) -> Result<Lease<AttachResponse>, Status> {
        if reserve_bytes == 0 {
            let (credentials, range) = self.offer.to_all;
            return Ok(Lease::new(self.answer(credentials, range)?, || {}));
        }
        let share = self.processes.take(&tenant, 1).map_err(full)?;
        let share = (share, self.bytes.take(&tenant, reserve_bytes).map_err(full)?);
        let created = self.handle.call(move |host| host.create(reserve_bytes, true)).await.map_err(gone)?;
        let (credentials, range) = created.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        tracing::info!(pid = credentials.pid, bytes = range.bytes, "process");
        let handle = self.handle.clone();
        // From here on, whatever happens ends the process.
        let end = move || {
            // A board that is gone has no processes.
            let _: Result<(), Gone> = handle.post(move |host| {
                host.destroy(credentials);
                drop(share);
            });
        };
        match self.answer(credentials, range) {
            Ok(answer) => Ok(Lease::new(answer, end)),
            Err(status) => {
                end();
                Err(status)
            }
        }
    }
}

fn full(full: Full) -> Status {
    Status::resource_exhausted(full.to_string())
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
        let (shared, reserve_bytes) = (self.0.clone(), request.get_ref().reserve_bytes);
        // It runs to its end even if the caller leaves: then the lease ends the process.
        let work = async move { shared.desk.note(shared.attach(tenant, reserve_bytes).await) };
        crate::roce::pool::whole(work).await
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
