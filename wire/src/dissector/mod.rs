//! Wireshark dissectors (Lua) of protocols with an EtherType or a UDP port of their own, made from the same descriptions
//! as everything else in this crate.
//!
//! ```text
//! Ethernet | [802.1Q] |            version, kind: one byte | the rest of the kind's header | what follows it
//! Ethernet | [802.1Q] | IP | UDP | version, kind: one byte | the rest of the kind's header | what follows it
//! ```
//!
//! A dissector shows every field, and marks everything that a receiver would not accept as malformed: frames cut short,
//! other versions, unknown kinds, numbers without a meaning, lengths that contradict each other.

mod lua;

use crate::HeaderDesc;
pub use lua::script;

/// A protocol, as Wireshark is to show it.
#[derive(Clone, Debug)]
pub struct Dissector {
    /// Prefix of display filters: `pl2` in `pl2.control.demand`.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Marks of its frames.
    pub carrier: Carrier,
    /// The version that it can read.
    pub version: u8,
    /// Its kinds of frames.
    pub messages: Vec<Message>,
    /// Frames of other EtherTypes that belong to its reservations, by VLAN.
    pub lanes: Option<Lanes>,
}

/// Marks by which a protocol's frames are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Their EtherType.
    EtherType(u16),
    /// A UDP port, source or destination.
    Udp(u16),
}

/// A kind of frame.
#[derive(Clone, Debug)]
pub struct Message {
    /// The low four bits of the first byte.
    pub kind: u8,
    /// Name of the kind.
    pub name: &'static str,
    /// Its header, whose first two fields are `version` and `kind` with four bits each.
    pub header: HeaderDesc,
    /// Content behind the header.
    pub then: Then,
    /// Names of the values of a field. Other values are marked.
    pub values: &'static [(&'static str, &'static [(u8, &'static str)])],
    /// Fields whose sum must not exceed another's.
    pub at_most: &'static [(&'static [&'static str], &'static str)],
    /// Fields for the list of packets.
    pub summary: &'static [&'static str],
}

/// Content behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing; the frame may be padded.
    Padding,
    /// A payload, whose EtherType is in the field with this name.
    Payload(&'static str),
    /// As many bytes as the field with this name says, then padding.
    Bytes(&'static str),
}

/// VLANs whose number assigns a frame to a reservation: see [`pl2`](crate::pl2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The VLAN of cell 0.
    pub first: u16,
    /// Number of cells.
    pub cells: u16,
}
