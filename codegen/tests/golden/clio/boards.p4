// clio: the switch of rack "boards".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
//
// Generated from a rack description by p4rack 0.1.0: change the description, not this file.

#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;

// Queues, served in strict order, 7 first.
const bit<3> PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<32> DROP_MALFORMED           = 0; // cut short within a header
const bit<32> DROP_SPOOFED             = 1; // source address is not the port's own host's
const bit<32> DROP_UNKNOWN_DESTINATION = 2; // no host has this address
const bit<32> DROP_SAME_PORT           = 3; // the destination is the sender
const bit<32> DROP_BEST_EFFORT_METER   = 4; // more best effort than the port may send
const bit<32> DROP_REASONS             = 5; // how many there are

// Precedes frames from the switch to the controller.
@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port; // port that the frame came in by
}

// Precedes frames from the controller to the switch.
@controller_header("packet_out")
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
}

parser RackParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
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

control RackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
    }
}

// Nothing here carries a checksum that the switch touches.
control RackVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RackComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets_and_bytes) drops;

    // Unless the controller configures a port's meter, everything is green.
    meter(PORT_COUNT, MeterType.bytes) best_effort_meter;

    // Every refusal goes through here: nothing disappears uncounted.
    @hidden action drop(in bit<32> reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    action accept_source() { }

    // A port speaks for its own host only; the controller's packets don't pass here.
    table source_guard {
        key = {
            standard_metadata.ingress_port : exact;
            hdr.ethernet.srcAddr           : exact;
        }
        actions = {
            accept_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
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

    apply {
        bit<2> color;

        standard_metadata.priority = PRIORITY_BEST_EFFORT;

        // Broadcast or multicast.
        bool to_group = hdr.ethernet.dstAddr[40:40] == 1;

        if (standard_metadata.parser_error != error.NoError) {
            drop(DROP_MALFORMED);
        }
        if (hdr.packet_out.isValid()) {
            if (hdr.packet_out.egress_port != 0) {
                if ((bit<32>) hdr.packet_out.egress_port >= PORT_COUNT) {
                    drop(DROP_UNKNOWN_DESTINATION);
                }
                standard_metadata.egress_spec = (port_t) hdr.packet_out.egress_port;
                return;
            }
        } else if (source_guard.apply().miss) {
            drop(DROP_SPOOFED);
        }

        if (!to_group) {
            if (l2_forward.apply().miss) {
                drop(DROP_UNKNOWN_DESTINATION);
            }
            if (standard_metadata.egress_spec == standard_metadata.ingress_port) {
                drop(DROP_SAME_PORT);
            }
        }

        best_effort_meter.execute_meter((bit<32>) standard_metadata.ingress_port, color);
        if (color == V1MODEL_METER_COLOR_RED) {
            drop(DROP_BEST_EFFORT_METER);
        }
        if (to_group) {
            standard_metadata.mcast_grp = RACK_GROUP;
        }
    }
}

control RackEgress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (standard_metadata.egress_rid != 0 &&
            standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>) standard_metadata.ingress_port;
        }
    }
}

@pkginfo(name="clio", version="0.1.0")
V1Switch(
    RackParser(),
    RackVerifyChecksum(),
    RackIngress(),
    RackEgress(),
    RackComputeChecksum(),
    RackDeparser()
) main;
