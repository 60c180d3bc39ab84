//! `p4rack host`.

use super::memory::not_opened;
use super::settings::Settings;
use crate::output::{self, OutputFile};
use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::scheme::pl2::{self, Pl2};
use p4rack_codegen::{Arch, Scheme, endpoint_config, sequence_ether_type, spoken_beside};
use p4rack_fabric::Config;
use p4rack_fabric::remote::Link;
use p4rack_hosts::remote::Own;
use p4rack_hosts::{Agent, AgentConfig};
use p4rack_netdev::{Links, clock, signal::Signals};
use p4rack_wire::{MacAddr, Nanos};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::mpsc;

/// Arguments of `p4rack host`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: HostCommand,
}

#[derive(clap::Subcommand, Debug)]
enum HostCommand {
    /// Run the agent of one host, between a TAP interface for applications and the link to the rack
    ///
    /// Prints a line "ready …" when applications can use the TAP. Ends on SIGTERM or SIGINT.
    Run(RunArgs),
}

#[derive(clap::Args, Debug)]
struct RunArgs {
    /// Rack description
    rack: PathBuf,
    /// Name of the host in the description
    #[arg(long)]
    name: String,
    #[command(flatten)]
    settings: Settings,
    /// Interface to the switch; the agent takes exclusive use of it (offloads and ARP off). With two switches the names of
    /// both interfaces, with a comma between [default: the one that has this host's MAC address, or the only one without an
    /// IP address; with two switches the two without]
    #[arg(long)]
    interface: Option<String>,
    /// Name of the TAP interface to create
    #[arg(long, default_value = "app0")]
    tap: String,
    #[arg(long, help = super::schemes::help("as described"))]
    scheme: Option<Scheme>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
    /// Write statistics as JSON to this file (`-` for standard output) at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    metrics_addr: Option<std::net::SocketAddr>,
    /// With notify_receiver: grace period before a sender with unused grants counts as silent
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = crate::numbers::within::<u64>(1..=60_000))]
    silent_after_ms: u64,
    /// With notify_receiver: run this command with `sh -c` for each sender that falls silent; $SENDER and
    /// $HOST name the hosts, e.g. 'p4rack pl2 forget rack.toml --host $SENDER --to $HOST'
    #[arg(long, value_name = "COMMAND")]
    when_silent: Option<String>,
}

impl Args {
    /// Name of the host.
    pub fn name(&self) -> &str {
        let HostCommand::Run(args) = &self.command;
        &args.name
    }
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let HostCommand::Run(args) = args.command;
    match agent(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn agent(args: RunArgs) -> Result<(), String> {
    let rack = Rack::load_set(&args.rack, &args.settings.set).map_err(|error| error.to_string())?;
    let rack = rack.on(args.arch.unwrap_or(rack.switch.arch));
    let host = rack.host(&args.name).ok_or_else(|| {
        let names: Vec<_> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
        format!("{}: no host is called `{}`; there are {}", args.rack.display(), args.name, names.join(", "))
    })?;
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    let mut endpoint = endpoint_config(&rack, host, scheme).map_err(|error| error.to_string())?;
    let notified =
        rack.protocol::<Pl2>().is_some_and(|pl2| pl2.notify_receiver) && scheme.runs(&pl2::Definition);
    if args.when_silent.is_some() && !notified {
        return Err(
            "--when-silent has no effect without notify_receiver = true in the description's [pl2]".into()
        );
    }
    if let Config::Pl2(endpoint) = &mut endpoint {
        endpoint.notify_patience = notified.then(|| Nanos::from_millis(args.silent_after_ms));
    }
    let beside = spoken_beside(&rack, host, scheme);
    if let [first, second, ..] = beside.as_slice() {
        return Err(format!(
            "{scheme} has frames of {first} and {second} beside the agent, which leaves out only one"
        ));
    }
    if let Some(path) = args.stats.as_deref().filter(|path| *path != Path::new("-")) {
        OutputFile::open("--stats", path)?;
    }
    let own = Own { name: &host.name, mac: host.mac, ip: host.ip, links: rack.switch.tors.into() };
    let named = own
        .interface(Link::Agent, args.interface.as_deref())
        .map_err(|place| not_opened(&place, Some(&place)))?;
    let interfaces =
        p4rack_memory::interfaces(&rack, &named).map_err(|error| format!("--interface: {error}"))?;
    for interface in &interfaces {
        check_place(&rack, host, interface)?;
    }
    let silent = notified.then(|| tell_silent(&rack, host, args.when_silent));
    let others = || rack.hosts.iter().filter(|other| other.name != host.name);
    let config = AgentConfig {
        name: args.name,
        interfaces,
        sequence_ether_type: sequence_ether_type(&rack),
        tap: args.tap,
        address: (host.ip, host.prefix),
        neighbours: others().map(|other| (other.ip, other.mac)).collect(),
        endpoint,
        spoken_beside: beside.first().copied(),
        seed: clock::wall_ns() ^ host.mac.0.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte)),
        stats_file: args.stats,
        metrics_addr: args.metrics_addr,
        silent,
    };
    let signals = Signals::take().map_err(|error| error.to_string())?;
    let ready = format!("ready {} {} on {} scheme {scheme}", config.name, config.tap, named);
    let agent = Agent::start(config, signals).map_err(|error| error.to_string())?;
    output::announce(&ready);
    agent.run().map_err(|error| error.to_string())
}

/// Fails if the interface has another host's MAC address, since the switch would drop all frames of this agent.
fn check_place(rack: &Rack, host: &Host, interface: &str) -> Result<(), String> {
    let link = Links::open().and_then(|mut links| links.get(interface)).map_err(|error| error.to_string())?;
    match rack.hosts.iter().find(|other| other.mac == link.mac && other.name != host.name) {
        None => Ok(()),
        Some(other) => Err(format!(
            "interface `{interface}` has {0}'s MAC address {1}: give --name {0}, or run this on {2}",
            other.name, other.mac, host.name
        )),
    }
}

/// Prints silent senders and runs the command, outside of the agent's thread, which must not block.
fn tell_silent(rack: &Rack, host: &Host, command: Option<String>) -> mpsc::Sender<MacAddr> {
    let (sender, silent) = mpsc::channel();
    let names: Vec<(MacAddr, String)> = rack.hosts.iter().map(|host| (host.mac, host.name.clone())).collect();
    let own = host.name.clone();
    std::thread::spawn(move || {
        for mac in silent {
            let Some((_, name)) = names.iter().find(|(known, _)| *known == mac) else { continue };
            output::announce(&format!("silent {name}"));
            let Some(command) = &command else { continue };
            let ran = Command::new("sh").args(["-c", command]).env("SENDER", name).env("HOST", &own).status();
            if !ran.as_ref().is_ok_and(ExitStatus::success) {
                tracing::error!(command, ?ran, "the command for silent senders failed");
            }
        }
    });
    sender
}
