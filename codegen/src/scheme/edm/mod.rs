//! EDM: hosts demand time for messages to and from remote memory, the switch grants it chunk by chunk.

mod alu;
mod calendar;
mod check;
mod constants;
mod drops;
mod entries;
mod hosts;
mod layers;
mod program;
mod read;
mod times;

pub use drops::{DEMOTED, LANE_TAKEN, NO_LOSS};

use super::{
    Claim, Crossing, Denied, DropReason, EtherTypeState, Header, Protocol, ReasonCounter, Scheme, Spacing,
};
use crate::arch::Arch;
use crate::rack::{Rack, Section, Sink};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::dissector::Dissector;
use p4rack_wire::{EtherType, Nanos};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// Register of the times at which links are free as sources (mode `timed`).
pub const SOURCE_FREE: &str = "RackIngress.edm.source_free";
/// Register of the times at which links are free as destinations.
pub const DESTINATION_FREE: &str = "RackIngress.edm.destination_free";
/// Registers of the times with which links' calendars begin, as sources and as destinations (mode `calendar`).
pub const SOURCE_BEGIN: &str = "RackIngress.edm.source_begin";
/// See [`SOURCE_BEGIN`].
pub const DESTINATION_BEGIN: &str = "RackIngress.edm.destination_begin";
/// Register of bytes that are granted and not sent, by lane.
pub const RIGHTS: &str = "RackIngress.edm.rights";
/// Counter of data demoted to best effort, by reason ([`DEMOTED`]).
pub const DEMOTED_COUNTER: &str = "RackIngress.edm.demoted";
/// Counter of scheduled data that Tofino drops in egress because it is longer than its header says.
pub const TOO_LONG_COUNTER: &str = "RackEgress.edm.too_long";
/// Counter of chunks whose message stalls, because no more of it could be granted (modes `calendar` and `matched`).
pub const STALLED_COUNTER: &str = "RackIngress.edm.stalled";
/// Counter of granted demands, by the requester's port.
pub const DEMANDS_COUNTER: &str = "RackIngress.edm.demands";
/// Counter of data that passed as scheduled, by egress port.
pub const DATA_COUNTER: &str = "RackIngress.edm.data";
/// Meter of notifications and requests, per port.
pub const CONTROL_METER: &str = "RackIngress.edm_control_meter";
/// Meter of requests whose lane is in another pipe of the chip, per port.
const CROSSING_METER: &str = "RackIngress.edm_crossing_meter";

/// Queue of notifications, requests and grants.
const CLASS_CONTROL: u8 = p4rack_wire::edm::PCP_CONTROL;
/// Queue of granted data.
const CLASS_DATA: u8 = p4rack_wire::edm::PCP_DATA;

const TIMED_DST: &str = "edm-timed-dst";
const TIMED: &str = "edm-timed";
const CALENDAR: &str = "edm-calendar";
const MATCHED: &str = "edm-matched";

impl Scheme {
    /// EDM with clocks of destinations.
    pub const EDM_TIMED_DST: Scheme = Scheme::one(TIMED_DST);
    /// EDM with clocks of sources and destinations.
    pub const EDM_TIMED: Scheme = Scheme::one(TIMED);
    /// EDM with calendars of sources and destinations.
    pub const EDM_CALENDAR: Scheme = Scheme::one(CALENDAR);
    /// EDM with clocks of destinations, and rings of waiting demands.
    pub const EDM_MATCHED: Scheme = Scheme::one(MATCHED);
}

/// EDM's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edm {
    /// Rule by which the switch schedules chunks.
    pub mode: Mode,
    /// Names of the hosts with memory.
    pub memory: Vec<String>,
    /// Bytes of a message in each frame but its last.
    pub chunk_bytes: u32,
    /// Chunks of a message that may be granted and not yet sent.
    pub window: u32,
    /// Maximum demands of a host per memory node (the paper's X), for writes and for answers each.
    pub demands: u32,
    /// Maximum bytes per message.
    pub message_bytes_max: u32,
    /// EtherType of all its frames.
    #[serde(serialize_with = "as_text")]
    pub ether_type: EtherType,
    /// Headroom of a grant over its chunk's time on the wire, in percent: grants and requests share links with data.
    pub headroom_percent: u32,
    /// Share of a port's rate that notifications and requests may take, in percent; 100 is unlimited.
    pub control_percent: u32,
    /// How long a stalled message keeps its lane; `None`: twice the maximum distance of a clock from now.
    #[serde(rename = "expiry_ns", serialize_with = "as_opt_nanos")]
    pub expiry: Option<Nanos>,
    /// Rings of a destination, by remaining bytes of the message (mode `matched`). One ring: demands are served as they arrive.
    pub classes: u32,
    /// Windows that a destination may be granted ahead before demands wait in rings (mode `matched`).
    pub ahead: u32,
    /// Whether a message gets one chunk at a time at links whose clocks are further ahead than its share.
    pub shares: bool,
}

impl Edm {
    /// The defaults for a description that gives only the mode and the hosts with memory.
    pub const fn new(mode: Mode, memory: Vec<String>) -> Edm {
        Edm {
            mode,
            memory,
            chunk_bytes: 1_024,
            window: 4,
            demands: 3,
            message_bytes_max: 1 << 20,
            ether_type: EtherType::EDM_DEFAULT,
            headroom_percent: 3,
            control_percent: 75,
            expiry: None,
            classes: 6,
            ahead: 1,
            shares: true,
        }
    }
}

/// Rule by which the switch schedules chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// When its destination is free. A source with several grants for the same time sends one after the other.
    TimedDst,
    /// When its source is free, and its destination after that.
    Timed,
    /// In the first cells of time that are free at both.
    Calendar,
    /// When its destination is free. Demands for which that is too far ahead wait, those with the fewest remaining bytes first.
    Matched,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 4] = [Mode::TimedDst, Mode::Timed, Mode::Calendar, Mode::Matched];

    /// Name of its scheme.
    const fn variant(self) -> &'static str {
        match self {
            Mode::TimedDst => TIMED_DST,
            Mode::Timed => TIMED,
            Mode::Calendar => CALENDAR,
            Mode::Matched => MATCHED,
        }
    }

    /// Its scheme.
    pub const fn scheme(self) -> Scheme {
        Scheme::one(self.variant())
    }

    /// Whether grants depend on when sources are free.
    const fn looks_at_sources(self) -> bool {
        matches!(self, Mode::Timed | Mode::Calendar)
    }

    /// Whether the first chunk of a window asks for the next window; else each chunk asks for the one behind the window.
    const fn asks_by_window(self) -> bool {
        matches!(self, Mode::Calendar | Mode::Matched)
    }
}

/// EDM in descriptions.
#[derive(Debug)]
pub struct Definition;

impl super::Definition for Definition {
    fn section(&self) -> &'static str {
        "edm"
    }

    fn variants(&self) -> &'static [&'static str] {
        &[TIMED_DST, TIMED, CALENDAR, MATCHED]
    }

    fn add(&self) -> &'static str {
        "add an [edm] table with mode = \"timed-dst\" and memory = [\"…\"], names of hosts"
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
}

impl Protocol for Edm {
    fn definition(&self) -> &'static dyn super::Definition {
        &Definition
    }

    fn variant(&self) -> &'static str {
        self.mode.variant()
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        let mode = Mode::ALL.into_iter().find(|mode| mode.variant() == variant)?;
        Some(Arc::new(Edm { mode, ..self.clone() }))
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        check::check(self, rack, sink);
    }

    fn refuses(&self, rack: &Rack) -> Option<String> {
        check::refuses(self, rack)
    }

    fn refuses_tors(&self, rack: &Rack) -> Option<String> {
        let taken = super::sequence_ether_type(rack);
        (self.ether_type == taken).then(|| {
            format!("has ether_type {taken}, which the agents' sequence numbers have here: write another one")
        })
    }

    fn warnings(&self, rack: &Rack) -> Vec<String> {
        let all = [
            check::without_shares(self, rack),
            check::crowded(self, rack),
            check::short_headroom(self),
            check::short_reads(self, rack),
        ];
        all.into_iter().flatten().collect()
    }

    fn refuses_arch(&self, rack: &Rack) -> Option<String> {
        check::refuses_arch(self, rack)
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        vec![("edm.ether_type", Claim::EtherType(self.ether_type.0))]
    }

    fn describe(&self, rack: &Rack) -> String {
        format!(
            "memory of {}, chunks of {} bytes, window {}, X {}, messages up to {} bytes, EtherType {}, headroom {} %, lanes expire after {}",
            self.memory.join(" "),
            self.chunk_bytes,
            self.window,
            self.demands,
            self.message_bytes_max,
            self.ether_type,
            self.headroom_percent,
            self.expiry(rack)
        )
    }

    fn reserves_buffer(&self) -> bool {
        true
    }

    fn exchanges_times(&self) -> bool {
        true
    }

    fn pass_bits(&self, rack: &Rack) -> Option<u32> {
        let arch = rack.switch.arch;
        match self.mode {
            Mode::TimedDst | Mode::Timed => self.claims_on(arch).then_some(0),
            Mode::Calendar => Some(if arch.is_tofino() { alu::PASS_BITS } else { 0 }),
            Mode::Matched => arch.is_tofino().then_some(0),
        }
    }

    fn later_pass_bits(&self, arch: Arch) -> Option<u32> {
        (self.mode == Mode::Matched && arch.is_tofino()).then_some(alu::LATER_PASS_BITS)
    }

    fn crossing(&self) -> Option<Crossing> {
        // A message of a chunk that is read: its request, and what it settles. A chunk that asks for more crosses as often or less.
        (self.mode == Mode::TimedDst).then(|| Crossing {
            name: "requests",
            per_wire_bytes: self.wire_bytes(self.chunk_bytes.into()),
            bytes: u64::from(times::CROSSING_BYTES),
            passes: if self.claims_on(Arch::Tna) { 3 } else { 2 },
            field: Spacing {
                name: "edm.chunk_bytes",
                value: self.chunk_bytes.into(),
                wire_bytes: 1,
                most: check::CHUNK_BYTES_MAX,
                power: self.claims_on(Arch::Tna),
            },
        })
    }

    fn counters(&self) -> &'static [ReasonCounter] {
        &[ReasonCounter { name: DEMOTED_COUNTER, of: Denied::Class, reasons: &DEMOTED }]
    }

    fn drop_reasons(&self) -> &'static [DropReason] {
        match self.mode {
            Mode::TimedDst | Mode::Timed => &drops::DROPS[..drops::COMMON],
            Mode::Calendar => &drops::DROPS[..=drops::COMMON],
            Mode::Matched => &drops::DROPS,
        }
    }

    fn headers(&self) -> Vec<Header> {
        program::headers()
    }

    fn ether_types(&self) -> Vec<EtherTypeState> {
        vec![EtherTypeState { constant: "ETHERTYPE_EDM", value: self.ether_type.0, state: "parse_edm" }]
    }

    fn context(&self, rack: &Rack) -> Value {
        program::context(self, rack)
    }

    fn source(&self, rack: &Rack, host: usize, entry: Entry) -> Entry {
        entries::source(self, rack, host, entry)
    }

    fn destination(&self, rack: &Rack, host: usize, entry: Entry) -> Entry {
        entries::destination(self, rack, host, entry)
    }

    fn updates(&self, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
        entries::updates(self, rack, schema)
    }

    fn constants(&self, rack: &Rack, constants: &mut Value) {
        constants::add(self, rack, constants);
    }

    fn host_constants(&self, rack: &Rack, host: usize, constants: &mut Value) {
        constants::add_host(self, rack, host, constants);
    }

    fn layers(&self) -> Option<String> {
        Some(layers::layers(self))
    }

    fn dissector(&self) -> Option<Dissector> {
        Some(p4rack_wire::edm::dissector(self.ether_type.0))
    }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_opt_nanos<S: Serializer>(value: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|nanos| nanos.0).serialize(serializer)
}
