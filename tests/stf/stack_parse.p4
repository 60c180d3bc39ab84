// A stack is parsed with next and last.
#include <core.p4>
#include <v1model.p4>

header n_t { bit<8> n; }
header e_t { bit<1> end; bit<7> v; }

struct headers_t {
    n_t n;
    e_t[4] e;
}
struct meta_t {
    bit<8> count;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.e.next); meta.count = (bit<8>)hdr.e.lastIndex + 1; transition select(hdr.e.last.end) { 1: accept; 0: start; } }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.n.setValid(); hdr.n.n = meta.count;
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
        pkt.emit(hdr.n);
        pkt.emit(hdr.e);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
