//! PL2: hosts reserve timeslots at the switch and send in these.

mod check;
mod constants;
mod drops;
mod entries;
mod hosts;
mod layers;
mod program;
mod read;
mod slots;

pub use drops::{DEMOTED, HAS_SLOTS, OVER_THRESHOLD, REFUSED};
pub use slots::{EARLY_SLOTS, HORIZON_UNITS, SHORT_HORIZON_UNITS};

use super::{
    Claim, Crossing, Denied, DropReason, EtherTypeState, Header, Protocol, ReasonCounter, Reservations,
    Scheme, Spacing,
};
use crate::arch::Arch;
use crate::rack::{Host, Rack, Section, Sink};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::dissector::{Dissector, Lanes};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{EtherType, Nanos};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// Register of reservations by source port.
pub const IN_RESERVATION: &str = "RackIngress.pl2.in_reservation";
/// Register of reservations by destination port.
pub const OUT_RESERVATION: &str = "RackIngress.pl2.out_reservation";
/// Register of the rights left of reservations, by cell.
pub const RIGHTS: &str = "RackIngress.pl2.rights";
/// Counter of frames demoted to best effort, by reason ([`DEMOTED`]).
pub const DEMOTED_COUNTER: &str = "RackIngress.pl2.demoted";
/// Counter of RSVs answered "not now", by reason ([`REFUSED`]).
pub const REFUSED_COUNTER: &str = "RackIngress.pl2.refused";
/// Meter of control frames, per port.
pub const CONTROL_METER: &str = "RackIngress.control_meter";

/// Table of a program for hosts in several pipes of a chip, which no other program has.
pub const OWNERS: &str = "RackIngress.pl2_pipes.owners";

/// Queue of control frames.
const PRIORITY_CONTROL: u8 = p4rack_wire::pl2::PCP_CONTROL;
/// Queue of data frames that belong to a reservation.
const PRIORITY_SCHEDULED: u8 = p4rack_wire::pl2::PCP_SCHEDULED;

/// Slots of a reservation for a flow with more than K slots of frames, if `k` is the backlog: the paper's K.
const PIECE: u8 = 4;
/// K if it is the backlog and `k_max` is not given: messages of 60 kB are sent whole.
pub const K_MAX: u8 = 40;
/// Lanes if flows have reservations of their own and `lanes` is not given.
pub const FLOW_LANES: u8 = 4;

const COUNTER: &str = "pl2-counter";
const CLOCK: &str = "pl2-clock";

impl Scheme {
    /// PL2 with counters.
    pub const PL2_COUNTER: Scheme = Scheme::one(COUNTER);
    /// PL2 with clocks.
    pub const PL2_CLOCK: Scheme = Scheme::one(CLOCK);
}

/// PL2's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pl2 {
    /// How the switch keeps reservations.
    pub mode: Mode,
    /// Which clocks a reservation moves, in clock mode.
    pub clocks: Clocks,
    /// Maximum slots per reservation (the paper's K).
    pub k: u8,
    /// Whether a reservation covers a flow's whole backlog, up to `k`; longer flows go in pieces.
    pub backlog: bool,
    /// Parts per slot. Reservations count parts, so that short frames need not take whole slots; `k` times this fits in a
    /// byte.
    pub slot_parts: u8,
    /// Bursts go unsolicited if the last wait for their destination was below this many slots (t).
    pub t_slots: u32,
    /// The switch drops unsolicited frames if more than this many slots are reserved (T).
    pub drop_threshold_slots: u32,
    /// EtherType of PL2's control frames and shim.
    #[serde(serialize_with = "as_text")]
    pub ether_type: EtherType,
    /// First VLAN of data frames that belong to a reservation; each of a pair's cells has one.
    pub vid: u16,
    /// Whether data carries a sequence number, so that duplicates are removed and losses counted.
    pub shim: bool,
    /// Whether hosts keep frames by flow, and flows may have a reservation waiting each.
    pub by_flow: bool,
    /// Whether a host sends unsolicited bursts only if they can't undo the schedule; else as in the paper.
    pub pace_unsolicited: bool,
    /// Maximum outstanding reservations of a host per destination, beyond those of flows.
    pub reservations_in_flight: u32,
    /// Maximum outstanding reservations per (source, destination) that the switch grants; at least
    /// `reservations_in_flight`.
    pub lanes: u8,
    /// Headroom of a slot over a full frame, in percent.
    pub slot_headroom_percent: f64,
    /// How long a grant is considered fresh; `None` is twice the measured time from RSV to GRT.
    #[serde(rename = "fresh_ns", serialize_with = "as_opt_nanos")]
    pub fresh: Option<Nanos>,
    /// Whether the destination also receives each grant, so that it knows what will arrive and notices when a sender falls
    /// silent.
    pub notify_receiver: bool,
    /// Maximum rate of control frames per port, in frames per slot of the port.
    pub control_per_slot: u32,
    /// Share of a port's rate that best-effort frames may use, in percent; 100 is unlimited.
    pub best_effort_percent: u32,
}

impl Pl2 {
    /// The defaults for a description that gives only the mode.
    pub const fn new(mode: Mode) -> Pl2 {
        Pl2 {
            mode,
            clocks: Clocks::Pair,
            k: 4,
            backlog: false,
            slot_parts: 1,
            t_slots: 15,
            drop_threshold_slots: Pl2::drop_threshold_slots(15),
            ether_type: EtherType::PL2_DEFAULT,
            vid: 100,
            shim: true,
            by_flow: false,
            pace_unsolicited: true,
            reservations_in_flight: 1,
            lanes: 1,
            slot_headroom_percent: 3.0,
            fresh: None,
            notify_receiver: false,
            control_per_slot: 4,
            best_effort_percent: 5,
        }
    }

    /// Reservations as long as the backlog: K, flows, reservations in flight, lanes and T with which they are of use.
    pub const fn with_backlog(mode: Mode) -> Pl2 {
        let default = Pl2::new(mode);
        Pl2 {
            k: K_MAX,
            backlog: true,
            by_flow: true,
            reservations_in_flight: 2,
            lanes: FLOW_LANES,
            // Others may reserve this much between an unsolicited burst's RSV and its frames.
            drop_threshold_slots: Pl2::drop_threshold_slots(K_MAX as u32),
            ..default
        }
    }

    /// Slots of a reservation for a flow with more than K slots of frames; none if it is K.
    pub fn piece(&self) -> Option<u8> {
        self.backlog.then(|| self.k.min(PIECE))
    }

    /// Default of T for this t.
    pub const fn drop_threshold_slots(t_slots: u32) -> u32 {
        if t_slots == 0 { 1 } else { 8 * t_slots }
    }
}

/// How the switch keeps reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Registers count reserved slots: reservations add, data frames subtract.
    Counter,
    /// Registers hold the time at which each port is next free.
    Clock,
}

/// Which clocks a reservation moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clocks {
    /// The clocks of source and destination, independently; the sender uses the later of the two waits.
    #[default]
    Pair,
    /// The clocks of source and destination; the destination's reservation starts no earlier than the source's.
    Chain,
    /// The clock of the destination only; a source orders its own frames.
    Dst,
    /// Calendars instead of clocks: a reservation takes the first cells of time that are free at both ports.
    Calendar,
}

/// PL2 in descriptions.
#[derive(Debug)]
pub struct Definition;

impl super::Definition for Definition {
    fn section(&self) -> &'static str {
        "pl2"
    }

    fn variants(&self) -> &'static [&'static str] {
        &[COUNTER, CLOCK]
    }

    fn add(&self) -> &'static str {
        "add a [pl2] table with mode = \"clock\""
    }

    fn reserves_for_frames(&self) -> bool {
        true
    }

    fn reservations(&self) -> Option<Reservations> {
        Some(Reservations {
            sources: IN_RESERVATION,
            destinations: OUT_RESERVATION,
            horizon_units: HORIZON_UNITS,
            short_horizon_units: SHORT_HORIZON_UNITS,
        })
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

/// EtherType of the sequence numbers that agents at two switches give their frames: that of PL2's shim.
pub fn sequence_ether_type(rack: &Rack) -> EtherType {
    rack.protocol::<Pl2>().map_or(EtherType::PL2_DEFAULT, |pl2| pl2.ether_type)
}

impl Protocol for Pl2 {
    fn definition(&self) -> &'static dyn super::Definition {
        &Definition
    }

    fn variant(&self) -> &'static str {
        match self.mode {
            Mode::Counter => COUNTER,
            Mode::Clock => CLOCK,
        }
    }

    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>> {
        let mode = [Mode::Counter, Mode::Clock].into_iter();
        let same = |mode| Pl2 { mode, ..self.clone() };
        mode.map(same).find(|pl2| pl2.variant() == variant).map(|pl2| Arc::new(pl2) as Arc<dyn Protocol>)
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn check(&self, rack: &Rack, sink: &mut Sink<'_>) {
        check::check(self, rack, sink);
    }

    fn refuses(&self, rack: &Rack) -> Option<String> {
        check::refuses(self, rack).map(str::to_owned)
    }

    fn refuses_tors(&self, _rack: &Rack) -> Option<String> {
        let problem = match () {
            () if !self.shim => {
                "has frames without sequence numbers, by which copies from two switches are known: set shim = true"
            }
            () if self.notify_receiver => {
                "has notify_receiver, whose events lead to one switch: set it to false"
            }
            () if self.by_flow => {
                "has by_flow, with which a host's queue is full for some flows only, so that a frame could get one copy: \
                 set by_flow = false, and k to a number"
            }
            () => return None,
        };
        Some(problem.to_owned())
    }

    fn refuses_arch(&self, rack: &Rack) -> Option<String> {
        check::refuses_arch(self, rack)
    }

    fn claims(&self) -> Vec<(&'static str, Claim)> {
        let last = self.vid.saturating_add(2 * u16::from(self.lanes)).saturating_sub(1);
        vec![
            ("pl2.ether_type", Claim::EtherType(self.ether_type.0)),
            ("pl2.vid", Claim::Vlans(self.vid, last)),
        ]
    }

    fn warnings(&self, rack: &Rack) -> Vec<String> {
        check::burst_beyond_buffer(self, rack).into_iter().collect()
    }

    fn describe(&self, _rack: &Rack) -> String {
        format!(
            "K {}{} slots{}, t {}, T {}, VLANs {}–{}, EtherType {}, {}, {} reservation(s) in flight{} of {} lane(s), slot headroom {} %",
            if self.backlog { "what waits, up to " } else { "" },
            self.k,
            if self.slot_parts > 1 { format!(" of {} parts", self.slot_parts) } else { String::new() },
            self.t_slots,
            self.drop_threshold_slots,
            self.vid,
            self.vid + u16::from(self.cells_a_pair()) - 1,
            self.ether_type,
            if self.shim { "shim" } else { "no shim" },
            self.reservations_in_flight,
            if self.by_flow { " and those of flows" } else { "" },
            self.lanes,
            self.slot_headroom_percent
        )
    }

    fn column(&self, rack: &Rack, host: &Host) -> Option<(&'static str, String)> {
        Some(("slot", self.slot(rack, host).to_string()))
    }

    fn tag_bytes(&self) -> u64 {
        self.tags()
    }

    fn goodput_ceiling_bps(&self, rack: &Rack, host: &Host) -> Option<u64> {
        Some(self.receives_bps(rack, host))
    }

    fn send_ceiling_bps(&self, rack: &Rack, host: &Host) -> Option<u64> {
        Some(self.sends_bps(rack, host))
    }

    fn reserves_buffer(&self) -> bool {
        true
    }

    fn exchanges_times(&self) -> bool {
        self.mode == Mode::Clock
    }

    fn counters(&self) -> &'static [ReasonCounter] {
        &[
            ReasonCounter { name: DEMOTED_COUNTER, of: Denied::Class, reasons: &DEMOTED },
            ReasonCounter { name: REFUSED_COUNTER, of: Denied::Request, reasons: &REFUSED },
        ]
    }

    fn burst_frames(&self) -> Option<u32> {
        Some(self.k.into())
    }

    fn reservation_horizon_units(&self, rack: &Rack) -> Option<u64> {
        Some(self.horizon_units(rack))
    }

    /// Clocks pass what a dead host had reserved.
    fn forget_command(&self) -> Option<&'static [&'static str]> {
        (self.mode == Mode::Counter).then_some(&["pl2", "forget"])
    }

    fn drop_reasons(&self) -> &'static [DropReason] {
        &drops::DROPS
    }

    fn headers(&self) -> Vec<Header> {
        program::headers()
    }

    fn ether_types(&self) -> Vec<EtherTypeState> {
        vec![EtherTypeState { constant: "ETHERTYPE_PL2", value: self.ether_type.0, state: "parse_pl2" }]
    }

    fn pass_bits(&self, rack: &Rack) -> Option<u32> {
        Some(if self.takes_source_first(rack) { program::SOURCE_BITS } else { 0 })
    }

    fn strips_passes(&self, arch: Arch) -> bool {
        arch.is_tofino()
    }

    fn later_pass_bits(&self, arch: Arch) -> Option<u32> {
        (self.mode == Mode::Counter && arch.is_tofino()).then_some(0)
    }

    fn crossing(&self) -> Option<Crossing> {
        let k = u64::from(self.piece().unwrap_or(self.k));
        (self.mode == Mode::Clock).then(|| Crossing {
            name: "RSVs",
            per_wire_bytes: k * self.frame_wire_bytes(),
            bytes: overhead::MIN_FRAME,
            passes: 2,
            field: Spacing {
                name: "pl2.k",
                value: k,
                wire_bytes: self.frame_wire_bytes(),
                most: u64::from(u8::MAX),
                power: false,
            },
        })
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

    fn endpoint(&self, rack: &Rack, host: &Host) -> Option<p4rack_fabric::Config> {
        Some(p4rack_fabric::Config::Pl2(hosts::endpoint(self, rack, host)))
    }

    fn layers(&self) -> Option<String> {
        Some(layers::layers(self))
    }

    fn dissector(&self) -> Option<Dissector> {
        let lanes = Lanes { first: self.vid, cells: u16::from(self.cells_a_pair()) };
        Some(p4rack_wire::pl2::dissector(self.ether_type.0, lanes))
    }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_opt_nanos<S: Serializer>(value: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|nanos| nanos.0).serialize(serializer)
}
