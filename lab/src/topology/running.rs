//! A running topology: its switches with their programs, and agents of hosts in racks.

use super::wiring::{Wiring, add_gateway};
use crate::bmv2::{Bmv2, Instance};
use crate::error::LabError;
use crate::network::{HOST_INTERFACE, TAP_INTERFACE, port_interface};
use crate::process::{self, Process, START};
use crate::progress::Progress;
use crate::running::{capture_control, capture_folder};
use crate::state::{KeptHost, KeptRack, KeptSwitch, NamespaceHolder, Pid};
use crate::sys;
use p4rack_codegen::topology::{Runs, Target, Topology};
use p4rack_ctrl::ConnectOptions;
use p4rack_ctrl::provision::{self, Desired};
use p4rack_netdev::Links;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::task::JoinSet;

/// The processes of a topology. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Running<'a> {
    pub(super) topology: &'a Topology,
    pub(super) wiring: &'a Wiring,
    pub(super) switches: Vec<Process>,
    agents: Vec<Process>,
    /// Captures the control channels, if requested.
    control_capture: Option<Process>,
}

/// Everything that starting the switches takes. Making it starts nothing.
pub(super) struct Plan {
    /// Their programs and entries; `None` for a switch whose program a controller installs.
    desired: Vec<Option<Desired>>,
    /// BMv2, if one of them runs it.
    bmv2: Option<Bmv2>,
}

impl Plan {
    /// Errors: a switch that can't be built here, programs and entries with mistakes.
    pub(super) fn of(topology: &Topology) -> Result<Plan, LabError> {
        topology.check_local()?;
        let bmv2 = Bmv2::for_topology(topology)?;
        // Reports all mistakes together, like those of the description.
        let made = provision::desired_of_all(topology);
        let mistakes: Vec<String> =
            made.iter().filter_map(|made| made.as_ref().err()).map(ToString::to_string).collect();
        match mistakes.is_empty() {
            true => {
                let desired = made.into_iter().map(|made| made.unwrap_or_default()).collect();
                Ok(Plan { desired, bmv2 })
            }
            false => Err(LabError::Unfit(mistakes.join("\n"))),
        }
    }
}

impl<'a> Running<'a> {
    /// Starts all switches, installs their programs and entries, then starts the agents.
    pub(super) fn start(
        topology: &'a Topology,
        wiring: &'a Wiring,
        plan: Plan,
        captures: Option<&Path>,
        progress: &Progress,
    ) -> Result<Running<'a>, LabError> {
        let switches = progress.step(
            "starting the switches",
            || {
                sys::allow_huge_pages(false);
                let start = |(at, _)| start_switch(topology, wiring, at, plan.bmv2.as_ref(), captures);
                let started: Result<Vec<_>, _> = topology.switches.iter().enumerate().map(start).collect();
                sys::allow_huge_pages(true);
                let mut switches = started?;
                for (switch, process) in topology.switches.iter().zip(&mut switches) {
                    match switch.target {
                        Target::Bmv2 => {
                            process.wait_for_address(&wiring.switches, switch.grpc_addr, START)?;
                        }
                        Target::Embedded | Target::Tofino => process.wait_for_line("ready", START)?,
                    }
                }
                Ok(switches)
            },
            |switches| {
                let addresses = topology.switches.iter().map(|switch| switch.grpc_addr);
                let ports: Vec<String> = addresses.map(|addr| addr.to_string()).collect();
                format!("{} switches run, P4Runtime at {}", switches.len(), ports.join(", "))
            },
        )?;
        let control_capture =
            captures.map(|folder| capture_control(&wiring.switches, "control", folder)).transpose()?;
        progress.step(
            "installing programs and entries over P4Runtime",
            || install(topology, wiring, plan.desired),
            |entries| format!("programs and {entries} entries installed over P4Runtime"),
        )?;
        let mut running = Running { topology, wiring, switches, agents: Vec::new(), control_capture };
        running.start_agents()?;
        Ok(running)
    }

    fn start_agents(&mut self) -> Result<(), LabError> {
        for (at, (host, ns)) in self.topology.hosts.iter().zip(&self.wiring.hosts).enumerate() {
            let switch =
                self.topology.attachment(at).and_then(|(_, switch, _)| self.topology.switches.get(switch));
            let Some(Runs::Rack(path, rack)) = switch.map(|switch| &switch.runs) else { continue };
            if !self.topology.has_agent(at) {
                continue;
            }
            let scheme = rack.scheme().name();
            let mut args: Vec<OsString> = vec!["host".into(), "run".into(), path.into()];
            for (option, value) in [
                ("--name", host.name.as_str()),
                ("--interface", HOST_INTERFACE),
                ("--tap", TAP_INTERFACE),
                ("--scheme", scheme.as_str()),
                ("--arch", rack.switch.arch.name()),
            ] {
                args.extend([option.into(), value.into()]);
            }
            self.agents.push(Process::start(&format!("the agent of {}", host.name), ns, args)?);
        }
        self.agents.iter_mut().try_for_each(|agent| agent.wait_for_line("ready", START))?;
        // An agent's interface exists once it is ready.
        for (at, (host, ns)) in self.topology.hosts.iter().zip(&self.wiring.hosts).enumerate() {
            if self.topology.has_agent(at) {
                ns.run(|| add_gateway(&mut Links::open()?, TAP_INTERFACE, host))??;
            }
        }
        Ok(())
    }

    /// Fails if a switch or an agent has ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        self.switches.iter_mut().chain(&mut self.agents).try_for_each(Process::check_running)
    }

    /// State for `exec` and `down`.
    pub(super) fn kept(&self) -> Result<KeptRack, LabError> {
        let pid = |number: u32| Pid::of(number).map_err(LabError::system("reading a process's start time"));
        let switches = self.topology.switches.iter().zip(&self.switches).map(|(switch, process)| {
            Ok(KeptSwitch {
                name: switch.name.clone(),
                process: pid(process.pid())?,
                grpc_addr: switch.grpc_addr,
                device_id: switch.device_id,
            })
        });
        let hosts = self.topology.hosts.iter().zip(&self.wiring.hosts).map(|(host, ns)| KeptHost {
            name: host.name.clone(),
            ip: host.ip,
            place: NamespaceHolder::Descriptor(ns.descriptor()),
        });
        Ok(KeptRack {
            name: self.topology.name.clone(),
            scheme: None,
            supervisor: pid(std::process::id())?,
            switches: switches.collect::<Result<_, LabError>>()?,
            hosts: hosts.collect(),
        })
    }

    /// Ends agents, then switches. Errors: a capture could not be completed.
    pub(super) fn stop(mut self) -> Result<(), LabError> {
        process::stop(&mut self.agents);
        let is_captured = self.control_capture.is_some();
        process::stop(self.switches.iter_mut().chain(&mut self.control_capture));
        // BMv2 knows no way to end but a signal.
        let ends = self.topology.switches.iter().map(|switch| switch.target != Target::Bmv2);
        let own = ends.zip(&mut self.switches).filter_map(|(ends, process)| ends.then_some(process));
        let mut last = own.chain(&mut self.control_capture).filter(|_| is_captured);
        last.try_for_each(Process::check_succeeded)
    }
}

fn start_switch(
    topology: &Topology,
    wiring: &Wiring,
    at: usize,
    bmv2: Option<&Bmv2>,
    captures: Option<&Path>,
) -> Result<Process, LabError> {
    let switch = &topology.switches[at];
    let name = format!("switch {}", switch.name);
    let captures = captures.map(|folder| capture_folder(folder, &switch.name)).transpose()?;
    if let (Target::Bmv2, Some(bmv2)) = (switch.target, bmv2) {
        let mut command = Command::new(&bmv2.path);
        command.stdin(Stdio::null());
        command.args(bmv2.args(&Instance::of_topology(topology, at), captures.as_deref()));
        return Process::start_program(&name, &wiring.switches, command);
    }
    let mut args: Vec<OsString> = ["switch", "run", "--no-p4"].map(Into::into).into();
    let mut push = |option: &str, value: String| args.extend([option.into(), value.into()]);
    push("--device-id", switch.device_id.to_string());
    push("--grpc-server-addr", switch.grpc_addr.to_string());
    push("--cpu-port", switch.cpu_port.to_string());
    push("--drop-port", switch.drop_port().to_string());
    // Rings take 9 MB for each port.
    push("--io", "packet".to_owned());
    push("--buffer", switch.buffer_bytes.to_string());
    push("--time-unit-ns", switch.time_unit_ns.to_string());
    let rack = match &switch.runs {
        Runs::Rack(_, rack) => Some(rack),
        _ => None,
    };
    if let Some(rack) = rack {
        push("--reserve", rack.reserved_bytes().to_string());
        push("--queueing", rack.switch.queueing.name().to_owned());
    }
    for (port, link) in topology.ports(at) {
        push("--interface", format!("{port}@{}", port_interface(&switch.name, port)));
        if let Some(rate_bps) = topology.rate_bps(at, port, link) {
            push("--port-rate", format!("{port}={rate_bps} b/s"));
        }
        // One end of a link causes its delay and loss, in both directions.
        if link.ends[0] == p4rack_codegen::rack::End::Port(at, port) {
            if link.delay.0 > 0 {
                push("--port-delay", format!("{port}={} ns", link.delay.0));
            }
            if link.loss_ppm > 0 {
                push("--port-loss", format!("{port}={}", f64::from(link.loss_ppm) / 1e4));
            }
        }
    }
    if !switch.grpc_addr.ip().is_loopback() {
        // Only processes in the switches' namespace can reach it, whatever the address.
        args.push("--insecure".into());
    }
    if let Some(folder) = captures {
        let mut option = OsString::from("--pcap=");
        option.push(folder);
        args.push(option);
    }
    Process::start(&name, &wiring.switches, args)
}

/// Installs programs and entries on all switches at the same time. Returns the number of updates.
fn install(topology: &Topology, wiring: &Wiring, desired: Vec<Option<Desired>>) -> Result<usize, LabError> {
    let wanted: Vec<(String, ConnectOptions, Arc<Desired>)> = topology
        .switches
        .iter()
        .zip(desired)
        .filter_map(|(switch, desired)| {
            let target = ConnectOptions::new(switch.grpc_addr.to_string(), switch.device_id);
            Some((switch.name.clone(), target, Arc::new(desired?)))
        })
        .collect();
    let installed = wiring.switches.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut under_way = JoinSet::new();
            for (name, target, desired) in wanted {
                under_way.spawn(async move {
                    provision::install(&desired, target).await.map_err(|error| format!("{name}: {error}"))
                });
            }
            let mut updates = 0;
            while let Some(done) = under_way.join_next().await {
                updates += done.map_err(|error| error.to_string())??;
            }
            Ok(updates)
        })
    })?;
    installed.map_err(|why: String| LabError::Unfit(format!("installing programs and entries: {why}")))
}
