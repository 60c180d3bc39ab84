//! A memory node on a link.

use super::port::{EdmPort, EdmPortError, PortConfig, PortStats};
use crate::outlet::{Outlet, OutletError};
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::memory::{self, Config, Region};
use p4rack_netdev::exporter::Exposition;
use p4rack_netdev::sched::{self, Granted};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Configuration of a memory node.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Name of the host, for reports.
    pub name: String,
    /// Its link.
    pub port: PortConfig,
    /// Its node: chunks and limits.
    pub node: Config,
    /// File to which statistics are written at the end and on SIGUSR1.
    pub stats_file: Option<PathBuf>,
    /// Address at which to serve metrics for Prometheus.
    pub metrics_addr: Option<SocketAddr>,
}

/// Why a memory node did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The link failed.
    #[error(transparent)]
    Port(#[from] EdmPortError),
    /// Regions overlap, or extend beyond the last address.
    #[error("{0}")]
    Regions(String),
    /// Its counters can't be written.
    #[error(transparent)]
    Outlet(#[from] OutletError),
}

/// Statistics of a memory node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Name of the host.
    pub host: String,
    /// Uptime of the node.
    pub running_ns: u64,
    /// Processor time of its thread.
    pub cpu_ns: u64,
    /// Scheduling that the kernel granted; `None` before the loop starts.
    #[serde(deserialize_with = "Option::deserialize")]
    pub scheduling: Option<Granted>,
    /// Events of the node by name.
    pub counters: BTreeMap<String, u64>,
    /// Refused requests by reason, including zeros.
    pub refused: BTreeMap<String, u64>,
    /// The link.
    pub port: PortStats,
}

/// A number unlike those of all sessions with messages in flight: time in milliseconds. A requester opens fewer sessions than one
/// per millisecond, and numbers come round again after 65 s.
fn first_session() -> u16 {
    (clock::now().0 / 1_000_000) as u16
}

/// A memory node that offers regions.
#[derive(Debug)]
pub struct Server<B> {
    config: ServerConfig,
    node: memory::MemoryNode<B>,
    port: EdmPort,
    outlet: Outlet,
    started: Nanos,
    granted: Option<Granted>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + Send> Server<B> {
    /// Opens the link in the calling thread's network namespace.
    ///
    /// Errors: there is no such interface, no permission, another program on this host runs a node on it; regions overlap.
    pub fn open(config: ServerConfig, regions: Vec<Region<B>>) -> Result<Server<B>, ServerError> {
        let node_config = Config { first_session: first_session(), ..config.node.clone() };
        let node = memory::MemoryNode::new(node_config, regions).map_err(ServerError::Regions)?;
        let port = EdmPort::open(config.port.clone())?;
        let outlet = Outlet::open(config.stats_file.clone(), config.metrics_addr)?;
        Ok(Server { config, node, port, outlet, started: clock::now(), granted: None })
    }

    /// Serves on the calling thread until SIGTERM or SIGINT, with real-time priority if permitted, then writes the statistics.
    pub fn run(mut self, signals: &Signals) -> Result<(), ServerError> {
        let granted = *self.granted.insert(sched::prompt(sched::HOST_PRIORITY));
        tracing::info!(host = self.config.name, %granted, "memory node");
        let ended = self.serve(signals);
        let written = self.write_stats();
        ended.and(written)
    }

    fn serve(&mut self, signals: &Signals) -> Result<(), ServerError> {
        let mut poller = Poller::new();
        let links = self.port.watch(&mut poller)?;
        let ends = poller.add(signals).map_err(EdmPortError::Wait)?;
        loop {
            let call = self.node.next_call(self.port.free_at());
            poller.wait(call.into_iter().chain(self.outlet.due()).min()).map_err(EdmPortError::Wait)?;
            for (nth, link) in links.iter().enumerate() {
                if poller.ready(*link) {
                    self.port.receive(nth, &mut self.node)?;
                }
            }
            let now = clock::now();
            self.port.drain(&mut self.node, now);
            self.outlet.update(now, || exposition(&self.config.name, &self.node));
            if poller.ready(ends) {
                match signals.next() {
                    Some(Signal::End) => return Ok(()),
                    Some(Signal::Report) => self.write_stats()?,
                    None => {}
                }
            }
        }
    }

    /// The regions with their current contents.
    pub fn regions(&self) -> &[Region<B>] {
        self.node.regions()
    }

    fn write_stats(&mut self) -> Result<(), ServerError> {
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let port = self.port.stats();
        let report = || ServerReport {
            host: self.config.name.clone(),
            running_ns: clock::now().saturating_sub(self.started).0,
            cpu_ns: clock::thread_cpu().0,
            scheduling: self.granted,
            counters: self.node.counters().named().into_iter().map(named).collect(),
            refused: refused(&self.node).into_iter().map(named).collect(),
            port,
        };
        Ok(self.outlet.write(report)?)
    }
}

/// Refused requests by reason.
fn refused<B: AsRef<[u8]> + AsMut<[u8]>>(node: &memory::MemoryNode<B>) -> Vec<(&'static str, u64)> {
    let reasons = Status::ALL.into_iter().filter(|status| *status != Status::Done);
    reasons.map(|status| (status.name(), node.counters().refused[status as usize])).collect()
}

fn exposition<B: AsRef<[u8]> + AsMut<[u8]>>(host: &str, node: &memory::MemoryNode<B>) -> String {
    let mut text = Exposition::default();
    let mut family = |name: &str, label: &str, help: &str, values: Vec<(&'static str, u64)>| {
        text.family(name, help, "counter");
        for (what, count) in values {
            text.sample(name, &[("host", host), (label, what)], count as f64);
        }
    };
    let named = node.counters().named().to_vec();
    family("p4rack_memory_events_total", "event", "Events of the memory node", named);
    let help = "Requests refused, by reason";
    family("p4rack_memory_refused_total", "reason", help, refused(node));
    text.into_string()
}
