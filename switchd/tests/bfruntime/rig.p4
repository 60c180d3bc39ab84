// A program with a table of each kind that BFRuntime's tests write.
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> etherType; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { bit<9> port; }
struct learn_t { bit<48> src; bit<9> port; }

parser P(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        packet.extract(ig);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control I(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) seen;
    Register<bit<32>, bit<9>>(16) last;
    action send(bit<9> port, bit<5> queue) { tm.ucast_egress_port = port; tm.qid = queue; }
    action flood() { tm.mcast_grp_a = 1; }
    action deny() { dprsr.drop_ctl = 1; }
    table exact_dst {
        key = { hdr.ethernet.dst : exact; }
        actions = { send; flood; @defaultonly deny; }
        default_action = deny();
        size = 65536;
    }
    table acl {
        key = { hdr.ethernet.src : ternary; hdr.ethernet.etherType : range; }
        actions = { deny; NoAction; }
        default_action = NoAction();
        size = 128;
    }
    table routes {
        key = { hdr.ethernet.dst : lpm; }
        actions = { deny; send; }
        idle_timeout = true;
        size = 128;
    }
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) spread;
    ActionProfile(128) profile;
    ActionSelector(profile, spread, SelectorMode_t.FAIR, 64, 16) selector;
    table balanced {
        key = { hdr.ethernet.dst : exact; hdr.ethernet.src : selector; }
        actions = { send; }
        implementation = selector;
        size = 128;
    }
    apply {
        meta.port = ig.ingress_port;
        dprsr.digest_type = 1;
        routes.apply();
        balanced.apply();
        seen.count(ig.ingress_port);
        exact_dst.apply();
        acl.apply();
        last.write(0, 1);
    }
}

control D(packet_out packet, inout headers_t hdr, in metadata_t meta,
          in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Digest<learn_t>() learn;
    apply {
        if (dprsr.digest_type == 1) { learn.pack({ hdr.ethernet.src, meta.port }); }
        packet.emit(hdr.ethernet);
    }
}

struct none_t { }
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
