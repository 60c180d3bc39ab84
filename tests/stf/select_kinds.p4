// select with values, masks, ranges and tuples.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers_t {
    h_t h;
}
struct meta_t {
    bit<8> way;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition select(hdr.h.a, hdr.h.c) { (1, _): one; (0x10 &&& 0xf0, 0): two; (0x20 .. 0x2f, 0 .. 5): three; default: four; } }
    state one { meta.way = 1; transition accept; }
    state two { meta.way = 2; transition accept; }
    state three { meta.way = 3; transition accept; }
    state four { meta.way = 4; transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.b = meta.way;
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
