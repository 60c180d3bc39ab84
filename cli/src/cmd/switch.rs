//! `p4rack switch`.

use super::p4::definition;
use super::p4::install::follow::Watched;
use super::p4::install::job::{self, Job};
use crate::output::{self, OutputFile};
use clap::builder::RangedI64ValueParser;
use p4rack_codegen::rack::limits::{self, Refusal};
use p4rack_codegen::rack::units::{parse_bytes, parse_rate, parse_time};
use p4rack_codegen::rack::{self, Target};
use p4rack_ctrl::ConnectOptions;
use p4rack_ctrl::provision::{Desired, updates};
use p4rack_netdev::clock;
use p4rack_p4::Options;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::Update;
use p4rack_switch::Queueing;
use p4rack_switchd::daemon::{self, DaemonConfig, EntriesFile};
use p4rack_switchd::driver::{IoChoice, PortSpec};
use p4rack_switchd::server::ServerTls;
use p4rack_switchd::wire::WireSpec;
use p4rack_wire::Nanos;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Default CPU port.
const CPU_PORT: u16 = 510;

/// Arguments of `p4rack switch`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run the embedded P4 switch on network interfaces, with P4Runtime
    ///
    /// Prints a line "ready …" when ports are open and P4Runtime listens. Ends on SIGTERM or SIGINT.
    Run(RunArgs),
    /// Trace the next matching frames through the program of a running switch
    ///
    /// Works on the embedded switch alongside any controller. Other frames are forwarded at full speed.
    Trace(super::switch_trace::Args),
}

/// Another switch whose defaults are used.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Like {
    /// BMv2's simple_switch_grpc
    Bmv2,
}

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("start").args(["program", "no_p4"]).required(true)))]
struct RunArgs {
    /// P4 program to load at the start; a controller can install another one over P4Runtime
    #[arg(value_name = "FILE.p4")]
    program: Option<PathBuf>,
    /// File with entries of the program: lines as `p4rack table insert` takes them, a text-format WriteRequest, or a
    /// sN-runtime.json
    #[arg(long, value_name = "FILE", requires = "program", conflicts_with = "no_p4")]
    entries: Option<PathBuf>,
    /// Install program and entries again when one of their files is saved, as `p4rack p4 install --watch` does; prints what
    /// became of the entries
    #[arg(long, requires = "program", conflicts_with_all = ["grpc_server_ssl", "no_p4"])]
    watch: bool,
    /// Start without a program: frames are dropped until a controller installs one
    #[arg(long)]
    no_p4: bool,
    /// A port: its number in the program and its interface, of which the switch takes exclusive use; without
    /// ports, only the controller can send packets
    #[arg(short, long = "interface", value_name = "PORT@INTERFACE")]
    interfaces: Vec<PortSpec>,
    /// Kind of packet I/O: packet (AF_PACKET, one system call per batch), ring (AF_PACKET, memory shared with
    /// the kernel; like packet, works on every interface), xdp (AF_XDP: needs root outside of user
    /// namespaces, a single receive queue, an MTU up to 3818, and senders that leave 802.1Q tags in their
    /// frames) or auto (ring, or packet if the kernel rejects it)
    #[arg(long, value_name = "KIND", default_value = "auto")]
    io: IoChoice,
    /// Use the defaults of another switch. bmv2 (simple_switch_grpc): --time-unit-ns 1000, --drop-port 511,
    /// --device-id 0, and no CPU port unless --cpu-port sets one. docs/p4.md lists other differences from
    /// BMv2
    #[arg(long, value_enum, value_name = "SWITCH")]
    like: Option<Like>,
    /// P4Runtime device id [default: 1]
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    device_id: Option<u64>,
    /// Address at which to serve P4Runtime
    #[arg(long, default_value = "127.0.0.1:9559", value_parser = crate::cmd::values::addr)]
    grpc_server_addr: SocketAddr,
    /// Address at which to serve BFRuntime too, for Tofino programs, e.g. 127.0.0.1:50052; encryption and limits
    /// are those of P4Runtime [default: not served]
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    bfrt_addr: Option<SocketAddr>,
    /// Encrypt P4Runtime; controllers then connect with --ssl
    #[arg(long, requires = "grpc_server_cert", requires = "grpc_server_key")]
    grpc_server_ssl: bool,
    /// Certificate of the switch, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_cert: Option<PathBuf>,
    /// Key of the switch's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_key: Option<PathBuf>,
    /// Certificate authority of the controllers, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_with_client_auth")]
    grpc_server_cacert: Option<PathBuf>,
    /// Only accept controllers with a certificate from --grpc-server-cacert
    #[arg(long, requires = "grpc_server_ssl", requires = "grpc_server_cacert")]
    grpc_server_with_client_auth: bool,
    /// Serve P4Runtime in plain text at an address other than loopback: anyone who reaches it controls the
    /// switch
    #[arg(long, conflicts_with = "grpc_server_ssl")]
    insecure: bool,
    /// CPU port, for packets of the controller, 1 to 511 [default: 510]
    #[arg(long, value_name = "PORT", value_parser = special_port())]
    cpu_port: Option<u16>,
    /// Pipes with entries and cells of their own, for TNA, 1 to 4; at least as many as the ports' numbers need
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u8>(1..=4))]
    pipes: u8,
    /// Pipes of --pipes without front-panel ports, 1 to 3, separated by commas: frames that leave them come in again at
    /// the same port
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = crate::numbers::within::<u8>(1..=3))]
    internal_pipes: Vec<u8>,
    /// Port that means "drop", 1 to 511
    #[arg(long, value_name = "PORT", default_value_t = 511, value_parser = special_port())]
    drop_port: u16,
    /// Nanoseconds per unit of the program's timestamps, 1 to 1000000; BMv2's unit is a microsecond [default:
    /// 1]
    #[arg(long, value_name = "NS", value_parser = crate::numbers::within::<u64>(time_units()))]
    time_unit_ns: Option<u64>,
    /// Write INTERFACE_in.pcap and INTERFACE_out.pcap for each port [default folder: the current one]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    pcap: Option<PathBuf>,
    /// Rate of all ports, in both directions, e.g. "100 Mb/s" [default: unlimited]; faster arrivals are
    /// dropped and counted as over_rate
    #[arg(long = "rate", value_parser = parse_rate)]
    rate_bps: Option<u64>,
    /// Rate of one port, e.g. "1=25 Mb/s"
    #[arg(long, value_name = "PORT=RATE", value_parser = port_rate)]
    port_rate: Vec<(u16, u64)>,
    /// Delay of the link at a port, each way, e.g. "1=5 ms"; made by this switch alone, so one end of a link has it
    #[arg(long, value_name = "PORT=TIME", value_parser = port_delay)]
    port_delay: Vec<(u16, Nanos)>,
    /// Frames lost on the link at a port, each way, in percent, e.g. "1=0.5"
    #[arg(long, value_name = "PORT=PERCENT", value_parser = port_loss)]
    port_loss: Vec<(u16, u32)>,
    /// Size of the buffer that all queues share, e.g. "256 KiB"
    #[arg(long, value_name = "BYTES", default_value = "256 KiB", value_parser = buffer)]
    buffer: u64,
    /// Part of the buffer that frames of priorities below 4 cannot use, e.g. "64 KiB"; `p4rack up` sets it by
    /// the description's reserved_percent
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = parse_bytes)]
    reserve: u64,
    /// Order of frames in a port's queue: by arrival, or in turns of their ingress ports, each with a share of the
    /// buffer
    #[arg(long, value_name = "fifo|fair", default_value = "fifo")]
    queueing: rack::Queueing,
    /// Folder searched for #include <…>, before the built-in core.p4 and v1model.p4
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macro to define; may be repeated
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Write statistics of ports and scheduling as JSON to this file (`-` for one line on standard output) at
    /// the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    metrics_addr: Option<SocketAddr>,
}

/// A port, and what follows `=`; `what` is its name in errors.
fn of_port<'t>(text: &'t str, what: &str) -> Result<(u16, &'t str), String> {
    let (port, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not PORT={what}"))?;
    let port = crate::numbers::number(port).map_err(|_| format!("`{port}` is not a port number"))?;
    Ok((port, value))
}

fn port_rate(text: &str) -> Result<(u16, u64), String> {
    let (port, rate) = of_port(text, "RATE")?;
    Ok((port, parse_rate(rate)?))
}

fn port_delay(text: &str) -> Result<(u16, Nanos), String> {
    let (port, time) = of_port(text, "TIME")?;
    Ok((port, parse_time(time)?))
}

/// A port, and lost frames per million.
fn port_loss(text: &str) -> Result<(u16, u32), String> {
    let (port, percent) = of_port(text, "PERCENT")?;
    match percent.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok((port, (percent * 1e4).round() as u32)),
        _ => Err(format!("`{percent}` is no number from 0 to 100")),
    }
}

/// Links that have a delay, a loss, or both.
fn wires(delays: &[(u16, Nanos)], losses: &[(u16, u32)]) -> Vec<WireSpec> {
    let mut wires: Vec<WireSpec> =
        delays.iter().map(|(port, delay)| WireSpec { port: *port, delay: *delay, loss_ppm: 0 }).collect();
    for (port, loss_ppm) in losses {
        let same = |wire: &&mut WireSpec| wire.port == *port && wire.loss_ppm == 0;
        match wires.iter_mut().find(same) {
            Some(wire) => wire.loss_ppm = *loss_ppm,
            None => wires.push(WireSpec { port: *port, loss_ppm: *loss_ppm, ..WireSpec::default() }),
        }
    }
    wires
}

fn buffer(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    limits::buffer(bytes).map_err(|Refusal { message, help }| format!("{message}; {help}"))?;
    Ok(bytes)
}

fn special_port() -> RangedI64ValueParser<u16> {
    let (least, most) = limits::SPECIAL_PORTS;
    RangedI64ValueParser::new().range(least as i64..=most as i64)
}

fn time_units() -> RangeInclusive<u64> {
    let (least, most) = limits::TIME_UNIT_NS;
    least..=most
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let args = match args.command {
        Command::Run(args) => args,
        Command::Trace(args) => return super::switch_trace::run(args),
    };
    let like = args.like.map_or(Target::Embedded, |Like::Bmv2| Target::Bmv2);
    // simple_switch_grpc has none unless one is configured.
    let cpu_port = args.cpu_port.or((like == Target::Embedded).then_some(CPU_PORT));
    if let Some(cpu_port) = cpu_port
        && let Err(Refusal { message, help }) = limits::cpu_port(cpu_port.into(), args.drop_port.into())
    {
        eprintln!("error: --cpu-port, --drop-port: {message}; {help}");
        return ExitCode::from(2);
    }
    if let Some(Err(error)) = args.program.as_deref().map(super::p4::check_program) {
        return super::refused(error);
    }
    if args.reserve >= args.buffer {
        let (reserve, buffer) = (args.reserve, args.buffer);
        eprintln!("error: --reserve: {reserve} bytes leave nothing of the buffer of {buffer}; reserve less");
        return ExitCode::from(2);
    }
    let files = args.grpc_server_cert.zip(args.grpc_server_key);
    let tls =
        files.map(|(certificate, key)| ServerTls { certificate, key, client_ca: args.grpc_server_cacert });
    let config = DaemonConfig {
        ports: args.interfaces,
        io: args.io,
        rate_bps: args.rate_bps.unwrap_or(0),
        wires: wires(&args.port_delay, &args.port_loss),
        port_rates_bps: args.port_rate,
        buffer_bytes: args.buffer,
        reserved_bytes: args.reserve,
        queueing: match args.queueing {
            rack::Queueing::Fifo => Queueing::Fifo,
            rack::Queueing::Fair => Queueing::Fair,
        },
        cpu_port,
        drop_port: args.drop_port,
        pipes: args.pipes.into(),
        internal_pipes: args.internal_pipes.iter().map(|pipe| usize::from(*pipe)).collect(),
        time_unit_ns: args.time_unit_ns.unwrap_or(like.time_unit_ns()),
        // BMv2 counts from its start.
        clock_zero: if like == Target::Bmv2 { clock::now() } else { Nanos::ZERO },
        device_id: args.device_id.unwrap_or(like.device_id()),
        grpc_addr: args.grpc_server_addr,
        bfrt_addr: args.bfrt_addr,
        tls,
        insecure: args.insecure,
        program: args.program,
        entries: args.entries.map(|path| EntriesFile { path, read: read_entries }),
        include_dirs: args.include,
        defines: args.define.iter().map(|text| definition(text)).collect(),
        packet_log: None,
        captures: args.pcap,
        stats_file: args.stats,
        metrics_addr: args.metrics_addr,
        give_back: crate::allocator::give_back,
    };
    if args.watch && config.grpc_addr.port() == 0 {
        eprintln!(
            "error: --watch needs the port of P4Runtime, and --grpc-server-addr {} lets the system choose one; give a port, \
             such as 127.0.0.1:9559",
            config.grpc_addr
        );
        return ExitCode::from(2);
    }
    let watched = args.watch.then(|| watched(&config)).flatten();
    let ready = Box::new(move |line: &str| {
        output::announce(line);
        if let Some(watched) = watched {
            watched.follow();
        }
    });
    let done =
        check_outputs(&config).and_then(|()| daemon::run(config, ready).map_err(|error| error.to_string()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The updates that insert a file's entries.
fn read_entries(file: &Path, info: &P4Info) -> Result<Vec<Update>, String> {
    let desired = Desired::new(info.clone(), Vec::new(), Vec::new()).and_then(|program| {
        let entities = job::entries(file, &program.schema)?;
        Ok(Desired { entities, ..program })
    });
    Ok(updates(&desired.map_err(|error| error.to_string())?))
}

/// What `--watch` installs after a save.
fn watched(config: &DaemonConfig) -> Option<Watched> {
    let mut addr = config.grpc_addr;
    if addr.ip().is_unspecified() {
        addr.set_ip(if addr.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let options = Options { include_dirs: config.include_dirs.clone(), defines: config.defines.clone() };
    Some(Watched::of(Job {
        program: config.program.clone()?,
        options,
        p4info: None,
        entries: config.entries.as_ref().map(|file| file.path.clone()),
        to: Some(Target::Embedded),
        clear: false,
        target: ConnectOptions::new(addr.to_string(), config.device_id),
        target_words: ["--grpc-addr", &addr.to_string(), "--device-id", &config.device_id.to_string()]
            .map(str::to_owned)
            .to_vec(),
        takes_over: true,
    }))
}

/// Checks, before the switch runs, that its output files can be written.
fn check_outputs(config: &DaemonConfig) -> Result<(), String> {
    if let Some(path) = config.stats_file.as_deref().filter(|path| *path != Path::new("-")) {
        OutputFile::open("--stats", path)?;
    }
    config.captures.as_deref().map_or(Ok(()), |folder| output::folder("--pcap", folder))
}
