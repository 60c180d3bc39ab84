// A packet goes through ingress once more, with data of the first pass.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
header data_h { bit<8> x; bit<16> port; bit<40> rest; }
struct headers_t { h_t h; }
struct meta_t { data_h data; }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) { 1: again; 0: port; }
    }
    state port { pkt.advance(PORT_METADATA_SIZE); transition first; }
    state again { pkt.extract(meta.data); transition first; }
    state first { pkt.extract(hdr.h); transition parse; }
    state parse { transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (meta.data.isValid()) {
            hdr.h.b = meta.data.x;
            hdr.h.c = meta.data.port;
            if (hdr.h.a == 2) { dprsr.resubmit_type = 0; }
        } else {
            hdr.h.c = hdr.h.c + 9;
            if (hdr.h.a == 5) { dprsr.drop_ctl = 1; }
            if (hdr.h.a != 4) { dprsr.resubmit_type = 0; } else { hdr.h.c = 0; }
            meta.data.x = 0x77;
            meta.data.port = 0x100 + (bit<16>) (bit<9>) ig.ingress_port;
        }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Resubmit() resubmit;
    apply {
        if (dprsr.resubmit_type == 0) { resubmit.emit<data_h>({ meta.data.x, meta.data.port, 0 }); }
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
