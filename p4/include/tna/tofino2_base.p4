// Externs of the second generation.

#ifndef _TOFINO2_BASE_P4_
#define _TOFINO2_BASE_P4_

#include "tofino_values.p4"

const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;

match_kind { dleft_hash }

#define MIRROR_CONTROL \
    bit<1> mirror_io_select; \
    bit<13> mirror_hash; \
    bit<3> mirror_ingress_cos; \
    bit<1> mirror_deflect_on_drop; \
    bit<1> mirror_multicast_ctrl; \
    PortId_t mirror_egress_port; \
    QueueId_t mirror_qid; \
    bit<8> mirror_coalesce_length; \
    bit<32> adv_flow_ctl; \
    bit<14> mtu_trunc_len; \
    bit<1> mtu_trunc_err_f;
#define PKTGEN_CONTROL \
    bit<1> pktgen; \
    bit<14> pktgen_address; \
    bit<10> pktgen_length;
#define QUEUE_TIMES \
    bit<32> enq_tstamp; \
    @padding bit<5> _pad3; \
    bit<19> deq_qdepth; \
    @padding bit<6> _pad4; \
    bit<2> deq_congest_stat; \
    bit<8> app_pool_congest_stat; \
    bit<32> deq_timedelta; \
    bit<16> egress_rid;
#define EGRESS_TRAILER @padding bit<8> _pad11;
#define PKTGEN_APP_WIDTH 4
#define PKTGEN_RECIRC_KEY \
    @padding bit<8> _pad2; \
    bit<16> batch_id;
#include "tofino_metadata.p4"

// What a ghost thread sees: the length of a queue that changed.
@__intrinsic_metadata @__ghost_metadata
header ghost_intrinsic_metadata_t {
    bit<1> ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2> pipe_id;
}

header pktgen_deparser_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<40> _pad2;
}

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add);
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

// Value of the table property idle_timeout.
extern IdleTimeout {
    IdleTimeout();
}

extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);

extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type, @optional bool true_egress_accounting);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectCounter<W> {
    DirectCounter(CounterType_t type, @optional bool true_egress_accounting);
    void count(@optional in bit<32> adjust_byte_count);
}

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type, @optional bool true_egress_accounting);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green,
          @optional bool true_egress_accounting);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type, @optional bool true_egress_accounting);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green,
                @optional bool true_egress_accounting);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
    void clear(in T value, @optional in T busy);
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
    void clear(in T value, @optional in T busy);
}

#include "tofino2_register_actions.p4"
#include "tofino_externs.p4"

// Makes the device generate a packet, with a header in front.
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}

#endif
