//! `p4rack up`, `exec`, `down` and the traffic programs.

use super::settings::Settings;
use super::simulated;
use crate::output::{self, OutputFile};
use p4rack_codegen::rack::Run;
use p4rack_codegen::rack::units::parse_rate;
use p4rack_codegen::{Arch, Scheme};
use p4rack_lab::keep::{self, Down, KeepOptions};
use p4rack_lab::results::Results;
use p4rack_lab::state::Runtime;
use p4rack_lab::store::bulk::Load;
use p4rack_lab::store::run::{self, Task};
use p4rack_lab::up::{self, Options};
use p4rack_lab::workload::rpc::{self, ClientSpan};
use p4rack_lab::workload::{Span, capture, print_result, udp};
use p4rack_lab::{LabError, report, table};
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `p4rack up`.
#[derive(clap::Args, Debug)]
pub struct UpArgs {
    /// Rack description, e.g. examples/pl2-incast.toml; several run one after the other
    #[arg(required = true)]
    rack: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Write the figures as JSON to a file, or without =FILE to standard output in place of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write a self-contained HTML report with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Build the rack and leave it running without its workload; see `p4rack exec` and `p4rack down`
    #[arg(long, conflicts_with_all = ["json", "html", "duration_s", "seed"])]
    keep: bool,
    #[arg(long, value_name = "SCHEME", help = super::schemes::help_of_runs("as described; with --keep, the rack's protocols"))]
    scheme: Vec<Run>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
    /// Run the same racks and workloads in virtual time too, and show both
    #[arg(long, conflicts_with = "keep")]
    simulate: bool,
    /// Duration of the measured part of each scheme, seconds [default: as described]
    #[arg(long = "duration", value_name = "S", value_parser = duration)]
    duration_s: Option<f64>,
    /// Seed of the workload [default: as described]
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u64>)]
    seed: Option<u64>,
    /// Write captures of the rack's links and of the control channel to a folder per scheme
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `p4rack exec`.
#[derive(clap::Args, Debug)]
pub struct ExecArgs {
    /// Name of the host, or `switch`
    host: String,
    /// Name of the rack, if several are running
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Arguments of `p4rack down`.
#[derive(clap::Args, Debug)]
pub struct DownArgs {
    /// Name of the rack, if several are running
    name: Option<String>,
    /// End all of your racks, including those that are starting or have lost their file
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

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
            Program::StoreLoad(_) | Program::StoreContents(_) | Program::LogClient(_) => "client",
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

/// What a host has under way beside a store's clients. Without it, it writes slots.
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

/// Whose store, and how it is reached: in remote memory, or from a server over TCP.
#[derive(clap::Args, Debug, Clone)]
struct StoreArgs {
    /// Rack description with a store as workload
    rack: PathBuf,
    #[command(flatten)]
    way: super::way::WayArgs,
    /// Seed of keys, operations and values
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
}

impl StoreArgs {
    fn run(self, task: Task) -> Result<(), LabError> {
        let name = self.way.name.clone();
        run::use_store(&self.rack, &name, self.way.end(), self.seed, task)
    }
}

impl From<SpanArgs> for Span {
    fn from(args: SpanArgs) -> Span {
        Span { start_ns: args.start_ns, duration_ns: args.duration_ns }
    }
}

fn duration(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600".to_owned()),
    }
}

fn bits_a_second(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| parse_rate(text))
}

fn refused(error: impl Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// Runs the command.
pub fn up(args: UpArgs) -> ExitCode {
    if args.keep {
        return keep_running(args);
    }
    let outputs = match Outputs::open(args.json.as_deref(), args.html, args.pcap.as_deref()) {
        Ok(outputs) => outputs,
        Err(error) => return refused(error),
    };
    let several = args.rack.len() > 1;
    let one = |path: &PathBuf| {
        // Racks may have links and hosts of the same names.
        let of_rack = |folder: &PathBuf| match several {
            true => folder.join(path.file_stem().unwrap_or_default()),
            false => folder.clone(),
        };
        let options = Options {
            path: path.clone(),
            settings: args.settings.set.clone(),
            schemes: args.scheme.clone(),
            arch: args.arch,
            duration_s: args.duration_s,
            seed: args.seed,
            captures: args.pcap.as_ref().map(of_rack),
            quiet: args.quiet,
        };
        let mut results = up::run(&options).map_err(|error| error.to_string())?;
        if args.simulate {
            results.simulated = simulated::simulate(path, &args.settings.set, &results)?;
        }
        Ok(results)
    };
    let done: Result<Vec<Results>, String> = args.rack.iter().map(one).collect();
    match done.and_then(|results| outputs.write(&results)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => refused(error),
    }
}

/// Files for the figures, opened before the run.
struct Outputs {
    json: Option<Json>,
    html: Option<(PathBuf, OutputFile)>,
}

enum Json {
    StandardOutput,
    File(OutputFile),
}

impl Outputs {
    fn open(json: Option<&Path>, html: Option<PathBuf>, pcap: Option<&Path>) -> Result<Outputs, String> {
        let json = match json {
            Some(path) if path == Path::new("-") => Some(Json::StandardOutput),
            other => other.map(|path| OutputFile::open("--json", path).map(Json::File)).transpose()?,
        };
        let html = html.map(|path| Ok::<_, String>((path.clone(), OutputFile::open("--html", &path)?)));
        pcap.map_or(Ok(()), |folder| output::folder("--pcap", folder))?;
        Ok(Outputs { json, html: html.transpose()? })
    }

    /// Writes files first, then a table or JSON to standard output. Returns whether all promises were kept.
    fn write(self, results: &[Results]) -> Result<bool, String> {
        let json = match results {
            [one] => format!("{}\n", one.to_json()),
            all => format!("[{}]\n", all.iter().map(Results::to_json).collect::<Vec<_>>().join(",\n")),
        };
        let json_on_output = match self.json {
            Some(Json::File(file)) => {
                file.write(json.as_bytes())?;
                false
            }
            Some(Json::StandardOutput) => true,
            None => false,
        };
        if let Some((path, file)) = self.html {
            file.write(report::html(results).as_bytes())?;
            eprintln!("report: {}", path.display());
        }
        let table = results.iter().map(table::render).collect::<Vec<_>>().join("\n");
        if json_on_output {
            eprint!("{table}");
            print!("{json}");
        } else {
            print!("{table}");
        }
        Ok(results.iter().all(|results| results.failures.is_empty()))
    }
}

fn keep_running(args: UpArgs) -> ExitCode {
    if args.scheme.len() > 1 {
        return refused("--keep runs one scheme: give --scheme once");
    }
    let [path] = args.rack.as_slice() else {
        return refused("--keep leaves one rack running: give one description");
    };
    if let Some(run) = args.scheme.iter().find(|run| run.way.is_some()) {
        return refused(format!(
            "--keep runs no workload, and {run} is a way of one: give a scheme such as {}",
            run.scheme
        ));
    }
    let options = KeepOptions {
        path: path.clone(),
        settings: args.settings.set,
        scheme: args.scheme.first().map(|run| run.scheme),
        arch: args.arch,
        captures: args.pcap,
        quiet: args.quiet,
    };
    let started = options.captures.as_deref().map_or(Ok(()), |folder| output::folder("--pcap", folder));
    match started.and_then(|()| keep::keep(&options).map_err(|error| error.to_string())) {
        Ok(rack) => {
            println!("{}", keep::welcome(&rack));
            ExitCode::SUCCESS
        }
        Err(error) => refused(error),
    }
}

/// Runs the command.
pub fn exec(args: ExecArgs) -> ExitCode {
    refused(keep::exec(args.rack.as_deref(), &args.host, &args.command))
}

/// Runs the command.
pub fn down(args: DownArgs) -> ExitCode {
    let ended =
        if args.all { keep::down_all() } else { keep::down(args.name.as_deref()).map(|down| vec![down]) };
    match ended {
        Ok(all) if all.is_empty() => {
            println!("no rack is running");
            ExitCode::SUCCESS
        }
        Ok(all) => {
            let mut code = ExitCode::SUCCESS;
            for Down { name, word } in &all {
                println!("{name} is down");
                if let Some(word) = word {
                    code = refused(format!("{name}: {word}"));
                }
            }
            code
        }
        Err(error) => refused(error),
    }
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
        Program::Hostile(args) => return ended(super::hostile::attack(args)),
        Program::Capture { file } => return ended(capture::loopback(&file)),
        Program::Supervise { rack, settings, scheme, arch, pcap, runtime, quiet } => {
            let settings = settings.set;
            let options = KeepOptions { path: rack, settings, scheme, arch, captures: pcap, quiet };
            return ended(keep::supervise(&options, &Runtime::at(runtime)));
        }
    };
    ended(done)
}
