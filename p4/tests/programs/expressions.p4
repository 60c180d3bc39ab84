// Operators, literals, casts, generics: whatever can stand right of `=`.
struct S { bit<8> a; bit<8> b; }
struct Outer { S s; bit<8> c; }
header H { bit<8> x; bit<32> y; }
enum Color { RED, GREEN }
extern T max<T>(in T a, in T b);
extern bit<8> plain(in bit<8> a);
extern Box<T> { Box(T initial); T get(); U convert<U>(in U seed); }
const bit<8> GLOBAL = 3;

bit<32> expressions(in H h, in H[4] stack, inout bit<32> a, inout bit<32> b, in bool p, in bool q) {
    int<8> negative = -8s1 + 8s127;
    bit<32> literal = 0xDEAD_BEEF ^ 0b1010_1010 | 0o17 & 0d99;
    a = a + b * 2 - b / 3 % 5;
    a = a |+| b |-| 1;
    a = a << 3 >> 2;
    a = (a ++ b)[39:8];
    a = b[7:0] ++ b[15:8] ++ b[31:16];
    a = b[8+:16] ++ a[(a > 3 ? 8w4 : 8w5)+:16];
    bool r = a < b && a <= b || a > b && a >= b || a == b || !(a != b) && !p;
    r = p ? q ? true : false : a > b ? p : q;
    bit<8> cast = (bit<8>) a;
    cast = (bit<8>) (bit<16>) ~a[15:0];
    cast = (bit<8>)(a + b)[7:0];
    cast = (bit<(8)>) a;
    r = (bool) a[0:0];
    S s = { 1, 2 };
    s = { a = 1, b = 2 };
    s = (S) { a = 1, b = 2, };
    s = (S) { a = 1, ... };
    Outer o = { { 1, ... }, 3 };
    o = { s = ..., c = 4 };
    o = ...;
    s = {#};
    s = { };
    H invalid = (H) {#};
    tuple<bit<8>, bool> t = { 8w1, true };
    bit<8> first = t[0];
    first = max<bit<8>>(first, .GLOBAL);
    first = max<_>(first, 1);
    first = max(a = first, b = _);
    first = Box<bit<8>>(3).get();
    first = Box<tuple<bit<8>, Box<bit<8>>>>({ 1, 2 }).convert<bit<8>>(first);
    r = a < max<bit<32>>(a, b) && (a) > (b);
    r = (a) - b == b - (a);
    r = stack[1].x == stack[a + 1].x && stack.lastIndex > 2;
    r = h.isValid() && stack[0].isValid();
    r = Color.RED == Color.GREEN || error.NoError == error.PacketTooShort;
    a = a >> b > b >> a ? 1 : 2;
    return a;
}
