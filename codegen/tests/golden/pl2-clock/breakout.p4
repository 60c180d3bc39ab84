// pl2_clock: the switch of rack "breakout".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it PL2 reservations: a host asks for slots with an RSV, the switch answers with a GRT
// that says how far its own port and the destination's are reserved, the host sends when both are
// free. Only frames that were reserved and come in their time get the class that is free of queues.
// Mode `clock`: each port keeps the time at which it is next free.
//
// Generated from a rack description by p4rack 0.1.0: change the description, not this file.

#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_PL2  = 0x88B5;

// Queues, served in strict order, 7 first.
const bit<3> PRIORITY_CONTROL     = 7;
const bit<3> PRIORITY_SCHEDULED   = 5;
const bit<3> PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<32> DROP_MALFORMED                  = 0;          // cut short within a header
const bit<32> DROP_SPOOFED                    = 1;          // source address is not the port's own host's
const bit<32> DROP_UNKNOWN_DESTINATION        = 2;          // no host has this address
const bit<32> DROP_SAME_PORT                  = 3;          // the destination is the sender
const bit<32> DROP_BEST_EFFORT_METER          = 4;          // more best effort than the port may send
const bit<32> DROP_CONTROL_METER              = 5;          // more control frames than the port may send
const bit<32> DROP_BAD_VERSION                = 6;          // PL2 of another version
const bit<32> DROP_BAD_KIND                   = 7;          // a PL2 kind that hosts don't send, or that doesn't exist
const bit<32> DROP_BAD_DEMAND                 = 8;          // asks for no slots, or for more than K
const bit<32> DROP_BAD_LANE                   = 9;          // names a lane that the rack does not have
const bit<32> DROP_UNSOLICITED_OVER_THRESHOLD = 10;         // unsolicited while more than T is reserved
const bit<32> DROP_MANAGEMENT_FROM_HOST       = 11;         // management from a port other than the controller's
const bit<32> DROP_BAD_TARGET                 = 12;         // management of a register that doesn't exist
const bit<32> DROP_BAD_INDEX                  = 13;         // management of a port that doesn't exist
const bit<32> DROP_UNSOLICITED_HAS_SLOTS      = 14; // unsolicited though its waits are longer than t: it comes again in its slots
const bit<32> DROP_REASONS                    = 15;         // how many there are
const bit<32> DROP_NONE                       = 0xFFFFFFFF; // it is not dropped

// Time is in units of the ingress timestamp, 1 ns each, modulo 2^48.
typedef bit<48> time_t;

const bit<8> NEXT_PASS = 1; // what a frame takes along to its next pass

// Where reservations are kept: at ports and, behind them, at links that are slower than the port they share.
const bit<32> LINK_COUNT = PORT_COUNT + 2;

// First byte of PL2's frames: the version and the kind.
const bit<4> PL2_VERSION     = 1;
const bit<4> PL2_RSV         = 1;
const bit<4> PL2_GRT         = 2;
const bit<4> PL2_DATA        = 4;
const bit<4> PL2_MGMT_READ   = 8;
const bit<4> PL2_MGMT_WRITE  = 9;
const bit<4> PL2_MGMT_RESET  = 10;
const bit<4> PL2_MGMT_REPLY  = 11;
const bit<4> PL2_MGMT_FORGET = 12;

// Which register a management frame means.
const bit<8> PL2_TARGET_IN  = 0;
const bit<8> PL2_TARGET_OUT = 1;

const bit<8>  PL2_K   = 4;   // most slots in one reservation
const bit<12> PL2_VID = 100; // VLAN of frames whose reservation is in a pair's cell 0; the next ones follow

// Reservations are kept in cells, one for each half of each lane of a (source, destination) pair.
const bit<8>  PL2_CELLS        = 2;          // of a pair
const bit<32> CELL_COUNT       = 24;         // of all, the controller among the sources
const bit<32> LANE_COUNT       = 12;
const bit<8>  HALVES           = 3;          // of a lane's lock: which half holds it
const bit<8>  HARD             = 4;          // and that frames don't free it
const bit<32> HAS_SLOTS        = 0xFFFFFFFF; // of a cell's rights_unsolicited: its waits are longer than t
const bit<64> WENT_UNSOLICITED = 64w1 << 48; // of a cell's start: the burst has no slots
const bit<32> PART_WIRE_BYTES  = 1550;       // of a full frame, what a slot gives a right to
const bit<32> FRAME_OVERHEAD   = 24;         // FCS, preamble and gap
const bit<32> FRAME_MIN        = 60;         // what a shorter frame is padded to, without FCS

// Why a frame does not get the class that it claims: index into the counter `demoted`.
const bit<32> DEMOTED_UNCOVERED             = 0; // its reservation has nothing left for it
const bit<32> DEMOTED_UNCOVERED_UNSOLICITED = 1; // unsolicited beyond what was asked for
const bit<32> DEMOTED_EARLY                 = 2; // long before its reservation begins
const bit<32> DEMOTED_LATE                  = 3; // long after its reservation
const bit<32> DEMOTED_REASONS               = 4; // how many there are

// Why an RSV is answered "not now": index into the counter `refused`.
const bit<32> REFUSED_LANE    = 0;          // the lane's reservation has not begun
const bit<32> REFUSED_REASONS = 2;          // how many there are
const bit<32> PL2_NOT_NOW     = 0xFFFFFFFF; // both waits of such a grant

// Differences from here up mean a time in the past (see the registers).
const time_t HORIZON     = 48w1 << 30;
const time_t PL2_T       = 15;   // waits up to which a burst goes unsolicited (t), in slots
const time_t EARLY_SLOTS = 4;    // how much before its start a burst may come, in slots
const time_t LATE_SLOTS  = 1004; // how much after its start, its own length included

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

// What every PL2 frame starts with.
header pl2_start_t {
    bit<4> version; // 1
    bit<4> kind;    // RSV, GRT or NOTIFY
}

// RSV and GRT. A GRT is the RSV with kind and both replies filled in.
header pl2_control_t {
    bit<4>  version;     // 1
    bit<4>  kind;        // RSV, GRT or NOTIFY
    bit<8>  demand;      // slots asked for, 1 to K; 0 gives back what the cell still holds (counter mode)
    bit<8>  cell;        // where the switch keeps this reservation, among the pair's: 2 × lane + half
    bit<1>  unsolicited; // 1: its burst follows immediately, unsolicited; it has its slots only if the waits are longer than t
    bit<7>  reserved;    // zero on sending, ignored on receipt
    bit<32> id;          // chosen by the host, returned in the GRT
    bit<32> sendWait;    // source port's reservation before this one: slots (counter) or time units from now (clock)
    bit<32> recvWait;    // destination port's reservation before this one, same unit
}

// Reads or writes one scheduler register from the CPU port.
header pl2_management_t {
    bit<4>  version;     // 1
    bit<4>  kind;        // MGMT_READ, MGMT_WRITE, MGMT_RESET, MGMT_FORGET or MGMT_REPLY
    bit<8>  target;      // 0 in-reservations, 1 out-reservations
    bit<16> index;       // where the port's reservations are kept; with MGMT_FORGET the source's
    bit<32> token;       // chosen by the controller, returned in the reply
    bit<32> value;       // slots (counter) or time units from now (clock); in a reply, what was there before
    bit<16> destination; // MGMT_FORGET: where the destination's reservations are kept
    bit<16> reserved;    // zero on sending, ignored on receipt
    bit<32> cell;        // MGMT_FORGET: number of the cell among all pairs'
}

struct headers_t {
    packet_in_t      packet_in;
    packet_out_t     packet_out;
    ethernet_t       ethernet;
    vlan_t           vlan;
    pl2_control_t    pl2_control;
    pl2_management_t pl2_management;
}

// State of pl2 while ingress handles a frame.
struct pl2_metadata_t {
    bit<32> source;            // where the source's reservations are kept
    bit<32> destination;       // where the destination's are
    bit<32> source_cells;      // the first of the source's cells
    bit<32> destination_cells; // the destination's among them
    bit<32> claim;             // the cell of the reservation that the frame is or claims
    bit<8>  half;              // 1 or 2: which half of its lane this is
    bit<8>  holder;            // what the lane's lock says
    bool    occupied;          // whether an RSV finds its lane held
    bool    covered;           // whether the reservation has something left for a data frame
    bool    has_slots;         // whether it has its slots only, since its waits are longer than t
    bool    went_unsolicited;  // whether its burst went unsolicited, and has no slots
    time_t  ahead;             // how far ahead its start is
    time_t  early;             // how much before its start a burst may come
    time_t  late;              // how much after
    time_t  source_slot;       // a slot at the ingress port's rate
    bit<32> right;             // what a reservation gives a right to
    bit<32> left;              // what a cell held
    @field_list(NEXT_PASS) bool again; // second pass: an RSV's lane has begun; a data frame came too early
    time_t  destination_slot;  // a slot at the egress port's rate
    time_t  drop_threshold;    // T in time at the egress port's rate
    time_t  reserved;          // how far the egress port is reserved
}

struct metadata_t {
    pl2_metadata_t pl2;
    bit<32>        drop; // why the frame is dropped
    @field_list(NEXT_PASS) port_t ingress_port; // of the first pass
    @field_list(NEXT_PASS) time_t arrived; // when that was
}

parser RackParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        // 0 in the first pass: a later one finds what that one kept.
        transition select(meta.arrived) {
            0       : parse_first_pass;
            default : parse_next_pass;
        }
    }

    state parse_first_pass {
        meta.ingress_port = standard_metadata.ingress_port;
        meta.arrived      = standard_metadata.ingress_global_timestamp;
        transition parse_port;
    }

    // A target may have forgotten both, as BMv2 does.
    state parse_next_pass {
        standard_metadata.ingress_port             = meta.ingress_port;
        standard_metadata.ingress_global_timestamp = meta.arrived;
        transition parse_port;
    }

    state parse_port {
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

    // A shim concerns only agents: frames with one are ordinary data here. Frames of unknown kind
    // or version pass through pl2_control, so that ingress refuses them with a reason.
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

// Reservations: an RSV takes slots at both of its ports, and a frame of its burst takes one of them up.
control Pl2(inout headers_t hdr, inout metadata_t meta,
        inout standard_metadata_t standard_metadata) {
    // Frames that lose the class that they claim, and RSVs without a grant, by reason.
    counter(DEMOTED_REASONS, CounterType.packets_and_bytes) demoted;
    counter(REFUSED_REASONS, CounterType.packets) refused;

    // The time at which each port is next free, as a source and as a destination. Every
    // read-modify-write is one action, because an action is what the target runs undivided; and no
    // pass of a packet meets the same register twice.
    //
    // Times wrap, so they are never compared directly. A register minus the packet's time, modulo
    // 2^48, is how far the port is reserved from now if it is below HORIZON; anything else is a time
    // in the past, and the port is free. A port idle for up to 2^48 - 2^30 units is therefore free,
    // as it should be; one idle for longer may look reserved for up to 2^30 units, once, and then is
    // free again. Reservations never reach HORIZON: lanes bound what all hosts together can have
    // reserved, and rack descriptions for which this could be so much are refused.

    // When the link is next free, as a source.
    // Written by RSVs that are granted, the controller; it wraps as the time does.
    register<time_t>(LINK_COUNT) in_reservation;

    // When the link is next free, as a destination.
    // Written by RSVs that are granted, the controller; it wraps as the time does.
    register<time_t>(LINK_COUNT) out_reservation;

    @hidden action reserve_in() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        in_reservation.read(free, meta.pl2.source);
        time_t ahead             = free - now;
        ahead                    = ahead < HORIZON ? ahead : 48w0;
        hdr.pl2_control.sendWait = (bit<32>) ahead;
        free                     = now + ahead + (time_t) hdr.pl2_control.demand * meta.pl2.source_slot;
        in_reservation.write(meta.pl2.source, free);
    }

    @hidden action reserve_out() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        out_reservation.read(free, meta.pl2.destination);
        time_t ahead             = free - now;
        ahead                    = ahead < HORIZON ? ahead : 48w0;
        hdr.pl2_control.recvWait = (bit<32>) ahead;
        free                     = now + ahead + (time_t) hdr.pl2_control.demand * meta.pl2.destination_slot;
        out_reservation.write(meta.pl2.destination, free);
    }

    @hidden action look_at_out() {
        time_t free;
        out_reservation.read(free, meta.pl2.destination);
        time_t ahead      = free - standard_metadata.ingress_global_timestamp;
        meta.pl2.reserved = ahead < HORIZON ? ahead : 48w0;
    }

    // The controller's read, write and reset. Its values are time from now; the one before goes back
    // in the frame.
    @hidden action exchange_in() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        in_reservation.read(free, (bit<32>) hdr.pl2_management.index);
        time_t ahead = free - now;
        in_reservation.write((bit<32>) hdr.pl2_management.index,
            hdr.pl2_management.kind == PL2_MGMT_READ  ? free :
            (hdr.pl2_management.kind == PL2_MGMT_WRITE ? now + (time_t) hdr.pl2_management.value : now));
        hdr.pl2_management.value = ahead < HORIZON ? (bit<32>) ahead : 32w0;
    }

    @hidden action exchange_out() {
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t free;
        out_reservation.read(free, (bit<32>) hdr.pl2_management.index);
        time_t ahead = free - now;
        out_reservation.write((bit<32>) hdr.pl2_management.index,
            hdr.pl2_management.kind == PL2_MGMT_READ  ? free :
            (hdr.pl2_management.kind == PL2_MGMT_WRITE ? now + (time_t) hdr.pl2_management.value : now));
        hdr.pl2_management.value = ahead < HORIZON ? (bit<32>) ahead : 32w0;
    }

    // The right to the scheduled class. A (source, destination) pair has few lanes, each of them two halves, and every
    // half is a cell here: PL2_CELLS a pair. An RSV names a cell, a data frame does by its VLAN.
    //
    //                     RSV for half p: the cell gets rights and a start
    //      +------+ --------------------------------------> +-------------------+ --+ RSV before the start:
    //      | free |                                         | half p, not begun |   | "not now"
    //      +------+ <-------------------------------------- +-------------------+ <-+
    //                 p's first scheduled frame                |   ^         ^
    //                                   which came too early   |   |         |
    //                                   (its second pass)      v   |         |
    //                                   +--------------------------+----+    | RSV after the start (second pass):
    //                                   | half p, not begun, for RSVs   | ---+ its half takes the lane
    //                                   | alone to change               |
    //                                   +-------------------------------+
    //
    // What each register guarantees, in the order in which all frames pass them, each at most once a pass:
    //
    // lane_lock           a lane holds one reservation that has not begun, so a pair reserves no faster than time passes
    // rights              a half sends no more than it reserved; the rest is best effort
    // (in, out)           the ports' own registers, see there
    // rights_unsolicited  a burst that goes unsolicited is no more than was reserved either
    // starts              a half sends in its time, or as best effort; what went unsolicited has no slots beside
    //
    // A burst is sent once. If its RSV asks for it and both waits are at most t, it goes unsolicited; otherwise it uses its
    // slots.
    //
    // The halves alternate: while one still sends, the next reservation waits in the other. Only frames of dishonest or
    // faulty hosts take a second pass.

    // 0 if the lane is free, else 1 or 2, the half whose reservation has not begun; and HARD once frames don't free it.
    // Written by RSVs, a half's first scheduled frame, frames that come too early, the controller; it does not count.
    register<bit<8>>(LANE_COUNT) lane_lock;

    // The rest that the half may send in its slots: bytes on the wire.
    // Written by RSVs, scheduled frames, the controller; it never wraps.
    register<bit<32>>(CELL_COUNT) rights;

    // The same of frames without slots; or HAS_SLOTS: it has its slots.
    // Written by RSVs, unsolicited frames, the controller; it never wraps.
    register<bit<32>>(CELL_COUNT) rights_unsolicited;

    // When the half's burst may begin, and WENT_UNSOLICITED.
    // Written by RSVs; it wraps as the time does.
    register<bit<64>>(CELL_COUNT) starts;

    // An RSV takes its lane. An occupied lane stays as it is, and `holder` names its half.
    @hidden action take_lane() {
        lane_lock.read(meta.pl2.holder, meta.pl2.claim >> 1);
        meta.pl2.occupied = !meta.pl2.again && meta.pl2.holder != 0;
        bit<8> next       = meta.pl2.half;
        lane_lock.write(meta.pl2.claim >> 1, meta.pl2.occupied ? meta.pl2.holder : next);
    }

    // A half's first scheduled frame frees the lane for the next reservation.
    @hidden action begin_in_lane() {
        lane_lock.read(meta.pl2.holder, meta.pl2.claim >> 1);
        lane_lock.write(meta.pl2.claim >> 1, meta.pl2.holder == meta.pl2.half ? 8w0 : meta.pl2.holder);
    }

    // The frame is early: lock the lane again, now against frames. If other frames pass in between, a host gains at most the
    // reservations that it requests in that time, once per lane.
    @hidden action lock_again() {
        lane_lock.read(meta.pl2.holder, meta.pl2.claim >> 1);
        lane_lock.write(meta.pl2.claim >> 1, (meta.pl2.holder == 0 ? meta.pl2.half : meta.pl2.holder) | HARD);
    }

    // Clears a cell and returns what it held.
    @hidden action void_rights(in bit<32> claim) {
        rights.read(meta.pl2.left, claim);
        rights.write(claim, 0);
    }

    @hidden action void_rights_unsolicited(in bit<32> claim) {
        rights_unsolicited.write(claim, 0);
    }

    // The half forfeits the rest of its last reservation.
    @hidden action replace_rights() {
        meta.pl2.right = (bit<32>) hdr.pl2_control.demand * PART_WIRE_BYTES;
        rights.write(meta.pl2.claim, meta.pl2.right);
    }

    // Both waits are known, and so is what the half may send unsolicited.
    @hidden action settle_unsolicited() {
        meta.pl2.went_unsolicited = hdr.pl2_control.unsolicited == 1 &&
            (time_t) hdr.pl2_control.sendWait <= meta.pl2.source_slot * PL2_T &&
            (time_t) hdr.pl2_control.recvWait <= meta.pl2.destination_slot * PL2_T;
        rights_unsolicited.write(meta.pl2.claim, meta.pl2.went_unsolicited ? meta.pl2.right :
            (hdr.pl2_control.unsolicited == 1 ? HAS_SLOTS : 32w0));
    }

    // By bytes, since short frames share slots. A target that learns a packet's length only in egress can't tell in ingress.
    @hidden action use_rights() {
        bit<32> length = standard_metadata.packet_length;
        bit<32> cost   = (length < FRAME_MIN ? FRAME_MIN : length) + FRAME_OVERHEAD;
        bit<32> left;
        rights.read(left, meta.pl2.claim);
        meta.pl2.covered = cost <= left;
        rights.write(meta.pl2.claim, meta.pl2.covered ? left - cost : left);
    }

    @hidden action use_rights_unsolicited() {
        bit<32> length = standard_metadata.packet_length;
        bit<32> cost   = (length < FRAME_MIN ? FRAME_MIN : length) + FRAME_OVERHEAD;
        bit<32> left;
        rights_unsolicited.read(left, meta.pl2.claim);
        meta.pl2.has_slots = left == HAS_SLOTS;
        meta.pl2.covered   = cost <= left && !meta.pl2.has_slots;
        rights_unsolicited.write(meta.pl2.claim, meta.pl2.covered ? left - cost : left);
    }

    // When the burst may begin: once both ports are free.
    @hidden action set_start() {
        bit<32> wait = hdr.pl2_control.sendWait < hdr.pl2_control.recvWait ?
            hdr.pl2_control.recvWait : hdr.pl2_control.sendWait;
        time_t start = standard_metadata.ingress_global_timestamp + (time_t) wait;
        starts.write(meta.pl2.claim, (bit<64>) start | (meta.pl2.went_unsolicited ? WENT_UNSOLICITED : 64w0));
    }

    // How far ahead the start of a half is, modulo 2^48: HORIZON or more is a time in the past. And how early and how late
    // frames may come, in slots of the slower link: hosts' errors, and the harm they do, are measured in these.
    @hidden action look_at_start(in bit<32> claim) {
        bit<64> start;
        starts.read(start, claim);
        meta.pl2.ahead = (time_t) start - standard_metadata.ingress_global_timestamp;
        meta.pl2.went_unsolicited = (start & WENT_UNSOLICITED) != 0;
        time_t slot = meta.pl2.source_slot < meta.pl2.destination_slot ? meta.pl2.destination_slot : meta.pl2.source_slot;
        meta.pl2.early = slot * EARLY_SLOTS;
        meta.pl2.late = slot * LATE_SLOTS;
    }

    // The controller takes back what a half holds: exactly this, whatever others reserve in between. Doing it
    // twice does no harm.
    @hidden action forget_claim() {
        bit<32> claim = hdr.pl2_management.cell;
        bit<8> half   = 1 + (bit<8>) (claim & 1);
        lane_lock.read(meta.pl2.holder, claim >> 1);
        lane_lock.write(claim >> 1, meta.pl2.holder & HALVES == half ? 8w0 : meta.pl2.holder);
        void_rights(claim);
        hdr.pl2_management.value = meta.pl2.left;
    }

    @hidden action turn_around() {
        mac_addr_t requester       = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr       = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr       = requester;
        standard_metadata.priority = PRIORITY_CONTROL;
    }

    // The RSV itself goes back as the GRT, with both replies filled in: its source address says
    // which destination it grants.
    @hidden action grant() {
        turn_around();
        hdr.pl2_control.kind          = PL2_GRT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    @hidden action reply_to_controller() {
        turn_around();
        hdr.pl2_management.kind       = PL2_MGMT_REPLY;
        standard_metadata.egress_spec = CPU_PORT;
    }

    apply {
        if (hdr.pl2_management.isValid()) {
            if ((bit<32>) hdr.pl2_management.index >= LINK_COUNT) {
                meta.drop = DROP_BAD_INDEX;
                return;
            }
            if (hdr.pl2_management.kind == PL2_MGMT_FORGET) {
                if ((bit<32>) hdr.pl2_management.destination >= LINK_COUNT ||
                    hdr.pl2_management.cell >= CELL_COUNT) {
                    meta.drop = DROP_BAD_INDEX;
                    return;
                }
                forget_claim();
                void_rights_unsolicited(hdr.pl2_management.cell);
            } else if (hdr.pl2_management.target == PL2_TARGET_IN) {
                exchange_in();
            } else if (hdr.pl2_management.target == PL2_TARGET_OUT) {
                exchange_out();
            } else {
                meta.drop = DROP_BAD_TARGET;
                return;
            }
            reply_to_controller();
            return;
        }
        if (hdr.pl2_control.isValid()) {
            meta.pl2.claim = meta.pl2.source_cells + meta.pl2.destination_cells + (bit<32>) hdr.pl2_control.cell;
            meta.pl2.half  = 1 + (hdr.pl2_control.cell & 1);
            take_lane();
            if (meta.pl2.occupied) {
                // The lane's reservation has begun unseen: nothing was sent in its slots.
                look_at_start(((meta.pl2.claim >> 1) << 1) + (bit<32>) ((meta.pl2.holder & HALVES) - 1));
                if (meta.pl2.ahead <= meta.pl2.early || meta.pl2.ahead >= HORIZON) {
                    meta.pl2.again = true;
                    resubmit_preserving_field_list(NEXT_PASS);
                    exit;
                }
                refused.count(REFUSED_LANE);
                hdr.pl2_control.sendWait = PL2_NOT_NOW;
                hdr.pl2_control.recvWait = PL2_NOT_NOW;
            } else {
                replace_rights();
                reserve_in();
                reserve_out();
                settle_unsolicited();
                set_start();
            }
            grant();
            // A frame that grants nothing is best effort and metered as such: otherwise a host that asks endlessly
            // fills its own queue, then the shared buffer.
            if (hdr.pl2_control.recvWait == PL2_NOT_NOW) {
                standard_metadata.priority = PRIORITY_BEST_EFFORT;
            }
            return;
        }
        if (hdr.vlan.isValid() && hdr.vlan.vid - PL2_VID < (bit<12>) PL2_CELLS && hdr.ethernet.dstAddr[40:40] == 0) {
            // The frame claims a reservation. Covered and in time, it is scheduled; else demoted to best effort.
            bit<12> cell   = hdr.vlan.vid - PL2_VID;
            meta.pl2.claim = meta.pl2.source_cells + meta.pl2.destination_cells + (bit<32>) cell;
            meta.pl2.half  = 1 + (bit<8>) (cell & 1);
            if (meta.pl2.again) {
                lock_again();
                demoted.count(DEMOTED_EARLY);
            } else if (hdr.vlan.dei == 1) {
                // Unsolicited: sent before its grant, welcome only while little is reserved.
                look_at_out();
                use_rights_unsolicited();
                if (meta.pl2.has_slots) {
                    meta.drop = DROP_UNSOLICITED_HAS_SLOTS;
                    return;
                }
                if (meta.pl2.covered) {
                    if (meta.pl2.reserved > meta.pl2.drop_threshold) {
                        meta.drop = DROP_UNSOLICITED_OVER_THRESHOLD;
                        return;
                    }
                    standard_metadata.priority = PRIORITY_SCHEDULED;
                } else {
                    demoted.count(DEMOTED_UNCOVERED_UNSOLICITED);
                }
            } else {
                begin_in_lane();
                use_rights();
                if (!meta.pl2.covered && meta.pl2.holder != meta.pl2.half) {
                    demoted.count(DEMOTED_UNCOVERED);
                } else {
                    look_at_start(meta.pl2.claim);
                    if (meta.pl2.covered && !meta.pl2.went_unsolicited &&
                        meta.pl2.ahead + meta.pl2.late <= meta.pl2.early + meta.pl2.late) {
                        standard_metadata.priority = PRIORITY_SCHEDULED;
                    } else if (meta.pl2.ahead > meta.pl2.early && meta.pl2.ahead < HORIZON) {
                        meta.pl2.again = true;
                        resubmit_preserving_field_list(NEXT_PASS);
                        exit;
                    } else {
                        demoted.count(meta.pl2.covered && !meta.pl2.went_unsolicited ? DEMOTED_LATE : DEMOTED_UNCOVERED);
                    }
                }
            }
        }
    }
}

control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets_and_bytes) drops;

    // Unless the controller configures a port's meter, everything is green.
    meter(PORT_COUNT, MeterType.bytes) best_effort_meter;
    meter(PORT_COUNT, MeterType.packets) control_meter;
    Pl2() pl2;

    // Every refusal goes through here: nothing disappears uncounted.
    @hidden action drop(in bit<32> reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    action accept_source(bit<32> slot, bit<32> link, bit<32> cells) {
        // Slots come with the entries, so each port has its own: nothing assumes equal rates.
        meta.pl2.source_slot  = (time_t) slot;
        meta.pl2.source       = link;
        meta.pl2.source_cells = cells;
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

    action forward(port_t port, bit<32> slot, bit<32> drop_threshold, bit<32> link, bit<32> cells) {
        standard_metadata.egress_spec = port;
        meta.pl2.destination_slot     = (time_t) slot;
        meta.pl2.drop_threshold       = (time_t) drop_threshold;
        meta.pl2.destination          = link;
        meta.pl2.destination_cells    = cells;
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
        meta.drop                  = DROP_NONE;

        // Broadcast or multicast.
        bool to_group = hdr.ethernet.dstAddr[40:40] == 1;

        // Frames from the controller or the switch to a protocol skip the source guard and need no destination.
        if (!(hdr.pl2_management.isValid() && hdr.packet_out.isValid())) {
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

            // A reservation's fields are checked before they reach a register.
            if (hdr.pl2_management.isValid()) {
                drop(DROP_MANAGEMENT_FROM_HOST);
            }
            if (hdr.pl2_control.isValid()) {
                // Once per frame, in its first pass.
                if (!meta.pl2.again) {
                    control_meter.execute_meter((bit<32>) standard_metadata.ingress_port, color);
                    if (color == V1MODEL_METER_COLOR_RED) {
                        drop(DROP_CONTROL_METER);
                    }
                }
                if (hdr.pl2_control.version != PL2_VERSION) {
                    drop(DROP_BAD_VERSION);
                }
                if (hdr.pl2_control.kind != PL2_RSV) {
                    drop(DROP_BAD_KIND);
                }
                // A clock advances with time: there is nothing to give back.
                if (hdr.pl2_control.demand == 0 || hdr.pl2_control.demand > PL2_K) {
                    drop(DROP_BAD_DEMAND);
                }
                if (hdr.pl2_control.cell >= PL2_CELLS) {
                    drop(DROP_BAD_LANE);
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
        }

        pl2.apply(hdr, meta, standard_metadata);
        if (meta.drop != DROP_NONE) {
            drop(meta.drop);
        }
        if (standard_metadata.priority == PRIORITY_BEST_EFFORT) {
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
