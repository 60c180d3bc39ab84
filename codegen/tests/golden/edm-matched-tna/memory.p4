// edm_matched: the switch of rack "memory".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
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
const bit<16> ETHERTYPE_EDM  = 0x88B6;

// Queues, served in strict order, 7 first.
const QueueId_t EDM_CLASS_CONTROL    = 7;
const QueueId_t EDM_CLASS_DATA       = 5;
const QueueId_t PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<8>  DROP_MALFORMED                = 0;   // cut short within a header
const bit<8>  DROP_SPOOFED                  = 1;   // source address is not the port's own host's
const bit<8>  DROP_UNKNOWN_DESTINATION      = 2;   // no host has this address
const bit<8>  DROP_SAME_PORT                = 3;   // the destination is the sender
const bit<8>  DROP_BEST_EFFORT_METER        = 4;   // more best effort than the port may send
const bit<8>  DROP_EDM_CONTROL_METER        = 5;   // more notifications and requests than the port may send
const bit<8>  DROP_EDM_BAD_VERSION          = 6;   // EDM of another version
const bit<8>  DROP_EDM_BAD_KIND             = 7;   // an EDM kind that hosts don't send, or that doesn't exist
const bit<8>  DROP_EDM_BAD_DEMAND           = 8;   // a demand for nothing or for too much, or data without bytes
const bit<8>  DROP_EDM_BAD_LANE             = 9;   // names a lane that pairs don't have
const bit<8>  DROP_EDM_NO_MEMORY            = 10;  // a demand for a host without memory
const bit<8>  DROP_EDM_LANE_TAKEN           = 11;  // the lane's message is not done
const bit<8>  DROP_EDM_MANAGEMENT_FROM_HOST = 12;  // management from a port other than the controller's
const bit<8>  DROP_EDM_BAD_TARGET           = 13;  // management of a register that doesn't exist
const bit<8>  DROP_EDM_BAD_INDEX            = 14;  // management of a cell that doesn't exist
const bit<8>  DROP_EDM_NO_TIME              = 15;  // a demand for which there is no time, and no room to wait
const bit<8>  DROP_EDM_WAITS                = 16;  // no loss: a notification that waits for its grant
const bit<8>  DROP_EDM_LOOKED               = 17;  // no loss: a copy that looked for demands that wait, and found none
const bit<32> DROP_REASONS                  = 18;  // how many there are
const bit<8>  DROP_NONE                     = 255; // it is not dropped

const MirrorType_t COPY_HEAD  = 1;    // of frames whose head goes back
const bit<8>       HEAD       = 0xFF; // the head's mark
const bit<8>       HEAD_AGAIN = 0xFE; // the same of a frame that came back, and has before it what its last pass left

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds.
typedef bit<32> time_t;

const ResubmitType_t RESUBMIT  = 1;  // of frames that make another pass
const port_t         LOOP_PORT = 68; // what is sent by it comes back

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
const int<32> EDM_HORIZON = 16384; // a clock further ahead is in the past
const int<32> EDM_EXPIRY  = 32768; // a message without progress for this time gives up its lane

// Operations of the controller's frames: each has the bit EDM_OP_MANAGED.
const bit<8> EDM_OP_MANAGED           = 8;
const bit<8> EDM_OP_READ_RIGHTS       = 8;
const bit<8> EDM_OP_WRITE_RIGHTS      = 9;
const bit<8> EDM_OP_READ_DESTINATION  = 10;
const bit<8> EDM_OP_WRITE_DESTINATION = 11;

const bit<32> EDM_AHEAD      = 430;        // how far ahead a link may be granted before demands wait
const int<32> EDM_FAR        = -1;         // what a clock says that is further ahead: no wait is below 0
const bit<32> EDM_LATER      = 0xFFFFFFFF; // the wait in a request whose answer is granted later
const bit<32> EDM_RING       = 16;         // demands that a ring holds: as many as lanes lead to a host
const bit<8>  EDM_SERVED_MAX = 24;         // waiting demands that one frame serves, at most

// Left by a pass for the next one.
const bit<8> EDM_PASS_JOIN      = 1; // no other demand waited, but the link was granted too far ahead
const bit<8> EDM_PASS_GIVE_BACK = 2; // the ring was full
const bit<8> EDM_PASS_SERVE     = 3; // there is room for a demand that waits
const bit<8> EDM_PASS_MARK      = 4; // the same; and the ring's bit is missing
const bit<8> EDM_PASS_SETTLE    = 5; // a demand was served
const bit<8> EDM_PASS_UNMARK    = 6; // the same; and nothing was left in its ring
const bit<8> EDM_PASS_REMARK    = 7; // the ring's bit is missing, and the frame has served others often enough

// A frame's operation, once it knows whether demands wait.
const bit<8> EDM_GRANTS = 1; // none wait: it takes time
const bit<8> EDM_ENTERS = 2; // some do: it waits as well
const bit<8> EDM_LOOKS  = 3; // some do: it looks whether there is room for them
const bit<8> EDM_SERVES = 4; // some do: it takes a window's time for one of them

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

// State that a pass leaves for the next one.
header again_t {
    bit<8> pass; // which one it is; 0: the first
}

// A frame's first arrival. With the state that a pass leaves, it precedes a frame that comes back.
header came_t {
    bit<7>  unused;
    port_t  port;
    bit<32> arrived;
    // State that the second and later passes leave for the next one.
    bit<8>  edm_nth;   // grants of demands that waited, so far
    bit<8>  edm_class; // the ring of the last one; while a pass lasts, any
    bit<32> edm_left;  // where its window left the clock
    bit<32> edm_bytes; // what it was granted
}

struct headers_t {
    again_t          again;
    came_t           came;
    packet_in_t      packet_in;
    packet_out_t     packet_out;
    ethernet_t       ethernet;
    vlan_t           vlan;
    edm_control_t    edm_control;
    edm_message_t    edm_message;
    edm_management_t edm_management;
}

// State of edm while ingress handles a frame.
struct edm_metadata_t {
    bit<8>     kind;             // what the frame is: one of EDM_OP
    bit<8>     op;               // the same, once it may be
    time_t     now;              // when it came
    bit<32>    source_link;      // where the frame comes from
    bit<32>    source_asks;      // the source's first cell as a requester
    bit<32>    source_asked;     // its offset among a requester's cells, as memory
    bit<8>     source_memory;    // whether it has memory
    bit<8>     source_rate;      // the number of its rate
    bit<32>    destination_link; // the same of where the frame goes
    bit<32>    destination_asks;
    bit<32>    destination_asked;
    bit<8>     destination_memory;
    bit<8>     destination_rate;
    bit<16>    id;               // of the message
    bit<32>    cell;             // the lane of the message
    bit<8>     memory;           // whether the host that is asked has memory
    bit<32>    total;            // bytes of the message
    bit<32>    offset;           // where in the message the chunk starts
    bit<32>    rest;             // what of the message is left behind what was granted; below 0: nothing
    bit<32>    bytes;            // what is granted
    // The ALU of `rights` reads these two alone, so a demand has other amounts here than a chunk.
    bit<32>    need;             // what a demand gives a right to, or a chunk must have one to
    bit<32>    amount;           // what it uses up of this
    int<32>    expired;          // whether the lane's message has given it up
    bit<32>    granted;          // whether a demand has its lane, or a chunk its right
    bit<32>    held;             // what a lane held, as the controller asks
    bit<8>     to_rate;          // the number of the rate of where data goes
    bit<32>    to;               // where data goes
    bit<32>    to_time;          // what the granted bytes take where they go
    int<32>    to_wait;          // how long until they may
    bit<32>    round;            // their length, to be rounded up to units
    bit<8>     bad;              // why the frame is refused, as the parser sees it; 0: it is not
    bit<1>     answer;           // whether its lane is one of answers
    bit<8>     end;              // whether it is the NULL response: there is nothing behind it
    bit<8>     full;             // whether it has a full chunk
    bit<8>     asks;             // whether something is to be granted
    bit<32>    over;             // what is behind the window, but for a byte; below 0: nothing
    bit<32>    start;            // how long the copy's grant has to wait
    bit<8>     source_host;      // the numbers of the hosts from and to which the frame goes
    bit<8>     destination_host;
    bit<16>    source_rings;     // the same of their links' rings, and of those where data goes
    bit<16>    destination_rings;
    bit<16>    to_rings;
    bit<32>    waits;            // in which rings demands wait for the destination
    bit<32>    mark;             // the bit of the ring that is marked or not
    bit<8>     does;             // the frame's operation on that
    bit<8>     copies;           // whether its head becomes a grant: its own, or that of one that waited
    bit<32>    count;            // whether there was room in the ring; how many were in it
    bit<32>    at;               // a place there
    bit<32>    demand;           // a demand that waits: source, destination, id
    bit<32>    next;             // its offset, a multiple of the window; the lowest bit: whether it is for an answer
    bit<32>    excess;           // what a window takes more than the granted bytes
    bit<32>    limit;            // how far ahead the destination's clock may be for another grant
    bit<32>    beyond;           // how far it is beyond that
    bit<32>    after;            // when what is granted now would be over
    mac_addr_t grantee;          // the host that gets a grant, and the other host of its message
    mac_addr_t partner;
}

struct metadata_t {
    edm_metadata_t edm;
    bit<8>         drop;         // why the frame is dropped
    bit<1>         steered;      // whether it goes where the controller says, or back to it
    bit<8>         known;        // whether its destination is known; a byte, so that it may change beside the next one
    port_t         known_port;   // the port of its destination, wherever the frame goes
    bit<8>         accepted;     // whether its source may send it
    MirrorId_t     head_session; // by which the frame's head goes back
    bit<8>         head_mark;
    bit<1>         again;        // whether the frame makes another pass
}

// Precedes a frame that is resubmitted: what a pass leaves, in as many bytes as the device has for it.
header next_pass_t {
    bit<8>  pass;
    bit<56> padding;
}

// Precedes a mirrored head of a frame in its first form, which egress turns into another frame. Port numbers never begin with
// its mark.
header head_t {
    bit<8>     mark;
    mac_addr_t edm_grantee; // the host that gets the grant
    mac_addr_t edm_partner; // the other host of its message
    bit<16>    edm_id;
    bit<32>    edm_offset;  // as in the ring
    bit<32>    edm_bytes;
    bit<32>    edm_wait;    // how long until that may leave
}

// A frame as egress parses it: the first header is the one that every other frame carries from ingress.
struct egress_headers_t {
    packet_in_t      packet_in;
    ethernet_t       ethernet;
    vlan_t           vlan;
    edm_control_t    edm_control;
    edm_message_t    edm_message;
    edm_management_t edm_management;
    head_t           head;
}

struct egress_metadata_t { }

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.drop       = DROP_NONE;
        meta.steered    = 0;
        meta.known      = 0;
        meta.known_port = 0;
        meta.accepted   = 0;
        // The controller has no link and no memory; its lanes are the first ones.
        meta.edm.kind               = EDM_OP_NONE;
        meta.edm.op                 = EDM_OP_NONE;
        meta.edm.bad                = 0;
        meta.edm.answer             = 0;
        meta.edm.end                = 0;
        meta.edm.full               = 0;
        meta.edm.asks               = 0;
        meta.edm.total              = 0;
        meta.edm.offset             = 0;
        meta.edm.source_link        = 0;
        meta.edm.source_asks        = 0;
        meta.edm.source_asked       = 0;
        meta.edm.source_memory      = 0;
        meta.edm.source_rate        = 0;
        meta.edm.destination_link   = 0;
        meta.edm.destination_asks   = 0;
        meta.edm.destination_asked  = 0;
        meta.edm.destination_memory = 0;
        meta.edm.destination_rate   = 0;
        meta.edm.id                 = 0;
        meta.edm.cell               = 0;
        meta.edm.memory             = 0;
        meta.edm.rest               = 0;
        meta.edm.over               = 0;
        meta.edm.amount             = 0;
        meta.edm.expired            = 0;
        meta.edm.to                 = 0;
        meta.edm.to_rate            = 0;
        meta.edm.round              = 0;
        meta.edm.start              = 0;
        meta.edm.granted            = 0;
        meta.edm.held               = 0;
        meta.edm.bytes              = 0;
        meta.edm.need               = 0;
        meta.edm.to_time            = 0;
        meta.edm.to_wait            = 0;
        meta.edm.source_host        = 0;
        meta.edm.destination_host   = 0;
        meta.edm.source_rings       = 0;
        meta.edm.destination_rings  = 0;
        meta.edm.to_rings           = 0;
        meta.edm.mark               = 0;
        meta.edm.waits              = 0;
        meta.edm.does               = 0;
        meta.edm.copies             = 0;
        meta.edm.count              = 0;
        meta.edm.at                 = 0;
        meta.edm.demand             = 0;
        meta.edm.next               = 0;
        meta.edm.excess             = 0;
        meta.edm.limit              = 0;
        meta.edm.beyond             = 0;
        meta.edm.after              = 0;
        meta.edm.grantee            = 0;
        meta.edm.partner            = 0;
        meta.head_session           = 0;
        meta.again                  = 0;
        // Each pass reads the device's header itself: the parser can't go back to it from a state that has several ways to it.
        // No host is at this port, so only what this program has sent comes by it.
        transition select(packet.lookahead<ingress_intrinsic_metadata_t>().resubmit_flag,
            packet.lookahead<ingress_intrinsic_metadata_t>().ingress_port) {
            (1, _)         : parse_next_pass;
            (0, LOOP_PORT) : parse_later_pass;
            default        : parse_first_pass;
        }
    }

    state parse_later_pass {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.again);
        packet.extract(hdr.came);
        meta.edm.now     = hdr.came.arrived;
        meta.head_mark   = HEAD_AGAIN;
        meta.edm.granted = 1; // the first pass saw to that
        transition select(hdr.came.port) {
            CPU_PORT : parse_packet_out;
            default  : parse_ethernet;
        }
    }

    state parse_first_pass {
        packet.extract(ig_intr_md);
        hdr.came.setValid();
        hdr.came.unused    = 0;
        hdr.came.port      = ig_intr_md.ingress_port;
        hdr.came.arrived   = ig_intr_md.ingress_mac_tstamp[31:0];
        hdr.came.edm_nth   = 0;
        hdr.came.edm_class = 0;
        hdr.came.edm_left  = 0;
        hdr.came.edm_bytes = 0;
        meta.head_mark     = HEAD;
        meta.edm.now       = ig_intr_md.ingress_mac_tstamp[31:0];
        packet.advance(PORT_METADATA_SIZE);
        hdr.again.setValid();
        hdr.again.pass = 0;
        transition parse_port;
    }

    state parse_next_pass {
        packet.extract(ig_intr_md);
        hdr.came.setValid();
        hdr.came.unused    = 0;
        hdr.came.port      = ig_intr_md.ingress_port;
        hdr.came.arrived   = ig_intr_md.ingress_mac_tstamp[31:0];
        hdr.came.edm_nth   = 0;
        hdr.came.edm_class = 0;
        hdr.came.edm_left  = 0;
        hdr.came.edm_bytes = 0;
        meta.head_mark     = HEAD;
        meta.edm.now       = ig_intr_md.ingress_mac_tstamp[31:0];
        packet.extract(hdr.again);
        packet.advance(56);
        meta.edm.granted = 1; // the first pass saw to that
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
            ETHERTYPE_EDM  : parse_edm;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_EDM : parse_edm;
            default       : accept;
        }
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
            1 .. EDM_MESSAGE : parse_edm_good_notify;
            default          : parse_edm_bad_demand;
        }
    }

    state parse_edm_good_notify {
        meta.edm.op = EDM_OP_NOTIFY;
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
            EDM_WORD : parse_edm_good_request;
            default  : parse_edm_bad_demand;
        }
    }

    state parse_edm_request_bad_lane {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_REQUEST;
        meta.edm.bad  = DROP_EDM_BAD_LANE;
        transition accept;
    }

    state parse_edm_good_request {
        meta.edm.op = EDM_OP_REQUEST;
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
        // The first chunk of a window asks for the next one.
        transition select(hdr.edm_message.bytes, hdr.edm_message.offset[9:0]) {
            (0, _)   : parse_edm_bad_demand;
            (256, 0) : parse_edm_full;
            default  : accept;
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
        // The first chunk of a window asks for the next one.
        transition select(hdr.edm_message.bytes, hdr.edm_message.offset[9:0]) {
            (0, _)   : parse_edm_bad_demand;
            (256, 0) : parse_edm_full;
            default  : accept;
        }
    }

    state parse_edm_full {
        meta.edm.full = 1;
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
        meta.edm.op = EDM_OP_WRITE_DESTINATION;
        transition accept;
    }

    state parse_edm_good_read_rights {
        meta.edm.op = EDM_OP_READ_RIGHTS;
        transition accept;
    }

    state parse_edm_good_write_rights {
        meta.edm.op = EDM_OP_WRITE_RIGHTS;
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
            resubmit.emit<next_pass_t>({ hdr.again.pass, 0 });
        }
        if (ig_dprsr_md.mirror_type == COPY_HEAD) {
            heads.emit<head_t>(meta.head_session, { meta.head_mark, meta.edm.grantee, meta.edm.partner,
                meta.edm.demand[15:0], meta.edm.next, meta.edm.bytes, meta.edm.start });
        }
        packet.emit(hdr.again);
        packet.emit(hdr.came);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.edm_control);
        packet.emit(hdr.edm_message);
        packet.emit(hdr.edm_management);
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

    // A pair of a host that asks and a memory node has lanes, for writes and for answers each: a message takes the lane that
    // the low bits of its id name, and has it until its last byte has passed. So a pair has as many demands as lanes.
    //
    // What each register guarantees, in the order in which all frames pass them, each at most once:
    //
    // touched           when the lane's message last went on: a lane whose message has stopped is free again
    // rights            what of it is granted and was not sent: a lane has one message, a message sends what was granted
    // destination_free  a destination gets granted chunks one after the other
    // waiting, ring_*
    //                   demands for which a destination has no time yet wait in its rings, shortest rest first
    //
    // A demand asks for a window. The first chunk of each window asks for the next one: the data says what is left.

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

    // Bytes of the lane's message that are granted and were not sent. 0: the lane is free.
    // Written by demands, chunks, the controller; it never wraps.
    Register<bit<32>, bit<6>>(EDM_CELL_COUNT) rights;

    // For a demand: the lane must be free.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) take_lane = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == 0) {
                value  = meta.edm.need;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    // For a demand that takes an abandoned lane, the end of a message without data, and the controller.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) replace_rights = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value  = meta.edm.need;
        }
    };

    // For a chunk. A lane with more than a window gets none.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) ask = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value >= meta.edm.need && value <= EDM_WINDOW) {
                value  = value - meta.edm.amount;
                result = 1;
            } else if (value >= meta.edm.need) {
                value  = value - meta.edm.need;
                result = 2;
            } else {
                result = 0;
            }
        }
    };

    // No time is left: takes back the right that was granted. The controller reads by it.
    RegisterAction<bit<32>, bit<6>, bit<32>>(rights) give_back = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value |-| meta.edm.need;
            result = value;
        }
    };

    // The time at which a link is next free. Times wrap, so they are never compared directly: one further ahead than
    // EDM_HORIZON is in the past, and the link is free. A link that was idle for a multiple of 2^32 units may look taken for
    // up to EDM_HORIZON, once.
    // When the link is next free, as a destination.
    // Written by what is granted, the frame behind it, the controller; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) destination_free;

    // Reserves time there, unless the link is granted too far ahead: differences are without a sign, so what is in the past is
    // beyond EDM_HORIZON.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) reserve_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.now < EDM_AHEAD) {
                result = value - (int<32>) meta.edm.now;
                value  = value + (int<32>) meta.edm.to_time;
            } else if ((bit<32>) value - meta.edm.now < (bit<32>) EDM_HORIZON) {
                result = EDM_FAR;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.now + (int<32>) meta.edm.to_time;
            }
        }
    };

    // Gives back the unused rest of a window, unless the time behind it was granted: then the rest is lost. The window's end is
    // in `now` and the excess in `to_time`, since all bodies together read two values.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) settle_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if (value == (int<32>) meta.edm.now) {
                value = value - (int<32>) meta.edm.to_time;
            }
            result = value;
        }
    };

    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) look_at_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.now < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.now;
            } else {
                result = 0;
            }
        }
    };

    // Controller write, relative to now; returns the previous value.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_free) write_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.now < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.now;
            } else {
                result = 0;
            }
            value = (int<32>) meta.edm.now + (int<32>) meta.edm.to_time;
        }
    };

    // A bit for each of the link's rings: whether demands wait in it.
    // Written by demands that wait, frames that serve them; it does not count.
    // Frames pass it before the clock. A demand that finds others there waits as well; one that finds none, and then the link too
    // far ahead, comes again to set its bit.
    Register<bit<32>, bit<16>>(PORT_COUNT) waiting;

    RegisterAction<bit<32>, bit<16>, bit<32>>(waiting) join_others = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value != 0) {
                value = value | meta.edm.mark;
            }
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(waiting) mark_ring = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value | meta.edm.mark;
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(waiting) unmark_ring = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value & ~meta.edm.mark;
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(waiting) look_at_rings = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // The number of demands in each ring, where the next one enters, and where the next one leaves.

    // Number of demands that wait in the ring.
    // Written by demands that wait, frames that serve them; it never wraps.
    Register<bit<32>, bit<5>>(24) ring_count;

    RegisterAction<bit<32>, bit<5>, bit<32>>(ring_count) enter_ring = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value < EDM_RING) {
                value  = value + 1;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, bit<5>, bit<32>>(ring_count) leave_ring = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value  = value |-| 1;
        }
    };

    RegisterAction<bit<32>, bit<5>, bit<32>>(ring_count) look_at_ring = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // Where the next demand goes in.
    // Written by demands that wait; it wraps at 2^32, a multiple of the ring.
    Register<bit<32>, bit<5>>(24) ring_tail;

    RegisterAction<bit<32>, bit<5>, bit<32>>(ring_tail) move_tail = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value  = value + 1;
        }
    };

    // Where the next demand comes out.
    // Written by frames that serve demands; it wraps at 2^32, a multiple of the ring.
    Register<bit<32>, bit<5>>(24) ring_head;

    RegisterAction<bit<32>, bit<5>, bit<32>>(ring_head) move_head = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value  = value + 1;
        }
    };

    // The demands: hosts, message, and the window that each is to get.

    // By place in a ring, of the demand that waits there: its hosts and its id.
    // Written by the demand; it does not count.
    Register<bit<32>, bit<9>>(384) ring_demand;

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_demand) put_demand = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.edm.demand;
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_demand) take_demand = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // By place in a ring, of the demand that waits there: where in its message the window begins.
    // Written by the demand; it does not count.
    Register<bit<32>, bit<9>>(384) ring_offset;

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_offset) put_offset = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.edm.next;
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_offset) take_offset = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // By place in a ring, of the demand that waits there: the window's bytes.
    // Written by the demand; it does not count.
    Register<bit<32>, bit<9>>(384) ring_bytes;

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_bytes) put_bytes = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.edm.bytes;
            result = value;
        }
    };

    RegisterAction<bit<32>, bit<9>, bit<32>>(ring_bytes) take_bytes = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    // The ring of a demand, or of the one that was granted last: a bit of `waiting`.
    @hidden action in_ring(bit<8> number, bit<32> mask) {
        hdr.came.edm_class = number;
        meta.edm.mark      = mask;
    }

    @hidden table rings {
        key = {
            hdr.again.pass     : ternary @name("pass");
            hdr.came.edm_class : ternary @name("ring");
            meta.edm.asks      : ternary;
            meta.edm.over      : ternary;
        }
        actions = {
            in_ring;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_PASS_MARK, 0, _, _)    : in_ring(0, 1);
            (EDM_PASS_UNMARK, 0, _, _)  : in_ring(0, 1);
            (EDM_PASS_REMARK, 0, _, _)  : in_ring(0, 1);
            (EDM_PASS_MARK, 1, _, _)    : in_ring(1, 2);
            (EDM_PASS_UNMARK, 1, _, _)  : in_ring(1, 2);
            (EDM_PASS_REMARK, 1, _, _)  : in_ring(1, 2);
            (EDM_PASS_MARK, 2, _, _)    : in_ring(2, 4);
            (EDM_PASS_UNMARK, 2, _, _)  : in_ring(2, 4);
            (EDM_PASS_REMARK, 2, _, _)  : in_ring(2, 4);
            (EDM_PASS_MARK, 3, _, _)    : in_ring(3, 8);
            (EDM_PASS_UNMARK, 3, _, _)  : in_ring(3, 8);
            (EDM_PASS_REMARK, 3, _, _)  : in_ring(3, 8);
            (EDM_PASS_MARK, 4, _, _)    : in_ring(4, 16);
            (EDM_PASS_UNMARK, 4, _, _)  : in_ring(4, 16);
            (EDM_PASS_REMARK, 4, _, _)  : in_ring(4, 16);
            (EDM_PASS_MARK, 5, _, _)    : in_ring(5, 32);
            (EDM_PASS_UNMARK, 5, _, _)  : in_ring(5, 32);
            (EDM_PASS_REMARK, 5, _, _)  : in_ring(5, 32);
            (_, _, 1, 0 &&& 0xFFFFFC00) : in_ring(0, 1);  // of messages with 1024 bytes left, or less
            (_, _, 1, 0 &&& 0xFFFFF000) : in_ring(1, 2);  // of messages with 4096 bytes left, or less
            (_, _, 1, 0 &&& 0xFFFFC000) : in_ring(2, 4);  // of messages with 16384 bytes left, or less
            (_, _, 1, 0 &&& 0xFFFF0000) : in_ring(3, 8);  // of messages with 65536 bytes left, or less
            (_, _, 1, 0 &&& 0xFFFC0000) : in_ring(4, 16); // of messages with 262144 bytes left, or less
            (_, _, 1, _)                : in_ring(5, 32); // of longer messages
        }
        size = 64;
    }

    // The first ring in which a demand waits.
    @hidden action from_ring(bit<8> number) {
        hdr.came.edm_class = number;
    }

    @hidden table first {
        key = {
            hdr.again.pass : ternary @name("pass");
            meta.edm.waits : ternary;
        }
        actions = {
            from_ring;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_PASS_SERVE, 1 &&& 1)   : from_ring(0);
            (EDM_PASS_MARK, 1 &&& 1)    : from_ring(0);
            (EDM_PASS_SERVE, 2 &&& 2)   : from_ring(1);
            (EDM_PASS_MARK, 2 &&& 2)    : from_ring(1);
            (EDM_PASS_SERVE, 4 &&& 4)   : from_ring(2);
            (EDM_PASS_MARK, 4 &&& 4)    : from_ring(2);
            (EDM_PASS_SERVE, 8 &&& 8)   : from_ring(3);
            (EDM_PASS_MARK, 8 &&& 8)    : from_ring(3);
            (EDM_PASS_SERVE, 16 &&& 16) : from_ring(4);
            (EDM_PASS_MARK, 16 &&& 16)  : from_ring(4);
            (EDM_PASS_SERVE, 32 &&& 32) : from_ring(5);
            (EDM_PASS_MARK, 32 &&& 32)  : from_ring(5);
        }
        size = 16;
    }

    // A copy of the frame's head becomes a grant; none of the frame's fields remain.
    action to_grantee(mac_addr_t mac, MirrorId_t edm_session) {
        meta.edm.grantee  = mac;
        meta.head_session = edm_session;
        meta.edm.start    = (bit<32>) meta.edm.to_wait;
    }

    table grantees {
        key = {
            meta.edm.demand[31:24] : exact @name("host");
        }
        actions = {
            to_grantee;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    action about_partner(mac_addr_t mac) {
        meta.edm.partner = mac;
    }

    table partners {
        key = {
            meta.edm.demand[23:16] : exact @name("host");
        }
        actions = {
            about_partner;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    // How far the link is beyond what may be granted ahead: below 0, there is room for another demand.
    @hidden action compare_with_limit() {
        meta.edm.beyond = (bit<32>) meta.edm.to_wait - meta.edm.limit;
    }

    @hidden action use_up() {
        meta.edm.amount = EDM_CHUNK - meta.edm.bytes;
    }

    // A window's time, for a demand that waits: how much of it the demand takes is known only once it is found.
    @hidden action serve_window() {
        meta.edm.round     = EDM_WINDOW + 15;
        hdr.came.edm_bytes = 0;
        hdr.came.edm_nth   = hdr.came.edm_nth + 1;
    }

    @hidden action settle_window() {
        meta.edm.round = hdr.came.edm_bytes + 15;
    }

    @hidden action settle_times() {
        meta.edm.now     = hdr.came.edm_left;
        meta.edm.to_time = meta.edm.excess;
    }

    // The right that this frame got before its ring was full.
    @hidden action take_back() {
        meta.edm.need  = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.round = 0;
    }

    @hidden action ask_for_nothing() {
        meta.edm.round = 0;
    }

    // Time of bytes on the wire, with the frames' headers and gaps, in units of 16 bytes, so that no target has to
    // multiply.
    action take_times(bit<32> to_time, bit<32> excess, bit<32> limit) {
        meta.edm.to_time = to_time;
        meta.edm.excess  = excess;
        meta.edm.limit   = limit;
    }

    table times {
        key = {
            meta.edm.round[15:4] : exact @name("units");
            meta.edm.to_rate     : exact;
        }
        actions = {
            take_times;
        }
        const default_action = take_times(0, 0, 0);
        size = 1024;
    }

    @hidden action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
    }

    @hidden action reply_to_controller() {
        turn_around();
        hdr.edm_management.kind    = EDM_MGMT_REPLY;
        ig_tm_md.ucast_egress_port = CPU_PORT;
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
        meta.edm.to       = meta.edm.destination_link;
        meta.edm.to_rate  = meta.edm.destination_rate;
        meta.edm.demand   = meta.edm.source_host ++ meta.edm.destination_host ++ meta.edm.id;
        meta.edm.to_rings = meta.edm.destination_rings;
    }

    @hidden action comes_back() {
        meta.edm.to       = meta.edm.source_link;
        meta.edm.to_rate  = meta.edm.source_rate;
        meta.edm.demand   = meta.edm.destination_host ++ meta.edm.source_host ++ meta.edm.id;
        meta.edm.to_rings = meta.edm.source_rings;
    }

    // The rest of the message behind the window, and the part of it that a chunk can grant. The length, rounded up, is
    // the key of its time.
    @hidden action look_behind_window() {
        meta.edm.round = meta.edm.rest - 1009;
        meta.edm.over  = meta.edm.rest - 1025;
        meta.edm.rest  = meta.edm.rest - EDM_WINDOW;
    }

    @hidden action look_at_demand() {
        meta.edm.round = meta.edm.rest + 15;
        meta.edm.over  = meta.edm.rest - 1;
    }

    @hidden action ask_behind_chunk(bit<32> step) {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.next  = meta.edm.offset + step;
        meta.edm.round = min(meta.edm.round, 32w1039);
    }

    @hidden action ask_for_demand(bit<32> next) {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.need  = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.next  = next;
        meta.edm.round = min(meta.edm.round, 32w1039);
    }

    // The controller's: the lane, or the link.
    @hidden action manage() {
        meta.edm.cell   = hdr.edm_management.index;
        meta.edm.answer = hdr.edm_management.index[2:2];
        meta.edm.to     = hdr.edm_management.index;
    }

    // The amount to grant, computed for every frame: to a demand up to a window, behind a window's first chunk the next
    // window.
    @hidden table asked {
        key = {
            hdr.again.pass       : ternary @name("pass");
            meta.edm.kind        : ternary;
            meta.edm.full        : ternary;
            meta.edm.over[31:31] : ternary @name("ends");
        }
        actions = {
            serve_window;
            settle_window;
            take_back;
            ask_for_demand;
            ask_behind_chunk;
            ask_for_nothing;
        }
        const default_action = ask_for_nothing();
        const entries = {
            (EDM_PASS_SERVE, _, _, _)     : serve_window();
            (EDM_PASS_MARK, _, _, _)      : serve_window();
            (EDM_PASS_SETTLE, _, _, _)    : settle_window();
            (EDM_PASS_UNMARK, _, _, _)    : settle_window();
            (EDM_PASS_GIVE_BACK, _, _, _) : take_back();
            (EDM_PASS_REMARK, _, _, _)    : ask_for_nothing();
            (_, EDM_OP_NOTIFY, _, _)      : ask_for_demand(0);
            (_, EDM_OP_REQUEST, _, _)     : ask_for_demand(1);
            (_, EDM_OP_WRITE, 1, 0)       : ask_behind_chunk(EDM_WINDOW);
            (_, EDM_OP_ANSWER, 1, 0)      : ask_behind_chunk(EDM_WINDOW + 1);
        }
        size = 16;
    }

    // The frame's access to its lane's rights.
    @hidden action look_at_lane() {
        meta.edm.held = give_back.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
    }

    @hidden action write_lane() {
        meta.edm.held = replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
    }

    @hidden action take_free_lane() {
        meta.edm.granted = take_lane.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
    }

    @hidden action take_given_up_lane() {
        replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
        meta.edm.granted = 1;
    }

    @hidden action end_message() {
        meta.edm.granted = replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
    }

    @hidden action use_rights() {
        meta.edm.granted = ask.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
    }

    @hidden table covered {
        key = {
            meta.edm.op           : ternary;
            hdr.again.pass        : ternary @name("pass");
            meta.edm.memory       : ternary;
            meta.edm.end          : ternary;
            meta.edm.expired[0:0] : ternary @name("expired");
        }
        actions = {
            look_at_lane;
            write_lane;
            take_free_lane;
            take_given_up_lane;
            end_message;
            use_rights;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_OP_READ_RIGHTS, _, _, _, _)  : look_at_lane();
            (EDM_OP_WRITE_RIGHTS, _, _, _, _) : write_lane();
            (_, EDM_PASS_GIVE_BACK, _, _, _)  : look_at_lane();
            (_, _, 0, _, _)                   : NoAction();
            (EDM_OP_NOTIFY, 0, _, _, 0)       : take_free_lane();
            (EDM_OP_REQUEST, 0, _, _, 0)      : take_free_lane();
            (EDM_OP_NOTIFY, 0, _, _, _)       : take_given_up_lane();
            (EDM_OP_REQUEST, 0, _, _, _)      : take_given_up_lane();
            (EDM_OP_WRITE, 0, _, 1, _)        : end_message();
            (EDM_OP_ANSWER, 0, _, 1, _)       : end_message();
            (EDM_OP_WRITE, 0, _, _, _)        : use_rights();
            (EDM_OP_ANSWER, 0, _, _, _)       : use_rights();
        }
        size = 16;
    }

    // Its access to the bits of its destination's rings.
    @hidden action unmark() {
        meta.edm.waits = unmark_ring.execute(meta.edm.to[15:0]);
    }

    @hidden action mark() {
        meta.edm.waits = mark_ring.execute(meta.edm.to[15:0]);
    }

    @hidden action join() {
        meta.edm.waits = join_others.execute(meta.edm.to[15:0]);
    }

    @hidden action look_for_others() {
        meta.edm.waits = look_at_rings.execute(meta.edm.to[15:0]);
    }

    @hidden table others {
        key = {
            meta.edm.op      : ternary;
            hdr.again.pass   : ternary @name("pass");
            meta.edm.asks    : ternary;
            meta.edm.granted : ternary;
        }
        actions = {
            unmark;
            mark;
            join;
            look_for_others;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_OP_NONE, _, _, _)                       : NoAction();
            (EDM_OP_MANAGED &&& EDM_OP_MANAGED, _, _, _) : NoAction();
            (_, _, _, 0)                                 : NoAction();
            (_, EDM_PASS_UNMARK, _, _)                   : unmark();
            (_, EDM_PASS_JOIN, _, _)                     : mark();
            (_, EDM_PASS_MARK, _, _)                     : mark();
            (_, EDM_PASS_REMARK, _, _)                   : mark();
            (_, EDM_PASS_GIVE_BACK, _, _)                : NoAction();
            (_, 0, 1, 1)                                 : join();
            (_, _, _, _)                                 : look_for_others();
        }
        size = 16;
    }

    // Its next operation, and the access to the destination's clock. The controller has no link and no rings: its own demands
    // don't wait, and are refused if there is no time.
    @hidden action settle_clock() {
        settle_destination.execute(meta.edm.to[15:0]);
    }

    @hidden action write_clock() {
        meta.edm.to_wait = write_destination.execute(meta.edm.to[15:0]);
    }

    @hidden action look_at_clock(bit<8> does) {
        meta.edm.does    = does;
        meta.edm.to_wait = look_at_destination.execute(meta.edm.to[15:0]);
    }

    @hidden action reserve_clock(bit<8> does) {
        meta.edm.does    = does;
        meta.edm.to_wait = reserve_destination.execute(meta.edm.to[15:0]);
    }

    @hidden action go_in() {
        meta.edm.does = EDM_ENTERS;
    }

    @hidden table clock {
        key = {
            meta.edm.op       : ternary;
            hdr.again.pass    : ternary @name("pass");
            meta.edm.waits    : ternary;
            meta.edm.asks     : ternary;
            meta.edm.granted  : ternary;
            meta.edm.to[15:0] : ternary @name("link");
        }
        actions = {
            settle_clock;
            write_clock;
            look_at_clock;
            reserve_clock;
            go_in;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_OP_WRITE_DESTINATION, _, _, _, _, _) : write_clock();
            (EDM_OP_READ_DESTINATION, _, _, _, _, _)  : look_at_clock(0);
            (_, EDM_PASS_SETTLE, _, _, _, _)          : settle_clock();
            (_, EDM_PASS_UNMARK, _, _, _, _)          : settle_clock();
            (_, 0, 0, 1, 1, _)                        : reserve_clock(EDM_GRANTS);
            (_, _, 0, _, _, _)                        : NoAction();
            (_, EDM_PASS_SERVE, _, _, _, _)           : reserve_clock(EDM_SERVES);
            (_, EDM_PASS_MARK, _, _, _, _)            : reserve_clock(EDM_SERVES);
            (_, EDM_PASS_JOIN, _, _, _, 0)            : NoAction();
            (_, EDM_PASS_JOIN, _, _, _, _)            : go_in();
            (_, 0, _, 1, 1, 0)                        : look_at_clock(EDM_LOOKS);
            (_, 0, _, 1, 1, _)                        : look_at_clock(EDM_ENTERS);
            (_, 0, _, _, _, _)                        : look_at_clock(EDM_LOOKS);
        }
        size = 16;
    }

    // Its access to a ring.
    @hidden action enter() {
        meta.edm.count = enter_ring.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0]);
    }

    @hidden action leave() {
        meta.edm.count = leave_ring.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0]);
    }

    @hidden action look_for_more() {
        meta.edm.count = look_at_ring.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0]);
    }

    @hidden table ring {
        key = {
            hdr.again.pass          : ternary @name("pass");
            meta.edm.does           : ternary;
            meta.edm.to_wait[31:31] : ternary @name("far");
        }
        actions = {
            enter;
            leave;
            look_for_more;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (EDM_PASS_UNMARK, _, _) : look_for_more();
            (_, EDM_ENTERS, _)      : enter();
            (_, EDM_SERVES, 1)      : NoAction();
            (_, EDM_SERVES, _)      : leave();
        }
        size = 8;
    }

    // Chooses another pass, and the mirrored head: a chunk's head becomes its own grant, any frame's head the grant of the
    // demand that it serves. The second pass is a resubmission; later ones can't be.
    @hidden action second_pass(bit<8> pass) {
        hdr.again.pass            = pass;
        meta.again                = 1;
        ig_dprsr_md.resubmit_type = RESUBMIT;
    }

    @hidden action later_pass(bit<8> pass) {
        hdr.again.pass = pass;
        meta.again     = 1;
        hdr.packet_in.setInvalid();
        ig_tm_md.bypass_egress     = 1;
        ig_tm_md.ucast_egress_port = LOOP_PORT;
    }

    @hidden action grant_and_pass(bit<8> pass) {
        hdr.again.pass = pass;
        meta.again     = 1;
        hdr.packet_in.setInvalid();
        ig_tm_md.bypass_egress     = 1;
        ig_tm_md.ucast_egress_port = LOOP_PORT;
        ig_dprsr_md.mirror_type    = COPY_HEAD;
        meta.edm.copies            = EDM_SERVES;
    }

    @hidden action copy() {
        ig_dprsr_md.mirror_type = COPY_HEAD;
        meta.edm.copies         = EDM_GRANTS;
    }

    @hidden table next_pass {
        key = {
            hdr.again.pass           : ternary @name("pass");
            meta.edm.does            : ternary;
            meta.edm.op              : ternary;
            meta.edm.count           : ternary;
            meta.edm.to_wait[31:31]  : ternary @name("far");
            meta.edm.to[15:0]        : ternary @name("link");
            meta.edm.beyond[31:31]   : ternary @name("room");
            hdr.vlan.isValid()       : ternary @name("tagged");
            hdr.packet_out.isValid() : ternary @name("controller");
            meta.edm.waits           : ternary;
            hdr.came.edm_nth         : ternary @name("nth");
        }
        actions = {
            second_pass;
            later_pass;
            grant_and_pass;
            copy;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            // The ring is full, or the controller's demand would have to wait.
            (0, EDM_ENTERS, _, 0, _, _, _, _, _, _, _)                   : second_pass(EDM_PASS_GIVE_BACK);
            (_, EDM_ENTERS, _, 0, _, _, _, _, _, _, _)                   : later_pass(EDM_PASS_GIVE_BACK);
            (_, EDM_GRANTS, _, _, 1, 0, _, _, _, _, _)                   : second_pass(EDM_PASS_GIVE_BACK);
            (_, EDM_GRANTS, _, _, 1, _, _, _, _, _, _)                   : second_pass(EDM_PASS_JOIN);
            (_, EDM_GRANTS, EDM_OP_WRITE, _, _, _, _, _, _, _, _)        : copy();
            (_, EDM_GRANTS, EDM_OP_ANSWER, _, _, _, _, _, _, _, _)       : copy();
            (0, EDM_ENTERS, _, _, _, _, 1, true, false, _, _)            : second_pass(EDM_PASS_SERVE);
            (0, EDM_LOOKS, _, _, _, _, 1, true, false, _, _)             : second_pass(EDM_PASS_SERVE);
            (_, EDM_SERVES, _, _, 1, _, _, _, _, _, _)                   : NoAction();
            (_, EDM_SERVES, _, 0, _, _, _, _, _, _, _)                   : later_pass(EDM_PASS_UNMARK);
            (_, EDM_SERVES, _, 1, _, _, _, _, _, _, _)                   : grant_and_pass(EDM_PASS_UNMARK);
            (_, EDM_SERVES, _, _, _, _, _, _, _, _, _)                   : grant_and_pass(EDM_PASS_SETTLE);
            (EDM_PASS_UNMARK, _, _, 0, _, _, _, _, _, 0, _)              : NoAction();
            (EDM_PASS_UNMARK, _, _, 0, _, _, _, _, _, _, EDM_SERVED_MAX) : NoAction();
            (EDM_PASS_UNMARK, _, _, 0, _, _, _, _, _, _, _)              : later_pass(EDM_PASS_SERVE);
            // A demand has entered since.
            (EDM_PASS_UNMARK, _, _, _, _, _, _, _, _, _, EDM_SERVED_MAX) : later_pass(EDM_PASS_REMARK);
            (EDM_PASS_UNMARK, _, _, _, _, _, _, _, _, _, _)              : later_pass(EDM_PASS_MARK);
            (EDM_PASS_SETTLE, _, _, _, _, _, _, _, _, 0, _)              : NoAction();
            (EDM_PASS_SETTLE, _, _, _, _, _, _, _, _, _, EDM_SERVED_MAX) : NoAction();
            (EDM_PASS_SETTLE, _, _, _, _, _, _, _, _, _, _)              : later_pass(EDM_PASS_SERVE);
        }
        size = 32;
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
        if (meta.edm.kind == EDM_OP_WRITE || meta.edm.kind == EDM_OP_ANSWER) {
            look_behind_window();
        } else {
            look_at_demand();
        }

        if (color == MeterColor_t.RED) {
            meta.drop   = DROP_EDM_CONTROL_METER;
            meta.edm.op = EDM_OP_NONE;
        } else {
            // touched
            if (hdr.again.pass == 0 && meta.edm.op != EDM_OP_NONE && meta.edm.op[3:3] == 0 && meta.edm.memory != 0) {
                meta.edm.expired = touch.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            }
        }
        asked.apply();
        if (!hdr.edm_management.isValid()) {
            times.apply();
        }
        if (meta.edm.asks == 1) {
            use_up();
        }
        rings.apply();

        // rights
        covered.apply();
        meta.edm.after = meta.edm.now + meta.edm.to_time;
        if (hdr.again.pass == EDM_PASS_SETTLE || hdr.again.pass == EDM_PASS_UNMARK) {
            settle_times();
        }

        // waiting
        others.apply();

        // destination_free
        first.apply();
        clock.apply();
        compare_with_limit();
        if (meta.edm.does == EDM_SERVES) {
            hdr.came.edm_left = meta.edm.after + (bit<32>) meta.edm.to_wait;
        }

        // Decided before the rings; otherwise the counters need a stage behind them.
        if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
            if (meta.edm.memory == 0) {
                meta.drop = DROP_EDM_NO_MEMORY;
            } else if (meta.edm.granted == 0) {
                meta.drop = DROP_EDM_LANE_TAKEN;
            } else {
                ig_tm_md.qid = EDM_CLASS_CONTROL;
            }
        } else if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
            if (meta.edm.granted == 0) {
                demoted.count(EDM_DEMOTED_UNCOVERED);
            } else {
                ig_tm_md.qid = EDM_CLASS_DATA;
            }
        } else if (meta.edm.op == EDM_OP_READ_RIGHTS || meta.edm.op == EDM_OP_WRITE_RIGHTS) {
            ig_tm_md.qid             = EDM_CLASS_CONTROL;
            hdr.edm_management.value = meta.edm.held;
            reply_to_controller();
        } else if (meta.edm.op != EDM_OP_NONE) {
            ig_tm_md.qid             = EDM_CLASS_CONTROL;
            hdr.edm_management.value = (bit<32>) meta.edm.to_wait;
            reply_to_controller();
        }

        // ring_*
        ring.apply();
        if (meta.edm.count != 0) {
            if (meta.edm.does == EDM_ENTERS) {
                meta.edm.at = move_tail.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0]);
            } else if (meta.edm.does == EDM_SERVES) {
                meta.edm.at = move_head.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0]);
            }
        }
        next_pass.apply();
        if (meta.edm.count != 0) {
            if (meta.edm.does == EDM_ENTERS) {
                put_demand.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            } else if (meta.edm.does == EDM_SERVES) {
                meta.edm.demand = take_demand.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            }
        }
        if (meta.edm.count != 0) {
            if (meta.edm.does == EDM_ENTERS) {
                put_offset.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            } else if (meta.edm.does == EDM_SERVES) {
                meta.edm.next = take_offset.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            }
        }
        if (meta.edm.count != 0) {
            if (meta.edm.does == EDM_ENTERS) {
                put_bytes.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            } else if (meta.edm.does == EDM_SERVES) {
                meta.edm.bytes = take_bytes.execute(hdr.came.edm_class[2:0] ++ meta.edm.to_rings[1:0] ++ meta.edm.at[3:0]);
            }
        }

        if (meta.edm.copies != 0) {
            grantees.apply();
            partners.apply();
        }
        if (meta.edm.copies == EDM_SERVES) {
            hdr.came.edm_bytes = meta.edm.bytes;
        }
    }
}

// Outcome of a frame that needs no other pass: data passes, a demand is granted or waits.
control EdmReplies(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // Chunks whose message stops, because the ring for its rest is full: its host asks again.
    @name(".RackIngress.edm.stalled") Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) stalled;

    // By port: demands of the port's host that were granted, data that went to it as scheduled.
    @name(".RackIngress.edm.demands") Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) demands;
    @name(".RackIngress.edm.data") Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) data;

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
        ig_tm_md.ucast_egress_port = hdr.came.port;
    }

    apply {
        if (meta.again == 0 && meta.edm.granted != 0) {
            if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
                data.count(ig_tm_md.ucast_egress_port);
                if (hdr.again.pass == EDM_PASS_GIVE_BACK) {
                    stalled.count(0);
                }
            } else if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                if (hdr.again.pass == EDM_PASS_GIVE_BACK) {
                    meta.drop = DROP_EDM_NO_TIME;
                } else {
                    demands.count(hdr.came.port);
                    if (meta.edm.op == EDM_OP_NOTIFY) {
                        if (meta.edm.does == EDM_GRANTS) {
                            grant();
                        } else {
                            meta.drop = DROP_EDM_WAITS;
                        }
                    } else if (meta.edm.does == EDM_GRANTS) {
                        hdr.edm_message.offset = (bit<32>) meta.edm.to_wait;
                    } else {
                        hdr.edm_message.offset = EDM_LATER;
                    }
                }
            }
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

    // The copy of a frame's head becomes a grant; none of the frame's fields remain.
    @hidden action turn_head() {
        hdr.ethernet.dstAddr = hdr.head.edm_grantee;
        hdr.ethernet.srcAddr = hdr.head.edm_partner;
        hdr.edm_control.setValid();
        hdr.edm_control.version = EDM_VERSION;
        hdr.edm_control.kind    = EDM_GRANT;
        hdr.edm_control.id      = hdr.head.edm_id;
        hdr.edm_control.offset  = hdr.head.edm_offset & 0xFFFFFFFE;
        hdr.edm_control.bytes   = hdr.head.edm_bytes;
        hdr.edm_control.wait    = hdr.head.edm_wait;
        hdr.edm_message.version = 0;
        hdr.edm_message.kind    = 0;
        hdr.edm_message.code    = 0;
        hdr.edm_message.id      = 0;
        hdr.edm_message.key     = 0;
        hdr.edm_message.address = 0;
        hdr.edm_message.total   = 0;
        hdr.edm_message.offset  = 0;
        hdr.edm_message.bytes   = 0;
        hdr.edm_message.start   = 0;
    }

    apply {
        if (hdr.head.isValid()) {
            turn_head();
            if (hdr.head.edm_offset[0:0] == 1) {
                hdr.edm_control.answer = 1;
            } else {
                hdr.edm_control.answer = 0;
            }
            if (hdr.vlan.isValid()) {
                hdr.vlan.pcp = 7;
            }
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
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) edm_control_meter;
    Edm() edm;
    EdmReplies() edm_replies;

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(hdr.came.port);
    }

    action accept_source(bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<8> edm_host, bit<16> edm_rings) {
        meta.edm.source_link   = edm_link;
        meta.edm.source_asks   = edm_asks;
        meta.edm.source_asked  = edm_asked;
        meta.edm.source_memory = edm_memory;
        meta.edm.source_rate   = edm_rate;
        meta.edm.source_host   = edm_host;
        meta.edm.source_rings  = edm_rings;
        meta.accepted          = 1;
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

    action forward(port_t port, bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<8> edm_host, bit<16> edm_rings) {
        ig_tm_md.ucast_egress_port  = port;
        meta.known                  = 1;
        meta.known_port             = port;
        meta.edm.destination_link   = edm_link;
        meta.edm.destination_asks   = edm_asks;
        meta.edm.destination_asked  = edm_asked;
        meta.edm.destination_memory = edm_memory;
        meta.edm.destination_rate   = edm_rate;
        meta.edm.destination_host   = edm_host;
        meta.edm.destination_rings  = edm_rings;
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
            (DROP_NONE, MeterColor_t.RED)                       : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_MALFORMED, MeterColor_t.GREEN)                : count_drop(DROP_MALFORMED);
            (DROP_SPOOFED, MeterColor_t.GREEN)                  : count_drop(DROP_SPOOFED);
            (DROP_UNKNOWN_DESTINATION, MeterColor_t.GREEN)      : count_drop(DROP_UNKNOWN_DESTINATION);
            (DROP_SAME_PORT, MeterColor_t.GREEN)                : count_drop(DROP_SAME_PORT);
            (DROP_BEST_EFFORT_METER, MeterColor_t.GREEN)        : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_EDM_CONTROL_METER, MeterColor_t.GREEN)        : count_drop(DROP_EDM_CONTROL_METER);
            (DROP_EDM_BAD_VERSION, MeterColor_t.GREEN)          : count_drop(DROP_EDM_BAD_VERSION);
            (DROP_EDM_BAD_KIND, MeterColor_t.GREEN)             : count_drop(DROP_EDM_BAD_KIND);
            (DROP_EDM_BAD_DEMAND, MeterColor_t.GREEN)           : count_drop(DROP_EDM_BAD_DEMAND);
            (DROP_EDM_BAD_LANE, MeterColor_t.GREEN)             : count_drop(DROP_EDM_BAD_LANE);
            (DROP_EDM_NO_MEMORY, MeterColor_t.GREEN)            : count_drop(DROP_EDM_NO_MEMORY);
            (DROP_EDM_LANE_TAKEN, MeterColor_t.GREEN)           : count_drop(DROP_EDM_LANE_TAKEN);
            (DROP_EDM_MANAGEMENT_FROM_HOST, MeterColor_t.GREEN) : count_drop(DROP_EDM_MANAGEMENT_FROM_HOST);
            (DROP_EDM_BAD_TARGET, MeterColor_t.GREEN)           : count_drop(DROP_EDM_BAD_TARGET);
            (DROP_EDM_BAD_INDEX, MeterColor_t.GREEN)            : count_drop(DROP_EDM_BAD_INDEX);
            (DROP_EDM_NO_TIME, MeterColor_t.GREEN)              : count_drop(DROP_EDM_NO_TIME);
            (DROP_EDM_WAITS, MeterColor_t.GREEN)                : count_drop(DROP_EDM_WAITS);
            (DROP_EDM_LOOKED, MeterColor_t.GREEN)               : count_drop(DROP_EDM_LOOKED);
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) hdr.came.port;

        ig_tm_md.qid     = PRIORITY_BEST_EFFORT;
        bit<8> edm_color = MeterColor_t.GREEN;

        // Computed for every frame.
        meta.edm.rest = meta.edm.total - meta.edm.offset;
        if (hdr.edm_message.isValid()) {
            meta.edm.amount = (bit<32>) hdr.edm_message.bytes;
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
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && hdr.again.pass == 0) {
                    edm_color = edm_control_meter.execute(hdr.came.port);
                }
            }
        } else {
            if (hdr.packet_out.egress_port == 0) {
                meta.accepted = 1;
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && hdr.again.pass == 0) {
                    edm_color = edm_control_meter.execute(hdr.came.port);
                }
            }
        }

        if (ig_prsr_md.parser_err != 0) {
            meta.drop   = DROP_MALFORMED;
            meta.edm.op = EDM_OP_NONE;
        } else if (meta.accepted == 0) {
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
            if (meta.known == 1 && ig_tm_md.ucast_egress_port == hdr.came.port) {
                meta.drop   = DROP_SAME_PORT;
                meta.edm.op = EDM_OP_NONE;
            } else if (hdr.ethernet.dstAddr[40:40] == 1 && meta.steered == 0) {
                ig_tm_md.mcast_grp_a = RACK_GROUP;
            } else if (meta.known == 0 && meta.steered == 0) {
                meta.drop   = DROP_UNKNOWN_DESTINATION;
                meta.edm.op = EDM_OP_NONE;
            }
        }

        // A unicast frame that egress need not handle bypasses egress.
        if (hdr.ethernet.dstAddr[40:40] == 0 && !hdr.packet_out.isValid() &&
            meta.known_port != CPU_PORT && !hdr.edm_message.isValid()) {
            hdr.packet_in.setInvalid();
            ig_tm_md.bypass_egress = 1;
        }
        edm.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md, edm_color);

        if (meta.drop == DROP_NONE && meta.steered == 0 && ig_tm_md.qid == PRIORITY_BEST_EFFORT) {
            send_best_effort();
        }
        edm_replies.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        if (meta.drop != DROP_NONE || best_effort_color == MeterColor_t.RED) {
            refusals.apply();
        }
        // Strip pass headers and packet_out before the frame leaves.
        if (meta.again == 0) {
            hdr.again.setInvalid();
            hdr.came.setInvalid();
            hdr.packet_out.setInvalid();
        }
    }
}

parser RackEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        transition select(packet.lookahead<bit<8>>()) {
            HEAD       : parse_head;
            HEAD_AGAIN : parse_head_again;
            default    : parse_carried;
        }
    }

    // The head of a frame that came back: skips the headers of its passes.
    state parse_head_again {
        packet.extract(hdr.head);
        packet.advance(136);
        transition parse_ethernet;
    }

    state parse_head {
        packet.extract(hdr.head);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            ETHERTYPE_VLAN : parse_head_tag;
            default        : parse_first_head;
        }
    }

    state parse_head_tag {
        packet.extract(hdr.vlan);
        transition parse_first_head;
    }

    state parse_carried {
        packet.extract(hdr.packet_in);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            ETHERTYPE_VLAN : parse_vlan;
            ETHERTYPE_EDM  : parse_edm;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_EDM : parse_edm;
            default       : accept;
        }
    }

    state parse_edm {
        transition select(packet.lookahead<edm_start_t>().version, packet.lookahead<edm_start_t>().kind) {
            (EDM_VERSION, EDM_WREQ) : parse_edm_chunk;
            (EDM_VERSION, EDM_RRES) : parse_edm_chunk;
            // These kinds arrive only as heads.
            (EDM_VERSION, EDM_NOTIFY) : parse_edm_chunk;
            (EDM_VERSION, EDM_RREQ)   : parse_edm_chunk;
            (EDM_VERSION, EDM_RMWREQ) : parse_edm_chunk;
            default                   : accept;
        }
    }

    state parse_edm_chunk {
        packet.extract(hdr.edm_message);
        transition accept;
    }

    // A first pass's head lacks later passes' headers, so as many bits behind it are skipped.
    state parse_first_head {
        packet.extract(hdr.edm_message);
        packet.advance(136);
        transition accept;
    }
}

control RackEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
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
    EdmEgress() edm;

    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
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

@pkginfo(name="edm_matched", version="0.1.0")
Switch(pipe) main;
