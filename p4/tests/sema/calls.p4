// Calls: arguments, directions, generics, places.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<16> type; }
header opt_t { bit<8> len; varbit<80> data; }
struct hdr_t { eth_t eth; opt_t opt; }
struct meta_t { bit<8> a; bit<16> w; bit<32> i; }

bit<8> add(in bit<8> x, in bit<8> y) { return x + y; }
void set(out bit<8> x) { x = 1; }
T id<T>(in T x) { return x; }
extern E { E(bit<8> n); void m(in bit<8> x); }
parser Sub(packet_in p) { state start { transition accept; } }
control Ctl(inout meta_t m)(bit<8> n) { apply { } }

parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Ctl(1) c;
    state start {
        pkt.extract(hdr.opt); // error: header `opt_t` has a varbit field
        pkt.extract(hdr.eth, 8); // error: header `eth_t` has no varbit field
        pkt.extract(meta); // error: `extract` fills a header, not `meta_t`
        c.apply(meta); // error: a control cannot be applied in a parser
        transition select(meta.a, meta.w) {
            1 : accept; // error: expected 2 keys, 1 given
            (1, true) : accept; // error: expected `bit<16>`, found `bool`
            (meta.a &&& 1, 1) : accept; // error: a value to match must be known at compile time
        }
    }
}
parser NoStart(packet_in pkt) { // error: parser `NoStart` has no state `start`
    state begin { transition accept; }
}
parser Forever(packet_in pkt) { // error: parser `Forever` never reaches `accept` or `reject`
    state start { transition start; }
}
control I(inout hdr_t hdr, in meta_t meta, inout standard_metadata_t sm) {
    bit<8> v;
    register<bit<32>>(meta.i) dyn; // error: an argument of a constructor must be known at compile time
    register<bit<32>>(16, 2) two; // error: `register` takes 1 argument, 2 given
    register<bit<32>>(16) r;
    Ctl(true) wrong; // error: expected `bit<8>`, found `bool`
    Sub() sub;
    action late(bit<8> x, in bit<8> y) { } // error: the parameters of an action that have no direction come after all others
    action nested() { t.apply(); } // error: unknown name `t`
    action act(in bit<8> x, bit<8> y) { v = x + y; }
    table t {
        key = { hdr.eth.dst : exact; }
        actions = { act(v, 1); NoAction; } // error: parameter `y` of action `act` is for the control plane
        default_action = other(); // error: unknown name `other`
        const entries = { (1, 2) : NoAction(); } // error: expected one key of type `bit<48>`, 2 given
    }
    table pair {
        key = { hdr.eth.dst : ternary; hdr.eth.type : ternary; }
        actions = { NoAction; }
        const entries = { _ : NoAction(); } // error: expected 2 keys, 1 given; write `(_, _)` for any
    }
    apply {
        v = add(1); // error: `add` takes 2 arguments, 1 given
        v = add(x = 1, z = 2); // error: `add` has no parameter `z`
        v = add(1, y = 2); // error: name either all arguments or none
        v = add(1, 16w2); // error: expected `bit<8>`, found `bit<16>`
        set(meta.a); // error: the argument for `x` must be something that can be written
        set(1); // error: the argument for `x` must be something that can be written
        v = id(3); // error: no width can be inferred for type parameter `T` of `id`
        meta.a = 1; // error: the left side of an assignment must be something that can be written
        r.read(v, 0); // error: `result` is `bit<32>`, the argument is `bit<8>`
        r.write(0); // error: `write` takes 2 arguments, 1 given
        sub.apply(); // error: a parser cannot be applied in a control
        verify(true, error.NoError); // error: `verify` can only be used in a parser
        hdr.eth.push_front(1); // error: `eth_t` has no method `push_front`
        mark_to_drop(sm, sm); // error: no `mark_to_drop` takes 2 arguments
        return 1; // error: `return` has a value, but none is expected
    }
}
