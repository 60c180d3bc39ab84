//! Tenants, and the engines that serve them.

use p4rack_fabric::cowbird::Set;
use p4rack_fabric::roce::Connection;
use p4rack_p4rt::transport::Caller;
use p4rack_wire::cowbird::Red;
use tokio::sync::oneshot;
pub use tonic::Status;

/// A compute node that is to be served.
#[derive(Debug)]
pub struct Tenant {
    /// The caller.
    pub caller: Caller,
    /// First queue pair to it, and its connection; the others have the numbers that follow at both ends.
    pub compute: (u32, Connection),
    /// The same to the pool.
    pub pool: (u32, Connection),
    /// The sets to serve.
    pub sets: Vec<Set>,
    /// Contents of each set's red block.
    pub reds: Vec<Red>,
    /// Receives the reason when serving ends.
    pub failed: oneshot::Sender<String>,
}

/// Queue pairs that an engine uses for a compute node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// To the compute node.
    pub compute: u32,
    /// To the pool.
    pub pool: u32,
}

/// An engine's thread on a host, or a switch, that serves sets.
pub trait Engine: Send + Sync + 'static {
    /// Queue pairs that it needs to serve this many sets.
    fn pairs(&self, sets: usize) -> Pairs;

    /// Begins to serve a compute node. Returns its number. Errors: why not; nothing of it is left then.
    fn add(&self, tenant: Tenant) -> impl Future<Output = Result<u32, Status>> + Send;

    /// Stops serving a compute node.
    fn remove(&self, number: u32) -> impl Future<Output = ()> + Send;
}
