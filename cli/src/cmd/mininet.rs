//! `p4rack mininet`.

use super::exercise::Choice;
use super::topology::is_topology;
use p4rack_codegen::rack::{self, End};
use p4rack_codegen::topology::{Host, Link, Runs, Switch, Target, Topology};
use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::provision;
use p4rack_lab::bmv2::{Bmv2, Instance};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The network itself, in Python because Mininet belongs to the system's Python.
const SCRIPT: &str = include_str!("mininet.py");
const PYTHON: &str = "/usr/bin/python3";
const GET_MININET: &str = "sudo apt-get install --no-install-recommends mininet";
/// How long a host's command may take, as in `p4rack up`.
const COMMAND_LIMIT_S: u32 = 300;

/// Arguments of `p4rack mininet`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description, or topology
    #[arg(value_name = "RACK|TOPOLOGY")]
    rack: PathBuf,
    /// Kind of switch of a rack [default: the description's target]
    #[arg(long, value_parser = ["embedded", "bmv2"])]
    switch: Option<String>,
    #[arg(long, help = super::schemes::help("as described"))]
    scheme: Option<Scheme>,
    /// Instead of Mininet's prompt, ping between all hosts, and in a rack run an incast; exit code 1 on failure
    #[arg(long)]
    test: bool,
    /// Duration of the test's incast in a rack, seconds [default: 3]
    #[arg(long = "duration", value_name = "S", value_parser = crate::numbers::within::<u32>(1..=600))]
    duration_s: Option<u32>,
    #[command(flatten)]
    choice: Choice,
}

/// Duration of a test's incast.
const DURATION_S: u32 = 3;

/// Runs it: this process becomes Mininet's.
pub fn run(args: Args) -> ExitCode {
    match prepare(&args) {
        Ok(config) => {
            let error = Command::new(PYTHON).arg("-c").arg(SCRIPT).arg(config.to_string()).exec();
            eprintln!("error: {PYTHON} did not start: {error}; get it by: sudo apt-get install python3");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(args: &Args) -> Result<Value, String> {
    let network = match is_topology(&args.rack) {
        true => of_topology(args)?,
        false => of_rack(args)?,
    };
    needs(Path::new(PYTHON), "sudo apt-get install python3")?;
    let imported = Command::new(PYTHON)
        .args(["-c", "import mininet.net"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !imported.is_ok_and(|status| status.success()) {
        return Err(format!("error: {PYTHON} has no Mininet; get it by: {GET_MININET}"));
    }
    let binary = std::env::current_exe().map_err(|error| format!("error: where this program is: {error}"))?;
    let Network { switches, hosts, links, deploy, workload } = network;
    Ok(json!({
        "binary": binary, "test": args.test, "duration_s": args.duration_s.unwrap_or(DURATION_S), "switches": switches, "hosts": hosts,
        "links": links, "deploy": deploy, "workload": workload,
        "command_limit_s": COMMAND_LIMIT_S,
    }))
}

fn needs(file: &Path, get_it_by: &str) -> Result<(), String> {
    let missing = || format!("error: needs {}, get it by: {get_it_by}", file.display());
    if file.exists() { Ok(()) } else { Err(missing()) }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("error: {}: {error}", path.display()))
}

/// The script's view of a network.
struct Network {
    switches: Vec<Value>,
    hosts: Vec<Value>,
    /// Pairs of ends: a node's name with a port, which hosts don't have. Hosts come second.
    links: Vec<Value>,
    /// Arguments of `p4rack deploy` once the switches run.
    deploy: Vec<String>,
    /// The test's incast.
    workload: Option<Value>,
}

/// An agent of a rack's host.
fn agent(rack: &Rack, file: &Path, scheme: Scheme) -> Value {
    json!({ "rack": file, "scheme": scheme, "arch": rack.switch.arch.name() })
}

fn of_rack(args: &Args) -> Result<Network, String> {
    args.choice.of(&args.rack).map_err(|error| format!("error: {error}"))?;
    let rack = Rack::load(&args.rack).map_err(|error| error.to_string())?;
    rack.with_one_switch("`p4rack mininet`").map_err(|error| format!("error: {error}"))?;
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    let kind = args.switch.as_deref().unwrap_or(rack.switch.target.name());
    let file = absolute(&args.rack)?;
    let hosts = rack.hosts.iter().map(|host| {
        json!({
            "name": host.name, "mac": host.mac.to_string(), "ip": host.ip.to_string(), "rate_bps": host.rate_bps,
            "gateway": null, "commands": [], "agent": agent(&rack, &file, scheme),
        })
    });
    let ports = rack.hosts.iter().map(|host| port_of(host.port, Some(host.rate_bps), None));
    let rack::Switch {
        device_id, grpc_addr, cpu_port, drop_port, buffer_bytes, queueing, time_unit_ns, ..
    } = &rack.switch;
    let command = match kind {
        "bmv2" => {
            let bmv2 = Bmv2::find().map_err(|error| format!("error: {error}"))?;
            Some(command(&bmv2, &Instance::of_rack("s1", &rack)))
        }
        _ => None,
    };
    // Else best effort could leave no room for what was reserved.
    let reserved_bytes = if scheme.name() == "l2" { 0 } else { rack.switch.reserved_bytes };
    let switch = json!({
        "name": "s1", "kind": kind, "device_id": device_id, "grpc_addr": grpc_addr, "cpu_port": cpu_port,
        "drop_port": drop_port, "buffer_bytes": buffer_bytes, "reserved_bytes": reserved_bytes,
        "queueing": queueing.name(), "time_unit_ns": time_unit_ns, "ports": ports.collect::<Vec<_>>(),
        "command": command,
    });
    let links = rack.hosts.iter().map(|host| json!([["s1", host.port], [host.name, null]]));
    let deploy = ["--scheme", &scheme.name(), "--to", kind].map(str::to_owned);
    Ok(Network {
        links: links.collect(),
        deploy: std::iter::once(file.display().to_string()).chain(deploy).collect(),
        workload: Some(workload(&rack, scheme)),
        hosts: hosts.collect(),
        switches: vec![switch],
    })
}

/// How BMv2 is started.
fn command(bmv2: &Bmv2, switch: &Instance) -> Vec<String> {
    std::iter::once(bmv2.path.display().to_string()).chain(bmv2.args(switch, None)).collect()
}

/// An incast of the workload's hosts, or of all to the first.
fn workload(rack: &Rack, scheme: Scheme) -> Value {
    match &rack.workload {
        Some(workload) if workload.store.is_none() => {
            let (one, many) = workload.ends();
            json!({ "receiver": one, "senders": many, "load_percent": workload.load_percent, "scheme": scheme })
        }
        _ => {
            let mut names = rack.hosts.iter().map(|host| host.name.as_str());
            json!({ "receiver": names.next(), "senders": names.collect::<Vec<_>>(), "scheme": scheme })
        }
    }
}

/// A switch's port. The end of a link that is listed first makes the link's delay and loss, in both directions.
fn port_of(port: u16, rate_bps: Option<u64>, made: Option<&Link>) -> Value {
    json!({
        "port": port, "rate_bps": rate_bps, "delay_ns": made.map(|link| link.delay.0),
        "loss_percent": made.map(|link| f64::from(link.loss_ppm) / 1e4),
    })
}

fn of_topology(args: &Args) -> Result<Network, String> {
    let given = [
        ("--switch", args.switch.is_some()),
        ("--scheme", args.scheme.is_some()),
        ("--duration", args.duration_s.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(format!(
            "error: {option} is for racks: a topology describes its switches, so leave it out"
        ));
    }
    let exercise = args.choice.of(&args.rack).map_err(|error| format!("error: {error}"))?;
    let topology = Topology::load_exercise(&args.rack, &exercise).map_err(|error| error.to_string())?;
    topology.check_started().map_err(|error| error.to_string())?;
    check_addresses(&topology)?;
    // Programs and entries are checked before anything starts.
    let made = provision::desired_of_all(&topology).into_iter();
    let refused: Vec<String> = made.filter_map(Result::err).map(|error| format!("error: {error}")).collect();
    if !refused.is_empty() {
        return Err(refused.join("\n"));
    }
    let bmv2 = Bmv2::for_topology(&topology).map_err(|error| error.to_string())?;
    let switches = topology.switches.iter().enumerate();
    let switches = switches.map(|(at, switch)| switch_of(&topology, at, switch, bmv2.as_ref()));
    let switches = switches.collect::<Result<_, _>>()?;
    let hosts = topology.hosts.iter().enumerate();
    let hosts = hosts.map(|(at, host)| host_of(&topology, at, host)).collect::<Result<_, _>>()?;
    let end = |end: End| match end {
        End::Port(at, port) => json!([topology.switches.get(at).map(|switch| &switch.name), port]),
        End::Host(at) => json!([topology.hosts.get(at).map(|host| &host.name), null]),
    };
    let links = topology.links.iter().map(|link| json!(link.ends.map(end)));
    let mut deploy = vec![absolute(&args.rack)?.display().to_string()];
    deploy.extend(args.choice.words());
    Ok(Network { switches, hosts, links: links.collect(), deploy, workload: None })
}

/// Switches serve P4Runtime in this machine's own namespace. Errors: it lacks an address.
fn check_addresses(topology: &Topology) -> Result<(), String> {
    for (at, switch) in topology.switches.iter().enumerate() {
        if let Err(error) = TcpListener::bind((switch.grpc_addr.ip(), 0)) {
            let message = format!("{} is no address of this machine: {error}", switch.grpc_addr.ip());
            let help = "write 127.0.0.1, or leave grpc_addr out";
            return Err(topology.mistake_of_switch(at, "grpc_addr", message, help).to_string());
        }
    }
    Ok(())
}

fn switch_of(topology: &Topology, at: usize, switch: &Switch, bmv2: Option<&Bmv2>) -> Result<Value, String> {
    let rack = match &switch.runs {
        Runs::Rack(_, rack) => Some(rack),
        _ => None,
    };
    let mut ports = Vec::new();
    for (port, link) in topology.ports(at) {
        let of_rack = rack.and_then(|rack| rack.hosts.iter().find(|host| host.port == port));
        let rate_bps = link.rate_bps.or(of_rack.map(|host| host.rate_bps));
        let made = (link.ends[0] == End::Port(at, port)).then_some(link);
        ports.push(port_of(port, rate_bps, made));
    }
    Ok(json!({
        "name": switch.name, "kind": switch.target, "device_id": switch.device_id, "grpc_addr": switch.grpc_addr,
        "cpu_port": switch.cpu_port, "drop_port": switch.drop_port(), "buffer_bytes": switch.buffer_bytes,
        "reserved_bytes": rack.map_or(0, |rack| rack.reserved_bytes()),
        "queueing": rack.map_or(rack::Queueing::Fifo, |rack| rack.switch.queueing).name(),
        "time_unit_ns": switch.time_unit_ns, "ports": ports,
        "command": bmv2.filter(|_| switch.target == Target::Bmv2).map(|bmv2| command(bmv2, &Instance::of_topology(topology, at))),
    }))
}

fn host_of(topology: &Topology, at: usize, host: &Host) -> Result<Value, String> {
    let (link, switch, port) =
        topology.attachment(at).ok_or_else(|| format!("error: {} has no link", host.name))?;
    let rack = match topology.switches.get(switch).map(|switch| &switch.runs) {
        Some(Runs::Rack(file, rack)) => Some((file, rack)),
        _ => None,
    };
    let of_rack = rack.and_then(|(_, rack)| rack.hosts.iter().find(|other| other.port == port));
    let with_agent = rack.filter(|(_, rack)| rack.protocols.iter().any(|protocol| protocol.needs_agents()));
    let agent = with_agent.map(|(file, rack)| Ok::<_, String>(agent(rack, &absolute(file)?, rack.scheme())));
    let neighbours = rack.into_iter().flat_map(|(_, rack)| &rack.hosts).filter(|other| other.mac != host.mac);
    let text = |value: &dyn std::fmt::Display| value.to_string();
    Ok(json!({
        "name": host.name, "mac": host.mac.to_string(), "ip": host.ip.to_string(), "prefix": host.prefix,
        "gateway": host.gateway.as_ref().map(|one| text(one)), "gateway_mac": host.gateway_mac.as_ref().map(|one| text(one)),
        "rate_bps": link.rate_bps.or(of_rack.map(|host| host.rate_bps)), "commands": host.commands,
        "neighbours": neighbours.map(|other| (other.ip.to_string(), other.mac.to_string())).collect::<Vec<_>>(),
        "agent": agent.transpose()?,
    }))
}
