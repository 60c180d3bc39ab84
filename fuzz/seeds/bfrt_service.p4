// A switch's own table, for frames of one kind, beside a table of each other kind for the rest.
#include <core.p4>
#include <tna.p4>

header h_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers_t { h_t h; }
struct port_data_t { bit<4> kind; bit<12> mark; bit<48> rest; }
struct metadata_t { port_data_t port; bit<1> listed; }

parser P(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig) {
    value_set<bit<16>>(4) kinds;
    state start {
        packet.extract(ig);
        meta.listed = 0;
        meta.port = port_metadata_unpack<port_data_t>(packet);
        packet.extract(hdr.h);
        transition select(hdr.h.kind) { 0x88b5 : accept; kinds : found; default : accept; }
    }
    state found { meta.listed = 1; transition accept; }
}

control I(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<9>>(8, CounterType_t.PACKETS_AND_BYTES) seen;
    Register<bit<32>, bit<9>>(8, 7) last;
    RegisterParam<bit<32>>(1) step;
    RegisterAction<bit<32>, bit<9>, bit<32>>(last) count = {
        void apply(inout bit<32> value, out bit<32> rv) { value = value + step.read(); rv = value; }
    };
    Meter<bit<9>>(8, MeterType_t.BYTES) rate;
    Lpf<bit<16>, bit<9>>(8) low;
    Wred<bit<16>, bit<9>>(8, 1, 0) early;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) mixed;
    action send(bit<9> port) { tm.ucast_egress_port = port; }
    action flood() { tm.mcast_grp_a = 1; }
    action deny() { dprsr.drop_ctl = 1; }
    table kept {
        key = { hdr.h.dst : exact; }
        actions = { send; @defaultonly deny; }
        default_action = deny();
        size = 64;
    }
    DirectCounter<bit<64>>(CounterType_t.PACKETS) hits;
    action put(bit<9> port) { tm.ucast_egress_port = port; hits.count(); }
    table aged {
        key = { hdr.h.dst : lpm; }
        actions = { put; }
        counters = hits;
        idle_timeout = true;
        size = 64;
    }
    DirectMeter(MeterType_t.BYTES) pace;
    action color(bit<16> add) { hdr.h.kind = add + (bit<16>) pace.execute(); }
    table acl {
        key = { hdr.h.src : ternary; hdr.h.kind : range; meta.port.mark : ternary; }
        actions = { color; }
        meters = pace;
        size = 64;
    }
    @dynamic_table_key_masks(1)
    table masked {
        key = { hdr.h.src : exact; hdr.h.kind : exact; }
        actions = { send; flood; deny; }
        size = 64;
    }
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionProfile(64) profile;
    ActionSelector(profile, spread, SelectorMode_t.FAIR, 16, 8) selector;
    table balanced {
        key = { hdr.h.dst : exact; hdr.h.src : selector; }
        actions = { send; deny; }
        implementation = selector;
        size = 64;
    }
    apply {
        if (hdr.h.kind == 0x88b5) { kept.apply(); }
        else {
            seen.count(ig.ingress_port);
            if (meta.listed == 1) { hdr.h.kind = (bit<16>) count.execute(1); }
            hdr.h.kind = hdr.h.kind + (bit<16>) rate.execute(2) + low.execute(hdr.h.kind, 1);
            hdr.h.kind = hdr.h.kind + (bit<16>) early.execute(hdr.h.kind, 1) + mixed.get({ hdr.h.dst, hdr.h.src });
            aged.apply();
            masked.apply();
            balanced.apply();
            acl.apply();
        }
    }
}

control D(packet_out packet, inout headers_t hdr, in metadata_t meta,
          in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { packet.emit(hdr.h); }
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
