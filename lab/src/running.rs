//! A rack that runs one scheme: the switch, its program, the agents.

use crate::error::LabError;
use crate::network::{Network, TAP_INTERFACE, host_interfaces, switch_interface};
use crate::process::{self, Process, START, pause};
use crate::progress::Progress;
use crate::sys;
use crate::tors::{self, Death};
use crate::usage::Usage;
use p4rack_codegen::rack::Run;
use p4rack_codegen::{Rack, Scheme};
use p4rack_hosts::report::Report;
use p4rack_netdev::NetNs;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an agent may take to report.
const REPORT: Duration = Duration::from_secs(3);

/// The processes of a rack. They end when this is dropped.
#[derive(Debug)]
pub struct Running<'a> {
    /// The description, under the scheme.
    pub rack: &'a Rack,
    /// Path of the description.
    pub path: &'a Path,
    /// Namespaces and links of the rack.
    pub network: &'a Network,
    /// Name of the run.
    pub name: String,
    /// Scheme that runs.
    pub scheme: Scheme,
    /// The processes of its switches: one, or two with the same program.
    pub switches: Vec<Process>,
    /// Position of the switch whose statistics count.
    pub(crate) watched: usize,
    /// A switch that is killed while the workload runs.
    pub(crate) death: Option<Death>,
    /// Whether all switches but one may end.
    pub(crate) spares_switches: bool,
    /// Captures the control channel, if requested.
    control_capture: Option<Process>,
    /// The agents, in the description's order; none where programs have the hosts' links.
    pub agents: Vec<Process>,
    /// Servers of the workload's programs, in the order in which they were started.
    pub serving: Vec<Process>,
    /// An agent that was ended on purpose.
    pub gone: Option<usize>,
}

impl<'a> Running<'a> {
    /// Starts switch, program and agents in this order, each when the previous one is ready.
    pub fn start(
        rack: &'a Rack,
        path: &'a Path,
        network: &'a Network,
        scheme: Scheme,
        captures: Option<&Path>,
        progress: &Progress,
    ) -> Result<Running<'a>, LabError> {
        let running = Running::without_agents(rack, path, network, scheme.into(), captures, progress)?;
        let agents = progress.step(
            &format!("{scheme}: starting the hosts' agents"),
            || {
                let agents = start_agents(rack, path, network, scheme)?;
                network.choose_tcp(rack)?;
                Ok(agents)
            },
            |agents| format!("{scheme}: {} agents ready", agents.len()),
        )?;
        Ok(Running { agents, ..running })
    }

    /// Starts switch and program, the second when the first is ready.
    pub fn without_agents(
        rack: &'a Rack,
        path: &'a Path,
        network: &'a Network,
        run: Run,
        captures: Option<&Path>,
        progress: &Progress,
    ) -> Result<Running<'a>, LabError> {
        let (name, scheme) = (run.name(), run.scheme);
        let tors = usize::from(rack.switch.tors);
        let addrs: Vec<String> = rack.switch.grpc_addrs().map(|addr| addr.to_string()).collect();
        let switches = progress.step(
            &format!("{name}: starting the switch"),
            || {
                let addrs = rack.switch.grpc_addrs().enumerate();
                addrs.map(|(tor, addr)| start_switch(rack, network, (tor, addr), &name, captures)).collect()
            },
            |_: &Vec<Process>| {
                let what = if tors > 1 { "switches run" } else { "switch runs" };
                format!("{name}: {what}, {} ports, P4Runtime at {}", rack.hosts.len(), addrs.join(" and "))
            },
        )?;
        let control_capture =
            captures.map(|folder| capture_control(&network.switch, &name, folder)).transpose()?;
        progress.step(
            &format!("{name}: installing program and entries over P4Runtime"),
            || deploy(rack, path, network, scheme),
            |_| format!("{name}: program and entries installed over P4Runtime"),
        )?;
        let (agents, serving) = (Vec::new(), Vec::new());
        Ok(Running {
            rack,
            path,
            network,
            name,
            scheme,
            switches,
            watched: 0,
            death: None,
            spares_switches: false,
            control_capture,
            agents,
            serving,
            gone: None,
        })
    }

    /// Index of a host.
    pub fn index(&self, host: &str) -> Result<usize, LabError> {
        let found = self.rack.hosts.iter().position(|candidate| candidate.name == host);
        found.ok_or_else(|| LabError::NotThere(format!("no host is called `{host}`")))
    }

    /// Namespace of a host.
    pub fn namespace(&self, host: &str) -> Result<&'a NetNs, LabError> {
        Ok(&self.network.hosts[self.index(host)?])
    }

    /// Starts a program on the application side of a host: `p4rack workload ARGS…`.
    pub fn program(&self, host: &str, args: Vec<String>) -> Result<Process, LabError> {
        let name = format!("{} on {host}", args.first().map_or("workload", String::as_str));
        let args = std::iter::once("workload".to_owned()).chain(args);
        Process::start(&name, self.namespace(host)?, args)
    }

    /// Reports of the agents that still run, by index.
    pub fn agent_reports(&mut self) -> Result<Vec<(usize, Report)>, LabError> {
        let mut asked = Vec::new();
        for (index, agent) in self.agents.iter_mut().enumerate() {
            if agent.ended().is_none() {
                asked.push((index, report_lines(&agent.output()).len()));
                agent.signal(libc::SIGUSR1);
            }
        }
        let until_ns = sys::monotonic_ns() + REPORT.as_nanos() as u64;
        let mut answers = Vec::new();
        for (index, before) in asked {
            let agent = &mut self.agents[index];
            let report = loop {
                let output = agent.output();
                if let Some(line) = report_lines(&output).get(before..).and_then(<[_]>::last) {
                    break parse_report(&self.rack.hosts[index].name, line)?;
                }
                if sys::monotonic_ns() >= until_ns {
                    return Err(agent.failure("did not report its statistics"));
                }
                agent.check_running()?;
                pause(Duration::from_millis(2))?;
            };
            answers.push((index, report));
        }
        Ok(answers)
    }

    /// Ends a host's agent permanently.
    pub fn end_agent(&mut self, index: usize) {
        process::stop(std::iter::once(&mut self.agents[index]));
        self.gone = Some(index);
    }

    /// Kills a switch if that is due. Fails if another switch, an agent that was not ended on purpose, or a server has ended.
    pub fn check(&mut self) -> Result<(), LabError> {
        tors::kill_due(&mut self.death, &mut self.switches);
        let killed = self.death.filter(|death| death.after_ms().is_some()).map(|death| death.tor);
        let is_spare = self.spares_switches && self.switches.iter_mut().any(|one| one.ended().is_none());
        let switches = self.switches.iter_mut().enumerate();
        let switches =
            switches.filter(|(tor, _)| !is_spare && Some(*tor) != killed).map(|(_, switch)| switch);
        let gone = self.gone;
        let agents = self.agents.iter_mut().enumerate().filter(|(index, _)| Some(*index) != gone);
        let agents = agents.map(|(_, agent)| agent);
        let mut all = switches.chain(agents).chain(&mut self.serving);
        all.try_for_each(Process::check_running)
    }

    /// Resources that the servers have used so far, together; `None` if there are none.
    pub(crate) fn serving_usage(&self) -> Result<Option<Usage>, LabError> {
        let each = self.serving.iter().map(|process| Usage::of(process.pid()));
        let together = each.sum::<Result<Usage, LabError>>()?;
        Ok((!self.serving.is_empty()).then_some(together))
    }

    /// Ends what serves the workload, the last one first.
    pub fn end_serving(&mut self) {
        while let Some(mut last) = self.serving.pop() {
            process::stop([&mut last]);
        }
    }

    /// Ends servers and agents, then the switch. Errors: a capture could not be completed.
    pub fn stop(mut self) -> Result<(), LabError> {
        self.end_serving();
        process::stop(&mut self.agents);
        let captured = self.control_capture.is_some();
        // A switch that was killed has no capture to complete.
        let mut last: Vec<&mut Process> = self.switches.iter_mut().chain(&mut self.control_capture).collect();
        last.retain_mut(|process| process.ended().is_none());
        process::stop(last.iter_mut().map(|process| &mut **process));
        last.into_iter().filter(|_| captured).try_for_each(Process::check_succeeded)
    }
}

/// The complete reports in an agent's output.
fn report_lines(output: &str) -> Vec<&str> {
    let complete = output.rfind('\n').map_or("", |end| &output[..end]);
    complete.lines().filter(|line| line.starts_with('{')).collect()
}

/// Parses a report. The error names the host and the missing field.
pub(crate) fn parse_report(host: &str, line: &str) -> Result<Report, LabError> {
    serde_json::from_str(line)
        .map_err(|error| LabError::measurement(format!("statistics of the agent of {host}"), error))
}

fn start_switch(
    rack: &Rack,
    network: &Network,
    (tor, grpc_addr): (usize, SocketAddr),
    run: &str,
    captures: Option<&Path>,
) -> Result<Process, LabError> {
    let switch = &rack.switch;
    let mut args: Vec<OsString> = ["switch", "run", "--no-p4"].map(Into::into).into();
    let mut push = |option: &str, value: String| args.extend([option.into(), value.into()]);
    push("--device-id", switch.device_id.to_string());
    push("--grpc-server-addr", grpc_addr.to_string());
    push("--cpu-port", switch.cpu_port.to_string());
    push("--drop-port", switch.drop_port.to_string());
    push("--time-unit-ns", switch.time_unit_ns.to_string());
    push("--buffer", switch.buffer_bytes.to_string());
    push("--reserve", rack.reserved_bytes().to_string());
    push("--queueing", switch.queueing.name().to_owned());
    for host in &rack.hosts {
        push("--interface", format!("{}@{}", host.port, switch_interface(tor, host.port)));
        push("--port-rate", format!("{}={} b/s", host.port, host.rate_bps));
    }
    if !switch.grpc_addr.ip().is_loopback() {
        // Only processes in this namespace can reach it, whatever the address: the hosts' links are the
        // switch's ports.
        args.push("--insecure".into());
    }
    if let Some(folder) = captures {
        let mut option = OsString::from("--pcap=");
        option.push(capture_folder(folder, run)?);
        args.push(option);
    }
    let name = if rack.switch.tors > 1 { format!("switch {}", tor + 1) } else { "the switch".to_owned() };
    let mut process = Process::start(&name, &network.switch, args)?;
    process.wait_for_line("ready", START)?;
    Ok(process)
}

/// Captures the traffic of the switch's P4Runtime server from before the first call.
pub(crate) fn capture_control(switch: &NetNs, run: &str, captures: &Path) -> Result<Process, LabError> {
    let file = capture_folder(captures, run)?.join("control.pcap");
    let args: [OsString; 3] = ["workload".into(), "capture".into(), file.into()];
    let mut process = Process::start("the capture of the control channel", switch, args)?;
    process.wait_for_line("ready", START)?;
    Ok(process)
}

/// The folder for a run's captures.
pub(crate) fn capture_folder(captures: &Path, run: &str) -> Result<PathBuf, LabError> {
    let folder = captures.join(run);
    std::fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    absolute(&folder)
}

fn deploy(rack: &Rack, path: &Path, network: &Network, scheme: Scheme) -> Result<(), LabError> {
    let mut args: Vec<OsString> = vec!["deploy".into(), path.into()];
    for (option, value) in [("--scheme", scheme.name().as_str()), ("--arch", rack.switch.arch.name())] {
        args.extend([option.into(), value.into()]);
    }
    Process::start("p4rack deploy", &network.switch, args)?.finish(START).map(drop)
}

fn start_agents(
    rack: &Rack,
    path: &Path,
    network: &Network,
    scheme: Scheme,
) -> Result<Vec<Process>, LabError> {
    let (scheme, mut agents) = (scheme.name(), Vec::new());
    for (host, ns) in rack.hosts.iter().zip(&network.hosts) {
        let mut args: Vec<OsString> = vec!["host".into(), "run".into(), path.into()];
        for (option, value) in [
            ("--name", host.name.as_str()),
            ("--interface", host_interfaces(rack).join(",").as_str()),
            ("--tap", TAP_INTERFACE),
            ("--scheme", scheme.as_str()),
            ("--arch", rack.switch.arch.name()),
            ("--stats", "-"),
        ] {
            args.extend([option.into(), value.into()]);
        }
        agents.push(Process::start(&format!("the agent of {}", host.name), ns, args)?);
    }
    for agent in &mut agents {
        agent.wait_for_line("ready", START)?;
    }
    Ok(agents)
}

fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(LabError::file(path))
}
