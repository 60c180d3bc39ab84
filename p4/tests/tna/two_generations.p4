// What TNA programs are made of, one of each, for both generations.
#include <core.p4>
#if SECOND
#include <t2na.p4>
#else
#include <tna.p4>
#endif

const bit<16> TYPE_IPV4 = 0x0800;
const PortId_t CPU = 64;

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_h {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total; bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header option_h { bit<32> word; }
@flexible header bridged_h { bit<9> port; bit<5> rest; @padding bit<2> pad; }
header mirror_h { bit<8> kind; bit<48> time; }
header resubmit_h { bit<64> data; }

struct headers_t { bridged_h bridged; ethernet_h ethernet; ipv4_h ipv4; option_h[4] options; }
struct port_t { bit<16> group; bit<48> rest; }
struct pair_t { bit<32> low; bit<32> high; }
struct digest_t { bit<48> src; PortId_t port; }
struct set_t { bit<16> type; }
@pa_container_size("ingress", "meta.hash", 16)
struct meta_t {
    port_t port; bit<16> hash; bit<8> color; bool good; bit<32> sum; mirror_h mirror; resubmit_h again;
    MirrorId_t session; bit<10> partition;
}

@pa_no_overlay("ingress", "hdr.ipv4.ttl") @pa_atomic("ingress", "meta.hash")
parser IngressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() sum;
    ParserCounter() counter;
    ParserPriority() priority;
    value_set<bit<16>>(4) types;
    @name(".fields") value_set<set_t>(2) structs;

    state start {
        pkt.extract(ig_intr_md);
        transition select(ig_intr_md.resubmit_flag) { 1: again; 0: port; }
    }
    state again { meta.again = pkt.lookahead<resubmit_h>(); pkt.advance(PORT_METADATA_SIZE); transition ethernet; }
    state port { meta.port = port_metadata_unpack<port_t>(pkt); transition ethernet; }
    @critical state ethernet {
        pkt.extract(hdr.ethernet);
        priority.set(3);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            types: ipv4;
            structs: accept;
            0x8100 &&& 0xefff: reject;
            16w1 .. 16w5: accept;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        sum.add(hdr.ipv4);
        sum.subtract({ hdr.ipv4.checksum });
        meta.good = sum.verify();
        counter.set(hdr.ipv4.ihl, 15, 0, 3, 0);
        counter.decrement(5);
        transition select(counter.is_zero()) { true: accept; false: options; }
    }
    @dont_unroll state options {
        pkt.extract(hdr.options.next);
        counter.decrement(1);
        transition select(counter.is_zero(), counter.is_negative()) {
            (true, _): accept;
            (_, true): reject;
            (false, false): options;
        }
    }
}

// A control with parameters of its constructor and of a type.
control Count<H>(in H hdr)(bit<32> size, bool twice) {
    Counter<bit<32>, bit<10>>(size, CounterType_t.PACKETS_AND_BYTES) cells;
    apply {
        if (twice) { cells.count(1); }
        cells.count(0, sizeInBytes(hdr));
    }
}

control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Count<headers_t>(size = 1024, twice = true) count;

    CRCPolynomial<bit<32>>(32w0x04c11db7, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, polynomial) custom;
    @symmetric("hdr.ipv4.src", "hdr.ipv4.dst") Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    Random<bit<8>>() dice;

    Register<bit<32>, bit<10>>(1024, 7) totals;
    Register<pair_t, _>(1024, { 0, 1 }) pairs;
    RegisterParam<bit<32>>(10) step;
    MathUnit<bit<32>>(MathOp_t.DIV, 1, 2) half;
    RegisterAction<bit<32>, bit<10>, bit<32>>(totals) add = {
        void apply(inout bit<32> value, out bit<32> rv) { rv = value; value = value + step.read(); }
    };
    RegisterAction<bit<32>, bit<10>, bit<32>>(totals) clear = {
        void apply(inout bit<32> value) { value = half.execute(value); }
    };
    RegisterAction<pair_t, _, bit<32>>(pairs) swap = {
        void apply(inout pair_t value, out bit<32> rv) {
            bit<32> old = value.low;
            if (value.high > 8 || value.low == 0) { value.low = value.high |+| 1; } else { value.high = max(old, 3); }
            rv = this.predicate(value.low == 1, true);
        }
    };
    DirectRegister<bit<16>>(3) last;
    DirectRegisterAction<bit<16>, bit<16>>(last) note = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; value = meta.hash; }
    };
    Meter<bit<8>>(256, MeterType_t.BYTES) pace;
    DirectMeter(MeterType_t.PACKETS, 8w3, 1, 0) limit;
    DirectCounter<bit<64>>(CounterType_t.BYTES) hits;
    Lpf<bit<16>, bit<8>>(16) smooth;
    DirectLpf<bit<16>>() level;
    Wred<bit<19>, bit<8>>(16, 1, 0) early;
    ActionProfile(128) profile;
    ActionSelector(profile, spread, SelectorMode_t.FAIR, 32, 16) selector;
    Alpm(number_partitions = 1024, subtrees_per_partition = 2) alpm;
    Atcam(2048) atcam;

    action drop() { ig_dprsr_md.drop_ctl = 1; exit; }
    action send(PortId_t port) { ig_tm_md.ucast_egress_port = port; ig_tm_md.bypass_egress = 1w1; hits.count(); }
    action learn() { ig_dprsr_md.digest_type = 1; meta.hash = note.execute(); }
    @use_hash_action(1) action hash() {
        @in_hash { meta.hash = hdr.ipv4.src[15:0] ^ hdr.ipv4.dst[31:16]; }
        meta.sum = custom.get({ hdr.ipv4.src, hdr.ipv4.dst, 8w0 });
    }
    action meter_it(bit<8> n) {
        meta.color = (bit<8>) pace.execute(n);
        meta.color = pace.execute(n, MeterColor_t.YELLOW);
        meta.color = pace.execute(n, 4);
    }
    action route(bit<12> next) { meta.hash[11:0] = next; meta.color = limit.execute(); meta.color = limit.execute(MeterColor_t.RED); }
    action nexthop(@name("port") PortId_t p) { ig_tm_md.ucast_egress_port = p; }

    @idletime_precision(3) @name("macs") @ignore_table_dependency("Ingress.acl")
    table mac {
        key = { hdr.ethernet.dst: exact @name("dst"); ig_intr_md.ingress_port: exact; }
        actions = { send; learn; @defaultonly drop; }
        const default_action = drop();
        size = 4096;
        idle_timeout = true;
        counters = hits;
        registers = last;
    }
    table acl {
        key = {
            hdr.ipv4.isValid(): ternary;
            hdr.ipv4.src[31:16]: ternary @name("src_high");
            hdr.ipv4.protocol: range;
            hdr.ipv4.ttl: ternary;
        }
        actions = { drop; meter_it; hash; NoAction; }
        const entries = {
            (true, 0x0a00 &&& 0xff00, 6 .. 17, _): drop();
            (false, _, _, 0): hash();
        }
        requires_versioning = false;
        meters = limit;
    }
    table routes { key = { hdr.ipv4.dst: lpm; } actions = { route; } size = 65536; alpm = alpm; }
    table tree { key = { meta.partition: atcam_partition_index; hdr.ipv4.dst: ternary; } actions = { route; } implementation = atcam; }
    table nexthops {
        key = { meta.hash: exact; hdr.ipv4.src: selector; hdr.ipv4.dst: selector; }
        actions = { nexthop; drop; }
        implementation = selector;
    }
    table proxied { key = { hdr.ipv4.src: exact; } actions = { NoAction; } proxy_hash = spread; }

    apply {
        count.apply(hdr);
        if (mac.apply().hit) {
            switch (acl.apply().action_run) {
                meter_it: { meta.hash = smooth.execute(meta.hash, 1); }
                hash: { meta.sum = add.execute(3); }
                default: { clear.execute(0); }
            }
        } else if (!routes.apply().miss) {
            nexthops.apply();
        }
        tree.apply();
        proxied.apply();
        switch (hdr.ipv4.ttl) { 0: { drop(); } 1: 2: { meta.color = dice.get(); } default: { } }
        bit<16> local = level.execute(spread.get(hdr.ipv4));
        meta.sum = swap.execute_log();
        meta.color = early.execute(19w5, 0);
        ig_tm_md.mcast_grp_a = 1;
        ig_tm_md.rid = 0xffff;
        ig_dprsr_md.mirror_type = 2;
        invalidate(ig_tm_md.mcast_grp_b);
        hdr.bridged = { ig_intr_md.ingress_port, 0, 0 };
        hdr.bridged.setValid();
        if (ig_prsr_md.parser_err & PARSER_ERROR_NO_MATCH != 0) { ig_tm_md.copy_to_cpu = 1; }
    }
}

control IngressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Mirror(2) mirror;
    Resubmit(1) resubmit;
    Digest<digest_t>(1) digest;
    Checksum() sum;
    apply {
        if (ig_dprsr_md.mirror_type == 2) { mirror.emit<mirror_h>(meta.session, { 1, 48w5 }); }
        if (ig_dprsr_md.resubmit_type == 1) { resubmit.emit(meta.again); }
        if (ig_dprsr_md.digest_type == 1) { digest.pack({ hdr.ethernet.src, CPU }); }
        hdr.ipv4.checksum = sum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.total, hdr.ipv4.src }, true);
        pkt.emit(hdr);
    }
}

parser EgressParser(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg_intr_md,
                    out egress_intrinsic_metadata_from_parser_t eg_prsr_md) {
    state start { pkt.extract(eg_intr_md); pkt.extract(hdr.bridged); transition accept; }
}

control Egress(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg_intr_md,
               in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
               inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
               inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    apply { if (eg_intr_md.deq_qdepth > 1000) { eg_dprsr_md.drop_ctl = 0x1; } eg_oport_md.capture_tstamp_on_tx = 1; }
}

control EgressDeparser(packet_out pkt, inout headers_t hdr, in meta_t meta,
                       in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply { pkt.emit(hdr.ethernet); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
