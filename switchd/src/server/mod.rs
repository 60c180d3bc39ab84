//! The gRPC server: which connections it accepts, and the services on them.
//!
//! ```text
//!  p4rt::transport::Entrance ─ p4runtime ─ device ─ data plane
//!                            ─ generator, trace, telemetry
//!                            ─ bfruntime ─ device     on a socket of its own
//!  events of the data plane ─ forward ─ device ─ streams of controllers
//!  inside   BFRuntime without a network
//! ```

mod forward;
mod inside;

pub use inside::{Inside, InsideConnection};
pub use p4rack_p4rt::transport::tls::ServerTls;

use crate::bfruntime;
use crate::core::{Events, Gone, Handle};
use crate::generator::GeneratorService;
use crate::p4runtime::{CALLS_A_CONNECTION, Device, FillError, Front, Limits, Service};
use crate::telemetry::TelemetryService;
use crate::trace::{self, TraceService};
use forward::forward;
use p4rack_entities::Candidate;
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::p4rack::generator::v1::generator_server::GeneratorServer;
use p4rack_p4rt::p4rack::telemetry::v1::telemetry_server::TelemetryServer;
use p4rack_p4rt::p4rack::trace::v1::trace_server::TraceServer;
use p4rack_p4rt::transport::Entrance;
use p4rack_p4rt::transport::tls::TlsError;
use p4rack_switch::Traced;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tonic::service::Routes;

/// HTTP/2's flow control window: bytes that a client may send before the server has processed them. Some batches of a
/// Write fit.
const WINDOW: u32 = 4 << 20;
/// Default interval between HTTP/2 pings to a silent client.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// A connection that is silent for this many ping intervals is closed; a handshake may take as long.
const SILENT: u32 = 4;
/// How long calls in progress may continue after shutdown was requested.
const GRACE: Duration = Duration::from_secs(2);

/// Configuration of the server of one switch.
#[derive(Debug)]
pub struct ServerConfig {
    /// Address to listen on.
    pub addr: SocketAddr,
    /// P4Runtime device id of the switch.
    pub device_id: u64,
    /// CPU port, for packet-in and packet-out.
    pub cpu_port: Option<u16>,
    /// Program to load at the start.
    pub program: Option<Candidate>,
    /// What to write into it before anything is served; all of it, or the server does not start.
    pub entries: Vec<Update>,
    /// Where what happens to all packets goes; `None`: nothing is traced.
    pub packet_log: Option<mpsc::Sender<Vec<Traced>>>,
    /// TLS; `None` is plain text.
    pub tls: Option<ServerTls>,
    /// Interval between HTTP/2 pings to a silent client, and time limit for the answer.
    pub keepalive: Duration,
}

impl ServerConfig {
    /// A server without CPU port, program and TLS.
    pub fn new(addr: SocketAddr, device_id: u64) -> ServerConfig {
        let entries = Vec::new();
        ServerConfig {
            addr,
            device_id,
            cpu_port: None,
            program: None,
            entries,
            packet_log: None,
            tls: None,
            keepalive: KEEPALIVE,
        }
    }
}

/// Why the server could not start, or ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Listening on the address failed.
    #[error("can't listen on {addr}: {error}; choose another address or end the program that uses it")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        error: std::io::Error,
    },
    /// An entry of the program at the start was refused.
    #[error("{0}")]
    Entry(String),
    /// A file for TLS can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// gRPC's transport failed.
    #[error("the gRPC server failed: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The data plane has stopped.
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl From<FillError> for ServeError {
    fn from(error: FillError) -> ServeError {
        match error {
            FillError::Refused(why) => ServeError::Entry(why),
            FillError::Gone(gone) => ServeError::Gone(gone),
        }
    }
}

/// Listens on an address.
pub async fn bind(addr: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(addr).await.map_err(|error| ServeError::Bind { addr, error })
}

/// Serves P4Runtime, telemetry, traces and generators until `shutdown` resolves. Calls in progress may end first.
pub async fn serve(
    handle: Handle,
    events: Events,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let listener = bind(config.addr).await?;
    serve_on(listener, handle, events, config, shutdown).await
}

/// Like [`serve`], on a socket that is already listening; `config.addr` is not used.
pub async fn serve_on(
    listener: TcpListener,
    handle: Handle,
    events: Events,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    serve_both(listener, None, handle, events, config, shutdown).await
}

/// Like [`serve_on`], and BFRuntime on a socket of its own if there is one.
pub async fn serve_both(
    listener: TcpListener,
    bfrt: Option<TcpListener>,
    handle: Handle,
    events: Events,
    config: ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let device = Arc::new(Device::new(handle.clone(), config.device_id, config.cpu_port));
    if let Some(log) = config.packet_log {
        device.log_packets().await;
        tokio::spawn(trace::follow(handle.clone(), log));
    }
    if let Some(program) = config.program {
        device.install(program).await?;
        device.fill(config.entries).await?;
    }
    let (stop, stopping) = watch::channel(false);
    let mut ending = stopping.clone();
    let noticed = match &bfrt {
        Some(_) => Some(bfruntime::Service::new(device.clone(), stopping.clone()).await),
        None => None,
    };
    let service = noticed.clone();
    let forward = tokio::spawn(forward(events, device.clone(), noticed, handle.clone()));
    let (tls, keepalive) = (config.tls.as_ref().map(ServerTls::config).transpose()?, config.keepalive);
    // Memory and connections of both are limited together.
    let limits = Limits::new(handle.calls_refused().clone());
    let entrance = |listener| {
        let turned_away = handle.turned_away().clone();
        Entrance::new(tls.clone(), SILENT * keepalive, limits.clone(), turned_away).open(listener)
    };
    let incoming = entrance(listener);
    let bfrt = match bfrt.zip(service) {
        Some((listener, service)) => {
            let (incoming, mut ending) = (entrance(listener), stopping.clone());
            let ended = async move {
                let _ = ending.wait_for(|stop| *stop).await;
            };
            let front = bfruntime::Front::new(service);
            Some(transport(keepalive).serve_with_incoming_shutdown(front, incoming, ended))
        }
        None => None,
    };
    let traces = TraceService::new(device.clone(), handle.clone(), stopping.clone());
    let others = Routes::new(GeneratorServer::new(GeneratorService::new(handle.clone(), device.clone())))
        .add_service(TraceServer::new(traces))
        .add_service(TelemetryServer::new(TelemetryService::new(handle.clone(), device.clone())));
    let front = Front::new(Service::new(device, stopping), others);
    let served = transport(keepalive).serve_with_incoming_shutdown(front, incoming, async {
        shutdown.await;
        // Open streams would keep the server running.
        let _ = stop.send(true);
    });
    let served = async {
        match bfrt {
            Some(bfrt) => tokio::try_join!(served, bfrt).map(|_| ()),
            None => served.await,
        }
    };
    let last_calls = async {
        if ending.wait_for(|stop| *stop).await.is_ok() {
            tokio::time::sleep(GRACE).await;
        }
    };
    let served = tokio::select! {
        served = served => served.map_err(ServeError::Transport),
        // Some client does not read its response.
        () = last_calls => Ok(()),
    };
    forward.abort();
    served
}

/// HTTP/2 with the limits of the server.
fn transport(keepalive: Duration) -> tonic::transport::Server {
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(keepalive))
        .http2_keepalive_timeout(Some(keepalive))
        .max_concurrent_streams(CALLS_A_CONNECTION)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
}
