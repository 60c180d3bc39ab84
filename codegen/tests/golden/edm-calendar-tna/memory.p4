// edm_calendar: the switch of rack "memory".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it EDM: a host demands time for a message to or from another host's memory, the switch
// grants it chunk by chunk, each from when both its source and its destination
// are free. Only granted data gets the class that is free of queues.
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
const bit<32> DROP_REASONS                  = 16;  // how many there are
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
const bit<8> EDM_TARGET_SOURCE      = 0;
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
const int<32> EDM_HORIZON = 32768; // a clock further ahead is in the past
const int<32> EDM_EXPIRY  = 65536; // a message without progress for this time gives up its lane

// Operations of the controller's frames: each has the bit EDM_OP_MANAGED.
const bit<8> EDM_OP_READ_RIGHTS       = 8;
const bit<8> EDM_OP_WRITE_RIGHTS      = 9;
const bit<8> EDM_OP_READ_DESTINATION  = 10;
const bit<8> EDM_OP_WRITE_DESTINATION = 11;
const bit<8> EDM_OP_READ_SOURCE       = 12;
const bit<8> EDM_OP_WRITE_SOURCE      = 13;

// Calendars have pages of time, from time 0 on, and a page has cells. What is behind its last one is lost.
const bit<32> EDM_PAGE  = 512;
const bit<32> EDM_PAGES = 0xFFFFFE00; // of a time, when its page begins
const bit<8>  EDM_CELLS = 18;         // of a page

const bit<8>  EDM_PASS_TAKE = 1;     // what a first pass leaves for the second one: cells were found
const int<32> EDM_PASS_TIME = 65536; // from when a frame comes to its second pass, at most

// A register's cell for an even page, or for an odd one.
struct pair_t {
    bit<32> first;  // when it begins
    bit<32> second; // which of its cells are taken
}

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
    bit<8>  kind;             // what the frame is: one of EDM_OP
    bit<8>  op;               // the same, once it may be
    time_t  now;              // when it came
    bit<32> source_link;      // where the frame comes from
    bit<32> source_asks;      // the source's first cell as a requester
    bit<32> source_asked;     // its offset among a requester's cells, as memory
    bit<8>  source_memory;    // whether it has memory
    bit<8>  source_rate;      // the number of its rate
    bit<32> destination_link; // the same of where the frame goes
    bit<32> destination_asks;
    bit<32> destination_asked;
    bit<8>  destination_memory;
    bit<8>  destination_rate;
    bit<16> id;               // of the message
    bit<32> cell;             // the lane of the message
    bit<8>  memory;           // whether the host that is asked has memory
    bit<32> total;            // bytes of the message
    bit<32> offset;           // where in the message the chunk starts
    bit<32> rest;             // what of the message is left behind what was granted; below 0: nothing
    bit<32> bytes;            // what is granted
    // The ALU of `rights` reads these two alone, so a demand has other amounts here than a chunk.
    bit<32> need;             // what a demand gives a right to, or a chunk must have one to
    bit<32> amount;           // what it uses up of this
    int<32> expired;          // whether the lane's message has given it up
    bit<32> granted;          // whether a demand has its lane, or a chunk its right
    bit<32> held;             // what a lane held, as the controller asks
    bit<8>  to_rate;          // the number of the rate of where data goes
    bit<32> to;               // where data goes
    bit<8>  from_rate;        // the same of where data comes from
    bit<32> from;
    bit<32> to_time;          // what the granted bytes take where they go
    int<32> to_wait;          // how long until they may
    bit<32> round;            // their length, to be rounded up to units
    bit<8>  bad;              // why the frame is refused, as the parser sees it; 0: it is not
    bit<1>  answer;           // whether its lane is one of answers
    bit<8>  end;              // whether it is the NULL response: there is nothing behind it
    bit<8>  full;             // whether it has a full chunk
    bit<8>  asks;             // whether something is to be granted
    bit<32> over;             // what is behind the window, but for a byte; below 0: nothing
    bit<32> start;            // how long the copy's grant has to wait
    bit<32> page;             // when the page began from which on cells are looked for, or are taken
    bit<8>  place;            // the place in it of the first one that is taken
    bit<32> before;           // cells of the page that come before: have begun, or are before that place
    bit<8>  from_more;        // cells that are granted behind the first one: where data comes from,
    bit<8>  to_more;          // where it goes,
    bit<8>  more;             // and the larger of these
    int<32> from_ahead;       // how far ahead of `page` the source's calendar begins,
    int<32> to_ahead;         // the destination's,
    int<32> ahead;            // and the later of these
    bit<32> base;             // the page with which they are to begin
    bit<32> even;             // the even page and the odd one that are looked at or taken from
    bit<32> odd;
    bit<32> from_even;        // cells to be taken of the source's even page
    bit<32> saw_from_even;    // and those taken already
    bit<32> from_odd;         // cells to be taken of the source's odd page
    bit<32> saw_from_odd;     // and those taken already
    bit<32> to_even;          // cells to be taken of the destination's even page
    bit<32> saw_to_even;      // and those taken already
    bit<32> to_odd;           // cells to be taken of the destination's odd page
    bit<32> saw_to_odd;       // and those taken already
    bit<8>  managed;          // what the controller's frame asks, whatever becomes of it
    bit<32> passes_at;        // when this pass began
    bit<8>  from_clash;       // whether others took cells since the frame came: where data comes from,
    bit<8>  to_clash;         // and where it goes
    bit<32> next_page;        // when the page behind `page` begins
    bit<8>  from_last;        // the last cell's place in these
    bit<8>  to_last;
    bit<32> from_head;        // cells of the first of these pages up to the last one, where data comes from
    bit<32> from_tail;        // and of the second
    bit<32> to_head;          // the same of where it goes
    bit<32> to_tail;
    bit<32> taken;            // which cells are taken at either link: in the page from which on cells are looked for,
    bit<32> next_taken;       // and in the next one
    bit<8>  looks;            // whether the frame looks for cells, to take them in another pass
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
    bit<32> edm_page;      // the page in which the cells begin that it found
    bit<8>  edm_place;     // the first one's place there
    bit<8>  edm_from_more; // how many follow it, where data comes from
    bit<8>  edm_to_more;   // and where it goes
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
        meta.head_mark              = 0;
        meta.edm.granted            = 0;
        meta.edm.held               = 0;
        meta.edm.bytes              = 0;
        meta.edm.need               = 0;
        meta.edm.to_time            = 0;
        meta.edm.to_wait            = 0;
        meta.edm.from               = 0;
        meta.edm.from_rate          = 0;
        meta.edm.managed            = EDM_OP_NONE;
        meta.edm.page               = 0;
        meta.edm.before             = 0;
        meta.edm.place              = 0;
        meta.edm.from_more          = 0;
        meta.edm.to_more            = 0;
        meta.edm.more               = 0;
        meta.edm.from_ahead         = 0;
        meta.edm.to_ahead           = 0;
        meta.edm.ahead              = 0;
        meta.edm.base               = 0;
        meta.edm.even               = 0;
        meta.edm.odd                = 0;
        meta.edm.passes_at          = 0;
        meta.edm.from_clash         = 0;
        meta.edm.to_clash           = 0;
        meta.edm.next_page          = 0;
        meta.edm.from_last          = 0;
        meta.edm.from_head          = 0;
        meta.edm.from_tail          = 0;
        meta.edm.to_last            = 0;
        meta.edm.to_head            = 0;
        meta.edm.to_tail            = 0;
        meta.edm.taken              = 0;
        meta.edm.next_taken         = 0;
        meta.edm.looks              = 0;
        meta.edm.from_even          = 0;
        meta.edm.saw_from_even      = 0;
        meta.edm.from_odd           = 0;
        meta.edm.saw_from_odd       = 0;
        meta.edm.to_even            = 0;
        meta.edm.saw_to_even        = 0;
        meta.edm.to_odd             = 0;
        meta.edm.saw_to_odd         = 0;
        meta.head_session           = 0;
        meta.edm.now                = ig_intr_md.ingress_mac_tstamp[31:0];
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
        meta.pass          = next_pass.pass;
        meta.edm.page      = next_pass.edm_page;
        meta.edm.place     = next_pass.edm_place;
        meta.edm.from_more = next_pass.edm_from_more;
        meta.edm.to_more   = next_pass.edm_to_more;
        meta.edm.granted   = 1; // the first pass saw to that
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
            EDM_TARGET_SOURCE      : parse_edm_read_source;
            EDM_TARGET_DESTINATION : parse_edm_read_destination;
            EDM_TARGET_RIGHTS      : parse_edm_read_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_read_source {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_read_source;
            default  : parse_edm_bad_index;
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
            EDM_TARGET_SOURCE      : parse_edm_write_source;
            EDM_TARGET_DESTINATION : parse_edm_write_destination;
            EDM_TARGET_RIGHTS      : parse_edm_write_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_write_source {
        packet.extract(hdr.edm_management);
        meta.edm.id      = hdr.edm_management.index[15:0]; // of a lane
        meta.edm.need    = hdr.edm_management.value;
        meta.edm.to_time = hdr.edm_management.value;
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_write_source;
            default  : parse_edm_bad_index;
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
            EDM_TARGET_SOURCE      : parse_edm_reset_source;
            EDM_TARGET_DESTINATION : parse_edm_reset_destination;
            EDM_TARGET_RIGHTS      : parse_edm_reset_rights;
            default                : parse_edm_bad_target;
        }
    }

    state parse_edm_reset_source {
        packet.extract(hdr.edm_management);
        meta.edm.id = hdr.edm_management.index[15:0]; // of a lane
        transition select(hdr.edm_management.index) {
            0 .. 511 : parse_edm_good_write_source;
            default  : parse_edm_bad_index;
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

    state parse_edm_good_read_source {
        meta.edm.op = EDM_OP_READ_SOURCE;
        transition accept;
    }

    state parse_edm_good_write_source {
        meta.edm.op      = EDM_OP_WRITE_SOURCE;
        meta.edm.managed = EDM_OP_WRITE_SOURCE;
        transition accept;
    }

    state parse_edm_good_read_destination {
        meta.edm.op = EDM_OP_READ_DESTINATION;
        transition accept;
    }

    state parse_edm_good_write_destination {
        meta.edm.op      = EDM_OP_WRITE_DESTINATION;
        meta.edm.managed = EDM_OP_WRITE_DESTINATION;
        transition accept;
    }

    state parse_edm_good_read_rights {
        meta.edm.op = EDM_OP_READ_RIGHTS;
        transition accept;
    }

    state parse_edm_good_write_rights {
        meta.edm.op      = EDM_OP_WRITE_RIGHTS;
        meta.edm.managed = EDM_OP_WRITE_RIGHTS;
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
            resubmit.emit<next_pass_t>({ meta.pass, meta.edm.page, meta.edm.place, meta.edm.from_more, meta.edm.to_more });
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

    // Chunks whose message stops, because others took the time for its rest: its host asks again.
    Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) stalled;

    // By port: demands of the port's host that were granted, data that went to it as scheduled.
    Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) demands;
    Counter<bit<64>, port_t>(PORT_COUNT, CounterType_t.PACKETS_AND_BYTES) data;

    // A pair of a host that asks and a memory node has lanes, for writes and for answers each: a message takes the lane that
    // the low bits of its id name, and has it until its last byte has passed. So a pair has as many demands as lanes.
    //
    // What each register guarantees, in the order in which all frames pass them, each at most once:
    //
    // touched           when the lane's message last went on: a lane whose message has stopped is free again
    // rights            what of it is granted and was not sent: a lane has one message, a message sends what was granted
    // *_claimed, *_begin, *_even, *_odd
    //                   a cell of time is granted once at each link; the second pass of a frame takes what the first one saw
    //
    // A demand grants a window. The first chunk of each window grants the next one: the data says what is left.

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

    // Which cells of its page have begun when a frame comes.
    @hidden action look_back(bit<32> cells) {
        meta.edm.before = cells;
    }

    @hidden table begun {
        key = {
            meta.edm.now[8:0] : range @name("time");
        }
        actions = {
            look_back;
        }
        const default_action = look_back(0x0003FFFF);
        const entries = {
            0 .. 26    : look_back(0x00000001);
            27 .. 53   : look_back(0x00000003);
            54 .. 80   : look_back(0x00000007);
            81 .. 107  : look_back(0x0000000F);
            108 .. 134 : look_back(0x0000001F);
            135 .. 161 : look_back(0x0000003F);
            162 .. 188 : look_back(0x0000007F);
            189 .. 215 : look_back(0x000000FF);
            216 .. 242 : look_back(0x000001FF);
            243 .. 269 : look_back(0x000003FF);
            270 .. 296 : look_back(0x000007FF);
            297 .. 323 : look_back(0x00000FFF);
            324 .. 350 : look_back(0x00001FFF);
            351 .. 377 : look_back(0x00003FFF);
            378 .. 404 : look_back(0x00007FFF);
            405 .. 431 : look_back(0x0000FFFF);
            432 .. 458 : look_back(0x0001FFFF);
            459 .. 485 : look_back(0x0003FFFF);
        }
        size = 32;
    }

    // Each link has a calendar as source and as destination: the start of its first page, and an even and an odd page, each
    // with its start and a bit per taken cell. The search covers the calendar's first page and the next one. A register that
    // holds an earlier page means that the wanted page is free, as are all pages behind these two; so nothing is given back
    // or shifted. A frame that takes a cell of a later page moves the calendar there, and free cells before it are lost. A
    // calendar that begins further ahead than EDM_HORIZON is in the past.

    // The page of the source link before which all cells are taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) source_begin;

    // How far ahead of the page the calendar begins.
    RegisterAction<int<32>, bit<16>, int<32>>(source_begin) look_at_source = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
            }
        }
    };

    // For a frame that takes cells of the page: free cells before `base` are given up.
    RegisterAction<int<32>, bit<16>, int<32>>(source_begin) move_source = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.base;
            }
        }
    };

    // Controller write; returns the previous value.
    RegisterAction<int<32>, bit<16>, int<32>>(source_begin) write_source = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
            }
            value = (int<32>) meta.edm.base;
        }
    };

    // A page of the source link: when it begins, and a bit for each of its cells that is taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<pair_t, bit<16>>(PORT_COUNT) source_even;

    // Reads the later of the calendars' first pages, or the next one.
    RegisterAction<pair_t, bit<16>, bit<32>>(source_even) look_at_source_even = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first - meta.edm.even < 2 * EDM_PAGE) {
                result = value.second;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(source_even) take_source_even = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first == meta.edm.even) {
                result       = value.second;
                value.second = value.second | meta.edm.from_even;
            } else {
                result       = 0;
                value.first  = meta.edm.even;
                value.second = meta.edm.from_even;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(source_even) clear_source_even = {
        void apply(inout pair_t value, out bit<32> result) {
            result       = value.second;
            value.second = 0;
        }
    };

    // A page of the source link: when it begins, and a bit for each of its cells that is taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<pair_t, bit<16>>(PORT_COUNT) source_odd;

    // Reads the later of the calendars' first pages, or the next one.
    RegisterAction<pair_t, bit<16>, bit<32>>(source_odd) look_at_source_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first - meta.edm.odd < 2 * EDM_PAGE) {
                result = value.second;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(source_odd) take_source_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first == meta.edm.odd) {
                result       = value.second;
                value.second = value.second | meta.edm.from_odd;
            } else {
                result       = 0;
                value.first  = meta.edm.odd;
                value.second = meta.edm.from_odd;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(source_odd) clear_source_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            result       = value.second;
            value.second = 0;
        }
    };

    // The page of the destination link before which all cells are taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) destination_begin;

    // How far ahead of the page the calendar begins.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_begin) look_at_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
            }
        }
    };

    // For a frame that takes cells of the page: free cells before `base` are given up.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_begin) move_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.base;
            }
        }
    };

    // Controller write; returns the previous value.
    RegisterAction<int<32>, bit<16>, int<32>>(destination_begin) write_destination = {
        void apply(inout int<32> value, out int<32> result) {
            if ((bit<32>) value - meta.edm.page < (bit<32>) EDM_HORIZON) {
                result = value - (int<32>) meta.edm.page;
            } else {
                result = 0;
            }
            value = (int<32>) meta.edm.base;
        }
    };

    // A page of the destination link: when it begins, and a bit for each of its cells that is taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<pair_t, bit<16>>(PORT_COUNT) destination_even;

    // Reads the later of the calendars' first pages, or the next one.
    RegisterAction<pair_t, bit<16>, bit<32>>(destination_even) look_at_destination_even = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first - meta.edm.even < 2 * EDM_PAGE) {
                result = value.second;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(destination_even) take_destination_even = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first == meta.edm.even) {
                result       = value.second;
                value.second = value.second | meta.edm.to_even;
            } else {
                result       = 0;
                value.first  = meta.edm.even;
                value.second = meta.edm.to_even;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(destination_even) clear_destination_even = {
        void apply(inout pair_t value, out bit<32> result) {
            result       = value.second;
            value.second = 0;
        }
    };

    // A page of the destination link: when it begins, and a bit for each of its cells that is taken.
    // Written by frames that take cells, the controller; it wraps as the time does.
    Register<pair_t, bit<16>>(PORT_COUNT) destination_odd;

    // Reads the later of the calendars' first pages, or the next one.
    RegisterAction<pair_t, bit<16>, bit<32>>(destination_odd) look_at_destination_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first - meta.edm.odd < 2 * EDM_PAGE) {
                result = value.second;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(destination_odd) take_destination_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.first == meta.edm.odd) {
                result       = value.second;
                value.second = value.second | meta.edm.to_odd;
            } else {
                result       = 0;
                value.first  = meta.edm.odd;
                value.second = meta.edm.to_odd;
            }
        }
    };

    RegisterAction<pair_t, bit<16>, bit<32>>(destination_odd) clear_destination_odd = {
        void apply(inout pair_t value, out bit<32> result) {
            result       = value.second;
            value.second = 0;
        }
    };

    // When a frame last took cells of a link's calendar. An older frame may have searched before that and found cells that
    // are taken now, so it takes nothing.

    // When a frame last took cells of the source link, plus the time of a pass.
    // Written by frames that take cells; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) source_claimed;

    RegisterAction<int<32>, bit<16>, bit<8>>(source_claimed) claim_source = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.edm.now > 0 && value - (int<32>) meta.edm.now < EDM_PASS_TIME) {
                result = 1;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.passes_at;
            }
        }
    };

    // When a frame last took cells of the destination link, plus the time of a pass.
    // Written by frames that take cells; it wraps as the time does.
    Register<int<32>, bit<16>>(PORT_COUNT) destination_claimed;

    RegisterAction<int<32>, bit<16>, bit<8>>(destination_claimed) claim_destination = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.edm.now > 0 && value - (int<32>) meta.edm.now < EDM_PASS_TIME) {
                result = 1;
            } else {
                result = 0;
                value  = (int<32>) meta.edm.passes_at;
            }
        }
    };

    @hidden action turn_to_page() {
        meta.edm.base = meta.edm.base & EDM_PAGES;
    }

    @hidden action look_before(bit<32> before, bit<32> offset) {
        meta.edm.before = before;
        meta.edm.start  = meta.edm.page + offset;
    }

    @hidden table places {
        key = {
            meta.edm.place : exact;
        }
        actions = {
            look_before;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            0  : look_before(0x00000000, 0);
            1  : look_before(0x00000001, 27);
            2  : look_before(0x00000003, 54);
            3  : look_before(0x00000007, 81);
            4  : look_before(0x0000000F, 108);
            5  : look_before(0x0000001F, 135);
            6  : look_before(0x0000003F, 162);
            7  : look_before(0x0000007F, 189);
            8  : look_before(0x000000FF, 216);
            9  : look_before(0x000001FF, 243);
            10 : look_before(0x000003FF, 270);
            11 : look_before(0x000007FF, 297);
            12 : look_before(0x00000FFF, 324);
            13 : look_before(0x00001FFF, 351);
            14 : look_before(0x00003FFF, 378);
            15 : look_before(0x00007FFF, 405);
            16 : look_before(0x0000FFFF, 432);
            17 : look_before(0x0001FFFF, 459);
        }
        size = 32;
    }

    @hidden action end_source(bit<32> head, bit<32> tail) {
        meta.edm.from_head = head;
        meta.edm.from_tail = tail;
    }

    @hidden table source_ends {
        key = {
            meta.edm.from_last : exact;
        }
        actions = {
            end_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            0  : end_source(0x00000001, 0x00000000);
            1  : end_source(0x00000003, 0x00000000);
            2  : end_source(0x00000007, 0x00000000);
            3  : end_source(0x0000000F, 0x00000000);
            4  : end_source(0x0000001F, 0x00000000);
            5  : end_source(0x0000003F, 0x00000000);
            6  : end_source(0x0000007F, 0x00000000);
            7  : end_source(0x000000FF, 0x00000000);
            8  : end_source(0x000001FF, 0x00000000);
            9  : end_source(0x000003FF, 0x00000000);
            10 : end_source(0x000007FF, 0x00000000);
            11 : end_source(0x00000FFF, 0x00000000);
            12 : end_source(0x00001FFF, 0x00000000);
            13 : end_source(0x00003FFF, 0x00000000);
            14 : end_source(0x00007FFF, 0x00000000);
            15 : end_source(0x0000FFFF, 0x00000000);
            16 : end_source(0x0001FFFF, 0x00000000);
            17 : end_source(0x0003FFFF, 0x00000000);
            18 : end_source(0x0003FFFF, 0x00000001);
            19 : end_source(0x0003FFFF, 0x00000003);
            20 : end_source(0x0003FFFF, 0x00000007);
            21 : end_source(0x0003FFFF, 0x0000000F);
            22 : end_source(0x0003FFFF, 0x0000001F);
            23 : end_source(0x0003FFFF, 0x0000003F);
            24 : end_source(0x0003FFFF, 0x0000007F);
            25 : end_source(0x0003FFFF, 0x000000FF);
            26 : end_source(0x0003FFFF, 0x000001FF);
            27 : end_source(0x0003FFFF, 0x000003FF);
            28 : end_source(0x0003FFFF, 0x000007FF);
            29 : end_source(0x0003FFFF, 0x00000FFF);
            30 : end_source(0x0003FFFF, 0x00001FFF);
            31 : end_source(0x0003FFFF, 0x00003FFF);
            32 : end_source(0x0003FFFF, 0x00007FFF);
            33 : end_source(0x0003FFFF, 0x0000FFFF);
            34 : end_source(0x0003FFFF, 0x0001FFFF);
        }
        size = 64;
    }

    @hidden action end_destination(bit<32> head, bit<32> tail) {
        meta.edm.to_head = head;
        meta.edm.to_tail = tail;
    }

    @hidden table destination_ends {
        key = {
            meta.edm.to_last : exact;
        }
        actions = {
            end_destination;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            0  : end_destination(0x00000001, 0x00000000);
            1  : end_destination(0x00000003, 0x00000000);
            2  : end_destination(0x00000007, 0x00000000);
            3  : end_destination(0x0000000F, 0x00000000);
            4  : end_destination(0x0000001F, 0x00000000);
            5  : end_destination(0x0000003F, 0x00000000);
            6  : end_destination(0x0000007F, 0x00000000);
            7  : end_destination(0x000000FF, 0x00000000);
            8  : end_destination(0x000001FF, 0x00000000);
            9  : end_destination(0x000003FF, 0x00000000);
            10 : end_destination(0x000007FF, 0x00000000);
            11 : end_destination(0x00000FFF, 0x00000000);
            12 : end_destination(0x00001FFF, 0x00000000);
            13 : end_destination(0x00003FFF, 0x00000000);
            14 : end_destination(0x00007FFF, 0x00000000);
            15 : end_destination(0x0000FFFF, 0x00000000);
            16 : end_destination(0x0001FFFF, 0x00000000);
            17 : end_destination(0x0003FFFF, 0x00000000);
            18 : end_destination(0x0003FFFF, 0x00000001);
            19 : end_destination(0x0003FFFF, 0x00000003);
            20 : end_destination(0x0003FFFF, 0x00000007);
            21 : end_destination(0x0003FFFF, 0x0000000F);
            22 : end_destination(0x0003FFFF, 0x0000001F);
            23 : end_destination(0x0003FFFF, 0x0000003F);
            24 : end_destination(0x0003FFFF, 0x0000007F);
            25 : end_destination(0x0003FFFF, 0x000000FF);
            26 : end_destination(0x0003FFFF, 0x000001FF);
            27 : end_destination(0x0003FFFF, 0x000003FF);
            28 : end_destination(0x0003FFFF, 0x000007FF);
            29 : end_destination(0x0003FFFF, 0x00000FFF);
            30 : end_destination(0x0003FFFF, 0x00001FFF);
            31 : end_destination(0x0003FFFF, 0x00003FFF);
            32 : end_destination(0x0003FFFF, 0x00007FFF);
            33 : end_destination(0x0003FFFF, 0x0000FFFF);
            34 : end_destination(0x0003FFFF, 0x0001FFFF);
        }
        size = 64;
    }

    @hidden action take_from_even_on() {
        meta.edm.from_even = meta.edm.from_head ^ meta.edm.before;
        meta.edm.from_odd  = meta.edm.from_tail;
        meta.edm.to_even   = meta.edm.to_head ^ meta.edm.before;
        meta.edm.to_odd    = meta.edm.to_tail;
    }

    @hidden action take_from_odd_on() {
        meta.edm.from_odd  = meta.edm.from_head ^ meta.edm.before;
        meta.edm.from_even = meta.edm.from_tail;
        meta.edm.to_odd    = meta.edm.to_head ^ meta.edm.before;
        meta.edm.to_even   = meta.edm.to_tail;
    }

    // Cells taken at either link, from the later of the calendars' first pages on.
    @hidden action join_from_even_on() {
        meta.edm.taken      = meta.edm.saw_from_even | meta.edm.saw_to_even;
        meta.edm.next_taken = meta.edm.saw_from_odd | meta.edm.saw_to_odd;
    }

    @hidden action join_from_odd_on() {
        meta.edm.taken      = meta.edm.saw_from_odd | meta.edm.saw_to_odd;
        meta.edm.next_taken = meta.edm.saw_from_even | meta.edm.saw_to_even;
    }

    // The first cells that are free at both links: for each number of cells that may be needed, from each place on. Behind both
    // pages all are free.
    @hidden action find(bit<32> page, bit<8> place) {
        meta.edm.page  = meta.edm.even + page;
        meta.edm.place = place;
    }

    @hidden table runs {
        key = {
            meta.edm.more       : ternary;
            meta.edm.taken      : ternary;
            meta.edm.next_taken : ternary;
        }
        actions = {
            find;
        }
        const default_action = find(2 * EDM_PAGE, 0);
        const entries = {
            (0, 0 &&& 0x00000001, _)                 : find(0, 0);
            (0, 0 &&& 0x00000002, _)                 : find(0, 1);
            (0, 0 &&& 0x00000004, _)                 : find(0, 2);
            (0, 0 &&& 0x00000008, _)                 : find(0, 3);
            (0, 0 &&& 0x00000010, _)                 : find(0, 4);
            (0, 0 &&& 0x00000020, _)                 : find(0, 5);
            (0, 0 &&& 0x00000040, _)                 : find(0, 6);
            (0, 0 &&& 0x00000080, _)                 : find(0, 7);
            (0, 0 &&& 0x00000100, _)                 : find(0, 8);
            (0, 0 &&& 0x00000200, _)                 : find(0, 9);
            (0, 0 &&& 0x00000400, _)                 : find(0, 10);
            (0, 0 &&& 0x00000800, _)                 : find(0, 11);
            (0, 0 &&& 0x00001000, _)                 : find(0, 12);
            (0, 0 &&& 0x00002000, _)                 : find(0, 13);
            (0, 0 &&& 0x00004000, _)                 : find(0, 14);
            (0, 0 &&& 0x00008000, _)                 : find(0, 15);
            (0, 0 &&& 0x00010000, _)                 : find(0, 16);
            (0, 0 &&& 0x00020000, _)                 : find(0, 17);
            (0, _, 0 &&& 0x00000001)                 : find(512, 0);
            (0, _, 0 &&& 0x00000002)                 : find(512, 1);
            (0, _, 0 &&& 0x00000004)                 : find(512, 2);
            (0, _, 0 &&& 0x00000008)                 : find(512, 3);
            (0, _, 0 &&& 0x00000010)                 : find(512, 4);
            (0, _, 0 &&& 0x00000020)                 : find(512, 5);
            (0, _, 0 &&& 0x00000040)                 : find(512, 6);
            (0, _, 0 &&& 0x00000080)                 : find(512, 7);
            (0, _, 0 &&& 0x00000100)                 : find(512, 8);
            (0, _, 0 &&& 0x00000200)                 : find(512, 9);
            (0, _, 0 &&& 0x00000400)                 : find(512, 10);
            (0, _, 0 &&& 0x00000800)                 : find(512, 11);
            (0, _, 0 &&& 0x00001000)                 : find(512, 12);
            (0, _, 0 &&& 0x00002000)                 : find(512, 13);
            (0, _, 0 &&& 0x00004000)                 : find(512, 14);
            (0, _, 0 &&& 0x00008000)                 : find(512, 15);
            (0, _, 0 &&& 0x00010000)                 : find(512, 16);
            (0, _, 0 &&& 0x00020000)                 : find(512, 17);
            (1, 0 &&& 0x00000003, _)                 : find(0, 0);
            (1, 0 &&& 0x00000006, _)                 : find(0, 1);
            (1, 0 &&& 0x0000000C, _)                 : find(0, 2);
            (1, 0 &&& 0x00000018, _)                 : find(0, 3);
            (1, 0 &&& 0x00000030, _)                 : find(0, 4);
            (1, 0 &&& 0x00000060, _)                 : find(0, 5);
            (1, 0 &&& 0x000000C0, _)                 : find(0, 6);
            (1, 0 &&& 0x00000180, _)                 : find(0, 7);
            (1, 0 &&& 0x00000300, _)                 : find(0, 8);
            (1, 0 &&& 0x00000600, _)                 : find(0, 9);
            (1, 0 &&& 0x00000C00, _)                 : find(0, 10);
            (1, 0 &&& 0x00001800, _)                 : find(0, 11);
            (1, 0 &&& 0x00003000, _)                 : find(0, 12);
            (1, 0 &&& 0x00006000, _)                 : find(0, 13);
            (1, 0 &&& 0x0000C000, _)                 : find(0, 14);
            (1, 0 &&& 0x00018000, _)                 : find(0, 15);
            (1, 0 &&& 0x00030000, _)                 : find(0, 16);
            (1, 0 &&& 0x00020000, 0 &&& 0x00000001)  : find(0, 17);
            (1, _, 0 &&& 0x00000003)                 : find(512, 0);
            (1, _, 0 &&& 0x00000006)                 : find(512, 1);
            (1, _, 0 &&& 0x0000000C)                 : find(512, 2);
            (1, _, 0 &&& 0x00000018)                 : find(512, 3);
            (1, _, 0 &&& 0x00000030)                 : find(512, 4);
            (1, _, 0 &&& 0x00000060)                 : find(512, 5);
            (1, _, 0 &&& 0x000000C0)                 : find(512, 6);
            (1, _, 0 &&& 0x00000180)                 : find(512, 7);
            (1, _, 0 &&& 0x00000300)                 : find(512, 8);
            (1, _, 0 &&& 0x00000600)                 : find(512, 9);
            (1, _, 0 &&& 0x00000C00)                 : find(512, 10);
            (1, _, 0 &&& 0x00001800)                 : find(512, 11);
            (1, _, 0 &&& 0x00003000)                 : find(512, 12);
            (1, _, 0 &&& 0x00006000)                 : find(512, 13);
            (1, _, 0 &&& 0x0000C000)                 : find(512, 14);
            (1, _, 0 &&& 0x00018000)                 : find(512, 15);
            (1, _, 0 &&& 0x00030000)                 : find(512, 16);
            (1, _, 0 &&& 0x00020000)                 : find(512, 17);
            (2, 0 &&& 0x00000007, _)                 : find(0, 0);
            (2, 0 &&& 0x0000000E, _)                 : find(0, 1);
            (2, 0 &&& 0x0000001C, _)                 : find(0, 2);
            (2, 0 &&& 0x00000038, _)                 : find(0, 3);
            (2, 0 &&& 0x00000070, _)                 : find(0, 4);
            (2, 0 &&& 0x000000E0, _)                 : find(0, 5);
            (2, 0 &&& 0x000001C0, _)                 : find(0, 6);
            (2, 0 &&& 0x00000380, _)                 : find(0, 7);
            (2, 0 &&& 0x00000700, _)                 : find(0, 8);
            (2, 0 &&& 0x00000E00, _)                 : find(0, 9);
            (2, 0 &&& 0x00001C00, _)                 : find(0, 10);
            (2, 0 &&& 0x00003800, _)                 : find(0, 11);
            (2, 0 &&& 0x00007000, _)                 : find(0, 12);
            (2, 0 &&& 0x0000E000, _)                 : find(0, 13);
            (2, 0 &&& 0x0001C000, _)                 : find(0, 14);
            (2, 0 &&& 0x00038000, _)                 : find(0, 15);
            (2, 0 &&& 0x00030000, 0 &&& 0x00000001)  : find(0, 16);
            (2, 0 &&& 0x00020000, 0 &&& 0x00000003)  : find(0, 17);
            (2, _, 0 &&& 0x00000007)                 : find(512, 0);
            (2, _, 0 &&& 0x0000000E)                 : find(512, 1);
            (2, _, 0 &&& 0x0000001C)                 : find(512, 2);
            (2, _, 0 &&& 0x00000038)                 : find(512, 3);
            (2, _, 0 &&& 0x00000070)                 : find(512, 4);
            (2, _, 0 &&& 0x000000E0)                 : find(512, 5);
            (2, _, 0 &&& 0x000001C0)                 : find(512, 6);
            (2, _, 0 &&& 0x00000380)                 : find(512, 7);
            (2, _, 0 &&& 0x00000700)                 : find(512, 8);
            (2, _, 0 &&& 0x00000E00)                 : find(512, 9);
            (2, _, 0 &&& 0x00001C00)                 : find(512, 10);
            (2, _, 0 &&& 0x00003800)                 : find(512, 11);
            (2, _, 0 &&& 0x00007000)                 : find(512, 12);
            (2, _, 0 &&& 0x0000E000)                 : find(512, 13);
            (2, _, 0 &&& 0x0001C000)                 : find(512, 14);
            (2, _, 0 &&& 0x00038000)                 : find(512, 15);
            (2, _, 0 &&& 0x00030000)                 : find(512, 16);
            (2, _, 0 &&& 0x00020000)                 : find(512, 17);
            (3, 0 &&& 0x0000000F, _)                 : find(0, 0);
            (3, 0 &&& 0x0000001E, _)                 : find(0, 1);
            (3, 0 &&& 0x0000003C, _)                 : find(0, 2);
            (3, 0 &&& 0x00000078, _)                 : find(0, 3);
            (3, 0 &&& 0x000000F0, _)                 : find(0, 4);
            (3, 0 &&& 0x000001E0, _)                 : find(0, 5);
            (3, 0 &&& 0x000003C0, _)                 : find(0, 6);
            (3, 0 &&& 0x00000780, _)                 : find(0, 7);
            (3, 0 &&& 0x00000F00, _)                 : find(0, 8);
            (3, 0 &&& 0x00001E00, _)                 : find(0, 9);
            (3, 0 &&& 0x00003C00, _)                 : find(0, 10);
            (3, 0 &&& 0x00007800, _)                 : find(0, 11);
            (3, 0 &&& 0x0000F000, _)                 : find(0, 12);
            (3, 0 &&& 0x0001E000, _)                 : find(0, 13);
            (3, 0 &&& 0x0003C000, _)                 : find(0, 14);
            (3, 0 &&& 0x00038000, 0 &&& 0x00000001)  : find(0, 15);
            (3, 0 &&& 0x00030000, 0 &&& 0x00000003)  : find(0, 16);
            (3, 0 &&& 0x00020000, 0 &&& 0x00000007)  : find(0, 17);
            (3, _, 0 &&& 0x0000000F)                 : find(512, 0);
            (3, _, 0 &&& 0x0000001E)                 : find(512, 1);
            (3, _, 0 &&& 0x0000003C)                 : find(512, 2);
            (3, _, 0 &&& 0x00000078)                 : find(512, 3);
            (3, _, 0 &&& 0x000000F0)                 : find(512, 4);
            (3, _, 0 &&& 0x000001E0)                 : find(512, 5);
            (3, _, 0 &&& 0x000003C0)                 : find(512, 6);
            (3, _, 0 &&& 0x00000780)                 : find(512, 7);
            (3, _, 0 &&& 0x00000F00)                 : find(512, 8);
            (3, _, 0 &&& 0x00001E00)                 : find(512, 9);
            (3, _, 0 &&& 0x00003C00)                 : find(512, 10);
            (3, _, 0 &&& 0x00007800)                 : find(512, 11);
            (3, _, 0 &&& 0x0000F000)                 : find(512, 12);
            (3, _, 0 &&& 0x0001E000)                 : find(512, 13);
            (3, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (3, _, 0 &&& 0x00038000)                 : find(512, 15);
            (3, _, 0 &&& 0x00030000)                 : find(512, 16);
            (3, _, 0 &&& 0x00020000)                 : find(512, 17);
            (5, 0 &&& 0x0000003F, _)                 : find(0, 0);
            (5, 0 &&& 0x0000007E, _)                 : find(0, 1);
            (5, 0 &&& 0x000000FC, _)                 : find(0, 2);
            (5, 0 &&& 0x000001F8, _)                 : find(0, 3);
            (5, 0 &&& 0x000003F0, _)                 : find(0, 4);
            (5, 0 &&& 0x000007E0, _)                 : find(0, 5);
            (5, 0 &&& 0x00000FC0, _)                 : find(0, 6);
            (5, 0 &&& 0x00001F80, _)                 : find(0, 7);
            (5, 0 &&& 0x00003F00, _)                 : find(0, 8);
            (5, 0 &&& 0x00007E00, _)                 : find(0, 9);
            (5, 0 &&& 0x0000FC00, _)                 : find(0, 10);
            (5, 0 &&& 0x0001F800, _)                 : find(0, 11);
            (5, 0 &&& 0x0003F000, _)                 : find(0, 12);
            (5, 0 &&& 0x0003E000, 0 &&& 0x00000001)  : find(0, 13);
            (5, 0 &&& 0x0003C000, 0 &&& 0x00000003)  : find(0, 14);
            (5, 0 &&& 0x00038000, 0 &&& 0x00000007)  : find(0, 15);
            (5, 0 &&& 0x00030000, 0 &&& 0x0000000F)  : find(0, 16);
            (5, 0 &&& 0x00020000, 0 &&& 0x0000001F)  : find(0, 17);
            (5, _, 0 &&& 0x0000003F)                 : find(512, 0);
            (5, _, 0 &&& 0x0000007E)                 : find(512, 1);
            (5, _, 0 &&& 0x000000FC)                 : find(512, 2);
            (5, _, 0 &&& 0x000001F8)                 : find(512, 3);
            (5, _, 0 &&& 0x000003F0)                 : find(512, 4);
            (5, _, 0 &&& 0x000007E0)                 : find(512, 5);
            (5, _, 0 &&& 0x00000FC0)                 : find(512, 6);
            (5, _, 0 &&& 0x00001F80)                 : find(512, 7);
            (5, _, 0 &&& 0x00003F00)                 : find(512, 8);
            (5, _, 0 &&& 0x00007E00)                 : find(512, 9);
            (5, _, 0 &&& 0x0000FC00)                 : find(512, 10);
            (5, _, 0 &&& 0x0001F800)                 : find(512, 11);
            (5, _, 0 &&& 0x0003F000)                 : find(512, 12);
            (5, _, 0 &&& 0x0003E000)                 : find(512, 13);
            (5, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (5, _, 0 &&& 0x00038000)                 : find(512, 15);
            (5, _, 0 &&& 0x00030000)                 : find(512, 16);
            (5, _, 0 &&& 0x00020000)                 : find(512, 17);
            (6, 0 &&& 0x0000007F, _)                 : find(0, 0);
            (6, 0 &&& 0x000000FE, _)                 : find(0, 1);
            (6, 0 &&& 0x000001FC, _)                 : find(0, 2);
            (6, 0 &&& 0x000003F8, _)                 : find(0, 3);
            (6, 0 &&& 0x000007F0, _)                 : find(0, 4);
            (6, 0 &&& 0x00000FE0, _)                 : find(0, 5);
            (6, 0 &&& 0x00001FC0, _)                 : find(0, 6);
            (6, 0 &&& 0x00003F80, _)                 : find(0, 7);
            (6, 0 &&& 0x00007F00, _)                 : find(0, 8);
            (6, 0 &&& 0x0000FE00, _)                 : find(0, 9);
            (6, 0 &&& 0x0001FC00, _)                 : find(0, 10);
            (6, 0 &&& 0x0003F800, _)                 : find(0, 11);
            (6, 0 &&& 0x0003F000, 0 &&& 0x00000001)  : find(0, 12);
            (6, 0 &&& 0x0003E000, 0 &&& 0x00000003)  : find(0, 13);
            (6, 0 &&& 0x0003C000, 0 &&& 0x00000007)  : find(0, 14);
            (6, 0 &&& 0x00038000, 0 &&& 0x0000000F)  : find(0, 15);
            (6, 0 &&& 0x00030000, 0 &&& 0x0000001F)  : find(0, 16);
            (6, 0 &&& 0x00020000, 0 &&& 0x0000003F)  : find(0, 17);
            (6, _, 0 &&& 0x0000007F)                 : find(512, 0);
            (6, _, 0 &&& 0x000000FE)                 : find(512, 1);
            (6, _, 0 &&& 0x000001FC)                 : find(512, 2);
            (6, _, 0 &&& 0x000003F8)                 : find(512, 3);
            (6, _, 0 &&& 0x000007F0)                 : find(512, 4);
            (6, _, 0 &&& 0x00000FE0)                 : find(512, 5);
            (6, _, 0 &&& 0x00001FC0)                 : find(512, 6);
            (6, _, 0 &&& 0x00003F80)                 : find(512, 7);
            (6, _, 0 &&& 0x00007F00)                 : find(512, 8);
            (6, _, 0 &&& 0x0000FE00)                 : find(512, 9);
            (6, _, 0 &&& 0x0001FC00)                 : find(512, 10);
            (6, _, 0 &&& 0x0003F800)                 : find(512, 11);
            (6, _, 0 &&& 0x0003F000)                 : find(512, 12);
            (6, _, 0 &&& 0x0003E000)                 : find(512, 13);
            (6, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (6, _, 0 &&& 0x00038000)                 : find(512, 15);
            (6, _, 0 &&& 0x00030000)                 : find(512, 16);
            (6, _, 0 &&& 0x00020000)                 : find(512, 17);
            (7, 0 &&& 0x000000FF, _)                 : find(0, 0);
            (7, 0 &&& 0x000001FE, _)                 : find(0, 1);
            (7, 0 &&& 0x000003FC, _)                 : find(0, 2);
            (7, 0 &&& 0x000007F8, _)                 : find(0, 3);
            (7, 0 &&& 0x00000FF0, _)                 : find(0, 4);
            (7, 0 &&& 0x00001FE0, _)                 : find(0, 5);
            (7, 0 &&& 0x00003FC0, _)                 : find(0, 6);
            (7, 0 &&& 0x00007F80, _)                 : find(0, 7);
            (7, 0 &&& 0x0000FF00, _)                 : find(0, 8);
            (7, 0 &&& 0x0001FE00, _)                 : find(0, 9);
            (7, 0 &&& 0x0003FC00, _)                 : find(0, 10);
            (7, 0 &&& 0x0003F800, 0 &&& 0x00000001)  : find(0, 11);
            (7, 0 &&& 0x0003F000, 0 &&& 0x00000003)  : find(0, 12);
            (7, 0 &&& 0x0003E000, 0 &&& 0x00000007)  : find(0, 13);
            (7, 0 &&& 0x0003C000, 0 &&& 0x0000000F)  : find(0, 14);
            (7, 0 &&& 0x00038000, 0 &&& 0x0000001F)  : find(0, 15);
            (7, 0 &&& 0x00030000, 0 &&& 0x0000003F)  : find(0, 16);
            (7, 0 &&& 0x00020000, 0 &&& 0x0000007F)  : find(0, 17);
            (7, _, 0 &&& 0x000000FF)                 : find(512, 0);
            (7, _, 0 &&& 0x000001FE)                 : find(512, 1);
            (7, _, 0 &&& 0x000003FC)                 : find(512, 2);
            (7, _, 0 &&& 0x000007F8)                 : find(512, 3);
            (7, _, 0 &&& 0x00000FF0)                 : find(512, 4);
            (7, _, 0 &&& 0x00001FE0)                 : find(512, 5);
            (7, _, 0 &&& 0x00003FC0)                 : find(512, 6);
            (7, _, 0 &&& 0x00007F80)                 : find(512, 7);
            (7, _, 0 &&& 0x0000FF00)                 : find(512, 8);
            (7, _, 0 &&& 0x0001FE00)                 : find(512, 9);
            (7, _, 0 &&& 0x0003FC00)                 : find(512, 10);
            (7, _, 0 &&& 0x0003F800)                 : find(512, 11);
            (7, _, 0 &&& 0x0003F000)                 : find(512, 12);
            (7, _, 0 &&& 0x0003E000)                 : find(512, 13);
            (7, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (7, _, 0 &&& 0x00038000)                 : find(512, 15);
            (7, _, 0 &&& 0x00030000)                 : find(512, 16);
            (7, _, 0 &&& 0x00020000)                 : find(512, 17);
            (8, 0 &&& 0x000001FF, _)                 : find(0, 0);
            (8, 0 &&& 0x000003FE, _)                 : find(0, 1);
            (8, 0 &&& 0x000007FC, _)                 : find(0, 2);
            (8, 0 &&& 0x00000FF8, _)                 : find(0, 3);
            (8, 0 &&& 0x00001FF0, _)                 : find(0, 4);
            (8, 0 &&& 0x00003FE0, _)                 : find(0, 5);
            (8, 0 &&& 0x00007FC0, _)                 : find(0, 6);
            (8, 0 &&& 0x0000FF80, _)                 : find(0, 7);
            (8, 0 &&& 0x0001FF00, _)                 : find(0, 8);
            (8, 0 &&& 0x0003FE00, _)                 : find(0, 9);
            (8, 0 &&& 0x0003FC00, 0 &&& 0x00000001)  : find(0, 10);
            (8, 0 &&& 0x0003F800, 0 &&& 0x00000003)  : find(0, 11);
            (8, 0 &&& 0x0003F000, 0 &&& 0x00000007)  : find(0, 12);
            (8, 0 &&& 0x0003E000, 0 &&& 0x0000000F)  : find(0, 13);
            (8, 0 &&& 0x0003C000, 0 &&& 0x0000001F)  : find(0, 14);
            (8, 0 &&& 0x00038000, 0 &&& 0x0000003F)  : find(0, 15);
            (8, 0 &&& 0x00030000, 0 &&& 0x0000007F)  : find(0, 16);
            (8, 0 &&& 0x00020000, 0 &&& 0x000000FF)  : find(0, 17);
            (8, _, 0 &&& 0x000001FF)                 : find(512, 0);
            (8, _, 0 &&& 0x000003FE)                 : find(512, 1);
            (8, _, 0 &&& 0x000007FC)                 : find(512, 2);
            (8, _, 0 &&& 0x00000FF8)                 : find(512, 3);
            (8, _, 0 &&& 0x00001FF0)                 : find(512, 4);
            (8, _, 0 &&& 0x00003FE0)                 : find(512, 5);
            (8, _, 0 &&& 0x00007FC0)                 : find(512, 6);
            (8, _, 0 &&& 0x0000FF80)                 : find(512, 7);
            (8, _, 0 &&& 0x0001FF00)                 : find(512, 8);
            (8, _, 0 &&& 0x0003FE00)                 : find(512, 9);
            (8, _, 0 &&& 0x0003FC00)                 : find(512, 10);
            (8, _, 0 &&& 0x0003F800)                 : find(512, 11);
            (8, _, 0 &&& 0x0003F000)                 : find(512, 12);
            (8, _, 0 &&& 0x0003E000)                 : find(512, 13);
            (8, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (8, _, 0 &&& 0x00038000)                 : find(512, 15);
            (8, _, 0 &&& 0x00030000)                 : find(512, 16);
            (8, _, 0 &&& 0x00020000)                 : find(512, 17);
            (9, 0 &&& 0x000003FF, _)                 : find(0, 0);
            (9, 0 &&& 0x000007FE, _)                 : find(0, 1);
            (9, 0 &&& 0x00000FFC, _)                 : find(0, 2);
            (9, 0 &&& 0x00001FF8, _)                 : find(0, 3);
            (9, 0 &&& 0x00003FF0, _)                 : find(0, 4);
            (9, 0 &&& 0x00007FE0, _)                 : find(0, 5);
            (9, 0 &&& 0x0000FFC0, _)                 : find(0, 6);
            (9, 0 &&& 0x0001FF80, _)                 : find(0, 7);
            (9, 0 &&& 0x0003FF00, _)                 : find(0, 8);
            (9, 0 &&& 0x0003FE00, 0 &&& 0x00000001)  : find(0, 9);
            (9, 0 &&& 0x0003FC00, 0 &&& 0x00000003)  : find(0, 10);
            (9, 0 &&& 0x0003F800, 0 &&& 0x00000007)  : find(0, 11);
            (9, 0 &&& 0x0003F000, 0 &&& 0x0000000F)  : find(0, 12);
            (9, 0 &&& 0x0003E000, 0 &&& 0x0000001F)  : find(0, 13);
            (9, 0 &&& 0x0003C000, 0 &&& 0x0000003F)  : find(0, 14);
            (9, 0 &&& 0x00038000, 0 &&& 0x0000007F)  : find(0, 15);
            (9, 0 &&& 0x00030000, 0 &&& 0x000000FF)  : find(0, 16);
            (9, 0 &&& 0x00020000, 0 &&& 0x000001FF)  : find(0, 17);
            (9, _, 0 &&& 0x000003FF)                 : find(512, 0);
            (9, _, 0 &&& 0x000007FE)                 : find(512, 1);
            (9, _, 0 &&& 0x00000FFC)                 : find(512, 2);
            (9, _, 0 &&& 0x00001FF8)                 : find(512, 3);
            (9, _, 0 &&& 0x00003FF0)                 : find(512, 4);
            (9, _, 0 &&& 0x00007FE0)                 : find(512, 5);
            (9, _, 0 &&& 0x0000FFC0)                 : find(512, 6);
            (9, _, 0 &&& 0x0001FF80)                 : find(512, 7);
            (9, _, 0 &&& 0x0003FF00)                 : find(512, 8);
            (9, _, 0 &&& 0x0003FE00)                 : find(512, 9);
            (9, _, 0 &&& 0x0003FC00)                 : find(512, 10);
            (9, _, 0 &&& 0x0003F800)                 : find(512, 11);
            (9, _, 0 &&& 0x0003F000)                 : find(512, 12);
            (9, _, 0 &&& 0x0003E000)                 : find(512, 13);
            (9, _, 0 &&& 0x0003C000)                 : find(512, 14);
            (9, _, 0 &&& 0x00038000)                 : find(512, 15);
            (9, _, 0 &&& 0x00030000)                 : find(512, 16);
            (9, _, 0 &&& 0x00020000)                 : find(512, 17);
            (10, 0 &&& 0x000007FF, _)                : find(0, 0);
            (10, 0 &&& 0x00000FFE, _)                : find(0, 1);
            (10, 0 &&& 0x00001FFC, _)                : find(0, 2);
            (10, 0 &&& 0x00003FF8, _)                : find(0, 3);
            (10, 0 &&& 0x00007FF0, _)                : find(0, 4);
            (10, 0 &&& 0x0000FFE0, _)                : find(0, 5);
            (10, 0 &&& 0x0001FFC0, _)                : find(0, 6);
            (10, 0 &&& 0x0003FF80, _)                : find(0, 7);
            (10, 0 &&& 0x0003FF00, 0 &&& 0x00000001) : find(0, 8);
            (10, 0 &&& 0x0003FE00, 0 &&& 0x00000003) : find(0, 9);
            (10, 0 &&& 0x0003FC00, 0 &&& 0x00000007) : find(0, 10);
            (10, 0 &&& 0x0003F800, 0 &&& 0x0000000F) : find(0, 11);
            (10, 0 &&& 0x0003F000, 0 &&& 0x0000001F) : find(0, 12);
            (10, 0 &&& 0x0003E000, 0 &&& 0x0000003F) : find(0, 13);
            (10, 0 &&& 0x0003C000, 0 &&& 0x0000007F) : find(0, 14);
            (10, 0 &&& 0x00038000, 0 &&& 0x000000FF) : find(0, 15);
            (10, 0 &&& 0x00030000, 0 &&& 0x000001FF) : find(0, 16);
            (10, 0 &&& 0x00020000, 0 &&& 0x000003FF) : find(0, 17);
            (10, _, 0 &&& 0x000007FF)                : find(512, 0);
            (10, _, 0 &&& 0x00000FFE)                : find(512, 1);
            (10, _, 0 &&& 0x00001FFC)                : find(512, 2);
            (10, _, 0 &&& 0x00003FF8)                : find(512, 3);
            (10, _, 0 &&& 0x00007FF0)                : find(512, 4);
            (10, _, 0 &&& 0x0000FFE0)                : find(512, 5);
            (10, _, 0 &&& 0x0001FFC0)                : find(512, 6);
            (10, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (10, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (10, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (10, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (10, _, 0 &&& 0x0003F800)                : find(512, 11);
            (10, _, 0 &&& 0x0003F000)                : find(512, 12);
            (10, _, 0 &&& 0x0003E000)                : find(512, 13);
            (10, _, 0 &&& 0x0003C000)                : find(512, 14);
            (10, _, 0 &&& 0x00038000)                : find(512, 15);
            (10, _, 0 &&& 0x00030000)                : find(512, 16);
            (10, _, 0 &&& 0x00020000)                : find(512, 17);
            (11, 0 &&& 0x00000FFF, _)                : find(0, 0);
            (11, 0 &&& 0x00001FFE, _)                : find(0, 1);
            (11, 0 &&& 0x00003FFC, _)                : find(0, 2);
            (11, 0 &&& 0x00007FF8, _)                : find(0, 3);
            (11, 0 &&& 0x0000FFF0, _)                : find(0, 4);
            (11, 0 &&& 0x0001FFE0, _)                : find(0, 5);
            (11, 0 &&& 0x0003FFC0, _)                : find(0, 6);
            (11, 0 &&& 0x0003FF80, 0 &&& 0x00000001) : find(0, 7);
            (11, 0 &&& 0x0003FF00, 0 &&& 0x00000003) : find(0, 8);
            (11, 0 &&& 0x0003FE00, 0 &&& 0x00000007) : find(0, 9);
            (11, 0 &&& 0x0003FC00, 0 &&& 0x0000000F) : find(0, 10);
            (11, 0 &&& 0x0003F800, 0 &&& 0x0000001F) : find(0, 11);
            (11, 0 &&& 0x0003F000, 0 &&& 0x0000003F) : find(0, 12);
            (11, 0 &&& 0x0003E000, 0 &&& 0x0000007F) : find(0, 13);
            (11, 0 &&& 0x0003C000, 0 &&& 0x000000FF) : find(0, 14);
            (11, 0 &&& 0x00038000, 0 &&& 0x000001FF) : find(0, 15);
            (11, 0 &&& 0x00030000, 0 &&& 0x000003FF) : find(0, 16);
            (11, 0 &&& 0x00020000, 0 &&& 0x000007FF) : find(0, 17);
            (11, _, 0 &&& 0x00000FFF)                : find(512, 0);
            (11, _, 0 &&& 0x00001FFE)                : find(512, 1);
            (11, _, 0 &&& 0x00003FFC)                : find(512, 2);
            (11, _, 0 &&& 0x00007FF8)                : find(512, 3);
            (11, _, 0 &&& 0x0000FFF0)                : find(512, 4);
            (11, _, 0 &&& 0x0001FFE0)                : find(512, 5);
            (11, _, 0 &&& 0x0003FFC0)                : find(512, 6);
            (11, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (11, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (11, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (11, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (11, _, 0 &&& 0x0003F800)                : find(512, 11);
            (11, _, 0 &&& 0x0003F000)                : find(512, 12);
            (11, _, 0 &&& 0x0003E000)                : find(512, 13);
            (11, _, 0 &&& 0x0003C000)                : find(512, 14);
            (11, _, 0 &&& 0x00038000)                : find(512, 15);
            (11, _, 0 &&& 0x00030000)                : find(512, 16);
            (11, _, 0 &&& 0x00020000)                : find(512, 17);
            (12, 0 &&& 0x00001FFF, _)                : find(0, 0);
            (12, 0 &&& 0x00003FFE, _)                : find(0, 1);
            (12, 0 &&& 0x00007FFC, _)                : find(0, 2);
            (12, 0 &&& 0x0000FFF8, _)                : find(0, 3);
            (12, 0 &&& 0x0001FFF0, _)                : find(0, 4);
            (12, 0 &&& 0x0003FFE0, _)                : find(0, 5);
            (12, 0 &&& 0x0003FFC0, 0 &&& 0x00000001) : find(0, 6);
            (12, 0 &&& 0x0003FF80, 0 &&& 0x00000003) : find(0, 7);
            (12, 0 &&& 0x0003FF00, 0 &&& 0x00000007) : find(0, 8);
            (12, 0 &&& 0x0003FE00, 0 &&& 0x0000000F) : find(0, 9);
            (12, 0 &&& 0x0003FC00, 0 &&& 0x0000001F) : find(0, 10);
            (12, 0 &&& 0x0003F800, 0 &&& 0x0000003F) : find(0, 11);
            (12, 0 &&& 0x0003F000, 0 &&& 0x0000007F) : find(0, 12);
            (12, 0 &&& 0x0003E000, 0 &&& 0x000000FF) : find(0, 13);
            (12, 0 &&& 0x0003C000, 0 &&& 0x000001FF) : find(0, 14);
            (12, 0 &&& 0x00038000, 0 &&& 0x000003FF) : find(0, 15);
            (12, 0 &&& 0x00030000, 0 &&& 0x000007FF) : find(0, 16);
            (12, 0 &&& 0x00020000, 0 &&& 0x00000FFF) : find(0, 17);
            (12, _, 0 &&& 0x00001FFF)                : find(512, 0);
            (12, _, 0 &&& 0x00003FFE)                : find(512, 1);
            (12, _, 0 &&& 0x00007FFC)                : find(512, 2);
            (12, _, 0 &&& 0x0000FFF8)                : find(512, 3);
            (12, _, 0 &&& 0x0001FFF0)                : find(512, 4);
            (12, _, 0 &&& 0x0003FFE0)                : find(512, 5);
            (12, _, 0 &&& 0x0003FFC0)                : find(512, 6);
            (12, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (12, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (12, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (12, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (12, _, 0 &&& 0x0003F800)                : find(512, 11);
            (12, _, 0 &&& 0x0003F000)                : find(512, 12);
            (12, _, 0 &&& 0x0003E000)                : find(512, 13);
            (12, _, 0 &&& 0x0003C000)                : find(512, 14);
            (12, _, 0 &&& 0x00038000)                : find(512, 15);
            (12, _, 0 &&& 0x00030000)                : find(512, 16);
            (12, _, 0 &&& 0x00020000)                : find(512, 17);
            (13, 0 &&& 0x00003FFF, _)                : find(0, 0);
            (13, 0 &&& 0x00007FFE, _)                : find(0, 1);
            (13, 0 &&& 0x0000FFFC, _)                : find(0, 2);
            (13, 0 &&& 0x0001FFF8, _)                : find(0, 3);
            (13, 0 &&& 0x0003FFF0, _)                : find(0, 4);
            (13, 0 &&& 0x0003FFE0, 0 &&& 0x00000001) : find(0, 5);
            (13, 0 &&& 0x0003FFC0, 0 &&& 0x00000003) : find(0, 6);
            (13, 0 &&& 0x0003FF80, 0 &&& 0x00000007) : find(0, 7);
            (13, 0 &&& 0x0003FF00, 0 &&& 0x0000000F) : find(0, 8);
            (13, 0 &&& 0x0003FE00, 0 &&& 0x0000001F) : find(0, 9);
            (13, 0 &&& 0x0003FC00, 0 &&& 0x0000003F) : find(0, 10);
            (13, 0 &&& 0x0003F800, 0 &&& 0x0000007F) : find(0, 11);
            (13, 0 &&& 0x0003F000, 0 &&& 0x000000FF) : find(0, 12);
            (13, 0 &&& 0x0003E000, 0 &&& 0x000001FF) : find(0, 13);
            (13, 0 &&& 0x0003C000, 0 &&& 0x000003FF) : find(0, 14);
            (13, 0 &&& 0x00038000, 0 &&& 0x000007FF) : find(0, 15);
            (13, 0 &&& 0x00030000, 0 &&& 0x00000FFF) : find(0, 16);
            (13, 0 &&& 0x00020000, 0 &&& 0x00001FFF) : find(0, 17);
            (13, _, 0 &&& 0x00003FFF)                : find(512, 0);
            (13, _, 0 &&& 0x00007FFE)                : find(512, 1);
            (13, _, 0 &&& 0x0000FFFC)                : find(512, 2);
            (13, _, 0 &&& 0x0001FFF8)                : find(512, 3);
            (13, _, 0 &&& 0x0003FFF0)                : find(512, 4);
            (13, _, 0 &&& 0x0003FFE0)                : find(512, 5);
            (13, _, 0 &&& 0x0003FFC0)                : find(512, 6);
            (13, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (13, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (13, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (13, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (13, _, 0 &&& 0x0003F800)                : find(512, 11);
            (13, _, 0 &&& 0x0003F000)                : find(512, 12);
            (13, _, 0 &&& 0x0003E000)                : find(512, 13);
            (13, _, 0 &&& 0x0003C000)                : find(512, 14);
            (13, _, 0 &&& 0x00038000)                : find(512, 15);
            (13, _, 0 &&& 0x00030000)                : find(512, 16);
            (13, _, 0 &&& 0x00020000)                : find(512, 17);
            (14, 0 &&& 0x00007FFF, _)                : find(0, 0);
            (14, 0 &&& 0x0000FFFE, _)                : find(0, 1);
            (14, 0 &&& 0x0001FFFC, _)                : find(0, 2);
            (14, 0 &&& 0x0003FFF8, _)                : find(0, 3);
            (14, 0 &&& 0x0003FFF0, 0 &&& 0x00000001) : find(0, 4);
            (14, 0 &&& 0x0003FFE0, 0 &&& 0x00000003) : find(0, 5);
            (14, 0 &&& 0x0003FFC0, 0 &&& 0x00000007) : find(0, 6);
            (14, 0 &&& 0x0003FF80, 0 &&& 0x0000000F) : find(0, 7);
            (14, 0 &&& 0x0003FF00, 0 &&& 0x0000001F) : find(0, 8);
            (14, 0 &&& 0x0003FE00, 0 &&& 0x0000003F) : find(0, 9);
            (14, 0 &&& 0x0003FC00, 0 &&& 0x0000007F) : find(0, 10);
            (14, 0 &&& 0x0003F800, 0 &&& 0x000000FF) : find(0, 11);
            (14, 0 &&& 0x0003F000, 0 &&& 0x000001FF) : find(0, 12);
            (14, 0 &&& 0x0003E000, 0 &&& 0x000003FF) : find(0, 13);
            (14, 0 &&& 0x0003C000, 0 &&& 0x000007FF) : find(0, 14);
            (14, 0 &&& 0x00038000, 0 &&& 0x00000FFF) : find(0, 15);
            (14, 0 &&& 0x00030000, 0 &&& 0x00001FFF) : find(0, 16);
            (14, 0 &&& 0x00020000, 0 &&& 0x00003FFF) : find(0, 17);
            (14, _, 0 &&& 0x00007FFF)                : find(512, 0);
            (14, _, 0 &&& 0x0000FFFE)                : find(512, 1);
            (14, _, 0 &&& 0x0001FFFC)                : find(512, 2);
            (14, _, 0 &&& 0x0003FFF8)                : find(512, 3);
            (14, _, 0 &&& 0x0003FFF0)                : find(512, 4);
            (14, _, 0 &&& 0x0003FFE0)                : find(512, 5);
            (14, _, 0 &&& 0x0003FFC0)                : find(512, 6);
            (14, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (14, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (14, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (14, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (14, _, 0 &&& 0x0003F800)                : find(512, 11);
            (14, _, 0 &&& 0x0003F000)                : find(512, 12);
            (14, _, 0 &&& 0x0003E000)                : find(512, 13);
            (14, _, 0 &&& 0x0003C000)                : find(512, 14);
            (14, _, 0 &&& 0x00038000)                : find(512, 15);
            (14, _, 0 &&& 0x00030000)                : find(512, 16);
            (14, _, 0 &&& 0x00020000)                : find(512, 17);
            (15, 0 &&& 0x0000FFFF, _)                : find(0, 0);
            (15, 0 &&& 0x0001FFFE, _)                : find(0, 1);
            (15, 0 &&& 0x0003FFFC, _)                : find(0, 2);
            (15, 0 &&& 0x0003FFF8, 0 &&& 0x00000001) : find(0, 3);
            (15, 0 &&& 0x0003FFF0, 0 &&& 0x00000003) : find(0, 4);
            (15, 0 &&& 0x0003FFE0, 0 &&& 0x00000007) : find(0, 5);
            (15, 0 &&& 0x0003FFC0, 0 &&& 0x0000000F) : find(0, 6);
            (15, 0 &&& 0x0003FF80, 0 &&& 0x0000001F) : find(0, 7);
            (15, 0 &&& 0x0003FF00, 0 &&& 0x0000003F) : find(0, 8);
            (15, 0 &&& 0x0003FE00, 0 &&& 0x0000007F) : find(0, 9);
            (15, 0 &&& 0x0003FC00, 0 &&& 0x000000FF) : find(0, 10);
            (15, 0 &&& 0x0003F800, 0 &&& 0x000001FF) : find(0, 11);
            (15, 0 &&& 0x0003F000, 0 &&& 0x000003FF) : find(0, 12);
            (15, 0 &&& 0x0003E000, 0 &&& 0x000007FF) : find(0, 13);
            (15, 0 &&& 0x0003C000, 0 &&& 0x00000FFF) : find(0, 14);
            (15, 0 &&& 0x00038000, 0 &&& 0x00001FFF) : find(0, 15);
            (15, 0 &&& 0x00030000, 0 &&& 0x00003FFF) : find(0, 16);
            (15, 0 &&& 0x00020000, 0 &&& 0x00007FFF) : find(0, 17);
            (15, _, 0 &&& 0x0000FFFF)                : find(512, 0);
            (15, _, 0 &&& 0x0001FFFE)                : find(512, 1);
            (15, _, 0 &&& 0x0003FFFC)                : find(512, 2);
            (15, _, 0 &&& 0x0003FFF8)                : find(512, 3);
            (15, _, 0 &&& 0x0003FFF0)                : find(512, 4);
            (15, _, 0 &&& 0x0003FFE0)                : find(512, 5);
            (15, _, 0 &&& 0x0003FFC0)                : find(512, 6);
            (15, _, 0 &&& 0x0003FF80)                : find(512, 7);
            (15, _, 0 &&& 0x0003FF00)                : find(512, 8);
            (15, _, 0 &&& 0x0003FE00)                : find(512, 9);
            (15, _, 0 &&& 0x0003FC00)                : find(512, 10);
            (15, _, 0 &&& 0x0003F800)                : find(512, 11);
            (15, _, 0 &&& 0x0003F000)                : find(512, 12);
            (15, _, 0 &&& 0x0003E000)                : find(512, 13);
            (15, _, 0 &&& 0x0003C000)                : find(512, 14);
            (15, _, 0 &&& 0x00038000)                : find(512, 15);
            (15, _, 0 &&& 0x00030000)                : find(512, 16);
            (15, _, 0 &&& 0x00020000)                : find(512, 17);
        }
        size = 540;
    }

    @hidden action use_up() {
        meta.edm.amount = EDM_CHUNK - meta.edm.bytes;
    }

    // Time of bytes on the wire, with the frames' headers and gaps, in units of 16 bytes, so that no target has to
    // multiply.
    // Under calendars, in cells beyond the first one.
    action take_times(bit<8> from_more, bit<8> to_more, bit<8> more) {
        meta.edm.from_more = from_more;
        meta.edm.to_more   = to_more;
        meta.edm.more      = more;
    }

    table times {
        key = {
            meta.edm.round[15:4] : exact @name("units");
            meta.edm.from_rate   : exact;
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

    // The notification goes back as the grant of the message's first bytes.
    @hidden action grant() {
        turn_around();
        hdr.edm_control.kind       = EDM_GRANT;
        hdr.edm_control.bytes      = meta.edm.bytes;
        hdr.edm_control.wait       = (bit<32>) meta.edm.to_wait;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
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
        meta.edm.to        = meta.edm.destination_link;
        meta.edm.to_rate   = meta.edm.destination_rate;
        meta.edm.from      = meta.edm.source_link;
        meta.edm.from_rate = meta.edm.source_rate;
    }

    @hidden action comes_back() {
        meta.edm.to        = meta.edm.source_link;
        meta.edm.to_rate   = meta.edm.source_rate;
        meta.edm.from      = meta.edm.destination_link;
        meta.edm.from_rate = meta.edm.destination_rate;
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
    }

    @hidden action ask_behind_chunk() {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.round = min(meta.edm.round, 32w1039);
    }

    @hidden action ask_for_demand() {
        meta.edm.asks  = 1;
        meta.edm.bytes = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.need  = min(meta.edm.rest, EDM_WINDOW);
        meta.edm.round = min(meta.edm.round, 32w1039);
    }

    // The controller's: the lane, or the link.
    @hidden action manage() {
        meta.edm.cell   = hdr.edm_management.index;
        meta.edm.answer = hdr.edm_management.index[2:2];
        meta.edm.to     = hdr.edm_management.index;
        meta.edm.from   = hdr.edm_management.index;
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
            if (meta.pass == 0 && meta.edm.op != EDM_OP_NONE && meta.edm.op[3:3] == 0 && meta.edm.memory != 0) {
                meta.edm.expired = touch.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            }
        }
        // The amount to grant, computed for every frame: to a demand up to a window, behind a window's first
        // chunk the next window.
        if (meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) {
            ask_for_demand();
        } else if (meta.edm.full == 1 && meta.edm.over[31:31] == 0) {
            ask_behind_chunk();
        }
        if (meta.edm.asks == 1) {
            use_up();
        }
        if (meta.pass == EDM_PASS_TAKE) {
            meta.edm.need = meta.edm.bytes; // what goes back if others took its cells
        }
        if (meta.edm.asks == 1 && meta.pass == 0) {
            times.apply();
        }

        // The pages to search, or the cells to take.
        if (meta.pass == 0) {
            turn_to_page();
            begun.apply();
        } else {
            if (meta.edm.from_last >= EDM_CELLS || meta.edm.to_last >= EDM_CELLS) {
                meta.edm.base = meta.edm.page;
            }
            source_ends.apply();
            destination_ends.apply();
            places.apply();
            meta.edm.to_wait = (int<32>) (meta.edm.start - meta.edm.now);
            if (meta.edm.page[9:9] == 0) {
                take_from_even_on();
            } else {
                take_from_odd_on();
            }
        }

        // *_claimed, *_begin
        if (meta.pass == EDM_PASS_TAKE) {
            meta.edm.from_clash = claim_source.execute(meta.edm.from[15:0]);
        }
        if (meta.edm.managed == EDM_OP_WRITE_SOURCE && hdr.packet_out.isValid() && hdr.packet_out.egress_port == 0) {
            meta.edm.from_ahead = write_source.execute(meta.edm.from[15:0]);
        } else if (meta.pass == EDM_PASS_TAKE) {
            move_source.execute(meta.edm.from[15:0]);
        } else {
            meta.edm.from_ahead = look_at_source.execute(meta.edm.from[15:0]);
        }
        if (meta.pass == EDM_PASS_TAKE) {
            meta.edm.to_clash = claim_destination.execute(meta.edm.to[15:0]);
        }
        if (meta.edm.managed == EDM_OP_WRITE_DESTINATION && hdr.packet_out.isValid() && hdr.packet_out.egress_port == 0) {
            meta.edm.to_ahead = write_destination.execute(meta.edm.to[15:0]);
        } else if (meta.pass == EDM_PASS_TAKE) {
            move_destination.execute(meta.edm.to[15:0]);
        } else {
            meta.edm.to_ahead = look_at_destination.execute(meta.edm.to[15:0]);
        }
        meta.edm.ahead = max(meta.edm.from_ahead, meta.edm.to_ahead);

        // rights
        if (meta.edm.op == EDM_OP_READ_RIGHTS || meta.edm.from_clash != 0 || meta.edm.to_clash != 0) {
            meta.edm.held = give_back.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
        } else if (meta.edm.op == EDM_OP_WRITE_RIGHTS) {
            meta.edm.held = replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
        } else if (meta.pass == 0 && meta.edm.op != EDM_OP_NONE && meta.edm.op[3:3] == 0 && meta.edm.memory != 0) {
            if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                if (meta.edm.expired != 0) {
                    replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                    meta.edm.granted = 1;
                } else {
                    meta.edm.granted = take_lane.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
                }
            } else if (meta.edm.end == 1) {
                meta.edm.granted = replace_rights.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            } else {
                meta.edm.granted = ask.execute(meta.edm.cell[5:3] ++ meta.edm.answer ++ meta.edm.id[1:0]);
            }
        }
        if (meta.pass == 0 && meta.edm.asks == 1 && meta.edm.granted[1:0] == 1) {
            meta.edm.looks = 1;
        }

        // Outcome of the frame; if it looks for cells, it is known in its next pass.
        if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
            if (meta.edm.memory == 0) {
                meta.drop = DROP_EDM_NO_MEMORY;
            } else if (meta.edm.granted == 0) {
                meta.drop = DROP_EDM_LANE_TAKEN;
            } else if (meta.edm.from_clash != 0 || meta.edm.to_clash != 0) {
                meta.drop = DROP_EDM_NO_TIME;
            } else {
                ig_tm_md.qid = EDM_CLASS_CONTROL;
                if (meta.edm.looks == 0) {
                    demands.count(ig_intr_md.ingress_port);
                }
            }
        } else if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
            if (meta.edm.granted == 0) {
                demoted.count(EDM_DEMOTED_UNCOVERED);
            } else {
                ig_tm_md.qid = EDM_CLASS_DATA;
                if (meta.edm.looks == 0) {
                    data.count(ig_tm_md.ucast_egress_port);
                }
                if (meta.edm.from_clash != 0 || meta.edm.to_clash != 0) {
                    stalled.count(0);
                }
            }
        } else if (meta.edm.op != EDM_OP_NONE) {
            ig_tm_md.qid = EDM_CLASS_CONTROL;
        }

        // The frame reports the cells that it took: a notification returns, a request continues, a chunk's head
        // returns. Or it answers the controller.
        if (meta.pass == EDM_PASS_TAKE && meta.edm.from_clash == 0 && meta.edm.to_clash == 0) {
            if (meta.edm.op == EDM_OP_NOTIFY) {
                grant();
            } else if (meta.edm.op == EDM_OP_REQUEST) {
                hdr.edm_message.offset = (bit<32>) meta.edm.to_wait;
            } else if (meta.edm.op == EDM_OP_WRITE || meta.edm.op == EDM_OP_ANSWER) {
                meta.edm.start          = (bit<32>) meta.edm.to_wait;
                meta.head_mark          = HEAD;
                ig_dprsr_md.mirror_type = COPY_HEAD;
            }
        } else if (meta.edm.op == EDM_OP_READ_RIGHTS || meta.edm.op == EDM_OP_WRITE_RIGHTS) {
            hdr.edm_management.value = meta.edm.held;
            reply_to_controller();
        } else if (meta.edm.op == EDM_OP_READ_SOURCE || meta.edm.op == EDM_OP_WRITE_SOURCE) {
            hdr.edm_management.value = (bit<32>) meta.edm.from_ahead;
            reply_to_controller();
        } else if (meta.edm.op == EDM_OP_READ_DESTINATION || meta.edm.op == EDM_OP_WRITE_DESTINATION) {
            hdr.edm_management.value = (bit<32>) meta.edm.to_ahead;
            reply_to_controller();
        }

        // *_even, *_odd
        if (meta.pass == 0) {
            meta.edm.even = meta.edm.page + (bit<32>) meta.edm.ahead;
            meta.edm.odd  = meta.edm.page + (bit<32>) meta.edm.ahead;
        } else if (meta.edm.page[9:9] == 0) {
            meta.edm.even = meta.edm.page;
            meta.edm.odd  = meta.edm.next_page;
        } else {
            meta.edm.even = meta.edm.next_page;
            meta.edm.odd  = meta.edm.page;
        }
        if (meta.edm.op == EDM_OP_WRITE_SOURCE) {
            clear_source_even.execute(meta.edm.from[15:0]);
        } else if (meta.pass == 0) {
            meta.edm.saw_from_even = look_at_source_even.execute(meta.edm.from[15:0]);
        } else if (meta.edm.from_clash == 0 && meta.edm.to_clash == 0 &&
            (meta.edm.page[9:9] == 0 || meta.edm.from_last >= EDM_CELLS)) {
            take_source_even.execute(meta.edm.from[15:0]);
        }
        if (meta.edm.op == EDM_OP_WRITE_SOURCE) {
            clear_source_odd.execute(meta.edm.from[15:0]);
        } else if (meta.pass == 0) {
            meta.edm.saw_from_odd = look_at_source_odd.execute(meta.edm.from[15:0]);
        } else if (meta.edm.from_clash == 0 && meta.edm.to_clash == 0 &&
            (meta.edm.page[9:9] == 1 || meta.edm.from_last >= EDM_CELLS)) {
            take_source_odd.execute(meta.edm.from[15:0]);
        }
        if (meta.edm.op == EDM_OP_WRITE_DESTINATION) {
            clear_destination_even.execute(meta.edm.to[15:0]);
        } else if (meta.pass == 0) {
            meta.edm.saw_to_even = look_at_destination_even.execute(meta.edm.to[15:0]);
        } else if (meta.edm.from_clash == 0 && meta.edm.to_clash == 0 &&
            (meta.edm.page[9:9] == 0 || meta.edm.to_last >= EDM_CELLS)) {
            take_destination_even.execute(meta.edm.to[15:0]);
        }
        if (meta.edm.op == EDM_OP_WRITE_DESTINATION) {
            clear_destination_odd.execute(meta.edm.to[15:0]);
        } else if (meta.pass == 0) {
            meta.edm.saw_to_odd = look_at_destination_odd.execute(meta.edm.to[15:0]);
        } else if (meta.edm.from_clash == 0 && meta.edm.to_clash == 0 &&
            (meta.edm.page[9:9] == 1 || meta.edm.to_last >= EDM_CELLS)) {
            take_destination_odd.execute(meta.edm.to[15:0]);
        }

        // The first cells that are free at both links; those that have begun are not.
        if (meta.pass == 0) {
            if (meta.edm.even[9:9] == 0) {
                join_from_even_on();
            } else {
                join_from_odd_on();
            }
            if (meta.edm.ahead == 0) {
                meta.edm.taken = meta.edm.taken | meta.edm.before;
            }
            runs.apply();
            if (meta.edm.looks == 1) {
                meta.pass                 = EDM_PASS_TAKE;
                ig_dprsr_md.resubmit_type = RESUBMIT;
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

    // The copy of a chunk's head returns as the grant of the chunk behind the
    // window.
    @hidden action turn_head() {
        mac_addr_t source    = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = source;
        hdr.edm_control.setValid();
        hdr.edm_control.version = EDM_VERSION;
        hdr.edm_control.kind    = EDM_GRANT;
        hdr.edm_control.id      = hdr.edm_message.id;
        hdr.edm_control.offset  = hdr.edm_message.offset + EDM_WINDOW;
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
@pa_container_size("ingress", "meta.edm.from_rate", 8)
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

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(ig_intr_md.ingress_port);
    }

    action accept_source(MirrorId_t edm_session,
        bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate) {
        meta.edm.source_link   = edm_link;
        meta.edm.source_asks   = edm_asks;
        meta.edm.source_asked  = edm_asked;
        meta.edm.source_memory = edm_memory;
        meta.edm.source_rate   = edm_rate;
        meta.head_session      = edm_session;
        meta.accepted          = 1;
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

    action forward(port_t port, bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate) {
        ig_tm_md.ucast_egress_port  = port;
        meta.known                  = 1;
        meta.known_port             = port;
        meta.edm.destination_link   = edm_link;
        meta.edm.destination_asks   = edm_asks;
        meta.edm.destination_asked  = edm_asked;
        meta.edm.destination_memory = edm_memory;
        meta.edm.destination_rate   = edm_rate;
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
        if (meta.pass == 0) {
            // The present page, and the one with which the controller has a calendar begin.
            meta.edm.page = meta.edm.now & EDM_PAGES;
            meta.edm.base = meta.edm.now + meta.edm.to_time;
        } else {
            // The pages of the cells that were found, and where these end.
            meta.edm.next_page = meta.edm.page + EDM_PAGE;
            meta.edm.base      = meta.edm.page - EDM_PAGE;
            meta.edm.from_last = meta.edm.place + meta.edm.from_more;
            meta.edm.to_last   = meta.edm.place + meta.edm.to_more;
        }
        meta.edm.passes_at = ig_prsr_md.global_tstamp[31:0];
        meta.edm.rest      = meta.edm.total - meta.edm.offset;
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

@pkginfo(name="edm_calendar", version="0.1.0")
Switch(pipe) main;
