// Two actions with one absolute name, each in a table of its own: the table says which one is meant.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { h_t h; }
struct meta_t { bit<8> unused; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control Sub(inout h_t h) {
    @name(".mark") action mark(bit<8> x) { h.b = x; }
    table t {
        key = { h.a: exact; }
        actions = { mark; }
        const entries = { 1: mark(7); }
        default_action = mark(1);
    }
    apply { t.apply(); }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    @name(".mark") action mark(bit<8> x) { hdr.h.c = x; }
    table u {
        key = { hdr.h.a: exact; }
        actions = { mark; }
        default_action = mark(2);
    }
    apply {
        sm.egress_spec = 1;
        sub.apply(hdr.h);
        u.apply();
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
