// Actions on registers: of one cell, of a pair, with a parameter and a comparison; plain reads and writes.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct pair_t { bit<16> low; bit<16> high; }
struct headers_t { h_t h; }
struct meta_t { bit<16> seen; }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) { 1: again; 0: port; }
    }
    state port { pkt.advance(PORT_METADATA_SIZE); transition first; }
    state again { transition reject; }
    state first { pkt.extract(hdr.h); transition parse; }
    state parse { transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<8>, bit<8>>(4, 7) counts;
    Register<pair_t, bit<1>>(2, { 0, 0 }) pairs;
    RegisterParam<bit<8>>(1) step;
    RegisterAction<_, _, bit<8>>(counts) count = {
        void apply(inout bit<8> value, out bit<8> rv) { rv = value; value = value + step.read(); }
    };
    RegisterAction<pair_t, bit<1>, bit<16>>(pairs) advance = {
        void apply(inout pair_t value, out bit<16> rv) {
            value.low = value.high;
            value.high = value.high + 1;
            rv = value.high;
        }
    };
    RegisterAction<pair_t, bit<1>, bit<16>>(pairs) low = {
        void apply(inout pair_t value, out bit<16> rv) { rv = value.low; }
    };
    RegisterAction<bit<8>, bit<8>, bit<4>>(counts) compare = {
        void apply(inout bit<8> value, out bit<4> rv) { rv = this.predicate(hdr.h.b == 1, hdr.h.b == 2 || value == 99); }
    };
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (hdr.h.a == 1) { hdr.h.b = count.execute(hdr.h.b); hdr.h.c = 1; }
        else if (hdr.h.a == 2) { hdr.h.c = advance.execute(1); hdr.h.b = (bit<8>) low.execute(1); }
        else if (hdr.h.a == 3) { hdr.h.b = counts.write((bit<8>) hdr.h.c, hdr.h.b); }
        else if (hdr.h.a == 4) { hdr.h.b = (bit<8>) (bit<4>) compare.execute(0); }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        
        pkt.emit(hdr);
    }
}

parser EP(packet_in pkt, out eg_headers_t hdr, out eg_meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition parse; }
    state parse { pkt.extract(hdr.h); transition accept; }
}

control E(inout eg_headers_t hdr, inout eg_meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {
        
    }
}

control ED(packet_out pkt, inout eg_headers_t hdr, in eg_meta_t meta,
           in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        
        pkt.emit(hdr);
    }
}

Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
