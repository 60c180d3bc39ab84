// TNA: forwards frames by destination address and counts them, in both halves.
#include <core.p4>
#include <tna.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers_t { eth_t eth; }
struct meta_t { }

parser IngressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.eth);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<32>, PortId_t>(512) frames;
    RegisterAction<bit<32>, PortId_t, bit<32>>(frames) count = {
        void apply(inout bit<32> value, out bit<32> seen) { value = value + 1; seen = value; }
    };
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    action to(PortId_t port) { tm.ucast_egress_port = port; hits.count(); }
    action drop() { dprsr.drop_ctl = 1; hits.count(); }
    table hosts {
        key = { hdr.eth.dst: exact; }
        actions = { to; drop; }
        default_action = to(2);
        counters = hits;
    }
    apply {
        count.execute(ig.ingress_port);
        hosts.apply();
    }
}

control IngressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

parser EgressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); pkt.extract(hdr.eth); transition accept; }
}

control Egress(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t prsr,
               inout egress_intrinsic_metadata_for_deparser_t dprsr,
               inout egress_intrinsic_metadata_for_output_port_t oport) {
    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS) sent;
    apply { sent.count(eg.egress_port); }
}

control EgressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
