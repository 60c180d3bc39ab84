// Variables of variable length, in ingress and in an action: two headers exchange their bytes.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> first; bit<8> second; }
header e_t { varbit<32> v; }

struct headers_t {
    h_t h;
    e_t a;
    e_t b;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        pkt.extract(hdr.a, (bit<32>) hdr.h.first);
        pkt.extract(hdr.b, (bit<32>) hdr.h.second);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    varbit<32> kept;
    action exchange() {
        varbit<32> other = hdr.b.v;
        hdr.a.v = other;
        hdr.b.v = kept;
    }
    apply {
        sm.egress_spec = 1;
        kept = hdr.a.v;
        exchange();
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
        pkt.emit(hdr.a);
        pkt.emit(hdr.b);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
