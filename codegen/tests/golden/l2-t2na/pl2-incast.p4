// l2: the switch of rack "pl2-incast".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
//
// Generated from a rack description by p4rack 0.1.0: change the description, not this file.

#include <core.p4>
#include <t2na.p4>

typedef bit<9> port_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;

// Queues, served in strict order, 7 first.
const QueueId_t PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<8>  DROP_MALFORMED           = 0;   // cut short within a header
const bit<8>  DROP_SPOOFED             = 1;   // source address is not the port's own host's
const bit<8>  DROP_UNKNOWN_DESTINATION = 2;   // no host has this address
const bit<8>  DROP_SAME_PORT           = 3;   // the destination is the sender
const bit<8>  DROP_BEST_EFFORT_METER   = 4;   // more best effort than the port may send
const bit<32> DROP_REASONS             = 5;   // how many there are
const bit<8>  DROP_NONE                = 255; // it is not dropped

// Precedes frames from the switch to the controller.
#ifndef __TARGET_TOFINO__
@controller_header("packet_in")
#endif
header packet_in_t {
    bit<16> ingress_port; // port that the frame came in by
}

// Precedes frames from the controller to the switch.
#ifndef __TARGET_TOFINO__
@controller_header("packet_out")
#endif
header packet_out_t {
    bit<16> egress_port; // port to leave by; 0: forward the frame as if a host had sent it
}

// Ethernet II header, without preamble and FCS.
header ethernet_t {
    bit<48> dstAddr;   // destination
    bit<48> srcAddr;   // source
    bit<16> etherType; // what follows
}

// 802.1Q tag. A data frame that belongs to a reservation carries one; DEI marks it unsolicited.
header vlan_t {
    bit<3>  pcp;       // priority code point
    bit<1>  dei;       // drop eligible: an unsolicited frame
    bit<12> vid;       // VLAN identifier
    bit<16> etherType; // what follows
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    vlan_t       vlan;
}

struct metadata_t {
    bit<8> drop;       // why the frame is dropped
    bit<1> steered;    // whether it goes where the controller says, or back to it
    bit<8> known;      // whether its destination is known; a byte, so that it may change beside the next one
    port_t known_port; // the port of its destination, wherever the frame goes
    bit<8> accepted;   // whether its source may send it
}

// A frame as egress parses it: every frame carries packet_in from ingress.
struct egress_headers_t {
    packet_in_t packet_in;
}

struct egress_metadata_t { }

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        meta.drop       = DROP_NONE;
        meta.steered    = 0;
        meta.known      = 0;
        meta.known_port = 0;
        meta.accepted   = 0;
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            CPU_PORT : parse_packet_out;
            default  : parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            ETHERTYPE_VLAN : parse_vlan;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition accept;
    }
}

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
    }
}

// Two tables of a stage can't write one container, so what tables side by side write has containers of its own.
@pa_container_size("ingress", "meta.drop", 8)
@pa_container_size("ingress", "meta.known", 8)
@pa_container_size("ingress", "meta.accepted", 8)
control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;

    // Unless the controller configures a port's meter, everything is green.
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) best_effort_meter;

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(ig_intr_md.ingress_port);
    }

    action accept_source() { meta.accepted = 1; }

    // A port speaks for its own host only; the controller's packets don't pass here.
    table source_guard {
        key = {
            ig_intr_md.ingress_port : exact;
            hdr.ethernet.srcAddr    : exact;
        }
        actions = {
            accept_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    action forward(port_t port) {
        ig_tm_md.ucast_egress_port = port;
        meta.known                 = 1;
        meta.known_port            = port;
    }

    table l2_forward {
        key = {
            hdr.ethernet.dstAddr : exact;
        }
        actions = {
            forward;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    // Every refusal ends here: nothing disappears uncounted.
    @hidden action count_drop(bit<8> reason) {
        drops.count(reason);
        ig_dprsr_md.drop_ctl = 1;
    }

    @hidden table refusals {
        key = {
            meta.drop         : exact;
            best_effort_color : exact;
        }
        actions = {
            count_drop;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DROP_NONE, MeterColor_t.RED)                  : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_MALFORMED, MeterColor_t.GREEN)           : count_drop(DROP_MALFORMED);
            (DROP_SPOOFED, MeterColor_t.GREEN)             : count_drop(DROP_SPOOFED);
            (DROP_UNKNOWN_DESTINATION, MeterColor_t.GREEN) : count_drop(DROP_UNKNOWN_DESTINATION);
            (DROP_SAME_PORT, MeterColor_t.GREEN)           : count_drop(DROP_SAME_PORT);
            (DROP_BEST_EFFORT_METER, MeterColor_t.GREEN)   : count_drop(DROP_BEST_EFFORT_METER);
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) ig_intr_md.ingress_port;

        ig_tm_md.qid = PRIORITY_BEST_EFFORT;

        if (meta.steered == 0 && hdr.ethernet.dstAddr[40:40] == 0) {
            l2_forward.apply();
        }
        // Controller frames without a port are forwarded as a host's.
        if (!hdr.packet_out.isValid()) {
            source_guard.apply();
        } else {
            if (hdr.packet_out.egress_port == 0) {
                meta.accepted = 1;
            }
        }

        if (ig_prsr_md.parser_err != 0) {
            meta.drop = DROP_MALFORMED;
        } else if (meta.accepted == 0) {
            if (hdr.packet_out.isValid()) {
                meta.steered               = 1;
                ig_tm_md.ucast_egress_port = (port_t) hdr.packet_out.egress_port;
                if (hdr.packet_out.egress_port[15:9] != 0) {
                    meta.drop = DROP_UNKNOWN_DESTINATION;
                }
            } else {
                meta.drop = DROP_SPOOFED;
            }
        } else {
            if (meta.known == 1 && ig_tm_md.ucast_egress_port == ig_intr_md.ingress_port) {
                meta.drop = DROP_SAME_PORT;
            } else if (hdr.ethernet.dstAddr[40:40] == 1 && meta.steered == 0) {
                ig_tm_md.mcast_grp_a = RACK_GROUP;
            } else if (meta.known == 0 && meta.steered == 0) {
                meta.drop = DROP_UNKNOWN_DESTINATION;
            }
        }

        // A unicast frame that egress need not handle bypasses egress.
        if (hdr.ethernet.dstAddr[40:40] == 0 && !hdr.packet_out.isValid() &&
            meta.known_port != CPU_PORT) {
            hdr.packet_in.setInvalid();
            ig_tm_md.bypass_egress = 1;
        }
        if (meta.drop == DROP_NONE && meta.steered == 0 && ig_tm_md.qid == PRIORITY_BEST_EFFORT) {
            send_best_effort();
        }
        if (meta.drop != DROP_NONE || best_effort_color == MeterColor_t.RED) {
            refusals.apply();
        }
    }
}

parser RackEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.packet_in);
        transition accept;
    }
}

control RackEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr.packet_in);
    }
}

control RackEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
        if (eg_intr_md.egress_port != CPU_PORT) {
            hdr.packet_in.setInvalid();
        }
    }
}

Pipeline(
    RackParser(),
    RackIngress(),
    RackDeparser(),
    RackEgressParser(),
    RackEgress(),
    RackEgressDeparser()
) pipe;

@pkginfo(name="l2", version="0.1.0")
Switch(pipe) main;
