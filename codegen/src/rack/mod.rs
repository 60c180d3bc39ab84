//! The rack description: a TOML file in, a checked model out.
//!
//! [`Rack::load`] reports every mistake it can see at once, each with file, line, field, what is wrong
//! and what to do. A `Rack` that exists is consistent: ports, addresses and names are unique, the hosts
//! share a subnet, every host that the workload names is there, what its protocols ask for fits.
//! `docs/rack.md` documents the file; [`Rack::build`] takes the same from values.
//!
//! ```text
//!  rack.toml ─ load ─▶ drafts ─┬─▶ checks ─▶ Rack ─ topology ─▶ Topology
//!  Topology ─ build ─▶ drafts ─┘             one switch         any number of them
//! ```

mod check;
pub mod import;
pub mod limits;
mod read;
mod reader;
mod summary;
mod topology;
pub mod units;
mod workload;

pub use reader::{At, FieldError, RackError, Section, Sink};
pub use topology::{End, Link, Station, Topology};

use crate::scheme::{Definition, PROTOCOLS, Protocol, Scheme};
use p4rack_wire::MacAddr;
use p4rack_wire::ethernet::{Ethernet, overhead};
use serde::{Serialize, Serializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// The description's fields, units, defaults and limits, as text for people.
pub const SCHEMA: &str = include_str!("../../../docs/rack.md");

/// A checked rack: one switch and its hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Rack {
    /// Name of the rack; names the generated files.
    pub name: String,
    /// The switch.
    pub switch: Switch,
    /// The hosts, as listed; one at least.
    pub hosts: Vec<Host>,
    /// What runs beside plain switching, in one pipeline and in its order.
    pub protocols: Vec<Arc<dyn Protocol>>,
    /// What `p4rack up` runs.
    pub workload: Option<Workload>,
}

/// The rack's switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Switch {
    /// What kind of switch it is.
    pub target: Target,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Rate of ports whose host says nothing else, bits a second.
    pub port_rate_bps: u64,
    /// Buffer shared by all ports, bytes.
    pub buffer_bytes: u64,
    /// Part of it that best effort frames can't take, where a protocol reserves it.
    pub reserved_bytes: u64,
    /// Port of the controller's packets.
    pub cpu_port: u16,
    /// Port that means dropping.
    pub drop_port: u16,
    /// Where P4Runtime listens.
    pub grpc_addr: SocketAddr,
    /// Length of a unit of the switch's ingress timestamp, nanoseconds.
    pub time_unit_ns: u64,
}

/// Buffer of a switch, unless the description says otherwise.
pub const BUFFER_BYTES: u64 = 256 << 10;
/// Part of the buffer that best effort frames can't take, percent.
pub const RESERVED_PERCENT: u64 = 25;

impl Switch {
    /// A switch with ports of this rate, and otherwise what descriptions that say no more ask for.
    pub fn new(target: Target, port_rate_bps: u64) -> Switch {
        Switch {
            target,
            device_id: target.device_id(),
            port_rate_bps,
            buffer_bytes: 0,
            reserved_bytes: 0,
            cpu_port: 510,
            drop_port: 511,
            grpc_addr: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9559),
            time_unit_ns: target.time_unit_ns(),
        }
        .with_buffer(BUFFER_BYTES, RESERVED_PERCENT)
    }

    /// The same with this buffer, of which so many percent are reserved.
    pub fn with_buffer(self, buffer_bytes: u64, reserved_percent: u64) -> Switch {
        Switch { buffer_bytes, reserved_bytes: buffer_bytes * reserved_percent / 100, ..self }
    }
}

/// Kinds of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// p4rack's own.
    Embedded,
    /// BMv2's `simple_switch_grpc`.
    Bmv2,
}

impl Target {
    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Embedded => "embedded",
            Target::Bmv2 => "bmv2",
        }
    }

    /// P4Runtime device id, unless the description says otherwise.
    pub const fn device_id(self) -> u64 {
        match self {
            Target::Embedded => 1,
            Target::Bmv2 => 0,
        }
    }

    /// Length of a unit of its ingress timestamp, unless the description says otherwise.
    pub const fn time_unit_ns(self) -> u64 {
        match self {
            Target::Embedded => 1,
            Target::Bmv2 => 1_000,
        }
    }
}

/// A host and the switch port it hangs on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Switch port.
    pub port: u16,
    /// Address of its interface; the port accepts no other source.
    #[serde(serialize_with = "as_text")]
    pub mac: MacAddr,
    /// Its address in the rack's subnet.
    pub ip: Ipv4Addr,
    /// Length of the subnet's prefix.
    pub prefix: u8,
    /// Rate of its link, bits a second.
    pub rate_bps: u64,
    /// Rate of its switch port: its link's, unless several hosts share the port through a break-out or one card.
    pub port_rate_bps: u64,
    /// Derived: number of its link. Its port, which hosts as fast as the port share; a link that is slower
    /// is a bottleneck of its own, and has a number beyond all ports.
    pub link: u16,
    /// For a port to other racks: share of the ports' rate, in percent, that is left to what comes from there. Nobody
    /// schedules it, so it is best effort.
    pub foreign_percent: Option<u32>,
}

/// What `p4rack up` runs on the rack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Its shape.
    pub kind: WorkloadKind,
    /// Schemes to run, in this order.
    pub schemes: Vec<Scheme>,
    /// Name of the host that all senders send to.
    pub receiver: String,
    /// Names of the senders.
    pub senders: Vec<String>,
    /// What the senders offer together, in percent of the receiver's rate.
    pub load_percent: u32,
    /// Ethernet payload of the senders' frames, bytes.
    pub payload_bytes: u32,
    /// How long each scheme runs, seconds.
    pub duration_s: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Request/response traffic beside the senders.
    pub rpc: Option<Rpc>,
    /// A host that dies during the run.
    pub kill: Option<Kill>,
}

/// Shapes of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Many senders, one receiver.
    Incast,
}

/// A client that reads values from a server over TCP, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rpc {
    /// Name of the client's host.
    pub client: String,
    /// Name of the server's host.
    pub server: String,
    /// Sizes of the values, bytes.
    pub value_bytes: Vec<u32>,
}

/// A host killed (SIGKILL) while it holds grants, once the measured run is over and traffic goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kill {
    /// Name of the host.
    pub host: String,
}

impl Rack {
    /// Reads and checks the description at `path`. The error holds everything that is wrong with it.
    pub fn load(path: impl AsRef<Path>) -> Result<Rack, RackError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Rack::parse(&text, &file),
            Err(error) => Err(RackError::unreadable(file, &error)),
        }
    }

    /// Reads and checks a description; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Rack, RackError> {
        Rack::parse_with(text, file, PROTOCOLS)
    }

    /// The same where these are the protocols that descriptions may name.
    pub fn parse_with(text: &str, file: &str, protocols: &[&dyn Definition]) -> Result<Rack, RackError> {
        read::parse(text, file, protocols)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Whether not all hosts have links of the same rate.
    pub fn has_mixed_rates(&self) -> bool {
        self.hosts.iter().any(|host| host.rate_bps != self.hosts[0].rate_bps)
    }

    /// Whether several hosts share a switch port.
    pub fn has_shared_ports(&self) -> bool {
        self.hosts.iter().enumerate().any(|(n, host)| self.hosts[..n].iter().any(|one| one.port == host.port))
    }

    /// How many hosts hang on links slower than their port: those of a break-out.
    pub fn breakout_links(&self) -> usize {
        self.hosts.iter().filter(|host| host.link != host.port).count()
    }

    /// One host of each port, those that come first.
    pub fn ports(&self) -> impl Iterator<Item = &Host> {
        let first = |(n, host): &(usize, &Host)| !self.hosts[..*n].iter().any(|one| one.port == host.port);
        self.hosts.iter().enumerate().filter(first).map(|(_, host)| host)
    }

    /// Bytes that a full frame takes on the wire, with all that protocols add, preamble, gap and FCS.
    pub fn wire_bytes(&self) -> u64 {
        let tags: u64 = self.protocols.iter().map(|protocol| protocol.tag_bytes()).sum();
        overhead::wire_bytes(Ethernet::BYTES as u64 + tags + overhead::MTU)
    }

    /// Most Ethernet payload that `host`'s link can carry towards it, bits a second: as much as the strictest protocol
    /// lets pass, every full frame's time without one.
    pub fn goodput_ceiling_bps(&self, host: &Host) -> u64 {
        let of_protocols =
            self.protocols.iter().filter_map(|protocol| protocol.goodput_ceiling_bps(self, host));
        of_protocols.min().unwrap_or_else(|| {
            let frame_s = self.wire_bytes() as f64 * 8.0 / host.rate_bps as f64;
            ((overhead::MTU * 8) as f64 / frame_s) as u64
        })
    }

    /// As [`Rack::goodput_ceiling_bps`], for a host that sends.
    pub fn send_ceiling_bps(&self, host: &Host) -> u64 {
        let of_protocols = self.protocols.iter().filter_map(|protocol| protocol.send_ceiling_bps(self, host));
        of_protocols.min().unwrap_or_else(|| self.goodput_ceiling_bps(host))
    }

    /// Part of the switch's buffer that best effort frames can't take.
    pub fn reserved_bytes(&self) -> u64 {
        let reserves = self.protocols.iter().any(|protocol| protocol.reserves_buffer());
        if reserves { self.switch.reserved_bytes } else { 0 }
    }

    /// What is allowed, and may cost what the protocols promise; each names the field and says what fits.
    pub fn warnings(&self) -> Vec<String> {
        self.protocols.iter().flat_map(|protocol| protocol.warnings(self)).collect()
    }

    /// What the description says and what follows from it, for people.
    pub fn summary(&self) -> String {
        summary::summary(self)
    }

    /// The same for programs.
    pub fn to_json(&self) -> serde_json::Value {
        summary::to_json(self)
    }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
