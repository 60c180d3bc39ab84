// Routes with names for what they lead to: translated types, restrictions and references.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
@p4runtime_translation_mappings({
  // The default instance.
  {"", 0},
})
type bit<10> vrf_t;
@p4runtime_translation("", string)
type bit<12> hop_t;
@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {"uplink", 7} })
type bit<9> port_t;
@p4runtime_translation("example.org/class", bit<32>)
type bit<6> class_t;

@controller_header("packet_in")
header to_controller_t { port_t ingress; bit<7> pad; }
@controller_header("packet_out")
header from_controller_t { port_t egress; @padding bit<7> pad; }

header route_t { bit<32> dst; bit<8> kind; bit<16> tag; }
struct headers_t { from_controller_t from_cpu; to_controller_t to_cpu; route_t route; }
struct meta_t { vrf_t vrf; hop_t hop; class_t class; bit<16> instance; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.route); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action none() { }
    action to_hop(@id(1) @refers_to(hops, hop) hop_t hop) { meta.hop = hop; }
    @action_restriction("// 0 is no group in v1model.
      group != 0")
    action to_group(@id(1) @refers_to(builtin::multicast_group_table, multicast_group_id) bit<16> group) {
        sm.mcast_grp = group;
    }
    action send(@id(1) port_t port, @id(2) class_t class) {
        sm.egress_spec = (bit<9>)port;
        meta.class = class;
    }
    action link(@id(1) @refers_to(neighbors, site) bit<8> site, @id(2) @refers_to(neighbors, host) bit<16> host) {
        hdr.route.kind = site;
        hdr.route.tag = host;
    }

    @entry_restriction("vrf != 0;")
    @id(1) table vrfs {
        key = { meta.vrf: exact @name("vrf") @id(1); }
        actions = { none; }
        size = 64;
    }
    @id(2) table hops {
        key = { meta.hop: exact @name("hop") @id(1); }
        actions = { send; }
        size = 64;
    }
    @id(3) table routes {
        key = {
            meta.vrf: exact @name("vrf") @id(1) @refers_to(vrfs, vrf);
            hdr.route.dst: lpm @name("dst") @id(2);
        }
        actions = { to_hop; to_group; none; }
        size = 64;
    }
    @id(4) table neighbors {
        key = { hdr.route.kind: exact @name("site") @id(1); hdr.route.tag: exact @name("host") @id(2); }
        actions = { none; }
        size = 64;
    }
    @id(5) table links {
        key = { hdr.route.tag: exact @name("tag") @id(1); }
        actions = { link; none; }
        size = 64;
    }
    @entry_restriction("
      // A host is looked at together with its site.
      host::mask != 0 -> site == 3;
      dst::prefix_length >= 8;
      ::priority < 1000;
      tag::low >= 0x10 || tag == 5;
      hop::mask == 0 || hop::mask == -1;
    ")
    @id(6) table acl {
        key = {
            hdr.route.kind: ternary @name("site") @id(1);
            hdr.route.tag: ternary @name("host") @id(2);
            hdr.route.dst: lpm @name("dst") @id(3);
            hdr.route.tag: range @name("tag") @id(4);
            meta.hop: optional @name("hop") @id(5);
        }
        actions = { none; }
        size = 64;
    }
    @max_group_size(8)
    action_selector(HashAlgorithm.crc32, 64, 16) selector;
    @id(7) table balanced {
        key = { hdr.route.kind: exact @name("site") @id(1); hdr.route.dst: selector; }
        actions = { to_hop; none; }
        implementation = selector;
        size = 64;
    }
    apply {
        vrfs.apply();
        routes.apply();
        balanced.apply();
        hops.apply();
        acl.apply();
        links.apply();
        neighbors.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action none() { }
    @id(8) table replicas {
        key = {
            sm.egress_port: exact @name("port") @id(1) @referenced_by(builtin::multicast_group_table, replica.port);
            meta.instance: exact @name("instance") @id(2)
                @referenced_by(builtin::multicast_group_table, replica.instance);
        }
        actions = { none; }
        size = 64;
    }
    apply {
        meta.instance = sm.egress_rid;
        replicas.apply();
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.route); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
