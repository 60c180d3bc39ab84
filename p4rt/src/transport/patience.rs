//! Closes silent connections, and combines small writes.
//!
//! A live client answers the server's keep-alive. A client that is silent from the start,
//! stops in the middle of a handshake, or has vanished behind a half-open connection would otherwise hold its
//! socket forever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A connection that ends when nothing has arrived for a while.
#[derive(Debug)]
pub struct Patient {
    stream: TcpStream,
    limit: Duration,
    heard: Instant,
    /// Reset only when it expires, not with each byte.
    alarm: Pin<Box<Sleep>>,
    /// Whether writing has been deferred since the last flush; done once.
    put_off: bool,
}

impl Patient {
    /// Limits the time between received bytes.
    pub fn new(stream: TcpStream, limit: Duration) -> Patient {
        Patient { stream, limit, heard: Instant::now(), alarm: Box::pin(sleep(limit)), put_off: false }
    }

    /// Yields once before the first write, so that one system call carries the responses to all requests that
    /// arrived together.
    fn put_off(&mut self, context: &mut Context<'_>) -> bool {
        if self.put_off {
            return false;
        }
        self.put_off = true;
        context.waker().wake_by_ref();
        true
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
        if self.put_off(context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.put_off(context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.put_off = false;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn the_first_write_after_a_flush_lets_others_go_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut patient = Patient::new(client, Duration::from_secs(9));
        for _ in 0..2 {
            let mut tries = 0;
            let write = |patient: &mut Patient, context: &mut Context<'_>| {
                Pin::new(patient).poll_write(context, b"answer")
            };
            // Pending would last forever without a wake-up of its own.
            let count = poll_fn(|context| {
                tries += 1;
                write(&mut patient, context)
            });
            assert_eq!((count.await.unwrap(), tries), (6, 2));
            let second = poll_fn(|context| Poll::Ready(write(&mut patient, context))).await;
            assert!(second.is_ready(), "only the first is put off");
            poll_fn(|context| Pin::new(&mut patient).poll_flush(context)).await.unwrap();
        }
    }
}
