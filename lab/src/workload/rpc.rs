//! A small request/response service over TCP. The client names a key and a size; the server responds with a
//! value of that size. Closed loop, one connection per size.

use super::Span;
use crate::stats::cdf;
use crate::sys;
use p4rack_wire::Histogram;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of a request: 4 of magic, 4 of value size; the rest is the key.
pub const REQUEST_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"GET ";
/// Maximum size of a value.
pub const VALUE_MAX_BYTES: u32 = 1 << 20;
/// Maximum connections of the server; further ones are closed immediately.
const CONNECTIONS_MAX: usize = 64;
/// How long a client tries to connect.
const CONNECT_FOR: Duration = Duration::from_secs(10);
/// Time limit of an attempt, shorter than TCP's own first retries together.
const CONNECT_ATTEMPT: Duration = Duration::from_secs(2);

/// Serves until a signal ends the process.
pub fn serve(bind: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(bind)?;
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, or the peer has left: neither ends the service.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let count = Arc::clone(&open);
        std::thread::spawn(move || {
            // The client is gone or speaks another protocol; either way the connection is closed.
            let _ = answer(stream);
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0u8; REQUEST_BYTES];
    let mut value = Vec::new();
    loop {
        stream.read_exact(&mut request)?;
        let size = u32::from_be_bytes([request[4], request[5], request[6], request[7]]);
        if request[..4] != MAGIC || size > VALUE_MAX_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        value.clear();
        value.resize(size as usize, request[8]);
        stream.write_all(&value)?;
    }
}

/// Results of one connection of the client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ValueReport {
    /// Size of the values.
    pub value_bytes: u32,
    /// Requests answered.
    pub completed: u64,
    /// Requests of the window without a response at the end (0 or 1). Each counts with the window's length.
    pub unfinished: u64,
    /// 50th percentile of the latency.
    pub p50_us: f64,
    /// 99th percentile of the latency.
    pub p99_us: f64,
    /// 99.9th percentile of the latency.
    pub p999_us: f64,
    /// Points of the distribution: latency in µs, share of requests at or below it.
    pub cdf: Vec<(f64, f64)>,
}

/// Results of the client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientReport {
    /// One entry for each size.
    pub values: Vec<ValueReport>,
    /// The connections' congestion control.
    pub tcp: String,
}

/// When the client sends requests, and which of them count.
#[derive(Clone, Copy, Debug)]
pub struct ClientSpan {
    /// The whole time. The load on the network is the same throughout.
    pub span: Span,
    /// The measured part. A request counts if it ended after the start and began before the end of it.
    pub window: Span,
}

/// Requests values of each size from `to`. Connects and sends one request now, waits until the span starts,
/// then keeps one request in flight on each connection until it is over.
pub fn client(to: SocketAddr, value_bytes: &[u32], when: ClientSpan) -> io::Result<ClientReport> {
    let threads: Vec<_> =
        value_bytes.iter().map(|&size| std::thread::spawn(move || one_connection(to, size, when))).collect();
    let (mut values, mut tcp) = (Vec::new(), String::new());
    for thread in threads {
        let (value, used) = thread.join().map_err(|_| io::Error::other("a client thread panicked"))??;
        values.push(value);
        tcp = used;
    }
    Ok(ClientReport { values, tcp })
}

fn one_connection(to: SocketAddr, size: u32, when: ClientSpan) -> io::Result<(ValueReport, String)> {
    let mut stream = connect(to)?;
    stream.set_nodelay(true)?;
    let mut request = [b'k'; REQUEST_BYTES];
    request[..4].copy_from_slice(&MAGIC);
    request[4..8].copy_from_slice(&size.to_be_bytes());
    let mut value = vec![0u8; size as usize];

    // The connection and the neighbours' addresses are known before the measurement.
    stream.write_all(&request)?;
    if !read_until(&mut stream, &mut value, sys::monotonic_ns() + CONNECT_FOR.as_nanos() as u64)? {
        return Err(io::Error::new(ErrorKind::TimedOut, "the server accepted but did not answer"));
    }

    sys::sleep_until(when.span.start_ns);
    let end_ns = when.span.end_ns();
    let mut latencies = Latencies::new();
    loop {
        let asked_ns = sys::monotonic_ns();
        if asked_ns >= end_ns {
            break;
        }
        let counts = asked_ns < when.window.end_ns();
        stream.write_all(&request)?;
        if !read_until(&mut stream, &mut value, end_ns)? {
            if counts {
                latencies.unfinished(sys::monotonic_ns() - asked_ns, when.window.duration_ns);
            }
            break;
        }
        let done_ns = sys::monotonic_ns();
        if counts && done_ns >= when.window.start_ns {
            latencies.completed(done_ns - asked_ns);
        }
    }
    Ok((latencies.report(size), sys::congestion_control(&stream)))
}

pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let give_up_ns = sys::monotonic_ns() + CONNECT_FOR.as_nanos() as u64;
    loop {
        match TcpStream::connect_timeout(&to, CONNECT_ATTEMPT) {
            Ok(stream) => return Ok(stream),
            Err(error) if sys::monotonic_ns() >= give_up_ns => return Err(error),
            // The server may still be starting, or an address be unknown yet.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Fills `value`. Returns false if the time is over first.
pub(crate) fn read_until(stream: &mut TcpStream, value: &mut [u8], until_ns: u64) -> io::Result<bool> {
    let mut filled = 0;
    while filled < value.len() {
        let left_ns = until_ns.saturating_sub(sys::monotonic_ns());
        if left_ns == 0 {
            return Ok(false);
        }
        // With a timeout below a microsecond the kernel would wait forever.
        stream.set_read_timeout(Some(Duration::from_nanos(left_ns.max(1_000))))?;
        match stream.read(&mut value[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => filled += length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Latencies of one connection.
struct Latencies {
    histogram: Histogram,
    completed: u64,
    unfinished: u64,
}

impl Latencies {
    fn new() -> Latencies {
        Latencies { histogram: Histogram::new(), completed: 0, unfinished: 0 }
    }

    fn completed(&mut self, latency_ns: u64) {
        self.completed += 1;
        self.histogram.record(latency_ns);
    }

    fn unfinished(&mut self, waited_ns: u64, window_ns: u64) {
        self.unfinished += 1;
        self.histogram.record(waited_ns.max(window_ns));
    }

    fn report(&self, value_bytes: u32) -> ValueReport {
        let quantile_us = |q: f64| self.histogram.at(q) as f64 / 1e3;
        ValueReport {
            value_bytes,
            completed: self.completed,
            unfinished: self.unfinished,
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            p999_us: quantile_us(0.999),
            cdf: cdf(&self.histogram),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_recorded_latencies() {
        let mut latencies = Latencies::new();
        for us in 1..=1_000 {
            latencies.completed(us * 1_000);
        }
        let report = latencies.report(1_024);
        assert!((report.p50_us - 500.0).abs() < 2.0, "{report:?}");
        assert!((report.p99_us - 990.0).abs() < 2.0, "{report:?}");
        assert!((report.p999_us - 999.0).abs() < 2.0, "{report:?}");
        assert_eq!(report.cdf.last().unwrap().1, 1.0);
        assert!(report.cdf.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
    }

    #[test]
    fn an_unfinished_request_counts_as_the_whole_window() {
        let mut latencies = Latencies::new();
        for _ in 0..10 {
            latencies.completed(1_000_000);
        }
        latencies.unfinished(3, 6_000_000_000);
        let report = latencies.report(4_096);
        assert_eq!((report.completed, report.unfinished), (10, 1));
        assert!(report.p99_us > 5_990_000.0, "{report:?}");
        assert!(report.p50_us < 1_100.0);
    }

    #[test]
    fn no_request_at_all_is_zero_everywhere() {
        let report = Latencies::new().report(1);
        assert_eq!((report.completed, report.p99_us, report.cdf.len()), (0, 0.0, 0));
    }

    fn server() -> SocketAddr {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = probe.local_addr().unwrap();
        drop(probe);
        std::thread::spawn(move || serve(address));
        address
    }

    #[test]
    fn client_and_server_speak_for_the_given_time() {
        let to = server();
        let span = Span { start_ns: sys::monotonic_ns() + 100_000_000, duration_ns: 300_000_000 };
        let window = Span { start_ns: span.start_ns + 100_000_000, duration_ns: 100_000_000 };
        let report = client(to, &[1_024, 4_096], ClientSpan { span, window }).unwrap();
        assert_eq!(report.values.len(), 2);
        assert!(!report.tcp.is_empty());
        for value in &report.values {
            assert!(value.completed > 10, "{value:?}");
            assert_eq!(value.unfinished, 0, "a request that straddles the window's end still ends");
            assert!(value.p50_us > 0.0 && value.p50_us <= value.p99_us && value.p99_us <= value.p999_us);
        }
        assert!(sys::monotonic_ns() >= span.end_ns());
    }

    #[test]
    fn the_server_closes_on_nonsense_and_goes_on_serving() {
        let to = server();
        let mut stream = connect(to).unwrap();
        stream.write_all(&[0xff; REQUEST_BYTES]).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0);
        let span = Span { start_ns: 0, duration_ns: 0 };
        let report = client(to, &[16], ClientSpan { span, window: span }).unwrap();
        assert_eq!(report.values[0].completed, 0);
    }

    #[test]
    fn a_server_that_falls_silent_leaves_one_unfinished_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; REQUEST_BYTES];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(&[0; 16]).unwrap();
            std::thread::sleep(Duration::from_secs(5));
        });
        let span = Span { start_ns: sys::monotonic_ns(), duration_ns: 2_000_000_000 };
        let window = Span { duration_ns: 100_000_000, ..span };
        let report = client(to, &[16], ClientSpan { span, window }).unwrap();
        assert_eq!((report.values[0].completed, report.values[0].unfinished), (0, 1));
        assert!(report.values[0].p50_us >= 1_000_000.0, "it waited longer than the window");
    }
}
