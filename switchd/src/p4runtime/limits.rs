//! What clients may take of the server: connections, reads, memory. Each limit has a name, a counter, and an answer that
//! says which one it was.
//!
//! ```text
//!  a request     its bytes, and so many for each of its updates ─▶ Charge ─┐
//!  an answer     errors that have not left yet ─▶ Connection::answered ────┼─▶ the connection's, and all connections'
//!                                                 Connection::written ◀────┘
//! ```
//!
//! Small requests are not charged: there is room for one on every stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;
use tonic::Status;

/// Connections served at once.
pub const CONNECTIONS: usize = 2048;
/// Connections beyond, which are told so; others are closed.
const TOLD: usize = 64;
/// Calls of one connection at once; what HTTP/2 calls streams.
pub const CALLS_A_CONNECTION: u32 = 128;
/// Reads at once.
pub const READS: usize = 1024;
/// Reads of one connection at once.
pub const READS_A_CONNECTION: usize = 16;
/// Updates in a Write, and entities in a Read.
pub const UPDATES: usize = 65_536;
/// Memory that requests, and errors that have not left, of one connection may take, bytes.
const CONNECTION_BYTES: usize = 224 << 20;
/// The same of all connections.
const ALL_BYTES: usize = 384 << 20;
/// Memory that an update takes beside its own bytes while it is made, bytes: the message, its outcome, its error.
pub const UPDATE_BYTES: usize = 1024;
/// A request of so many bytes and updates is small.
pub const SMALL_BYTES: usize = 32 << 10;
/// See [`SMALL_BYTES`].
pub const SMALL_UPDATES: usize = 16;
/// A connection with so many bytes of errors that it has not taken is asked nothing more of.
const UNSENT: usize = 256 << 10;

/// All that the connections of a server take.
#[derive(Debug, Default)]
pub struct Limits {
    connections: AtomicUsize,
    reads: AtomicUsize,
    bytes: AtomicUsize,
    refused: Arc<AtomicU64>,
}

/// A connection, as the limits see it.
#[derive(Debug)]
pub struct Connection {
    limits: Arc<Limits>,
    /// Whether it was let in only to be told that there are too many.
    pub is_over: bool,
    bytes: AtomicUsize,
    reads: AtomicUsize,
    /// Bytes of errors that have been answered and not written.
    unsent: AtomicUsize,
    written: Notify,
}

impl Limits {
    /// Nothing taken yet; `refused` counts the calls that are refused because of a limit.
    pub fn new(refused: Arc<AtomicU64>) -> Arc<Limits> {
        Arc::new(Limits { refused, ..Limits::default() })
    }

    /// A new connection; `None` if there are so many that it can't even be told.
    pub fn connect(self: &Arc<Limits>) -> Option<Arc<Connection>> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        if before >= CONNECTIONS + TOLD {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Arc::new(Connection {
            limits: self.clone(),
            is_over: before >= CONNECTIONS,
            bytes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            written: Notify::new(),
        }))
    }

    /// The refusal of a call.
    fn refuse(&self, why: String) -> Status {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Status::resource_exhausted(why)
    }
}

impl Connection {
    /// Refuses every call of a connection that is one too many.
    pub fn check(&self) -> Result<(), Status> {
        if !self.is_over {
            return Ok(());
        }
        Err(self.limits.refuse(format!(
            "{CONNECTIONS} connections are open, which is the limit; close some, or try again later"
        )))
    }

    /// Refuses a request of too many parts.
    pub fn check_count(&self, what: &str, count: usize) -> Result<(), Status> {
        if count <= UPDATES {
            return Ok(());
        }
        Err(self.limits.refuse(format!(
            "the request has {count} {what}, and {UPDATES} are the limit; split it into several"
        )))
    }

    /// A Read begins.
    pub fn read(self: &Arc<Connection>) -> Result<ReadPlace, Status> {
        let place = ReadPlace(self.clone());
        let own = self.reads.fetch_add(1, Ordering::Relaxed);
        let all = self.limits.reads.fetch_add(1, Ordering::Relaxed);
        let full = match (own >= READS_A_CONNECTION, all >= READS) {
            (true, _) => format!("{READS_A_CONNECTION} reads of this connection are under way"),
            (_, true) => format!("{READS} reads are under way"),
            _ => return Ok(place),
        };
        Err(self.limits.refuse(format!("{full}, which is the limit; take their answers first")))
    }

    /// Nothing charged yet.
    pub fn charge(self: &Arc<Connection>) -> Charge {
        Charge { connection: self.clone(), bytes: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let own = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all = self.limits.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (whose, limit) = match (own > CONNECTION_BYTES, all > ALL_BYTES) {
            (true, _) => ("of this connection", CONNECTION_BYTES),
            (_, true) => ("of all connections", ALL_BYTES),
            _ => return Ok(()),
        };
        self.give_back(bytes);
        Err(self.limits.refuse(format!(
            "the requests {whose} would take more than {} MB of memory, which is the limit; split this one, \
             or wait for the answers of others",
            limit >> 20
        )))
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.limits.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Errors of so many bytes are about to leave; `false`, and nothing done, where there is no memory for them.
    pub fn answered(&self, bytes: usize) -> bool {
        if self.take(bytes).is_err() {
            return false;
        }
        self.unsent.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// So many bytes of whatever kind have left.
    pub fn written(&self, bytes: usize) {
        if self.unsent.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |unsent: usize| Some(unsent.saturating_sub(bytes));
        if let Ok(before) = self.unsent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            self.give_back(before.min(bytes));
            if before.saturating_sub(bytes) < UNSENT {
                self.written.notify_waiters();
            }
        }
    }

    /// Waits until the client has taken its errors, nearly all of them.
    pub async fn drained(&self) {
        while !self.is_drained() {
            let mut written = std::pin::pin!(self.written.notified());
            // What is written from here on is heard of.
            written.as_mut().enable();
            if !self.is_drained() {
                written.await;
            }
        }
    }

    /// Whether the client has taken its errors, nearly all of them.
    pub fn is_drained(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) < UNSENT
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let unsent = *self.unsent.get_mut();
        self.give_back(unsent);
        self.limits.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory of a request; free again when dropped.
#[derive(Debug)]
pub struct Charge {
    connection: Arc<Connection>,
    bytes: AtomicUsize,
}

impl Charge {
    /// So much more of it.
    pub fn add(&self, bytes: usize) -> Result<(), Status> {
        self.connection.take(bytes)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            self.connection.give_back(bytes);
        }
    }
}

/// A Read that is under way.
#[derive(Debug)]
pub struct ReadPlace(Arc<Connection>);

impl Drop for ReadPlace {
    fn drop(&mut self) {
        self.0.reads.fetch_sub(1, Ordering::Relaxed);
        self.0.limits.reads.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(limits: &Limits) -> usize {
        limits.bytes.load(Ordering::Relaxed)
    }

    #[test]
    fn one_connection_cant_take_all_and_everything_is_given_back() {
        let limits = Arc::new(Limits::default());
        let (greedy, other) = (limits.connect().unwrap(), limits.connect().unwrap());
        let charge = greedy.charge();
        charge.add(CONNECTION_BYTES).unwrap();
        let refused = charge.add(1).unwrap_err();
        assert!(refused.message().contains("224 MB"), "{refused}");
        let small = other.charge();
        small.add(1 << 20).unwrap();
        assert!(small.add(ALL_BYTES - CONNECTION_BYTES).unwrap_err().message().contains("384 MB"));
        drop(charge);
        assert_eq!(used(&limits), 1 << 20);
        assert!(other.answered(500));
        drop((small, greedy, other));
        assert_eq!((used(&limits), limits.refused.load(Ordering::Relaxed)), (0, 2));
    }

    #[tokio::test]
    async fn a_client_that_does_not_take_its_errors_is_waited_for() {
        let connection = Arc::new(Limits::default()).connect().unwrap();
        assert!(connection.answered(UNSENT - 1));
        connection.drained().await;
        assert!(connection.answered(10));
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { connection.drained().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        connection.written(20);
        waiting.await.unwrap();
        // More than there was: what comes after is not paid for by it.
        connection.written(1 << 30);
        assert!(connection.answered(UNSENT));
        assert_eq!(connection.unsent.load(Ordering::Relaxed), UNSENT);
    }

    #[test]
    fn connections_and_reads_have_limits_that_are_told() {
        let limits = Arc::new(Limits::default());
        let mut open: Vec<_> = (0..CONNECTIONS).map(|_| limits.connect().unwrap()).collect();
        assert!(open.iter().all(|connection| connection.check().is_ok()));
        let over = limits.connect().unwrap();
        assert!(over.check().unwrap_err().message().contains("2048 connections"));
        let told: Vec<_> = (1..TOLD).map(|_| limits.connect().unwrap()).collect();
        assert!(limits.connect().is_none());
        drop((over, told));
        let own: Vec<_> = (0..READS_A_CONNECTION).map(|_| open[0].read().unwrap()).collect();
        assert!(open[0].read().unwrap_err().message().contains("16 reads of this connection"));
        drop(own);
        let all: Vec<_> = (0..READS).map(|at| open[at / READS_A_CONNECTION].read().unwrap()).collect();
        assert!(open[READS].read().unwrap_err().message().contains("1024 reads"));
        drop(all);
        open.truncate(1);
        assert!(open[0].read().is_ok());
        assert!(open[0].check_count("updates", UPDATES + 1).unwrap_err().message().contains("split it"));
    }
}
