// update_checksum writes what verify_checksum accepts.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> x; bit<16> y; bit<16> sum; }

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
    apply {
        verify_checksum(true, { hdr.h.x, hdr.h.y }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (sm.checksum_error == 1) { sm.egress_spec = 1; }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { }
}

control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.h.isValid(), { hdr.h.x, hdr.h.y }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
