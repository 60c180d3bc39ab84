// bench.p4 for TNA: one exact table for as many entries as a measurement writes, and a way for a packet to come back to
// the controller.
#include <core.p4>
#include <tna.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_out")
header packet_out_t { bit<16> token; }

@controller_header("packet_in")
header packet_in_t { bit<16> token; }

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

struct headers_t { packet_out_t packet_out; packet_in_t packet_in; ethernet_t ethernet; }
struct none_t { }

parser BenchParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        packet.extract(ig);
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BenchIngress(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t ig,
                     in ingress_intrinsic_metadata_from_parser_t prsr,
                     inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                     inout ingress_intrinsic_metadata_for_tm_t tm) {
    action drop() { dprsr.drop_ctl = 1; }
    action forward(bit<9> port) { tm.ucast_egress_port = port; }
    table hosts {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply {
        tm.bypass_egress = 1;
        if (hdr.packet_out.isValid()) {
            hdr.packet_in.setValid();
            hdr.packet_in.token = hdr.packet_out.token;
            hdr.packet_out.setInvalid();
            tm.ucast_egress_port = CPU_PORT;
        } else {
            hosts.apply();
        }
    }
}

control BenchDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                      in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

parser BenchEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t eg) {
    state start { packet.extract(eg); transition accept; }
}

control BenchEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t eg,
                    in egress_intrinsic_metadata_from_parser_t prsr,
                    inout egress_intrinsic_metadata_for_deparser_t dprsr,
                    inout egress_intrinsic_metadata_for_output_port_t port) {
    apply { }
}

control BenchEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                            in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { }
}

Pipeline(BenchParser(), BenchIngress(), BenchDeparser(), BenchEgressParser(), BenchEgress(), BenchEgressDeparser()) pipe;
Switch(pipe) main;
