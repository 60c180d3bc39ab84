// A number stands where a type made by `type` is expected: constants, assignments, arguments, results, matches.
#include <core.p4>
#include <v1model.p4>

type bit<10> vrf_t;
type vrf_t inner_t;
type int<8> step_t;

const vrf_t DEFAULT = 0;

header h_t { bit<8> kind; bit<8> sum; bit<16> vrf; }
struct pair_t { vrf_t first; step_t second; }
struct headers_t { h_t h; }
struct meta_t { vrf_t vrf; inner_t inner; pair_t pair; }

vrf_t chosen(in vrf_t given, in bool own) {
    if (own) { return given; }
    return 9;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        meta.vrf = 7;
        meta.inner = 3;
        transition select((vrf_t)(bit<10>)hdr.h.kind) {
            1: one;
            2 .. 3: two;
            0x40 &&& 0xc0: three;
            default: accept;
        }
    }
    state one { meta.vrf = 1; transition accept; }
    state two { meta.vrf = 2; transition accept; }
    state three { meta.vrf = 3; transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action to(vrf_t vrf, bit<9> port) {
        hdr.h.vrf = (bit<16>)(bit<10>)vrf;
        sm.egress_spec = port;
    }
    table by_vrf {
        key = { meta.vrf: exact; }
        actions = { to; }
        const entries = {
            1: to(100, 2);
            2: to(200, 2);
            3: to(1023, 2);
        }
        default_action = to(5, 3);
    }
    apply {
        meta.pair = { 4, -1 };
        by_vrf.apply();
        if (meta.vrf == DEFAULT) { mark_to_drop(sm); }
        vrf_t picked = chosen(6, hdr.h.kind == 1);
        vrf_t other = hdr.h.kind == 2 ? 8 : picked;
        hdr.h.sum = (bit<8>)(bit<10>)other + (bit<8>)(int<8>)meta.pair.second;
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
