// pl2_counter: the switch of rack "pl2-incast".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it PL2 reservations: a host asks for slots with an RSV, the switch answers with a GRT that
// says how far its own port and the destination's are reserved, the host sends when both are free. Only
// what was reserved, and comes in its time, gets the class that is free of queues.
// Mode `counter`: each port counts reserved slots, up with reservations, down with scheduled frames.
//
// Generated from a rack description by p4rack 0.1.0: change the description, not this file.

#include <core.p4>
#include <tna.p4>

typedef bit<9>  port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512;     // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;       // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_PL2  = 0x88B5;

// Queues, served in strict order, 7 first.
const QueueId_t PRIORITY_CONTROL     = 7;
const QueueId_t PRIORITY_SCHEDULED   = 5;
const QueueId_t PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<8>  DROP_MALFORMED                  = 0;  // cut short within a header
const bit<8>  DROP_SPOOFED                    = 1;  // source address is not the port's own host's
const bit<8>  DROP_UNKNOWN_DESTINATION        = 2;  // no host has this address
const bit<8>  DROP_SAME_PORT                  = 3;  // the destination is the sender
const bit<8>  DROP_BEST_EFFORT_METER          = 4;  // more best effort than the port may send
const bit<8>  DROP_CONTROL_METER              = 5;  // more control frames than the port may send
const bit<8>  DROP_BAD_VERSION                = 6;  // PL2 of another version
const bit<8>  DROP_BAD_KIND                   = 7;  // a PL2 kind that hosts don't send, or that doesn't exist
const bit<8>  DROP_BAD_DEMAND                 = 8;  // asks for no slots, or for more than K
const bit<8>  DROP_BAD_LANE                   = 9;  // names a lane that the rack does not have
const bit<8>  DROP_UNSOLICITED_OVER_THRESHOLD = 10; // unsolicited while more than T is reserved
const bit<8>  DROP_MANAGEMENT_FROM_HOST       = 11; // management from a port other than the controller's
const bit<8>  DROP_BAD_TARGET                 = 12; // management of a register that doesn't exist
const bit<8>  DROP_BAD_INDEX                  = 13; // management of a port that doesn't exist
const bit<8>  DROP_UNSOLICITED_HAS_SLOTS      = 14; // unsolicited though its waits are longer than t: it comes again in its slots
const bit<32> DROP_REASONS                    = 15; // how many there are
const bit<8>  DROP_NONE = 255; // it is not dropped

// What PL2's frames start with: the version and one of the kinds.
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

const bit<8>  PL2_K   = 4;        // most slots in one reservation
const bit<12> PL2_VID = 100;      // VLAN of frames whose reservation is in a pair's cell 0; the next ones follow
const bit<32> PL2_T = 15; // waits up to which a burst goes unsolicited (t)
const bit<32> PL2_DROP_THRESHOLD = 120; // slots reserved at which unsolicited frames are dropped (T)

// Reservations are kept in cells, one for each half of each lane of a (source, destination) pair.
const bit<8>  PL2_CELLS  = 2;      // of a pair
const bit<32> CELL_COUNT = 128; // of all, the controller among the sources
const bit<32> LANE_COUNT = 64;
const bit<8>  HARD       = 4; // and that frames don't free it
const bit<32> HAS_SLOTS        = 0xFFFFFFFF;  // of a cell's rights_unsolicited: its waits are longer than t

// Why a frame does not get the class that it claims: index into the counter `demoted`.
const bit<8>  DEMOTED_UNCOVERED             = 0;  // its reservation has nothing left for it
const bit<8>  DEMOTED_UNCOVERED_UNSOLICITED = 1;  // unsolicited beyond what was asked for
const bit<8>  DEMOTED_EARLY                 = 2;  // long before its reservation begins
const bit<8>  DEMOTED_LATE                  = 3;  // long after its reservation
const bit<32> DEMOTED_REASONS               = 4;  // how many there are

// Why an RSV is answered "not now": index into the counter `refused`.
const bit<8>  REFUSED_LANE     = 0;  // the lane's reservation has not begun
const bit<32> REFUSED_REASONS  = 2;  // how many there are
const bit<32> PL2_NOT_NOW = 0xFFFFFFFF; // both waits of such a grant

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds, without the lowest of them: all times are even.
typedef bit<32> time_t;

// Differences from here up mean a time in the past (see the registers).
const bit<32> HORIZON = 32w1 << 23;

// Times are even: what is to be one loses its lowest bit.
const bit<32> TIME_EVEN = 0xFFFFFFFE;

const ResubmitType_t RESUBMIT = 1; // of frames that make another pass

typedef bit<16> cell_t; // the number of a cell, and of a lane
typedef bit<15> lane_t;

// What a frame asks of the registers.
const bit<8> OP_NONE        = 0;
const bit<8> OP_RESERVE     = 1; // an RSV
const bit<8> OP_OCCUPIED    = 2; // an RSV whose lane is held
const bit<8> OP_CLAIM       = 3; // a frame in its slots
const bit<8> OP_EARLY       = 4; // one that came before them, in its second pass
const bit<8> OP_UNSOLICITED = 5; // a frame before its grant
const bit<8> OP_READ_IN     = 6; // the controller's
const bit<8> OP_READ_OUT    = 7;
const bit<8> OP_WRITE_IN    = 8;
const bit<8> OP_WRITE_OUT   = 9;
const bit<8> OP_FORGET      = 10;
const bit<8> OP_ENDED       = 11; // an RSV that gives back what its lane's other half holds

// What a pass leaves for the next one.
const bit<8> PASS_AGAIN = 1; // an RSV's lane has begun; a data frame came too early
const bit<8> PASS_ENDED = 2; // an RSV's lane was held by its other half, and has begun

const bit<8> DEMOTED_NONE = 255; // it gets the class that it claims

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
    bit<4>  version;     // 1
    bit<4>  kind;        // RSV, GRT or NOTIFY
    bit<8>  demand;      // slots asked for, 1 to K; 0 gives back what the cell still holds (counter mode)
    bit<8>  cell;        // where the switch keeps this reservation, among the pair's: 2 × lane + half
    bit<1>  unsolicited; // 1: its burst follows at once, unsolicited; it has its slots only if the waits are longer than t
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

struct metadata_t {
    bit<8>  op;                // what the frame asks of the registers
    bit<1>  claims;            // whether its VLAN is one of a reservation
    time_t  now;               // when it came
    bit<32> source;            // where the source's reservations are kept
    bit<32> destination;       // where the destination's are
    cell_t  cell;              // the cell that it names, among its pair's
    cell_t  source_cells;      // the source's first cell
    cell_t  destination_cells; // the destination's among them
    cell_t  claim;             // the cell of the reservation that the frame is or claims
    bit<8>  half;              // 1 or 2: which half of its lane this is
    bit<8>  hard_half;         // the same, locked for frames; or once more the same
    bit<8>  holder;            // what the lane's lock said
    bit<32> left;              // what the cell held
    bit<32> right;             // what a reservation gives a right to
    bit<32> unsolicited;       // what of it may go unsolicited
    bit<32> send_wait;         // how far the source is reserved
    bit<32> recv_wait;         // how far the destination is
    time_t  early_in;          // how much before its start a burst may come, for the source's link, and one more
    time_t  early;             // for both
    time_t  late_in;           // how much after
    time_t  late;
    time_t  start;             // when a reservation begins; in bit 0 whether its burst went unsolicited
    time_t  ahead;             // how far ahead that is
    time_t  until_early;       // below 0: it comes too early
    time_t  until_late;        // below 0: too late
    bit<32> slack_in;          // below 0: the source's wait is longer than t
    bit<32> slack_out;         // the destination's
    bit<32> slack;             // below 0: more than T is reserved
    bit<8>  demoted;           // why the frame does not get the class that it claims
    bit<8> drop;    // why the frame is dropped
    bit<1> steered; // whether it goes where the controller says, or back to it
    bit<1> known;   // whether its destination is known
    bit<8> pass; // what the pass before left for this one; 0 in the first
    bit<8>  taker;     // which half an RSV takes its lane for; 0 for none
    bit<32> taken;     // what is taken off the ports' counters, and what is added besides
    bit<32> added;
    bit<32> wait;      // the longer of both waits
    time_t  wait_time; // the time of so many slots
    bit<32> written;   // what the controller writes
}

// Precedes a frame that makes another pass.
header next_pass_t {
    bit<8> pass;
    bit<56> padding;
}

// What egress sees of a frame: every frame carries it there from ingress.
struct egress_headers_t {
    packet_in_t packet_in;
}

struct egress_metadata_t { }

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        meta.drop    = DROP_NONE;
        meta.steered = 0;
        meta.known   = 0;
        // The controller has no link, and its frames no graces.
        meta.op                = OP_NONE;
        meta.claims            = 0;
        meta.now               = ig_intr_md.ingress_mac_tstamp[31:0];
        meta.source            = 0;
        meta.destination       = 0;
        meta.cell              = 0;
        meta.source_cells      = 0;
        meta.destination_cells = 0;
        meta.claim             = 0;
        meta.half              = 0;
        meta.hard_half         = 0;
        meta.holder            = 0;
        meta.left              = 0;
        meta.right             = 0;
        meta.unsolicited       = 0;
        meta.send_wait         = 0;
        meta.recv_wait         = 0;
        meta.early_in          = 1;
        meta.early             = 0;
        meta.late_in           = 0;
        meta.late              = 0;
        meta.start             = 0;
        meta.ahead             = 0;
        meta.until_early       = 0;
        meta.until_late        = 0;
        meta.slack_in          = 0;
        meta.slack_out         = 0;
        meta.slack             = 0;
        meta.demoted           = DEMOTED_NONE;
        meta.taker             = 0;
        meta.taken             = 0;
        meta.added             = 0;
        meta.wait              = 0;
        meta.wait_time         = 0;
        meta.written           = 0;
        transition select(ig_intr_md.resubmit_flag) {
            0       : parse_first_pass;
            default : parse_next_pass;
        }
    }

    state parse_first_pass {
        packet.advance(PORT_METADATA_SIZE);
        meta.pass = 0;
        transition parse_port;
    }

    state parse_next_pass {
        next_pass_t next_pass;
        packet.extract(next_pass);
        meta.pass = next_pass.pass;
        transition parse_port;
    }

    state parse_port {
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
            ETHERTYPE_PL2  : parse_pl2;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.vid) {
            PL2_VID .. PL2_VID + 1 : parse_reserved;
            default : parse_tagged;
        }
    }

    state parse_tagged {
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_PL2 : parse_pl2;
            default       : accept;
        }
    }

    // The VLANs of reservations: data claims one, control frames travel there too.
    state parse_reserved {
        meta.claims = 1;
        transition parse_tagged;
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

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Resubmit(RESUBMIT) resubmit;

    apply {
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<next_pass_t>({ meta.pass, 0 });
        }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pl2_control);
        packet.emit(hdr.pl2_management);
    }
}

control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;

    // Unless the controller configures a port's meter, everything is green.
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) best_effort_meter;
    Meter<port_t>(PORT_COUNT, MeterType_t.PACKETS) control_meter;

    // Nor does a frame lose the class that it claims uncounted, or an RSV go without a grant.
    Counter<bit<64>, bit<8>>(DEMOTED_REASONS, CounterType_t.PACKETS_AND_BYTES) demoted;
    Counter<bit<64>, bit<8>>(REFUSED_REASONS, CounterType_t.PACKETS) refused;

    // Times come with the entries, so each port has its own: nothing assumes equal rates.
    action accept_source(time_t early, time_t late, cell_t cells) {
        meta.early_in     = early;
        meta.late_in      = late;
        meta.source_cells = cells;
    }

    // A port speaks for its own host only; the controller's packets don't pass here.
    table source_guard {
        key = {
            ig_intr_md.ingress_port : exact;
            hdr.ethernet.srcAddr           : exact;
        }
        actions = {
            accept_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    action forward(port_t port, cell_t cells) {
        ig_tm_md.ucast_egress_port = port;
        meta.destination       = (bit<32>) port;
        meta.destination_cells = cells;
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
    // A burst is sent once. That it goes unsolicited its RSV says, and with both waits up to t it does; with longer ones it
    // has its slots, as any other.
    //
    // The halves alternate: while one still sends, the next reservation waits in the other. Only what liars or faults
    // send takes a second pass.
    //
    // Here a cell is read and written by an ALU of its register, once a pass. What it decides on was computed before, what
    // follows from its answer is computed after, with subtractions whose signs are looked at.
    Register<bit<8>, lane_t>(LANE_COUNT) lane_lock; // 0: free; 1 or 2: this half's reservation has not begun; HARD: ... for sure
    Register<bit<32>, cell_t>(CELL_COUNT) rights; // frames
    Register<bit<32>, cell_t>(CELL_COUNT) rights_unsolicited; // the same; HAS_SLOTS: it has its slots
    Register<bit<32>, cell_t>(CELL_COUNT) starts; // a time; in bit 0 whether the burst went unsolicited

    // An RSV takes its lane. Occupied, it stays what it is, and `holder` tells by whom.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) take_lane = {
        void apply(inout bit<8> value, out bit<8> before) {
            before = value;
            if (value == 0) {
                value = meta.taker;
            }
        }
    };

    // In its second pass whatever held it.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) seize_lane = {
        void apply(inout bit<8> value, out bit<8> before) {
            before = value;
            value  = meta.half;
        }
    };

    // A half's first scheduled frame frees the lane for the next reservation; the controller does so even if it is locked for
    // frames.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) begin_in_lane = {
        void apply(inout bit<8> value, out bit<8> before) {
            before = value;
            if (value == meta.half || value == meta.hard_half) {
                value = 0;
            }
        }
    };

    // It came too early: its reservation has not begun. Frames free this lane no more. So where passes of other frames come
    // between the two, a host gains at most the reservations that it asks for in this time, once a lane.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) lock_again = {
        void apply(inout bit<8> value, out bit<8> before) {
            before = value;
            if (value == 0) {
                value = meta.hard_half;
            } else {
                value = value | HARD;
            }
        }
    };

    // What was left of the half's last reservation is forfeit.
    RegisterAction<bit<32>, cell_t, bit<32>>(rights) replace_rights = {
        void apply(inout bit<32> frames, out bit<32> before) {
            before = frames;
            frames = meta.right;
        }
    };

    // By frames, each as long as any: their length is known in egress alone, which drops those that are longer than a slot.
    RegisterAction<bit<32>, cell_t, bit<32>>(rights) use_rights = {
        void apply(inout bit<32> frames, out bit<32> before) {
            before = frames;
            if (frames != 0) {
                frames = frames - 1;
            }
        }
    };

    RegisterAction<bit<32>, cell_t, bit<32>>(rights_unsolicited) set_unsolicited = {
        void apply(inout bit<32> frames, out bit<32> before) {
            before = frames;
            frames = meta.unsolicited;
        }
    };

    RegisterAction<bit<32>, cell_t, bit<32>>(rights_unsolicited) use_unsolicited = {
        void apply(inout bit<32> frames, out bit<32> before) {
            before = frames;
            if (frames != 0 && frames != HAS_SLOTS) {
                frames = frames - 1;
            }
        }
    };

    RegisterAction<bit<32>, cell_t, bit<32>>(starts) set_start = {
        void apply(inout bit<32> start, out bit<32> before) {
            before = start;
            start  = meta.start;
        }
    };

    // How far ahead it is, and bit 0 as it was: times are even.
    RegisterAction<bit<32>, cell_t, bit<32>>(starts) look_at_start = {
        void apply(inout bit<32> start, out bit<32> ahead) {
            ahead = start - meta.now;
        }
    };

    // Slots reserved at each port, as a source and as a destination: the sum of `rights` over its cells, always. So what
    // is added here stands there, and only what stands there is taken off.
    Register<bit<32>, bit<32>>(PORT_COUNT) in_reservation;
    Register<bit<32>, bit<32>>(PORT_COUNT) out_reservation;

    // A reservation first gives back what its cell still held, then takes its own: the difference is what is added.
    RegisterAction<bit<32>, bit<32>, bit<32>>(in_reservation) reserve_in = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            if (slots < meta.taken) {
                slots = meta.taken + meta.added;
            } else {
                slots = slots + meta.added;
            }
        }
    };

    // What a frame uses up, or a cell gives back. Saturating, since the controller may write what it likes.
    RegisterAction<bit<32>, bit<32>, bit<32>>(in_reservation) take_off_in = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            slots  = slots |-| meta.taken;
        }
    };

    RegisterAction<bit<32>, bit<32>, bit<32>>(in_reservation) look_at_in = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
        }
    };

    // The controller's write and reset: the value before goes back in the frame.
    RegisterAction<bit<32>, bit<32>, bit<32>>(in_reservation) write_in = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            slots  = meta.written;
        }
    };

    // A reservation first gives back what its cell still held, then takes its own: the difference is what is added.
    RegisterAction<bit<32>, bit<32>, bit<32>>(out_reservation) reserve_out = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            if (slots < meta.taken) {
                slots = meta.taken + meta.added;
            } else {
                slots = slots + meta.added;
            }
        }
    };

    // What a frame uses up, or a cell gives back. Saturating, since the controller may write what it likes.
    RegisterAction<bit<32>, bit<32>, bit<32>>(out_reservation) take_off_out = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            slots  = slots |-| meta.taken;
        }
    };

    RegisterAction<bit<32>, bit<32>, bit<32>>(out_reservation) look_at_out = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
        }
    };

    // The controller's write and reset: the value before goes back in the frame.
    RegisterAction<bit<32>, bit<32>, bit<32>>(out_reservation) write_out = {
        void apply(inout bit<32> slots, out bit<32> before) {
            before = slots;
            slots  = meta.written;
        }
    };

    // The time of the slots before a reservation: a target that does not multiply looks it up. Longer waits than there are
    // lanes for are the controller's.
    action take_wait(time_t time) {
        meta.wait_time = time;
    }

    table waits {
        key = {
            meta.wait : exact;
        }
        actions = {
            take_wait;
        }
        const default_action = take_wait(HORIZON - 2);
        size = 1024;
    }

    action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
        ig_tm_md.qid = PRIORITY_CONTROL;
    }

    // The RSV itself goes back as the GRT, with both replies filled in: its source address says
    // which destination it grants.
    action grant() {
        turn_around();
        hdr.pl2_control.kind = PL2_GRT;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    action reply_to_controller() {
        turn_around();
        hdr.pl2_management.kind = PL2_MGMT_REPLY;
        ig_tm_md.ucast_egress_port = CPU_PORT;
    }

    action locate() {
        meta.claim = meta.source_cells + meta.destination_cells;
        meta.early = meta.early_in;
        meta.late  = meta.late_in;
    }

    // VLANs begin with the pair's cell 0.
    action name_cell() {
        meta.cell = meta.cell - (cell_t) PL2_VID;
    }

    action claim_cell() {
        meta.claim = meta.claim + meta.cell;
    }

    action find_other_half() {
        meta.claim = meta.claim ^ 1;
    }

    // Differences, of which only the signs are looked at.
    action weigh_start() {
        meta.until_early = meta.early - meta.ahead;
        meta.until_late  = meta.late + meta.ahead;
    }

    action weigh_waits() {
        meta.slack_in  = PL2_T - meta.send_wait;
        meta.slack_out = PL2_T - meta.recv_wait;
    }

    action weigh_threshold() {
        meta.slack = PL2_DROP_THRESHOLD - meta.recv_wait;
    }

    // Every refusal ends here: nothing disappears uncounted.
    action count_drop() {
        drops.count(meta.drop);
        ig_dprsr_md.drop_ctl = 1;
    }

    apply {
        bit<8> color = MeterColor_t.GREEN;

        // Goes with the frame to egress, and on to the controller alone.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) ig_intr_md.ingress_port;

        ig_tm_md.qid = PRIORITY_BEST_EFFORT;
        meta.now          = meta.now & TIME_EVEN;
        meta.source       = (bit<32>) ig_intr_md.ingress_port;
        if (hdr.pl2_control.isValid()) {
            meta.cell = (cell_t) hdr.pl2_control.cell;
        } else if (hdr.pl2_management.isValid()) {
            meta.cell = (cell_t) hdr.pl2_management.cell;
        } else {
            meta.cell = (cell_t) hdr.vlan.vid;
        }

        // Broadcast or multicast.
        bool to_group = hdr.ethernet.dstAddr[40:40] == 1;
        if (!to_group) {
            if (l2_forward.apply().hit) {
                meta.known = 1;
            }
        }

        if (ig_prsr_md.parser_err != 0) {
            meta.drop = DROP_MALFORMED;
        } else if (hdr.packet_out.isValid()) {
            if (hdr.pl2_management.isValid()) {
                meta.steered = 1;
                meta.source  = (bit<32>) hdr.pl2_management.index;
                if ((bit<32>) hdr.pl2_management.index >= PORT_COUNT) {
                    meta.drop = DROP_BAD_INDEX;
                } else if (hdr.pl2_management.kind == PL2_MGMT_FORGET) {
                    meta.destination       = (bit<32>) hdr.pl2_management.destination;
                    meta.destination_cells = 0;
                    meta.op                = OP_FORGET;
                    if ((bit<32>) hdr.pl2_management.destination >= PORT_COUNT ||
                        hdr.pl2_management.cell[31:7] != 0) {
                        meta.drop = DROP_BAD_INDEX;
                    }
                } else {
                    meta.destination = (bit<32>) hdr.pl2_management.index;
                    if (hdr.pl2_management.kind == PL2_MGMT_WRITE) {
                        meta.written = hdr.pl2_management.value;
                    }
                    if (hdr.pl2_management.target == PL2_TARGET_IN) {
                        if (hdr.pl2_management.kind == PL2_MGMT_READ) {
                            meta.op = OP_READ_IN;
                        } else {
                            meta.op = OP_WRITE_IN;
                        }
                    } else if (hdr.pl2_management.target == PL2_TARGET_OUT) {
                        if (hdr.pl2_management.kind == PL2_MGMT_READ) {
                            meta.op = OP_READ_OUT;
                        } else {
                            meta.op = OP_WRITE_OUT;
                        }
                    } else {
                        meta.drop = DROP_BAD_TARGET;
                    }
                }
            } else
            if (hdr.packet_out.egress_port != 0) {
                meta.steered = 1;
                if (hdr.packet_out.egress_port[15:9] != 0) {
                    meta.drop = DROP_UNKNOWN_DESTINATION;
                }
                ig_tm_md.ucast_egress_port = (port_t) hdr.packet_out.egress_port;
            }
        } else if (source_guard.apply().miss) {
            meta.drop = DROP_SPOOFED;
        }

        if (meta.drop == DROP_NONE && meta.steered == 0) {
            // What a reservation may say is checked before it reaches a register.
            if (hdr.pl2_management.isValid()) {
                meta.drop = DROP_MANAGEMENT_FROM_HOST;
            } else if (hdr.pl2_control.isValid()) {
                // Once a frame, whatever passes it makes.
                if (meta.pass == 0) {
                    color = control_meter.execute(ig_intr_md.ingress_port);
                }
                meta.op = OP_RESERVE;
                if (color == MeterColor_t.RED) {
                    meta.drop = DROP_CONTROL_METER;
                } else if (hdr.pl2_control.version != PL2_VERSION) {
                    meta.drop = DROP_BAD_VERSION;
                } else if (hdr.pl2_control.kind != PL2_RSV) {
                    meta.drop = DROP_BAD_KIND;
                // Demand 0 is a bare return of slots.
                } else if (hdr.pl2_control.demand > PL2_K) {
                    meta.drop = DROP_BAD_DEMAND;
                } else if (hdr.pl2_control.cell >= PL2_CELLS) {
                    meta.drop = DROP_BAD_LANE;
                } else if (to_group) {
                    meta.drop = DROP_UNKNOWN_DESTINATION;
                }
            } else if (meta.claims == 1 && !to_group) {
                if (meta.pass != 0) {
                    meta.op = OP_EARLY;
                } else if (hdr.vlan.dei == 1) {
                    // Sent before its grant, welcome only while little is reserved.
                    meta.op = OP_UNSOLICITED;
                } else {
                    meta.op = OP_CLAIM;
                }
            }
            if (meta.drop != DROP_NONE) {
                // Refused above.
            } else if (to_group) {
                ig_tm_md.mcast_grp_a = RACK_GROUP;
            } else if (meta.known == 0) {
                meta.drop = DROP_UNKNOWN_DESTINATION;
            } else if (ig_tm_md.ucast_egress_port == ig_intr_md.ingress_port) {
                meta.drop = DROP_SAME_PORT;
            }
        }

        if (meta.drop == DROP_NONE && meta.op != OP_NONE) {
            locate();
            if (meta.op == OP_CLAIM || meta.op == OP_EARLY || meta.op == OP_UNSOLICITED) {
                name_cell();
            }
            claim_cell();
            // Which half of its lane that is.
            if (meta.cell[0:0] == 0) {
                meta.half = 1;
            } else {
                meta.half = 2;
            }
            meta.right = 0;
            if (meta.op == OP_RESERVE) {
                meta.right = (bit<32>) hdr.pl2_control.demand;
            }
            if (meta.pass == PASS_ENDED) {
                // The lane's other half never sent: what it holds is given back, and then looked at the RSV again.
                meta.op    = OP_ENDED;
                find_other_half();
                meta.right = 0;
            }
            meta.hard_half = meta.half;
            if (meta.op == OP_EARLY || meta.op == OP_FORGET || meta.op == OP_RESERVE) {
                meta.hard_half = meta.half | HARD;
            }
            // Demand 0 takes no lane.
            meta.taker = meta.half;
            if (hdr.pl2_control.demand == 0) {
                meta.taker = 0;
            }

            // lane_lock
            if (meta.op == OP_RESERVE) {
                if (meta.pass == 0) {
                    meta.holder = take_lane.execute(meta.claim[15:1]);
                    // Demand 0 waits for its own half's reservation to begin.
                    if (meta.holder != 0 && (hdr.pl2_control.demand != 0 || meta.holder[1:0] == meta.half[1:0])) {
                        meta.op = OP_OCCUPIED;
                    }
                } else if (hdr.pl2_control.demand == 0) {
                    begin_in_lane.execute(meta.claim[15:1]);
                } else {
                    seize_lane.execute(meta.claim[15:1]);
                }
            } else if (meta.op == OP_CLAIM || meta.op == OP_FORGET) {
                meta.holder = begin_in_lane.execute(meta.claim[15:1]);
            } else if (meta.op == OP_EARLY) {
                lock_again.execute(meta.claim[15:1]);
            }

            // rights
            if (meta.op == OP_CLAIM) {
                meta.left = use_rights.execute(meta.claim);
            } else if (meta.op == OP_RESERVE || meta.op == OP_FORGET || meta.op == OP_ENDED) {
                meta.left = replace_rights.execute(meta.claim);
            }

            // What is taken off: a frame's slot, or what a cell held.
            meta.taken = meta.left;
            meta.added = meta.right - meta.left;
            if (meta.op == OP_CLAIM && meta.left != 0) {
                meta.taken = 1;
            }

            // in_reservation, out_reservation
            if (meta.op == OP_RESERVE) {
                meta.send_wait = reserve_in.execute(meta.source);
                meta.recv_wait = reserve_out.execute(meta.destination);
            } else if (meta.op == OP_CLAIM || meta.op == OP_ENDED || meta.op == OP_FORGET) {
                meta.send_wait = take_off_in.execute(meta.source);
                meta.recv_wait = take_off_out.execute(meta.destination);
            } else if (meta.op == OP_READ_IN) {
                meta.send_wait = look_at_in.execute(meta.source);
            } else if (meta.op == OP_WRITE_IN) {
                meta.send_wait = write_in.execute(meta.source);
            } else if (meta.op == OP_UNSOLICITED || meta.op == OP_READ_OUT) {
                meta.recv_wait = look_at_out.execute(meta.destination);
                weigh_threshold();
            } else if (meta.op == OP_WRITE_OUT) {
                meta.recv_wait = write_out.execute(meta.destination);
            }

            // Both waits are known: when the burst may begin, once both ports are free, and what it may send unsolicited.
            meta.unsolicited = 0;
            if (meta.op == OP_RESERVE) {
                meta.send_wait = meta.send_wait |-| meta.left;
                meta.recv_wait = meta.recv_wait |-| meta.left;
                meta.wait      = max(meta.send_wait, meta.recv_wait);
                weigh_waits();
                waits.apply();
                meta.start     = meta.now + meta.wait_time;
                if (hdr.pl2_control.unsolicited == 1) {
                    if (meta.slack_in[31:31] == 0 && meta.slack_out[31:31] == 0) {
                        meta.unsolicited = meta.right;
                        meta.start       = meta.start | 1;
                    } else {
                        meta.unsolicited = HAS_SLOTS;
                    }
                }
            }

            // rights_unsolicited
            if (meta.op == OP_UNSOLICITED) {
                meta.left = use_unsolicited.execute(meta.claim);
            } else if (meta.op == OP_RESERVE || meta.op == OP_FORGET || meta.op == OP_ENDED) {
                set_unsolicited.execute(meta.claim);
            }

            // starts
            if (meta.op == OP_RESERVE) {
                set_start.execute(meta.claim);
            } else {
                if (meta.op == OP_OCCUPIED) {
                    // Of the half that holds the lane.
                    if (meta.holder[1:1] == 1) {
                        meta.claim = meta.claim | 1;
                    } else {
                        meta.claim = meta.claim & 0xFFFE;
                    }
                }
                if (meta.op == OP_OCCUPIED || meta.op == OP_CLAIM) {
                    meta.ahead       = look_at_start.execute(meta.claim);
                    weigh_start();
                }
            }

            // What follows for the frame.
            if (meta.op == OP_RESERVE) {
                hdr.pl2_control.sendWait = meta.send_wait;
                hdr.pl2_control.recvWait = meta.recv_wait;
                grant();
                if (hdr.pl2_control.demand == 0) {
                    ig_tm_md.qid = PRIORITY_BEST_EFFORT;
                }
            } else if (meta.op == OP_OCCUPIED) {
                if (meta.until_early[31:31] == 1 && meta.ahead[31:23] == 0) {
                    // What grants nothing is best effort, metered as any other: whoever asks without end would fill the way
                    // to itself, and then the buffer that all share.
                    refused.count(REFUSED_LANE);
                    hdr.pl2_control.sendWait = PL2_NOT_NOW;
                    hdr.pl2_control.recvWait = PL2_NOT_NOW;
                    grant();
                    ig_tm_md.qid = PRIORITY_BEST_EFFORT;
                } else {
                    // The lane's reservation has begun unseen: nothing was sent in its slots.
                    if (meta.holder[1:0] != meta.half[1:0]) {
                        meta.pass = PASS_ENDED; ig_dprsr_md.resubmit_type = RESUBMIT;
                    } else {
                        meta.pass = PASS_AGAIN; ig_dprsr_md.resubmit_type = RESUBMIT;
                    }
                    meta.steered = 1;
                }
            } else if (meta.op == OP_CLAIM) {
                if (meta.left == 0 && meta.holder != meta.half) {
                    meta.demoted = DEMOTED_UNCOVERED;
                } else if (meta.left != 0 && meta.ahead[0:0] == 0 &&
                    meta.until_early[31:31] == 0 && meta.until_late[31:31] == 0) {
                    ig_tm_md.qid = PRIORITY_SCHEDULED;
                } else if (meta.until_early[31:31] == 1 && meta.ahead[31:23] == 0) {
                    meta.pass = PASS_AGAIN; ig_dprsr_md.resubmit_type = RESUBMIT;
                    meta.steered = 1;
                } else if (meta.left != 0 && meta.ahead[0:0] == 0) {
                    meta.demoted = DEMOTED_LATE;
                } else {
                    meta.demoted = DEMOTED_UNCOVERED;
                }
            } else if (meta.op == OP_EARLY) {
                meta.demoted = DEMOTED_EARLY;
            } else if (meta.op == OP_UNSOLICITED) {
                if (meta.left == HAS_SLOTS) {
                    meta.drop = DROP_UNSOLICITED_HAS_SLOTS;
                } else if (meta.left == 0) {
                    meta.demoted = DEMOTED_UNCOVERED_UNSOLICITED;
                } else if (meta.slack[31:31] == 1) {
                    meta.drop = DROP_UNSOLICITED_OVER_THRESHOLD;
                } else {
                    ig_tm_md.qid = PRIORITY_SCHEDULED;
                }
            } else if (meta.op == OP_ENDED) {
                meta.pass = PASS_AGAIN; ig_dprsr_md.resubmit_type = RESUBMIT;
                meta.steered = 1;
            } else {
                if (meta.op == OP_FORGET) {
                    hdr.pl2_management.value = meta.left;
                } else if (meta.op == OP_READ_IN || meta.op == OP_WRITE_IN) {
                    hdr.pl2_management.value = meta.send_wait;
                } else {
                    hdr.pl2_management.value = meta.recv_wait;
                }
                reply_to_controller();
            }
            if (meta.demoted != DEMOTED_NONE) {
                demoted.count(meta.demoted);
            }
        }

        if (meta.drop == DROP_NONE && meta.steered == 0 && ig_tm_md.qid == PRIORITY_BEST_EFFORT) {
            color = best_effort_meter.execute(ig_intr_md.ingress_port);
            if (color == MeterColor_t.RED) {
                meta.drop = DROP_BEST_EFFORT_METER;
            }
        }
        if (meta.drop != DROP_NONE) {
            count_drop();
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
    // Frames that came as scheduled, and are longer than their slot.
    Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) too_long;

    bit<16> room = 0;

    action weigh_length() {
        room = 1526 + 6 - eg_intr_md.pkt_length;
    }

    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
        // Its length is known here alone: with FCS, and what it carries from ingress.
        weigh_length();
        if (eg_intr_md.egress_qid == PRIORITY_SCHEDULED && room[15:15] == 1) {
            too_long.count(0);
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

@pkginfo(name="pl2_counter", version="0.1.0")
Switch(pipe) main;
