//! Frames of hostile hosts.

use super::Config;
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use p4rack_wire::pl2::{Control, Kind, PCP_CONTROL, PCP_SCHEDULED, Shim, VERSION, vid_of};
use p4rack_wire::{EtherType, MacAddr};

const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;
/// IEEE's second local experimental EtherType, which PL2's hosts ignore.
const NOBODYS: EtherType = EtherType(0x88b7);

/// Builds frames.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    mac: MacAddr,
    ether_type: EtherType,
    vid: u16,
    shim: bool,
}

impl Frames {
    pub fn new(config: &Config) -> Frames {
        Frames { mac: config.mac, ether_type: config.ether_type, vid: config.vid, shim: config.shim }
    }

    /// Length of a full data frame.
    pub fn full(&self) -> usize {
        TAGGED + if self.shim { Shim::BYTES } else { 0 } + overhead::MTU as usize
    }

    /// Wire bytes of a full data frame.
    pub fn full_wire_bytes(&self) -> u64 {
        overhead::wire_bytes(self.full() as u64)
    }

    /// The contents of an RSV.
    pub fn rsv(&self, id: u32, cell: u8, demand: u8) -> Control {
        Control {
            version: VERSION,
            kind: Kind::Rsv as u8,
            demand,
            cell,
            unsolicited: 0,
            reserved: 0,
            id,
            send_wait: 0,
            recv_wait: 0,
        }
    }

    /// Writes a control frame.
    pub fn emit(&self, out: &mut Vec<u8>, dst: MacAddr, src: MacAddr, control: Control) {
        out.clear();
        out.resize(overhead::MIN_FRAME as usize, 0);
        Ethernet { dst, src, ether_type: EtherType::VLAN }.emit(out);
        let vlan = Vlan { pcp: PCP_CONTROL, dei: false, vid: self.vid, ether_type: self.ether_type };
        vlan.emit(&mut out[Ethernet::BYTES..]);
        control.emit(&mut out[TAGGED..]);
    }

    /// Writes a data frame for a cell's reservation, with at least this length.
    pub fn data(&self, out: &mut Vec<u8>, dst: MacAddr, cell: u8, unsolicited: bool, len: usize) {
        out.clear();
        out.resize(len.max(overhead::MIN_FRAME as usize), 0);
        Ethernet { dst, src: self.mac, ether_type: EtherType::VLAN }.emit(out);
        let ether_type = if self.shim { self.ether_type } else { NOBODYS };
        let vlan = Vlan { pcp: PCP_SCHEDULED, dei: unsolicited, vid: vid_of(self.vid, cell), ether_type };
        vlan.emit(&mut out[Ethernet::BYTES..]);
        if self.shim {
            let shim = Shim {
                version: VERSION,
                kind: Kind::Data as u8,
                reserved: 0,
                ether_type: NOBODYS,
                sequence: 0,
            };
            shim.emit(&mut out[TAGGED..]);
        }
    }

    /// Writes an untagged frame.
    pub fn plain(&self, out: &mut Vec<u8>, dst: MacAddr, len: usize) {
        out.clear();
        out.resize(len.clamp(overhead::MIN_FRAME as usize, Ethernet::BYTES + overhead::MTU as usize), 0);
        Ethernet { dst, src: self.mac, ether_type: NOBODYS }.emit(out);
    }

    /// Parses a control frame.
    pub fn control(&self, frame: &[u8]) -> Option<Control> {
        let (ethernet, vlan) =
            (Ethernet::parse(frame).ok()?, Vlan::parse(frame.get(Ethernet::BYTES..)?).ok()?);
        let ours = ethernet.ether_type == EtherType::VLAN && vlan.ether_type == self.ether_type;
        if !ours || vlan.pcp != PCP_CONTROL {
            return None;
        }
        Control::parse(frame.get(TAGGED..)?).ok()
    }
}
