// Types: mismatches, widths, conversions.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; varbit<16> v; varbit<8> w; } // error: a header that is extracted has at most one varbit field
header bad_t { string s; } // error: field `s` cannot hold `string`
header ok_t { bit<8> a; int<8> s; }
header_union u_t { ok_t h; bit<8> n; } // error: a header union cannot have a field of type `bit<8>`
type bit<16> New;
typedef bit<4000> wide_t; // error: a width is between 0 and 2048, not 4000
typedef int<0> none_t; // error: a width is between 1 and 2048, not 0
const int HUGE = 1 / 0; // error: division by zero

struct pair_t<T> { T x; T y; }
typedef pair_t<bit<8>, bit<8>> two_t; // error: `pair_t` takes 1 type argument, 2 given
typedef string[4] array_t; // error: an array cannot hold `string`

void f(inout bit<8> a, inout bit<16> b, inout int<8> s, inout New n, inout ok_t h, inout bool c, inout pair_t<bit<8>> p) {
    a = b; // error: expected `bit<8>`, found `bit<16>`
    a = a + b; // error: `+` needs two operands of one type
    a = s; // error: expected `bit<8>`, found `int<8>`
    a = (bit<8>) s;
    n = b; // error: expected `New`, found `bit<16>`
    n = (New) b;
    n = 1;
    b = n + 1; // error: `+` cannot be applied to `New`
    c = n == 1; // error: `New` and `int` cannot be compared
    n = 8w1; // error: expected `New`, found `bit<8>`
    c = a; // error: expected `bool`, found `bit<8>`
    c = a && c; // error: `&&` expects `bool`, found `bit<8>`
    if (a) { } // error: a condition is `bool`, not `bit<8>`
    a = b[16:9]; // error: bits [16:9] are not within `bit<16>`
    a = b[0:7]; // error: the high bit comes first: [7:0]
    a = 1 << a; // error: `<<` by an amount that is not constant needs a width
    a = a << s; // error: `<<` expects an unsigned amount, found `int<8>`
    s = s / 2; // error: `/` is not defined on `int<8>`
    a = a / 0; // error: division by zero
    a = 1 ++ a; // error: `++` expects numbers with a width, found `int`
    c = h == p; // error: `ok_t` and `pair_t<bit<8>>` cannot be compared
    h = {1}; // error: `ok_t` has 2 parts, 1 given
    h = {a = 1, t = 2}; // error: `ok_t` has no field `t`
    p = {x = 1}; // error: field `y` of `pair_t<bit<8>>` is missing
    p = {1, ...};
    a = c ? 1 : b; // error: expected `bit<8>`, found `bit<16>`
    b = (bit<16>) c; // error: `bool` cannot be cast to `bit<16>`
}
bit<8> g(in bit<8> x) { // error: function `g` may end without `return`
    x = 1; // error: the left side of an assignment must be something that can be written
    if (x == 1) { return 2; }
}
void h() { return 1; } // error: `return` has a value, but none is expected
bit<8> i() { return; } // error: `return` needs a value of type `bit<8>`
void j() { break; } // error: `break` outside of a loop
void k() { exit; } // error: `exit` is not allowed in a function
parser Two(packet_in pkt, out h_t h) {
    state start { pkt.extract(h, 8); transition accept; }
}
void l(inout bit<8> a, in int<8> s) {
    a = a[s +: 4]; // error: the start of a slice is an unsigned number, not `int<8>`
}
