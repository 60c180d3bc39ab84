// Tables: priorities have no place among constant entries.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; }
struct hdr_t { h_t h; }
struct meta_t { bit<8> a; }

parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout hdr_t hdr, inout meta_t meta) { apply { } }
control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action a() { }
    table constant {
        key = { hdr.h.a: ternary; }
        actions = { a; }
        const entries = {
            1 &&& 3: a();
            priority = 10: 2 &&& 3: a(); // error: entries of a table with `const entries` have no priorities
            priority = 20: 3 &&& 3: a();
        }
    }
    table initial {
        key = { hdr.h.a: ternary; }
        actions = { a; }
        entries = {
            priority = 10: 2 &&& 3: a();
            const priority = 20: 3 &&& 3: a();
        }
    }
    apply {
        constant.apply();
        initial.apply();
    }
}
control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout hdr_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in hdr_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
