// P4_16 core library: what every program may use, whatever its architecture.

#ifndef _CORE_P4_
#define _CORE_P4_

// Numbered in this order; a program may add more.
error {
    NoError,
    PacketTooShort,        // extract, lookahead or advance beyond the end of the packet
    NoMatch,               // no case of a select applies
    StackOutOfBounds,      // next or last of a header stack that has none
    HeaderTooShort,        // the length given for a varbit field exceeds its maximum
    ParserTimeout,
    ParserInvalidArgument  // an argument that the target refuses
}

// The packet on its way into a parser.
extern packet_in {
    // Fills a header of fixed length and makes it valid.
    void extract<T>(out T hdr);
    // The same for a header with one varbit field, whose length is given in bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // The next bits, which stay where they are.
    T lookahead<T>();
    // Skips bits.
    void advance(in bit<32> sizeInBits);
    // Length of the whole packet in bytes.
    bit<32> length();
}

// The packet on its way out of a deparser.
extern packet_out {
    // Appends a header if it is valid; of a struct, union or stack each member in turn.
    void emit<T>(in T hdr);
}

// Goes to reject with this error unless the condition holds (parsers only).
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

// Checked while compiling.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
