// A clone of ingress has the headers that came in, and the fields of its list.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers_t {
    h_t h;
}
struct meta_t {
    @field_list(1) bit<8> kept;
    bit<8> lost;
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
        meta.kept = 0x42; meta.lost = 0x43;
        hdr.h.a = 0x99;
        clone_preserving_field_list(CloneType.I2E, 5, 1);
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 1) { hdr.h.b = 1; hdr.h.c = meta.lost ++ meta.kept; }
    }
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
