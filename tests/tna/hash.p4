// Hashes of the ASCII digits 1 to 9: the check values of the catalogue of CRC algorithms.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
header text_t { bit<72> t; }
header sums_t { bit<32> crc32; bit<32> bzip2; bit<32> crc16; bit<32> crc8; bit<32> crc64; bit<32> xor32; bit<32> xor16; bit<32> identity; }
struct headers_t { h_t h; text_t text; sums_t sums; }
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
    state parse { pkt.extract(hdr.text); transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    CRCPolynomial<bit<32>>(32w0x04c11db7, false, false, false, 32w0xffffffff, 32w0xffffffff) polynomial;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, polynomial) bzip2;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) crc32;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) crc16;
    Hash<bit<8>>(HashAlgorithm_t.CRC8) crc8;
    Hash<bit<32>>(HashAlgorithm_t.CRC64) crc64;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) xor32;
    Hash<bit<16>>(HashAlgorithm_t.XOR16) xor16;
    Hash<bit<24>>(HashAlgorithm_t.IDENTITY) identity;
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        hdr.sums.setValid();
        hdr.sums.crc32 = crc32.get(hdr.text);
        hdr.sums.bzip2 = bzip2.get({ hdr.text.t[71:8], hdr.text.t[7:0] });
        hdr.sums.crc16 = (bit<32>) crc16.get(hdr.text);
        hdr.sums.crc8 = (bit<32>) crc8.get(hdr.text);
        hdr.sums.crc64 = crc64.get(hdr.text);
        hdr.sums.xor32 = xor32.get(hdr.text);
        hdr.sums.xor16 = (bit<32>) xor16.get(hdr.text);
        hdr.sums.identity = (bit<32>) identity.get(hdr.text);
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
