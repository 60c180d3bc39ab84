// Elements by an index that is computed.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> i; }
header e_t { bit<8> v; }

struct headers_t {
    h_t h;
    e_t[3] e;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); pkt.extract(hdr.e.next); pkt.extract(hdr.e.next); pkt.extract(hdr.e.next); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<8> i = hdr.h.i;
        hdr.h.i = hdr.e[i].v;
        hdr.e[i].v = 0x55;
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
        pkt.emit(hdr.h);
        pkt.emit(hdr.e);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
