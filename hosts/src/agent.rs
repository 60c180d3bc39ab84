//! The agent of one host: between a TAP interface, which applications use, and the link to the rack.
//!
//! ```text
//! applications ─ TCP/UDP/raw ─ TAP ─▶ ┌──────────┐ ─▶ raw socket ─ link ─ switch
//!                                  ◀─ │ Endpoint │ ◀─
//!                                     └──────────┘
//! ```
//!
//! One thread. All queues are the endpoint's, bounded there; the agent holds nothing but one batch.
//! If the agent is too slow, the kernel drops frames and counts them; the agent reports the count.

use crate::metrics::{self, Page};
use crate::report::{EndpointReport, LinkReport, Report, TapReport};
use p4rack_fabric::common::{ConfigError, Delay};
use p4rack_fabric::{Config, Endpoint, Event, HostMachine as _, Machine as _};
use p4rack_netdev::packet::{Frames, Options};
use p4rack_netdev::sched::{self, Granted};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{Links, PacketSocket, Poller, Tap, clock, file, link, packet};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::Sender;

/// Frames read from the TAP before the link is polled again.
const TAP_BATCH: usize = 32;
/// Bytes that a link carries between the Ethernet header and the applications' MTU: tag, shim, and some room.
const LINK_ROOM: u32 = 4 + 8 + 18;

/// Configuration of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Name of the host, for reports.
    pub name: String,
    /// Interface to the rack. The agent takes exclusive use of it.
    pub interface: String,
    /// Name of the TAP interface to create.
    pub tap: String,
    /// The host's address and prefix length, assigned to the TAP.
    pub address: (Ipv4Addr, u8),
    /// Addresses of the other hosts, so that no ARP requests are needed.
    pub neighbours: Vec<(Ipv4Addr, MacAddr)>,
    /// Parameters of the scheme.
    pub endpoint: Config,
    /// EtherType of frames that other programs on this host exchange over the same link. The agent never sees them.
    pub spoken_beside: Option<EtherType>,
    /// Seed of sequence numbers and reservation ids.
    pub seed: u64,
    /// File to which statistics are written at the end and on SIGUSR1.
    pub stats_file: Option<PathBuf>,
    /// Address at which to serve metrics for Prometheus.
    pub metrics_addr: Option<SocketAddr>,
    /// Receives the address of each sender that was granted slots to this host and fell silent. Once the
    /// other end is gone, nothing more is sent.
    pub silent: Option<Sender<MacAddr>>,
}

/// Why an agent did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The protocol's parameters are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device could not be opened.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// The link's interface disappeared.
    #[error("interface `{0}` vanished: the other end was removed, or the switch's namespace ended")]
    LinkGone(String),
    /// Waiting for events failed.
    #[error("waiting for packets: {0}")]
    Wait(io::Error),
    /// The metrics cannot be served.
    #[error("serving metrics at {0}: {1}")]
    Metrics(SocketAddr, io::Error),
    /// The statistics cannot be written.
    #[error("--stats: {file}: {1}", file = .0.display())]
    Stats(PathBuf, io::Error),
}

/// Counters of the agent itself; endpoint and kernel have their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Number of times the loop woke up.
    pub wakeups: u64,
    /// Frames that the system did not accept from the TAP.
    pub tap_refused: u64,
    /// Errors while reading the link or the TAP.
    pub read_errors: u64,
}

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    pub(crate) config: AgentConfig,
    pub(crate) endpoint: Endpoint,
    pub(crate) link: PacketSocket,
    pub(crate) links: Links,
    pub(crate) counters: Counters,
    pub(crate) granted: Option<Granted>,
    /// How late timers woke the loop.
    pub(crate) wake_late: Delay,
    pub(crate) started: Nanos,
    tap: Tap,
    signals: Signals,
    metrics: Option<Page>,
    frame: Vec<u8>,
    tap_frame: Vec<u8>,
}

impl Agent {
    /// Opens the link and creates the TAP in the calling thread's network namespace. `signals` must have been
    /// taken before other threads started.
    pub fn start(config: AgentConfig, signals: Signals) -> Result<Agent, AgentError> {
        config.endpoint.check()?;
        let mut links = Links::open()?;
        let mtu = config.endpoint.station().mtu as u32;
        let stayed = links.make_pipe(&config.interface, mtu + LINK_ROOM)?;
        if !stayed.is_empty() {
            tracing::warn!(interface = config.interface, ?stayed, "offloads that could not be switched off");
        }
        let frames = config.spoken_beside.map_or(Frames::All, Frames::Except);
        let socket = PacketSocket::open(&config.interface, &Options { frames, ..Options::default() })?;
        let tap = create_tap(&config, &mut links, mtu)?;
        let started = clock::now();
        let serve = |addr| Page::serve(addr).map_err(|error| AgentError::Metrics(addr, error));
        let metrics = config.metrics_addr.map(serve).transpose()?;
        Ok(Agent {
            endpoint: Endpoint::new(config.endpoint.clone(), config.seed, started),
            link: socket,
            links,
            counters: Counters::default(),
            granted: None,
            wake_late: Delay::new(Nanos::from_secs(1)),
            started,
            tap,
            signals,
            metrics,
            frame: Vec::with_capacity(packet::MAX_FRAME),
            tap_frame: vec![0; packet::MAX_FRAME],
            config,
        })
    }

    /// Runs on the calling thread until SIGTERM or SIGINT, with real-time priority if permitted, then writes
    /// the statistics.
    pub fn run(mut self) -> Result<(), AgentError> {
        let granted = *self.granted.insert(sched::prompt(sched::HOST_PRIORITY));
        tracing::info!(host = self.config.name, %granted, "agent");
        let ended = self.serve();
        let written = self.write_stats();
        ended.and(written)
    }

    fn serve(&mut self) -> Result<(), AgentError> {
        let mut poller = Poller::new();
        let link = poller.add(&self.link).map_err(AgentError::Wait)?;
        let tap = poller.add(&self.tap).map_err(AgentError::Wait)?;
        let signals = poller.add(&self.signals).map_err(AgentError::Wait)?;
        loop {
            let until = self.endpoint.next_timeout();
            let page = self.metrics.as_ref().map(Page::due);
            poller.wait(until.into_iter().chain(page).min()).map_err(AgentError::Wait)?;
            let now = clock::now();
            if let Some(page) = &mut self.metrics {
                page.update(now, || metrics::exposition(&self.config.name, &self.endpoint));
            }
            self.counters.wakeups += 1;
            if let Some(until) = until.filter(|until| *until <= now) {
                if !(poller.ready(link) || poller.ready(tap)) {
                    self.wake_late.record(now - until, now);
                }
                self.endpoint.handle_timeout(now);
            }
            // The link comes first: a grant that waits costs slots, an application's frame does not.
            if poller.ready(link) {
                self.read_link()?;
            }
            self.drain();
            if poller.ready(tap) {
                self.read_tap();
                self.drain();
            }
            if poller.ready(signals) {
                match self.signals.next() {
                    Some(Signal::End) => return Ok(()),
                    Some(Signal::Report) => self.write_stats()?,
                    None => {}
                }
            }
        }
    }

    fn read_link(&mut self) -> Result<(), AgentError> {
        let endpoint = &mut self.endpoint;
        match self.link.receive(|frame, at| endpoint.handle_link(frame, at, clock::now())) {
            Ok(_) => Ok(()),
            // A link that is down comes back; one that is gone does not.
            Err(_) if self.links.exists(&self.config.interface) => {
                self.counters.read_errors += 1;
                Ok(())
            }
            Err(_) => Err(AgentError::LinkGone(self.config.interface.clone())),
        }
    }

    fn read_tap(&mut self) {
        for _ in 0..TAP_BATCH {
            match self.tap.receive(&mut self.tap_frame) {
                Ok(Some(length)) => self.endpoint.handle_app(&self.tap_frame[..length], clock::now()),
                Ok(None) => return,
                Err(_) => {
                    self.counters.read_errors += 1;
                    return;
                }
            }
        }
    }

    /// Sends everything that the endpoint has ready.
    fn drain(&mut self) {
        while self.endpoint.poll_link(clock::now(), &mut self.frame).is_some() {
            self.link.send(&mut self.frame);
        }
        self.link.flush();
        while self.endpoint.poll_app(&mut self.frame) {
            if self.tap.send(&self.frame).is_err() {
                self.counters.tap_refused += 1;
            }
        }
        while let Some(event) = self.endpoint.poll_event(clock::now()) {
            let Event::SenderSilent(sender) = event;
            tracing::warn!(%sender, "fell silent with slots granted");
            if self.config.silent.as_ref().is_some_and(|silent| silent.send(sender).is_err()) {
                self.config.silent = None;
            }
        }
    }

    fn write_stats(&mut self) -> Result<(), AgentError> {
        let Some(path) = self.config.stats_file.clone() else { return Ok(()) };
        let report = self.report();
        file::write_json(&path, &report).map_err(|error| AgentError::Stats(path, error))
    }
}

fn create_tap(config: &AgentConfig, links: &mut Links, mtu: u32) -> Result<Tap, AgentError> {
    let tap = Tap::create(&config.tap)?;
    let name = tap.interface();
    // A rack uses IPv4 only; neighbour discovery would be noise on every link.
    let _ = link::set_sysctl(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
    links.set_mac(name, config.endpoint.station().mac)?;
    links.set_mtu(name, mtu)?;
    links.set_up(name)?;
    links.add_address(name, config.address.0, config.address.1)?;
    for (address, mac) in &config.neighbours {
        links.add_neighbour(name, *address, *mac)?;
    }
    Ok(tap)
}

impl Agent {
    /// The agent's current statistics.
    fn report(&mut self) -> Report {
        let stats = self.endpoint.stats();
        let delays = self.endpoint.delays();
        let delay = |name| delays.iter().find(|(known, _)| *known == name).map(|(_, of)| (*of).into());
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let endpoint = EndpointReport {
            counters: self.endpoint.counters().into_iter().map(named).collect(),
            drops: stats.drops().map(named).collect(),
            app_frames_dropped: stats.app_frames_dropped(),
            rsv_grt: delay("rsv_grt"),
            lateness: delay("lateness"),
            queue_max_frames: stats.queue_max_frames,
            backlog_frames: self.endpoint.backlog_frames() as u64,
        };
        Report {
            host: self.config.name.clone(),
            mac: self.endpoint.station().mac.to_string(),
            scheme: self.endpoint.scheme().to_owned(),
            running_ns: clock::now().saturating_sub(self.started).0,
            cpu_ns: clock::thread_cpu().0,
            wakeups: self.counters.wakeups,
            wake_late: (&self.wake_late).into(),
            scheduling: self.granted,
            congestion_control: link::sysctl("ipv4/tcp_congestion_control").ok(),
            read_errors: self.counters.read_errors,
            endpoint,
            link: LinkReport {
                interface: self.config.interface.clone(),
                socket: self.link.stats(),
                receive_buffer_bytes: self.link.receive_buffer_bytes() as u64,
                kernel: self.links.get(&self.config.interface).ok(),
            },
            tap: TapReport {
                interface: self.config.tap.clone(),
                kernel: self.links.get(&self.config.tap).ok(),
                refused: self.counters.tap_refused,
            },
        }
    }
}
