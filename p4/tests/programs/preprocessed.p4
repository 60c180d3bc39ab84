// Macros that make P4.
#include <core.p4>
#define WIDTH 32
#define BITS(n) bit<n>
#define FIELD(type, name) type name;
#define GETTER(name, ty) \
    ty get_##name(in Data d) { \
        return d.name; \
    }
#define AS_STRING(x) #x
#define LOG(...) log_msg(__VA_ARGS__)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define ALIAS MIN

#if defined(WIDTH) && WIDTH >= 32 && !defined(NARROW)
typedef BITS(WIDTH) Word;
#elif WIDTH == 16
#error not here
#else
typedef BITS(8) Word;
#endif

#ifndef GUARD
#define GUARD
#endif

extern void log_msg(string s);

struct Data {
    FIELD(Word, first)
    FIELD(BITS(16), second)
}

GETTER(first, Word)
GETTER(second, BITS(16))

control C(inout Data d) {
    apply {
        LOG(AS_STRING(a "quoted" string));
        d.first = MIN(d.first, ALIAS(1,
            /* over lines */ 2 /* and comments, with a comma */));
        log_msg(__FILE__);
        d.first = __LINE__;
    }
}
#undef WIDTH
#pragma anything goes
const bit<8> WIDTH = 1;
