// A clone of ingress is the packet as it came in, one of egress as it leaves, each behind its own header.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
header mirror_h { bit<8> kind; bit<8> a; bit<16> c; }
struct headers_t { h_t h; }
struct meta_t { MirrorId_t session; }
struct eg_headers_t { mirror_h m; h_t h; }
struct eg_meta_t { MirrorId_t session; }

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
    apply {
        tm.ucast_egress_port = 3;
        hdr.h.b = 0xaa;
        if (hdr.h.a != 2 && hdr.h.a != 3) { dprsr.mirror_type = 1; }
        meta.session = hdr.h.a == 5 ? (MirrorId_t) 9 : 5;
        if (hdr.h.a == 6) { dprsr.drop_ctl = 4; }
        if (hdr.h.a == 7) { dprsr.drop_ctl = 1; }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    apply {
        if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(meta.session, { 0x33, hdr.h.a, 0x1122 }); }
        pkt.emit(hdr);
    }
}

parser EP(packet_in pkt, out eg_headers_t hdr, out eg_meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition parse; }
    state parse {
        bit<8> kind = pkt.lookahead<bit<8>>();
        transition select(kind) { 0x33: copy; 0x44: copy; default: own; }
    }
    state copy { pkt.extract(hdr.m); transition accept; }
    state own { pkt.extract(hdr.h); transition accept; }
}

control E(inout eg_headers_t hdr, inout eg_meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {
        meta.session = 5;
        if (hdr.h.isValid()) {
            hdr.h.c = 0x0e00;
            if (hdr.h.a == 2) { dprsr.mirror_type = 2; }
        }
    }
}

control ED(packet_out pkt, inout eg_headers_t hdr, in eg_meta_t meta,
           in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    apply {
        if (dprsr.mirror_type == 2) { mirror.emit<mirror_h>(meta.session, { 0x44, hdr.h.a, 0 }); }
        pkt.emit(hdr);
    }
}

Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
