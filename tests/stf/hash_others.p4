// identity, xor16 and csum16; base and max.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> x; bit<16> a; bit<16> b; bit<16> c; }

struct headers_t {
    h_t h;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<16> x = hdr.h.x;
        hash(hdr.h.a, HashAlgorithm.xor16, 16w0, { x, 16w1 }, 32w65536);
        hash(hdr.h.b, HashAlgorithm.csum16, 16w0, { x }, 32w65536);
        hash(hdr.h.c, HashAlgorithm.identity, 16w100, { x }, 32w2);
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
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
