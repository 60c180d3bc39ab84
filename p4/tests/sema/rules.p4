// Restrictions and mappings with mistakes: each is told where it stands, also within a string of several lines.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {"zero", 0}, {"none", 1024} }) // error: expected a number of 10 bits
type bit<10> vrf_t;
@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {7, 7} }) // error: controllers use strings of this type: expected a string
type bit<10> hop_t;
@p4runtime_translation("", 32)
@p4runtime_translation_mappings({ {1, 2}, {2, 2} }) // error: each value and each number is mapped once
type bit<9> port_t;
@p4runtime_translation("", 32)
@p4runtime_translation_mappings("a") // error: `@p4runtime_translation_mappings` takes pairs
type bit<9> queue_t;

header h_t { bit<8> kind; bit<32> dst; }
struct headers_t { h_t h; }
struct meta_t { vrf_t vrf; hop_t hop; port_t port; queue_t queue; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action none() { }
    @action_restriction("
      group != 0;
      size > 1; // error: `@action_restriction`: there is no parameter `size`; there are: group
    ")
    action send(bit<16> group) { sm.mcast_grp = group; }
    @entry_restriction("
      // Fine.
      kind == 1 -> dst::mask == 0;
      dst > 5; // error: `@entry_restriction`: the ternary match of a `bit<32>` has no order; compare one of its parts
    ")
    table first {
        key = { hdr.h.kind: exact @name("kind"); hdr.h.dst: ternary @name("dst"); }
        actions = { none; send; }
    }
    @entry_restriction(kind == 1) // error: `@entry_restriction` takes a string
    table second { key = { hdr.h.kind: exact @name("kind"); } actions = { none; } }
    @entry_restriction("kind == 1" "kind != ") // error: `@entry_restriction`: expected `;` or an operator, found `kind`
    table third {
        key = { hdr.h.kind: exact @name("kind"); meta.vrf: exact; meta.hop: exact; meta.port: exact; meta.queue: exact; }
        actions = { none; }
    }
    apply { first.apply(); second.apply(); third.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
