// Something of each kind that simple_switch_CLI changes.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<64> first; bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst; }

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<2> color; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) ip_types;
    state start {
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

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) seen;
    register<bit<32>>(4) last;
    meter(4, MeterType.bytes) rates;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<2>>(MeterType.packets) pace;
    action_selector(HashAlgorithm.crc16, 32w64, 32w8) paths;

    action drop() { mark_to_drop(standard); }
    action to(bit<48> dst, bit<9> port) {
        hdr.ethernet.dst = dst;
        standard.egress_spec = port;
    }
    action copy(bit<16> group) { standard.mcast_grp = group; }
    action refuse() {
        hits.count();
        pace.read(meta.color);
        mark_to_drop(standard);
    }
    action permit() {
        hits.count();
        pace.read(meta.color);
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to; copy; drop; }
        default_action = drop();
        size = 64;
    }
    table acl {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.protocol: range; }
        actions = { refuse; permit; NoAction; }
        default_action = NoAction();
        counters = hits;
        meters = pace;
        support_timeout = true;
        size = 64;
    }
    table spread {
        key = { hdr.ipv4.dst: exact; hdr.ipv4.src: selector; }
        actions = { to; NoAction; }
        implementation = paths;
        size = 64;
    }
    table fixed {
        key = { hdr.ipv4.ttl: exact; }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        const entries = { 0: drop(); }
    }
    table keyless {
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    table tiny {
        key = { hdr.ipv4.protocol: exact; }
        actions = { drop; NoAction; }
        default_action = NoAction();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            fixed.apply();
            keyless.apply();
            tiny.apply();
            seen.count((bit<32>) standard.ingress_port);
            last.write(1, hdr.ipv4.src);
            // In milliseconds, or so: 32 bits of microseconds are just over an hour.
            last.write(2, (bit<32>) (standard.ingress_global_timestamp >> 10));
            routes.apply();
            spread.apply();
            acl.apply();
        } else {
            drop();
        }
        bit<2> color;
        rates.execute_meter(32w1, color);
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
