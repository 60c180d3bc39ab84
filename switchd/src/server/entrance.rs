//! Accepts connections whose handshake and preface arrive in time.
//!
//! ```text
//!  accept ─ TLS, if configured ─ HTTP/2's preface ─▶ served
//!              └── one time limit for both, however slowly bytes arrive
//! ```
//!
//! After the preface, HTTP/2's own keep-alive supervises the connection. Each handshake is a task of its own, so none
//! waits for another.

use super::patience::Patient;
use crate::core::Handle;
use crate::p4runtime::{Connection, Limits};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// The preface of every HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum concurrent handshakes; further connections are closed.
const HANDSHAKES: usize = 4096;
/// Maximum accepted connections that wait to be served.
const WAITING: usize = 64;
/// Pause after the system ran out of sockets.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// Minimum interval between log lines about closed connections.
const LOGGED_EVERY: Duration = Duration::from_secs(1);

/// Accepts connections.
pub(super) struct Entrance {
    /// TLS; `None` is plain text.
    pub tls: Option<Arc<ServerConfig>>,
    /// Time limit for TLS and preface together, and for silence on a connection.
    pub limit: Duration,
    /// Limits on connections and their memory.
    pub limits: Arc<Limits>,
    /// Counts connections that are closed before they are accepted.
    pub handle: Handle,
    /// Time of the last log line.
    pub logged: Mutex<Option<Instant>>,
}

impl Entrance {
    /// The accepted connections. Listening ends when the stream is dropped.
    pub fn open(self, listener: TcpListener) -> ReceiverStream<io::Result<Guest>> {
        let (let_in, guests) = mpsc::channel(WAITING);
        let (entrance, permits) = (Arc::new(self), Arc::new(Semaphore::new(HANDSHAKES)));
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = let_in.closed() => return,
                };
                let Ok((stream, peer)) = accepted else {
                    tokio::time::sleep(EXHAUSTED).await;
                    continue;
                };
                let Ok(permit) = permits.clone().try_acquire_owned() else {
                    entrance.turn_away(peer, "too many handshakes are in progress");
                    continue;
                };
                let (entrance, let_in) = (entrance.clone(), let_in.clone());
                tokio::spawn(async move {
                    let _permit = permit;
                    let greeted = tokio::select! {
                        greeted = tokio::time::timeout(entrance.limit, entrance.greet(stream)) => greeted,
                        () = let_in.closed() => return,
                    };
                    match greeted {
                        // The server has stopped.
                        Ok(Ok(guest)) => drop(let_in.send(Ok(guest)).await),
                        Ok(Err(error)) => entrance.turn_away(peer, &error.to_string()),
                        Err(_) => entrance.turn_away(peer, "its handshake takes too long"),
                    }
                });
            }
        });
        ReceiverStream::new(guests)
    }

    fn turn_away(&self, peer: SocketAddr, why: &str) {
        self.handle.count_turned_away();
        let mut last = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= LOGGED_EVERY) {
            *last = Some(Instant::now());
            tracing::warn!(%peer, why, all = self.handle.turned_away(), "a connection was turned away");
        }
    }

    async fn greet(&self, stream: TcpStream) -> io::Result<Guest> {
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
        let connection =
            self.limits.connect().ok_or_else(|| io::Error::other("too many connections are open"))?;
        Ok(Guest { talk, replayed: 0, connection })
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
pub(super) struct Guest {
    talk: Talk,
    /// Bytes of the preface that were replayed.
    replayed: usize,
    /// Its resource usage.
    connection: Arc<Connection>,
}

impl Guest {
    /// Records how many bytes were sent.
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &written {
            self.connection.written(*count);
        }
        written
    }
}

impl AsyncRead for Guest {
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

impl AsyncWrite for Guest {
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

impl Connected for Guest {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Arc<Connection> {
        self.connection.clone()
    }
}
