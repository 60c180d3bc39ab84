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
#include <v1model.p4>

typedef bit<9> port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_EDM  = 0x88B6;

// Queues, served in strict order, 7 first.
const bit<3> EDM_CLASS_CONTROL    = 7;
const bit<3> EDM_CLASS_DATA       = 5;
const bit<3> PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<32> DROP_MALFORMED                = 0;          // cut short within a header
const bit<32> DROP_SPOOFED                  = 1;          // source address is not the port's own host's
const bit<32> DROP_UNKNOWN_DESTINATION      = 2;          // no host has this address
const bit<32> DROP_SAME_PORT                = 3;          // the destination is the sender
const bit<32> DROP_BEST_EFFORT_METER        = 4;          // more best effort than the port may send
const bit<32> DROP_EDM_CONTROL_METER        = 5;          // more notifications and requests than the port may send
const bit<32> DROP_EDM_BAD_VERSION          = 6;          // EDM of another version
const bit<32> DROP_EDM_BAD_KIND             = 7;          // an EDM kind that hosts don't send, or that doesn't exist
const bit<32> DROP_EDM_BAD_DEMAND           = 8;          // a demand for nothing or for too much, or data without bytes
const bit<32> DROP_EDM_BAD_LANE             = 9;          // names a lane that pairs don't have
const bit<32> DROP_EDM_NO_MEMORY            = 10;         // a demand for a host without memory
const bit<32> DROP_EDM_LANE_TAKEN           = 11;         // the lane's message is not done
const bit<32> DROP_EDM_MANAGEMENT_FROM_HOST = 12;         // management from a port other than the controller's
const bit<32> DROP_EDM_BAD_TARGET           = 13;         // management of a register that doesn't exist
const bit<32> DROP_EDM_BAD_INDEX            = 14;         // management of a cell that doesn't exist
const bit<32> DROP_REASONS                  = 15;         // how many there are
const bit<32> DROP_NONE                     = 0xFFFFFFFF; // it is not dropped

// Time is in units of the ingress timestamp, 1 ns each, modulo 2^48.
typedef bit<48> time_t;

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
const bit<2>  EDM_DEMANDS    = 3;       // lanes of a pair in use

// A frame's operation on EDM's registers.
const bit<8> EDM_OP_NONE    = 0;
const bit<8> EDM_OP_NOTIFY  = 1; // demand for a write
const bit<8> EDM_OP_REQUEST = 2; // demand for an answer
const bit<8> EDM_OP_WRITE   = 3; // a chunk of a write
const bit<8> EDM_OP_ANSWER  = 4; // a chunk of an answer

// Why a frame does not get the class that it claims: index into the counter `demoted`.
const bit<32> EDM_DEMOTED_UNCOVERED = 0; // no grant has bytes left for it
const bit<32> EDM_DEMOTED_TOO_LONG  = 1; // longer than its header says
const bit<32> EDM_DEMOTED_REASONS   = 2; // how many there are

// EDM's times are the lowest 32 bits of time.
const int<32> EDM_HORIZON = 8192;  // a clock further ahead is in the past
const int<32> EDM_EXPIRY  = 16384; // a message without progress for this time gives up its lane

const bit<32> EDM_SESSIONS     = 512;        // clone sessions of ports begin here: heads of chunks, to become grants
const bit<8>  EDM_COPY         = 2;          // what such a copy takes along
const int<32> EDM_CHUNK_AHEAD  = 107;        // a link that is granted further ahead has a chunk of each message at a time,
const int<32> EDM_WINDOW_AHEAD = 430;        // and grants no windows
const bit<32> EDM_NEVER        = 0xFFFFFFFF; // more than any right
const bit<32> EDM_FRAME_MIN    = 60;         // what a shorter frame is padded to, without FCS
const bit<32> EDM_HEADERS      = 46;         // before a chunk in its frame
const bit<32> INGRESS_CLONE    = 1;          // what standard_metadata.instance_type says of a copy of a frame as it came

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
    bit<32> now;              // when it came
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
    bit<32> size;             // bytes of the chunk
    bit<32> slack;            // below 0: the message is too long
    bit<32> rest;             // what of the message is left behind what was granted; below 0: nothing
    @field_list(EDM_COPY) bit<32> bytes; // what is granted
    bit<32> need;             // what a demand gives a right to, or a chunk must have one to
    bit<32> amount;           // what it uses up of this
    int<32> expired;          // whether the lane's message has given it up
    bit<32> granted;          // whether a demand has its lane, or a chunk its right
    bit<32> held;             // what a lane held, as the controller asks
    bit<8>  to_rate;          // the number of the rate of where data goes
    bit<32> to;               // where data goes
    bit<32> to_time;          // what the granted bytes take where they go
    @field_list(EDM_COPY) int<32> to_wait; // how long until they may
    bit<32> earliest;         // before which the destination has no time for them
    bit<32> round;            // their length, to be rounded up to units
    bit<32> copy_session;     // by which a copy goes back
    int<32> early;            // how long before the last of what is granted may leave
    int<32> lead;             // how far ahead the links are granted that data takes
    bit<32> behind;           // what of the message is granted and behind the chunk
    @field_list(EDM_COPY) bit<32> next; // where what is not granted begins
    bit<32> most;             // what may be granted and behind a chunk
}

struct metadata_t {
    edm_metadata_t edm;
    bit<32>        drop; // why the frame is dropped
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

    // Frames of unknown kind or version pass through edm_control, so that ingress refuses them with a reason.
    state parse_edm {
        transition select(packet.lookahead<edm_start_t>().version, packet.lookahead<edm_start_t>().kind) {
            (EDM_VERSION, EDM_NOTIFY)     : parse_edm_notify;
            (EDM_VERSION, EDM_RREQ)       : parse_edm_request;
            (EDM_VERSION, EDM_RMWREQ)     : parse_edm_request;
            (EDM_VERSION, EDM_WREQ)       : parse_edm_write;
            (EDM_VERSION, EDM_RRES)       : parse_edm_answer;
            (EDM_VERSION, EDM_MGMT_READ)  : parse_edm_management;
            (EDM_VERSION, EDM_MGMT_WRITE) : parse_edm_management;
            (EDM_VERSION, EDM_MGMT_RESET) : parse_edm_management;
            default                       : parse_edm_control;
        }
    }

    state parse_edm_control {
        packet.extract(hdr.edm_control);
        transition accept;
    }

    state parse_edm_notify {
        packet.extract(hdr.edm_control);
        meta.edm.kind  = EDM_OP_NOTIFY;
        meta.edm.id    = hdr.edm_control.id;
        meta.edm.total = hdr.edm_control.bytes;
        transition accept;
    }

    state parse_edm_request {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_REQUEST;
        transition parse_edm_message;
    }

    state parse_edm_write {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_WRITE;
        transition parse_edm_message;
    }

    state parse_edm_answer {
        packet.extract(hdr.edm_message);
        meta.edm.kind = EDM_OP_ANSWER;
        transition parse_edm_message;
    }

    state parse_edm_message {
        meta.edm.id     = hdr.edm_message.id;
        meta.edm.total  = hdr.edm_message.total;
        meta.edm.offset = hdr.edm_message.offset;
        transition accept;
    }

    state parse_edm_management {
        packet.extract(hdr.edm_management);
        transition accept;
    }
}

control RackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.edm_control);
        packet.emit(hdr.edm_message);
        packet.emit(hdr.edm_management);
    }
}

// Nothing here carries a checksum that the switch touches.
control RackVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RackComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// The scheduler: demands get time at the links of their data, and data passes as granted.
control Edm(inout headers_t hdr, inout metadata_t meta,
        inout standard_metadata_t standard_metadata) {
    // Frames that lose the class that they claim, by reason.
    counter(EDM_DEMOTED_REASONS, CounterType.packets_and_bytes) demoted;

    // By port: demands of the port's host that were granted, data that went to it as scheduled.
    counter(PORT_COUNT, CounterType.packets_and_bytes) demands;
    counter(PORT_COUNT, CounterType.packets_and_bytes) data;

    // A pair of a host that asks and a memory node has lanes, for writes and for answers each: a message takes the lane that
    // the low bits of its id name, and has it until its last byte has passed. So a pair has as many demands as lanes.
    //
    // What each register guarantees, in the order in which all frames pass them, each at most once:
    //
    // touched           when the lane's message last went on: a lane whose message has stopped is free again
    // rights            what of it is granted and was not sent: a lane has one message, a message sends what was granted
    // destination_free  a destination gets granted chunks one after the other
    //
    // A demand grants what the window holds. Each further chunk is granted when one passes: the data says what is left.

    // When the lane's message last made progress.
    // Written by demands, chunks; it wraps as the time does.
    register<int<32>>(EDM_CELL_COUNT) touched;

    // Whether a message in this lane has made no progress for EDM_EXPIRY, so that the lane is free.
    @hidden action touch(in bit<32> at, out int<32> result) {
        int<32> value;
        touched.read(value, at);
        if (value - (int<32>) meta.edm.now > 0 || value - (int<32>) meta.edm.now < -EDM_EXPIRY) {
            result = 1;
        } else {
            result = 0;
        }
        value = (int<32>) meta.edm.now;
        touched.write(at, value);
    }

    // Bytes of the lane's message that are granted and were not sent. 0: the lane is free.
    // Written by demands, chunks, the controller; it never wraps.
    register<bit<32>>(EDM_CELL_COUNT) rights;

    // For a demand: the lane must be free.
    @hidden action take_lane(in bit<32> at, out bit<32> result) {
        bit<32> value;
        rights.read(value, at);
        if (value == 0) {
            value  = meta.edm.need;
            result = 1;
        } else {
            result = 0;
        }
        rights.write(at, value);
    }

    // For a demand that takes an abandoned lane, the end of a message without data, and the controller.
    @hidden action replace_rights(in bit<32> at, out bit<32> result) {
        bit<32> value;
        rights.read(value, at);
        result = value;
        value  = meta.edm.need;
        rights.write(at, value);
    }

    // For a chunk.
    @hidden action use_rights(in bit<32> at, out bit<32> result) {
        bit<32> value;
        rights.read(value, at);
        if (value >= meta.edm.need) {
            value  = value - meta.edm.amount;
            result = 1;
        } else {
            result = 0;
        }
        rights.write(at, value);
    }

    @hidden action look_at_rights(in bit<32> at, out bit<32> result) {
        bit<32> value;
        rights.read(value, at);
        result = value;
        rights.write(at, value);
    }

    // When what was last granted of the lane's message may leave.
    // Written by demands and chunks that are granted something; it wraps as the time does.
    register<int<32>>(EDM_CELL_COUNT) due;

    @hidden action set_due(in bit<32> at, out int<32> result) {
        int<32> value;
        due.read(value, at);
        value  = (int<32>) meta.edm.now + meta.edm.to_wait;
        result = value;
        due.write(at, value);
    }

    @hidden action look_at_due(in bit<32> at, out int<32> result) {
        int<32> value;
        due.read(value, at);
        result = value - (int<32>) meta.edm.now;
        due.write(at, value);
    }

    // The time at which a link is next free. Times wrap, so they are never compared directly: one further ahead than
    // EDM_HORIZON is in the past, and the link is free. A link that was idle for a multiple of 2^32 units may look taken for
    // up to EDM_HORIZON, once.

    // When the link is next free, as a destination.
    // Written by what is granted, the controller; it wraps as the time does.
    register<int<32>>(PORT_COUNT) destination_free;

    // Returns how long until what is granted begins.
    @hidden action reserve_destination(in bit<32> at, out int<32> result) {
        int<32> value;
        destination_free.read(value, at);
        if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
            result = 0;
            value  = (int<32>) meta.edm.earliest + (int<32>) meta.edm.to_time;
        } else {
            result = value - (int<32>) meta.edm.earliest;
            value  = value + (int<32>) meta.edm.to_time;
        }
        destination_free.write(at, value);
    }

    @hidden action look_at_destination(in bit<32> at, out int<32> result) {
        int<32> value;
        destination_free.read(value, at);
        if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
            result = 0;
        } else {
            result = value - (int<32>) meta.edm.earliest;
        }
        destination_free.write(at, value);
    }

    // Controller write, relative to now; returns the previous value.
    @hidden action write_destination(in bit<32> at, out int<32> result) {
        int<32> value;
        destination_free.read(value, at);
        if (value - (int<32>) meta.edm.earliest < 0 || value - (int<32>) meta.edm.earliest >= EDM_HORIZON) {
            result = 0;
        } else {
            result = value - (int<32>) meta.edm.earliest;
        }
        value = (int<32>) meta.edm.earliest + (int<32>) meta.edm.to_time;
        destination_free.write(at, value);
    }

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

    @hidden action turn_around() {
        mac_addr_t requester = hdr.ethernet.srcAddr;
        hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
        hdr.ethernet.dstAddr = requester;
    }

    // The notification goes back as the grant of the message's first bytes.
    @hidden action grant() {
        turn_around();
        hdr.edm_control.kind          = EDM_GRANT;
        hdr.edm_control.bytes         = meta.edm.bytes;
        hdr.edm_control.wait          = (bit<32>) meta.edm.to_wait;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    @hidden action reply_to_controller() {
        turn_around();
        hdr.edm_management.kind       = EDM_MGMT_REPLY;
        standard_metadata.egress_spec = CPU_PORT;
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

    apply {
        time_t arrived    = standard_metadata.ingress_global_timestamp;
        meta.edm.now      = arrived[31:0];
        meta.edm.earliest = meta.edm.now;
        meta.edm.rest     = meta.edm.total - meta.edm.offset;
        if (hdr.edm_management.isValid()) {
            bool reads = hdr.edm_management.kind == EDM_MGMT_READ;
            if (hdr.edm_management.kind == EDM_MGMT_RESET) {
                hdr.edm_management.value = 0;
            }
            if (hdr.edm_management.target == EDM_TARGET_RIGHTS) {
                if (hdr.edm_management.index >= EDM_CELL_COUNT) {
                    meta.drop = DROP_EDM_BAD_INDEX;
                    return;
                }
                meta.edm.need = hdr.edm_management.value;
                if (reads) {
                    look_at_rights(hdr.edm_management.index, meta.edm.held);
                } else {
                    replace_rights(hdr.edm_management.index, meta.edm.held);
                }
                hdr.edm_management.value = meta.edm.held;
            } else if (hdr.edm_management.target == EDM_TARGET_DESTINATION) {
                if (hdr.edm_management.index >= PORT_COUNT) {
                    meta.drop = DROP_EDM_BAD_INDEX;
                    return;
                }
                meta.edm.to_time = hdr.edm_management.value;
                if (reads) {
                    look_at_destination(hdr.edm_management.index, meta.edm.to_wait);
                } else {
                    write_destination(hdr.edm_management.index, meta.edm.to_wait);
                }
                hdr.edm_management.value = (bit<32>) meta.edm.to_wait;
            } else {
                meta.drop = DROP_EDM_BAD_TARGET;
                return;
            }
            reply_to_controller();
            standard_metadata.priority = EDM_CLASS_CONTROL;
            return;
        }
        if (meta.edm.op != EDM_OP_NONE) {
            if (meta.edm.op == EDM_OP_ANSWER) {
                locate_by_source();
            } else {
                locate_by_destination();
            }
            meta.edm.cell[1:0] = meta.edm.id[1:0];
            if (meta.edm.op == EDM_OP_REQUEST || meta.edm.op == EDM_OP_ANSWER) {
                meta.edm.cell[2:2] = 1;
            }
            if (meta.edm.op == EDM_OP_REQUEST) {
                comes_back();
            } else {
                goes_on();
            }

            // The amount to grant: to a demand up to a window, behind a full chunk the rest of it. At a link that is granted
            // far ahead a message gets one chunk at a time: hosts with equally many messages get equal shares of it.
            look_at_destination(meta.edm.to, meta.edm.lead);
            if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                meta.edm.bytes = (meta.edm.total < EDM_WINDOW ? meta.edm.total : EDM_WINDOW);
                if (meta.edm.lead > EDM_WINDOW_AHEAD) {
                    meta.edm.bytes = (meta.edm.total < EDM_CHUNK ? meta.edm.total : EDM_CHUNK);
                }
                meta.edm.need = meta.edm.bytes;
            } else {
                meta.edm.need = meta.edm.size;
                look_at_rights(meta.edm.cell, meta.edm.behind);
                meta.edm.behind = meta.edm.behind |-| meta.edm.size;
                meta.edm.next   = meta.edm.offset + meta.edm.size + meta.edm.behind;
                meta.edm.rest   = meta.edm.total - meta.edm.next;
                meta.edm.most   = meta.edm.lead > EDM_CHUNK_AHEAD ? EDM_CHUNK : EDM_WINDOW;
                if (meta.edm.rest[31:31] == 0 && meta.edm.size == EDM_CHUNK) {
                    meta.edm.most  = meta.edm.most |-| meta.edm.behind;
                    meta.edm.bytes = (meta.edm.rest < meta.edm.most ? meta.edm.rest : meta.edm.most);
                }
                meta.edm.amount = meta.edm.size - meta.edm.bytes;
                if (meta.edm.size != EDM_CHUNK) {
                    // Treat a short chunk as the last one, whatever right remains, so that short frames can't use more of a
                    // link.
                    meta.edm.amount = meta.edm.behind + meta.edm.size;
                }
                // Data that is sent early earns its next grant early. Once nothing granted is behind it, it is no longer
                // covered. Nor is a short chunk, which would free its lane for another demand.
                look_at_due(meta.edm.cell, meta.edm.early);
                if ((meta.edm.behind == 0 || meta.edm.size != EDM_CHUNK) && meta.edm.size != 0 &&
                    meta.edm.early > EDM_CHUNK_AHEAD && meta.edm.early < EDM_HORIZON) {
                    meta.edm.need = meta.edm.behind + meta.edm.size + 1;
                }
                // A frame longer than its header says is never covered.
                if (standard_metadata.packet_length > EDM_FRAME_MIN &&
                    standard_metadata.packet_length > meta.edm.size + EDM_HEADERS) {
                    meta.edm.need = EDM_NEVER;
                }
            }
            meta.edm.round = meta.edm.bytes + 15;
            times.apply();

            // touched, rights
            if (meta.edm.memory != 0) {
                touch(meta.edm.cell, meta.edm.expired);
                if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                    if (meta.edm.expired == 0) {
                        take_lane(meta.edm.cell, meta.edm.granted);
                    } else {
                        replace_rights(meta.edm.cell, meta.edm.granted);
                        meta.edm.granted = 1;
                    }
                } else if (meta.edm.total == 0 && meta.edm.need == 0) {
                    // The NULL response ends the message.
                    replace_rights(meta.edm.cell, meta.edm.granted);
                } else {
                    use_rights(meta.edm.cell, meta.edm.granted);
                }
            }

            // destination_free
            if (meta.edm.granted != 0 && meta.edm.bytes != 0) {
                reserve_destination(meta.edm.to, meta.edm.to_wait);
                set_due(meta.edm.cell, meta.edm.early);
            }

            // Outcome of the frame.
            if (meta.edm.op == EDM_OP_NOTIFY || meta.edm.op == EDM_OP_REQUEST) {
                if (meta.edm.memory == 0) {
                    meta.drop = DROP_EDM_NO_MEMORY;
                } else if (meta.edm.granted == 0) {
                    meta.drop = DROP_EDM_LANE_TAKEN;
                } else {
                    demands.count((bit<32>) standard_metadata.ingress_port);
                    if (meta.edm.op == EDM_OP_NOTIFY) {
                        grant();
                        standard_metadata.priority = EDM_CLASS_CONTROL;
                    } else {
                        // To the memory node this is the grant of its answer's first bytes.
                        hdr.edm_message.offset = (bit<32>) meta.edm.to_wait;
                        if (hdr.edm_message.kind == EDM_RREQ) {
                            hdr.edm_message.bytes = meta.edm.bytes[15:0];
                        }
                        standard_metadata.priority = EDM_CLASS_CONTROL;
                    }
                }
            } else if (meta.edm.granted == 0) {
                standard_metadata.priority = PRIORITY_BEST_EFFORT;
                if (meta.edm.need == EDM_NEVER) {
                    demoted.count(EDM_DEMOTED_TOO_LONG);
                } else {
                    demoted.count(EDM_DEMOTED_UNCOVERED);
                }
            } else {
                data.count((bit<32>) standard_metadata.egress_spec);
                standard_metadata.priority = EDM_CLASS_DATA;
                if (meta.edm.bytes != 0) {
                    meta.edm.copy_session = EDM_SESSIONS + (bit<32>) standard_metadata.ingress_port;
                    clone_preserving_field_list(CloneType.I2E, meta.edm.copy_session, EDM_COPY);
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
    meter(PORT_COUNT, MeterType.bytes) edm_control_meter;
    Edm() edm;

    // Every refusal goes through here: nothing disappears uncounted.
    @hidden action drop(in bit<32> reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    action accept_source(bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate) {
        meta.edm.source_link   = edm_link;
        meta.edm.source_asks   = edm_asks;
        meta.edm.source_asked  = edm_asked;
        meta.edm.source_memory = edm_memory;
        meta.edm.source_rate   = edm_rate;
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

    action forward(port_t port, bit<32> edm_link, bit<32> edm_asks, bit<32> edm_asked, bit<8> edm_memory, bit<8> edm_rate) {
        standard_metadata.egress_spec = port;
        meta.edm.destination_link     = edm_link;
        meta.edm.destination_asks     = edm_asks;
        meta.edm.destination_asked    = edm_asked;
        meta.edm.destination_memory   = edm_memory;
        meta.edm.destination_rate     = edm_rate;
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
        if (!(hdr.edm_management.isValid() && hdr.packet_out.isValid())) {
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

            // EDM's fields are checked before they reach a register.
            meta.edm.size  = (bit<32>) hdr.edm_message.bytes;
            meta.edm.slack = EDM_MESSAGE - meta.edm.total;
            if (hdr.edm_management.isValid()) {
                drop(DROP_EDM_MANAGEMENT_FROM_HOST);
            } else if (hdr.edm_control.isValid() && hdr.edm_control.version != EDM_VERSION) {
                drop(DROP_EDM_BAD_VERSION);
            } else if (hdr.edm_control.isValid() && meta.edm.kind == EDM_OP_NONE) {
                drop(DROP_EDM_BAD_KIND);
            } else if (meta.edm.kind != EDM_OP_NONE && to_group) {
                drop(DROP_UNKNOWN_DESTINATION);
            } else if (meta.edm.kind == EDM_OP_NOTIFY || meta.edm.kind == EDM_OP_REQUEST) {
                edm_control_meter.execute_meter((bit<32>) standard_metadata.ingress_port, color);
                if (color == V1MODEL_METER_COLOR_RED) {
                    drop(DROP_EDM_CONTROL_METER);
                } else if (meta.edm.id[1:0] >= EDM_DEMANDS) {
                    drop(DROP_EDM_BAD_LANE);
                } else if (meta.edm.total == 0 || meta.edm.total[31:31] == 1 || meta.edm.slack[31:31] == 1) {
                    drop(DROP_EDM_BAD_DEMAND);
                } else if (meta.edm.kind == EDM_OP_REQUEST &&
                    hdr.edm_message.kind == EDM_RMWREQ && meta.edm.total != EDM_WORD) {
                    drop(DROP_EDM_BAD_DEMAND);
                } else {
                    meta.edm.op = meta.edm.kind;
                }
            } else if (meta.edm.kind == EDM_OP_WRITE && (meta.edm.total == 0 || meta.edm.size == 0) ||
                meta.edm.kind == EDM_OP_ANSWER && (meta.edm.total == 0) != (meta.edm.size == 0)) {
                // Only an answer may be empty: the NULL response.
                drop(DROP_EDM_BAD_DEMAND);
            } else {
                meta.edm.op = meta.edm.kind;
            }

            if (!to_group) {
                if (l2_forward.apply().miss) {
                    drop(DROP_UNKNOWN_DESTINATION);
                }
                if (standard_metadata.egress_spec == standard_metadata.ingress_port) {
                    drop(DROP_SAME_PORT);
                }
            }
        }

        edm.apply(hdr, meta, standard_metadata);
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
        // The copy of a chunk's head returns as the grant of the chunk behind the window.
        if (standard_metadata.instance_type == INGRESS_CLONE && hdr.edm_message.isValid()) {
            mac_addr_t source    = hdr.ethernet.srcAddr;
            hdr.ethernet.srcAddr = hdr.ethernet.dstAddr;
            hdr.ethernet.dstAddr = source;
            if (hdr.vlan.isValid()) {
                hdr.vlan.pcp = 7;
            }
            hdr.edm_control.setValid();
            hdr.edm_control.version = EDM_VERSION;
            hdr.edm_control.kind    = EDM_GRANT;
            hdr.edm_control.answer  = hdr.edm_message.kind == EDM_RRES ? 8w1 : 8w0;
            hdr.edm_control.id      = hdr.edm_message.id;
            hdr.edm_control.offset  = meta.edm.next;
            hdr.edm_control.bytes   = meta.edm.bytes;
            hdr.edm_control.wait    = (bit<32>) meta.edm.to_wait;
            hdr.edm_message.setInvalid();
        }
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>) standard_metadata.ingress_port;
        }
    }
}

@pkginfo(name="edm_timed_dst", version="0.1.0")
V1Switch(
    RackParser(),
    RackVerifyChecksum(),
    RackIngress(),
    RackEgress(),
    RackComputeChecksum(),
    RackDeparser()
) main;
