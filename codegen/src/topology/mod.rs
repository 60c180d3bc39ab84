//! Topologies: several switches with any programs, hosts, and links between them.
//!
//! [`Topology::load`] reads a TOML file, or a `topology.json` of the P4 tutorials, and reports all mistakes that it can
//! see. `docs/topology.md` documents both.
//!
//! ```text
//!  topology.toml ─ read ────▶ drafts ─┐
//!  topology.json ─ tutorial ▶ drafts ─┴▶ checks ─▶ Topology
//! ```

mod check;
mod drafts;
mod links;
mod places;
mod positions;
mod program;
mod read;
mod tutorial;
mod workload;

pub use places::Places;
pub use program::{Program, ProgramError, Reading, files};
pub use tutorial::Exercise;
pub use workload::{Datagrams, Requests, Workload};

use crate::kind::Kind;
use crate::rack::{DROP_PORT, End, Host as RackHost, Rack, RackError};
use crate::text;
use p4rack_wire::{MacAddr, Nanos};
use serde::Serialize;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A checked topology: names, ports and addresses are unique, and every link leads from a port to a port or a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Name of the topology.
    pub name: String,
    /// Switches, as listed; at least one.
    pub switches: Vec<Switch>,
    /// Hosts, as listed. Each has one link.
    pub hosts: Vec<Host>,
    /// Links, as listed.
    pub links: Vec<Link>,
    /// What `p4rack up` sends between the hosts.
    pub workload: Option<Workload>,
    /// Where its parts stand in its file.
    pub places: Places,
}

/// A switch of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Name of the switch.
    pub name: String,
    /// What it runs.
    pub runs: Runs,
    /// File with its entries.
    pub entries: Option<PathBuf>,
    /// Kind of switch.
    pub target: Target,
    /// Address at which it serves P4Runtime.
    pub grpc_addr: SocketAddr,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Port for packets of the controller.
    pub cpu_port: u16,
    /// Size of the buffer that all its ports share.
    pub buffer_bytes: u64,
    /// Unit of its timestamps, in nanoseconds.
    pub time_unit_ns: u64,
}

impl Switch {
    /// The port that means "drop" in its program.
    pub fn drop_port(&self) -> u16 {
        match &self.runs {
            Runs::Rack(_, rack) => rack.switch.drop_port,
            _ => DROP_PORT,
        }
    }
}

/// What a switch runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Runs {
    /// Nothing: a controller installs its program.
    Nothing,
    /// A P4 program.
    Program(PathBuf),
    /// The generated program of a rack, with its entries and protocols.
    Rack(PathBuf, Box<Rack>),
}

/// Kinds of switches in a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// p4rack's embedded switch.
    Embedded,
    /// BMv2's `simple_switch_grpc`.
    Bmv2,
    /// Tofino, over BFRuntime.
    Tofino,
}

impl Target {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Embedded => "embedded",
            Target::Bmv2 => "bmv2",
            Target::Tofino => "tofino",
        }
    }
}

impl FromStr for Target {
    type Err = String;
    fn from_str(text: &str) -> Result<Target, String> {
        let all = [Target::Embedded, Target::Bmv2, Target::Tofino];
        all.into_iter()
            .find(|target| target.name() == text)
            .ok_or_else(|| format!("`{text}` is no target; there are embedded, bmv2 and tofino"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A host of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// MAC address of its interface.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Prefix length of its subnet.
    pub prefix: u8,
    /// Router of its default route.
    pub gateway: Option<Ipv4Addr>,
    /// MAC address of the router, for programs that don't answer ARP.
    pub gateway_mac: Option<MacAddr>,
    /// Commands that a shell runs on the host once its link is up.
    pub commands: Vec<String>,
}

/// A link between a switch and a host or another switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Both ends. The first is a switch's.
    pub ends: [End; 2],
    /// Rate in both directions, in bits per second; `None` is no limit.
    pub rate_bps: Option<u64>,
    /// Delay from one end to the other.
    pub delay: Nanos,
    /// Frames lost in each direction, per million.
    pub loss_ppm: u32,
}

impl Link {
    /// The port of a switch at this link, and what is at the other end.
    pub fn from_switch(&self, switch: usize) -> impl Iterator<Item = (u16, End)> {
        let [a, b] = self.ends;
        [(a, b), (b, a)].into_iter().filter_map(move |(own, other)| match own {
            End::Port(at, port) if at == switch => Some((port, other)),
            _ => None,
        })
    }
}

impl Topology {
    /// Reads and checks the file at `path`. The error lists everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Topology, RackError> {
        Topology::load_exercise(path, &Exercise::default())
    }

    /// Like [`Topology::load`]; `exercise` says which programs the switches of a `topology.json` run.
    pub fn load_exercise(path: &Path, exercise: &Exercise) -> Result<Topology, RackError> {
        let file = path.display().to_string();
        let text = text::read(path).map_err(|error| {
            let help = "give the path of a topology, e.g. examples/pod/pod.toml".to_owned();
            RackError::of_file(file.clone(), text::unreadable(&error), help)
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        match Kind::of_file(&text, path) {
            Some(Kind::Json) => tutorial::parse(&text, &file, path, exercise),
            Some(kind) if kind != Kind::Topology => {
                Err(RackError::of_file(file.clone(), kind.instead_of(Kind::Topology), kind.command(&file)))
            }
            _ => read::parse(&text, &file, folder),
        }
    }

    /// Position of the switch with this name.
    pub fn switch(&self, name: &str) -> Option<usize> {
        self.switches.iter().position(|switch| switch.name == name)
    }

    /// Position of the host with this name.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// Name of an end of a link, as descriptions write it: `h1`, `s1:2`.
    pub fn end_name(&self, end: End) -> String {
        match end {
            End::Host(host) => self.hosts.get(host).map_or("?", |host| &host.name).to_owned(),
            End::Port(switch, port) => {
                format!("{}:{port}", self.switches.get(switch).map_or("?", |switch| &switch.name))
            }
        }
    }

    /// Ports of a switch, in the links' order, each with its link.
    pub fn ports(&self, switch: usize) -> impl Iterator<Item = (u16, &Link)> {
        self.links.iter().flat_map(move |link| link.from_switch(switch).map(move |(port, _)| (port, link)))
    }

    /// The rack whose program a host's switch runs, and that rack's own host at the same port.
    pub fn in_rack(&self, host: usize) -> Option<(&Rack, &RackHost)> {
        let (_, switch, port) = self.attachment(host)?;
        let Runs::Rack(_, rack) = &self.switches.get(switch)?.runs else { return None };
        Some((rack, rack.hosts.iter().find(|host| host.port == port)?))
    }

    /// Whether an agent stands between a host's applications and its link.
    pub fn has_agent(&self, host: usize) -> bool {
        self.in_rack(host).is_some_and(|(rack, _)| rack.protocols.iter().any(|one| one.needs_agents()))
    }

    /// Rate of a link at a port in bits per second: its own, or that of the rack that the switch runs; `None` is no limit.
    pub fn rate_bps(&self, switch: usize, port: u16, link: &Link) -> Option<u64> {
        let of_rack = || match self.switches.get(switch).map(|switch| &switch.runs) {
            Some(Runs::Rack(_, rack)) => rack.hosts.iter().find(|host| host.port == port),
            _ => None,
        };
        link.rate_bps.or_else(|| of_rack().map(|host| host.rate_bps))
    }

    /// The link of a host, and the switch and port at its other end.
    pub fn attachment(&self, host: usize) -> Option<(&Link, usize, u16)> {
        self.links.iter().find_map(|link| match link.ends {
            [End::Port(switch, port), End::Host(at)] if at == host => Some((link, switch, port)),
            _ => None,
        })
    }
}
