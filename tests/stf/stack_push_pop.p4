// push_front and pop_front move elements and their validity.
#include <core.p4>
#include <v1model.p4>

header e_t { bit<8> v; }

struct headers_t {
    e_t[3] e;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.e.next); pkt.extract(hdr.e.next); pkt.extract(hdr.e.next); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.e[0].v == 1) { hdr.e.push_front(1); hdr.e[0].setValid(); hdr.e[0].v = 0xee; } else { hdr.e.pop_front(1); }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { }
}

control C(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.e);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
