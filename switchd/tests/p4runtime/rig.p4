// Everything that the P4Runtime tests write and read.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> kind;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> kind;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
}

struct metadata_t {
    bit<2> color;
    bit<1> tunnel;
}

struct seen_t {
    bit<48> src;
    bit<9>  port;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) tunnels;
    state start {
        transition select(sm.ingress_port) {
            510: out_of_controller;
            default: ethernet;
        }
    }
    state out_of_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            tunnels: tunnel;
            default: accept;
        }
    }
    state tunnel {
        meta.tunnel = 1;
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply {} }

control Rig(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) kinds;
    meter(8, MeterType.bytes) rates;
    register<bit<12>>(16) cells;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<2>>(MeterType.packets) paces;

    @max_group_size(16)
    action_selector(HashAlgorithm.crc32, 8, 14) spread;

    action drop() { mark_to_drop(sm); }
    action forward(bit<9> port) { sm.egress_spec = port; hits.count(); }
    action to_group(bit<16> group) { sm.mcast_grp = group; hits.count(); }
    action to_controller() { sm.egress_spec = 510; hits.count(); }
    action pass() {}
    action only_default() {}
    action pace() { paces.read(meta.color); }
    action via(bit<9> port) { sm.egress_spec = port; }

    table dmac {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; to_group; to_controller; @defaultonly drop; @tableonly pass; }
        default_action = drop();
        counters = hits;
        size = 4;
    }
    table routes {
        key = { hdr.ethernet.src: lpm; }
        actions = { pass; only_default; }
        const default_action = only_default();
        size = 1024;
    }
    table acl {
        key = {
            hdr.ethernet.type: ternary;
            hdr.ethernet.src: optional;
            sm.ingress_port: range;
        }
        actions = { pass; drop; }
        default_action = pass();
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { pass; drop; }
        const entries = {
            0x0800: pass();
            0x0806: pass();
        }
    }
    // Hosts that are heard of.
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { pace; }
        support_timeout = true;
        meters = paces;
        size = 64;
    }
    // Where tunnelled frames go.
    table hops {
        key = {
            meta.tunnel: exact;
            hdr.ethernet.src: selector;
        }
        actions = { via; drop; }
        default_action = drop();
        implementation = spread;
    }
    apply {
        kinds.count(1);
        bit<12> cell;
        cells.read(cell, 3);
        cells.write(3, cell + 1);
        rates.execute_meter((bit<32>) 2, meta.color);
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            fixed.apply();
            routes.apply();
            dmac.apply();
            sources.apply();
            if (meta.tunnel == 1) {
                hops.apply();
            }
            if (hdr.ethernet.type == 0x1234) {
                digest<seen_t>(1, { hdr.ethernet.src, sm.ingress_port });
            }
            // Last: what it drops stays dropped.
            acl.apply();
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = sm.ingress_port;
            hdr.packet_in.kind = 5;
        }
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply {} }

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), V(), Rig(), E(), C(), D()) main;
