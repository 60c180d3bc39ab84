//! Accepts connections whose handshake and preface arrive in time.
//!
//! ```text
//!  accept ─ TLS, if configured ─ HTTP/2's preface ─▶ register ─▶ served
//!              └── one time limit for both, however slowly bytes arrive
//! ```
//!
//! Handshakes have a limit in number, too. At that limit the oldest one ends, of the address that has the most of them. An
//! honest handshake is done long before that, so silent connections lock no client out, from any address.
//!
//! After the preface, HTTP/2's own keep-alive supervises the connection. Each handshake is a task of its own, so none
//! waits for another.

use super::patience::Patient;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// The preface of every HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum concurrent handshakes, if the process may have as many sockets.
const HANDSHAKES: usize = 1024;
/// Part of the process's descriptors that handshakes may take: one in this number.
const HANDSHAKES_PART: usize = 8;
/// Descriptors of a process whose limit is not known.
const HANDLES: usize = 1024;
/// Maximum accepted connections that wait to be served.
const WAITING: usize = 64;
/// Pause after the system ran out of sockets.
const EXHAUSTED: Duration = Duration::from_millis(5);
/// Minimum interval between log lines about closed connections.
const LOGGED_EVERY: Duration = Duration::from_secs(1);

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its address.
    pub addr: SocketAddr,
    /// Its certificate, DER, if the server demands one.
    pub certificate: Option<Arc<[u8]>>,
}

/// Unit of the limits: all connections with the same certificate, or without certificates all connections from the same
/// address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tenant {
    /// Address of a caller without a certificate.
    Address(IpAddr),
    /// Certificate of a caller, DER.
    Certificate(Arc<[u8]>),
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tenant::Address(ip) => write!(f, "{ip}"),
            Tenant::Certificate(_) => f.write_str("this certificate"),
        }
    }
}

impl Tenant {
    /// A caller on this machine.
    pub const LOCAL: Tenant = Tenant::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
}

impl Caller {
    /// Whether its certificate is for this name (its subjectAltName has it); `None` without certificate.
    pub fn is_named(&self, name: &str) -> Option<bool> {
        let certificate = CertificateDer::from(&**self.certificate.as_ref()?);
        let Ok(parsed) = ParsedCertificate::try_from(&certificate) else { return Some(false) };
        let name = ServerName::try_from(name.to_owned());
        Some(name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok()))
    }

    /// The tenant whose share it counts in.
    pub fn tenant(&self) -> Tenant {
        match &self.certificate {
            Some(certificate) => Tenant::Certificate(certificate.clone()),
            None => Tenant::Address(self.addr.ip()),
        }
    }
}

/// Decides which connections are let in after the handshake, and knows them.
pub trait Register: Send + Sync + 'static {
    /// Its record of a connection; all requests on it have this among their extensions.
    type Entry: Clone + Send + Sync + Unpin + 'static;

    /// Registers a connection. Errors: why it is turned away.
    fn admit(self: &Arc<Self>, caller: Caller) -> Result<Self::Entry, String>;

    /// Bytes were sent to a connection.
    fn written(_entry: &Self::Entry, _bytes: usize) {}
}

/// Maximum open descriptors of this process.
pub fn handles_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    // The soft limit precedes the hard one; `unlimited` is no number.
    let soft = line.and_then(|rest| rest.split_whitespace().next());
    soft.map_or(HANDLES, |soft| soft.parse().unwrap_or(usize::MAX))
}

/// Accepts connections.
pub struct Entrance<R> {
    tls: Option<Arc<ServerConfig>>,
    limit: Duration,
    register: Arc<R>,
    turned_away: Arc<AtomicU64>,
    handshakes: Mutex<VecDeque<Handshake>>,
    handshakes_max: usize,
    /// Time of the last log line.
    logged: Mutex<Option<Instant>>,
}

/// A handshake in progress.
struct Handshake {
    number: u64,
    peer: SocketAddr,
    task: AbortHandle,
}

impl<R: Register> Entrance<R> {
    /// An entrance, with TLS or in plain text. `limit` is how long TLS and preface may take together, and how long a
    /// connection may be silent. `turned_away` counts connections that are closed before they are let in.
    pub fn new(
        tls: Option<Arc<ServerConfig>>,
        limit: Duration,
        register: Arc<R>,
        turned_away: Arc<AtomicU64>,
    ) -> Entrance<R> {
        let handshakes_max = HANDSHAKES.min(handles_max() / HANDSHAKES_PART).max(1);
        let (handshakes, logged) = (Mutex::default(), Mutex::default());
        Entrance { tls, limit, register, turned_away, handshakes, handshakes_max, logged }
    }

    /// The accepted connections. Listening ends when the stream is dropped.
    pub fn open(self, listener: TcpListener) -> ReceiverStream<io::Result<Guest<R>>> {
        let (let_in, guests) = mpsc::channel(WAITING);
        let entrance = Arc::new(self);
        tokio::spawn(async move {
            for number in 0.. {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = let_in.closed() => return,
                };
                let Ok((stream, peer)) = accepted else {
                    entrance.end_one("the process has no more sockets");
                    tokio::time::sleep(EXHAUSTED).await;
                    continue;
                };
                entrance.clone().begin(number, stream, peer, let_in.clone());
            }
        });
        ReceiverStream::new(guests)
    }

    /// Begins a handshake, after the end of another one if there are too many.
    fn begin(
        self: Arc<Self>,
        number: u64,
        stream: TcpStream,
        peer: SocketAddr,
        let_in: mpsc::Sender<io::Result<Guest<R>>>,
    ) {
        let mut handshakes = self.handshakes();
        if handshakes.len() >= self.handshakes_max {
            drop(handshakes);
            self.end_one("too many handshakes are in progress");
            handshakes = self.handshakes();
        }
        let entrance = self.clone();
        let task = tokio::spawn(async move {
            let greeted = tokio::select! {
                greeted = tokio::time::timeout(entrance.limit, entrance.greet(stream, peer)) => greeted,
                () = let_in.closed() => return,
            };
            match greeted {
                // Counted where it was ended.
                _ if !entrance.finish(number) => {}
                // The server has stopped.
                Ok(Ok(guest)) => drop(let_in.send(Ok(guest)).await),
                Ok(Err(error)) => entrance.turn_away(peer, &error.to_string()),
                Err(_) => entrance.turn_away(peer, "its handshake takes too long"),
            }
        });
        // The lock is held until here, so the task finds itself among them.
        handshakes.push_back(Handshake { number, peer, task: task.abort_handle() });
    }

    /// A handshake is done. Returns false if it was ended before.
    fn finish(&self, number: u64) -> bool {
        let mut handshakes = self.handshakes();
        let before = handshakes.len();
        handshakes.retain(|one| one.number != number);
        handshakes.len() < before
    }

    fn handshakes(&self) -> MutexGuard<'_, VecDeque<Handshake>> {
        // Each change is a single call of the queue.
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the oldest handshake of the address that has the most.
    fn end_one(&self, why: &str) {
        let mut handshakes = self.handshakes();
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for one in handshakes.iter() {
            *counts.entry(one.peer.ip()).or_default() += 1;
        }
        let busiest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(ip, _)| ip);
        let oldest = handshakes.iter().position(|one| Some(one.peer.ip()) == busiest);
        let ended = oldest.and_then(|oldest| handshakes.remove(oldest));
        drop(handshakes);
        if let Some(ended) = ended {
            ended.task.abort();
            self.turn_away(ended.peer, why);
        }
    }

    fn turn_away(&self, peer: SocketAddr, why: &str) {
        let all = self.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= LOGGED_EVERY) {
            *last = Some(Instant::now());
            tracing::warn!(%peer, why, all, "a connection was turned away");
        }
    }

    async fn greet(&self, stream: TcpStream, peer: SocketAddr) -> io::Result<Guest<R>> {
        // Otherwise the end of a response waits for the client's delayed acknowledgement: 40 ms.
        stream.set_nodelay(true)?;
        let stream = Patient::new(stream, self.limit);
        let mut talk = match &self.tls {
            None => Talk::Plain(stream),
            Some(tls) => Talk::Tls(Box::new(TlsAcceptor::from(tls.clone()).accept(stream).await?)),
        };
        let mut first = [0; PREFACE.len()];
        let mut count = 0;
        while count < first.len() {
            match talk.read(&mut first[count..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => count += more,
            }
            if first[..count] != PREFACE[..count] {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/2"));
            }
        }
        let caller = Caller { addr: peer, certificate: talk.certificate() };
        let entry = self.register.admit(caller).map_err(io::Error::other)?;
        Ok(Guest { talk, replayed: 0, entry })
    }
}

enum Talk {
    Plain(Patient),
    Tls(Box<TlsStream<Patient>>),
}

/// Calls a method of whichever stream it is.
macro_rules! either {
    ($talk:expr, $stream:ident => $call:expr) => {
        match $talk {
            Talk::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Talk::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl Talk {
    /// The client's certificate, DER.
    fn certificate(&self) -> Option<Arc<[u8]>> {
        match self {
            Talk::Plain(_) => None,
            Talk::Tls(stream) => {
                let own = stream.get_ref().1.peer_certificates()?.first()?;
                Some(own.as_ref().into())
            }
        }
    }
}

impl AsyncRead for Talk {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(&mut *self, stream => stream.poll_read(context, buffer))
    }
}

/// An accepted connection. The preface is read again from it.
pub struct Guest<R: Register> {
    talk: Talk,
    /// Bytes of the preface that were replayed.
    replayed: usize,
    entry: R::Entry,
}

impl<R: Register> Guest<R> {
    /// Records how many bytes were sent.
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &written {
            R::written(&self.entry, *count);
        }
        written
    }
}

impl<R: Register> AsyncRead for Guest<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = PREFACE.get(self.replayed..).unwrap_or_default();
        if !rest.is_empty() {
            let part = rest.get(..buffer.remaining()).unwrap_or(rest);
            buffer.put_slice(part);
            self.replayed += part.len();
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.talk).poll_read(context, buffer)
    }
}

impl<R: Register> AsyncWrite for Guest<R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = either!(&mut self.talk, stream => stream.poll_write(context, bytes));
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = either!(&mut self.talk, stream => stream.poll_write_vectored(context, parts));
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.talk {
            Talk::Plain(stream) => stream.is_write_vectored(),
            Talk::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.talk, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.talk, stream => stream.poll_shutdown(context))
    }
}

impl<R: Register> Connected for Guest<R> {
    type ConnectInfo = R::Entry;

    fn connect_info(&self) -> R::Entry {
        self.entry.clone()
    }
}

impl<R> fmt::Debug for Entrance<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<R: Register> fmt::Debug for Guest<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Visitors;
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio_stream::StreamExt;

    #[tokio::test]
    async fn silent_connections_end_each_other_and_are_counted() {
        let turned_away = Arc::new(AtomicU64::new(0));
        let register = Arc::new(Visitors::default());
        let mut entrance = Entrance::new(None, Duration::from_secs(600), register, turned_away.clone());
        entrance.handshakes_max = 3;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut guests = entrance.open(listener);
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(TcpStream::connect(addr).await.unwrap());
        }
        let mut good = TcpStream::connect(addr).await.unwrap();
        good.write_all(PREFACE).await.unwrap();
        let guest = guests.next().await.unwrap().unwrap();
        assert_eq!(guest.connect_info().caller().addr, good.local_addr().unwrap());
        assert_eq!(turned_away.load(Ordering::Relaxed), 8);
        // The oldest ones have ended, and the last ones wait.
        assert_eq!(silent[0].read(&mut [0]).await.unwrap_or(0), 0);
        let last = tokio::time::timeout(Duration::from_millis(20), silent[9].read(&mut [0])).await;
        assert!(last.is_err(), "{last:?}");
    }

    #[tokio::test]
    async fn those_with_most_handshakes_lose_them_first() {
        let turned_away = Arc::new(AtomicU64::new(0));
        let register = Arc::new(Visitors::default());
        let mut entrance = Entrance::new(None, Duration::from_secs(600), register, turned_away.clone());
        entrance.handshakes_max = 3;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut guests = entrance.open(listener);
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut slow = socket.connect(addr).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(TcpStream::connect(addr).await.unwrap());
        }
        while turned_away.load(Ordering::Relaxed) < 8 {
            tokio::task::yield_now().await;
        }
        slow.write_all(PREFACE).await.unwrap();
        guests.next().await.unwrap().unwrap();
    }
}
