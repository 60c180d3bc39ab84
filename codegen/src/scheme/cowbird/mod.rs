//! Cowbird: an offload engine in the switch, which moves data between rings of compute nodes and memory pools.

mod alu;
mod check;
mod constants;
mod drops;
mod layers;
mod program;
mod read;
mod serve;
mod turns;

pub use serve::{Connection, Inserts, Instance, Pool, Start};
pub use turns::Run;

use super::{Carried, Claim, DropReason, EtherTypeState, Header, Protocol, Scheme};
use crate::arch::Arch;
use crate::rack::{Host, Rack, Section, Sink};
use p4rack_wire::ipv4::Udp;
use p4rack_wire::roce::{Bth, Mtu, UDP_PORT, icrc};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Counter of sent frames, by instance and phase.
pub const SENT_COUNTER: &str = "RackIngress.cowbird.sent";

/// Counter of frames whose length differs from their headers: on Tofino, egress drops these.
pub const BAD_LENGTH_COUNTER: &str = "RackEgress.cowbird.bad_length";

/// Registers with a cell per instance that changes while its compute node answers: answered probes (the name depends on
/// the architecture), and completed requests.
pub const LIFE_REGISTERS: [&str; 4] = [
    "RackIngress.cowbird.probes",
    "RackIngress.cowbird.answered",
    "RackIngress.cowbird.reads",
    "RackIngress.cowbird.writes",
];

/// Queue of probes: below everything else.
const CLASS_PROBE: u8 = 0;
/// Bytes of UDP's header, the base transport header and the iCRC, which every packet has.
const HEADERS: usize = Udp::BYTES + Bth::BYTES + icrc::BYTES;
/// Turns without news after which an instance is at rest.
const BUSY_TURNS: u32 = 64;
const COWBIRD: &str = "cowbird";

impl Scheme {
    /// Cowbird's engine in the switch.
    pub const COWBIRD: Scheme = Scheme::one(COWBIRD);
}

/// The engine's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cowbird {
    /// Its MAC address.
    #[serde(serialize_with = "as_text")]
    pub mac: MacAddr,
    /// Its IP address, in the hosts' subnet.
    pub ip: Ipv4Addr,
    /// Names of the hosts whose threads it may serve.
    pub compute: Vec<String>,
    /// Names of the hosts whose memory it may use.
    pub pool: Vec<String>,
    /// Maximum number of threads' sets.
    pub instances: u32,
    /// Maximum number of regions of all sets.
    pub regions: u32,
    /// Bytes of a packet's payload; hosts need the same.
    #[serde(serialize_with = "as_bytes")]
    pub mtu: Mtu,
    /// Maximum requests of an instance in flight: a power of two.
    pub in_flight: u32,
    /// Maximum bytes of a request: half of a ring.
    pub message_bytes_max: u32,
    /// Time between two turns of an instance.
    #[serde(rename = "probe_ns", serialize_with = "as_nanos")]
    pub probe: Nanos,
    /// An idle instance uses one turn in this many: a power of two.
    pub rest_turns: u32,
    /// Time without an answer after which an instance restarts from its last completed request.
    #[serde(rename = "timeout_ns", serialize_with = "as_nanos")]
    pub timeout: Nanos,
}

impl Cowbird {
    /// The defaults for a description that gives only the engine's address and the hosts.
    pub const fn new(ip: Ipv4Addr, compute: Vec<String>, pool: Vec<String>) -> Cowbird {
        Cowbird {
            mac: MacAddr([2, 0xc0, 0xb1, 0xd0, 0, 1]),
            ip,
            compute,
            pool,
            instances: 64,
            regions: 256,
            mtu: Mtu::B1024,
            in_flight: 16,
            message_bytes_max: 64 << 10,
            probe: Nanos::from_micros(20),
            rest_turns: 64,
            timeout: Nanos::from_millis(20),
        }
    }

    /// Whether it may serve threads of a host.
    pub fn is_compute(&self, host: &Host) -> bool {
        self.compute.contains(&host.name)
    }

    /// Whether it may use memory of a host.
    pub fn is_pool(&self, host: &Host) -> bool {
        self.pool.contains(&host.name)
    }
}

/// Cowbird in descriptions.
#[derive(Debug)]
pub struct Definition;

impl super::Definition for Definition {
    fn section(&self) -> &'static str {
        COWBIRD
    }

    fn variants(&self) -> &'static [&'static str] {
        &[COWBIRD]
    }

    fn add(&self) -> &'static str {
        "add a [cowbird] table with ip, the engine's address, and compute = [\"…\"] and pool = [\"…\"], names of hosts"
    }

    fn read(&self, section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>> {
        Some(Arc::new(read::read(section, sink)?))
    }

    fn templates(&self) -> &'static [(&'static str, &'static str)] {
        program::TEMPLATES
    }

    fn registers(&self) -> &'static [(&'static str, &'static str)] {
        program::REGISTERS
    }

    fn terms(&self) -> &'static str {
        program::TERMS
    }
}

impl Protocol for Cowbird {
    fn definition(&self) -> &'static dyn super::Definition {
        &Definition
    }

    fn variant(&self) -> &'static str {
        COWBIRD
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        (variant == COWBIRD).then(|| Arc::new(self.clone()) as Arc<dyn Protocol>)
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        check::check(self, rack, sink);
    }

    fn refuses_arch(&self, rack: &Rack) -> Option<String> {
        rack.switch.arch.is_tofino().then(|| alu::refuses(self, rack)).flatten()
    }

    fn refuses_ends(&self, servers: &[String], clients: &[String]) -> Option<String> {
        let ends = [("pool", servers, &self.pool), ("compute", clients, &self.compute)];
        ends.into_iter().find_map(|(field, hosts, may)| {
            let host = hosts.iter().find(|host| !may.contains(host))?;
            Some(format!("needs {host} among the hosts of cowbird.{field}"))
        })
    }

    fn pass_bits(&self, rack: &Rack) -> Option<u32> {
        rack.switch.arch.is_tofino().then_some(alu::PASS_BITS)
    }

    fn names_pass(&self, arch: Arch) -> bool {
        arch.is_tofino()
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        vec![("cowbird.ip", Claim::UdpPort(UDP_PORT))]
    }

    fn wants_turns(&self) -> bool {
        true
    }

    fn describe(&self, _rack: &Rack) -> String {
        format!(
            "engine {} {}, compute nodes {}, memory of {}, {} instances with {} requests under way, MTU {}, messages up to {} bytes, a turn each {}, one of {} used at rest, again after {}",
            self.mac,
            self.ip,
            self.compute.join(" "),
            self.pool.join(" "),
            self.instances,
            self.in_flight,
            self.mtu.bytes(),
            self.message_bytes_max,
            self.probe,
            self.rest_turns,
            self.timeout
        )
    }

    fn drop_reasons(&self) -> &'static [DropReason] {
        &drops::DROPS
    }

    fn headers(&self) -> Vec<Header> {
        program::headers()
    }

    fn carried(&self, arch: Arch) -> &'static [Carried] {
        if arch.is_tofino() { alu::CARRIED } else { &[] }
    }

    fn ether_types(&self) -> Vec<EtherTypeState> {
        vec![EtherTypeState { constant: "ETHERTYPE_IPV4", value: EtherType::IPV4.0, state: "parse_cowbird" }]
    }

    fn context(&self, rack: &Rack) -> Value {
        program::context(self, rack)
    }

    fn constants(&self, rack: &Rack, constants: &mut Value) {
        constants::add(self, rack.switch.arch, constants);
    }

    fn layers(&self) -> Option<String> {
        Some(layers::layers())
    }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_nanos<S: Serializer>(value: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    value.0.serialize(serializer)
}

fn as_bytes<S: Serializer>(value: &Mtu, serializer: S) -> Result<S::Ok, S::Error> {
    value.bytes().serialize(serializer)
}
