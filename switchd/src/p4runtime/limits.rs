//! What clients may take of the server: connections, reads, memory. Each limit has a name, a counter, and an answer that
//! says which one it was.
//!
//! ```text
//!  a request     its bytes, and so many for each of its updates ─▶ Charge ─┐
//!  an answer     errors, programs, statistics, generators that have not left
//!                                               ─▶ Connection::answered ───┼─▶ the connection's, and all connections'
//!                                                 Connection::written ◀────┘
//! ```
//!
//! Small requests are not charged as long as those of a connection are few at once; else they are as others are. The last
//! part of the common memory is for connections that hold little.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tonic::{Request, Status};

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
/// Streams of controllers at once: as many as arbitration takes in all roles.
pub const STREAMS: usize = 4096;
/// Streams of one connection at once.
pub const STREAMS_A_CONNECTION: usize = 16;
/// Large Writes of one connection that are made, or wait for those of others.
const LARGE_WRITES_A_CONNECTION: usize = 2;
/// Updates in a Write, and entities in a Read.
pub const UPDATES: usize = 65_536;
/// Memory that requests, and errors that have not left, of one connection may take, bytes.
pub const CONNECTION_BYTES: usize = 224 << 20;
/// The same of all connections.
const ALL_BYTES: usize = 384 << 20;
/// Of these, what is left to connections that have [`MODEST_BYTES`] at most.
const RESERVED_BYTES: usize = 128 << 20;
/// See [`RESERVED_BYTES`].
const MODEST_BYTES: usize = 8 << 20;
/// Small requests of one connection that are not charged take so much in all, bytes.
const SMALL_ALLOWANCE: usize = 256 << 10;
/// Memory that an update takes beside its own bytes while it is made, bytes: the message, its outcome, its error.
pub const UPDATE_BYTES: usize = 1024;
/// A request of so many bytes and updates is small.
pub const SMALL_BYTES: usize = 32 << 10;
/// See [`SMALL_BYTES`].
pub const SMALL_UPDATES: usize = 16;
/// A connection with so many bytes of errors that it has not taken is asked nothing more of.
const UNSENT: usize = 256 << 10;
/// Its Writes wait so long for it.
const STALLED: Duration = Duration::from_secs(30);

/// What is counted by itself.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Stream,
}

impl Kind {
    const COUNT: usize = 2;

    /// Of one connection, and of all.
    fn limits(self) -> (usize, usize) {
        match self {
            Kind::Read => (READS_A_CONNECTION, READS),
            Kind::Stream => (STREAMS_A_CONNECTION, STREAMS),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Read => "reads",
            Kind::Stream => "streams",
        }
    }
}

/// All that the connections of a server take.
#[derive(Debug, Default)]
pub struct Limits {
    connections: AtomicUsize,
    /// Connections with large Writes.
    large_writers: AtomicUsize,
    counts: [AtomicUsize; Kind::COUNT],
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
    /// Bytes of small requests that are not charged.
    small_bytes: AtomicUsize,
    counts: [AtomicUsize; Kind::COUNT],
    large_writes: Semaphore,
    /// Those that are made or wait.
    large_write_count: AtomicUsize,
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
            small_bytes: AtomicUsize::new(0),
            counts: Default::default(),
            large_writes: Semaphore::new(LARGE_WRITES_A_CONNECTION),
            large_write_count: AtomicUsize::new(0),
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
    pub fn read(self: &Arc<Connection>) -> Result<Place, Status> {
        self.place(Kind::Read)
    }

    /// A controller's stream begins.
    pub fn stream(self: &Arc<Connection>) -> Result<Place, Status> {
        self.place(Kind::Stream)
    }

    fn place(self: &Arc<Connection>, kind: Kind) -> Result<Place, Status> {
        let place = Place { connection: self.clone(), kind };
        let own = self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let all = self.limits.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let (own_limit, limit) = kind.limits();
        let name = kind.name();
        let full = match (own >= own_limit, all >= limit) {
            (true, _) => format!("{own_limit} {name} of this connection"),
            (_, true) => format!("{limit} {name}"),
            _ => return Ok(place),
        };
        Err(self.limits.refuse(format!("{full} are under way, which is the limit; end some first")))
    }

    /// A large Write begins, when those of its connection before have ended.
    pub async fn large_write(&self) -> LargeWrite<'_> {
        if self.large_write_count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.limits.large_writers.fetch_add(1, Ordering::Relaxed);
        }
        let mut write = LargeWrite { connection: self, _place: None };
        // It is never closed.
        write._place = self.large_writes.acquire().await.ok();
        write
    }

    /// Nothing charged yet.
    pub fn charge(self: &Arc<Connection>) -> Charge {
        Charge { connection: self.clone(), bytes: AtomicUsize::new(0), small_bytes: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let own = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all = self.limits.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let common = if own <= MODEST_BYTES { ALL_BYTES } else { ALL_BYTES - RESERVED_BYTES };
        let (whose, limit) = match (own > CONNECTION_BYTES, all > common) {
            (true, _) => ("of this connection", CONNECTION_BYTES),
            (_, true) => ("of all connections", common),
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
        self.answer(bytes).is_ok()
    }

    /// As [`Connection::answered`], for an answer that can't be made smaller.
    pub fn answer(&self, bytes: usize) -> Result<(), Status> {
        self.take(bytes)?;
        self.unsent.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
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

    /// Waits until the client has taken its errors, nearly all of them. Errors: that takes too long.
    pub async fn drained(&self) -> Result<(), Status> {
        self.drained_within(STALLED).await
    }

    async fn drained_within(&self, limit: Duration) -> Result<(), Status> {
        if self.is_drained() {
            return Ok(());
        }
        let late = |_| {
            let message = format!("errors of other writes were not taken within {limit:?}; take them first");
            Status::deadline_exceeded(message)
        };
        tokio::time::timeout(limit, self.wait_drained()).await.map_err(late)
    }

    async fn wait_drained(&self) {
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

#[cfg(test)]
impl Connection {
    /// What requests and answers take of memory.
    pub fn charged_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let unsent = *self.unsent.get_mut();
        self.give_back(unsent);
        self.limits.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A large Write that is under way.
#[derive(Debug)]
pub struct LargeWrite<'a> {
    connection: &'a Connection,
    _place: Option<SemaphorePermit<'a>>,
}

impl LargeWrite<'_> {
    /// Whether no other connection has any, nor waits to.
    pub fn is_alone(&self) -> bool {
        self.connection.limits.large_writers.load(Ordering::Relaxed) == 1
    }
}

impl Drop for LargeWrite<'_> {
    fn drop(&mut self) {
        if self.connection.large_write_count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.connection.limits.large_writers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Memory of a request; free again when dropped.
#[derive(Debug)]
pub struct Charge {
    connection: Arc<Connection>,
    bytes: AtomicUsize,
    /// Of the connection's allowance.
    small_bytes: AtomicUsize,
}

impl Charge {
    /// So much more of it.
    pub fn add(&self, bytes: usize) -> Result<(), Status> {
        self.connection.take(bytes)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// As [`Charge::add`], for a request of few bytes: the connection has an allowance for those.
    pub fn add_small(&self, bytes: usize) -> Result<(), Status> {
        let before = self.connection.small_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= SMALL_ALLOWANCE {
            self.small_bytes.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        self.connection.small_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.add(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            self.connection.give_back(bytes);
        }
        self.connection.small_bytes.fetch_sub(*self.small_bytes.get_mut(), Ordering::Relaxed);
    }
}

/// A Read or a stream that is under way.
#[derive(Debug)]
pub struct Place {
    connection: Arc<Connection>,
    kind: Kind,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.counts[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
        self.connection.limits.counts[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection that a request came over. Errors: it came over none.
pub fn connection_of<T>(request: &Request<T>) -> Result<Arc<Connection>, Status> {
    of_request(request)
}

/// What a request takes of memory. Errors: it came over no connection.
pub fn charge_of<T>(request: &Request<T>) -> Result<Arc<Charge>, Status> {
    of_request(request)
}

fn of_request<T, A: Send + Sync + 'static>(request: &Request<T>) -> Result<Arc<A>, Status> {
    let found = request.extensions().get::<Arc<A>>();
    found.cloned().ok_or_else(|| Status::internal("the request came over no connection"))
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
        let rest = ALL_BYTES - RESERVED_BYTES - CONNECTION_BYTES;
        assert!(small.add(rest).unwrap_err().message().contains("256 MB"), "the reserve is for others");
        small.add(MODEST_BYTES - (1 << 20)).unwrap();
        drop(charge);
        assert_eq!(used(&limits), MODEST_BYTES);
        assert!(other.answered(500));
        drop((small, greedy, other));
        assert_eq!((used(&limits), limits.refused.load(Ordering::Relaxed)), (0, 2));
    }

    #[test]
    fn two_connections_leave_the_reserve_to_those_that_take_little() {
        let limits = Arc::new(Limits::default());
        let connections: Vec<_> = (0..3).map(|_| limits.connect().unwrap()).collect();
        let charges: Vec<_> = connections.iter().map(Connection::charge).collect();
        charges[0].add(CONNECTION_BYTES).unwrap();
        while charges[1].add(1 << 20).is_ok() {}
        charges[2].add(MODEST_BYTES).unwrap();
        assert!(charges[2].add(1).is_err());
    }

    #[test]
    fn small_requests_are_charged_where_they_are_many() {
        let limits = Arc::new(Limits::default());
        let connection = limits.connect().unwrap();
        let charges: Vec<_> = (0..=SMALL_ALLOWANCE / SMALL_BYTES).map(|_| connection.charge()).collect();
        for (at, charge) in charges.iter().enumerate() {
            assert_eq!(used(&limits), 0, "the {at}th has room");
            charge.add_small(SMALL_BYTES).unwrap();
        }
        assert_eq!(used(&limits), SMALL_BYTES);
        drop(charges);
        assert_eq!((used(&limits), connection.small_bytes.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test]
    async fn a_large_write_knows_of_those_of_other_connections() {
        let limits = Arc::new(Limits::default());
        let (one, other) = (limits.connect().unwrap(), limits.connect().unwrap());
        let writes = [one.large_write().await, one.large_write().await];
        assert!(writes.iter().all(LargeWrite::is_alone));
        // One that waits counts, until it is given up.
        assert!(tokio::time::timeout(Duration::from_millis(1), one.large_write()).await.is_err());
        let foreign = other.large_write().await;
        assert!(!writes[0].is_alone() && !foreign.is_alone());
        drop(writes);
        assert!(foreign.is_alone());
        drop(foreign);
        assert_eq!(limits.large_writers.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn errors_that_are_never_taken_end_the_wait() {
        let connection = Arc::new(Limits::default()).connect().unwrap();
        assert!(connection.answered(UNSENT));
        let late = connection.drained_within(Duration::from_millis(5)).await.unwrap_err();
        assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{late}");
        connection.written(UNSENT);
        connection.drained().await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_does_not_take_its_errors_is_waited_for() {
        let connection = Arc::new(Limits::default()).connect().unwrap();
        assert!(connection.answered(UNSENT - 1));
        connection.drained().await.unwrap();
        assert!(connection.answered(10));
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { connection.drained().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        connection.written(20);
        waiting.await.unwrap().unwrap();
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
        let own: Vec<_> = (0..STREAMS_A_CONNECTION).map(|_| open[0].stream().unwrap()).collect();
        assert!(open[0].stream().unwrap_err().message().contains("16 streams of this connection"));
        drop(own);
        assert!(open[0].stream().is_ok());
        open.truncate(1);
        assert!(open[0].read().is_ok());
        assert!(open[0].check_count("updates", UPDATES + 1).unwrap_err().message().contains("split it"));
    }
}
