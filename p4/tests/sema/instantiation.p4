// What only shows when the program is put together.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<16> type; }
struct hdr_t { eth_t eth; }
struct meta_t { bit<8> a; }
struct cell_t { bit<8> a; bit<8> b; }
extern Foreign { Foreign(); void touch(); }

parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.eth); transition accept; }
}
control V(inout hdr_t hdr, inout meta_t meta) {
    apply { update_checksum(true, {hdr.eth.dst}, hdr.eth.type, HashAlgorithm.csum16); } // error: `update_checksum` can only be called in the checksum computation
}
control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Foreign() f;
    register<cell_t>(4) r;
    direct_counter(CounterType.packets) dc;
    @name("same") action one() { }
    @name("same") action two() { } // error: two actions are called `I.same` for the control plane
    @name("other") action three(bit<8> x) { }
    @name("other") action four(bit<8> y) { } // error: two actions are called `I.other` for the control plane
    @name("fine") action five(bit<8> x) { }
    @name("fine") action six(bit<8> x) { }
    table c { actions = { three; five; } }
    table d { actions = { four; six; } }
    table a { key = { meta.a : exact; } actions = { one; two; } counters = dc; }
    table b { key = { meta.a : lpm; } actions = { one; } counters = dc; // error: `I.dc` already belongs to another table
        const entries = {
            3 &&& 5 : one(); // error: the mask of an lpm key is a prefix
        }
    }
    apply {
        a.apply();
        b.apply();
        c.apply();
        d.apply();
        recirculate_preserving_field_list(1); // error: `recirculate_preserving_field_list` can only be called in egress
    }
}
control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout hdr_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in hdr_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
