// One exact table for as many entries as a measurement writes, and a way for a packet to come back to the
// controller.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_out")
header packet_out_t { bit<16> token; }

@controller_header("packet_in")
header packet_in_t { bit<16> token; }

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

struct headers_t { packet_out_t packet_out; packet_in_t packet_in; ethernet_t ethernet; }
struct meta_t {}

parser BenchParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
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

control BenchVerify(inout headers_t hdr, inout meta_t meta) { apply {} }

control BenchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) { standard.egress_spec = port; }
    table hosts {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply {
        if (hdr.packet_out.isValid()) {
            hdr.packet_in.setValid();
            hdr.packet_in.token = hdr.packet_out.token;
            hdr.packet_out.setInvalid();
            standard.egress_spec = CPU_PORT;
        } else {
            hosts.apply();
        }
    }
}

control BenchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply {} }
control BenchCompute(inout headers_t hdr, inout meta_t meta) { apply {} }

control BenchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(BenchParser(), BenchVerify(), BenchIngress(), BenchEgress(), BenchCompute(), BenchDeparser()) main;
