// A program with what P4Runtime does not have: tables of other kinds, and fields of entries. The first byte of a frame
// says which of them it is for.
#include <core.p4>
#include <tna.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { h_t h; }
struct port_data_t { bit<4> kind; bit<12> mark; bit<48> rest; }
struct metadata_t { port_data_t port; bit<1> listed; }
struct pair_t { bit<8> low; bit<8> high; }

parser P(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig) {
    value_set<bit<8>>(4) members;
    state start {
        packet.extract(ig);
        meta.listed = 0;
        meta.port = port_metadata_unpack<port_data_t>(packet);
        packet.extract(hdr.h);
        transition select(hdr.h.a) { members : found; default : accept; }
    }
    state found { meta.listed = 1; transition accept; }
}

control I(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Lpf<bit<8>, bit<8>>(4) low;
    Wred<bit<8>, bit<8>>(4, 1, 0) early;
    Register<bit<8>, bit<8>>(4, 7) counts;
    RegisterParam<bit<8>>(1) step;
    RegisterAction<_, _, bit<8>>(counts) count = {
        void apply(inout bit<8> value, out bit<8> rv) { value = value + step.read(); rv = value; }
    };
    Meter<bit<8>>(4, MeterType_t.BYTES) rate;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) mixed;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) upper;
    Hash<bit<16>>(HashAlgorithm_t.XOR16) folded;
    DirectRegister<pair_t>({ 1, 2 }) last;
    DirectRegisterAction<pair_t, bit<8>>(last) swap = {
        void apply(inout pair_t value, out bit<8> rv) { rv = value.low; value.low = value.high; value.high = hdr.h.b; }
    };
    action note() { hdr.h.c = (bit<16>) swap.execute(); }
    table owned {
        key = { hdr.h.b : exact; }
        actions = { note; }
        registers = last;
        size = 128;
    }
    DirectLpf<bit<8>>() own;
    action smooth() { hdr.h.c = (bit<16>) own.execute(hdr.h.b); }
    table smoothed {
        key = { hdr.h.b : exact; }
        actions = { smooth; }
        filters = own;
        size = 128;
    }
    DirectMeter(MeterType_t.BYTES) pace;
    action set(bit<16> value) { hdr.h.c = value; }
    action color() { hdr.h.c = (bit<16>) pace.execute(); }
    table paced {
        key = { hdr.h.b : exact; }
        actions = { color; }
        meters = pace;
        size = 128;
    }
    @dynamic_table_key_masks(1)
    table masked {
        key = { hdr.h.b : exact; hdr.h.c : exact; }
        actions = { set; }
        size = 128;
    }
    DirectCounter<bit<64>>(CounterType_t.PACKETS) hits;
    action put(bit<16> value) { hdr.h.c = value; hits.count(); }
    action mark() { hdr.h.c = 1; hits.count(); }
    table aged {
        key = { hdr.h.b : exact; }
        actions = { set; put; mark; }
        counters = hits;
        idle_timeout = true;
        size = 128;
    }
    apply {
        tm.ucast_egress_port = 3;
        tm.bypass_egress = 1;
        if (hdr.h.a == 1) { hdr.h.c = (bit<16>) meta.port.mark; }
        else if (hdr.h.a == 2) { hdr.h.c = (bit<16>) low.execute(hdr.h.b, 0); }
        else if (hdr.h.a == 3) { hdr.h.c = (bit<16>) early.execute(hdr.h.b, 0); }
        else if (hdr.h.a == 4) { hdr.h.c = (bit<16>) count.execute(hdr.h.b); }
        else if (hdr.h.a == 5) { owned.apply(); }
        else if (hdr.h.a == 6) { hdr.h.c = (bit<16>) rate.execute(hdr.h.b); }
        else if (hdr.h.a == 7) { masked.apply(); }
        else if (hdr.h.a == 8) { aged.apply(); }
        else if (hdr.h.a == 9) { smoothed.apply(); }
        else if (hdr.h.a == 10) { paced.apply(); }
        else if (hdr.h.a == 11) { hdr.h.c = mixed.get({ hdr.h.b, hdr.h.c }); }
        else if (hdr.h.a == 12) { hdr.h.c = upper.get({ hdr.h.b, hdr.h.c })[31:16]; }
        else if (hdr.h.a == 13) { hdr.h.c = folded.get({ hdr.h.b, hdr.h.c }); }
        else if (meta.listed == 1) { hdr.h.c = 1; }
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
