// Places inside macros and included files.
#include "included.p4"
#define ASSIGN(a, b) a = = b
#define TWO 2 2

control C(inout bit<8> x) {
    apply {
        ASSIGN(x, 3);
        x = TWO;
#line 500 "generated.txt"
        x = ;
    }
}
