// Names: unknown, twice, of the wrong kind.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
struct hdr_t { eth_t eth; eth_t eth; } // error: field `eth` is declared twice
struct meta_t { bit<8> a; unknown_t b; } // error: unknown name `unknown_t`
const bit<8> X = 1;
const bit<8> X = 2; // error: `X` is declared twice
enum Kind { A, B, A } // error: member `A` is declared twice
error { NoError } // error: error `NoError` is declared twice

parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition parse_eht; } // error: unknown state `parse_eht`
    state parse_eth { pkt.extract(hdr.eth); transition accept; }
    state parse_eth { transition reject; } // error: state `parse_eth` is declared twice
}

control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8> v;
    action act(bit<8> p) { v = p; }
    table t {
        key = { hdr.eth.dst : exakt; } // error: unknown match kind `exakt`
        actions = { act; atc; } // error: unknown name `atc`
    }
    apply {
        v = X;
        w = 1; // error: unknown name `w`
        w = 2;
        hdr.eth.destination = 1; // error: `eth_t` has no field `destination`
        hdr.eth.isValidd(); // error: `eth_t` has no method `isValidd`
        v = Kind.C; // error: enum `Kind` has no member `C`
        sm.egres_spec = 1; // error: `standard_metadata_t` has no field `egres_spec`
        t.aply(); // error: `table t` has no method `aply`
        v(1); // error: `v` is a variable, which cannot be called
        act = 1; // error: action `act` is called with arguments
        if (t.apply().hits) { } // error: the result of apply has no `hits`
        switch (t.apply().action_run) {
            act: { }
            nothing: { } // error: table `t` has no action `nothing`
        }
    }
}
