// pl2_clock: the switch of rack "pl2-pipes".
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
#include <tna.p4>

typedef bit<9> port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_PL2  = 0x88B5;

// Queues, served in strict order, 7 first.
const QueueId_t PRIORITY_CONTROL     = 7;
const QueueId_t PRIORITY_SCHEDULED   = 5;
const QueueId_t PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<8>  DROP_MALFORMED                  = 0;   // cut short within a header
const bit<8>  DROP_SPOOFED                    = 1;   // source address is not the port's own host's
const bit<8>  DROP_UNKNOWN_DESTINATION        = 2;   // no host has this address
const bit<8>  DROP_SAME_PORT                  = 3;   // the destination is the sender
const bit<8>  DROP_BEST_EFFORT_METER          = 4;   // more best effort than the port may send
const bit<8>  DROP_CONTROL_METER              = 5;   // more control frames than the port may send
const bit<8>  DROP_BAD_VERSION                = 6;   // PL2 of another version
const bit<8>  DROP_BAD_KIND                   = 7;   // a PL2 kind that hosts don't send, or that doesn't exist
const bit<8>  DROP_BAD_DEMAND                 = 8;   // asks for no slots, or for more than K
const bit<8>  DROP_BAD_LANE                   = 9;   // names a lane that the rack does not have
const bit<8>  DROP_UNSOLICITED_OVER_THRESHOLD = 10;  // unsolicited while more than T is reserved
const bit<8>  DROP_MANAGEMENT_FROM_HOST       = 11;  // management from a port other than the controller's
const bit<8>  DROP_BAD_TARGET                 = 12;  // management of a register that doesn't exist
const bit<8>  DROP_BAD_INDEX                  = 13;  // management of a port that doesn't exist
const bit<8>  DROP_UNSOLICITED_HAS_SLOTS      = 14; // unsolicited though its waits are longer than t: it comes again in its slots
const bit<32> DROP_REASONS                    = 15;  // how many there are
const bit<8>  DROP_NONE                       = 255; // it is not dropped

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds.
typedef bit<32> time_t;

const ResubmitType_t RESUBMIT  = 1;    // of frames that make another pass
const port_t         LOOP_PORT = 68;   // what is sent by it comes back; each pipe has one of this number
const port_t         IN_PIPE   = 0x7F; // the bits of a port's number that are its number in the pipe

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
const bit<8>  PL2_CELLS  = 2;      // of a pair
const bit<32> CELL_COUNT = 128;    // of all, the controller among the sources
const bit<32> LANE_COUNT = 64;
const bit<8>  HELD       = 0x80;   // of a lane's lock, beside the cell: that one holds it
const bit<8>  HARD       = 0xC0;   // and that frames don't free it
const bit<8>  HELD_CELL  = 0x3F;   // which one
const bit<16> HAS_SLOTS  = 0xFFFF; // of a cell's rights_unsolicited: its waits are longer than t
const bit<16> NOT_ASKED  = 0xFFFE; // the same: its burst was to wait for its slots

// Why a frame does not get the class that it claims: index into the counter `demoted`.
const bit<8>  DEMOTED_UNCOVERED             = 0; // its reservation has nothing left for it
const bit<8>  DEMOTED_UNCOVERED_UNSOLICITED = 1; // unsolicited beyond what was asked for
const bit<8>  DEMOTED_EARLY                 = 2; // long before its reservation begins
const bit<8>  DEMOTED_LATE                  = 3; // long after its reservation
const bit<32> DEMOTED_REASONS               = 4; // how many there are

// Why an RSV is answered "not now": index into the counter `refused`.
const bit<8>  REFUSED_LANE    = 0;          // the lane's reservation has not begun
const bit<32> REFUSED_REASONS = 2;          // how many there are
const bit<32> PL2_NOT_NOW     = 0xFFFFFFFF; // both waits of such a grant

// Differences from here up mean a time in the past (see the registers).
const bit<32> HORIZON = 32w1 << 24;

// The start of a reservation while its RSV is in its destination's pipe, from now: nothing begins later.
const bit<32> PENDING = HORIZON - 1;

// By which the controller's frames come back to the pipe of its port.
const port_t CONTROLLER_HOME = 452;

typedef bit<7> cell_t; // the number of a cell, and of a lane
typedef bit<6> lane_t;
typedef bit<16> link_t; // where a port's or a link's reservations are kept
typedef bit<32> wait_t; // a time

// A frame's operation on the registers.
const bit<8> OP_NONE        = 0;
const bit<8> OP_RESERVE     = 1;  // an RSV
const bit<8> OP_OCCUPIED    = 2;  // an RSV whose lane is held
const bit<8> OP_CLAIM       = 3;  // a frame in its slots
const bit<8> OP_DEMOTED     = 4;  // a frame that loses its class, in its second pass
const bit<8> OP_UNSOLICITED = 5;  // a frame before its grant
const bit<8> OP_READ_IN     = 6;  // the controller's
const bit<8> OP_READ_OUT    = 7;
const bit<8> OP_WRITE_IN    = 8;
const bit<8> OP_WRITE_OUT   = 9;
const bit<8> OP_FORGET      = 10;
const bit<8> OP_NOT_NOW     = 11; // an RSV that gets no grant, in its second pass
const bit<8> OP_LEAVE       = 12; // an RSV for a destination in another pipe
const bit<8> OP_VISIT       = 13; // an RSV in its destination's pipe
const bit<8> OP_SETTLE      = 14; // an RSV that is back from there
const bit<8> OP_AWAY        = 15; // the controller's, about registers of another pipe

// Left by a pass for the next one.
const bit<8> PASS_AGAIN   = 1;    // an RSV's lane has begun; a data frame came too early
const bit<8> PASS_NOT_NOW = 2;    // an RSV's lane has not begun
const bit<8> PASS_OUT     = 3;    // the frame is in the pipe of its destination, or of what it is about
const bit<8> PASS_BACK    = 4;    // it is in its source's again
const bit<8> PASS_DEMOTED = 0x80; // a frame loses its class, for the reason beside this bit

// Coverage of a frame.
const bit<8> COVER_NONE  = 0; // nothing
const bit<8> COVER_LANE  = 1; // no slot, but its half holds the lane
const bit<8> COVER_SLOTS = 2; // a slot

// Place of a frame in the window of its reservation's start.
const bit<32> IN_TIME = 0;
const bit<32> EARLY   = ~((32w1 << 24) - 1); // the bits that are 0 if it is early: what is further ahead is past

const bit<16> STANDS = 0x8000; // the bit that is 1 if something stands in rights_unsolicited instead of them

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

// State that a pass leaves for the next one.
header again_t {
    bit<8> pass; // which one it is; 0: the first
}

// A frame's first arrival. With the state that a pass leaves, it precedes a frame that comes back.
header came_t {
    bit<7>  unused;
    port_t  port;
    bit<32> arrived;
}

struct headers_t {
    again_t          again;
    came_t           came;
    packet_in_t      packet_in;
    packet_out_t     packet_out;
    ethernet_t       ethernet;
    vlan_t           vlan;
    pl2_control_t    pl2_control;
    pl2_management_t pl2_management;
}

// State of pl2 while ingress handles a frame.
struct pl2_metadata_t {
    bit<8>  op;          // what the frame asks of the registers
    bit<8>  bad;         // why it is refused, as the parser sees it; 0: it is not
    bit<1>  claims;      // whether its VLAN is one of a reservation
    time_t  now;         // when it came
    link_t  link_in;     // where the source's reservations are kept
    link_t  link_out;    // where the destination's are
    bit<8>  source;      // number of the host that it comes from
    bit<8>  destination; // and of the one that it goes to
    bit<8>  rate_in;     // number of the rate of the source's link; 0: it has none
    bit<8>  rate_out;    // of the destination's
    port_t  home;        // by which it comes to its source's pipe
    port_t  away;        // to its destination's
    port_t  owner;       // a management frame to the pipe of what it is about; 0: it is there
    bit<8>  cell;        // the cell that it names, among its pair's
    bit<8>  half;        // what its half writes into the lane's lock
    bit<8>  hard_half;   // the same, locked for frames; or equal to `half`
    bit<8>  holder;      // what the lane's lock said
    bit<16> right;       // what a reservation gives a right to
    bit<16> left;        // what of it the cell held
    bit<16> standing;    // what stands in rights_unsolicited if the burst does not go unsolicited
    bit<16> unsolicited; // what stood there
    bit<8>  cover;       // what covers the frame
    wait_t  send_wait;   // how far the source is reserved
    wait_t  recv_wait;   // how far the destination is
    bit<8>  demoted;     // why it loses its class
    // Of each side: the latest and the earliest start of a burst that may come now, and how much its reservation's start is
    // behind the one, or before the other. Of an RSV `closes` is what its wait is beyond t, and the sum of both its start; of an
    // unsolicited frame `closes_out` is what is reserved beyond T: the ALU of `starts` reads these two alone.
    time_t  opens_in;
    time_t  closes_in;
    time_t  opens_out;
    time_t  closes_out;
    bit<32> window_in;
    bit<32> window_out;
    time_t  time_in;     // what is reserved from now at the source: by an RSV, or as the controller writes it
    time_t  time_out;    // the same at the destination
    wait_t  limit_in;    // the source's first wait that is longer than t
    wait_t  limit_out;   // the destination's; of an unsolicited frame, longer than T
}

struct metadata_t {
    pl2_metadata_t pl2;
    bit<8>         drop;       // why the frame is dropped
    bit<1>         steered;    // whether it goes where the controller says, or back to it
    bit<8>         known;      // whether its destination is known; a byte, so that it may change beside the next one
    port_t         known_port; // the port of its destination, wherever the frame goes
    bit<8>         accepted;   // whether its source may send it
}

// Precedes a frame that is resubmitted: what a pass leaves, in as many bytes as the device has for it.
header next_pass_t {
    bit<8>  pass;
    bit<56> padding;
}

// A frame as egress parses it: every frame carries packet_in from ingress.
struct egress_headers_t {
    packet_in_t packet_in;
}

struct egress_metadata_t { }

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.drop            = DROP_NONE;
        meta.steered         = 0;
        meta.known           = 0;
        meta.known_port      = 0;
        meta.accepted        = 0;
        meta.pl2.op          = OP_NONE;
        meta.pl2.bad         = 0;
        meta.pl2.claims      = 0;
        meta.pl2.link_in     = 0;
        meta.pl2.link_out    = 0;
        meta.pl2.source      = 0;
        meta.pl2.destination = 0;
        meta.pl2.rate_in     = 0;
        meta.pl2.rate_out    = 0;
        meta.pl2.home        = 0;
        meta.pl2.away        = 0;
        meta.pl2.owner       = 0;
        meta.pl2.cell        = 0;
        meta.pl2.half        = 0;
        meta.pl2.hard_half   = 0;
        meta.pl2.holder      = 0;
        meta.pl2.right       = 0;
        meta.pl2.left        = 0;
        meta.pl2.standing    = NOT_ASKED;
        meta.pl2.unsolicited = 0;
        meta.pl2.cover       = COVER_NONE;
        meta.pl2.demoted     = 0;
        meta.pl2.send_wait   = 0;
        meta.pl2.recv_wait   = 0;
        meta.pl2.opens_in    = 0;
        meta.pl2.closes_in   = 0;
        meta.pl2.opens_out   = 0;
        meta.pl2.closes_out  = 0;
        meta.pl2.window_in   = 0;
        meta.pl2.window_out  = 0;
        meta.pl2.time_in     = 0;
        meta.pl2.time_out    = 0;
        meta.pl2.limit_in    = 0;
        meta.pl2.limit_out   = 0;
        // Each pass reads the device's header itself: the parser can't go back to it from a state that has several ways to it.
        // No host is at this port, so only what this program has sent comes by it.
        transition select(packet.lookahead<ingress_intrinsic_metadata_t>().resubmit_flag,
            packet.lookahead<ingress_intrinsic_metadata_t>().ingress_port) {
            (1, _)                     : parse_next_pass;
            (0, LOOP_PORT &&& IN_PIPE) : parse_later_pass;
            default                    : parse_first_pass;
        }
    }

    state parse_later_pass {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.again);
        packet.extract(hdr.came);
        meta.pl2.now = hdr.came.arrived;
        transition select(hdr.came.port) {
            CPU_PORT : parse_packet_out;
            default  : parse_ethernet;
        }
    }

    state parse_first_pass {
        packet.extract(ig_intr_md);
        hdr.came.setValid();
        hdr.came.unused  = 0;
        hdr.came.port    = ig_intr_md.ingress_port;
        hdr.came.arrived = ig_intr_md.ingress_mac_tstamp[31:0];
        meta.pl2.now     = ig_intr_md.ingress_mac_tstamp[31:0];
        packet.advance(PORT_METADATA_SIZE);
        hdr.again.setValid();
        hdr.again.pass = 0;
        transition parse_port;
    }

    state parse_next_pass {
        packet.extract(ig_intr_md);
        hdr.came.setValid();
        hdr.came.unused  = 0;
        hdr.came.port    = ig_intr_md.ingress_port;
        hdr.came.arrived = ig_intr_md.ingress_mac_tstamp[31:0];
        meta.pl2.now     = ig_intr_md.ingress_mac_tstamp[31:0];
        packet.extract(hdr.again);
        packet.advance(56);
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
            default                : parse_tagged;
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
        meta.pl2.claims = 1;
        transition parse_tagged;
    }

    // A shim concerns only agents: frames with one are ordinary data here. Fields are checked before they reach a register: a
    // valid frame gets an operation, an invalid one a reason.
    state parse_pl2 {
        transition select(packet.lookahead<pl2_start_t>().version, packet.lookahead<pl2_start_t>().kind) {
            (PL2_VERSION, PL2_DATA)        : accept;
            (PL2_VERSION, PL2_RSV)         : parse_request;
            (PL2_VERSION, PL2_MGMT_READ)   : parse_management;
            (PL2_VERSION, PL2_MGMT_WRITE)  : parse_management;
            (PL2_VERSION, PL2_MGMT_RESET)  : parse_management;
            (PL2_VERSION, PL2_MGMT_FORGET) : parse_management;
            (PL2_VERSION, _)               : parse_bad_kind;
            default                        : parse_bad_version;
        }
    }

    // A state extracts the header that it takes fields from: the device can't read it later.
    state parse_management {
        transition select(ig_intr_md.ingress_port, packet.lookahead<pl2_start_t>().kind) {
            (CPU_PORT, PL2_MGMT_READ)  : parse_read;
            (CPU_PORT, PL2_MGMT_WRITE) : parse_write;
            (CPU_PORT, PL2_MGMT_RESET) : parse_reset;
            (CPU_PORT, _)              : parse_forget;
            // What comes back is the controller's.
            (LOOP_PORT &&& IN_PIPE, PL2_MGMT_READ)  : parse_read;
            (LOOP_PORT &&& IN_PIPE, PL2_MGMT_WRITE) : parse_write;
            (LOOP_PORT &&& IN_PIPE, PL2_MGMT_RESET) : parse_reset;
            (LOOP_PORT &&& IN_PIPE, _)              : parse_forget;
            default                                 : parse_management_from_host;
        }
    }

    state parse_management_from_host {
        packet.extract(hdr.pl2_management);
        meta.pl2.bad = DROP_MANAGEMENT_FROM_HOST;
        transition accept;
    }

    state parse_bad_version {
        packet.extract(hdr.pl2_control);
        meta.pl2.bad = DROP_BAD_VERSION;
        transition accept;
    }

    state parse_bad_kind {
        packet.extract(hdr.pl2_control);
        meta.pl2.bad = DROP_BAD_KIND;
        transition accept;
    }

    state parse_request {
        packet.extract(hdr.pl2_control);
        transition select(hdr.pl2_control.demand) {
            // A clock advances with time: there is nothing to give back.
            1 .. PL2_K : parse_reservation;
            default    : parse_bad_demand;
        }
    }

    state parse_bad_demand {
        meta.pl2.bad = DROP_BAD_DEMAND;
        transition accept;
    }

    state parse_reservation {
        transition select(hdr.pl2_control.cell) {
            0 .. PL2_CELLS - 1 : parse_good_reservation;
            default            : parse_bad_lane;
        }
    }

    state parse_good_reservation {
        meta.pl2.op = OP_RESERVE;
        transition parse_asked;
    }

    // The value of rights_unsolicited for a burst that may not go unsolicited.
    state parse_asked {
        transition select(hdr.pl2_control.unsolicited) {
            1       : parse_standing;
            default : accept;
        }
    }

    state parse_standing {
        meta.pl2.standing = HAS_SLOTS;
        transition accept;
    }

    state parse_bad_lane {
        meta.pl2.bad = DROP_BAD_LANE;
        transition accept;
    }

    state parse_read {
        packet.extract(hdr.pl2_management);
        meta.pl2.link_in  = hdr.pl2_management.index;
        meta.pl2.link_out = hdr.pl2_management.index;
        transition select(hdr.pl2_management.index, hdr.pl2_management.target) {
            (0 .. 511, PL2_TARGET_IN)  : parse_read_in;
            (0 .. 511, PL2_TARGET_OUT) : parse_read_out;
            (0 .. 511, _)              : parse_bad_target;
            default                    : parse_bad_index;
        }
    }

    state parse_reset {
        packet.extract(hdr.pl2_management);
        meta.pl2.link_in  = hdr.pl2_management.index;
        meta.pl2.link_out = hdr.pl2_management.index;
        transition parse_written;
    }

    state parse_write {
        packet.extract(hdr.pl2_management);
        meta.pl2.link_in  = hdr.pl2_management.index;
        meta.pl2.link_out = hdr.pl2_management.index;
        meta.pl2.time_in  = hdr.pl2_management.value;
        meta.pl2.time_out = hdr.pl2_management.value;
        transition parse_written;
    }

    state parse_written {
        transition select(hdr.pl2_management.index, hdr.pl2_management.target) {
            (0 .. 511, PL2_TARGET_IN)  : parse_write_in;
            (0 .. 511, PL2_TARGET_OUT) : parse_write_out;
            (0 .. 511, _)              : parse_bad_target;
            default                    : parse_bad_index;
        }
    }

    state parse_read_in {
        meta.pl2.op  = OP_READ_IN;
        meta.steered = 1;
        transition accept;
    }

    state parse_read_out {
        meta.pl2.op  = OP_READ_OUT;
        meta.steered = 1;
        transition accept;
    }

    state parse_write_in {
        meta.pl2.op  = OP_WRITE_IN;
        meta.steered = 1;
        transition accept;
    }

    state parse_write_out {
        meta.pl2.op  = OP_WRITE_OUT;
        meta.steered = 1;
        transition accept;
    }

    // The number of a cell among all pairs' is that of the source, of the destination, and of the cell, a byte each.
    state parse_forget {
        packet.extract(hdr.pl2_management);
        meta.pl2.link_in     = hdr.pl2_management.index;
        meta.pl2.link_out    = hdr.pl2_management.destination;
        meta.pl2.source      = hdr.pl2_management.cell[23:16];
        meta.pl2.destination = hdr.pl2_management.cell[15:8];
        transition select(hdr.pl2_management.index) {
            0 .. 511 : parse_forget_destination;
            default  : parse_bad_index;
        }
    }

    state parse_forget_destination {
        transition select(hdr.pl2_management.destination, hdr.pl2_management.cell[31:24]) {
            (0 .. 511, 0) : parse_forget_cell;
            default       : parse_bad_index;
        }
    }

    state parse_forget_cell {
        transition select(hdr.pl2_management.cell[23:16], hdr.pl2_management.cell[15:8], hdr.pl2_management.cell[7:0]) {
            (0 .. 6, 0 .. 5, 0 .. PL2_CELLS - 1) : parse_forgotten;
            default                              : parse_bad_index;
        }
    }

    state parse_forgotten {
        meta.pl2.op  = OP_FORGET;
        meta.steered = 1;
        transition accept;
    }

    state parse_bad_target {
        meta.pl2.bad = DROP_BAD_TARGET;
        transition accept;
    }

    state parse_bad_index {
        meta.pl2.bad = DROP_BAD_INDEX;
        transition accept;
    }
}

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Resubmit(RESUBMIT) resubmit;

    apply {
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<next_pass_t>({ hdr.again.pass, 0 });
        }
        packet.emit(hdr.again);
        packet.emit(hdr.came);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pl2_control);
        packet.emit(hdr.pl2_management);
    }
}

// Hosts are in several pipes, and each pipe has registers of its own. Those of a source's lanes are in the pipe of its port, and
// so is its in_reservation; out_reservation is in the pipe of the destination's port. An RSV between two pipes visits both:
//
//     the source's pipe          the destination's pipe     the source's pipe
//     pass 0                     PASS_OUT                   PASS_BACK
//     +--------------------+     +--------------------+     +--------------------+
//     | lane, rights,      | --> | out_reservation    | --> | when it may begin  | --> GRT
//     | in_reservation     |     | by what is there   |     | at its destination |
//     +--------------------+     +--------------------+     +--------------------+
//                            away                       home
//
// Each arrow between pipes is a port that comes back, in the pipe that it leads to. On it the frame, an RSV still, with the waits
// known so far in its own fields, has the headers of its passes in front:
//
//      0        8        15        24                         56 bits
//     +--------+--------+---------+--------------------------+------------------+
//     | pass   | unused | port    | arrived                  | packet_out, RSV  |
//     +--------+--------+---------+--------------------------+------------------+
//
// Its data frames cross by the traffic manager alone. A burst to another pipe always has slots: the RSV's lane would not know in
// time whether both waits are up to t.
control Pl2Pipes(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    action go_to(port_t owner) {
        meta.pl2.owner = owner;
    }

    // Links whose registers are not in the pipe of the controller's port: where its management frames have to go.
    table owners {
        key = {
            hdr.pl2_management.index : exact;
        }
        actions = {
            go_to;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        owners.apply();
    }
}

// A frame's access to its lane, in the stage of refusals: a refused frame makes none.
control Pl2Lanes(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
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
    //
    // Here an ALU of its register reads and writes a cell, once per pass. Its inputs are computed before, conclusions from
    // its result after, by subtractions and their signs. The index of a cell is the numbers of both hosts and of the cell,
    // side by side.

    // 0 if the lane is free, else HELD and the half whose reservation has not begun; HARD once frames don't free it.
    // Written by RSVs, a half's first scheduled frame, frames that come too early, the controller; it does not count.
    Register<bit<8>, lane_t>(LANE_COUNT) lane_lock;

    // An RSV takes its lane. An occupied lane stays as it is, and `holder` names its half.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) take_lane = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
            if (value == 0) {
                value = meta.pl2.half;
            }
        }
    };

    // In its second pass, it takes the lane from any holder.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) seize_lane = {
        void apply(inout bit<8> value) {
            value = meta.pl2.half;
        }
    };

    // A half's first scheduled frame frees the lane for the next reservation; the controller does so even if it is locked for
    // frames.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) begin_in_lane = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
            if (value == meta.pl2.half || value == meta.pl2.hard_half) {
                value = 0;
            }
        }
    };

    // The frame is early: lock the lane again, now against frames. If other frames pass in between, a host gains at most the
    // reservations that it requests in that time, once per lane.
    RegisterAction<bit<8>, lane_t, bit<8>>(lane_lock) lock_again = {
        void apply(inout bit<8> value) {
            if (value == 0) {
                value = meta.pl2.half | HARD;
            } else {
                value = value | HARD;
            }
        }
    };

    // Accesses to a lane.
    @hidden action take_half() {
        meta.pl2.holder = take_lane.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0]);
    }

    @hidden action seize_half() {
        seize_lane.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0]);
    }

    @hidden action begin_half(bit<8> op) {
        meta.pl2.op     = op;
        meta.pl2.holder = begin_in_lane.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0]);
    }

    // The frame is early.
    @hidden action lock_half() {
        meta.pl2.op      = OP_DEMOTED;
        meta.pl2.demoted = DEMOTED_EARLY;
        lock_again.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0]);
    }

    // As the pass before decided, the frame loses its class, or its RSV gets no grant.
    @hidden action demote() {
        meta.pl2.op      = OP_DEMOTED;
        meta.pl2.demoted = hdr.again.pass & ~PASS_DEMOTED;
    }

    @hidden action grant_nothing() {
        meta.pl2.op = OP_NOT_NOW;
    }

    // Sent before its grant, welcome only while little is reserved.
    @hidden action leave_half() {
        meta.pl2.op = OP_UNSOLICITED;
    }

    // The controller's, about registers of another pipe.
    @hidden action go_away() {
        meta.pl2.op = OP_AWAY;
    }

    // An RSV that has crossed to its destination's pipe, and back.
    @hidden action visit() {
        meta.pl2.op = OP_VISIT;
    }

    @hidden action settle() {
        meta.pl2.op = OP_SETTLE;
    }

    // lane_lock
    @hidden table requests {
        key = {
            meta.pl2.op     : ternary;
            meta.pl2.claims : ternary;
            hdr.again.pass  : ternary @name("pass");
            hdr.vlan.dei    : ternary;
            meta.pl2.owner  : ternary;
        }
        actions = {
            take_half;
            seize_half;
            begin_half;
            lock_half;
            leave_half;
            demote;
            grant_nothing;
            go_away;
            visit;
            settle;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (_, _, _, _, LOOP_PORT &&& IN_PIPE) : go_away();
            (OP_RESERVE, _, 0, _, _)            : take_half();
            (OP_RESERVE, _, PASS_NOT_NOW, _, _) : grant_nothing();
            (OP_RESERVE, _, PASS_OUT, _, _)     : visit();
            (OP_RESERVE, _, PASS_BACK, _, _)    : settle();
            (OP_RESERVE, _, _, _, _)            : seize_half();
            (OP_NONE, 1, 0, 0, _)               : begin_half(OP_CLAIM);
            (OP_NONE, 1, 0, 1, _)               : leave_half();
            (OP_NONE, 1, PASS_AGAIN, _, _)      : lock_half();
            (OP_NONE, 1, _, _, _)               : demote();
            (OP_FORGET, _, _, _, _)             : begin_half(OP_FORGET);
        }
        size = 16;
    }

    apply {
        requests.apply();
    }
}

// Reservations: an RSV takes slots at both of its ports, and a frame of its burst takes one of them up.
control Pl2(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // Frames that lose the class that they claim, and RSVs without a grant, by reason.
    Counter<bit<64>, bit<8>>(DEMOTED_REASONS, CounterType_t.PACKETS_AND_BYTES) demoted;
    Counter<bit<64>, bit<8>>(REFUSED_REASONS, CounterType_t.PACKETS) refused;

    // Frames that the half may still send in its slots.
    // Written by RSVs, scheduled frames, the controller; it never wraps.
    Register<bit<16>, cell_t>(CELL_COUNT) rights;

    // The half forfeits the rest of its last reservation.
    RegisterAction<bit<16>, cell_t, bit<16>>(rights) replace_rights = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
            value  = meta.pl2.right;
        }
    };

    // Counts frames, since their length is known only in egress, which drops those that are longer than a slot. Returns 1 if a
    // right was left.
    RegisterAction<bit<16>, cell_t, bit<16>>(rights) use_rights = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = 0;
            if (value != 0) {
                value  = value - 1;
                result = 1;
            }
        }
    };

    // The same of frames without slots; or HAS_SLOTS, NOT_ASKED: it has its slots.
    // Written by RSVs, unsolicited frames, the controller; it never wraps.
    Register<int<16>, cell_t>(CELL_COUNT) rights_unsolicited;

    RegisterAction<int<16>, cell_t, int<16>>(rights_unsolicited) go_unsolicited = {
        void apply(inout int<16> value) {
            value = (int<16>) meta.pl2.right;
        }
    };

    RegisterAction<int<16>, cell_t, int<16>>(rights_unsolicited) stand = {
        void apply(inout int<16> value) {
            value = (int<16>) meta.pl2.standing;
        }
    };

    RegisterAction<int<16>, cell_t, int<16>>(rights_unsolicited) use_unsolicited = {
        void apply(inout int<16> value, out int<16> result) {
            result = value;
            if (value > 0) {
                value = value - 1;
            }
        }
    };

    RegisterAction<int<16>, cell_t, int<16>>(rights_unsolicited) look_unsolicited = {
        void apply(inout int<16> value, out int<16> result) {
            result = value;
        }
    };

    // Either port may be free later than the other: a burst comes too early if it does for one of them, and too late if it does
    // for both.

    // When the half's burst may begin.
    // Written by RSVs; it wraps as the time does.
    Register<int<32>, cell_t>(CELL_COUNT) starts_in;

    RegisterAction<int<32>, cell_t, int<32>>(starts_in) set_start_in = {
        void apply(inout int<32> value) {
            value = (int<32>) meta.pl2.opens_in + (int<32>) meta.pl2.closes_in;
        }
    };

    // Whether its burst comes in time: the amount by which it is early, if above 0, or late, if below 0.
    RegisterAction<int<32>, cell_t, int<32>>(starts_in) look_at_start_in = {
        void apply(inout int<32> value, out int<32> result) {
            result = 0;
            if (value - (int<32>) meta.pl2.opens_in > 0) {
                result = value - (int<32>) meta.pl2.opens_in;
            } else if (value - (int<32>) meta.pl2.closes_in < 0) {
                result = value - (int<32>) meta.pl2.closes_in;
            }
        }
    };

    // When the half's burst may begin.
    // Written by RSVs; it wraps as the time does.
    Register<int<32>, cell_t>(CELL_COUNT) starts_out;

    RegisterAction<int<32>, cell_t, int<32>>(starts_out) set_start_out = {
        void apply(inout int<32> value) {
            value = (int<32>) meta.pl2.opens_out + (int<32>) meta.pl2.closes_out;
        }
    };

    // Whether its burst comes in time: the amount by which it is early, if above 0, or late, if below 0.
    RegisterAction<int<32>, cell_t, int<32>>(starts_out) look_at_start_out = {
        void apply(inout int<32> value, out int<32> result) {
            result = 0;
            if (value - (int<32>) meta.pl2.opens_out > 0) {
                result = value - (int<32>) meta.pl2.opens_out;
            } else if (value - (int<32>) meta.pl2.closes_out < 0) {
                result = value - (int<32>) meta.pl2.closes_out;
            }
        }
    };

    // The time at which each port is next free, as a source and as a destination.
    //
    // Times wrap, so they are never compared directly. A register minus the packet's time, modulo 2^32, is how far the port is
    // reserved from now if it is below HORIZON; anything else is a time in the past, and the port is free. HORIZON is as short
    // as lanes permit: they bound what all hosts together can have reserved. A port idle for up to 2^32 - HORIZON units is
    // free, as it should be; at the next one it may look reserved for up to HORIZON units, and then is free again.

    // When the link is next free, as a source.
    // Written by RSVs that are granted, the controller; it wraps as the time does.
    Register<int<32>, link_t>(PORT_COUNT) in_reservation;

    // Returns how far ahead it begins.
    RegisterAction<int<32>, link_t, int<32>>(in_reservation) reserve_in = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
                value  = (int<32>) meta.pl2.now + (int<32>) meta.pl2.time_in;
            } else {
                result = value - (int<32>) meta.pl2.now;
                value  = value + (int<32>) meta.pl2.time_in;
            }
        }
    };

    RegisterAction<int<32>, link_t, int<32>>(in_reservation) look_at_in = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.pl2.now;
            }
        }
    };

    // The controller's write and reset. Its values are time from now; the one before goes back in the frame.
    RegisterAction<int<32>, link_t, int<32>>(in_reservation) write_in = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.pl2.now;
            }
            value = (int<32>) meta.pl2.now + (int<32>) meta.pl2.time_in;
        }
    };

    // When the link is next free, as a destination.
    // Written by RSVs that are granted, the controller; it wraps as the time does.
    Register<int<32>, link_t>(PORT_COUNT) out_reservation;

    // Returns how far ahead it begins.
    RegisterAction<int<32>, link_t, int<32>>(out_reservation) reserve_out = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
                value  = (int<32>) meta.pl2.now + (int<32>) meta.pl2.time_out;
            } else {
                result = value - (int<32>) meta.pl2.now;
                value  = value + (int<32>) meta.pl2.time_out;
            }
        }
    };

    RegisterAction<int<32>, link_t, int<32>>(out_reservation) look_at_out = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.pl2.now;
            }
        }
    };

    // The controller's write and reset. Its values are time from now; the one before goes back in the frame.
    RegisterAction<int<32>, link_t, int<32>>(out_reservation) write_out = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.pl2.now < 0 || value - (int<32>) meta.pl2.now >= (int<32>) HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.pl2.now;
            }
            value = (int<32>) meta.pl2.now + (int<32>) meta.pl2.time_out;
        }
    };

    // The time that a reservation takes: a target that does not multiply looks it up.
    action take_time_in(time_t time) {
        meta.pl2.time_in = time;
    }

    table slots_in {
        key = {
            meta.pl2.rate_in       : exact;
            hdr.pl2_control.demand : exact;
        }
        actions = {
            take_time_in;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    // The time that a reservation takes: a target that does not multiply looks it up.
    action take_time_out(time_t time) {
        meta.pl2.time_out = time;
    }

    table slots_out {
        key = {
            meta.pl2.rate_out      : exact;
            hdr.pl2_control.demand : exact;
        }
        actions = {
            take_time_out;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    action take_limits(wait_t t_in, wait_t t_out) {
        meta.pl2.limit_in  = t_in;
        meta.pl2.limit_out = t_out;
    }

    action take_threshold(wait_t threshold) {
        meta.pl2.limit_out = threshold;
    }

    // Waits up to which a burst goes unsolicited (t): the first one beyond.
    table limits {
        key = {
            meta.pl2.rate_in  : exact;
            meta.pl2.rate_out : exact;
        }
        actions = {
            take_limits;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    // Reservations up to which unsolicited frames pass (T): the first one beyond.
    table thresholds {
        key = {
            meta.pl2.rate_out : exact;
        }
        actions = {
            take_threshold;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    // How early and how late a burst may come, in slots of the slower link: hosts' errors, and the harm they do, are measured
    // in these. The device can't subtract an entry's value, so `late` is given as its negative.
    action weigh_start(time_t early, time_t minus_late) {
        meta.pl2.opens_in   = meta.pl2.now + early;
        meta.pl2.closes_in  = meta.pl2.now + minus_late;
        meta.pl2.opens_out  = meta.pl2.now + early;
        meta.pl2.closes_out = meta.pl2.now + minus_late;
    }

    table graces {
        key = {
            meta.pl2.rate_in  : exact;
            meta.pl2.rate_out : exact;
        }
        actions = {
            weigh_start;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    apply {
        // Limits of a PL2 frame that depend on the rates of its links.
        if (hdr.pl2_control.isValid()) {
            slots_in.apply();
            slots_out.apply();
            limits.apply();
        } else if (meta.pl2.claims == 1 && hdr.vlan.dei == 1) {
            thresholds.apply();
        }
        if (hdr.pl2_control.isValid() || meta.pl2.claims == 1) {
            graces.apply();
        }

        // Occupied is a lane whose reservation has not begun; rights, and the registers of ports.
        if (meta.pl2.op == OP_RESERVE && meta.pl2.holder != 0) {
            meta.pl2.op   = OP_OCCUPIED;
            meta.pl2.cell = meta.pl2.holder & HELD_CELL; // of the half that holds it
        } else if (meta.pl2.op == OP_RESERVE) {
            replace_rights.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
            meta.pl2.opens_in  = meta.pl2.now + meta.pl2.limit_in;
            meta.pl2.closes_in = (bit<32>) reserve_in.execute(meta.pl2.link_in) - meta.pl2.limit_in;
            meta.pl2.opens_out = meta.pl2.now + meta.pl2.limit_out;
            if (meta.pl2.away != meta.pl2.home) {
                meta.pl2.op         = OP_LEAVE;
                meta.pl2.closes_out = PENDING - meta.pl2.limit_out;
            } else {
                meta.pl2.closes_out = (bit<32>) reserve_out.execute(meta.pl2.link_out) - meta.pl2.limit_out;
            }
        } else if (meta.pl2.op == OP_VISIT) {
            meta.pl2.closes_out = (bit<32>) reserve_out.execute(meta.pl2.link_out) - meta.pl2.limit_out;
        } else if (meta.pl2.op == OP_SETTLE) {
            meta.pl2.opens_out  = meta.pl2.now;
            meta.pl2.closes_out = hdr.pl2_control.recvWait;
        } else if (meta.pl2.op == OP_FORGET) {
            meta.pl2.left = replace_rights.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM) {
            meta.pl2.left = use_rights.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_READ_IN) {
            meta.pl2.closes_in = (bit<32>) look_at_in.execute(meta.pl2.link_in);
        } else if (meta.pl2.op == OP_WRITE_IN) {
            meta.pl2.closes_in = (bit<32>) write_in.execute(meta.pl2.link_in);
        } else if (meta.pl2.op == OP_UNSOLICITED || meta.pl2.op == OP_READ_OUT) {
            meta.pl2.closes_out = (bit<32>) look_at_out.execute(meta.pl2.link_out) - meta.pl2.limit_out;
        } else if (meta.pl2.op == OP_WRITE_OUT) {
            meta.pl2.closes_out = (bit<32>) write_out.execute(meta.pl2.link_out) - meta.pl2.limit_out;
        }

        // Waits are known as what they are beyond their limits; the controller's have none.
        meta.pl2.send_wait = meta.pl2.closes_in + meta.pl2.limit_in;
        meta.pl2.recv_wait = meta.pl2.closes_out + meta.pl2.limit_out;
        if (meta.pl2.op == OP_CLAIM) {
            if (meta.pl2.left != 0) {
                meta.pl2.cover = COVER_SLOTS;
            } else if (meta.pl2.holder[7:6] == 2 && meta.pl2.holder[0:0] == meta.pl2.cell[0:0]) {
                meta.pl2.cover = COVER_LANE;
            }
        }

        // rights_unsolicited: a burst goes unsolicited if it asks for that, and both waits are up to t.
        if (meta.pl2.op == OP_RESERVE) {
            if (hdr.pl2_control.unsolicited == 1 &&
                meta.pl2.closes_in[31:31] == 1 && meta.pl2.closes_out[31:31] == 1) {
                go_unsolicited.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
            } else {
                stand.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
            }
        } else if (meta.pl2.op == OP_FORGET || meta.pl2.op == OP_LEAVE) {
            stand.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_UNSOLICITED) {
            meta.pl2.unsolicited =
                (bit<16>) use_unsolicited.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM) {
            meta.pl2.unsolicited =
                (bit<16>) look_unsolicited.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        }

        // starts: once both ports are free.
        if (meta.pl2.op == OP_RESERVE || meta.pl2.op == OP_LEAVE) {
            set_start_in.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
            set_start_out.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_SETTLE) {
            set_start_out.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM || meta.pl2.op == OP_OCCUPIED) {
            meta.pl2.window_in =
                (bit<32>) look_at_start_in.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
            meta.pl2.window_out =
                (bit<32>) look_at_start_out.execute(meta.pl2.source[2:0] ++ meta.pl2.destination[2:0] ++ meta.pl2.cell[0:0]);
        }
        if (meta.pl2.op == OP_NOT_NOW) {
            refused.count(REFUSED_LANE);
        }
        if (meta.pl2.op == OP_DEMOTED) {
            demoted.count(meta.pl2.demoted);
        }
    }
}

// Outcome of a frame that uses the registers.
control Pl2Verdicts(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // No pass follows. Each outcome says so itself: a table behind this one would take a stage.
    @hidden action leave() {
        hdr.again.setInvalid();
        hdr.came.setInvalid();
        hdr.packet_out.setInvalid();
    }

    @hidden action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
    }

    // The RSV itself goes back as the GRT, with both replies filled in: its source address says
    // which destination it grants.
    @hidden action grant() {
        turn_around();
        hdr.pl2_control.kind       = PL2_GRT;
        ig_tm_md.ucast_egress_port = hdr.came.port;
        leave();
    }

    @hidden action reply_to_controller() {
        turn_around();
        hdr.pl2_management.kind    = PL2_MGMT_REPLY;
        ig_tm_md.qid               = PRIORITY_CONTROL;
        ig_tm_md.ucast_egress_port = CPU_PORT;
        leave();
    }

    @hidden action schedule() {
        ig_tm_md.qid = PRIORITY_SCHEDULED;
        leave();
    }

    @hidden action pass_again(bit<8> pass) {
        hdr.again.pass            = pass;
        ig_dprsr_md.resubmit_type = RESUBMIT;
    }

    @hidden action answer() {
        hdr.pl2_control.sendWait = meta.pl2.send_wait;
        hdr.pl2_control.recvWait = meta.pl2.recv_wait;
        grant();
        ig_tm_md.qid = PRIORITY_CONTROL;
    }

    @hidden action answer_not_now() {
        hdr.pl2_control.sendWait = PL2_NOT_NOW;
        hdr.pl2_control.recvWait = PL2_NOT_NOW;
        grant();
    }

    // Its answer does not grant what it asked for: the burst has its slots.
    @hidden action go_out() {
        hdr.pl2_control.sendWait    = meta.pl2.send_wait;
        hdr.pl2_control.unsolicited = 0;
        ig_tm_md.qid                = PRIORITY_CONTROL;
        hdr.again.pass              = PASS_OUT;
        hdr.packet_in.setInvalid();
        ig_tm_md.bypass_egress     = 1;
        ig_tm_md.ucast_egress_port = meta.pl2.away;
    }

    @hidden action go_back() {
        hdr.pl2_control.recvWait = meta.pl2.recv_wait;
        ig_tm_md.qid             = PRIORITY_CONTROL;
        hdr.again.pass           = PASS_BACK;
        hdr.packet_in.setInvalid();
        ig_tm_md.bypass_egress     = 1;
        ig_tm_md.ucast_egress_port = meta.pl2.home;
    }

    @hidden action answer_from_both() {
        grant();
        ig_tm_md.qid = PRIORITY_CONTROL;
    }

    @hidden action go_to_owner() {
        ig_tm_md.qid   = PRIORITY_CONTROL;
        hdr.again.pass = PASS_OUT;
        hdr.packet_in.setInvalid();
        ig_tm_md.bypass_egress     = 1;
        ig_tm_md.ucast_egress_port = meta.pl2.owner;
    }

    @hidden action tell_rights() {
        hdr.pl2_management.value = 16w0 ++ meta.pl2.left;
        reply_to_controller();
    }

    @hidden action tell_in() {
        hdr.pl2_management.value = meta.pl2.send_wait;
        reply_to_controller();
    }

    @hidden action tell_out() {
        hdr.pl2_management.value = meta.pl2.recv_wait;
        reply_to_controller();
    }

    // The outcome of a frame that uses the registers. A burst that did not go unsolicited has its slots: its
    // rights_unsolicited is then negative. A frame that loses its class or gets no grant takes a second pass; only dishonest
    // or faulty hosts cause this. In that pass it is best effort from the start, so the meter precedes this table.
    @hidden table verdicts {
        key = {
            meta.pl2.op                : ternary;
            meta.pl2.cover             : ternary;
            meta.pl2.unsolicited       : ternary;
            meta.pl2.closes_out[31:31] : ternary @name("within_threshold");
            meta.pl2.window_in         : ternary;
            meta.pl2.window_out        : ternary;
        }
        actions = {
            schedule;
            pass_again;
            answer;
            answer_not_now;
            go_out;
            go_back;
            answer_from_both;
            go_to_owner;
            tell_rights;
            tell_in;
            tell_out;
            leave;
        }
        const default_action = leave();
        const entries = {
            (OP_LEAVE, _, _, _, _, _)   : go_out();
            (OP_VISIT, _, _, _, _, _)   : go_back();
            (OP_SETTLE, _, _, _, _, _)  : answer_from_both();
            (OP_AWAY, _, _, _, _, _)    : go_to_owner();
            (OP_RESERVE, _, _, _, _, _) : answer();
            (OP_NOT_NOW, _, _, _, _, _) : answer_not_now();
            // The lane's reservation has not begun; or it has, unseen: nothing was sent in its slots.
            (OP_OCCUPIED, _, _, _, IN_TIME, IN_TIME)     : pass_again(PASS_AGAIN);
            (OP_OCCUPIED, _, _, _, IN_TIME, 0 &&& EARLY) : pass_again(PASS_NOT_NOW);
            (OP_OCCUPIED, _, _, _, 0 &&& EARLY, IN_TIME) : pass_again(PASS_NOT_NOW);
            (OP_OCCUPIED, _, _, _, IN_TIME, _)           : pass_again(PASS_AGAIN);
            (OP_OCCUPIED, _, _, _, _, IN_TIME)           : pass_again(PASS_AGAIN);
            (OP_OCCUPIED, _, _, _, 0 &&& EARLY, _)       : pass_again(PASS_NOT_NOW);
            (OP_OCCUPIED, _, _, _, _, 0 &&& EARLY)       : pass_again(PASS_NOT_NOW);
            (OP_OCCUPIED, _, _, _, _, _)                 : pass_again(PASS_AGAIN);

            (OP_CLAIM, COVER_NONE, _, _, _, _)                              : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED);
            (OP_CLAIM, COVER_SLOTS, STANDS &&& STANDS, _, IN_TIME, IN_TIME) : schedule();
            (OP_CLAIM, _, _, _, IN_TIME, IN_TIME)                           : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED);
            (OP_CLAIM, _, _, _, IN_TIME, 0 &&& EARLY)                       : pass_again(PASS_AGAIN);
            (OP_CLAIM, _, _, _, 0 &&& EARLY, IN_TIME)                       : pass_again(PASS_AGAIN);
            (OP_CLAIM, COVER_SLOTS, STANDS &&& STANDS, _, IN_TIME, _)       : schedule();
            (OP_CLAIM, _, _, _, IN_TIME, _)                                 : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED);
            (OP_CLAIM, COVER_SLOTS, STANDS &&& STANDS, _, _, IN_TIME)       : schedule();
            (OP_CLAIM, _, _, _, _, IN_TIME)                                 : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED);
            (OP_CLAIM, _, _, _, 0 &&& EARLY, _)                             : pass_again(PASS_AGAIN);
            (OP_CLAIM, _, _, _, _, 0 &&& EARLY)                             : pass_again(PASS_AGAIN);
            (OP_CLAIM, COVER_SLOTS, STANDS &&& STANDS, _, _, _)             : pass_again(PASS_DEMOTED | DEMOTED_LATE);
            (OP_CLAIM, _, _, _, _, _)                                       : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED);

            // Those that are dropped are in the table of refusals.
            (OP_UNSOLICITED, _, HAS_SLOTS, _, _, _) : leave();
            (OP_UNSOLICITED, _, 0, _, _, _)         : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED_UNSOLICITED);
            (OP_UNSOLICITED, _, NOT_ASKED, _, _, _) : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED_UNSOLICITED);
            (OP_UNSOLICITED, _, _, 0, _, _)         : leave();
            (OP_UNSOLICITED, _, _, _, _, _)         : schedule();

            (OP_FORGET, _, _, _, _, _)    : tell_rights();
            (OP_READ_IN, _, _, _, _, _)   : tell_in();
            (OP_WRITE_IN, _, _, _, _, _)  : tell_in();
            (OP_READ_OUT, _, _, _, _, _)  : tell_out();
            (OP_WRITE_OUT, _, _, _, _, _) : tell_out();
        }
        size = 64;
    }

    apply {
        if (meta.pl2.op != OP_NONE) {
            verdicts.apply();
        } else {
            leave();
        }
    }
}

// Drops what is longer than its slot.
control Pl2Egress(inout egress_headers_t hdr, inout egress_metadata_t meta,
        in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
        inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    // Scheduled frames that are longer than their slot.
    Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) too_long;

    bit<16> room = 0;

    @hidden action weigh_length() {
        room = 1526 + 6 - eg_intr_md.pkt_length;
    }

    apply {
        // Only egress knows its length; it includes the FCS and what ingress put before the frame.
        weigh_length();
        if (eg_intr_md.egress_qid == PRIORITY_SCHEDULED && room[15:15] == 1) {
            too_long.count(0);
            eg_dprsr_md.drop_ctl = 1;
        }
    }
}

// Two tables of a stage can't write one container, so what tables side by side write has containers of its own.
@pa_container_size("ingress", "meta.drop", 8)
@pa_container_size("ingress", "meta.known", 8)
@pa_container_size("ingress", "meta.accepted", 8)
@pa_container_size("ingress", "meta.pl2.op", 8)
@pa_container_size("ingress", "meta.pl2.source", 8)
@pa_container_size("ingress", "meta.pl2.destination", 8)
@pa_container_size("ingress", "meta.pl2.rate_in", 8)
@pa_container_size("ingress", "meta.pl2.rate_out", 8)
@pa_container_size("ingress", "meta.pl2.standing", 16)
@pa_container_size("ingress", "meta.pl2.unsolicited", 16)
@pa_container_size("ingress", "meta.pl2.window_in", 32)
@pa_container_size("ingress", "meta.pl2.window_out", 32)
@pa_container_size("ingress", "ig_intr_md_for_tm.qid", 8)
@pa_container_size("ingress", "ig_intr_md_for_tm.bypass_egress", 8)
@pa_solitary("ingress", "ig_intr_md_for_tm.qid")
@pa_solitary("ingress", "ig_intr_md_for_tm.bypass_egress")
control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;

    // Unless the controller configures a port's meter, everything is green.
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) best_effort_meter;
    Meter<port_t>(PORT_COUNT, MeterType_t.PACKETS) control_meter;
    Pl2Pipes() pl2_pipes;
    Pl2Lanes() pl2_lanes;
    Pl2() pl2;
    Pl2Verdicts() pl2_verdicts;

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(hdr.came.port);
    }

    action accept_source(link_t link, bit<8> source, bit<8> rate, port_t home) {
        // Each host has its link's rate, by number: nothing assumes equal rates.
        meta.pl2.link_in = link;
        meta.pl2.source  = source;
        meta.pl2.rate_in = rate;
        meta.pl2.home    = home;
        meta.accepted    = 1;
    }

    // A port speaks for its own host only; the controller's packets don't pass here.
    table source_guard {
        key = {
            hdr.came.port        : exact @name("ig_intr_md.ingress_port");
            hdr.ethernet.srcAddr : exact;
        }
        actions = {
            accept_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    action forward(port_t port, link_t link, bit<8> destination, bit<8> rate, port_t away) {
        ig_tm_md.ucast_egress_port = port;
        meta.known                 = 1;
        meta.known_port            = port;
        meta.pl2.link_out          = link;
        meta.pl2.destination       = destination;
        meta.pl2.rate_out          = rate;
        meta.pl2.away              = away;
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
            meta.drop                  : ternary;
            best_effort_color          : ternary;
            meta.pl2.op                : ternary;
            meta.pl2.unsolicited       : ternary;
            meta.pl2.closes_out[31:31] : ternary @name("within_threshold");
        }
        actions = {
            count_drop;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DROP_NONE, MeterColor_t.RED, _, _, _)                         : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_NONE, _, OP_UNSOLICITED, HAS_SLOTS, _)                   : count_drop(DROP_UNSOLICITED_HAS_SLOTS);
            (DROP_NONE, _, OP_UNSOLICITED, 0, _)                           : NoAction();
            (DROP_NONE, _, OP_UNSOLICITED, NOT_ASKED, _)                   : NoAction();
            (DROP_NONE, _, OP_UNSOLICITED, _, 0)                           : count_drop(DROP_UNSOLICITED_OVER_THRESHOLD);
            (DROP_MALFORMED, MeterColor_t.GREEN, _, _, _)                  : count_drop(DROP_MALFORMED);
            (DROP_SPOOFED, MeterColor_t.GREEN, _, _, _)                    : count_drop(DROP_SPOOFED);
            (DROP_UNKNOWN_DESTINATION, MeterColor_t.GREEN, _, _, _)        : count_drop(DROP_UNKNOWN_DESTINATION);
            (DROP_SAME_PORT, MeterColor_t.GREEN, _, _, _)                  : count_drop(DROP_SAME_PORT);
            (DROP_BEST_EFFORT_METER, MeterColor_t.GREEN, _, _, _)          : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_CONTROL_METER, MeterColor_t.GREEN, _, _, _)              : count_drop(DROP_CONTROL_METER);
            (DROP_BAD_VERSION, MeterColor_t.GREEN, _, _, _)                : count_drop(DROP_BAD_VERSION);
            (DROP_BAD_KIND, MeterColor_t.GREEN, _, _, _)                   : count_drop(DROP_BAD_KIND);
            (DROP_BAD_DEMAND, MeterColor_t.GREEN, _, _, _)                 : count_drop(DROP_BAD_DEMAND);
            (DROP_BAD_LANE, MeterColor_t.GREEN, _, _, _)                   : count_drop(DROP_BAD_LANE);
            (DROP_UNSOLICITED_OVER_THRESHOLD, MeterColor_t.GREEN, _, _, _) : count_drop(DROP_UNSOLICITED_OVER_THRESHOLD);
            (DROP_MANAGEMENT_FROM_HOST, MeterColor_t.GREEN, _, _, _)       : count_drop(DROP_MANAGEMENT_FROM_HOST);
            (DROP_BAD_TARGET, MeterColor_t.GREEN, _, _, _)                 : count_drop(DROP_BAD_TARGET);
            (DROP_BAD_INDEX, MeterColor_t.GREEN, _, _, _)                  : count_drop(DROP_BAD_INDEX);
            (DROP_UNSOLICITED_HAS_SLOTS, MeterColor_t.GREEN, _, _, _)      : count_drop(DROP_UNSOLICITED_HAS_SLOTS);
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) hdr.came.port;

        ig_tm_md.qid         = PRIORITY_BEST_EFFORT;
        bit<8> control_color = MeterColor_t.GREEN;

        // The cell that it names, VLANs begin with the pair's cell 0; and what its half writes into the lane's lock.
        if (hdr.pl2_control.isValid()) {
            meta.pl2.cell  = hdr.pl2_control.cell;
            meta.pl2.right = (bit<16>) hdr.pl2_control.demand;
            meta.pl2.half  = hdr.pl2_control.cell | HELD;
        } else if (hdr.pl2_management.isValid()) {
            meta.pl2.cell      = hdr.pl2_management.cell[7:0];
            meta.pl2.half      = hdr.pl2_management.cell[7:0] | HELD;
            meta.pl2.hard_half = hdr.pl2_management.cell[7:0] | HARD;
            meta.pl2.right     = 0;
        } else {
            meta.pl2.cell      = hdr.vlan.vid[7:0] - PL2_VID[7:0];
            meta.pl2.half      = hdr.vlan.vid[7:0] + (HELD - PL2_VID[7:0]);
            meta.pl2.hard_half = hdr.vlan.vid[7:0] + (HELD - PL2_VID[7:0]);
        }

        // Nothing is reserved towards a group.
        if (meta.pl2.op != OP_NONE && meta.steered == 0 && hdr.ethernet.dstAddr[40:40] == 1) {
            meta.pl2.bad = DROP_UNKNOWN_DESTINATION;
        }

        if (hdr.pl2_management.isValid() && hdr.again.pass == 0) {
            pl2_pipes.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        }

        if (meta.steered == 0 && hdr.ethernet.dstAddr[40:40] == 0) {
            l2_forward.apply();
        }
        // Controller frames without a port are forwarded as a host's.
        if (!hdr.packet_out.isValid()) {
            if (source_guard.apply().hit) {
                // Once per frame, in its first pass.
                if (hdr.pl2_control.isValid() && hdr.again.pass == 0) {
                    control_color = control_meter.execute(hdr.came.port);
                }
            }
        } else {
            // The controller's reservations are those of its port, and its frames have no graces.
            // A management frame says itself what it is about; this chip's parser can't set both, because what it assigns twice
            // has the bits of both values.
            if (!hdr.pl2_management.isValid()) {
                meta.pl2.link_in = (link_t) CPU_PORT;
                meta.pl2.source  = 6;
                meta.pl2.home    = CONTROLLER_HOME;
            }
            if (hdr.packet_out.egress_port == 0) {
                meta.accepted = 1;
                // Once per frame, in its first pass.
                if (hdr.pl2_control.isValid() && hdr.again.pass == 0) {
                    control_color = control_meter.execute(hdr.came.port);
                }
            }
        }

        if (ig_prsr_md.parser_err != 0) {
            meta.drop   = DROP_MALFORMED;
            meta.pl2.op = OP_NONE;
        } else if (meta.accepted == 0) {
            meta.pl2.op = OP_NONE;
            if (hdr.packet_out.isValid()) {
                meta.steered               = 1;
                ig_tm_md.ucast_egress_port = (port_t) hdr.packet_out.egress_port;
                // What comes back by a port between the pipes would be taken for a frame that crossed.
                if (hdr.packet_out.egress_port[15:9] != 0 || hdr.packet_out.egress_port[6:0] == (bit<7>) LOOP_PORT) {
                    meta.drop = DROP_UNKNOWN_DESTINATION;
                }
            } else {
                meta.drop = DROP_SPOOFED;
            }
        } else {
            if (control_color == MeterColor_t.RED) {
                meta.drop   = DROP_CONTROL_METER;
                meta.pl2.op = OP_NONE;
            } else if (meta.pl2.bad != 0) {
                meta.drop   = meta.pl2.bad;
                meta.pl2.op = OP_NONE;
            } else
            if (meta.known == 1 && ig_tm_md.ucast_egress_port == hdr.came.port) {
                meta.drop   = DROP_SAME_PORT;
                meta.pl2.op = OP_NONE;
            } else if (hdr.ethernet.dstAddr[40:40] == 1 && meta.steered == 0) {
                ig_tm_md.mcast_grp_a = RACK_GROUP;
            } else if (meta.known == 0 && meta.steered == 0) {
                meta.drop   = DROP_UNKNOWN_DESTINATION;
                meta.pl2.op = OP_NONE;
            } else if (meta.pl2.op != OP_NONE || meta.pl2.claims == 1) {
                pl2_lanes.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
            }
        }

        // A unicast frame that egress need not handle bypasses egress.
        if (hdr.ethernet.dstAddr[40:40] == 0 && !hdr.packet_out.isValid() &&
            meta.known_port != CPU_PORT && (meta.pl2.claims == 0 || hdr.pl2_control.isValid())) {
            hdr.packet_in.setInvalid();
            ig_tm_md.bypass_egress = 1;
        }
        pl2.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);

        // A frame that grants nothing is best effort and metered as such: otherwise a host that asks endlessly fills
        // its own queue, then the shared buffer.
        if (meta.pl2.op == OP_DEMOTED || meta.pl2.op == OP_NOT_NOW ||
            (meta.pl2.op == OP_NONE && meta.drop == DROP_NONE && meta.steered == 0)) {
            send_best_effort();
        }
        pl2_verdicts.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        if (meta.drop != DROP_NONE || best_effort_color == MeterColor_t.RED || meta.pl2.op == OP_UNSOLICITED) {
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
    Pl2Egress() pl2;

    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
        pl2.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md, eg_oport_md);
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

@pkginfo(name="pl2_clock", version="0.1.0")
Switch(pipe) main;
