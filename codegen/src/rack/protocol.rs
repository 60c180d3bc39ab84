//! The interface of protocols to checks, generators, hosts and reports.

use super::{Host, Rack, Section, Sink};
use crate::arch::Arch;
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::HeaderDesc;
use p4rack_wire::dissector::Dissector;
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A kind of protocol, and how descriptions refer to it.
pub trait Definition: Sync {
    /// Name of its table in descriptions, and of its folder of templates.
    fn section(&self) -> &'static str;

    /// Names of its variants, as schemes use them.
    fn variants(&self) -> &'static [&'static str];

    /// Advice if a scheme names one of its variants and the description has no such table.
    fn add(&self) -> &'static str;

    /// Reads its table. Returns `None` if something essential is missing or wrong, which `sink` has recorded.
    fn read(&self, section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>>;

    /// Its templates, named by folder and purpose. Those with the name of a slot (`render::slots::SLOTS`) become
    /// part of the program there; the others are partials for these. Without templates the program is that of the other protocols.
    fn templates(&self) -> &'static [(&'static str, &'static str)];

    /// Declarations of its registers, as TOML, named by path. Each register becomes a partial `FOLDER/REGISTER` where the
    /// architecture changes registers as the folder says, or on all architectures if the folder is the protocol's own.
    fn registers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether applications' frames have reserved time under it, in all its variants. Then a rack promises that the switch
    /// loses none, that they fill the receiver's link and that they wait little.
    fn reserves_for_frames(&self) -> bool {
        false
    }

    /// Whether the switch schedules frames under it.
    fn schedules(&self) -> bool {
        true
    }

    /// Registers that say until when each port's link is reserved, if its programs have such.
    fn reservations(&self) -> Option<Reservations> {
        None
    }

    /// Its terms: partials named `FOLDER/NAME`, as TOML.
    fn terms(&self) -> &'static str {
        ""
    }
}

/// A protocol with its parameters, in one of its variants.
///
/// Hosts are identified by their positions in the rack wherever more than the host itself matters.
pub trait Protocol: Any + fmt::Debug + Send + Sync {
    /// Its kind.
    fn definition(&self) -> &'static dyn Definition;

    /// Name of its variant.
    fn variant(&self) -> &'static str;

    /// The same protocol in another variant; `None` if it has no such variant.
    fn as_variant(&self, variant: &str) -> Option<Arc<dyn Protocol>>;

    /// Its parameters as JSON, also to compare: equal protocols have equal parameters.
    fn parameters(&self) -> Value;

    /// Checks its parameters and its requirements on the rack; errors name the description's fields.
    fn check(&self, _rack: &Rack, _sink: &mut Sink<'_>) {}

    /// Why this variant cannot run on this rack, and what to do; continues a sentence that starts with the
    /// scheme's name.
    fn refuses(&self, _rack: &Rack) -> Option<String> {
        None
    }

    /// Frames that belong to it, each with the field that says so.
    fn claims(&self) -> Vec<(&'static str, Claim)> {
        Vec::new()
    }

    /// Warnings: settings that are allowed, but may break its promises. Each names the field and says what would fit.
    fn warnings(&self, _rack: &Rack) -> Vec<String> {
        Vec::new()
    }

    /// Its parameters on one line, for summaries.
    fn describe(&self, rack: &Rack) -> String;

    /// A column for hosts in summaries: its heading and the cell of a host.
    fn column(&self, _rack: &Rack, _host: &Host) -> Option<(&'static str, String)> {
        None
    }

    /// Bytes that it adds to a data frame.
    fn tag_bytes(&self) -> u64 {
        0
    }

    /// Maximum Ethernet payload towards a host, in bits per second; `None` if it does not limit that.
    fn goodput_ceiling_bps(&self, _rack: &Rack, _host: &Host) -> Option<u64> {
        None
    }

    /// The same for frames that a host sends.
    fn send_ceiling_bps(&self, _rack: &Rack, _host: &Host) -> Option<u64> {
        None
    }

    /// Whether a part of the switch's buffer is reserved for its frames.
    fn reserves_buffer(&self) -> bool {
        false
    }

    /// Whether hosts share ports under it without reserving anything, so that the ports where frames come in should take turns.
    fn wants_turns(&self) -> bool {
        false
    }

    /// Whether hosts run an agent under it. Without one, programs use their link through the kernel.
    fn needs_agents(&self) -> bool {
        true
    }

    /// Whether hosts and switch exchange times, so that their units must be the same.
    fn exchanges_times(&self) -> bool {
        false
    }

    /// Reasons for which its part of the program drops frames.
    fn drop_reasons(&self) -> &'static [DropReason] {
        &[]
    }

    /// Counters of its part of the program beside that of dropped frames.
    fn counters(&self) -> &'static [ReasonCounter] {
        &[]
    }

    /// Frames that a host may send in one reservation; `None` if it has no such limit.
    fn burst_frames(&self) -> Option<u32> {
        None
    }

    /// The registers' horizon ([`Reservations::horizon_units`]) where it depends on the rack.
    fn reservation_horizon_units(&self, _rack: &Rack) -> Option<u64> {
        None
    }

    /// The command that takes back what a dead host has reserved, before its rack and its options `--host` and `--to`.
    /// `None` if reservations pass without it.
    fn forget_command(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Its headers, in the order in which the deparser emits them.
    fn headers(&self) -> Vec<Header> {
        Vec::new()
    }

    /// Headers that its frames carry from ingress to egress, in this order, where `arch` has two programs. The first one begins
    /// with the mark `SENT`. One protocol of a rack may have such.
    fn carried(&self, _arch: Arch) -> &'static [Carried] {
        &[]
    }

    /// EtherTypes that start it, after an Ethernet header or a tag.
    fn ether_types(&self) -> Vec<EtherTypeState> {
        Vec::new()
    }

    /// Why it has no program for the architecture of the rack's switch; continues a sentence that starts with the scheme's
    /// name.
    fn refuses_arch(&self, _rack: &Rack) -> Option<String> {
        None
    }

    /// Why a store on these clients can't use these servers' memory by it; continues a sentence that starts with the way's name.
    fn refuses_ends(&self, _servers: &[String], _clients: &[String]) -> Option<String> {
        None
    }

    /// Why it can't run over two switches at the same time; continues a sentence that starts with its table's name.
    fn refuses_tors(&self, _rack: &Rack) -> Option<String> {
        Some("runs at one switch, and switch.tors says 2: remove the table".to_owned())
    }

    /// Bits that its frames carry to another pass, beside a byte with the pass's number, where the architecture limits
    /// them. `None` if they take no other pass.
    fn pass_bits(&self, _rack: &Rack) -> Option<u32> {
        None
    }

    /// Whether the byte with a pass's number is part of a field of its own, which it has beside that byte in a program where
    /// frames of other protocols take passes, too.
    fn names_pass(&self, _arch: Arch) -> bool {
        false
    }

    /// Bits that passes behind the second one leave for each other, where the architecture resubmits frames once. `None` if its
    /// frames take no such pass.
    fn later_pass_bits(&self, _arch: Arch) -> Option<u32> {
        None
    }

    /// Whether its part decides on every frame of a program without other protocols, and removes the headers of passes from
    /// frames that leave: then the program has no table for that behind it.
    fn strips_passes(&self, _arch: Arch) -> bool {
        false
    }

    /// What its frames need where hosts are in several pipes of a chip, each with registers of its own. `None` if it has no
    /// program for that.
    fn crossing(&self) -> Option<Crossing> {
        None
    }

    /// Context of its templates, an object, in addition to the common context.
    fn context(&self, _rack: &Rack) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// Adds its parameters to the entry that accepts a host as a source.
    fn source(&self, _rack: &Rack, _host: usize, entry: Entry) -> Entry {
        entry
    }

    /// Adds its parameters to the entry that forwards to a host.
    fn destination(&self, _rack: &Rack, _host: usize, entry: Entry) -> Entry {
        entry
    }

    /// Further contents of the switch, each with its purpose.
    fn updates(&self, _rack: &Rack, _schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
        Ok(Vec::new())
    }

    /// Adds its constants to those that P4, Rust and Python share.
    fn constants(&self, _rack: &Rack, _constants: &mut Value) {}

    /// Adds constants of a host.
    fn host_constants(&self, _rack: &Rack, _host: usize, _constants: &mut Value) {}

    /// Configuration of its machine on a host; `None` if hosts need none.
    fn endpoint(&self, _rack: &Rack, _host: &Host) -> Option<p4rack_fabric::Config> {
        None
    }

    /// Scapy layers of its headers: text of a Python module, without imports.
    fn layers(&self) -> Option<String> {
        None
    }

    /// How Wireshark shows its frames.
    fn dissector(&self) -> Option<Dissector> {
        None
    }
}

impl PartialEq for dyn Protocol {
    fn eq(&self, other: &dyn Protocol) -> bool {
        self.variant() == other.variant() && self.parameters() == other.parameters()
    }
}

/// Frames that visit the registers of another pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// What they are called.
    pub name: &'static str,
    /// Bytes of full frames on a host's link, with preamble, gap and FCS, for which it sends one.
    pub per_wire_bytes: u64,
    /// Its own bytes, without FCS and without what precedes a frame that crosses.
    pub bytes: u64,
    /// How often the port of a pipe brings one, if its hosts send and get as much as their links carry: those from other pipes, and
    /// those that come back.
    pub passes: u64,
    /// The field that says how many full frames those are, or how long.
    pub field: Spacing,
}

/// A field of a description that makes frames that cross rarer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// The field.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// Bytes by which [`Crossing::per_wire_bytes`] is more for each 1 of it.
    pub wire_bytes: u64,
    /// Its maximum.
    pub most: u64,
    /// Whether it has to be a power of two.
    pub power: bool,
}

/// Frames that belong to a single protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Frames with an EtherType.
    EtherType(u16),
    /// Frames of VLANs, from the first to the last.
    Vlans(u16, u16),
    /// Frames to a UDP port.
    UdpPort(u16),
}

impl Claim {
    /// Whether a frame could belong to both.
    pub fn meets(self, other: Claim) -> bool {
        match (self, other) {
            (Claim::Vlans(first, last), Claim::Vlans(from, to)) => first <= to && from <= last,
            _ => self == other,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::EtherType(number) => write!(f, "EtherType 0x{number:04x}"),
            Claim::Vlans(first, last) if first == last => write!(f, "VLAN {first}"),
            Claim::Vlans(first, last) => write!(f, "VLANs {first} to {last}"),
            Claim::UdpPort(port) => write!(f, "UDP port {port}"),
        }
    }
}

/// A header of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Its format.
    pub desc: HeaderDesc,
    /// Name in `headers_t`; `None` if it is only looked ahead at.
    pub instance: Option<&'static str>,
}

/// A header that a frame carries in front of its own from ingress to egress, where these are two programs.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Its name.
    pub instance: &'static str,
    /// Its type in ingress, if ingress has it.
    pub ingress: Option<&'static str>,
    /// The same of egress.
    pub egress: Option<&'static str>,
    /// Whether it leaves the switch, behind the frame's own headers.
    pub leaves: bool,
    /// Its meaning in ingress, if its name does not say it.
    pub doc: &'static str,
}

/// An EtherType, and the parser state for the header behind it.
#[derive(Clone, Copy, Debug)]
pub struct EtherTypeState {
    /// Name of its constant in P4.
    pub constant: &'static str,
    /// The EtherType.
    pub value: u16,
    /// Name of the parser state.
    pub state: &'static str,
}

/// A reason to drop a frame, or to deny what it asks for. Lists of reasons order the cells of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// Name in reports. In P4 it is in capitals, after the list's prefix, such as `DROP_`.
    pub name: &'static str,
    /// Meaning, on one line.
    pub doc: &'static str,
    /// The loss that comes with a drop.
    pub cost: Cost,
}

/// The loss that comes with a frame's drop by the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The frame.
    Frame,
    /// Nothing: its host sends it again in its reserved time.
    SentAgain,
    /// Nothing: the program has used what the frame says, or nothing depends on it.
    Nothing,
}

impl DropReason {
    /// A reason that costs the frame.
    pub const fn new(name: &'static str, doc: &'static str) -> DropReason {
        DropReason { name, doc, cost: Cost::Frame }
    }

    /// The same at another cost.
    pub const fn costs(self, cost: Cost) -> DropReason {
        DropReason { cost, ..self }
    }
}

/// A reason with its meaning.
pub(crate) const fn reason(name: &'static str, doc: &'static str) -> DropReason {
    DropReason::new(name, doc)
}

/// A counter of a program with one cell for each reason.
#[derive(Clone, Copy, Debug)]
pub struct ReasonCounter {
    /// Its name in programs.
    pub name: &'static str,
    /// The kind of denial that it counts.
    pub of: Denied,
    /// Reasons, in the order of the cells.
    pub reasons: &'static [DropReason],
}

/// Something that a program denies without dropping the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The frame's class: it goes as best effort.
    Class,
    /// The frame's request: the answer says to ask again later.
    Request,
}

/// Registers that say until when each port's link is reserved.
#[derive(Clone, Copy, Debug)]
pub struct Reservations {
    /// Of ports as sources.
    pub sources: &'static str,
    /// Of ports as destinations.
    pub destinations: &'static str,
    /// A time further ahead than this is in the past, in the program's units.
    pub horizon_units: u64,
    /// The same for registers of 32 bits on racks that nothing else is known of.
    pub short_horizon_units: u64,
}
