// cowbird: the switch of rack "offload".
//
// A layer-2 switch for one rack: every host port accepts its own host's source address only, known
// destinations are forwarded, group addresses are flooded, everything else is dropped and counted by
// reason.
// On top of it Cowbird's offload engine: it reads requests from rings in compute nodes' memory, and
// moves data between these nodes and memory pools, by RDMA. Each packet that comes back becomes the
// next request.
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
const bit<16> ETHERTYPE_IPV4 = 0x0800;

// Queues, served in strict order, 7 first.
const bit<3> COWBIRD_CLASS_PROBE  = 0;
const bit<3> PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<32> DROP_MALFORMED                    = 0;          // cut short within a header
const bit<32> DROP_SPOOFED                      = 1;          // source address is not the port's own host's
const bit<32> DROP_UNKNOWN_DESTINATION          = 2;          // no host has this address
const bit<32> DROP_SAME_PORT                    = 3;          // the destination is the sender
const bit<32> DROP_BEST_EFFORT_METER            = 4;          // more best effort than the port may send
const bit<32> DROP_COWBIRD_BAD_FRAME            = 5;          // for the engine, but a header is missing or lengths don't agree
const bit<32> DROP_COWBIRD_UNKNOWN_PAIR         = 6;          // no queue pair of the engine, or not from its other end
const bit<32> DROP_COWBIRD_NO_INSTANCE          = 7;          // of a thread that is served no more
const bit<32> DROP_COWBIRD_BAD_OPCODE           = 8;          // not what its queue pair is for
const bit<32> DROP_COWBIRD_BAD_DATA             = 9;          // what was read is not as long as what was asked for
const bit<32> DROP_COWBIRD_STALE                = 10;         // not the next one of its queue pair
const bit<32> DROP_COWBIRD_GAP                  = 11;         // says that a packet before was lost
const bit<32> DROP_COWBIRD_WAITS                = 12;         // an entry that is asked for again, as it has to wait for others
const bit<32> DROP_COWBIRD_CORRUPT              = 13;         // a thread has ruined its rings: its red block says how
const bit<32> DROP_COWBIRD_NOTHING_TO_DO        = 14;         // a turn or an answer, and nothing to ask for next
const bit<32> DROP_COWBIRD_MANAGEMENT_FROM_HOST = 15;         // management from a port other than the controller's
const bit<32> DROP_COWBIRD_BAD_INDEX            = 16;         // management of an instance that doesn't exist
const bit<32> DROP_REASONS                      = 17;         // how many there are
const bit<32> DROP_NONE                         = 0xFFFFFFFF; // it is not dropped

// Time is in units of the ingress timestamp, 1 ns each, modulo 2^48.
typedef bit<48> time_t;

// The engine's address.
const bit<48> COWBIRD_MAC = 0x02C0B1D00001;
const bit<32> COWBIRD_IP  = 0x0A0000FE;

// RoCEv2 in UDP over IPv4.
const bit<16> ROCE_PORT        = 4791;
const bit<16> ROCE_HEADERS     = 24; // bytes of UDP, base transport header and iCRC
const bit<16> ROCE_PARTITION   = 0xFFFF;
const bit<8>  ROCE_WRITE_FIRST = 6;  // FIRST, MIDDLE, LAST
const bit<8>  ROCE_WRITE_ONLY  = 10;
const bit<8>  ROCE_READ        = 12;
const bit<8>  ROCE_READ_FIRST  = 13; // what was read: FIRST, MIDDLE, LAST, ONLY
const bit<8>  ROCE_READ_LAST   = 15;
const bit<8>  ROCE_READ_ONLY   = 16;
const bit<8>  ROCE_ACKNOWLEDGE = 17;
const bit<16> ROCE_MTU         = 1024;
const bit<8>  COWBIRD_OP_TICK  = 0xC0;
const bit<8>  COWBIRD_OP_READ  = 0xC1;
const bit<8>  COWBIRD_OP_SET   = 0xC2;
const bit<8>  COWBIRD_OP_REPLY = 0xC3;

// Phases: the purpose of a queue pair, and so of its packets.
const bit<8> COWBIRD_NOTHING    = 0;
const bit<8> COWBIRD_PROBE      = 1;
const bit<8> COWBIRD_ENTRY      = 2;
const bit<8> COWBIRD_PAYLOAD    = 3;
const bit<8> COWBIRD_RESPONSE   = 4;
const bit<8> COWBIRD_RED        = 5;
const bit<8> COWBIRD_POOL_READ  = 6;
const bit<8> COWBIRD_POOL_WRITE = 7;
const bit<8> COWBIRD_TICK       = 8;

// The red block, and types of entries.
const bit<64> COWBIRD_RED_AT     = 64;
const bit<16> COWBIRD_TYPE_READ  = 1;
const bit<16> COWBIRD_TYPE_WRITE = 2;

// Why a set is no longer served: the reason in its red block.
const bit<8> COWBIRD_CORRUPT_TAIL   = 1;
const bit<8> COWBIRD_CORRUPT_TYPE   = 2;
const bit<8> COWBIRD_CORRUPT_REGION = 3;
const bit<8> COWBIRD_CORRUPT_BOUNDS = 4;
const bit<8> COWBIRD_CORRUPT_LENGTH = 5;
const bit<8> COWBIRD_CORRUPT_PLACE  = 6;
const bit<8> COWBIRD_CORRUPT_ID     = 7;

const bit<32> COWBIRD_INSTANCES = 64;
const bit<32> COWBIRD_SIDES     = 128;  // reads and writes of each
const bit<32> COWBIRD_ENDS      = 2048; // slots of all instances
const bit<32> COWBIRD_ALL_SLOTS = 4096; // of all sides
const bit<32> COWBIRD_SENT      = 512;  // a cell for each instance and phase
const bit<16> COWBIRD_BUSY      = 64;   // turns without news after which an instance counts as idle and is probed less often
const bit<16> COWBIRD_IDLE_MASK = 63;   // an idle instance uses one turn in COWBIRD_IDLE_MASK + 1

// An instance without an answer for this time restarts from its head.
const time_t COWBIRD_TIMEOUT = 20000000;

// Outcome of an entry or of a packet.
const bit<8> COWBIRD_STALE      = 0; // it is not the next one
const bit<8> COWBIRD_TAKEN      = 1;
const bit<8> COWBIRD_WAITS      = 2; // requests in flight have to complete first
const bit<8> COWBIRD_REFUSED    = 3; // it is invalid
const bit<8> COWBIRD_HELD_READ  = 1; // until everything before it is complete
const bit<8> COWBIRD_HELD_WRITE = 2; // until the thread knows that as well
const bit<8> COWBIRD_NO_KIND    = 2; // neither reads nor writes are started

// The red block, the ring of entries behind it, and requests in flight.
const bit<64> COWBIRD_ENTRIES_AT  = 128;
const bit<16> COWBIRD_RED_BYTES   = 48;
const bit<16> COWBIRD_ENTRY_BYTES = 32;
const bit<16> COWBIRD_GUESS_BYTES = 40; // an entry that may not be there: its answer is known by its length
const bit<16> COWBIRD_TAIL_BYTES  = 8;
const bit<64> COWBIRD_WINDOW      = 16; // most requests of an instance in flight
const bit<32> COWBIRD_SLOTS       = 32; // of a side: requests in flight of which the switch keeps state

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

// IPv4 header without options.
header ipv4_t {
    bit<4>  version;        // 4
    bit<4>  ihl;            // length of the header in words of 4 bytes; 5 without options
    bit<6>  dscp;           // differentiated services code point
    bit<2>  ecn;            // explicit congestion notification
    bit<16> totalLen;       // bytes of the packet, this header included
    bit<16> identification; // which packet a fragment belongs to
    bit<3>  flags;          // don't fragment, more fragments
    bit<13> fragOffset;     // place of a fragment in units of 8 bytes
    bit<8>  ttl;            // routers that the packet may still pass
    bit<8>  protocol;       // what follows
    bit<16> hdrChecksum;    // ones' complement sum of the header
    bit<32> srcAddr;        // source
    bit<32> dstAddr;        // destination
}

// UDP header.
header udp_t {
    bit<16> srcPort;  // source port
    bit<16> dstPort;  // destination port
    bit<16> length;   // bytes of header and payload
    bit<16> checksum; // 0 if the sender computed none
}

// Base transport header: every packet has one.
header roce_bth_t {
    bit<8>  opcode;      // what the packet is
    bit<1>  solicited;   // the receiver's application asks to be woken up
    bit<1>  migrated;    // path migration state; true on sending, ignored on receipt
    bit<2>  pad;         // bytes that fill the payload up to a multiple of 4
    bit<4>  version;     // version of the transport: 0
    bit<16> partition;   // partition key
    bit<1>  fecn;        // forward congestion notification
    bit<1>  becn;        // backward congestion notification
    bit<6>  reserved;    // zero on sending, ignored on receipt, not part of the iCRC
    bit<24> destQp;      // queue pair that the packet is for
    bit<1>  ackReq;      // the requester asks for an acknowledgement
    bit<7>  reservedLow; // zero on sending, ignored on receipt
    bit<24> psn;         // packet sequence number
}

// Acknowledgement header.
header roce_aeth_t {
    bit<8>  syndrome; // ACK, RNR NAK or NAK
    bit<24> msn;      // messages that the responder has completed, modulo 2^24
}

// RDMA extended transport header: which memory.
header roce_reth_t {
    bit<64> virtualAddress; // address of the message's first byte
    bit<32> rKey;           // proves the right to the region
    bit<32> dmaLength;      // bytes of the message
}

// Where an instance of the engine in a switch begins, and how far it is; behind a base transport header.
header cowbird_management_t {
    bit<32> instance; // number of the instance
    bit<8>  side;     // 0: its reads, 1: its writes
    bit<24> reserved; // 0
    bit<64> done;     // requests of this kind that are done
    bit<64> end;      // position in their ring behind the last of these
    bit<64> head;     // entries that are done, as the thread knows
}

// Red block: progress of the engine, for the thread.
header cowbird_red_t {
    bit<64> requestHead;      // entries whose requests are done, up to the first that is not
    bit<64> requestDataHead;  // bytes of request data that are no longer needed
    bit<64> responseDataTail; // bytes of response data that have arrived
    bit<64> writeProgress;    // writes done
    bit<64> readProgress;     // reads done
    bit<64> refusal;          // 0, or why the engine serves the set no more
}

// Request of a compute node's thread.
header cowbird_entry_t {
    bit<64> requestId; // type, region and number of the request; first, as a reader that sees it also sees the rest of the entry
    bit<16> rwType;    // 1: read, 2: write
    bit<16> regionId;  // remote memory that it is about
    bit<32> length;    // bytes to be moved
    bit<64> reqAddr;   // where from: offset in the region for a read, in the set for a write
    bit<64> respAddr;  // where to: offset in the set for a read, in the region for a write
}

// First field of the green block, read alone: what the engine in a switch probes.
header cowbird_tail_t {
    bit<64> requestTail; // entries written
}

struct headers_t {
    packet_in_t          packet_in;
    packet_out_t         packet_out;
    ethernet_t           ethernet;
    vlan_t               vlan;
    ipv4_t               cowbird_ipv4;
    udp_t                cowbird_udp;
    roce_bth_t           cowbird_bth;
    roce_aeth_t          cowbird_aeth;
    roce_reth_t          cowbird_reth;
    cowbird_management_t cowbird_management;
    cowbird_red_t        cowbird_red;
    cowbird_entry_t      cowbird_entry;
    cowbird_tail_t       cowbird_tail;
}

// State of cowbird while ingress handles a frame.
struct cowbird_metadata_t {
    bit<8>  phase;        // what the frame answers
    bit<8>  next;         // what it becomes; 0: nothing
    bit<32> instance;
    bit<32> beyond;       // the instance behind those that share the turns
    bit<24> first;        // first sequence number of the frame's queue pair
    bit<24> count;        // packets of the queue pair before the frame; finally, before the one that leaves
    bit<16> bytes;        // of payload, with padding
    bit<32> set_key;      // the thread's set: key, address, entries, and where its rings are
    bit<64> set;
    bit<64> entries;
    bit<64> request_at;
    bit<64> request_bytes;
    bit<64> response_at;
    bit<64> response_bytes;
    bit<24> reads_before; // requests that were done before the queue pairs were made
    bit<24> writes_before;
    bit<32> pool_key;     // the entry's region: key, address, bytes
    bit<64> pool;
    bit<64> pool_bytes;
    bit<64> reads;        // requests that are done
    bit<64> writes;
    bit<64> head;         // entries that are done
    bit<24> news;         // requests that an acknowledgement reports
    bit<64> told;         // the part that was last reported to the thread
    bit<64> acked;        // the part that the thread is known to have
    bit<8>  sends_red;    // whether a red block has to be sent
    bit<24> reds;         // red blocks that have arrived; WRONG: not this one
    bit<8>  late;
    bit<8>  kind;         // 0: read, 1: write
    bit<32> side;
    bit<24> number;       // of a request among those of its kind
    bit<32> slot;
    bit<64> remote;       // of an entry: where in the region, where in the set, its bytes
    bit<64> local;
    bit<64> length;
    bit<64> padded;
    bit<64> ring;         // the ring that its data is in
    bit<64> ring_at;
    bit<64> ready;        // entries that must be complete before one of another kind starts
    bit<8>  refusal;
    bit<8>  outcome;      // of taking an entry, or a packet
    bit<64> position;     // of an entry
    bit<64> taken;        // entries that have started
    bit<64> tail;         // entries that the thread has written
    bit<24> packets;      // of a message
    bit<24> behind;       // packets up to its end
    bit<64> end;          // where its data ends in the ring
    bit<64> response_end;
    bit<64> request_end;
    bit<16> quiet;        // turns since the thread asked for something
    bit<8>  busy;         // not idle
    bit<8>  odd;          // of turns
    bit<8>  guesses;      // it asks for an entry that may not be there
    bit<64> address;      // of a READ or WRITE: address, key, bytes
    bit<32> key;
    bit<32> dma_length;
    bit<9>  port;         // where the next packet goes
    bit<32> sum;
}

struct metadata_t {
    cowbird_metadata_t cowbird;
    bit<32>            drop; // why the frame is dropped
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
            ETHERTYPE_IPV4 : parse_cowbird;
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_IPV4 : parse_cowbird;
            default        : accept;
        }
    }

    // Frames with another destination are ordinary traffic.
    state parse_cowbird {
        transition select(hdr.ethernet.dstAddr) {
            COWBIRD_MAC : parse_cowbird_ipv4;
            default     : accept;
        }
    }

    state parse_cowbird_ipv4 {
        packet.extract(hdr.cowbird_ipv4);
        transition select(hdr.cowbird_ipv4.version, hdr.cowbird_ipv4.ihl, hdr.cowbird_ipv4.fragOffset,
                          hdr.cowbird_ipv4.protocol) {
            (4, 5, 0, 17) : parse_cowbird_udp;
            default       : accept;
        }
    }

    state parse_cowbird_udp {
        packet.extract(hdr.cowbird_udp);
        transition select(hdr.cowbird_udp.dstPort) {
            ROCE_PORT : parse_cowbird_bth;
            default   : accept;
        }
    }

    state parse_cowbird_bth {
        packet.extract(hdr.cowbird_bth);
        transition select(hdr.cowbird_bth.opcode) {
            ROCE_READ_FIRST  : parse_cowbird_aeth;
            ROCE_READ_LAST   : parse_cowbird_aeth;
            ROCE_READ_ONLY   : parse_cowbird_aeth;
            ROCE_ACKNOWLEDGE : parse_cowbird_aeth;
            COWBIRD_OP_READ  : parse_cowbird_management;
            COWBIRD_OP_SET   : parse_cowbird_management;
            default          : accept;
        }
    }

    // Whether it is data or one of the engine's own READs, is known from its queue pair later: data goes on with these headers.
    state parse_cowbird_aeth {
        packet.extract(hdr.cowbird_aeth);
        transition select(hdr.cowbird_bth.opcode, hdr.cowbird_udp.length) {
            (ROCE_READ_ONLY, 36) : parse_cowbird_tail;
            (ROCE_READ_ONLY, 60) : parse_cowbird_entry;
            (ROCE_READ_ONLY, 68) : parse_cowbird_guess;
            default              : accept;
        }
    }

    state parse_cowbird_tail {
        packet.extract(hdr.cowbird_tail);
        transition accept;
    }

    state parse_cowbird_entry {
        packet.extract(hdr.cowbird_entry);
        transition accept;
    }

    state parse_cowbird_guess {
        packet.extract(hdr.cowbird_entry);
        transition parse_cowbird_tail;
    }

    state parse_cowbird_management {
        packet.extract(hdr.cowbird_management);
        transition accept;
    }
}

control RackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.cowbird_ipv4);
        packet.emit(hdr.cowbird_udp);
        packet.emit(hdr.cowbird_bth);
        packet.emit(hdr.cowbird_aeth);
        packet.emit(hdr.cowbird_reth);
        packet.emit(hdr.cowbird_management);
        packet.emit(hdr.cowbird_red);
        packet.emit(hdr.cowbird_entry);
        packet.emit(hdr.cowbird_tail);
    }
}

// Nothing here carries a checksum that the switch touches.
control RackVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RackComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// The engine: each packet that returns from a queue pair becomes the next request.
control Cowbird(inout headers_t hdr, inout metadata_t meta,
        inout standard_metadata_t standard_metadata) {
    // By instance and phase: packets sent; in the cell of phase 0, restarts.
    counter(COWBIRD_SENT, CounterType.packets) sent;

    // State of an instance. Each phase has a queue pair of its own, so sequence numbers follow from what is requested: the
    // number of the entry, the packets of earlier requests, the earlier red blocks. A restart sends the same numbers for the
    // same requests, which responders take for duplicates.

    // Reads of the instance that are done, as acknowledgements count messages.
    // Written by acknowledgements of responses, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) reads;

    // Writes of the instance that are done. Both together are the head.
    // Written by acknowledgements of the pool, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) writes;

    // The head in the red block in flight.
    // Written by acknowledgements, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) told;

    // The head that the thread knows: the one of the last red block that has arrived.
    // Written by acknowledgements of red blocks, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) acked;

    // Red blocks that have arrived. One is in flight at a time.
    // Written by acknowledgements of red blocks, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_INSTANCES) reds;

    // When something last went on.
    // Written by all frames with news, turns that find it late, the controller; it wraps as the time does.
    register<time_t>(COWBIRD_INSTANCES) stamp;

    // The next entry to be begun.
    // Written by entries, turns that start again, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) taken;

    // Whether reads or writes are in flight, or nothing is begun any more.
    // Written by entries, the controller; it does not count.
    register<bit<8>>(COWBIRD_INSTANCES) kind;

    // By side: where data of the last request begun ends in its ring.
    // Written by entries, turns that start again, the controller; it never wraps.
    register<bit<64>>(COWBIRD_SIDES) placed;

    // By side: packets of all requests begun.
    // Written by entries, turns that start again, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_SIDES) asked;

    // By side: packets of what was read that have passed, in order.
    // Written by data, turns that start again, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_SIDES) passed;

    // By side: requests whose data has passed.
    // Written by the last packet of a request's data, turns that start again, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_SIDES) messages;

    // Of a request in flight: packets of its side up to its end.
    // Written by its entry, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_ALL_SLOTS) slot_behind;

    // Of a request in flight: where its data goes.
    // Written by its entry; it does not count.
    register<bit<64>>(COWBIRD_ALL_SLOTS) slot_address;

    // Of a request in flight: the key of the memory that its data goes to.
    // Written by its entry; it does not count.
    register<bit<32>>(COWBIRD_ALL_SLOTS) slot_key;

    // Of a request in flight: its bytes.
    // Written by its entry; it is at most half of a ring.
    register<bit<32>>(COWBIRD_ALL_SLOTS) slot_length;

    // Of a read in flight: the position in the ring at which its data ends.
    // Written by its entry, the controller; it never wraps.
    register<bit<64>>(COWBIRD_ENDS) response_ends;

    // Of a write in flight: the position in the ring at which its data ends.
    // Written by its entry, the controller; it never wraps.
    register<bit<64>>(COWBIRD_ENDS) request_ends;

    // Entries that the thread has written, as probes saw it.
    // Written by answers to probes, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) tail;

    // Entries that were asked for.
    // Written by all frames that ask for an entry, the controller; it never wraps.
    register<bit<64>>(COWBIRD_INSTANCES) fetched;

    // Whether the next entry waits, and for what.
    // Written by entries, frames that ask for an entry, the controller; it does not count.
    register<bit<8>>(COWBIRD_INSTANCES) held;

    // Probes that were answered.
    // Written by answers to probes, the controller; it wraps at 2^24.
    register<bit<24>>(COWBIRD_INSTANCES) probes;

    // Whether a probe is in flight.
    // Written by turns, answers to probes, the controller; it does not count.
    register<bit<8>>(COWBIRD_INSTANCES) probing;

    // Turns since the tail last moved.
    // Written by turns, answers to probes, the controller; it goes from 2^16 - 1 back to COWBIRD_BUSY.
    register<bit<16>>(COWBIRD_INSTANCES) quiet;

    // Why the set is served no more; 0 while it is. The first reason stays.
    // Written by entries and answers to probes that make no sense, the controller; it does not count.
    register<bit<8>>(COWBIRD_INSTANCES) refusal;

    // By the first of some instances of a host: the one that has their next turn.
    // Written by the packet generator's frames; it goes from their last one back to the first.
    register<bit<32>>(COWBIRD_INSTANCES) turn;

    // The instance that a frame belongs to, by its queue pair and its sender.
    action pair(bit<32> instance, bit<8> phase, bit<24> first) {
        meta.cowbird.instance = instance;
        meta.cowbird.phase    = phase;
        meta.cowbird.first    = first;
    }

    // Turns of instances from `begin` on, up to the one before `end`: a host's, so that hosts have turns of their own.
    action tick(bit<32> begin, bit<32> end) {
        meta.cowbird.phase    = COWBIRD_TICK;
        meta.cowbird.instance = begin;
        meta.cowbird.beyond   = end;
    }

    table pairs {
        key = {
            standard_metadata.ingress_port : exact @name("port");
            hdr.ethernet.srcAddr           : exact;
            hdr.cowbird_ipv4.srcAddr       : exact;
            hdr.cowbird_bth.destQp         : exact;
        }
        actions = {
            pair;
            tick;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    // Instances of a host take turns.
    @hidden action take_turn() {
        bit<32> begin = meta.cowbird.instance;
        turn.read(meta.cowbird.instance, begin);
        bit<32> next = meta.cowbird.instance + 1;
        turn.write(begin, next >= meta.cowbird.beyond || next < begin ? begin : next);
    }

    // A thread's set.
    action serve(bit<32> key, bit<64> address, bit<64> entries, bit<64> request_at, bit<64> request_bytes,
                         bit<64> response_at, bit<64> response_bytes, bit<24> reads, bit<24> writes) {
        meta.cowbird.set_key        = key;
        meta.cowbird.set            = address;
        meta.cowbird.entries        = entries;
        meta.cowbird.request_at     = request_at;
        meta.cowbird.request_bytes  = request_bytes;
        meta.cowbird.response_at    = response_at;
        meta.cowbird.response_bytes = response_bytes;
        meta.cowbird.reads_before   = reads;
        meta.cowbird.writes_before  = writes;
    }

    table instances {
        key = {
            meta.cowbird.instance : exact @name("instance");
        }
        actions = {
            serve;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 64;
    }

    // Regions of remote memory that an instance may access.
    action region(bit<32> key, bit<64> address, bit<64> length) {
        meta.cowbird.pool_key   = key;
        meta.cowbird.pool       = address;
        meta.cowbird.pool_bytes = length;
    }

    table regions {
        key = {
            meta.cowbird.instance      : exact @name("instance");
            hdr.cowbird_entry.regionId : exact @name("region");
        }
        actions = {
            region;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 256;
    }

    // Destination of the packets of a phase.
    action peer(port_t port, mac_addr_t mac, bit<32> ip, bit<16> udp_port, bit<24> qpn, bit<24> first,
                        bit<16> checksum) {
        meta.cowbird.port        = port;
        meta.cowbird.sum         = (bit<32>) checksum;
        hdr.ethernet.dstAddr     = mac;
        hdr.cowbird_ipv4.dstAddr = ip;
        hdr.cowbird_udp.srcPort  = udp_port;
        hdr.cowbird_bth.destQp   = qpn;
        hdr.cowbird_bth.psn      = first + meta.cowbird.count;
    }

    table peers {
        key = {
            meta.cowbird.instance : exact @name("instance");
            meta.cowbird.next     : exact @name("phase");
        }
        actions = {
            peer;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    // An acknowledgement counts messages since the queue pair was created. A count beyond the window is stale.
    @hidden action count_reads() {
        bit<64> done;
        reads.read(done, meta.cowbird.instance);
        bit<24> news       = meta.cowbird.reads_before + hdr.cowbird_aeth.msn - done[23:0];
        news               = meta.cowbird.phase == COWBIRD_RESPONSE && (bit<64>) news <= COWBIRD_WINDOW ? news : 0;
        meta.cowbird.news  = news;
        meta.cowbird.reads = done + (bit<64>) meta.cowbird.news;
        reads.write(meta.cowbird.instance, meta.cowbird.reads);
    }

    @hidden action count_writes() {
        bit<64> done;
        writes.read(done, meta.cowbird.instance);
        bit<24> news        = meta.cowbird.writes_before + hdr.cowbird_aeth.msn - done[23:0];
        news                = meta.cowbird.phase == COWBIRD_POOL_WRITE && (bit<64>) news <= COWBIRD_WINDOW ? news : 0;
        meta.cowbird.news   = meta.cowbird.news + news;
        meta.cowbird.writes = done + (bit<64>) news;
        writes.write(meta.cowbird.instance, meta.cowbird.writes);
        meta.cowbird.head = meta.cowbird.reads + meta.cowbird.writes;
    }

    // A red block has arrived if the acknowledged one is the one in flight.
    @hidden action count_reds() {
        bit<24> reds_before;
        reds.read(reds_before, meta.cowbird.instance);
        bool arrived      = meta.cowbird.phase == COWBIRD_RED && meta.cowbird.count == reds_before;
        meta.cowbird.news = meta.cowbird.news + (arrived ? 24w1 : 24w0);
        meta.cowbird.reds = reds_before + (arrived ? 24w1 : 24w0);
        reds.write(meta.cowbird.instance, meta.cowbird.reds);
    }

    // Sends a red block if there is new progress and no red block is in flight.
    @hidden action tell() {
        told.read(meta.cowbird.told, meta.cowbird.instance);
        acked.read(meta.cowbird.acked, meta.cowbird.instance);
        bool news              = meta.cowbird.news != 0;
        meta.cowbird.acked     = news && meta.cowbird.phase == COWBIRD_RED ? meta.cowbird.told : meta.cowbird.acked;
        bool sends_red         = news && meta.cowbird.told == meta.cowbird.acked && meta.cowbird.head != meta.cowbird.told;
        meta.cowbird.told      = sends_red ? meta.cowbird.head : meta.cowbird.told;
        meta.cowbird.sends_red = sends_red ? 8w1 : 8w0;
        told.write(meta.cowbird.instance, meta.cowbird.told);
        acked.write(meta.cowbird.instance, meta.cowbird.acked);
    }

    @hidden action go_on() {
        stamp.write(meta.cowbird.instance, standard_metadata.ingress_global_timestamp);
    }

    // Lets the next turn restart the instance.
    @hidden action hurry() {
        stamp.write(meta.cowbird.instance, standard_metadata.ingress_global_timestamp - COWBIRD_TIMEOUT - 1);
    }

    @hidden action look_at_time() {
        time_t stamp_before;
        stamp.read(stamp_before, meta.cowbird.instance);
        meta.cowbird.late = standard_metadata.ingress_global_timestamp - stamp_before > COWBIRD_TIMEOUT ? 8w1 : 8w0;
        stamp.write(meta.cowbird.instance, meta.cowbird.late == 1 ? standard_metadata.ingress_global_timestamp : stamp_before);
    }

    // Starts an entry if it is the next one, and is of the kind in flight or nothing blocks it. Only then is its expected id
    // known. After an invalid entry, none is started.
    @hidden action take() {
        bit<8> kind_before;
        taken.read(meta.cowbird.position, meta.cowbird.instance);
        kind.read(kind_before, meta.cowbird.instance);
        bool next            = meta.cowbird.position[23:0] == meta.cowbird.count && kind_before != COWBIRD_NO_KIND;
        bool ready           = kind_before == meta.cowbird.kind || meta.cowbird.position == meta.cowbird.ready;
        meta.cowbird.outcome = !next ? COWBIRD_STALE :
            (!ready ? COWBIRD_WAITS : (meta.cowbird.refusal != 0 ? COWBIRD_REFUSED : COWBIRD_TAKEN));
        taken.write(meta.cowbird.instance,
            meta.cowbird.position + (meta.cowbird.outcome == COWBIRD_TAKEN ? 64w1 : 64w0));
        kind.write(meta.cowbird.instance, meta.cowbird.outcome == COWBIRD_TAKEN ? meta.cowbird.kind :
            (meta.cowbird.outcome == COWBIRD_REFUSED ? COWBIRD_NO_KIND : kind_before));
    }

    @hidden action look_at_taken() {
        taken.read(meta.cowbird.taken, meta.cowbird.instance);
    }

    // After a timeout, restart at the first incomplete entry. If behind it, skip ahead: entries that the thread knows to be
    // complete must not be read again.
    @hidden action go_to_head() {
        taken.read(meta.cowbird.position, meta.cowbird.instance);
        kind.read(meta.cowbird.kind, meta.cowbird.instance);
        meta.cowbird.late = meta.cowbird.position < meta.cowbird.head ? 8w1 : meta.cowbird.late;
        taken.write(meta.cowbird.instance,
            meta.cowbird.late == 1 ? meta.cowbird.head : meta.cowbird.position);
        meta.cowbird.side   = meta.cowbird.instance << 1 | (bit<32>) (meta.cowbird.kind & 1);
        meta.cowbird.number = meta.cowbird.kind == 0 ? meta.cowbird.reads[23:0] : meta.cowbird.writes[23:0];
        meta.cowbird.slot   = meta.cowbird.side * COWBIRD_SLOTS +
            ((bit<32>) meta.cowbird.number & (COWBIRD_SLOTS - 1));
    }

    // Moves its side's counters of packets, requests and data to the same point.
    @hidden action side_goes_too() {
        slot_behind.read(meta.cowbird.behind, meta.cowbird.slot);
        asked.write(meta.cowbird.side, meta.cowbird.behind);
        passed.write(meta.cowbird.side, meta.cowbird.behind);
        messages.write(meta.cowbird.side, meta.cowbird.number);
        placed.write(meta.cowbird.side,
            meta.cowbird.kind == 0 ? meta.cowbird.response_end : meta.cowbird.request_end);
    }

    // The place of a request's data follows from the requests before it: no data straddles the end of a ring.
    @hidden action place() {
        bit<64> placed_before;
        placed.read(placed_before, meta.cowbird.side);
        bit<64> left         = meta.cowbird.ring - (placed_before & (meta.cowbird.ring - 1));
        bit<64> start        = meta.cowbird.padded > left ? placed_before + left : placed_before;
        bool right           = meta.cowbird.local == meta.cowbird.ring_at + (start & (meta.cowbird.ring - 1));
        meta.cowbird.end     = right ? start + meta.cowbird.padded : placed_before;
        meta.cowbird.refusal = right ? 8w0 : COWBIRD_CORRUPT_PLACE;
        placed.write(meta.cowbird.side, meta.cowbird.end);
    }

    // Reserves sequence numbers for all packets that a READ returns.
    @hidden action ask() {
        asked.read(meta.cowbird.count, meta.cowbird.side);
        meta.cowbird.behind = meta.cowbird.count + meta.cowbird.packets;
        asked.write(meta.cowbird.side, meta.cowbird.behind);
    }

    @hidden action keep(bit<64> address, bit<32> key) {
        slot_behind.write(meta.cowbird.slot, meta.cowbird.behind);
        slot_address.write(meta.cowbird.slot, address);
        slot_key.write(meta.cowbird.slot, key);
        slot_length.write(meta.cowbird.slot, hdr.cowbird_entry.length);
    }

    // Accepts the next packet of read data if a request in flight expects it.
    @hidden action pass() {
        bit<24> asked_before;
        bit<24> passed_before;
        asked.read(asked_before, meta.cowbird.side);
        passed.read(passed_before, meta.cowbird.side);
        bool next            = passed_before == meta.cowbird.count && passed_before != asked_before;
        meta.cowbird.outcome = next ? COWBIRD_TAKEN : COWBIRD_STALE;
        passed.write(meta.cowbird.side, meta.cowbird.outcome == COWBIRD_TAKEN ? passed_before + 1 : passed_before);
    }

    // Counts requests whose last packet passes.
    @hidden action count_message(in bit<24> ends) {
        bit<24> messages_before;
        messages.read(messages_before, meta.cowbird.side);
        messages.write(meta.cowbird.side, messages_before + ends);
        meta.cowbird.number = messages_before + 1;
        meta.cowbird.slot   = meta.cowbird.side * COWBIRD_SLOTS +
            ((bit<32>) meta.cowbird.number & (COWBIRD_SLOTS - 1));
        slot_behind.read(meta.cowbird.behind, meta.cowbird.slot);
        slot_address.read(meta.cowbird.address, meta.cowbird.slot);
        slot_key.read(meta.cowbird.key, meta.cowbird.slot);
        slot_length.read(meta.cowbird.dma_length, meta.cowbird.slot);
    }

    @hidden action look_at_ends() {
        bit<32> slots = meta.cowbird.instance * COWBIRD_SLOTS;
        response_ends.read(meta.cowbird.response_end,
            slots + ((bit<32>) meta.cowbird.reads[31:0] & (COWBIRD_SLOTS - 1)));
        request_ends.read(meta.cowbird.request_end,
            slots + ((bit<32>) meta.cowbird.writes[31:0] & (COWBIRD_SLOTS - 1)));
    }

    // The tail moves forward, by at most the length of the ring. Guessed entries may be complete before the tail includes
    // them.
    @hidden action see_tail() {
        bit<64> tail_before;
        tail.read(tail_before, meta.cowbird.instance);
        meta.cowbird.tail    = hdr.cowbird_tail.requestTail;
        bit<64> moved        = meta.cowbird.tail - tail_before;
        bool right           = moved[63:63] == 0 &&
            (meta.cowbird.tail < meta.cowbird.head || meta.cowbird.tail - meta.cowbird.head <= meta.cowbird.entries);
        meta.cowbird.refusal = right ? 8w0 : COWBIRD_CORRUPT_TAIL;
        meta.cowbird.outcome = right && moved != 0 ? COWBIRD_TAKEN : COWBIRD_STALE;
        tail.write(meta.cowbird.instance, right ? meta.cowbird.tail : tail_before);
    }

    @hidden action look_at_tail() {
        tail.read(meta.cowbird.tail, meta.cowbird.instance);
    }

    // Requests the next entry, if there is one and the window permits it. An entry that had to wait is requested again once
    // it may start.
    @hidden action fetch() {
        bit<64> fetched_before;
        bit<8> held_before;
        fetched.read(fetched_before, meta.cowbird.instance);
        held.read(held_before, meta.cowbird.instance);
        meta.cowbird.position = meta.cowbird.late == 1 ? meta.cowbird.head : fetched_before;
        bool waits            = meta.cowbird.late == 0 && (held_before == COWBIRD_HELD_READ ? meta.cowbird.head < fetched_before :
            (held_before == COWBIRD_HELD_WRITE && meta.cowbird.acked < fetched_before));
        // The tail may lag behind the head.
        bit<64> ahead     = meta.cowbird.tail - meta.cowbird.position;
        bool there        = (ahead != 0 && ahead[63:63] == 0) || (held_before != 0 && meta.cowbird.late == 0);
        bool more         = meta.cowbird.refusal == 0 && !waits && there &&
            meta.cowbird.position < meta.cowbird.head + COWBIRD_WINDOW;
        meta.cowbird.next = more ? COWBIRD_ENTRY : COWBIRD_NOTHING;
        fetched.write(meta.cowbird.instance, meta.cowbird.position + (more ? 64w1 : 64w0));
        held.write(meta.cowbird.instance, waits ? held_before : 0);
    }

    @hidden action hold() {
        fetched.write(meta.cowbird.instance, meta.cowbird.position);
        held.write(meta.cowbird.instance,
            meta.cowbird.kind == 0 ? COWBIRD_HELD_READ : COWBIRD_HELD_WRITE);
    }

    // A guessed entry isn't requested again.
    @hidden action pass_by() {
        bit<64> fetched_before;
        bit<8> held_before;
        fetched.read(fetched_before, meta.cowbird.instance);
        held.read(held_before, meta.cowbird.instance);
        bool here = fetched_before == meta.cowbird.position;
        fetched.write(meta.cowbird.instance, fetched_before + (here ? 64w1 : 64w0));
        held.write(meta.cowbird.instance, here ? 8w0 : held_before);
    }

    @hidden action take_answer() {
        bit<24> probes_before;
        bit<8> probing_before;
        probes.read(probes_before, meta.cowbird.instance);
        probing.read(probing_before, meta.cowbird.instance);
        bool answered        = meta.cowbird.count == probes_before && probing_before == 1;
        meta.cowbird.outcome = answered ? COWBIRD_TAKEN : COWBIRD_STALE;
        probes.write(meta.cowbird.instance, probes_before + (answered ? 24w1 : 24w0));
        probing.write(meta.cowbird.instance, answered ? 8w0 : probing_before);
    }

    // At most one probe is in flight, unless it was lost.
    @hidden action probe() {
        bit<8> probing_before;
        probes.read(meta.cowbird.count, meta.cowbird.instance);
        probing.read(probing_before, meta.cowbird.instance);
        probing.write(meta.cowbird.instance, 1);
        meta.cowbird.next = probing_before == 0 || meta.cowbird.late == 1 ? COWBIRD_PROBE : COWBIRD_NOTHING;
    }

    // Whether an idle instance uses its turn.
    @hidden action count_turns() {
        bit<16> turns;
        quiet.read(turns, meta.cowbird.instance);
        meta.cowbird.quiet = turns < COWBIRD_BUSY ? 16w0 : turns & COWBIRD_IDLE_MASK;
        meta.cowbird.busy  = turns < COWBIRD_BUSY ? 8w1 : 8w0;
        meta.cowbird.odd   = (bit<8>) (turns & 1);
        quiet.write(meta.cowbird.instance, turns == 0xFFFF ? COWBIRD_BUSY : turns + 1);
    }

    @hidden action wake() {
        quiet.write(meta.cowbird.instance, 0);
    }

    // After the first invalid entry or tail, nothing more is started; the first reason stays.
    @hidden action judge() {
        bit<8> refusal_before;
        refusal.read(refusal_before, meta.cowbird.instance);
        meta.cowbird.refusal = refusal_before == 0 ? meta.cowbird.refusal : refusal_before;
        refusal.write(meta.cowbird.instance, meta.cowbird.refusal);
    }

    @hidden action look_at_refusal() {
        refusal.read(meta.cowbird.refusal, meta.cowbird.instance);
    }

    // A READ, of the set or of the pool.
    @hidden action read(in bit<64> address, in bit<32> key, in bit<32> length) {
        hdr.cowbird_bth.opcode = ROCE_READ;
        hdr.cowbird_bth.pad    = 0;
        hdr.cowbird_reth.setValid();
        hdr.cowbird_reth.virtualAddress = address;
        hdr.cowbird_reth.rKey           = key;
        hdr.cowbird_reth.dmaLength      = length;
        hdr.cowbird_udp.length          = ROCE_HEADERS + 16;
    }

    // The red block.
    @hidden action write_red() {
        hdr.cowbird_bth.opcode = ROCE_WRITE_ONLY;
        hdr.cowbird_bth.pad    = 0;
        hdr.cowbird_bth.ackReq = 1;
        hdr.cowbird_reth.setValid();
        hdr.cowbird_reth.virtualAddress = meta.cowbird.set + COWBIRD_RED_AT;
        hdr.cowbird_reth.rKey           = meta.cowbird.set_key;
        hdr.cowbird_reth.dmaLength      = (bit<32>) COWBIRD_RED_BYTES;
        hdr.cowbird_red.setValid();
        hdr.cowbird_red.requestHead      = meta.cowbird.head;
        hdr.cowbird_red.requestDataHead  = meta.cowbird.request_end;
        hdr.cowbird_red.responseDataTail = meta.cowbird.response_end;
        hdr.cowbird_red.writeProgress    = meta.cowbird.writes;
        hdr.cowbird_red.readProgress     = meta.cowbird.reads;
        hdr.cowbird_red.refusal          = (bit<64>) meta.cowbird.refusal;
        hdr.cowbird_udp.length           = ROCE_HEADERS + 16 + COWBIRD_RED_BYTES;
        meta.cowbird.count               = meta.cowbird.reds;
    }

    // Fields common to all packets that the engine sends. IPv4's checksum is that of the connection plus the length.
    @hidden action complete_headers() {
        hdr.ethernet.srcAddr            = COWBIRD_MAC;
        hdr.cowbird_ipv4.dscp           = 0;
        hdr.cowbird_ipv4.ecn            = 0;
        hdr.cowbird_ipv4.totalLen       = hdr.cowbird_udp.length + 20;
        hdr.cowbird_ipv4.identification = 0;
        hdr.cowbird_ipv4.flags          = 2;
        hdr.cowbird_ipv4.ttl            = 64;
        hdr.cowbird_ipv4.srcAddr        = COWBIRD_IP;
        meta.cowbird.sum                = meta.cowbird.sum + (bit<32>) hdr.cowbird_ipv4.totalLen;
        meta.cowbird.sum                = (meta.cowbird.sum & 0xFFFF) + (meta.cowbird.sum >> 16);
        hdr.cowbird_ipv4.hdrChecksum    = ~meta.cowbird.sum[15:0];
        hdr.cowbird_udp.dstPort         = ROCE_PORT;
        hdr.cowbird_udp.checksum        = 0;
        hdr.cowbird_bth.solicited       = 0;
        hdr.cowbird_bth.migrated        = 1;
        hdr.cowbird_bth.version         = 0;
        hdr.cowbird_bth.partition       = ROCE_PARTITION;
        hdr.cowbird_bth.fecn            = 0;
        hdr.cowbird_bth.becn            = 0;
        hdr.cowbird_bth.reserved        = 0;
        hdr.cowbird_bth.reservedLow     = 0;
    }

    // Controller write: initialises a side and its instance.
    @hidden action begin() {
        bit<32> slot = (bit<32>) meta.cowbird.number & (COWBIRD_SLOTS - 1);
        told.write(meta.cowbird.instance, meta.cowbird.head);
        acked.write(meta.cowbird.instance, meta.cowbird.head);
        reds.write(meta.cowbird.instance, 0);
        stamp.write(meta.cowbird.instance, standard_metadata.ingress_global_timestamp);
        taken.write(meta.cowbird.instance, meta.cowbird.head);
        kind.write(meta.cowbird.instance, 0);
        placed.write(meta.cowbird.side, meta.cowbird.end);
        asked.write(meta.cowbird.side, 0);
        passed.write(meta.cowbird.side, 0);
        messages.write(meta.cowbird.side, meta.cowbird.number);
        slot_behind.write(meta.cowbird.side * COWBIRD_SLOTS + slot, 0);
        // The last entry may be complete before the tail includes it.
        tail.write(meta.cowbird.instance, meta.cowbird.head - 1);
        fetched.write(meta.cowbird.instance, meta.cowbird.head);
        held.write(meta.cowbird.instance, 0);
        probes.write(meta.cowbird.instance, 0);
        probing.write(meta.cowbird.instance, 0);
        quiet.write(meta.cowbird.instance, 0);
        refusal.write(meta.cowbird.instance, 0);
        if (meta.cowbird.kind == 0) {
            reads.write(meta.cowbird.instance, hdr.cowbird_management.done);
            response_ends.write(meta.cowbird.instance * COWBIRD_SLOTS + slot, meta.cowbird.end);
        } else {
            writes.write(meta.cowbird.instance, hdr.cowbird_management.done);
            request_ends.write(meta.cowbird.instance * COWBIRD_SLOTS + slot, meta.cowbird.end);
        }
    }

    // Controller read: progress of a side, and the reason of a refusal in the field of the end.
    @hidden action look() {
        bit<64> writes_before;
        bit<8> refusal_before;
        reads.read(hdr.cowbird_management.done, meta.cowbird.instance);
        writes.read(writes_before, meta.cowbird.instance);
        acked.read(hdr.cowbird_management.head, meta.cowbird.instance);
        refusal.read(refusal_before, meta.cowbird.instance);
        hdr.cowbird_management.done = meta.cowbird.kind == 0 ? hdr.cowbird_management.done : writes_before;
        hdr.cowbird_management.end  = (bit<64>) refusal_before;
    }

    apply {
        if (hdr.cowbird_management.isValid()) {
            if (!hdr.packet_out.isValid()) {
                meta.drop = DROP_COWBIRD_MANAGEMENT_FROM_HOST;
                return;
            }
            if (hdr.cowbird_management.instance >= COWBIRD_INSTANCES) {
                meta.drop = DROP_COWBIRD_BAD_INDEX;
                return;
            }
            meta.cowbird.instance = hdr.cowbird_management.instance;
            meta.cowbird.kind     = hdr.cowbird_management.side & 1;
            meta.cowbird.side     = meta.cowbird.instance << 1 | (bit<32>) meta.cowbird.kind;
            if (hdr.cowbird_bth.opcode == COWBIRD_OP_SET) {
                meta.cowbird.number = hdr.cowbird_management.done[23:0];
                meta.cowbird.end    = hdr.cowbird_management.end;
                meta.cowbird.head   = hdr.cowbird_management.head;
                begin();
            } else {
                look();
            }
            hdr.cowbird_bth.opcode        = COWBIRD_OP_REPLY;
            standard_metadata.egress_spec = CPU_PORT;
            return;
        }

        bool acknowledges = hdr.cowbird_bth.opcode == ROCE_ACKNOWLEDGE;
        bool carries      = hdr.cowbird_bth.opcode >= ROCE_READ_FIRST && hdr.cowbird_bth.opcode <= ROCE_READ_ONLY;
        bool begins       = hdr.cowbird_bth.opcode == ROCE_READ_FIRST || hdr.cowbird_bth.opcode == ROCE_READ_ONLY;
        bool ends         = hdr.cowbird_bth.opcode == ROCE_READ_LAST || hdr.cowbird_bth.opcode == ROCE_READ_ONLY;

        // A frame is whole: all lengths agree, and headers are there.
        bit<32> whole      = (bit<32>) hdr.cowbird_ipv4.totalLen +
            (hdr.packet_out.isValid() ? 32w16 : 32w14);
        meta.cowbird.bytes = hdr.cowbird_udp.length - ROCE_HEADERS;
        if (hdr.cowbird_aeth.isValid()) {
            meta.cowbird.bytes = meta.cowbird.bytes - 4;
        }
        if (hdr.vlan.isValid() || standard_metadata.packet_length != whole ||
            hdr.cowbird_ipv4.totalLen != hdr.cowbird_udp.length + 20 ||
            meta.cowbird.bytes > ROCE_MTU || meta.cowbird.bytes[1:0] != 0 ||
            (acknowledges || begins || ends) != hdr.cowbird_aeth.isValid() ||
            (!carries && (meta.cowbird.bytes != 0 || hdr.cowbird_bth.pad != 0)) ||
            (carries && meta.cowbird.bytes <= (bit<16>) hdr.cowbird_bth.pad)) {
            meta.drop = DROP_COWBIRD_BAD_FRAME;
            return;
        }
        if (pairs.apply().miss) {
            meta.drop = DROP_COWBIRD_UNKNOWN_PAIR;
            return;
        }
        meta.cowbird.count = hdr.cowbird_bth.psn - meta.cowbird.first;
        if (meta.cowbird.phase == COWBIRD_TICK) {
            take_turn();
        }
        if (instances.apply().miss) {
            meta.drop = DROP_COWBIRD_NO_INSTANCE;
            return;
        }

        // The responder reports a gap: the next turn restarts. Any other refusal goes to the controller.
        if (acknowledges && hdr.cowbird_aeth.syndrome[6:5] == 3) {
            if (hdr.cowbird_aeth.syndrome[4:0] == 0) {
                hurry();
                meta.drop = DROP_COWBIRD_GAP;
                return;
            }
            standard_metadata.egress_spec = CPU_PORT;
            return;
        }
        bool whole_read = hdr.cowbird_bth.opcode == ROCE_READ_ONLY && hdr.cowbird_bth.pad == 0;
        bool is_data    = meta.cowbird.phase == COWBIRD_PAYLOAD || meta.cowbird.phase == COWBIRD_POOL_READ;
        bool is_done    = meta.cowbird.phase == COWBIRD_RESPONSE || meta.cowbird.phase == COWBIRD_POOL_WRITE ||
            meta.cowbird.phase == COWBIRD_RED;
        if ((is_data && !carries) ||
            (is_done && (!acknowledges || hdr.cowbird_aeth.syndrome[6:5] != 0)) ||
            (meta.cowbird.phase == COWBIRD_PROBE && !(whole_read && meta.cowbird.bytes == COWBIRD_TAIL_BYTES)) ||
            (meta.cowbird.phase == COWBIRD_ENTRY && !(whole_read && hdr.cowbird_entry.isValid())) ||
            (meta.cowbird.phase == COWBIRD_TICK && hdr.cowbird_bth.opcode != COWBIRD_OP_TICK)) {
            meta.drop = DROP_COWBIRD_BAD_OPCODE;
            return;
        }

        // Progress, and the part of it that the thread knows.
        count_reads();
        count_writes();
        count_reds();
        tell();
        if (meta.cowbird.news != 0) {
            go_on();
        }

        if (meta.cowbird.phase == COWBIRD_ENTRY) {
            // The next request.
            if (hdr.cowbird_entry.rwType == COWBIRD_TYPE_READ) {
                meta.cowbird.kind    = 0;
                meta.cowbird.remote  = hdr.cowbird_entry.reqAddr;
                meta.cowbird.local   = hdr.cowbird_entry.respAddr;
                meta.cowbird.ring    = meta.cowbird.response_bytes;
                meta.cowbird.ring_at = meta.cowbird.response_at;
                meta.cowbird.number  = meta.cowbird.count + 1 - meta.cowbird.writes[23:0];
                meta.cowbird.ready   = meta.cowbird.head;
            } else {
                // A write waits until the thread knows of everything before it: an engine that takes over repeats the rest.
                meta.cowbird.kind    = 1;
                meta.cowbird.remote  = hdr.cowbird_entry.respAddr;
                meta.cowbird.local   = hdr.cowbird_entry.reqAddr;
                meta.cowbird.ring    = meta.cowbird.request_bytes;
                meta.cowbird.ring_at = meta.cowbird.request_at;
                meta.cowbird.number  = meta.cowbird.count + 1 - meta.cowbird.reads[23:0];
                meta.cowbird.ready   = meta.cowbird.acked;
            }
            meta.cowbird.length  = (bit<64>) hdr.cowbird_entry.length;
            meta.cowbird.padded  = (meta.cowbird.length + 7) & ~64w7;
            meta.cowbird.packets = (bit<24>) ((meta.cowbird.length + (bit<64>) ROCE_MTU - 1) >> 10);
            meta.cowbird.side    = meta.cowbird.instance << 1 | (bit<32>) meta.cowbird.kind;
            meta.cowbird.slot    = meta.cowbird.side * COWBIRD_SLOTS +
                ((bit<32>) meta.cowbird.number & (COWBIRD_SLOTS - 1));
            bool named           = hdr.cowbird_entry.requestId[63:63] == meta.cowbird.kind[0:0] &&
                hdr.cowbird_entry.requestId[62:47] == hdr.cowbird_entry.regionId &&
                hdr.cowbird_entry.requestId[23:0] == meta.cowbird.number;
            // A guessed entry may not be written yet: it is one only with the expected id.
            bool guessed = hdr.cowbird_tail.isValid();
            if (guessed && !named) {
                meta.drop = DROP_COWBIRD_NOTHING_TO_DO;
                return;
            }
            if (hdr.cowbird_entry.rwType != COWBIRD_TYPE_READ && hdr.cowbird_entry.rwType != COWBIRD_TYPE_WRITE) {
                meta.cowbird.refusal = COWBIRD_CORRUPT_TYPE;
            } else if (regions.apply().miss) {
                meta.cowbird.refusal = COWBIRD_CORRUPT_REGION;
            } else if (meta.cowbird.length == 0 || meta.cowbird.padded > meta.cowbird.ring >> 1) {
                meta.cowbird.refusal = COWBIRD_CORRUPT_LENGTH;
            } else if (meta.cowbird.remote > meta.cowbird.pool_bytes ||
                meta.cowbird.length > meta.cowbird.pool_bytes - meta.cowbird.remote) {
                meta.cowbird.refusal = COWBIRD_CORRUPT_BOUNDS;
            } else if (!named) {
                meta.cowbird.refusal = COWBIRD_CORRUPT_ID;
            }
            take();
            if (meta.cowbird.outcome == COWBIRD_STALE) {
                if (guessed) {
                    meta.drop = DROP_COWBIRD_NOTHING_TO_DO;
                    return;
                }
                meta.drop = DROP_COWBIRD_STALE;
                return;
            }
            if (meta.cowbird.outcome == COWBIRD_WAITS) {
                hold();
                meta.drop = DROP_COWBIRD_WAITS;
                return;
            }
            if (meta.cowbird.outcome == COWBIRD_TAKEN) {
                place();
            }
            judge();
            if (meta.cowbird.refusal != 0) {
                meta.drop = DROP_COWBIRD_CORRUPT;
                return;
            }
            ask();
            go_on();
            pass_by();
            bit<32> ends_at = meta.cowbird.instance * COWBIRD_SLOTS +
                ((bit<32>) meta.cowbird.number & (COWBIRD_SLOTS - 1));
            if (meta.cowbird.kind == 0) {
                response_ends.write(ends_at, meta.cowbird.end);
                keep(meta.cowbird.set + meta.cowbird.local, meta.cowbird.set_key);
                read(meta.cowbird.pool + meta.cowbird.remote, meta.cowbird.pool_key,
                    hdr.cowbird_entry.length);
                meta.cowbird.next = COWBIRD_POOL_READ;
            } else {
                request_ends.write(ends_at, meta.cowbird.end);
                keep(meta.cowbird.pool + meta.cowbird.remote, meta.cowbird.pool_key);
                read(meta.cowbird.set + meta.cowbird.local, meta.cowbird.set_key,
                    hdr.cowbird_entry.length);
                meta.cowbird.next = COWBIRD_PAYLOAD;
            }
        } else if (is_data) {
            // Read data continues as a WRITE, packet by packet, in order.
            meta.cowbird.side = meta.cowbird.instance << 1;
            meta.cowbird.next = COWBIRD_RESPONSE;
            if (meta.cowbird.phase == COWBIRD_PAYLOAD) {
                meta.cowbird.side = meta.cowbird.side + 1;
                meta.cowbird.next = COWBIRD_POOL_WRITE;
            }
            pass();
            if (meta.cowbird.outcome == COWBIRD_STALE) {
                meta.drop = DROP_COWBIRD_STALE;
                return;
            }
            count_message(ends ? 24w1 : 24w0);
            meta.cowbird.packets = (bit<24>) ((meta.cowbird.dma_length + (bit<32>) ROCE_MTU - 1) >> 10);
            bool last            = meta.cowbird.count + 1 == meta.cowbird.behind;
            bool first           = meta.cowbird.count + meta.cowbird.packets == meta.cowbird.behind;
            bit<32> rest         = meta.cowbird.dma_length - ((bit<32>) (meta.cowbird.packets - 1) << 10);
            if (last != ends || first != begins ||
                (bit<32>) (meta.cowbird.bytes - (bit<16>) hdr.cowbird_bth.pad) != (last ? rest : (bit<32>) ROCE_MTU)) {
                meta.drop = DROP_COWBIRD_BAD_DATA;
                return;
            }
            go_on();
            hdr.cowbird_bth.ackReq = last ? 1w1 : 1w0;
            hdr.cowbird_udp.length = meta.cowbird.bytes + ROCE_HEADERS;
            hdr.cowbird_bth.opcode = last && first ? ROCE_WRITE_ONLY :
                hdr.cowbird_bth.opcode - ROCE_READ_FIRST + ROCE_WRITE_FIRST;
            if (first) {
                hdr.cowbird_reth.setValid();
                hdr.cowbird_reth.virtualAddress = meta.cowbird.address;
                hdr.cowbird_reth.rKey           = meta.cowbird.key;
                hdr.cowbird_reth.dmaLength      = meta.cowbird.dma_length;
                hdr.cowbird_udp.length          = hdr.cowbird_udp.length + 16;
            }
        } else {
            // No data to forward: send a red block, the next entry's READ, or a probe.
            look_at_ends();
            bool moves = is_done && meta.cowbird.phase != COWBIRD_RED && meta.cowbird.news != 0;
            if (meta.cowbird.phase == COWBIRD_TICK) {
                look_at_time();
                if (meta.cowbird.late == 1 && meta.cowbird.told != meta.cowbird.acked) {
                    meta.cowbird.sends_red = 1;
                }
                moves = meta.cowbird.late == 1 && meta.cowbird.sends_red == 0;
            }
            if (moves) {
                go_to_head();
                if (meta.cowbird.late == 1 && meta.cowbird.kind != COWBIRD_NO_KIND) {
                    side_goes_too();
                }
                if (meta.cowbird.late == 1 && meta.cowbird.position != meta.cowbird.head) {
                    sent.count(meta.cowbird.instance << 3);
                }
            } else if (meta.cowbird.phase == COWBIRD_TICK) {
                look_at_taken();
            }
            if (meta.cowbird.phase == COWBIRD_PROBE) {
                take_answer();
                if (meta.cowbird.outcome == COWBIRD_STALE) {
                    meta.drop = DROP_COWBIRD_STALE;
                    return;
                }
                see_tail();
                judge();
                if (meta.cowbird.refusal != 0) {
                    meta.drop = DROP_COWBIRD_CORRUPT;
                    return;
                }
                if (meta.cowbird.outcome == COWBIRD_TAKEN) {
                    wake();
                }
            } else {
                look_at_tail();
            }
            if (meta.cowbird.phase != COWBIRD_PROBE) {
                look_at_refusal();
            }
            if (meta.cowbird.sends_red == 1) {
                meta.cowbird.next = COWBIRD_RED;
            } else {
                fetch();
            }
            if (meta.cowbird.next == COWBIRD_NOTHING && meta.cowbird.phase == COWBIRD_TICK) {
                count_turns();
                if (meta.cowbird.refusal != 0) {
                    if (meta.cowbird.quiet == 0) {
                        meta.cowbird.next = COWBIRD_RED;
                    }
                } else if (meta.cowbird.quiet == 0 || meta.cowbird.late == 1) {
                    // Every other turn, and while a probe is in flight, guesses: reads the next entry itself.
                    bool may_guess = meta.cowbird.late == 0 && meta.cowbird.busy == 1 &&
                        meta.cowbird.taken < meta.cowbird.head + COWBIRD_WINDOW;
                    if (!(may_guess && meta.cowbird.odd == 1)) {
                        probe();
                    }
                    if (may_guess && meta.cowbird.next == COWBIRD_NOTHING) {
                        meta.cowbird.next     = COWBIRD_ENTRY;
                        meta.cowbird.guesses  = 1;
                        meta.cowbird.position = meta.cowbird.taken;
                    }
                }
            }
            if (meta.cowbird.next == COWBIRD_NOTHING) {
                meta.drop = DROP_COWBIRD_NOTHING_TO_DO;
                return;
            }
            if (meta.cowbird.next == COWBIRD_RED) {
                write_red();
            } else if (meta.cowbird.next == COWBIRD_ENTRY) {
                read(meta.cowbird.set + COWBIRD_ENTRIES_AT +
                    ((meta.cowbird.position & (meta.cowbird.entries - 1)) << 5),
                    meta.cowbird.set_key, (bit<32>) (meta.cowbird.guesses == 1 ? COWBIRD_GUESS_BYTES : COWBIRD_ENTRY_BYTES));
                meta.cowbird.count = meta.cowbird.position[23:0];
            } else {
                read(meta.cowbird.set, meta.cowbird.set_key, (bit<32>) COWBIRD_TAIL_BYTES);
            }
        }

        if (peers.apply().miss) {
            meta.drop = DROP_COWBIRD_NO_INSTANCE;
            return;
        }
        complete_headers();
        hdr.cowbird_aeth.setInvalid();
        if (!is_data) {
            hdr.cowbird_tail.setInvalid();
            hdr.cowbird_entry.setInvalid();
        }
        sent.count(meta.cowbird.instance << 3 | (bit<32>) meta.cowbird.next);
        if (meta.cowbird.next == COWBIRD_PROBE || meta.cowbird.guesses == 1) {
            standard_metadata.priority = COWBIRD_CLASS_PROBE;
        }
        standard_metadata.egress_spec = meta.cowbird.port;
        return;
    }
}

control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets_and_bytes) drops;

    // Unless the controller configures a port's meter, everything is green.
    meter(PORT_COUNT, MeterType.bytes) best_effort_meter;
    Cowbird() cowbird;

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
        meta.drop                  = DROP_NONE;
        if (hdr.cowbird_bth.isValid()) {
            cowbird.apply(hdr, meta, standard_metadata);
            if (meta.drop != DROP_NONE) {
                drop(meta.drop);
            }
            return;
        }

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

@pkginfo(name="cowbird", version="0.1.0")
V1Switch(
    RackParser(),
    RackVerifyChecksum(),
    RackIngress(),
    RackEgress(),
    RackComputeChecksum(),
    RackDeparser()
) main;
