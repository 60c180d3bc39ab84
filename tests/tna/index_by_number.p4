// An index of type `_` may be a plain number: of registers, counters and meters.
#include <core.p4>
#include <tna.p4>

header h_t { bit<32> a; bit<32> b; }
struct headers_t { h_t h; }
struct meta_t { }
struct eg_headers_t { h_t h; }
struct eg_meta_t { }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); transition accept; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<32>, _>(1) cell;
    RegisterAction<bit<32>, _, bit<32>>(cell) add = {
        void apply(inout bit<32> value, out bit<32> result) {
            value = value + 5;
            result = value;
        }
    };
    Register<bit<32>, _>(4) cells;
    Counter<bit<32>, _>(4, CounterType_t.PACKETS) counts;
    Meter<_>(4, MeterType_t.PACKETS) meter;
    apply {
        tm.ucast_egress_port = 3;
        hdr.h.a = add.execute(0);
        cells.write(2, hdr.h.a + 1);
        hdr.h.b = cells.read(2);
        counts.count(3);
        if (meter.execute(1) != 0) { hdr.h.b = 0; }
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
