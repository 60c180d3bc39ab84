// Routes IPv4 by the longest prefix between racks. Frames that hosts of a rack have sent in slots of PL2 carry a VLAN tag and a
// sequence number, which end here: what leaves is plain Ethernet. Frames of other protocols, and those without a route, are
// dropped.
#include <core.p4>
#include <v1model.p4>

const bit<16> IPV4 = 0x0800;
const bit<16> VLAN = 0x8100;
const bit<16> PL2 = 0x88B5;
const bit<8> PL2_DATA = 0x14; // version 1, kind 4

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header vlan_t { bit<16> tag; bit<16> kind; }
header shim_t { bit<8> version_kind; bit<8> reserved; bit<16> kind; bit<32> sequence; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t eth; vlan_t vlan; shim_t shim; ipv4_t ipv4; }
struct meta_t { }

parser SpineParser(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.kind) { IPV4: ipv4; VLAN: vlan; default: accept; }
    }
    state vlan {
        pkt.extract(hdr.vlan);
        transition select(hdr.vlan.kind) { IPV4: ipv4; PL2: shim; default: accept; }
    }
    state shim {
        pkt.extract(hdr.shim);
        transition select(hdr.shim.version_kind, hdr.shim.kind) { (PL2_DATA, IPV4): ipv4; default: accept; }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition accept;
    }
}

control SpineVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control SpineIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action to(bit<48> next_hop, bit<9> port) {
        sm.egress_spec = port;
        hdr.eth.src = hdr.eth.dst;
        hdr.eth.dst = next_hop;
        hdr.eth.kind = IPV4;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to; drop; }
        default_action = drop();
        size = 1024;
    }
    apply {
        if (hdr.ipv4.isValid() && sm.checksum_error == 0 && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control SpineEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control SpineCompute(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control SpineDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.eth);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(SpineParser(), SpineVerify(), SpineIngress(), SpineEgress(), SpineCompute(), SpineDeparser()) main;
