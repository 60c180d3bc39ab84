//! The rack description: a TOML file in, a checked model out.
//!
//! [`Rack::load`] reports every mistake it can see at once, each with file, line, field, what is wrong
//! and what to do. A `Rack` that exists is consistent: ports, addresses and names are unique, the hosts
//! share a subnet, every host that the workload names is there, every slot can be expressed in the
//! switch's time units. `docs/rack.md` documents the file.

mod check;
pub mod import;
pub mod limits;
mod reader;
mod summary;
pub mod units;
mod warnings;
mod workload;

pub use reader::{FieldError, RackError};

use p4rack_wire::ethernet::overhead;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use serde::{Serialize, Serializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Reservations further ahead than this many time units mean a clock that stands in the past
/// (`clock` mode's wrap-safe comparison).
pub const HORIZON_UNITS: u64 = 1 << 30;

/// How much before its start a burst may come, in slots of the slower of both links: what hosts err by when they aim at it.
pub const EARLY_SLOTS: u64 = 4;
/// How much after its K slots a burst may still come, in the same slots: hosts in software stand still at times.
const LATE_SLOTS: u64 = 1000;

/// The description's fields, units, defaults and limits, as text for people.
pub const SCHEMA: &str = include_str!("../../../docs/rack.md");

/// A checked rack description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rack {
    /// Name of the rack; names the generated files.
    pub name: String,
    /// The switch.
    pub switch: Switch,
    /// The hosts, as listed; one at least.
    pub hosts: Vec<Host>,
    /// PL2's parameters; none: plain L2.
    pub pl2: Option<Pl2>,
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
    /// Part of it that best effort frames can't take, where PL2 runs.
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
    /// Derived: where the switch keeps its reservations. Its port, which hosts as fast as the port share; a link that is slower
    /// is a bottleneck of its own, and has a number beyond all ports.
    pub link: u16,
    /// For a port to other racks: share of the ports' rate, in percent, that is left to what comes from there. Nobody
    /// schedules it, so it is best effort.
    pub foreign_percent: Option<u32>,
    /// Derived: transmission time of a full frame at the link's rate, with headroom. Each of its parts is a
    /// multiple of the switch's time unit.
    #[serde(rename = "slot_ns", serialize_with = "as_nanos")]
    pub slot: Nanos,
}

/// PL2's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pl2 {
    /// How the switch keeps reservations.
    pub mode: Mode,
    /// Which clocks a reservation moves, in clock mode.
    pub clocks: Clocks,
    /// Most slots in one reservation (the paper's K).
    pub k: u8,
    /// Parts of a slot, in which reservations count, so that short frames need not take whole ones; `k` times this fits a byte.
    pub slot_parts: u8,
    /// Bursts to a destination whose wait was under this many slots go unsolicited (t).
    pub t_slots: u32,
    /// The switch drops unsolicited frames when more slots than this are reserved (T).
    pub drop_threshold_slots: u32,
    /// EtherType of PL2's control frames and shim.
    #[serde(serialize_with = "as_text")]
    pub ether_type: EtherType,
    /// First VLAN of data frames that belong to a reservation; each of a pair's cells has one.
    pub vid: u16,
    /// Whether data carries a sequence number, so that duplicates are removed and losses counted.
    pub shim: bool,
    /// Reservations a host may have waiting, a destination.
    pub reservations_in_flight: u32,
    /// Reservations that the switch lets a host have waiting, a destination; `reservations_in_flight` at least.
    pub lanes: u8,
    /// How much longer than a full frame a slot is, percent.
    pub slot_headroom_percent: f64,
    /// How long a grant tells something about its destination; `None`: twice RSV→GRT as measured.
    #[serde(rename = "fresh_ns", serialize_with = "as_opt_nanos")]
    pub fresh: Option<Nanos>,
    /// Whether a grant also goes to the destination, which then knows what is coming and notices a sender
    /// that fell silent.
    pub notify_receiver: bool,
    /// Control frames a second that the switch takes from a port, in units of the port's slots.
    pub control_per_slot: u32,
    /// Part of a port's rate that best effort frames may take; 100: not metered.
    pub best_effort_percent: u32,
}

/// How the switch keeps reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reserved slots are counted up by reservations and down by data.
    Counter,
    /// Each port has a time at which it is next free.
    Clock,
}

/// Which clocks a reservation moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clocks {
    /// The source's and the destination's, each by itself; the sender goes by the later reply.
    #[default]
    Pair,
    /// The destination's goes on from the source's reply.
    Chain,
    /// The destination's only; a source keeps its own frames in order.
    Dst,
    /// No clocks but calendars: the first cells of time that are free at both ports, taken at both.
    Calendar,
}

impl Clocks {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Clocks::Pair => "pair",
            Clocks::Chain => "chain",
            Clocks::Dst => "dst",
            Clocks::Calendar => "calendar",
        }
    }
}

/// What runs on the switch and in the agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Plain switching, reservations off.
    L2,
    /// PL2 with counters.
    Pl2Counter,
    /// PL2 with clocks.
    Pl2Clock,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 3] = [Scheme::L2, Scheme::Pl2Counter, Scheme::Pl2Clock];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::L2 => "l2",
            Scheme::Pl2Counter => "pl2-counter",
            Scheme::Pl2Clock => "pl2-clock",
        }
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Scheme {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.name() == s)
            .ok_or_else(|| format!("`{s}` is no scheme; there are l2, pl2-counter and pl2-clock"))
    }
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
        check::parse(text, file)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// What the description asks for: PL2 in its mode, or plain L2.
    pub fn scheme(&self) -> Scheme {
        match self.pl2.as_ref().map(|pl2| pl2.mode) {
            None => Scheme::L2,
            Some(Mode::Counter) => Scheme::Pl2Counter,
            Some(Mode::Clock) => Scheme::Pl2Clock,
        }
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

    /// Bytes that a full frame takes on the wire under `scheme`, with preamble, gap and FCS.
    pub fn wire_bytes(&self, scheme: Scheme) -> u64 {
        const ETHERNET: u64 = 14;
        const VLAN: u64 = 4;
        let tags = match (&self.pl2, scheme) {
            (_, Scheme::L2) | (None, _) => 0,
            (Some(pl2), _) => VLAN + if pl2.shim { p4rack_wire::pl2::Shim::BYTES as u64 } else { 0 },
        };
        overhead::wire_bytes(ETHERNET + tags + overhead::MTU)
    }

    /// Most Ethernet payload that `host`'s link can carry towards it under `scheme`, bits a second: a
    /// full payload every slot under PL2, every full frame's time under plain L2.
    pub fn goodput_ceiling_bps(&self, host: &Host, scheme: Scheme) -> u64 {
        let payload_bits = (overhead::MTU * 8) as f64;
        let frame_s = match scheme {
            Scheme::L2 => self.wire_bytes(scheme) as f64 * 8.0 / host.rate_bps as f64,
            Scheme::Pl2Counter | Scheme::Pl2Clock => host.slot.as_secs_f64(),
        };
        (payload_bits / frame_s) as u64
    }

    /// As [`Rack::goodput_ceiling_bps`], for a host that sends: under PL2 one RSV for every K frames
    /// shares its link towards the switch.
    pub fn send_ceiling_bps(&self, host: &Host, scheme: Scheme) -> u64 {
        let Some(pl2) = self.pl2.as_ref().filter(|_| scheme != Scheme::L2) else {
            return self.goodput_ceiling_bps(host, scheme);
        };
        let k = f64::from(pl2.k);
        let burst_bytes =
            k * self.wire_bytes(scheme) as f64 + overhead::wire_bytes(overhead::MIN_FRAME) as f64;
        let burst_s = (burst_bytes * 8.0 / host.rate_bps as f64).max(k * host.slot.as_secs_f64());
        (k * (overhead::MTU * 8) as f64 / burst_s) as u64
    }

    /// Whether all that `scheme` lets hosts reserve begins within [`HORIZON_UNITS`].
    pub fn fits_horizon(&self, scheme: Scheme) -> bool {
        let ports: Vec<u16> = self.hosts.iter().map(|host| host.port).collect();
        self.pl2.as_ref().is_none_or(|pl2| {
            let beyond = |host| check::beyond_horizon(pl2, scheme, &ports, self.slot_units(host));
            !self.hosts.iter().any(beyond)
        })
    }

    /// Part of the switch's buffer that best effort frames can't take under `scheme`.
    pub fn reserved_bytes(&self, scheme: Scheme) -> u64 {
        if scheme == Scheme::L2 { 0 } else { self.switch.reserved_bytes }
    }

    /// Cells of a (source, destination) pair: two for each lane. 0 without PL2.
    pub fn cells_a_pair(&self) -> u8 {
        self.pl2.as_ref().map_or(0, |pl2| 2 * pl2.lanes)
    }

    /// Cells of all pairs: of the controller's frames first, then of each host's, in their order.
    pub fn cell_count(&self) -> u32 {
        check::cell_count(self.hosts.len(), self.cells_a_pair()) as u32
    }

    /// Number of the first cell of the host at this position, as a source.
    pub fn source_cells(&self, source: usize) -> u32 {
        (source as u32 + 1) * self.hosts.len() as u32 * u32::from(self.cells_a_pair())
    }

    /// What a destination at this position adds to it.
    pub fn destination_cells(&self, destination: usize) -> u32 {
        destination as u32 * u32::from(self.cells_a_pair())
    }

    /// Number of a pair's `cell` among all; hosts by their positions in `hosts`.
    pub fn cell_number(&self, source: usize, destination: usize, cell: u8) -> u32 {
        self.source_cells(source) + self.destination_cells(destination) + u32::from(cell)
    }

    /// How much after its start a burst may come: so many slots of the slower of both links. Its own K are among them.
    pub fn late_slots(&self) -> u64 {
        self.pl2.as_ref().map_or(0, |pl2| u64::from(pl2.k)) + LATE_SLOTS
    }

    /// Bytes on the wire that a part of a slot gives a right to, in clock mode.
    pub fn part_wire_bytes(&self) -> u64 {
        self.wire_bytes(Scheme::Pl2Clock).div_ceil(self.slot_parts())
    }

    /// `host`'s slot in the switch's time units.
    pub fn slot_units(&self, host: &Host) -> u64 {
        host.slot.0 / self.switch.time_unit_ns
    }

    /// A part of `host`'s slot in the switch's time units.
    pub fn part_units(&self, host: &Host) -> u64 {
        self.slot_units(host) / self.slot_parts()
    }

    /// Parts of a slot, in which reservations count.
    pub fn slot_parts(&self) -> u64 {
        self.pl2.as_ref().map_or(1, |pl2| u64::from(pl2.slot_parts.max(1)))
    }

    /// In calendars: binary logarithm of a cell's length in time units, and how many cells K slots take at the
    /// slowest port. A calendar has 64 cells.
    pub fn calendar_cells(&self) -> (u32, u64) {
        let k = self.pl2.as_ref().map_or(1, |pl2| u64::from(pl2.k));
        let units = || self.hosts.iter().map(|host| self.slot_units(host));
        let (shortest, longest) = (units().min().unwrap_or(1), units().max().unwrap_or(1));
        let cells = |time: u64, shift: u32| time.div_ceil(1 << shift);
        // Of cells of which the fastest port's K slots take at most an eighth of a calendar: those that
        // waste least in K slots, then in one, then those that see furthest.
        let waste = |shift: u32| {
            let of =
                |slots: u64| (cells(slots * shortest, shift) << shift) as f64 / (slots * shortest) as f64;
            (of(k), of(1), std::cmp::Reverse(shift))
        };
        let fits = (0..40).filter(|shift| cells(k * shortest, *shift) <= 8);
        let best = fits.min_by(|a, b| waste(*a).partial_cmp(&waste(*b)).unwrap_or(std::cmp::Ordering::Equal));
        let shift = best.unwrap_or(40);
        (shift, cells(k * longest, shift))
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

/// Transmission time of `wire_bytes` at `rate_bps`, `headroom_percent` longer, each of its `parts` rounded up to time units.
fn slot_of(wire_bytes: u64, rate_bps: u64, headroom_percent: f64, time_unit_ns: u64, parts: u64) -> Nanos {
    // Parts per million, so that the slot is the same on every machine.
    let ppm = 1_000_000 + (headroom_percent * 10_000.0).round() as u128;
    let numerator = u128::from(wire_bytes) * 8 * ppm * 1_000;
    let units = numerator.div_ceil(u128::from(rate_bps) * u128::from(time_unit_ns) * u128::from(parts));
    Nanos((units as u64).saturating_mul(time_unit_ns).saturating_mul(parts))
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_nanos<S: Serializer>(value: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(value.0)
}

fn as_opt_nanos<S: Serializer>(value: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|nanos| nanos.0).serialize(serializer)
}
