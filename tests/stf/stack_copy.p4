// A copy of a stack has the next index of the other one, in a parser and in controls.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> pushes; bit<8> last; }
header e_t { bit<8> v; }

struct headers_t {
    h_t h;
    e_t[3] e;
    e_t[3] copy;
}
struct meta_t {
    bit<8> unused;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        pkt.extract(hdr.e.next);
        hdr.copy = hdr.e;
        pkt.extract(hdr.copy.next);
        hdr.h.last = hdr.copy.last.v;
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control Push(inout headers_t hdr) {
    action push() { hdr.copy.push_front(1); hdr.copy[0].setValid(); hdr.copy[0].v = 0xee; }
    apply {
        if (hdr.h.pushes > 0) { push(); }
        if (hdr.h.pushes > 1) { push(); }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Push() push;
    apply {
        sm.egress_spec = 1;
        push.apply(hdr);
        hdr.e = hdr.copy;
        hdr.e.pop_front(1);
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
        pkt.emit(hdr.copy);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
