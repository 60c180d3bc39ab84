// edm_timed_dst_pl2_clock: the switch of rack "memory".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it PL2 reservations: a host asks for slots with an RSV, the switch answers with a GRT
// that says how far its own port and the destination's are reserved, the host sends when both are
// free. Only frames that were reserved and come in their time get the class that is free of queues.
// Mode `clock`: each port keeps the time at which it is next free.
// On top of it EDM: a host demands time for a message to or from another host's memory, the switch
// grants it chunk by chunk, each from when its destination
// is free. Only granted data gets the class that is free of queues.
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
const bit<16> ETHERTYPE_EDM  = 0x88B6;

// Queues, served in strict order, 7 first.
const QueueId_t PRIORITY_CONTROL     = 7;
const QueueId_t PRIORITY_SCHEDULED   = 5;
const QueueId_t EDM_CLASS_CONTROL    = 7;
const QueueId_t EDM_CLASS_DATA       = 5;
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
const bit<8>  DROP_EDM_CONTROL_METER          = 15;  // more notifications and requests than the port may send
const bit<8>  DROP_EDM_BAD_VERSION            = 16;  // EDM of another version
const bit<8>  DROP_EDM_BAD_KIND               = 17;  // an EDM kind that hosts don't send, or that doesn't exist
const bit<8>  DROP_EDM_BAD_DEMAND             = 18;  // a demand for nothing or for too much, or data without bytes
const bit<8>  DROP_EDM_BAD_LANE               = 19;  // names a lane that pairs don't have
const bit<8>  DROP_EDM_NO_MEMORY              = 20;  // a demand for a host without memory
const bit<8>  DROP_EDM_LANE_TAKEN             = 21;  // the lane's message is not done
const bit<8>  DROP_EDM_MANAGEMENT_FROM_HOST   = 22;  // management from a port other than the controller's
const bit<8>  DROP_EDM_BAD_TARGET             = 23;  // management of a register that doesn't exist
const bit<8>  DROP_EDM_BAD_INDEX              = 24;  // management of a cell that doesn't exist
const bit<32> DROP_REASONS                    = 25;  // how many there are
const bit<8>  DROP_NONE                       = 255; // it is not dropped

const MirrorType_t COPY_HEAD = 1;    // of frames whose head goes back
const bit<8>       HEAD      = 0xFF; // the head's mark

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds.
typedef bit<32> time_t;

const ResubmitType_t RESUBMIT = 1; // of frames that make another pass

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
const bit<32> CELL_COUNT = 32;     // of all, the controller among the sources
const bit<32> LANE_COUNT = 16;
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
const bit<32> HORIZON = 32w1 << 16;

typedef bit<5> cell_t; // the number of a cell, and of a lane
typedef bit<4> lane_t;
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

// Left by a pass for the next one.
const bit<8> PASS_AGAIN   = 1;    // an RSV's lane has begun; a data frame came too early
const bit<8> PASS_NOT_NOW = 2;    // an RSV's lane has not begun
const bit<8> PASS_DEMOTED = 0x80; // a frame loses its class, for the reason beside this bit

// Coverage of a frame.
const bit<8> COVER_NONE  = 0; // nothing
const bit<8> COVER_LANE  = 1; // no slot, but its half holds the lane
const bit<8> COVER_SLOTS = 2; // a slot

// Place of a frame in the window of its reservation's start.
const bit<32> IN_TIME = 0;
const bit<32> EARLY   = ~((32w1 << 16) - 1); // the bits that are 0 if it is early: what is further ahead is past

const bit<16> STANDS = 0x8000; // the bit that is 1 if something stands in rights_unsolicited instead of them

// First byte of EDM's frames: the version and the kind.
const bit<4> EDM_VERSION    = 1;
const bit<4> EDM_NOTIFY     = 1;
const bit<4> EDM_GRANT      = 2;
const bit<4> EDM_RREQ       = 3;
const bit<4> EDM_WREQ       = 4;
const bit<4> EDM_RMWREQ     = 5;
const bit<4> EDM_RRES       = 6;
const bit<4> EDM_MGMT_READ  = 8;
const bit<4> EDM_MGMT_WRITE = 9;
const bit<4> EDM_MGMT_RESET = 10;
const bit<4> EDM_MGMT_REPLY = 11;

// Which register a management frame means.
const bit<8> EDM_TARGET_DESTINATION = 1;
const bit<8> EDM_TARGET_RIGHTS      = 2;

const bit<32> EDM_CHUNK      = 256;     // bytes of a message in a frame
const bit<32> EDM_WINDOW     = 1024;    // bytes of a message that are granted and not sent yet, at most
const bit<32> EDM_MESSAGE    = 1048576; // bytes of a message, at most
const bit<32> EDM_WORD       = 8;       // bytes that an atomic operation answers
const bit<32> EDM_CELL_COUNT = 64;      // lanes of all pairs of a host and a memory node, writes and answers apart

// A frame's operation on EDM's registers.
const bit<8> EDM_OP_NONE    = 0;
const bit<8> EDM_OP_NOTIFY  = 1; // demand for a write
const bit<8> EDM_OP_REQUEST = 2; // demand for an answer
const bit<8> EDM_OP_WRITE   = 3; // a chunk of a write
const bit<8> EDM_OP_ANSWER  = 4; // a chunk of an answer

// Why a frame does not get the class that it claims: index into the counter `demoted`.
const bit<8>  EDM_DEMOTED_UNCOVERED = 0; // no grant has bytes left for it
const bit<32> EDM_DEMOTED_REASONS   = 2; // how many there are

// EDM's times are the lowest 32 bits of time.
const int<32> EDM_HORIZON = 8192;  // a clock further ahead is in the past
const int<32> EDM_EXPIRY  = 16384; // a message without progress for this time gives up its lane

// Operations of the controller's frames: each has the bit EDM_OP_MANAGED.
const bit<8> EDM_OP_READ_RIGHTS       = 8;
const bit<8> EDM_OP_WRITE_RIGHTS      = 9;
const bit<8> EDM_OP_READ_DESTINATION  = 10;
const bit<8> EDM_OP_WRITE_DESTINATION = 11;

const int<32> EDM_CHUNK_AHEAD = 107;  // a link that is claimed further ahead has a chunk of each message at a time
const int<32> EDM_WINDOW_MORE = -768; // what a chunk uses up of its right if it is granted a window: less than nothing

// Left by a pass for an early chunk: the next pass recomputes the grant behind it and takes it back.
const bit<8> EDM_PASS_EARLY_WINDOW = 1; // little was claimed before: a window was granted
const bit<8> EDM_PASS_EARLY        = 2; // a chunk was granted, or nothing

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

// What every EDM frame starts with.
header edm_start_t {
    bit<4> version; // 1
    bit<4> kind;    // NOTIFY or GRANT
}

// NOTIFY and GRANT.
header edm_control_t {
    bit<4>  version; // 1
    bit<4>  kind;    // NOTIFY or GRANT
    bit<8>  answer;  // GRANT: 1 for a chunk of an answer, 0 for one of a write
    bit<16> id;      // message of this pair, chosen by the host that asks
    bit<32> offset;  // NOTIFY: zero; GRANT: where in the message the chunk starts
    bit<32> bytes;   // NOTIFY: bytes of the message; GRANT: bytes that may be sent
    bit<32> wait;    // NOTIFY: zero; GRANT: time units of the switch from its arrival until they may leave
}

// RREQ, WREQ, RMWREQ and RRES.
header edm_message_t {
    bit<4>  version; // 1
    bit<4>  kind;    // RREQ, WREQ, RMWREQ or RRES
    bit<8>  code;    // RREQ: 1 to open a session; RMWREQ: operation; RRES: status; else zero
    bit<16> id;      // message of this pair, chosen by the host that asks
    bit<32> key;     // proves the right to the region; RRES: writes of the session that were refused
    bit<64> address; // address of the message's first byte; RRES: status of the last write that was refused
    bit<32> total;   // bytes of the message: read, written or answered
    bit<32> offset;  // where in the message this chunk starts; requests: zero, set by the switch to the wait (all ones: later)
    bit<16> bytes;   // bytes of this chunk, which follow; RREQ: zero, set by the switch to the bytes it grants (zero: a window)
    bit<16> start;   // session of both nodes, chosen by the memory node: ids count from 0 in each; RRES: the request's
}

// Reads or writes one scheduler register from the CPU port.
header edm_management_t {
    bit<4>  version; // 1
    bit<4>  kind;    // MGMT_READ, MGMT_WRITE, MGMT_RESET or MGMT_REPLY
    bit<8>  target;  // 0 source, 1 destination, 2 rights
    bit<16> token;   // chosen by the controller, returned in the reply
    bit<32> index;   // the port, or the number of the lane among all pairs'
    bit<32> value;   // time units from now, or bytes; in a reply, what was there before
}

struct headers_t {
    packet_in_t      packet_in;
    packet_out_t     packet_out;
    ethernet_t       ethernet;
    vlan_t           vlan;
    pl2_control_t    pl2_control;
    pl2_management_t pl2_management;
    edm_control_t    edm_control;
    edm_message_t    edm_message;
    edm_management_t edm_management;
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

// State of edm while ingress handles a frame.
struct edm_metadata_t {
    bit<8>  kind;              // what the frame is: one of EDM_OP
    bit<8>  op;                // the same, once it may be
    time_t  now;               // when it came
    bit<32> source_link;       // where the frame comes from
    bit<32> source_asks;       // the source's first cell as a requester
    bit<32> source_asked;      // its offset among a requester's cells, as memory
    bit<8>  source_memory;     // whether it has memory
    bit<8>  source_rate;       // the number of its rate
    bit<32> destination_link;  // the same of where the frame goes
    bit<32> destination_asks;
    bit<32> destination_asked;
    bit<8>  destination_memory;
    bit<8>  destination_rate;
    bit<16> id;                // of the message
    bit<32> cell;              // the lane of the message
    bit<8>  memory;            // whether the host that is asked has memory
    bit<32> total;             // bytes of the message
    bit<32> offset;            // where in the message the chunk starts
    bit<32> rest;              // what of the message is left behind what was granted; below 0: nothing
    bit<32> bytes;             // what is granted
    // The ALU of `rights` reads these two alone, so a demand has other amounts here than a chunk.
    bit<32> need;              // what a demand gives a right to, or a chunk must have one to
    bit<32> amount;            // what it uses up of this; what a lane may hold that a demand takes
    bit<32> granted;           // whether a demand has its lane, or a chunk its right
    bit<32> held;              // what a lane held, as the controller asks
    bit<8>  to_rate;           // the number of the rate of where data goes
    bit<32> to;                // where data goes
    bit<32> to_time;           // what the granted bytes take where they go
    int<32> to_wait;           // how long until they may
    bit<32> earliest;          // before which the destination has no time for them
    bit<32> round;             // their length, to be rounded up to units
    bit<8>  bad;               // why the frame is refused, as the parser sees it; 0: it is not
    bit<1>  answer;            // whether its lane is one of answers
    bit<8>  end;               // whether it is the NULL response: there is nothing behind it
    bit<8>  full;              // whether it has a full chunk
    bit<8>  asks;              // whether something is to be granted
    bit<32> over;              // what is behind the window, but for a byte; below 0: nothing
    bit<32> start;             // how long the copy's grant has to wait
    bit<8>  claims;            // whether the frame claims time
    bit<8>  long;              // whether that is a window's, or a chunk's
    bit<32> source_chunk_time; // what a chunk takes at the links from and to which the frame goes,
    bit<32> destination_chunk_time;
    bit<32> to_claim;          // what it claims of the destination's time,
    bit<8>  to_unclaimed;      // and whether little was claimed before: 1
    int<32> spare;             // a chunk without what is behind it
    bit<8>  dated;             // whether it has to come at its time, as data does
    bit<8>  early;             // whether it came before
    bit<8>  then;              // what another pass is for, if it did
}

struct metadata_t {
    pl2_metadata_t pl2;
    edm_metadata_t edm;
    bit<8>         drop;         // why the frame is dropped
    bit<1>         steered;      // whether it goes where the controller says, or back to it
    bit<8>         known;        // whether its destination is known; a byte, so that it may change beside the next one
    port_t         known_port;   // the port of its destination, wherever the frame goes
    bit<8>         accepted;     // whether its source may send it
    MirrorId_t     head_session; // by which the frame's head goes back
    bit<8>         head_mark;
    bit<8>         pass;         // what the pass before left for this one; 0 in the first
}

// Precedes a frame that makes another pass.
header next_pass_t {
    bit<8>  pass;
    bit<56> padding;
}

// Precedes a mirrored head of a frame in its first form, which egress turns into another frame. Port numbers never begin with
// its mark.
header head_t {
    bit<8>  mark;
    bit<32> edm_bytes; // what is granted
    bit<32> edm_wait;  // how long until that may leave
}

// A frame as egress parses it: the first header is the one that every other frame carries from ingress.
struct egress_headers_t {
    packet_in_t      packet_in;
    ethernet_t       ethernet;
    vlan_t           vlan;
    pl2_control_t    pl2_control;
    pl2_management_t pl2_management;
    edm_control_t    edm_control;
    edm_message_t    edm_message;
    edm_management_t edm_management;
    head_t           head;
}

struct egress_metadata_t { }

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
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
        // The controller has no link and no memory; its lanes are the first ones.
        meta.edm.kind                   = EDM_OP_NONE;
        meta.edm.op                     = EDM_OP_NONE;
        meta.edm.bad                    = 0;
        meta.edm.answer                 = 0;
        meta.edm.end                    = 0;
        meta.edm.full                   = 0;
        meta.edm.asks                   = 0;
        meta.edm.total                  = 0;
        meta.edm.offset                 = 0;
        meta.edm.source_link            = 0;
        meta.edm.source_asks            = 0;
        meta.edm.source_asked           = 0;
        meta.edm.source_memory          = 0;
        meta.edm.source_rate            = 0;
        meta.edm.destination_link       = 0;
        meta.edm.destination_asks       = 0;
        meta.edm.destination_asked      = 0;
        meta.edm.destination_memory     = 0;
        meta.edm.destination_rate       = 0;
        meta.edm.id                     = 0;
        meta.edm.cell                   = 0;
        meta.edm.memory                 = 0;
        meta.edm.rest                   = 0;
        meta.edm.over                   = 0;
        meta.edm.amount                 = 0;
        meta.edm.to                     = 0;
        meta.edm.to_rate                = 0;
        meta.edm.round                  = 0;
        meta.edm.start                  = 0;
        meta.head_mark                  = 0;
        meta.edm.granted                = 0;
        meta.edm.held                   = 0;
        meta.edm.bytes                  = 0;
        meta.edm.need                   = 0;
        meta.edm.to_time                = 0;
        meta.edm.to_wait                = 0;
        meta.edm.claims                 = 0;
        meta.edm.long                   = 0;
        meta.edm.spare                  = 0;
        meta.edm.dated                  = 0;
        meta.edm.early                  = 0;
        meta.edm.then                   = EDM_PASS_EARLY;
        meta.edm.source_chunk_time      = 0;
        meta.edm.destination_chunk_time = 0;
        meta.edm.to_claim               = 0;
        meta.edm.to_unclaimed           = 0;
        meta.head_session               = 0;
        meta.pl2.now                    = ig_intr_md.ingress_mac_tstamp[31:0];
        meta.edm.now                    = ig_intr_md.ingress_mac_tstamp[31:0];
        meta.edm.earliest               = ig_intr_md.ingress_mac_tstamp[31:0];
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
        meta.pass             = next_pass.pass;
        meta.edm.to_unclaimed = next_pass.pass;
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
            ETHERTYPE_EDM  : parse_edm;
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
            ETHERTYPE_EDM : parse_edm;
            default       : accept;
        }
    }

    // The VLANs of reservations: data claims one, control frames travel there too.
    state parse_reserved {
        // Not those of other protocols, though: a frame belongs to one.
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_EDM : parse_edm;
            default       : parse_claim;
        }
    }

    state parse_claim {
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
            default                    : parse_management_from_host;
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
            (0 .. 3, 0 .. 2, 0 .. PL2_CELLS - 1) : parse_forgotten;
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

    // Fields are checked before they reach a register: a valid frame gets an operation, an invalid one a reason.
    state parse_edm {
        transition select(packet.lookahead<edm_start_t>().version, packet.lookahead<edm_start_t>().kind) {
            (EDM_VERSION, EDM_NOTIFY)     : parse_edm_notify;
            (EDM_VERSION, EDM_RREQ)       : parse_edm_read;
            (EDM_VERSION, EDM_RMWREQ)     : parse_edm_modify;
            (EDM_VERSION, EDM_WREQ)       : parse_edm_write;
            (EDM_VERSION, EDM_RRES)       : parse_edm_answer;
            (EDM_VERSION, EDM_MGMT_READ)  : parse_edm_managed_read;
            (EDM_VERSION, EDM_MGMT_WRITE) : parse_edm_managed_write;
            (EDM_VERSION, EDM_MGMT_RESET) : parse_edm_managed_reset;
            (EDM_VERSION, _)              : parse_edm_bad_kind;
            default                       : parse_edm_bad_version;
        }
    }

    state parse_edm_bad_version {
        packet.extract(hdr.edm_control);
        meta.edm.bad = DROP_EDM_BAD_VERSION;
        transition accept;
    }

    state parse_edm_bad_kind {
        packet.extract(hdr.edm_control);
        meta.edm.bad = DROP_EDM_BAD_KIND;
        transition accept;
    }

    state parse_edm_notify {
        transition select(packet.lookahead<edm_control_t>().id) {
            3 &&& 3 : parse_edm_notify_bad_lane;
            default : parse_edm_notified;
        }
    }

    state parse_edm_notify_bad_lane {
        packet.extract(hdr.edm_control);
        meta.edm.kind = EDM_OP_NOTIFY;
        meta.edm.bad  = DROP_EDM_BAD_LANE;
        transition accept;
    }

    state parse_edm_notified {
        packet.extract(hdr.edm_control);
        meta.edm.kind  = EDM_OP_NOTIFY;
        meta.edm.id    = hdr.edm_control.id;
        meta.edm.total = hdr.edm_control.bytes;
        transition select(hdr.edm_control.bytes) {
            1 .. EDM_CHUNK   : parse_edm_short_notify;
            1 .. EDM_MESSAGE : parse_edm_good_notify;
            default          : parse_edm_bad_demand;
        }
    }

    state parse_edm_short_notify {
        meta.edm.op     = EDM_OP_NOTIFY;
        meta.edm.claims = 1;
        transition accept;
    }

    state parse_edm_good_notify {
        meta.edm.op     = EDM_OP_NOTIFY;
        meta.edm.claims = 1;
        meta.edm.long   = 1;
        transition accept;
    }

    state parse_edm_read {
        transition select(packet.lookahead<edm_message_t>().id) {
            3 &&& 3 : parse_edm_request_bad_lane;
            default : parse_edm_read_request;
        }
    }

    state parse_edm_read_request {
        packet.extract(hdr.edm_message);
        meta.edm.kind   = EDM_OP_REQUEST;
        meta.edm.answer = 1;
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.total  = hdr.edm_message.total;
        transition select(hdr.edm_message.total) {
            1 .. EDM_CHUNK   : parse_edm_short_request;
            1 .. EDM_MESSAGE : parse_edm_good_request;
            default          : parse_edm_bad_demand;
        }
    }

    state parse_edm_modify {
        transition select(packet.lookahead<edm_message_t>().id) {
            3 &&& 3 : parse_edm_request_bad_lane;
            default : parse_edm_modify_request;
        }
    }

    state parse_edm_modify_request {
        packet.extract(hdr.edm_message);
        meta.edm.kind   = EDM_OP_REQUEST;
        meta.edm.answer = 1;
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.total  = hdr.edm_message.total;
        transition select(hdr.edm_message.total) {
            EDM_WORD : parse_edm_short_request;
            default  : parse_edm_bad_demand;
        }
    }

    state parse_edm_request_bad_lane {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_REQUEST;
        meta.edm.bad  = DROP_EDM_BAD_LANE;
        transition accept;
    }

    state parse_edm_short_request {
        meta.edm.op     = EDM_OP_REQUEST;
        meta.edm.claims = 1;
        transition accept;
    }

    state parse_edm_good_request {
        meta.edm.op     = EDM_OP_REQUEST;
        meta.edm.claims = 1;
        meta.edm.long   = 1;
        transition accept;
    }

    state parse_edm_bad_demand {
        meta.edm.bad = DROP_EDM_BAD_DEMAND;
        transition accept;
    }

    state parse_edm_write {
        transition select(packet.lookahead<edm_message_t>().total) {
            0       : parse_edm_empty_write;
            default : parse_edm_part_of_write;
        }
    }

    state parse_edm_part_of_write {
        packet.extract(hdr.edm_message);
        meta.edm.kind   = EDM_OP_WRITE;
        meta.edm.op     = EDM_OP_WRITE;
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.total  = hdr.edm_message.total;
        meta.edm.offset = hdr.edm_message.offset;
        meta.edm.dated  = 1;
        // The last chunk of a window claims time for the next one.
        transition select(hdr.edm_message.bytes, hdr.edm_message.offset[9:0]) {
            (0, _)     : parse_edm_bad_demand;
            (256, 768) : parse_edm_last;
            (256, _)   : parse_edm_full;
            default    : accept;
        }
    }

    state parse_edm_answer {
        transition select(packet.lookahead<edm_message_t>().total) {
            0       : parse_edm_empty_answer;
            default : parse_edm_part_of_answer;
        }
    }

    state parse_edm_part_of_answer {
        packet.extract(hdr.edm_message);
        meta.edm.kind   = EDM_OP_ANSWER;
        meta.edm.op     = EDM_OP_ANSWER;
        meta.edm.answer = 1;
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.total  = hdr.edm_message.total;
        meta.edm.offset = hdr.edm_message.offset;
        meta.edm.dated  = 1;
        // The last chunk of a window claims time for the next one.
        transition select(hdr.edm_message.bytes, hdr.edm_message.offset[9:0]) {
            (0, _)     : parse_edm_bad_demand;
            (256, 768) : parse_edm_last;
            (256, _)   : parse_edm_full;
            default    : accept;
        }
    }

    state parse_edm_full {
        meta.edm.full = 1;
        transition accept;
    }

    state parse_edm_last {
        meta.edm.full   = 1;
        meta.edm.claims = 1;
        meta.edm.long   = 1;
        transition accept;
    }

    // An empty write is refused: with it, a host could free its lanes without sending.
    state parse_edm_empty_write {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_WRITE;
        meta.edm.bad  = DROP_EDM_BAD_DEMAND;
        transition accept;
    }

    state parse_edm_empty_answer {
        packet.extract(hdr.edm_message);
        meta.edm.kind   = EDM_OP_ANSWER;
        meta.edm.op     = EDM_OP_ANSWER;
        meta.edm.answer = 1;
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.offset = hdr.edm_message.offset;
        transition select(hdr.edm_message.bytes) {
            0       : parse_edm_end;
            default : parse_edm_bad_demand;
        }
    }

    // The NULL response: there is nothing behind it.
    state parse_edm_end {
        meta.edm.end = 1;
        transition accept;
    }

    state parse_edm_managed_read {
        transition select(packet.lookahead<edm_management_t>().target) {
            EDM_TARGET_DESTINATION : parse_edm_read_destination;
            EDM_TARGET_RIGHTS      : parse_edm_read_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_read_destination {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_read_destination;
            default  : parse_edm_bad_index;
        }
    }

    state parse_edm_read_rights {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 63 : parse_edm_good_read_rights;
            default : parse_edm_bad_index;
        }
    }

    state parse_edm_managed_write {
        transition select(packet.lookahead<edm_management_t>().target) {
            EDM_TARGET_DESTINATION : parse_edm_write_destination;
            EDM_TARGET_RIGHTS      : parse_edm_write_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_write_destination {
        packet.extract(hdr.edm_management);
        meta.edm.id      = hdr.edm_management.index[15:0]; // of a lane
        meta.edm.need    = hdr.edm_management.value;
        meta.edm.to_time = hdr.edm_management.value;
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_write_destination;
            default  : parse_edm_bad_index;
        }
    }

    state parse_edm_write_rights {
        packet.extract(hdr.edm_management);
        meta.edm.id      = hdr.edm_management.index[15:0]; // of a lane
        meta.edm.need    = hdr.edm_management.value;
        meta.edm.to_time = hdr.edm_management.value;
        transition select(hdr.edm_management.index) {
            0 .. 63 : parse_edm_good_write_rights;
            default : parse_edm_bad_index;
        }
    }

    state parse_edm_managed_reset {
        transition select(packet.lookahead<edm_management_t>().target) {
            EDM_TARGET_DESTINATION : parse_edm_reset_destination;
            EDM_TARGET_RIGHTS      : parse_edm_reset_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_reset_destination {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_write_destination;
            default  : parse_edm_bad_index;
        }
    }

    state parse_edm_reset_rights {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 63 : parse_edm_good_write_rights;
            default : parse_edm_bad_index;
        }
    }

    state parse_edm_good_read_destination {
        meta.edm.op = EDM_OP_READ_DESTINATION;
        transition accept;
    }

    state parse_edm_good_write_destination {
        meta.edm.op     = EDM_OP_WRITE_DESTINATION;
        meta.edm.amount = 0xFFFFFFFF; // whatever is there
        transition accept;
    }

    state parse_edm_good_read_rights {
        meta.edm.op = EDM_OP_READ_RIGHTS;
        transition accept;
    }

    state parse_edm_good_write_rights {
        meta.edm.op     = EDM_OP_WRITE_RIGHTS;
        meta.edm.amount = 0xFFFFFFFF; // whatever is there
        transition accept;
    }

    state parse_edm_bad_target {
        packet.extract(hdr.edm_management);
        meta.edm.bad = DROP_EDM_BAD_TARGET;
        transition accept;
    }

    state parse_edm_bad_index {
        meta.edm.bad = DROP_EDM_BAD_INDEX;
        transition accept;
    }
}

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Resubmit(RESUBMIT) resubmit;

    Mirror() heads;

    apply {
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<next_pass_t>({ meta.pass, 0 });
        }
        if (ig_dprsr_md.mirror_type == COPY_HEAD) {
            heads.emit<head_t>(meta.head_session, { meta.head_mark, meta.edm.bytes, meta.edm.start });
        }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pl2_control);
        packet.emit(hdr.pl2_management);
        packet.emit(hdr.edm_control);
        packet.emit(hdr.edm_message);
        packet.emit(hdr.edm_management);
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
        meta.pl2.holder = take_lane.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0]);
    }

    @hidden action seize_half() {
        seize_lane.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0]);
    }

    @hidden action begin_half(bit<8> op) {
        meta.pl2.op     = op;
        meta.pl2.holder = begin_in_lane.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0]);
    }

    // The frame is early.
    @hidden action lock_half() {
        meta.pl2.op      = OP_DEMOTED;
        meta.pl2.demoted = DEMOTED_EARLY;
        lock_again.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0]);
    }

    // As the pass before decided, the frame loses its class, or its RSV gets no grant.
    @hidden action demote() {
        meta.pl2.op      = OP_DEMOTED;
        meta.pl2.demoted = meta.pass & ~PASS_DEMOTED;
    }

    @hidden action grant_nothing() {
        meta.pl2.op = OP_NOT_NOW;
    }

    // Sent before its grant, welcome only while little is reserved.
    @hidden action leave_half() {
        meta.pl2.op = OP_UNSOLICITED;
    }

    // lane_lock
    @hidden table requests {
        key = {
            meta.pl2.op     : ternary;
            meta.pl2.claims : ternary;
            meta.pass       : ternary;
            hdr.vlan.dei    : ternary;
        }
        actions = {
            take_half;
            seize_half;
            begin_half;
            lock_half;
            leave_half;
            demote;
            grant_nothing;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (OP_RESERVE, _, 0, _)            : take_half();
            (OP_RESERVE, _, PASS_NOT_NOW, _) : grant_nothing();
            (OP_RESERVE, _, _, _)            : seize_half();
            (OP_NONE, 1, 0, 0)               : begin_half(OP_CLAIM);
            (OP_NONE, 1, 0, 1)               : leave_half();
            (OP_NONE, 1, PASS_AGAIN, _)      : lock_half();
            (OP_NONE, 1, _, _)               : demote();
            (OP_FORGET, _, _, _)             : begin_half(OP_FORGET);
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
            replace_rights.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
            meta.pl2.opens_in   = meta.pl2.now + meta.pl2.limit_in;
            meta.pl2.closes_in  = (bit<32>) reserve_in.execute(meta.pl2.link_in) - meta.pl2.limit_in;
            meta.pl2.opens_out  = meta.pl2.now + meta.pl2.limit_out;
            meta.pl2.closes_out = (bit<32>) reserve_out.execute(meta.pl2.link_out) - meta.pl2.limit_out;
        } else if (meta.pl2.op == OP_FORGET) {
            meta.pl2.left = replace_rights.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM) {
            meta.pl2.left = use_rights.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
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
                go_unsolicited.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
            } else {
                stand.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
            }
        } else if (meta.pl2.op == OP_FORGET) {
            stand.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_UNSOLICITED) {
            meta.pl2.unsolicited =
                (bit<16>) use_unsolicited.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM) {
            meta.pl2.unsolicited =
                (bit<16>) look_unsolicited.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
        }

        // starts: once both ports are free.
        if (meta.pl2.op == OP_RESERVE) {
            set_start_in.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
            set_start_out.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
        } else if (meta.pl2.op == OP_CLAIM || meta.pl2.op == OP_OCCUPIED) {
            meta.pl2.window_in =
                (bit<32>) look_at_start_in.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
            meta.pl2.window_out =
                (bit<32>) look_at_start_out.execute(meta.pl2.source[1:0] ++ meta.pl2.destination[1:0] ++ meta.pl2.cell[0:0]);
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
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    @hidden action reply_to_controller() {
        turn_around();
        hdr.pl2_management.kind    = PL2_MGMT_REPLY;
        ig_tm_md.qid               = PRIORITY_CONTROL;
        ig_tm_md.ucast_egress_port = CPU_PORT;
    }

    @hidden action schedule() {
        ig_tm_md.qid = PRIORITY_SCHEDULED;
    }

    @hidden action pass_again(bit<8> pass) {
        meta.pass                 = pass;
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
            tell_rights;
            tell_in;
            tell_out;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
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
            (OP_UNSOLICITED, _, HAS_SLOTS, _, _, _) : NoAction();
            (OP_UNSOLICITED, _, 0, _, _, _)         : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED_UNSOLICITED);
            (OP_UNSOLICITED, _, NOT_ASKED, _, _, _) : pass_again(PASS_DEMOTED | DEMOTED_UNCOVERED_UNSOLICITED);
            (OP_UNSOLICITED, _, _, 0, _, _)         : NoAction();
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
        if (eg_intr_md.egress_qid == PRIORITY_SCHEDULED && room[15:15] == 1 &&
            hdr.vlan.isValid() && hdr.vlan.etherType != ETHERTYPE_EDM) {
            too_long.count(0);
            eg_dprsr_md.drop_ctl = 1;
        }
    }
}

// The scheduler: demands get time at the links of their data, and data passes as granted.
control Edm(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md, in bit<8> color) {
    // Frames that lose the class that they claim, by reason.
    Counter<bit<64>, bit<8>>(EDM_DEMOTED_REASONS, CounterType_t.PACKETS_AND_BYTES) demoted;

    // By port: demands of the port's host that were granted, data that went to it as scheduled.
    Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) demands;

    // A pair of a host that asks and a memory node has lanes, for writes and for answers each: a message takes the lane that
    // the low bits of its id name, and has it until its last byte has passed. So a pair has as many demands as lanes.
    //
    // What each register guarantees, in the order in which all frames pass them, each at most once:
    //
    // touched           when the lane's message last went on: a lane whose message has stopped is free again
    // rights            what of it is granted and was not sent: a lane has one message, a message sends what was granted
    // destination_free  a destination gets granted chunks one after the other
    // due               what comes before its time is granted no more; it takes a second pass, which undoes the first
    //
    // A demand grants what the window holds. Each further chunk is granted when one passes: the data says what is left.

    // When the lane's message last made progress.
    // Written by demands, chunks; it wraps as the time does.
    Register<int<32>, bit<6>>(EDM_CELL_COUNT) touched;

    // Whether a message in this lane has made no progress for EDM_EXPIRY, so that the lane is free.
    RegisterAction<int<32>, bit<6>, int<32>>(touched) touch = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.edm.now > 0 || value - (int<32>) meta.edm.now < -EDM_EXPIRY) {
                result = 1;
            } else {
                result = 0;
            }
            value = (int<32>) meta.edm.now;
        }
    };

    // For a demand: the largest amount that a lane may hold and still be taken; an abandoned lane may hold any amount.
    RegisterAction<int<32>, bit<6>, bit<32>>(touched) touch_asked = {
        void apply(inout int<32> value, out bit<32> result) {
            if (value - (int<32>) meta.edm.now > 0 || value - (int<32>) meta.edm.now < -EDM_EXPIRY) {
                result = 0xFFFFFFFF;
            } else {
                result = 0;
            }
            value = (int<32>) meta.edm.now;
        }
    };

    // Bytes of the lane's message that are granted and were not sent. 0: the lane is free.
    // Written by demands, chunks, the controller; it never wraps.
    Register<bit<32>, bit<6>>(EDM_CELL_COUNT) rights;

    // For a demand: the lane must be free, or abandoned.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) take_lane = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value <= meta.edm.amount) {
                value  = meta.edm.need;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    // For a chunk. The grant behind it is at most its own size.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) use_rights = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value >= meta.edm.need) {
                value  = value |-| meta.edm.amount;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    // For a full chunk with more of the message behind it: the last granted one asks for more.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) ask = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == meta.edm.need) {
                value  = value - meta.edm.amount;
                result = 1;
            } else if (value > meta.edm.need) {
                value  = value - meta.edm.need;
                result = 2;
            } else {
                result = 0;
            }
        }
    };

    // For the controller, which writes if `amount` or `need` is not 0. For the second pass of an early chunk, which gets its
    // right back.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) manage_rights = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            if (meta.edm.need != 0 || meta.edm.amount != 0) {
                value = meta.edm.need;
            }
        }
    };

    // How far ahead a link's time is claimed, before rights to it are known: a demand claims time for a chunk or a window, and
    // so does the last chunk of a window for the next one. Where a link is claimed further ahead than a chunk takes, they are
    // granted a chunk.

    // Until when the time of the link is claimed, as a destination.
    // Written by demands, last chunks of windows; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) destination_claimed;

    RegisterAction<int<32>, bit<16>, bit<8>>(destination_claimed) claim_destination = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.edm.now > EDM_CHUNK_AHEAD) {
                result = 0;
            } else {
                result = 1;
            }
            if ((bit<32>) value - meta.edm.now < (bit<32>) EDM_HORIZON) {
                value = value + (int<32>) meta.edm.to_claim;
            } else {
                value = (int<32>) meta.edm.now + (int<32>) meta.edm.to_claim;
            }
        }
    };

    // When what was last granted of the lane's message may leave.
    // Written by demands and chunks that are granted something; it wraps as the time does.
    Register<int<32>, bit<6>>(EDM_CELL_COUNT) due;

    RegisterAction<int<32>, bit<6>, int<32>>(due) set_due = {
        void apply(inout int<32> value, out int<32> result) {
            value  = (int<32>) meta.edm.earliest + meta.edm.to_wait;
            result = value;
        }
    };

    // For a chunk that is granted more, or a notification: whether it came before what is due. Then that stays due.
    RegisterAction<int<32>, bit<6>, bit<8>>(due) move_due = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.edm.earliest > EDM_CHUNK_AHEAD && value - (int<32>) meta.edm.earliest < EDM_HORIZON) {
                result = 1;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.earliest + meta.edm.to_wait;
            }
        }
    };

    // For a chunk that is granted nothing: the same.
    RegisterAction<int<32>, bit<6>, bit<8>>(due) look_at_due = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.edm.earliest > EDM_CHUNK_AHEAD && value - (int<32>) meta.edm.earliest < EDM_HORIZON) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    // The time at which a link is next free. Times wrap, so they are never compared directly: one further ahead than
    // EDM_HORIZON is in the past, and the link is free. A link that was idle for a multiple of 2^32 units may look taken for
    // up to EDM_HORIZON, once.

    // When the link is next free, as a destination.
    // Written by what is granted, the controller; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) destination_free;

    // Returns how long until what is granted begins.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) reserve_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
                result = 0;
                value  = (int<32>) meta.edm.earliest + (int<32>) meta.edm.to_time;
            } else {
                result = value - (int<32>) meta.edm.earliest;
                value  = value + (int<32>) meta.edm.to_time;
            }
        }
    };

    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) look_at_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.edm.earliest;
            }
        }
    };

    // Controller write, relative to now; returns the previous value.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) write_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
                result = 0;
            } else {
                result = value - (int<32>) meta.edm.earliest;
            }
            value = (int<32>) meta.edm.earliest + (int<32>) meta.edm.to_time;
        }
    };

    // The second pass's of a chunk that came before its time.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) give_back_destination = {
        void apply(inout int<32> value, out int<32> result) {
            value  = value - (int<32>) meta.edm.to_time;
            result = value;
        }
    };

    // Time of bytes on the wire, with the frames' headers and gaps, in units of 16 bytes, so that no target has to
    // multiply.
    action take_times(bit<32> to_time) {
        meta.edm.to_time = to_time;
    }

    table times {
        key = {
            meta.edm.round[15:4] : exact @name("units");
            meta.edm.to_rate     : exact;
        }
        actions = {
            take_times;
        }
        const default_action = take_times(0);
        size = 1024;
    }

    // Selects requester and memory node: a response travels opposite to its request.
    @hidden action locate_by_destination() {
        meta.edm.cell   = meta.edm.source_asks + meta.edm.destination_asked;
        meta.edm.memory = meta.edm.destination_memory;
    }

    @hidden action locate_by_source() {
        meta.edm.cell   = meta.edm.destination_asks + meta.edm.source_asked;
        meta.edm.memory = meta.edm.source_memory;
    }

    // Data travels with the frame, except that an answer travels opposite to its request.
    @hidden action goes_on() {
        meta.edm.to      = meta.edm.destination_link;
        meta.edm.to_rate = meta.edm.destination_rate;
    }

    @hidden action comes_back() {
        meta.edm.to      = meta.edm.source_link;
        meta.edm.to_rate = meta.edm.source_rate;
    }

    // The rest of the message behind the chunk, and the part of it that a chunk can grant. The length, rounded up, is
    // the key of its time.
    @hidden action look_behind_chunk() {
        meta.edm.spare = 512 - (int<32>) meta.edm.rest;
        meta.edm.round = meta.edm.rest - 241;
        meta.edm.over  = meta.edm.rest - 257;
        meta.edm.rest  = meta.edm.rest - EDM_CHUNK;
    }

    @hidden action look_at_demand() {
        meta.edm.round = meta.edm.rest + 15;
    }

    @hidden action ask_behind_chunk() {
        meta.edm.asks   = 1;
        meta.edm.bytes  = min(meta.edm.rest, EDM_CHUNK);
        meta.edm.amount = EDM_CHUNK |-| meta.edm.rest;
        meta.edm.round  = min(meta.edm.round, 32w271);
    }

    @hidden action ask_for_demand() {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.need  = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.then  = EDM_PASS_EARLY_WINDOW;
        meta.edm.round = min(meta.edm.round, 32w1039);
    }

    @hidden action ask_for_chunk() {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_CHUNK);
        meta.edm.need  = min(meta.edm.rest, EDM_CHUNK);
        meta.edm.round = min(meta.edm.round, 32w271);
    }

    @hidden action ask_for_window() {
        meta.edm.asks   = 1;
        meta.edm.then   = EDM_PASS_EARLY_WINDOW;
        meta.edm.bytes  = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.amount = (bit<32>) max(meta.edm.spare, EDM_WINDOW_MORE);
        meta.edm.round  = min(meta.edm.round, 32w1039);
    }

    @hidden action claim_chunk_on() {
        meta.edm.to_claim = meta.edm.destination_chunk_time;
    }

    @hidden action claim_window_on() {
        meta.edm.to_claim = meta.edm.destination_chunk_time << 2;
    }

    @hidden action claim_chunk_back() {
        meta.edm.to_claim = meta.edm.source_chunk_time;
    }

    @hidden action claim_window_back() {
        meta.edm.to_claim = meta.edm.source_chunk_time << 2;
    }

    // The controller's: the lane, or the link.
    @hidden action manage() {
        meta.edm.cell   = hdr.edm_management.index;
        meta.edm.answer = hdr.edm_management.index[2:2];
        meta.edm.to     = hdr.edm_management.index;
    }

    apply {
        // Which lane, and which way data goes: an answer goes the other way than its request.
        if (hdr.edm_management.isValid()) {
            manage();
        } else {
            if (meta.edm.kind == EDM_OP_ANSWER) {
                locate_by_source();
            } else {
                locate_by_destination();
            }
            if (meta.edm.kind == EDM_OP_REQUEST) {
                comes_back();
            } else {
                goes_on();
            }
        }
        if (meta.edm.kind == EDM_OP_REQUEST) {
            if (meta.edm.long == 1) {
                claim_window_back();
            } else {
                claim_chunk_back();
            }
        } else {
            if (meta.edm.long == 1) {
                claim_window_on();
            } else {
                claim_chunk_on();
            }
        }
        if (meta.edm.kind == EDM_OP_WRITE || meta.edm.kind == EDM_OP_ANSWER) {
            look_behind_chunk();
        } else {
            look_at_demand();
        }

        if (color == MeterColor_t.RED) {
            meta.drop   = DROP_EDM_CONTROL_METER;
            meta.edm.op = EDM_OP_NONE;
        } else {
            // touched
            if (meta.edm.op != EDM_OP_NONE && meta.edm.op[3:3] == 0 && meta.edm.memory != 0) {
                if (meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) {
                    meta.edm.amount = touch_asked.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                } else {
                    touch.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                }
            }
            if (meta.edm.op != EDM_OP_NONE && meta.edm.claims == 1 && meta.edm.memory != 0 && meta.pass == 0) {
                meta.edm.to_unclaimed = claim_destination.execute(meta.edm.to[15:0]);
            }
        }
        // The amount to grant, computed for every frame: to a demand up to a window, behind the last granted
        // chunk the next window. At a link that is claimed far ahead a message gets one chunk at a time: hosts
        // with equally many messages get equal shares of it.
        if (meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) {
            if (meta.edm.to_unclaimed == 1) {
                ask_for_demand();
            } else {
                ask_for_chunk();
            }
        } else if (meta.edm.full == 1 && meta.edm.over[31:31] == 0) {
            if (meta.edm.to_unclaimed == 1) {
                ask_for_window();
            } else {
                ask_behind_chunk();
            }
        }
        if (meta.edm.asks == 1) {
            times.apply();
        }

        // rights
        if (meta.edm.op == EDM_OP_READ_RIGHTS || meta.edm.op == EDM_OP_WRITE_RIGHTS ||
            meta.edm.dated == 1 && meta.pass != 0) {
            meta.edm.held = manage_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
        } else if (meta.edm.op != EDM_OP_NONE && meta.edm.op[3:3] == 0 && meta.edm.memory != 0 &&
            meta.pass == 0) {
            if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                meta.edm.granted = take_lane.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            } else if (meta.edm.asks == 1) {
                meta.edm.granted = ask.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            } else {
                meta.edm.granted = use_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            }
        }

        // Outcome of the frame.
        if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
            if (meta.edm.memory == 0) {
                meta.drop = DROP_EDM_NO_MEMORY;
            } else if (meta.edm.granted == 0) {
                meta.drop = DROP_EDM_LANE_TAKEN;
            } else {
                ig_tm_md.qid = EDM_CLASS_CONTROL;
                demands.count(ig_intr_md.ingress_port);
            }
        } else if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
            if (meta.edm.granted == 0) {
                demoted.count(EDM_DEMOTED_UNCOVERED);
            } else {
                ig_tm_md.qid = EDM_CLASS_DATA;
            }
        } else if (meta.edm.op != EDM_OP_NONE) {
            ig_tm_md.qid = EDM_CLASS_CONTROL;
        }

        // destination_free
        if (meta.edm.asks == 1 && meta.edm.granted == 1) {
            meta.edm.to_wait = reserve_destination.execute(meta.edm.to[15:0]);
        } else if (meta.edm.asks == 1 && meta.pass != 0) {
            give_back_destination.execute(meta.edm.to[15:0]);
        } else if (meta.edm.op == EDM_OP_READ_DESTINATION) {
            meta.edm.to_wait = look_at_destination.execute(meta.edm.to[15:0]);
        } else if (meta.edm.op == EDM_OP_WRITE_DESTINATION) {
            meta.edm.to_wait = write_destination.execute(meta.edm.to[15:0]);
        }

        // due: an early chunk takes another pass, which gives back its right and its grant. So does a notification whose lane is
        // free for as long as that takes.
        if (meta.edm.granted[0:0] == 1) {
            if (meta.edm.asks == 1) {
                if (meta.edm.dated == 1 || meta.edm.op == EDM_OP_NOTIFY && meta.edm.amount[0:0] == 0) {
                    meta.edm.early = move_due.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                } else {
                    set_due.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                }
            } else if (meta.edm.dated == 1) {
                meta.edm.early = look_at_due.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            }
        }
    }
}

// Reports the wait: a notification returns, a request continues, a chunk's head returns; or answers the controller.
control EdmReplies(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @hidden action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
    }

    // The notification goes back as the grant of the message's first bytes.
    @hidden action grant() {
        turn_around();
        hdr.edm_control.kind       = EDM_GRANT;
        hdr.edm_control.bytes      = meta.edm.bytes;
        hdr.edm_control.wait       = (bit<32>) meta.edm.to_wait;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    // By port: data that went to it as scheduled, once it is known that it came at its time.
    @name(".RackIngress.edm.data") Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) data;

    @hidden action reply_to_controller() {
        turn_around();
        hdr.edm_management.kind    = EDM_MGMT_REPLY;
        ig_tm_md.ucast_egress_port = CPU_PORT;
    }

    @hidden action come_again() {
        meta.pass                 = meta.edm.then;
        ig_dprsr_md.resubmit_type = RESUBMIT;
    }

    apply {
        if (meta.edm.op == EDM_OP_NOTIFY) {
            if (meta.edm.early == 1) {
                come_again();
            } else {
                grant();
            }
        } else if (meta.edm.op == EDM_OP_REQUEST) {
            hdr.edm_message.offset = (bit<32>) meta.edm.to_wait;
            if (hdr.edm_message.kind == EDM_RREQ) {
                hdr.edm_message.bytes = meta.edm.bytes[15:0];
            }
        } else if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
            if (meta.edm.early == 1) {
                come_again();
            } else if (meta.edm.granted[1:0] != 0) {
                data.count(ig_tm_md.ucast_egress_port);
            }
            if (meta.edm.early == 0 && meta.edm.asks == 1 && meta.edm.granted[0:0] == 1) {
                meta.edm.start          = (bit<32>) meta.edm.to_wait;
                meta.head_mark          = HEAD;
                ig_dprsr_md.mirror_type = COPY_HEAD;
            }
        } else if (meta.edm.op == EDM_OP_READ_RIGHTS || meta.edm.op == EDM_OP_WRITE_RIGHTS) {
            hdr.edm_management.value = meta.edm.held;
            reply_to_controller();
        } else if (meta.edm.op == EDM_OP_READ_DESTINATION || meta.edm.op == EDM_OP_WRITE_DESTINATION) {
            hdr.edm_management.value = (bit<32>) meta.edm.to_wait;
            reply_to_controller();
        }
    }
}

// Makes grants of heads, and drops what is longer than it was granted as.
control EdmEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
        in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
        inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    // Granted chunks that are longer than their header says.
    Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) too_long;

    bit<16> room    = 0;
    bit<16> missing = 0; // to the shortest frame

    // Lengths are with FCS, and what frames carry from ingress.
    @hidden action weigh_length() {
        room    = hdr.edm_message.bytes - eg_intr_md.pkt_length;
        missing = 60 + 6 - eg_intr_md.pkt_length;
    }

    @hidden action add_headers() {
        room = room + 46 + 6;
    }

    // The copy of a chunk's head returns as the grant of what follows it.
    @hidden action turn_head() {
        mac_addr_t source    = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = source;
        hdr.edm_control.setValid();
        hdr.edm_control.version = EDM_VERSION;
        hdr.edm_control.kind    = EDM_GRANT;
        hdr.edm_control.id      = hdr.edm_message.id;
        hdr.edm_control.offset  = hdr.edm_message.offset + EDM_CHUNK;
        hdr.edm_control.bytes   = hdr.head.edm_bytes;
        hdr.edm_control.wait    = hdr.head.edm_wait;
    }

    apply {
        if (hdr.head.isValid()) {
            turn_head();
            if (hdr.edm_message.kind == EDM_RRES) {
                hdr.edm_control.answer = 1;
            } else {
                hdr.edm_control.answer = 0;
            }
            if (hdr.vlan.isValid()) {
                hdr.vlan.pcp = 7;
            }
            hdr.edm_message.setInvalid();
        } else if (hdr.edm_message.isValid()) {
            weigh_length();
            add_headers();
            if (eg_intr_md.egress_qid == EDM_CLASS_DATA && room[15:15] == 1 && missing[15:15] == 1) {
                too_long.count(0);
                eg_dprsr_md.drop_ctl = 1;
            }
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
@pa_container_size("ingress", "meta.edm.op", 8)
@pa_container_size("ingress", "meta.edm.bad", 8)
@pa_container_size("ingress", "meta.edm.source_memory", 8)
@pa_container_size("ingress", "meta.edm.source_rate", 8)
@pa_container_size("ingress", "meta.edm.destination_memory", 8)
@pa_container_size("ingress", "meta.edm.destination_rate", 8)
@pa_container_size("ingress", "meta.edm.memory", 8)
@pa_container_size("ingress", "meta.edm.to_rate", 8)
control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;

    // Unless the controller configures a port's meter, everything is green.
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) best_effort_meter;
    Meter<port_t>(PORT_COUNT, MeterType_t.PACKETS) control_meter;
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) edm_control_meter;
    Pl2Lanes() pl2_lanes;
    Pl2() pl2;
    Pl2Verdicts() pl2_verdicts;
    Edm() edm;
    EdmReplies() edm_replies;

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(ig_intr_md.ingress_port);
    }

    action accept_source(link_t link, bit<8> source, bit<8> rate,
        MirrorId_t edm_session,
        bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<32> edm_chunk_time) {
        // Each host has its link's rate, by number: nothing assumes equal rates.
        meta.pl2.link_in           = link;
        meta.pl2.source            = source;
        meta.pl2.rate_in           = rate;
        meta.edm.source_link       = edm_link;
        meta.edm.source_asks       = edm_asks;
        meta.edm.source_asked      = edm_asked;
        meta.edm.source_memory     = edm_memory;
        meta.edm.source_rate       = edm_rate;
        meta.edm.source_chunk_time = edm_chunk_time;
        meta.head_session          = edm_session;
        meta.accepted              = 1;
    }

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

    action forward(port_t port, link_t link, bit<8> destination, bit<8> rate,
        bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<32> edm_chunk_time) {
        ig_tm_md.ucast_egress_port      = port;
        meta.known                      = 1;
        meta.known_port                 = port;
        meta.pl2.link_out               = link;
        meta.pl2.destination            = destination;
        meta.pl2.rate_out               = rate;
        meta.edm.destination_link       = edm_link;
        meta.edm.destination_asks       = edm_asks;
        meta.edm.destination_asked      = edm_asked;
        meta.edm.destination_memory     = edm_memory;
        meta.edm.destination_rate       = edm_rate;
        meta.edm.destination_chunk_time = edm_chunk_time;
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
            (DROP_EDM_CONTROL_METER, MeterColor_t.GREEN, _, _, _)          : count_drop(DROP_EDM_CONTROL_METER);
            (DROP_EDM_BAD_VERSION, MeterColor_t.GREEN, _, _, _)            : count_drop(DROP_EDM_BAD_VERSION);
            (DROP_EDM_BAD_KIND, MeterColor_t.GREEN, _, _, _)               : count_drop(DROP_EDM_BAD_KIND);
            (DROP_EDM_BAD_DEMAND, MeterColor_t.GREEN, _, _, _)             : count_drop(DROP_EDM_BAD_DEMAND);
            (DROP_EDM_BAD_LANE, MeterColor_t.GREEN, _, _, _)               : count_drop(DROP_EDM_BAD_LANE);
            (DROP_EDM_NO_MEMORY, MeterColor_t.GREEN, _, _, _)              : count_drop(DROP_EDM_NO_MEMORY);
            (DROP_EDM_LANE_TAKEN, MeterColor_t.GREEN, _, _, _)             : count_drop(DROP_EDM_LANE_TAKEN);
            (DROP_EDM_MANAGEMENT_FROM_HOST, MeterColor_t.GREEN, _, _, _)   : count_drop(DROP_EDM_MANAGEMENT_FROM_HOST);
            (DROP_EDM_BAD_TARGET, MeterColor_t.GREEN, _, _, _)             : count_drop(DROP_EDM_BAD_TARGET);
            (DROP_EDM_BAD_INDEX, MeterColor_t.GREEN, _, _, _)              : count_drop(DROP_EDM_BAD_INDEX);
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) ig_intr_md.ingress_port;

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
        bit<8> edm_color = MeterColor_t.GREEN;

        // Computed for every frame.
        meta.edm.rest = meta.edm.total - meta.edm.offset;
        if (hdr.edm_message.isValid()) {
            if (meta.edm.full == 1) {
                meta.edm.amount = (bit<32>) hdr.edm_message.bytes;
            } else {
                meta.edm.amount = 0xFFFFFFFF; // a short chunk is the last one, whatever right remains
            }
            if (meta.edm.end == 0) {
                meta.edm.need = (bit<32>) hdr.edm_message.bytes;
            }
        }

        if (meta.steered == 0 && hdr.ethernet.dstAddr[40:40] == 0) {
            l2_forward.apply();
        }
        // Controller frames without a port are forwarded as a host's.
        if (!hdr.packet_out.isValid()) {
            if (source_guard.apply().hit) {
                // Once per frame, in its first pass.
                if (hdr.pl2_control.isValid() && meta.pass == 0) {
                    control_color = control_meter.execute(ig_intr_md.ingress_port);
                }
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && meta.pass == 0) {
                    edm_color = edm_control_meter.execute(ig_intr_md.ingress_port);
                }
            }
        } else {
            // The controller's reservations are those of its port, and its frames have no graces.
            // A management frame says itself what it is about; this chip's parser can't set both, because what it assigns twice
            // has the bits of both values.
            if (!hdr.pl2_management.isValid()) {
                meta.pl2.link_in = (link_t) CPU_PORT;
                meta.pl2.source  = 3;
            }
            if (hdr.packet_out.egress_port == 0) {
                meta.accepted = 1;
                // Once per frame, in its first pass.
                if (hdr.pl2_control.isValid() && meta.pass == 0) {
                    control_color = control_meter.execute(ig_intr_md.ingress_port);
                }
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && meta.pass == 0) {
                    edm_color = edm_control_meter.execute(ig_intr_md.ingress_port);
                }
            }
        }

        if (ig_prsr_md.parser_err != 0) {
            meta.drop   = DROP_MALFORMED;
            meta.pl2.op = OP_NONE;
            meta.edm.op = EDM_OP_NONE;
        } else if (meta.accepted == 0) {
            meta.pl2.op = OP_NONE;
            meta.edm.op = EDM_OP_NONE;
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
            if (control_color == MeterColor_t.RED) {
                meta.drop   = DROP_CONTROL_METER;
                meta.pl2.op = OP_NONE;
            } else if (meta.pl2.bad != 0) {
                meta.drop   = meta.pl2.bad;
                meta.pl2.op = OP_NONE;
            } else
            if (hdr.edm_management.isValid() && !hdr.packet_out.isValid()) {
                meta.drop   = DROP_EDM_MANAGEMENT_FROM_HOST;
                meta.edm.op = EDM_OP_NONE;
            } else if (meta.edm.kind != EDM_OP_NONE && hdr.ethernet.dstAddr[40:40] == 1) {
                meta.drop   = DROP_UNKNOWN_DESTINATION;
                meta.edm.op = EDM_OP_NONE;
            } else if (meta.edm.bad != 0) {
                meta.drop   = meta.edm.bad;
                meta.edm.op = EDM_OP_NONE;
            } else if (hdr.edm_management.isValid()) {
                meta.steered = 1;
            } else
            if (meta.known == 1 && ig_tm_md.ucast_egress_port == ig_intr_md.ingress_port) {
                meta.drop   = DROP_SAME_PORT;
                meta.pl2.op = OP_NONE;
                meta.edm.op = EDM_OP_NONE;
            } else if (hdr.ethernet.dstAddr[40:40] == 1 && meta.steered == 0) {
                ig_tm_md.mcast_grp_a = RACK_GROUP;
            } else if (meta.known == 0 && meta.steered == 0) {
                meta.drop   = DROP_UNKNOWN_DESTINATION;
                meta.pl2.op = OP_NONE;
                meta.edm.op = EDM_OP_NONE;
            } else if (meta.pl2.op != OP_NONE || meta.pl2.claims == 1) {
                pl2_lanes.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
            }
        }

        // A unicast frame that egress need not handle bypasses egress.
        if (hdr.ethernet.dstAddr[40:40] == 0 && !hdr.packet_out.isValid() &&
            meta.known_port != CPU_PORT && (meta.pl2.claims == 0 || hdr.pl2_control.isValid()) && !hdr.edm_message.isValid()) {
            hdr.packet_in.setInvalid();
            ig_tm_md.bypass_egress = 1;
        }
        if (hdr.pl2_control.isValid() || hdr.pl2_management.isValid() || meta.pl2.claims == 1) {
            pl2.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        } else {
            edm.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md, edm_color);
        }

        // A frame that grants nothing is best effort and metered as such: otherwise a host that asks endlessly fills
        // its own queue, then the shared buffer.
        if (meta.pl2.op == OP_DEMOTED || meta.pl2.op == OP_NOT_NOW ||
            (meta.pl2.op == OP_NONE && meta.drop == DROP_NONE && meta.steered == 0 && ig_tm_md.qid == PRIORITY_BEST_EFFORT)) {
            send_best_effort();
        }
        pl2_verdicts.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        edm_replies.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        if (meta.drop != DROP_NONE || best_effort_color == MeterColor_t.RED || meta.pl2.op == OP_UNSOLICITED) {
            refusals.apply();
        }
    }
}

parser RackEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        transition select(packet.lookahead<bit<8>>()) {
            HEAD    : parse_head;
            default : parse_carried;
        }
    }

    state parse_head {
        packet.extract(hdr.head);
        transition parse_ethernet;
    }

    state parse_carried {
        packet.extract(hdr.packet_in);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            ETHERTYPE_VLAN : parse_vlan;
            ETHERTYPE_PL2  : parse_pl2;
            ETHERTYPE_EDM  : parse_edm;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_PL2 : parse_pl2;
            ETHERTYPE_EDM : parse_edm;
            default       : accept;
        }
    }

    // Ingress has checked its kind.
    state parse_pl2 {
        transition accept;
    }

    state parse_edm {
        transition select(packet.lookahead<edm_start_t>().version, packet.lookahead<edm_start_t>().kind) {
            (EDM_VERSION, EDM_WREQ) : parse_edm_chunk;
            (EDM_VERSION, EDM_RRES) : parse_edm_chunk;
            default                 : accept;
        }
    }

    state parse_edm_chunk {
        packet.extract(hdr.edm_message);
        transition accept;
    }
}

control RackEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.pl2_control);
        packet.emit(hdr.pl2_management);
        packet.emit(hdr.edm_control);
        packet.emit(hdr.edm_message);
        packet.emit(hdr.edm_management);
    }
}

control RackEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Pl2Egress() pl2;
    EdmEgress() edm;

    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
        pl2.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md, eg_oport_md);
        edm.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md, eg_oport_md);
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

@pkginfo(name="edm_timed_dst_pl2_clock", version="0.1.0")
Switch(pipe) main;
