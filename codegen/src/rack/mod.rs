//! A rack: its switch, hosts and workload, and the protocols that run on it, as checked values.
//!
//! A `Rack` that exists is consistent: ports, addresses and names are unique, the hosts share a subnet, every host that
//! the workload names exists, and its protocols' demands fit. The module `description` makes one from a file or from
//! values.

pub(crate) mod crossings;
pub mod limits;
pub(crate) mod loops;
pub(crate) mod pipes;
mod pool;
mod protocol;
pub(crate) mod reader;
mod run;
mod scheme;
mod topology;
pub mod units;

pub use pool::{Cache, Pool};
pub(crate) use protocol::reason;
pub use protocol::{
    Carried, Claim, Cost, Crossing, Definition, Denied, DropReason, EtherTypeState, Header, Protocol,
    ReasonCounter, Reservations, Spacing,
};
pub use reader::{At, FieldError, RackError, Section, Sink};
pub use run::{KvServer, Run};
pub(crate) use scheme::L2;
pub use scheme::{Scheme, TOGETHER};
pub use topology::{End, Link, Station, Topology};

use crate::arch::Arch;
use p4rack_wire::MacAddr;
use p4rack_wire::ethernet::{Ethernet, overhead};
use serde::{Deserialize, Serialize, Serializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// A checked rack: one switch and its hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Rack {
    /// Name of the rack; names the generated files.
    pub name: String,
    /// The switch.
    pub switch: Switch,
    /// The hosts, as listed; at least one.
    pub hosts: Vec<Host>,
    /// Protocols that run beside plain switching, in the order of the pipeline.
    pub protocols: Vec<Arc<dyn Protocol>>,
    /// The workload of `p4rack up`.
    pub workload: Option<Workload>,
}

/// The rack's switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Switch {
    /// Kind of switch.
    pub target: Target,
    /// Architecture of its program. Commands may choose another one ([`Rack::on`]).
    pub arch: Arch,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Default rate of ports, in bits per second.
    pub port_rate_bps: u64,
    /// Size of the buffer shared by all ports, in bytes.
    pub buffer_bytes: u64,
    /// Part of the buffer that best-effort frames cannot use, if a protocol reserves it.
    pub reserved_bytes: u64,
    /// How frames in a queue of a port take turns.
    #[serde(skip_serializing_if = "Queueing::is_fifo")]
    pub queueing: Queueing,
    /// CPU port, for packets of the controller.
    pub cpu_port: u16,
    /// The port that means "drop".
    pub drop_port: u16,
    /// Address of the P4Runtime server.
    pub grpc_addr: SocketAddr,
    /// Unit of the switch's ingress timestamp, in nanoseconds.
    pub time_unit_ns: u64,
    /// Number of such switches: top-of-rack switches with the same program and entries. Each host has a link to each of them.
    #[serde(skip_serializing_if = "is_one")]
    pub tors: u16,
}

fn is_one(tors: &u16) -> bool {
    *tors == 1
}

/// Default size of a switch's buffer.
pub const BUFFER_BYTES: u64 = 256 << 10;
/// Default port for packets of the controller.
pub const CPU_PORT: u16 = 510;
/// Default port that means "drop".
pub const DROP_PORT: u16 = 511;
/// Part of the buffer that best-effort frames cannot use, in percent.
pub const RESERVED_PERCENT: u64 = 25;

impl Switch {
    /// A switch with ports of this rate, and defaults for everything else.
    pub fn new(target: Target, port_rate_bps: u64) -> Switch {
        Switch {
            target,
            arch: Arch::V1model,
            device_id: target.device_id(),
            port_rate_bps,
            buffer_bytes: 0,
            reserved_bytes: 0,
            queueing: Queueing::Fifo,
            cpu_port: CPU_PORT,
            drop_port: DROP_PORT,
            grpc_addr: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9559),
            time_unit_ns: target.time_unit_ns(),
            tors: 1,
        }
        .with_buffer(BUFFER_BYTES, RESERVED_PERCENT)
    }

    /// The same with this buffer, of which `reserved_percent` are reserved.
    pub fn with_buffer(self, buffer_bytes: u64, reserved_percent: u64) -> Switch {
        // Whether the buffer is too large is checked later.
        let reserved_bytes = u128::from(buffer_bytes) * u128::from(reserved_percent.min(100)) / 100;
        Switch { buffer_bytes, reserved_bytes: reserved_bytes as u64, ..self }
    }

    /// Addresses of P4Runtime of all its switches: that of the first one, then the ports behind it.
    pub fn grpc_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        let (ip, first) = (self.grpc_addr.ip(), self.grpc_addr.port());
        (0..self.tors).map(move |nth| SocketAddr::new(ip, first.saturating_add(nth)))
    }
}

/// The order of frames in a queue of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queueing {
    /// As they came: a host that sends more gets more.
    #[default]
    Fifo,
    /// The ports where they came in take turns, and each has a share of the buffer.
    Fair,
}

impl Queueing {
    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Queueing::Fifo => "fifo",
            Queueing::Fair => "fair",
        }
    }

    fn is_fifo(&self) -> bool {
        *self == Queueing::Fifo
    }
}

impl FromStr for Queueing {
    type Err = String;
    fn from_str(text: &str) -> Result<Queueing, String> {
        let found = [Queueing::Fifo, Queueing::Fair].into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("`{text}` is no queueing; there are fifo and fair"))
    }
}

/// Kinds of switches that a rack may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// p4rack's embedded switch.
    Embedded,
    /// BMv2's `simple_switch_grpc`.
    Bmv2,
}

impl FromStr for Target {
    type Err = String;
    fn from_str(text: &str) -> Result<Target, String> {
        match text {
            "embedded" => Ok(Target::Embedded),
            "bmv2" => Ok(Target::Bmv2),
            _ => Err(format!("`{text}` is no target; there are embedded and bmv2")),
        }
    }
}

impl Target {
    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Embedded => "embedded",
            Target::Bmv2 => "bmv2",
        }
    }

    /// Default P4Runtime device id.
    pub const fn device_id(self) -> u64 {
        match self {
            Target::Embedded => 1,
            Target::Bmv2 => 0,
        }
    }

    /// Default unit of its ingress timestamp.
    pub const fn time_unit_ns(self) -> u64 {
        match self {
            Target::Embedded => 1,
            Target::Bmv2 => 1_000,
        }
    }
}

/// A host and its switch port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Number of its switch port.
    pub port: u16,
    /// MAC address of its interface; the port accepts no other source.
    #[serde(serialize_with = "as_text")]
    pub mac: MacAddr,
    /// Its IP address in the rack's subnet.
    pub ip: Ipv4Addr,
    /// Prefix length of the subnet.
    pub prefix: u8,
    /// Rate of its link in bits per second.
    pub rate_bps: u64,
    /// Rate of its switch port: that of the link, unless several hosts share the port through a break-out or
    /// one card.
    pub port_rate_bps: u64,
    /// Derived number of its link: the port, shared by hosts that are as fast as the port. A slower link is a
    /// bottleneck of its own, and has a number beyond all ports.
    pub link: u16,
    /// For a port to other racks: share of the ports' rate, in percent, left to traffic from there. That
    /// traffic isn't scheduled, so it is best effort.
    pub foreign_percent: Option<u32>,
}

/// The workload that `p4rack up` runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Shape of the workload.
    pub kind: WorkloadKind,
    /// The runs, in this order.
    pub schemes: Vec<Run>,
    /// Names of the receivers: with an incast one.
    pub receivers: Vec<String>,
    /// Names of the senders: with an outcast one.
    pub senders: Vec<String>,
    /// Load that the senders offer together, in percent of the rate of the incast's receiver or the outcast's sender.
    pub load_percent: u32,
    /// Ethernet payload of the senders' frames, bytes.
    pub payload_bytes: u32,
    /// Duration of each scheme's run, in seconds.
    pub duration_s: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Request/response traffic in addition to the senders.
    pub rpc: Option<Rpc>,
    /// A host that dies during the run.
    pub kill: Option<Kill>,
    /// Of two switches the one that is killed while the workload runs, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_tor: Option<u16>,
    /// The store, if that is the workload: its server is the only receiver, its clients are the senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreParameters>,
}

/// A key-value store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreParameters {
    /// Number of records.
    pub records: u32,
    /// Size of values, bytes.
    pub value_bytes: u32,
    /// Mixes of operations, one after the other, each for an equal part of the duration.
    pub mixes: Vec<Mix>,
    /// Operations of each client under way, where more than one may be.
    pub depth: u32,
    /// Host that writes to the server's port as fast as it can, beside the clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk: Option<String>,
    /// With this it is a log store of the only client, whose older records are in the server's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Log>,
    /// With this each client has a store of its own, in a cached region of a pool's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

/// A log store: new records are in its client's memory, older ones in remote memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Name of the spare host for an offload engine.
    pub engine: Option<String>,
    /// Part of the records' room that local memory has, in percent.
    pub memory_percent: u32,
}

/// YCSB's mixes of operations on single records (Cooper et al., SoCC 2010).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Mix {
    /// Half reads, half writes.
    A,
    /// 95 % reads, 5 % writes.
    B,
    /// Reads only.
    C,
    /// Half reads, half reads that are followed by a write of the same record.
    F,
}

impl Mix {
    /// All.
    pub const ALL: [Mix; 4] = [Mix::A, Mix::B, Mix::C, Mix::F];

    /// Its name in files and YCSB's.
    pub const fn name(self) -> &'static str {
        match self {
            Mix::A => "A",
            Mix::B => "B",
            Mix::C => "C",
            Mix::F => "F",
        }
    }

    /// Share of plain reads.
    pub const fn reads(self) -> f64 {
        match self {
            Mix::A | Mix::F => 0.5,
            Mix::B => 0.95,
            Mix::C => 1.0,
        }
    }

    /// Whether a write replaces what was read before.
    pub const fn reads_before_writing(self) -> bool {
        matches!(self, Mix::F)
    }
}

impl FromStr for Mix {
    type Err = String;
    fn from_str(text: &str) -> Result<Mix, String> {
        let found = Mix::ALL.into_iter().find(|mix| mix.name() == text);
        found.ok_or_else(|| format!("`{text}` is no mix; there are A, B, C and F"))
    }
}

/// Shape of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Many senders and one receiver.
    Incast,
    /// One sender and many receivers.
    Outcast,
    /// A key-value store and its clients.
    Store,
}

impl WorkloadKind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            WorkloadKind::Incast => "incast",
            WorkloadKind::Outcast => "outcast",
            WorkloadKind::Store => "store",
        }
    }
}

impl Workload {
    /// The host whose link all of the traffic crosses, and the others.
    pub fn ends(&self) -> (&str, &[String]) {
        let (one, many) = match self.kind {
            WorkloadKind::Incast | WorkloadKind::Store => (&self.receivers, &self.senders),
            WorkloadKind::Outcast => (&self.senders, &self.receivers),
        };
        (one.first().map_or("", String::as_str), many)
    }
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

/// A host killed (SIGKILL) with unused grants, after the measured part and while traffic continues.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kill {
    /// Name of the host.
    pub host: String,
}

impl Rack {
    /// The same rack where the switch's program is written for `arch`. Slots, cells and hosts' limits depend on it.
    pub fn on(&self, arch: Arch) -> Rack {
        Rack { switch: Switch { arch, ..self.switch.clone() }, ..self.clone() }
    }

    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Refuses a rack with two switches where `what`, the begin of a sentence, takes only those with one.
    pub fn with_one_switch(&self, what: &str) -> Result<(), String> {
        match self.switch.tors {
            1 => Ok(()),
            tors => Err(format!(
                "{what} takes racks with one switch, and switch.tors of {} is {tors}: set it to 1",
                self.name
            )),
        }
    }

    /// Whether hosts have links of different rates.
    pub fn has_mixed_rates(&self) -> bool {
        self.hosts.iter().any(|host| host.rate_bps != self.hosts[0].rate_bps)
    }

    /// Whether several hosts share a switch port.
    pub fn has_shared_ports(&self) -> bool {
        self.hosts.iter().enumerate().any(|(n, host)| self.hosts[..n].iter().any(|one| one.port == host.port))
    }

    /// Number of hosts on links slower than their port, as on a break-out.
    pub fn breakout_links(&self) -> usize {
        self.hosts.iter().filter(|host| host.link != host.port).count()
    }

    /// One host per port, the first of each.
    pub fn ports(&self) -> impl Iterator<Item = &Host> {
        let first = |(n, host): &(usize, &Host)| !self.hosts[..*n].iter().any(|one| one.port == host.port);
        self.hosts.iter().enumerate().filter(first).map(|(_, host)| host)
    }

    /// Wire bytes of a full frame, with all that protocols add, preamble, gap and FCS.
    pub fn wire_bytes(&self) -> u64 {
        let tags: u64 = self.protocols.iter().map(|protocol| protocol.tag_bytes()).sum();
        overhead::wire_bytes(Ethernet::BYTES as u64 + tags + overhead::MTU)
    }

    /// Maximum Ethernet payload towards `host`, in bits per second, under the strictest protocol; without
    /// one, the link's rate for full frames.
    pub fn goodput_ceiling_bps(&self, host: &Host) -> u64 {
        let of_protocols =
            self.protocols.iter().filter_map(|protocol| protocol.goodput_ceiling_bps(self, host));
        of_protocols.min().unwrap_or_else(|| {
            let frame_s = self.wire_bytes() as f64 * 8.0 / host.rate_bps as f64;
            ((overhead::MTU * 8) as f64 / frame_s) as u64
        })
    }

    /// Like [`Rack::goodput_ceiling_bps`], for frames that a host sends.
    pub fn send_ceiling_bps(&self, host: &Host) -> u64 {
        let of_protocols = self.protocols.iter().filter_map(|protocol| protocol.send_ceiling_bps(self, host));
        of_protocols.min().unwrap_or_else(|| self.goodput_ceiling_bps(host))
    }

    /// Part of the switch's buffer that best-effort frames cannot use.
    pub fn reserved_bytes(&self) -> u64 {
        let reserves = self.protocols.iter().any(|protocol| protocol.reserves_buffer());
        if reserves { self.switch.reserved_bytes } else { 0 }
    }

    /// Warnings: settings that are allowed, but may break the protocols' promises. Each names the field and says what
    /// would fit.
    pub fn warnings(&self) -> Vec<String> {
        let of_protocols = self.protocols.iter().flat_map(|protocol| protocol.warnings(self));
        of_protocols.chain(self.without_turns()).chain(self.without_pipes()).collect()
    }

    /// A warning if its hosts are in pipes whose registers its protocols can't reach.
    fn without_pipes(&self) -> Option<String> {
        let refused = crossings::refuses(self)?;
        Some(format!(
            "switch.arch: no program is generated for {}: {} {refused}",
            self.switch.arch,
            self.scheme()
        ))
    }

    /// A warning if its switch has no fair queueing, but is asked for it.
    fn without_turns(&self) -> Option<String> {
        let switch = match (self.switch.target, self.switch.arch.is_tofino()) {
            _ if self.switch.queueing.is_fifo() => return None,
            (Target::Bmv2, _) => "BMv2",
            (Target::Embedded, true) => "Tofino, of the switches that run this program,",
            (Target::Embedded, false) => return None,
        };
        Some(format!(
            "switch.queueing: {switch} has no turns of ingress ports: there, a host that sends more to a port gets more of it"
        ))
    }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
