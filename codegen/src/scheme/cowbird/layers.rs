//! Scapy layers of the RoCEv2 headers that the engine uses, and of the rings' contents.

use p4rack_wire::HeaderDesc;
use p4rack_wire::cowbird::{Entry, Green, Management, Red, opcode};
use p4rack_wire::render::scapy_layer;
use p4rack_wire::roce::{Aeth, Bth, Opcode, Reth, UDP_PORT};

pub(super) fn layers() -> String {
    // Names that other protocols' layers don't have.
    let layer = |name, desc| scapy_layer(&HeaderDesc { name, ..desc });
    let headers = [
        layer("RoceBth", Bth::DESC),
        layer("RoceReth", Reth::DESC),
        layer("RoceAeth", Aeth::DESC),
        layer("CowbirdManagement", Management::DESC),
        layer("CowbirdGreen", Green::DESC),
        layer("CowbirdRed", Red::DESC),
        layer("CowbirdEntry", Entry::DESC),
    ];
    let opcodes = Opcode::ALL.map(|code| format!("    \"{code:?}\": {},\n", code as u8)).concat();
    let reth = [Opcode::WriteFirst, Opcode::WriteOnly, Opcode::ReadRequest].map(|code| code as u8);
    let aeth =
        [Opcode::ReadResponseFirst, Opcode::ReadResponseLast, Opcode::ReadResponseOnly, Opcode::Acknowledge]
            .map(|code| code as u8);
    let management = [opcode::READ, opcode::SET, opcode::REPLY];
    format!(
        "{headers}\n\n\
         #: Opcodes of reliable connections.\n\
         ROCE_OPCODES = {{\n{opcodes}}}\n\
         bind_layers(UDP, RoceBth, dport={UDP_PORT})\n\
         for upper, opcodes in (\n\
         \x20   (RoceReth, {reth:?}),\n\
         \x20   (RoceAeth, {aeth:?}),\n\
         \x20   (CowbirdManagement, {management:?}),\n\
         ):\n\
         \x20   for opcode in opcodes:\n\
         \x20       bind_bottom_up(RoceBth, upper, opcode=opcode)\n",
        headers = headers.join("\n\n"),
    )
}
