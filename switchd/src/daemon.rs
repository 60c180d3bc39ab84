//! The switch as a process: ports on interfaces, the data plane on a thread of its own, P4Runtime and
//! telemetry beside it.
//!
//! ```text
//! main thread ── starts all, waits for the data plane, then stops the servers
//!   ├─ data plane (real-time priority): packets, timers, jobs; takes SIGTERM, SIGINT, SIGUSR1
//!   └─ runtime threads: gRPC
//! ```

use crate::core::{self, Handle};
use crate::driver::{self, Driver, DriverError, IoChoice, PortSpec};
use crate::plane::{Plane, PlaneError};
use crate::server::{self, ServeError, ServerConfig, ServerTls};
use crate::wire::{WireSpec, Wires};
use crate::{metrics, telemetry};
use p4rack_entities::Candidate;
use p4rack_netdev::signal::Signals;
use p4rack_netdev::{clock, exporter, file};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::Update;
use p4rack_switch::{Config, PortConfig, Queueing, Switch, Traced};
use p4rack_wire::Nanos;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// How long a thread for long work waits for more of it before it ends.
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Configuration of the daemon.
#[derive(Clone, Debug)]
pub struct DaemonConfig {
    /// Ports and their interfaces.
    pub ports: Vec<PortSpec>,
    /// Kind of I/O of the ports.
    pub io: IoChoice,
    /// Rate of ports that `port_rates_bps` does not list; 0 is no limit.
    pub rate_bps: u64,
    /// Rates of individual ports.
    pub port_rates_bps: Vec<(u16, u64)>,
    /// Delay and loss of the links at individual ports.
    pub wires: Vec<WireSpec>,
    /// Size of the buffer that all queues share.
    pub buffer_bytes: u64,
    /// Part of the buffer that frames below the scheduled priority cannot use.
    pub reserved_bytes: u64,
    /// The order of frames in the queues of its ports.
    pub queueing: Queueing,
    /// Port for packets of the controller. `None`: it can neither send nor receive any.
    pub cpu_port: Option<u16>,
    /// The port that means "drop".
    pub drop_port: u16,
    /// Pipes with entries and cells of their own, for architectures that have several.
    pub pipes: usize,
    /// Those of them without front-panel ports: frames that leave them come in again.
    pub internal_pipes: Vec<usize>,
    /// Nanoseconds per unit of the timestamps in `standard_metadata`.
    pub time_unit_ns: u64,
    /// Time at which these timestamps are 0.
    pub clock_zero: Nanos,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Address at which P4Runtime is served.
    pub grpc_addr: SocketAddr,
    /// Address at which BFRuntime is served; `None`: it is not.
    pub bfrt_addr: Option<SocketAddr>,
    /// Encryption of P4Runtime and BFRuntime; `None` is plain text.
    pub tls: Option<ServerTls>,
    /// Whether plain text may be served to other machines.
    pub insecure: bool,
    /// Program to load at the start.
    pub program: Option<PathBuf>,
    /// Its entries.
    pub entries: Option<EntriesFile>,
    /// Folders searched for `#include <…>`.
    pub include_dirs: Vec<PathBuf>,
    /// Macros to define in it, with their values.
    pub defines: Vec<(String, String)>,
    /// Where what happens to all packets goes; `None`: nothing is traced. Packets that come faster than the receiver takes
    /// them are left out and counted.
    pub packet_log: Option<mpsc::Sender<Vec<Traced>>>,
    /// Folder for captures of all ports.
    pub captures: Option<PathBuf>,
    /// File to which statistics are written at the end and on SIGUSR1.
    pub stats_file: Option<PathBuf>,
    /// Address at which to serve metrics for Prometheus.
    pub metrics_addr: Option<SocketAddr>,
    /// Gives free memory back to the system. Threads call it when they end, after work as long as compiling a program.
    pub give_back: fn(),
}

/// A file with entries of a program, and how to read it: its formats are controllers'.
#[derive(Clone, Debug)]
pub struct EntriesFile {
    /// The file.
    pub path: PathBuf,
    /// The updates that insert its entries into a program with this P4Info. The error names the file and the place.
    pub read: fn(&Path, &P4Info) -> Result<Vec<Update>, String>,
}

/// Why the daemon did not start, or stopped.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The ports could not be opened.
    #[error(transparent)]
    Ports(#[from] DriverError),
    /// Anyone who reaches the address could take control of the switch.
    #[error(
        "{1} in plain text at {0} would let anyone who reaches that address control the switch: encrypt it with \
         --grpc-server-ssl, listen on a loopback address such as 127.0.0.1:9559, or allow it with --insecure"
    )]
    PlainText(SocketAddr, &'static str),
    /// A rate for a port that does not exist.
    #[error("--port-rate names port {0}, which no -i opens")]
    NoSuchPort(u16),
    /// Two rates for the same port.
    #[error("--port-rate is given twice for port {0}: give each port one rate")]
    RateTwice(u16),
    /// Delay or loss for the link of a port that does not exist, or twice for the same.
    #[error("--port-delay and --port-loss: port {0} {1}")]
    Wire(u16, &'static str),
    /// A port with an interface in a pipe whose ports are internal.
    #[error(
        "port {port} is in pipe {pipe}, whose ports --internal-pipes makes internal: what leaves them comes in again; \
         give its -i another number, or leave the pipe out of --internal-pipes"
    )]
    InternalPort {
        /// Its number.
        port: u16,
        /// Its pipe.
        pipe: usize,
    },
    /// The program could not be read.
    #[error("reading {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// The program was rejected, or its entries; the text says where and why.
    #[error("{0}")]
    Program(String),
    /// A device could not be opened.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
    /// The data plane failed, or a capture lacks frames.
    #[error(transparent)]
    Plane(#[from] PlaneError),
    /// The last statistics could not be written.
    #[error("--stats: {file}: {1}", file = .0.display())]
    Stats(PathBuf, io::Error),
    /// P4Runtime did not start, or failed.
    #[error("P4Runtime: {0}")]
    Server(#[source] ServeError),
}

impl From<ServeError> for DaemonError {
    fn from(error: ServeError) -> DaemonError {
        match error {
            ServeError::Entry(what) => DaemonError::Program(what),
            other => DaemonError::Server(other),
        }
    }
}

/// A switch that has started.
#[derive(Debug)]
pub struct Started {
    /// What it serves, in a line for the user.
    pub line: String,
    /// Address at which P4Runtime listens.
    pub grpc_addr: SocketAddr,
    /// Access to the switch.
    pub handle: Handle,
}

/// Runs the switch until SIGTERM or SIGINT. Calls `ready` with a line for the user when the ports are open,
/// the program runs and P4Runtime listens. Call this before the process has other threads.
// Not generic: a caller compiled for size would otherwise compile the servers, too.
pub fn run(config: DaemonConfig, ready: Box<dyn FnOnce(&str) + Send>) -> Result<(), DaemonError> {
    run_beside(config, Box::new(move |started: Started| ready(&started.line)))
}

/// Like [`run`], with a caller that serves the switch, too: from `ready` on, on threads of its own.
pub fn run_beside(config: DaemonConfig, ready: Box<dyn FnOnce(Started) + Send>) -> Result<(), DaemonError> {
    driver::check(&config.ports, config.cpu_port, config.drop_port)?;
    check_trust(&config)?;
    let switch = Switch::new(switch_config(&config)?);
    let program = config.program.as_deref().map(|path| compile(path, &config)).transpose()?;
    let entries = match (&config.entries, &program) {
        (Some(file), Some(candidate)) => {
            (file.read)(&file.path, &candidate.program.info).map_err(DaemonError::Program)?
        }
        _ => Vec::new(),
    };
    let signals = Signals::take()?;

    let system = |what| move |error| DaemonError::System(what, error);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // A single thread hands no calls to another. Several only pay off if they have processors besides the
        // data plane's.
        .worker_threads(std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 4)))
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .on_thread_stop(config.give_back)
        .enable_all()
        .build()
        .map_err(system("starting the servers' threads"))?;
    let listener = runtime.block_on(server::bind(config.grpc_addr))?;
    let grpc_addr = listener.local_addr().map_err(system("reading the address of P4Runtime"))?;
    let bfrt = config.bfrt_addr.map(|addr| runtime.block_on(server::bind(addr))).transpose()?;
    let driver = Driver::open(&config.ports, config.io, config.captures.as_deref())?;
    let wires = Wires::new(&config.wires, clock::wall_ns());
    let wire_counts = wires.counts();
    let plane = Plane::with_wires(switch, driver, wires).map_err(system("waiting for ports"))?;
    let (handle, jobs, event_sender, events) = core::channel().map_err(system("making an eventfd"))?;
    let handle = handle.sharing(plane.shared()).counting(wire_counts);
    let stats_file = config.stats_file.clone();
    let (ended, has_ended) = oneshot::channel::<()>();
    let data_plane = std::thread::Builder::new()
        .name("data-plane".to_owned())
        .spawn(move || {
            let mut written = Ok(());
            let result = plane.run(jobs, &event_sender, &signals, |report| {
                let Some(path) = &stats_file else { return };
                written = file::write_json(path, &report).map_err(|error| {
                    tracing::error!(path = %path.display(), %error, "statistics were not written");
                    DaemonError::Stats(path.clone(), error)
                });
            });
            // The servers may have ended before.
            let _ = ended.send(());
            result.map_err(DaemonError::from).and(written)
        })
        .map_err(system("starting the data plane's thread"))?;

    if let Some(addr) = config.metrics_addr {
        let (handle, threads) = (handle.clone(), runtime.handle().clone());
        // Empty statistics would look as if counters had been reset.
        let render =
            move || threads.block_on(telemetry::read(&handle)).ok().map(|stats| metrics::exposition(&stats));
        exporter::serve(addr, render).map_err(system("serving metrics"))?;
    }

    // The server checks for shutdown for the first time when it starts serving.
    let started = Started { line: ready_line(&config), grpc_addr, handle: handle.clone() };
    let shutdown = async {
        ready(started);
        let _ = has_ended.await;
    };
    let server = ServerConfig {
        cpu_port: config.cpu_port,
        program,
        entries,
        packet_log: config.packet_log.clone(),
        tls: config.tls.clone(),
        ..ServerConfig::new(config.grpc_addr, config.device_id)
    };
    runtime.block_on(server::serve_both(listener, bfrt, handle, events, server, shutdown))?;
    // Does not wait for open connections.
    runtime.shutdown_background();
    match data_plane.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Rejects serving plain text to other machines, unless permitted.
fn check_trust(config: &DaemonConfig) -> Result<(), DaemonError> {
    let bfrt = config.bfrt_addr.map(|addr| (addr, "BFRuntime"));
    for (addr, what) in [(config.grpc_addr, "P4Runtime")].into_iter().chain(bfrt) {
        if let Some(doubt) = doubt(config, addr) {
            if config.tls.is_none() && !config.insecure {
                return Err(DaemonError::PlainText(addr, what));
            }
            tracing::warn!(%addr, "{what} {doubt}: anyone who reaches this address controls the switch");
        }
    }
    Ok(())
}

/// Why strangers could take control of the switch.
fn doubt(config: &DaemonConfig, addr: SocketAddr) -> Option<&'static str> {
    // ::ffff:127.0.0.1 is this machine too.
    match &config.tls {
        _ if addr.ip().to_canonical().is_loopback() => None,
        None => Some("is in plain text"),
        Some(tls) if tls.client_ca.is_none() => {
            Some("asks its clients for no certificate (--grpc-server-with-client-auth)")
        }
        Some(_) => None,
    }
}

/// The pipe of a port.
fn pipe_of(port: u16) -> usize {
    usize::from(port >> 7)
}

fn switch_config(config: &DaemonConfig) -> Result<Config, DaemonError> {
    if let Some((port, _)) =
        config.port_rates_bps.iter().find(|(port, _)| config.ports.iter().all(|spec| spec.number != *port))
    {
        return Err(DaemonError::NoSuchPort(*port));
    }
    for (at, (port, _)) in config.port_rates_bps.iter().enumerate() {
        if config.port_rates_bps[..at].iter().any(|(other, _)| other == port) {
            return Err(DaemonError::RateTwice(*port));
        }
    }
    for (at, WireSpec { port, .. }) in config.wires.iter().enumerate() {
        if config.ports.iter().all(|spec| spec.number != *port) {
            return Err(DaemonError::Wire(*port, "is no port that an -i opens"));
        }
        if config.wires[..at].iter().any(|other| other.port == *port) {
            return Err(DaemonError::Wire(*port, "is given twice: give each port one value"));
        }
    }
    let internal = |spec: &&PortSpec| config.internal_pipes.contains(&pipe_of(spec.number));
    if let Some(PortSpec { number: port, .. }) = config.ports.iter().find(internal) {
        return Err(DaemonError::InternalPort { port: *port, pipe: pipe_of(*port) });
    }
    let rate_of = |port: u16| {
        let own = config.port_rates_bps.iter().find(|(number, _)| *number == port);
        own.map_or(config.rate_bps, |(_, rate_bps)| *rate_bps)
    };
    Ok(Config {
        ports: config.ports.iter().map(|spec| PortConfig::new(spec.number, rate_of(spec.number))).collect(),
        buffer_bytes: config.buffer_bytes,
        reserved_bytes: config.reserved_bytes,
        queueing: config.queueing,
        cpu_port: config.cpu_port,
        drop_port: config.drop_port,
        pipes: config.pipes,
        internal_pipes: config.internal_pipes.clone(),
        time_unit_ns: config.time_unit_ns,
        clock_zero: config.clock_zero,
        seed: clock::wall_ns(),
        ..Config::default()
    })
}

fn compile(path: &Path, config: &DaemonConfig) -> Result<Candidate, DaemonError> {
    let text = fs::read_to_string(path).map_err(|error| DaemonError::Unreadable(path.to_owned(), error))?;
    let (include_dirs, defines) = (config.include_dirs.clone(), config.defines.clone());
    let options = p4rack_p4::Options { include_dirs, defines };
    let refused = |message: String| {
        // The caller prints that it is an error.
        DaemonError::Program(message.strip_prefix("error: ").unwrap_or(&message).to_owned())
    };
    Candidate::compile(&text, &path.display().to_string(), &options).map_err(refused)
}

fn ready_line(config: &DaemonConfig) -> String {
    let ports: Vec<_> = config.ports.iter().map(PortSpec::to_string).collect();
    let bfrt = config.bfrt_addr.map(|addr| format!(" BFRuntime {addr}")).unwrap_or_default();
    format!(
        "ready device {} P4Runtime {}{bfrt} ports {}",
        config.device_id,
        config.grpc_addr,
        ports.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(grpc_addr: &str) -> DaemonConfig {
        DaemonConfig {
            ports: Vec::new(),
            io: IoChoice::default(),
            rate_bps: 0,
            port_rates_bps: Vec::new(),
            wires: Vec::new(),
            buffer_bytes: 1 << 18,
            reserved_bytes: 0,
            queueing: Queueing::Fifo,
            cpu_port: Some(510),
            drop_port: 511,
            pipes: 1,
            internal_pipes: Vec::new(),
            time_unit_ns: 1,
            clock_zero: Nanos::ZERO,
            device_id: 1,
            grpc_addr: grpc_addr.parse().unwrap(),
            bfrt_addr: None,
            tls: None,
            insecure: false,
            program: None,
            entries: None,
            include_dirs: Vec::new(),
            defines: Vec::new(),
            packet_log: None,
            captures: None,
            stats_file: None,
            metrics_addr: None,
            give_back: || (),
        }
    }

    #[test]
    fn ports_with_an_interface_are_not_internal() {
        let spec = |number| PortSpec { number, interface: "veth1".into() };
        let with = |number| DaemonConfig {
            ports: vec![spec(1), spec(number)],
            internal_pipes: vec![1, 3],
            ..config("127.0.0.1:0")
        };
        assert!(switch_config(&with(256)).is_ok());
        let refused = switch_config(&with(130)).unwrap_err().to_string();
        assert!(
            refused.contains("port 130 is in pipe 1") && refused.contains("--internal-pipes"),
            "{refused}"
        );
    }

    #[test]
    fn plain_text_is_for_this_machine_unless_it_is_allowed() {
        for addr in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert!(check_trust(&config(addr)).is_ok(), "{addr}");
        }
        for addr in ["0.0.0.0:9559", "[::]:9559", "10.0.0.1:9559", "[::ffff:10.0.0.1]:9559"] {
            let error = run(config(addr), Box::new(|_| panic!("it serves"))).unwrap_err().to_string();
            assert!(error.contains(addr) && error.contains("--insecure"), "{error}");
            assert!(check_trust(&DaemonConfig { insecure: true, ..config(addr) }).is_ok());
            let tls = ServerTls { certificate: "c".into(), key: "k".into(), client_ca: None };
            let open = DaemonConfig { tls: Some(tls.clone()), ..config(addr) };
            assert!(check_trust(&open).is_ok());
            assert!(
                doubt(&open, open.grpc_addr)
                    .is_some_and(|doubt| doubt.contains("--grpc-server-with-client-auth"))
            );
            let tls = ServerTls { client_ca: Some("ca".into()), ..tls };
            let closed = DaemonConfig { tls: Some(tls), ..config(addr) };
            assert_eq!(doubt(&closed, closed.grpc_addr), None);
            let beside = DaemonConfig { bfrt_addr: addr.parse().ok(), ..config("127.0.0.1:0") };
            let error = run(beside.clone(), Box::new(|_| panic!("it serves"))).unwrap_err().to_string();
            assert!(error.starts_with("BFRuntime in plain text") && error.contains(addr), "{error}");
            assert!(check_trust(&DaemonConfig { insecure: true, ..beside }).is_ok());
        }
    }
}
