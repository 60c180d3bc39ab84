// Externs of the first generation.

#ifndef _TOFINO1_BASE_P4_
#define _TOFINO1_BASE_P4_

#include "tofino_values.p4"

const bit<16> PARSER_ERROR_DST_CONT = 0x0040;

#define MIRROR_CONTROL
#define PKTGEN_CONTROL
#define QUEUE_TIMES \
    @padding bit<14> _pad3; \
    bit<18> enq_tstamp; \
    @padding bit<5> _pad4; \
    bit<19> deq_qdepth; \
    @padding bit<6> _pad5; \
    bit<2> deq_congest_stat; \
    bit<8> app_pool_congest_stat; \
    @padding bit<14> _pad6; \
    bit<18> deq_timedelta; \
    bit<16> egress_rid;
#define EGRESS_TRAILER
#define PKTGEN_APP_WIDTH 3
#define PKTGEN_RECIRC_KEY bit<24> key;
#include "tofino_metadata.p4"

// The parser's counter, for stacks and headers of variable length.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<3> mask, in bit<8> add);
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);

extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectCounter<W> {
    DirectCounter(CounterType_t type);
    void count(@optional in bit<32> adjust_byte_count);
}

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
}

// Reads, changes and writes a cell as one; rv is what execute returns.
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index);
    U execute_log();
    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute();
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

#include "tofino_externs.p4"

#endif
