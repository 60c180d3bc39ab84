// Indexes behind the end of a stack read 0, write nothing, and disturb nothing else.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> i; bit<8> read; bit<8> valid; }
header e_t { bit<8> v; }

struct headers_t {
    h_t h;
    e_t[3] e;
    e_t t;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        pkt.extract(hdr.e.next);
        pkt.extract(hdr.e.next);
        pkt.extract(hdr.e.next);
        pkt.extract(hdr.t);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action idle(inout bit<8> value) { }
    action write(bit<8> value) {
        hdr.e[hdr.h.i].v = value;
        hdr.e[hdr.h.i].v[3:0] = 0x7;
    }
    table writes {
        actions = { write; }
        const default_action = write(0x50);
    }
    apply {
        sm.egress_spec = 1;
        hdr.h.read = hdr.e[hdr.h.i].v;
        hdr.h.valid = hdr.e[hdr.h.i].isValid() ? 8w1 : 8w0;
        idle(hdr.e[hdr.h.i].v);
        writes.apply();
        if (hdr.h.read == 0xff) {
            hdr.e[hdr.h.i].setInvalid();
        }
        if (hdr.h.read == 0xee) {
            hdr.e[hdr.h.i] = hdr.t;
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
        pkt.emit(hdr.e);
        pkt.emit(hdr.t);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
