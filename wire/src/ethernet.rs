//! Ethernet II and 802.1Q (IEEE 802.3 clause 3, IEEE 802.1Q clause 9).

use crate::header::FieldValue;
use std::fmt;
use std::str::FromStr;

/// A 48-bit MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The broadcast address, all ones.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

    /// Whether the group bit is set: broadcast or multicast.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl FieldValue for MacAddr {
    #[inline]
    fn from_bits(bits: u64) -> Self {
        let b = bits.to_be_bytes();
        MacAddr([b[2], b[3], b[4], b[5], b[6], b[7]])
    }
    #[inline]
    fn to_bits(self) -> u64 {
        let m = self.0;
        u64::from_be_bytes([0, 0, m[0], m[1], m[2], m[3], m[4], m[5]])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.0;
        write!(f, "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", m[0], m[1], m[2], m[3], m[4], m[5])
    }
}

impl FromStr for MacAddr {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let mut mac = [0; 6];
        let mut parts = s.split(':');
        for byte in &mut mac {
            *byte = parts
                .next()
                .filter(|p| p.len() == 2 && p.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|p| u8::from_str_radix(p, 16).ok())
                .ok_or_else(|| format!("`{s}` is not a MAC address such as 02:00:00:00:00:01"))?;
        }
        match parts.next() {
            None => Ok(MacAddr(mac)),
            Some(_) => Err(format!("`{s}` is not a MAC address such as 02:00:00:00:00:01")),
        }
    }
}

/// An EtherType (IEEE 802 numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// PL2's control frames and shim, unless the rack description says otherwise (IEEE local experimental 1).
    pub const PL2_DEFAULT: EtherType = EtherType(0x88b5);
    /// EDM unless configured otherwise: the other one.
    pub const EDM_DEFAULT: EtherType = EtherType(0x88b6);
}

impl FieldValue for EtherType {
    #[inline]
    fn from_bits(bits: u64) -> Self {
        EtherType(bits as u16)
    }
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

crate::header! {
    /// Ethernet II header, without preamble and FCS.
    Ethernet = "ethernet_t" {
        /// destination
        dst / "dstAddr": MacAddr = 48;
        /// source
        src / "srcAddr": MacAddr = 48;
        /// what follows
        ether_type / "etherType": EtherType = 16;
    }
}

crate::header! {
    /// 802.1Q tag. A data frame that belongs to a reservation carries one; DEI marks it unsolicited.
    Vlan = "vlan_t" {
        /// priority code point
        pcp / "pcp": u8 = 3;
        /// drop eligible: an unsolicited frame
        dei / "dei": bool = 1;
        /// VLAN identifier
        vid / "vid": u16 = 12;
        /// what follows
        ether_type / "etherType": EtherType = 16;
    }
}

/// Wire overhead beyond the bytes that software sees (frame check sequence, preamble with start delimiter,
/// inter-packet gap), and frame sizes (IEEE 802.3 clause 4).
pub mod overhead {
    /// Frame check sequence, bytes.
    pub const FCS: u64 = 4;
    /// Preamble, start delimiter and inter-packet gap, bytes.
    pub const PREAMBLE_GAP: u64 = 20;
    /// Shortest frame without FCS, bytes.
    pub const MIN_FRAME: u64 = 60;
    /// Largest payload of an untagged frame, bytes.
    pub const MTU: u64 = 1500;

    /// Bytes on the wire of a frame with `len` bytes (header and payload, no FCS).
    pub const fn wire_bytes(len: u64) -> u64 {
        (if len < MIN_FRAME { MIN_FRAME } else { len }) + FCS + PREAMBLE_GAP
    }
}
