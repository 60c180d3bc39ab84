// Meters that are told a colour: no packet gets a better one. And meters that count less bytes.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { h_t h; }
struct meta_t { }
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
    Meter<bit<8>>(4, MeterType_t.PACKETS) rate;
    Meter<bit<8>>(4, MeterType_t.BYTES) bytes;
    DirectMeter(MeterType_t.PACKETS) own;
    action color() { hdr.h.b = own.execute((MeterColor_t) hdr.h.b); }
    table direct {
        key = { hdr.h.a : exact; }
        actions = { color; }
        meters = own;
        const default_action = color();
    }
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (hdr.h.a == 1) { hdr.h.b = rate.execute(1, (MeterColor_t) hdr.h.b); }
        else if (hdr.h.a == 2) { hdr.h.b = bytes.execute(1, (bit<32>) hdr.h.c); }
        else if (hdr.h.a == 3) { hdr.h.b = bytes.execute(1, (MeterColor_t) hdr.h.b, (bit<32>) hdr.h.c); }
        else { direct.apply(); }
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
