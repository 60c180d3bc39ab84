//! P4Runtime in front of a switch that speaks BFRuntime, so that P4Runtime's controllers and tests work with Tofino.
//!
//! ```text
//!  controllers ─ P4Runtime ─▶ service ─ arbitration        which of them may write
//!                               │      └ packets ─ frames ─▶ the CPU port's interface
//!                               └ behind ─ Link ─ BFRuntime ─▶ switch
//! ```
//!
//! Entities are translated by [`bfrt::Link`](crate::bfrt::Link). BFRuntime carries no packets, so packet-ins and
//! packet-outs are frames of the CPU port, with the program's header in front of them.

mod arbitration;
mod behind;
mod packets;
mod service;

use crate::connect::ConnectOptions;
use crate::deploy::BfrtProgram;
use arbitration::Arbitration;
use behind::{Behind, Known};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::p4_runtime_server::P4RuntimeServer;
use p4rack_p4rt::p4::v1::{StreamMessageResponse, stream_message_response};
use p4rack_p4rt::transport::{Entrance, Visitors};
use service::{Packets, Service};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// Largest message accepted: programs and batches of entries.
const RECEIVE_LIMIT: usize = 64 << 20;
/// Calls under way on one connection.
const CALLS: u32 = 64;
/// Interval of pings to a silent client, and how long to wait for the answer.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// A connection that is silent for this many intervals is closed; a handshake may take as long.
const SILENT: u32 = 4;

/// Turns a program that a controller installs into one for BFRuntime.
pub trait Compiler: fmt::Debug + Send + Sync {
    /// From P4Info and `p4_device_config`: the program, and the binary that the switch gets. Errors: it is none for
    /// Tofino, or not the one that was compiled.
    fn compile(&self, info: &P4Info, device_config: &[u8]) -> Result<(BfrtProgram, Vec<u8>), String>;
}

/// Sends a frame to the CPU port, without FCS. Errors: the interface does not take it.
pub type SendFrame = Box<dyn Fn(Vec<u8>) -> Result<(), String> + Send + Sync>;

/// The frames of the CPU port.
pub struct CpuPort {
    /// To the switch.
    pub send: SendFrame,
    /// From the switch.
    pub received: mpsc::Receiver<Vec<u8>>,
}

impl fmt::Debug for CpuPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuPort").finish_non_exhaustive()
    }
}

/// Configuration of a gateway.
#[derive(Debug)]
pub struct GatewayConfig {
    /// The switch's BFRuntime server.
    pub switch: ConnectOptions,
    /// P4Runtime device id to serve.
    pub device_id: u64,
    /// Turns installed programs into BFRuntime's.
    pub compiler: Box<dyn Compiler>,
    /// The CPU port; without it there are no packet-ins and packet-outs.
    pub cpu_port: Option<CpuPort>,
}

/// Serves P4Runtime until `shutdown` resolves.
pub async fn serve(
    listener: TcpListener,
    config: GatewayConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let arbitration = Arc::new(Mutex::new(Arbitration::new(config.device_id)));
    let behind = Behind::new(config.switch, config.compiler);
    let layouts = behind.layouts();
    let behind = Arc::new(tokio::sync::Mutex::new(behind));
    let (send, received) = match config.cpu_port {
        Some(CpuPort { send, received }) => (Some(Arc::new(send)), Some(received)),
        None => (None, None),
    };
    let incoming = tokio::spawn(packets_in(received, arbitration.clone(), layouts.clone()));
    let (stop, stopping) = watch::channel(false);
    let service = Service::new(config.device_id, arbitration, behind, Packets { layouts, send }, stopping);
    let server = P4RuntimeServer::new(service)
        .max_decoding_message_size(RECEIVE_LIMIT)
        .max_encoding_message_size(RECEIVE_LIMIT);
    let turned_away = Arc::new(AtomicU64::new(0));
    let entrance = Entrance::new(None, SILENT * KEEPALIVE, Arc::new(Visitors::default()), turned_away);
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(CALLS)
        .add_service(server)
        .serve_with_incoming_shutdown(entrance.open(listener), async {
            shutdown.await;
            // Open streams would keep the server running.
            let _ = stop.send(true);
        })
        .await;
    incoming.abort();
    served
}

/// Hands frames of the CPU port to the primary. Frames that it does not take are dropped.
async fn packets_in(
    received: Option<mpsc::Receiver<Vec<u8>>>,
    arbitration: Arc<Mutex<Arbitration>>,
    layouts: Known,
) {
    let Some(mut received) = received else { return };
    while let Some(frame) = received.recv().await {
        let packet = lock(&layouts).as_ref().and_then(|layouts| layouts.packet(&frame));
        let Some(packet) = packet else {
            tracing::debug!(bytes = frame.len(), "no packet-in of a program that is known");
            continue;
        };
        let update = Some(stream_message_response::Update::Packet(packet));
        if !lock(&arbitration).send_primary(StreamMessageResponse { update }) {
            tracing::debug!(bytes = frame.len(), "packet-in lost: no primary, or it does not read");
        }
    }
}

/// A lock whose holder panicked guards nothing that could be half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
