// pl2_clock: the switch of rack "lanes".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it PL2 reservations: a host asks for slots with an RSV, the switch answers with a GRT that
// says how far its own port and the destination's are reserved, the host sends when both are free.
// Mode `clock`: each port keeps the time at which it is next free; data frames touch nothing.
//
// Generated from a rack description by p4rack 0.1.0: change the description, not this file.

#include <core.p4>
#include <v1model.p4>

typedef bit<9>  port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512;     // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;       // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_PL2  = 0x88B5;

// Queues, served in strict order, 7 first.
const bit<3> PRIORITY_CONTROL     = 7;
const bit<3> PRIORITY_SCHEDULED   = 5;
const bit<3> PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<32> DROP_MALFORMED                  = 0;  // cut short within a header
const bit<32> DROP_SPOOFED                    = 1;  // source address is not the port's own host's
const bit<32> DROP_UNKNOWN_DESTINATION        = 2;  // no host has this address
const bit<32> DROP_SAME_PORT                  = 3;  // the destination is the sender
const bit<32> DROP_BEST_EFFORT_METER          = 4;  // more best effort than the port may send
const bit<32> DROP_CONTROL_METER              = 5;  // more control frames than the port may send
const bit<32> DROP_BAD_VERSION                = 6;  // PL2 of another version
const bit<32> DROP_BAD_KIND                   = 7;  // a PL2 kind that hosts don't send, or that doesn't exist
const bit<32> DROP_BAD_DEMAND                 = 8;  // asks for no slots, or for more than K
const bit<32> DROP_BAD_RELEASE                = 9;  // gives back more slots than K, or any in clock mode
const bit<32> DROP_UNSOLICITED_OVER_THRESHOLD = 10; // unsolicited while more than T is reserved
const bit<32> DROP_MANAGEMENT_FROM_HOST       = 11; // management from a port other than the controller's
const bit<32> DROP_BAD_TARGET                 = 12; // management of a register that doesn't exist
const bit<32> DROP_BAD_INDEX                  = 13; // management of a port that doesn't exist
const bit<32> DROP_REASONS                    = 14; // how many there are

// Where reservations are kept: at ports and, behind them, at lanes that are slower than the port they share.
const bit<32> LINK_COUNT = PORT_COUNT + 2;

// What PL2's frames start with: the version and one of the kinds.
const bit<4> PL2_VERSION     = 1;
const bit<4> PL2_RSV         = 1;
const bit<4> PL2_GRT         = 2;
const bit<4> PL2_NOTIFY      = 3;
const bit<4> PL2_DATA        = 4;
const bit<4> PL2_MGMT_READ   = 8;
const bit<4> PL2_MGMT_WRITE  = 9;
const bit<4> PL2_MGMT_RESET  = 10;
const bit<4> PL2_MGMT_REPLY  = 11;
const bit<4> PL2_MGMT_FORGET = 12;

// Which register a management frame means.
const bit<8> PL2_TARGET_IN  = 0;
const bit<8> PL2_TARGET_OUT = 1;

const bit<8>  PL2_K   = 4;        // most slots in one reservation
const bit<12> PL2_VID = 100;      // VLAN of frames that belong to a reservation

// Time is in units of the ingress timestamp, 1 ns each, modulo 2^48.
typedef bit<48> time_t;

// Differences from here up mean a time in the past (see the registers).
const time_t HORIZON = 48w1 << 30;

// Precedes frames from the switch to the controller.
@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port; // port that the frame came in by
}

// Precedes frames from the controller to the switch.
@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;  // port to leave by; 0: forward the frame as if a host had sent it
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

// What every PL2 frame starts with.
header pl2_start_t {
    bit<4> version; // 1
    bit<4> kind;    // RSV, GRT or NOTIFY
}

// RSV and GRT. A GRT is the RSV with kind and both replies filled in.
header pl2_control_t {
    bit<4>  version;  // 1
    bit<4>  kind;     // RSV, GRT or NOTIFY
    bit<8>  demand;   // slots asked for, 1 to K; 0 only with release > 0
    bit<8>  release;  // slots of an earlier reservation to this destination that will not be used, at most K (counter mode)
    bit<8>  reserved; // zero on sending, ignored on receipt
    bit<32> id;       // chosen by the host, returned in the GRT
    bit<32> sendWait; // source port's reservation before this one: slots (counter) or time units from now (clock)
    bit<32> recvWait; // destination port's reservation before this one, same unit
}

// Reads or writes one scheduler register from the CPU port.
header pl2_management_t {
    bit<4>  version; // 1
    bit<4>  kind;    // MGMT_READ, MGMT_WRITE, MGMT_RESET, MGMT_FORGET or MGMT_REPLY
    bit<8>  target;  // 0 in-reservations, 1 out-reservations
    bit<16> index;   // port; with MGMT_FORGET the source's
    bit<32> token;   // chosen by the controller, returned in the reply
    bit<32> value;   // slots (counter) or time units from now (clock); in a reply, the value before the request
}

struct headers_t {
    packet_in_t      packet_in;
    packet_out_t     packet_out;
    ethernet_t       ethernet;
    vlan_t           vlan;
    pl2_control_t    pl2_control;
    pl2_management_t pl2_management;
}

struct metadata_t {
    bit<32> source;      // where the source's reservations are kept
    bit<32> destination; // where the destination's are
    time_t source_slot;      // a slot at the ingress port's rate
    time_t destination_slot; // a slot at the egress port's rate
    time_t drop_threshold;   // T in time at the egress port's rate
    time_t reserved;         // how far the egress port is reserved
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
            ETHERTYPE_PL2  : parse_pl2;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_PL2 : parse_pl2;
            default       : accept;
        }
    }

    // A shim is the agents' own affair: frames that carry one are ordinary data here. Whatever is
    // neither known nor of this version goes through pl2_control, for ingress to refuse by reason.
    state parse_pl2 {
        transition select(packet.lookahead<pl2_start_t>().version, packet.lookahead<pl2_start_t>().kind) {
            (PL2_VERSION, PL2_DATA)        : accept;
            (PL2_VERSION, PL2_MGMT_READ)   : parse_pl2_management;
            (PL2_VERSION, PL2_MGMT_WRITE)  : parse_pl2_management;
            (PL2_VERSION, PL2_MGMT_RESET)  : parse_pl2_management;
            (PL2_VERSION, PL2_MGMT_FORGET) : parse_pl2_management;
            default                        : parse_pl2_control;
        }
    }

    state parse_pl2_control {
        packet.extract(hdr.pl2_control);
        transition accept;
    }

    state parse_pl2_management {
        packet.extract(hdr.pl2_management);
        transition accept;
    }
}

control RackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pl2_control);
        packet.emit(hdr.pl2_management);
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
    meter(PORT_COUNT, MeterType.packets) control_meter;

    // Every refusal goes through here: nothing disappears uncounted.
    action drop(in bit<32> reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    // Slots come with the entries, so each port has its own: nothing assumes equal rates.
    action accept_source(bit<32> slot, bit<32> link) {
        meta.source_slot = (time_t) slot;
        meta.source      = link;
    }

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

    action forward(port_t port, bit<32> slot, bit<32> drop_threshold, bit<32> link) {
        standard_metadata.egress_spec = port;
        meta.destination_slot         = (time_t) slot;
        meta.drop_threshold           = (time_t) drop_threshold;
        meta.destination              = link;
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

    // The time at which each port is next free, as a source and as a destination. Every
    // read-modify-write is one action, because an action is what the target runs undivided; and no
    // packet passes the same register twice.
    //
    // Times wrap, so they are never compared directly. A register minus the packet's time, modulo
    // 2^48, is how far the port is reserved from now if it is below HORIZON; anything else is a time
    // in the past, and the port is free. A port idle for up to 2^48 - 2^30 units is therefore free,
    // as it should be; one idle for longer may look reserved for up to 2^30 units, once, and then is
    // free again. Reservations never honestly reach HORIZON: rack descriptions for which they could
    // are refused.
    register<time_t>(LINK_COUNT) in_reservation;
    register<time_t>(LINK_COUNT) out_reservation;

    action reserve_in() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        in_reservation.read(free, meta.source);
        time_t ahead = free - now;
        ahead = ahead < HORIZON ? ahead : 48w0;
        hdr.pl2_control.sendWait = (bit<32>) ahead;
        free = now + ahead + (time_t) hdr.pl2_control.demand * meta.source_slot;
        in_reservation.write(meta.source, free);
    }

    action reserve_out() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        out_reservation.read(free, meta.destination);
        time_t ahead = free - now;
        ahead = ahead < HORIZON ? ahead : 48w0;
        hdr.pl2_control.recvWait = (bit<32>) ahead;
        free = now + ahead + (time_t) hdr.pl2_control.demand * meta.destination_slot;
        out_reservation.write(meta.destination, free);
    }

    action look_at_out() {
        time_t free;
        out_reservation.read(free, meta.destination);
        time_t ahead = free - standard_metadata.ingress_global_timestamp;
        meta.reserved = ahead < HORIZON ? ahead : 48w0;
    }

    // The controller's read, write and reset. Its values are time from now; the one before goes back
    // in the frame.
    action exchange_in() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        in_reservation.read(free, (bit<32>) hdr.pl2_management.index);
        time_t ahead = free - now;
        in_reservation.write((bit<32>) hdr.pl2_management.index,
            hdr.pl2_management.kind == PL2_MGMT_READ  ? free :
            (hdr.pl2_management.kind == PL2_MGMT_WRITE ? now + (time_t) hdr.pl2_management.value : now));
        hdr.pl2_management.value = ahead < HORIZON ? (bit<32>) ahead : 32w0;
    }

    action exchange_out() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        out_reservation.read(free, (bit<32>) hdr.pl2_management.index);
        time_t ahead = free - now;
        out_reservation.write((bit<32>) hdr.pl2_management.index,
            hdr.pl2_management.kind == PL2_MGMT_READ  ? free :
            (hdr.pl2_management.kind == PL2_MGMT_WRITE ? now + (time_t) hdr.pl2_management.value : now));
        hdr.pl2_management.value = ahead < HORIZON ? (bit<32>) ahead : 32w0;
    }

    action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
        standard_metadata.priority = PRIORITY_CONTROL;
    }

    // The RSV itself goes back as the GRT, with both replies filled in: its source address says
    // which destination it grants.
    action grant() {
        turn_around();
        hdr.pl2_control.kind = PL2_GRT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action reply_to_controller() {
        turn_around();
        hdr.pl2_management.kind = PL2_MGMT_REPLY;
        standard_metadata.egress_spec = CPU_PORT;
    }

    apply {
        bit<2> color;

        standard_metadata.priority = PRIORITY_BEST_EFFORT;
        if (standard_metadata.parser_error != error.NoError) {
            drop(DROP_MALFORMED);
        }

        // Broadcast or multicast.
        bool to_group = hdr.ethernet.dstAddr[40:40] == 1;

        if (hdr.packet_out.isValid()) {
            if (hdr.pl2_management.isValid()) {
                if ((bit<32>) hdr.pl2_management.index >= LINK_COUNT) {
                    drop(DROP_BAD_INDEX);
                }
                // Clocks forget by themselves: MGMT_FORGET only frees the source.
                if (hdr.pl2_management.target == PL2_TARGET_IN) {
                    exchange_in();
                } else if (hdr.pl2_management.target == PL2_TARGET_OUT) {
                    exchange_out();
                } else {
                    drop(DROP_BAD_TARGET);
                }
                reply_to_controller();
                return;
            }
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

        // What a reservation may say is checked before it reaches a register.
        if (hdr.pl2_management.isValid()) {
            drop(DROP_MANAGEMENT_FROM_HOST);
        }
        if (hdr.pl2_control.isValid()) {
            control_meter.execute_meter((bit<32>) standard_metadata.ingress_port, color);
            if (color == V1MODEL_METER_COLOR_RED) {
                drop(DROP_CONTROL_METER);
            }
            if (hdr.pl2_control.version != PL2_VERSION) {
                drop(DROP_BAD_VERSION);
            }
            if (hdr.pl2_control.kind != PL2_RSV) {
                drop(DROP_BAD_KIND);
            }
            if (hdr.pl2_control.demand == 0 || hdr.pl2_control.demand > PL2_K) {
                drop(DROP_BAD_DEMAND);
            }
            // Clocks run by themselves: there is nothing to give back.
            if (hdr.pl2_control.release != 0) {
                drop(DROP_BAD_RELEASE);
            }
            if (to_group) {
                drop(DROP_UNKNOWN_DESTINATION);
            }
        }

        if (!to_group) {
            if (l2_forward.apply().miss) {
                drop(DROP_UNKNOWN_DESTINATION);
            }
            // Hosts may share a port, and reach each other by it.
            if (hdr.ethernet.dstAddr == hdr.ethernet.srcAddr) {
                drop(DROP_SAME_PORT);
            }
        }

        if (hdr.pl2_control.isValid()) {
            reserve_in();
            reserve_out();
            grant();
        } else if (hdr.vlan.isValid() && hdr.vlan.vid == PL2_VID && !to_group) {
            standard_metadata.priority = PRIORITY_SCHEDULED;
            if (hdr.vlan.dei == 1) {
                // Unsolicited: sent before its grant, welcome only while little is reserved.
                look_at_out();
                if (meta.reserved > meta.drop_threshold) {
                    drop(DROP_UNSOLICITED_OVER_THRESHOLD);
                }
            }
        } else {
            best_effort_meter.execute_meter((bit<32>) standard_metadata.ingress_port, color);
            if (color == V1MODEL_METER_COLOR_RED) {
                drop(DROP_BEST_EFFORT_METER);
            }
            if (to_group) {
                standard_metadata.mcast_grp = RACK_GROUP;
            }
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

@pkginfo(name="pl2_clock", version="0.1.0")
V1Switch(
    RackParser(),
    RackVerifyChecksum(),
    RackIngress(),
    RackEgress(),
    RackComputeChecksum(),
    RackDeparser()
) main;
