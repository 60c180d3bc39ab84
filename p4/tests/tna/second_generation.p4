// What only the second generation has.
#include <t2na.p4>

header word_h { bit<32> w; }
struct headers_t { word_h word; }
struct meta_t { bit<8> least; bit<4> where; bit<32> a; bit<16> b; }

parser IngressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t md) {
    ParserCounter() counter;
    state start { pkt.extract(md); counter.push(8w3, true); counter.pop(); transition accept; }
}
control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t md,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm, in ghost_intrinsic_metadata_t ghost) {
    Register<bit<8>, bit<11>>(2048) lengths;
    MinMaxAction<bit<8>, bit<11>, bit<8>>(lengths) least = {
        void apply(inout bit<128> value, out bit<8> rv, out bit<8> rv2) {
            rv = this.min8(value, 0xffff, meta.where);
            rv2 = 3;
        }
    };
    Register<bit<32>, bit<8>>(256) stack;
    RegisterAction2<bit<32>, bit<8>, bit<32>, bit<16>>(stack) both = {
        void apply(inout bit<32> value, out bit<32> rv1, out bit<16> rv2) { rv1 = value; rv2 = value[15:0]; }
        void overflow(inout bit<32> value, out bit<32> rv1, out bit<16> rv2) { rv1 = 0; rv2 = 0; }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(stack) push = { void apply(inout bit<32> value) { value = hdr.word.w; } };
    Counter<bit<64>, bit<8>>(16, CounterType_t.BYTES, true) bytes;
    apply {
        bit<8> other;
        meta.least = least.execute(ghost.qid, other);
        meta.a = both.execute(1, meta.b);
        push.push();
        stack.clear(0);
        bytes.count(2);
        for_deparser.mirror_io_select = 1;
        for_deparser.mtu_trunc_len = 100;
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t md) {
    Pktgen() generator;
    apply { if (md.pktgen == 1) { generator.emit(hdr.word); } pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t md) {
    state start { pkt.extract(md); transition accept; }
}
control Egress(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t md,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}
control EgressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                       in egress_intrinsic_metadata_for_deparser_t md) {
    apply { pkt.emit(hdr); }
}
control Ghost(in ghost_intrinsic_metadata_t md) {
    Register<bit<8>, bit<11>>(2048) lengths;
    RegisterAction<bit<8>, bit<11>, bit<8>>(lengths) note = { void apply(inout bit<8> value) { value = (bit<8>) md.qlength[17:10]; } };
    apply { note.execute(md.qid); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser(), Ghost()) pipe;
Switch(pipe) main;
