//! What runs on a rack: plain switching, and protocols beside it that share one pipeline.
//!
//! ```text
//!  description ─ Definition::read ─▶ Protocol ─┬─ check, claims     is it right, does it fit beside the others
//!                                              ├─ templates, headers, context, drop reasons ─▶ program
//!                                              ├─ parameters of entries, meters, sessions   ─▶ entries
//!                                              └─ constants, layers, ceilings               ─▶ whoever asks
//! ```
//!
//! A *protocol* is what hosts and switch speak beyond Ethernet: one module here, one folder of templates. A *scheme* says
//! which of a rack's protocols run, each in which of its variants. Nothing outside of a protocol's module knows what
//! is in it, but for those who ask a rack for it by its type ([`Rack::protocol`]).

mod hosts;
pub mod l2;
pub(crate) mod parts;
pub mod pl2;

pub use hosts::{NoParameters, endpoint_config};

use crate::arch::Arch;
use crate::rack::{Host, Rack, Section, Sink};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::HeaderDesc;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The protocols that descriptions may name, in pipeline order.
pub static PROTOCOLS: &[&dyn Definition] = &[&pl2::Definition];

/// Maximum protocols in one pipeline.
pub const TOGETHER: usize = 4;

/// A kind of protocol, and how descriptions refer to it.
pub trait Definition: Sync {
    /// Name of its table in descriptions, and of its folder of templates.
    fn section(&self) -> &'static str;

    /// Names of its variants, as schemes use them.
    fn variants(&self) -> &'static [&'static str];

    /// What to do if a scheme names one of its variants and the description has no such table.
    fn add(&self) -> &'static str;

    /// Reads its table. Returns `None` if something essential is missing or wrong, which `sink` has recorded.
    fn read(&self, section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Arc<dyn Protocol>>;

    /// Its templates, named by folder and purpose. Those with the name of a slot (`render::SLOTS`) become
    /// part of the program there; the others are partials for these.
    fn templates(&self) -> &'static [(&'static str, &'static str)];

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

    /// Warnings: what is allowed, but may cost what it promises. Each names the field and says what would
    /// fit.
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

    /// Whether hosts and switch exchange times, so that their units must be the same.
    fn tells_times(&self) -> bool {
        false
    }

    /// Reasons for which its part of the program drops frames.
    fn drop_reasons(&self) -> &'static [DropReason] {
        &[]
    }

    /// Its headers, in the order in which the deparser emits them.
    fn headers(&self) -> Vec<Header> {
        Vec::new()
    }

    /// EtherTypes that start it, after an Ethernet header or a tag.
    fn ether_types(&self) -> Vec<EtherTypeState> {
        Vec::new()
    }

    /// Why its templates don't serve an architecture; continues a sentence that starts with the scheme's name.
    fn refuses_arch(&self, _arch: Arch) -> Option<&'static str> {
        None
    }

    /// Whether frames may take another pass.
    fn takes_passes(&self) -> bool {
        false
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
}

impl PartialEq for dyn Protocol {
    fn eq(&self, other: &dyn Protocol) -> bool {
        self.variant() == other.variant() && self.parameters() == other.parameters()
    }
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

/// An EtherType, and the parser state for what follows it.
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
}

const fn reason(name: &'static str, doc: &'static str) -> DropReason {
    DropReason { name, doc }
}

/// What runs on a switch and in the agents: variants of protocols that share a pipeline. Without any, plain
/// switching.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scheme([Option<&'static str>; TOGETHER]);

impl Scheme {
    /// Plain switching, without reservations.
    pub const L2: Scheme = Scheme([None; TOGETHER]);

    /// The scheme with one protocol's variant.
    pub const fn one(variant: &'static str) -> Scheme {
        let mut variants = [None; TOGETHER];
        variants[0] = Some(variant);
        Scheme(variants)
    }

    /// The scheme with these variants, in any order; at most [`TOGETHER`], further ones are dropped.
    pub fn of(variants: impl IntoIterator<Item = &'static str>) -> Scheme {
        let mut sorted: Vec<&'static str> = variants.into_iter().take(TOGETHER).collect();
        sorted.sort_unstable();
        let mut scheme = Scheme::L2;
        for (place, variant) in scheme.0.iter_mut().zip(sorted) {
            *place = Some(variant);
        }
        scheme
    }

    /// Names of its variants.
    pub fn variants(&self) -> impl Iterator<Item = &'static str> {
        self.0.into_iter().flatten()
    }

    /// Whether this protocol runs, in any variant.
    pub fn runs(&self, protocol: &dyn Definition) -> bool {
        self.variants().any(|variant| protocol.variants().contains(&variant))
    }

    /// Plain switching, and each protocol's variants on their own.
    pub fn all() -> Vec<Scheme> {
        let variants = PROTOCOLS.iter().flat_map(|protocol| protocol.variants());
        std::iter::once(Scheme::L2).chain(variants.map(|variant| Scheme::one(variant))).collect()
    }

    /// Its name in files and on the command line.
    pub fn name(&self) -> String {
        if *self == Scheme::L2 { L2.to_owned() } else { self.variants().collect::<Vec<_>>().join("+") }
    }
}

/// Name of plain switching.
const L2: &str = "l2";

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::str::FromStr for Scheme {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == L2 {
            return Ok(Scheme::L2);
        }
        let known = || PROTOCOLS.iter().flat_map(|protocol| protocol.variants()).copied();
        let variants: Option<Vec<&'static str>> =
            s.split('+').map(|name| known().find(|variant| *variant == name)).collect();
        variants.filter(|variants| variants.len() <= TOGETHER).map(Scheme::of).ok_or_else(|| {
            let names: Vec<&str> = std::iter::once(L2).chain(known()).collect();
            let (last, others) = names.split_last().unwrap_or((&L2, &[]));
            format!("`{s}` is no scheme; there are {} and {last}", others.join(", "))
        })
    }
}

/// A scheme that a rack cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rack {rack}: {scheme} {problem}")]
pub struct SchemeError {
    /// The rack.
    pub rack: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Why, and what to do; continues a sentence that starts with the scheme's name.
    pub problem: String,
}

impl Rack {
    /// The scheme that the description asks for: all of its protocols, in their variants.
    pub fn scheme(&self) -> Scheme {
        Scheme::of(self.protocols.iter().map(|protocol| protocol.variant()))
    }

    /// The protocol of this type, if the rack has it.
    pub fn protocol<P: Protocol>(&self) -> Option<&P> {
        self.protocols.iter().find_map(|protocol| {
            let any: &dyn Any = protocol.as_ref();
            any.downcast_ref()
        })
    }

    /// The same rack with this scheme, if it can run it.
    pub fn under(&self, scheme: Scheme) -> Result<Rack, SchemeError> {
        let refuse = |problem| SchemeError { rack: self.name.clone(), scheme, problem };
        let as_variant = |variant| self.protocols.iter().find_map(|protocol| protocol.as_variant(variant));
        if let Some(absent) = scheme.variants().find(|variant| as_variant(variant).is_none()) {
            return Err(refuse(needs(absent)));
        }
        // In the rack's order, not in the scheme's.
        let protocols = self
            .protocols
            .iter()
            .flat_map(|protocol| scheme.variants().filter_map(|variant| protocol.as_variant(variant)).next());
        let rack = Rack { protocols: protocols.collect(), ..self.clone() };
        match rack.protocols.iter().find_map(|protocol| protocol.refuses(&rack)) {
            Some(problem) => Err(refuse(problem)),
            None => Ok(rack),
        }
    }

    /// Whether hosts and switch exchange times.
    pub fn tells_times(&self) -> bool {
        self.protocols.iter().any(|protocol| protocol.tells_times())
    }

    /// Reasons for which the program drops frames. A reason's position is its index in the counter.
    pub fn drop_reasons(&self) -> Vec<DropReason> {
        let protocols = self.protocols.iter().flat_map(|protocol| protocol.drop_reasons());
        l2::DROP_REASONS.iter().chain(protocols).copied().collect()
    }
}

/// What is missing for a variant.
fn needs(variant: &str) -> String {
    match PROTOCOLS.iter().find(|protocol| protocol.variants().contains(&variant)) {
        Some(protocol) => {
            format!("needs {}'s parameters: {}", protocol.section().to_uppercase(), protocol.add())
        }
        None => "is no protocol of the description's: add its table".to_owned(),
    }
}
