// setValid() leaves the fields alone: those written before it stay, in any order and after setInvalid().
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> kind; bit<8> spare; }
header n_t { bit<32> v; bit<8> k; }
struct headers_t { h_t h; n_t n; }
struct meta_t { }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    action push() {
        hdr.n.v = 0x01020304;
        hdr.n.k = 5;
        hdr.n.setValid();
    }
    apply {
        tm.ucast_egress_port = 3;
        if (hdr.h.kind == 1) { push(); }
        // Nothing was written: zeros, whatever the packet before had.
        if (hdr.h.kind == 2) { hdr.n.setValid(); }
        if (hdr.h.kind == 3) {
            push();
            hdr.n.setInvalid();
            hdr.n.k = 6;
            hdr.n.setValid();
        }
        if (hdr.h.kind == 4) { push(); hdr.n.setInvalid(); }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        pkt.emit(hdr);
    }
}

parser EP(packet_in pkt, out eg_headers_t hdr, out eg_meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}

control E(inout eg_headers_t hdr, inout eg_meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply { }
}

control ED(packet_out pkt, inout eg_headers_t hdr, in eg_meta_t meta,
           in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { }
}

Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
