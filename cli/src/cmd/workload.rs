//! `p4rack workload`: the programs that `p4rack up` starts on a rack's hosts.

use super::refused;
use super::settings::Settings;
use p4rack_codegen::rack::KvServer;
use p4rack_codegen::rack::units::parse_rate;
use p4rack_codegen::{Arch, Scheme};
use p4rack_lab::LabError;
use p4rack_lab::keep::{self, KeepOptions};
use p4rack_lab::state::Runtime;
use p4rack_lab::store::bulk::Load;
use p4rack_lab::store::run::{self, Reached, Task};
use p4rack_lab::topology;
use p4rack_lab::workload::rpc::{self, ClientSpan};
use p4rack_lab::workload::{Span, capture, print_result, udp};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack workload`.
#[derive(clap::Args, Debug)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    program: Program,
}

impl WorkloadArgs {
    /// Name of the program's task.
    pub fn name(&self) -> &'static str {
        match self.program {
            Program::UdpSend { .. } => "sender",
            Program::UdpSink { .. } => "sink",
            Program::RpcServer { .. } => "server",
            Program::RpcClient { .. } | Program::StoreClient { .. } => "client",
            Program::StoreBulk { .. } => "bulk",
            Program::StoreLoad(_) | Program::StoreContents(_) => "client",
            Program::LogClient(_) | Program::CachedClient(_) => "client",
            Program::StoreServer { .. } => "server",
            Program::Hostile(_) => "attacker",
            Program::Capture { .. } => "capture",
            Program::Supervise { .. } => "rack",
        }
    }
}

#[derive(clap::Subcommand, Debug)]
enum Program {
    /// Send datagrams at a constant rate
    UdpSend {
        /// Destination address
        #[arg(long)]
        to: SocketAddr,
        /// Ethernet payload to offer, in bits per second; a number with or without a unit
        #[arg(long, value_parser = bits_a_second)]
        rate_bps: u64,
        /// Bytes per datagram
        #[arg(long, default_value_t = udp::PAYLOAD_MAX_BYTES, value_parser = crate::numbers::number::<usize>)]
        payload_bytes: usize,
        /// Seed for the phase of the bursts
        #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
        seed: u64,
        #[command(flatten)]
        span: SpanArgs,
    },
    /// Count datagrams by source
    UdpSink {
        /// Address to listen on
        #[arg(long)]
        bind: SocketAddr,
        #[command(flatten)]
        span: SpanArgs,
    },
    /// Answer requests for values until stopped
    RpcServer {
        /// Address to listen on
        #[arg(long)]
        bind: SocketAddr,
    },
    /// Request values, one at a time per size
    RpcClient {
        /// Address of the server
        #[arg(long)]
        to: SocketAddr,
        /// Sizes of the values; one connection each
        #[arg(long, required = true, value_parser = crate::numbers::within::<u32>(1..=rpc::VALUE_MAX_BYTES))]
        value_bytes: Vec<u32>,
        #[command(flatten)]
        span: SpanArgs,
        /// Start of the measured part
        #[arg(long, value_parser = crate::numbers::number::<u64>)]
        window_start_ns: u64,
        /// Length of the measured part
        #[arg(long, value_parser = crate::numbers::number::<u64>)]
        window_ns: u64,
    },
    /// Hold a store's records and serve them over TCP until stopped
    StoreServer {
        /// Rack description with a store as workload
        rack: PathBuf,
    },
    /// Write every record of a store once
    StoreLoad(Box<StoreArgs>),
    /// Use a store by the workload's mixes
    StoreClient {
        #[command(flatten)]
        store: Box<StoreArgs>,
        #[command(flatten)]
        span: SpanArgs,
    },
    /// Write beside a store's clients, or write and read, as fast as it can
    StoreBulk {
        #[command(flatten)]
        store: Box<StoreArgs>,
        #[command(flatten)]
        span: SpanArgs,
        #[command(flatten)]
        load: LoadArgs,
    },
    /// Read every record of a store
    StoreContents(Box<StoreArgs>),
    /// Own a log store and use it by the workload's mixes
    LogClient(Box<super::log_client::Args>),
    /// Own a store in a cached region and use it by the workload's mixes, on commands from standard
    /// input
    CachedClient(Box<super::cached_client::Args>),
    /// Attack until stopped
    Hostile(super::hostile::AttackArgs),
    /// Capture the loopback until stopped
    Capture {
        /// Output file
        file: PathBuf,
    },
    /// Own a rack that `up --keep` started
    Supervise {
        /// Rack description
        rack: PathBuf,
        #[command(flatten)]
        settings: Settings,
        /// Scheme of the rack
        #[arg(long)]
        scheme: Option<Scheme>,
        /// Architecture of the switch's program
        #[arg(long)]
        arch: Option<Arch>,
        /// Folder for captures
        #[arg(long)]
        pcap: Option<PathBuf>,
        /// Folder of the rack's state file
        #[arg(long)]
        runtime: PathBuf,
        /// Do not show progress
        #[arg(long)]
        quiet: bool,
    },
}

#[derive(clap::Args, Debug, Clone, Copy)]
struct SpanArgs {
    /// Start of the traffic, on the monotonic clock
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    start_ns: u64,
    /// Duration of the traffic
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    duration_ns: u64,
}

/// A host's operations beside a store's clients. Without it, it writes slots.
#[derive(clap::Args, Debug, Clone, Copy)]
struct LoadArgs {
    /// Writes under way
    #[arg(long, requires = "bytes", value_parser = crate::numbers::number::<usize>)]
    writes: Option<usize>,
    /// Reads under way
    #[arg(long, requires = "bytes", value_parser = crate::numbers::number::<usize>)]
    reads: Option<usize>,
    /// Bytes of each
    #[arg(long, value_parser = crate::numbers::number::<usize>)]
    bytes: Option<usize>,
}

impl From<LoadArgs> for Option<Load> {
    fn from(args: LoadArgs) -> Option<Load> {
        let bytes = args.bytes?;
        Some(Load { writes: args.writes.unwrap_or(0), reads: args.reads.unwrap_or(0), bytes })
    }
}

/// The store, and the way to it: in remote memory, or from a server over TCP.
#[derive(clap::Args, Debug, Clone)]
struct StoreArgs {
    /// Rack description with a store as workload
    rack: PathBuf,
    #[command(flatten)]
    way: super::way::WayArgs,
    /// Another project's server that has the records
    #[arg(long, conflicts_with = "way")]
    server: Option<KvServer>,
    /// Seed of keys, operations and values
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
}

impl StoreArgs {
    fn run(self, task: Task) -> Result<(), LabError> {
        let name = self.way.name.clone();
        let reached = match (self.way.end(), self.server) {
            (Some(end), _) => Reached::Memory(Box::new(end)),
            (None, Some(server)) => Reached::Server(server),
            (None, None) => Reached::Own,
        };
        run::use_store(&self.rack, &name, reached, self.seed, task)
    }
}

impl From<SpanArgs> for Span {
    fn from(args: SpanArgs) -> Span {
        Span { start_ns: args.start_ns, duration_ns: args.duration_ns }
    }
}

fn bits_a_second(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| parse_rate(text))
}

fn ended(done: Result<(), impl Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(error),
    }
}

/// Runs the command.
pub fn workload(args: WorkloadArgs) -> ExitCode {
    let done = match args.program {
        Program::UdpSend { to, rate_bps, payload_bytes, seed, span } => {
            let config = udp::SendConfig { to, rate_bps, payload_bytes, span: span.into(), seed };
            udp::send(&config).and_then(|report| print_result(&report))
        }
        Program::UdpSink { bind, span } => {
            udp::sink(bind, span.into()).and_then(|report| print_result(&report))
        }
        Program::RpcServer { bind } => rpc::serve(bind),
        Program::RpcClient { to, value_bytes, span, window_start_ns, window_ns } => {
            let window = Span { start_ns: window_start_ns, duration_ns: window_ns };
            rpc::client(to, &value_bytes, ClientSpan { span: span.into(), window })
                .and_then(|report| print_result(&report))
        }
        Program::StoreServer { rack } => return ended(run::serve(&rack)),
        Program::StoreLoad(args) => return ended(args.run(Task::Load)),
        Program::StoreClient { store, span } => return ended(store.run(Task::Run(span.into()))),
        Program::StoreBulk { store, span, load } => {
            return ended(store.run(Task::Bulk(span.into(), load.into())));
        }
        Program::StoreContents(args) => return ended(args.run(Task::Contents)),
        Program::LogClient(args) => return ended(args.run()),
        Program::CachedClient(args) => return ended(args.run()),
        Program::Hostile(args) => return ended(super::hostile::attack(args)),
        Program::Capture { file } => return ended(capture::loopback(&file)),
        Program::Supervise { rack, settings, scheme, arch, pcap, runtime, quiet } => {
            let settings = settings.set;
            let options = KeepOptions { path: rack, settings, scheme, arch, captures: pcap, quiet };
            let runtime = Runtime::at(runtime);
            return ended(match super::topology::is_topology(&options.path) {
                true => topology::supervise(&options, &runtime),
                false => keep::supervise(&options, &runtime),
            });
        }
    };
    ended(done)
}
