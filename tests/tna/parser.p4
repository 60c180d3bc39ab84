// Value sets, the counter, rejection and errors of the parser.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
header word_t { bit<16> w; }
struct headers_t { h_t h; word_t[4] words; }
struct meta_t { }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    value_set<bit<8>>(4) kinds;
    ParserCounter() left;
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) { 1: again; 0: port; }
    }
    state port { pkt.advance(PORT_METADATA_SIZE); transition first; }
    state again { transition reject; }
    state first { pkt.extract(hdr.h); transition parse; }
    state parse {
        transition select(hdr.h.a) { kinds: options; 0xff: reject; 0x30: strict; 0x40: limited; default: accept; }
    }
    state strict { transition select(hdr.h.b) { 1: accept; } }
    state limited {
        // At most 4; the low three bits, plus one.
        left.set(hdr.h.b, 4, 0, 2, 1);
        transition option;
    }
    state options {
        left.set(hdr.h.b);
        transition select(left.is_zero()) { true: accept; false: option; }
    }
    state option {
        pkt.extract(hdr.words.next);
        left.decrement(1);
        transition select(left.is_zero()) { true: accept; false: option; }
    }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (prsr.parser_err != 0) { hdr.h.c = prsr.parser_err; } else if (hdr.words[0].isValid()) { hdr.h.c = 1; }
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
