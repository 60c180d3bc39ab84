// Mistakes in declarations; each is reported, the rest is still understood.
header Ethernet {
    bit<48> dst
    bit<48> src;
    bit<16 type;
}
struct table { bit<8> x; }
enum Color { RED = 1 }
enum bit<8> Sized { A, B = 2 }
error { }
typedef bit<8>;
bit<8> global = 3;
void nothing(in bit<8> x);
extern Counter { count(in bit<32> i); }
package P(in void x);
table outside { }
const string S = "never closed;
const bit<8> FINE = 1;
