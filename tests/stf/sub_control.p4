// Controls with constructor parameters; each instance has its own state.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
control Add(inout bit<8> x)(bit<8> step) {
    apply { x = x + step; }
}

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
    Add(10) ten;
    Add(20) twenty;
    apply {
        sm.egress_spec = 1;
        bit<8> x = hdr.h.a; bit<8> y = hdr.h.a;
        ten.apply(x); twenty.apply(y);
        hdr.h.b = x; hdr.h.c = (bit<16>)y;
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
