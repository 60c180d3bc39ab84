// Which bits of a polynomial become a result of another width: the low ones, with `msb` the high ones, if `extended` all again.
#include <core.p4>
#include <tna.p4>

header h_t { bit<72> text; }
header sums_t { bit<32> same; bit<16> low; bit<16> high; bit<64> wide; bit<64> again; }
struct headers_t { h_t h; sums_t sums; }
struct meta_t { }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    CRCPolynomial<bit<32>>(0x04c11db7, true, false, false, 0xffffffff, 0xffffffff) plain;
    CRCPolynomial<bit<32>>(0x04c11db7, true, true, false, 0xffffffff, 0xffffffff) msb;
    CRCPolynomial<bit<32>>(0x04c11db7, true, false, true, 0xffffffff, 0xffffffff) extended;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, msb) same;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, plain) low;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, msb) high;
    Hash<bit<64>>(HashAlgorithm_t.CUSTOM, msb) wide;
    Hash<bit<64>>(HashAlgorithm_t.CUSTOM, extended) again;
    apply {
        tm.ucast_egress_port = 3;
        hdr.sums.setValid();
        hdr.sums.same = same.get(hdr.h);
        hdr.sums.low = low.get(hdr.h);
        hdr.sums.high = high.get(hdr.h);
        hdr.sums.wide = wide.get(hdr.h);
        hdr.sums.again = again.get(hdr.h);
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
