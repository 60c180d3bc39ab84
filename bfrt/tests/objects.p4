// An object of each kind that both interfaces have.
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> etherType; }
struct headers_t { ethernet_t ethernet; }
struct none_t { }
struct pair_t { bit<8> low; bit<8> high; }

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
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) seen;
    Meter<bit<9>>(16, MeterType_t.BYTES) rate;
    Meter<bit<9>>(16, MeterType_t.PACKETS) pace;
    Register<bit<32>, bit<9>>(16) last;
    Register<pair_t, bit<8>>(4) pairs;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    DirectMeter(MeterType_t.BYTES) police;
    RegisterAction<pair_t, bit<8>, bit<8>>(pairs) swap = {
        void apply(inout pair_t value, out bit<8> rv) { rv = value.low; value.low = value.high; }
    };
    action send(bit<9> port, bit<5> queue) { tm.ucast_egress_port = port; tm.qid = queue; }
    action deny() { dprsr.drop_ctl = 1; }
    action counted(bit<9> port) { tm.ucast_egress_port = port; hits.count(); }
    action policed() { tm.mcast_grp_a = (bit<16>) police.execute(); }
    table tallied {
        key = { hdr.ethernet.dst : exact; }
        actions = { counted; }
        counters = hits;
        size = 128;
    }
    table limited {
        key = { hdr.ethernet.dst : exact; }
        actions = { policed; }
        meters = police;
        size = 128;
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
        tallied.apply();
        limited.apply();
        routes.apply();
        balanced.apply();
        acl.apply();
        seen.count(ig.ingress_port);
        last.write(0, 1);
        hdr.ethernet.etherType = (bit<16>) swap.execute(0);
        hdr.ethernet.src = (bit<48>) rate.execute(ig.ingress_port);
        hdr.ethernet.dst = (bit<48>) pace.execute(ig.ingress_port);
    }
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
