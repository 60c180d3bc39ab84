//! Common parts of set-up services: their entrance, connected callers, and refusals.

use super::error::SetupError;
use super::setup::KEEPALIVE;
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Entrance, Guest, Visitors};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Calls that a connection may have open: each is a queue pair.
const CALLS_A_CONNECTION: u32 = 64;
/// A connection that is silent for this many intervals of pings is closed; a handshake may take as long.
const SILENT: u32 = 4;

/// The entrance of a set-up service, and its counters.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    visitors: Arc<Visitors>,
    turned_away: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
}

impl Desk {
    /// Connections that were not let in, and calls that were refused.
    pub fn counts(&self) -> [(&'static str, u64); 2] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("turned_away", of(&self.turned_away)), ("refused", of(&self.refused))]
    }

    /// Counts refusals.
    pub(crate) fn note<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        if answer.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// The connections that are let in.
    pub(crate) fn incoming(
        &self,
        listener: TcpListener,
        tls: Option<&ServerTls>,
    ) -> Result<ReceiverStream<io::Result<Guest<Visitors>>>, SetupError> {
        let tls = tls.map(ServerTls::config).transpose()?;
        let entrance =
            Entrance::new(tls, SILENT * KEEPALIVE, self.visitors.clone(), self.turned_away.clone());
        Ok(entrance.open(listener))
    }

    /// A gRPC server that detects dead callers and limits the calls of a connection.
    pub(crate) fn server() -> tonic::transport::Server {
        tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE))
            .max_concurrent_streams(CALLS_A_CONNECTION)
    }
}
