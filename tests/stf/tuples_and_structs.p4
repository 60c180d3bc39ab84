// Tuples, nested structs and initialisers.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct pair_t { bit<8> x; bit<8> y; }
struct outer_t { pair_t p; bit<8> z; }

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
        outer_t o = { p = { x = hdr.h.a, y = hdr.h.b }, z = 0 };
        tuple<bit<8>, bit<8>> t = { o.p.y, o.p.x };
        hdr.h.c = t[0] ++ t[1];
        if (o.p == { 1, 2 } && o.z == 0) { hdr.h.a = o.p.x; }
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
