// Arguments given by name are evaluated and copied back as they are written, whatever the order of the parameters.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> kind; bit<8> a; bit<8> b; bit<8> c; }

bit<8> next(inout bit<8> x) { x = x + 1; return x; }
void two(out bit<8> p, out bit<8> q, in bit<8> x, in bit<8> y) { p = x; q = y; }
void put(inout bit<8> first, inout bit<8> second) { first = 0xAA; second = 0xBB; }
struct headers_t { h_t h; }
struct meta_t { bit<8> unused; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control Put(inout bit<8> first, inout bit<8> second, in bit<8> x, in bit<8> y) {
    apply { first = x; second = y; }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(8) cells;
    bit<8> at = 0;
    bit<8>[4] places = { 0, 0, 0, 0 };
    Put() own;
    Put() other;
    action mark(inout bit<8> first, inout bit<8> second, bit<8> x, bit<8> y) { first = x; second = y; }
    table listed {
        actions = { mark(second = hdr.h.a, first = hdr.h.a); }
        default_action = mark(y = 0xB2, x = 0xA2);
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.kind == 1) { two(p = hdr.h.a, q = hdr.h.b, y = next(at), x = next(at)); }
        // The last one written wins.
        if (hdr.h.kind == 2) {
            put(second = hdr.h.a, first = hdr.h.a);
            put(first = hdr.h.b, second = hdr.h.b);
        }
        if (hdr.h.kind == 3) { mark(second = hdr.h.a, y = next(at), first = hdr.h.a, x = next(at)); }
        if (hdr.h.kind == 4) { own.apply(y = next(at), second = hdr.h.a, x = next(at), first = hdr.h.a); }
        if (hdr.h.kind == 5) { listed.apply(); }
        // The places, too: the second one is written to cell 1, the first one to cell 2.
        if (hdr.h.kind == 6) {
            put(second = places[next(at)], first = places[next(at)]);
            hdr.h.a = places[1];
            hdr.h.b = places[2];
        }
        // An argument that another one changes keeps its value.
        if (hdr.h.kind == 9) { other.apply(hdr.h.a, hdr.h.b, at, next(at)); }
        // Methods of extern objects: cell 2 gets 1.
        if (hdr.h.kind == 7) {
            cells.write(value = next(at), index = (bit<32>) next(at));
            cells.read(index = 2, result = hdr.h.a);
        }
        // As without names.
        if (hdr.h.kind == 8) {
            cells.write((bit<32>) next(at), next(at));
            cells.read(hdr.h.a, 1);
        }
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
