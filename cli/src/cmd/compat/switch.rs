//! `simple_switch` and `simple_switch_grpc`: the embedded switch, started with BMv2's options.

use super::target::TargetArgs;
use super::tips::{has, with_tip};
use super::{Log, packets, runtime};
use crate::cmd::p4::check_program;
use crate::cmd::refused;
use crate::output;
use clap::Parser as _;
use p4rack_codegen::rack::Target;
use p4rack_codegen::rack::limits::{self, Refusal};
use p4rack_lab::process::on_path;
use p4rack_netdev::clock;
use p4rack_netdev::packet::Io;
use p4rack_switch::{QUEUES, Queueing};
use p4rack_switchd::daemon::{self, DaemonConfig};
use p4rack_switchd::driver::{IoChoice, PortSpec};
use p4rack_wire::Nanos;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use tokio::sync::mpsc;
use tracing_subscriber::filter::LevelFilter;

/// The port at which BMv2 takes commands by default.
pub(super) const THRIFT_PORT: u16 = 9090;
/// Batches of events of packets that wait for the log. Further ones wait in the switch, which has its own limit.
const BATCHES: usize = 4;
/// Shared by the queues of all ports.
const BUFFER_BYTES: u64 = 256 << 10;

/// Arguments of `simple_switch` and `simple_switch_grpc`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Options after `--`: --drop-port N, --priority-queues N (1 to 8, no effect), and for simple_switch_grpc --grpc-server-addr ADDR and \
--cpu-port N. --enable-swap, --disable-swap and --max-mc-groups, --max-l1-entries, --max-l2-entries have no effect. Other options of \
BMv2 are refused by name.")]
pub struct Args {
    /// The program: BMv2's JSON, or P4 text
    #[arg(value_name = "FILE")]
    config: Option<PathBuf>,
    /// A port: its number in the program, and its interface; may be repeated
    #[arg(short = 'i', long = "interface", value_name = "PORT@INTERFACE")]
    interfaces: Vec<PortSpec>,
    /// Start without a program, until a controller installs one
    #[arg(long)]
    no_p4: bool,
    /// Write INTERFACE_in.pcap and INTERFACE_out.pcap for each port [default folder: the current one]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pcap: Option<PathBuf>,
    /// TCP port, on 127.0.0.1, for simple_switch_CLI [default: 9090]; not for clients of Thrift
    #[arg(long, value_name = "PORT", value_parser = crate::numbers::within::<u16>(1..))]
    thrift_port: Option<u16>,
    /// P4Runtime device id
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::numbers::number::<u64>)]
    device_id: u64,
    /// Log to standard output, also what happens to each packet
    #[arg(long)]
    log_console: bool,
    /// Log to FILE.txt, also what happens to each packet
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Lowest level that is logged; packets are at trace and debug [default: trace for packets, info for the rest]
    #[arg(short = 'L', long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<LevelFilter>,
    /// No effect: every line is flushed
    #[arg(long)]
    #[allow(dead_code, reason = "accepted for scripts that give it")]
    log_flush: bool,
    /// No effect, and a warning: the log is one file
    #[arg(long, value_name = "BYTES")]
    log_file_max_size: Option<u64>,
    /// No effect, and a warning: the log is one file
    #[arg(long, value_name = "N")]
    log_file_max_files: Option<u64>,
    /// No effect: there are as many ports as -i names
    #[arg(long, value_name = "N")]
    #[allow(dead_code, reason = "accepted for scripts that give it")]
    max_port_count: Option<u64>,
    /// Print the latest version of BMv2's JSON that is read, and end
    #[arg(long)]
    json_version: bool,
    /// Print version
    #[arg(short = 'v', action = clap::ArgAction::Version)]
    version_of_bmv2: Option<bool>,
    /// No effect, and a warning: there is no nanomsg log
    #[arg(long, value_name = "ADDR")]
    nanolog: Option<String>,
    /// No effect, and a warning: there are no nanomsg notifications
    #[arg(long, value_name = "ADDR")]
    notifications_addr: Option<String>,
    /// No effect, and a warning: the log shows fields, not bytes
    #[arg(long, value_name = "BYTES")]
    dump_packet_data: Option<u64>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    use_files: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    packet_in: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    restore_state: Option<String>,
    #[arg(long, hide = true)]
    debugger: bool,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    debugger_addr: Option<String>,
    /// Options of the target, after `--`
    #[arg(last = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    target: Vec<String>,
}

fn level(text: &str) -> Result<LevelFilter, String> {
    text.parse().map_err(|_| "expected trace, debug, info, warn, error or off".to_owned())
}

/// An error in the target's options of `simple_switch` or `simple_switch_grpc`.
fn of_target(error: clap::Error) -> clap::Error {
    with_tip(error, |option| {
        let general = <Args as clap::Args>::augment_args(clap::Command::new("simple_switch"));
        has(&general, option).then(|| format!("{option} is no option of the target: give it before `--`"))
    })
}

impl Args {
    /// Destination of the log, if an option names one.
    pub fn log(&self) -> Option<Log<'_>> {
        let wanted = self.log_console || self.log_file.is_some();
        let level = self.log_level.unwrap_or(LevelFilter::INFO);
        wanted.then_some(Log { file: self.log_file.as_deref(), level })
    }

    /// The first unsupported option, with the alternative.
    fn missing(&self, target: &TargetArgs) -> Option<(&'static str, &'static str)> {
        [
            (
                "--use-files",
                self.use_files.is_some(),
                "`p4rack p4 run FILE --in PORT=IN.pcap --out-dir DIR` plays captures through a program",
            ),
            ("--packet-in", self.packet_in.is_some(), "there is no nanomsg; give ports by -i"),
            (
                "--restore-state",
                self.restore_state.is_some(),
                "no state is saved; write entries over P4Runtime or by simple_switch_CLI",
            ),
            (
                "--debugger",
                self.debugger || self.debugger_addr.is_some(),
                "there is no debugger; --log-console shows what happens to packets",
            ),
            (
                "--grpc-server-ssl",
                target.is_encrypted(),
                "simple_switch_CLI reaches the switch over P4Runtime in plain text; `p4rack switch run --like bmv2 \
                 --grpc-server-ssl` encrypts it",
            ),
            (
                "--load-modules",
                target.load_modules.is_some(),
                "extern types of shared libraries are not there; write the program without them",
            ),
            (
                "--dp-grpc-server-addr",
                target.dp_grpc_server_addr.is_some(),
                "packets come over interfaces; give them by -i, for example the ends of veth pairs",
            ),
        ]
        .into_iter()
        .find(|(_, given, _)| *given)
        .map(|(option, _, instead)| (option, instead))
    }

    /// The log of packets, if the options ask for it.
    fn packets(&self, drop_port: u16) -> Option<packets::Settings> {
        let level = self.log_level.unwrap_or(LevelFilter::TRACE);
        let wanted = self.log().is_some() && level >= LevelFilter::DEBUG;
        wanted.then(|| packets::Settings { file: self.log_file.clone(), level, drop_port })
    }
}

/// Runs the switch; `has_grpc` says whether P4Runtime has an address that others know.
pub fn run(args: Args, has_grpc: bool) -> ExitCode {
    // The program's time starts here, as close to the start of the process as possible: scripts add it to their own
    // time of that start.
    let began = (clock::now(), Instant::now());
    let target = match TargetArgs::try_parse_from(&args.target) {
        Ok(target) => target,
        Err(error) => return output::usage(&of_target(error)),
    };
    if args.json_version {
        let [major, minor] = p4rack_bmv2::VERSION;
        println!("{major}.{minor}");
        return ExitCode::SUCCESS;
    }
    if let Some(option) = target.only_grpc().filter(|_| !has_grpc) {
        return usage(format!("simple_switch has no {option}; simple_switch_grpc has"));
    }
    if let Some((option, instead)) = args.missing(&target) {
        return usage(format!("{option} is not supported: {instead}"));
    }
    if args.config.is_none() && !args.no_p4 {
        return usage("please specify an input JSON configuration file, or --no-p4".to_owned());
    }
    if let Some(cpu_port) = target.cpu_port
        && let Err(Refusal { message, help }) = limits::cpu_port(cpu_port.into(), target.drop_port.into())
    {
        return usage(format!("--cpu-port, --drop-port: {message}; {help}"));
    }
    if let Some(Err(error)) = args.config.as_deref().filter(|_| !args.no_p4).map(check_program) {
        return refused(error);
    }
    if args.no_p4 && args.config.is_some() {
        tracing::warn!("--no-p4: the program on the command line isn't loaded");
    }
    for (option, is_given, instead) in [
        (
            "--nanolog",
            args.nanolog.is_some(),
            "there is no nanomsg; --log-console and --log-file show what happens to packets",
        ),
        (
            "--notifications-addr",
            args.notifications_addr.is_some(),
            "there is no nanomsg; P4Runtime has notifications",
        ),
        ("--dump-packet-data", args.dump_packet_data.is_some(), "--pcap writes packets"),
        (
            "--log-file-max-size, --log-file-max-files",
            args.log_file_max_size.is_some() || args.log_file_max_files.is_some(),
            "the log is one file; --log-level makes it shorter",
        ),
        ("--disable-swap", target.disable_swap, "the primary controller may always install a program"),
        (
            "--max-mc-groups, --max-l1-entries, --max-l2-entries",
            target.max_mc_groups.or(target.max_l1_entries).or(target.max_l2_entries).is_some(),
            "groups and their copies have the switch's own limits",
        ),
        (
            "--priority-queues",
            target.priority_queues.is_some_and(|queues| queues != QUEUES),
            "a port always has 8 queues, of which the highest is served first",
        ),
    ] {
        if is_given {
            tracing::warn!("{option} has no effect: {instead}");
        }
    }
    match start(args, &target, has_grpc, began) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(error),
    }
}

fn usage(error: String) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

/// Binds the port for commands. A port named by an option has to be free.
fn commands(asked: Option<u16>) -> Result<Option<TcpListener>, String> {
    let port = asked.unwrap_or(THRIFT_PORT);
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if asked.is_none() => {
            tracing::warn!(port, %error, "simple_switch_CLI won't reach this switch; give it a port with --thrift-port");
            Ok(None)
        }
        Err(error) => Err(format!(
            "--thrift-port: 127.0.0.1:{port}: {error}; choose another port, or end the program that uses it"
        )),
    }
}

fn start(args: Args, target: &TargetArgs, has_grpc: bool, began: (Nanos, Instant)) -> Result<(), String> {
    let (clock_zero, started) = began;
    if let Some(folder) = args.pcap.as_deref() {
        output::folder("--pcap", folder)?;
    }
    let commands = commands(args.thrift_port)?;
    // Without gRPC in its name, a switch shows P4Runtime only to its own commands.
    let hidden = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, 9559));
    let grpc_addr = if has_grpc { target.grpc_server_addr.unwrap_or(usual) } else { hidden };
    let port_rates_bps: Vec<(u16, u64)> =
        args.interfaces.iter().filter_map(|spec| Some((spec.number, shaped_bps(&spec.interface)?))).collect();
    for (port, rate_bps) in &port_rates_bps {
        tracing::info!(
            port,
            rate_bps,
            "tc shapes this port's interface, so its frames wait in the switch's queues"
        );
    }
    let logged = args.packets(target.drop_port).map(|settings| (settings, mpsc::channel(BATCHES)));
    let packet_log = logged.as_ref().map(|(_, (sender, _))| sender.clone());
    let facts = runtime::Facts { ports: args.interfaces.clone(), device_id: args.device_id, started };
    let config = DaemonConfig {
        ports: args.interfaces,
        // Rings take 9 MB for each port.
        io: IoChoice::Only(Io::Packet),
        rate_bps: 0,
        wires: Vec::new(),
        port_rates_bps,
        buffer_bytes: BUFFER_BYTES,
        reserved_bytes: 0,
        queueing: Queueing::Fifo,
        cpu_port: target.cpu_port,
        drop_port: target.drop_port,
        pipes: 1,
        internal_pipes: Vec::new(),
        time_unit_ns: Target::Bmv2.time_unit_ns(),
        clock_zero,
        device_id: args.device_id,
        grpc_addr,
        bfrt_addr: None,
        tls: None,
        // As BMv2 does.
        insecure: true,
        program: args.config.filter(|_| !args.no_p4),
        entries: None,
        include_dirs: Vec::new(),
        defines: Vec::new(),
        packet_log,
        captures: args.pcap,
        stats_file: None,
        metrics_addr: None,
        give_back: crate::allocator::give_back,
    };
    let ready = move |started: daemon::Started| {
        if let Some((settings, (_, batches))) = logged
            && let Err(error) = packets::write(batches, settings)
        {
            tracing::error!(%error, "the log says nothing about packets");
        }
        output::announce(&format!("ready device {} P4Runtime {}", facts.device_id, started.grpc_addr));
        tracing::info!(grpc = %started.grpc_addr, ports = facts.ports.len(), "ready");
        if let Some(listener) = commands
            && let Err(error) = runtime::serve(listener, facts, started)
        {
            tracing::error!(%error, "commands of simple_switch_CLI aren't served");
        }
    };
    daemon::run_beside(config, Box::new(ready)).map_err(|error| error.to_string())
}

/// The rate to which `tc` shapes what leaves an interface, as Mininet's links do. The kernel would queue frames there and
/// drop them, unseen by the program: at that rate, they wait in the switch instead.
fn shaped_bps(interface: &str) -> Option<u64> {
    let tc = on_path("tc").or_else(|| Some(PathBuf::from("/sbin/tc")).filter(|path| path.is_file()))?;
    let shown = Command::new(tc)
        .args(["class", "show", "dev", interface])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    rate_of(&String::from_utf8_lossy(&shown.stdout))
}

/// The lowest rate among shaping classes: `class htb 5:1 root prio 0 rate 500Kbit ceil …`.
fn rate_of(classes: &str) -> Option<u64> {
    let rate = |line: &str| {
        let mut words = line.split_whitespace();
        let is_shaping = words.next() == Some("class") && matches!(words.next(), Some("htb" | "hfsc"));
        let text = words.skip_while(|word| *word != "rate").nth(1).filter(|_| is_shaping)?;
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match &text[digits.len()..] {
            "bit" => 1.0,
            "Kbit" => 1e3,
            "Mbit" => 1e6,
            "Gbit" => 1e9,
            _ => return None,
        };
        Some((digits.parse::<f64>().ok()? * scale) as u64)
    };
    classes.lines().filter_map(rate).filter(|rate_bps| *rate_bps > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_shaped_interface_is_read_from_tc() {
        let shown = "class htb 5:1 root prio 0 rate 500Kbit ceil 500Kbit burst 15Kb cburst 1600b \n";
        assert_eq!(rate_of(shown), Some(500_000));
        assert_eq!(
            rate_of(&format!("class htb 5:2 parent 5:1 rate 1.5Mbit ceil 3Mbit\n{shown}")),
            Some(500_000)
        );
        assert_eq!(
            (rate_of("class netem 1: rate 5bit"), rate_of(""), rate_of("class htb 5:1 rate")),
            (None, None, None)
        );
    }

    #[test]
    fn options_of_the_target_follow_two_dashes() {
        let parse = |words: &[&str]| TargetArgs::try_parse_from(words);
        let parsed = parse(&["--grpc-server-addr", "0.0.0.0:50051", "--cpu-port", "255"]).unwrap();
        assert_eq!((parsed.cpu_port, parsed.drop_port), (Some(255), 511));
        assert_eq!(parsed.grpc_server_addr.map(|addr| addr.port()), Some(50051));
        let refused = parse(&["--zebra", "x"]).unwrap_err().to_string();
        assert!(refused.contains("--zebra"), "{refused}");
        assert!(parse(&["--priority-queues", "9"]).is_err());
        let said = |option: &str| of_target(parse(&[option]).unwrap_err()).to_string();
        let wrong_side = "tip: --log-console is no option of the target: give it before `--`";
        assert!(said("--log-console").contains(wrong_side), "{}", said("--log-console"));
        assert!(!said("--zebra").contains("tip"), "{}", said("--zebra"));
    }
}
