//! Metrics for Prometheus: the text format, and a server of one page.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest request taken, bytes.
const REQUEST: u64 = 8 << 10;

/// Metrics in the text exposition format.
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a metric; its samples follow.
    pub fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A value of the metric that was begun.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (position, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if position == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric of one value without labels.
    pub fn single(&mut self, name: &str, help: &str, kind: &str, value: f64) {
        self.family(name, help, kind);
        self.sample(name, &[], value);
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Serves what `render` returns under /metrics, on a thread of its own, one request after the other; the
/// address that it listens at.
pub fn serve(addr: SocketAddr, render: impl Fn() -> String + Send + 'static) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(addr)?;
    let addr = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        for connection in listener.incoming().flatten() {
            // Who asks wrongly or leaves has no one to be told.
            let _ = answer(connection, &render);
        }
    })?;
    Ok(addr)
}

fn answer(mut connection: TcpStream, render: &impl Fn() -> String) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new((&connection).take(REQUEST));
    let (mut first, mut line) = (String::new(), String::new());
    request.read_line(&mut first)?;
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match (first.split(' ').next(), path.split('?').next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", render()),
        (Some("GET"), _) => ("404 Not Found", "metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "only GET\n".into()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
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
        let addr = serve("127.0.0.1:0".parse().unwrap(), || "up 1\n".into()).unwrap();
        let page = ask(addr, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("\r\n\r\nup 1\n"), "{page}");
        assert!(ask(addr, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(addr, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(addr, "GET /metrics HTTP/1.1\r\n\r\n").contains("up 1"), "it goes on");
    }
}
