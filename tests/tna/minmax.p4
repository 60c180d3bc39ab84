// The second generation: actions that search the parts of a word for the least or greatest one.
#include <core.p4>
#include <t2na.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { h_t h; }
struct meta_t { }
struct pair { bit<32> low; bit<32> high; }
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
    Register<bit<16>, bit<8>>(32) waits;
    // Works on words of eight cells.
    MinMaxAction2<bit<16>, bit<8>, bit<16>, bit<3>>(waits) longest = {
        void apply(inout bit<128> value, out bit<16> rv, out bit<3> at) {
            rv = this.max16(value, 0x7f, at, -8);
        }
    };
    MinMaxAction<bit<16>, bit<8>, bit<16>>(waits) shortest = {
        void apply(inout bit<128> value, out bit<16> rv, out bit<16> at) {
            at = 0;
            rv = this.min16(value, 0x7f, at[2:0]);
        }
    };
    // The mask comes from the packet.
    MinMaxAction2<bit<16>, bit<8>, bit<16>, bit<3>>(waits) chosen = {
        void apply(inout bit<128> value, out bit<16> rv, out bit<3> at) {
            rv = this.max16(value, hdr.h.b, at, 1);
        }
    };
    RegisterAction<bit<16>, bit<8>, void>(waits) put = {
        void apply(inout bit<16> value) { value = hdr.h.c; }
    };
    Register<pair, bit<8>>(4) pairs;
    MinMaxAction2<pair, bit<8>, bit<8>, bit<4>>(pairs) low_byte = {
        void apply(inout bit<128> value, out bit<8> rv, out bit<4> at) {
            rv = this.max8(value, 0xffff, at, 2);
        }
    };
    RegisterAction<pair, bit<8>, void>(pairs) put_pair = {
        void apply(inout pair value) { value.low = 32w0x05060708; value.high = (bit<32>) hdr.h.c; }
    };
    // Any action may search its own cell.
    RegisterAction<pair, bit<8>, bit<8>>(pairs) in_cell = {
        void apply(inout pair value, out bit<8> rv) { rv = this.max8(value.low, 0xf); }
    };
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (hdr.h.a == 0) {
            put.execute(hdr.h.b);
        } else if (hdr.h.a == 1) {
            bit<3> at;
            hdr.h.c = longest.execute(hdr.h.b, at);
            hdr.h.b = (bit<8>) at;
        } else if (hdr.h.a == 2) {
            bit<16> at;
            hdr.h.c = shortest.execute(hdr.h.b, at);
            hdr.h.b = (bit<8>) at;
        } else if (hdr.h.a == 3) {
            bit<3> at;
            hdr.h.c = chosen.execute(0, at);
            hdr.h.b = (bit<8>) at;
        } else if (hdr.h.a == 4) {
            put_pair.execute(hdr.h.b);
        } else if (hdr.h.a == 5) {
            bit<4> at;
            hdr.h.c = (bit<16>) low_byte.execute(hdr.h.b, at);
            hdr.h.b = (bit<8>) at;
        } else {
            hdr.h.b = in_cell.execute(hdr.h.b);
        }
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
