//! Scapy layers of PL2's headers.

use super::Pl2;
use p4rack_wire::pl2::{Control, Kind, Management, Shim};
use p4rack_wire::render::scapy_layer;

pub(super) fn layers(pl2: &Pl2) -> String {
    let code = |kind: Kind| kind as u8;
    let control = [Kind::Rsv, Kind::Grt, Kind::Notify].map(code);
    let management =
        [Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset, Kind::MgmtReply, Kind::MgmtForget].map(code);
    format!(
        "ETHER_TYPE = 0x{ether_type:04X}\n\n\n{control_layer}\n\n{shim_layer}\n\n{management_layer}\n\n\
         class Pl2(Packet):\n\
         \x20   \"\"\"Any PL2 frame: the kind in its first byte says which.\"\"\"\n\n\
         \x20   @classmethod\n\
         \x20   def dispatch_hook(cls, _pkt=None, *args, **kargs):\n\
         \x20       return KINDS.get(_pkt[0] & 0x0F, Raw) if _pkt else Raw\n\n\n\
         KINDS = {{kind: Control for kind in {control:?}}}\n\
         KINDS.update({{kind: Management for kind in {management:?}}})\n\
         KINDS[{data}] = Shim\n\
         for lower in (Ether, Dot1Q):\n\
         \x20   bind_bottom_up(lower, Pl2, type=ETHER_TYPE)\n\
         \x20   for upper in (Control, Shim, Management):\n\
         \x20       bind_top_down(lower, upper, type=ETHER_TYPE)\n",
        ether_type = pl2.ether_type.0,
        control_layer = scapy_layer(&Control::DESC),
        shim_layer = scapy_layer(&Shim::DESC),
        management_layer = scapy_layer(&Management::DESC),
        data = code(Kind::Data),
    )
}
