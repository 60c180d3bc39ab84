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
#include <tna.p4>

typedef bit<9> port_t;
typedef bit<48> mac_addr_t;

const port_t  CPU_PORT   = 510;
const bit<32> PORT_COUNT = 512; // one cell for each value of a port_t
const bit<16> RACK_GROUP = 1;   // multicast group of all host ports

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_IPV4 = 0x0800;

// Queues, served in strict order, 7 first.
const QueueId_t COWBIRD_CLASS_PROBE  = 0;
const QueueId_t PRIORITY_BEST_EFFORT = 1;

// Why a frame was dropped: index into the counter `drops`.
const bit<8>  DROP_MALFORMED                    = 0;   // cut short within a header
const bit<8>  DROP_SPOOFED                      = 1;   // source address is not the port's own host's
const bit<8>  DROP_UNKNOWN_DESTINATION          = 2;   // no host has this address
const bit<8>  DROP_SAME_PORT                    = 3;   // the destination is the sender
const bit<8>  DROP_BEST_EFFORT_METER            = 4;   // more best effort than the port may send
const bit<8>  DROP_COWBIRD_BAD_FRAME            = 5;   // for the engine, but a header is missing or lengths don't agree
const bit<8>  DROP_COWBIRD_UNKNOWN_PAIR         = 6;   // no queue pair of the engine, or not from its other end
const bit<8>  DROP_COWBIRD_NO_INSTANCE          = 7;   // of a thread that is served no more
const bit<8>  DROP_COWBIRD_BAD_OPCODE           = 8;   // not what its queue pair is for
const bit<8>  DROP_COWBIRD_BAD_DATA             = 9;   // what was read is not as long as what was asked for
const bit<8>  DROP_COWBIRD_STALE                = 10;  // not the next one of its queue pair
const bit<8>  DROP_COWBIRD_GAP                  = 11;  // says that a packet before was lost
const bit<8>  DROP_COWBIRD_WAITS                = 12;  // an entry that is asked for again, as it has to wait for others
const bit<8>  DROP_COWBIRD_CORRUPT              = 13;  // a thread has ruined its rings: its red block says how
const bit<8>  DROP_COWBIRD_NOTHING_TO_DO        = 14;  // a turn or an answer, and nothing to ask for next
const bit<8>  DROP_COWBIRD_MANAGEMENT_FROM_HOST = 15;  // management from a port other than the controller's
const bit<8>  DROP_COWBIRD_BAD_INDEX            = 16;  // management of an instance that doesn't exist
const bit<32> DROP_REASONS                      = 17;  // how many there are
const bit<8>  DROP_NONE                         = 255; // it is not dropped

const bit<8> SENT = 0xFE; // the mark of frames that egress completes

// Time is the ingress timestamp's lowest 32 bits, in nanoseconds.
typedef bit<32> time_t;

const ResubmitType_t RESUBMIT = 1; // of frames that make another pass

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

// The controller's frames on their way back, beside the phases.
const bit<8> COWBIRD_LOOK = 9;
const bit<8> COWBIRD_SET  = 10;

// Kinds of frames, judged without state. DATA is set in those that carry read data.
const bit<8> DATA          = 16;
const bit<8> FRAME_BAD     = 0;  // lengths don't agree, or a header is missing
const bit<8> FRAME_OTHER   = 2;  // whole, but of no use
const bit<8> FRAME_ACK     = 3;
const bit<8> FRAME_GAP     = 4;
const bit<8> FRAME_REFUSAL = 5;
const bit<8> FRAME_TICK    = 6;
const bit<8> FRAME_LOOK    = 7;
const bit<8> FRAME_SET     = 8;
const bit<8> FRAME_BEYOND  = 9;  // management of an instance that doesn't exist
const bit<8> FRAME_FIRST   = 16;
const bit<8> FRAME_MIDDLE  = 17;
const bit<8> FRAME_LAST    = 18;
const bit<8> FRAME_ONLY    = 19;
const bit<8> FRAME_TAIL    = 20; // ONLY, as long as an answer to a probe
const bit<8> FRAME_ENTRY   = 21;

// The engine's operation on a frame.
const bit<8> DOES_TICK    = 1;
const bit<8> DOES_PROBE   = 2;
const bit<8> DOES_ENTRY   = 3;
const bit<8> DOES_DATA    = 4;
const bit<8> DOES_ACK     = 5;
const bit<8> DOES_RED     = 6;
const bit<8> DOES_GAP     = 7;
const bit<8> DOES_REFUSAL = 8;
const bit<8> DOES_LOOK    = 9;
const bit<8> DOES_SET     = 10;
const bit<8> DOES_AGAIN   = 11; // a turn or an acknowledgement in its second pass
const bit<8> DOES_BAD     = 12; // refused

// Outcome of an entry.
const bit<8> COWBIRD_STALE = 0; // it is not the next one
const bit<8> COWBIRD_TAKEN = 1;
const bit<8> COWBIRD_WAITS = 2; // requests in flight have to complete first

// Reason of refusal: none yet.
const bit<8> COWBIRD_SOUND = 0;

// Kinds of requests, which are the sides of an instance.
const bit<8> KIND_READ  = 0;
const bit<8> KIND_WRITE = 1;

// The tail that a probe finds, compared with the one before.
const bit<8> TAIL_MOVED = 1;
const bit<8> TAIL_WRONG = 2; // it went back

// Headers behind the base header.
const bit<8> FORM_DATA       = 0; // none
const bit<8> FORM_READ       = 1; // the RDMA header
const bit<8> FORM_RED        = 2; // that and a red block
const bit<8> FORM_MANAGEMENT = 3;
const bit<8> FORM_GUESS      = 4; // the RDMA header, for an entry that may not be there

const bit<8>  ROCE_READ_MIDDLE  = 14;
const bit<8>  ROCE_WRITE_MIDDLE = 7;
const bit<8>  ROCE_WRITE_LAST   = 8;
const bit<32> ROCE_MTU_BYTES    = 1024;
const bit<16> NOT_SHORT         = 0xFC03; // no bit of it is in the length of whole words below an MTU
const bit<16> IPV4_BYTES        = 20;
const bit<32> COWBIRD_MAC_HIGH  = 0x02C0B1D0;
const bit<16> COWBIRD_MAC_LOW   = 0x0001;

// Numbers of entries, requests and packets have 24 bits, and stand in the upper bits of words, so that they wrap as words do.
const bit<32> COWBIRD_ONE  = 0x100;
const bit<32> COWBIRD_MOST = 16 << 8;
const bit<32> COWBIRD_FAR  = 0x40000000; // added to `fetched` while the next entry waits

// The highest two bits of the low part of a number.
const bit<32> COWBIRD_TOPS = 0xC0;

// Bytes that go with a frame until egress completes it; the device also counts the FCS.
const bit<16> CARRIED              = 24;
const bit<16> CARRIED_WITH_FCS     = 28;
const bit<16> RED_CARRIED          = 1;
const bit<16> RED_CARRIED_WITH_FCS = 5;

// Signs of differences, and lengths beyond all.
const bit<24> BEHIND  = 0x800000;
const bit<32> HUGE    = 0x80000000;
const bit<33> OUTSIDE = 0x100000000;

// Bits that turns since the tail moved do not have while the instance is at work: all from COWBIRD_BUSY up, and of odd turns.
const bit<16> AT_WORK     = 0xFFC0;
const bit<16> AT_WORK_ODD = 0xFFC1;

typedef bit<6> cowbird_instance_t;
typedef bit<9> cowbird_sent_t;
typedef bit<7> cowbird_side_t;
typedef bit<11> cowbird_end_t;
typedef bit<12> cowbird_slot_t;

struct cowbird_told_t {
    bit<32> told; // the head in a red block
    bit<32> busy; // whether that block is in flight
}

struct cowbird_packets_t {
    bit<32> passed; // packets of read data that have passed, in order
    bit<32> asked;  // packets of all requests that have started
}

struct cowbird_high_t {
    bit<32> top; // the highest two bits of the low part, when it was last seen
    bit<32> high;
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

// Precedes a frame that egress completes. Port numbers never begin with its mark.
header sent_t {
    bit<8> mark;
    bit<8> phase; // what it is
    bit<8> instance;
    bit<8> form;  // which headers it has
}

// A number as registers have it: in the upper bits of a word. Behind `sent_t` is the one that egress needs: packets of its
// queue pair before the frame.
header cowbird_number_t {
    bit<32> word;
}

// Contents of a red block or a reply.
header cowbird_telling_t {
    bit<32> head;  // entries that are done; of an entry: whether it is the first of these
    bit<32> acked; // and what the thread knows of them
    bit<32> reads; // requests that are done
    bit<32> writes;
    bit<32> response_end;
    bit<32> request_end;
    bit<8>  refusal;
}

// The same as egress sees it: numbers as they stand in what leaves.
header cowbird_telling_parts_t {
    bit<24> head;
    bit<8>  head_0;
    bit<24> acked;
    bit<8>  acked_0;
    bit<24> reads;
    bit<8>  reads_0;
    bit<24> writes;
    bit<8>  writes_0;
    bit<32> response_end;
    bit<32> request_end;
    bit<8>  refusal;
}

// Management and red block in the parts that egress puts together.
header cowbird_answer_t {
    bit<32> instance;
    bit<8>  side;
    bit<24> reserved;
    bit<8>  done_top;
    bit<32> done_high;
    bit<24> done;
    bit<32> end_high;
    bit<32> end;
    bit<8>  head_top;
    bit<32> head_high;
    bit<24> head;
}

header cowbird_block_t {
    bit<8>  head_top;
    bit<32> head_high;
    bit<24> head;
    bit<32> request_high;
    bit<32> request;
    bit<32> response_high;
    bit<32> response;
    bit<8>  writes_top;
    bit<32> writes_high;
    bit<24> writes;
    bit<8>  reads_top;
    bit<32> reads_high;
    bit<24> reads;
    bit<56> refusal_0;
    bit<8>  refusal;
}

struct headers_t {
    sent_t               sent;
    cowbird_number_t     cowbird_count; // packets of the queue pair before; later, up to where entries may be asked for
    cowbird_number_t     cowbird_fetched;
    cowbird_number_t     cowbird_taken;
    cowbird_number_t     cowbird_probes;
    cowbird_number_t     cowbird_reds;  // red blocks before
    cowbird_number_t     cowbird_number;
    cowbird_number_t     cowbird_packets;
    cowbird_telling_t    cowbird_telling;
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
    // Words that are added or compared have to be in one group of 16 containers, so a value that is used once is overwritten: the
    // sentence of such a field has both meanings.
    bit<8>  frame;     // kind of the frame, judged without state
    bit<8>  phase;     // what its queue pair is for
    bit<8>  does;      // the engine's operation
    bit<8>  next;      // what it becomes; 0: nothing
    bit<8>  instance;
    bit<8>  served;    // whether the controller has the engine serve the instance
    bit<16> begin;     // of a turn: the first instance that shares it
    bit<16> last;      // the instance behind those that share the turns
    bit<16> bytes;     // of payload, with padding
    bit<16> framing;   // bytes of IPv4's header
    bit<16> carried;   // bytes of payload, without padding; of an entry: in its last packet
    bit<8>  kind;      // of request: KIND_READ, KIND_WRITE
    bit<8>  odd;       // the entry is of no kind
    bit<8>  form;      // which headers data leaves with
    bit<8>  acks;      // side of an acknowledgement, in the lowest bit
    bit<8>  flags;     // that the first pass left
    bit<32> busy;      // whether a red block is in flight
    bit<8>  more;      // whether there is an entry behind the head
    bit<16> misnamed;  // what differs between an entry's region and the one in its id
    bit<32> base;      // sequence number of the queue pair's first packet
    bit<32> msn;       // messages that the frame acknowledges
    bit<32> news;      // requests that it reports; where the controller sets an instance: its head
    bit<32> told;      // the head in the last red block, beyond what is done; later, entries begun beyond that
    bit<8>  sends_red; // whether a red block has to be sent
    bit<32> mine;      // the entry as the next one, of its kind; later, as it stands in `fetched` while it waits
    bit<32> id;        // number of the request
    bit<32> tail;      // entries that the thread has written
    bit<32> unseen;    // entries up to the tail; later, from the limit to it
    bit<32> entries;   // of the instance's ring
    bit<32> behind;    // packets of the side up to the request's end
    bit<32> tagged;    // the instance's bits of `cowbird_behind`
    bit<64> remote;    // where the request's data is in its region
    bit<64> local;     // and in the thread's memory
    bit<32> pool_key;  // the region: its key, where it is, its bytes; later, those from where the data begins
    bit<64> pool;
    bit<64> pool_bytes;
    bit<32> rest;      // bytes of the region behind the data
    bit<8>  known;     // whether the instance has the region
    bit<32> ring;      // the ring's bytes, and where it is
    bit<32> ring_at;
    bit<32> half;      // half of it, less what the entry asks for
    bit<32> mask;      // its bytes less a word
    bit<32> offset;    // of the data in it
    bit<32> end;       // of the data in it
    bit<32> left;      // where data before has to end
    bit<32> fits;      // what is left of the ring
    bit<32> lap;       // position at which the ring began; later, of the data's end
    bit<8>  outcome;   // of taking an entry
    bit<8>  passed;    // whether data is the next packet
    bit<8>  right;     // whether data begins where it should
    bit<8>  bad;       // what is wrong with an entry or a tail
    bit<8>  seen;      // what a probe finds of the tail
    bit<8>  late;      // whether nothing has gone on for too long
    bit<8>  again;     // whether the instance starts again
    bit<16> quiet;     // turns since the tail moved
    bit<8>  is_last;   // the packet is its request's last one
    bit<8>  is_first;  // its first one
    bit<8>  fills;     // and as long as it has to be
}

struct metadata_t {
    cowbird_metadata_t cowbird;
    bit<8>             drop;       // why the frame is dropped
    bit<1>             steered;    // whether it goes where the controller says, or back to it
    bit<8>             known;      // whether its destination is known; a byte, so that it may change beside the next one
    port_t             known_port; // the port of its destination, wherever the frame goes
    bit<8>             accepted;   // whether its source may send it
    bit<8>             pass;       // what the pass before left for this one; 0 in the first
}

// Precedes a frame that makes another pass.
header next_pass_t {
    bit<32> cowbird_behind; // packets of its side's requests that are done; in the lowest byte, the pass: its instance
    bit<32> cowbird_end;    // where their data ends; in the lowest bits, the side, and whether a red block has to be sent
}

// A frame as egress parses it.
struct egress_headers_t {
    sent_t                  sent;
    cowbird_number_t        cowbird_count;
    cowbird_telling_parts_t cowbird_telling;
    cowbird_answer_t        cowbird_answer;
    cowbird_block_t         cowbird_block;
    packet_in_t             packet_in;
    ethernet_t              ethernet;
    vlan_t                  vlan;
    ipv4_t                  cowbird_ipv4;
    udp_t                   cowbird_udp;
    roce_bth_t              cowbird_bth;
    roce_aeth_t             cowbird_aeth;
    roce_reth_t             cowbird_reth;
    cowbird_management_t    cowbird_management;
    cowbird_red_t           cowbird_red;
    cowbird_entry_t         cowbird_entry;
    cowbird_tail_t          cowbird_tail;
}

// The same of egress.
struct cowbird_egress_metadata_t {
    bit<32> psn;
    bit<64> set;
    bit<64> ring;
    bit<32> key;
    bit<32> place;
    bit<32> mask;
    bit<16> room;
    // The highest bits of the low parts of what is told.
    bit<8>  head;
    bit<8>  reads;
    bit<8>  writes;
    bit<8>  response;
    bit<8>  request;
}

struct egress_metadata_t {
    cowbird_egress_metadata_t cowbird;
}

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        meta.drop       = DROP_NONE;
        meta.steered    = 0;
        meta.known      = 0;
        meta.known_port = 0;
        meta.accepted   = 0;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = 0;
        meta.cowbird.frame         = 0;
        meta.cowbird.phase         = 0;
        meta.cowbird.does          = 0;
        meta.cowbird.next          = 0;
        meta.cowbird.instance      = 0;
        meta.cowbird.served        = 0;
        meta.cowbird.last          = 0;
        meta.cowbird.bytes         = 0;
        meta.cowbird.framing       = 0;
        meta.cowbird.carried       = 0;
        meta.cowbird.kind          = 0;
        meta.cowbird.odd           = 0;
        meta.cowbird.form          = 0;
        meta.cowbird.acks          = 0;
        meta.cowbird.flags         = 0;
        meta.cowbird.busy          = 0;
        meta.cowbird.more          = 0;
        meta.cowbird.misnamed      = 0;
        meta.cowbird.base          = 0;
        meta.cowbird.msn           = 0;
        meta.cowbird.news          = 0;
        meta.cowbird.told          = 0;
        meta.cowbird.sends_red     = 0;
        meta.cowbird.mine          = 0;
        meta.cowbird.id            = 0;
        meta.cowbird.tail          = 0;
        meta.cowbird.unseen        = 0;
        meta.cowbird.entries       = 0;
        meta.cowbird.behind        = 0;
        meta.cowbird.tagged        = 0;
        meta.cowbird.remote        = 0;
        meta.cowbird.local         = 0;
        meta.cowbird.pool_key      = 0;
        meta.cowbird.pool          = 0;
        meta.cowbird.pool_bytes    = 0;
        meta.cowbird.rest          = 0;
        meta.cowbird.known         = 0;
        meta.cowbird.ring          = 0;
        meta.cowbird.ring_at       = 0;
        meta.cowbird.half          = 0;
        meta.cowbird.mask          = 0;
        meta.cowbird.offset        = 0;
        meta.cowbird.end           = 0;
        meta.cowbird.left          = 0;
        meta.cowbird.fits          = 0;
        meta.cowbird.lap           = 0;
        meta.cowbird.outcome       = 0;
        meta.cowbird.passed        = 0;
        meta.cowbird.right         = 0;
        meta.cowbird.bad           = 0;
        meta.cowbird.seen          = 0;
        meta.cowbird.late          = 0;
        meta.cowbird.again         = 0;
        meta.cowbird.quiet         = 0;
        meta.cowbird.is_last       = 0;
        meta.cowbird.is_first      = 0;
        meta.cowbird.fills         = 0;
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
        meta.pass           = next_pass.cowbird_behind[7:0];
        meta.cowbird.behind = next_pass.cowbird_behind;
        meta.cowbird.lap    = next_pass.cowbird_end;
        meta.cowbird.flags  = next_pass.cowbird_end[7:0];
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
        // Before it is read: a parser keeps few bytes of what it has read.
        transition select(packet.lookahead<bit<32>>()) {
            COWBIRD_MAC_HIGH : parse_cowbird_low;
            default          : parse_header;
        }
    }

    state parse_header {
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
        transition accept;
    }

    state parse_cowbird_low {
        transition select(packet.lookahead<bit<48>>()[15:0]) {
            COWBIRD_MAC_LOW : parse_cowbird_own;
            default         : parse_header;
        }
    }

    state parse_cowbird_own {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            ETHERTYPE_VLAN : parse_cowbird_tag;
            ETHERTYPE_IPV4 : parse_cowbird_ipv4;
            default        : accept;
        }
    }

    state parse_cowbird_tag {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.etherType) {
            ETHERTYPE_IPV4 : parse_cowbird_ipv4;
            default        : accept;
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

    // A frame is whole if its lengths agree and its headers are present. Egress checks its real length.
    state parse_cowbird_bth {
        // Candidates for the frame's number; at most one stays valid after ingress.
        hdr.cowbird_count.setValid();
        hdr.cowbird_fetched.setValid();
        hdr.cowbird_taken.setValid();
        hdr.cowbird_probes.setValid();
        hdr.cowbird_reds.setValid();
        hdr.cowbird_number.setValid();
        hdr.cowbird_packets.setValid();
        hdr.cowbird_telling.setValid();
        hdr.cowbird_telling.refusal = 0;
        hdr.cowbird_fetched.word    = 0;
        // The number is in the lower bits of its word, as are others that the parser gives; `lift` moves them.
        hdr.cowbird_count.word = packet.lookahead<bit<96>>()[31:0];
        packet.extract(hdr.cowbird_bth);
        transition select(hdr.cowbird_bth.opcode, hdr.cowbird_udp.length, hdr.cowbird_bth.pad) {
            (ROCE_READ_FIRST, _, _)   : parse_cowbird_first;
            (ROCE_READ_MIDDLE, _, _)  : parse_cowbird_middle;
            (ROCE_READ_LAST, _, _)    : parse_cowbird_last;
            (ROCE_READ_ONLY, 36, _)   : parse_cowbird_probed;
            (ROCE_READ_ONLY, 60, 0)   : parse_cowbird_fetched;
            (ROCE_READ_ONLY, 60, _)   : parse_cowbird_padded_entry;
            (ROCE_READ_ONLY, 68, 0)   : parse_cowbird_fetched;
            (ROCE_READ_ONLY, 68, _)   : parse_cowbird_padded_entry;
            (ROCE_READ_ONLY, _, _)    : parse_cowbird_only;
            (ROCE_ACKNOWLEDGE, 28, _) : parse_cowbird_acknowledgement;
            (ROCE_ACKNOWLEDGE, _, _)  : parse_cowbird_long;
            (COWBIRD_OP_READ, _, _)   : parse_cowbird_look;
            (COWBIRD_OP_SET, _, _)    : parse_cowbird_set;
            (COWBIRD_OP_TICK, 24, _)  : parse_cowbird_tick;
            (_, 24, _)                : parse_cowbird_other;
            default                   : accept;
        }
    }

    state parse_cowbird_first {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        meta.cowbird.frame = FRAME_FIRST;
        transition accept;
    }

    state parse_cowbird_middle {
        meta.cowbird.frame = FRAME_MIDDLE;
        transition accept;
    }

    state parse_cowbird_last {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        meta.cowbird.frame = FRAME_LAST;
        transition accept;
    }

    state parse_cowbird_only {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        meta.cowbird.frame = FRAME_ONLY;
        transition accept;
    }

    state parse_cowbird_probed {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        packet.extract(hdr.cowbird_tail);
        meta.cowbird.tail = hdr.cowbird_tail.requestTail[31:0];
        transition select(hdr.cowbird_bth.pad) {
            0       : parse_cowbird_tail;
            default : parse_cowbird_padded;
        }
    }

    state parse_cowbird_tail {
        meta.cowbird.frame = FRAME_TAIL;
        transition accept;
    }

    // An entry, and behind one that may not be there a word that says only that.
    state parse_cowbird_fetched {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        transition select(packet.lookahead<bit<80>>()[15:0]) {
            COWBIRD_TYPE_READ  : parse_cowbird_read_entry;
            COWBIRD_TYPE_WRITE : parse_cowbird_write_entry;
            default            : parse_cowbird_odd_entry;
        }
    }

    state parse_cowbird_read_entry {
        packet.extract(hdr.cowbird_entry);
        meta.cowbird.id          = hdr.cowbird_entry.requestId[31:0];
        meta.cowbird.kind        = 0;
        meta.cowbird.odd         = 0;
        meta.cowbird.remote      = hdr.cowbird_entry.reqAddr;
        meta.cowbird.local       = hdr.cowbird_entry.respAddr;
        meta.cowbird.offset      = hdr.cowbird_entry.respAddr[31:0];
        meta.cowbird.carried     = hdr.cowbird_entry.length[15:0];
        hdr.cowbird_packets.word = hdr.cowbird_entry.length;
        meta.cowbird.rest        = hdr.cowbird_entry.length;
        transition select(hdr.cowbird_udp.length) {
            68      : parse_cowbird_entry_tail;
            default : parse_cowbird_entry;
        }
    }

    state parse_cowbird_write_entry {
        packet.extract(hdr.cowbird_entry);
        meta.cowbird.id          = hdr.cowbird_entry.requestId[31:0];
        meta.cowbird.kind        = 1;
        meta.cowbird.odd         = 0;
        meta.cowbird.remote      = hdr.cowbird_entry.respAddr;
        meta.cowbird.local       = hdr.cowbird_entry.reqAddr;
        meta.cowbird.offset      = hdr.cowbird_entry.reqAddr[31:0];
        meta.cowbird.carried     = hdr.cowbird_entry.length[15:0];
        hdr.cowbird_packets.word = hdr.cowbird_entry.length;
        meta.cowbird.rest        = hdr.cowbird_entry.length;
        transition select(hdr.cowbird_udp.length) {
            68      : parse_cowbird_entry_tail;
            default : parse_cowbird_entry;
        }
    }

    state parse_cowbird_odd_entry {
        packet.extract(hdr.cowbird_entry);
        meta.cowbird.id          = hdr.cowbird_entry.requestId[31:0];
        meta.cowbird.kind        = 1;
        meta.cowbird.odd         = 1;
        meta.cowbird.remote      = hdr.cowbird_entry.respAddr;
        meta.cowbird.local       = hdr.cowbird_entry.reqAddr;
        meta.cowbird.offset      = hdr.cowbird_entry.reqAddr[31:0];
        meta.cowbird.carried     = hdr.cowbird_entry.length[15:0];
        hdr.cowbird_packets.word = hdr.cowbird_entry.length;
        meta.cowbird.rest        = hdr.cowbird_entry.length;
        transition select(hdr.cowbird_udp.length) {
            68      : parse_cowbird_entry_tail;
            default : parse_cowbird_entry;
        }
    }

    state parse_cowbird_padded_entry {
        packet.extract(hdr.cowbird_aeth);
        packet.extract(hdr.cowbird_entry);
        transition select(hdr.cowbird_udp.length) {
            68      : parse_cowbird_padded_tail;
            default : parse_cowbird_padded;
        }
    }

    state parse_cowbird_entry_tail {
        packet.extract(hdr.cowbird_tail);
        transition parse_cowbird_entry;
    }

    state parse_cowbird_padded_tail {
        packet.extract(hdr.cowbird_tail);
        transition parse_cowbird_padded;
    }

    state parse_cowbird_entry {
        meta.cowbird.frame = FRAME_ENTRY;
        transition accept;
    }

    state parse_cowbird_padded {
        meta.cowbird.frame = FRAME_ONLY;
        transition accept;
    }

    state parse_cowbird_long {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        transition accept;
    }

    state parse_cowbird_acknowledgement {
        meta.cowbird.msn = packet.lookahead<bit<32>>();
        packet.extract(hdr.cowbird_aeth);
        transition select(hdr.cowbird_bth.pad, hdr.cowbird_aeth.syndrome) {
            (0, 0x00 &&& 0x60) : parse_cowbird_ack;
            (0, 0x60 &&& 0x7F) : parse_cowbird_gap;
            (0, 0x60 &&& 0x60) : parse_cowbird_refusal;
            (0, _)             : parse_cowbird_other;
            default            : accept;
        }
    }

    state parse_cowbird_ack {
        meta.cowbird.frame = FRAME_ACK;
        transition accept;
    }

    state parse_cowbird_gap {
        meta.cowbird.frame = FRAME_GAP;
        transition accept;
    }

    state parse_cowbird_refusal {
        meta.cowbird.frame = FRAME_REFUSAL;
        transition accept;
    }

    state parse_cowbird_tick {
        transition select(hdr.cowbird_bth.pad) {
            0       : parse_cowbird_turn;
            default : accept;
        }
    }

    state parse_cowbird_turn {
        meta.cowbird.frame = FRAME_TICK;
        transition accept;
    }

    state parse_cowbird_other {
        meta.cowbird.frame = FRAME_OTHER;
        transition accept;
    }

    state parse_cowbird_look {
        packet.extract(hdr.cowbird_management);
        meta.cowbird.instance = hdr.cowbird_management.instance[7:0];
        meta.cowbird.acks     = hdr.cowbird_management.side;
        transition select(hdr.cowbird_management.instance) {
            0 .. 63 : parse_cowbird_looks;
            default : parse_cowbird_beyond;
        }
    }

    state parse_cowbird_beyond {
        meta.cowbird.frame = FRAME_BEYOND;
        transition accept;
    }

    state parse_cowbird_looks {
        meta.cowbird.frame = FRAME_LOOK;
        transition accept;
    }

    state parse_cowbird_set {
        packet.extract(hdr.cowbird_management);
        meta.cowbird.id  = hdr.cowbird_management.done[31:0];
        meta.cowbird.end = hdr.cowbird_management.end[31:0];
        // Where others find news: one register takes two values of the frame, not three.
        meta.cowbird.mine     = hdr.cowbird_management.head[31:0];
        meta.cowbird.news     = hdr.cowbird_management.head[31:0];
        meta.cowbird.instance = hdr.cowbird_management.instance[7:0];
        meta.cowbird.acks     = hdr.cowbird_management.side;
        transition select(hdr.cowbird_management.instance) {
            0 .. 63 : parse_cowbird_sets;
            default : parse_cowbird_beyond;
        }
    }

    state parse_cowbird_sets {
        meta.cowbird.frame = FRAME_SET;
        transition accept;
    }
}

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Resubmit(RESUBMIT) resubmit;

    apply {
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<next_pass_t>({ meta.cowbird.behind, meta.cowbird.end });
        }
        packet.emit(hdr.sent);
        packet.emit(hdr.cowbird_count);
        packet.emit(hdr.cowbird_fetched);
        packet.emit(hdr.cowbird_taken);
        packet.emit(hdr.cowbird_probes);
        packet.emit(hdr.cowbird_reds);
        packet.emit(hdr.cowbird_number);
        packet.emit(hdr.cowbird_packets);
        packet.emit(hdr.cowbird_telling);
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

// The engine: each packet that returns from a queue pair becomes the next request. A comment for each stage says what is
// known after it.
control Cowbird(inout headers_t hdr, inout metadata_t meta,
        in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // By instance and phase: packets sent; in the cell of phase 0, restarts.
    Counter<bit<64>, cowbird_sent_t>(COWBIRD_SENT, CounterType_t.PACKETS) sent;

    action pair(bit<8> instance, bit<8> phase, bit<24> first) {
        meta.cowbird.instance = instance;
        meta.cowbird.phase    = phase;
        meta.cowbird.base     = first ++ 8w0;
        meta.cowbird.acks     = phase;
    }

    // Turns of instances from `begin` on, up to the one before `end`: a host's, so that hosts have turns of their own.
    action tick(bit<16> begin, bit<16> end) {
        meta.cowbird.phase    = COWBIRD_TICK;
        meta.cowbird.instance = begin[7:0];
        meta.cowbird.begin    = begin;
        meta.cowbird.last     = end;
    }

    table pairs {
        key = {
            ig_intr_md.ingress_port  : exact @name("port");
            hdr.ethernet.srcAddr     : exact;
            hdr.cowbird_ipv4.srcAddr : exact;
            hdr.cowbird_bth.destQp   : exact;
        }
        actions = {
            pair;
            tick;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    @hidden action handle_as(bit<8> what) {
        meta.cowbird.does = what;
    }

    @hidden action refuse(bit<8> reason) {
        meta.cowbird.does = DOES_BAD;
        meta.drop         = reason;
    }

    @hidden table dispatch {
        key = {
            hdr.packet_out.isValid() : ternary;
            hdr.vlan.isValid()       : ternary;
            meta.pass                : ternary;
            meta.cowbird.phase       : ternary;
            meta.cowbird.frame       : ternary;
            meta.cowbird.framing     : ternary;
            meta.cowbird.bytes       : ternary;
        }
        actions = {
            handle_as;
            refuse;
        }
        const default_action = refuse(DROP_COWBIRD_BAD_FRAME);
        const entries = {
            (true, _, _, _, FRAME_LOOK, _, _)                                        : handle_as(DOES_LOOK);
            (true, _, _, _, FRAME_SET, _, _)                                         : handle_as(DOES_SET);
            (true, _, _, _, FRAME_BEYOND, _, _)                                      : refuse(DROP_COWBIRD_BAD_INDEX);
            (false, _, _, _, FRAME_BEYOND, _, _)                                     : refuse(DROP_COWBIRD_MANAGEMENT_FROM_HOST);
            (false, _, _, _, FRAME_LOOK, _, _)                                       : refuse(DROP_COWBIRD_MANAGEMENT_FROM_HOST);
            (false, _, _, _, FRAME_SET, _, _)                                        : refuse(DROP_COWBIRD_MANAGEMENT_FROM_HOST);
            (_, true, _, _, _, _, _)                                                 : refuse(DROP_COWBIRD_BAD_FRAME);
            (_, _, _, _, FRAME_BAD, _, _)                                            : refuse(DROP_COWBIRD_BAD_FRAME);
            (_, _, _, _, DATA &&& DATA, _, 0)                                        : refuse(DROP_COWBIRD_BAD_FRAME);
            (_, _, _, COWBIRD_PAYLOAD, DATA &&& DATA, IPV4_BYTES, 0 &&& NOT_SHORT)   : handle_as(DOES_DATA);
            (_, _, _, COWBIRD_PAYLOAD, DATA &&& DATA, IPV4_BYTES, ROCE_MTU)          : handle_as(DOES_DATA);
            (_, _, _, COWBIRD_POOL_READ, DATA &&& DATA, IPV4_BYTES, 0 &&& NOT_SHORT) : handle_as(DOES_DATA);
            (_, _, _, COWBIRD_POOL_READ, DATA &&& DATA, IPV4_BYTES, ROCE_MTU)        : handle_as(DOES_DATA);
            (_, _, _, COWBIRD_PROBE, FRAME_TAIL, IPV4_BYTES, _)                      : handle_as(DOES_PROBE);
            (_, _, _, COWBIRD_ENTRY, FRAME_ENTRY, IPV4_BYTES, _)                     : handle_as(DOES_ENTRY);
            (_, _, _, COWBIRD_NOTHING, DATA &&& DATA, IPV4_BYTES, 0 &&& NOT_SHORT)   : refuse(DROP_COWBIRD_UNKNOWN_PAIR);
            (_, _, _, COWBIRD_NOTHING, DATA &&& DATA, IPV4_BYTES, ROCE_MTU)          : refuse(DROP_COWBIRD_UNKNOWN_PAIR);
            (_, _, _, _, DATA &&& DATA, IPV4_BYTES, 0 &&& NOT_SHORT)                 : refuse(DROP_COWBIRD_BAD_OPCODE);
            (_, _, _, _, DATA &&& DATA, IPV4_BYTES, ROCE_MTU)                        : refuse(DROP_COWBIRD_BAD_OPCODE);
            (_, _, _, _, DATA &&& DATA, _, _)                                        : refuse(DROP_COWBIRD_BAD_FRAME);
            (_, _, _, COWBIRD_NOTHING, _, IPV4_BYTES, _)                             : refuse(DROP_COWBIRD_UNKNOWN_PAIR);
            (_, _, _, _, FRAME_GAP, IPV4_BYTES, _)                                   : handle_as(DOES_GAP);
            (_, _, _, _, FRAME_REFUSAL, IPV4_BYTES, _)                               : handle_as(DOES_REFUSAL);
            (_, _, 0, COWBIRD_TICK, FRAME_TICK, IPV4_BYTES, _)                       : handle_as(DOES_TICK);
            (_, _, _, COWBIRD_TICK, FRAME_TICK, IPV4_BYTES, _)                       : handle_as(DOES_AGAIN);
            (_, _, 0, COWBIRD_RESPONSE, FRAME_ACK, IPV4_BYTES, _)                    : handle_as(DOES_ACK);
            (_, _, _, COWBIRD_RESPONSE, FRAME_ACK, IPV4_BYTES, _)                    : handle_as(DOES_AGAIN);
            (_, _, 0, COWBIRD_POOL_WRITE, FRAME_ACK, IPV4_BYTES, _)                  : handle_as(DOES_ACK);
            (_, _, _, COWBIRD_POOL_WRITE, FRAME_ACK, IPV4_BYTES, _)                  : handle_as(DOES_AGAIN);
            (_, _, _, COWBIRD_RED, FRAME_ACK, IPV4_BYTES, _)                         : handle_as(DOES_RED);
            (_, _, _, _, _, IPV4_BYTES, _)                                           : refuse(DROP_COWBIRD_BAD_OPCODE);
        }
        size = 64;
    }

    @hidden action manage() {
        meta.cowbird.kind        = hdr.cowbird_management.side & 1;
        hdr.cowbird_packets.word = 0;
    }

    @hidden action go_on() {
        meta.cowbird.kind        = meta.cowbird.flags & 1;
        meta.cowbird.flags       = meta.cowbird.flags & 2;
        hdr.cowbird_packets.word = meta.cowbird.behind & 0xFFFFFF00;
        meta.cowbird.end         = meta.cowbird.lap;
    }

    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) region_named;

    @hidden action find_name() {
        meta.cowbird.misnamed = region_named.get(hdr.cowbird_entry.requestId[62:47]);
    }

    // Numbers go to the upper bits of their words.
    @hidden action lift() {
        hdr.cowbird_count.word = hdr.cowbird_count.word << 8;
        meta.cowbird.msn       = meta.cowbird.msn << 8;
        meta.cowbird.tail      = meta.cowbird.tail << 8;
        meta.cowbird.id        = meta.cowbird.id << 8;
        meta.cowbird.mine      = meta.cowbird.mine << 8;
        meta.cowbird.news      = meta.cowbird.news << 8;
    }

    @hidden table prepare {
        key = {
            hdr.cowbird_management.isValid() : ternary;
            meta.pass                        : ternary;
            hdr.cowbird_entry.isValid()      : ternary;
        }
        actions = {
            manage;
            go_on;
            find_name;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (true, _, _)    : manage();
            (_,    _, true) : find_name();
            (_,    0, _)    : NoAction();
            (_,    _, _)    : go_on();
        }
        size = 8;
    }

    @hidden action measure_entry() {
        meta.cowbird.misnamed    = meta.cowbird.misnamed ^ hdr.cowbird_entry.regionId;
        meta.cowbird.end         = hdr.cowbird_entry.length + 7;
        hdr.cowbird_packets.word = hdr.cowbird_packets.word + (ROCE_MTU_BYTES - 1);
        meta.cowbird.carried     = meta.cowbird.carried - 1;
    }

    @hidden action measure_data(bit<8> kind, bit<16> pad) {
        meta.cowbird.carried = meta.cowbird.bytes + pad;
        meta.cowbird.kind    = kind;
    }

    @hidden table measure {
        key = {
            meta.cowbird.phase  : ternary;
            hdr.cowbird_bth.pad : ternary;
        }
        actions = {
            measure_entry;
            measure_data;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_ENTRY,     _) : measure_entry();
            (COWBIRD_PAYLOAD,   0) : measure_data(KIND_WRITE, 0x0000);
            (COWBIRD_PAYLOAD,   1) : measure_data(KIND_WRITE, 0xFFFF);
            (COWBIRD_PAYLOAD,   2) : measure_data(KIND_WRITE, 0xFFFE);
            (COWBIRD_PAYLOAD,   3) : measure_data(KIND_WRITE, 0xFFFD);
            (COWBIRD_POOL_READ, 0) : measure_data(KIND_READ, 0x0000);
            (COWBIRD_POOL_READ, 1) : measure_data(KIND_READ, 0xFFFF);
            (COWBIRD_POOL_READ, 2) : measure_data(KIND_READ, 0xFFFE);
            (COWBIRD_POOL_READ, 3) : measure_data(KIND_READ, 0xFFFD);
        }
        size = 16;
    }

    // By the first of some instances of a host: the one that has their next turn.
    // Written by the packet generator's frames; it goes from their last one back to the first.
    Register<bit<16>, cowbird_instance_t>(COWBIRD_INSTANCES) turn;

    RegisterAction<bit<16>, cowbird_instance_t, bit<8>>(turn) take_turn = {
        void apply(inout bit<16> value, out bit<8> result) {
            result = (bit<8>) value;
            if (value + 1 >= meta.cowbird.last || value < meta.cowbird.begin) {
                value = meta.cowbird.begin;
            } else {
                value = value + 1;
            }
        }
    };

    @hidden action do_take_turn() {
        meta.cowbird.instance = take_turn.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_keep_turn() {
        meta.cowbird.instance = meta.pass & 0x3F;
    }

    @hidden table turn_accesses {
        key = {
            meta.cowbird.phase : ternary;
            meta.pass          : ternary;
        }
        actions = {
            do_take_turn;
            do_keep_turn;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_TICK, 0) : do_take_turn();
            (COWBIRD_TICK, _) : do_keep_turn();
        }
        size = 8;
    }

    // By side, the messages that the peer has acknowledged. More news than may be in flight is from another time.
    // Written by acknowledgements, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_side_t>(COWBIRD_SIDES) acknowledged;

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(acknowledged) acknowledge = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (meta.cowbird.msn - value <= COWBIRD_MOST) {
                result = meta.cowbird.msn - value;
                value  = meta.cowbird.msn;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(acknowledged) forget_acknowledged = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = 0;
            result = 0;
        }
    };

    @hidden action do_acknowledge() {
        meta.cowbird.news = acknowledge.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.acks[0:0]);
    }

    @hidden action do_forget_acknowledged() {
        forget_acknowledged.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.acks[0:0]);
    }

    @hidden table acknowledged_accesses {
        key = {
            meta.cowbird.frame       : ternary;
            meta.cowbird.phase       : ternary;
            meta.pass                : ternary;
            meta.cowbird.framing     : ternary;
            hdr.packet_out.isValid() : ternary;
        }
        actions = {
            do_acknowledge;
            do_forget_acknowledged;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (FRAME_SET, _,                  _, _,          true) : do_forget_acknowledged();
            (FRAME_ACK, COWBIRD_RESPONSE,   0, IPV4_BYTES, _)    : do_acknowledge();
            (FRAME_ACK, COWBIRD_POOL_WRITE, 0, IPV4_BYTES, _)    : do_acknowledge();
        }
        size = 8;
    }

    action region(bit<32> key, bit<64> address, bit<64> length) {
        meta.cowbird.pool_key   = key;
        meta.cowbird.pool       = address;
        meta.cowbird.pool_bytes = length;
        meta.cowbird.known      = 1;
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

    // Where a thread's rings are.
    action serve(bit<24> entries) {
        meta.cowbird.entries = entries ++ 8w0;
        meta.cowbird.served  = 1;
    }

    action ring(bit<32> at, bit<32> bytes, bit<32> half, bit<32> mask) {
        meta.cowbird.ring_at = at;
        meta.cowbird.ring    = bytes;
        meta.cowbird.half    = half;
        meta.cowbird.mask    = mask;
    }

    table rings {
        key = {
            meta.cowbird.instance : exact @name("instance");
            meta.cowbird.kind     : exact @name("kind");
        }
        actions = {
            ring;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 128;
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

    // Reads of the instance that are done.
    // Written by acknowledgements of responses, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) reads;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reads) count_reads = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value + meta.cowbird.news;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reads) look_at_reads = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reads) put_reads = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.id;
            result = value;
        }
    };

    @hidden action do_count_reads() {
        hdr.cowbird_telling.reads = count_reads.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_reads() {
        hdr.cowbird_telling.reads = look_at_reads.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_reads() {
        put_reads.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table reads_accesses {
        key = {
            meta.cowbird.does  : ternary;
            meta.cowbird.phase : ternary;
            meta.cowbird.kind  : ternary;
        }
        actions = {
            do_count_reads;
            do_look_at_reads;
            do_put_reads;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,  _,                KIND_READ) : do_put_reads();
            (DOES_ACK,  COWBIRD_RESPONSE, _)         : do_count_reads();
            (DOES_DATA, _,                _)         : NoAction();
            (DOES_SET,  _,                _)         : NoAction();
            (_,         _,                _)         : do_look_at_reads();
        }
        size = 8;
    }

    // Writes of the instance that are done.
    // Written by acknowledgements of the pool, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) writes;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(writes) count_writes = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value + meta.cowbird.news;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(writes) look_at_writes = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(writes) put_writes = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.id;
            result = value;
        }
    };

    @hidden action do_count_writes() {
        hdr.cowbird_telling.writes = count_writes.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_writes() {
        hdr.cowbird_telling.writes = look_at_writes.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_writes() {
        put_writes.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table writes_accesses {
        key = {
            meta.cowbird.does  : ternary;
            meta.cowbird.phase : ternary;
            meta.cowbird.kind  : ternary;
        }
        actions = {
            do_count_writes;
            do_look_at_writes;
            do_put_writes;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,  _,                  KIND_WRITE) : do_put_writes();
            (DOES_ACK,  COWBIRD_POOL_WRITE, _)          : do_count_writes();
            (DOES_DATA, _,                  _)          : NoAction();
            (DOES_SET,  _,                  _)          : NoAction();
            (_,         _,                  _)          : do_look_at_writes();
        }
        size = 8;
    }

    // Entries of the instance that are done: the sum of its reads and writes.
    // Written by acknowledgements, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) head;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(head) count_entries = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value + meta.cowbird.news;
            result = value;
        }
    };

    // Whether an entry is the first that is not done.
    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(head) is_head = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == hdr.cowbird_count.word) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(head) put_head = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.news;
            result = value;
        }
    };

    @hidden action do_count_entries() {
        hdr.cowbird_telling.head = count_entries.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_is_head() {
        hdr.cowbird_telling.head = is_head.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_head() {
        hdr.cowbird_telling.head = put_head.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table head_accesses {
        key = {
            meta.cowbird.does : ternary;
        }
        actions = {
            do_count_entries;
            do_is_head;
            do_put_head;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            DOES_SET   : do_put_head();
            DOES_ENTRY : do_is_head();
            DOES_DATA  : NoAction();
            DOES_BAD   : NoAction();
            _          : do_count_entries();
        }
        size = 8;
    }

    // Red blocks that have arrived. One is in flight at a time, and this is its number.
    // Written by acknowledgements of red blocks, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) reds;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reds) count_reds = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == hdr.cowbird_count.word) {
                value  = value + COWBIRD_ONE;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reds) look_at_reds = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(reds) forget_reds = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = 0;
            result = 0;
        }
    };

    @hidden action do_count_reds() {
        hdr.cowbird_reds.word = count_reds.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_reds() {
        hdr.cowbird_reds.word = look_at_reds.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_forget_reds() {
        forget_reds.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table reds_accesses {
        key = {
            meta.cowbird.does : ternary;
        }
        actions = {
            do_count_reds;
            do_look_at_reds;
            do_forget_reds;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            DOES_SET   : do_forget_reds();
            DOES_RED   : do_count_reds();
            DOES_DATA  : NoAction();
            DOES_ENTRY : NoAction();
            _          : do_look_at_reds();
        }
        size = 8;
    }

    // The head in the last red block, and whether that block is in flight.
    // Written by acknowledgements, the controller; it wraps as the head does.
    Register<cowbird_told_t, cowbird_instance_t>(COWBIRD_INSTANCES) told;

    // Sends a red block if there is new progress and no red block is in flight.
    RegisterAction<cowbird_told_t, cowbird_instance_t, bit<8>>(told) tell = {
        void apply(inout cowbird_told_t value, out bit<8> result) {
            if (value.busy == 0 && value.told != hdr.cowbird_telling.head) {
                value.told = hdr.cowbird_telling.head;
                value.busy = 1;
                result     = 1;
            } else {
                result = 0;
            }
        }
    };

    // A red block has arrived: the next one follows if there is new progress.
    RegisterAction<cowbird_told_t, cowbird_instance_t, bit<32>>(told) tell_next = {
        void apply(inout cowbird_told_t value, out bit<32> result) {
            result = value.told;
            if (value.told == hdr.cowbird_telling.head) {
                value.busy = 0;
            }
            value.told = hdr.cowbird_telling.head;
        }
    };

    RegisterAction<cowbird_told_t, cowbird_instance_t, bit<32>>(told) look_at_told = {
        void apply(inout cowbird_told_t value, out bit<32> result) {
            result = (bit<32>) value.busy;
        }
    };

    RegisterAction<cowbird_told_t, cowbird_instance_t, bit<32>>(told) put_told = {
        void apply(inout cowbird_told_t value, out bit<32> result) {
            value.told = meta.cowbird.news;
            value.busy = 0;
            result     = value.told;
        }
    };

    @hidden action do_tell() {
        meta.cowbird.sends_red = tell.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_tell_next() {
        meta.cowbird.told = tell_next.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_told() {
        meta.cowbird.busy = look_at_told.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_told() {
        meta.cowbird.told = put_told.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table told_accesses {
        key = {
            meta.cowbird.does       : ternary;
            meta.cowbird.news[15:8] : ternary @name("news");
            hdr.cowbird_reds.word   : ternary;
        }
        actions = {
            do_tell;
            do_tell_next;
            do_look_at_told;
            do_put_told;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,  _, _) : do_put_told();
            (DOES_ACK,  0, _) : NoAction();
            (DOES_ACK,  _, _) : do_tell();
            (DOES_RED,  _, 1) : do_tell_next();
            (DOES_TICK, _, _) : do_look_at_told();
        }
        size = 8;
    }

    // Probes that were answered.
    // Written by answers to probes, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) answered;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(answered) answer = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == hdr.cowbird_count.word) {
                value  = value + COWBIRD_ONE;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(answered) look_at_answered = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(answered) forget_answered = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = 0;
            result = 0;
        }
    };

    @hidden action do_answer() {
        hdr.cowbird_probes.word = answer.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_answered() {
        hdr.cowbird_probes.word = look_at_answered.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_forget_answered() {
        forget_answered.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table answered_accesses {
        key = {
            meta.cowbird.does : ternary;
        }
        actions = {
            do_answer;
            do_look_at_answered;
            do_forget_answered;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            DOES_SET   : do_forget_answered();
            DOES_PROBE : do_answer();
            DOES_TICK  : do_look_at_answered();
            DOES_AGAIN : do_look_at_answered();
        }
        size = 8;
    }

    // The head that the thread knows: the one of the last red block that has arrived.
    // Written by acknowledgements of red blocks, the controller; it wraps as the head does.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) acked;

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(acked) put_acked = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.told;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(acked) look_at_acked = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(acked) is_acked = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (value == hdr.cowbird_count.word) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_put_acked() {
        hdr.cowbird_telling.acked = put_acked.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_acked() {
        hdr.cowbird_telling.acked = look_at_acked.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_is_acked() {
        hdr.cowbird_telling.acked = is_acked.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table acked_accesses {
        key = {
            meta.cowbird.does     : ternary;
            hdr.cowbird_reds.word : ternary;
        }
        actions = {
            do_put_acked;
            do_look_at_acked;
            do_is_acked;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _) : do_put_acked();
            (DOES_RED,   1) : do_put_acked();
            (DOES_ENTRY, _) : do_is_acked();
            (DOES_DATA,  _) : NoAction();
            (_,          _) : do_look_at_acked();
        }
        size = 8;
    }

    // Entries that the thread has written, as probes saw it. It never goes back.
    // Written by answers to probes, the controller; it wraps at 2^24.
    Register<int<32>, cowbird_instance_t>(COWBIRD_INSTANCES) tail;

    RegisterAction<int<32>, cowbird_instance_t, bit<8>>(tail) see_tail = {
        void apply(inout int<32> value, out bit<8> result) {
            if (value - (int<32>) meta.cowbird.tail > 0) {
                result = TAIL_WRONG;
            } else if (value != (int<32>) meta.cowbird.tail) {
                value  = (int<32>) meta.cowbird.tail;
                result = TAIL_MOVED;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(tail) look_at_tail = {
        void apply(inout int<32> value, out bit<32> result) {
            result = (bit<32>) value;
        }
    };

    // The last entry may be done before the tail says that it is there.
    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(tail) put_tail = {
        void apply(inout int<32> value, out bit<32> result) {
            value  = (int<32>) meta.cowbird.news - (int<32>) COWBIRD_ONE;
            result = 0;
        }
    };

    @hidden action do_see_tail() {
        meta.cowbird.seen = see_tail.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_tail() {
        meta.cowbird.tail = look_at_tail.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_tail() {
        put_tail.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table tail_accesses {
        key = {
            meta.cowbird.does          : ternary;
            hdr.cowbird_probes.word    : ternary;
            meta.cowbird.unseen[31:31] : ternary @name("unseen");
        }
        actions = {
            do_see_tail;
            do_look_at_tail;
            do_put_tail;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _, _) : do_put_tail();
            (DOES_PROBE, 1, 0) : do_see_tail();
            (DOES_PROBE, _, _) : NoAction();
            (DOES_DATA,  _, _) : NoAction();
            (DOES_ENTRY, _, _) : NoAction();
            (_,          _, _) : do_look_at_tail();
        }
        size = 8;
    }

    // Faults of an entry; its place in the ring is checked later.
    @hidden action accuse(bit<8> reason) {
        meta.cowbird.bad = reason;
    }

    @hidden table entry_faults {
        key = {
            meta.cowbird.odd                   : ternary;
            meta.cowbird.known                 : ternary;
            hdr.cowbird_entry.length           : ternary;
            meta.cowbird.half[31:31]           : ternary @name("half");
            meta.cowbird.remote[63:63]         : ternary @name("remote");
            meta.cowbird.pool_bytes[63:31]     : ternary @name("room");
            meta.cowbird.rest[31:31]           : ternary @name("rest");
            meta.cowbird.misnamed              : ternary;
            hdr.cowbird_entry.requestId[63:63] : ternary @name("asks");
            meta.cowbird.kind                  : ternary;
            hdr.cowbird_number.word            : ternary;
        }
        actions = {
            accuse;
        }
        const default_action = accuse(COWBIRD_CORRUPT_ID);
        const entries = {
            (1, _, _,             _, _, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_TYPE);
            (_, 0, _,             _, _, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_REGION);
            (_, _, 0,             _, _, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_LENGTH);
            (_, _, HUGE &&& HUGE, _, _, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_LENGTH);
            (_, _, _,             1, _, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_LENGTH);
            (_, _, _,             _, 1, _,                   _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_BOUNDS);
            (_, _, _,             _, _, OUTSIDE &&& OUTSIDE, _, _, _, _,          _) : accuse(COWBIRD_CORRUPT_BOUNDS);
            (_, _, _,             _, _, 0,                   1, _, _, _,          _) : accuse(COWBIRD_CORRUPT_BOUNDS);
            (_, _, _,             _, _, _,                   _, 0, 0, KIND_READ,  0) : accuse(0);
            (_, _, _,             _, _, _,                   _, 0, 1, KIND_WRITE, 0) : accuse(0);
        }
        size = 16;
    }

    // The next entry to start, and in the lowest bit whether reads or writes are in flight.
    // Written by entries, frames of an instance that starts again, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) taken;

    // Nothing is in flight: an entry of either kind starts.
    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(taken) take_first = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value - hdr.cowbird_count.word < 2) {
                value  = meta.cowbird.mine + COWBIRD_ONE;
                result = COWBIRD_TAKEN;
            } else {
                result = COWBIRD_STALE;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(taken) take_next = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value == meta.cowbird.mine) {
                value  = value + COWBIRD_ONE;
                result = COWBIRD_TAKEN;
            } else if (value - hdr.cowbird_count.word < 2) {
                result = COWBIRD_WAITS;
            } else {
                result = COWBIRD_STALE;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(taken) look_at_taken = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<32>>(taken) put_taken = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.mine;
            result = value;
        }
    };

    @hidden action do_take_first() {
        meta.cowbird.outcome = take_first.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_take_next() {
        meta.cowbird.outcome = take_next.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_taken() {
        hdr.cowbird_taken.word = look_at_taken.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_taken() {
        put_taken.execute(meta.cowbird.instance[5:0]);
    }

    // A guessed entry counts only if it has the expected id.
    @hidden table taken_accesses {
        key = {
            meta.cowbird.does                  : ternary;
            meta.cowbird.kind                  : ternary;
            hdr.cowbird_telling.head           : ternary;
            hdr.cowbird_telling.acked          : ternary;
            hdr.cowbird_tail.isValid()         : ternary;
            meta.cowbird.misnamed              : ternary;
            hdr.cowbird_number.word            : ternary;
            hdr.cowbird_entry.requestId[63:63] : ternary @name("asks");
        }
        actions = {
            do_take_first;
            do_take_next;
            do_look_at_taken;
            do_put_taken;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,          _, _, _,     _, _, _) : do_put_taken();
            (DOES_AGAIN, _,          _, _, _,     _, _, _) : do_put_taken();
            (DOES_ENTRY, KIND_READ,  1, _, false, _, _, _) : do_take_first();
            (DOES_ENTRY, KIND_WRITE, _, 1, false, _, _, _) : do_take_first();
            (DOES_ENTRY, _,          _, _, false, _, _, _) : do_take_next();
            (DOES_ENTRY, KIND_READ,  1, _, _,     0, 0, 0) : do_take_first();
            (DOES_ENTRY, KIND_WRITE, _, 1, _,     0, 0, 1) : do_take_first();
            (DOES_ENTRY, KIND_READ,  _, _, _,     0, 0, 0) : do_take_next();
            (DOES_ENTRY, KIND_WRITE, _, _, _,     0, 0, 1) : do_take_next();
            (DOES_TICK,  _,          _, _, _,     _, _, _) : do_look_at_taken();
            (DOES_ACK,   _,          _, _, _,     _, _, _) : do_look_at_taken();
        }
        size = 16;
    }

    // By side: packets of read data that have passed, and packets of all requests that have started.
    // Written by data and entries, frames of an instance that starts again, the controller; it wraps at 2^24 in both words.
    Register<cowbird_packets_t, cowbird_side_t>(COWBIRD_SIDES) packets;

    // Reserves sequence numbers for all packets that a READ returns.
    RegisterAction<cowbird_packets_t, cowbird_side_t, bit<32>>(packets) ask = {
        void apply(inout cowbird_packets_t value, out bit<32> result) {
            value.asked = value.asked + hdr.cowbird_packets.word;
            result      = value.asked;
        }
    };

    // Accepts the next packet of read data if a request in flight expects it.
    RegisterAction<cowbird_packets_t, cowbird_side_t, bit<8>>(packets) pass = {
        void apply(inout cowbird_packets_t value, out bit<8> result) {
            if (value.passed == hdr.cowbird_count.word && value.asked != hdr.cowbird_count.word) {
                value.passed = value.passed + COWBIRD_ONE;
                result       = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<cowbird_packets_t, cowbird_side_t, bit<32>>(packets) put_packets = {
        void apply(inout cowbird_packets_t value, out bit<32> result) {
            value.passed = hdr.cowbird_packets.word;
            value.asked  = hdr.cowbird_packets.word;
            result       = 0;
        }
    };

    @hidden action do_ask() {
        meta.cowbird.behind = ask.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_pass() {
        meta.cowbird.passed = pass.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_put_packets() {
        put_packets.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden table packets_accesses {
        key = {
            meta.cowbird.does    : ternary;
            meta.cowbird.outcome : ternary;
        }
        actions = {
            do_ask;
            do_pass;
            do_put_packets;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _)             : do_put_packets();
            (DOES_AGAIN, _)             : do_put_packets();
            (DOES_DATA,  _)             : do_pass();
            (DOES_ENTRY, COWBIRD_TAKEN) : do_ask();
        }
        size = 8;
    }

    // By side: where data of the last request begun ends in the ring, from 1 up to the ring's length; nothing straddles its end.
    // Written by entries, frames of an instance that starts again, the controller; it begins again with the ring.
    Register<bit<32>, cowbird_side_t>(COWBIRD_SIDES) placed;

    RegisterAction<bit<32>, cowbird_side_t, bit<8>>(placed) place_behind = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value == meta.cowbird.left) {
                value  = meta.cowbird.end;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<8>>(placed) place_first = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value > meta.cowbird.left) {
                value  = meta.cowbird.end;
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<8>>(placed) put_placed = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = meta.cowbird.end;
            result = 1;
        }
    };

    @hidden action do_place_behind() {
        meta.cowbird.right = place_behind.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_place_first() {
        meta.cowbird.right = place_first.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_put_placed() {
        put_placed.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden table placed_accesses {
        key = {
            meta.cowbird.does         : ternary;
            meta.cowbird.outcome      : ternary;
            meta.cowbird.local[63:32] : ternary @name("far");
            meta.cowbird.offset       : ternary;
            meta.cowbird.fits[31:31]  : ternary @name("fits");
        }
        actions = {
            do_place_behind;
            do_place_first;
            do_put_placed;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _, _, _) : do_put_placed();
            (DOES_AGAIN, _,             _, _, _) : do_put_placed();
            (DOES_ENTRY, COWBIRD_TAKEN, 0, 0, _) : do_place_first();
            (DOES_ENTRY, COWBIRD_TAKEN, 0, _, 0) : do_place_behind();
        }
        size = 8;
    }

    // By side: the position at which the ring began the last time.
    // Written by entries whose data begins the ring, frames of an instance that starts again, the controller; it wraps at 2^32.
    Register<bit<32>, cowbird_side_t>(COWBIRD_SIDES) lap;

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(lap) begin_lap = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = value + meta.cowbird.ring;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(lap) look_at_lap = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(lap) put_lap = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.lap;
            result = value;
        }
    };

    @hidden action do_begin_lap() {
        meta.cowbird.lap = begin_lap.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_look_at_lap() {
        meta.cowbird.lap = look_at_lap.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_put_lap() {
        meta.cowbird.lap = put_lap.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden table lap_accesses {
        key = {
            meta.cowbird.does   : ternary;
            meta.cowbird.right  : ternary;
            meta.cowbird.offset : ternary;
        }
        actions = {
            do_begin_lap;
            do_look_at_lap;
            do_put_lap;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _, _) : do_put_lap();
            (DOES_AGAIN, _, _) : do_put_lap();
            (DOES_ENTRY, 1, 0) : do_begin_lap();
            (DOES_ENTRY, _, _) : do_look_at_lap();
        }
        size = 8;
    }

    // By side: the number of the request whose data is next.
    // Written by the last packet of a request's data, frames of an instance that starts again, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_side_t>(COWBIRD_SIDES) messages;

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(messages) end_message = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value  = value + COWBIRD_ONE;
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(messages) look_at_message = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_side_t, bit<32>>(messages) put_messages = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.id + COWBIRD_ONE;
            result = value;
        }
    };

    @hidden action do_end_message() {
        meta.cowbird.id = end_message.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_look_at_message() {
        meta.cowbird.id = look_at_message.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden action do_put_messages() {
        put_messages.execute(meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0]);
    }

    @hidden table messages_accesses {
        key = {
            meta.cowbird.does   : ternary;
            meta.cowbird.passed : ternary;
            meta.cowbird.frame  : ternary;
        }
        actions = {
            do_end_message;
            do_look_at_message;
            do_put_messages;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _, _)            : do_put_messages();
            (DOES_AGAIN, _, _)            : do_put_messages();
            (DOES_DATA,  1, FRAME_FIRST)  : do_look_at_message();
            (DOES_DATA,  1, FRAME_MIDDLE) : do_look_at_message();
            (DOES_DATA,  1, _)            : do_end_message();
        }
        size = 8;
    }

    // Why the set is served no more; 0 while it is. The first reason stays.
    // Written by entries and answers to probes that make no sense, the controller; it does not count.
    Register<bit<8>, cowbird_instance_t>(COWBIRD_INSTANCES) refusal;

    RegisterAction<bit<8>, cowbird_instance_t, bit<8>>(refusal) judge = {
        void apply(inout bit<8> value, out bit<8> result) {
            if (value == 0) {
                value = meta.cowbird.bad;
            }
            result = value;
        }
    };

    RegisterAction<bit<8>, cowbird_instance_t, bit<8>>(refusal) judge_place = {
        void apply(inout bit<8> value, out bit<8> result) {
            if (value == 0) {
                value = COWBIRD_CORRUPT_PLACE;
            }
            result = value;
        }
    };

    RegisterAction<bit<8>, cowbird_instance_t, bit<8>>(refusal) judge_tail = {
        void apply(inout bit<8> value, out bit<8> result) {
            if (value == 0) {
                value = COWBIRD_CORRUPT_TAIL;
            }
            result = value;
        }
    };

    RegisterAction<bit<8>, cowbird_instance_t, bit<8>>(refusal) forget_refusal = {
        void apply(inout bit<8> value, out bit<8> result) {
            value  = 0;
            result = 0;
        }
    };

    @hidden action do_judge() {
        hdr.cowbird_telling.refusal = judge.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_judge_place() {
        hdr.cowbird_telling.refusal = judge_place.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_judge_tail() {
        hdr.cowbird_telling.refusal = judge_tail.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_forget_refusal() {
        forget_refusal.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table refusal_accesses {
        key = {
            meta.cowbird.does    : ternary;
            meta.cowbird.outcome : ternary;
            meta.cowbird.bad     : ternary;
            meta.cowbird.right   : ternary;
            meta.cowbird.seen    : ternary;
        }
        actions = {
            do_judge;
            do_judge_place;
            do_judge_tail;
            do_forget_refusal;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _,             _, _)          : do_forget_refusal();
            (DOES_DATA,  _,             _,             _, _)          : NoAction();
            (DOES_GAP,   _,             _,             _, _)          : NoAction();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, 0, _)          : do_judge_place();
            (DOES_ENTRY, COWBIRD_TAKEN, _,             _, _)          : do_judge();
            (DOES_ENTRY, _,             _,             _, _)          : NoAction();
            (DOES_PROBE, _,             _,             _, TAIL_WRONG) : do_judge_tail();
            (_,          _,             _,             _, _)          : do_judge();
        }
        size = 8;
    }

    // When something last went on.
    // Written by entries, data, acknowledgements with news, turns that find it late, the controller; it wraps as the time does.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) stamp;

    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(stamp) put_stamp = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = ig_intr_md.ingress_mac_tstamp[31:0];
            result = 0;
        }
    };

    // Makes the instance late, so that the next turn restarts it.
    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(stamp) put_late = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = ig_intr_md.ingress_mac_tstamp[31:0] - (COWBIRD_TIMEOUT + 1);
            result = 0;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(stamp) look_at_time = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (ig_intr_md.ingress_mac_tstamp[31:0] - value > COWBIRD_TIMEOUT) {
                value  = ig_intr_md.ingress_mac_tstamp[31:0];
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_put_stamp() {
        put_stamp.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_late() {
        put_late.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_look_at_time() {
        meta.cowbird.late = look_at_time.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table stamp_accesses {
        key = {
            meta.cowbird.does       : ternary;
            meta.cowbird.outcome    : ternary;
            meta.cowbird.passed     : ternary;
            meta.cowbird.news[15:8] : ternary @name("news");
            hdr.cowbird_reds.word   : ternary;
        }
        actions = {
            do_put_stamp;
            do_put_late;
            do_look_at_time;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_TICK,  _,             _, _, _) : do_look_at_time();
            (DOES_SET,   _,             _, _, _) : do_put_stamp();
            (DOES_GAP,   _,             _, _, _) : do_put_late();
            (DOES_ENTRY, COWBIRD_TAKEN, _, _, _) : do_put_stamp();
            (DOES_DATA,  _,             1, _, _) : do_put_stamp();
            (DOES_ACK,   _,             _, 0, _) : NoAction();
            (DOES_ACK,   _,             _, _, _) : do_put_stamp();
            (DOES_RED,   _,             _, _, 1) : do_put_stamp();
        }
        size = 8;
    }

    // Entries requested; plus COWBIRD_FAR while the next entry must wait.
    // Written by turns, entries, acknowledgements and answers to probes, the controller; it wraps at 2^24.
    Register<int<32>, cowbird_instance_t>(COWBIRD_INSTANCES) fetched;

    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(fetched) fetch = {
        void apply(inout int<32> value, out bit<32> result) {
            if (value - (int<32>) hdr.cowbird_count.word < 0) {
                value  = value + (int<32>) COWBIRD_ONE;
                result = (bit<32>) value;
            } else if (value == (int<32>) meta.cowbird.mine) {
                value  = value - (int<32>) (COWBIRD_FAR - COWBIRD_ONE);
                result = (bit<32>) value;
            } else {
                result = 0;
            }
        }
    };

    // The thread knows of all progress: writes need not wait either.
    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(fetched) fetch_told = {
        void apply(inout int<32> value, out bit<32> result) {
            if (value - (int<32>) hdr.cowbird_count.word < 0) {
                value  = value + (int<32>) COWBIRD_ONE;
                result = (bit<32>) value;
            } else if ((bit<32>) value - meta.cowbird.mine < 2) {
                value  = value - (int<32>) (COWBIRD_FAR - COWBIRD_ONE);
                result = (bit<32>) value;
            } else {
                result = 0;
            }
        }
    };

    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(fetched) put_fetched = {
        void apply(inout int<32> value, out bit<32> result) {
            value  = (int<32>) meta.cowbird.mine;
            result = (bit<32>) value;
        }
    };

    // A guessed entry isn't requested again.
    RegisterAction<int<32>, cowbird_instance_t, bit<32>>(fetched) pass_by = {
        void apply(inout int<32> value, out bit<32> result) {
            if ((bit<32>) value - hdr.cowbird_count.word < 2) {
                value  = value + (int<32>) COWBIRD_ONE;
                result = (bit<32>) value;
            } else if (value == (int<32>) meta.cowbird.mine) {
                value  = value - (int<32>) (COWBIRD_FAR - COWBIRD_ONE);
                result = (bit<32>) value;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_fetch() {
        hdr.cowbird_fetched.word = fetch.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_fetch_told() {
        hdr.cowbird_fetched.word = fetch_told.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_put_fetched() {
        hdr.cowbird_fetched.word = put_fetched.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_pass_by() {
        pass_by.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table fetched_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.sends_red      : ternary;
            meta.cowbird.late           : ternary;
            meta.cowbird.told[31:31]    : ternary @name("ahead");
            hdr.cowbird_probes.word     : ternary;
            hdr.cowbird_telling.acked   : ternary;
        }
        actions = {
            do_fetch;
            do_fetch_told;
            do_put_fetched;
            do_pass_by;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _,             _, _, _, _, _) : do_put_fetched();
            (DOES_ENTRY, COWBIRD_TAKEN, _,             _, _, _, _, _) : do_pass_by();
            (DOES_ENTRY, COWBIRD_WAITS, _,             _, _, _, _, _) : do_put_fetched();
            (DOES_AGAIN, _,             COWBIRD_SOUND, 0, _, _, _, _) : do_put_fetched();
            (DOES_TICK,  _,             COWBIRD_SOUND, 0, 0, _, _, 0) : do_fetch_told();
            (DOES_TICK,  _,             COWBIRD_SOUND, 0, 0, _, _, _) : do_fetch();
            (DOES_ACK,   _,             COWBIRD_SOUND, 0, _, 0, _, 0) : do_fetch_told();
            (DOES_ACK,   _,             COWBIRD_SOUND, 0, _, 0, _, _) : do_fetch();
            (DOES_RED,   _,             COWBIRD_SOUND, 0, _, _, _, 0) : do_fetch_told();
            (DOES_RED,   _,             COWBIRD_SOUND, 0, _, _, _, _) : do_fetch();
            (DOES_PROBE, _,             COWBIRD_SOUND, _, _, _, 1, 0) : do_fetch_told();
            (DOES_PROBE, _,             COWBIRD_SOUND, _, _, _, 1, _) : do_fetch();
        }
        size = 12;
    }

    // Turns since the tail last moved.
    // Written by turns, answers to probes, the controller; it goes from 2^16 - 1 back to COWBIRD_BUSY.
    Register<bit<16>, cowbird_instance_t>(COWBIRD_INSTANCES) quiet;

    RegisterAction<bit<16>, cowbird_instance_t, bit<16>>(quiet) count_turns = {
        void apply(inout bit<16> value, out bit<16> result) {
            result = value;
            if (value == 0xFFFF) {
                value = COWBIRD_BUSY;
            } else {
                value = value + 1;
            }
        }
    };

    RegisterAction<bit<16>, cowbird_instance_t, bit<16>>(quiet) wake = {
        void apply(inout bit<16> value, out bit<16> result) {
            value  = 0;
            result = 1;
        }
    };

    @hidden action do_count_turns() {
        meta.cowbird.quiet = count_turns.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_wake() {
        wake.execute(meta.cowbird.instance[5:0]);
    }

    @hidden table quiet_accesses {
        key = {
            meta.cowbird.does        : ternary;
            meta.cowbird.phase       : ternary;
            meta.cowbird.seen        : ternary;
            meta.cowbird.sends_red   : ternary;
            meta.cowbird.again       : ternary;
            hdr.cowbird_fetched.word : ternary;
            meta.cowbird.more        : ternary;
        }
        actions = {
            do_count_turns;
            do_wake;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,            _,          _, _, _, _) : do_wake();
            (DOES_PROBE, _,            TAIL_MOVED, _, _, _, _) : do_wake();
            (DOES_TICK,  _,            _,          0, 0, 0, _) : do_count_turns();
            (DOES_AGAIN, COWBIRD_TICK, _,          0, _, _, 0) : do_count_turns();
        }
        size = 8;
    }

    // Probes that were asked for: one more than were answered while one is in flight.
    // Written by turns, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_instance_t>(COWBIRD_INSTANCES) asked;

    // One probe is in flight, unless it got lost.
    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(asked) probe = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value - hdr.cowbird_probes.word == COWBIRD_ONE) {
                result = 0;
            } else {
                value  = hdr.cowbird_probes.word + COWBIRD_ONE;
                result = COWBIRD_PROBE;
            }
        }
    };

    // While it is, a turn looks at the next entry itself.
    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(asked) probe_or_guess = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value - hdr.cowbird_probes.word == COWBIRD_ONE) {
                result = COWBIRD_ENTRY;
            } else {
                value  = hdr.cowbird_probes.word + COWBIRD_ONE;
                result = COWBIRD_PROBE;
            }
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(asked) probe_again = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = hdr.cowbird_probes.word + COWBIRD_ONE;
            result = COWBIRD_PROBE;
        }
    };

    RegisterAction<bit<32>, cowbird_instance_t, bit<8>>(asked) forget_asked = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = 0;
            result = 0;
        }
    };

    @hidden action do_probe() {
        meta.cowbird.next = probe.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_probe_or_guess() {
        meta.cowbird.next = probe_or_guess.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_guess() {
        meta.cowbird.next = COWBIRD_ENTRY;
    }

    @hidden action do_probe_again() {
        meta.cowbird.next = probe_again.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_forget_asked() {
        forget_asked.execute(meta.cowbird.instance[5:0]);
    }

    @hidden action do_tell_refusal() {
        meta.cowbird.next = COWBIRD_RED;
    }

    @hidden table asked_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.phase          : ternary;
            meta.cowbird.again          : ternary;
            meta.cowbird.next           : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.quiet          : ternary;
            meta.cowbird.told[12:12]    : ternary @name("full");
        }
        actions = {
            do_probe;
            do_probe_or_guess;
            do_guess;
            do_probe_again;
            do_forget_asked;
            do_tell_refusal;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,            _, _,               _,             _,                    _)    : do_forget_asked();
            (DOES_AGAIN, COWBIRD_TICK, _, COWBIRD_NOTHING, COWBIRD_SOUND, _,                    _)    : do_probe_again();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, COWBIRD_SOUND, 1 &&& AT_WORK_ODD,    0)    : do_guess();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, COWBIRD_SOUND, 0 &&& AT_WORK,        0)    : do_probe_or_guess();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, COWBIRD_SOUND, 0 &&& AT_WORK,        _)    : do_probe();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, COWBIRD_SOUND, 0 &&& COWBIRD_IDLE_MASK, _) : do_probe();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, _,             0 &&& AT_WORK,        _)    : do_tell_refusal();
            (DOES_TICK,  _,            0, COWBIRD_NOTHING, _,             0 &&& COWBIRD_IDLE_MASK, _) : do_tell_refusal();
            (DOES_AGAIN, COWBIRD_TICK, _, COWBIRD_NOTHING, _,             0 &&& AT_WORK,        _)    : do_tell_refusal();
            (DOES_AGAIN, COWBIRD_TICK, _, COWBIRD_NOTHING, _,             0 &&& COWBIRD_IDLE_MASK, _) : do_tell_refusal();
        }
        size = 16;
    }

    // Of a request in flight: packets of its side up to its end.
    // Written by its entry, the controller; it wraps at 2^24.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_behind;

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_behind) put_behind = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.behind;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_behind) look_at_behind = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<8>>(slot_behind) see_last = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value - hdr.cowbird_count.word == COWBIRD_ONE) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_put_behind() {
        put_behind.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_look_at_behind() {
        meta.cowbird.behind = look_at_behind.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_see_last() {
        meta.cowbird.is_last = see_last.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_behind_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
        }
        actions = {
            do_put_behind;
            do_look_at_behind;
            do_see_last;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _)             : do_put_behind();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND) : do_put_behind();
            (DOES_DATA,  _,             _)             : do_see_last();
            (DOES_TICK,  _,             _)             : do_look_at_behind();
            (DOES_ACK,   _,             _)             : do_look_at_behind();
        }
        size = 8;
    }

    // Of a request in flight: packets of its side before its first one.
    // Written by its entry; it wraps at 2^24.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_first;

    RegisterAction<bit<32>, cowbird_slot_t, bit<8>>(slot_first) put_first = {
        void apply(inout bit<32> value, out bit<8> result) {
            value  = hdr.cowbird_packets.word;
            result = 0;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<8>>(slot_first) see_first = {
        void apply(inout bit<32> value, out bit<8> result) {
            if (value == hdr.cowbird_count.word) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_put_first() {
        put_first.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_see_first() {
        meta.cowbird.is_first = see_first.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_first_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
        }
        actions = {
            do_put_first;
            do_see_first;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND) : do_put_first();
            (DOES_DATA,  _,             _)             : do_see_first();
        }
        size = 8;
    }

    // Of a request in flight: bytes in its last packet.
    // Written by its entry; it is at most the MTU.
    Register<bit<16>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_rest;

    RegisterAction<bit<16>, cowbird_slot_t, bit<8>>(slot_rest) put_rest = {
        void apply(inout bit<16> value, out bit<8> result) {
            value  = meta.cowbird.carried;
            result = 0;
        }
    };

    RegisterAction<bit<16>, cowbird_slot_t, bit<8>>(slot_rest) see_rest = {
        void apply(inout bit<16> value, out bit<8> result) {
            if (value == meta.cowbird.carried) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };

    @hidden action do_put_rest() {
        put_rest.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_see_rest() {
        meta.cowbird.fills = see_rest.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_rest_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
        }
        actions = {
            do_put_rest;
            do_see_rest;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND) : do_put_rest();
            (DOES_DATA,  _,             _)             : do_see_rest();
        }
        size = 8;
    }

    // Of a request in flight: its bytes.
    // Written by its entry; it is at most half of a ring.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_length;

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_length) put_length = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = hdr.cowbird_entry.length;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_length) look_at_length = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_length() {
        hdr.cowbird_reth.dmaLength = put_length.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_look_at_length() {
        hdr.cowbird_reth.dmaLength = look_at_length.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_length_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
        }
        actions = {
            do_put_length;
            do_look_at_length;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND) : do_put_length();
            (DOES_DATA,  _,             _)             : do_look_at_length();
        }
        size = 8;
    }

    // Of a request in flight: the key of its region.
    // Written by its entry; it does not count.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_key;

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_key) put_key = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.pool_key;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_key) look_at_key = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_key() {
        hdr.cowbird_reth.rKey = put_key.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_look_at_key() {
        hdr.cowbird_reth.rKey = look_at_key.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_key_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
        }
        actions = {
            do_put_key;
            do_look_at_key;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND) : do_put_key();
            (DOES_DATA,  _,             _)             : do_look_at_key();
        }
        size = 8;
    }

    // Of a request in flight: where its data goes, the upper 32 bits.
    // Written by its entry; it does not count.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_high;

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_high) put_high = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.pool[63:32];
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_high) put_local_high = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.local[63:32];
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_high) look_at_high = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_high() {
        put_high.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_put_local_high() {
        put_local_high.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_look_at_high() {
        hdr.cowbird_reth.virtualAddress[63:32] = look_at_high.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_high_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.kind           : ternary;
        }
        actions = {
            do_put_high;
            do_put_local_high;
            do_look_at_high;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, KIND_READ) : do_put_local_high();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, _)         : do_put_high();
            (DOES_DATA,  _,             _,             _)         : do_look_at_high();
        }
        size = 8;
    }

    // Of a request in flight: where its data goes, the lower 32 bits.
    // Written by its entry; it does not count.
    Register<bit<32>, cowbird_slot_t>(COWBIRD_ALL_SLOTS) slot_low;

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_low) put_low = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.pool[31:0];
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_low) put_local_low = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.local[31:0];
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_slot_t, bit<32>>(slot_low) look_at_low = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_low() {
        put_low.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_put_local_low() {
        put_local_low.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden action do_look_at_low() {
        hdr.cowbird_reth.virtualAddress[31:0] = look_at_low.execute(
            meta.cowbird.instance[5:0] ++ meta.cowbird.kind[0:0] ++ meta.cowbird.id[12:8]);
    }

    @hidden table slot_low_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.kind           : ternary;
        }
        actions = {
            do_put_low;
            do_put_local_low;
            do_look_at_low;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, KIND_READ) : do_put_local_low();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, _)         : do_put_low();
            (DOES_DATA,  _,             _,             _)         : do_look_at_low();
        }
        size = 8;
    }

    // Of a read in flight: the position in the ring at which its data ends.
    // Written by its entry, the controller; it wraps at 2^32.
    Register<bit<32>, cowbird_end_t>(COWBIRD_ENDS) response_ends;

    RegisterAction<bit<32>, cowbird_end_t, bit<32>>(response_ends) put_response_end = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.lap;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_end_t, bit<32>>(response_ends) look_at_response_end = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_response_end() {
        put_response_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.reads[12:8]);
    }

    @hidden action do_look_at_response_end() {
        hdr.cowbird_telling.response_end = look_at_response_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.reads[12:8]);
    }

    @hidden action do_take_response_end() {
        meta.cowbird.end = look_at_response_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.reads[12:8]);
    }

    @hidden table response_ends_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.kind           : ternary;
            meta.cowbird.again          : ternary;
        }
        actions = {
            do_put_response_end;
            do_look_at_response_end;
            do_take_response_end;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _,             KIND_READ, _) : do_put_response_end();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, KIND_READ, _) : do_put_response_end();
            (DOES_TICK,  _,             _,             KIND_READ, 1) : do_take_response_end();
            (DOES_ACK,   _,             _,             KIND_READ, 1) : do_take_response_end();
            (DOES_TICK,  _,             _,             _,         _) : do_look_at_response_end();
            (DOES_ACK,   _,             _,             _,         _) : do_look_at_response_end();
            (DOES_RED,   _,             _,             _,         _) : do_look_at_response_end();
            (DOES_AGAIN, _,             _,             _,         _) : do_look_at_response_end();
        }
        size = 8;
    }

    // Of a write in flight: the position in the ring at which its data ends.
    // Written by its entry, the controller; it wraps at 2^32.
    Register<bit<32>, cowbird_end_t>(COWBIRD_ENDS) request_ends;

    RegisterAction<bit<32>, cowbird_end_t, bit<32>>(request_ends) put_request_end = {
        void apply(inout bit<32> value, out bit<32> result) {
            value  = meta.cowbird.lap;
            result = value;
        }
    };

    RegisterAction<bit<32>, cowbird_end_t, bit<32>>(request_ends) look_at_request_end = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
    };

    @hidden action do_put_request_end() {
        put_request_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.writes[12:8]);
    }

    @hidden action do_look_at_request_end() {
        hdr.cowbird_telling.request_end = look_at_request_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.writes[12:8]);
    }

    @hidden action do_take_request_end() {
        meta.cowbird.lap = look_at_request_end.execute(
            meta.cowbird.instance[5:0] ++ hdr.cowbird_telling.writes[12:8]);
    }

    @hidden table request_ends_accesses {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.kind           : ternary;
            meta.cowbird.again          : ternary;
        }
        actions = {
            do_put_request_end;
            do_look_at_request_end;
            do_take_request_end;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_SET,   _,             _,             KIND_WRITE, _) : do_put_request_end();
            (DOES_ENTRY, COWBIRD_TAKEN, COWBIRD_SOUND, KIND_WRITE, _) : do_put_request_end();
            (DOES_TICK,  _,             _,             KIND_WRITE, 1) : do_take_request_end();
            (DOES_ACK,   _,             _,             KIND_WRITE, 1) : do_take_request_end();
            (DOES_TICK,  _,             _,             _,          _) : do_look_at_request_end();
            (DOES_ACK,   _,             _,             _,          _) : do_look_at_request_end();
            (DOES_RED,   _,             _,             _,          _) : do_look_at_request_end();
            (DOES_AGAIN, _,             _,             _,          _) : do_look_at_request_end();
        }
        size = 8;
    }

    @hidden action size_read() {
        meta.cowbird.end         = meta.cowbird.end & 0xFFFFFFF8;
        hdr.cowbird_packets.word = hdr.cowbird_packets.word >> 2;
        meta.cowbird.carried     = meta.cowbird.carried & (ROCE_MTU - 1);
        meta.cowbird.pool_bytes  = meta.cowbird.pool_bytes - meta.cowbird.remote;
        meta.cowbird.pool        = meta.cowbird.pool + meta.cowbird.remote;
        hdr.cowbird_number.word  = hdr.cowbird_count.word + COWBIRD_ONE;
        meta.cowbird.mine        = hdr.cowbird_count.word;
    }

    @hidden action size_write() {
        meta.cowbird.end         = meta.cowbird.end & 0xFFFFFFF8;
        hdr.cowbird_packets.word = hdr.cowbird_packets.word >> 2;
        meta.cowbird.carried     = meta.cowbird.carried & (ROCE_MTU - 1);
        meta.cowbird.pool_bytes  = meta.cowbird.pool_bytes - meta.cowbird.remote;
        meta.cowbird.pool        = meta.cowbird.pool + meta.cowbird.remote;
        hdr.cowbird_number.word  = hdr.cowbird_count.word + COWBIRD_ONE;
        meta.cowbird.mine        = hdr.cowbird_count.word | 1;
    }

    @hidden action split_end() {
        meta.cowbird.lap        = meta.cowbird.end & 0xFFFFFFF8;
        meta.cowbird.end        = meta.cowbird.end - 8;
        hdr.cowbird_number.word = hdr.cowbird_count.word + COWBIRD_ONE;
    }

    @hidden table entry_size {
        key = {
            meta.cowbird.does : ternary;
            meta.cowbird.kind : ternary;
        }
        actions = {
            size_read;
            size_write;
            split_end;
        }
        const default_action = split_end();
        const entries = {
            (DOES_ENTRY, KIND_READ) : size_read();
            (DOES_ENTRY, _)         : size_write();
        }
        size = 4;
    }

    @hidden action expect_read() {
        hdr.cowbird_packets.word = hdr.cowbird_packets.word & 0xFFFFFF00;
        meta.cowbird.carried     = meta.cowbird.carried + 1;
        hdr.cowbird_number.word  = hdr.cowbird_number.word - hdr.cowbird_telling.writes;
        hdr.cowbird_reth.setValid();
        hdr.cowbird_reth.virtualAddress = meta.cowbird.pool;
        meta.cowbird.rest               = meta.cowbird.pool_bytes[31:0] - meta.cowbird.rest;
    }

    @hidden action expect_write() {
        hdr.cowbird_packets.word = hdr.cowbird_packets.word & 0xFFFFFF00;
        meta.cowbird.carried     = meta.cowbird.carried + 1;
        hdr.cowbird_number.word  = hdr.cowbird_number.word - hdr.cowbird_telling.reads;
        hdr.cowbird_reth.setValid();
        hdr.cowbird_reth.virtualAddress = meta.cowbird.local;
        meta.cowbird.rest               = meta.cowbird.pool_bytes[31:0] - meta.cowbird.rest;
    }

    @hidden action restart_reads() {
        meta.cowbird.mine      = hdr.cowbird_telling.head;
        meta.cowbird.id        = hdr.cowbird_telling.reads;
        hdr.cowbird_count.word = hdr.cowbird_telling.head + COWBIRD_MOST;
    }

    @hidden action restart_writes() {
        meta.cowbird.mine      = hdr.cowbird_telling.head | 1;
        meta.cowbird.id        = hdr.cowbird_telling.writes;
        hdr.cowbird_count.word = hdr.cowbird_telling.head + COWBIRD_MOST;
    }

    @hidden action limit_entries() {
        hdr.cowbird_count.word = hdr.cowbird_telling.head + COWBIRD_MOST;
    }

    @hidden action look_behind_head() {
        meta.cowbird.unseen    = meta.cowbird.tail - hdr.cowbird_telling.head;
        hdr.cowbird_count.word = hdr.cowbird_telling.head + COWBIRD_MOST;
        meta.cowbird.mine      = hdr.cowbird_telling.head + (COWBIRD_FAR + 2);
    }

    @hidden table expected {
        key = {
            meta.cowbird.does : exact;
            meta.cowbird.kind : exact;
        }
        actions = {
            expect_read;
            expect_write;
            restart_reads;
            restart_writes;
            limit_entries;
            look_behind_head;
            NoAction;
        }
        const default_action = look_behind_head();
        const entries = {
            (DOES_ENTRY, KIND_READ)  : expect_read();
            (DOES_ENTRY, KIND_WRITE) : expect_write();
            (DOES_AGAIN, KIND_READ)  : restart_reads();
            (DOES_AGAIN, KIND_WRITE) : restart_writes();
            (DOES_SET,   KIND_READ)  : limit_entries();
            (DOES_SET,   KIND_WRITE) : limit_entries();
            (DOES_DATA,  KIND_READ)  : NoAction();
            (DOES_DATA,  KIND_WRITE) : NoAction();
            (DOES_LOOK,  KIND_READ)  : NoAction();
            (DOES_LOOK,  KIND_WRITE) : NoAction();
        }
        size = 16;
    }

    @hidden action distances_in_ring() {
        meta.cowbird.half       = meta.cowbird.half - hdr.cowbird_entry.length;
        meta.cowbird.offset     = meta.cowbird.offset - meta.cowbird.ring_at;
        meta.cowbird.left       = meta.cowbird.ring - meta.cowbird.end;
        hdr.cowbird_number.word = hdr.cowbird_number.word - meta.cowbird.id;
    }

    @hidden action distances_from_head() {
        meta.cowbird.unseen = meta.cowbird.entries - meta.cowbird.unseen;
        meta.cowbird.end    = meta.cowbird.end & meta.cowbird.mask;
        meta.cowbird.told   = meta.cowbird.told - hdr.cowbird_telling.head;
    }

    @hidden table distances {
        key = { meta.cowbird.does : exact; }
        actions = { distances_in_ring; distances_from_head; }
        const default_action = distances_from_head();
        const entries = { DOES_ENTRY : distances_in_ring(); }
        size = 2;
    }

    // Data at the ring's beginning: the rest of the ring is compared with the end of the last data.
    @hidden action fit_at_start() {
        meta.cowbird.fits = meta.cowbird.left;
    }

    // Other data: its start is compared.
    @hidden action fit_behind_last() {
        meta.cowbird.end  = meta.cowbird.end + meta.cowbird.offset;
        meta.cowbird.fits = meta.cowbird.left - meta.cowbird.offset;
        meta.cowbird.left = meta.cowbird.offset;
    }

    @hidden action compare_acked() {
        meta.cowbird.end          = meta.cowbird.end + 8;
        hdr.cowbird_telling.acked = hdr.cowbird_telling.acked - hdr.cowbird_telling.head;
    }

    @hidden action tell_red() {
        hdr.cowbird_telling.acked = hdr.cowbird_telling.acked - hdr.cowbird_telling.head;
        meta.cowbird.sends_red    = 1;
    }

    @hidden action tell_red_of_pass() {
        meta.cowbird.end       = meta.cowbird.end + 8;
        meta.cowbird.sends_red = meta.cowbird.flags >> 1;
    }

    @hidden action refuse_tail() {
        meta.cowbird.bad          = COWBIRD_CORRUPT_TAIL;
        hdr.cowbird_telling.acked = hdr.cowbird_telling.acked - hdr.cowbird_telling.head;
    }

    @hidden table red_due {
        key = {
            meta.cowbird.does          : ternary;
            hdr.cowbird_reds.word      : ternary;
            meta.cowbird.told          : ternary;
            meta.cowbird.unseen[31:31] : ternary @name("unseen");
        }
        actions = { NoAction; compare_acked; tell_red; tell_red_of_pass; refuse_tail; }
        const default_action = compare_acked();
        const entries = {
            (DOES_AGAIN, _, _, _) : tell_red_of_pass();
            (DOES_LOOK,  _, _, _) : NoAction();
            (DOES_PROBE, _, _, 1) : refuse_tail();
            (DOES_RED,   1, 0, _) : compare_acked();
            (DOES_RED,   1, _, _) : tell_red();
        }
        size = 8;
    }

    @hidden action look_for_guessed() {
        meta.cowbird.mine      = meta.cowbird.mine + (COWBIRD_FAR + 2);
        hdr.cowbird_count.word = hdr.cowbird_count.word + 2;
    }

    @hidden action begin_at_head() {
        meta.cowbird.lap    = meta.cowbird.lap - meta.cowbird.end;
        meta.cowbird.mine   = hdr.cowbird_telling.head + 2;
        meta.cowbird.unseen = meta.cowbird.tail - hdr.cowbird_telling.head;
    }

    @hidden action reads_under_way() {
        meta.cowbird.told   = hdr.cowbird_taken.word - hdr.cowbird_telling.head;
        meta.cowbird.kind   = 0;
        meta.cowbird.id     = hdr.cowbird_telling.reads;
        meta.cowbird.unseen = meta.cowbird.tail - hdr.cowbird_count.word;
    }

    @hidden action writes_under_way() {
        meta.cowbird.told   = hdr.cowbird_taken.word - hdr.cowbird_telling.head;
        meta.cowbird.kind   = 1;
        meta.cowbird.id     = hdr.cowbird_telling.writes;
        meta.cowbird.unseen = meta.cowbird.tail - hdr.cowbird_count.word;
    }

    @hidden table under_way {
        key = {
            meta.cowbird.does           : ternary;
            hdr.cowbird_taken.word[0:0] : ternary @name("taken");
        }
        actions = {
            look_for_guessed;
            begin_at_head;
            reads_under_way;
            writes_under_way;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, _) : look_for_guessed();
            (DOES_SET,   _) : begin_at_head();
            (DOES_AGAIN, _) : begin_at_head();
            (DOES_DATA,  _) : NoAction();
            (DOES_LOOK,  _) : NoAction();
            (DOES_TICK,  1) : writes_under_way();
            (DOES_ACK,   1) : writes_under_way();
            (_,          _) : reads_under_way();
        }
        size = 8;
    }

    @hidden action find_first_packet() {
        hdr.cowbird_packets.word = meta.cowbird.behind - hdr.cowbird_packets.word;
    }

    @hidden action more_entries() {
        meta.cowbird.mine = meta.cowbird.mine + COWBIRD_ONE;
        meta.cowbird.more = 1;
    }

    @hidden action limit_by_tail() {
        hdr.cowbird_count.word = meta.cowbird.tail;
    }

    @hidden table fetch_limit {
        key = {
            meta.cowbird.does         : ternary;
            meta.cowbird.unseen[31:8] : ternary @name("unseen");
        }
        actions = { find_first_packet; more_entries; limit_by_tail; NoAction; }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, _)                 : find_first_packet();
            (DOES_SET,   _)                 : NoAction();
            (DOES_DATA,  _)                 : NoAction();
            (DOES_AGAIN, 0)                 : NoAction();
            (DOES_AGAIN, BEHIND &&& BEHIND) : NoAction();
            (DOES_AGAIN, _)                 : more_entries();
            (_,          BEHIND &&& BEHIND) : limit_by_tail();
        }
        size = 8;
    }

    @hidden action keep_end() {
        meta.cowbird.lap           = meta.cowbird.lap + meta.cowbird.end;
        hdr.cowbird_telling.reads  = meta.cowbird.id;
        hdr.cowbird_telling.writes = meta.cowbird.id;
    }

    @hidden action tell_again() {
        meta.cowbird.sends_red = 1;
    }

    @hidden action start_again() {
        meta.cowbird.again = 1;
    }

    @hidden table restart {
        key = {
            meta.cowbird.does        : ternary;
            meta.cowbird.late        : ternary;
            meta.cowbird.busy        : ternary;
            meta.cowbird.news[15:8]  : ternary @name("news");
            meta.cowbird.told[31:31] : ternary @name("ahead");
        }
        actions = { keep_end; tell_again; start_again; NoAction; }
        const default_action = NoAction();
        const entries = {
            (DOES_ENTRY, _, _, _, _) : keep_end();
            (DOES_SET,   _, _, _, _) : keep_end();
            (DOES_TICK,  1, 1, _, _) : tell_again();
            (DOES_TICK,  1, _, _, _) : start_again();
            (DOES_ACK,   _, _, 0, _) : NoAction();
            (DOES_ACK,   _, _, _, 1) : start_again();
        }
        size = 8;
    }

    @hidden action become(bit<8> next) {
        meta.cowbird.next = next;
    }

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) own_number;

    @hidden action come_again() {
        meta.cowbird.behind       = meta.cowbird.behind | 0x80;
        meta.cowbird.tagged       = own_number.get(meta.cowbird.instance);
        ig_dprsr_md.resubmit_type = RESUBMIT;
    }

    @hidden action refuse_now(bit<8> reason) {
        meta.drop = reason;
    }

    @hidden table next_frame {
        key = {
            meta.cowbird.does           : ternary;
            meta.cowbird.outcome        : ternary;
            meta.cowbird.kind           : ternary;
            hdr.cowbird_telling.refusal : ternary;
            meta.cowbird.again          : ternary;
            meta.cowbird.sends_red      : ternary;
            hdr.cowbird_probes.word     : ternary;
            meta.cowbird.more           : ternary;
            hdr.cowbird_fetched.word    : ternary;
            hdr.cowbird_tail.isValid()  : ternary;
        }
        actions = { become; come_again; refuse_now; }
        const default_action = become(COWBIRD_NOTHING);
        const entries = {
            (DOES_ENTRY, COWBIRD_STALE, _, _, _, _, _, _, _, true)       : refuse_now(DROP_COWBIRD_NOTHING_TO_DO);
            (DOES_ENTRY, COWBIRD_STALE, _, _, _, _, _, _, _, _)          : refuse_now(DROP_COWBIRD_STALE);
            (DOES_ENTRY, COWBIRD_WAITS, _, _, _, _, _, _, _, _)          : refuse_now(DROP_COWBIRD_WAITS);
            (DOES_ENTRY, _, KIND_READ, COWBIRD_SOUND, _, _, _, _, _, _)  : become(COWBIRD_POOL_READ);
            (DOES_ENTRY, _, KIND_WRITE, COWBIRD_SOUND, _, _, _, _, _, _) : become(COWBIRD_PAYLOAD);
            (DOES_ENTRY, _, _, _, _, _, _, _, _, _)                      : refuse_now(DROP_COWBIRD_CORRUPT);
            (DOES_SET, _, _, _, _, _, _, _, _, _)                        : become(COWBIRD_SET);
            (DOES_LOOK, _, _, _, _, _, _, _, _, _)                       : become(COWBIRD_LOOK);
            (DOES_GAP, _, _, _, _, _, _, _, _, _)                        : refuse_now(DROP_COWBIRD_GAP);
            (DOES_REFUSAL, _, _, _, _, _, _, _, _, _)                    : become(COWBIRD_NOTHING);
            (DOES_BAD, _, _, _, _, _, _, _, _, _)                        : become(COWBIRD_NOTHING);
            (DOES_TICK, _, _, _, 1, _, _, _, _, _)                       : come_again();
            (DOES_ACK, _, _, _, 1, _, _, _, _, _)                        : come_again();
            (DOES_PROBE, _, _, _, _, _, 0, _, _, _)                      : refuse_now(DROP_COWBIRD_STALE);
            (DOES_PROBE, _, _, COWBIRD_SOUND, _, _, _, _, 0, _)          : refuse_now(DROP_COWBIRD_NOTHING_TO_DO);
            (DOES_PROBE, _, _, COWBIRD_SOUND, _, _, _, _, _, _)          : become(COWBIRD_ENTRY);
            (DOES_PROBE, _, _, _, _, _, _, _, _, _)                      : refuse_now(DROP_COWBIRD_CORRUPT);
            (_, _, _, _, _, 1, _, _, _, _)                               : become(COWBIRD_RED);
            (DOES_AGAIN, _, _, COWBIRD_SOUND, _, _, _, 1, _, _)          : become(COWBIRD_ENTRY);
            (DOES_AGAIN, _, _, _, _, _, _, _, _, _)                      : refuse_now(DROP_COWBIRD_NOTHING_TO_DO);
            (_, _, _, _, _, _, _, _, 0, _)                               : refuse_now(DROP_COWBIRD_NOTHING_TO_DO);
            (_, _, _, _, _, _, _, _, _, _)                               : become(COWBIRD_ENTRY);
        }
        size = 32;
    }

    // State for another pass: the end of the data, the side, and whether a red block has to be sent.
    @hidden action pass_reads() {
        meta.cowbird.behind = meta.cowbird.behind | meta.cowbird.tagged;
    }

    @hidden action pass_reads_and_red() {
        meta.cowbird.behind = meta.cowbird.behind | meta.cowbird.tagged;
        meta.cowbird.end    = meta.cowbird.end | 2;
    }

    @hidden action pass_writes() {
        meta.cowbird.behind = meta.cowbird.behind | meta.cowbird.tagged;
        meta.cowbird.end    = meta.cowbird.lap + 1;
    }

    @hidden action pass_writes_and_red() {
        meta.cowbird.behind = meta.cowbird.behind | meta.cowbird.tagged;
        meta.cowbird.end    = meta.cowbird.lap + 3;
    }

    @hidden table pass_along {
        key = {
            meta.cowbird.again     : exact;
            meta.cowbird.kind      : exact;
            meta.cowbird.sends_red : exact;
        }
        actions = { pass_reads; pass_reads_and_red; pass_writes; pass_writes_and_red; NoAction; }
        const default_action = NoAction();
        const entries = {
            (1, KIND_READ,  0) : pass_reads();
            (1, KIND_READ,  1) : pass_reads_and_red();
            (1, KIND_WRITE, 0) : pass_writes();
            (1, KIND_WRITE, 1) : pass_writes_and_red();
        }
        size = 4;
    }

    // Read data continues as a WRITE, packet by packet, if it has the requested length.
    @hidden action write(bit<8> next, bit<8> opcode, bit<1> ack, bit<16> longer) {
        meta.cowbird.next      = next;
        hdr.cowbird_bth.opcode = opcode;
        hdr.cowbird_bth.ackReq = ack;
        hdr.cowbird_udp.length = hdr.cowbird_udp.length + longer;
        meta.cowbird.form      = FORM_DATA;
    }

    @hidden action write_first(bit<8> next, bit<8> opcode, bit<1> ack) {
        meta.cowbird.next      = next;
        hdr.cowbird_bth.opcode = opcode;
        hdr.cowbird_bth.ackReq = ack;
        hdr.cowbird_udp.length = hdr.cowbird_udp.length + 12;
        meta.cowbird.form      = FORM_READ;
        hdr.cowbird_reth.setValid();
    }

    @hidden action refuse_data(bit<8> reason) {
        meta.drop = reason;
    }

    @hidden table data_write {
        key = {
            meta.cowbird.passed   : ternary;
            meta.cowbird.kind     : ternary;
            meta.cowbird.frame    : ternary;
            meta.cowbird.is_first : ternary;
            meta.cowbird.is_last  : ternary;
            meta.cowbird.fills    : ternary;
            meta.cowbird.carried  : ternary;
        }
        actions = {
            write;
            write_first;
            refuse_data;
        }
        const default_action = refuse_data(DROP_COWBIRD_BAD_DATA);
        const entries = {
            (0, _,          _,            _, _, _, _)        : refuse_data(DROP_COWBIRD_STALE);
            (1, KIND_READ,  FRAME_FIRST,  1, 0, _, ROCE_MTU) : write_first(COWBIRD_RESPONSE, ROCE_WRITE_FIRST, 0);
            (1, KIND_READ,  FRAME_MIDDLE, 0, 0, _, ROCE_MTU) : write(COWBIRD_RESPONSE, ROCE_WRITE_MIDDLE, 0, 0);
            (1, KIND_READ,  FRAME_LAST,   0, 1, 1, _)        : write(COWBIRD_RESPONSE, ROCE_WRITE_LAST, 1, 0xFFFC);
            (1, KIND_READ,  FRAME_ONLY,   1, 1, 1, _)        : write_first(COWBIRD_RESPONSE, ROCE_WRITE_ONLY, 1);
            (1, KIND_READ,  FRAME_TAIL,   1, 1, 1, _)        : write_first(COWBIRD_RESPONSE, ROCE_WRITE_ONLY, 1);
            (1, KIND_READ,  FRAME_ENTRY,  1, 1, 1, _)        : write_first(COWBIRD_RESPONSE, ROCE_WRITE_ONLY, 1);
            (1, KIND_WRITE, FRAME_FIRST,  1, 0, _, ROCE_MTU) : write_first(COWBIRD_POOL_WRITE, ROCE_WRITE_FIRST, 0);
            (1, KIND_WRITE, FRAME_MIDDLE, 0, 0, _, ROCE_MTU) : write(COWBIRD_POOL_WRITE, ROCE_WRITE_MIDDLE, 0, 0);
            (1, KIND_WRITE, FRAME_LAST,   0, 1, 1, _)        : write(COWBIRD_POOL_WRITE, ROCE_WRITE_LAST, 1, 0xFFFC);
            (1, KIND_WRITE, FRAME_ONLY,   1, 1, 1, _)        : write_first(COWBIRD_POOL_WRITE, ROCE_WRITE_ONLY, 1);
            (1, KIND_WRITE, FRAME_TAIL,   1, 1, 1, _)        : write_first(COWBIRD_POOL_WRITE, ROCE_WRITE_ONLY, 1);
            (1, KIND_WRITE, FRAME_ENTRY,  1, 1, 1, _)        : write_first(COWBIRD_POOL_WRITE, ROCE_WRITE_ONLY, 1);
        }
        size = 16;
    }

    action leave_by(port_t port) {
        ig_tm_md.ucast_egress_port = port;
    }

    table ports {
        key = {
            meta.cowbird.instance : exact @name("instance");
            meta.cowbird.next     : exact @name("phase");
        }
        actions = {
            leave_by;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    @hidden action send_red() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_RED;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_aeth.setInvalid();
        hdr.cowbird_reth.setValid();
    }

    @hidden action send_next_red() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_RED;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_aeth.setInvalid();
        hdr.cowbird_reth.setValid();
    }

    @hidden action send_probe() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_READ;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_telling.setInvalid();
        hdr.cowbird_aeth.setInvalid();
        hdr.cowbird_reth.setValid();
        ig_tm_md.qid = COWBIRD_CLASS_PROBE;
    }

    @hidden action send_entry() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_READ;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_telling.setInvalid();
        hdr.cowbird_aeth.setInvalid();
        hdr.cowbird_tail.setInvalid();
        hdr.cowbird_reth.setValid();
    }

    @hidden action send_guess() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_GUESS;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_telling.setInvalid();
        hdr.cowbird_reth.setValid();
        ig_tm_md.qid = COWBIRD_CLASS_PROBE;
    }

    @hidden action send_read() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_READ;
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_telling.setInvalid();
        hdr.cowbird_aeth.setInvalid();
        hdr.cowbird_entry.setInvalid();
        hdr.cowbird_tail.setInvalid();
    }

    @hidden action send_data() {
        hdr.sent.setValid();
        hdr.sent.form = meta.cowbird.form;
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_telling.setInvalid();
        hdr.cowbird_aeth.setInvalid();
    }

    @hidden action reply() {
        hdr.sent.setValid();
        hdr.sent.form = FORM_MANAGEMENT;
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_bth.opcode = COWBIRD_OP_REPLY;
    }

    @hidden action send_nothing() {
        hdr.cowbird_count.setInvalid();
        hdr.cowbird_fetched.setInvalid();
        hdr.cowbird_taken.setInvalid();
        hdr.cowbird_probes.setInvalid();
        hdr.cowbird_reds.setInvalid();
        hdr.cowbird_number.setInvalid();
        hdr.cowbird_packets.setInvalid();
        hdr.cowbird_telling.setInvalid();
    }

    @hidden table sent_form {
        key = {
            meta.cowbird.next        : ternary;
            meta.cowbird.does        : ternary;
            hdr.cowbird_fetched.word : ternary;
        }
        actions = {
            send_red; send_next_red; send_probe; send_guess; send_entry;
            send_read; send_data; reply; send_nothing;
        }
        const default_action = send_nothing();
        const entries = {
            (COWBIRD_RED,        DOES_RED,  _) : send_next_red();
            (COWBIRD_RED,        _,         _) : send_red();
            (COWBIRD_PROBE,      _,         _) : send_probe();
            (COWBIRD_ENTRY,      DOES_TICK, 0) : send_guess();
            (COWBIRD_ENTRY,      _,         _) : send_entry();
            (COWBIRD_POOL_READ,  _,         _) : send_read();
            (COWBIRD_PAYLOAD,    _,         _) : send_read();
            (COWBIRD_RESPONSE,   _,         _) : send_data();
            (COWBIRD_POOL_WRITE, _,         _) : send_data();
            (COWBIRD_SET,        _,         _) : reply();
            (COWBIRD_LOOK,       _,         _) : reply();
        }
        size = 16;
    }

    apply {
        meta.cowbird.framing = hdr.cowbird_ipv4.totalLen - hdr.cowbird_udp.length;

        // Stage 1. The frame's instance and phase, its lengths and numbers.
        lift();
        if (hdr.cowbird_aeth.isValid()) {
            meta.cowbird.bytes = hdr.cowbird_udp.length - 28;
        } else {
            meta.cowbird.bytes = hdr.cowbird_udp.length - ROCE_HEADERS;
        }
        if (!hdr.cowbird_management.isValid()) {
            pairs.apply();
        }
        prepare.apply();

        // Stage 2. The engine's operation.
        hdr.cowbird_count.word = hdr.cowbird_count.word - meta.cowbird.base;
        dispatch.apply();
        measure.apply();
        if (meta.cowbird.phase == COWBIRD_TICK) {
            turn_accesses.apply();
        } else {
            acknowledged_accesses.apply();
            if (meta.cowbird.frame == FRAME_ENTRY) {
                regions.apply();
            }
        }

        // Stage 3. Progress. Of an entry: its size and its place in the pool.
        instances.apply();
        rings.apply();
        entry_size.apply();
        reads_accesses.apply();
        writes_accesses.apply();
        head_accesses.apply();
        reds_accesses.apply();

        // Stage 4. Progress to report in the red block; the id that the entry must have.
        told_accesses.apply();
        answered_accesses.apply();
        expected.apply();
        if (meta.cowbird.does == DOES_TICK && meta.cowbird.served == 0) {
            meta.cowbird.does = DOES_BAD;
            meta.drop         = DROP_COWBIRD_NO_INSTANCE;
        }

        // Stage 5. Progress that the thread is known to have received.
        acked_accesses.apply();
        distances.apply();

        // Stage 6. Whether the entry starts, and whether it is valid.
        taken_accesses.apply();
        tail_accesses.apply();
        if (meta.cowbird.does == DOES_ENTRY) {
            if (meta.cowbird.offset == 0) {
                fit_at_start();
            } else {
                fit_behind_last();
            }
            entry_faults.apply();
        } else {
            red_due.apply();
        }

        // Stage 7. Its packets and its place in the ring. Requests in flight.
        packets_accesses.apply();
        placed_accesses.apply();
        under_way.apply();

        // Stage 8. Why the set is no longer served, and whether there was progress. The limit of entries to request.
        lap_accesses.apply();
        messages_accesses.apply();
        refusal_accesses.apply();
        stamp_accesses.apply();
        fetch_limit.apply();

        // Stage 9. The next entry to request. Whether the instance restarts.
        fetched_accesses.apply();
        slot_behind_accesses.apply();
        slot_first_accesses.apply();
        slot_rest_accesses.apply();
        restart.apply();

        // Stage 10. The frame's new phase.
        if (meta.cowbird.does == DOES_DATA) {
            data_write.apply();
        } else {
            next_frame.apply();
        }
        slot_length_accesses.apply();
        response_ends_accesses.apply();
        request_ends_accesses.apply();
        quiet_accesses.apply();

        // Stage 11. Destination of its data. State for another pass.
        slot_key_accesses.apply();
        slot_high_accesses.apply();
        slot_low_accesses.apply();
        asked_accesses.apply();
        pass_along.apply();

        // Stage 12. Its headers and its port.
        sent_form.apply();
        hdr.sent.mark     = SENT;
        hdr.sent.instance = meta.cowbird.instance;
        hdr.sent.phase    = meta.cowbird.next;
        if (meta.cowbird.next != 0 || meta.cowbird.again == 1) {
            sent.count(meta.cowbird.instance[5:0] ++ meta.cowbird.next[2:0]);
        }
        if (meta.cowbird.does == DOES_LOOK || meta.cowbird.does == DOES_SET || meta.cowbird.does == DOES_REFUSAL) {
            ig_tm_md.ucast_egress_port = CPU_PORT;
        } else {
            ports.apply();
        }
    }
}

// Completes packets that the engine sends: addresses, numbers, the contents of a red block or a reply.
control CowbirdEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
        in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
        inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    // Frames whose length isn't the one in their headers.
    Counter<bit<64>, bit<8>>(1, CounterType_t.PACKETS_AND_BYTES) bad_length;

    action peer(mac_addr_t mac, bit<32> ip, bit<16> udp_port, bit<24> qpn, bit<24> first) {
        hdr.ethernet.dstAddr     = mac;
        hdr.cowbird_ipv4.dstAddr = ip;
        hdr.cowbird_udp.srcPort  = udp_port;
        hdr.cowbird_bth.destQp   = qpn;
        meta.cowbird.psn         = first ++ 8w0;
    }

    table peers {
        key = {
            hdr.sent.instance : exact @name("instance");
            hdr.sent.phase    : exact @name("phase");
        }
        actions = {
            peer;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    action set(bit<32> key, bit<64> address, bit<64> ring, bit<32> mask) {
        meta.cowbird.ring = ring;
        meta.cowbird.key  = key;
        meta.cowbird.set  = address;
        meta.cowbird.mask = mask;
    }

    table sets {
        key = {
            hdr.sent.instance : exact @name("instance");
        }
        actions = {
            set;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 64;
    }

    // Headers of a packet of each phase.
    @hidden action form_read(bit<32> bytes, bit<32> back) {
        hdr.cowbird_count.word          = hdr.cowbird_count.word + back;
        hdr.cowbird_udp.length          = 40;
        hdr.cowbird_ipv4.totalLen       = 60;
        hdr.cowbird_bth.opcode          = ROCE_READ;
        hdr.cowbird_bth.pad             = 0;
        hdr.cowbird_reth.dmaLength      = bytes;
        hdr.cowbird_reth.virtualAddress = 0;
    }

    @hidden action form_pool_read() {
        hdr.cowbird_udp.length    = 40;
        hdr.cowbird_ipv4.totalLen = 60;
        hdr.cowbird_bth.opcode    = ROCE_READ;
        hdr.cowbird_bth.pad       = 0;
    }

    @hidden action form_red() {
        hdr.cowbird_udp.length          = 88;
        hdr.cowbird_ipv4.totalLen       = 108;
        hdr.cowbird_bth.opcode          = ROCE_WRITE_ONLY;
        hdr.cowbird_bth.pad             = 0;
        hdr.cowbird_bth.ackReq          = 1;
        hdr.cowbird_reth.dmaLength      = 48;
        hdr.cowbird_reth.virtualAddress = COWBIRD_RED_AT;
    }

    @hidden action form_data() {
        hdr.cowbird_ipv4.totalLen = hdr.cowbird_udp.length + 20;
    }

    @hidden table packet_form {
        key = {
            hdr.sent.phase : ternary;
            hdr.sent.form  : ternary;
        }
        actions = { form_read; form_pool_read; form_red; form_data; }
        const default_action = form_data();
        const entries = {
            (COWBIRD_PROBE,     _)          : form_read(8, 0);
            (COWBIRD_ENTRY,     FORM_GUESS) : form_read(40, 0);
            (COWBIRD_ENTRY,     _)          : form_read(32, 0xFFFFFF00);
            (COWBIRD_RED,       _)          : form_red();
            (COWBIRD_POOL_READ, _)          : form_pool_read();
            (COWBIRD_PAYLOAD,   _)          : form_pool_read();
        }
        size = 8;
    }

    // Fields common to all packets that the engine sends.
    @hidden action complete_headers() {
        meta.cowbird.place              = hdr.cowbird_count.word >> 3;
        hdr.ethernet.srcAddr            = COWBIRD_MAC;
        hdr.cowbird_ipv4.dscp           = 0;
        hdr.cowbird_ipv4.ecn            = 0;
        hdr.cowbird_ipv4.identification = 0;
        hdr.cowbird_ipv4.flags          = 2;
        hdr.cowbird_ipv4.ttl            = 64;
        hdr.cowbird_ipv4.srcAddr        = COWBIRD_IP;
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

    @hidden action find_entry() {
        hdr.cowbird_reth.virtualAddress = (bit<64>) (meta.cowbird.place & meta.cowbird.mask);
    }

    @hidden action in_ring() {
        hdr.cowbird_reth.virtualAddress = hdr.cowbird_reth.virtualAddress + meta.cowbird.ring;
        hdr.cowbird_reth.rKey           = meta.cowbird.key;
    }

    @hidden action in_set() {
        hdr.cowbird_reth.virtualAddress = hdr.cowbird_reth.virtualAddress + meta.cowbird.set;
        hdr.cowbird_reth.rKey           = meta.cowbird.key;
    }

    // A reply about a side.
    @hidden action look_reads() {
        hdr.cowbird_answer.done_top = 0;
        hdr.cowbird_answer.done     = hdr.cowbird_telling.reads;
        hdr.cowbird_answer.end_high = 0;
        hdr.cowbird_answer.end      = 24w0 ++ hdr.cowbird_telling.refusal;
        hdr.cowbird_answer.head_top = 0;
        hdr.cowbird_answer.head     = hdr.cowbird_telling.acked;
    }

    @hidden action look_writes() {
        hdr.cowbird_answer.done_top = 0;
        hdr.cowbird_answer.done     = hdr.cowbird_telling.writes;
        hdr.cowbird_answer.end_high = 0;
        hdr.cowbird_answer.end      = 24w0 ++ hdr.cowbird_telling.refusal;
        hdr.cowbird_answer.head_top = 0;
        hdr.cowbird_answer.head     = hdr.cowbird_telling.acked;
    }

    @hidden action tops() {
        meta.cowbird.head     = meta.cowbird.head & (bit<8>) COWBIRD_TOPS;
        meta.cowbird.reads    = meta.cowbird.reads & (bit<8>) COWBIRD_TOPS;
        meta.cowbird.writes   = meta.cowbird.writes & (bit<8>) COWBIRD_TOPS;
        meta.cowbird.response = meta.cowbird.response & (bit<8>) COWBIRD_TOPS;
        meta.cowbird.request  = meta.cowbird.request & (bit<8>) COWBIRD_TOPS;
    }

    // Counters have 24 bits here, positions 32. The high part changes by one when the top two of these bits wrapped, up or
    // down, since they were last seen.

    // The bits above the low part of the head, and the top two bits of that part when last seen.
    // Written by red blocks, replies to the controller; it wraps at 2^32.
    Register<cowbird_high_t, cowbird_instance_t>(COWBIRD_INSTANCES) head_high;

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(head_high) follow_head = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            if (value.top - (bit<32>) meta.cowbird.head == COWBIRD_TOPS) {
                value.high = value.high + 1;
            } else if ((bit<32>) meta.cowbird.head - value.top == COWBIRD_TOPS) {
                value.high = value.high - 1;
            }
            value.top = (bit<32>) meta.cowbird.head;
            result    = value.high;
        }
    };

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(head_high) put_head = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            value.top  = (bit<32>) meta.cowbird.head;
            value.high = hdr.cowbird_answer.head_high;
            result     = 0;
        }
    };

    // The bits above the low part of reads that are done, and the top two bits of that part when last seen.
    // Written by red blocks, replies to the controller; it wraps at 2^32.
    Register<cowbird_high_t, cowbird_instance_t>(COWBIRD_INSTANCES) reads_high;

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(reads_high) follow_reads = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            if (value.top - (bit<32>) meta.cowbird.reads == COWBIRD_TOPS) {
                value.high = value.high + 1;
            } else if ((bit<32>) meta.cowbird.reads - value.top == COWBIRD_TOPS) {
                value.high = value.high - 1;
            }
            value.top = (bit<32>) meta.cowbird.reads;
            result    = value.high;
        }
    };

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(reads_high) put_reads = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            value.top  = (bit<32>) meta.cowbird.reads;
            value.high = hdr.cowbird_answer.done_high;
            result     = 0;
        }
    };

    // The bits above the low part of writes that are done, and the top two bits of that part when last seen.
    // Written by red blocks, replies to the controller; it wraps at 2^32.
    Register<cowbird_high_t, cowbird_instance_t>(COWBIRD_INSTANCES) writes_high;

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(writes_high) follow_writes = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            if (value.top - (bit<32>) meta.cowbird.writes == COWBIRD_TOPS) {
                value.high = value.high + 1;
            } else if ((bit<32>) meta.cowbird.writes - value.top == COWBIRD_TOPS) {
                value.high = value.high - 1;
            }
            value.top = (bit<32>) meta.cowbird.writes;
            result    = value.high;
        }
    };

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(writes_high) put_writes = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            value.top  = (bit<32>) meta.cowbird.writes;
            value.high = hdr.cowbird_answer.done_high;
            result     = 0;
        }
    };

    // The bits above the low part of the end of their responses, and the top two bits of that part when last seen.
    // Written by red blocks, replies to the controller; it wraps at 2^32.
    Register<cowbird_high_t, cowbird_instance_t>(COWBIRD_INSTANCES) response_high;

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(response_high) follow_response = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            if (value.top - (bit<32>) meta.cowbird.response == COWBIRD_TOPS) {
                value.high = value.high + 1;
            } else if ((bit<32>) meta.cowbird.response - value.top == COWBIRD_TOPS) {
                value.high = value.high - 1;
            }
            value.top = (bit<32>) meta.cowbird.response;
            result    = value.high;
        }
    };

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(response_high) put_response = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            value.top  = (bit<32>) meta.cowbird.response;
            value.high = hdr.cowbird_answer.end_high;
            result     = 0;
        }
    };

    // The bits above the low part of the end of their requests' data, and the top two bits of that part when last seen.
    // Written by red blocks, replies to the controller; it wraps at 2^32.
    Register<cowbird_high_t, cowbird_instance_t>(COWBIRD_INSTANCES) request_high;

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(request_high) follow_request = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            if (value.top - (bit<32>) meta.cowbird.request == COWBIRD_TOPS) {
                value.high = value.high + 1;
            } else if ((bit<32>) meta.cowbird.request - value.top == COWBIRD_TOPS) {
                value.high = value.high - 1;
            }
            value.top = (bit<32>) meta.cowbird.request;
            result    = value.high;
        }
    };

    RegisterAction<cowbird_high_t, cowbird_instance_t, bit<32>>(request_high) put_request = {
        void apply(inout cowbird_high_t value, out bit<32> result) {
            value.top  = (bit<32>) meta.cowbird.request;
            value.high = hdr.cowbird_answer.end_high;
            result     = 0;
        }
    };

    @hidden action head_told() {
        hdr.cowbird_block.head_high = follow_head.execute(hdr.sent.instance[5:0]);
    }

    @hidden action head_looked() {
        hdr.cowbird_answer.head_high = follow_head.execute(hdr.sent.instance[5:0]);
    }

    @hidden action head_put() {
        put_head.execute(hdr.sent.instance[5:0]);
    }

    @hidden table head_highs {
        key = {
            hdr.sent.phase          : exact;
            hdr.cowbird_answer.side : ternary;
        }
        actions = {
            head_told;
            head_looked;
            head_put;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_RED, _)  : head_told();
            (COWBIRD_LOOK, _) : head_looked();
            (COWBIRD_SET, _)  : head_put();
        }
        size = 8;
    }

    @hidden action reads_told() {
        hdr.cowbird_block.reads_high = follow_reads.execute(hdr.sent.instance[5:0]);
    }

    @hidden action reads_looked() {
        hdr.cowbird_answer.done_high = follow_reads.execute(hdr.sent.instance[5:0]);
    }

    @hidden action reads_put() {
        put_reads.execute(hdr.sent.instance[5:0]);
    }

    @hidden table reads_highs {
        key = {
            hdr.sent.phase          : exact;
            hdr.cowbird_answer.side : ternary;
        }
        actions = {
            reads_told;
            reads_looked;
            reads_put;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_RED, _)        : reads_told();
            (COWBIRD_LOOK, 0 &&& 1) : reads_looked();
            (COWBIRD_SET, 0 &&& 1)  : reads_put();
        }
        size = 8;
    }

    @hidden action writes_told() {
        hdr.cowbird_block.writes_high = follow_writes.execute(hdr.sent.instance[5:0]);
    }

    @hidden action writes_looked() {
        hdr.cowbird_answer.done_high = follow_writes.execute(hdr.sent.instance[5:0]);
    }

    @hidden action writes_put() {
        put_writes.execute(hdr.sent.instance[5:0]);
    }

    @hidden table writes_highs {
        key = {
            hdr.sent.phase          : exact;
            hdr.cowbird_answer.side : ternary;
        }
        actions = {
            writes_told;
            writes_looked;
            writes_put;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_RED, _)        : writes_told();
            (COWBIRD_LOOK, 1 &&& 1) : writes_looked();
            (COWBIRD_SET, 1 &&& 1)  : writes_put();
        }
        size = 8;
    }

    @hidden action response_told() {
        hdr.cowbird_block.response_high = follow_response.execute(hdr.sent.instance[5:0]);
    }

    @hidden action response_put() {
        put_response.execute(hdr.sent.instance[5:0]);
    }

    @hidden table response_highs {
        key = {
            hdr.sent.phase          : exact;
            hdr.cowbird_answer.side : ternary;
        }
        actions = {
            response_told;
            response_put;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_RED, _)       : response_told();
            (COWBIRD_SET, 0 &&& 1) : response_put();
        }
        size = 8;
    }

    @hidden action request_told() {
        hdr.cowbird_block.request_high = follow_request.execute(hdr.sent.instance[5:0]);
    }

    @hidden action request_put() {
        put_request.execute(hdr.sent.instance[5:0]);
    }

    @hidden table request_highs {
        key = {
            hdr.sent.phase          : exact;
            hdr.cowbird_answer.side : ternary;
        }
        actions = {
            request_told;
            request_put;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (COWBIRD_RED, _)       : request_told();
            (COWBIRD_SET, 1 &&& 1) : request_put();
        }
        size = 8;
    }

    @hidden action misfit() {
        bad_length.count(0);
        eg_dprsr_md.drop_ctl = 1;
    }

    @hidden table length_fits {
        key = {
            hdr.sent.form     : ternary;
            meta.cowbird.room : ternary;
        }
        actions = { misfit; NoAction; }
        const default_action = misfit();
        const entries = {
            (FORM_RED, RED_CARRIED)          : NoAction();
            (FORM_RED, RED_CARRIED_WITH_FCS) : NoAction();
            (FORM_RED, _)                    : misfit();
            (_,        CARRIED)              : NoAction();
            (_,        CARRIED_WITH_FCS)     : NoAction();
        }
        size = 8;
    }

    apply {
        tops();
        if (hdr.sent.phase == COWBIRD_LOOK) {
            if (hdr.cowbird_answer.side[0:0] == 0) {
                look_reads();
            } else {
                look_writes();
            }
        } else if (hdr.sent.phase != COWBIRD_SET) {
            peers.apply();
            sets.apply();
            packet_form.apply();
            complete_headers();
            meta.cowbird.psn    = meta.cowbird.psn + hdr.cowbird_count.word;
            hdr.cowbird_bth.psn = meta.cowbird.psn[31:8];
            if (hdr.sent.phase == COWBIRD_ENTRY) {
                find_entry();
                in_ring();
            } else if (hdr.sent.phase != COWBIRD_POOL_READ && hdr.sent.phase != COWBIRD_POOL_WRITE) {
                in_set();
            }
            // The length includes what ingress put before the frame, and on the device the FCS too.
            meta.cowbird.room = eg_intr_md.pkt_length - hdr.cowbird_ipv4.totalLen;
            length_fits.apply();
        }
        head_highs.apply();
        reads_highs.apply();
        writes_highs.apply();
        response_highs.apply();
        request_highs.apply();
    }
}

// Two tables of a stage can't write one container, so what tables side by side write has containers of its own.
@pa_container_size("ingress", "meta.drop", 8)
@pa_container_size("ingress", "meta.known", 8)
@pa_container_size("ingress", "meta.accepted", 8)
control RackIngress(inout headers_t hdr, inout metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;

    // Unless the controller configures a port's meter, everything is green.
    Meter<port_t>(PORT_COUNT, MeterType_t.BYTES) best_effort_meter;
    Cowbird() cowbird;

    bit<8> best_effort_color = MeterColor_t.GREEN;

    @hidden action send_best_effort() {
        best_effort_color = best_effort_meter.execute(ig_intr_md.ingress_port);
    }

    action accept_source() { meta.accepted = 1; }

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

    action forward(port_t port) {
        ig_tm_md.ucast_egress_port = port;
        meta.known                 = 1;
        meta.known_port            = port;
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
            (DROP_NONE, MeterColor_t.RED)                           : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_MALFORMED, MeterColor_t.GREEN)                    : count_drop(DROP_MALFORMED);
            (DROP_SPOOFED, MeterColor_t.GREEN)                      : count_drop(DROP_SPOOFED);
            (DROP_UNKNOWN_DESTINATION, MeterColor_t.GREEN)          : count_drop(DROP_UNKNOWN_DESTINATION);
            (DROP_SAME_PORT, MeterColor_t.GREEN)                    : count_drop(DROP_SAME_PORT);
            (DROP_BEST_EFFORT_METER, MeterColor_t.GREEN)            : count_drop(DROP_BEST_EFFORT_METER);
            (DROP_COWBIRD_BAD_FRAME, MeterColor_t.GREEN)            : count_drop(DROP_COWBIRD_BAD_FRAME);
            (DROP_COWBIRD_UNKNOWN_PAIR, MeterColor_t.GREEN)         : count_drop(DROP_COWBIRD_UNKNOWN_PAIR);
            (DROP_COWBIRD_NO_INSTANCE, MeterColor_t.GREEN)          : count_drop(DROP_COWBIRD_NO_INSTANCE);
            (DROP_COWBIRD_BAD_OPCODE, MeterColor_t.GREEN)           : count_drop(DROP_COWBIRD_BAD_OPCODE);
            (DROP_COWBIRD_BAD_DATA, MeterColor_t.GREEN)             : count_drop(DROP_COWBIRD_BAD_DATA);
            (DROP_COWBIRD_STALE, MeterColor_t.GREEN)                : count_drop(DROP_COWBIRD_STALE);
            (DROP_COWBIRD_GAP, MeterColor_t.GREEN)                  : count_drop(DROP_COWBIRD_GAP);
            (DROP_COWBIRD_WAITS, MeterColor_t.GREEN)                : count_drop(DROP_COWBIRD_WAITS);
            (DROP_COWBIRD_CORRUPT, MeterColor_t.GREEN)              : count_drop(DROP_COWBIRD_CORRUPT);
            (DROP_COWBIRD_NOTHING_TO_DO, MeterColor_t.GREEN)        : count_drop(DROP_COWBIRD_NOTHING_TO_DO);
            (DROP_COWBIRD_MANAGEMENT_FROM_HOST, MeterColor_t.GREEN) : count_drop(DROP_COWBIRD_MANAGEMENT_FROM_HOST);
            (DROP_COWBIRD_BAD_INDEX, MeterColor_t.GREEN)            : count_drop(DROP_COWBIRD_BAD_INDEX);
        }
        size = 64;
    }

    apply {
        // Accompanies the frame to egress; only frames to the controller leave with it.
        // The upper bits are the parser's: an action that writes them too would take two stages.
        hdr.packet_in.ingress_port[8:0] = ig_intr_md.ingress_port;

        ig_tm_md.qid = PRIORITY_BEST_EFFORT;
        if (hdr.cowbird_bth.isValid()) {
            cowbird.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        } else {
            if (meta.steered == 0 && hdr.ethernet.dstAddr[40:40] == 0) {
                l2_forward.apply();
            }
            // Controller frames without a port are forwarded as a host's.
            if (!hdr.packet_out.isValid()) {
                source_guard.apply();
            } else {
                if (hdr.packet_out.egress_port == 0) {
                    meta.accepted = 1;
                }
            }

            if (ig_prsr_md.parser_err != 0) {
                meta.drop = DROP_MALFORMED;
            } else if (meta.accepted == 0) {
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
                if (meta.known == 1 && ig_tm_md.ucast_egress_port == ig_intr_md.ingress_port) {
                    meta.drop = DROP_SAME_PORT;
                } else if (hdr.ethernet.dstAddr[40:40] == 1 && meta.steered == 0) {
                    ig_tm_md.mcast_grp_a = RACK_GROUP;
                } else if (meta.known == 0 && meta.steered == 0) {
                    meta.drop = DROP_UNKNOWN_DESTINATION;
                }
            }

            // A unicast frame that egress need not handle bypasses egress.
            if (hdr.ethernet.dstAddr[40:40] == 0 && !hdr.packet_out.isValid() &&
                meta.known_port != CPU_PORT) {
                hdr.packet_in.setInvalid();
                ig_tm_md.bypass_egress = 1;
            }
            if (meta.drop == DROP_NONE && meta.steered == 0 && ig_tm_md.qid == PRIORITY_BEST_EFFORT) {
                send_best_effort();
            }
        }
        if (meta.cowbird.next == 0 && (meta.drop != DROP_NONE || best_effort_color == MeterColor_t.RED)) {
            refusals.apply();
        }
    }
}

parser RackEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        transition select(packet.lookahead<bit<8>>()) {
            SENT    : parse_sent;
            default : parse_carried;
        }
    }

    state parse_carried {
        packet.extract(hdr.packet_in);
        transition accept;
    }

    state parse_sent {
        meta.cowbird.psn      = 0;
        meta.cowbird.set      = 0;
        meta.cowbird.ring     = 0;
        meta.cowbird.key      = 0;
        meta.cowbird.place    = 0;
        meta.cowbird.mask     = 0;
        meta.cowbird.room     = 0;
        meta.cowbird.head     = 0;
        meta.cowbird.reads    = 0;
        meta.cowbird.writes   = 0;
        meta.cowbird.response = 0;
        meta.cowbird.request  = 0;
        packet.extract(hdr.sent);
        packet.extract(hdr.cowbird_count);
        transition select(hdr.sent.form, hdr.sent.phase) {
            (FORM_RED, _)                   : parse_cowbird_red;
            (FORM_MANAGEMENT, COWBIRD_LOOK) : parse_cowbird_looked;
            (FORM_MANAGEMENT, _)            : parse_cowbird_set;
            default                         : parse_sent_frame;
        }
    }

    state parse_sent_frame {
        packet.extract(hdr.packet_in);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.cowbird_ipv4);
        packet.extract(hdr.cowbird_udp);
        packet.extract(hdr.cowbird_bth);
        transition select(hdr.sent.form) {
            FORM_READ  : parse_cowbird_read;
            FORM_GUESS : parse_cowbird_read;
            default    : accept;
        }
    }

    state parse_cowbird_read {
        packet.extract(hdr.cowbird_reth);
        transition accept;
    }

    state parse_cowbird_red {
        packet.extract(hdr.cowbird_telling);
        hdr.cowbird_block.setValid();
        hdr.cowbird_block.head_top   = 0;
        hdr.cowbird_block.head       = hdr.cowbird_telling.head;
        hdr.cowbird_block.request    = hdr.cowbird_telling.request_end;
        hdr.cowbird_block.response   = hdr.cowbird_telling.response_end;
        hdr.cowbird_block.writes_top = 0;
        hdr.cowbird_block.writes     = hdr.cowbird_telling.writes;
        hdr.cowbird_block.reads_top  = 0;
        hdr.cowbird_block.reads      = hdr.cowbird_telling.reads;
        hdr.cowbird_block.refusal_0  = 0;
        hdr.cowbird_block.refusal    = hdr.cowbird_telling.refusal;
        meta.cowbird.head            = hdr.cowbird_telling.head[23:16];
        meta.cowbird.reads           = hdr.cowbird_telling.reads[23:16];
        meta.cowbird.writes          = hdr.cowbird_telling.writes[23:16];
        meta.cowbird.response        = hdr.cowbird_telling.response_end[31:24];
        meta.cowbird.request         = hdr.cowbird_telling.request_end[31:24];
        packet.extract(hdr.packet_in);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.cowbird_ipv4);
        packet.extract(hdr.cowbird_udp);
        packet.extract(hdr.cowbird_bth);
        packet.extract(hdr.cowbird_reth);
        transition accept;
    }

    state parse_cowbird_looked {
        packet.extract(hdr.cowbird_telling);
        meta.cowbird.head   = hdr.cowbird_telling.acked[23:16];
        meta.cowbird.reads  = hdr.cowbird_telling.reads[23:16];
        meta.cowbird.writes = hdr.cowbird_telling.writes[23:16];
        packet.extract(hdr.packet_in);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.cowbird_ipv4);
        packet.extract(hdr.cowbird_udp);
        packet.extract(hdr.cowbird_bth);
        packet.extract(hdr.cowbird_answer);
        transition accept;
    }

    state parse_cowbird_set {
        packet.extract(hdr.cowbird_telling);
        packet.extract(hdr.packet_in);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.cowbird_ipv4);
        packet.extract(hdr.cowbird_udp);
        packet.extract(hdr.cowbird_bth);
        packet.extract(hdr.cowbird_answer);
        meta.cowbird.head     = hdr.cowbird_answer.head[23:16];
        meta.cowbird.reads    = hdr.cowbird_answer.done[23:16];
        meta.cowbird.writes   = hdr.cowbird_answer.done[23:16];
        meta.cowbird.response = hdr.cowbird_answer.end[31:24];
        meta.cowbird.request  = hdr.cowbird_answer.end[31:24];
        transition accept;
    }
}

control RackEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() sum;

    apply {
        if (hdr.cowbird_ipv4.isValid()) {
            hdr.cowbird_ipv4.hdrChecksum = sum.update({
                hdr.cowbird_ipv4.version, hdr.cowbird_ipv4.ihl, hdr.cowbird_ipv4.dscp, hdr.cowbird_ipv4.ecn,
                hdr.cowbird_ipv4.totalLen, hdr.cowbird_ipv4.identification,
                hdr.cowbird_ipv4.flags, hdr.cowbird_ipv4.fragOffset, hdr.cowbird_ipv4.ttl, hdr.cowbird_ipv4.protocol,
                hdr.cowbird_ipv4.srcAddr, hdr.cowbird_ipv4.dstAddr });
        }
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
        packet.emit(hdr.cowbird_answer);
        packet.emit(hdr.cowbird_block);
    }
}

control RackEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    CowbirdEgress() cowbird;

    apply {
        // The group holds all host ports; the replica for the sender's own ends here.
        if (eg_intr_md.egress_rid != 0 &&
            (bit<16>) eg_intr_md.egress_port == hdr.packet_in.ingress_port) {
            eg_dprsr_md.drop_ctl = 1;
        }
        if (hdr.sent.isValid()) {
            cowbird.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md, eg_oport_md);
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

@pkginfo(name="cowbird", version="0.1.0")
Switch(pipe) main;
