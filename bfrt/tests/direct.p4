// Tables with keys that are written without messages in between.
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<47> src; bit<1> flag; bit<16> etherType; }
struct headers_t { ethernet_t ethernet; }
struct none_t { }

parser P(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        packet.extract(ig);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}
control I(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    action send(bit<9> port, bit<5> queue) { tm.ucast_egress_port = port; tm.qid = queue; }
    action flood() { tm.mcast_grp_a = 1; }
    table exact_dst {
        key = { hdr.ethernet.dst : exact; hdr.ethernet.flag : exact; }
        actions = { send; flood; }
        size = 64;
    }
    table acl {
        key = { hdr.ethernet.src : ternary; hdr.ethernet.dst : exact; }
        actions = { send; flood; }
        size = 64;
    }
    table routes {
        key = { hdr.ethernet.src : lpm; }
        actions = { send; flood; }
        size = 64;
    }
    apply { exact_dst.apply(); acl.apply(); routes.apply(); }
}
control D(packet_out packet, inout headers_t hdr, in none_t meta,
          in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { packet.emit(hdr.ethernet); }
}
parser EP(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t eg) {
    state start { packet.extract(eg); transition accept; }
}
control E(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t port) {
    apply { }
}
control ED(packet_out packet, inout none_t hdr, in none_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { }
}
Pipeline(P(), I(), D(), EP(), E(), ED()) pipe;
Switch(pipe) main;
