//! The agent of one host: between a TAP interface, which applications use, and the link to the rack.
//!
//! ```text
//! applications ─ TCP/UDP/raw ─ TAP ─▶ ┌───────┐ ─▶ raw socket ─ link ─ switch
//!                                  ◀─ │ Paths │ ◀─
//!                                     └───────┘ ⇄  … one for each switch of the rack
//! ```
//!
//! One thread. All queues are the machines', bounded there; the agent holds nothing but one batch.
//! If the agent is too slow, the kernel drops frames and counts them; the agent reports the count.

use crate::metrics::{self, Page};
use crate::report::{EndpointReport, LinkReport, PathReport, Report, TapReport};
use p4rack_fabric::common::{ConfigError, Delay};
use p4rack_fabric::{Config, Endpoint, Event, HostMachine as _, Paths};
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
    /// Interfaces to the rack, one for each of its switches. The agent takes exclusive use of them.
    pub interfaces: Vec<String>,
    /// With several switches: EtherType of the sequence numbers of frames.
    pub sequence_ether_type: EtherType,
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
    /// No interface is named.
    #[error("no interface is named: a host has a link to each switch of its rack")]
    NoInterface,
    /// The link's interface disappeared; of several, the last one.
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
    /// Links whose interface vanished.
    pub links_gone: u64,
}

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    pub(crate) config: AgentConfig,
    pub(crate) paths: Paths,
    /// By interface.
    pub(crate) sockets: Vec<PacketSocket>,
    /// Sockets whose interface has vanished.
    gone: Vec<bool>,
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
    /// Opens the links and creates the TAP in the calling thread's network namespace. `signals` must have been
    /// taken before other threads started.
    pub fn start(config: AgentConfig, signals: Signals) -> Result<Agent, AgentError> {
        config.endpoint.check()?;
        let mut links = Links::open()?;
        let mtu = config.endpoint.station().mtu as u32;
        let frames = config.spoken_beside.map_or(Frames::All, Frames::Except);
        let mut sockets = Vec::new();
        for interface in &config.interfaces {
            let stayed = links.make_pipe(interface, mtu + LINK_ROOM)?;
            if !stayed.is_empty() {
                tracing::warn!(interface, ?stayed, "offloads that could not be switched off");
            }
            sockets.push(PacketSocket::open(interface, &Options { frames, ..Options::default() })?);
        }
        if sockets.is_empty() {
            return Err(AgentError::NoInterface);
        }
        let tap = create_tap(&config, &mut links, mtu)?;
        let started = clock::now();
        let serve = |addr| Page::serve(addr).map_err(|error| AgentError::Metrics(addr, error));
        let metrics = config.metrics_addr.map(serve).transpose()?;
        let peers: Vec<MacAddr> = config.neighbours.iter().map(|(_, mac)| *mac).collect();
        let switches = (sockets.len(), config.sequence_ether_type);
        Ok(Agent {
            paths: Paths::new(&config.endpoint, switches, &peers, config.seed, started),
            gone: vec![false; sockets.len()],
            sockets,
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
        let links = self.sockets.iter().map(|socket| poller.add(socket));
        let links = links.collect::<io::Result<Vec<usize>>>().map_err(AgentError::Wait)?;
        let tap = poller.add(&self.tap).map_err(AgentError::Wait)?;
        let signals = poller.add(&self.signals).map_err(AgentError::Wait)?;
        loop {
            let until = self.paths.next_timeout();
            let page = self.metrics.as_ref().map(Page::due);
            poller.wait(until.into_iter().chain(page).min()).map_err(AgentError::Wait)?;
            let now = clock::now();
            if let Some(page) = &mut self.metrics {
                page.update(now, || {
                    metrics::exposition(&self.config.name, &self.paths, self.counters.links_gone)
                });
            }
            self.counters.wakeups += 1;
            if let Some(until) = until.filter(|until| *until <= now) {
                if !(links.iter().any(|link| poller.ready(*link)) || poller.ready(tap)) {
                    self.wake_late.record(now - until, now);
                }
                self.paths.handle_timeout(now);
            }
            // Links come first: a grant that waits costs slots, an application's frame does not.
            for (nth, link) in links.iter().enumerate() {
                if poller.ready(*link) {
                    self.read_link(nth)?;
                }
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

    fn read_link(&mut self, nth: usize) -> Result<(), AgentError> {
        let paths = &mut self.paths;
        match self.sockets[nth].receive(|frame, at| paths.handle_link(nth, frame, at, clock::now())) {
            Ok(_) => Ok(()),
            // A link that is down comes back; one that is gone does not.
            Err(_) if self.links.exists(&self.config.interfaces[nth]) => {
                self.counters.read_errors += 1;
                Ok(())
            }
            // It was reported.
            Err(_) if std::mem::replace(&mut self.gone[nth], true) => Ok(()),
            Err(_) => {
                self.counters.links_gone += 1;
                let interface = &self.config.interfaces[nth];
                if self.counters.links_gone == self.sockets.len() as u64 {
                    return Err(AgentError::LinkGone(interface.clone()));
                }
                tracing::warn!(
                    interface,
                    "the interface vanished; the other switch has a copy of each frame"
                );
                Ok(())
            }
        }
    }

    fn read_tap(&mut self) {
        for _ in 0..TAP_BATCH {
            match self.tap.receive(&mut self.tap_frame) {
                Ok(Some(length)) => self.paths.handle_app(&self.tap_frame[..length], clock::now()),
                Ok(None) => return,
                Err(_) => {
                    self.counters.read_errors += 1;
                    return;
                }
            }
        }
    }

    /// Sends everything that the machines have ready.
    fn drain(&mut self) {
        for (nth, socket) in self.sockets.iter_mut().enumerate() {
            while self.paths.poll_link(nth, clock::now(), &mut self.frame) {
                socket.send(&mut self.frame);
            }
            socket.flush();
        }
        while self.paths.poll_app(&mut self.frame) {
            if self.tap.send(&self.frame).is_err() {
                self.counters.tap_refused += 1;
            }
        }
        while let Some(event) = self.paths.poll_event(clock::now()) {
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
        let machines = self.paths.machines().iter().map(of_machine);
        let mut endpoints = machines.collect::<Vec<_>>().into_iter();
        let mut links = Vec::new();
        for (interface, socket) in self.config.interfaces.iter().zip(&mut self.sockets) {
            links.push(LinkReport {
                interface: interface.clone(),
                socket: socket.stats(),
                receive_buffer_bytes: socket.receive_buffer_bytes() as u64,
                kernel: self.links.get(interface).ok(),
            });
        }
        let mut links = links.into_iter();
        // There is a link at least, and a machine for each.
        let (endpoint, link) = (endpoints.next().unwrap_or_default(), links.next().unwrap_or_default());
        let more = endpoints.zip(links).map(|(endpoint, link)| PathReport { endpoint, link }).collect();
        let copies = self.paths.counters();
        let copies =
            copies.map(|counters| counters.iter().map(|(name, count)| (name.to_owned(), count)).collect());
        let first = &self.paths.machines()[0];
        Report {
            host: self.config.name.clone(),
            mac: first.station().mac.to_string(),
            scheme: first.scheme().to_owned(),
            running_ns: clock::now().saturating_sub(self.started).0,
            cpu_ns: clock::thread_cpu().0,
            wakeups: self.counters.wakeups,
            wake_late: (&self.wake_late).into(),
            scheduling: self.granted,
            congestion_control: link::sysctl("ipv4/tcp_congestion_control").ok(),
            read_errors: self.counters.read_errors,
            links_gone: self.counters.links_gone,
            endpoint,
            link,
            more,
            copies,
            tap: TapReport {
                interface: self.config.tap.clone(),
                kernel: self.links.get(&self.config.tap).ok(),
                refused: self.counters.tap_refused,
            },
        }
    }
}

/// Statistics of a machine.
fn of_machine(endpoint: &Endpoint) -> EndpointReport {
    let (stats, delays) = (endpoint.stats(), endpoint.delays());
    let delay = |name| delays.iter().find(|(known, _)| *known == name).map(|(_, of)| (*of).into());
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    EndpointReport {
        counters: endpoint.counters().into_iter().map(named).collect(),
        drops: stats.drops().map(named).collect(),
        app_frames_dropped: stats.app_frames_dropped(),
        rsv_grt: delay("rsv_grt"),
        lateness: delay("lateness"),
        queue_max_frames: stats.queue_max_frames,
        backlog_frames: endpoint.backlog_frames() as u64,
    }
}
