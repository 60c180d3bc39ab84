//! Limits of clients: connections, concurrent calls, memory. A call that exceeds one is counted, and its error says
//! which limit it was.
//!
//! ```text
//!  request    its bytes, plus a fixed amount per update           ─▶ Charge ──────────────┬─▶ budget of the connection,
//!  response   errors not yet sent: Connection::answered ──────────────────────────────────┤   budget of all connections
//!             programs, statistics, statuses of updates: Connection::answer ──────────────┘
//!                                                        sent: Connection::written
//! ```
//!
//! Small requests are free while a connection has few of them in flight; beyond that they are charged like
//! others. The last part of the common budget is reserved for connections that use little.

use p4rack_p4rt::transport::{Caller, Full, Register, Share, Shares, Tenant, handles_max};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tonic::{Request, Status};

/// Maximum connections that are served, if the process may have as many sockets.
pub const CONNECTIONS: usize = 2048;
/// Connections beyond that, or beyond a tenant's share, whose calls are refused with a reason; further ones are closed.
const REFUSED: usize = 64;
/// Tenants among which half of the connections is divided.
const TENANTS: u64 = 8;
/// Maximum concurrent calls per connection; HTTP/2 calls them streams.
pub const CALLS_A_CONNECTION: u32 = 128;
/// Maximum concurrent Reads.
pub const READS: usize = 1024;
/// Maximum concurrent Reads per connection.
pub const READS_A_CONNECTION: usize = 16;
/// Maximum open StreamChannels: as many as arbitration accepts in all roles together.
pub const STREAMS: usize = 4096;
/// Maximum open StreamChannels per connection.
pub const STREAMS_A_CONNECTION: usize = 16;
/// Maximum large Writes per connection that run or wait for those of other connections.
const LARGE_WRITES_A_CONNECTION: usize = 2;
/// Maximum updates in a Write, and entities in a Read.
pub const UPDATES: usize = 65_536;
/// Memory budget per connection, in bytes: requests in progress and responses not yet sent.
pub const CONNECTION_BYTES: usize = 224 << 20;
/// Memory budget of all connections together, in bytes.
const ALL_BYTES: usize = 384 << 20;
/// Part of [`ALL_BYTES`] that only connections with at most [`MODEST_BYTES`] may use.
const RESERVED_BYTES: usize = 128 << 20;
/// A connection that uses no more than this has access to [`RESERVED_BYTES`].
const MODEST_BYTES: usize = 8 << 20;
/// Bytes of small requests per connection that are free of charge.
const SMALL_ALLOWANCE: usize = 256 << 10;
/// Memory that an update needs in addition to its own bytes while it is applied: the decoded message, its outcome,
/// its error.
pub const UPDATE_BYTES: usize = 1024;
/// Maximum bytes of a small request.
pub const SMALL_BYTES: usize = 32 << 10;
/// Maximum updates of a small request.
pub const SMALL_UPDATES: usize = 16;
/// While a connection has at least this many bytes of unsent errors, its Writes wait.
const UNSENT: usize = 256 << 10;
/// How long they wait.
const STALLED: Duration = Duration::from_secs(30);

/// Long-running calls, each kind with limits of its own.
#[derive(Clone, Copy, Debug)]
enum CallKind {
    Read,
    Stream,
}

impl CallKind {
    const COUNT: usize = 2;

    /// Maximum per connection, and in total.
    fn limits(self) -> (usize, usize) {
        match self {
            CallKind::Read => (READS_A_CONNECTION, READS),
            CallKind::Stream => (STREAMS_A_CONNECTION, STREAMS),
        }
    }

    fn name(self) -> &'static str {
        match self {
            CallKind::Read => "reads",
            CallKind::Stream => "streams",
        }
    }
}

/// Use by the connections of a server.
#[derive(Debug)]
pub struct Limits {
    connections: Arc<Shares<Tenant>>,
    /// Connections accepted only to be refused.
    over: AtomicUsize,
    /// Connections that have large Writes in progress.
    large_writers: AtomicUsize,
    counts: [AtomicUsize; CallKind::COUNT],
    bytes: AtomicUsize,
    /// Calls refused because of a limit.
    refused: Arc<AtomicU64>,
}

/// Use by one connection.
#[derive(Debug)]
pub struct Connection {
    limits: Arc<Limits>,
    /// Its part of the connections, or why it has none: then it was accepted only to refuse its calls with this reason.
    place: Result<Share<Tenant>, Full>,
    bytes: AtomicUsize,
    /// Bytes of small requests in progress that are free of charge.
    small_bytes: AtomicUsize,
    counts: [AtomicUsize; CallKind::COUNT],
    large_writes: Semaphore,
    /// Large Writes that run or wait.
    large_write_count: AtomicUsize,
    /// Bytes of responses that are charged and not yet sent, and those of errors.
    unsent_data: AtomicUsize,
    unsent_errors: AtomicUsize,
    written: Notify,
}

impl Register for Limits {
    type Entry = Arc<Connection>;

    fn admit(self: &Arc<Limits>, caller: Caller) -> Result<Arc<Connection>, String> {
        self.connect(&caller.tenant()).ok_or_else(|| "too many connections are open".to_owned())
    }

    fn written(connection: &Arc<Connection>, bytes: usize) {
        connection.written(bytes);
    }
}

impl Limits {
    /// Limits of a new server. `refused` counts calls refused because of a limit.
    pub fn new(refused: Arc<AtomicU64>) -> Arc<Limits> {
        Limits::of(connections_of(handles_max()), refused)
    }

    fn of(connections: usize, refused: Arc<AtomicU64>) -> Arc<Limits> {
        Arc::new(Limits {
            connections: Shares::new("connections", connections as u64, TENANTS),
            over: AtomicUsize::new(0),
            large_writers: AtomicUsize::new(0),
            counts: Default::default(),
            bytes: AtomicUsize::new(0),
            refused,
        })
    }

    /// Registers a connection. `None` if there are too many even to refuse its calls.
    pub fn connect(self: &Arc<Limits>, tenant: &Tenant) -> Option<Arc<Connection>> {
        let place = self.connections.take(tenant, 1);
        if place.is_err() && self.over.fetch_add(1, Ordering::Relaxed) >= REFUSED {
            self.over.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Arc::new(Connection {
            limits: self.clone(),
            place,
            bytes: AtomicUsize::new(0),
            small_bytes: AtomicUsize::new(0),
            counts: Default::default(),
            large_writes: Semaphore::new(LARGE_WRITES_A_CONNECTION),
            large_write_count: AtomicUsize::new(0),
            unsent_data: AtomicUsize::new(0),
            unsent_errors: AtomicUsize::new(0),
            written: Notify::new(),
        }))
    }

    /// Counts a refused call and returns its error.
    fn refuse(&self, why: String) -> Status {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Status::resource_exhausted(why)
    }
}

impl Connection {
    /// Refuses every call of a connection beyond a limit.
    pub fn check(&self) -> Result<(), Status> {
        match &self.place {
            Ok(_) => Ok(()),
            Err(full) => Err(self.limits.refuse(full.to_string())),
        }
    }

    /// Refuses a request with too many updates or entities.
    pub fn check_count(&self, what: &str, count: usize) -> Result<(), Status> {
        if count <= UPDATES {
            return Ok(());
        }
        Err(self
            .limits
            .refuse(format!("the request has {count} {what}; the limit is {UPDATES}; split the request")))
    }

    /// A permit for a Read.
    pub fn read(self: &Arc<Connection>) -> Result<Permit, Status> {
        self.permit(CallKind::Read)
    }

    /// A permit for a StreamChannel.
    pub fn stream(self: &Arc<Connection>) -> Result<Permit, Status> {
        self.permit(CallKind::Stream)
    }

    fn permit(self: &Arc<Connection>, kind: CallKind) -> Result<Permit, Status> {
        let permit = Permit { connection: self.clone(), kind };
        let own = self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let all = self.limits.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let (own_limit, limit) = kind.limits();
        let name = kind.name();
        let full = match (own >= own_limit, all >= limit) {
            (true, _) => format!("{own_limit} {name} of this connection"),
            (_, true) => format!("{limit} {name}"),
            _ => return Ok(permit),
        };
        Err(self.limits.refuse(format!("{full} are in progress, which is the limit; end some first")))
    }

    /// Begins a large Write. Waits until the connection has no more than one other in progress.
    pub async fn large_write(&self) -> LargeWrite<'_> {
        if self.large_write_count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.limits.large_writers.fetch_add(1, Ordering::Relaxed);
        }
        let mut write = LargeWrite { connection: self, _permit: None };
        // The semaphore is never closed.
        write._permit = self.large_writes.acquire().await.ok();
        write
    }

    /// The charge of a new request: nothing so far.
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
        self.release(bytes);
        Err(self.limits.refuse(format!(
            "the requests {whose} would need more than {} MB of memory, which is the limit; split this request, \
             or wait until others are answered",
            limit >> 20
        )))
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.limits.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Charges the errors of a call, of this length, until they are sent. Returns false, without charging, if there is no
    /// memory left.
    pub fn answered(&self, bytes: usize) -> bool {
        let is_charged = self.take(bytes).is_ok();
        if is_charged {
            self.unsent_errors.fetch_add(bytes, Ordering::Relaxed);
        }
        is_charged
    }

    /// Charges a response of this length until it is sent.
    pub fn answer(&self, bytes: usize) -> Result<(), Status> {
        self.take(bytes)?;
        self.unsent_data.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn unsent(&self) -> usize {
        self.unsent_data.load(Ordering::Relaxed) + self.unsent_errors.load(Ordering::Relaxed)
    }

    /// Bytes were sent to the client, of whatever response.
    pub fn written(&self, bytes: usize) {
        if self.unsent() == 0 {
            return;
        }
        // It is unknown which responses the bytes belong to. Counted like this, nothing is released before it is sent.
        let data = less(&self.unsent_data, bytes);
        // Errors are headers, which HTTP/2 shortens to at least this part.
        let errors = less(&self.unsent_errors, (bytes - data).saturating_mul(8) / 5);
        self.release(data + errors);
        if self.is_drained() {
            self.written.notify_waiters();
        }
    }

    /// Waits until nearly all errors have been sent to the client. Errors: the client does not read them in time.
    pub async fn drained(&self) -> Result<(), Status> {
        self.drained_within(STALLED).await
    }

    async fn drained_within(&self, limit: Duration) -> Result<(), Status> {
        if self.is_drained() {
            return Ok(());
        }
        let late = |_| {
            let message = format!(
                "the client has not read the errors of its earlier Writes within {limit:?}; read them first"
            );
            Status::deadline_exceeded(message)
        };
        tokio::time::timeout(limit, self.wait_drained()).await.map_err(late)
    }

    async fn wait_drained(&self) {
        while !self.is_drained() {
            let mut written = std::pin::pin!(self.written.notified());
            // From here on no notification is missed.
            written.as_mut().enable();
            if !self.is_drained() {
                written.await;
            }
        }
    }

    /// Whether nearly all errors have been sent to the client.
    pub fn is_drained(&self) -> bool {
        self.unsent() < UNSENT
    }
}

/// Maximum connections of a process that may have `handles` open files: the other half is for everything else.
fn connections_of(handles: usize) -> usize {
    CONNECTIONS.min(handles / 2)
}

/// Takes up to `bytes` from a count; returns how many it took.
fn less(count: &AtomicUsize, bytes: usize) -> usize {
    let less = |count: usize| Some(count.saturating_sub(bytes));
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map_or(0, |before| before.min(bytes))
}

#[cfg(test)]
impl Connection {
    /// Memory charged for requests and responses.
    pub fn charged_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let unsent = self.unsent();
        self.release(unsent);
        if self.place.is_err() {
            self.limits.over.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A large Write in progress.
#[derive(Debug)]
pub struct LargeWrite<'a> {
    connection: &'a Connection,
    _permit: Option<SemaphorePermit<'a>>,
}

impl LargeWrite<'_> {
    /// Whether no other connection has one, running or waiting.
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

/// Memory charged for a request, returned when dropped.
#[derive(Debug)]
pub struct Charge {
    connection: Arc<Connection>,
    bytes: AtomicUsize,
    /// Bytes taken from the connection's free allowance.
    small_bytes: AtomicUsize,
}

impl Charge {
    /// Charges more bytes.
    pub fn add(&self, bytes: usize) -> Result<(), Status> {
        self.connection.take(bytes)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Like [`Charge::add`], for a small request: free within the connection's allowance.
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
            self.connection.release(bytes);
        }
        self.connection.small_bytes.fetch_sub(*self.small_bytes.get_mut(), Ordering::Relaxed);
    }
}

/// The right to run a Read or a StreamChannel, returned when dropped.
#[derive(Debug)]
pub struct Permit {
    connection: Arc<Connection>,
    kind: CallKind,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connection.counts[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
        self.connection.limits.counts[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection on which a request arrived. Errors: none is known.
pub fn connection_of<T>(request: &Request<T>) -> Result<Arc<Connection>, Status> {
    of_request(request)
}

/// The charge of a request. Errors: its connection is not known.
pub fn charge_of<T>(request: &Request<T>) -> Result<Arc<Charge>, Status> {
    of_request(request)
}

fn of_request<T, A: Send + Sync + 'static>(request: &Request<T>) -> Result<Arc<A>, Status> {
    let found = request.extensions().get::<Arc<A>>();
    found
        .cloned()
        .ok_or_else(|| Status::internal("the connection of the request is unknown; please report it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Arc<Limits> {
        Limits::of(CONNECTIONS, Arc::default())
    }

    fn tenant(number: usize) -> Tenant {
        Tenant::Address([127, 0, 0, number as u8].into())
    }

    fn used(limits: &Limits) -> usize {
        limits.bytes.load(Ordering::Relaxed)
    }

    #[test]
    fn one_connection_cant_take_all_and_everything_is_given_back() {
        let limits = limits();
        let (greedy, other) = (limits.connect(&tenant(0)).unwrap(), limits.connect(&tenant(0)).unwrap());
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
        let limits = limits();
        let connections: Vec<_> = (0..3).map(|_| limits.connect(&tenant(0)).unwrap()).collect();
        let charges: Vec<_> = connections.iter().map(Connection::charge).collect();
        charges[0].add(CONNECTION_BYTES).unwrap();
        while charges[1].add(1 << 20).is_ok() {}
        assert_eq!(used(&limits), ALL_BYTES - RESERVED_BYTES, "up to the last byte");
        charges[2].add(MODEST_BYTES).unwrap();
        assert!(charges[2].add(1).is_err());
    }

    #[test]
    fn those_that_take_little_share_the_reserve_up_to_its_last_byte() {
        let limits = limits();
        let connections: Vec<_> = (0..=ALL_BYTES / MODEST_BYTES)
            .map(|number| limits.connect(&tenant(number % 8)).unwrap())
            .collect();
        let charges: Vec<_> = connections.iter().map(Connection::charge).collect();
        let (last, others) = charges.split_last().unwrap();
        others.iter().for_each(|charge| charge.add(MODEST_BYTES).unwrap());
        assert_eq!(used(&limits), ALL_BYTES);
        assert!(last.add(1).unwrap_err().message().contains("384 MB"));
        assert_eq!(used(&limits), ALL_BYTES, "what was refused is not charged");
    }

    #[test]
    fn connections_take_half_of_the_open_files() {
        assert_eq!([1_024, 4_096, 1 << 20].map(connections_of), [512, CONNECTIONS, CONNECTIONS]);
    }

    #[test]
    fn small_requests_are_charged_where_they_are_many() {
        let limits = limits();
        let connection = limits.connect(&tenant(0)).unwrap();
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
        let limits = limits();
        let (one, other) = (limits.connect(&tenant(0)).unwrap(), limits.connect(&tenant(0)).unwrap());
        let first = one.large_write().await;
        assert!(first.is_alone());
        let writes = [first, one.large_write().await];
        assert!(writes.iter().all(LargeWrite::is_alone));
        // One that waits counts until it is cancelled.
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
        let connection = limits().connect(&tenant(0)).unwrap();
        assert!(connection.answered(UNSENT));
        let late = connection.drained_within(Duration::from_millis(5)).await.unwrap_err();
        assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{late}");
        connection.written(UNSENT);
        connection.drained().await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_does_not_take_its_errors_is_waited_for() {
        let connection = limits().connect(&tenant(0)).unwrap();
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
        // More than was charged: the excess is not credited to later responses.
        connection.written(1 << 30);
        assert!(connection.answered(UNSENT));
        assert_eq!(connection.unsent(), UNSENT);
    }

    #[tokio::test]
    async fn answers_are_charged_until_their_last_byte_is_sent() {
        let limits = limits();
        let connection = limits.connect(&tenant(0)).unwrap();
        connection.answer(1000).unwrap();
        connection.written(999);
        assert_eq!(used(&limits), 1, "only errors are shortened");
        assert!(connection.answered(800));
        connection.written(1 + 400);
        assert_eq!(used(&limits), 800 - 640);
        connection.written(100);
        assert_eq!((used(&limits), connection.unsent()), (0, 0));
        // The entrance reports the bytes that the socket has taken.
        connection.answer(1000).unwrap();
        <Limits as Register>::written(&connection, 1000);
        assert_eq!(used(&limits), 0);
    }

    #[test]
    fn one_caller_cant_take_all_connections() {
        let limits = limits();
        let served = |connection: &Arc<Connection>| connection.check().is_ok();
        let greedy: Vec<_> = (0..2 * CONNECTIONS).map_while(|_| limits.connect(&tenant(0))).collect();
        let got = greedy.iter().filter(|connection| served(connection)).count();
        assert_eq!((got, greedy.len() - got), (CONNECTIONS * 9 / 16, REFUSED));
        assert!(limits.connect(&tenant(1)).is_some_and(|connection| served(&connection)));
    }

    #[test]
    fn refusals_name_the_limit_of_connections_and_reads() {
        let limits = limits();
        let mut open: Vec<_> = (0..CONNECTIONS).map(|n| limits.connect(&tenant(n % 8)).unwrap()).collect();
        assert!(open.iter().all(|connection| connection.check().is_ok()));
        let over = limits.connect(&tenant(0)).unwrap();
        assert!(over.check().unwrap_err().message().contains("2048 connections"));
        let answered: Vec<_> = (1..REFUSED).map(|_| limits.connect(&tenant(0)).unwrap()).collect();
        assert!(limits.connect(&tenant(0)).is_none());
        drop((over, answered));
        let answered: Vec<_> = (0..REFUSED).map(|_| limits.connect(&tenant(0)).unwrap()).collect();
        assert!(limits.connect(&tenant(0)).is_none(), "as many as before may be told the reason");
        drop(answered);
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
        assert!(open[0].check_count("updates", UPDATES).is_ok());
        assert!(
            open[0].check_count("updates", UPDATES + 1).unwrap_err().message().contains("split the request")
        );
    }
}
