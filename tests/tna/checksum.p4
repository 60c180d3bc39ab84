// Checksums: verified in the parser, updated in the deparser, carried over a part that is not parsed.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
header sum_t { bit<16> number; bit<16> sum; }
struct headers_t { h_t h; sum_t s; }
struct meta_t { bool wrong; bit<16> rest; }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    Checksum() whole;
    Checksum() rest;
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) { 1: again; 0: port; }
    }
    state port { pkt.advance(PORT_METADATA_SIZE); transition first; }
    state again { transition reject; }
    state first { pkt.extract(hdr.h); transition parse; }
    state parse {
        whole.add(hdr.h);
        meta.wrong = whole.verify();
        pkt.extract(hdr.s);
        rest.subtract({ hdr.s.number, hdr.s.sum });
        rest.subtract_all_and_deposit(meta.rest);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        hdr.h.b = 5;
        if (meta.wrong) { hdr.h.b = 0xee; }
        if (hdr.s.sum != 0) { hdr.s.number = 7; }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() own;
    Checksum() other;
    apply {
        hdr.h.c = own.update({ hdr.h.a, hdr.h.b });
        if (hdr.s.sum != 0) { hdr.s.sum = other.update({ hdr.s.number, meta.rest }, true); }
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
