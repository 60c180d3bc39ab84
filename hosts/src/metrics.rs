//! A host's statistics for Prometheus. The thread that counts renders the page every second, so a scrape never
//! delays it.

use p4rack_fabric::{Endpoint, HostMachine as _};
use p4rack_netdev::clock;
use p4rack_netdev::exporter::{self, Exposition};
use p4rack_wire::Nanos;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum age of the page.
const AGE: Nanos = Nanos::from_secs(1);

/// The page of metrics.
#[derive(Debug)]
pub(crate) struct Page {
    text: Arc<Mutex<String>>,
    due: Nanos,
}

impl Page {
    /// Serves the page at an address.
    pub fn serve(addr: SocketAddr) -> io::Result<Page> {
        let text = Arc::new(Mutex::new(String::new()));
        let served = text.clone();
        let render = move || {
            let text = served.lock().unwrap_or_else(PoisonError::into_inner);
            (!text.is_empty()).then(|| text.clone())
        };
        exporter::serve(addr, render)?;
        Ok(Page { text, due: clock::now() })
    }

    /// Time at which the page is to be rendered again.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// Renders the page if it is due.
    pub fn update(&mut self, now: Nanos, render: impl FnOnce() -> String) {
        if now >= self.due {
            self.due = now + AGE;
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = render();
        }
    }
}

/// An agent's statistics.
pub(crate) fn exposition(host: &str, endpoint: &Endpoint) -> String {
    let stats = endpoint.stats();
    let mut text = Exposition::default();
    let mut family = |name: &str, label: &str, help: &str, values: Vec<(&'static str, u64)>| {
        text.family(name, help, "counter");
        for (what, count) in values {
            text.sample(name, &[("host", host), (label, what)], count as f64);
        }
    };
    family("p4rack_host_events_total", "event", "Events of the endpoint", endpoint.counters());
    family(
        "p4rack_host_dropped_frames_total",
        "reason",
        "Frames dropped, by reason",
        stats.drops().collect(),
    );
    let mut gauge = |name: &str, help: &str, value: f64| {
        text.family(name, help, "gauge");
        text.sample(name, &[("host", host)], value);
    };
    gauge("p4rack_host_backlog_frames", "Frames waiting to be sent", endpoint.backlog_frames() as f64);
    gauge("p4rack_host_queue_max_frames", "Maximum frames that waited", stats.queue_max_frames as f64);
    for (name, of) in endpoint.delays() {
        let seconds = |delay: Nanos| delay.0 as f64 / 1e9;
        let help = "Since the start: request to grant, and frames later than their slot";
        gauge(&format!("p4rack_host_{name}_p50_seconds"), help, seconds(of.quantile(0.5)));
        gauge(&format!("p4rack_host_{name}_p99_seconds"), help, seconds(of.quantile(0.99)));
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_fabric::pl2::Mode;
    use p4rack_fabric::{Config, pl2};
    use p4rack_wire::MacAddr;

    #[test]
    fn every_reason_of_a_drop_has_a_line_with_the_hosts_name() {
        let config = pl2::Config::new(MacAddr([2, 0, 0, 0, 0, 1]), Mode::Clock, 100_000_000);
        let endpoint = Endpoint::new(Config::Pl2(config), 1, Nanos::ZERO);
        let text = exposition("h1", &endpoint);
        for (reason, _) in endpoint.stats().drops() {
            let line = format!("p4rack_host_dropped_frames_total{{host=\"h1\",reason=\"{reason}\"}} 0\n");
            assert!(text.contains(&line), "{line} in\n{text}");
        }
        assert!(text.contains("p4rack_host_backlog_frames{host=\"h1\"} 0\n"), "{text}");
    }
}
