// Functions of a register's value: of a factor, and from tables of the program.
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
    Register<bit<16>, bit<1>>(1) cell;
    MathUnit<bit<16>>(MathOp_t.MUL, 3) triple;
    MathUnit<bit<16>>(MathOp_t.SQR, 1) square;
    MathUnit<bit<16>>(MathOp_t.SQRT, 1) root;
    MathUnit<bit<16>>(MathOp_t.DIV, 10000, 10) part;
    MathUnit<bit<16>>(MathOp_t.RSQRT, 4096) root_part;
    MathUnit<bit<16>>(false, 0, -3, { 120, 112, 104, 96, 88, 80, 72, 64, 0, 0, 0, 0, 0, 0, 0, 9 }) own;
    MathUnit<bit<16>>(true, -1, 2, { 255, 254, 253, 252, 251, 250, 249, 248, 7, 6, 5, 4, 3, 2, 1, 0 }) inverse;
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) threefold = {
        void apply(inout bit<16> value, out bit<16> rv) { value = triple.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) squared = {
        void apply(inout bit<16> value, out bit<16> rv) { value = square.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) rooted = {
        void apply(inout bit<16> value, out bit<16> rv) { value = root.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) divided = {
        void apply(inout bit<16> value, out bit<16> rv) { value = part.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) divided_root = {
        void apply(inout bit<16> value, out bit<16> rv) { value = root_part.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) looked_up = {
        void apply(inout bit<16> value, out bit<16> rv) { value = own.execute(hdr.h.c); rv = value; }
    };
    RegisterAction<bit<16>, bit<1>, bit<16>>(cell) inverted = {
        void apply(inout bit<16> value, out bit<16> rv) { value = inverse.execute(hdr.h.c); rv = value; }
    };
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (hdr.h.a == 1) { hdr.h.c = threefold.execute(0); }
        else if (hdr.h.a == 2) { hdr.h.c = squared.execute(0); }
        else if (hdr.h.a == 3) { hdr.h.c = rooted.execute(0); }
        else if (hdr.h.a == 4) { hdr.h.c = divided.execute(0); }
        else if (hdr.h.a == 5) { hdr.h.c = divided_root.execute(0); }
        else if (hdr.h.a == 6) { hdr.h.c = looked_up.execute(0); }
        else if (hdr.h.a == 7) { hdr.h.c = inverted.execute(0); }
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
