//! Scapy layer of Clio's packets.

use super::Clio;
use p4rack_wire::HeaderDesc;
use p4rack_wire::clio::{Header, Kind};
use p4rack_wire::render::scapy_layer;

pub(super) fn layers(clio: &Clio) -> String {
    // A name that other protocols' layers don't have.
    let layer = scapy_layer(&HeaderDesc { name: "Clio", ..Header::DESC });
    let kinds = Kind::ALL.map(|(kind, name)| format!("    \"{name}\": {},\n", kind as u8)).concat();
    let port = clio.udp_port;
    format!(
        "CLIO_UDP_PORT = {port}\n\n\n{layer}\n\n\
         #: Kinds of packets.\n\
         CLIO_KINDS = {{\n{kinds}}}\n\
         bind_layers(UDP, Clio, dport=CLIO_UDP_PORT)\n\
         bind_bottom_up(UDP, Clio, sport=CLIO_UDP_PORT)\n"
    )
}
