//! Metrics for Prometheus: the text format, and a server for one page.
//!
//! Each connection has a thread and a time limit. If there are too many, the oldest connection is closed in
//! favour of the newest; a client that sends its request and reads the response is done long before that.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a connection, from its first byte to the last byte of the response.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of connections.
const CONNECTIONS: usize = 32;
/// Maximum size of a request, in bytes.
const REQUEST: usize = 8 << 10;
/// Maximum number of threads. Those of closed connections may still be running.
const THREADS: usize = 2 * CONNECTIONS;
/// Stack of a connection's thread in bytes; debug builds need the most.
const STACK: usize = 256 << 10;
/// Pause after the system ran out of sockets or threads.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// How often, and after which time, a new connection looks for a thread before it is refused.
const WAITS: u32 = 500;
const WAIT: Duration = Duration::from_millis(2);

/// Metrics in the text exposition format.
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Starts a metric; its samples follow.
    pub fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the current metric.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (position, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if position == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric with a single sample without labels.
    pub fn single(&mut self, name: &str, help: &str, kind: &str, value: f64) {
        self.family(name, help, kind);
        self.sample(name, &[], value);
    }

    /// The page as text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Open connections, oldest first, and the number of those closed before they got their response.
#[derive(Debug, Default)]
struct Guests {
    open: Mutex<VecDeque<(u64, TcpStream)>>,
    threads: AtomicUsize,
    ended: AtomicU64,
}

impl Guests {
    fn open(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        // Each change is a single call of the queue, so a panic elsewhere leaves it consistent.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If there are too many, closes the oldest.
    fn enter(&self, number: u64, stream: TcpStream) {
        let mut open = self.open();
        if open.len() >= CONNECTIONS
            && let Some((_, oldest)) = open.pop_front()
        {
            // Its thread finds the connection closed and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        open.push_back((number, stream));
    }

    /// Counts a thread, unless there are too many.
    fn begin(&self) -> bool {
        let more = |threads| (threads < THREADS).then_some(threads + 1);
        self.threads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn end(&self) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    fn leave(&self, number: u64) {
        self.open().retain(|(other, _)| *other != number);
    }
}

/// Serves the result of `render` under /metrics, on threads of its own. Returns the address on which it
/// listens. If `render` returns nothing, because the measured thing has not started or has ended, the
/// response is 503.
pub fn serve(
    addr: SocketAddr,
    render: impl Fn() -> Option<String> + Send + 'static,
) -> io::Result<SocketAddr> {
    serve_within(PATIENCE, addr, render)
}

fn serve_within(
    patience: Duration,
    addr: SocketAddr,
    render: impl Fn() -> Option<String> + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(addr)?;
    let addr = listener.local_addr()?;
    let (render, guests) = (Arc::new(Mutex::new(render)), Arc::new(Guests::default()));
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        for (number, connection) in (0u64..).zip(listener.incoming()) {
            // Threads whose connections were closed end as soon as they run.
            let begun = guests.begin()
                || (0..WAITS).any(|_| {
                    std::thread::sleep(WAIT);
                    guests.begin()
                });
            if !begun {
                guests.ended.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let entered = connection.and_then(|connection| {
                guests.enter(number, connection.try_clone()?);
                Ok(connection)
            });
            let Ok(connection) = entered else {
                guests.end();
                std::thread::sleep(EXHAUSTED);
                continue;
            };
            let (render, own) = (render.clone(), guests.clone());
            let answering = std::thread::Builder::new().name("metrics-page".into()).stack_size(STACK);
            let answering = answering.spawn(move || {
                let page = || {
                    // The thread only reads.
                    let text = render.lock().unwrap_or_else(PoisonError::into_inner)()?;
                    let mut end = Exposition(text);
                    let ended = own.ended.load(Ordering::Relaxed) as f64;
                    end.single(
                        ENDED,
                        "Connections to this page that had no answer in time",
                        "counter",
                        ended,
                    );
                    Some(end.into_string())
                };
                if answer(connection, page, Instant::now() + patience).is_err() {
                    own.ended.fetch_add(1, Ordering::Relaxed);
                }
                own.leave(number);
                own.end();
            });
            if answering.is_err() {
                guests.end();
                guests.leave(number);
                std::thread::sleep(EXHAUSTED);
            }
        }
    })?;
    Ok(addr)
}

/// Counter of connections that were too slow, malformed, or too many.
const ENDED: &str = "p4rack_metrics_connections_ended_total";

/// Time left; an error if there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn answer(mut connection: TcpStream, page: impl Fn() -> Option<String>, until: Instant) -> io::Result<()> {
    let mut request = Vec::with_capacity(512);
    let mut part = [0; 512];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        connection.set_read_timeout(Some(left(until)?))?;
        match connection.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&part[..count]),
        }
        if request.len() > REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let first = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = first.split(|byte| *byte == b' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split(|byte| *byte == b'?').next()) {
        (Some(b"GET"), Some(b"/metrics")) => match page() {
            Some(page) => ("200 OK", page),
            None => ("503 Service Unavailable", "no measurement is running\n".into()),
        },
        (Some(b"GET"), _) => ("404 Not Found", "metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "only GET\n".into()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        connection.set_write_timeout(Some(left(until)?))?;
        match connection.write(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => rest = &rest[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(addr: SocketAddr, request: &str) -> String {
        let mut connection = TcpStream::connect(addr).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = Exposition::default();
        text.family("drops_total", "Frames dropped", "counter");
        text.sample("drops_total", &[("port", "1"), ("reason", "a\"b\\c")], 3.0);
        text.single("up", "Whether it runs", "gauge", 1.0);
        assert_eq!(
            text.into_string(),
            "# HELP drops_total Frames dropped\n# TYPE drops_total counter\n\
             drops_total{port=\"1\",reason=\"a\\\"b\\\\c\"} 3\n# HELP up Whether it runs\n# TYPE up gauge\nup 1\n"
        );
    }

    #[test]
    fn one_page_is_served() {
        let addr = serve("127.0.0.1:0".parse().unwrap(), || Some("up 1\n".into())).unwrap();
        let page = ask(addr, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("\r\n\r\nup 1\n# HELP"), "{page}");
        assert!(page.ends_with("\np4rack_metrics_connections_ended_total 0\n"), "{page}");
        assert!(ask(addr, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(addr, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(addr, "GET /metrics HTTP/1.1\r\n\r\n").contains("up 1"), "it goes on");
    }

    #[test]
    fn without_anything_to_tell_there_is_no_page() {
        let addr = serve("127.0.0.1:0".parse().unwrap(), || None).unwrap();
        assert!(ask(addr, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
    }

    #[test]
    fn threads_have_a_limit() {
        let guests = Guests::default();
        assert_eq!((0..2 * THREADS).filter(|_| guests.begin()).count(), THREADS);
        guests.end();
        assert!(guests.begin() && !guests.begin());
    }

    /// A response that is larger than socket buffers.
    fn large() -> Option<String> {
        Some("up 1\n".repeat(2 << 20))
    }

    /// Sends a request and reads nothing of the response.
    fn never_read(addr: SocketAddr) -> TcpStream {
        let mut connection = TcpStream::connect(addr).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        connection
    }

    /// Waits until the server closes a connection that never sends a complete request.
    fn ended(mut connection: TcpStream) {
        connection.set_nonblocking(true).unwrap();
        loop {
            // Never silent for long, and never finished.
            let sent = connection.write_all(b"G");
            match connection.read(&mut [0; 8]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent.is_ok() => {}
                _ => return,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn who_is_slow_keeps_nobody_waiting() {
        // No connection is closed for being slow during this test.
        let addr = serve_within(Duration::from_secs(600), "127.0.0.1:0".parse().unwrap(), large).unwrap();
        let slow: Vec<TcpStream> = (0..4).map(|_| never_read(addr)).collect();
        let silent: Vec<TcpStream> =
            (0..2 * CONNECTIONS).map(|_| TcpStream::connect(addr).unwrap()).collect();
        for _ in 0..3 {
            assert!(ask(addr, "GET /nowhere HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        }
        // The oldest were closed in favour of the newest, and count once their threads have run.
        let ended = || {
            let page = ask(addr, "GET /metrics HTTP/1.1\r\n\r\n");
            page.rsplit(' ').next().unwrap().trim().parse::<usize>().unwrap()
        };
        let until = Instant::now() + Duration::from_secs(20);
        while ended() < CONNECTIONS {
            assert!(Instant::now() < until, "{}", ended());
        }
        drop((slow, silent));
    }

    #[test]
    fn who_is_slow_is_ended() {
        let patience = Duration::from_millis(200);
        let addr = serve_within(patience, "127.0.0.1:0".parse().unwrap(), large).unwrap();
        let began = Instant::now();
        ended(TcpStream::connect(addr).unwrap());
        assert!(began.elapsed() >= patience, "{:?}", began.elapsed());
        let mut slow = never_read(addr);
        std::thread::sleep(2 * patience);
        // The bytes in flight, and no more.
        let mut taken = Vec::new();
        let _ = slow.read_to_end(&mut taken);
        assert!(taken.len() < large().unwrap().len(), "{}", taken.len());
    }
}
