// `for … in` over variables of type `list`, whose values have other lengths, and over a loop's own variable.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> kind; bit<8> sum; bit<8> rounds; bit<8> all; }

bit<8> total(in list<bit<8>> l) {
    bit<8> sum = 0;
    for (bit<8> x in l) { sum = sum + x; }
    return sum;
}
struct headers_t { h_t h; }
struct meta_t { bit<8> unused; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        list<bit<8>> l;
        l = (list<bit<8>>){ 1, 5, hdr.h.kind };
        if (hdr.h.kind == 2) { l = (list<bit<8>>){ 7 }; }
        list<bit<8>> copy = l;
        for (bit<8> x in l) {
            // This changes neither the list nor the rounds.
            l = (list<bit<8>>){ 0, 0 };
            x = x + 1;
            hdr.h.sum = hdr.h.sum + x;
            hdr.h.rounds = hdr.h.rounds + 1;
        }
        hdr.h.all = total(copy);
        for (bit<8> i in 1 .. 3) {
            i = i + 100;
            hdr.h.rounds = hdr.h.rounds + (i == 103 ? 8w0x10 : 0);
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
