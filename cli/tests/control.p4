// One of everything that a controller can read and write.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_out")
header packet_out_t { bit<16> token; }

@controller_header("packet_in")
header packet_in_t { bit<16> token; }

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<96> first; bit<32> src; bit<32> dst; }

struct headers_t { packet_out_t packet_out; packet_in_t packet_in; ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<16> port; }
struct learn_t { bit<16> token; bit<48> src; }

parser AllParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) ip_types;
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
        transition select(hdr.ethernet.type) {
            ip_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control AllVerify(inout headers_t hdr, inout meta_t meta) { apply {} }

control AllIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action_selector(HashAlgorithm.crc16, 32w64, 32w8) ecmp;

    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) { standard.egress_spec = port; }
    action counted(bit<9> port) { hits.count(); standard.egress_spec = port; }

    table acl {
        key = {
            hdr.ethernet.src: ternary;
            hdr.ipv4.dst: lpm;
            meta.port: range;
        }
        actions = { counted; }
        counters = hits;
        size = 64;
    }
    table spread {
        key = { hdr.ethernet.dst: exact; hdr.ethernet.src: selector; }
        actions = { forward; drop; }
        implementation = ecmp;
        size = 64;
    }
    meter(4, MeterType.bytes) rates;
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { forward; }
        support_timeout = true;
        size = 64;
    }
    apply {
        if (hdr.packet_out.isValid()) {
            digest<learn_t>(1, { hdr.packet_out.token, hdr.ethernet.src });
            hdr.packet_in.setValid();
            hdr.packet_in.token = hdr.packet_out.token;
            hdr.packet_out.setInvalid();
            standard.egress_spec = CPU_PORT;
        } else {
            spread.apply();
            acl.apply();
            sources.apply();
            bit<2> color;
            rates.execute_meter(32w1, color);
        }
    }
}

control AllEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply {} }
control AllCompute(inout headers_t hdr, inout meta_t meta) { apply {} }

control AllDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(AllParser(), AllVerify(), AllIngress(), AllEgress(), AllCompute(), AllDeparser()) main;
