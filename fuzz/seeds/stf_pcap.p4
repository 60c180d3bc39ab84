// One of everything that an STF file can speak of.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<80> d; }
struct headers_t { h_t h; }
struct meta_t { @field_list(1) bit<8> kept; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) vs;
    state start {
        transition select(pkt.lookahead<bit<8>>()) { vs: skip; default: take; }
    }
    state skip { pkt.advance(8); transition start; }
    state take { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) c;
    direct_counter(CounterType.packets) dc;
    meter(8, MeterType.bytes) m;
    register<bit<80>>(8) r;
    action_selector(HashAlgorithm.crc16, 16, 16) as;
    action set(bit<9> port, bit<80> d) { sm.egress_spec = port; hdr.h.d = d; }
    action group(bit<16> g) { sm.mcast_grp = g; }
    action mirror(bit<32> session) { clone_preserving_field_list(CloneType.I2E, session, 1); }
    action again() { if (sm.instance_type == 0) { resubmit_preserving_field_list(1); } }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; group; mirror; again; NoAction; }
        counters = dc;
        default_action = NoAction;
    }
    table u {
        key = { hdr.h.b: ternary; hdr.h.c: range; hdr.h.a: optional; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    table l {
        key = { hdr.h.d: lpm; hdr.h.c: selector; }
        actions = { set; NoAction; }
        implementation = as;
    }
    apply {
        t.apply(); u.apply(); l.apply();
        c.count((bit<32>)hdr.h.b);
        m.execute_meter((bit<32>)hdr.h.b, meta.kept);
        bit<80> x;
        r.read(x, (bit<32>)hdr.h.b);
        r.write((bit<32>)hdr.h.b, x + hdr.h.d);
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { if (sm.egress_port == 5) { recirculate_preserving_field_list(1); } }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
