//! BMv2's `simple_switch_grpc`: where it is installed, and how switches are run by it.

use crate::error::LabError;
use crate::network::port_interface;
use crate::process::on_path;
use p4rack_codegen::Rack;
use p4rack_codegen::topology::{Target, Topology};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name of the program.
pub const PROGRAM: &str = "simple_switch_grpc";
/// First port for the command lines of several; it is BMv2's default.
const THRIFT_PORT: u16 = 9090;
/// Priorities of each port's queues, those of the embedded switch.
const PRIORITIES: &str = "8";
/// Address for notifications that stays within the process: the default is a file that outlives it.
const NOTIFICATIONS: &str = "inproc://notifications";

/// The program, as it is installed.
#[derive(Clone, Debug)]
pub struct Bmv2 {
    /// Its path.
    pub path: PathBuf,
    has_thrift: bool,
    has_notifications: bool,
}

/// A switch that it runs.
#[derive(Clone, Debug)]
pub struct Instance {
    /// P4Runtime device id.
    pub device_id: u64,
    /// Address at which it serves P4Runtime.
    pub grpc_addr: SocketAddr,
    /// Port for BMv2's own command line.
    pub thrift_port: u16,
    /// Port for packets of the controller.
    pub cpu_port: u16,
    /// The port that means "drop" in its program.
    pub drop_port: u16,
    /// Its ports, each with the name of its interface.
    pub ports: Vec<(u16, String)>,
}

impl Bmv2 {
    /// Finds the program on PATH and asks it for its options. The error says how to get it.
    pub fn find() -> Result<Bmv2, LabError> {
        let missing = || format!("{PROGRAM} is not on PATH; `p4rack doctor` shows how to get it");
        Bmv2::at(on_path(PROGRAM).ok_or_else(|| LabError::Unfit(missing()))?)
    }

    fn at(path: PathBuf) -> Result<Bmv2, LabError> {
        let help = Command::new(&path).arg("--help").stdin(Stdio::null()).output();
        let help = help.map_err(LabError::file(&path))?;
        let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
        let [has_thrift, has_notifications] =
            ["--thrift-port", "--notifications-addr"].map(|option| help.contains(option));
        Ok(Bmv2 { path, has_thrift, has_notifications })
    }

    /// The program, if a switch of the topology needs it. Errors: it isn't installed, or a switch can't be built here.
    pub fn for_topology(topology: &Topology) -> Result<Option<Bmv2>, LabError> {
        let Some(first) = topology.switches.iter().position(|switch| switch.target == Target::Bmv2) else {
            return Ok(None);
        };
        topology.check_bmv2_links()?;
        match on_path(PROGRAM) {
            Some(path) => Bmv2::at(path).map(Some),
            None => {
                let message =
                    format!("{}'s target is bmv2: {PROGRAM} is not on PATH", topology.switches[first].name);
                let help = "`p4rack doctor` shows how to get it; target = \"embedded\" runs the same program";
                Err(topology.mistake_of_switch(first, "target", message, help).into())
            }
        }
    }

    /// Options that keep instances on one machine apart, as far as this build has them.
    pub fn apart(&self, thrift_port: u16) -> Vec<String> {
        let mut args = Vec::new();
        if self.has_thrift {
            args.extend(["--thrift-port".to_owned(), thrift_port.to_string()]);
        }
        if self.has_notifications {
            args.extend(["--notifications-addr", NOTIFICATIONS].map(str::to_owned));
        }
        args
    }

    /// Arguments of a switch that waits for its program; `captures` is a folder for what passes its ports.
    pub fn args(&self, switch: &Instance, captures: Option<&Path>) -> Vec<String> {
        let mut args: Vec<String> = ["--no-p4", "--device-id"].map(str::to_owned).into();
        args.push(switch.device_id.to_string());
        args.extend(self.apart(switch.thrift_port));
        args.extend(captures.map(|folder| format!("--pcap={}", folder.display())));
        for (port, interface) in &switch.ports {
            args.extend(["-i".to_owned(), format!("{port}@{interface}")]);
        }
        let (addr, cpu, drop) = (switch.grpc_addr, switch.cpu_port, switch.drop_port);
        args.extend(["--", "--grpc-server-addr", &addr.to_string()].map(str::to_owned));
        args.extend(["--cpu-port", &cpu.to_string(), "--drop-port", &drop.to_string()].map(str::to_owned));
        args.extend(["--priority-queues", PRIORITIES].map(str::to_owned));
        args
    }
}

impl Instance {
    /// A switch of a topology, by its position.
    pub fn of_topology(topology: &Topology, at: usize) -> Instance {
        let switch = &topology.switches[at];
        Instance {
            device_id: switch.device_id,
            grpc_addr: switch.grpc_addr,
            thrift_port: thrift_port(topology, at),
            cpu_port: switch.cpu_port,
            drop_port: switch.drop_port(),
            ports: topology.ports(at).map(|(port, _)| (port, port_interface(&switch.name, port))).collect(),
        }
    }

    /// The switch of a rack.
    pub fn of_rack(name: &str, rack: &Rack) -> Instance {
        let switch = &rack.switch;
        Instance {
            device_id: switch.device_id,
            grpc_addr: switch.grpc_addr,
            thrift_port: THRIFT_PORT,
            cpu_port: switch.cpu_port,
            drop_port: switch.drop_port,
            ports: rack.hosts.iter().map(|host| (host.port, port_interface(name, host.port))).collect(),
        }
    }
}

/// Port for the command line of a switch: they count from the first, without those of P4Runtime servers.
fn thrift_port(topology: &Topology, at: usize) -> u16 {
    let before = topology.switches.iter().take(at).filter(|other| other.target == Target::Bmv2).count();
    let is_free = |port: &u16| topology.switches.iter().all(|switch| switch.grpc_addr.port() != *port);
    (THRIFT_PORT..).filter(is_free).nth(before).unwrap_or(THRIFT_PORT)
}
