//! Who is served, and by what.

use p4rack_fabric::cowbird::Set;
use p4rack_fabric::roce::Connection;
use p4rack_p4rt::transport::Caller;
use p4rack_wire::cowbird::Red;
use tokio::sync::oneshot;
pub use tonic::Status;

/// A compute node that is to be served.
#[derive(Debug)]
pub struct Tenant {
    /// Who asks for it.
    pub caller: Caller,
    /// First queue pair to it, and its connection; the others have the numbers that follow at both ends.
    pub compute: (u32, Connection),
    /// The same to the pool.
    pub pool: (u32, Connection),
    /// What is to be served.
    pub sets: Vec<Set>,
    /// What the red block of each set says.
    pub reds: Vec<Red>,
    /// Is told why it can't be served any longer.
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

/// What serves sets: an engine's thread on a host, or a switch.
pub trait Engine: Send + Sync + 'static {
    /// Queue pairs that it uses to serve so many sets.
    fn pairs(&self, sets: usize) -> Pairs;

    /// Begins to serve a compute node. Returns its number. Errors: why not; nothing of it is left then.
    fn add(&self, tenant: Tenant) -> impl Future<Output = Result<u32, Status>> + Send;

    /// Serves a compute node no more.
    fn remove(&self, number: u32) -> impl Future<Output = ()> + Send;
}
