// A varbit field of more bits than a number may have.
#include <core.p4>
#include <v1model.p4>

header len_t { bit<16> bytes; bit<8> kind; }
header rest_t { varbit<16384> v; }
header mark_t { bit<8> same; }

struct headers_t { len_t len; rest_t rest; rest_t copy; mark_t mark; }
struct meta_t { bit<8> unused; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.len);
        pkt.extract(hdr.rest, (bit<32>)hdr.len.bytes * 8);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = sm.parser_error == error.NoError ? 9w1 : 2;
        if (hdr.len.kind == 1) { hdr.copy = hdr.rest; }
        if (hdr.copy == hdr.rest && hdr.rest.isValid()) { hdr.mark = { 0x5a }; }
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
        pkt.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
