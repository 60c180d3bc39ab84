#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dstAddr; bit<48> srcAddr; bit<16> etherType; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }
parser ThisParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Checks(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Sums(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) forwarded;
    action forward(bit<9> port) { sm.egress_spec = port; forwarded.count(); }
    action drop() { mark_to_drop(sm); forwarded.count(); }
    table destinations {
        key = { hdr.ethernet.dstAddr: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        const entries = {
            0x020000000001 : forward(1);
            0x020000000002 : forward(2);
        }
        counters = forwarded;
    }
    apply { destinations.apply(); }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control ThisDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(ThisParser(), Checks(), Forward(), Leave(), Sums(), ThisDeparser()) main;
