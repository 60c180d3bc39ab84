//! Scapy layers of EDM's headers.

use super::Edm;
use p4rack_wire::HeaderDesc;
use p4rack_wire::edm::{Control, Kind, Management, Message};
use p4rack_wire::render::scapy_layer;

pub(super) fn layers(edm: &Edm) -> String {
    let code = |kind: Kind| kind as u8;
    let control = [Kind::Notify, Kind::Grant].map(code);
    let message = [Kind::Rreq, Kind::Wreq, Kind::Rmwreq, Kind::Rres].map(code);
    let management = [Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset, Kind::MgmtReply].map(code);
    // Names that other protocols' layers don't have.
    let layer = |name, desc| scapy_layer(&HeaderDesc { name, ..desc });
    format!(
        "EDM_ETHER_TYPE = 0x{ether_type:04X}\n\n\n{control_layer}\n\n{message_layer}\n\n{management_layer}\n\n\
         class Edm(Packet):\n\
         \x20   \"\"\"Any EDM frame: the kind in its first byte says which.\"\"\"\n\n\
         \x20   @classmethod\n\
         \x20   def dispatch_hook(cls, _pkt=None, *args, **kargs):\n\
         \x20       return EDM_KINDS.get(_pkt[0] & 0x0F, Raw) if _pkt else Raw\n\n\n\
         EDM_KINDS = {{kind: EdmControl for kind in {control:?}}}\n\
         EDM_KINDS.update({{kind: EdmMessage for kind in {message:?}}})\n\
         EDM_KINDS.update({{kind: EdmManagement for kind in {management:?}}})\n\
         for lower in (Ether, Dot1Q):\n\
         \x20   bind_bottom_up(lower, Edm, type=EDM_ETHER_TYPE)\n\
         \x20   for upper in (EdmControl, EdmMessage, EdmManagement):\n\
         \x20       bind_top_down(lower, upper, type=EDM_ETHER_TYPE)\n",
        ether_type = edm.ether_type.0,
        control_layer = layer("EdmControl", Control::DESC),
        message_layer = layer("EdmMessage", Message::DESC),
        management_layer = layer("EdmManagement", Management::DESC),
    )
}
