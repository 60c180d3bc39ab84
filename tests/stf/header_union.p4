// Of a union at most one member is valid.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> k; }
header one_t { bit<8> x; }
header two_t { bit<16> x; }
header_union u_t { one_t one; two_t two; }

struct headers_t {
    h_t h;
    u_t u;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition select(hdr.h.k) { 1: one; default: two; } }
    state one { pkt.extract(hdr.u.one); transition accept; }
    state two { pkt.extract(hdr.u.two); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.u.one.isValid()) { bit<8> x = hdr.u.one.x; hdr.u.two.setValid(); hdr.u.two.x = x ++ 8w1; } else { hdr.u.two.x = hdr.u.two.x + 1; }
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
        pkt.emit(hdr.u);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
