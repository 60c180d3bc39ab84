//! A host's statistics for Prometheus. The thread that counts renders the page every second, so a scrape never
//! delays it.

use p4rack_fabric::{Endpoint, HostMachine as _, Paths};
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

/// An agent's statistics. With several switches, figures of a machine name its switch, from 1.
pub(crate) fn exposition(host: &str, paths: &Paths, links_gone: u64) -> String {
    let machines = paths.machines();
    let names: Vec<String> = (1..=machines.len()).map(|nth| nth.to_string()).collect();
    let own = |nth: usize| -> Vec<(&str, &str)> {
        let switch = (machines.len() > 1).then(|| ("switch", names[nth].as_str()));
        std::iter::once(("host", host)).chain(switch).collect()
    };
    let mut text = Exposition::default();
    let mut family = |name: &str, label: &str, help: &str, values: Vec<Vec<(&'static str, u64)>>| {
        text.family(name, help, "counter");
        for (nth, values) in values.into_iter().enumerate() {
            for (what, count) in values {
                let labels: Vec<_> = own(nth).into_iter().chain([(label, what)]).collect();
                text.sample(name, &labels, count as f64);
            }
        }
    };
    let events = machines.iter().map(Endpoint::counters).collect();
    family("p4rack_host_events_total", "event", "Events of the endpoint", events);
    let drops = machines.iter().map(|machine| machine.stats().drops().collect()).collect();
    family("p4rack_host_dropped_frames_total", "reason", "Frames dropped, by reason", drops);
    if let Some(counters) = paths.counters() {
        let name = "p4rack_host_copies_total";
        text.family(name, "Frames that go over all switches, and their copies", "counter");
        for (what, count) in counters.iter() {
            text.sample(name, &[("host", host), ("event", what)], count as f64);
        }
    }
    let name = "p4rack_host_links_gone_total";
    text.family(name, "Interfaces that have vanished", "counter");
    text.sample(name, &[("host", host)], links_gone as f64);
    let mut gauge = |name: &str, help: &str, values: Vec<f64>| {
        text.family(name, help, "gauge");
        for (nth, value) in values.into_iter().enumerate() {
            text.sample(name, &own(nth), value);
        }
    };
    let each = |of: &dyn Fn(&Endpoint) -> f64| machines.iter().map(of).collect::<Vec<f64>>();
    gauge(
        "p4rack_host_backlog_frames",
        "Frames waiting to be sent",
        each(&|one| one.backlog_frames() as f64),
    );
    let longest = each(&|one| one.stats().queue_max_frames as f64);
    gauge("p4rack_host_queue_max_frames", "Maximum frames that waited", longest);
    for (at, (name, _)) in machines[0].delays().into_iter().enumerate() {
        let help = "Since the start: request to grant, and frames later than their slot";
        for (percent, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            // All machines have the same delays.
            let seconds = each(&|one| one.delays()[at].1.quantile(quantile).0 as f64 / 1e9);
            gauge(&format!("p4rack_host_{name}_{percent}_seconds"), help, seconds);
        }
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_fabric::pl2::Mode;
    use p4rack_fabric::{Config, pl2};
    use p4rack_wire::{EtherType, MacAddr};

    #[test]
    fn every_reason_of_a_drop_has_a_line_with_the_hosts_name() {
        let config = pl2::Config::new(MacAddr([2, 0, 0, 0, 0, 1]), Mode::Clock, 100_000_000);
        let (config, ether_type) = (Config::Pl2(config), EtherType::PL2_DEFAULT);
        let paths = Paths::new(&config, (1, ether_type), &[], 1, Nanos::ZERO);
        let text = exposition("h1", &paths, 0);
        for (reason, _) in paths.machines()[0].stats().drops() {
            let line = format!("p4rack_host_dropped_frames_total{{host=\"h1\",reason=\"{reason}\"}} 0\n");
            assert!(text.contains(&line), "{line} in\n{text}");
        }
        assert!(text.contains("p4rack_host_backlog_frames{host=\"h1\"} 0\n"), "{text}");
        let text = exposition("h1", &Paths::new(&config, (2, ether_type), &[], 1, Nanos::ZERO), 1);
        for line in [
            "p4rack_host_backlog_frames{host=\"h1\",switch=\"2\"} 0\n",
            "p4rack_host_copies_total{host=\"h1\",event=\"first\"} 0\n",
            "p4rack_host_links_gone_total{host=\"h1\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
