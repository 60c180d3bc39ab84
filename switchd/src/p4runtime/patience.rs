//! Connections on which nothing comes in are closed.
//!
//! A living client is heard of: it answers the server's keep-alive. One that is silent from the start, that stops in
//! the middle of a handshake, or that has vanished behind a half-open connection would keep its socket for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A connection that ends when nothing has come in for a while.
#[derive(Debug)]
pub struct Patient {
    stream: TcpStream,
    limit: Duration,
    heard: Instant,
    /// Not moved on with each byte, only when it ends.
    alarm: Pin<Box<Sleep>>,
}

impl Patient {
    /// Waits so long for each byte.
    pub fn new(stream: TcpStream, limit: Duration) -> Patient {
        Patient { stream, limit, heard: Instant::now(), alarm: Box::pin(sleep(limit)) }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(result) = Pin::new(&mut this.stream).poll_read(context, buffer) {
            this.heard = Instant::now();
            return Poll::Ready(result);
        }
        while this.alarm.as_mut().poll(context).is_ready() {
            let end = this.heard + this.limit;
            if end <= Instant::now() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client is silent")));
            }
            this.alarm.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
