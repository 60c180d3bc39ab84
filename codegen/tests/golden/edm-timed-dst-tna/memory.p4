// edm_timed_dst: the switch of rack "memory".
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
const bit<32> DROP_REASONS                  = 15;  // how many there are
const bit<8>  DROP_NONE                     = 255; // it is not dropped

const MirrorType_t COPY_HEAD = 1;    // of frames whose head goes back
const bit<8>       HEAD      = 0xFF; // the head's mark

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds.
typedef bit<32> time_t;

const ResubmitType_t RESUBMIT = 1; // of frames that make another pass

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
    edm_control_t    edm_control;
    edm_message_t    edm_message;
    edm_management_t edm_management;
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
        meta.drop       = DROP_NONE;
        meta.steered    = 0;
        meta.known      = 0;
        meta.known_port = 0;
        meta.accepted   = 0;
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
        best_effort_color = best_effort_meter.execute(ig_intr_md.ingress_port);
    }

    action accept_source(MirrorId_t edm_session,
        bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<32> edm_chunk_time) {
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

    action forward(port_t port, bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate,
        bit<32> edm_chunk_time) {
        ig_tm_md.ucast_egress_port      = port;
        meta.known                      = 1;
        meta.known_port                 = port;
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
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>) ig_intr_md.ingress_port;

        ig_tm_md.qid     = PRIORITY_BEST_EFFORT;
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
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && meta.pass == 0) {
                    edm_color = edm_control_meter.execute(ig_intr_md.ingress_port);
                }
            }
        } else {
            if (hdr.packet_out.egress_port == 0) {
                meta.accepted = 1;
                if ((meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) &&
                    hdr.ethernet.dstAddr[40:40] == 0 && meta.pass == 0) {
                    edm_color = edm_control_meter.execute(ig_intr_md.ingress_port);
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
            if (meta.known == 1 && ig_tm_md.ucast_egress_port == ig_intr_md.ingress_port) {
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

@pkginfo(name="edm_timed_dst", version="0.1.0")
Switch(pipe) main;
